"""Limits of a difference of two errors against draws and searches written out point by point."""

import numpy as np
import pytest

import truecal as tc
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.compare import CommonNoise, JointDistribution, Side, UnitNoise, comparison_side
from truecal.estimators.rank_series.interval import Pivot
from truecal.resampling.units import Units


def noises(seed, shared, chosen=3):
    """Coefficients and unit sums of two models that have a part of their noise in common."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(200, 3))
    parts = [shared * common + (1 - shared) * rng.normal(size=(200, 3)) for _ in range(2)]
    return [UnitNoise(rng.normal(0, 0.05, 3), part * 1e-3, rng.normal(size=200) * 1e-5, chosen) for part in parts]


def side(centre, own, *, floor=4e-7, noise=8e-4, spread=1e-4, most=None, clusters=None):
    most = centre if most is None else most
    pivot = Pivot(*(np.array([x]) for x in (centre, floor, noise, spread, most)))
    return Side(np.sqrt(max(centre, 0.0)), pivot, own, clusters)


def both_sides(first, second, shared=0.8, seed=1, **options):
    return [side(x, own_values, **options) for x, own_values in zip((first, second), noises(seed, shared), strict=True)]


def apart(x, y):
    """D from what every unit adds to the linear part, with the coefficients and with the noise of every unit in their place."""

    def added(one, other):
        mean, half = (one + other) / 2 * (np.arange(3) < max(x.order, y.order)), (one - other) / 2
        return x.sums @ (mean + half).T - y.sums @ (mean - half).T

    noise = added(x.sums, y.sums)
    result = np.sum(added(x.coefficients, y.coefficients) ** 2) - np.sum(noise**2)
    return 4 * max(result - 2 * np.sum((noise.T @ noise) ** 2) / result, 0.0) if result > 0 else 0.0


def triangle(one, other, errors, *, paired):
    """Standard deviations of 2 e L of both models, and their correlation."""
    lengths = [e * np.sqrt(float(s.pivot.slope[0])) for e, s in zip(errors, (one, other), strict=True)]
    if not paired:
        return lengths, 0.0
    x, y = one.noise, other.noise
    v11, v22, v12 = x.sums.T @ x.sums, y.sums.T @ y.sums, x.sums.T @ y.sums
    reference = np.sqrt(apart(x, y))
    short = int(lengths[0] > lengths[1])
    if lengths[1 - short] - lengths[short] > reference:
        as_noisy = errors[short] * np.sqrt(float((one, other)[1 - short].pivot.slope[0]))
        lengths[short] = max(lengths[short], min(lengths[1 - short] - reference, as_noisy))
    if 0 < sum(lengths) < reference:
        lengths = [length * reference / sum(lengths) for length in lengths]
    if min(lengths) == 0:  # squares of L are correlated as squares of all coefficients are
        return lengths, float(np.sqrt(np.sum(v12**2) / np.sqrt(np.sum(v11**2) * np.sum(v22**2))))
    return lengths, float(
        np.clip((lengths[0] ** 2 + lengths[1] ** 2 - reference**2) / (2 * lengths[0] * lengths[1]), -1, 1)
    )


def naive_draws(one, other, errors, count, *, paired, rng):
    """X of both models, row by row of the model in the module's text."""
    lengths, rho = triangle(one, other, errors, paired=paired)
    x, y = one.noise, other.noise
    first, second = rng.normal(size=(2, count))
    along = first, rho * first + np.sqrt(1 - rho**2) * second
    similarity = np.dot(x.squares, y.squares) / np.sqrt(np.dot(x.squares, x.squares) * np.dot(y.squares, y.squares))
    similarity = similarity if paired else 0.0
    first, second = rng.normal(size=(2, count))
    height = first, similarity * first + np.sqrt(1 - similarity**2) * second
    weights = [rng.normal(size=(count, len(x.sums))) for _ in range(2)]
    sums = weights[0] @ x.sums, weights[0 if paired else 1] @ y.sums
    scale = 1.0 if one.clusters is None else np.sqrt((one.clusters - 1) / rng.chisquare(one.clusters - 1, count))
    drawn = []
    for s, e, length, line, h, g in zip((one, other), errors, lengths, along, height, sums, strict=True):
        v = s.noise.sums.T @ s.noise.sums
        rest = ((g**2).sum(axis=1) - np.trace(v)) / np.sqrt(2 * np.sum(v**2))
        deviation = length / (2 * e) if e > 0 else np.sqrt(float(s.pivot.slope[0])) / 2
        floor, spread = float(s.pivot.null_variance[0]), float(s.pivot.curvature[0])
        own_values = min(1, np.sqrt(floor / (2 * deviation**4))) * deviation**2 * (line**2 - 1)
        rest = rest * np.sqrt(max(floor - 2 * deviation**4, 0.0))
        linear = 2 * e * deviation * line + np.sqrt(spread) * e**2 * h
        drawn.append(e**2 + linear * scale + (own_values + rest) * scale**2)
    return drawn


