"""The errors people cite: each equals its naive definition, behaves at the edges, and is as biased as its page says."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given

import truecal as tc
from tests.datasets import named, small
from tests.simulations import datasets, within

DATASETS = named()
CASES = pytest.mark.parametrize("name", list(DATASETS))


def profile(c, y):
    return tc.profile.Profile.from_arrays(c, y)


# ---------------------------------------------------------------- naive definitions


def walk(c, y):
    """Cumulative y - c at the ends of groups of equal scores, 0 included."""
    return [sum(yi - ci for ci, yi in zip(c, y, strict=True) if ci <= v) / len(c) for v in sorted(set(c))] + [0.0]


def adaptive(c, y, bins, threshold, norm):
    """Equal mass by position, groups of equal scores moved to the nearer end, bins averaged alike."""
    order = np.argsort(c, kind="stable")
    c, y = c[order], y[order]
    c, y = c[c >= threshold], y[c >= threshold]
    if len(c) == 0:
        return 0.0
    cuts = []
    for k in range(bins + 1):
        points = math.ceil(k * len(c) / bins)
        low, high = (
            (np.searchsorted(c, c[points], "left"), np.searchsorted(c, c[points], "right"))
            if points < len(c)
            else (points, points)
        )
        if points > low:
            points = high if 2 * (points - low) >= high - low else low
        cuts.append(points)
    gaps = [abs(c[a:b].mean() - y[a:b].mean()) ** norm for a, b in itertools.pairwise(cuts) if b > a]
    return float(np.mean(gaps)) ** (1 / norm)


def kernel(probs, labels, bandwidth):
    """Every pair in a loop."""
    n, total = len(probs), 0.0
    residual = np.eye(probs.shape[1])[labels] - probs
    for i in range(n):
        for j in range(n):
            if i != j:
                k = math.exp(-math.dist(probs[i], probs[j]) / bandwidth)
                total += k * float(residual[i] @ residual[j]) / 2
    return total / (n * (n - 1))


def dirichlet_error(probs, labels, bandwidth, norm):
    """Densities of scipy.stats in a loop."""
    from scipy.stats import dirichlet

    total = 0.0
    for j in range(len(probs)):
        weight = np.array(
            [0.0 if i == j else dirichlet.pdf(probs[j], probs[i] / bandwidth + 1) for i in range(len(probs))]
        )
        curve = weight @ np.eye(probs.shape[1])[labels] / weight.sum()
        total += (np.abs(curve - probs[j]) ** norm).sum() / 2
    return (total / len(probs)) ** (1 / norm)


# ---------------------------------------------------------------- agreement


def check(c, y):
    steps = walk(c, y)
    assert tc.estimators.KSError()(profile(c, y)).value == pytest.approx(max(map(abs, steps)), abs=1e-10)
    for bins, threshold, norm in ((4, 0.0, 1), (15, 0.01, 1), (3, 0.5, 2)):
        ours = tc.estimators.AdaptiveECE(bins, norm, threshold)(profile(c, y)).value
        assert ours == pytest.approx(adaptive(c, y, bins, threshold, norm), abs=1e-10)


@CASES
def test_named_datasets(name):
    check(*(np.asarray(a, float) for a in DATASETS[name]))


@given(data=small(25))
def test_any_small_dataset(data):
    check(*(np.asarray(a, float) for a in data))


def simplex(seed, n=25, classes=3):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.8] * classes, n)
    return probs, (rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)


@pytest.mark.parametrize("seed", range(5))
def test_kernel_and_dirichlet_errors(seed):
    probs, labels = simplex(seed)
    preds = tc.Predictions.from_probs(probs, labels)
    est = tc.measure(preds, estimator=tc.estimators.KernelError(bandwidth=0.5), lens=tc.Canonical())
    assert est.power == pytest.approx(kernel(probs, labels, 0.5), abs=1e-12)
    assert est.value in est.interval
    for norm in (1, 2):
        est = tc.measure(preds, estimator=tc.estimators.DirichletECE(norm, bandwidth=0.1))
        assert est.value == pytest.approx(dirichlet_error(probs, labels, 0.1, norm), abs=1e-10)
        assert est.interval is None
        assert "no interval" in est.warnings[0]


def test_one_probability_is_judged_as_the_product_of_residuals():
    rng = np.random.default_rng(1)
    c, y = rng.random(30), rng.integers(0, 2, 30)
    est = tc.measure(tc.Predictions.from_probs(c, y), estimator=tc.estimators.KernelError(bandwidth=1.0))
    pairs = [
        (y[i] - c[i]) * (y[j] - c[j]) * math.exp(-math.sqrt(2) * abs(c[i] - c[j]))
        for i in range(30)
        for j in range(30)
        if i != j
    ]
    assert est.power == pytest.approx(np.mean(pairs), abs=1e-12)


def test_blocks_of_rows_keep_the_kernel_error_unbiased():
    rng = np.random.default_rng(2)
    c = rng.random(4001)
    preds = tc.Predictions.from_probs(c, (rng.random(4001) < c**2).astype(int))
    est = tc.measure(preds, estimator=tc.estimators.KernelError(bandwidth=0.5, resamples=19))
    x, w = np.polynomial.legendre.leggauss(200)
    x, w = (x + 1) / 2, w / 2
    gap = x**2 - x
    truth = w * gap @ np.exp(-np.sqrt(2) * np.abs(x[:, None] - x) / 0.5) @ (w * gap)
    assert est.power == pytest.approx(truth, rel=0.15)
    assert est.p_value == 0.05


# ---------------------------------------------------------------- what is refused, what is noted


def test_rows_that_pairs_cannot_judge_are_refused_by_name():
    c, y = np.linspace(0.1, 0.9, 10), np.tile([0, 1], 5)
    plain = tc.Predictions.from_probs(c, y)
    cases = [
        (tc.Predictions.from_probs(c, y, weights=np.arange(1, 11)), None, "takes no weights"),
        (tc.Predictions.from_probs(c, y, clusters=y), None, "independent rows, not clusters"),
        (plain, tc.ClassWise(), "one dataset"),
        (tc.Predictions.from_probs(c[:1], y[:1]), None, "two rows or more"),
    ]
    for preds, lens, says in cases:
        with pytest.raises(tc.InputError, match=says):
            tc.measure(preds, estimator=tc.estimators.KernelError(), lens=lens)
    with pytest.raises(tc.InputError, match="judges rows"):
        tc.estimators.KernelError()(profile(c, y))
    with pytest.raises(tc.InputError, match="bandwidth must be a positive number"):
        tc.estimators.DirichletECE(bandwidth=0.0)


def test_nothing_above_the_threshold_is_said():
    est = tc.estimators.AdaptiveECE(threshold=0.9)(profile([0.1, 0.2], [0, 1]))
    assert est.value == 0
    assert "no score reaches the threshold 0.9" in est.warnings[0]
    with pytest.raises(tc.InputError, match="threshold must be at least 0 and below 1"):
        tc.estimators.AdaptiveECE(threshold=1.0)


def test_intervals_come_from_resampling_and_hold_the_value():
    rng = np.random.default_rng(4)
    c = rng.random(300)
    preds = tc.Predictions.from_probs(c, (rng.random(300) < c**2).astype(int))
    for estimator in (tc.estimators.KSError(), tc.estimators.AdaptiveECE()):
        est = tc.measure(preds, estimator=estimator)
        assert est.value in est.interval, estimator
        assert est.interval.low > 0


# ---------------------------------------------------------------- simulated claims


@pytest.mark.slow
def test_the_test_of_the_kernel_error_holds_its_level():
    """Type I error at 5 % over 1000 calibrated datasets of 50 rows and three classes: 0.03 to 0.07."""
    rejections, trials = 0, datasets(1000)
    estimator = tc.estimators.KernelError(resamples=99)
    for seed in range(trials):
        probs, labels = simplex([7, seed], n=50)
        rejections += (
            tc.measure(tc.Predictions.from_probs(probs, labels), estimator=estimator, lens=tc.Canonical()).p_value
            <= 0.05
        )
    assert within(rejections, trials, 0.03, 0.07)


@pytest.mark.slow
def test_bias_of_calibrated_models():
    """Mean over 400 calibrated datasets of 400 rows: unbiased for the kernel error, about 1.25 s / sqrt(n) for the KS error."""
    rng = np.random.default_rng(8)
    c = rng.random((400, 400))
    y = rng.random((400, 400)) < c
    batch = tc.profile.Profile.from_arrays(c, y)
    spread = math.sqrt((c * (1 - c)).mean() / 400)
    assert tc.estimators.KSError().values(batch).mean() == pytest.approx(math.sqrt(math.pi / 2) * spread, rel=0.1)
    powers = [
        tc.measure(
            tc.Predictions.from_probs(ci, yi.astype(int)),
            estimator=tc.estimators.KernelError(bandwidth=0.5, resamples=19),
        ).power
        for ci, yi in zip(c[:100], y[:100], strict=True)
    ]
    assert abs(np.mean(powers)) < 3 * np.std(powers) / 10


@pytest.mark.slow
def test_bias_of_binned_and_smoothed_errors_of_calibrated_models():
    """What chance alone shows: 200 calibrated datasets (40 for the canonical error), whose true error is 0."""
    rng = np.random.default_rng(9)
    for n in (400, 1600):
        c = rng.random((200, n))
        batch = tc.profile.Profile.from_arrays(c, rng.random((200, n)) < c)
        middles = (np.arange(15) + 0.5) / 15
        chance = math.sqrt(2 / math.pi) * float(np.sqrt(15 / n * middles * (1 - middles)).mean())
        assert tc.estimators.AdaptiveECE().values(batch).mean() == pytest.approx(chance, rel=0.06)
    estimator, values = tc.estimators.DirichletECE(), []
    for _ in range(40):
        probs = rng.dirichlet([1, 1, 1], 200)
        labels = (rng.random((200, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        values.append(float(tc.measure(tc.Predictions.from_probs(probs, labels), estimator=estimator).value))
    assert 0.1 < np.mean(values) < 0.35
