"""Resamples of groups of rows against the same rows taken one by one."""

import numpy as np
import pytest

import truecal as tc
from truecal.estimators.resampling import grouped
from truecal.estimators.resampling.grouped import GroupSums
from truecal.estimators.resampling.units import Units

N, GROUPS = 600, 40


def sample_of(seed, *, digits=None, weighted=False, right=False):
    rng = np.random.default_rng(seed)
    c = rng.beta(2, 1, N) if digits is None else rng.beta(2, 1, N).round(digits)
    y = np.ones(N, np.uint8) if right else (rng.random(N) < c**2).astype(np.uint8)
    return tc.lenses.Sample(c, y, rng.integers(1, 4, N).astype(float) if weighted else None)


def draws_of(seed, resamples=60):
    rng = np.random.default_rng(seed)
    units = Units(rng.permutation(N) % GROUPS, GROUPS, "rows")
    times = units.draws(resamples, rng).T.astype(float)
    return grouped.GroupDraws(units, times, rng.integers(0, 2, (99, GROUPS)) * 2.0 - 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.BinnedECE(bins=20, scheme="mass"), tc.BinnedECE(bins=100)])
def test_sums_of_groups_are_those_of_their_rows(estimator, digits, weighted):
    sample, draws = sample_of(0, digits=digits, weighted=weighted), draws_of(1)
    cut = estimator.fixed_cut(sample.profile)
    sums = GroupSums.of(sample, draws.units, cut.below[0])
    sorted_scores = sample.profile.scores[0]
    weight = np.ones(N) if sample.weights is None else sample.weights
    count, score, ones = (np.zeros((GROUPS, cut.below.shape[1] - 1)) for _ in range(3))
    for c, y, w, group in zip(sample.scores, sample.outcomes, weight, draws.units.of_row, strict=True):
        place = np.searchsorted(sorted_scores, c)  # of the first row with this score
        at = np.flatnonzero(cut.below[0] <= place)[-1]
        count[group, at] += w
        score[group, at] += w * c
        ones[group, at] += w * y
    for found, naive in ((sums.count, count), (sums.score, score), (sums.ones, ones)):
        np.testing.assert_allclose(found[:-2], naive, atol=1e-12)
    rows = sample.profile.total[0]
    np.testing.assert_allclose(sums.count[-2:].sum(axis=1), [1.0, 1.0])
    np.testing.assert_allclose(sums.ones[-1], count.sum(axis=0) / rows)
    assert not sums.ones[-2].any()


def test_made_up_rows_keep_a_model_that_is_always_right_from_being_certain():
    bootstrap = tc.BinnedECE().in_groups(sample_of(0, right=True), draws_of(1), 0.95)
    assert bootstrap is not None
    assert np.std(bootstrap.powers) > 1e-4


@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.DebiasedECE(), tc.RankSeries()])
def test_estimates_move_with_those_of_the_rows_drawn(estimator):
    """What a resample of groups adds, beside the estimator on these rows: they move together and by as much."""
    sample, draws = sample_of(3), draws_of(4, resamples=120)
    bootstrap = estimator.in_groups(sample, draws, 0.95)
    assert bootstrap is not None
    drawn = []
    for times in draws.times[:, :-2].astype(int):
        rows = np.repeat(np.arange(N), times[draws.units.of_row])
        drawn.append(
            float(estimator.find(tc.profile.Profile.from_arrays(sample.scores[rows], sample.outcomes[rows])).power[0])
        )
    assert np.corrcoef(bootstrap.powers, drawn)[0, 1] > 0.9
    assert np.std(bootstrap.powers) == pytest.approx(np.std(drawn), rel=0.25)


def test_estimators_without_fixed_bins_say_that_groups_do_not_tell():
    assert tc.SweepECE().in_groups(sample_of(0), draws_of(1), 0.95) is None
    assert tc.RankSeries(norm=1).in_groups(sample_of(0), draws_of(1), 0.95) is None
