"""Limits of a difference of two errors against a search written out point by point."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

import truecal as tc
from truecal.estimate.pivot import Pivot
from truecal.estimate.rank_series.clustered import ClusteredSeries
from truecal.estimate.rank_series.paired import Noise, Side, _Common, _Pair
from truecal.estimate.resampling import Units


def side(centre, *, floor=4e-7, noise=8e-4, spread=1e-4, most=None, own=None, clusters=None):
    most = centre if most is None else most
    pivot = Pivot(*(np.array([x]) for x in (centre, floor, noise, spread, most)))
    return Side(np.sqrt(max(centre, 0.0)), pivot, clusters, own)


def noises(seed, shared):
    """Coefficients and unit sums of two models that have a part of their noise in common."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(200, 3))
    parts = [shared * common + (1 - shared) * rng.normal(size=(200, 3)) for _ in range(2)]
    return [Noise(rng.normal(0, 0.05, 3), part * 1e-3, rng.normal(size=200) * 1e-5) for part in parts]


def covariance(one, other, theta, *, paired):
    pivots = one.pivot, other.pivot
    floor, noise, spread = (np.array([float(getattr(p, x)[0]) for p in pivots]) for x in ("floor", "noise", "spread"))
    part, shared = noise * theta, 0.0
    if paired:
        x, y = one.noise, other.noise
        v11, v22, v12 = x.sums.T @ x.sums, y.sums.T @ y.sums, x.sums.T @ y.sums
        rho = np.sum(v12**2) / np.sqrt(np.sum(v11**2) * np.sum(v22**2))
        linear = 4 * float(np.sum((x.sums @ x.beta - y.sums @ y.beta) ** 2))
        linear -= 4 * (np.sum(v11**2) + np.sum(v22**2) - 2 * np.sum(v12**2))
        if 0 < np.sqrt(part).sum() < np.sqrt(max(linear, 0.0)):
            part = part * linear / np.sqrt(part).sum() ** 2
        most = np.sqrt(part[0] * part[1])
        middle = min(max((part.sum() - max(linear, 0.0)) / 2, -most), most)
        alike = np.dot(x.squares, y.squares) / np.sqrt(np.dot(x.squares, x.squares) * np.dot(y.squares, y.squares))
        shared = rho * np.sqrt(floor[0] * floor[1]) + middle + alike * np.sqrt(spread[0] * spread[1]) * theta.prod()
    variance = floor + part + spread * theta**2
    bound = (1 - 1e-9) * np.sqrt(variance[0] * variance[1])
    shared = min(max(shared, -bound), bound)
    return np.array([[variance[0], shared], [shared, variance[1]]])


def distance(one, other, a, b, *, paired):
    """(X - theta)' Cov^-1 (X - theta), the least over points between X and what runs show."""
    theta = np.array([a * a, b * b])
    inverse = np.linalg.inv(covariance(one, other, theta, paired=paired))
    pivots = one.pivot, other.pivot
    start, end = (np.array([float(getattr(p, name)[0]) for p in pivots]) for name in ("centre", "most"))
    off = [theta - start - t * (end - start) for t in np.linspace(0, 1, 11)]
    return min(float(x @ inverse @ x) for x in off)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(
    ("first", "second", "shared"), [(0.0004, 0.0, 0.9), (0.004, 0.002, 0.8), (-0.0003, 0.0005, 0.5)]
)
def test_limits_are_those_of_a_search_over_pairs_of_errors(first, second, shared, paired):
    one_noise, other_noise = noises(1, shared)
    one = side(first, own=one_noise, most=first + 0.0003)
    other = side(second, own=other_noise, most=second + 0.0001)
    low, high, p = one.limits(other, 0.9, paired=paired)
    errors = np.linspace(0, 0.1, 41)
    tried = [distance(one, other, a, b, paired=paired) for a, b in itertools.product(errors, errors)]
    tried = np.array(tried).reshape(41, 41)
    kept = (errors[:, None] - errors[None, :])[tried - tried.min() <= (1.05 * 1.6449) ** 2]
    step = 1.2 * errors[1]  # grids that miss the least distance keep a little less
    assert kept.min() - step <= low <= kept.min() + step
    assert kept.max() - step <= high <= kept.max() + step
    at_none = np.sqrt(max(np.diagonal(tried).min() - tried.min(), 0.0))
    assert p == pytest.approx(2 * norm.sf(at_none / 1.05), abs=0.1)


