"""The models of a comparison: their errors and intervals, where their true errors may be resample by resample, and limits of a
difference of two of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil
from statistics import NormalDist
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.base import Estimator, VectorEstimator, with_level
from truecal.estimators.bootstrap import (
    Bootstrap,
    HasClusteredForm,
    resample_rows,
    resample_units,
    sample_sums,
    sign_flips,
)
from truecal.estimators.estimate import Interval
from truecal.estimators.functions import ErrorFunction, as_estimator
from truecal.estimators.generalized.estimator import GeneralizedECE, ResampledErrors
from truecal.estimators.rank_series import clusters
from truecal.estimators.rank_series.compare import Side
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.inference.judged import judged_sides, refuse_options
from truecal.inference.measurement import measure
from truecal.inference.tests import holm
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.lenses.sample import Sample
from truecal.predictions import validation
from truecal.predictions.predictions import Predictions
from truecal.predictions.selection import column
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.resampling import units
from truecal.resampling.units import Units
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# The models of a comparison: their errors and intervals, where their true errors may be resample by resample, and limits of a


@runtime_checkable
class HasPairedForm(Protocol):
    """An estimator that compares two models by formula, where `paired` holds."""

    @property
    def paired(self) -> bool: ...
    def side(self, data: Sample | Profile, units: Units | None = None) -> Side: ...


@runtime_checkable
class HasResampledErrors(Protocol):
    """An estimator of several probabilities that resamples the units of a comparison by itself."""

    def compared(
        self,
        samples: Iterable[Sample],
        shares: Float64s | None,
        units: Indices,
        resamples: int,
        rng: np.random.Generator,
    ) -> ResampledErrors: ...


@dataclass(frozen=True)
class Model:
    """What a comparison needs of one model."""

    value: float
    drawn: Float64s | None = None  # where its true error may be, resample by resample
    calibrated: bool = False  # whether it may be perfectly calibrated
    unseen: float = 0.0  # how far a sketch may be from the value of all rows
    interval: tuple[float, float] | None = None  # its own, where the value is free of bias
    unselected: Float64s | None = None  # powers of the resamples before anything was chosen from the data
    side: Side | None = None  # of an estimator that needs no resamples

    @classmethod
    def of(cls, resampled: Bootstrap, level: float, interval: Interval | None) -> "Model":
        """From resamples of rows or of whole units."""
        value = resampled.value
        limits = None if interval is None else (min(float(interval.low), value), max(float(interval.high), value))
        return cls(value, resampled.errors, resampled.p_value > 1 - level, 0.0, limits, resampled.unselected)

    @classmethod
    def of_sketch(
        cls, sketch: Sketch, estimator: Estimator, resamples: int, level: float, rng: np.random.Generator
    ) -> "Model":
        """From the cells of a sketch, which are drawn like the rows in them."""
        estimate = measure(sketch, estimator=estimator, level=level, rng=rng)
        if isinstance(estimator, HasPairedForm) and estimator.paired:
            side = estimator.side(sketch.to_profile())
            return cls(float(estimate), unseen=estimate.sketch_error or 0.0, side=side)
        drawn = resample_rows(estimator, sketch.to_profile(), resamples=resamples, level=level, rng=rng).errors
        p = 0.0 if estimate.p_value is None else float(estimate.p_value)
        ends = None
        if estimator.bias != "plug-in" and estimate.interval is not None:
            ends = float(estimate.interval.low), float(estimate.interval.high)
        return cls(float(estimate), drawn, p > 1 - level, estimate.sketch_error or 0.0, ends)


@dataclass(frozen=True)
class Drawing:
    """How resamples are drawn: which units, how many, and whether the same for all models."""

    units: Mapping[str, Units]
    resamples: int
    paired: bool
    level: float
    rng: np.random.Generator


def by_counts(
    estimator: Estimator, all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], drawing: Drawing
) -> dict[str, Model]:
    """Errors of one probability: by formula where the estimator has one, else resamples are counts of units, for all models."""
    units, rng = drawing.units, drawing.rng
    one_dataset = all(lenses[name].shares(preds) is None for name, preds in all_preds.items())
    if one_dataset and isinstance(estimator, HasPairedForm) and estimator.paired:
        sides = {name: estimator.side(lenses[name].sample(preds), units[name]) for name, preds in all_preds.items()}
        return {name: Model(side.value, side=side) for name, side in sides.items()}
    counts = next(iter(units.values())).draws(drawing.resamples, rng)
    models = {}
    for name, preds in all_preds.items():
        own = counts if drawing.paired else units[name].draws(drawing.resamples, rng)
        shares = lenses[name].shares(preds)
        flips = sign_flips(units[name], 1 if shares is None else len(shares), rng)
        parts = sample_sums(estimator, lenses[name].samples(preds), units[name], flips)
        level = drawing.level
        resampled = resample_units(estimator, parts, shares, units[name], own, level, rng, test=True, flips=flips)
        interval = None
        if estimator.bias != "plug-in":
            if shares is None:
                interval = _by_formula(lenses[name].sample(preds), units[name], estimator, level)
            interval = resampled.interval() if interval is None else interval
        models[name] = Model.of(resampled, level, interval)
    return models


def _by_formula(sample: Sample, units: units.Units, estimator: Estimator, level: float) -> Interval | None:
    """The interval of one model by itself, of an estimator that needs no resamples for it."""
    if units.kind == "clusters":
        series = clusters.ClusteredSeries.of(sample.with_units(units.of_row), units)
        return estimator.of_clusters(series, level)[2] if isinstance(estimator, HasClusteredForm) else None
    return with_level(estimator, level)(sample.profile).interval


def in_context(
    estimator: Estimator, all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], drawing: Drawing
) -> dict[str, Model]:
    """Errors of several probabilities: paired models draw their units by the same seed."""
    seed = int(drawing.rng.integers(2**63))
    models = {}
    for i, (name, preds) in enumerate(all_preds.items()):
        units = drawing.units[name]
        units.refuse_one()
        rng = np.random.default_rng(seed if drawing.paired else [seed, i])
        samples, shares = lenses[name].samples(preds), lenses[name].shares(preds)
        if not isinstance(estimator, HasResampledErrors):
            raise InputError(
                f"{type(estimator).__name__} has no paired comparison; use tc.GeneralizedECE, or one probability"
            )
        found = estimator.compared(samples, shares, units.of_row, drawing.resamples, rng)
        models[name] = Model(found.value, found.drawn, found.p_value > 1 - drawing.level)
    return models


def limits(one: Model, other: Model, level: float, *, paired: bool) -> tuple[float, float, float]:
    """Limits of the difference of two errors, and the p-value of none.

    Zou and Donner (2008): where l and u are the distances from a value to the ends of its interval, the lower end of a - b lies
    sqrt(l_a^2 + u_b^2 - 2 rho l_a u_b) below the difference of the values, the upper end sqrt(u_a^2 + l_b^2 - 2 rho u_a l_b) above
    it, rho the correlation of the estimates. The errors' own intervals hold near zero and away from it, so those of the difference
    do. Values that are biased are compared by the quantiles of resampled differences instead; those of the rank series by what is
    known of both estimates together (:meth:`rank_series.Side.limits`).
    """
    if one.side is not None and other.side is not None:
        return one.side.limits(other.side, level, paired=paired)
    if one.interval is None or other.interval is None:
        return _by_quantiles(one, other, level)
    difference = one.value - other.value
    rho = _correlation(one.unselected, other.unselected) if paired else 0.0
    down = _reach(one.value - one.interval[0], other.interval[1] - other.value, rho)
    up = _reach(one.interval[1] - one.value, other.value - other.interval[0], rho)
    if paired and np.array_equal(_drawn(one), _drawn(other)):
        down = up = 0.0  # the same model twice
    normal = NormalDist()
    away, reach = abs(difference), down if difference > 0 else up
    z = normal.inv_cdf(0.5 + level / 2) * away / reach if reach > 0 else 0.0
    return difference - down, difference + up, min(max(2 * normal.cdf(-z), float(np.finfo(float).tiny)), 1.0)


def _correlation(one: Float64s | None, other: Float64s | None) -> float:
    """Of both estimates on the same resamples."""
    if one is None or other is None:
        return 0.0
    spread = float(one.std() * other.std())
    return float(np.clip(np.mean((one - one.mean()) * (other - other.mean())) / spread, -1, 1)) if spread > 0 else 0.0


def _reach(one: float, other: float, rho: float) -> float:
    """How far a difference may be off whose parts may be off by `one` and `other`."""
    return float(np.sqrt(max(one**2 + other**2 - 2 * rho * one * other, 0.0)))


def _drawn(model: Model) -> Float64s:
    assert model.drawn is not None
    return model.drawn


def _by_quantiles(one: Model, other: Model, level: float) -> tuple[float, float, float]:
    d = _drawn(one) - _drawn(other)
    low, high = np.quantile(d, [(1 - level) / 2, (1 + level) / 2])
    if other.calibrated and not one.calibrated:  # then all of the one error may be the difference
        high = max(high, np.quantile(_drawn(one), (1 + level) / 2))
    if one.calibrated and not other.calibrated:
        low = min(low, -np.quantile(_drawn(other), (1 + level) / 2))
    tail = int(min(np.count_nonzero(d <= 0), np.count_nonzero(d >= 0)))
    return float(low), float(high), min(1.0, 2 * (1 + tail) / (1 + len(d)))


# ----------------------------------------------------------------------------------------------------
# Which model is better calibrated? Differences on the same rows, with interval and test


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Error of model `a` minus error of model `b` on the same rows; positive means that b is better calibrated.

    `p_value` is two-sided, for no difference, and agrees with the interval; `adjusted_p` is corrected for the number of comparisons
    made together.
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

    def frame(self) -> Frame:
        """One row: both errors, their difference, its interval and p-values."""
        return Frame.from_records([{**self.row(), "value_a": self.value_a, "value_b": self.value_b, "n": self.n}])

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {**super().to_dict(), "difference": self.difference, "estimator": repr(self.estimator)}

    def __str__(self) -> str:
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
    """Paired difference of two models' calibration errors, also of one model before and after recalibration.

    What the models have in common cancels. Of the rank series both estimates are judged together, by draws of their common
    distribution (docs/methods/rank-series.md, 21 and 22). Of other estimators the interval is made of those of both errors and the
    correlation of their estimates (Zou and Donner 2008; see `compared.py`), which is that over rows (or whole clusters) drawn with
    replacement, the same for both models. The p-value agrees with the interval.

    compare(preds_a, preds_b) takes Predictions, whose labels may be each model's own (whether *its* answer was correct). Rows
    belong together by their place; by `key`, a column whose values name what both models judged (several rows of one key are
    drawn together); or, with paired=False, not at all: then each model's rows are drawn by themselves. So it is with two
    Sketches, which have forgotten their rows; what they leave open is added to the interval.

    With `judge`, verdicts of a judge for every row, labels may be missing (NaN) where nobody checked, as in
    :func:`calibration_error`. Both models need the same trusted rows, in the same order.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> found = compare(y, p**2, p, names=("squared", "plain"))
    >>> found.p_value < 0.01, found.interval.low > 0
    (True, True)
    """
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or names[0] == names[1]:
        raise InputError(f"names must be two different texts, one for each model, not {names!r}")
    if isinstance(y_true, Predictions | Sketch):
        if not isinstance(prob_a, Predictions | Sketch) or prob_b is not None:
            raise InputError("compare two Predictions, compare(preds_a, preds_b), or two arrays with their labels")
        if any(given is not None for given in (sample_weight, clusters, classes, judge)):
            raise InputError("Predictions hold their weights, clusters, classes and judge; leave them out")
        return compare_many(
            {names[0]: y_true, names[1]: prob_a},
            estimator=estimator,
            lens=lens,
            key=key,
            paired=paired,
            resamples=resamples,
            level=level,
            rng=rng,
        )[0]
    if prob_b is None or isinstance(prob_a, Predictions | Sketch):
        raise InputError("compare(y_true, prob_a, prob_b) needs the probabilities of both models")
    return compare_many(
        y_true,
        {names[0]: prob_a, names[1]: prob_b},
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
    """Every pair of models, or every model with one `reference`, p-values corrected by Holm (1979).

    Intervals are those of single comparisons; `adjusted_p` keeps the chance of any false difference among all pairs below alpha.
    `resamples` are drawn at least; more where fewer could not show any difference after the correction: 2 pairs / (1 - level).
    compare_many({"a": preds_a, ...}) takes Predictions; `key` and `paired` as in :func:`compare`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> [(c.a, c.b) for c in compare_many(y, {"x": p, "y": p**2, "z": p**3})]
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    """
    if probs is None:
        if not isinstance(y_true, Mapping) or not all(isinstance(d, Predictions | Sketch) for d in y_true.values()):
            raise InputError(
                "compare_many(y_true, probs) needs arrays, compare_many(models) Predictions by name (or Sketches)"
            )
        sketches = {name: data for name, data in y_true.items() if isinstance(data, Sketch)}
        if sketches:
            if len(sketches) < len(y_true) or lens is not None or key is not None:
                raise InputError("sketches are compared with sketches, unpaired and by the lens they were made with")
            return _compare_sketches(sketches, _Chosen(reference, estimator, None, None, False), resamples, level, rng)
        all_preds = {name: data for name, data in y_true.items() if isinstance(data, Predictions)}
    else:
        options.instance(probs, Mapping, "probs", "a mapping of models by name", "write {'a': probs_a, 'b': probs_b}")
        shared = {"weights": sample_weight, "clusters": clusters, "classes": classes, "judge": judge}
        all_preds = {name: Predictions.from_probs(p, y_true, **shared) for name, p in probs.items()}  # type: ignore[arg-type]
    return _compare_all(all_preds, _Chosen(reference, estimator, lens, key, paired), resamples, level, rng)


@dataclass(frozen=True)
class _Chosen:
    """What is compared, and how rows of two models belong together."""

    reference: str | None
    estimator: Estimator | ErrorFunction | None
    lens: Lens | None
    key: str | None
    paired: bool

    def judge(self) -> Estimator:
        """The estimator asked for, or the one that suits the lens."""
        several = self.lens is not None and self.lens.several
        return as_estimator(self.estimator or (GeneralizedECE() if several else RankSeries()))

    def pairs(self, names: Sequence[str]) -> list[tuple[str, str]]:
        if len(names) < 2:
            raise InputError("a comparison needs at least two models with different names")
        if self.reference is None:
            return list(combinations(names, 2))
        if self.reference not in names:
            raise InputError(f"reference {self.reference!r} is not among the models {', '.join(names)}")
        return [(name, self.reference) for name in names if name != self.reference]


def _compare_all(
    all_preds: Mapping[str, Predictions],
    chosen: _Chosen,
    resamples: int,
    level: float,
    rng: int | np.random.Generator,
) -> list[Comparison]:
    options.resamples(resamples)
    options.level(level)
    check_lens(chosen.lens)
    pairs = chosen.pairs(list(all_preds))
    if any(preds.judge is not None for preds in all_preds.values()):
        return _compare_judged(all_preds, chosen, pairs, level)
    estimator = chosen.judge()
    generator = options.generator(rng)
    lens = estimator.own_lens(chosen.lens) if isinstance(estimator, VectorEstimator) else chosen.lens
    lenses = {name: lens or default_lens(preds) for name, preds in all_preds.items()}
    units = _units(all_preds, lenses, chosen, generator)
    draws = max(resamples, ceil(2 * len(pairs) / (1 - level)))
    judge = in_context if isinstance(estimator, VectorEstimator) else by_counts
    models = judge(estimator, all_preds, lenses, Drawing(units, draws, chosen.paired, level, generator))
    first = next(iter(all_preds))
    kind = units[first].kind
    how = "rank series" if models[first].side is not None else "bootstrap"
    method = f"paired {how} of {kind}" if chosen.paired else f"{how} of {kind}, unpaired"
    described, n = lenses[first].describe(all_preds[first]), min(map(len, all_preds.values()))
    stated = _Stated(level, method, estimator, described, n, chosen.paired)
    return _adjusted([_pair(a, b, models, stated) for a, b in pairs])


def _compare_judged(
    all_preds: Mapping[str, Predictions], chosen: _Chosen, pairs: Sequence[tuple[str, str]], level: float
) -> list[Comparison]:
    """Compare models on the same rows, few of which have trusted labels."""
    if chosen.key is not None or not chosen.paired:
        raise InputError("models with a judge are compared row by row, in order; leave out key= and paired=False")
    refuse_options(None if chosen.estimator is None else as_estimator(chosen.estimator), chosen.lens)
    models = {name: Model(side.value, side=side) for name, side in judged_sides(all_preds).items()}
    first = next(iter(all_preds.values()))
    units = "rows" if first.clusters is None else "clusters"
    stated = _Stated(
        level,
        f"paired rank series of {units} with a judge",
        RankSeries(),
        default_lens(first).describe(first),
        len(first),
        True,
    )
    return _adjusted([_pair(a, b, models, stated) for a, b in pairs])


def _compare_sketches(
    sketches: Mapping[str, Sketch], chosen: _Chosen, resamples: int, level: float, rng: int | np.random.Generator
) -> list[Comparison]:
    options.resamples(resamples)
    options.level(level)
    pairs = chosen.pairs(list(sketches))
    estimator = RankSeries() if chosen.estimator is None else as_estimator(chosen.estimator)
    generator = options.generator(rng)
    draws = max(resamples, ceil(2 * len(pairs) / (1 - level)))
    models = {name: Model.of_sketch(s, estimator, draws, level, generator) for name, s in sketches.items()}
    n, method = min(s.rows for s in sketches.values()), "rows, unpaired, and what the sketches leave open"
    stated = _Stated(level, method, estimator, "scores", n, paired=False)
    return _adjusted([_pair(a, b, models, stated) for a, b in pairs])


def _adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """With p-values corrected for the number of comparisons."""
    adjusted = holm(np.array([c.p_value for c in comparisons]))
    return [replace(c, adjusted_p=float(p)) for c, p in zip(comparisons, adjusted, strict=True)]


def _units(
    all_preds: Mapping[str, Predictions],
    lenses: Mapping[str, Lens],
    chosen: _Chosen,
    rng: np.random.Generator,
) -> dict[str, units.Units]:
    """What is drawn for each model; paired models have the same units, so that one draw serves all of them."""
    if not chosen.paired:
        if chosen.key is not None:
            raise InputError("key= says which rows belong together, paired=False that none do; give one")
        return {name: units.Units.of(next(lenses[name].samples(preds)), rng) for name, preds in all_preds.items()}
    (first, preds), *others = all_preds.items()
    if chosen.key is not None:
        return _units_by_key(all_preds, lenses, chosen.key, rng)
    for name, other in others:
        if len(other) != len(preds):
            raise InputError(
                f"{first} has {len(preds)} rows and {name} has {len(other)}: pair them by a column (key=, --key), or compare them "
                "unpaired (paired=False, --unpaired)"
            )
        if (preds.class_count > 2 or preds.multilabel) and not np.array_equal(other.labels, preds.labels):
            raise InputError(
                f"{name} and {first} do not hold the same rows in the same order: their labels differ; pair rows by a column "
                "(key=, --key)"
            )
        if not preds.of_answers and _same_labels_in_other_order(other, preds):
            raise InputError(
                f"{name} and {first} hold the same labels in another order, so rows do not belong together by their place; pair "
                "them by a column (key=, --key), or compare them unpaired (paired=False, --unpaired); labels that say whether "
                "each model's own answer was correct are those of Predictions.from_answers"
            )
        if (other.clusters is None) != (preds.clusters is None) or not np.array_equal(
            np.asarray(other.clusters), np.asarray(preds.clusters)
        ):
            raise InputError(
                f"the clusters of {name} are not those of {first}; rows that are paired share their cluster"
            )
    shared = units.Units.of(next(lenses[first].samples(preds)), rng)
    return dict.fromkeys(all_preds, shared)


def _same_labels_in_other_order(one: Predictions, other: Predictions) -> bool:
    """Whether labels are as many of each class, and agree row by row no more than labels of unrelated rows do."""
    if np.array_equal(one.labels, other.labels):
        return False
    first, second = (np.bincount(preds.labels, minlength=2) for preds in (one, other))
    if not np.array_equal(first, second):
        return False
    correlation = np.corrcoef(one.labels, other.labels)[0, 1]
    # derived: three standard errors of the correlation of unrelated rows
    return bool(correlation * np.sqrt(len(one)) < 3)


def _units_by_key(
    all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], key: str, rng: np.random.Generator
) -> dict[str, units.Units]:
    """Units named by a column of every model; the clusters of the first model hold whole keys, where it has some."""
    first = next(iter(all_preds))
    for name, preds in all_preds.items():
        validation.refuse_missing(column(preds, key), f"{key!r} of {name}", "key")
    keys = {name: column(preds, key).astype(str) for name, preds in all_preds.items()}
    known = np.unique(keys[first])
    for name, values in keys.items():
        odd = np.setxor1d(known, values)
        if len(odd):
            where = first if odd[0] in known else name
            raise InputError(
                f"{len(odd)} values of {key!r} are not in both {first} and {name}, such as {odd[0]!r} (in {where} only); compare "
                "the rows they share, or unpaired"
            )
    codes = {name: np.searchsorted(known, values) for name, values in keys.items()}
    clusters = all_preds[first].clusters
    if clusters is not None:
        of_key = np.full(len(known), -1, np.intp)
        of_key[codes[first]] = clusters
        if not np.array_equal(of_key[codes[first]], clusters):
            raise InputError(f"rows of one {key!r} lie in several clusters; a key belongs to one cluster")
        codes = {name: of_key[values] for name, values in codes.items()}
    alone = clusters is None and all(len(values) == len(known) for values in codes.values())
    sample = next(lenses[first].samples(all_preds[first])).with_units(codes[first])
    drawn = units.Units.of(sample, rng)
    group = np.zeros(int(codes[first].max()) + 1, np.intp)
    group[codes[first]] = drawn.of_row
    kind = "rows" if alone else "clusters"
    return {name: units.Units(group[values], drawn.count, kind) for name, values in codes.items()}


@dataclass(frozen=True)
class _Stated:
    """What all comparisons made together have in common."""

    level: float
    method: str
    estimator: Estimator
    lens: str
    n: int
    paired: bool


def _pair(a: str, b: str, models: Mapping[str, Model], stated: _Stated) -> Comparison:
    one, other = models[a], models[b]
    difference, unseen = one.value - other.value, one.unseen + other.unseen
    low, high, p = limits(one, other, stated.level, paired=stated.paired)
    interval = Interval(min(low, difference) - unseen, max(high, difference) + unseen, stated.level, stated.method)
    return Comparison(a, b, one.value, other.value, interval, p, p, stated.estimator, stated.lens, stated.n)
