"""Intervals and p-values where they are hardest: kinks and steps, many events, many rare classes, curves that fall."""

import numpy as np
import pytest
from scipy.stats import binomtest

import truecal as tc
from tests.simulations import datasets
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.tests import label_test

CURVES = {
    "calibrated": lambda c: c,
    "kink": lambda c: np.where(c < 0.5, c, c - 0.3 * (c - 0.5)),
    "step": lambda c: c - 0.15 * (c > 0.6),
    "power": lambda c: c**1.3,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CURVES)
def test_the_mean_absolute_error_is_covered(name):
    """90 % intervals of 100 datasets of 1000 rows: not below 84 % (binomial test at 0.5 %)."""
    curve = CURVES[name]
    grid = (np.arange(200_000) + 0.5) / 200_000
    truth = float(np.abs(curve(grid) - grid).mean())
    covered, trials = 0, datasets(100)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        c = rng.random(1000)
        estimate = tc.RankSeries(norm=1, level=0.9)(tc.profile.Profile.from_arrays(c, rng.random(1000) < curve(c)))
        covered += truth in estimate.interval
    assert binomtest(covered, trials, 0.84, alternative="less").pvalue > 0.005


ROUGH = {
    "eight waves": (lambda c: c + 0.08 * np.sin(16 * np.pi * c), (0.1, 0.9), 1000, 400),
    "six steps": (lambda c: (np.floor(6 * c) + 0.5) / 6, (0.0, 1.0), 20_000, 100),
    "saw": (lambda c: c + 0.06 * (2 * ((6 * c) % 1) - 1), (0.1, 0.9), 100_000, 40),
}


@pytest.mark.parametrize("name", ROUGH)
def test_curves_that_are_rougher_than_the_series_are_covered(name):
    """90 % intervals: not below 85 % (binomial test at 0.5 %), which the series alone fails on each of these."""
    curve, scores, n, many = ROUGH[name]
    rng = np.random.default_rng(n)
    grid = np.linspace(*scores, 200_001)
    truth = float(np.sqrt(((curve(grid) - grid) ** 2).mean()))
    c = rng.uniform(*scores, (many, n))
    ends = tc.RankSeries(level=0.9)(tc.profile.Profile.from_arrays(c, rng.random(c.shape) < curve(c))).interval
    covered = int(((ends.low <= truth) & (ends.high >= truth)).sum())
    assert binomtest(covered, many, 0.85, alternative="less").pvalue > 0.005


def test_an_error_among_the_few_rows_that_vary_is_covered():
    """Saturated scores, 1 - c over six powers of ten, with errors below 0.95 alone: 400 datasets, binomial test at 0.5 %."""
    u = np.random.default_rng(1).random((2, 400, 100))

    def scores(u):
        return 1 - 10.0 ** (-6 * u)

    def curve(c):
        return np.where(c < 0.95, 0.95 + 0.4 * (c - 0.95), c)

    grid = scores((np.arange(200_000) + 0.5) / 200_000)
    truth = float(np.sqrt(np.mean((curve(grid) - grid) ** 2)))
    c = scores(u[0])
    interval = tc.RankSeries(level=0.9)(tc.profile.Profile.from_arrays(c, u[1] < curve(c))).interval
    covered = int(np.sum((interval.low <= truth) & (truth <= interval.high)))
    assert binomtest(covered, 400, 0.85, alternative="less").pvalue > 0.005


def test_clusters_do_not_hide_a_jump():
    """A jump of one half in 60 datasets of 100 clusters of 10 rows, at 90 %: not covered below 85 % (binomial test at 0.5 %)."""
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        c, cluster = rng.random(1000), np.arange(1000) // 10
        uniform = np.where(rng.random(1000) < 0.5, rng.random(100)[cluster], rng.random(1000))
        preds = tc.Predictions.from_probs(c, (uniform < np.where(c < 0.5, 0.25, 0.75)).astype(int), clusters=cluster)
        covered += (1 / np.sqrt(48)) in tc.measure(preds, level=0.9).interval
    assert binomtest(covered, 60, 0.85, alternative="less").pvalue > 0.005


def test_windows_between_clusters_by_hand():
    """Seven terms of 200 clusters: 14 and 28 windows, divided between the sides of 1/2 by their rows."""
    rng = np.random.default_rng(3)
    n, cluster = 1000, rng.permutation(np.arange(1000) % 200)
    c = np.sort(rng.random(n))
    y = (rng.random(n) < np.floor(14 * c) % 2).astype(int)
    series = ClusteredSeries.of(tc.OneClass(1)(tc.Predictions.from_probs(c, y, clusters=cluster)))
    estimates = {}
    for windows in (14, 28):
        window = np.zeros(n, int)
        for side, first in ((c > 0.5, 0), (c < 0.5, 1000)):
            rank = (np.argsort(np.argsort(np.abs(c[side] - 0.5))) + 0.5) / side.sum()  # from 1/2 outwards
            window[side] = first + np.floor(np.floor(windows * side.mean() + 0.5) * rank)
        pairs = (window[:, None] == window) & (cluster[:, None] != cluster)
        products = np.where(pairs, np.outer(y - c, y - c), 0.0).sum(axis=1)
        # the mean product of a window counts by its rows
        estimates[windows] = sum(
            products[window == w].sum() / pairs[window == w].sum() * (window == w).mean() for w in np.unique(window)
        )
    assert max(estimates.values()) > series.theta[0, -1] + 0.01
    assert series.pivot.upper_center[0] == pytest.approx(max(estimates.values()), abs=1e-12)
    calm = ClusteredSeries.of(
        tc.OneClass(1)(tc.Predictions.from_probs(c, (rng.random(n) < c).astype(int), clusters=cluster))
    )
    assert calm.pivot.upper_center[0] < max(estimates.values()) / 10


