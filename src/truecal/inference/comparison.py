"""`compare` and `compare_many`: differences of the calibration errors of models on the same rows, with interval and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.base import ErrorFunction, Estimator, VectorEstimator, as_estimator, resample_rows, with_level
from truecal.estimators.estimate import Interval
from truecal.estimators.generalized.estimator import GeneralizedECE
from truecal.estimators.rank_series import clusters
from truecal.estimators.rank_series.compare import comparison_side
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.inference.intervals import resample_samples
from truecal.inference.measurement import measure
from truecal.inference.tests import holm
from truecal.judged import JudgedSeries, judged_series, refuse_options
from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.predictions import Predictions
from truecal.predictions.selection import column
from truecal.profile.sketch import Sketch
from truecal.resampling.units import Units
from truecal.table import Frame, Tabular
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# The models of a comparison, and limits of the difference of two of them


@dataclass(frozen=True)
class ResampledError:
    """Error of one model with its resamples; :class:`Side` is the same by formula.

    Attributes
    ----------
    value : float
        The error.
    errors : ndarray of shape (resamples,)
        Resampled errors.
    is_calibrated : bool
        Whether the test does not reject calibration.
    interval : tuple of two float or None
        Limits of the error, where the value is free of bias.
    powers : ndarray of shape (resamples,) or None
        Powers of the resamples before anything was chosen from the data, where models are paired.
    """

    value: float
    errors: Float64s
    is_calibrated: bool
    interval: tuple[float, float] | None = None
    powers: Float64s | None = None

    def limits(self, other: ResampledError, level: float, *, paired: bool) -> tuple[float, float, float]:
        """Compute limits of this error minus the other, and the p-value of no difference: (low, high, p).

        Zou and Donner (2008): where l and u are the distances from a value to the ends of its interval, the lower end of a - b
        lies sqrt(l_a^2 + u_b^2 - 2 rho l_a u_b) below the difference of the values, the upper end sqrt(u_a^2 + l_b^2 - 2 rho u_a
        l_b) above it, rho the correlation of the estimates (0 if not paired). p is two-sided, of a normal difference whose limit
        on the side of 0 is at `level`. The errors' own intervals hold near zero and away from it, so those of the difference do.

        Values that are biased (no interval) are compared by `_quantile_limits` instead. Where both models have the same resampled
        errors, low and high are the difference and p is 1.
        """
        if self.interval is None or other.interval is None:
            return self._quantile_limits(other, level)
        (low, high), (other_low, other_high) = self.interval, other.interval
        rho = _correlation(self.powers, other.powers) if paired else 0.0
        down, up = (
            float(np.sqrt(max(x**2 + y**2 - 2 * rho * x * y, 0.0)))
            for x, y in ((self.value - low, other_high - other.value), (high - self.value, other.value - other_low))
        )
        if paired and np.array_equal(self.errors, other.errors):
            down = up = 0.0  # the same model twice
        normal, difference = NormalDist(), self.value - other.value
        toward_zero = down if difference > 0 else up  # distance from the difference to the limit on the side of 0
        z = normal.inv_cdf(0.5 + level / 2) * abs(difference) / toward_zero if toward_zero > 0 else 0.0
        return difference - down, difference + up, min(max(2 * normal.cdf(-z), float(np.finfo(float).tiny)), 1.0)

    def _quantile_limits(self, other: ResampledError, level: float) -> tuple[float, float, float]:
        """Compute (low, high, p): quantiles of the differences of resampled errors, and the p-value of no difference.

        p = 2 (1 + differences on the side of 0 that has fewer, or at 0) / (1 + resamples), at most 1. Where the test rejects the
        calibration of this model only, high is at least the upper quantile of its errors; of the other only, low at most minus
        that of the other.
        """
        differences = self.errors - other.errors
        low, high = np.quantile(differences, [(1 - level) / 2, (1 + level) / 2])
        if other.is_calibrated and not self.is_calibrated:  # then the difference may be as large as this error
            high = max(high, np.quantile(self.errors, (1 + level) / 2))
        if self.is_calibrated and not other.is_calibrated:
            low = min(low, -np.quantile(other.errors, (1 + level) / 2))
        tail = int(min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0)))
        return float(low), float(high), min(1.0, 2 * (1 + tail) / (1 + len(differences)))


def _correlation(x: Float64s | None, y: Float64s | None) -> float:
    """Compute the correlation of two estimates over the same resamples, shape (resamples,); 0 without resamples or variance.

    >>> _correlation(np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 4.0])), _correlation(None, np.zeros(3))
    (1.0, 0.0)
    """
    if x is None or y is None:
        return 0.0
    scale = float(x.std() * y.std())
    return float(np.clip(np.mean((x - x.mean()) * (y - y.mean())) / scale, -1, 1)) if scale > 0 else 0.0


@dataclass(frozen=True)
class _Draws:
    """How resamples are drawn: how many, at which level, and whether the same for all models."""

    resamples: int
    paired: bool
    level: float
    rng: np.random.Generator


@dataclass(frozen=True)
class _MeasuredModels:
    """Measured models of a comparison by name, with estimator, words for the lens, number of rows (the smallest) and method.

    `sketch_errors` are the largest differences between the values of sketches and of their rows.
    """

    models: Mapping[str, Any]  # all Side, or all ResampledError
    estimator: Estimator
    lens: str
    n: int
    method: str
    paired: bool
    sketch_errors: Mapping[str, float] = field(default_factory=dict)

    def compare(self, a: str, b: str, level: float) -> Comparison:
        """Compare two of the models, with an interval that contains their difference, without adjustment of the p-value."""
        first, second = self.models[a], self.models[b]
        low, high, p = first.limits(second, level, paired=self.paired)
        difference, sketch_error = first.value - second.value, sum(self.sketch_errors.get(name, 0.0) for name in (a, b))
        interval = Interval(
            min(low, difference) - sketch_error, max(high, difference) + sketch_error, level, self.method
        )
        return Comparison(a, b, first.value, second.value, interval, p, p, self.estimator, self.lens, self.n)


def _resample_models(
    estimator: Estimator,
    all_preds: Mapping[str, Predictions],
    lenses: Mapping[str, Lens],
    units: Mapping[str, Units],
    draws: _Draws,
) -> dict[str, ResampledError]:
    """Resample the errors of models of one probability per row: with the same counts of units for all models if paired.

    They have an interval where the estimator has no plug-in bias.
    """
    counts, level, rng, models = (
        next(iter(units.values())).draws(draws.resamples, draws.rng),
        draws.level,
        draws.rng,
        {},
    )
    for name, preds in all_preds.items():
        unit_counts = counts if draws.paired else units[name].draws(draws.resamples, rng)
        lens, shares = lenses[name], lenses[name].shares(preds)
        resampled = resample_samples(
            estimator, lens.samples(preds), shares, units[name], unit_counts, level, rng, test=True
        )
        value, interval = resampled.value, None
        if estimator.bias != "plug-in":
            by_formula = shares is None and _closed_form_interval(lens.sample(preds), units[name], estimator, level)
            limits = by_formula or resampled.interval()
            interval = min(float(limits.low), value), max(float(limits.high), value)
        is_calibrated = resampled.p_value > 1 - level
        models[name] = ResampledError(value, resampled.errors, is_calibrated, interval, resampled.unselected)
    return models


def _closed_form_interval(sample: Sample, units: Units, estimator: Estimator, level: float) -> Interval | None:
    """Compute the interval of one model by formula: for clusters that of the rank series, None for other estimators.

    For rows it is the estimator's own interval, which may be None too.
    """
    if units.kind != "clusters":
        return with_level(estimator, level)(sample.profile).interval
    if not isinstance(estimator, RankSeries):
        return None
    series = clusters.ClusteredSeries.of(sample.with_units(units.of_row), units)
    return series.lower_risk.estimate(level, estimator.norm)[2]


def _resample_vectors(
    estimator: Estimator,
    all_preds: Mapping[str, Predictions],
    lenses: Mapping[str, Lens],
    units: Mapping[str, Units],
    draws: _Draws,
) -> dict[str, ResampledError]:
    """Resample the errors of models of several probabilities per row: paired models draw their units by the same seed.

    They have no interval. Refuses estimators other than GeneralizedECE, and a single unit.
    """
    if not isinstance(estimator, GeneralizedECE):
        raise InputError(
            f"{type(estimator).__name__} has no paired comparison; use tc.GeneralizedECE, or one probability"
        )
    seed, models = int(draws.rng.integers(2**63)), {}
    for i, (name, preds) in enumerate(all_preds.items()):
        units[name].refuse_one()
        rng = np.random.default_rng(seed if draws.paired else [seed, i])
        samples, shares = lenses[name].samples(preds), lenses[name].shares(preds)
        value, errors, p = estimator.compared(samples, shares, units[name].of_row, draws.resamples, rng)
        models[name] = ResampledError(value, errors, p > 1 - draws.level)
    return models


# ----------------------------------------------------------------------------------------------------
# Which model is better calibrated? Differences on the same rows, with interval and test


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Error of model `a` minus that of model `b`, with interval and test; positive means that b is better calibrated.

    Attributes
    ----------
    a : str
        Name of the first model.
    b : str
        Name of the second model.
    value_a : float
        Error of the first model.
    value_b : float
        Error of the second model.
    interval : Interval
        Confidence interval of the difference.
    p_value : float
        Two-sided, for no difference; it agrees with the interval.
    adjusted_p : float
        The same, corrected for the number of comparisons made together (Holm 1979).
    estimator : Estimator
        The estimator with its options.
    lens : str
        What was judged, in words.
    n : int
        Number of rows, of the model with fewer.

    See Also
    --------
    compare : The function that returns it.
    """

    a: str
    b: str
    value_a: float
    value_b: float
    interval: Interval
    p_value: float
    adjusted_p: float
    estimator: Estimator
    lens: str
    n: int

    @property
    def difference(self) -> float:
        """Error of `a` minus error of `b`: `value_a` - `value_b`."""
        return self.value_a - self.value_b

    def reversed(self) -> Comparison:
        """Return the same comparison with both models exchanged: names, errors, and the limits, each with the opposite sign.

        >>> import truecal as tc
        >>> y, p = [0, 1] * 50, np.linspace(0.1, 0.9, 100)
        >>> pair = tc.compare(y, p, p**2)
        >>> back = pair.reversed()
        >>> back.difference == -pair.difference, back.interval.low == -pair.interval.high
        (True, True)
        """
        interval = replace(self.interval, low=-self.interval.high, high=-self.interval.low)
        return replace(self, a=self.b, b=self.a, value_a=self.value_b, value_b=self.value_a, interval=interval)

    def row(self) -> dict[str, str | float]:
        """Return names, difference, interval and p-values, as JSON and pages show them.

        >>> import truecal as tc
        >>> y, p = [0, 1] * 50, np.linspace(0.1, 0.9, 100)
        >>> list(tc.compare(y, p, p**2).row())
        ['a', 'b', 'difference', 'low', 'high', 'p_value', 'adjusted_p']
        """
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "low": float(self.interval.low),
            "high": float(self.interval.high),
            "p_value": self.p_value,
            "adjusted_p": self.adjusted_p,
        }

    def frame(self) -> Frame:
        """Tabulate the comparison: both errors, their difference, its interval and p-values.

        >>> import truecal as tc
        >>> y, p = [0, 1] * 50, np.linspace(0.1, 0.9, 100)
        >>> tc.compare(y, p, p**2).frame().columns
        ('a', 'b', 'difference', 'low', 'high', 'p_value', 'adjusted_p', 'value_a', 'value_b', 'n')
        """
        return Frame.from_records([{**self.row(), "value_a": self.value_a, "value_b": self.value_b, "n": self.n}])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, with "difference"; the estimator as text."""
        return {**super().to_dict(), "difference": self.difference, "estimator": repr(self.estimator)}

    def __str__(self) -> str:
        """Write both errors, their difference with its interval, level, adjusted p-value, estimator, lens and n in one line."""
        low, high = float(self.interval.low), float(self.interval.high)
        return (
            f"{self.a} {self.value_a:.4f} - {self.b} {self.value_b:.4f} = {self.difference:+.4f} [{low:+.4f}, {high:+.4f}] "
            f"at {self.interval.level:.0%}, {digits.p_equation(self.adjusted_p)} "
            f"({type(self.estimator).__name__}, {self.lens}, n={self.n})"
        )


def compare(
    y_true: ArrayLike | Predictions | Sketch,
    prob_a: ArrayLike | Predictions | Sketch,
    prob_b: ArrayLike | None = None,
    *,
    estimator: Estimator | ErrorFunction | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    classes: Sequence[object] | None = None,
    judge: ArrayLike | None = None,
    names: tuple[str, str] = ("a", "b"),
    key: str | None = None,
    paired: bool = True,
    resamples: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Comparison:
    """Compare the calibration errors of two models, or of one model before and after recalibration.

    Parameters
    ----------
    y_true : array-like of shape (n,), Predictions or Sketch
        Labels; or the Predictions (or the Sketch) of the first model, whose labels may be each model's own (whether *its*
        answer was correct).
    prob_a : array-like of shape (n,) or (n, classes), Predictions or Sketch
        Probabilities of the first model; or the Predictions (or the Sketch) of the second one.
    prob_b : array-like of shape (n,) or (n, classes), default None
        Probabilities of the second model; None after Predictions or Sketches.
    estimator : Estimator or callable, default None
        As in :func:`calibration_error`.
    lens : Lens, default None
        What is judged, as in :func:`calibration_error`.
    sample_weight : array-like of shape (n,), default None
        Whole numbers count repetitions, other weights are importance weights.
    clusters : array-like of shape (n,), default None
        Marks rows that are not independent by equal values.
    classes : sequence, default None
        Names of the classes in the order of the columns.
    judge : array-like of shape (n,) or (n, judges), default None
        Verdicts of a judge for every row; labels may then be missing (NaN) where nobody checked, as in
        :func:`calibration_error`. All models need the same trusted rows, in the same order.
    names : tuple of two str, default ("a", "b")
        Names of the models.
    key : str, default None
        A column of Predictions whose values name what the models judged; rows of one key are drawn together. None pairs rows
        by their position.
    paired : bool, default True
        Whether the models judged the same rows; False draws the rows of each model by themselves.
    resamples : int, default 1000
        Number of resamples of estimators that have no closed form.
    level : float, default 0.95
        Level of the confidence interval.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the resamples.

    Returns
    -------
    Comparison
        Error of the first model minus that of the second, with interval and p-value.

    Raises
    ------
    InputError
        Rows, labels or clusters of the models do not belong together, or an option is invalid.

    Notes
    -----
    What the models have in common cancels. Both estimates of the rank series are drawn from their joint
    distribution (docs/methods/rank-series.md, 21 and 22). Of other estimators the interval is made of those of both errors
    and the correlation of their estimates over rows (or whole clusters) drawn with replacement, the same for both models
    (Zou and Donner 2008). Sketches do not store which row is which: they are compared unpaired, and what they leave open is
    added to the interval. The p-value agrees with the interval.

    References
    ----------
    Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general approach. Statistics
    in Medicine 27, 1693-1702. doi:10.1002/sim.3095

    See Also
    --------
    compare_many : All pairs of several models.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> comparison = tc.compare(y, p**2, p, names=("squared", "plain"))
    >>> comparison.p_value < 0.01, comparison.interval.low > 0
    (True, True)
    """
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or names[0] == names[1]:
        raise InputError(f"names must be two different texts, one for each model, not {names!r}")
    labels: Any = y_true
    models: dict[str, Any] | None = {names[0]: prob_a, names[1]: prob_b}
    if isinstance(y_true, Predictions | Sketch):
        if not isinstance(prob_a, Predictions | Sketch) or prob_b is not None:
            raise InputError("compare two Predictions, compare(preds_a, preds_b), or two arrays with their labels")
        if any(option is not None for option in (sample_weight, clusters, classes, judge)):
            raise InputError("Predictions hold their weights, clusters, classes and judge; leave them out")
        labels, models = {names[0]: y_true, names[1]: prob_a}, None
    elif prob_b is None or isinstance(prob_a, Predictions | Sketch):
        raise InputError("compare(y_true, prob_a, prob_b) needs the probabilities of both models")
    return compare_many(
        labels,
        models,
        estimator=estimator,
        lens=lens,
        sample_weight=sample_weight,
        clusters=clusters,
        classes=classes,
        judge=judge,
        key=key,
        paired=paired,
        resamples=resamples,
        level=level,
        rng=rng,
    )[0]


def compare_many(
    y_true: ArrayLike | Mapping[str, Predictions] | Mapping[str, Sketch] | Mapping[str, Predictions | Sketch],
    probs: Mapping[str, ArrayLike] | None = None,
    *,
    reference: str | None = None,
    estimator: Estimator | ErrorFunction | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    classes: Sequence[object] | None = None,
    judge: ArrayLike | None = None,
    key: str | None = None,
    paired: bool = True,
    resamples: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> list[Comparison]:
    """Compare every pair of models, or every model with a reference, with p-values adjusted for all pairs.

    Parameters
    ----------
    y_true : array-like of shape (n,), or mapping of str to Predictions or Sketch
        Labels; or the Predictions (or Sketches) of all models by name.
    probs : mapping of str to array-like, default None
        Probabilities of every model by name; None after a mapping of Predictions or Sketches.
    reference : str, default None
        Compare every other model with this one only.
    estimator : Estimator or callable, default None
        As in :func:`calibration_error`.
    lens : Lens, default None
        What is judged, as in :func:`calibration_error`.
    sample_weight : array-like of shape (n,), default None
        Whole numbers count repetitions, other weights are importance weights.
    clusters : array-like of shape (n,), default None
        Marks rows that are not independent by equal values.
    classes : sequence, default None
        Names of the classes in the order of the columns.
    judge : array-like of shape (n,) or (n, judges), default None
        Verdicts of a judge for every row; labels may then be missing (NaN) where nobody checked, as in
        :func:`calibration_error`. All models need the same trusted rows, in the same order.
    key : str, default None
        A column of Predictions whose values name what the models judged; rows of one key are drawn together. None pairs rows
        by their position.
    paired : bool, default True
        Whether the models judged the same rows; False draws the rows of each model by themselves.
    resamples : int, default 1000
        Number of resamples of estimators that have no closed form.
    level : float, default 0.95
        Level of the confidence interval.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the resamples.

    Returns
    -------
    list of Comparison
        One for each pair, in the order of the names.

    Raises
    ------
    InputError
        There are fewer than two models, or their rows, labels or clusters do not belong together.

    Notes
    -----
    Intervals are those of single comparisons; `adjusted_p` keeps the probability of any false difference among all pairs
    below alpha (Holm 1979). At least `resamples` are drawn, and more where fewer could not show any difference after the
    correction: 2 pairs / (1 - level).

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, 65-70.

    See Also
    --------
    compare : One pair.
    holm : The adjustment of p-values.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> [(c.a, c.b) for c in tc.inference.compare_many(y, {"x": p, "y": p**2, "z": p**3})]
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    """
    options.resamples(resamples)
    options.level(level)
    check_lens(lens)
    rows = {"weights": sample_weight, "clusters": clusters, "classes": classes, "judge": judge}
    data = _data_by_name(y_true, probs, rows)
    pairs = _pairs(list(data), reference)
    draws = _Draws(max(resamples, ceil(2 * len(pairs) / (1 - level))), paired, level, options.generator(rng))
    chosen = None if estimator is None else as_estimator(estimator)
    measure_all = (
        _measure_sketches if any(isinstance(model, Sketch) for model in data.values()) else _measure_predictions
    )
    compared = measure_all(chosen, data, lens, key, draws)
    comparisons = [compared.compare(a, b, level) for a, b in pairs]
    adjusted = holm(np.array([comparison.p_value for comparison in comparisons])).tolist()
    return [replace(pair, adjusted_p=p) for pair, p in zip(comparisons, adjusted, strict=True)]


def _data_by_name(y_true: Any, probs: Mapping[str, ArrayLike] | None, rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return Predictions or Sketches by name: a mapping `y_true` as it is, or Predictions of labels `y_true` and each of `probs`.

    `rows` are keyword arguments of Predictions.from_probs. Raises InputError for other types.
    """
    if probs is not None:
        options.instance(probs, Mapping, "probs", "a mapping of models by name", "write {'a': probs_a, 'b': probs_b}")
        return {name: Predictions.from_probs(p, y_true, **rows) for name, p in probs.items()}
    if not isinstance(y_true, Mapping) or not all(isinstance(d, Predictions | Sketch) for d in y_true.values()):
        raise InputError(
            "compare_many(y_true, probs) needs arrays, compare_many(models) Predictions by name (or Sketches)"
        )
    return dict(y_true)


