"""The bootstrap: how an estimate would scatter, its distribution kept whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.estimate import DebiasedECE, Estimator, Interval, IsotonicError, RankSeries, SmoothECE
from truecal.estimate.estimator import check_choice, power_mean
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.types import Float64s
from truecal.uncertainty.bins_only import bins_only, resampled_bins
from truecal.uncertainty.cells import profile_of, single_cells
from truecal.uncertainty.resample import multinomial, unit_counts
from truecal.uncertainty.rows import Rows, Units, default_lens, rows_of
from truecal.uncertainty.verdict import check_level, check_resamples

Method = Literal["basic", "percentile", "bca"]
METHODS = ("basic", "percentile", "bca")
CELLS = 256  # distinct scores kept apart in a resample; more are joined into so many cells of equal mass
_AT_ONCE = 1 << 16  # resampled cells judged at a time: what stays in cache


@dataclass(frozen=True)
class Bootstrap:
    """The resampled distribution of an estimate. Level and method can change without resampling.

    All is kept on the scale of the error to the power of its norm, where bias adds up: `powers` are the resampled estimates,
    `truth` is the true error in the world they were drawn from, so powers - truth is what estimation does to the truth: its
    mean is the bias, its quantiles give the interval.
    """

    estimator: Estimator
    power: float
    powers: Float64s
    truth: float
    level: float
    method: Method
    drawn: str  # what was drawn: rows, clusters, blocks, or outcomes around the fitted curve
    acceleration: float = 0.0

    @property
    def value(self) -> float:
        """The estimate itself."""
        return self._root(self.power)

    @property
    def values(self) -> Float64s:
        """The resampled estimates on the scale of the error."""
        return self.estimator.root(self.powers)

    @property
    def deviations(self) -> Float64s:
        """What estimation added to the truth in each resample."""
        return self.powers - self.truth

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

        - "basic": P - quantiles of d. The bias is taken off once, exactly as estimated.
        - "percentile": quantiles of d about the same debiased centre, not turned around.
        - "bca": percentiles of P + d, shifted for the share of d below 0 and for skewness (Efron 1987). Meant for a value well
          away from 0; for a plug-in near 0, where almost all d are positive, it cannot reach far enough down.

        Each is extended to hold the estimate where a large bias would leave it outside.
        """
        level = self.level if level is None else level
        method = self.method if method is None else method
        check_level(level)
        check_choice(method, METHODS, "method")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        d = self.deviations
        if method == "basic":
            low, high = (self.power - np.quantile(d, tails))[::-1]
        elif method == "percentile":
            low, high = self.power - 2 * d.mean() + np.quantile(d, tails)
        else:
            low, high = self.power + np.quantile(d, _shifted(tails, d, self.acceleration))
        value = self.value
        bottom, top = min(self._root(low), value), max(self._root(high), value)
        return Interval(bottom, min(top, 1.0), level, f"{method} bootstrap of {self.drawn}")

    def _root(self, power: float) -> float:
        return float(self.estimator.root(np.array([power]))[0])


