"""Plain functions as estimators: f(scores, outcomes) -> float."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator, Findings, SketchBound
from truecal.estimators.estimate import Estimate
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.resampling.cells import Counted
from truecal.types import Float64s

ErrorFunction = Callable[[Float64s, Float64s], float]


@dataclass(frozen=True)
class FunctionEstimator(Estimator):
    """A calibration error by a function of scores and outcomes.

    `tc.measure`, `tc.calibration_error`, `tc.compare`, `tc.lab.bias` and others take the function itself. The interval
    resamples rows, the test redraws outcomes from the scores.

    Parameters
    ----------
    function : callable
        Takes scores, sorted and of shape (n,), and outcomes 0.0 or 1.0 of the same shape; returns an error, a finite
        number that is not negative.

    Raises
    ------
    InputError
        For rows with weights or in clusters and for sketches, which a function of scores and outcomes cannot take into
        account, and for a result that is not an error.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> def largest_excess(scores, outcomes):
    ...     return np.abs(np.cumsum(scores - outcomes)).max() / len(scores)
    >>> p = np.linspace(0.01, 0.99, 200)
    >>> y = np.random.default_rng(0).random(200) < p**2
    >>> est = tc.calibration_error(y, p, estimator=largest_excess)
    >>> round(est.value, 4), est.metric, est.value in est.interval
    (0.195, 'largest_excess', True)
    """

    function: ErrorFunction

    max_cells: ClassVar[int] = 4096

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise InputError(f"function must be a function of scores and outcomes, not {self.function!r}")

    @property
    def norm(self) -> float:
        return 1.0

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def estimate(self, profile: Profile) -> Findings:
        self._refuse(profile)
        datasets = range(profile.batch)
        return Findings(np.array([self._call(*_rows(profile, dataset)) for dataset in datasets]))

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        raise InputError(f"{self.name} is a function of rows, which a sketch does not have; use one of tc.estimators")

    def _refuse(self, profile: Profile) -> None:
        if isinstance(profile, CellProfile):
            raise InputError(
                f"{self.name} is a function of rows, which a sketch does not have; use one of tc.estimators"
            )
        if profile.weights is not None and not isinstance(profile, Counted):
            raise InputError(
                f"{self.name} is a function of scores and outcomes and takes no weights; drop sample_weight"
            )
        if profile.units is not None and len(np.unique(profile.units)) < profile.rows:
            raise InputError(
                f"{self.name} is a function of scores and outcomes and takes no clusters; use one of tc.estimators"
            )

    def _call(self, scores: Float64s, outcomes: Float64s) -> float:
        value = self.function(scores, outcomes)
        if not options.is_number(value) or not 0 <= value < np.inf:
            raise InputError(f"{self.name} returned {value!r}; an error is a finite number that is not negative")
        return float(value)


def _rows(profile: Profile, dataset: int) -> tuple[Float64s, Float64s]:
    """Take scores and outcomes of one dataset; counted cells are written out as rows."""
    scores = profile.scores[dataset % len(profile.scores)].astype(np.float64)
    outcomes = profile.outcomes[dataset % len(profile.outcomes)].astype(np.float64)
    if profile.weights is None:
        return scores, outcomes
    counts = profile.weights[dataset % len(profile.weights)]
    ones = np.rint(counts * outcomes).astype(np.int64)
    zeros = np.maximum(np.rint(counts).astype(np.int64) - ones, 0)
    numbers = np.stack([zeros, ones], axis=1).ravel()
    return np.repeat(np.repeat(scores, 2), numbers), np.repeat(np.tile([0.0, 1.0], len(scores)), numbers)


def as_estimator(estimator: Estimator | ErrorFunction) -> Estimator:
    """Take an estimator, or a plain function as one; refuse anything else."""
    if not isinstance(estimator, Estimator) and callable(estimator) and not isinstance(estimator, type):
        return FunctionEstimator(estimator)
    options.instance(
        estimator,
        Estimator,
        "estimator",
        "one of truecal's, such as tc.SweepECE(), or a function of scores and outcomes",
    )
    return estimator  # type: ignore[return-value]
