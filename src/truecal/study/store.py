"""The store: a folder of Parquet parts, one per finished job, that can be read at any moment.

    store/
      study.json               version, name, the study as written, the jobs it consists of
      lock                     held (flock) by the one run that writes
      results/<job>.parquet    the numbers of one prediction file; written last, so the job is done when it is there
      diagrams/<job>.parquet   the bins of its reliability diagrams

Every file is renamed into its place whole. A run that is killed leaves finished parts and nothing else; its lock dies with it.
A job is named by a hash of what its numbers depend on, and only the jobs listed in study.json are read, so parts of files or
options that have changed since are passed over.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truecal.errors import FileError, InputError, MissingExtraError
from truecal.study.lock import HeldError, hold
from truecal.writing import write_whole

if TYPE_CHECKING:
    import polars as pl

VERSION = 1

# Column -> polars type, one row per number. Only family, size, scheme, bins, norm, low, high and level may be missing.
RESULTS = {
    "job": "String",
    "model": "String",
    "family": "String",
    "size": "Float64",
    "dataset": "String",
    "severity": "Float64",
    "seed": "Int64",
    "recalibrator": "String",
    "lens": "String",
    "selection": "String",
    "metric": "String",
    "scheme": "String",
    "bins": "Int64",
    "norm": "Float64",
    "value": "Float64",
    "low": "Float64",
    "high": "Float64",
    "level": "Float64",
    "n": "Int64",
    "warnings": "String",
}

# One row per bin that holds data; 15 bins of equal mass and 15 of equal width (`scheme`).
DIAGRAMS = {
    "job": "String",
    "recalibrator": "String",
    "lens": "String",
    "selection": "String",
    "scheme": "String",
    "bin": "Int64",
    "low": "Float64",
    "high": "Float64",
    "count": "Float64",
    "confidence": "Float64",
    "outcome": "Float64",
}


def polars() -> Any:
    """Polars, on use only."""
    try:
        import polars
    except ImportError as error:
        raise MissingExtraError.of("polars", "study") from error
    return polars


class Store:
    """The results of a study in a folder; any number of readers beside one writer.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> with store.locked():
    ...     store.begin({"name": "two models", "study": {}, "jobs": ["a1", "b2"]})
    ...     store.add("a1", [{"job": "a1", "model": "mlp", "metric": "nll", "value": 0.25}], [])
    >>> store.done()
    ['a1']
    >>> store.frame().select("model", "metric", "value").rows()
    [('mlp', 'nll', 0.25)]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    # ------------------------------------------------------------------ reading

    def meta(self) -> dict[str, Any]:
        """What study.json holds: version, name, study, jobs, truecal (the release that wrote it)."""
        path = self.folder / "study.json"
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise FileError(
                f"{self.folder} is no store: it has no study.json; make one with truecal study run"
            ) from error
        except (OSError, ValueError) as error:
            raise FileError(f"{path} is damaged or cannot be read; run the study again") from error
        if not isinstance(held, dict) or not isinstance(held.get("jobs"), list):
            raise FileError(f"{path} is not that of a study; run the study again")
        if held.get("version") != VERSION:
            raise FileError(
                f"{self.folder} is a store of version {held.get('version')!r}, this release reads {VERSION}; update truecal"
            )
        return held

    def jobs(self) -> list[str]:
        """All jobs of the study, done or not."""
        return list(self.meta()["jobs"])

    def done(self) -> list[str]:
        """The jobs whose numbers are there."""
        return [job for job in self.jobs() if self._part("results", job).is_file()]

    def frame(self) -> "pl.DataFrame":
        """Every number of the finished jobs, one per row (see RESULTS)."""
        return self._read("results", RESULTS)

    def diagrams(self) -> "pl.DataFrame":
        """The bins of the reliability diagrams of the finished jobs (see DIAGRAMS)."""
        return self._read("diagrams", DIAGRAMS)

    def _read(self, kind: str, columns: dict[str, str]) -> "pl.DataFrame":
        pl = polars()
        parts = [self._part(kind, job) for job in self.done()]
        if not parts:
            return _table([], columns)
        try:
            return pl.read_parquet(parts, glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise FileError(f"a part of {self.folder}/{kind} is damaged: {reason}; delete it and run again") from error

    # ------------------------------------------------------------------ writing

    @contextmanager
    def locked(self, *, wait: bool = False) -> Iterator[None]:
        """Be the one run that writes. Another one is waited for, or refused; the lock of a killed run is gone with it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = hold(self.folder / "lock", wait=wait)
        except OSError as error:
            raise FileError(f"cannot make a store in {self.folder}: {error.strerror}") from error
        except HeldError as held:
            raise InputError(
                f"another run (process {held.holder}) is writing to {self.folder}; wait for it with --wait (wait=True), or "
                "choose another store"
            ) from held
        try:
            yield
        finally:
            os.close(handle)

    def begin(self, meta: dict[str, Any]) -> None:
        """State what the study consists of, and clear away what killed runs left half written. Needs the lock."""
        from importlib.metadata import version

        if (self.folder / "study.json").is_file():
            name = self.meta().get("name")
            if name != meta["name"]:
                raise InputError(
                    f"{self.folder} holds the study {name!r}, not {meta['name']!r}; choose another store or another name"
                )
        for kind in ("results", "diagrams"):
            (self.folder / kind).mkdir(exist_ok=True)
            for left in (self.folder / kind).glob(".*.part"):
                left.unlink(missing_ok=True)
        held = {"version": VERSION, **meta, "truecal": version("truecal")}
        write_whole(self.folder / "study.json", json.dumps(held, indent=1, ensure_ascii=False, default=str) + "\n")

    def add(self, job: str, results: Sequence[dict[str, Any]], diagrams: Sequence[dict[str, Any]]) -> None:
        """Keep the numbers of a job; it is done when this returns."""
        for kind, rows, columns in (("diagrams", diagrams, DIAGRAMS), ("results", results, RESULTS)):
            content = BytesIO()
            _table(rows, columns).write_parquet(content)
            write_whole(self._part(kind, job), content.getvalue())

    def _part(self, kind: str, job: str) -> Path:
        return self.folder / kind / f"{job}.parquet"


def _table(rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> "pl.DataFrame":
    pl = polars()
    kinds = {name: getattr(pl, kind) for name, kind in columns.items()}
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, schema=kinds)