def statistic(d, one, other):
    return one - other - d * np.maximum(np.sqrt(np.maximum(2 * (one + other) - d * d, 0.0)), abs(d))


@pytest.mark.parametrize("clusters", [None, 12])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(
    ("first", "second", "shared"), [(0.0004, 0.0, 0.9), (0.004, 0.002, 0.8), (0.0005, -0.0003, 0.5)]
)
def test_tails_are_those_of_draws_written_out(first, second, shared, paired, clusters):
    one, other = both_sides(first, second, shared, clusters=clusters)
    pair = JointDistribution(one, other, paired=paired)
    rng = np.random.default_rng(5)
    for d in (-0.01, 0.0, 0.015, 0.03):
        errors = tuple(float(e[0]) for e in pair.nearest_errors(np.array([d]), (first, second)))
        drawn = statistic(d, *naive_draws(one, other, errors, 6000, paired=paired, rng=rng))
        observed = statistic(d, first, second)
        expected = min(np.mean(drawn <= observed), np.mean(drawn >= observed))
        assert pair.tail(np.array([d]))[0] == pytest.approx(expected, abs=0.05)  # of 1000 draws and their mirror images


@pytest.mark.parametrize("d", [-0.02, 0.0, 0.01])
def test_errors_are_those_nearest_to_what_is_seen(d):
    one, other = both_sides(0.004, 0.002)
    pair = JointDistribution(one, other, paired=True)
    first, second = (float(e[0]) for e in pair.nearest_errors(np.array([d]), (0.004, 0.002)))
    assert first - second == pytest.approx(d, abs=1e-12)
    (v1,), (v2,), (c,) = pair.covariance((np.array([first]), np.array([second])))
    inverse = np.linalg.inv([[v1, c], [c, v2]])

    def distance(total):
        off = np.array([0.004 - ((total + d) / 2) ** 2, 0.002 - ((total - d) / 2) ** 2])
        return off @ inverse @ off

    lowest = min(distance(total) for total in np.linspace(abs(d), 0.4, 4001))
    assert distance(first + second) == pytest.approx(lowest, abs=0.02)


@pytest.mark.parametrize("errors", [(0.0, 0.05), (0.003, 0.004), (0.05, 0.03)])
@pytest.mark.parametrize("noise", [1e-7, 8e-4, 0.1])
def test_noise_along_both_curves_is_a_triangle_with_what_is_known_of_the_difference(errors, noise):
    one, other = both_sides(0.001, 0.002, 0.4, noise=noise)
    lengths, rho = triangle(one, other, errors, paired=True)
    result, correlation = JointDistribution(one, other, paired=True).linear_deviations(
        tuple(np.array([e]) for e in errors)
    )
    np.testing.assert_allclose([float(x[0]) for x in result], lengths, rtol=1e-9, atol=1e-15)
    assert float(correlation[0]) == pytest.approx(rho, abs=1e-9)


