"""Which model is better calibrated? Differences on the same rows, with interval and test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from truecal.checks import check_level, check_whole, generator_of
from truecal.errors import InputError
from truecal.estimate import Estimator, Interval, Joint, RankSeries, Units, check_estimator, resampled_jointly
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import Predictions
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
    y_true: ArrayLike,
    prob_a: ArrayLike,
    prob_b: ArrayLike,
    *,
    estimator: Estimator | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    classes: Sequence[object] | None = None,
    names: tuple[str, str] = ("a", "b"),
    resamples: int = 1000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Comparison:
    """Paired difference of two models' calibration errors, also of one model before and after recalibration.

    Rows (or whole clusters) are drawn with replacement, the same for both models, so what the models have in common cancels.
    With P the estimates as powers and d the deviations of their resamples (see :class:`Bootstrap`), the differences
    root(P_a - d_a) - root(P_b - d_b) give the interval, and the share of them on either side of 0 the p-value. An estimate of no
    error at all is still above 0; so where calibration is rejected for one model and not for the other, the interval reaches to
    where the whole error of the one would be the difference.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> found = compare(y, p**2, p, names=("squared", "plain"))
    >>> found.p_value < 0.01, found.interval.low > 0
    (True, True)
    """
    return compare_many(
        y_true,
        {names[0]: prob_a, names[1]: prob_b},
        estimator=estimator,
        lens=lens,
        sample_weight=sample_weight,
        clusters=clusters,
        classes=classes,
        resamples=resamples,
        level=level,
        rng=rng,
    )[0]


def compare_many(
    y_true: ArrayLike,
    probs: Mapping[str, ArrayLike],
    *,
    reference: str | None = None,
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

    Intervals are those of single comparisons; `adjusted_p` keeps the chance of any false difference among all pairs below alpha.
    `resamples` are drawn at least; more where fewer could not show any difference after the correction: 2 pairs / (1 - level).

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
    if len(probs) < 2:
        raise InputError("a comparison needs at least two models with different names")
    if reference is not None and reference not in probs:
        raise InputError(f"reference {reference!r} is not among the models {', '.join(probs)}")
    estimator = RankSeries() if estimator is None else estimator
    check_estimator(estimator)
    generator = generator_of(rng)
    all_preds = {
        name: Predictions.from_probs(p, y_true, weights=sample_weight, clusters=clusters, classes=classes)
        for name, p in probs.items()
    }
    first = next(iter(all_preds.values()))
    pairs = (
        list(combinations(probs, 2))
        if reference is None
        else [(name, reference) for name in probs if name != reference]
    )
    lenses = {name: default_lens(preds) if lens is None else lens for name, preds in all_preds.items()}
    judged = next(iter(lenses.values()))
    units = Units.of(next(judged.samples(first)), generator)
    counts = units.draws(max(resamples, ceil(2 * len(pairs) / (1 - level))), generator)
    models = {}
    for name, preds in all_preds.items():
        samples, shares = lenses[name].samples(preds), lenses[name].shares(preds)
        joint = resampled_jointly(estimator, samples, shares, units, counts, generator, always_test=True)
        models[name] = _Model.of(joint, estimator, level)
    told = judged.describe(first)
    found = [
        _pair(a, b, models, level, f"paired bootstrap of {units.kind}", estimator, told, len(first)) for a, b in pairs
    ]
    adjusted = holm(np.array([c.p_value for c in found]))
    return [replace(c, adjusted_p=float(p)) for c, p in zip(found, adjusted, strict=True)]


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
