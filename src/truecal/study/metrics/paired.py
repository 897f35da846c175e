"""Resamples that are the same for all models on the same rows, so that two models can be compared in pairs later.

Every job draws rows (or clusters) by the same random numbers. What is kept of a metric are its values on these resamples: the
spread of a difference of two models is that of the difference of their values, and what the models have in common cancels.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import InputError
from truecal.estimate import jointly, resampling
from truecal.study.metrics.names import Metric
from truecal.study.metrics.scores import row_scores
from truecal.types import Float64s

RESAMPLES = 200  # the standard error of a difference is known to 5 % from as many
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

    units: resampling.Units
    counts: NDArray[np.uint16]

    @classmethod
    def of(cls, sample: tc.Sample) -> "Draws":
        """Those of the rows of a sample: the same for all models."""
        return cls(*_draws(len(sample), sample.unit, None if sample.units is None else sample.units.tobytes()))

    def of_estimator(self, metric: Metric, sample: tc.Sample, level: float) -> Drawn:
        """A calibration error: resampled as :func:`truecal.compare` does it."""
        estimator = metric.estimator(level)
        rng = np.random.default_rng(_SEED)
        joint = jointly.resampled_jointly(estimator, [sample], None, self.units, self.counts, rng)
        interval = resampling.Bootstrap.of(estimator, joint, level, self.units.kind).interval()
        values = np.minimum(estimator.root(joint.power - joint.deviations), 1.0)
        return Drawn(metric, values, float(interval.low), float(interval.high))

    def of_mean(self, metric: Metric, preds: tc.Predictions, top: tc.Sample, level: float) -> Drawn:
        """A mean over rows: twice the mean less that of every resample."""
        rows = row_scores(metric, preds, top)
        weights = np.ones(len(rows)) if preds.weights is None else preds.weights
        value = float(np.average(rows, weights=weights))
        if not np.isfinite(value):
            raise InputError("an infinite score cannot be compared")
        drawn = self.counts[:-2].T.astype(np.float64)
        sums, sizes = (
            drawn @ np.bincount(self.units.of_row, weights=part, minlength=self.units.count)
            for part in (weights * rows, weights)
        )
        values = 2 * value - sums / np.where(sizes > 0, sizes, 1.0)
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return Drawn(metric, values, float(low), float(high))


@lru_cache(2)  # one file after the other has the same rows
def _draws(rows: int, unit: str, units: bytes | None) -> tuple[resampling.Units, NDArray[np.uint16]]:
    rng = np.random.default_rng(_SEED)
    of_row = None if units is None else np.frombuffer(units, np.intp)
    drawn = resampling.Units.of(tc.Sample(np.zeros(rows), np.zeros(rows), None, of_row, unit), rng)
    return drawn, drawn.draws(RESAMPLES, rng)


def can_be_paired(metric: Metric) -> bool:
    """Whether a metric is resampled by default: means over rows, and the errors that rankings are made by."""
    return metric.kind == "score" or metric.name in PAIRED


PAIRED = ("rank-series-l2", "rank-series-l1", "ece-mass-100-l1", "ece-width-15-l1", "debiased-15-l2", "ece-mass-15-l1")
