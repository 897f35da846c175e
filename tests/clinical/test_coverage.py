"""Coverage with few cohorts: wide enough to never fail by chance, tight enough to notice a lost cluster or a wrong factor."""

import numpy as np
import pytest

import truecal as tc
from tests.clinical.coverage import band_coverage, benefit_coverage, numbers_coverage
from tests.clinical.worlds import WORLDS
from tests.simulations import at_least, datasets

COHORTS = datasets(80)


def holds(shares, cohorts=COHORTS):
    """Whether no share contradicts 95 % (binomial test at 0.05 %)."""
    return all(at_least(round(share * cohorts), cohorts, 0.95, alarm=5e-4) for share in shares.values())


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("world", WORLDS[:2], ids=lambda world: world.name)
def test_intervals_hold_the_truth(world, size):
    shares = numbers_coverage(world, world.cohorts(range(COHORTS), 800, size))
    assert holds(shares), shares


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 8])
def test_bands_and_net_benefit_hold_the_truth(size):
    world = WORLDS[1]
    assert holds(band_coverage(world, world.cohorts(range(COHORTS), 800, size), "spline"))
    assert holds(benefit_coverage(world, world.cohorts(range(COHORTS), 800, size)))


def test_distances_of_many_rows_are_held_from_both_sides():
    """At 20,000 rows the interval is a small part of the distance itself: truths are tried near the fit, not from 0 on."""
    world, truth, hits = WORLDS[1], WORLDS[1].numbers()["ici"], 0
    for r in range(20):
        summary = tc.clinical.summary(world.preds(np.random.default_rng([r, 20_000]), 20_000)).ici
        assert 0 < summary.low < summary.value < summary.high < 1.5 * summary.value
        hits += truth in summary
    assert hits >= 16  # 0.95 less 3.1 standard errors; half of them with truths on a grid from 0


@pytest.mark.slow
def test_rows_taken_for_patients_do_not_cover():
    world, truth, hits = WORLDS[1], WORLDS[1].numbers()["oe"], 0
    for r in range(30):
        p, y, _ = world.draw(np.random.default_rng(r), 800, 8)
        hits += truth in tc.clinical.summary(tc.Predictions.from_probs(p, y)).oe
    assert hits / 30 < 0.8