def bootstrap(
    estimator: Estimator,
    data: Profile | Predictions,
    *,
    lens: Lens | None = None,
    draw: Literal["rows", "curve"] = "rows",
    resamples: int = 1000,
    level: float = 0.95,
    method: Method = "basic",
    blocks: int | None = None,
    rng: int | np.random.Generator = 0,
) -> Bootstrap:
    """Resample one dataset and judge every resample.

    Parameters
    ----------
    data : a Profile of independent rows; or Predictions, whose clusters are then drawn as whole.
    lens : what of Predictions is judged; default as in `calibration_error`.
    draw : "rows" draws rows (or clusters, or blocks) with replacement. "curve" redraws outcomes as well, from the smooth
        calibration curve that :class:`RankSeries` fits, scaled to its debiased error: the true error of that world is known,
        so that the bias of any estimator shows in full, also near zero, where drawing rows shows only part of it.
    blocks : for Predictions in the order of time, the length of runs to draw.

    Rows are never sorted again: a resample is a set of counts on the distinct scores (more than 256: on cells of neighbouring
    scores), and for estimators of fixed bins a set of counts of zeros and ones in each bin, whose edges stay.
    Importance weights: a resample has Kish's effective number of rows.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> profile = tc.Profile.from_arrays(c, rng.random(1000) < c**1.5)  # true mean absolute error 0.1
    >>> found = bootstrap(tc.BinnedECE(bins=15, norm=1), profile)
    >>> 0.1 in found.interval(), found.value in found.interval(0.5)
    (True, True)
    """
    if not isinstance(estimator, Estimator):
        raise InputError(f"estimator must be one of truecal's, such as tc.SweepECE(), not {estimator!r}")
    check_resamples(resamples)
    check_level(level)
    check_choice(method, METHODS, "method")
    check_choice(draw, ("rows", "curve"), "draw")
    generator = np.random.default_rng(rng)
    if isinstance(data, Predictions):
        lens = default_lens(data) if lens is None else lens
        if data.clusters is not None or blocks is not None or lens.shares(data) is not None:
            if draw == "curve":
                raise InputError("draw='curve' needs independent rows and one dataset; use draw='rows'")
            return _joint(estimator, data, lens, resamples, level, method, blocks, generator)
        data = lens(data)
    elif lens is not None or blocks is not None:
        raise InputError("lens and blocks need Predictions: a Profile has forgotten which row is which")
    if draw == "rows" and bins_only(estimator) and method != "bca":
        single_cells(data, 1)  # refuses what is not one dataset
        power, powers = resampled_bins(estimator, data, resamples, generator)
        truth = float(powers.mean()) if _is_debiased(estimator) else power
        return Bootstrap(estimator, power, powers, truth, level, method, "rows")
    cells = single_cells(data, CELLS)
    rates = cells.outcomes.astype(np.float64) if draw == "rows" else fitted_rates(cells)
    powers = resampled_powers(estimator, cells, rates, resamples, generator)
    power = float(estimator.find(data).power[0])
    if draw == "curve":
        truth, drawn = true_power(estimator, cells, rates), "outcomes around the fitted curve"
    else:
        truth = float(powers.mean()) if _is_debiased(estimator) else float(estimator.find(cells).power[0])
        drawn = "rows"
    bend = acceleration(estimator, cells) if method == "bca" else 0.0
    return Bootstrap(estimator, power, powers, truth, level, method, drawn, bend)


def _is_debiased(estimator: Estimator) -> bool:
    """Whether the estimate of the power is unbiased: a resample of it then scatters about its own world's truth, the plug-in."""
    return isinstance(estimator, (DebiasedECE, RankSeries))


def resampled_powers(
    estimator: Estimator, cells: Profile, rates: Float64s, resamples: int, rng: np.random.Generator
) -> Float64s:
    """Estimates on datasets as large as this one, with its distribution of scores and the given rates of ones."""
    assert cells.weights is not None
    share = cells.weights[0] / cells.weights.sum()
    chances = np.concatenate([share * (1 - rates[0]), share * rates[0]])
    n = max(1, round(float(cells.size[0])))
    found = []
    for some in _parts(resamples, cells.rows):
        counts = multinomial(chances, n, some, rng)
        found.append(estimator.find(profile_of(cells, counts[:, : cells.rows], counts[:, cells.rows :])).power)
    return np.concatenate(found)


def fitted_rates(cells: Profile) -> Float64s:
    """Outcome rates of the smooth curve through the data, drawn towards the scores until its error is the debiased one."""
    estimate = RankSeries()(cells)
    assert estimate.curve is not None
    gap = estimate.curve.outcome - cells.scores[0]
    share = estimate.curve.weight
    size = float(np.sqrt((share * gap**2).sum()))
    shrink = min(float(estimate.value) / size, 1.0) if size > 0 else 0.0
    return np.clip(cells.scores[0] + shrink * gap, 0.0, 1.0)[None]


