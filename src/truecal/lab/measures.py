"""What is asked of every simulated dataset: the value of an estimator, its interval, or the p-value of its test."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from truecal.estimate.estimator import Estimator
from truecal.lab.quadrature import Array
from truecal.profile import Profile


class Measure(Protocol):
    """A question to a batch of datasets, answered with an array of shape (answers, batch)."""

    @property
    def name(self) -> str: ...

    def __call__(self, profile: Profile, seed: np.random.SeedSequence) -> Array: ...


@dataclass(frozen=True)
class Value:
    """The estimate alone: the cheapest question."""

    estimator: Estimator

    @property
    def name(self) -> str:
        return repr(self.estimator)

    def __call__(self, profile: Profile, seed: np.random.SeedSequence) -> Array:
        return np.asarray(self.estimator.values(profile), dtype=np.float64)[None, :]
