"""Doors that compare two models: the same rows, rows named by a key, labels of their own, rows of their own, clusters."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.lab.atlas.door import LEVEL, Door, Trials, interval_door
from truecal.lab.worlds.curves import Identity
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import World

_RESAMPLES = 300
_CLUSTERS = 40
_ALIKE = 0.5


def _other(world: World) -> World | None:
    """The model to compare with: the same scores half recalibrated, or, of a world that is recalibrated, as they were."""
    try:
        if not isinstance(world.recalibration, Identity):
            return replace(world, recalibration=Identity())
        error = world.true_error(2)
        return world.partly_recalibrated(error / 2) if error > 0 else None
    except InputError:  # its curve falls, or is flat, somewhere: shown through it, scores would merge
        return None


def _compared(design: str, world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    other = world if design == "own labels" else _other(world)
    if other is None:
        return None
    truth = world.true_error(2) - other.true_error(2)
    intervals = []
    for i in range(m):
        a, b, options = _two(design, world, other, n, rng)
        comparison = tc.uncertainty.compare(a, b, level=LEVEL, resamples=_RESAMPLES, rng=i, **options)
        intervals.append(comparison.interval)
    return Trials.of_each(intervals, truth)


def _two(
    design: str, world: World, other: World, n: int, rng: np.random.Generator
) -> tuple[tc.Predictions, tc.Predictions, dict[str, Any]]:
    """The predictions of both models, and how their rows belong together."""
    seed = int(rng.integers(2**62))
    shown, rates = (part[0] for part in world.draw_rates(n, 1, rng=seed))
    again = other.draw_rates(n, 1, rng=seed)[0][0]  # the same raw scores through the other map
    first, second = rng.random(n), rng.random(n)
    if design == "clusters":
        cluster = np.arange(n) % _CLUSTERS
        uniform = np.where(rng.random(n) < _ALIKE, rng.random(_CLUSTERS)[cluster], first)
        return _preds(shown, uniform < rates, clusters=cluster), _preds(again, uniform < rates, clusters=cluster), {}
    if design == "own labels":
        return _preds(shown, first < rates), _preds(again, second < rates), {}
    if design == "unpaired":
        fresh, fresh_rates = (part[0] for part in other.draw_rates(n, 1, rng=rng))
        return _preds(shown, first < rates), _preds(fresh, second < fresh_rates), {"paired": False}
    if design == "key":
        order = rng.permutation(n)
        key = np.arange(n).astype(str)
        a = _preds(shown, first < rates, columns={"id": key})
        return a, _preds(again[order], (first < rates)[order], columns={"id": key[order]}), {"key": "id"}
    return _preds(shown, first < rates), _preds(again, first < rates), {}


def _preds(scores: Array, outcomes: Any, **given: Any) -> tc.Predictions:
    return tc.Predictions.from_probs(scores, np.asarray(outcomes).astype(int), **given)


_SHARE = {"paired": 0.1, "key": 0.05, "own labels": 0.05, "unpaired": 0.05, "clusters": 0.05}
COMPARISON_DOORS: tuple[Door, ...] = tuple(
    interval_door(f"compare, {design}", partial(_compared, design), share, 10_000, 300, promised=0.84)
    for design, share in _SHARE.items()
)