@pytest.mark.parametrize("theta", [(0.0, 0.003), (1e-5, 2e-5), (0.002, 0.001)])
def test_estimates_vary_together_as_much_as_is_known_of_their_difference(theta):
    """The fitted curves say of both models that they hardly vary; the difference of their scores says otherwise."""
    one, other = (side(x, noise=1e-7, spread=0.0, own=n) for x, n in zip((0.001, 0.002), noises(2, 0.4), strict=True))
    cov = covariance(one, other, np.array(theta), paired=True)
    off = np.array(theta) - (0.001, 0.002)
    found = _Pair(one, other, paired=True).distance(*(np.sqrt([x]) for x in theta))
    assert float(found[0]) == pytest.approx(off @ np.linalg.inv(cov) @ off, rel=1e-6)
    linear = _Common.of(one.noise, other.noise).linear
    assert linear > 4 * 1e-7 * sum(theta)
    assert cov[0, 0] + cov[1, 1] - 2 * cov[0, 1] >= linear


def test_the_other_way_round_ends_turn():
    one, other = (side(x, own=n) for x, n in zip((0.01, 0.004), noises(2, 0.8), strict=True))
    low, high, p = one.limits(other, 0.95, paired=True)
    assert other.limits(one, 0.95, paired=True) == pytest.approx((-high, -low, p), abs=2e-5)


def test_the_same_model_does_not_differ_and_few_clusters_are_less_sure():
    noise = noises(3, 1.0)[0]
    assert side(0.01, own=noise).limits(side(0.01, own=noise), 0.9, paired=True) == (0.0, 0.0, 1.0)
    many, few = (side(0.01, clusters=c).limits(side(0.0, clusters=c), 0.9, paired=False) for c in (1000, 5))
    assert few[1] - few[0] > 1.2 * (many[1] - many[0])
    assert few[2] > many[2]


def test_clusters_are_compared_by_longer_series_than_they_are_measured_by():
    """Two far overconfident models: three terms leave out more of the second, six follow both; the errors told stay the same."""
    rng = np.random.default_rng(7)
    p = np.clip(rng.beta(1.5, 1.2, 4000), 0.003, 0.997)
    clusters = np.arange(4000) % 40
    y = np.where(rng.random(4000) < 0.4, rng.random(40)[clusters], rng.random(4000)) < p
    odds = np.log(p / (1 - p))
    models = [tc.Predictions.from_probs(1 / (1 + np.exp(-t * odds)), y, clusters=clusters) for t in (2.0, 2.3)]
    samples = [tc.OneClass().sample(model) for model in models]
    sides = [tc.RankSeries().side(sample, Units.of(sample, rng)) for sample in samples]
    found = [ClusteredSeries.of_profile(sample.profile) for sample in samples]
    assert [side.value for side in sides] == [series.value for series in found]
    assert [side.noise.beta.size for side in sides] == [6, 6]
    true = 0.1098 - 0.1294  # of a million rows
    low, high, _ = sides[0].limits(sides[1], 0.9, paired=True)
    assert low < true < high < -0.01
    short = np.sqrt(found[0].theta[-1]) - np.sqrt(found[1].theta[-1])
    assert short - true > 0.002  # what three terms would say


@pytest.mark.parametrize(("clusters", "terms"), [(5, 3), (20, 3), (30, 5), (40, 6), (400, 10)])
def test_terms_of_a_comparison_are_paid_for_by_clusters(clusters, terms):
    rng = np.random.default_rng(clusters)
    sample = tc.OneClass().sample(
        tc.Predictions.from_probs(rng.random(800), rng.integers(0, 2, 800), clusters=np.arange(800) % clusters)
    )
    assert tc.RankSeries().side(sample, Units.of(sample, rng)).noise.beta.size == terms


def test_two_recalibrations_of_one_score_differ_by_what_is_known():
    """Then D is 4 E[v (a - b)^2] / n, whatever the outcomes say of either."""
    rng = np.random.default_rng(4)
    p = rng.random(10_000)
    y = rng.random(10_000) < p
    a, b = p**1.1, p**0.9
    samples = [tc.OneClass().sample(tc.Predictions.from_probs(x, y)) for x in (a, b)]
    units = Units.of(samples[0], rng)
    common = _Common.of(*(tc.RankSeries().side(sample, units).noise for sample in samples))
    assert common.linear == pytest.approx(4 * np.mean(p * (1 - p) * (a - b) ** 2) / 10_000, rel=0.1)
    assert common.floor > 0.99
