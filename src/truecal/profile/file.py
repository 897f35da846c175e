"""Profiles on disk: a versioned npz file, written whole or not at all, read without pickle."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import FileError
from truecal.predictions import readers
from truecal.writing import write_whole

_FORMAT, _VERSION = "truecal.profile", 1
ARRAYS = ("scores", "outcomes", "weights", "squares", "products")


def save_arrays(path: str | Path, arrays: dict[str, NDArray[Any]], *, single: bool) -> None:
    """Write the arrays of a profile; the file at `path` is replaced in one step."""
    header = {"format": np.array(_FORMAT), "version": np.array(_VERSION), "single": np.array(single)}
    write_whole(path, lambda file: np.savez(file, **header, **arrays))  # type: ignore[arg-type]


def load_arrays(path: str | Path) -> tuple[list[NDArray[Any] | None], bool]:
    """What :func:`save_arrays` wrote: one array or None for each of ARRAYS, and whether answers are plain numbers."""
    file = Path(path)
    arrays = readers.read_arrays(file)
    if str(arrays.get("format")) != _FORMAT or not {"version", "single", "scores", "outcomes"} <= arrays.keys():
        raise FileError(f"{file.name} is not a saved profile")
    if int(arrays["version"]) > _VERSION:
        raise FileError(f"{file.name} was written by a newer truecal (version {int(arrays['version'])} of the format)")
    parts = {name: arrays.get(name) for name in ARRAYS}
    scores = arrays["scores"]
    if scores.ndim != 2 or not scores.size or not (np.diff(scores, axis=1) >= 0).all():
        raise FileError(f"{file.name} is damaged: its scores are not sorted")
    if any(a is not None and (a.ndim != 2 or a.shape[1] != scores.shape[1]) for a in parts.values()):
        raise FileError(f"{file.name} is damaged: its arrays do not match")
    _refuse_nonsense(file.name, parts)
    return list(parts.values()), bool(arrays["single"])


def _refuse_nonsense(name: str, parts: dict[str, NDArray[Any] | None]) -> None:
    """Raise where numbers cannot be those of a profile."""
    for what, array in parts.items():
        if array is None:
            continue
        if array.dtype.kind not in "fu" or not np.isfinite(array).all():
            raise FileError(f"{name} is damaged: its {what} are not numbers")
        most = np.inf if what == "weights" else 1.0
        wrong = (array < 0) | (array > most)
        if wrong.any():
            row, value = int(np.argwhere(wrong)[0, 1]), array[wrong][0]
            raise FileError(f"{name} is damaged: its {what} cannot hold {value:g} (row {row})")
