"""Results on disk, one file per batch, found by content: an interrupted run loses at most the batch under way."""

import contextlib
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from truecal.lab.quadrature import Array


class BatchCache:
    """A folder of `<key>.npz` files (plain arrays, no pickle), each written whole or not at all.

    A file holds, for one batch of simulated datasets, one array per measure; asking for another measure adds to it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str) -> dict[str, Array]:
        """The arrays stored under this key; none if there is no file, or a damaged one."""
        try:
            with self._path(key).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (FileNotFoundError, zipfile.BadZipFile, ValueError, EOFError, OSError):
            return {}

    def add(self, key: str, arrays: dict[str, Array]) -> None:
        """Store arrays beside those already there."""
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **{**self.read(key), **arrays})  # type: ignore[arg-type]
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"
