"""Distances: hand-computed cases, their definitions on random data, and what they refuse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.estimators.generalized import naive
from truecal.errors import InputError
from truecal.estimators import ClassWeighted, InterInterval, Lp, Mahalanobis, TotalVariation


def test_the_papers_interval_costs_nothing_inside_and_the_excess_outside():
    low = InterInterval(0, 0.33)
    assert low(0.2, 0.30) == 0
    assert low(0.2, 0.33) == 0
    assert low(0.2, 0.40) == pytest.approx(0.07, abs=1e-15)
    assert InterInterval(0.66, 1)(0.7, 0.5) == pytest.approx(0.16, abs=1e-15)
    assert InterInterval(0.33, 0.66)(0.5, np.array([0.3, 0.5, 0.7])) == pytest.approx([0.03, 0, 0.04])


def test_hand_computed_distances():
    g, y = [0.7, 0.2, 0.1], [0.4, 0.4, 0.2]
    assert TotalVariation()(g, y) == pytest.approx(0.3)
    assert Lp(1)(g, y) == pytest.approx(0.6)
    assert Lp(2)(g, y) == pytest.approx(math.sqrt(0.14))
    assert Lp(math.inf)(g, y) == pytest.approx(0.3)
    assert ClassWeighted([1, 0, 4])(g, y) == pytest.approx(math.sqrt(0.09 + 0.04))
    assert Mahalanobis([[1, 1, 0], [1, 1, 0], [0, 0, 0]])(g, y) == pytest.approx(0.1)  # |(y1 - g1) + (y2 - g2)|


@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.sampled_from([1, 1.5, 2, 3, math.inf]))
def test_distances_equal_their_definitions(d, seed, p):
    rng = np.random.default_rng(seed)
    g, y = rng.dirichlet(np.ones(d), 2)
    w = rng.random(d) + 0.01
    half = rng.normal(size=(d, d))
    pairs = [
        (TotalVariation(), naive.total_variation),
        (Lp(p), naive.lp(p)),
        (ClassWeighted(w), naive.weighted(w)),
        (Mahalanobis(half @ half.T), naive.mahalanobis(half @ half.T)),
    ]
    for ours, definition in pairs:
        assert float(ours(g, y)) == pytest.approx(definition(g, y), abs=1e-12)
        assert float(ours(g, g)) == 0
        assert float(ours(g, y)) == float(ours(y, g))


def test_a_diagonal_matrix_is_class_weights_and_the_identity_is_l2():
    g, y = np.random.default_rng(0).dirichlet(np.ones(4), (2, 7))
    np.testing.assert_allclose(Mahalanobis(np.diag([1, 2, 3, 4]))(g, y), ClassWeighted([1, 2, 3, 4])(g, y))
    np.testing.assert_allclose(Mahalanobis(np.eye(4))(g, y), Lp(2)(g, y))


def test_total_variation_of_two_events_is_the_difference():
    assert TotalVariation()([0.9, 0.1], [0.6, 0.4]) == pytest.approx(0.3)


def test_distances_are_values():
    assert ClassWeighted([1, 2]) == ClassWeighted((1.0, 2.0))
    assert hash(Mahalanobis(np.eye(2))) == hash(Mahalanobis([[1, 0], [0, 1]]))
    assert Lp(2) != Lp(3)


BAD = [
    (lambda: InterInterval(0.7, 0.3), r"the interval \[0.7, 0.3\] has low above high; swap them"),
    (lambda: InterInterval(0, 33), "must lie in"),
    (lambda: InterInterval(float("nan"), 1), "interval of two numbers"),
    (lambda: InterInterval("a", 1), "interval of two numbers"),
    (lambda: InterInterval(0, 1).check(3), "judges one probability, not 3 events"),
    (lambda: Lp(0.5), "p must be a number of at least 1, or inf, not 0.5"),
    (lambda: Lp(float("nan")), "p must be a number"),
    (lambda: ClassWeighted([1, -1]), "not negative"),
    (lambda: ClassWeighted([0, 0]), "not all zero"),
    (lambda: ClassWeighted([1, float("nan")]), "must be finite numbers, but contain nan"),
    (lambda: ClassWeighted([1, 2]).check(3), "2 class weights were given, but the lens has 3 events"),
    (lambda: Mahalanobis([[1, 2], [0, 1]]), r"must be symmetric: M\[0, 1\] is 2 but M\[1, 0\] is 0"),
    (lambda: Mahalanobis([[1, 2], [2, 1]]), "positive semidefinite, but has the eigenvalue -1"),
    (lambda: Mahalanobis([[1, 2, 3], [2, 1, 3]]), r"must be square, not of shape \(2, 3\)"),
    (lambda: Mahalanobis([[1, float("nan")], [float("nan"), 1]]), "finite numbers, but contain nan"),
    (lambda: Mahalanobis([[1], [1, 2]]), "rows have different lengths"),
    (lambda: Mahalanobis(np.eye(3)).check(2), "the matrix is 3 x 3, but the lens has 2 events"),
    (lambda: TotalVariation()([0.5, 0.5], [1.0]), "must match"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_distances_are_refused_in_one_sentence(wrong, message):
    with pytest.raises(InputError, match=message) as refused:
        wrong()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "distance",
    [
        TotalVariation(),
        Lp(1),
        Lp(2),
        Lp(3),
        Lp(np.inf),
        ClassWeighted([1, 0, 4]),
        Mahalanobis([[2, -1, 0], [-1, 2, 0], [0, 0, 1]]),
    ],
    ids=str,
)
def test_slopes_support_the_distance(distance):
    """s . g is the distance of g, and at most that of any other gap; at 0 there is none."""
    rng = np.random.default_rng(0)
    gaps = rng.normal(size=(200, 3))
    gaps -= gaps.mean(axis=1, keepdims=True)
    slopes = distance.slope(gaps, gaps, 0)
    own_values = distance.between(gaps, gaps, 0)
    np.testing.assert_allclose((slopes * gaps).sum(axis=1), own_values, atol=1e-12)
    assert ((slopes @ gaps.T) <= own_values[None] + 1e-12).all()
    assert not distance.slope(np.zeros((1, 3)), np.zeros((1, 3)), 0).any()
