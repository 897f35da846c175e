"""The bootstrap of one dataset: how an estimate would scatter, its distribution kept whole."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from truecal import options
from truecal.estimators.bins import Bins
from truecal.estimators.estimate import Interval
from truecal.estimators.resampling.cells import AT_ONCE, CELLS, Counted, collapse, in_parts, profile_of
from truecal.estimators.resampling.draws import multinomial
from truecal.estimators.resampling.redraw import REDRAWS, against_redraws
from truecal.estimators.signs import SignBounds
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s

Method = Literal["percentile", "basic", "bca"]
METHODS = ("percentile", "basic", "bca")
FEW_RESAMPLES = 200  # where every resample has to be judged by itself
_FEW = 100  # resamples below which tails are taken from Student's distribution


class _Powers(Protocol):
    """What an estimator found: signed powers of every dataset, and the bins it looked at."""

    @property
    def power(self) -> Float64s: ...
    @property
    def bins(self) -> Bins | None: ...


class _Joint(Protocol):
    """Resamples of whole units."""

    @property
    def power(self) -> float: ...
    @property
    def powers(self) -> Float64s: ...
    @property
    def deviations(self) -> Float64s: ...
    @property
    def p_value(self) -> float: ...
    @property
    def parts(self) -> Float64s: ...
    @property
    def signs(self) -> SignBounds | None: ...


class Resampling(Protocol):
    """What resampling asks of an estimator; see :class:`truecal.estimators.Estimator`."""

    @property
    def unbiased(self) -> bool: ...
    @property
    def corrected(self) -> bool: ...
    @property
    def folds(self) -> bool: ...
    @property
    def target(self) -> str: ...
    def find(self, profile: Profile) -> _Powers: ...
    def found(self, profile: Profile) -> _Powers: ...
    def root(self, power: Float64s) -> Float64s: ...
    def values(self, profile: Profile) -> Float64s: ...


@dataclass(frozen=True)
class Bootstrap:
    """The resampled distribution of an estimate. Level and method can change without resampling.

    All is kept on the scale of the error to the power of its norm, where bias adds up: `powers` are the resampled estimates, and
    `deviations` what estimation added to the truth in each: the powers minus the error of the distribution they were drawn
    from. Their mean is the bias, their quantiles give the interval. `p_value` is that of perfect calibration (0: not tested).
    """

    estimator: Resampling
    power: float
    powers: Float64s
    deviations: Float64s
    level: float
    method: Method
    drawn: str  # what was drawn: rows, clusters or blocks
    p_value: float
    acceleration: float = 0.0
    parts: Float64s | None = None  # the power of each dataset where a lens has many
    signs: SignBounds | None = None  # what limits a mean absolute gap, where that is estimated

    @classmethod
    def of(cls, estimator: Resampling, joint: "_Joint", level: float, drawn: str) -> "Bootstrap":
        """From resamples of whole units; see :func:`truecal.estimators.resampled_jointly`."""
        sums = joint.power, joint.powers, joint.deviations
        return cls(estimator, *sums, level, "percentile", drawn, joint.p_value, parts=joint.parts, signs=joint.signs)

    @property
    def value(self) -> float:
        """The estimate itself."""
        return self._root(self.power)

    @property
    def values(self) -> Float64s:
        """The resampled estimates on the scale of the error."""
        return self.estimator.root(self.powers)

    @property
    def bias(self) -> float:
        """Of the estimate of the error's power, as the resamples show it."""
        return float(self.deviations.mean())

    @property
    def debiased(self) -> float:
        """The estimate with that bias removed, on the scale of the error."""
        return self._root(self.power - self.bias)

    def interval(self, level: float | None = None, method: Method | None = None) -> Interval:
        """Confidence interval for the true error; it always contains the estimate, and higher levels contain lower ones.

        With d the deviations and P the estimate, both as powers:

        - "percentile": quantiles of d about the debiased estimate P - mean(d).
        - "basic": P - quantiles of d: the same centre, skewness turned around.
        - "bca": quantiles of P + d, shifted for the share of d below 0 and for skewness (Efron 1987). Meant for errors well away
          from 0; for a plug-in near 0, where almost all d are positive, it cannot reach far enough down.

        Each is extended to hold the estimate where a large bias would leave it outside, and down to 0 unless calibration is
        rejected at 1 - level: resamples repeat the noise of the sample, so they show only part of the bias of a
        mean absolute error near zero, and the test shows all of it. Where some gaps are zero and others are not, neither shows it,
        so a mean absolute error is also held to what left-out signs say (see :mod:`truecal.estimators.signs`).
        """
        level = self.level if level is None else level
        method = self.method if method is None else method
        options.level(level)
        options.choice(method, METHODS, "method")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        d = self.deviations
        if method == "basic":
            low, high = (self.power - _quantiles(d, tails))[::-1]
        elif method == "percentile":
            low, high = self.power - 2 * d.mean() + _quantiles(d, tails)
        else:
            low, high = self.power + np.quantile(d, _shifted(tails, d, self.acceleration))
        if self.signs is not None:
            least, most = self.signs.limits(level)
            low, high = min(low, float(least[0])), max(high, float(most[0]))
        value = self.value
        bottom = 0.0 if self.p_value > 1 - level else min(self._root(low), value)
        top = max(self._root(high), value)
        about = f", for {self.estimator.target}" if self.estimator.target else ""
        return Interval(bottom, min(top, 1.0), level, f"{method} bootstrap of {self.drawn}{about}")

    def _root(self, power: float) -> float:
        return float(self.estimator.root(np.array([power]))[0])


