"""Intervals that keep their level: the default one over many worlds, the band, the equivalence test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import truecal as tc
from tests.datasets import named
from tests.inference.worlds import CALIBRATED, GROUPS
from tests.simulations import datasets
from truecal.errors import InputError
from truecal.estimators.bins import effective_size
from truecal.estimators.rank_series.fit import fit_series
from truecal.estimators.rank_series.interval import series_pivot
from truecal.inference import band, bands, below
from truecal.lab import Power, Uniform, World

DATA = named()
LEVELS = (0.5, 0.8, 0.95, 0.99)


def held(interval, truth):
    return (np.asarray(interval.low) <= truth + 1e-9) & (truth - 1e-9 <= np.asarray(interval.high))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(200, 500), (1000, 200), (5000, 30)])
@pytest.mark.parametrize("group", GROUPS)
def test_the_default_interval_keeps_its_level(group, n, m):
    """90 %, m datasets in each of ten worlds: mean coverage between 0.86 and 0.97, none below 0.80 (binomial tests, 0.1 %)."""
    hits, m = {}, datasets(m)
    for name, world in GROUPS[group].items():
        c, y = world.draw(n, m, rng=21)
        interval = tc.RankSeries(level=0.9)(tc.profile.Profile.from_arrays(c, y)).interval
        hits[name] = int(held(interval, world.true_error()).sum())
    total, drawn = sum(hits.values()), m * len(hits)
    assert binomtest(total, drawn, 0.86, alternative="less").pvalue > 0.001, total / drawn
    assert binomtest(total, drawn, 0.97, alternative="greater").pvalue > 0.001, total / drawn
    for name, count in hits.items():
        assert binomtest(count, m, 0.80, alternative="less").pvalue > 0.001, f"{name}: {count / m:.3f}"


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([1, 2]),
)
def test_default_intervals_contain_the_estimate_and_nest(rows, norm):
    c = np.array([r[0] for r in rows]) / 20
    y = np.array([int(r[1]) for r in rows])
    previous = None
    for level in LEVELS:
        est = tc.RankSeries(norm=norm, level=level)(tc.profile.Profile.from_arrays(c, y))
        assert 0 <= est.interval.low <= est.value <= est.interval.high <= 1
        if previous is not None:
            assert est.interval.low <= previous.low
            assert previous.high <= est.interval.high
        previous = est.interval


@pytest.mark.parametrize("level", LEVELS)
def test_calibration_error_respects_the_level_asked_for(level):
    c, y = DATA["uniform"]
    for estimator in (None, tc.BinnedECE(), tc.SweepECE()):
        est = tc.calibration_error(y, c, estimator=estimator, level=level)
        assert est.interval.level == level
        assert est.value in est.interval


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    "estimator",
    [None, tc.BinnedECE(), tc.DebiasedECE(), tc.SweepECE(), tc.NearestECE(), tc.estimators.IsotonicError()],
    ids=repr,
)
def test_calibration_error_always_has_an_interval_and_a_p_value(estimator, data):
    c, y = DATA[data]
    est = tc.calibration_error(y, c, estimator=estimator)
    assert 0 <= est.interval.low <= est.value <= est.interval.high <= 1
    assert 0 < est.p_value <= 1


@pytest.mark.parametrize("estimator", [None, tc.BinnedECE(), tc.SweepECE()], ids=repr)
def test_one_row_and_one_cluster_give_wide_intervals_not_nan(estimator):
    one = tc.calibration_error([1], [0.3], estimator=estimator)
    assert one.interval.low == 0
    assert one.interval.high >= 0.7 - 1e-12
    c, y = DATA["uniform"]
    alone = tc.calibration_error(y, c, estimator=estimator, clusters=np.zeros(len(c), int))
    assert (alone.interval.low, alone.interval.high, alone.p_value) == (0, 1, 1)
    assert any("one cluster" in w for w in alone.warnings)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (None, "rank series"),
        (tc.BinnedECE(), "for the error of 15 bins of equal width, at most the true one"),
        (tc.DebiasedECE(bins=8), "for the error of 8 bins of equal mass, at most the true one"),
        (tc.estimators.LabelBinnedECE(scheme="mass"), "for the error against the rates of 15 bins of equal mass"),
    ],
    ids=repr,
)
def test_an_interval_says_which_error_it_is_for(estimator, words):
    c, y = DATA["uniform"]
    assert tc.calibration_error(y, c, estimator=estimator).interval.method.endswith(words)


# ------------------------------------------------------------------------------------------------ band


@pytest.mark.slow
@pytest.mark.parametrize("world", [World(Uniform(), Power(1.5)), CALIBRATED["five tied scores"], CALIBRATED["skewed"]])
def test_the_band_holds_the_whole_curve(world):
    """300 datasets of 500 rows at 90 %: the band is conservative, so at least 90 % must hold everywhere."""
    trials = datasets(300)
    c, y = world.draw(500, trials, rng=8)
    hits = 0
    for i in range(trials):
        rates = world.curve(c[i]) if world.true_error() > 0 else c[i]  # a calibrated world shows its own curve
        hits += band(tc.profile.Profile.from_arrays(c[i], y[i]), level=0.9).contains(c[i], rates)
    assert binomtest(hits, trials, 0.9, alternative="less").pvalue > 0.01, hits / trials


def test_weighted_clusters_of_a_run_are_those_with_rows_in_it():
    """Where weights have no short binary form, differences of sums over groups leave traces of clusters without rows."""
    rng = np.random.default_rng(0)
    p, clusters, weights = rng.random(400), np.arange(400) // 4, rng.random(400)
    preds = tc.Predictions.from_probs(p, rng.random(400) < p, clusters=clusters, weights=weights)
    profile = tc.OneClass()(preds)
    starts = np.arange(0, 401, 40)
    effective = bands._effective_runs(profile, profile.units, starts)[0]
    scale = profile.weights[0] * float(profile.size[0] / profile.total[0])
    expected = []
    for first in range(10):
        for last in range(first, 10):
            rows = slice(starts[first], starts[last + 1])
            unit, of_row = np.unique(profile.units[rows], return_inverse=True)
            sums = (np.bincount(of_row, w[rows]) for w in (scale, scale * profile.outcomes[0]))
            expected.append(effective_size(np.zeros(len(unit), int), *sums, 1)[0])
    np.testing.assert_allclose(effective, expected, rtol=1e-12)


def test_the_band_is_the_best_of_all_runs():
    c = np.array([0.1] * 10 + [0.4] * 20 + [0.8] * 30)
    y = np.array([0] * 9 + [1] + [0] * 12 + [1] * 8 + [0] * 10 + [1] * 20)
    curve_band = band(tc.profile.Profile.from_arrays(c, y), level=0.9)
    from scipy.stats import beta, norm

    groups, low, high = [(10, 1), (20, 8), (30, 20)], np.zeros(3), np.ones(3)
    # The joint level of all six runs, by draws of their own.
    noise = np.random.default_rng(0).normal(size=(200_000, 3)).cumsum(axis=1)
    sums = [noise[:, j] - (noise[:, i - 1] if i else 0) for i in range(3) for j in range(i, 3)]
    lengths = [j - i + 1 for i in range(3) for j in range(i, 3)]
    largest = np.max([np.abs(total) / np.sqrt(length) for total, length in zip(sums, lengths, strict=True)], axis=0)
    alpha = norm.sf(np.quantile(largest, 0.9))
    for i in range(3):
        for j in range(i, 3):
            n, k = (sum(g[x] for g in groups[i : j + 1]) for x in (0, 1))
            low[j:] = np.maximum(low[j:], beta.ppf(alpha, k, n - k + 1))
            high[: i + 1] = np.minimum(high[: i + 1], beta.ppf(1 - alpha, k + 1, n - k))
    np.testing.assert_array_equal(curve_band.score, [0.1, 0.4, 0.8])
    np.testing.assert_allclose(curve_band.low, low, atol=0.002)  # Bonferroni's level would be 0.014 away
    np.testing.assert_allclose(curve_band.high, high, atol=0.002)
    ends = curve_band.at([0.0, 0.25, 0.4, 0.9])
    np.testing.assert_array_equal(ends[0], [0, curve_band.low[0], curve_band.low[1], curve_band.low[2]])
    np.testing.assert_array_equal(ends[1], [curve_band.high[0], curve_band.high[1], curve_band.high[1], 1])


# ------------------------------------------------------------------------------------------------ equivalence


@pytest.mark.slow
def test_below_is_wrong_at_most_as_often_as_stated():
    """At the boundary (true error 0.05 = threshold) 500 datasets of 1000 rows: rejections compatible with at most 7 %."""
    world, trials = World(Uniform(), Power(2)).with_error(0.05), datasets(500)
    verdict = below(tc.profile.Profile.from_arrays(*world.draw(1000, trials, rng=4)), 0.05)
    wrong = int((verdict.p_value <= 0.05).sum())
    assert binomtest(wrong, trials, 0.07, alternative="greater").pvalue > 0.01, wrong / trials
    assert (
        below(tc.profile.Profile.from_arrays(*CALIBRATED["uniform"].draw(5000, 50, rng=4)), 0.05).p_value <= 0.05
    ).mean() > 0.9


def test_interval_of_a_batch_is_that_of_each_dataset_alone_with_ties_of_any_number():
    rng = np.random.default_rng(0)
    c = np.round(rng.random((3, 2000)) * [[1.0], [0.3], [1.0]], 2)
    c[2] = np.round(c[2], 1)  # 101, 31 and 11 different scores: the shorter ones end in empty cells
    y = rng.random(c.shape) < np.clip(c + 0.1 * np.sign(np.sin(40 * c)), 0, 1)
    together = tc.RankSeries()(tc.profile.Profile.from_arrays(c, y)).interval
    alone = [tc.RankSeries()(tc.profile.Profile.from_arrays(*one)).interval for one in zip(c, y, strict=True)]
    np.testing.assert_allclose(together.low, [each.low for each in alone], atol=1e-12)
    np.testing.assert_allclose(together.high, [each.high for each in alone], atol=1e-12)


def test_below_agrees_with_the_interval():
    profile = tc.profile.Profile.from_arrays(*World(Uniform(), Power(1.2)).draw(1000, 1, rng=0))
    high = series_pivot(next(fit_series(profile))).interval(0.9)[1][0]
    assert below(profile, high + 1e-6).p_value[0] < 0.05 < below(profile, high - 1e-6).p_value[0]
    thresholds = [below(profile, t).p_value[0] for t in (0.01, 0.05, 0.2, 0.9)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[-1] > 0
    with pytest.raises(InputError, match="threshold"):
        below(profile, 0.0)


@pytest.mark.parametrize("name", ["spike at one", "resnet110_c10"])
def test_many_equal_scores_do_not_spoil_the_basis_of_the_rank_series(name):
    """64 terms over scores of which a third are tied stay orthonormal, so that 40 intervals at n = 20,000 hold the truth."""
    from truecal.estimators.rank_series.basis import basis_functions, rank_basis, rank_cells

    world = {**GROUPS["others"], **GROUPS["papers"]}[name]
    profile = tc.profile.Profile.from_arrays(*world.draw(20_000, 40, rng=5))
    cells = rank_cells(profile.take(np.arange(1)))
    phi = basis_functions(rank_basis(cells), cells)[0]
    np.testing.assert_allclose((phi * cells.shares[0]) @ phi.T, np.eye(len(phi)), atol=1e-6)
    hits = int(held(tc.RankSeries(level=0.9)(profile).interval, world.true_error()).sum())
    assert binomtest(hits, 40, 0.86, alternative="less").pvalue > 0.01, hits / 40