def _pairs(names: Sequence[str], reference: str | None) -> list[tuple[str, str]]:
    """List the pairs (a, b) to compare: all of them in order, or (name, reference) for every other name.

    Raises InputError for fewer than two names, and for a reference that is none of them.

    >>> _pairs(["x", "y", "z"], None), _pairs(["x", "y", "z"], "y")
    ([('x', 'y'), ('x', 'z'), ('y', 'z')], [('x', 'y'), ('z', 'y')])
    """
    if len(names) < 2:
        raise InputError("a comparison needs at least two models with different names")
    if reference is None:
        return list(combinations(names, 2))
    if reference not in names:
        raise InputError(f"reference {reference!r} is not among the models {', '.join(names)}")
    return [(name, reference) for name in names if name != reference]


def _measure_predictions(
    estimator: Estimator | None, data: Mapping[str, Predictions], lens: Lens | None, key: str | None, draws: _Draws
) -> _MeasuredModels:
    """Measure every model: rank series of one dataset and norm 2 in closed form, all else on resamples.

    `estimator` None is the rank series, or GeneralizedECE for a lens on several probabilities. Where few rows have trusted labels
    and all have verdicts of a judge, these are used too if they help any model, else the trusted rows alone; another estimator or
    lens, a key, and unpaired models are then refused.
    """
    with_judge: dict[str, JudgedSeries] = {}
    if any(preds.judge is not None for preds in data.values()):
        refuse_options(estimator, lens)
        if key is not None or not draws.paired:
            raise InputError("models with a judge are compared row by row, in order; leave out key= and paired=False")
        with_judge = judged_series(data)
        if not any(series.judge_helps for series in with_judge.values()):
            data, with_judge = {name: preds.take(with_judge[name].rows.trusted) for name, preds in data.items()}, {}
    estimator = estimator or (GeneralizedECE() if lens is not None and lens.several else RankSeries())
    if isinstance(estimator, VectorEstimator):
        lens = estimator.own_lens(lens)
    lenses = {name: lens or default_lens(preds) for name, preds in data.items()}
    first, engine = next(iter(data)), "rank series"
    models: dict[str, Any] = {}
    if with_judge:
        models = {name: series.side for name, series in with_judge.items()}
        unit = "rows" if data[first].clusters is None else "clusters"
        method = f"{engine} of {unit} with a judge; trusted labels must be a random sample"
    else:
        units = _units(data, lenses, key, draws)
        one_dataset = all(lenses[name].shares(preds) is None for name, preds in data.items())
        if one_dataset and isinstance(estimator, RankSeries) and estimator.norm == 2:
            models = {name: comparison_side(lenses[name].sample(preds), units[name]) for name, preds in data.items()}
        else:
            engine = "bootstrap"
            resample = _resample_vectors if isinstance(estimator, VectorEstimator) else _resample_models
            models = resample(estimator, data, lenses, units, draws)
        method = f"{engine} of {units[first].kind}"
    method = f"paired {method}" if draws.paired else f"{method}, unpaired"
    n = min(map(len, data.values()))
    return _MeasuredModels(models, estimator, lenses[first].describe(data[first]), n, method, draws.paired)


