"""Cuts, edges and look-ups in tables, each beside a loop over its entries."""

import numpy as np
import pytest

from truecal.profile import Cut, width_edges
from truecal.profile.binning import every_edge
from truecal.profile.rows import gather, search


def test_cuts_inside_ties_move_to_the_nearer_end_and_up_when_halfway():
    fraction = np.array([[0.0, 0.25, np.nextafter(0.5, 0), 0.5, 0.75, 1.0]])
    below, above = np.arange(6)[None] * 10, np.arange(6)[None] * 10 + 4
    results = []

    def known(name, fraction=None):
        results.append((name, fraction))
        return np.zeros((1, 6))

    selected = Cut(below, above, fraction, known).keep_ties()
    np.testing.assert_array_equal(selected.below, [[0, 10, 20, 34, 44, 54]])
    np.testing.assert_array_equal(selected.above, selected.below)
    assert selected.fraction is None
    selected.sums("w")
    assert results[0][0] == "w"
    np.testing.assert_array_equal(results[0][1], [[0, 0, 0, 1, 1, 1]])
    assert Cut(below, above, fraction).keep_ties().sums is None


def test_cuts_between_rows_stay_where_they_are():
    cut = Cut(np.array([[1, 2]]), np.array([[1, 2]]))
    assert cut.keep_ties() is cut


@pytest.mark.parametrize("bins", [1, 4, [3], [1, 2, 5], [7, 1]])
def test_edges_of_every_number_of_bins_in_turn(bins):
    counts = [bins] if isinstance(bins, int) else bins
    expected = [(k, b) for b in counts for k in range(b + 1)]
    k, b = every_edge(bins)
    assert list(zip(k.tolist(), b.tolist(), strict=True)) == expected
    for dtype in (np.float32, np.float64):
        edges = width_edges(bins, np.dtype(dtype))
        assert edges.dtype == dtype
        np.testing.assert_array_equal(edges, [dtype(k / b) for k, b in expected])


def test_every_dataset_may_have_bins_of_its_own():
    k, b = every_edge(np.array([[3], [1], [4]]))
    np.testing.assert_array_equal(k, [[0, 1, 2, 3, 3], [0, 1, 1, 1, 1], [0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(b, [[3] * 5, [1] * 5, [4] * 5])


@pytest.mark.parametrize("more", [(), (2,)])
@pytest.mark.parametrize(("entries", "asked"), [(6, 4), (6, 1), (1, 4)])
@pytest.mark.parametrize(("tables", "indices"), [(1, 1), (3, 1), (1, 3), (3, 3)])
def test_entries_are_gathered_dataset_by_dataset(tables, indices, entries, asked, more):
    rng = np.random.default_rng(0)
    table, index = rng.random((tables, entries, *more)), rng.integers(0, entries, (indices, asked))
    result = gather(table, index)
    assert result.shape == (max(tables, indices), asked, *more)
    for i in range(max(tables, indices)):
        for j in range(asked):
            np.testing.assert_array_equal(result[i, j], table[i % tables, index[i % indices, j]])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("tables", "asked"), [(1, 1), (3, 1), (1, 3), (3, 3)])
def test_places_are_found_dataset_by_dataset(tables, asked, side):
    rng = np.random.default_rng(1)
    table, values = np.sort(rng.integers(0, 5, (tables, 8)), axis=1), rng.integers(-1, 6, (asked, 7))
    result = search(table, values, side)
    assert result.shape == (max(tables, asked), 7)
    for i in range(max(tables, asked)):
        for j in range(7):
            row, value = table[i % tables], values[i % asked, j]
            assert result[i, j] == ((row < value) if side == "left" else (row <= value)).sum()
