"""The cells of a sketch as a group-by expression, written once and run by whatever engine holds the data.

The formula is that of `truecal.profile.sketch.cells`, in narwhals expressions: additions, multiplications, comparisons and a
floor in float64, each of which every engine rounds alike. Rows that cannot be counted get a key of their own instead of a cell,
so the pass that counts also checks.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np

from truecal.profile import CELL_RULE
from truecal.types import Float64s

# Keys are edges seen from the nearer end, floor(v q) / q: 14 bits at most, so float32 holds them, and half the bytes are hashed.
_ONE = 1.0  # key of the score 1, whose edge would be that of the score 0
UNFIT = 2.0  # key of rows that fall into no cell

# Columns that a judged frame has (see `judged`), and those made of them here; the prefix keeps them from meeting the user's.
C, Y, W, OK, PRESENT = "_tc_c", "_tc_y", "_tc_w", "_tc_ok", "_tc_present"
_UPPER, _V, _Z, _Q, _EDGE, KEY, _R, _WY, _WR = (
    f"_tc_{name}" for name in ("upper", "v", "z", "q", "edge", "key", "r", "wy", "wr")
)


def with_cells(frame: Any, *, weighted: bool, checked: bool) -> Any:
    """Add to a lazy frame with score, outcome (and weight) the key of every row's cell and how far its score is above the edge.

    A row that cannot be counted has the key UNFIT; `why_not` says why, in a pass of its own that good data never need. `checked`:
    the frame says in a column which rows hold probabilities that sum to 1.
    """
    c, upper, v, z, q = (nw.col(name) for name in (C, _UPPER, _V, _Z, _Q))
    rule = CELL_RULE
    split = v * rule.split
    frame = frame.with_columns(number(c >= 0.5).alias(_UPPER))
    frame = frame.with_columns((c - upper).alias(_V))
    frame = frame.with_columns((split - (split - v)).abs().alias(_Z))
    frame = frame.with_columns(nw.when(z > rule.least_zone).then(z).otherwise(nw.lit(rule.least_zone)).alias(_Z))
    per_unit = nw.when(z < rule.middle_zone).then(rule.zone_cells / z).otherwise(nw.lit(rule.middle_cells))
    frame = frame.with_columns(per_unit.alias(_Q))
    frame = frame.with_columns(((v * q).floor() / q).alias(_EDGE))
    fits = _all(condition for condition, _ in _checks(weighted=weighted, checked=checked))
    key = nw.when(c < 1.0).then(nw.col(_EDGE)).otherwise(nw.lit(_ONE))
    key = nw.when(fits).then(key).otherwise(nw.lit(UNFIT))
    return frame.with_columns(key.cast(nw.Float32).alias(KEY), (v - nw.col(_EDGE)).alias(_R))


def edges_of(key: Float64s) -> Float64s:
    """Left edges of cells from their keys."""
    return np.where(key == _ONE, 1.0, np.where(key < 0, key + 1.0, key))


def why_not(frame: Any, *, weighted: bool, checked: bool) -> Any:
    """Rows of a judged frame counted by the first thing that is wrong with them, with the extremes of their scores."""
    checks = [(nw.col(PRESENT), "missing"), *_checks(weighted=weighted, checked=checked)]
    counts, before = [], None
    for condition, name in checks:
        first = number(~condition).fill_null(1.0) * (1.0 if before is None else before)
        counts.append(first.alias(name))
        passed = number(condition).fill_null(0.0)
        before = passed if before is None else before * passed
    frame = frame.with_columns(*counts)
    sums = [nw.col(name).sum() for _, name in checks]
    return frame.select(*sums, nw.col(C).min().alias("low"), nw.col(C).max().alias("high"))


def _checks(*, weighted: bool, checked: bool) -> list[tuple[Any, str]]:
    """What must hold of a row to be counted, and the name of what is wrong otherwise."""
    c, y, w = nw.col(C), nw.col(Y), nw.col(W)
    checks = [((c >= 0.0) & (c <= 1.0), "score"), ((y == 0) | (y == 1), "label")]
    if weighted:
        checks += [((w >= 0.0) & w.is_finite(), "weight"), (w > 0.0, "zero weight")]
    return [*checks, (nw.col(OK), "sum")] if checked else checks


def _all(conditions: Iterable[Any]) -> Any:
    return reduce(lambda a, b: a & b, conditions)


def number(condition: Any) -> Any:
    """1.0 where a condition holds, else 0.0: arithmetic that every engine has, where branches of literals are not."""
    return condition.cast(nw.Float64)


def summed(frame: Any, by: list[str], *, weighted: bool) -> Any:
    """One row per cell (and per value of the `by` columns) with the sums of a sketch, still lazy."""
    y, r, w, c = nw.col(Y), nw.col(_R), nw.col(W), nw.col(C)
    extremes = [c.min().alias("low"), c.max().alias("high")]
    if not weighted:
        frame = frame.with_columns((r * r).alias("_tc_rr"), (r * y).alias("_tc_ry"))
        sums = [nw.len().alias("n"), y.sum().alias("y"), r.sum().alias("r")]
        sums += [nw.col("_tc_rr").sum().alias("rr"), nw.col("_tc_ry").sum().alias("ry")]
        return frame.group_by(*by, KEY).agg(*sums, *extremes)
    beyond = w - w.floor()
    frame = frame.with_columns(
        (w * y).alias(_WY), (w * r).alias(_WR), (w * w).alias("_tc_ww"), beyond.alias("_tc_beyond")
    )
    frame = frame.with_columns((nw.col(_WR) * r).alias("_tc_rr"), (nw.col(_WR) * y).alias("_tc_ry"))
    beyond = nw.col("_tc_beyond")
    frame = frame.with_columns(nw.when(beyond <= 0.5).then(beyond).otherwise(1.0 - beyond).alias("_tc_fraction"))
    named = {"y": _WY, "r": _WR, "rr": "_tc_rr", "ry": "_tc_ry", "w": W, "ww": "_tc_ww"}
    sums = [nw.len().alias("n"), *(nw.col(column).sum().alias(name) for name, column in named.items())]
    return frame.group_by(*by, KEY).agg(*sums, *extremes, nw.col("_tc_fraction").max().alias("fraction"))