def _measure_sketches(
    estimator: Estimator | None, data: Mapping[str, Any], lens: Lens | None, key: str | None, draws: _Draws
) -> _MeasuredModels:
    """Measure models given as sketches, unpaired; raise InputError for a mixture with Predictions, a lens or a key.

    The rank series of norm 2 in closed form, all else by resamples of the rows in the cells.
    """
    if not all(isinstance(model, Sketch) for model in data.values()) or lens is not None or key is not None:
        raise InputError("sketches are compared with sketches, unpaired and by the lens they were made with")
    estimator, level, rng = estimator or RankSeries(), draws.level, draws.rng
    models: dict[str, Any] = {}
    errors = {}
    for name, sketch in data.items():
        profile, estimate = sketch.to_profile(), measure(sketch, estimator=estimator, level=level, rng=rng)
        errors[name] = estimate.sketch_error or 0.0
        if isinstance(estimator, RankSeries) and estimator.norm == 2:
            models[name] = comparison_side(profile)
            continue
        resampled = resample_rows(estimator, profile, resamples=draws.resamples, level=level, rng=rng)
        closed = None if estimator.bias == "plug-in" else estimate.interval
        interval = None if closed is None else (float(closed.low), float(closed.high))
        p = 0.0 if estimate.p_value is None else float(estimate.p_value)
        models[name] = ResampledError(float(estimate), resampled.errors, p > 1 - level, interval)
    n, method = min(sketch.rows for sketch in data.values()), "rows, unpaired, and what the sketches leave open"
    return _MeasuredModels(models, estimator, "scores", n, method, False, errors)


