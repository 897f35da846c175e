"""Claims: which run is at work on a job, so that several runs on one host share a store without a lock service.

A claim is a file made if there is none (an atomic operation), with the number of its process in it. It is dead when that process is
gone; then any run may take it. Two runs that take a dead claim at the same moment do the same work twice and write the same part:
numbers do not depend on claims.
"""

import os
import secrets
from pathlib import Path


class Claims:
    """The claims of one run, in a folder that all runs on a store share."""

    def __init__(self, folder: Path, process: int | None = None) -> None:
        self.folder = folder
        self.process = os.getpid() if process is None else process

    def take(self, job: str) -> bool:
        """Claim a job; False if another run that lives has it."""
        path = self.folder / job
        for _ in range(2):
            try:
                self._create(path)
            except FileExistsError:
                if not self._dead(path):
                    return False
                path.unlink(missing_ok=True)
                continue
            return True
        return False

    def _create(self, path: Path) -> None:
        """Write a claim whole or not at all: a run that is killed in between must not leave one of nobody."""
        written = self.folder / f".{secrets.token_hex(8)}.part"
        written.write_text(str(self.process), encoding="utf-8")
        try:
            os.link(written, path)
        finally:
            written.unlink(missing_ok=True)

    def release(self, job: str) -> None:
        """Give up a claim."""
        (self.folder / job).unlink(missing_ok=True)

    def _dead(self, path: Path) -> bool:
        try:
            owner = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return True
        # A claim of this run's own number is left from an earlier process that had it: no job is taken twice in a run.
        return not owner.isdigit() or int(owner) == self.process or not _alive(int(owner))


def _alive(process: int) -> bool:
    if os.name == "nt":  # there, signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
