"""Class-wise errors of very many probabilities from one pass: the same values, an interval and a test that hold."""

import numpy as np
import pytest
from scipy.stats import binomtest

import truecal as tc
from truecal.inference.measurement import _counted_bins
from truecal.resampling import columns
from truecal.resampling.columns import cell_edges, mass_bins


def drawn(rng, probs):
    labels = (probs.astype(np.float64).cumsum(axis=1) < rng.random((len(probs), 1))).sum(axis=1)
    return np.minimum(labels, probs.shape[1] - 1)


def outputs(rng, n=5000, classes=8, alpha=0.4):
    probs = rng.dirichlet(np.full(classes, alpha), n)
    return probs / probs.sum(axis=1, keepdims=True)


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(columns, "_MIN_PROBABILITIES", 0)


@pytest.mark.parametrize("lens", [tc.ClassWise(), tc.ClassWise(weights=(1, 2, 0, 4, 1, 1, 1, 3))])
@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_pass_gives_the_values_of_class_by_class(monkeypatch, lens, scheme, norm, dtype):
    rng = np.random.default_rng(0)
    probs = outputs(rng).astype(dtype)
    preds = tc.Predictions.from_probs(probs, drawn(rng, probs**2 / (probs**2).sum(axis=1, keepdims=True)))
    estimator = tc.BinnedECE(bins=12, norm=norm, scheme=scheme, closed="right")
    one_by_one = tc.measure(preds, lens=lens, estimator=estimator)
    monkeypatch.setattr(columns, "_MIN_PROBABILITIES", 0)
    together = tc.measure(preds, lens=lens, estimator=estimator)
    assert together.value == pytest.approx(one_by_one.value, rel=1e-9)
    mask = np.asarray(lens.shares(preds)) > 0
    np.testing.assert_allclose(together.parts[mask], one_by_one.parts[mask], rtol=1e-9)
    assert together.direction == pytest.approx(one_by_one.direction, abs=1e-9)
    assert (together.n, together.effective_n) == (one_by_one.n, one_by_one.effective_n)
    assert together.interval.low <= together.value <= together.interval.high
    if norm == 1:
        widths = [e.interval.high - e.interval.low for e in (together, one_by_one)]
        assert 0.6 < widths[0] / widths[1] < 1.6
        assert together.p_value == 0.001


@pytest.mark.parametrize(
    "estimator", [tc.BinnedECE(), pytest.param(tc.BinnedECE(scheme="mass"), marks=pytest.mark.full), tc.RankSeries()]
)
def test_calibrated_classes_are_rarely_rejected(always, estimator):
    rng = np.random.default_rng(1)
    rejected = zero = 0
    for seed in range(30):
        probs = outputs(rng, classes=20, alpha=0.2)
        preds = tc.Predictions.from_probs(probs, drawn(rng, probs))
        est = tc.measure(preds, lens=tc.ClassWise(), estimator=estimator, rng=seed)
        rejected += est.p_value <= 0.1
        zero += est.interval.low == 0
    assert binomtest(rejected, 30, 0.1, alternative="greater").pvalue > 0.01
    assert binomtest(zero, 30, 0.95, alternative="less").pvalue > 0.01


def test_calibrated_rare_classes_are_rarely_rejected(always):
    rng = np.random.default_rng(3)
    p_values = []
    for seed in range(12):
        probs = np.exp(2 * rng.standard_normal((4096, 150)))
        probs /= probs.sum(axis=1, keepdims=True)
        preds = tc.Predictions.from_probs(probs, drawn(rng, probs))
        p_values.append(tc.measure(preds, lens=tc.ClassWise(), estimator=tc.BinnedECE(), rng=seed).p_value)
    assert binomtest(int(np.sum(np.array(p_values) <= 0.1)), 12, 0.1, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "estimator",
    [
        tc.BinnedECE(),
        tc.BinnedECE(scheme="mass", norm=2),
        tc.BinnedECE(bins=12, closed="right"),
        tc.RankSeries(),
        tc.SweepECE(),
    ],
)
def test_all_labels_by_blocks_agree_with_pooled_pairs(monkeypatch, estimator, dtype):
    rng = np.random.default_rng(0)
    probs = outputs(rng).astype(dtype)
    preds = tc.Predictions.from_probs(probs, drawn(rng, probs**2 / (probs**2).sum(axis=1, keepdims=True)))
    pooled = tc.measure(preds, lens=tc.AllLabels(), estimator=estimator)
    monkeypatch.setattr(columns, "_MIN_PROBABILITIES", 0)
    by_blocks = tc.measure(preds, lens=tc.AllLabels(), estimator=estimator)
    assert by_blocks.value == pytest.approx(pooled.value, rel=1e-9)
    assert by_blocks.direction == pytest.approx(pooled.direction, abs=1e-9)
    assert (by_blocks.n, by_blocks.p_value) == (pooled.n, pooled.p_value)
    widths = [e.interval.high - e.interval.low for e in (by_blocks, pooled)]
    assert 0.6 < widths[0] / widths[1] < 1.6
    if pooled.bins is not None:
        np.testing.assert_allclose(by_blocks.bins.counts, pooled.bins.counts)
        ratio = np.sum(by_blocks.bins.effective) / np.sum(pooled.bins.effective)
        assert 0.5 < ratio < 2