def _units(
    all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], key: str | None, draws: _Draws
) -> dict[str, Units]:
    """Choose the units (rows or clusters) that are drawn for each model, by name.

    Paired models have the same units, by position or by the values of the column `key`, so that one draw is used for all of
    them; unpaired ones have their own. Refuses a key with unpaired models.
    """
    if not draws.paired:
        if key is not None:
            raise InputError("key= says which rows belong together, paired=False that none do; give one")
        return {name: Units.of(next(lenses[name].samples(preds)), draws.rng) for name, preds in all_preds.items()}
    if key is not None:
        return _units_by_key(all_preds, lenses, key, draws.rng)
    (first, preds), *others = all_preds.items()
    for name, model in others:
        _refuse_other_rows(first, preds, name, model)
    return dict.fromkeys(all_preds, Units.of(next(lenses[first].samples(preds)), draws.rng))


def _refuse_other_rows(first: str, preds: Predictions, name: str, model: Predictions) -> None:
    """Raise InputError if the rows of model `name` are not those of the first model, in the same order.

    They must agree in number, labels and clusters. Binary labels may differ, as whether each model's own answer was correct,
    unless they have the same number of ones in an order unrelated to that of the first (and the first is not made of answers): a
    correlation below 3 / sqrt(rows).
    """
    if len(model) != len(preds):
        raise InputError(
            f"{first} has {len(preds)} rows and {name} has {len(model)}: pair them by a column (key=, --key), or compare them "
            "unpaired (paired=False, --unpaired)"
        )
    labels = model.labels
    if preds.classes and model.classes and {*preds.classes} == {*model.classes}:
        positions = np.array([preds.class_index(label) for label in model.classes])
        labels = labels[:, np.argsort(positions)] if model.multilabel else positions[labels]
    if not np.array_equal(labels, preds.labels):
        if preds.class_count > 2 or preds.multilabel:
            raise InputError(
                f"{name} and {first} do not hold the same rows in the same order: their labels differ; pair rows by a column "
                "(key=, --key)"
            )
        # Labels may be each model's own. As many of each class in unrelated order are those of other rows; derived: unrelated
        # labels have a correlation within three standard errors of 0.
        unrelated = np.corrcoef(labels, preds.labels)[0, 1] * np.sqrt(len(labels)) < 3
        if not preds.of_answers and labels.sum() == preds.labels.sum() and unrelated:
            raise InputError(
                f"{name} and {first} hold the same labels in another order, so rows do not belong together by position; pair "
                "them by a column (key=, --key), or compare them unpaired (paired=False, --unpaired); labels that say whether "
                "each model's own answer was correct are those of Predictions.from_answers"
            )
    if not np.array_equal(np.asarray(model.clusters), np.asarray(preds.clusters)):
        raise InputError(f"the clusters of {name} are not those of {first}; rows that are paired share their cluster")


