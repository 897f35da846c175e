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
from truecal.types import Float64s
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
    with np.errstate(all="ignore"):  # what overflows is refused
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
    own = all(np.array_equal(cell_edge(scores), edges) for scores in (low, high)) if inside.all() else False
    if not own or not (np.diff(edges) > 0).all():
        raise FileError(f"{name} is damaged: its cells are not those of a sketch")
    w = arrays.get("w", n)
    ww = arrays.get("ww", n)
    counted = (n >= 1) & (n == np.floor(n)) & (w > 0) & _between(w * w, ww * n, w * w * n) & _between(0, arrays["y"], w)
    if not counted.all():
        raise FileError(f"{name} is damaged: its counts make no sense")
    if not _possible_moments(arrays, w).all():
        raise FileError(f"{name} is damaged: its sums of scores make no sense")


def _possible_moments(arrays: dict[str, NDArray[Any]], w: Float64s) -> NDArray[np.bool_]:
    """Whether r, r*r and r*y can be sums over rows whose r lies between that of `low` and that of `high`."""
    least, most = (arrays[key] - arrays["edges"] for key in ("low", "high"))
    y, r, rr, ry = (arrays[key] for key in ("y", "r", "rr", "ry"))
    return (
        _between(least * w, r, most * w)
        & _between(least * y, ry, most * y)
        & _between(least * (w - y), r - ry, most * (w - y), most * w)
        & _between(r * r, rr * w, most * r * w)
    )


def _between(low: Any, value: Float64s, high: Any, size: Any = None) -> NDArray[np.bool_]:
    """low <= value <= high up to the rounding of long sums, whose terms add up to `size`, and of squares near the smallest float."""
    slack = 1e-9 * np.maximum(high if size is None else size, value) + 1e-300
    return np.asarray((value >= low - slack) & (value <= high + slack))
