"""The formulas behind promises, beside naive code: tails, variances, limits of rates and the nulls that are tried."""

from math import sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta, binom, gamma, norm

import truecal as tc
from truecal.inference import exact_limit
from truecal.inference.conclusion import rows_to_settle
from truecal.inference.exact_limit import OutputCells, _spread, squared_errors
from truecal.special import clopper_pearson

OUTPUTS, COUNTS, ONES = np.array([0.1, 0.4, 0.9]), np.array([40.0, 25.0, 60.0]), np.array([9.0, 6.0, 57.0])


def naive_moments(t, shape):
    """Variance and third cumulant of U - t, output by output."""
    n = COUNTS.sum()
    variance, third, between = 0.0, 0.0, 0.0
    for s, count, ones, e in zip(OUTPUTS, COUNTS, ONES, shape, strict=True):
        share, rate = count / n, (ones + 2 * s) / (count + 2)
        noise = rate * (1 - rate) / count
        variance += share**2 * (4 * t * e * noise + 2 * noise**2)
        third += share**3 * (24 * t * e * noise**2 + 8 * noise**3)
        between += share * (t * e) ** 2
    return variance + max(between - t**2, 0.0) / n, third


def naive_chance(t):
    gap = (OUTPUTS - ONES / COUNTS) ** 2
    debiased = gap - (ONES / COUNTS) * (1 - ONES / COUNTS) / (COUNTS - 1)
    share, observed = COUNTS / COUNTS.sum(), np.maximum(debiased, 0.0)
    chances = []
    for form in (np.ones(3), observed / (share @ observed)):
        variance, third = naive_moments(t, form)
        shape = 4 * variance**3 / third**2
        scale = sqrt(variance / shape)
        chances.append(gamma(shape, scale=scale).sf(share @ debiased - t + shape * scale))
    return max(chances)


@pytest.mark.parametrize("t", [0.0, 0.002, 0.01, 0.03, 0.2])
def test_the_chance_of_an_estimate_is_that_of_its_moments(t):
    assert OutputCells.counted(OUTPUTS, COUNTS, ONES)._exceedance(t) == pytest.approx(naive_chance(t), rel=1e-9)


@pytest.mark.parametrize("level", [0.6, 0.9, 0.95])
def test_at_the_lower_limit_the_estimate_is_as_improbable_as_the_level_says(level):
    low = OutputCells.counted(OUTPUTS, COUNTS, ONES).lower(level)
    assert low > 0
    assert naive_chance(low) == pytest.approx(1 - level, rel=1e-6)


def test_an_output_seen_once_or_never_is_not_debiased():
    _, debiased = squared_errors(np.array([0.3, 0.5, 0.9]), np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0]))
    assert debiased == pytest.approx((0.7**2 + 2 * (0.0 - 0.25)) / 3)


def test_upper_tails_without_skewness_or_variance():
    assert exact_limit._upper_tail(0.3, 0.04, 0.0) == pytest.approx(norm.sf(1.5))
    assert [exact_limit._upper_tail(distance, 0.0, 0.0) for distance in (-1.0, 0.0, 1e-9)] == [1.0, 1.0, 0.0]
    assert exact_limit._upper_tail(-100.0, 1.0, 2.0) == 1.0  # below the least value of the gamma variable


@pytest.mark.parametrize("s", [0.0, 0.2, 0.85])
@pytest.mark.parametrize(("n", "rate"), [(1, 0.3), (2, 0.0), (7, 0.62), (40, 0.9), (40, 1.0)])
def test_moments_of_the_statistic_are_those_over_all_counts(n, rate, s):
    k = np.arange(n + 1)
    mass, shrunk = binom.pmf(k, n, rate), (k + 2 * s) / (n + 2)
    t = n * (k / n - s) ** 2 - shrunk * (1 - shrunk)
    mean, variance = exact_limit._binomial_moments(s, np.array([0.0, n]), np.array([0.5, rate]))
    assert_allclose(mean, [0, mass @ t], atol=1e-12)
    assert_allclose(variance, [0, mass @ (t - mass @ t) ** 2], atol=1e-10)


