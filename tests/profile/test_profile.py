"""The Profile: sorting, prefix sums, cuts, merging, coarsening, files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from tests.datasets import small
from truecal.profile import Cut
from truecal.profile.rows import SortedRows, _count_threads, packed_sort
from truecal.resampling.cells import Counted

SUMS = ("w", "c", "y", "cc", "cy")


def naive_sums(c, y, w, rows):
    """The five sums over the first rows in ascending order, equal scores sharing their outcomes."""
    order = np.argsort(c, kind="stable")
    c, y, w = c[order], y[order].astype(float), w[order]
    y = np.array([np.average(y[c == v], weights=w[c == v]) for v in c])
    return [a[:rows].sum() for a in (w, w * c, w * y, w * c * c, w * c * y)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_packed_sort_keeps_every_bit_of_the_scores(dtype):
    rng = np.random.default_rng(0)
    c = np.concatenate([rng.random(5000), [0.0, -0.0, 1.0, np.nextafter(1, 0), 5e-324]]).astype(dtype)
    y = (rng.random(len(c)) < 0.5).astype(np.uint8)
    before = c.copy()
    scores, outcomes = packed_sort(c, y)
    order = np.lexsort((y, c))
    np.testing.assert_array_equal(scores, np.abs(c[order]))
    np.testing.assert_array_equal(outcomes, y[order])
    np.testing.assert_array_equal(c, before)
    assert not np.signbit(scores).any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_the_sort_is_the_same_for_any_number_of_threads(monkeypatch, dtype, threads):
    rng = np.random.default_rng(threads)
    monkeypatch.setattr("truecal.profile.rows._count_threads", lambda rows: threads)
    for c in (rng.random(70_001), rng.integers(0, 7, 70_001) / 7, np.full(70_001, 0.3), np.arange(9)[::-1] / 9):
        c = c.astype(dtype)
        y = (rng.random(len(c)) < 0.5).astype(np.uint8)
        scores, outcomes = packed_sort(c[None], y[None])
        order = np.lexsort((y, c))
        np.testing.assert_array_equal(scores, c[order][None])
        np.testing.assert_array_equal(outcomes, y[order][None])


def test_datasets_of_a_batch_are_sorted_by_themselves_on_several_threads(monkeypatch):
    monkeypatch.setattr("truecal.profile.rows._count_threads", lambda rows: 3)
    monkeypatch.setattr("truecal.profile.rows._MIN_ROWS_PER_THREAD", 100)
    c = np.random.default_rng(0).random((3, 500)) / np.array([[1], [2], [3]])
    scores, _ = packed_sort(c, np.zeros(c.shape, np.uint8))
    np.testing.assert_array_equal(scores, np.sort(c, axis=1))


def test_large_datasets_are_shared_by_threads_and_small_ones_are_not(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(16), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [_count_threads(rows) for rows in (1, 10**6, 3 << 19, 10**7)] == [1, 1, 3, 4]
    for limit, threads in (("1", 1), ("2", 2), ("0", 1), ("many", 4), ("64", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert _count_threads(10**7) == threads


@given(data=small())
def test_sums_at_every_row_equal_the_naive_ones(data):
    c, y = data
    profile = tc.profile.Profile.from_arrays(c, y)
    cut = profile.at_count(np.arange(len(c) + 1)[None, :])
    for rows in range(len(c) + 1):
        expected = naive_sums(c, y, np.ones(len(c)), rows)
        for name, value in zip(SUMS, expected, strict=True):
            assert profile.sums(name, cut)[0, rows] == pytest.approx(value, abs=1e-12)


@given(data=small(), seed=st.integers(0, 99))
def test_weighted_sums_follow_the_weight(data, seed):
    c, y = data
    w = np.random.default_rng(seed).random(len(c)) + 0.1
    profile = tc.profile.Profile.from_arrays(c, y, w)
    mass = np.broadcast_to(profile.prefix("w"), (1, len(c) + 1))
    cut = profile.at_mass(mass)
    for rows in range(len(c) + 1):
        # rows of equal score have no order, so only the ends of their groups can be compared
        if 0 < rows < len(c) and profile.scores[0, rows - 1] == profile.scores[0, rows]:
            continue
        for name, value in zip(SUMS, naive_sums(c, y, w, rows), strict=True):
            assert profile.sums(name, cut)[0, rows] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("rows", [65_537, 100_003, 65_536 + 64])
def test_large_profiles_sum_in_blocks_to_the_same_result(rows):
    rng = np.random.default_rng(1)
    c, y = np.round(rng.random((2, rows)), 5), rng.random((2, rows)) < 0.5
    w = rng.random((2, rows))
    position = np.array([[0, 1, 63, 64, 65, 50_000, 65_536, rows - 1, rows], [rows, *range(100, 108)]])
    for weights, datasets in ((None, 1), (None, 2), (w, 2)):
        profile = tc.profile.Profile.from_arrays(c[:datasets], y[:datasets], weights)
        for points in (position[:datasets], position[:1]):
            for name in ("c", "y", "cc", "cy"):
                sparse = profile.sums(name, Cut(points, points))
                dense = np.take_along_axis(profile.prefix(name), np.broadcast_to(points, (datasets, 9)), axis=1)
                np.testing.assert_allclose(sparse, dense, rtol=1e-12)


def test_ties_of_large_profiles_are_shared_like_those_of_small_ones():
    rng = np.random.default_rng(2)
    c, y = rng.integers(0, 50, 70_000) / 50, rng.random(70_000) < 0.5
    large = tc.profile.Profile.from_arrays(c, y)
    cut = large.mass_cut(17, "split")
    for k, t in enumerate(-(-np.arange(18) * 70_000 // 17)):
        value = large.scores[0, min(t, 69_999)]
        below, mask = y[c < value].sum(), y[c == value]
        expected = below + (t - (c < value).sum()) * mask.mean()
        assert large.sums("y", cut)[0, k] == pytest.approx(expected)


def test_cuts_of_large_profiles_see_the_ties_they_fall_into():
    """Looking only where the cuts are must find what looking at every row finds."""
    c = np.arange(70_000) / 70_000
    c[23_330:23_340] = c[23_330]  # a third is inside, two thirds are not
    seeking, knowing = (tc.profile.Profile.from_arrays(c, np.ones(70_000)) for _ in range(2))
    assert knowing.has_ties
    for bins in (3, 5):
        cut, known_names = (profile.mass_cut(bins) for profile in (seeking, knowing))
        np.testing.assert_array_equal(cut.below, known_names.below)
        np.testing.assert_array_equal(cut.above, known_names.above)
    assert seeking.mass_cut(3).below[0, 1] == 23_330


@pytest.mark.parametrize("bins", [1, 3, 10, 15, 100])
def test_edges_are_whole_numbers_over_bins(bins):
    """Scores exactly on j/b open bin j; a rule by linspace or floor(c * b) puts some of them one bin lower."""
    edges = np.arange(bins + 1) / bins
    for dtype in (np.float64, np.float32):
        profile = tc.profile.Profile.from_arrays(edges.astype(dtype), np.ones(bins + 1))
        counts = np.diff(profile.width_cut(bins).below[0])
        np.testing.assert_array_equal(counts, [1] * (bins - 1) + [2])  # the last bin also holds 1.0
        counts = np.diff(profile.width_cut(bins, "right").below[0])
        np.testing.assert_array_equal(counts, [2] + [1] * (bins - 1))  # the first bin also holds 0.0


def test_a_split_tie_goes_to_the_side_with_more_of_it():
    profile = tc.profile.Profile.from_arrays([0.1, 0.5, 0.5, 0.5, 0.9, 0.9], [0, 1, 0, 1, 1, 1])
    # cut after 3 of 6 rows: two of the three 0.5 lie below, so all go below
    np.testing.assert_array_equal(profile.mass_cut(2).below, [[0, 4, 6]])
    np.testing.assert_allclose(profile.sums("y", profile.mass_cut(2, "split")), [[0, 4 / 3, 4]])
    # cut after 2 of 6: one of three lies below, so all go above
    np.testing.assert_array_equal(profile.mass_cut(3).below, [[0, 1, 4, 6]])


@given(rows=st.integers(1, 30), bins=st.integers(1, 12), unit=st.sampled_from([1.0, 0.25]), seed=st.integers(0, 99))
def test_weighted_rows_without_ties_follow_the_one_tie_rule(rows, bins, unit, seed):
    """A row that a cut falls into goes to the side with the larger part of its weight, up when halfway, as a group of ties does."""
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 4, (3, rows)) * unit
    w[:, rng.integers(rows)] += unit
    profile = tc.profile.Profile.from_arrays(rng.random((3, rows)), rng.integers(0, 2, (3, rows)), w)
    mass = np.arange(bins + 1) * profile.total[:, None] / bins
    expected = profile.at_mass(np.ceil(mass) if profile.counted else mass).keep_ties()
    for name in SUMS:
        result = profile.sums(name, profile.mass_cut(bins))
        np.testing.assert_array_equal(result, profile.sums(name, expected))


def test_coarse_cells_keep_sums_and_ties():
    rng = np.random.default_rng(5)
    c, y = np.round(rng.random((2, 5000)) ** 0.1, 3), rng.random((2, 5000)) < 0.5
    profile = tc.profile.Profile.from_arrays(c, y)
    coarse = profile.coarsen(100)
    assert coarse.rows == 100
    assert (np.diff(coarse.scores, axis=1) >= 0).all()
    np.testing.assert_allclose(coarse.total, 5000)
    for name in SUMS:
        ends = [np.array([[p.rows]]) for p in (profile, coarse)]
        one, other = (p.sums(name, Cut(e, e)) for p, e in zip((profile, coarse), ends, strict=True))
        np.testing.assert_allclose(one, other, rtol=1e-12)
    alone = tc.profile.Profile.from_arrays(np.repeat([0.25, 0.5], 500), np.ones(1000)).coarsen(10)
    np.testing.assert_array_equal(alone.scores, [[0.25, 0.5]])
    np.testing.assert_array_equal(alone.weights, [[500, 500]])


def test_sample_size_under_weights():
    c, y = [0.1, 0.2, 0.3], [0, 1, 1]
    assert tc.profile.Profile.from_arrays(c, y).size == 3
    assert tc.profile.Profile.from_arrays(c, y, [2, 1, 3]).size == 6  # counts
    assert tc.profile.Profile.from_arrays(c, y, [0.5, 0.5, 0.5]).size == pytest.approx(
        3
    )  # importance: only ratios matter
    assert tc.profile.Profile.from_arrays(c, y, [9.5, 0.01, 0.01]).size == pytest.approx(1, abs=0.01)


def test_a_part_of_a_batch_counts_rows_as_the_batch_does():
    """Cells of fractional size count rows; a part of their batch must not take them for importance weights."""
    cells = Counted(np.linspace(0.1, 0.9, 4)[None], np.full((3, 4), 0.5), np.full((3, 4), 10.5) + np.eye(3, 4))
    np.testing.assert_array_equal(cells.take(slice(1, 3)).size, cells.size[1:])
    assert cells.size[0] == 43.0


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_a_batch_at_few_cuts_are_prefix_sums(weighted):
    rng = np.random.default_rng(0)
    c, y = rng.random((3, 500)).round(2), rng.random((3, 500)) < 0.5
    weights = rng.integers(0, 3, (3, 500)) if weighted else None
    rows = np.array([[0, 0, 7, 7, 200, 499, 500, 500], [3, 8, 9, 9, 9, 10, 450, 451], [0, 0, 0, 0, 0, 0, 0, 0]])
    for name in ("c", "y", "cc", "cy"):
        for cut in (rows, rows[:1], rows[:, ::-1]):  # descending cuts take the prefix sums
            profile = tc.profile.Profile.from_arrays(c, y, weights)
            sums = profile.sums(name, Cut(cut, cut))
            expected = [profile.prefix(name)[i][cut[i % len(cut)]] for i in range(3)]
            np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)


def test_rows_are_independent_unless_they_have_units():
    profile = tc.profile.Profile.from_arrays([0.1, 0.2, 0.7], [0, 0, 1])
    assert profile.independent
    units = np.array([0, 0, 1])
    assert not SortedRows(profile.scores, profile.outcomes, units=units).independent
