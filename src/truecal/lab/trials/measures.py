"""What is asked of every simulated dataset: the value of an estimator, its interval, or the p-value of its test."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimate import Estimator
from truecal.lab.worlds.quadrature import Array


class Measure(Protocol):
    """A question to a batch of datasets, answered with an array of shape (answers, batch)."""

    @property
    def name(self) -> str: ...

    def __call__(self, profile: tc.Profile, seed: np.random.SeedSequence) -> Array: ...


@dataclass(frozen=True)
class Value:
    """The estimate alone: the cheapest question."""

    estimator: Estimator

    @property
    def name(self) -> str:
        return repr(self.estimator)

    def __call__(self, profile: tc.Profile, seed: np.random.SeedSequence) -> Array:
        return np.asarray(self.estimator.values(profile), dtype=np.float64)[None, :]


@dataclass(frozen=True)
class Bounds:
    """Value, low and high end of the interval that the estimator itself offers."""

    estimator: Estimator

    @property
    def name(self) -> str:
        return f"the interval of {self.estimator!r}"

    def __call__(self, profile: tc.Profile, seed: np.random.SeedSequence) -> Array:
        estimate = self.estimator(profile)
        if estimate.interval is None:
            raise InputError(f"{type(self.estimator).__name__} offers no interval, so it has no coverage")
        return np.stack([np.broadcast_to(part, profile.batch) for part in _parts(estimate)]).astype(np.float64)


@dataclass(frozen=True)
class ResampledBounds:
    """Value, low and high end of the interval by resampling, one dataset of the batch after the other."""

    estimator: Estimator
    level: float

    @property
    def name(self) -> str:
        return f"the resampled interval of {self.estimator!r}"

    def __call__(self, profile: tc.Profile, seed: np.random.SeedSequence) -> Array:
        limits = np.empty((2, profile.batch))
        for i, child in enumerate(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(profile.batch)):
            dataset = profile.take([i])
            interval = self.estimator.interval(dataset, level=self.level, rng=np.random.default_rng(child))
            limits[:, i] = np.ravel(interval.low)[0], np.ravel(interval.high)[0]
        return np.stack([self.estimator.values(profile), *limits])


def has_interval(estimator: Estimator) -> bool:
    """Whether the estimator has an interval by formula, which simulations can afford."""
    few = tc.Profile.from_arrays(np.linspace(0.05, 0.95, 40), np.arange(40) % 2)
    return estimator(few).interval is not None


@dataclass(frozen=True)
class PValue:
    """The p-value of the estimator's own test of calibration."""

    estimator: Estimator
    resamples: int = 199

    @property
    def name(self) -> str:
        return f"the test of {self.estimator!r}"

    def __call__(self, profile: tc.Profile, seed: np.random.SeedSequence) -> Array:
        tested = self.estimator.test(profile, resamples=self.resamples, rng=np.random.default_rng(seed))
        return tested.p_value[None, :]


def _parts(estimate: tc.Estimate) -> tuple[float | Array, float | Array, float | Array]:
    assert estimate.interval is not None
    return estimate.value, estimate.interval.low, estimate.interval.high
