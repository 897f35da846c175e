"""Histogram binning and scaling-binning against plain transcriptions of their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.recalibrate import BetaCalibration, HistogramBinning, PlattScaling, ScalingBinning, TemperatureScaling

Array = NDArray[np.float64]


def naive_mass_bins(scores: Array, bins: int) -> NDArray[np.int64]:
    """Bin k holds sorted positions ceil(k n / b) .. ceil((k + 1) n / b) - 1; for scores without ties."""
    n = len(scores)
    place = np.empty(n, int)
    place[np.argsort(scores)] = np.arange(n)
    return np.array([max(k for k in range(bins) if -(-k * n // bins) <= p) for p in place])


@given(st.integers(0, 1000), st.integers(1, 12), st.integers(12, 60))
@settings(max_examples=60, deadline=None)
def test_histogram_binning_outputs_the_mean_outcome_of_equal_masses(seed: int, bins: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    s, y = rng.random(n), np.r_[0, 1, rng.integers(0, 2, n - 2)]
    bin_of = naive_mass_bins(s, bins)
    naive = np.array([y[bin_of == k].mean() for k in range(bins)])[bin_of]
    assert_allclose(HistogramBinning(bins=bins).fit(s, y).predict_proba(s)[:, 1], naive, atol=1e-12)


@given(st.integers(0, 1000), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_histogram_binning_of_equal_width(seed: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    s, y = rng.integers(0, bins + 1, 40) / bins, np.r_[0, 1, rng.integers(0, 2, 38)]  # every score sits on an edge
    steps = HistogramBinning(bins=bins, scheme="width").fit(s, y)
    bin_of = np.minimum(np.rint(s * bins).astype(int), bins - 1)  # [j/b, (j+1)/b), the last one closed
    for j in range(bins):
        expected = y[bin_of == j].mean() if (bin_of == j).any() else (j + 0.5) / bins
        assert_allclose(steps.predict_proba([j / bins])[0, 1], expected, atol=1e-12)


def test_tied_scores_share_one_bin() -> None:
    s = np.array([0.2] * 5 + [0.7] * 5)
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1])
    fixed = HistogramBinning(bins=4).fit(s, y)
    assert len(fixed.maps_[0].values) == 2
    assert_allclose(fixed.predict_proba([0.2, 0.7])[:, 1], [0.2, 0.8])
    assert len(HistogramBinning(bins=4).fit([0.5] * 6, [0, 1] * 3).maps_[0].values) == 1


def test_neighbouring_floats_are_told_apart() -> None:
    s = np.array([0.5, np.nextafter(0.5, 1)])
    assert HistogramBinning(bins=2).fit(s, [0, 1]).predict_proba(s)[:, 1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("maker", [HistogramBinning, ScalingBinning])
def test_fewer_rows_than_bins_are_refused(maker: type[HistogramBinning]) -> None:
    with pytest.raises(InputError, match="4 rows cannot fill 5 bins; use at most bins=4"):
        maker(bins=5).fit([0.1, 0.3, 0.2, 0.4], [0, 0, 1, 1])
    with pytest.raises(InputError, match="bins must be a whole number of at least 1, not 0"):
        maker(bins=0).fit([0.1, 0.3], [0, 1])


def curve_data(n: int = 900) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(5)
    s = rng.random(n)
    return s, (rng.random(n) < s**2).astype(int)


@pytest.mark.parametrize("scaling", [None, PlattScaling(), BetaCalibration()])
def test_scaling_binning_outputs_means_of_the_curve(scaling: PlattScaling | None) -> None:
    s, y = curve_data()
    curve = (scaling or BetaCalibration(parameters=2)).fit(s, y).predict_proba(s)[:, 1]
    bin_of = naive_mass_bins(curve, 10)
    naive = np.array([curve[bin_of == k].mean() for k in range(10)])[bin_of]
    fixed = ScalingBinning(bins=10, scaling=scaling).fit(s, y).predict_proba(s)[:, 1]
    assert_allclose(fixed, naive, atol=1e-12)
    assert len(np.unique(fixed)) == 10


def test_three_way_split_uses_each_third_once() -> None:
    s, y = curve_data()
    fixed = ScalingBinning(bins=10, split="thirds", rng=3).fit(s, y)
    first, second, third = np.array_split(np.random.default_rng(3).permutation(len(s)), 3)
    curve = BetaCalibration(parameters=2).fit(s[first], y[first])
    values = curve.predict_proba(s)[:, 1]
    at = np.sort(values[second])
    edges = (at[30:300:30] + at[29:299:30]) / 2
    bin_of = np.searchsorted(edges, values, "right")
    naive = np.array([values[third][bin_of[third] == k].mean() for k in range(10)])[bin_of]
    assert_allclose(fixed.predict_proba(s)[:, 1], naive, atol=1e-12)
    assert not np.array_equal(
        fixed.predict_proba(s), ScalingBinning(bins=10, split="thirds", rng=4).fit(s, y).predict_proba(s)
    )


def test_a_bin_missed_by_the_last_third_takes_the_mean_of_the_second() -> None:
    s, y = curve_data(60)
    fixed = ScalingBinning(bins=20, split="thirds", rng=0).fit(s, y)  # 20 rows per third, one per bin: some are missed
    values = fixed.maps_[0].steps.values
    assert len(values) == 20
    assert ((values > 0) & (values < 1)).all()


def test_scaling_must_fit_the_declared_input() -> None:
    s, y = curve_data(60)
    with pytest.raises(InputError, match='scaling reads input="logits" but bins input="probs"'):
        ScalingBinning(bins=3, scaling=PlattScaling(input="logits")).fit(s, y)
    with pytest.raises(InputError, match="scaling must be a recalibrator of one score"):
        ScalingBinning(bins=3, scaling=TemperatureScaling()).fit(s, y)


def test_bins_of_logits_are_bins_of_probabilities() -> None:
    s, y = curve_data()
    z = np.log(s / (1 - s))
    for maker in (HistogramBinning, ScalingBinning):
        assert_allclose(
            maker(bins=7, input="logits").fit(z, y).predict_proba(z),
            maker(bins=7).fit(s, y).predict_proba(s),
            atol=1e-9,
        )


@pytest.mark.slow
def test_sample_complexity_of_the_paper_synthetic_world() -> None:
    """Kumar et al., appendix E (A): P(Y|z) = sigmoid(2 logit z + 1), Z uniform."""
    grid = (np.arange(4000) + 0.5) / 4000
    truth = 1 / (1 + np.exp(-(2 * np.log(grid / (1 - grid)) + 1)))

    def squared_error(maker: type[HistogramBinning], bins: int, n: int, repeats: int = 300) -> float:
        rng = np.random.default_rng(n + bins)
        errors = []
        for _ in range(repeats):
            z = rng.random(n)
            y = rng.random(n) < 1 / (1 + np.exp(-(2 * np.log(z / (1 - z)) + 1)))
            fixed = maker(bins=bins).fit(z, y).maps_[0]
            scores = fixed(grid)
            _, of = np.unique(scores, return_inverse=True)
            rate = np.bincount(of, truth) / np.bincount(of)
            errors.append(np.mean((scores - rate[of]) ** 2))
        return float(np.mean(errors))

    for maker, low, high in ((HistogramBinning, 1.8, 2.2), (ScalingBinning, 1.7, 2.3)):
        ratio = squared_error(maker, 10, 1000) / squared_error(maker, 10, 2000)
        assert low < ratio < high  # the paper: 2.00 +- 0.06 and 1.98 +- 0.09
    growth = squared_error(HistogramBinning, 20, 2000) / squared_error(HistogramBinning, 5, 2000)
    assert 3.3 < growth < 4.2  # the paper: 3.71 +- 0.15
    growth = squared_error(ScalingBinning, 20, 2000) / squared_error(ScalingBinning, 5, 2000)
    assert 0.8 < growth < 1.25  # the paper: within 2 +- 7 %