def true_power(estimator: Estimator, cells: Profile, rates: Float64s) -> float:
    """The error, to the power of its norm, of a model with these scores whose outcomes have these rates."""
    if isinstance(
        estimator, (SmoothECE, IsotonicError)
    ):  # they measure something else than E |gap|^p: ask them, without noise
        return float(estimator.find(Profile(cells.scores, rates, cells.weights)).power[0])
    assert cells.weights is not None
    return float(power_mean(rates - cells.scores, cells.weights / cells.weights.sum(), estimator.power_norm)[0])


def acceleration(estimator: Estimator, cells: Profile) -> float:
    """Skewness of the jackknife, sum d^3 / (6 (sum d^2)^1.5), from leaving out one zero or one one of every cell."""
    assert cells.weights is not None
    count = cells.weights[0]
    ones = count * cells.outcomes[0]
    zeros = count - ones
    left, number = [], np.concatenate([zeros, ones])
    for part in np.array_split(np.flatnonzero(number > 0), max(1, 2 * cells.rows**2 // _AT_ONCE)):
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
    moved = ndtri(below) + z / np.where(stretch > 0, stretch, 1.0)
    return np.where(stretch > 0, ndtr(moved), np.where(bend * z > 0, np.sign(bend) > 0, 0.5)).astype(np.float64)


def _parts(resamples: int, cells: int) -> Iterator[int]:
    """Sizes of the parts that resamples are worked through in, so that memory stays bounded."""
    step = max(1, _AT_ONCE // cells)
    for start in range(0, resamples, step):
        yield min(step, resamples - start)


# ---------------------------------------------------------------------- rows with identity: clusters, blocks, many datasets


def _joint(
    estimator: Estimator,
    preds: Predictions,
    lens: Lens,
    resamples: int,
    level: float,
    method: Method,
    blocks: int | None,
    rng: np.random.Generator,
) -> Bootstrap:
    if method == "bca":
        raise InputError("bca needs independent rows and one dataset; use method='basic'")
    units = Units.of(preds, blocks=blocks, rng=rng)
    counts = drawn_units(units, resamples, rng)
    power, powers, truth = joint_powers(estimator, lens, preds, units, counts)
    return Bootstrap(estimator, power, powers, truth, level, method, units.kind)


def drawn_units(units: Units, resamples: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Draws of whole units; a single unit cannot show how much units differ."""
    if units.count < 2:
        what = "cluster" if units.kind == "clusters" else "row"
        raise InputError(
            f"all rows belong to one {what}: it cannot tell how much another would differ; give at least two"
        )
    return unit_counts(units.count, resamples, rng, block=units.block)


def joint_powers(
    estimator: Estimator, lens: Lens, preds: Predictions, units: Units, counts: NDArray[np.uint16]
) -> tuple[float, Float64s, float]:
    """Estimate, resampled estimates and the truth they scatter about, all as powers, over all datasets of a lens together."""
    shares = lens.shares(preds)
    parts = (
        ((1.0, rows) for rows in rows_of(lens, preds))
        if shares is None
        else zip(shares, rows_of(lens, preds), strict=True)
    )
    largest = estimator.power_norm == np.inf
    totals = np.zeros(counts.shape[1] + 2)
    for share, rows in parts:
        if share > 0:
            found = np.concatenate(_one_dataset(estimator, rows, units, counts))
            totals = np.maximum(totals, found) if largest else totals + share * found
    power, centre, powers = float(totals[0]), float(totals[1]), totals[2:]
    return power, powers, float(powers.mean()) if _is_debiased(estimator) else centre


def _one_dataset(
    estimator: Estimator, rows: Rows, units: Units, counts: NDArray[np.uint16]
) -> tuple[Float64s, Float64s, Float64s]:
    """Power on the rows, on their cells, and on every resample of the units."""
    cells, incidence = rows.incidence(units, CELLS)
    found, start = [], 0
    for some in _parts(counts.shape[1], cells.rows):
        both = (incidence @ counts[:, start : start + some].astype(np.float64)).T
        found.append(estimator.find(profile_of(cells, both[:, : cells.rows], both[:, cells.rows :])).power)
        start += some
    return estimator.find(rows.profile).power, estimator.find(cells).power, np.concatenate(found)
