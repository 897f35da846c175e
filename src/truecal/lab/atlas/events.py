"""Doors on many classes: the class-wise error, and binned errors of several probabilities at once."""

from collections.abc import Iterator
from functools import partial

import numpy as np

import truecal as tc
from truecal.lab.atlas.door import ALPHA, LEVEL, Door, Trials, interval_door, test_door
from truecal.lab.atlas.worlds import ClassWorld, class_worlds
from truecal.lab.worlds.quadrature import Array
from truecal.lens import Lens

_POPULATION = 200_000
_CURVE_BINS = 400  # over which a class's true curve is averaged: fine enough that the mean of the gap is the gap
_EVENTS = 5


def _lens(seen: str, classes: int) -> Lens | None:
    """What is judged; None where there are too few classes for it."""
    if seen == "top-5":
        return tc.TopK(_EVENTS) if classes > _EVENTS else None
    if seen == "grouping":
        names = np.array_split(np.arange(classes), min(_EVENTS, classes))
        return tc.Grouping({f"g{i}": [int(c) for c in group] for i, group in enumerate(names)})
    return tc.Canonical()


def _datasets(world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Iterator[tuple[tc.Predictions, Array]]:
    """Predictions, and the true rates of all classes."""
    for _ in range(m):
        outputs, labels, rates = world.draw(n, rng)
        yield tc.Predictions.from_probs(outputs, labels), rates


def _generalized(seen: str, world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """Held to the error of the bins at hand: mean outputs against mean true rates in every bin."""
    lens = _lens(seen, world.classes)
    if lens is None:
        return None
    intervals, truth = [], []
    for i, (preds, rates) in enumerate(_datasets(world, n, m, rng)):
        estimator = tc.GeneralizedECE(lens=lens, level=LEVEL, rng=i)
        intervals.append(estimator(preds).interval)
        truth.append(_bin_error(estimator, lens, preds, rates))
    return Trials.of_each(intervals, np.array(truth))


def _bin_error(estimator: tc.GeneralizedECE, lens: Lens, preds: tc.Predictions, rates: Array) -> float:
    """The distance of mean outputs and mean true rates over the estimator's bins.

    True rates are seen through the lens one label at a time: of K copies of the data with label k, weighted by its rate, the mean
    outcomes are the mean rates.
    """
    (sample,) = lens.samples(preds)
    partition = estimator.binning.partition(sample)
    bins = np.bincount(partition.bin_of, minlength=partition.count).astype(float)
    filled = np.where(bins > 0, bins, 1.0)
    events = sample.columns.shape[0]
    mean_rate = np.zeros((partition.count, events))
    for k in range(rates.shape[1]):
        (seen,) = lens.samples(tc.Predictions.from_probs(np.asarray(preds.probs), np.full(len(preds), k)))
        for event in range(events):
            hit = seen.labels == event
            mean_rate[:, event] += np.bincount(partition.bin_of[hit], rates[hit, k], partition.count)
    mean_rate /= filled[:, None]
    output = (
        np.stack([np.bincount(partition.bin_of, c, partition.count) for c in sample.columns], axis=1) / filled[:, None]
    )
    return float((bins / bins.sum()) @ np.abs(mean_rate - output).sum(axis=1) / 2)


def _generalized_test(world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    if world.exponent != 1:
        return None
    datasets = enumerate(_datasets(world, n, m, rng))
    return Trials.of_tests((tc.GeneralizedECE(level=0.95, rng=i)(preds).p_value for i, (preds, _) in datasets), ALPHA)


def _class_wise_estimates(
    world: ClassWorld, n: int, m: int, rng: np.random.Generator, level: float
) -> Iterator[tc.Estimate]:
    for i, (preds, _) in enumerate(_datasets(world, n, m, rng)):
        yield tc.uncertainty.measure(preds, lens=tc.ClassWise(), level=level, rng=i)


def _class_wise(world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials:
    intervals = (estimate.interval for estimate in _class_wise_estimates(world, n, m, rng, LEVEL))
    return Trials.of_each(intervals, _class_wise_error(world))


def _class_wise_error(world: ClassWorld) -> float:
    """All classes of a ClassWorld are alike: the error of one, from the mean gap in narrow bins of its output."""
    if world.exponent == 1:
        return 0.0
    outputs, _, rates = world.draw(_POPULATION, np.random.default_rng(0))
    order = np.argsort(outputs[:, 0])
    gaps = [part.mean() for part in np.array_split((rates - outputs)[order, 0], _CURVE_BINS)]
    return float(np.sqrt(np.mean(np.square(gaps))))


def _class_wise_test(world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    if world.exponent != 1:
        return None
    return Trials.of_tests((estimate.p_value for estimate in _class_wise_estimates(world, n, m, rng, 0.95)), ALPHA)


EVENT_DOORS: tuple[Door, ...] = (
    interval_door("class-wise", _class_wise, 0.05, 5000, 150, worlds=class_worlds),
    *(
        interval_door(
            f"generalized, {seen}", partial(_generalized, seen), 0.1, 10_000, 150, worlds=class_worlds, promised=0.86
        )
        for seen in ("canonical", "grouping", "top-5")
    ),
    test_door("test of the generalized error", _generalized_test, 0.25, 5000, 150, worlds=class_worlds, promised=0.07),
    test_door("class-wise test", _class_wise_test, 0.05, 5000, 150, worlds=class_worlds, promised=0.07),
)
