"""Few distinct scores have one error, whichever function is asked, and exact limits for each of them."""

import numpy as np
import pytest
from scipy.stats import binomtest

import truecal as tc

SCORES = np.array([0.1, 0.5, 0.7, 0.9, 0.99])


def _verbal(n, seed, rate=lambda c: 0.2 + 0.6 * c):
    rng = np.random.default_rng(seed)
    c = rng.choice(SCORES, n, p=[0.1, 0.15, 0.25, 0.3, 0.2])
    return c, (rng.random(n) < rate(c)).astype(int)


@pytest.mark.parametrize("n", [120, 300, 2000, 30_000])
def test_measure_verify_and_debiased_error_agree(n):
    c, y = _verbal(n, n)
    preds = tc.Predictions.from_probs(c, y)
    value = tc.measure(preds).value
    assert tc.verify(preds, threshold=0.05).value == pytest.approx(value, abs=1e-12)
    assert tc.measure(preds, estimator=tc.DebiasedECE(bins=None)).value == pytest.approx(value, abs=1e-12)
    assert tc.calibration_error(y, c, estimator=tc.RankSeries()).value == pytest.approx(value, abs=1e-12)


def test_error_is_debiased_by_hand():
    c, y = _verbal(400, 1)
    theta = 0.0
    for score in SCORES:
        r = y[c == score] - score
        theta += (r.sum() ** 2 - (r**2).sum()) / (len(r) - 1) / 400
    estimate = tc.measure(tc.Predictions.from_probs(c, y))
    assert estimate.value == pytest.approx(np.sqrt(max(theta, 0)), abs=1e-12)
    assert estimate.interval.low < estimate.value < estimate.interval.high


def test_weights_of_whole_numbers_repeat_rows():
    c, y = _verbal(500, 2)
    w = np.random.default_rng(3).integers(0, 4, 500)
    weighted = tc.measure(tc.Predictions.from_probs(c, y, weights=w))
    repeated = tc.measure(tc.Predictions.from_probs(np.repeat(c, w), np.repeat(y, w)))
    assert weighted.value == pytest.approx(repeated.value, abs=1e-12)
    assert weighted.interval.high == pytest.approx(repeated.interval.high, abs=1e-9)


def test_verify_agrees_with_measure_where_distinct_scores_exceed_the_terms():
    rng = np.random.default_rng(4)
    c = rng.integers(0, 41, 600) / 40  # 41 scores, 12 terms
    preds = tc.Predictions.from_probs(c, rng.random(600) < c**1.3)
    assert tc.verify(preds, threshold=0.1).value == pytest.approx(tc.measure(preds).value, abs=1e-12)


def test_table_has_exact_limits_for_each_score():
    c, y = _verbal(300, 5)
    regions = tc.inference.stated_values(tc.profile.Profile.from_arrays(c, y), level=0.9)
    assert [region.mean_score for region in regions] == pytest.approx(SCORES)
    for region, score in zip(regions, SCORES, strict=True):
        exact = binomtest(int(y[c == score].sum()), int((c == score).sum())).proportion_ci(0.9, method="exact")
        assert (region.low, region.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_one_score_has_the_exact_limits_of_its_rate():
    y = np.repeat([0, 1], [30, 50])
    exact = binomtest(50, 80).proportion_ci(0.9, method="exact")
    for norm in (1, 2):
        interval = tc.RankSeries(norm=norm, level=0.9)(tc.profile.Profile.from_arrays(np.full(80, 0.8), y)).interval
        assert interval.low == pytest.approx(0.8 - exact.high, abs=1e-9)
        assert interval.high == pytest.approx(0.8 - exact.low, abs=1e-9)


@pytest.mark.parametrize("weights", ["none", "counts", "parts"])
def test_estimates_of_a_batch_are_those_of_each_dataset(weights):
    """A batch of few scores takes the direct form (4b) without a fit, a single dataset the fitted series."""
    rng = np.random.default_rng(3)
    c = rng.choice(SCORES, (20, 300))
    c[5] = 0.7  # one score
    y = rng.random(c.shape) < 0.2 + 0.6 * c
    w = {"none": None, "counts": rng.integers(0, 3, c.shape), "parts": rng.random(c.shape)}[weights]
    together = tc.RankSeries().estimate(tc.profile.Profile.from_arrays(c, y, w))
    alone = [
        tc.RankSeries().estimate(tc.profile.Profile.from_arrays(c[i], y[i], None if w is None else w[i]))
        for i in range(len(c))
    ]
    np.testing.assert_allclose(together.power, [one.power[0] for one in alone], atol=1e-12)
    np.testing.assert_allclose(together.unselected, [one.unselected[0] for one in alone], atol=1e-12)


def test_rows_of_small_weight_share_the_bin_of_their_score():
    rng = np.random.default_rng(0)
    c, y = _verbal(1000, 2)
    weights = 10.0 ** rng.uniform(-4, 0, 1000)
    w, theta = weights * weights.sum() / (weights**2).sum(), 0.0  # sums to the effective number of rows
    for score in SCORES:
        rows, residuals = w[c == score], (y - c)[c == score]
        theta += ((rows @ residuals) ** 2 - rows @ residuals**2) / (rows.sum() - 1)
    estimate = tc.RankSeries().estimate(tc.profile.Profile.from_arrays(c, y, weights))
    assert estimate.unselected[0] == pytest.approx(theta / w.sum(), abs=1e-12)
