"""Results on disk, one file per batch, found by content: an interrupted run loses at most the batch under way."""

import os
import zipfile
from pathlib import Path

import numpy as np

from truecal.errors import FileError
from truecal.lab.worlds.quadrature import Array
from truecal.writing import write_whole


class BatchCache:
    """A folder of `<key>.npz` files (plain arrays, no pickle), each written whole or not at all.

    A file holds, for one batch of simulated datasets, one array per measure; asking for another measure adds to it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise FileError(f"cannot keep simulations in {str(self.folder)[:100]}: {error}") from error

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
        together = {**self.read(key), **arrays}
        write_whole(path, lambda file: np.savez(file, **together))  # type: ignore[arg-type]

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"
