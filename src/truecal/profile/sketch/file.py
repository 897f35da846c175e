"""Sketches on disk: a versioned npz file, written whole or not at all, read without pickle and checked on the way in."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import FileError
from truecal.predictions import readers
from truecal.profile.sketch.cells import cell_edge
from truecal.profile.sketch.rows import HeldCells
from truecal.profile.sketch.tally import SUMS
from truecal.writing import write_whole

_FORMAT, _VERSION = "truecal.sketch", 1
_ALWAYS = ("edges", "low", "high", *(name for name in SUMS if name not in ("w", "ww")))


def save_cells(sketch: HeldCells, path: str | Path) -> None:
    """Write a sketch; the file at `path` is replaced in one step. Weights are left out where every row counts once."""
    arrays = {"edges": sketch.edges, "low": sketch.low, "high": sketch.high, **sketch.sums}
    if all(np.array_equal(sketch.sums["n"], sketch.sums[name]) for name in ("w", "ww")):
        del arrays["w"], arrays["ww"]
    header = {
        "format": np.array(_FORMAT),
        "version": np.array(_VERSION),
        "fraction": np.array(sketch.fraction),
        "precision": np.array(sketch.precision),
    }
    write_whole(path, lambda file: np.savez_compressed(file, **header, **arrays))  # type: ignore[arg-type]


def load_cells(path: str | Path) -> tuple[Any, ...]:
    """Read what save_cells wrote: the arguments of :meth:`Sketch.from_cells`."""
    file = Path(path)
    arrays = readers.read_arrays(file)
    if str(arrays.get("format")) != _FORMAT or "version" not in arrays:
        raise FileError(f"{file.name} is not a saved sketch")
    if int(arrays["version"]) > _VERSION:
        raise FileError(f"{file.name} was written by a newer truecal (version {int(arrays['version'])} of the format)")
    missing = {*_ALWAYS, "fraction", "precision"} - arrays.keys()
    if missing:
        raise FileError(f"{file.name} is damaged: {min(missing)} is missing")
    _refuse_nonsense(file.name, arrays)
    sums = {name: arrays[name] for name in SUMS if name in arrays}
    scalars = float(arrays["fraction"]), int(arrays["precision"])
    return arrays["edges"], sums, arrays["low"], arrays["high"], *scalars


def _refuse_nonsense(name: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Raise where numbers cannot be those of a sketch."""
    edges, low, high, n = (arrays[key] for key in ("edges", "low", "high", "n"))
    held = [arrays[key] for key in (*_ALWAYS, "w", "ww") if key in arrays]
    if any(a.dtype != np.float64 or a.shape != edges.shape or not np.isfinite(a).all() for a in held):
        raise FileError(f"{name} is damaged: its arrays do not match")
    if int(arrays["precision"]) not in (2, 4, 8) or not 0 <= float(arrays["fraction"]) <= 0.5:
        raise FileError(f"{name} is damaged: its precision or its weights make no sense")
    inside = (edges >= 0) & (low <= high) & (high <= 1)
    if not inside.all() or not (np.diff(edges) > 0).all() or not (cell_edge(low) == edges).all():
        raise FileError(f"{name} is damaged: its cells are not those of a sketch")
    total = arrays.get("w", n)
    if not ((n >= 1) & (arrays["y"] >= 0) & (arrays["y"] <= total * (1 + 1e-9))).all():
        raise FileError(f"{name} is damaged: its counts make no sense")
