"""Conventions of other tools: the number of the tool where it is installed, of its published formula elsewhere."""

import itertools
import math
import warnings

import numpy as np
import pytest

import truecal as tc
from truecal.inference.conventions import _TOOLS
from truecal.special import root

DATASETS = 200


def binary(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and outcomes: continuous, on tenths, on fifteenths, piled up at 1, or tied."""
    rng = np.random.default_rng([1, seed])
    n = int(rng.integers(20, 200))
    c = rng.random(n)
    kind = seed % 5
    if kind == 1:
        c = rng.integers(0, 11, n) / 10
    elif kind == 2:
        c = rng.integers(0, 16, n) / 15
    elif kind == 3:
        c = np.where(rng.random(n) < 0.3, 1.0, 1 - c**4 / 2)
    elif kind == 4:
        c = np.round(c, 2)
    return c, (rng.random(n) < c**1.3).astype(int)


def several(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of four classes and labels; every label occurs, because netcal counts classes from them."""
    rng = np.random.default_rng([2, seed])
    n = int(rng.integers(30, 200))
    probs = rng.dirichlet([0.3] * 4, n) if seed % 3 else np.round(rng.dirichlet([1.0] * 4, n) * 20) / 20
    probs = np.where(probs.sum(axis=1, keepdims=True) > 0, probs, 0.25)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    labels[:4] = range(4)
    return probs, labels


def ours(convention: tc.inference.Convention, probs: np.ndarray, labels: np.ndarray) -> float:
    preds = tc.Predictions.from_probs(probs, labels)
    shares = convention.lens.shares(preds)
    powers = np.atleast_1d(convention.estimator.estimate(convention.lens(preds)).power)
    power = powers[0] if shares is None else shares @ powers
    return float(root(np.array([power]), convention.estimator.norm)[0])


def agree(convention: tc.inference.Convention, theirs, data, count: int = DATASETS) -> None:
    """Equal on so many datasets."""
    for seed in range(count):
        probs, labels = data(seed)
        expected = theirs(probs, labels)
        assert ours(convention, probs, labels) == pytest.approx(expected, abs=convention.tolerance), seed


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("bins", [10, 15])
def test_torchmetrics_multiclass(norm, bins):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")

    def theirs(probs, labels):
        p, y = torch.tensor(probs), torch.tensor(labels)
        return float(functional.multiclass_calibration_error(p, y, num_classes=4, n_bins=bins, norm=norm))

    # The root of a sum of 1e-7 in single precision is 3e-4; compare squares there.
    convention = tc.like("torchmetrics", bins=bins, norm=norm)
    if norm == "l2":
        for seed in range(DATASETS):
            probs, labels = several(seed)
            assert ours(convention, probs, labels) ** 2 == pytest.approx(theirs(probs, labels) ** 2, abs=1e-6)
    else:
        agree(convention, theirs, several)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_torchmetrics_binary(norm):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")

    def theirs(probs, labels):
        return float(
            functional.binary_calibration_error(torch.tensor(probs), torch.tensor(labels), n_bins=15, norm=norm)
        )

    agree(tc.like("torchmetrics", norm=norm, task="binary"), theirs, binary)


@pytest.mark.parametrize("metric", ["ece", "mce", "ace"])
def test_netcal(metric):
    metrics = pytest.importorskip("netcal.metrics")
    tool = getattr(metrics, metric.upper())(10)
    agree(tc.like("netcal", metric=metric), lambda p, y: tool.measure(p.copy(), y), several)
    agree(tc.like("netcal", metric=metric, task="binary"), lambda p, y: tool.measure(p.copy(), y), binary)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("bins", [5, 10])
def test_sklearn(strategy, bins):
    calibration = pytest.importorskip("sklearn.calibration")
    convention = tc.like("sklearn", bins=bins, strategy=strategy)
    for seed in range(DATASETS):
        probs, labels = binary(seed)
        rates, scores = calibration.calibration_curve(labels, probs, n_bins=bins, strategy=strategy)
        result = convention.estimator(tc.profile.Profile.from_arrays(probs, labels)).bins
        np.testing.assert_allclose(result.mean_outcome, rates, atol=1e-12)
        np.testing.assert_allclose(result.mean_score, scores, atol=1e-12)


@pytest.mark.parametrize("bins", [10, 15])
def test_uncertainty_calibration(bins):
    calibration = pytest.importorskip("calibration")
    for mode in ("top-label", "marginal"):
        agree(
            tc.like("uncertainty-calibration", bins=bins, mode=mode),
            lambda p, y, mode=mode: calibration.get_ece(p, y, num_bins=bins, mode=mode),
            several,
        )
        agree(
            tc.like("uncertainty-calibration", metric="ece_em", bins=bins, mode=mode),
            lambda p, y, mode=mode: calibration.get_ece_em(p, y, num_bins=bins, mode=mode),
            several,
        )
        agree(
            tc.like("uncertainty-calibration", metric="l2", bins=bins, mode=mode),
            lambda p, y, mode=mode: calibration.lower_bound_scaling_ce(p, y, num_bins=bins, mode=mode),
            several,
        )
    agree(
        tc.like("uncertainty-calibration", bins=bins, mode="binary"),
        lambda p, y: calibration.get_ece(p, y, num_bins=bins),
        binary,
    )


def test_helm_is_that_package_with_ten_bins_of_equal_mass():
    calibration = pytest.importorskip("calibration")

    def theirs(probs, labels):
        top = probs.argmax(axis=1)
        return calibration.get_ece_em(probs.max(axis=1), (top == labels).astype(int), num_bins=10)

    agree(tc.like("helm"), theirs, several)


def test_relplot():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        relplot = pytest.importorskip("relplot.metrics")
    agree(tc.like("relplot", metric="binned"), lambda p, y: relplot.binnedECE(p, y, nbins=10), binary)
    agree(tc.like("relplot"), relplot.smECE, binary)
    agree(
        tc.like("relplot", task="multiclass"), lambda p, y: relplot.smECE(p.max(axis=1), p.argmax(axis=1) == y), several
    )


def test_relplots_smooth_error_by_its_definition():
    """Where relplot is not installed: sums over points, kernel by kernel, at the bandwidth its search ends at."""
    scores, labels = binary(3)
    result = tc.SmoothECE(rule="relplot")(tc.profile.Profile.from_arrays(scores, labels))
    sigma = float(result.settings["bandwidth"][0])
    assert sigma * 1024 == int(sigma * 1024)
    points = max(2000, round(20 / sigma)) // 2 + 1
    grid = np.arange(points) / (points - 1)
    values, ones = np.zeros(points), np.zeros(points)
    for c, y in zip(scores, labels, strict=True):
        j = min(int(c * (points - 1)), points - 2)
        for position, part in ((j, 1 - (c * (points - 1) - j)), (j + 1, c * (points - 1) - j)):
            values[position] += part * (c - y)
            ones[position] += part
    inner = np.ones(points)
    inner[[0, -1]] = 0  # the ends have no mirror image
    offset = 0.5 if points % 2 == 0 else 0.0

    def smooth(mass, t):
        total = 0.0
        for image, counted in ((grid, np.ones(points)), (-grid, inner), (2 - grid, inner)):
            away = t - image + offset / (points - 1)
            near = np.abs(away) <= 0.5 + 1e-9
            total += (mass * counted * near * np.exp(-(away**2) / (2 * sigma**2))).sum()
        return total / (math.sqrt(2 * math.pi) * sigma)

    at = np.linspace(0, 1, max(round(10 / sigma), 200))
    both = [np.interp(at, grid, [smooth(mass, t) for t in grid]) for mass in (values, ones)]
    expected = np.abs(both[0]).sum() / (both[1] + 1e-4).sum()
    assert result.value == pytest.approx(expected, abs=1e-9)


def test_relplot_counts_scores_of_one_half():
    relplot = pytest.importorskip("relplot.metrics")
    scores = np.repeat([1.0, 0.6], 100)
    labels = np.repeat([1, 0, 1, 0], [70, 30, 60, 40])
    theirs, exact = relplot.smECE(scores, labels), tc.SmoothECE()(tc.profile.Profile.from_arrays(scores, labels)).value
    mask = relplot.smECE(np.where(scores == 1, 0.998, scores), labels)
    assert abs(mask - exact) < 0.003  # a move by 0.002 cannot matter more
    assert theirs < 0.75 * exact


# ---------------------------------------------------------------- formulas of code that is not a package


def guo(probs: np.ndarray, labels: np.ndarray, bins: int = 15) -> float:
    """The loop published with temperature scaling, on its tensors."""
    torch = pytest.importorskip("torch")
    p = torch.tensor(probs, dtype=torch.float32)
    confidence, predicted = p.max(1)
    right = predicted.eq(torch.tensor(labels))
    total = torch.zeros(1)
    edges = torch.linspace(0, 1, bins + 1)
    for low, high in itertools.pairwise(edges):
        inside = confidence.gt(low) & confidence.le(high)
        share = inside.float().mean()
        if share > 0:
            total += (confidence[inside].mean() - right[inside].float().mean()).abs() * share
    return float(total)


def test_guo_2017():
    agree(tc.like("guo2017"), guo, several)


def test_robustness_metrics_bins_by_the_floor_of_a_product_in_single_precision():
    def theirs(probs, labels):
        c, right = probs.max(axis=1).astype(np.float32), probs.argmax(axis=1) == labels
        bin_index = np.minimum(np.floor(c * np.float32(15)).astype(int), 14)
        return sum(
            abs(c[bin_index == k].mean() - right[bin_index == k].mean()) * (bin_index == k).mean()
            for k in set(bin_index)
        )

    agree(tc.like("robustness-metrics"), theirs, several)


def adaptive(probs: np.ndarray, labels: np.ndarray, threshold: float) -> float:
    """Nixon et al. 2019, equations 3 and 4, on data without ties."""
    classes = []
    for k in range(probs.shape[1]):
        mask = probs[:, k] >= threshold
        order = np.argsort(probs[mask, k])
        c, y = probs[mask, k][order], (labels[mask] == k)[order]
        cuts = [math.ceil(r * len(c) / 15) for r in range(16)]
        gaps = [abs(c[a:b].mean() - y[a:b].mean()) for a, b in itertools.pairwise(cuts) if b > a]
        classes.append(np.mean(gaps))
    return float(np.mean(classes))


def without_ties(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([3, seed])
    probs = rng.dirichlet([0.5] * 4, 80)
    return probs, (rng.random((80, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 3)


def test_adaptive_errors():
    agree(tc.like("ace"), lambda p, y: adaptive(p, y, 0.0), without_ties)
    agree(tc.like("tace"), lambda p, y: adaptive(p, y, 0.01), without_ties)


# ---------------------------------------------------------------- the function itself


def test_a_convention_unpacks_measures_and_says_why_it_differs():
    preds = tc.Predictions.from_probs([0.95, 1.0, 0.95, 1.0], [1, 0, 1, 1])
    convention = tc.like("torchmetrics", bins=10, task="binary")
    estimator, lens = convention
    estimate = convention.measure(preds)
    assert estimate.value == tc.measure(preds, estimator=estimator, lens=lens).value
    assert estimate.interval is not None
    assert estimate.value != tc.measure(preds, estimator=tc.BinnedECE(bins=10)).value
    assert any("exactly 1" in why for why in convention.differs)


def test_what_cannot_be_reproduced_is_refused_with_the_reason():
    with pytest.raises(tc.InputError, match="lowess"):
        tc.like("val.prob")
    with pytest.raises(tc.InputError, match="there are ace, guo2017, helm"):
        tc.like("numpy")
    with pytest.raises(tc.InputError, match="torchmetrics: got an unexpected keyword argument 'n_bins'"):
        tc.like("torchmetrics", n_bins=15)
    with pytest.raises(tc.InputError, match="norm must be 'l1' or 'l2' or 'max'"):
        tc.like("torchmetrics", norm="l3")


def test_every_tool_of_the_documentation_is_there():
    for tool in _TOOLS:
        assert f'"{tool}"' in tc.like.__doc__
        assert tc.like(tool).tool == tool
        assert tc.like(tool).differs


def test_rules_that_count_rows_take_whole_weights_as_repetitions_and_refuse_others():
    estimator, _ = tc.like("helm")
    rng = np.random.default_rng(5)
    for _ in range(50):
        c = np.round(rng.random(15), 1)
        y, w = rng.integers(0, 2, 15), rng.integers(1, 4, 15)
        repeated = tc.profile.Profile.from_arrays(np.repeat(c, w), np.repeat(y, w))
        assert estimator(tc.profile.Profile.from_arrays(c, y, w)).value == pytest.approx(
            estimator(repeated).value, abs=1e-12
        )
    with pytest.raises(tc.InputError, match="importance weights"):
        estimator(tc.profile.Profile.from_arrays(c, y, w / 3))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_sklearn_l2_is_the_root_of_the_mean_squared_distance_of_its_curve(strategy):
    pytest.importorskip("sklearn")
    from sklearn.calibration import calibration_curve

    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p**1.5).astype(int)
    rates, means = calibration_curve(y, p, n_bins=8, strategy=strategy)
    edges = np.linspace(0, 1, 9) if strategy == "uniform" else np.percentile(p, np.linspace(0, 1, 9) * 100)
    counts = np.bincount(np.searchsorted(edges[1:-1], p), minlength=8)
    expected = np.sqrt((counts / 400) @ (rates - means) ** 2)
    convention = tc.like("sklearn", bins=8, strategy=strategy, norm="l2")
    estimate = tc.calibration_error(y, p, estimator=convention.estimator, lens=convention.lens)
    assert float(estimate) == pytest.approx(expected, abs=1e-12)