def _units_by_key(
    all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], key: str, rng: np.random.Generator
) -> dict[str, Units]:
    """Return units of each model, by name: the values of the column `key`, or the clusters of the first model.

    Rows of one key have one unit in all models. Raises InputError for missing keys, keys that are not in all models, and a key in
    several clusters. Units are "rows" if every key has one row in every model and there are no clusters, else "clusters".
    """
    first, keys = next(iter(all_preds)), {}
    for name, preds in all_preds.items():
        validation.refuse_missing(column(preds, key), f"{key!r} of {name}", "key")
        keys[name] = column(preds, key).astype(str)
        unmatched = np.setxor1d(keys[first], keys[name])
        if len(unmatched):
            owner = first if unmatched[0] in keys[first] else name
            raise InputError(
                f"{len(unmatched)} values of {key!r} are not in both {first} and {name}, such as {str(unmatched[0])!r} (in {owner} "
                "only); compare the rows they share, or unpaired"
            )
    values, codes = np.unique(keys[first], return_inverse=True)
    clusters, unit_of_value = all_preds[first].clusters, np.arange(len(values))
    if clusters is not None:
        unit_of_value[codes] = clusters
        if not np.array_equal(unit_of_value[codes], clusters):
            raise InputError(f"rows of one {key!r} lie in several clusters; a key belongs to one cluster")
    units = Units.of(next(lenses[first].samples(all_preds[first])).with_units(unit_of_value[codes]), rng)
    unit_of_value[codes] = units.of_row
    one_row_each = clusters is None and all(len(model) == len(values) for model in keys.values())
    kind = "rows" if one_row_each else "clusters"
    return {name: Units(unit_of_value[np.searchsorted(values, k)], units.count, kind) for name, k in keys.items()}
