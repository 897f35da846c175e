"""An answer from a sketch against the answer of all rows: never further away than stated, and close where it is promised."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecal as tc
from tests.engines.worlds import KINDS, draw, score_lists
from truecal.profile import Sketch

PROVED = (
    tc.BinnedECE(bins=16),
    tc.BinnedECE(),
    tc.BinnedECE(bins=10, closed="right", norm=2),
    tc.BinnedECE(scheme="mass"),
    tc.BinnedECE(scheme="mass", norm=2, ties="split"),
    tc.BinnedECE(bins=5, norm=np.inf),
    tc.BinnedECE(bins=4, scheme="mass", norm=3),
    tc.estimators.LabelBinnedECE(),
    tc.estimators.LabelBinnedECE(norm=2, scheme="mass"),
    tc.estimators.LabelBinnedECE(norm=np.inf),
    tc.estimators.LabelBinnedECE(norm=3),
    tc.DebiasedECE(),
    tc.DebiasedECE(bins=3, norm=1),
    tc.DebiasedECE(correction="exact", ties="split"),
    tc.SweepECE(),
    tc.SweepECE(scheme="width", norm=1),
    tc.estimators.IsotonicError(),
    tc.SmoothECE(),
    tc.estimators.KernelDensityECE(),
    tc.NearestECE(),
    tc.NearestECE(neighbors=7, norm=1),
    tc.NearestECE(neighbors=60, norm=np.inf),
)
PROBED = (tc.RankSeries(), tc.RankSeries(norm=1))


def both(estimator, c, y, w=None):
    exact, result = estimator(tc.profile.Profile.from_arrays(c, y, w)), estimator(Sketch.from_arrays(c, y, w))
    return exact, result, abs(float(exact) - float(result))


@given(score_lists(), st.integers(0, 2**32), st.sampled_from(PROVED))
def test_never_further_than_stated(scores, seed, estimator):
    rng = np.random.default_rng(seed)
    c = np.array(scores)
    _, result, away = both(estimator, c, rng.integers(0, 2, len(c)))
    assert away <= result.sketch_error


@given(st.integers(2, 400), st.integers(0, 2**32), st.sampled_from(PROVED), st.sampled_from(["up", "down", "any"]))
def test_never_further_than_stated_when_rows_conspire(n, seed, estimator, order):
    """All scores crowd into a few cells, and inside the cells outcomes follow the scores, go against them, or do not care."""
    rng = np.random.default_rng(seed)
    c = np.sort(0.3 + rng.integers(1, 6) * 2.0**-13 * rng.random(n))
    y = rng.integers(0, 2, n)
    y = {"up": np.sort(y), "down": np.sort(y)[::-1], "any": y}[order]
    _, result, away = both(estimator, c, y)
    assert away <= result.sketch_error


def nasty(kind, n, rng):
    """Scores that crowd into few cells, tie inside cells, or are all but 0 and 1, in ascending order."""
    return np.sort(
        {
            "crowded": lambda: 0.3 + rng.integers(1, 6) * 2.0**-13 * rng.random(n),
            "narrow": lambda: 0.3 + 10.0 ** rng.uniform(-4, -1) * rng.random(n),
            "half crowded": lambda: np.concatenate([0.3 + 1e-4 * rng.random(n // 2), rng.random(n - n // 2)]),
            "tied": lambda: np.round(0.3 + 1e-3 * rng.random(n), 5),
            "ends": lambda: rng.beta(0.05, 0.05, n),
        }[kind]()
    )


def conspiring(order, c, rng):
    """Outcomes that are calibrated, follow the scores, go against them, or come in runs."""
    n = len(c)
    return {
        "calibrated": lambda: rng.random(n) < c,
        "up": lambda: np.sort(rng.integers(0, 2, n)),
        "down": lambda: np.sort(rng.integers(0, 2, n))[::-1],
        "runs": lambda: np.arange(n) // max(1, n // rng.integers(2, 12)) % 2,
    }[order]().astype(np.uint8)


NASTY = st.sampled_from(["crowded", "narrow", "half crowded", "tied", "ends"])
ORDERS = st.sampled_from(["calibrated", "up", "down", "runs"])


@settings(max_examples=60)
@given(NASTY, ORDERS, st.floats(0.3, 3.5), st.integers(0, 2**32), st.sampled_from(PROVED))
def test_never_further_than_stated_on_nasty_data(kind, order, digits, seed, estimator):
    rng = np.random.default_rng(seed)
    c = nasty(kind, int(10**digits), rng)
    _, result, away = both(estimator, c, conspiring(order, c, rng))
    assert away <= result.sketch_error


@settings(max_examples=40)
@given(NASTY, ORDERS, st.floats(0.3, 3.5), st.integers(0, 2**32), st.sampled_from(PROBED))
def test_the_probed_bound_holds_on_nasty_data(kind, order, digits, seed, estimator):
    rng = np.random.default_rng(seed)
    c = nasty(kind, int(10**digits), rng)
    _, result, away = both(estimator, c, conspiring(order, c, rng))
    assert away <= result.sketch_error


@given(score_lists(), st.integers(0, 2**32), st.sampled_from(PROBED))
def test_the_probed_bound_holds_on_any_scores(scores, seed, estimator):
    rng = np.random.default_rng(seed)
    c = np.array(scores)
    _, result, away = both(estimator, c, rng.integers(0, 2, len(c)))
    assert away <= result.sketch_error


@pytest.mark.parametrize("low", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("estimator", PROBED)
def test_the_probed_bound_holds_for_scores_that_differ_in_the_last_digit(estimator, low):
    rng = np.random.default_rng(5)
    rows = rng.random(300) < 0.5
    c = np.where(rows, np.nextafter(low, 1.0), low)
    for y in (rows, ~rows, rng.random(300) < 0.5, np.ones(300)):
        _, result, away = both(estimator, c, y.astype(int))
        assert away <= result.sketch_error


@given(st.integers(20, 400), st.integers(0, 2**32), st.sampled_from(PROVED[:13]))
def test_never_further_than_stated_with_importance_weights(n, seed, estimator):
    rng = np.random.default_rng(seed)
    c = 0.3 + 2.0**-11 * rng.random(n)
    _, result, away = both(estimator, c, rng.integers(0, 2, n), rng.random(n) + 0.1)
    assert away <= result.sketch_error
    assert result.n == n


@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_stated_bounds_hold_on_every_kind_of_scores(kind, n):
    c, y = draw(kind, n, 3)
    cells = Sketch.from_arrays(c, y).to_profile()
    for estimator in (*PROVED, *PROBED):
        exact, result, away = both(estimator, c, y)
        assert away <= result.sketch_error, estimator
        assert result.n == exact.n
        probed = result.sketch_bound == "probed"
        assert probed == (estimator in PROBED and bool((cells.low < cells.high).any()))


def test_the_bound_can_be_met():
    """Four rows in one cell on either side of an edge: the sketch cannot know, the bound says so, and the value does move."""
    c = 1 / 3 + np.array([-2e-6, -1e-6, 1e-6, 2e-6])
    exact, result, away = both(tc.BinnedECE(bins=3), c, np.array([0, 0, 1, 1]))
    assert away > 0.1
    assert away <= result.sketch_error
    assert exact.sketch_error is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bins", [1, 2, 16, 128, 8192])
def test_equal_width_is_exact_when_edges_fall_on_cell_edges(kind, bins):
    c, y = draw(kind, 20_000, 4)
    for norm in (1, 2):
        exact, result, away = both(tc.BinnedECE(bins=bins, norm=norm), c, y)
        assert away <= 1e-12
        np.testing.assert_array_equal(exact.bins.counts, result.bins.counts)


def test_decimal_scores_on_bin_edges_are_exact_in_every_precision():
    """Scores 0.1, 0.2, ... on the edges of ten bins: means of equal scores must not slip over the edge."""
    for dtype in (np.float64, np.float32, np.float16):
        c = np.repeat(np.arange(11) / 10, 997).astype(dtype)
        y = np.random.default_rng(0).integers(0, 2, len(c))
        for closed in ("left", "right"):
            exact, result, away = both(tc.BinnedECE(bins=10, closed=closed), c, y)
            assert away <= 1e-11
            np.testing.assert_array_equal(exact.bins.counts, result.bins.counts)


CLOSE = (
    tc.BinnedECE(scheme="mass"),
    tc.BinnedECE(scheme="mass", norm=2),
    tc.DebiasedECE(),
    tc.DebiasedECE(norm=1),
    tc.RankSeries(),
)


@pytest.mark.parametrize("kind", KINDS)
def test_within_1e_4_at_a_million_rows(kind):
    c, y = draw(kind, 1_000_000, 5)
    for estimator in CLOSE:
        assert both(estimator, c, y)[2] <= 1e-4


@pytest.mark.parametrize("n", [50, 1000, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_below_a_tenth_of_the_standard_error(kind, n):
    """The standard error from 12 datasets of the same kind."""
    c, y = draw(kind, n, 6)
    for estimator in CLOSE:
        error = np.std(
            [estimator(tc.profile.Profile.from_arrays(*draw(kind, n, seed))).value for seed in range(100, 112)]
        )
        if error > 0:
            assert both(estimator, c, y)[2] <= 0.1 * error, estimator


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_are_not_blurred_at_all(kind):
    c, y = draw(kind, 200, 8)
    for estimator in (*PROVED, *PROBED):
        assert both(estimator, c, y)[2] <= 1e-7, estimator


def test_a_cut_through_a_cell_uses_the_covariance_that_the_cell_keeps():
    """Ones below a cut, guessed from a cell of 200 rows: the fair share leaves f (1 - f) of their variance, this leaves
    f (1 - f) (1 - 3 f (1 - f))."""
    rng = np.random.default_rng(0)
    for fraction in (0.25, 0.5, 0.75):
        misses = []
        for _ in range(200):
            c, y = np.sort(0.3 + 2.0**-15 * rng.random(200)), rng.integers(0, 2, 200)
            profile = Sketch.from_arrays(c, y).to_profile()
            below = profile.part("y", np.zeros(1, np.intp), np.array([fraction]))[0]
            actual = y[: round(200 * fraction)].sum()
            misses.append((below - actual, fraction * y.sum() - actual))
        ours, fair = np.mean(np.square(misses), axis=0)
        left = fraction * (1 - fraction)
        assert fair == pytest.approx(200 * left / 4, rel=0.25)
        assert ours == pytest.approx(200 * left * (1 - 3 * left) / 4, rel=0.25)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_parts_of_a_cell_stay_within_it(fraction):
    rng = np.random.default_rng(1)
    c = 0.3 + 2.0**-15 * rng.random(30)
    for y in (np.sort(c) > np.median(c), np.sort(c) < np.median(c), np.zeros(30), np.ones(30)):
        profile = Sketch.from_arrays(np.sort(c), y).to_profile()
        w, ones = (profile.part(name, np.zeros(1, np.intp), np.array([fraction]))[0] for name in ("w", "y"))
        assert max(0, y.sum() - (30 - w)) - 1e-9 <= ones <= min(w, y.sum()) + 1e-9
