"""Isotonic calibration against the min-max formula and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression

from truecal.recalibration import IsotonicCalibration

rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1), st.integers(1, 4)), min_size=3, max_size=25)


def two_classes(data: list[tuple[int, int, int]]) -> bool:
    return len({y for _, y, _ in data}) == 2


@given(rows.filter(two_classes))
@settings(max_examples=150, deadline=None)
def test_the_fit_is_the_max_of_min_means(data: list[tuple[int, int, int]]) -> None:
    s, y, w = (np.array(column, float) for column in zip(*data, strict=True))
    s /= 12
    levels = np.unique(s)
    ones = np.array([(w * y)[s == v].sum() for v in levels])
    mass = np.array([w[s == v].sum() for v in levels])
    naive = [
        max(min(ones[i : j + 1].sum() / mass[i : j + 1].sum() for j in range(k, len(levels))) for i in range(k + 1))
        for k in range(len(levels))
    ]
    fixed = IsotonicCalibration().fit(s, y, w)
    assert_allclose(fixed.predict_proba(levels)[:, 1], naive, atol=1e-12)


@pytest.mark.parametrize("decimals", [2, 8])
def test_agrees_with_scikit_learn_between_and_outside_points(decimals: int) -> None:
    rng = np.random.default_rng(0)
    s = np.round(rng.uniform(0.2, 0.8, 3000), decimals)
    y = (rng.random(3000) < s**2).astype(int)
    w = rng.random(3000)
    ours = IsotonicCalibration().fit(s, y, w)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(s, y, w)
    grid = np.linspace(0, 1, 4001)
    assert_allclose(ours.predict_proba(grid)[:, 1], theirs.predict(grid), atol=1e-9)


def test_scores_as_near_as_scikit_learn_merges_them_are_one() -> None:
    rng = np.random.default_rng(1)
    # as naive Bayes gives them: most far below the resolution of doubles near 1, some around it
    s = np.concatenate([10 ** rng.uniform(-40, -13, 300), rng.integers(0, 40, 200) * 3e-16, rng.random(100)])
    y = (rng.random(600) < np.maximum(s, 0.1)).astype(int)
    y[s.argmin()] = 0
    w = rng.random(600)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(s, y, w).predict(s)
    assert_allclose(IsotonicCalibration().fit(s, y, w).predict_proba(s)[:, 1], theirs, atol=1e-12)


@given(st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_no_two_scores_are_reversed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    s = rng.random(50)
    fixed = IsotonicCalibration().fit(s, np.r_[0, 1, rng.integers(0, 2, 48)])
    grid = np.sort(np.r_[rng.random(500), s, np.nextafter(s, 0), np.nextafter(s, 1)])
    assert (np.diff(fixed.predict_proba(grid)[:, 1]) >= 0).all()


def test_tied_scores_do_not_depend_on_the_order_of_rows() -> None:
    s = np.array([0.3, 0.3, 0.3, 0.6, 0.6])
    y = np.array([1, 0, 0, 1, 0])
    fixed = IsotonicCalibration().fit(s, y).predict_proba(s)
    assert_array_equal(IsotonicCalibration().fit(s[::-1], y[::-1]).predict_proba(s), fixed)
    assert_allclose(fixed[[0, 4], 1], [1 / 3, 1 / 2])


def test_constant_scores_and_reversed_scores_give_the_base_rate() -> None:
    assert_allclose(IsotonicCalibration().fit([0.4] * 4, [0, 1, 1, 1]).predict_proba([0.0, 0.4, 1.0])[:, 1], 0.75)
    assert_allclose(IsotonicCalibration().fit([0.1, 0.2, 0.3], [1, 1, 0]).predict_proba([0.1, 0.3])[:, 1], 2 / 3)


def test_knots_inside_a_flat_stretch_are_dropped() -> None:
    s = np.linspace(0, 1, 1001)
    fixed = IsotonicCalibration().fit(s, s > 0.5)
    assert len(fixed.maps_[0].x) == 4
