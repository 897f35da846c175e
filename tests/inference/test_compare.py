"""Comparisons of models on the same rows."""

import numpy as np
import pytest
from scipy.stats import binomtest

import truecal as tc
from tests.simulations import datasets
from truecal.errors import InputError
from truecal.inference import compare, compare_many, holm


def two_models(rng, n, a, b):
    """True chances t; model k says t^(1/k): its calibration curve is c^k."""
    t = rng.random(n)
    return (rng.random(n) < t).astype(int), t ** (1 / a), t ** (1 / b)


def test_a_model_does_not_differ_from_itself():
    y, p, _ = two_models(np.random.default_rng(0), 300, 1.5, 1)
    comparison = compare(y, p, p)
    assert comparison.difference == 0
    assert (comparison.interval.low, comparison.interval.high, comparison.p_value) == (0, 0, 1)


def test_swapping_the_models_turns_the_sign():
    y, p, q = two_models(np.random.default_rng(0), 500, 1.5, 1)
    one, other = compare(y, p, q), compare(y, q, p)
    assert other.difference == -one.difference
    assert other.interval.low == pytest.approx(-one.interval.high)
    assert other.p_value == pytest.approx(one.p_value)


@pytest.mark.parametrize("estimator", [None, tc.BinnedECE(), tc.SweepECE()], ids=repr)
def test_a_clear_difference_is_found_and_values_are_those_of_each_model(estimator):
    y, p, q = two_models(np.random.default_rng(1), 3000, 2.0, 1)
    comparison = compare(y, p, q, estimator=estimator, names=("raw", "recalibrated"))
    assert comparison.interval.low > 0
    assert comparison.p_value < 0.01
    assert comparison.value_a == pytest.approx(tc.calibration_error(y, p, estimator=estimator).value)
    assert "raw" in str(comparison)


def test_pairing_makes_two_bad_models_comparable():
    rng = np.random.default_rng(2)
    y, p, q = two_models(rng, 2000, 2.0, 1.9)
    paired = compare(y, p, q)
    spread = paired.interval.high - paired.interval.low
    single = tc.calibration_error(y, p).interval
    assert spread < 0.5 * (single.high - single.low)


@pytest.mark.slow
def test_paired_differences_cover_and_equal_models_are_rarely_told_apart():
    """120 datasets of 500 rows at 90 %: coverage compatible with 0.86; of equal errors at most 14 % are rejected at 10 %."""
    rng = np.random.default_rng(3)
    grid = np.linspace(0.5 / 20_000, 1 - 0.5 / 20_000, 20_000)

    def error(shown):
        return float(np.sqrt(np.mean((grid - shown) ** 2)))

    true = error(grid ** (1 / 1.8)) - error(grid ** (1 / 1.2))
    covered, rejected, trials = 0, 0, datasets(120)
    for i in range(trials):
        t = rng.random(500)
        y = (rng.random(500) < t).astype(int)
        comparison = compare(y, t ** (1 / 1.8), t ** (1 / 1.2), resamples=120, level=0.9, rng=i)
        covered += comparison.interval.low <= true <= comparison.interval.high
        # t + 0.1 sin and t - 0.1 sin have the same error
        wave = 0.1 * np.sin(2 * np.pi * t)
        same = compare(y, np.clip(t + wave, 0, 1), np.clip(t - wave, 0, 1), resamples=120, rng=i)
        rejected += same.p_value <= 0.1
    assert binomtest(covered, trials, 0.86, alternative="less").pvalue > 0.01, covered / trials
    assert binomtest(rejected, trials, 0.14, alternative="greater").pvalue > 0.01, rejected / trials


