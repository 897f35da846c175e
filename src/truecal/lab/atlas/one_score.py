"""Doors that state an interval about one score: the default, the mean absolute error, plug-ins, clusters, groups."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

import truecal as tc
from truecal.estimate import Estimator
from truecal.lab.atlas.door import Door, Trials
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import World

LEVEL = 0.9
_ROWS_AT_ONCE = 1 << 18
_ROWS_OF_A_CLUSTER = 10
_ALIKE = 0.5  # share of the rows of a cluster that have its luck
_POPULATION = 400_000  # scores from which the error of fixed bins is taken: known to about 1e-4
_ROUNDED = 1e-9
GROUPS = 4


def parts(n: int, m: int) -> list[int]:
    """m datasets of n rows in parts that fit in memory together."""
    step = max(1, _ROWS_AT_ONCE // n)
    return [min(step, m - start) for start in range(0, m, step)]


def profiles(world: World, n: int, m: int, rng: np.random.Generator) -> Iterator[tc.Profile]:
    """m datasets in batches."""
    for some in parts(n, m):
        yield tc.Profile.from_arrays(*world.draw(n, some, rng=rng))


def _by_formula(estimator: Estimator, world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    ends = [estimator(profile).interval for profile in profiles(world, n, m, rng)]
    low, high = (np.concatenate([np.atleast_1d(getattr(i, end)) for i in ends]) for end in ("low", "high"))
    return Trials.of_intervals(low, high, world.true_error(estimator.power_norm))


def _debiased(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Held to the error of the bins at hand: mean scores against mean true rates in every bin."""
    low, high, truth = [], [], []
    for some in parts(n, m):
        scores, rates = world.draw_rates(n, some, rng=rng)
        profile = tc.Profile.from_arrays(scores, rng.random(scores.shape) < rates)
        interval = tc.uncertainty.debiased_interval(profile, level=LEVEL)
        low.append(np.atleast_1d(interval.low))
        high.append(np.atleast_1d(interval.high))
        truth.append(_error_of_rates(tc.BinnedECE(scheme="mass", norm=2), scores, rates))
    return Trials.of_intervals(np.concatenate(low), np.concatenate(high), np.concatenate(truth))


