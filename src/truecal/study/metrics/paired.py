"""Resamples that are the same for all models on the same rows, so that two models can be compared in pairs later.

Rows are put in 256 groups at random, the same for all models, and whole groups are drawn: rows are independent, so that leaves the
distribution of sums as it is, and 256 groups know its spread to 4 %. What is kept of a metric are its values on these resamples:
the spread of a difference of two models is that of the difference of their values, and what the models have in common cancels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.estimate import jointly, resampling
from truecal.study.metrics.names import Metric
from truecal.types import Float64s

RESAMPLES = 200  # the standard error of a difference is known to 5 % from as many
_GROUPS = 256
_SEED = 20210615


@dataclass(frozen=True, eq=False)
class Drawn:
    """A metric on every resample, as where the true number may be; `low` and `high` are its interval."""

    metric: Metric
    values: Float64s
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Draws:
    """The resamples of the rows of one dataset."""

    groups: resampling.GroupDraws
    counts: NDArray[np.uint16]

    @classmethod
    def of(cls, sample: tc.Sample) -> "Draws":
        """Those of the rows of a sample: the same for all models."""
        return _draws(len(sample), sample.unit, None if sample.units is None else sample.units.tobytes())

    def of_estimator(self, metric: Metric, sample: tc.Sample, level: float) -> Drawn:
        """A calibration error; clusters, and what groups do not tell, are resampled as :func:`truecal.bootstrap` does it."""
        estimator, units = metric.estimator(level), self.groups.units
        drawn = estimator.in_groups(sample, self.groups, level) if sample.independent else None
        if drawn is None:
            rng = np.random.default_rng(_SEED)
            joint = jointly.resampled_jointly(estimator, [sample], None, units, self.counts, rng)
            drawn = resampling.Bootstrap.of(estimator, joint, level, units.kind)
        interval = drawn.interval()
        values = np.minimum(estimator.root(drawn.power - drawn.deviations), 1.0)
        return Drawn(metric, values, float(interval.low), float(interval.high))

    def of_means(self, scores: Mapping[Metric, Float64s], weights: Float64s | None, level: float) -> list[Drawn]:
        """Means over rows: twice the mean less that of every resample. An infinite score cannot be compared."""
        units = self.groups.units
        sizes = np.bincount(units.of_row, weights, units.count)
        values = {metric: float(np.average(rows, weights=weights)) for metric, rows in scores.items()}
        finite = [metric for metric in scores if np.isfinite(values[metric])]
        sums = [
            np.bincount(units.of_row, scores[metric] if weights is None else weights * scores[metric], units.count)
            for metric in finite
        ]
        drawn = self.groups.times[:, :-2] @ np.column_stack([sizes, *sums])
        means = drawn[:, 1:] / np.where(drawn[:, :1] > 0, drawn[:, :1], 1.0)
        moved = 2 * np.array([[values[metric]] for metric in finite]).reshape(-1, 1) - means.T
        lows, highs = np.quantile(moved, [(1 - level) / 2, (1 + level) / 2], axis=1)
        ends = zip(finite, moved, lows.tolist(), highs.tolist(), strict=True)
        return [Drawn(metric, drawn, low, high) for metric, drawn, low, high in ends]


@lru_cache(2)  # one file after the other has the same rows
def _draws(rows: int, unit: str, units: bytes | None) -> Draws:
    rng = np.random.default_rng(_SEED)
    of_row = None if units is None else np.frombuffer(units, np.intp)
    if of_row is None and rows > _GROUPS:
        drawn = resampling.Units(rng.permutation(rows) % _GROUPS, _GROUPS, unit)
    else:
        drawn = resampling.Units.of(tc.Sample(np.zeros(rows), np.zeros(rows), None, of_row, unit), rng)
    counts = drawn.draws(RESAMPLES, rng)
    turns = np.asarray(rng.integers(0, 2, (resampling.REDRAWS, drawn.count)) * 2.0 - 1, np.float64)
    return Draws(resampling.GroupDraws(drawn, counts.T.astype(np.float64, order="C"), turns), counts)


def can_be_paired(metric: Metric) -> bool:
    """Whether a metric is resampled by default: means over rows, and the errors that rankings are made by."""
    return metric.kind == "score" or metric.name in PAIRED


PAIRED = ("rank-series-l2", "rank-series-l1", "ece-mass-100-l1", "ece-width-15-l1", "debiased-15-l2", "ece-mass-15-l1")