@pytest.mark.parametrize("chosen", [0, 1, 3])
def test_what_the_difference_is_known_by_is_counted_unit_by_unit(chosen):
    """The mean of both curves in its chosen terms, their difference in all."""
    one, other = noises(6, 0.4, chosen)
    assert CommonNoise.of_pair(one, other).linear_variance == pytest.approx(apart(one, other), rel=1e-9)


def test_a_series_that_ends_early_has_no_noise_in_further_terms():
    one, other = noises(6, 0.4)
    short = UnitNoise(other.coefficients[:2], other.sums[:, :2], other.squares, 3)
    padded = UnitNoise(other.coefficients * [1, 1, 0], other.sums * [1, 1, 0], other.squares, 3)
    assert CommonNoise.of_pair(one, short).linear_variance == pytest.approx(apart(one, padded), rel=1e-9)


def test_two_calibrated_models_seldom_seem_to_differ_by_their_noise():
    """Coefficients that are noise: D is positive in fewer than a quarter of the cases, where half of the unbiased ones are."""
    rng = np.random.default_rng(10)
    sums = noises(7, 0.5)[0].sums, noises(8, 0.5)[1].sums
    drawn = [
        CommonNoise.of_pair(*(UnitNoise(weights @ s, s, np.zeros(200)) for s in sums)).linear_variance
        for weights in rng.normal(size=(1000, 200))
    ]
    assert 0.1 < np.mean(np.array(drawn) > 0) < 0.25


@pytest.mark.parametrize("clusters", [None, 40])
@pytest.mark.parametrize("shared", [0.1, 0.7])
def test_without_an_error_both_estimates_vary_as_their_noise_says(shared, clusters):
    """Noise that is mostly along one direction: then most of X is L^2, which is not the same for both models."""
    rng = np.random.default_rng(9)
    common, *apart = rng.normal(size=(3, 5000, 3)) * [1e-3, 1e-4, 1e-4]
    sums = [shared * common + (1 - shared) * part for part in apart]
    v11, v22, v12 = (a.T @ b for a, b in ((sums[0], sums[0]), (sums[1], sums[1]), sums))
    sides = [
        side(
            0.0, UnitNoise(np.zeros(3), s, np.zeros(5000)), floor=2 * np.sum(v**2), noise=4 * v[0, 0], clusters=clusters
        )
        for s, v in zip(sums, (v11, v22), strict=True)
    ]
    one, other = JointDistribution(*sides, paired=True).draw((np.zeros(1), np.zeros(1)))
    expected = 2 * (np.sum(v11**2) + np.sum(v22**2) - 2 * np.sum(v12**2))
    if clusters is not None:  # Student's noise: the mean of (39 / chi-square)^2
        expected *= 39**2 / (37 * 35)
    assert float(np.var(one - other)) == pytest.approx(expected, rel=0.25)


def test_noise_that_moves_both_models_alike_hides_no_difference():
    """Both X follow the curve of one difference when noise moves both errors by the same; a normal X would leave it."""
    rng = np.random.default_rng(8)
    beta = np.array([0.13, 0.0, 0.0]), np.array([0.21, 0.0, 0.0])
    sums = rng.normal(size=(40, 3)) * [0.004, 1e-5, 1e-5]
    floor = 2 * float(((sums.T @ sums) ** 2).sum())
    noise = 4 * float((sums.T @ sums)[0, 0])
    sides = [
        side(float(b[0]) ** 2, UnitNoise(b, sums, np.zeros(40)), floor=floor, noise=noise, spread=0.0) for b in beta
    ]
    low, high, p = sides[1].limits(sides[0], 0.9, paired=True)
    assert (low, high) == pytest.approx((0.08, 0.08), abs=0.012)
    assert np.sqrt(noise) / 2 * 1.645 > 0.035  # what is known of the error of each
    assert p < 1e-4