def _resampled(estimator: Estimator, binned: bool, world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """By resampling, one dataset after the other; held to the error of the bins where that is what the interval is for."""
    low, high = np.empty(m), np.empty(m)
    for i in range(m):
        profile = tc.Profile.from_arrays(*(a[0] for a in world.draw(n, 1, rng=rng)))
        interval = estimator.interval(profile, level=LEVEL, rng=rng)
        low[i], high[i] = float(interval.low), float(interval.high)
    truth = _binned_error(estimator, world) if binned else world.true_error(estimator.power_norm)
    return Trials.of_intervals(low, high, truth)


def _binned_error(estimator: Estimator, world: World) -> float:
    """The error of the estimator's bins in the whole population."""
    return float(_error_of_rates(estimator, *world.draw_rates(_POPULATION, 1, rng=0))[0])


def _error_of_rates(estimator: Estimator, scores: Array, rates: Array) -> Array:
    """The estimator's values where outcomes are replaced by their rates: every row is a one and a zero, weighted by them."""
    kept = np.concatenate([rates, 1 - rates], axis=1)
    kept[kept < _ROUNDED] = 0.0  # a row of weight 0 counts as absent
    outcomes = np.broadcast_to(np.repeat([1.0, 0.0], scores.shape[1]), kept.shape)
    return estimator.values(tc.Profile.from_arrays(np.concatenate([scores, scores], axis=1), outcomes, weights=kept))


def cluster_rows(
    world: World, n: int, rng: np.random.Generator
) -> tuple[Array, npt.NDArray[np.int64], npt.NDArray[np.intp]]:
    """Scores, outcomes and clusters of one dataset: ten rows of neighbouring scores each, half of which have one luck.

    P(y = 1 | score) is that of the world, because the luck of a cluster is uniform as well.
    """
    scores, rates = (a[0] for a in world.draw_rates(n, 1, rng=rng))
    order = np.argsort(np.argsort(scores) + 0.2 * n * rng.random(n))
    cluster = np.empty(n, np.intp)
    cluster[order] = np.arange(n) // _ROWS_OF_A_CLUSTER
    luck = np.where(rng.random(n) < _ALIKE, rng.random(n)[cluster], rng.random(n))
    return scores, (luck < rates).astype(np.int64), cluster


def _clustered(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    low, high = np.empty(m), np.empty(m)
    for i in range(m):
        scores, outcomes, cluster = cluster_rows(world, n, rng)
        preds = tc.Predictions.from_probs(scores, outcomes, clusters=cluster)
        interval = tc.uncertainty.measure(preds, level=LEVEL).interval
        assert interval is not None
        low[i], high[i] = float(interval.low), float(interval.high)
    return Trials.of_intervals(low, high, world.true_error(2))


def _likert(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """The outcome rates of words for confidence, in clusters; words with fewer than five clusters' worth of rows are left out."""
    low, high, truth = [], [], []
    shown, rates = (a[0] for a in world.draw_rates(_POPULATION, 1, rng=0))
    for _ in range(m):
        scores, outcomes, cluster = cluster_rows(world, n, rng)
        preds = tc.Predictions.from_probs(scores, outcomes, clusters=cluster)
        for word in tc.likert(preds, level=LEVEL).categories:
            if word.count < 5 * _ROWS_OF_A_CLUSTER or word.outcome_low is None or word.outcome_high is None:
                continue
            inside = (shown >= word.low) & ((shown < word.high) | (word.high >= 1))
            low.append(word.outcome_low)
            high.append(word.outcome_high)
            truth.append(float(rates[inside].mean()))
    return Trials.of_intervals(np.array(low), np.array(high), np.array(truth)) if low else None


def _subgroup(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """The intervals of subgroups that are all like the world."""
    low, high = [], []
    for _ in range(m):
        scores, outcomes = (a[0] for a in world.draw(n, 1, rng=rng))
        group = np.arange(n) % GROUPS
        preds = tc.Predictions.from_probs(scores, outcomes.astype(int), columns={"group": group.astype(str)})
        for estimate in tc.subgroups(preds, by="group", level=LEVEL).estimates:
            if estimate is not None and estimate.interval is not None:
                low.append(float(estimate.interval.low))
                high.append(float(estimate.interval.high))
    return Trials.of_intervals(np.array(low), np.array(high), world.true_error(2)) if low else None


ONE_SCORE_DOORS: tuple[Door, ...] = (
    Door("default", "interval", LEVEL, partial(_by_formula, tc.RankSeries(level=LEVEL)), promised=0.85),
    Door(
        "mean absolute error",
        "interval",
        LEVEL,
        partial(_by_formula, tc.RankSeries(norm=1, level=LEVEL)),
        promised=0.84,
    ),
    Door("debiased, 15 bins", "interval", LEVEL, _debiased, promised=0.85),
    Door("equal width", "interval", LEVEL, partial(_resampled, tc.BinnedECE(), True), 0.1, 20_000, promised=0.85),
    Door(
        "equal mass",
        "interval",
        LEVEL,
        partial(_resampled, tc.BinnedECE(scheme="mass"), True),
        0.1,
        20_000,
        promised=0.85,
    ),
    Door("sweep", "interval", LEVEL, partial(_resampled, tc.SweepECE(), False), 0.02, 100),
    Door("clusters", "interval", LEVEL, _clustered, 0.1, 20_000, 200, promised=0.85),
    Door("words for confidence, clusters", "interval", LEVEL, _likert, 0.05, 20_000, 300),
    Door("subgroups", "interval", LEVEL, _subgroup, 0.05, 20_000, 200, promised=0.85),
)
