"""All labels pooled, against the definition written out pair by pair."""

import numpy as np
import pytest

import truecal as tc

RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet(np.full(4, 0.6), 200)
LABELS = np.array([RNG.choice(4, p=p) for p in PROBS])
PREDS = tc.Predictions.from_probs(PROBS, LABELS)


def naive_pairs(probs, labels):
    return sorted((probs[i][k], int(labels[i] == k)) for i in range(len(probs)) for k in range(len(probs[i])))


def pairs(profile):
    return sorted(zip(profile.scores[0].tolist(), profile.outcomes[0].tolist(), strict=True))


def test_every_probability_with_its_indicator():
    assert pairs(tc.AllLabels()(PREDS)) == naive_pairs(PROBS.tolist(), LABELS.tolist())


def test_binary_predictions_have_two_labels():
    p, y = np.array([0.25, 0.75]), np.array([0, 0])
    expected = naive_pairs([[0.75, 0.25], [0.25, 0.75]], [0, 0])
    assert pairs(tc.AllLabels()(tc.Predictions.from_probs(p, y))) == expected


def test_pooling_lets_opposite_classes_cancel():
    """Class 0 is 0.2 too rare and class 1 is 0.2 too frequent at the same score: pooled they are right, class by class wrong."""
    probs = np.tile([0.5, 0.5], (10, 1))
    preds = tc.Predictions.from_probs(probs, [0] * 3 + [1] * 7)
    assert tc.measure(preds, lens=tc.AllLabels(), estimator=tc.BinnedECE(15)).value == pytest.approx(0.0, abs=1e-15)
    assert tc.measure(preds, lens=tc.ClassWise(), estimator=tc.BinnedECE(15)).value == pytest.approx(0.2)


def test_measured_like_its_profile():
    for estimator in (tc.BinnedECE(bins=7), tc.SweepECE(), tc.RankSeries(), tc.DebiasedECE()):
        estimate = tc.measure(PREDS, lens=tc.AllLabels(), estimator=estimator)
        assert estimate.value == pytest.approx(estimator(tc.AllLabels()(PREDS)).value, abs=1e-12)
        assert estimate.n == 800
        assert estimate.lens == "all labels of 4 classes"
        assert estimate.interval.low <= estimate.value <= estimate.interval.high


def test_weights_are_repetitions():
    w = RNG.integers(1, 4, 200)
    weighted = tc.measure(
        tc.Predictions.from_probs(PROBS, LABELS, weights=w), lens=tc.AllLabels(), estimator=tc.DebiasedECE()
    )
    repeated = tc.Predictions.from_probs(PROBS.repeat(w, axis=0), LABELS.repeat(w))
    assert weighted.power == pytest.approx(tc.measure(repeated, lens=tc.AllLabels(), estimator=tc.DebiasedECE()).power)


def test_rows_are_resampled_whole():
    """Two labels mirror each other: pairs are twice as many as rows, but the interval must not shrink by the root of two."""
    p = RNG.uniform(0.7, 1.0, 400)
    binary = tc.Predictions.from_probs(p, (RNG.random(400) < p - 0.2).astype(int))
    widths = []
    for lens in (tc.TopLabel(), tc.AllLabels()):
        resampled = tc.inference.bootstrap(tc.BinnedECE(bins=2), binary, lens=lens, resamples=1000).interval()
        widths.append(resampled.high - resampled.low)
    assert widths[1] == pytest.approx(widths[0], rel=0.12)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: tc.inference.rank_series_test(PREDS, lens=tc.AllLabels()),
        lambda: tc.inference.below(PREDS, 0.1, lens=tc.AllLabels()),
        lambda: tc.verify(PREDS, threshold=0.1, lens=tc.AllLabels()),
    ],
)
def test_tests_of_independent_rows_refuse_it(asked):
    with pytest.raises(tc.InputError, match="not independent"):
        asked()
