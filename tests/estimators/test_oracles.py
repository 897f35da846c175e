"""Every estimator equals its naive definition."""

import math

import numpy as np
import pytest
from hypothesis import given

import truecal as tc
from tests import oracles
from tests.datasets import named, small

DATASETS = named()
CASES = pytest.mark.parametrize("name", list(DATASETS))


def profile(c, y):
    return tc.profile.Profile.from_arrays(c, y)


def check_binned(c, y):
    for bins in (1, 2, 7, 10, 15):
        for norm in (1, 2, 3, math.inf):
            for closed in ("left", "right"):
                ours = tc.BinnedECE(bins=bins, norm=norm, closed=closed)(profile(c, y)).value
                assert ours == pytest.approx(oracles.binned(c, y, bins, "width", norm, closed=closed), abs=1e-12)
            for ties in ("keep", "split"):
                ours = tc.BinnedECE(bins=bins, scheme="mass", norm=norm, ties=ties)(profile(c, y)).value
                assert ours == pytest.approx(oracles.binned(c, y, bins, "mass", norm, ties), abs=1e-12)


def check_label_binned(c, y):
    for bins in (1, 2, 10, 15):
        for norm in (1, 2, math.inf):
            for scheme, ties in (("width", "keep"), ("mass", "keep"), ("mass", "split")):
                ours = tc.estimators.LabelBinnedECE(bins=bins, scheme=scheme, norm=norm, ties=ties)(profile(c, y)).value
                assert ours == pytest.approx(oracles.label_binned(c, y, bins, scheme, norm, ties), abs=1e-7)


def check_debiased(c, y):
    for bins in (1, 4, 15):
        for correction in ("kumar", "exact"):
            ours = tc.DebiasedECE(bins=bins, correction=correction)(profile(c, y))
            assert ours.power == pytest.approx(oracles.debiased_power(c, y, bins, 2, correction), abs=1e-12)
            assert ours.value == pytest.approx(math.sqrt(max(ours.power, 0)), abs=1e-12)


def check_sweep(c, y):
    for scheme in ("mass", "width"):
        for norm in (1, 2):
            ours = tc.SweepECE(scheme=scheme, norm=norm)(profile(c, y))
            count, value = oracles.sweep(c, y, scheme, norm)
            assert ours.settings["bins"][0] == count
            assert ours.value == pytest.approx(value, abs=1e-12)


def check_nearest(c, y):
    for k in (1, 2, 5, 30):
        for norm in (1, 2, math.inf):
            ours = tc.NearestECE(neighbors=k, norm=norm)(profile(c, y)).value
            assert ours == pytest.approx(oracles.nearest(c, y, min(k, len(c)), norm), abs=1e-12)


def check_isotonic(c, y):
    assert tc.estimators.IsotonicError()(profile(c, y)).power == pytest.approx(oracles.isotonic(c, y), abs=1e-12)


def check_rank_series(c, y):
    for level in (0.5, 0.9, 0.95):
        est = tc.RankSeries(level=level)(profile(c, y))
        value, low, high = oracles.rank_series(c, y, level)
        assert est.value == pytest.approx(value, abs=1e-7)
        assert est.interval.low == pytest.approx(low, abs=1e-6)
        assert est.interval.high == pytest.approx(high, abs=1e-7)


CHECKS = {
    "BinnedECE": check_binned,
    "LabelBinnedECE": check_label_binned,
    "DebiasedECE": check_debiased,
    "SweepECE": check_sweep,
    "NearestECE": check_nearest,
    "IsotonicError": check_isotonic,
    "RankSeries": check_rank_series,
}


@pytest.mark.parametrize("estimator", list(CHECKS))
@CASES
def test_named_datasets(estimator, name):
    CHECKS[estimator](*DATASETS[name])


@pytest.mark.parametrize("estimator", [e for e in CHECKS if e != "RankSeries"])
@given(data=small())
def test_any_small_dataset(estimator, data):
    CHECKS[estimator](*data)


@CASES
def test_debiased_absolute_has_the_expectation_that_simulation_gives(name):
    c, y = DATASETS[name]
    ours = tc.DebiasedECE(bins=4, norm=1)(profile(c, y)).power
    assert ours == pytest.approx(oracles.debiased_power(c, y, 4, norm=1), abs=2e-3)