def _quantiles(d: Float64s, tails: Float64s) -> Float64s:
    """Quantiles of the resamples, or of Student's distribution with their spread where they are few."""
    if len(d) >= _FEW:
        return np.quantile(d, tails)
    from scipy.special import stdtrit

    return np.asarray(d.mean() + (d.std(ddof=1) if len(d) > 1 else 0.0) * stdtrit(max(len(d) - 1, 1), tails))


def bootstrap_cells(
    estimator: Resampling,
    profile: Profile,
    *,
    resamples: int,
    level: float,
    method: Method,
    rng: np.random.Generator,
) -> Bootstrap:
    """Resamples of the distinct scores (more than 128: of cells of neighbouring scores), each judged by the estimator."""
    cells = profile.once(f"{CELLS} cells", lambda rows: collapse(rows, CELLS))
    softened = soften(cells)
    powers = resampled_powers(estimator, softened, resamples, rng)
    truth = float(powers.mean()) if estimator.corrected else float(estimator.find(softened).power[0])
    p = 0.0
    if not estimator.unbiased:
        p = float(against_redraws(cells, estimator.values, resamples=REDRAWS, rng=rng).p_value[0])
    bend = acceleration(estimator, cells) if method == "bca" else 0.0
    power = float(estimator.found(profile).power[0])
    return Bootstrap(estimator, power, powers, powers - truth, level, method, "rows", p, bend)


def soften(cells: Profile) -> Profile:
    """The cells with one more zero and one more one, shared out like the rows.

    Drawn from the data as they are, a model that is always right would never be wrong in any resample, and seem certain.
    """
    assert cells.weights is not None
    share = cells.weights / cells.weights.sum()
    rate = (cells.outcomes * cells.weights + share) / (cells.weights + 2 * share)
    return Counted(cells.scores, rate, cells.weights, single=cells.single)


def resampled_powers(estimator: Resampling, cells: Profile, resamples: int, rng: np.random.Generator) -> Float64s:
    """Estimates on as many rows drawn from these cells, zeros and ones together."""
    assert cells.weights is not None
    ones = cells.weights[0] * cells.outcomes[0]
    chances = np.concatenate([cells.weights[0] - ones, ones])
    n = max(1, round(float(cells.size[0])))
    found = []
    for some in in_parts(resamples, cells.rows):
        counts = multinomial(chances, n, some, rng)
        found.append(estimator.find(profile_of(cells, counts[:, : cells.rows], counts[:, cells.rows :])).power)
    return np.concatenate(found)


def acceleration(estimator: Resampling, cells: Profile) -> float:
    """Skewness of the jackknife, sum d^3 / (6 (sum d^2)^1.5), from leaving out one zero or one one of every cell."""
    assert cells.weights is not None
    count = cells.weights[0]
    ones = count * cells.outcomes[0]
    zeros = count - ones
    left, number = [], np.concatenate([zeros, ones])
    if number.sum() <= 1:  # nothing is left without the only row
        return 0.0
    for part in np.array_split(np.flatnonzero(number > 0), max(1, 2 * cells.rows**2 // AT_ONCE)):
        without = np.tile(number, (len(part), 1))
        without[np.arange(len(part)), part] -= np.minimum(number[part], 1.0)
        left.append(estimator.find(profile_of(cells, without[:, : cells.rows], without[:, cells.rows :])).power)
    times = number[number > 0]
    moved = np.concatenate(left)
    d = np.average(moved, weights=times) - moved
    square = float((times * d**2).sum())
    return float((times * d**3).sum()) / (6 * square**1.5) if square > 0 else 0.0


def _shifted(tails: Float64s, d: Float64s, bend: float) -> Float64s:
    """BCa: which quantiles of the deviations stand for the wanted tails."""
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(d < 0) + np.count_nonzero(d == 0) / 2 + 0.5) / (len(d) + 1)
    z = ndtri(below) + ndtri(tails)
    stretch = 1 - bend * z
    moved = ndtri(below) + z / positive(stretch)
    return np.where(stretch > 0, ndtr(moved), np.where(bend * z > 0, np.sign(bend) > 0, 0.5)).astype(np.float64)
