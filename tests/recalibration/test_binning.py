"""Histogram binning and scaling-binning against plain transcriptions of their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.recalibration import BetaCalibration, HistogramBinning, PlattScaling, ScalingBinning, TemperatureScaling

Array = NDArray[np.float64]


def naive_mass_bins(scores: Array, bins: int) -> NDArray[np.int64]:
    """Bin k holds sorted positions ceil(k n / b) .. ceil((k + 1) n / b) - 1; for scores without ties."""
    n = len(scores)
    position = np.empty(n, int)
    position[np.argsort(scores)] = np.arange(n)
    return np.array([max(k for k in range(bins) if -(-k * n // bins) <= p) for p in position])


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


def truth(z: Array) -> Array:
    """The synthetic world of Kumar et al., appendix E (A): P(y = 1 | z) = sigmoid(2 logit z + 1), z uniform."""
    return 1 / (1 + np.exp(-(2 * np.log(z / (1 - z)) + 1)))


def squared_errors(maker: type[HistogramBinning], bins: int, n: int, repeats: int = 300) -> Array:
    """True squared errors of fits on n rows, bin by bin.

    Bins that happen to share an output are not taken together: with 100 rows per bin, histogram binning gives about 17
    distinct outputs for 20 bins, and pooling those would lower its error by 8 % against the theory below.
    """
    rng = np.random.default_rng([n, bins])
    grid = (np.arange(4000) + 0.5) / 4000
    errors = []
    for _ in range(repeats):
        z = rng.random(n)
        fixed = maker(bins=bins).fit(z, rng.random(n) < truth(z)).maps_[0]
        steps, values = fixed, grid
        if maker is ScalingBinning:  # its curve is a map of the log odds
            steps, values = fixed.steps, fixed.curve(np.log(grid / (1 - grid)))
        bin_of = np.searchsorted(steps.edges, values, side="right")
        rate = np.bincount(bin_of, truth(grid)) / np.bincount(bin_of)
        errors.append(np.mean((steps.values[bin_of] - rate[bin_of]) ** 2))
    return np.array(errors)


@pytest.mark.slow
@pytest.mark.parametrize(("bins", "n"), [(5, 2000), (20, 2000), (10, 1000)])
def test_histogram_binning_has_the_error_of_theory(bins: int, n: int) -> None:
    """A mean of n/B outcomes in each bin: E = sum_j q_j (1 - q_j) / n, where q_j is the true rate of the bin."""
    fine = (np.arange(200_000) + 0.5) / 200_000
    rates = truth(fine).reshape(bins, -1).mean(axis=1)
    errors = squared_errors(HistogramBinning, bins, n)
    standard_error = errors.std(ddof=1) / np.sqrt(len(errors))
    assert abs(errors.mean() - rates @ (1 - rates) / n) < 4 * standard_error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worse", "better", "ratio"),
    [((10, 1000), (10, 2000), 2.0), ((20, 2000), (5, 2000), 1.0)],  # the paper: 1.98 +- 0.09, and within 2 +- 7 %
)
def test_scaling_binning_halves_with_rows_and_ignores_bins(
    worse: tuple[int, int], better: tuple[int, int], ratio: float
) -> None:
    high, low = squared_errors(ScalingBinning, *worse), squared_errors(ScalingBinning, *better)
    result = high.mean() / low.mean()
    relative = np.sqrt(sum(e.var(ddof=1) / len(e) / e.mean() ** 2 for e in (high, low)))
    assert relative < 0.15  # tight enough to tell 2 from 1, and 1 from the factor 4 of histogram binning
    assert abs(result - ratio) < 4 * relative * ratio
