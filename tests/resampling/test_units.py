"""Sums over units against the same rows taken one by one, and resamples of them."""

import numpy as np
import pytest

import truecal as tc
from truecal.estimators.bootstrap import resample_units, sample_sums
from truecal.profile import Profile
from truecal.resampling.cells import cell_starts, share_scores
from truecal.resampling.units import Units, UnitSums

N = 700


def sample_of(seed, *, digits=None, weighted=False, right=False):
    rng = np.random.default_rng(seed)
    c = rng.beta(2, 1, N) if digits is None else rng.beta(2, 1, N).round(digits)
    y = np.ones(N, np.uint8) if right else (rng.random(N) < c**2).astype(np.uint8)
    return tc.lenses.Sample(c, y, rng.integers(0, 4, N).astype(float) if weighted else None)


def units_of(seed, count):
    return Units(np.random.default_rng(seed).permutation(N) % count, count, "rows")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("count", [40, 600])  # full and sparse matrices
@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.BinnedECE(bins=20, scheme="mass"), tc.BinnedECE(bins=100)])
def test_unit_sums_are_those_of_their_rows(estimator, count, digits, weighted):
    units = units_of(1, count)
    sample = sample_of(0, digits=digits, weighted=weighted).with_units(units.of_row)
    cut = estimator.fixed_cut(sample.profile)
    sums = UnitSums.of(sample, units, cut)
    sorted_scores = sample.profile.scores[0]
    weight = np.ones(N) if sample.weights is None else sample.weights
    rows, scores, ones = (np.zeros((cut.below.shape[1] - 1, count)) for _ in range(3))
    for c, y, w, unit in zip(sample.scores, sample.outcomes, weight, units.of_row, strict=True):
        cell = np.flatnonzero(cut.below[0] <= np.searchsorted(sorted_scores, c))[-1]
        rows[cell, unit] += w
        scores[cell, unit] += w * c
        ones[cell, unit] += w * y
    for matrix, naive in ((sums.rows, rows), (sums.score_sums, scores), (sums.ones, ones)):
        full = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        np.testing.assert_allclose(full, naive, atol=1e-12)
    np.testing.assert_allclose(sums.drawn_from.rows.sum(), weight.sum() + 2)
    np.testing.assert_allclose(sums.drawn_from.ones.sum(), ones.sum() + 1)


@pytest.mark.parametrize("count", [40, 600])
def test_drawn_units_are_sums_of_the_units(count):
    units = units_of(1, count)
    sample = sample_of(0).with_units(units.of_row)
    sums = UnitSums.of(sample, units, tc.BinnedECE().fixed_cut(sample.profile))
    counts = units.draws(5, np.random.default_rng(0))
    counts[-2:] = 0
    batch = sums.draw(counts)
    for i in range(5):
        drawn = np.repeat(np.arange(N), counts[units.of_row, i])
        assert batch.rows[i].sum() == pytest.approx(len(drawn))
        assert batch.ones[i].sum() == pytest.approx(sample.outcomes[drawn].sum())
        assert batch.score_sums[i].sum() == pytest.approx(sample.scores[drawn].sum())


def resampled(estimator, sample, units, resamples):
    rng = np.random.default_rng(4)
    counts = units.draws(resamples, rng)
    parts = sample_sums(estimator, [sample], units)
    return counts, resample_units(estimator, parts, None, units, counts, 0.95, rng)


def test_pseudo_rows_keep_a_model_without_errors_from_being_certain():
    _, bootstrap = resampled(tc.BinnedECE(), sample_of(0, right=True), units_of(1, 40), 60)
    assert np.std(bootstrap.powers) > 1e-4


@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.DebiasedECE(), tc.RankSeries(), tc.SweepECE()])
def test_resamples_move_with_the_estimates_of_their_rows(estimator):
    sample, units = sample_of(3), units_of(4, 40)
    counts, bootstrap = resampled(estimator, sample, units, 120)
    naive = []
    for times in counts[:-2].T.astype(int):
        rows = np.repeat(np.arange(N), times[units.of_row])
        profile = tc.profile.Profile.from_arrays(sample.scores[rows], sample.outcomes[rows])
        naive.append(float(estimator.estimate(profile).power[0]))
    assert np.corrcoef(bootstrap.powers, naive)[0, 1] > 0.85
    assert np.std(bootstrap.powers) == pytest.approx(np.std(naive), rel=0.25)


def test_datasets_with_scores_of_their_own_are_parted():
    scores = np.array([[0.1, 0.4, 0.8], [0.2, 0.5, 0.9]])
    shared = Profile(scores[:1], np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]))
    ((whole, _),) = share_scores(shared)
    assert (whole.start, whole.stop) == (0, 2)
    own_values = Profile.from_arrays(scores, np.array([[0, 1, 1], [0, 0, 1]]))
    parts = list(share_scores(own_values))
    assert [(part.start, part.stop) for part, _ in parts] == [(0, 1), (1, 2)]
    np.testing.assert_array_equal(np.concatenate([profile.scores for _, profile in parts]), scores)


def test_rows_of_weight_zero_at_either_end_have_a_cell():
    rng = np.random.default_rng(0)
    c = np.sort(rng.random(300))
    weights = np.where((np.arange(300) < 5) | (np.arange(300) > 290), 0.0, 1.0)
    profile = Profile(c[None], (rng.random(300) < c)[None].astype(np.uint8), weights[None])
    starts = cell_starts(profile, 20)
    assert (starts[0], starts[-1]) == (0, profile.rows)


def test_units_without_weight_are_not_counted():
    scores, outcomes = np.full(6, 0.5), np.array([0, 1, 0, 1, 0, 1], np.uint8)
    sample = tc.lenses.Sample(scores, outcomes, np.array([1.0, 0, 0, 2, 0.5, 1]))
    units = Units.of(sample, np.random.default_rng(0))
    assert units.count == 4  # of rows 0, 3, 4 and 5
    assert len({*units.of_row[[0, 3, 4, 5]]}) == 4
    whole = Units.of(tc.lenses.Sample(scores, outcomes, np.full(6, 0.5)), np.random.default_rng(0))
    assert whole.of_row.tolist() == [0, 1, 2, 3, 4, 5]


def test_many_units_are_joined_at_random_in_groups_of_one_size(monkeypatch):
    monkeypatch.setattr("truecal.resampling.units._MAX_UNITS", 100)
    scores, outcomes = np.full(400, 0.5), np.zeros(400, np.uint8)
    units = Units.of(tc.lenses.Sample(scores, outcomes, None), np.random.default_rng(0))
    assert (np.bincount(units.of_row) == 4).all()
    assert not (units.of_row == np.arange(400) % 100).all()
    few = Units.of(tc.lenses.Sample(scores[:100], outcomes[:100], None), np.random.default_rng(0))
    assert few.of_row.tolist() == list(range(100))
