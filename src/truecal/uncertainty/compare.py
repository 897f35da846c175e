"""Which model is better calibrated? Differences on the same rows, with interval and test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal.checks import check_level, check_whole, generator_of
from truecal.errors import InputError
from truecal.estimate import Estimator, Interval, Joint, RankSeries, Units, check_estimator, resampled_jointly
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import Predictions
from truecal.select import column
from truecal.types import Float64s
from truecal.uncertainty.multiplicity import holm


@dataclass(frozen=True)
class Comparison:
    """Error of model `a` minus error of model `b` on the same rows; positive means that b is better calibrated.

    `differences` is the resampled distribution, already on the scale of the true difference; `p_value` is two-sided, for no
    difference, and agrees with the interval; `adjusted_p` is corrected for the number of comparisons made together.
    """

    a: str
    b: str
    value_a: float
    value_b: float
    interval: Interval
    p_value: float
    adjusted_p: float
    differences: Float64s
    estimator: Estimator
    lens: str
    n: int

    @property
    def difference(self) -> float:
        return self.value_a - self.value_b

    def row(self) -> dict[str, str | float]:
        """Names, difference, interval and p-values, as JSON and pages show them."""
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "low": float(self.interval.low),
            "high": float(self.interval.high),
            "p_value": self.p_value,
            "adjusted_p": self.adjusted_p,
        }

    def __str__(self) -> str:
        low, high = float(self.interval.low), float(self.interval.high)
        return (
            f"{self.a} {self.value_a:.4f} - {self.b} {self.value_b:.4f} = {self.difference:+.4f} [{low:+.4f}, {high:+.4f}] "
            f"at {self.interval.level:.0%}, p={self.adjusted_p:.3g} ({type(self.estimator).__name__}, {self.lens}, n={self.n})"
        )


def compare(
    y_true: ArrayLike | Predictions,
    prob_a: ArrayLike | Predictions,
    prob_b: ArrayLike | None = None,
    *,
    names: tuple[str, str] = ("a", "b"),
    key: str | None = None,
    paired: bool = True,
    **options: Any,
) -> Comparison:
    """Difference of two models' calibration errors, also of one model before and after recalibration.

    `compare(y_true, prob_a, prob_b)` for two models of the same labels, or `compare(preds_a, preds_b)` for models with labels of
    their own (whether each one's own answer was right), paired by row, by the column `key`, or not at all.

    Rows (or whole clusters) are drawn with replacement, the same for both models if paired, so what the models have in common
    cancels. With P the estimates as powers and d the deviations of their resamples (see :class:`Bootstrap`), the differences
    root(P_a - d_a) - root(P_b - d_b) give the interval, and the share of them on either side of 0 the p-value. An estimate of no
    error at all is still above 0; so where calibration is rejected for one model and not for the other, the interval reaches to
    where the whole error of the one would be the difference.

    Parameters
    ----------
    key : column of both that says which rows belong together; every value must occur once in each. paired=False: different rows.
    options : estimator, lens, sample_weight, clusters, classes, resamples, level and rng, as in :func:`compare_many`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> found = compare(y, p**2, p, names=("squared", "plain"))
    >>> found.p_value < 0.01, found.interval.low > 0
    (True, True)
    >>> monday, tuesday = (tc.Predictions.from_probs(p[i::2], y[i::2]) for i in (0, 1))
    >>> 0 in compare(monday, tuesday, paired=False).interval
    True
    """
    if not isinstance(y_true, Predictions):
        if prob_b is None or isinstance(prob_a, Predictions):
            raise InputError("say compare(y_true, prob_a, prob_b), or compare(preds_a, preds_b)")
        if key is not None or not paired:
            raise InputError("key= and paired= are for Predictions: models given as arrays share their rows")
        return compare_many(y_true, {names[0]: prob_a, names[1]: prob_b}, **options)[0]
    if not isinstance(prob_a, Predictions) or prob_b is not None:
        raise InputError("two Predictions are compared as compare(preds_a, preds_b)")
    return compare_many({names[0]: y_true, names[1]: prob_a}, key=key, paired=paired, **options)[0]


def compare_many(
    y_true: ArrayLike | Mapping[str, Predictions],
    probs: Mapping[str, ArrayLike] | None = None,
    *,
    reference: str | None = None,
    key: str | None = None,
    paired: bool = True,
    estimator: Estimator | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    classes: Sequence[object] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> list[Comparison]:
    """Every pair of models, or every model with one `reference`, p-values corrected by Holm (1979).

    Models are given as probabilities by name for the same labels, or as one mapping of names to Predictions with labels of their
    own. Intervals are those of single comparisons; `adjusted_p` keeps the chance of any false difference among all pairs below
    alpha. `resamples` are drawn at least; more where fewer could not show a difference after the correction: 2 pairs / (1 - level).

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> [(c.a, c.b) for c in compare_many(y, {"x": p, "y": p**2, "z": p**3})]
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    """
    check_whole(resamples, "resamples")
    check_level(level)
    check_lens(lens)
    estimator = RankSeries() if estimator is None else estimator
    check_estimator(estimator)
    if isinstance(y_true, Mapping):
        if probs is not None or any(a is not None for a in (sample_weight, clusters, classes)):
            raise InputError(
                "Predictions carry labels, weights, clusters and classes of their own; give nothing beside them"
            )
        models = dict(y_true)
    else:
        if not isinstance(probs, Mapping):
            raise InputError("models are a mapping such as {'old': prob_old, 'new': prob_new}")
        given = {"weights": sample_weight, "clusters": clusters, "classes": classes}
        models = {name: Predictions.from_probs(p, y_true, **given) for name, p in probs.items()}  # type: ignore[arg-type]
    if len(models) < 2:
        raise InputError("a comparison needs at least two models with different names")
    if reference is not None and reference not in models:
        raise InputError(f"reference {reference!r} is not among the models {', '.join(models)}")
    pairs = list(combinations(models, 2)) if reference is None else [(m, reference) for m in models if m != reference]
    models = _aligned(models, key) if paired else models
    draws = max(resamples, ceil(2 * len(pairs) / (1 - level)))
    return _compared(models, pairs, estimator, lens, draws, level, generator_of(rng), paired)


def _aligned(models: dict[str, Predictions], key: str | None) -> dict[str, Predictions]:
    """The models with their rows in the same order, by the values of a column."""
    (name, first), *others = models.items()
    if key is None:
        for other, preds in others:
            if len(preds) != len(first):
                raise InputError(
                    f"{name} has {len(first)} rows and {other} {len(preds)}; pair them by a column (key=), or say paired=False"
                )
        return models
    order = {}
    for model, preds in models.items():
        values, at, times = np.unique(column(preds, key), return_index=True, return_counts=True)
        if (times > 1).any():
            raise InputError(
                f"{key} {values[times > 1][0]!r} occurs {times.max()} times in {model}; a key names one row"
            )
        order[model] = (values, at)
    common = order[name][0]
    for model, (values, _) in order.items():
        if not np.array_equal(values, common):
            odd = np.setxor1d(values, common)
            raise InputError(
                f"{name} and {model} differ in {len(odd)} values of {key}, such as {odd[0]!r}; keep the rows of both"
            )
    return {model: preds.take(order[model][1]) for model, preds in models.items()}


def _compared(
    all_preds: Mapping[str, Predictions],
    pairs: Sequence[tuple[str, str]],
    estimator: Estimator,
    lens: Lens | None,
    resamples: int,
    level: float,
    rng: np.random.Generator,
    paired: bool,
) -> list[Comparison]:
    """All pairs, from resamples that are the same for all models if they are paired."""
    first = next(iter(all_preds.values()))
    judged = default_lens(first) if lens is None else lens
    units = Units.of(next(judged.samples(first)), rng)
    counts = units.draws(resamples, rng)
    models = {}
    for name, preds in all_preds.items():
        own = default_lens(preds) if lens is None else lens
        if not paired and preds is not first:
            units = Units.of(next(own.samples(preds)), rng)
            counts = units.draws(resamples, rng)
        joint = resampled_jointly(
            estimator, own.samples(preds), own.shares(preds), units, counts, rng, always_test=True
        )
        models[name] = _Model.of(joint, estimator, level)
    method = f"{'paired' if paired else 'unpaired'} bootstrap of {units.kind}"
    comparisons = [_pair(a, b, models, level, method, estimator, judged.describe(first), len(first)) for a, b in pairs]
    adjusted = holm(np.array([c.p_value for c in comparisons]))
    return [replace(c, adjusted_p=float(p)) for c, p in zip(comparisons, adjusted, strict=True)]


@dataclass(frozen=True)
class _Model:
    """What a comparison needs of one model."""

    value: float
    drawn: Float64s  # where its true error may be, resample by resample
    calibrated: bool  # whether it may be perfectly calibrated

    @classmethod
    def of(cls, joint: Joint, estimator: Estimator, level: float) -> "_Model":
        return cls(
            float(estimator.root(np.array([joint.power]))[0]),
            np.minimum(estimator.root(joint.power - joint.deviations), 1.0),
            joint.p_value > 1 - level,
        )


def _pair(
    a: str,
    b: str,
    models: Mapping[str, _Model],
    level: float,
    method: str,
    estimator: Estimator,
    lens: str,
    n: int,
) -> Comparison:
    one, other = models[a], models[b]
    d = one.drawn - other.drawn
    difference = one.value - other.value
    low, high = np.quantile(d, [(1 - level) / 2, (1 + level) / 2])
    if other.calibrated and not one.calibrated:  # then all of the one error may be the difference
        high = max(high, np.quantile(one.drawn, (1 + level) / 2))
    if one.calibrated and not other.calibrated:
        low = min(low, -np.quantile(other.drawn, (1 + level) / 2))
    m = len(d)
    tail = int(min(np.count_nonzero(d <= 0), np.count_nonzero(d >= 0)))
    p = min(1.0, 2 * (1 + tail) / (1 + m))
    interval = Interval(min(float(low), difference), max(float(high), difference), level, method)
    return Comparison(a, b, one.value, other.value, interval, p, p, d, estimator, lens, n)
