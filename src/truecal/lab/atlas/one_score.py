"""Doors that state an interval about one score: the default, the mean absolute error, plug-ins, clusters, groups."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

import truecal as tc
from truecal.estimate import Estimator
from truecal.lab.atlas.door import LEVEL, Door, Trials, interval_door
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import World

_ROWS_AT_ONCE = 1 << 18
_ROWS_OF_A_CLUSTER = 10
_ALIKE = 0.5  # share of the rows of a cluster whose outcomes come from one uniform number
_POPULATION = 400_000  # scores from which the error of fixed bins is taken: known to about 1e-4
_ROUNDED = 1e-9
GROUPS = 4


def parts(n: int, m: int) -> list[int]:
    """m datasets of n rows in parts that fit in memory together."""
    step = max(1, _ROWS_AT_ONCE // n)
    return [min(step, m - start) for start in range(0, m, step)]


def profiles(world: World, n: int, m: int, rng: np.random.Generator) -> Iterator[tc.Profile]:
    """m datasets in batches."""
    for count in parts(n, m):
        yield tc.Profile.from_arrays(*world.draw(n, count, rng=rng))


def one_dataset(world: World, n: int, rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.int64]]:
    """Scores and outcomes."""
    scores, outcomes = world.draw(n, 1, rng=rng)
    return scores[0], outcomes[0].astype(np.int64)


def _by_formula(estimator: Estimator, world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    intervals = (estimator(profile).interval for profile in profiles(world, n, m, rng))
    return Trials.of_each(intervals, world.true_error(estimator.power_norm))


def _debiased(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Held to the error of the bins at hand: mean scores against mean true rates in every bin."""
    intervals, truth = [], []
    for count in parts(n, m):
        scores, rates = world.draw_rates(n, count, rng=rng)
        profile = tc.Profile.from_arrays(scores, rng.random(scores.shape) < rates)
        intervals.append(tc.uncertainty.debiased_interval(profile, level=LEVEL))
        truth.append(_error_of_rates(tc.BinnedECE(scheme="mass", norm=2), scores, rates))
    return Trials.of_each(intervals, np.concatenate(truth))


def _resampled(estimator: Estimator, binned: bool, world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """By resampling, one dataset after the other; held to the error of the bins where that is what the interval is for."""
    datasets = (tc.Profile.from_arrays(*(a[0] for a in world.draw(n, 1, rng=rng))) for _ in range(m))
    truth = _binned_error(estimator, world) if binned else world.true_error(estimator.power_norm)
    return Trials.of_each((estimator.interval(profile, level=LEVEL, rng=rng) for profile in datasets), truth)


def _binned_error(estimator: Estimator, world: World) -> float:
    """The error of the estimator's bins in the whole population."""
    return float(_error_of_rates(estimator, *world.draw_rates(_POPULATION, 1, rng=0))[0])


def _error_of_rates(estimator: Estimator, scores: Array, rates: Array) -> Array:
    """The estimator's values where outcomes are replaced by their rates: every row is a one and a zero, weighted by them."""
    kept = np.concatenate([rates, 1 - rates], axis=1)
    kept[kept < _ROUNDED] = 0.0  # a row of weight 0 counts as absent
    outcomes = np.broadcast_to(np.repeat([1.0, 0.0], scores.shape[1]), kept.shape)
    return estimator.values(tc.Profile.from_arrays(np.concatenate([scores, scores], axis=1), outcomes, weights=kept))


def in_clusters(world: World, n: int, rng: np.random.Generator) -> tc.Predictions:
    """One dataset in clusters of ten rows of neighbouring scores. On average half of the rows of a cluster compare the same uniform
    number with their rate, so that their outcomes are correlated.

    P(y = 1 | score) is that of the world, because the shared number is uniform as well.
    """
    scores, rates = (a[0] for a in world.draw_rates(n, 1, rng=rng))
    order = np.argsort(np.argsort(scores) + 0.2 * n * rng.random(n))
    cluster = np.empty(n, np.intp)
    cluster[order] = np.arange(n) // _ROWS_OF_A_CLUSTER
    uniform = np.where(rng.random(n) < _ALIKE, rng.random(n)[cluster], rng.random(n))
    return tc.Predictions.from_probs(scores, (uniform < rates).astype(np.int64), clusters=cluster)


def _clustered(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    datasets = (in_clusters(world, n, rng) for _ in range(m))
    return Trials.of_each((tc.uncertainty.measure(p, level=LEVEL).interval for p in datasets), world.true_error(2))


def _likert(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """The outcome rates of words for confidence, in clusters; words with fewer than five clusters' worth of rows are left out."""
    low, high, truth = [], [], []
    shown, rates = (a[0] for a in world.draw_rates(_POPULATION, 1, rng=0))
    for _ in range(m):
        for word in tc.likert(in_clusters(world, n, rng), level=LEVEL).categories:
            if word.count < 5 * _ROWS_OF_A_CLUSTER or word.outcome_low is None or word.outcome_high is None:
                continue
            inside = (shown >= word.low) & ((shown < word.high) | (word.high >= 1))
            low.append(word.outcome_low)
            high.append(word.outcome_high)
            truth.append(float(rates[inside].mean()))
    return Trials.of_intervals(np.array(low), np.array(high), np.array(truth)) if low else None


def _subgroup(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """The intervals of subgroups that are all like the world."""
    columns = {"group": (np.arange(n) % GROUPS).astype(str)}
    intervals = []
    for _ in range(m):
        preds = tc.Predictions.from_probs(*one_dataset(world, n, rng), columns=columns)
        estimates = tc.subgroups(preds, by="group", level=LEVEL).estimates
        intervals += [estimate.interval for estimate in estimates if estimate is not None]
    return Trials.of_each(intervals, world.true_error(2)) if any(intervals) else None


ONE_SCORE_DOORS: tuple[Door, ...] = (
    interval_door("default", partial(_by_formula, tc.RankSeries(level=LEVEL)), promised=0.85),
    interval_door("mean absolute error", partial(_by_formula, tc.RankSeries(norm=1, level=LEVEL)), promised=0.84),
    interval_door("debiased, 15 bins", _debiased, promised=0.85),
    interval_door("equal width", partial(_resampled, tc.BinnedECE(), True), 0.1, 20_000, promised=0.85),
    interval_door("equal mass", partial(_resampled, tc.BinnedECE(scheme="mass"), True), 0.1, 20_000, promised=0.85),
    interval_door("sweep", partial(_resampled, tc.SweepECE(), False), 0.02, 100),
    interval_door("clusters", _clustered, 0.1, 20_000, 200, promised=0.85),
    interval_door("words for confidence, clusters", _likert, 0.05, 20_000, 300),
    interval_door("subgroups", _subgroup, 0.05, 20_000, 200, promised=0.85),
)
