"""What miscalibration costs a decision: loss at every threshold, Murphy diagrams, decompositions of proper scores.

A case is acted on if its score is at least t, where a false alarm costs t and a missed event 1 - t. With V_t(s) the mean of
(y - t) over all cases, counted where the score is at least s,

    cost(t) = (1 - t) P(y = 1) - V_t(t),        loss(t) = max_s V_t(s) - V_t(t).                                       (1)

For a curve T(c) = E[y | c] that does not fall, loss(t) is what acting on T(c) instead of c saves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.rank_series.basis import basis_functions
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.inference.conclusion import LossAt
from truecal.inference.measurement import measure
from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.resampling.cells import cell_starts
from truecal.resampling.draws import unit_counts
from truecal.resampling.units import Units
from truecal.special import positive
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

_REDRAWS = 400  # by choice: of losses; the smallest p-value is 1 / 401
_MAX_CUTS = 512  # by choice: candidates for the best cut in a redraw; the maximum of (1) is flat, so more change nothing visible
_MAX_LISTED = 5  # by choice: thresholds that are printed line by line


# ---------------------------------------------------------------------- cells


class DecisionCells(NamedTuple):
    """Shares of rows and of events from every cut of the scores on, shape (..., G + 1), for G cells of neighbouring scores.

    The noise of the shares comes from standard normal multipliers of rows or clusters, of which there are B.
    """

    cuts: Indices  # (T,) first cell at or above each threshold
    size: float  # effective number of rows, at most that of clusters
    rows: Float64s
    events: Float64s
    fitted: Float64s  # events expected by the rank series
    row_noise: Float64s  # (B, G + 1)
    event_noise: Float64s

    @classmethod
    def of(cls, sample: Sample, units: Units, multipliers: Float64s, thresholds: Float64s) -> DecisionCells:
        """Cut the rows of a sample into at most 512 cells of equal mass, and at every threshold (T,).

        `multipliers` (units, B) are of the `units` of the rows. Refuses samples with several pairs per row.
        """
        from scipy.sparse import csr_array

        sample.refuse_pooled()
        series, profile, order = ClusteredSeries.of(sample, units), sample.profile, sample.order
        scores = sample.scores[order].astype(np.float64)
        positions = np.searchsorted(scores, thresholds)
        starts = np.unique(np.concatenate([cell_starts(profile, _MAX_CUTS), positions]))
        cell = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        weights = np.ones(len(order)) if sample.weights is None else sample.weights[order]
        rates = np.clip(scores + np.interp(scores, series.scores, series.gap[0]), 0.0, 1.0)
        shares = np.stack([np.ones(len(order)), sample.outcomes[order], rates]) * (weights / profile.total[0])
        above, noise = [], []
        for share in shares:
            by_unit = csr_array((share, (cell, units.of_row[order])), shape=(len(starts) - 1, units.count))
            above.append(_sum_above(by_unit.sum(axis=1)))
            noise.append(_sum_above((by_unit @ multipliers).T))
        cuts, size = np.searchsorted(starts, positions), min(float(profile.size[0]), units.count)
        return cls(cuts, size, above[0], above[1], above[2], noise[0], noise[1])

    def gains(self, index: int, threshold: float, rows: Float64s, events: Float64s) -> Float64s:
        """Compute V_t(s) - V_t(t) of (1) for every cut s, of shares of rows and events (..., G + 1)."""
        savings = events - threshold * rows
        return np.asarray(savings - savings[..., [self.cuts[index]]])


def _sum_above(values: Any) -> Float64s:
    """Sum the last cells from every cut on, shape (..., G + 1) from (..., G); the last sum is 0.

    >>> _sum_above(np.array([1.0, 2.0, 3.0]))
    array([6., 5., 3., 0.])
    """
    sums = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([sums, np.zeros((*sums.shape[:-1], 1))], axis=-1)


class LossDraws(NamedTuple):
    """Plug-in losses of one model and their noise in B draws, in which models on the same rows have their multipliers in common."""

    size: float  # effective number of rows, at most that of clusters
    loss: Float64s  # (T,) plug-in
    slack: Float64s  # (T,) by how much the largest upper limit of a gain exceeds that of the best cut
    rise: Float64s  # (B, T) of the largest gain by noise
    at_best: Float64s  # (B, T) noise at the best cut


# ---------------------------------------------------------------------- results


@dataclass(frozen=True, eq=False, repr=False)
class DecisionLoss(Tabular):
    """What miscalibration costs at every threshold, per case, with a band that holds for all thresholds together.

    Attributes
    ----------
    thresholds : array of shape (T,)
        Scores from which a case is acted on.
    loss : array of shape (T,)
        Bias-corrected loss.
    low : array of shape (T,)
        Lower limits of the band.
    high : array of shape (T,)
        Upper limits of the band.
    point_low : array of shape (T,)
        Lower limits for each threshold alone.
    point_high : array of shape (T,)
        Upper limits for each threshold alone.
    cost : array of shape (T,)
        Mean cost of acting on the scores (the Murphy diagram).
    cost_low : array of shape (T,)
        Lower limits of the cost at each threshold alone.
    cost_high : array of shape (T,)
        Upper limits of the cost at each threshold alone.
    p_value : float
        Of the test that no other cut is better at any threshold; the band leaves 0 where it is at most 1 - level.
    level : float
        Level of the band and of the intervals.
    n : int
        Number of rows.
    units : int
        Number of independent rows or clusters.
    lens : str
        What was judged, in words.
    name : str
        Name of the model.
    unit : float
        What a false alarm and a missed event cost together: 1, or the sum of `costs`.
    draws : LossDraws or None
        Noise of the losses, which a comparison with another model on the same rows needs.

    See Also
    --------
    truecal.decision_loss : Computes it.
    """

    thresholds: Float64s
    loss: Float64s
    low: Float64s
    high: Float64s
    point_low: Float64s
    point_high: Float64s
    cost: Float64s
    cost_low: Float64s
    cost_high: Float64s
    p_value: float
    level: float
    n: int
    units: int
    lens: str
    name: str
    unit: float = 1.0
    draws: LossDraws | None = field(default=None, repr=False)

    @property
    def maximum(self) -> LossAt:
        """The largest loss over the thresholds and its threshold; the limits are the largest of the band over all thresholds."""
        i = int(np.argmax(self.loss))
        loss, low, high = (float(a.max()) for a in (self.loss, self.low, self.high))
        return LossAt(float(self.thresholds[i]), loss, low, high, self.level, self.unit)

    def at(self, threshold: float) -> LossAt:
        """Look up the loss at one of the thresholds, with the interval of this threshold alone.

        Parameters
        ----------
        threshold : float
            One of `thresholds`.

        Returns
        -------
        LossAt
            Loss and limits.

        Raises
        ------
        InputError
            The threshold is not among those computed.
        """
        i = int(np.argmin(np.abs(self.thresholds - threshold)))
        if abs(self.thresholds[i] - threshold) > 1e-9:
            raise InputError(
                f"threshold {threshold:g} is not among those computed; ask for it: thresholds=[{threshold:g}]"
            )
        loss, low, high = (float(a[i]) for a in (self.loss, self.point_low, self.point_high))
        return LossAt(float(self.thresholds[i]), loss, low, high, self.level, self.unit)

    def frame(self) -> Frame:
        """Return one row per threshold: threshold, loss, low, high, point_low, point_high, cost, cost_low, cost_high."""
        names = "loss low high point_low point_high cost cost_low cost_high"
        return Frame({"threshold": self.thresholds, **{name: getattr(self, name) for name in names.split()}})

    def __str__(self) -> str:
        """Write the loss at every threshold, a line each, or only the largest where there are more than 5; then the test."""
        listed = len(self.thresholds) <= _MAX_LISTED
        lines = [str(self.at(t)) for t in self.thresholds] if listed else [f"largest loss: {self.maximum}"]
        where = "this threshold" if len(self.thresholds) == 1 else "any threshold"
        test = f"test that miscalibration costs nothing at {where}: {digits.p_equation(self.p_value)}"
        verdict = f"{test}; n={self.n:,}, {self.lens}"
        return "\n".join([f"{self.name}: {line}" for line in lines] + [verdict])


@dataclass(frozen=True, eq=False, repr=False)
class LossDifference(Tabular):
    """Loss of model a less that of model b on the same rows, with a simultaneous band.

    Attributes
    ----------
    thresholds : array of shape (T,)
        Scores from which a case is acted on.
    loss : array of shape (T,)
        Difference of the bias-corrected losses.
    low : array of shape (T,)
        Lower limits of the band.
    high : array of shape (T,)
        Upper limits of the band.
    p_value : float
        Of the test that the losses are equal at all thresholds.
    level : float
        Level of the band and of the limits.
    names : tuple of str
        Names of a and b.

    See Also
    --------
    truecal.decision_loss : Computes it for several models.
    """

    thresholds: Float64s
    loss: Float64s
    low: Float64s
    high: Float64s
    p_value: float
    level: float
    names: tuple[str, str]

    def frame(self) -> Frame:
        """Return one row per threshold: threshold, loss, low, high.

        >>> one = np.array([0.5])
        >>> LossDifference(one, one / 10, one / 20, one / 5, 0.04, 0.95, ("a", "b")).frame()[0]
        {'threshold': 0.5, 'loss': 0.05, 'low': 0.025, 'high': 0.1}
        """
        names = "loss low high"
        return Frame({"threshold": self.thresholds, **{name: getattr(self, name) for name in names.split()}})

    def __str__(self) -> str:
        """Write at how many thresholds the band lies above 0 and below 0, with its level and the p-value.

        >>> one = np.array([0.5])
        >>> print(LossDifference(one, one / 10, one / 20, one / 5, 0.04, 0.95, ("a", "b")))
        miscalibration costs more in a than in b at 1 of 1 thresholds and less at 0 (95% for all together, p = 0.040)
        """
        a, b = self.names
        larger, smaller = (int(np.count_nonzero(x)) for x in (self.low > 0, self.high < 0))
        return (
            f"miscalibration costs more in {a} than in {b} at {larger} of {len(self.loss)} thresholds and less at {smaller} "
            f"({self.level:.0%} for all together, {digits.p_equation(self.p_value)})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class DecisionLosses(Tabular):
    """Losses of several models on the same rows, by name, and their differences.

    Attributes
    ----------
    each : mapping of str to DecisionLoss
        Losses by the name of the model.
    differences : tuple of LossDifference
        Loss of the first model less that of each other one, with simultaneous bands.

    See Also
    --------
    truecal.decision_loss : Computes it from several named Predictions.
    """

    each: Mapping[str, DecisionLoss]
    differences: tuple[LossDifference, ...]

    def __getitem__(self, name: str) -> DecisionLoss:
        """Return the losses of the model of this name; InputError, which lists the names, for another."""
        if name not in self.each:
            raise InputError(f"there is no model {name!r}; there are {', '.join(self.each)}")
        return self.each[name]

    def frame(self) -> Frame:
        """Return one row per model and threshold.

        Columns: model, threshold, loss, low, high, point_low, point_high, cost, cost_low, cost_high.
        """
        return Frame.from_records([{"model": name, **row} for name, loss in self.each.items() for row in loss.frame()])

    def __str__(self) -> str:
        """Write the losses of every model and the differences, a line or more each."""
        return "\n".join(map(str, (*self.each.values(), *self.differences)))


# ---------------------------------------------------------------------- decision_loss


@takes_arrays
def decision_loss(
    preds: Predictions | Mapping[str, Predictions],
    thresholds: ArrayLike | None = None,
    costs: Sequence[float] | None = None,
    *,
    lens: Lens | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> DecisionLoss | DecisionLosses:
    r"""Compute what miscalibration costs decisions at a threshold, at all thresholds and at most.

    Parameters
    ----------
    preds : Predictions, mapping of names to Predictions, or ``y_true, y_prob``
        One model, or several on the same rows, which are then compared with the first.
    thresholds : array of float, default None
        Scores from which a case is acted on, strictly between 0 and 1; None for 0.01, 0.02, ..., 0.99.
    costs : pair of float, default None
        Costs of a false alarm and of a missed event, in place of `thresholds`: the threshold is then
        ``false_alarm / (false_alarm + missed)`` and losses are in the unit of the costs.
    lens : Lens, default None
        What is judged: one probability per row; None for the positive class, or the top label.
    level : float, default 0.95
        Level of intervals and of the band.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.

    Returns
    -------
    DecisionLoss
        Loss at every threshold, `maximum`, `at(t)`, simultaneous band, p-value, and the Murphy diagram (`cost`).
        For several models DecisionLosses, with differences from the first.

    Raises
    ------
    InputError
        Thresholds outside (0, 1), costs that are not positive, both of them, or models on different rows.

    Notes
    -----
    Estimand: :math:`L(t) = \max_s E[(y - t)(1\{c \ge s\} - 1\{c \ge t\})]`, what the best other cut of the score
    saves if a false alarm costs t and a missed event 1 - t. If :math:`T(c) = E[y \mid c]` does not fall, it is what
    acting on T(c) instead of c saves, and :math:`\max_t L(t)` is the calibration decision loss over threshold decisions.
    The plug-in is the miscalibration part of an isotonic (CORP) decomposition. It is too large by chance; its bias comes from
    draws around a smooth curve. The band assumes no curve. The gain of every other cut is a mean over rows, whose noise comes
    from normal multipliers of rows or clusters. The lower limit is the plug-in less a quantile of how far the largest gain
    rises by noise (bootstrap of the maximum); the upper one is the largest of the upper limits of all gains (intersection
    bounds). Both are one-sided limits at `level`. The test has the same draws and rejects where the band leaves 0.

    Assumptions: rows (or clusters) are independent; the curve does not fall. Where it does, an act that is not a
    cut of the score would save more.

    References
    ----------
    Hu, L. and Wu, Y. (2024). Predict to minimize swap regret for all payoff-bounded tasks. arXiv:2404.13503.

    Chernozhukov, V., Lee, S. and Rosen, A. M. (2013). Intersection bounds: estimation and inference. Econometrica 81, 667-737.
    doi:10.3982/ECTA8718

    Ehm, W., Gneiting, T., Jordan, A. and Krüger, F. (2016). Of quantiles and expectiles: consistent scoring functions,
    Choquet representations and forecast rankings. JRSS B 78, 505-562. doi:10.1111/rssb.12154

    See Also
    --------
    truecal.clinical.net_benefit : Net benefit against treating everyone or no one.
    truecal.scores.decompose_score : Brier score and log loss in parts.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> loss = tc.decision_loss(rng.random(4000) < p**2, p, thresholds=[0.2])
    >>> bool(loss.low[0] > 0), bool(loss.p_value < 0.01)
    (True, True)
    """
    options.level(level)
    check_lens(lens)
    grid, unit = _thresholds(thresholds, costs)
    models = dict(preds) if isinstance(preds, Mapping) else {"model": preds}
    if not models:
        raise InputError("there is no model to judge: the mapping is empty")
    for model in models.values():
        check_predictions(model)
    lenses = {name: default_lens(model) if lens is None else lens for name, model in models.items()}
    samples = {name: lenses[name].sample(model).weighing() for name, model in models.items()}
    first, *_ = samples.values()
    for other in samples.values():
        if not (np.array_equal(first.outcomes, other.outcomes) and np.array_equal(first.units, other.units)):  # type: ignore[arg-type]
            raise InputError("models are compared on the same rows and clusters in the same order, and outcomes differ")
    generator = options.generator(rng)
    units = Units.of(first, generator)
    multipliers = generator.standard_normal((units.count, _REDRAWS))
    losses = {}
    for name, sample in samples.items():
        numbers = _losses(DecisionCells.of(sample, units, multipliers, grid), grid, level)
        costs_of = {
            key: unit * value for key, value in numbers.items() if key not in ("thresholds", "p_value", "draws")
        }
        independent = len(sample) if sample.units is None else units.count
        words = lenses[name].describe(models[name])
        losses[name] = DecisionLoss(
            **numbers | costs_of, level=level, n=len(sample), units=independent, lens=words, name=name, unit=unit
        )
    if not isinstance(preds, Mapping):
        return losses["model"]
    reference, *others = losses.values()
    return DecisionLosses(losses, tuple(_difference(reference, loss) for loss in others))


def _thresholds(thresholds: ArrayLike | None, costs: Sequence[float] | None) -> tuple[Float64s, float]:
    """Return thresholds (T,) and the unit of losses: those given and 1, or false_alarm / (false_alarm + missed) and their sum.

    Refuses both at once, and costs that are not two finite numbers above 0.

    >>> _thresholds([0.2, 0.5], None), _thresholds(None, [1, 3])
    ((array([0.2, 0.5]), 1.0), (array([0.25]), 4.0))
    """
    if costs is not None:
        pair = validation.as_floats(costs, "costs")
        if thresholds is not None:
            raise InputError("give thresholds or costs, not both: the costs of two mistakes imply the threshold")
        if pair.shape != (2,) or not (np.isfinite(pair).all() and (pair > 0).all()):
            raise InputError(f"costs are two numbers above 0, of a false alarm and of a missed event, not {costs!r}")
        return np.array([pair[0] / pair.sum()]), float(pair.sum())
    return check_thresholds(thresholds), 1.0


def check_thresholds(thresholds: ArrayLike | None) -> Float64s:
    """Return thresholds as an array (T,), by default 0.01, 0.02, ..., 0.99; refuse values outside (0, 1) and an empty list.

    >>> check_thresholds(0.2)
    array([0.2])
    """
    if thresholds is None:
        return np.arange(1, 100) / 100
    grid = np.atleast_1d(validation.as_floats(thresholds, "thresholds")).astype(np.float64)
    outside = np.flatnonzero(~((grid > 0) & (grid < 1)))
    if grid.ndim != 1 or not len(grid) or len(outside):
        value = f": number {outside[0]} is {grid.ravel()[outside[0]]:g}" if len(outside) else ""
        raise InputError(f"thresholds are a list of numbers strictly between 0 and 1, such as [0.1, 0.2]{value}")
    return grid


def _losses(cells: DecisionCells, grid: Float64s, level: float) -> dict[str, Any]:
    """Estimate the losses of one model at thresholds `grid` (T,), per case, with band, intervals and test: fields of DecisionLoss.

    Draws (B, T) scatter about the rank series, which has the bias of the largest gain; about the data, for the lower
    limit; and at the best cut, for the upper one. Critical values are quantiles of their largest over thresholds for the band, of
    each threshold for its own interval: one-sided ones, because an upper limit hardly errs where the lower one does.
    """
    size, number = cells.size, len(cells.row_noise)
    loss, best_error, cost, cost_error = np.empty((4, len(grid)))
    about_curve, about_data, at_best = np.empty((3, number, len(grid)))
    gains, errors = np.empty((2, len(grid), len(cells.rows)))
    for j, (t, cut) in enumerate(zip(grid, cells.cuts, strict=True)):
        gains[j], fitted = (cells.gains(j, t, cells.rows, events) for events in (cells.events, cells.fitted))
        noise = cells.gains(j, t, cells.row_noise, cells.event_noise) - gains[j] * cells.row_noise[:, :1]
        # not below that of rows with the event rate t, where acting or not is the same, and of one row
        indifferent = t * (1 - t) * np.abs(cells.rows - cells.rows[cut]) / size
        errors[j] = np.sqrt(np.maximum(noise.var(axis=0), indifferent) + size**-2)
        best = gains[j].argmax()
        loss[j], best_error[j] = gains[j, best], errors[j, best]
        about_curve[:, j] = (fitted + noise).max(axis=1) - fitted.max()
        about_data[:, j] = (gains[j] + noise).max(axis=1) - loss[j]
        at_best[:, j] = -noise[:, best]
        cost[j] = (1 - t) * cells.events[0] - cells.events[cut] + t * cells.rows[cut]
        cost_noise = (1 - t) * cells.event_noise[:, 0] - cells.event_noise[:, cut] + t * cells.row_noise[:, cut]
        cost_error[j] = (cost_noise - cost[j] * cells.row_noise[:, 0]).std()
    scale = np.sqrt((about_data**2).mean(axis=0)) + 1 / size
    corrected = np.maximum(loss - about_curve.mean(axis=0), 0.0)
    limits, one_sided, two_sided = [], NormalDist().inv_cdf(level), NormalDist().inv_cdf(0.5 + level / 2)
    rank = min(level * (1 + 1 / number), 1.0)  # so that the band leaves 0 where p <= 1 - level
    for together in (False, True):
        draws = [
            np.max(a, axis=1, keepdims=True) if together else a for a in (about_data / scale, at_best / best_error)
        ]
        lower, upper = (np.quantile(a, rank, axis=0, method="inverted_cdf") for a in draws)
        reach = np.maximum(upper, one_sided)
        limits += [np.clip(loss - lower * scale, 0.0, corrected), (gains + reach[:, None] * errors).max(axis=1)]
    slack = limits[-1] - loss - reach * best_error
    exceeding = np.count_nonzero((about_data / scale).max(axis=1) >= (loss / scale).max())
    return {
        "thresholds": grid,
        "loss": corrected,
        **dict(zip(("point_low", "point_high", "low", "high"), limits, strict=True)),
        "cost": cost,
        "cost_low": np.maximum(cost - two_sided * cost_error, 0.0),
        "cost_high": cost + two_sided * cost_error,
        "p_value": (1 + exceeding) / (1 + number),
        "draws": LossDraws(size, loss, slack, about_data, -at_best),
    }


def _difference(a: DecisionLoss, b: DecisionLoss) -> LossDifference:
    """Estimate the loss of model a less that of model b on the same rows, with a simultaneous band and its test."""
    assert a.draws is not None
    assert b.draws is not None
    (low, p_low), (minus_high, p_high) = (
        _limit_difference(x, y, a.level) for x, y in ((a.draws, b.draws), (b.draws, a.draws))
    )
    loss, p_value = a.loss - b.loss, min(p_low, p_high)
    low, high = np.minimum(a.unit * low, loss), np.maximum(-a.unit * minus_high, loss)
    return LossDifference(a.thresholds, loss, low, high, p_value, a.level, (a.name, b.name))


def _limit_difference(a: LossDraws, b: LossDraws, level: float) -> tuple[Float64s, float]:
    """Compute simultaneous lower limits (T,) of the losses of a less those of b, and the p-value of none above 0.

    The loss of a exceeds its plug-in by no less than -rise, that of b by no more than slack less the noise at its best cut.
    """
    excess, noise = a.loss - b.loss - b.slack, a.rise - b.at_best
    scale = np.sqrt((noise**2).mean(axis=0)) + 1 / a.size
    largest = (noise / scale).max(axis=1)
    critical_value = np.quantile(largest, min(level * (1 + 1 / len(largest)), 1.0), method="inverted_cdf")
    p_value = (1 + np.count_nonzero(largest >= (excess / scale).max())) / (1 + len(largest))
    return excess - critical_value * scale, float(p_value)


# ---------------------------------------------------------------------- decompositions of proper scores


@dataclass(frozen=True, eq=False, repr=False)
class ScoreDecomposition(Tabular):
    """A proper score in parts, score = miscalibration - discrimination + uncertainty, each (value, low, high).

    Attributes
    ----------
    name : str
        Brier score or log loss.
    score : tuple of float
        The mean score.
    miscalibration : tuple of float
        What a recalibration would take away.
    discrimination : tuple of float
        What knowing the scores saves against the mean outcome alone.
    uncertainty : tuple of float
        Score of the mean outcome alone.
    level : float
        Level of the intervals.
    n : int
        Number of rows.

    See Also
    --------
    truecal.scores.decompose_score : Computes it.
    """

    name: str
    score: tuple[float, float, float]
    miscalibration: tuple[float, float, float]
    discrimination: tuple[float, float, float]
    uncertainty: tuple[float, float, float]
    level: float
    n: int

    def frame(self) -> Frame:
        """Return one row each for score, miscalibration, discrimination, uncertainty: part, value, low, high.

        >>> import truecal as tc
        >>> preds = tc.Predictions.from_probs([0.2, 0.8, 0.6, 0.4], [0, 1, 1, 0])
        >>> tc.scores.decompose_score(preds).frame()["part"].tolist()
        ['score', 'miscalibration', 'discrimination', 'uncertainty']
        """
        parts = ("score", "miscalibration", "discrimination", "uncertainty")
        rows = [dict(zip(("value", "low", "high"), getattr(self, part), strict=True)) for part in parts]
        return Frame.from_records([{"part": part, **row} for part, row in zip(parts, rows, strict=True)])

    def __str__(self) -> str:
        """Write name, then value and limits of each part with four decimals, level and rows.

        >>> part = (0.1, 0.05, 0.15)
        >>> print(ScoreDecomposition("Brier score", part, part, part, part, 0.95, 1000))
        Brier score: score 0.1000 [0.0500, 0.1500], miscalibration 0.1000 [0.0500, 0.1500], discrimination 0.1000
        [0.0500, 0.1500], uncertainty 0.1000 [0.0500, 0.1500] at 95% (n=1,000)
        """
        rows = [f"{row['part']} {row['value']:.4f} [{row['low']:.4f}, {row['high']:.4f}]" for row in self.frame()]
        return f"{self.name}: {', '.join(rows)} at {self.level:.0%} (n={self.n:,})"


@takes_arrays
def decompose_score(
    preds: Predictions,
    score: str = "brier",
    *,
    lens: Lens | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> ScoreDecomposition:
    r"""Decompose the Brier score or the log loss into miscalibration, discrimination and uncertainty, with intervals.

    Parameters
    ----------
    preds : Predictions, or ``y_true, y_prob``
        Rows that the model was not fitted on.
    score : {"brier", "log"}, default "brier"
        The proper score.
    lens : Lens, default None
        What is judged: one probability per row; None for the positive class, or the top label.
    level : float, default 0.95
        Level of the intervals.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the resamples.

    Returns
    -------
    ScoreDecomposition
        Value and limits of each part.

    Raises
    ------
    InputError
        Log loss of a score of 0 or 1 that the outcome contradicts, which is infinite.

    Notes
    -----
    With :math:`T = E[y \mid c]`, :math:`\pi = E[y]` and d(p, q) the divergence of the score, squared difference or
    Kullback-Leibler, miscalibration is :math:`E\,d(T, c)`, discrimination :math:`E\,d(T, \pi)`, uncertainty the
    entropy of :math:`\pi`. The miscalibration of the Brier score is the square of `tc.calibration_error`, with its
    interval; discrimination follows from the identity. Both scores are integrals of the Murphy diagram of `decision_loss`.

    References
    ----------
    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    PNAS 118, e2016191118. doi:10.1073/pnas.2016191118

    See Also
    --------
    truecal.decision_loss : The same at single thresholds.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> print(tc.scores.decompose_score(rng.random(4000) < p**2, p))  # doctest: +ELLIPSIS
    Brier score: score 0.1..., miscalibration 0.03... [0.02..., 0.03...], ...
    """
    options.choice(score, ("brier", "log"), "score")
    options.level(level)
    check_predictions(preds)
    generator = options.generator(rng)
    lens = default_lens(preds) if lens is None else lens
    sample = lens.sample(preds).weighing()
    sample.refuse_pooled()
    units = Units.of(sample, generator)
    series = ClusteredSeries.of(sample, units)
    copies = np.concatenate([np.ones((units.count, 1)), unit_counts(units.count, _REDRAWS, generator)], axis=1)
    zeros, ones = np.split((series.weights @ copies).T, 2, axis=1)
    n = (zeros + ones).sum(axis=1, keepdims=True)
    c, base = series.scores, ones.sum(axis=1, keepdims=True) / n
    functions = basis_functions(series.basis, series.cells)[0, : series.order[0]]
    rates = np.clip(c + ((ones - (ones + zeros) * c) @ functions.T / n) @ functions, 0.0, 1.0)
    if score == "log" and bool(((ones[0] > 0) & (c <= 0) | (zeros[0] > 0) & (c >= 1)).any()):
        raise InputError(
            "the log loss is infinite: a score of 0 or 1 is contradicted by its outcome; use score='brier'"
        )
    rates = np.where((c <= 0) | (c >= 1), c, rates) if score == "log" else rates  # no outcome contradicts these scores
    total = ((ones * _penalty(c, 1, score) + zeros * _penalty(c, 0, score)) / n).sum(axis=1)
    excess = ((zeros + ones) / n * _divergence(rates, np.broadcast_to(c, rates.shape), score)).sum(axis=1)
    # the entropy of the mean outcome: its divergence from an outcome that is known
    uncertainty = (base * _divergence(1.0, base, score) + (1 - base) * _divergence(0.0, base, score))[:, 0]
    z = NormalDist().inv_cdf(0.5 + level / 2)

    def normal(value: float, redraws: Float64s) -> tuple[float, float, float]:
        """Return a value with normal limits at the level, the lower one at least 0, from the standard deviation of its redraws."""
        return value, max(value - z * float(redraws.std()), 0.0), value + z * float(redraws.std())

    if score == "brier":
        estimate = measure(preds, estimator=RankSeries(), lens=lens, level=level, rng=0)
        assert estimate.interval is not None
        value = float(estimate.value) ** 2
        miscalibration = value, float(estimate.interval.low) ** 2, float(estimate.interval.high) ** 2
    else:
        bias = float(excess[1:].mean() - excess[0])
        value = max(float(excess[0]) - bias, 0.0)
        scale = float(np.std(np.sqrt(np.maximum(excess[1:], 0.0))))
        miscalibration = value, max(np.sqrt(value) - z * scale, 0.0) ** 2, (np.sqrt(value) + z * scale) ** 2
    discrimination = normal(value + float(uncertainty[0] - total[0]), (excess + uncertainty - total)[1:])
    name = "log loss" if score == "log" else "Brier score"
    return ScoreDecomposition(
        name, normal(float(total[0]), total[1:]), miscalibration, discrimination,
        normal(float(uncertainty[0]), uncertainty[1:]), level, len(sample),
    )  # fmt: skip


def _penalty(scores: Float64s, outcome: int, score: str) -> Float64s:
    """Compute the Brier score or log loss of scores (k,) for an outcome 0 or 1; an infinite log loss is returned as 0.

    The caller refuses scores whose log loss is infinite where that outcome occurs.

    >>> _penalty(np.array([0.75, 0.0]), 1, "brier"), _penalty(np.array([0.5, 0.0]), 1, "log").round(4)
    (array([0.0625, 1.    ]), array([ 0.6931, -0.    ]))
    """
    p = scores if outcome else 1 - scores
    return -np.log(positive(p)) if score == "log" else (1 - p) ** 2


def _divergence(p: Float64s | float, q: Float64s, score: str) -> Float64s:
    """Compute d(p, q), elementwise: (p - q)^2 for "brier", the Kullback-Leibler divergence in nats for "log".

    >>> _divergence(0.5, np.array([0.25]), "brier"), _divergence(0.5, np.array([0.25]), "log").round(4)  # ln(4/3) / 2
    (array([0.0625]), array([0.1438]))
    """
    from scipy.special import rel_entr

    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q) if score == "log" else (p - q) ** 2, np.float64)
