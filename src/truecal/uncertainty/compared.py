"""The models of a comparison: their errors and intervals, where their true errors may be resample by resample, and limits of a
difference of two of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from truecal.estimate import Estimator, Interval, jointly, rank_series, resampling
from truecal.lens import Lens, Sample
from truecal.predictions import Predictions
from truecal.profile import Sketch
from truecal.types import Float64s
from truecal.uncertainty.measurement import measure


@dataclass(frozen=True)
class Model:
    """What a comparison needs of one model."""

    value: float
    drawn: Float64s | None = None  # where its true error may be, resample by resample
    calibrated: bool = False  # whether it may be perfectly calibrated
    unseen: float = 0.0  # how far a sketch may be from the value of all rows
    interval: tuple[float, float] | None = None  # its own, where the value is free of bias
    unselected: Float64s | None = None  # powers of the resamples before anything was chosen from the data
    side: rank_series.Side | None = None  # of an estimator that needs no resamples

    @classmethod
    def of(cls, joint: jointly.Joint, estimator: Estimator, level: float, interval: Interval | None) -> "Model":
        """From resamples of rows or of whole units."""
        value = float(estimator.root(np.array([joint.power]))[0])
        drawn = np.minimum(estimator.root(joint.power - joint.deviations), 1.0)
        ends = None if interval is None else (min(float(interval.low), value), max(float(interval.high), value))
        return cls(value, drawn, joint.p_value > 1 - level, 0.0, ends, joint.unselected)

    @classmethod
    def of_sketch(
        cls, sketch: Sketch, estimator: Estimator, resamples: int, level: float, rng: np.random.Generator
    ) -> "Model":
        """From the cells of a sketch, which are drawn like the rows in them."""
        estimate = measure(sketch, estimator=estimator, level=level, rng=rng)
        side = estimator.side(sketch.to_profile())
        if side is not None:
            return cls(float(estimate), unseen=estimate.sketch_error or 0.0, side=side)
        found = estimator.resampled(sketch.to_profile(), resamples=resamples, level=level, rng=rng)
        drawn = np.minimum(estimator.root(found.power - found.deviations), 1.0)
        p = 0.0 if estimate.p_value is None else float(estimate.p_value)
        ends = None
        if estimator.corrected and estimate.interval is not None:
            ends = float(estimate.interval.low), float(estimate.interval.high)
        return cls(float(estimate), drawn, p > 1 - level, estimate.sketch_error or 0.0, ends)


@dataclass(frozen=True)
class Drawing:
    """How resamples are drawn: which units, how many, and whether the same for all models."""

    units: Mapping[str, resampling.Units]
    resamples: int
    paired: bool
    level: float
    rng: np.random.Generator


def by_counts(
    estimator: Estimator, all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], drawing: Drawing
) -> dict[str, Model]:
    """Errors of one probability: by formula where the estimator has one, else resamples are counts of units, for all models."""
    units, rng = drawing.units, drawing.rng
    if all(lenses[name].shares(preds) is None for name, preds in all_preds.items()):
        sides = {name: estimator.side(lenses[name].sample(preds), units[name]) for name, preds in all_preds.items()}
        known = {name: Model(side.value, side=side) for name, side in sides.items() if side is not None}
        if len(known) == len(sides):
            return known
    counts = next(iter(units.values())).draws(drawing.resamples, rng)
    models = {}
    for name, preds in all_preds.items():
        own = counts if drawing.paired else units[name].draws(drawing.resamples, rng)
        samples, shares = lenses[name].samples(preds), lenses[name].shares(preds)
        joint = jointly.resampled_jointly(estimator, samples, shares, units[name], own, rng, always_test=True)
        interval = None
        if estimator.corrected:
            if shares is None:
                interval = _by_formula(lenses[name].sample(preds), units[name], estimator, drawing.level)
            if interval is None:
                interval = resampling.Bootstrap.of(estimator, joint, drawing.level, units[name].kind).interval()
        models[name] = Model.of(joint, estimator, drawing.level, interval)
    return models


def _by_formula(sample: Sample, units: resampling.Units, estimator: Estimator, level: float) -> Interval | None:
    """The interval of one model by itself, of an estimator that needs no resamples for it."""
    if units.kind == "clusters":
        series = rank_series.ClusteredSeries.of(sample.with_units(units.of_row), units)
        counted = estimator.of_clusters(series, level)
        return None if counted is None else counted[2]
    return estimator.at_level(level).complete(sample.profile).interval


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