def test_one_row_limits_nothing():
    cells = OutputCells(np.array([0.5]), np.ones(1), np.ones(1), np.ones(1), 1.0)
    assert exact_limit.upper_limit(cells, 0.02, 0.95) == (False, 1.0)


def test_the_limits_of_a_rate_are_those_of_clopper_and_pearson():
    k, n = np.array([0.0, 1.0, 3.0, 7.0, 9.0, 4.0]), np.array([4.0, 5.0, 7.0, 7.0, 30.0, 5.0])
    low, high = clopper_pearson(k, n, exact_limit._TAIL)
    for i in range(len(k)):
        assert low[i] == pytest.approx(beta.ppf(exact_limit._TAIL, k[i], n[i] - k[i] + 1) if k[i] else 0.0)
        assert high[i] == pytest.approx(beta.ppf(1 - exact_limit._TAIL, k[i] + 1, n[i] - k[i]) if k[i] < n[i] else 1.0)


def naive_spread(codes, s, n, k, a):
    together = own_values = linear = alone = 0.0
    gap, many = (k / n - s) * a, len(s)
    pairs, single = np.zeros((many, many)), np.zeros(many)
    for row in codes.T:
        q = s[row] / s[row].sum()
        for c in range(len(row)):
            single[row[c]] += q[c] * (1 - q[c])
            alone += q[c] * (1 - q[c]) * gap[row[c]] ** 2
            for d in range(len(row)):
                if c != d:
                    pairs[row[c], row[d]] += q[c] * q[d]
        linear += float((q * gap[row] ** 2).sum() - (q * gap[row]).sum() ** 2)
    for i in range(many):
        own_values += (a[i] / n[i] * single[i]) ** 2
        for j in range(many):
            together += a[i] / n[i] * a[j] / n[j] * pairs[i, j] ** 2
    return 1 + together / own_values, linear / alone


