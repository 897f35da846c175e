"""What errors on pairs of rows have in common: several probabilities at once, blocks that bound the cost, no bins."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from truecal.errors import InputError
from truecal.estimate.estimate import Estimate, Interval
from truecal.estimate.estimator import Estimator, Findings
from truecal.lens import Sample
from truecal.predictions import Predictions
from truecal.profile import Profile, Sketch
from truecal.types import Float64s

_BLOCK = 2000  # rows whose pairs are looked at together


@dataclass(frozen=True)
class PairEstimator(Estimator):
    """An error made of pairs of rows, of one or several probabilities; independent rows of equal weight."""

    @property
    def several(self) -> bool:
        return True

    def find(self, profile: Profile) -> Findings:
        raise InputError(f"{type(self).__name__} judges rows, not sorted scores; use tc.measure(preds, estimator=...)")

    def __call__(self, data: Predictions | Profile | Sketch | Sample) -> Estimate:
        """The error of a sample of predictions."""
        if not isinstance(data, Sample):
            raise InputError(
                f"{type(self).__name__} judges rows; use tc.measure(preds, estimator={type(self).__name__}())"
            )
        return self.of_samples([data], None, np.random.default_rng(0))

    def of_samples(self, samples: Iterable[Sample], shares: Float64s | None, rng: np.random.Generator) -> Estimate:
        if shares is not None:
            raise InputError(
                f"{type(self).__name__} judges one dataset; use lens=tc.Canonical() for all classes at once"
            )
        (sample,) = samples
        sample.refuse_pooled()
        if not sample.independent:
            raise InputError(f"{type(self).__name__} needs independent rows, not clusters; use tc.RankSeries")
        if sample.weights is not None:
            raise InputError(f"{type(self).__name__} has no form for weights; use tc.GeneralizedECE")
        if len(sample) < 2:
            raise InputError(f"{type(self).__name__} needs two rows or more, not {len(sample)}")
        return self.judge(sample, rng)

    @abstractmethod
    def judge(self, sample: Sample, rng: np.random.Generator) -> Estimate:
        """The Estimate of one dataset of independent rows."""

    def estimate(self, sample: Sample, power: float, interval: Interval | None, bandwidth: float) -> Estimate:
        """The Estimate of a power."""
        return Estimate(
            value=min(float(self.root(np.array([power]))[0]), 1.0),
            power=power,
            n=len(sample),
            effective_n=float(len(sample)),
            estimator=self,
            norm=self.power_norm,
            direction=sample.direction,
            interval=interval,
            settings={"bandwidth": np.array([bandwidth])},
        )


def blocks(sample: Sample, rng: np.random.Generator) -> Iterator[tuple[Float64s, Float64s]]:
    """Probabilities and outcomes minus probabilities, shape (rows, events), of random blocks of about equal size."""
    n = len(sample)
    parts = -(-n // _BLOCK)
    order = rng.permutation(n) if parts > 1 else np.arange(n)
    for rows in np.array_split(order, parts):
        probs = sample.columns[:, rows].T.astype(np.float64)
        residual = -probs
        residual[np.arange(len(rows)), sample.labels[rows]] += 1
        yield probs, residual
