"""Tests of calibration against naive transcriptions of their formulas, and their type I error and power."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2, norm

import truecal as tc
from tests.datasets import named
from tests.inference.worlds import CALIBRATED
from tests.simulations import datasets, within
from truecal.errors import InputError
from truecal.inference import consistency_test, hosmer_lemeshow, kuiper, rank_series_test, spiegelhalter

DATA = named()
TESTS = {
    "rank series": rank_series_test,
    "sweep": consistency_test,
    "equal width": lambda p, **k: consistency_test(p, tc.BinnedECE(), **k),
    "equal mass": lambda p, **k: consistency_test(p, tc.BinnedECE(scheme="mass", norm=2), **k),
    "Spiegelhalter": spiegelhalter,
    "Kuiper": kuiper,
    "Kolmogorov-Smirnov": lambda p, **k: kuiper(p, statistic="ks", **k),
    "Hosmer-Lemeshow": hosmer_lemeshow,
}
spread_out = pytest.mark.parametrize("data", ["uniform", "two-signed", "tied", "skewed", "reversed"])


def mass_bins(c, bins):
    """Rows of each equal-mass bin when equal scores stay together, as the bins of the library are documented."""
    order = np.argsort(c, kind="stable")
    c, n, cuts = c[order], len(c), [0]
    for k in range(1, bins):
        position = -(-k * n // bins)
        first, last = np.searchsorted(c, c[min(position, n - 1)]), np.searchsorted(c, c[min(position, n - 1)], "right")
        if first < position < last:
            position = last if (position - first) / (last - first) >= 0.5 else first
        cuts.append(position)
    cuts = sorted({*cuts, n})
    return [order[a:b] for a, b in pairwise(cuts)]


@spread_out
def test_spiegelhalter_is_its_formula(data):
    c, y = DATA[data]
    z = sum((yi - ci) * (1 - 2 * ci) for ci, yi in zip(c, y, strict=True))
    z /= np.sqrt(sum((1 - 2 * ci) ** 2 * ci * (1 - ci) for ci in c))
    result = spiegelhalter(tc.profile.Profile.from_arrays(c, y), resamples=9999)
    assert result.statistic == pytest.approx(z)
    assert result.p_value == pytest.approx(2 * norm.sf(abs(z)), abs=0.05)


@pytest.mark.parametrize("data", ["uniform", "two-signed", "reversed", "rounded"])
def test_hosmer_lemeshow_is_its_formula_with_one_degree_of_freedom_per_bin(data):
    c, y = DATA["uniform" if data == "rounded" else data]
    c = np.round(0.05 + 0.9 * c, 1) if data == "rounded" else c
    total, bins = 0.0, mass_bins(c, 10)
    for rows in bins:
        expected = c[rows].sum()
        total += (y[rows].sum() - expected) ** 2 / (expected * (1 - expected / len(rows)))
    result = hosmer_lemeshow(tc.profile.Profile.from_arrays(c, y), bins=10, resamples=9999)
    assert result.statistic == pytest.approx(total)
    assert result.p_value == pytest.approx(chi2.sf(total, len(bins)), abs=0.05)


@spread_out
@pytest.mark.parametrize("statistic", ["kuiper", "ks"])
def test_kuiper_walks_over_distinct_scores(data, statistic):
    c, y = DATA[data]
    walk, position = [0.0], 0.0
    for score in np.unique(c):
        position += (y[c == score] - score).sum()
        walk.append(position)
    far = max(walk) - min(walk) if statistic == "kuiper" else max(abs(f) for f in walk)
    result = kuiper(tc.profile.Profile.from_arrays(c, y), statistic=statistic)
    assert result.statistic == pytest.approx(far / np.sqrt((c * (1 - c)).sum()))


def test_consistency_p_value_counts_redraws_that_reach_the_estimate():
    c, y = DATA["uniform"]
    estimator = tc.BinnedECE(bins=5)
    profile = tc.profile.Profile.from_arrays(c, y)
    rng = np.random.default_rng(1)
    fakes = tc.profile.Profile.from_arrays(np.tile(c, (20_000, 1)), rng.random((20_000, len(c))) < c)
    share = (estimator.values(fakes) >= estimator(profile).value).mean()
    assert consistency_test(profile, estimator, resamples=20_000).p_value == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS.keys())
@pytest.mark.parametrize("data", DATA)
def test_p_values_are_never_zero_and_order_of_rows_does_not_matter(test, data):
    c, y = DATA[data]
    result = test(tc.profile.Profile.from_arrays(c, y), resamples=99)
    assert 0.01 <= result.p_value <= 1
    other = np.random.default_rng(3).permutation(len(c))
    again = test(tc.profile.Profile.from_arrays(c[other], y[other]), resamples=99)
    assert again.statistic == pytest.approx(result.statistic)
    assert again.p_value == pytest.approx(result.p_value, abs=0.011)


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS.keys())
def test_scores_of_zero_and_one_are_refuted_by_a_single_miss(test):
    c = np.array([0.0] * 30 + [1.0] * 30)
    right, wrong = c.copy(), c.copy()
    wrong[0] = 1
    assert test(tc.profile.Profile.from_arrays(c, right), resamples=99).p_value == 1
    assert test(tc.profile.Profile.from_arrays(c, wrong), resamples=99).p_value == 0.01


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS.keys())
@settings(max_examples=10)
@given(seed=st.integers(0, 50))
def test_a_batch_gets_the_statistics_of_its_datasets(test, seed):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random((3, 30)), 1)
    y = rng.random((3, 30)) < c
    batch = test(tc.profile.Profile.from_arrays(c, y), resamples=19)
    alone = [test(tc.profile.Profile.from_arrays(a, b), resamples=19).statistic for a, b in zip(c, y, strict=True)]
    np.testing.assert_allclose(batch.statistic, alone, rtol=1e-9, atol=1e-12)


def test_bad_arguments_are_refused():
    profile = tc.profile.Profile.from_arrays(*DATA["uniform"])
    with pytest.raises(InputError, match="resamples"):
        kuiper(profile, resamples=0)
    with pytest.raises(InputError, match="statistic"):
        kuiper(profile, statistic="anderson")
    with pytest.raises(InputError, match="estimator"):
        consistency_test(profile, "sweep")
    with pytest.raises(InputError, match="lens needs Predictions"):
        rank_series_test(profile, lens=tc.TopLabel())


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("world", CALIBRATED.values(), ids=CALIBRATED.keys())
def test_type_one_error_is_five_percent(world, n):
    """2000 replications: 4 draws of scores x 500 of outcomes. The true rate must be able to lie in [0.03, 0.07]."""
    hits, each = dict.fromkeys(TESTS, 0), datasets(500)
    for draw in range(4):
        c = np.sort(world.draw(n, 1, rng=draw)[0])
        y = np.random.default_rng(100 + draw).random((each, n)) < c
        profile = tc.profile.Profile(c, y.astype(np.uint8))
        for name, test in TESTS.items():
            hits[name] += int((test(profile, resamples=999, rng=draw).p_value <= 0.05).sum())
    for name, count in hits.items():
        assert within(count, 4 * each, 0.03, 0.07), f"{name}: {count / (4 * each):.3f}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d"),
    [(1000, 1.1), (1000, 1.15), pytest.param(5000, 1.08, marks=pytest.mark.full)],
)
def test_the_rank_series_test_is_more_powerful_than_sweep_and_equal_width(n, d):
    """c uniform, T = c^d, 400 replications on the same data: significantly more rejections (one-sided McNemar, 1 %)."""
    c = np.sort(np.random.default_rng(n).random((1, n)))
    y = np.random.default_rng(n + 1).random((400, n)) < c**d
    profile = tc.profile.Profile(c, y.astype(np.uint8))
    rejected = {name: TESTS[name](profile, rng=2).p_value <= 0.05 for name in ("rank series", "sweep", "equal width")}
    for rival in ("sweep", "equal width"):
        only = int((rejected["rank series"] & ~rejected[rival]).sum())
        other = int((rejected[rival] & ~rejected["rank series"]).sum())
        assert binomtest(only, only + other, 0.5, alternative="greater").pvalue < 0.01