def test_the_other_way_round_ends_turn_and_levels_nest():
    one, other = both_sides(0.01, 0.004, seed=2)
    low, high, p = one.limits(other, 0.95, paired=True)
    assert other.limits(one, 0.95, paired=True) == (-high, -low, p)
    wider = one.limits(other, 0.999, paired=True)
    assert wider[0] < low
    assert high < wider[1]
    assert (p < 0.05) == (low > 0)


def test_the_same_model_does_not_differ_and_few_clusters_are_less_sure():
    noise = noises(3, 1.0)[0]
    assert side(0.01, noise).limits(side(0.01, noise), 0.9, paired=True) == (0.0, 0.0, 1.0)
    many, few = (both_sides(0.01, 0.0, clusters=c) for c in (1000, 5))
    many, few = (one.limits(other, 0.9, paired=False) for one, other in (many, few))
    assert few[1] - few[0] > 1.2 * (many[1] - many[0])
    assert few[2] > many[2]


def test_clusters_are_compared_by_longer_series_than_they_are_measured_by():
    """Two far overconfident models: three terms leave out more of the second, six follow both; the estimates stay the same."""
    rng = np.random.default_rng(7)
    p = np.clip(rng.beta(1.5, 1.2, 4000), 0.003, 0.997)
    clusters = np.arange(4000) % 40
    y = np.where(rng.random(4000) < 0.4, rng.random(40)[clusters], rng.random(4000)) < p
    odds = np.log(p / (1 - p))
    models = [tc.Predictions.from_probs(1 / (1 + np.exp(-t * odds)), y, clusters=clusters) for t in (2.0, 2.3)]
    samples = [tc.OneClass().sample(model) for model in models]
    sides = [comparison_side(sample, Units.of(sample, rng)) for sample in samples]
    values = [ClusteredSeries.of(sample.profile).lower_risk for sample in samples]
    assert [side.value for side in sides] == pytest.approx([series.value[0] for series in values], abs=1e-12)
    assert [side.noise.coefficients.size for side in sides] == [6, 6]
    true = 0.1098 - 0.1294  # of a million rows
    low, high, _ = sides[0].limits(sides[1], 0.9, paired=True)
    assert low < true < high < -0.01
    short = np.sqrt(values[0].theta[0, -1]) - np.sqrt(values[1].theta[0, -1])
    assert short - true > 0.001  # the bias of three terms


@pytest.mark.parametrize(("clusters", "terms"), [(5, 3), (20, 3), (30, 5), (40, 6), (400, 10)])
def test_terms_of_a_comparison_are_paid_for_by_clusters(clusters, terms):
    rng = np.random.default_rng(clusters)
    sample = tc.OneClass().sample(
        tc.Predictions.from_probs(rng.random(800), rng.integers(0, 2, 800), clusters=np.arange(800) % clusters)
    )
    assert comparison_side(sample, Units.of(sample, rng)).noise.coefficients.size == terms


def test_two_recalibrations_of_one_score_differ_by_what_is_known():
    """Then D is 4 E[v (a - b)^2] / n, whatever the outcomes say of either."""
    rng = np.random.default_rng(4)
    p = rng.random(10_000)
    y = rng.random(10_000) < p
    a, b = p**1.1, p**0.9
    samples = [tc.OneClass().sample(tc.Predictions.from_probs(x, y)) for x in (a, b)]
    units = Units.of(samples[0], rng)
    noise = [comparison_side(sample, units).noise for sample in samples]
    common = CommonNoise.of_pair(*noise)
    assert common.linear_variance == pytest.approx(4 * np.mean(p * (1 - p) * (a - b) ** 2) / 10_000, rel=0.1)
    assert common.null_correlation > 0.7  # not 1: the scores that are split at 1/2 differ