@pytest.mark.parametrize("rows", [7, 50])
@pytest.mark.parametrize("scale", [0.4, 1.0, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_the_spread_of_classes_beside_loops(seed, scale, rows):
    """Also of outputs that do not sum to 1, and where an output was seen once. Weights are shares of classes."""
    rng = np.random.default_rng(seed)
    classes = 3
    codes = np.array([rng.permutation(3) for _ in range(rows)]).T + 3 * np.arange(classes)[:, None]
    codes[:, 0] = [9, 10, 11]  # outputs of this row alone
    s = scale * np.append(np.tile([0.2, 0.3, 0.5], classes), [0.1, 0.4, 0.5])
    n = np.maximum(np.bincount(codes.ravel(), minlength=12), 1).astype(float)
    k = np.floor(n * rng.random(12))
    a = np.append(np.repeat([0.2, 0.3, 0.5], 3), [0.2, 0.3, 0.5])
    quadratic, linear = naive_spread(codes, s, n, k, a)
    assert 1 < max(quadratic, linear) < 2
    assert _spread(codes, s, n, k, a, np.ones(rows)) == pytest.approx(max(quadratic, linear))


@pytest.mark.parametrize("size", [0.001, 0.1])
def test_the_spread_of_gaps_that_are_real(size):
    """Too much in one class and too little in another, over many outputs: their labels then tie more than chance does."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (3, 200)) + 5 * np.arange(3)[:, None]
    s, a = rng.uniform(0.2, 0.5, 15), np.repeat([0.3, 0.3, 0.4], 5)
    n = np.bincount(codes.ravel(), minlength=15).astype(float)
    k = n * (s + size * np.repeat([1.0, -1.0, 0.1], 5))
    quadratic, linear = naive_spread(codes, s, n, k, a)
    assert 1 < quadratic < linear < 2
    assert _spread(codes, s, n, k, a, np.ones(200)) == pytest.approx(linear)


def test_the_spread_of_gaps_that_cancel_is_that_of_their_sum():
    """Two classes whose gaps are opposite: the linear part alone reaches 2, the largest there is; gaps alike add nothing."""
    codes = np.array([[0] * 40 + [1] * 40, [2] * 40 + [3] * 40])
    s, n, a = np.array([0.3, 0.6, 0.7, 0.4]), np.full(4, 40.0), np.full(4, 0.5)
    k = n * s + np.array([4.0, -4.0, -4.0, 4.0])
    assert max(naive_spread(codes, s, n, k, a)) == pytest.approx(2.0)
    assert _spread(codes, s, n, k, a, np.ones(80)) == pytest.approx(2.0)


@pytest.mark.parametrize("squared", [0.001, 0.05, 0.12])
def test_gaps_along_a_direction_have_the_squared_error_wanted(squared):
    s, w, direction = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0.4, 2.0])
    gaps = exact_limit._scale(s, w, direction, squared)
    assert w @ gaps**2 == pytest.approx(squared, rel=1e-6)
    rate = s + gaps
    assert ((rate >= 0) & (rate <= 1)).all()
    free = (rate > 1e-9) & (rate < 1 - 1e-9)
    assert np.ptp(gaps[free] / direction[free]) < 1e-9
    assert exact_limit._scale(s, w, direction, 0.14) is None


def test_the_gaps_seen_are_one_of_the_nulls():
    cells = OutputCells(np.array([0.1, 0.6]), np.array([1.0, 20.0]), np.array([1.0, 3.0]), np.ones(2), 21.0)
    gaps = list(exact_limit._divisions(cells, exact_limit._gap_limits(cells), 1e-4))[1]
    observed = np.array([sqrt(0.9**2 - 0.1 * 0.9), -sqrt((0.15 - 0.6) ** 2 - 0.6 * 0.4 / 20)])
    assert_allclose(gaps / gaps[0], observed / observed[0])


def test_outputs_of_the_largest_variance_are_filled_first():
    """Both have room upwards; 4 p (1 - p) + cap^2 at the far end is larger for the second, as s - cap it would be the first."""
    cells = OutputCells(np.array([0.45, 0.1]), np.array([8.0, 8.0]), np.array([7.0, 4.0]), np.ones(2), 16.0)
    limits = exact_limit._gap_limits(cells)
    p = cells.outputs + limits.side * limits.largest
    value = 4 * p * (1 - p) + limits.largest**2
    gaps = next(exact_limit._divisions(cells, limits, 1e-3))
    assert gaps[int(value.argmax())] != 0
    assert gaps[int(value.argmin())] == 0


@pytest.mark.parametrize("threshold", [-0.1, 1.5, np.nan])
def test_a_threshold_is_a_probability(threshold):
    with pytest.raises(tc.InputError, match="threshold must lie in"):
        tc.verify(tc.Predictions.from_probs([0.5, 0.5], [0, 1]), threshold=threshold)
    assert tc.verify(tc.Predictions.from_probs([0.5, 0.5], [0, 1]), threshold=1).threshold == 1


@pytest.mark.parametrize("level", [0.5, 1.0, 1.5])
def test_a_promise_is_more_likely_true_than_not_and_never_certain(level):
    with pytest.raises(tc.InputError, match=r"level must lie strictly between 0(\.5)? and 1"):
        tc.verify(tc.Predictions.from_probs([0.5, 0.5], [0, 1]), threshold=0.1, level=level)


def test_how_many_rows_more_would_settle_a_question():
    assert rows_to_settle(0.01, 0.0, 0.05, 0.03, 1000) in (3000, 3001)  # half the distance takes four times the rows
    assert rows_to_settle(0.08, 0.04, 0.1, 0.06, 1000) in (3000, 3001)
    assert (
        rows_to_settle(0.03, 0.0, 0.05, 0.03, 1000) is None
    )  # no number of rows tells an error from a threshold that it equals
    assert rows_to_settle(0.01, 0.0, 0.02, 0.03, 1000) is None
    assert rows_to_settle(0.01, 0.0, 0.03, 0.03, 1000) is None  # settled by the last row
    assert rows_to_settle(0.0, 0.0, 0.5, 1e-6, 1000) is None  # more than anybody has
    assert rows_to_settle(0.0, 0.0, 0.11, 0.1, 1) == 1  # a part of a row is a row
