"""Calls of calibration_error: what an Estimate carries, says and warns of."""

import numpy as np
import pytest

import truecal as tc

RNG = np.random.default_rng(11)
P = RNG.random(1500)
Y = (RNG.random(1500) < P**1.4).astype(int)


def test_rows_of_weight_zero_alone_are_refused():
    rows = tc.Predictions.from_probs(P, Y, weights=np.arange(1500) >= 2).take([0, 1])
    with pytest.raises(tc.InputError, match="all weights are zero"):
        tc.measure(rows)


def test_the_default_answer_carries_everything():
    est = tc.calibration_error(Y, P)
    assert isinstance(est.estimator, tc.RankSeries)
    assert est.norm == 2
    assert est.n == 1500
    assert est.interval.low <= est.value <= est.interval.high
    assert est.interval.level == 0.95
    assert est.p_value < 0.01
    assert est.lens == "positive class"
    assert est.direction == pytest.approx(P.mean() - Y.mean())
    assert float(est) == est.value
    assert est.warnings == ()
    assert np.all(np.diff(est.curve.score) >= 0)


def test_one_readable_line():
    line = str(tc.calibration_error(Y, P))
    assert "\n" not in line
    for part in (
        "root-mean-square calibration error 0.",
        "at 95%",
        "RankSeries",
        "positive class",
        "n=1500",
        "p = 0.001",
        "predicted too high by 0.0",
    ):
        assert part in line
    assert "ECE" not in line  # a root-mean-square error is not what people call ECE
    line = str(tc.calibration_error(Y, P, estimator=tc.BinnedECE(bins=10)))
    assert line.startswith("mean absolute calibration error")
    assert "10 bins" in line
    assert "maximum calibration error" in str(tc.calibration_error(Y, P, estimator=tc.BinnedECE(norm=np.inf)))
    assert "2 datasets" in str(tc.BinnedECE()(tc.profile.Profile.from_arrays(P.reshape(2, -1), Y.reshape(2, -1))))


def test_bins_keep_counts_means_and_intervals():
    bins = tc.calibration_error(Y, P, estimator=tc.BinnedECE(bins=10)).bins
    inside = [(j / 10 <= P) & ((j + 1) / 10 > P) for j in range(10)]
    np.testing.assert_array_equal(bins.counts, [i.sum() for i in inside])
    np.testing.assert_allclose(bins.mean_score, [P[i].mean() for i in inside])
    np.testing.assert_allclose(bins.mean_outcome, [Y[i].mean() for i in inside])
    from scipy.stats import binomtest

    low, high = bins.interval(0.9)
    for j, i in enumerate(inside):
        exact = binomtest(int(Y[i].sum()), int(i.sum())).proportion_ci(0.9)
        assert (low[j], high[j]) == pytest.approx((exact.low, exact.high))


def test_empty_bins_are_left_out_of_the_table():
    bins = tc.BinnedECE(bins=10)(tc.profile.Profile.from_arrays([0.05, 0.95], [0, 1])).bins
    assert len(bins.counts) == bins.filled == 2


def test_level_and_estimator_are_respected():
    wide, narrow = (tc.calibration_error(Y, P, level=level).interval for level in (0.99, 0.5))
    assert wide.low < narrow.low
    assert narrow.high < wide.high
    assert tc.calibration_error(Y, P, estimator=tc.SweepECE(norm=1)).norm == 1


def test_the_same_seed_gives_the_same_p_value():
    first, second, other = (tc.calibration_error(Y[:200], P[:200], rng=seed).p_value for seed in (1, 1, 2))
    assert first == second != other


def test_two_columns_are_judged_by_the_positive_class_and_by_the_top_label_where_asked():
    two = np.stack([1 - P, P], axis=1)
    est = tc.calibration_error(Y, two)
    assert est.lens == "positive class"
    assert est.value == tc.calibration_error(Y, P).value
    assert tc.calibration_error(Y, two, lens=tc.OneClass(1)).value == est.value
    top = tc.calibration_error(Y, two, lens=tc.TopLabel())
    assert top.lens == "top label"
    assert top.value == tc.calibration_error((two.argmax(axis=1) == Y).astype(int), two.max(axis=1)).value