def test_calibrated_all_labels_by_blocks_are_rarely_rejected(always):
    rng = np.random.default_rng(4)
    p_values = []
    for seed in range(20):
        probs = outputs(rng, classes=20, alpha=0.2)
        preds = tc.Predictions.from_probs(probs, drawn(rng, probs))
        p_values.append(tc.measure(preds, lens=tc.AllLabels(), estimator=tc.BinnedECE(), rng=seed).p_value)
    assert binomtest(int(np.sum(np.array(p_values) <= 0.1)), 20, 0.1, alternative="greater").pvalue > 0.01


def test_weights_clusters_and_few_rows_are_judged_class_by_class(always):
    rng = np.random.default_rng(2)
    probs = outputs(rng)
    labels = drawn(rng, probs)
    preds = tc.Predictions.from_probs(probs, labels)
    assert columns.groups_suffice(preds)
    assert not columns.groups_suffice(tc.Predictions.from_probs(probs[:1000], labels[:1000]))
    assert not columns.groups_suffice(tc.Predictions.from_probs(probs, labels, weights=np.ones(len(labels))))
    assert not columns.groups_suffice(tc.Predictions.from_probs(probs, labels, clusters=np.arange(len(labels)) // 5))
    bins = [
        _counted_bins(preds, estimator)
        for estimator in (tc.BinnedECE(scheme="mass"), tc.BinnedECE(scheme="mass", ties="split"), tc.SweepECE())
    ]
    assert [binning is not None for binning in bins] == [True, False, False]


@pytest.mark.parametrize("power", [1.0, 1.3])
def test_the_rank_series_of_many_classes_is_that_of_class_by_class(monkeypatch, power):
    rng = np.random.default_rng(3)
    probs = outputs(rng)
    shown = probs**power / (probs**power).sum(axis=1, keepdims=True)
    preds = tc.Predictions.from_probs(shown, drawn(rng, probs))
    one_by_one = tc.measure(preds, lens=tc.ClassWise())
    monkeypatch.setattr(columns, "_MIN_PROBABILITIES", 0)
    together = tc.measure(preds, lens=tc.ClassWise())
    assert together.value == pytest.approx(one_by_one.value, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(together.parts, one_by_one.parts, rtol=1e-9, atol=1e-12)
    assert together.direction == pytest.approx(one_by_one.direction, abs=1e-9)
    widths = [e.interval.high - e.interval.low for e in (together, one_by_one)]
    assert 0.6 < widths[0] / widths[1] < 1.6
    assert (together.p_value < 0.05) == (one_by_one.p_value < 0.05) == (power > 1)


SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "near 0": lambda rng, n: rng.random(n) ** 8 / 100,
    "two digits": lambda rng, n: np.round(rng.random(n), 2),
    "five values": lambda rng, n: np.round(rng.random(n) ** 4 * 4) / 4,
    "most are 0": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.random(n)),
    "one value": lambda rng, n: np.full(n, 0.3),
    "0 and 1": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, -0.0),
}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [100, 5000])
def test_bins_of_equal_mass_without_a_sort_are_those_of_the_sorted_rows(kind, dtype, n):
    scores = SCORES[kind](np.random.default_rng(4), n).astype(dtype)
    sorted_rows = tc.profile.Profile.from_arrays(np.abs(scores), np.zeros(n))
    for bins in (1, 2, 15, 64):
        cuts = sorted_rows.mass_cut(bins).below[0]
        expected = np.empty(n, int)
        expected[np.argsort(np.abs(scores), kind="stable")] = np.repeat(np.arange(bins), np.diff(cuts))
        np.testing.assert_array_equal(mass_bins(scores, bins), expected)


@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.BinnedECE(scheme="mass"), tc.RankSeries()])
def test_rows_sorted_by_label_say_the_same(always, estimator):
    """Neighbours in a sorted file are of one class; groups of neighbours found nothing in them (p = 0.94 instead of 0.001)."""
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.full(10, 0.3), 8000)
    rates = probs**0.7 / (probs**0.7).sum(axis=1, keepdims=True)
    labels = (rng.random((8000, 1)) > rates.cumsum(axis=1)).sum(axis=1).clip(0, 9)
    order = np.argsort(labels, kind="stable")
    drawn, ordered = (
        tc.measure(tc.Predictions.from_probs(probs[i], labels[i]), lens=tc.ClassWise(), estimator=estimator)
        for i in (np.arange(8000), order)
    )
    assert ordered.value == pytest.approx(drawn.value, abs=1e-12)
    assert drawn.p_value == ordered.p_value == 0.001
    length = drawn.interval.high - drawn.interval.low
    assert ordered.interval.high - ordered.interval.low == pytest.approx(length, rel=0.25)


def test_pooled_cells_have_about_equal_mass():
    edges = cell_edges(np.random.default_rng(0).random((20_000, 2)), 8)
    np.testing.assert_allclose(edges, np.arange(1, 8) / 8, atol=0.01)
    half_certain = np.random.default_rng(0).random((20_000, 2)) * [1, 0] + [0, 1]
    np.testing.assert_allclose(cell_edges(half_certain, 8), [0.25, 0.5, 0.75, 1], atol=0.01)


def test_sums_of_units_state_the_variance_of_their_ones():
    rows, scores = np.array([[4.0, 6.0], [1.0, 3.0]]), np.array([[1.0, 1.0], [0.5, 2.7]])
    sums = columns._unit_sums([rows, np.zeros((2, 2)), scores], 1)
    np.testing.assert_allclose(sums.variances, [10 * 0.2 * 0.8, 4 * 0.8 * 0.2])
