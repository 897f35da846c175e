"""Doors that test calibration or promise a small error. Tests are tried where calibration holds, promises where they are false."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.lab.atlas.door import ALPHA, Door, Trials, test_door
from truecal.lab.atlas.one_score import in_clusters, one_dataset, profiles
from truecal.lab.worlds.world import World

JUST_BELOW = 0.995  # times the true error: the threshold that must not be promised
_LEAST_ERROR = 0.002  # an error below this is none that anybody would make a promise about
_REDRAWS = 199
_GROUPS = 12


def _test(test: Callable[..., Any], world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    calibrated = world.with_calibrated_outcomes()
    batches = profiles(calibrated, n, m, rng)
    return Trials.of_tests((test(profile, resamples=_REDRAWS, rng=rng).p_value for profile in batches), ALPHA)


def _clustered_test(test: Callable[..., Any], world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    calibrated = world.with_calibrated_outcomes()
    datasets = (tc.OneClass(1)(in_clusters(calibrated, n, rng)) for _ in range(m))
    return Trials.of_tests((test(profile, resamples=_REDRAWS, rng=rng).p_value for profile in datasets), ALPHA)


def _grouped(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Whether any of twelve calibrated groups is flagged."""
    false = []
    for scores, outcomes in (one_dataset(world.with_calibrated_outcomes(), n, rng) for _ in range(m)):
        columns = {"group": rng.integers(_GROUPS, size=n).astype(str)}
        preds = tc.Predictions.from_probs(scores, outcomes, columns=columns)
        false.append(bool(tc.subgroups(preds, by="group").flagged.any()))
    return Trials.of_verdicts(false)


def _audit(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Whether any segment of three columns is listed though all are calibrated."""
    false = []
    for scores, outcomes in (one_dataset(world.with_calibrated_outcomes(), n, rng) for _ in range(m)):
        columns = {name: rng.integers(k, size=n).astype(str) for name, k in (("a", 3), ("b", 4), ("c", 2))}
        preds = tc.Predictions.from_probs(scores, outcomes, columns=columns)
        false.append(len(tc.audit(preds).segments) > 0)
    return Trials.of_verdicts(false)


def _verify(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """Whether an error is promised (or supported) to lie below what is just below the truth."""
    truth = world.true_error(2)
    if truth < _LEAST_ERROR:
        return None
    false = []
    for _ in range(m):
        preds = tc.Predictions.from_probs(*one_dataset(world, n, rng))
        verdict = tc.uncertainty.verify(preds, threshold=JUST_BELOW * truth).verdict
        false.append(verdict in ("promised", "supported"))
    return Trials.of_verdicts(false, truth)


def _below(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    truth = world.true_error(2)
    if truth < _LEAST_ERROR:
        return None
    p = (tc.uncertainty.below(profile, JUST_BELOW * truth).p_value for profile in profiles(world, n, m, rng))
    return Trials.of_tests(p, ALPHA, truth)


def _consistency(profile: tc.Profile, *, resamples: int, rng: np.random.Generator) -> Any:
    return tc.RankSeries().test(profile, resamples=resamples, rng=rng)


def _needs(judge: Callable[..., Trials | None], *given: Any) -> Trials | None:
    """Nothing where a world has no rows that a door can judge."""
    try:
        return judge(*given)
    except InputError:
        return None


VERDICT_DOORS: tuple[Door, ...] = (
    test_door("test of the rank series", partial(_test, _consistency), 0.5, 20_000),
    test_door("Kuiper", partial(_test, tc.uncertainty.kuiper), 0.1, 5000),
    test_door("Hosmer-Lemeshow", partial(_test, tc.uncertainty.hosmer_lemeshow), 0.1, 5000),
    test_door("Spiegelhalter", partial(_test, tc.uncertainty.spiegelhalter), 0.1, 5000),
    test_door(
        "test of the rank series, clusters", partial(_clustered_test, tc.uncertainty.rank_series_test), 0.25, 5000, 200
    ),
    test_door("Hosmer-Lemeshow, clusters", partial(_clustered_test, tc.uncertainty.hosmer_lemeshow), 0.25, 5000, 200),
    test_door("any of 12 subgroups", _grouped, 0.05, 20_000, 1000),
    test_door("any segment of an audit", _audit, 0.05, 20_000, 1000),
    Door("below", "promise", ALPHA, _below, promised=0.07),
    Door("verify", "promise", ALPHA, partial(_needs, _verify), 0.1, 5000, promised=0.07),
)
