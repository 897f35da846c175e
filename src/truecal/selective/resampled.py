"""Resampled ladders: what the curve and its costs would be on other rows of the same kind.

Rows, or whole clusters where there are some, are drawn with replacement, the same for every model, so that what two models have in
common cancels. Resamples are counts on cells of neighbouring confidences: nothing is sorted again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimate import Interval, resampling
from truecal.lens import Lens
from truecal.selective.ladder import Ladder, answer_lens
from truecal.types import Float64s

_CELLS = 256  # confidences kept apart in a resample
_AT_ONCE = 64  # resamples multiplied together


@dataclass(frozen=True, eq=False)
class Drawn:
    """The cells of one model, and all resamples of them; both with one more right and one more wrong row shared out over the cells,
    so that a model without errors is not taken to be certain."""

    centre: Ladder
    resamples: Ladder


def draw(
    models: Sequence[tc.Predictions], lens: Lens | None, *, resamples: int, level: float, rng: int | np.random.Generator
) -> list[Drawn]:
    """Resamples of one or several models on the same rows."""
    options.resamples(resamples)
    options.level(level)
    generator = options.generator(rng)
    units = resampling.Units.of(answer_lens(models[0], lens).sample(models[0]), generator)
    counts = units.draws(resamples, generator)
    drawn = []
    for preds in models:
        sample = answer_lens(preds, lens).sample(preds).with_units(units.of_row)
        cells, incidence = resampling.softened_incidence(sample, units, _CELLS)
        both = [
            incidence @ counts[:, start : start + _AT_ONCE].astype(np.float64)
            for start in range(0, resamples, _AT_ONCE)
        ]
        drawn.append(
            Drawn(
                _ladder(cells, np.asarray(incidence.sum(axis=1))[None]), _ladder(cells, np.concatenate(both, axis=1).T)
            )
        )
    return drawn


def _ladder(cells: tc.Profile, both: Float64s) -> Ladder:
    """Counts of zeros, then of ones, in every cell, shape (batch, 2 x cells)."""
    zeros, ones = both[:, : cells.rows], both[:, cells.rows :]
    return Ladder(cells.scores[0, ::-1].astype(np.float64), (zeros + ones)[:, ::-1], zeros[:, ::-1])


def bounds(value: Float64s, deviations: Float64s, level: float) -> tuple[Float64s, Float64s]:
    """Percentile interval: the value moved by the quantiles of the deviations (resamples first), extended to hold the value."""
    low, high = np.quantile(deviations, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(value + low, value), np.maximum(value + high, value)


def interval(value: float, deviations: Float64s, level: float, *, least: float = 0.0, most: float = np.inf) -> Interval:
    """The same for one number that lies between `least` and `most`."""
    low, high = bounds(np.array(value), deviations, level)
    method = f"percentile bootstrap of {len(deviations)} resamples"
    least, most = min(least, value), max(most, value)  # however the ends were rounded
    return Interval(max(float(low), least), min(float(high), most), level, method)


def check_share(value: Any, name: str) -> float:
    """A number from 0 to 1."""
    if not options.is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{name} must be a number from 0 to 1, not {value!r}")
    return float(value)
