"""Logits turned into probabilities where the data are: the softmax and the sigmoid of `truecal.predictions.softmax` as expressions.

Unlike the cells, exp may differ in its last bit from engine to engine, and so may the probabilities.
"""

from dataclasses import replace
from typing import Any

import narwhals as nw

from truecal.scan.columns import Columns, class_columns

_TOP, _TOTAL = "_tc_top", "_tc_total"


def with_probs(frame: Any, columns: Columns) -> tuple[Any, Columns]:
    """The frame with a column of probabilities for every column of logits, in float64; nothing changes without logits.

    A logit that is not finite gives probabilities that are no numbers, which are then counted and refused like any other.
    """
    if not columns.logits:
        return frame, columns
    names = [f"_tc_logit{i}" for i in range(columns.listed or len(columns.probs))]
    each = [nw.col(name) for name in names]
    frame = frame.with_columns(*(_finite(z).alias(name) for z, name in zip(class_columns(columns), names, strict=True)))
    if columns.binary:
        z, small = each[0], nw.col(_TOP)
        frame = frame.with_columns((-z.abs()).exp().alias(_TOP))
        frame = frame.with_columns((nw.when(z >= 0.0).then(1.0).otherwise(small) / (1.0 + small)).alias(names[0]))
    else:
        frame = frame.with_columns(nw.max_horizontal(*each).alias(_TOP))
        frame = frame.with_columns(*((z - nw.col(_TOP)).exp().alias(name) for z, name in zip(each, names, strict=True)))
        frame = frame.with_columns(nw.sum_horizontal(*each).alias(_TOTAL))
        frame = frame.with_columns(*((z / nw.col(_TOTAL)).alias(name) for z, name in zip(each, names, strict=True)))
    return frame, replace(columns, probs=tuple(names), listed=0, precision=8)


def _finite(z: Any) -> Any:
    """The logit itself, not a number where it is infinite, null where it is null."""
    return z + (z - z)
