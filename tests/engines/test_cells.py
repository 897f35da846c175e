"""The cells: exact, monotone, left-closed, fine near both ends."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.worlds import KINDS, draw, score_lists
from truecal.profile.cells import CELLS, SPLIT, all_edges, cell_edge, cell_number


def naive_edge(score: float) -> Fraction:
    """The definition in exact fractions: nearest power of two by comparison, then a floor."""
    c = Fraction(score)
    v = c if c < Fraction(1, 2) else c - 1
    z = Fraction(1, 2)
    while abs(v) < Fraction(3, 4) * z and z > Fraction(1, 2**52):
        z /= 2
    q = max(Fraction(2**14), Fraction(2**7) / z)
    return (v * q).__floor__() / q + (c >= Fraction(1, 2))


@given(score_lists())
def test_cells_are_those_of_exact_arithmetic(scores):
    result = cell_edge(np.array(scores))
    for score, edge in zip(scores, result.tolist(), strict=True):
        assert Fraction(edge) == naive_edge(score)


@given(score_lists())
def test_numbers_edges_and_offsets_agree(scores):
    c = np.array(scores)
    number, above = cell_number(c)
    np.testing.assert_array_equal(all_edges()[number], cell_edge(c))
    np.testing.assert_array_equal(cell_edge(c) + above, c)
    assert (above >= 0).all()
    order = np.argsort(c)
    assert (np.diff(number[order]) >= 0).all()


@pytest.mark.parametrize("share", [0.01, 0.9])
def test_scores_of_the_middle_are_numbered_like_all_others(share):
    rng = np.random.default_rng(0)
    ends = np.array([0.75 * 2.0**-7, 1 - 0.75 * 2.0**-7, 0.5])
    near = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, 1), [0.0, -0.0, 1.0, 5e-324, 1 - 2.0**-53]])
    tail = np.exp(-rng.uniform(5.5, 40, int(1000 * share)))
    c = np.concatenate([near, tail, 1 - tail, rng.uniform(0.01, 0.99, int(2000 * (1 - share)))])
    for scores in (c, c.astype(np.float32)):
        number, above = cell_number(scores)
        exact = scores.astype(np.float64)
        np.testing.assert_array_equal(all_edges()[number], cell_edge(scores))
        np.testing.assert_array_equal(above, exact - cell_edge(scores))
        one_by_one = [cell_number(scores[i : i + 1])[0][0] for i in range(len(near))]
        np.testing.assert_array_equal(number[: len(near)], one_by_one)


@given(st.floats(1e-15, 0.5))
def test_the_split_finds_the_nearest_power_of_two(v):
    t = np.float64(v) * SPLIT
    z = float(abs(t - (t - v)))
    assert np.frexp(z)[0] == 0.5
    assert 0.75 * z <= v < 1.5 * z


def test_a_cell_holds_its_left_edge_and_ends_before_the_next():
    edges = np.unique(all_edges())
    np.testing.assert_array_equal(cell_edge(edges), edges)
    np.testing.assert_array_equal(cell_edge(np.nextafter(edges[1:], 0)), edges[:-1])


def test_cells_are_fine_near_both_ends():
    edges = np.unique(all_edges())
    assert CELLS < 30_000
    low, width = edges[:-1], np.diff(edges)
    near_0 = (low > 1e-15) & (low < 0.005)
    near_1 = (low > 0.995) & (low < 1 - 1e-13)
    assert (width[near_0] / low[near_0]).max() <= 1 / 96
    assert (width[near_1] / (1 - low[near_1])).max() <= 1 / 90
    assert width.max() == 2.0**-14


@pytest.mark.parametrize("bins", [2**k for k in range(15)])
def test_equal_width_edges_of_powers_of_two_are_cell_edges(bins):
    edges = np.arange(bins + 1) / bins
    np.testing.assert_array_equal(cell_edge(edges), edges)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_scores_are_cut_as_the_float64_they_equal(kind):
    c = draw(kind, 2000, 0)[0].astype(np.float32)
    np.testing.assert_array_equal(cell_edge(c), cell_edge(c.astype(np.float64)))