@CASES
def test_kernel_density(name, monkeypatch):
    monkeypatch.setattr("truecal.estimators.smoothing._CELLS", 128)
    c, y = DATASETS[name]
    for norm in (1, 2):
        ours = tc.estimators.KernelDensityECE(norm=norm)(profile(c, y)).value
        assert ours == pytest.approx(oracles.kernel_density(c, y, 128, norm), abs=1e-6)


@CASES
def test_smooth(name, monkeypatch):
    monkeypatch.setattr("truecal.estimators.smoothing._CELLS_SMOOTH", 128)
    c, y = DATASETS[name]
    assert tc.SmoothECE()(profile(c, y)).value == pytest.approx(oracles.smooth(c, y, 128), abs=2e-3)


@pytest.mark.parametrize("n", [64, 65, 5000, 70_000])
def test_isotonic_blocks_found_coarse_to_fine_are_those_of_the_plain_fit(n):
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(n)
    c = np.sort(np.round(rng.random(n), 4)) if n == 5000 else np.sort(rng.random(n))
    y = (rng.random(n) < 0.3 + 0.4 * c).astype(float)
    _, inverse, counts = np.unique(c, return_inverse=True, return_counts=True)
    rates = np.bincount(inverse, y) / counts
    fit = isotonic_regression(rates, weights=counts.astype(float)).x[inverse]
    expected = ((c - y) ** 2).mean() - ((fit - y) ** 2).mean()
    assert tc.estimators.IsotonicError()(profile(c, y)).power == pytest.approx(expected, rel=1e-9)


def test_nearest_in_cells_is_close_to_nearest_by_rows():
    rng = np.random.default_rng(3)
    c = rng.beta(2, 0.3, 200_000)
    y = rng.random(200_000) < c**1.2
    from truecal.estimators.nearest import _window_gaps

    p = profile(c, y)
    estimator = tc.NearestECE()
    k = int(estimator.count(p)[0])
    surplus = (p.prefix("c") - p.prefix("y"))[0]
    exact = np.sqrt((_window_gaps(p.scores[0], np.arange(len(c) + 1.0), surplus, k) ** 2).mean())
    assert estimator(p).value == pytest.approx(exact, rel=1e-4)


def test_debiased_by_distinct_output():
    """bins=None groups rows of equal output: the plug-in of each group less its noise."""
    rng = np.random.default_rng(0)
    c = rng.choice([0.05, 0.3, 0.31, 0.9], 400, p=[0.1, 0.5, 0.2, 0.2])
    y = (rng.random(400) < c**1.3).astype(int)
    for norm in (1, 2, 3):
        total = 0.0
        for score in np.unique(c):
            group = y[c == score]
            gap, rate, n = score - group.mean(), group.mean(), len(group)
            noise = np.sqrt(rate * (1 - rate) / n)
            if norm == 2:
                term = gap**2 - rate * (1 - rate) / (n - 1)
            else:
                x = np.linspace(-12, 12, 2_000_001)
                density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
                expected = float(np.trapezoid(density * np.abs(gap + noise * x) ** norm, x))
                term = 2 * abs(gap) ** norm - expected
            total += n / 400 * term
        result = tc.DebiasedECE(bins=None, norm=norm)(tc.profile.Profile.from_arrays(c, y))
        assert result.power == pytest.approx(total, abs=1e-10)
        assert result.bins.filled == 4


def test_the_debiased_cube_has_less_bias_than_the_plug_in():
    """2000 datasets of 600 rows at three outputs whose true l3 error is known."""
    rng = np.random.default_rng(1)
    outputs, truth = np.array([0.2, 0.5, 0.8]), np.array([0.25, 0.42, 0.8])
    power = float(np.mean(np.abs(outputs - truth) ** 3))
    c = np.repeat(outputs, 200)
    y = (rng.random((2000, 600)) < np.repeat(truth, 200)).astype(np.uint8)
    profile = tc.profile.Profile.from_arrays(np.broadcast_to(c, y.shape), y)
    debiased = tc.DebiasedECE(bins=None, norm=3)(profile).power.mean() - power
    plain = tc.BinnedECE(bins=600, scheme="mass", norm=3)(profile).power.mean() - power
    assert plain > 4e-5
    assert abs(debiased) < 0.3 * plain