def test_many_models_are_compared_in_pairs_or_with_a_reference():
    rng = np.random.default_rng(4)
    t = rng.random(400)
    y = (rng.random(400) < t).astype(int)
    models = {"a": t, "b": t**0.5, "c": t**2}
    pairs = compare_many(y, models, resamples=200)
    assert [(c.a, c.b) for c in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(c.adjusted_p >= c.p_value for c in pairs)
    assert [c.b for c in compare_many(y, models, reference="a", resamples=50)] == ["a", "a"]
    with pytest.raises(InputError, match="not among the models"):
        compare_many(y, models, reference="z")
    with pytest.raises(InputError, match="at least two"):
        compare_many(y, {"a": t})


def test_holm_is_its_definition():
    p = np.array([0.011, 0.02, 0.9, 0.001])
    np.testing.assert_allclose(holm(p), [0.033, 0.04, 0.9, 0.004])
    np.testing.assert_allclose(holm(np.array([0.6, 0.7])), [1.0, 1.0])


@pytest.mark.parametrize("norm", [1, 2])
def test_a_comparison_states_the_errors_that_measuring_states(norm):
    """Outcomes of a cluster are equal; their correlation must not count as error in a comparison."""
    rng = np.random.default_rng(3)
    p = np.repeat(rng.random(40), 20)
    y = np.repeat(rng.random(40), 20) < p  # all rows of a cluster are right or wrong together; p is calibrated
    clusters = np.repeat(np.arange(40), 20)
    scores = {"plain": p, "squared": p**2}
    for marks in (None, clusters):
        comparison = compare(y, *scores.values(), clusters=marks, estimator=tc.RankSeries(norm=norm), resamples=50)
        measured = [
            tc.calibration_error(y, q, clusters=marks, estimator=tc.RankSeries(norm=norm)).value
            for q in scores.values()
        ]
        np.testing.assert_allclose([comparison.value_a, comparison.value_b], measured, rtol=1e-12)
    assert comparison.value_a < compare(y, p, p**2, resamples=50).value_a


def test_clusters_make_a_comparison_less_sure():
    rng = np.random.default_rng(5)
    t, cluster = rng.random(900), np.repeat(np.arange(45), 20)
    y = (rng.random(45)[cluster] < t).astype(int)  # one uniform draw per cluster
    q = np.clip(t**0.8, 0, 1)
    alone = compare(y, t, q)
    together = compare(y, t, q, clusters=cluster)
    assert together.interval.high - together.interval.low > 2 * (alone.interval.high - alone.interval.low)


def test_class_wise_errors_are_compared_on_joint_rows():
    rng = np.random.default_rng(6)
    logits = rng.normal(size=(1500, 3)) * 1.5

    def softmax(z):
        e = np.exp(z)
        return e / e.sum(axis=1, keepdims=True)

    p = softmax(logits)
    y = (rng.random((1500, 1)) > p.cumsum(axis=1)).sum(axis=1)
    comparison = compare(y, softmax(3 * logits), p, lens=tc.ClassWise(), estimator=tc.BinnedECE(norm=2), resamples=100)
    assert comparison.interval.low > 0
    assert comparison.lens == "3 classes"


def test_many_pairs_are_given_resamples_enough_to_tell_them_apart():
    rng = np.random.default_rng(8)
    p = rng.random(2000)
    y = rng.random(2000) < p
    comparisons = compare_many(y, {str(k): p ** (1 + 2 * k) for k in range(6)}, estimator=tc.BinnedECE(), resamples=99)
    assert len(comparisons) == 15
    assert min(c.p_value for c in comparisons) == pytest.approx(2 / 601)  # of 600 resamples, not of 99
    assert min(c.adjusted_p for c in comparisons) < 0.05


@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.SweepECE()])
def test_the_gain_over_a_calibrated_model_is_covered(estimator):
    """60 datasets of 1000 rows at 90 %: coverage compatible with 0.86, and the end near zero is as it was."""
    rng = np.random.default_rng(9)
    c = np.linspace(0, 1, 100_001)
    error = np.mean(np.abs(c**1.5 - c) ** estimator.norm) ** (1 / estimator.norm)
    covered = 0
    for i in range(60):
        p = rng.random(1000)
        y = rng.random(1000) < p
        result, turned = (
            compare(y, *both, estimator=estimator, level=0.9, resamples=200, rng=i)
            for both in ((p**1.5, p), (p, p**1.5))
        )
        covered += result.interval.low <= error <= result.interval.high
        assert turned.interval.low < 0
        assert (result.p_value < 0.1) == (result.interval.low > 0)
    assert binomtest(covered, 60, 0.86, alternative="less").pvalue > 0.01, covered / 60


def two_answers(n=1500, seed=0):
    """Two models on the same questions, each with labels of its own: whether its own answer was right."""
    rng = np.random.default_rng(seed)
    questions = np.array([f"q{i}" for i in range(n)])
    a, b = rng.random(n), rng.random(n)
    first = tc.Predictions.from_probs(a, rng.random(n) < a**2, columns={"question": questions})
    second = tc.Predictions.from_probs(b, rng.random(n) < b, columns={"question": questions})
    return first, second


def test_models_with_labels_of_their_own_are_paired_by_row_or_by_key():
    first, second = two_answers()
    by_row = tc.compare(first, second, names=("off", "fair"))
    assert by_row.difference > 0.1
    assert by_row.interval.low > 0
    shuffled = second.take(np.random.default_rng(1).permutation(len(second)))
    by_key = tc.compare(first, shuffled, names=("off", "fair"), key="question")
    assert by_key.difference == pytest.approx(by_row.difference, abs=1e-12)
    unpaired = tc.compare(first, second.take(np.arange(900)), paired=False)
    assert unpaired.interval.method == "rank series of rows, unpaired"
    assert unpaired.interval.low > 0
    similarity = tc.compare(second.take(np.arange(750)), second.take(np.arange(750, 1500)), paired=False)
    assert 0 in similarity.interval
