"""Rows that are not sorted unless something needs it: one pass for bins of equal width, a selection for a few ranks."""

import numpy as np
import pytest

import truecal as tc
from truecal.errors import InputError
from truecal.profile import binning, rows, width_edges
from truecal.profile.binning import one_pass, width_bins
from truecal.profile.rows import packed_sort, select_sums

N = 140_000  # just enough not to be sorted at once
RNG = np.random.default_rng(0)
SHAPES = {
    "uniform": RNG.random(N),
    "near 0": RNG.random(N) ** 12,
    "near 1": 1 - RNG.random(N) ** 12,
    "tiny": RNG.random(N) * 1e-20,
    "two digits": np.round(RNG.random(N), 2),
    "one value": np.full(N, 0.3),
    "mostly 1": np.where(RNG.random(N) < 0.7, 1.0, RNG.random(N)),
    "mostly 0": np.where(RNG.random(N) < 0.7, 0.0, RNG.random(N)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("bins", [1, 2, 3, 10, 15, 49, 1000])
def test_width_bins_are_exact_next_to_every_edge(dtype, closed, bins):
    if not one_pass(bins, np.dtype(dtype)):
        assert dtype is np.float16
        assert bins > 50
        return
    edge = width_edges(bins, np.dtype(dtype))
    down, up = np.nextafter(edge, dtype(0)), np.nextafter(edge, dtype(1))
    scores = np.concatenate([edge, down, up, np.nextafter(down, dtype(0)), np.nextafter(up, dtype(1)), [0, -0.0, 1]])
    scores = scores.astype(dtype)
    ones = (np.arange(len(scores)) % 3 == 0).astype(np.uint8)
    bin_ = np.searchsorted(edge[1:-1], scores, "right" if closed == "left" else "left")
    result = width_bins(scores[None], ones[None], bins, closed, squares=True)
    for table, values in ((result.count, np.ones(len(scores))), (result.score, scores), (result.square, scores)):
        naive = np.zeros((bins, 2))
        exact = values.astype(np.float64)
        np.add.at(naive, (bin_, ones), exact**2 if table is result.square else exact)
        np.testing.assert_allclose(table[0], naive, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_of_rows_are_summed_like_single_rows(monkeypatch, shape, dtype):
    scores = SHAPES[shape][: 2 * binning._BLOCK + 4321].astype(dtype)  # two whole blocks, and an odd rest
    ones = (np.arange(len(scores)) % 3 == 0).astype(np.uint8)
    for bins, closed in ((15, "left"), (15, "right"), (10, "left"), (40, "left")):
        bin_ = np.searchsorted(width_edges(bins, scores.dtype)[1:-1], scores, "right" if closed == "left" else "left")
        exact = scores.astype(np.float64)
        naive = np.zeros((3, bins, 2), np.longdouble)  # sums of many equal doubles are off by more than 1e-12
        for table, values in zip(naive, (np.ones(len(exact)), exact, exact**2), strict=True):
            np.add.at(table, (bin_, ones), values)
        ways = []
        for lowest in (0, len(scores) + 1):
            monkeypatch.setattr(binning, "_SPARSE_FROM", lowest)
            result = width_bins(scores[None], ones[None], bins, closed, squares=True)
            ways.append(np.stack([result.count[0], result.score[0], result.square[0]]))
        np.testing.assert_array_equal(ways[0], ways[1])  # scipy's sums are numpy's, bit for bit
        np.testing.assert_array_equal(ways[0][0], naive[0])
        np.testing.assert_allclose(ways[0], naive, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_a_product_gives_the_bin_only_where_it_gives_that_of_every_score(dtype, closed):
    exact = [bins for bins in range(1, 33) if binning.Edges(np.dtype(dtype), bins, closed, 1)._lower_edges is None]
    assert {1, 2, 4, 8, 16, 32} <= set(exact) or closed == "right"
    assert (15 in exact) == (closed == "left" and dtype is not np.float16)
    if dtype is np.float16:  # all scores there are
        scores = np.arange(0, 0x3C01, dtype=np.uint16).view(np.float16)
        for bins in (*exact, 3, 15):
            naive = np.searchsorted(
                width_edges(bins, scores.dtype)[1:-1], scores, "right" if closed == "left" else "left"
            )
            np.testing.assert_array_equal(binning.Edges(scores.dtype, bins, closed, len(scores)).of(scores), naive)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("shape", SHAPES)
def test_selected_sums_are_those_of_a_sort(shape, dtype):
    scores, ones = SHAPES[shape].astype(dtype), (RNG.random(N) < 0.4).astype(np.uint8)
    c, y = packed_sort(scores, ones)
    exact = c.astype(np.float64)
    prefix = np.zeros((N + 1, 4))
    np.cumsum(np.stack([exact, y, exact**2, exact * y], axis=1), axis=0, out=prefix[1:])
    for bins in (1, 2, 15, 1024):
        ranks = -(-np.arange(bins + 1) * N // bins)
        inside = (ranks > 0) & (ranks < N)
        inside[inside] = c[ranks[inside] - 1] == c[ranks[inside]]
        value = c[np.minimum(ranks, N - 1)]
        first = np.where(inside, np.searchsorted(c, value, "left"), ranks)
        last = np.where(inside, np.searchsorted(c, value, "right"), ranks)
        selected = select_sums(scores, ones, ranks)
        np.testing.assert_array_equal(selected.first, first)
        np.testing.assert_array_equal(selected.last, last)
        np.testing.assert_allclose(selected.below, prefix[first], rtol=1e-11, atol=1e-300)
        np.testing.assert_allclose(selected.above, prefix[last], rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("shape", ["uniform", "near 1", "two digits", "mostly 1"])
@pytest.mark.parametrize("selected", [True, False])
def test_estimates_do_not_depend_on_whether_rows_were_sorted(monkeypatch, shape, selected):
    monkeypatch.setattr(rows, "_MIN_ROWS_SELECTED", N if selected else N + 1)
    c = SHAPES[shape]
    y = RNG.random(N) < c**1.2
    whole = tc.profile.Profile.from_arrays(c, y)
    assert whole.scores[0, 0] == c.min()  # asks for the order
    for estimator in (
        tc.BinnedECE(),
        tc.BinnedECE(bins=20, closed="right", norm=2),
        tc.BinnedECE(scheme="mass"),
        tc.BinnedECE(scheme="mass", ties="split"),
        tc.DebiasedECE(),
        tc.RankSeries(),
    ):
        fresh = tc.profile.Profile.from_arrays(c, y)
        result, reference = estimator(fresh), estimator(whole)
        assert result.value == pytest.approx(reference.value, rel=1e-9)
        assert result.direction == pytest.approx(reference.direction, rel=1e-8)


def test_bins_of_equal_width_need_no_sort(monkeypatch):
    monkeypatch.setattr(rows, "packed_sort", None)
    c = SHAPES["near 1"]
    est = tc.BinnedECE()(tc.profile.Profile.from_arrays(c, RNG.random(N) < c))
    assert est.bins is not None
    assert est.bins.weight.sum() == N
    batch = tc.BinnedECE()(tc.profile.Profile.from_arrays(c.reshape(4, -1), (c > 0.5).reshape(4, -1)))
    assert np.shape(batch.value) == (4,)


@pytest.mark.parametrize("n", [5000, N])
@pytest.mark.parametrize("name", ["w", "c", "y", "cc", "cy"])
def test_sums_of_bins_of_equal_width_are_those_of_their_rows(name, n):
    rng = np.random.default_rng(2)
    c, y = rng.random(n), rng.integers(0, 2, n)
    profile = tc.profile.Profile.from_arrays(c, y)
    cut = profile.width_cut(10)
    np.testing.assert_array_equal(np.diff(cut.below), np.bincount((c * 10).astype(int))[None])
    terms = {"w": np.ones(n), "c": c, "y": y, "cc": c * c, "cy": c * y}[name]
    expected = np.bincount((c * 10).astype(int), terms)
    np.testing.assert_allclose(np.diff(profile.sums(name, cut)), expected[None], rtol=1e-10)


def test_ranks_need_no_sort_until_the_third_set(monkeypatch):
    monkeypatch.setattr(rows, "_MIN_ROWS_SELECTED", N)
    sorts, sort = [], rows.Unsorted.sorted
    monkeypatch.setattr(rows.Unsorted, "sorted", lambda unsorted: sorts.append(len(unsorted.scores)) or sort(unsorted))
    c = SHAPES["uniform"]
    profile = tc.profile.Profile.from_arrays(c, RNG.random(N) < c**2)
    assert tc.BinnedECE(scheme="mass")(profile).value > 0.1
    assert tc.RankSeries()(profile).value > 0.1
    tc.BinnedECE(scheme="mass")(profile)
    assert not sorts
    tc.BinnedECE(bins=20, scheme="mass")(profile)
    assert len(sorts) == 1
    labels = (RNG.random(N) < c).astype(int)
    assert tc.calibration_error(labels, c).p_value > 0.001
    assert len(sorts) == 1


def test_arrays_changed_behind_a_profile_are_noticed():
    c, y = RNG.random(N), RNG.random(N) < 0.5
    profile = tc.profile.Profile.from_arrays(c, y)
    c[:] = 0.5
    with pytest.raises(InputError, match="changed after"):
        tc.BinnedECE()(profile)


def test_one_row_is_selected_as_it_is():
    selected = select_sums(np.array([0.25]), np.array([1], np.uint8), np.array([0, 1]))
    assert selected.first.tolist() == selected.last.tolist() == [0, 1]
    assert selected.below.tolist() == [[0, 0, 0, 0], [0.25, 1, 0.0625, 0.25]]