def test_runs_of_neighbours_do_not_depend_on_the_batch():
    rng = np.random.default_rng(2)
    c = np.sort(rng.random((3, 900)), axis=1)
    y = rng.random(c.shape) < np.where(c < 0.4, 0.1, 0.9)
    weights = np.array([[1.0], [2.0], [5.0]]) * np.ones_like(c)
    whole = tc.RankSeries()(tc.profile.Profile.from_arrays(c, y, weights=weights)).interval
    for i in range(3):
        own_values = tc.RankSeries()(tc.profile.Profile.from_arrays(c[i], y[i], weights=weights[i])).interval
        assert (own_values.low, own_values.high) == pytest.approx((whole.low[i], whole.high[i]), abs=1e-12)


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_the_binned_error_is_covered_where_half_of_the_bins_are_calibrated(scheme):
    """90 % intervals of 60 datasets of 1000 rows for the error of the bins: not below 85 % (binomial test at 0.5 %)."""
    covered = 0
    estimator = tc.BinnedECE(scheme=scheme)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        c = rng.random(1000)
        profile = tc.profile.Profile.from_arrays(c, rng.random(1000) < np.where(c < 0.6, c, 0.6 + 0.6 * (c - 0.6)))
        covered += 0.032 in estimator.interval(
            profile, level=0.9, rng=rng
        )  # E|m| = 0.4^3 / 2, of one sign in every bin
    assert binomtest(covered, 60, 0.85, alternative="less").pvalue > 0.005


def drawn(classes, n, concentration, seed):
    """Calibrated predictions: labels drawn from the probabilities."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(classes, concentration), n)
    labels = (rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)
    return tc.Predictions.from_probs(probs, labels)


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "n"), [(10, 300), (50, 500)])
def test_calibrated_models_of_many_events_are_covered(classes, n):
    """60 calibrated datasets at 90 %: 0 is in the interval, and the test rejects about 5 % at 5 %."""
    m, estimator = datasets(60), tc.GeneralizedECE(level=0.9, replicates=50)
    estimates = [estimator(drawn(classes, n, 0.3, seed)) for seed in range(m)]
    assert binomtest(sum(0 in e.interval for e in estimates), m, 0.9, alternative="less").pvalue > 0.005
    assert binomtest(sum(e.p_value <= 0.05 for e in estimates), m, 0.05, alternative="greater").pvalue > 0.005


@pytest.mark.slow
def test_the_joint_test_of_many_rare_classes_keeps_its_level():
    """40 calibrated datasets of 30 classes and 400 rows: about 5 % are rejected at 5 %; overconfident ones are."""
    lens = tc.ClassWise()

    def p_value(preds):
        """What `measure` gives, without the resamples of its interval."""
        samples, shares = list(lens.samples(preds)), lens.shares(preds)
        return label_test(samples, shares, 999, np.random.default_rng(0).spawn(1)[0])

    calibrated = [drawn(30, 400, 0.1, s) for s in range(datasets(40))]
    p = [p_value(preds) for preds in calibrated]
    for k in (0, int(np.argmin(p)), int(np.argmax(p))):
        assert tc.measure(calibrated[k], lens=lens, estimator=tc.BinnedECE()).p_value == p[k]
    assert binomtest(sum(x <= 0.05 for x in p), len(p), 0.05, alternative="greater").pvalue > 0.005
    fair = drawn(30, 400, 0.1, 0)
    sharp = fair.probs**3 / (fair.probs**3).sum(axis=1, keepdims=True)
    estimate = tc.measure(tc.Predictions.from_probs(sharp, fair.labels), lens=tc.ClassWise(), estimator=tc.BinnedECE())
    assert estimate.p_value <= 0.05


def test_the_interval_of_a_sweep_holds_the_truth_where_outcomes_fall():
    rng = np.random.default_rng(0)
    c = rng.random(3000)
    falling = tc.calibration_error(rng.random(3000) < 1 - c, c, estimator=tc.SweepECE())
    assert 1 / np.sqrt(3) in falling.interval  # the value itself is near 0
    assert "widened" in falling.interval.method
    rising = tc.calibration_error(rng.random(3000) < c, c, estimator=tc.SweepECE())
    assert "widened" not in rising.interval.method