@pytest.mark.parametrize("scores", [1 - P, np.full(1500, Y.mean())])
def test_the_sweep_does_not_quietly_say_zero(scores):
    """Reversed scores keep their mean; the sweep sees one bin and must say why its value means little."""
    est = tc.calibration_error(Y, scores, estimator=tc.SweepECE())
    assert est.bins.filled == 1
    assert any("only |mean score - mean outcome|" in w for w in est.warnings)
    assert "warning:" in str(est)


def test_labels_that_mark_correctness_are_suspected():
    p = RNG.dirichlet(np.ones(5), 100)
    est = tc.calibration_error(RNG.integers(0, 2, 100), p)
    assert any("only ever 0 and 1 of 5 classes" in w for w in est.warnings)


def test_small_samples_are_called_small():
    est = tc.calibration_error(Y[:20], P[:20])
    assert any("only 20 rows" in w for w in est.warnings)


def test_weights_say_how_they_were_read():
    counted = tc.calibration_error(Y, P, sample_weight=np.full(1500, 2))
    assert any("count as repetitions: 1500 rows stand for 3000" in w for w in counted.warnings)
    assert counted.n == 3000
    importance = tc.calibration_error(Y, P, sample_weight=RNG.random(1500))
    assert importance.n == 1500
    assert importance.effective_n < 1500


def test_debiased_estimates_stay_signed_inside():
    calibrated = (RNG.random(1500) < P).astype(int)
    powers = [tc.calibration_error(calibrated[i::5], P[i::5], estimator=tc.DebiasedECE()).power for i in range(5)]
    assert min(powers) < 0
    assert all(tc.calibration_error(calibrated[i::5], P[i::5], estimator=tc.DebiasedECE()).value >= 0 for i in range(5))


def test_lenses_on_several_probabilities_go_to_the_generalized_error():
    p = RNG.dirichlet(np.ones(4), 300)
    y = RNG.integers(0, 4, 300)
    est = tc.calibration_error(y, p, lens=tc.TopK(2))
    assert est.value == tc.GeneralizedECE(lens=tc.TopK(2))(tc.Predictions.from_probs(p, y)).value
    with pytest.raises(tc.InputError, match=r"probabilities are judged at once here; use tc\.GeneralizedECE"):
        tc.calibration_error(y, p, lens=tc.TopK(2), estimator=tc.SweepECE())


@pytest.mark.parametrize("seed", [0, 4, 11])
def test_scores_of_exactly_zero_and_one_in_a_bin_of_their_own(seed):
    """Differences of prefix sums can put the mean of a bin of ones a bit above 1."""
    rng = np.random.default_rng(seed)
    scores = rng.choice([0, 0.3, 0.7, 1.0], int(rng.integers(20, 3000)))
    est = tc.calibration_error(rng.random(len(scores)) < scores, scores, estimator=tc.BinnedECE())
    assert est.interval.low <= est.value <= est.interval.high
    assert est.bins.mean_score.max() <= 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tc.BinnedECE(bins=0), "bins must be a whole number"),
        (lambda: tc.BinnedECE(bins=2.5), "bins must be a whole number"),
        (lambda: tc.BinnedECE(norm=0.5), "norm must be a number of at least 1"),
        (lambda: tc.BinnedECE(scheme="quantile"), "scheme must be 'width' or 'mass', not 'quantile'"),
        (lambda: tc.BinnedECE(ties="drop"), "ties must be"),
        (lambda: tc.BinnedECE(closed="both"), "closed must be"),
        (lambda: tc.estimators.LabelBinnedECE(norm=0.5), "norm must be a number of at least 1"),
        (lambda: tc.DebiasedECE(norm=4), "norm must be 1 or 2 or 3 here"),
        (lambda: tc.DebiasedECE(correction="full"), "correction must be"),
        (lambda: tc.NearestECE(neighbors=0), "neighbors must be"),
        (lambda: tc.NearestECE(region=(0.9, 0.1)), "region must be"),
        (lambda: tc.estimators.KernelDensityECE(bandwidth=0), "bandwidth must lie"),
        (lambda: tc.RankSeries(norm=3), "norm must be 1 or 2 here"),
        (lambda: tc.RankSeries(level=95), "level must lie strictly between"),
        (lambda: tc.calibration_error(Y, P, level=95), "level must lie strictly between"),
        (lambda: tc.calibration_error(Y, P, estimator="ece"), "estimator must be one of truecal's"),
        (lambda: tc.BinnedECE()(P), "BinnedECE measures a Profile, not ndarray"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(tc.InputError, match=message):
        make()
