"""Claims: who is at work on a job, so that several runs, on several hosts, share a store without a lock service.

A claim is a file made if there is none (an atomic operation of file systems, network ones included), with host
and process in it, and touched while the work goes on. It is dead when its process is gone (seen from the same host), or when nobody
has touched it for a minute; then any run may take it. Two runs that take a dead claim at the same moment do the same work
twice and write the same part: numbers do not depend on claims.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_BEAT, _DEAD = 10.0, 60.0  # seconds between touches; without one after which a claim is dead


class Claims:
    """The claims of one run, in a folder that all runs on a store share. `owner` is its host and process."""

    def __init__(self, folder: Path, owner: str | None = None) -> None:
        self.folder = folder
        self.owner = f"{socket.gethostname()} {os.getpid()}" if owner is None else owner

    @contextmanager
    def touched(self, job: str) -> Iterator[None]:
        """Touch a claim for as long as the work on it goes on."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(_BEAT):
                with suppress(FileNotFoundError):
                    os.utime(self.folder / job)

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            stop.set()
            beating.join()

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
        """A claim that is there with its owner or not at all: a run that is killed in between must not leave one of nobody."""
        written = self.folder / f".{secrets.token_hex(8)}.part"
        written.write_text(self.owner, encoding="utf-8")
        try:
            os.link(written, path)
        finally:
            written.unlink(missing_ok=True)

    def release(self, job: str) -> None:
        """Give up a claim."""
        (self.folder / job).unlink(missing_ok=True)

    def _dead(self, path: Path) -> bool:
        try:
            owner, touched = path.read_text(encoding="utf-8"), path.stat().st_mtime
        except FileNotFoundError:
            return True
        host, _, process = owner.rpartition(" ")
        if host == socket.gethostname() and process.isdigit() and owner != self.owner:
            return not _alive(int(process))
        return time.time() - touched > _DEAD


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
