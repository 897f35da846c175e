"""The cells of a sketch as a group-by expression, written once and run by whatever engine holds the data.

The formula is that of `truecal.profile.sketch_cells`, in narwhals expressions: additions, multiplications, comparisons and a
floor in float64, each of which every engine rounds alike. Rows that cannot be counted get a negative key instead of a cell, so
the pass that counts also checks.
"""

from typing import Any

import narwhals as nw

from truecal.profile.sketch_cells import LEAST_ZONE, MIDDLE_CELLS, SPLIT, ZONE_CELLS

# Keys of rows that fall into no cell.
MISSING, NO_PROBABILITY, NO_LABEL, NO_WEIGHT, NO_SUM, NO_WEIGHT_AT_ALL = -1.0, -2.0, -3.0, -4.0, -5.0, -6.0

# Columns that a judged frame has (see `judged`), and those made of them here; the prefix keeps them from meeting the user's.
C, Y, W, OK, PRESENT = "_tc_c", "_tc_y", "_tc_w", "_tc_ok", "_tc_present"
_UPPER, _V, _Q, _EDGE, KEY, _R, _WY, _WR = (
    f"_tc_{name}" for name in ("upper", "v", "q", "edge", "key", "r", "wy", "wr")
)


def with_cells(frame: Any, *, weighted: bool) -> Any:
    """Add to a lazy frame with score, outcome (and weight) the key of every row's cell and how far its score is above the edge."""
    c, upper, v, q = (nw.col(name) for name in (C, _UPPER, _V, _Q))
    split = v * SPLIT
    frame = frame.with_columns(number(c >= 0.5).alias(_UPPER))
    frame = frame.with_columns((c - upper).alias(_V))
    zone = (split - (split - v)).abs().clip(lower_bound=LEAST_ZONE)
    frame = frame.with_columns((ZONE_CELLS / zone).clip(lower_bound=MIDDLE_CELLS).alias(_Q))
    frame = frame.with_columns(((v * q).floor() / q).alias(_EDGE))
    fits, why_not = _judgement(weighted)
    key = nw.when(fits).then(nw.col(_EDGE) + upper).otherwise(why_not)
    return frame.with_columns(key.alias(KEY), (v - nw.col(_EDGE)).alias(_R))


def _judgement(weighted: bool) -> tuple[Any, Any]:
    """Whether a row can be counted, and the key it gets otherwise: that of the first thing wrong with it."""
    c, y, w = nw.col(C), nw.col(Y), nw.col(W)
    checks = [
        (nw.col(PRESENT), MISSING),
        ((c >= 0.0) & (c <= 1.0), NO_PROBABILITY),
        ((y == 0.0) | (y == 1.0), NO_LABEL),
    ]
    if weighted:
        checks += [((w >= 0.0) & w.is_finite(), NO_WEIGHT), (w > 0.0, NO_WEIGHT_AT_ALL)]
    checks.append((nw.col(OK), NO_SUM))
    fits = checks[0][0]
    for check, _ in checks[1:]:
        fits = fits & check
    key = checks[-1][0]
    key = number(key) * 0.0 + checks[-1][1]
    for check, code in checks[-2::-1]:
        passed = number(check)
        key = passed * key + (1.0 - passed) * code
    return fits, key  # the key of a row with something missing may be null, which reads as MISSING


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
