"""Lenses against their definitions, written out row by row."""

import numpy as np
import pytest

import truecal as tc

RNG = np.random.default_rng(8)
PROBS = RNG.dirichlet(np.full(4, 0.7), 60)
LABELS = RNG.integers(0, 4, 60)
PREDS = tc.Predictions.from_probs(PROBS, LABELS)


def pairs(profile, i=0):
    return sorted(zip(profile.scores[i].tolist(), profile.outcomes[i].tolist(), strict=True))


def test_top_label():
    expected = sorted((max(p), int(np.argmax(p) == y)) for p, y in zip(PROBS.tolist(), LABELS, strict=True))
    assert pairs(tc.TopLabel()(PREDS)) == expected


def test_top_label_of_binary_predictions():
    p, y = np.array([0.2, 0.5, 0.9]), np.array([0, 1, 0])
    assert pairs(tc.TopLabel()(tc.Predictions.from_probs(p, y))) == [(0.5, 1), (0.8, 1), (0.9, 0)]


def test_one_class_and_class_wise_agree():
    batch = tc.ClassWise()(PREDS)
    for k in range(4):
        expected = sorted((p[k], int(y == k)) for p, y in zip(PROBS.tolist(), LABELS, strict=True))
        assert pairs(tc.OneClass(k)(PREDS)) == expected
        assert pairs(batch, k) == expected


def test_class_wise_error_is_the_weighted_mean_over_classes():
    each = np.array([tc.SweepECE()(tc.OneClass(k)(PREDS)).value for k in range(4)])
    est = tc.measure(PREDS, estimator=tc.SweepECE(), lens=tc.ClassWise())
    np.testing.assert_allclose(est.parts, each, rtol=1e-12)
    assert est.value == pytest.approx(np.sqrt((each**2).mean()))
    weighted = tc.measure(PREDS, estimator=tc.SweepECE(), lens=tc.ClassWise(weights=(1, 0, 0, 3)))
    assert weighted.value == pytest.approx(np.sqrt((each[0] ** 2 + 3 * each[3] ** 2) / 4))
    largest = tc.measure(PREDS, estimator=tc.BinnedECE(norm=np.inf), lens=tc.ClassWise())
    assert largest.value == pytest.approx(largest.parts.max())


def test_class_wise_in_blocks_of_columns(monkeypatch):
    whole = tc.measure(PREDS, estimator=tc.DebiasedECE(), lens=tc.ClassWise())
    monkeypatch.setattr("truecal.lenses.one_probability._BLOCK", 60)  # one class at a time
    assert len(list(tc.ClassWise().profiles(PREDS))) == 4
    blocks = tc.measure(PREDS, estimator=tc.DebiasedECE(), lens=tc.ClassWise())
    assert blocks.power == pytest.approx(whole.power)


def test_signed_errors_are_averaged_before_clipping():
    """Averaging clipped class errors would hide that most of them are noise."""
    est = tc.measure(PREDS, estimator=tc.DebiasedECE(bins=3), lens=tc.ClassWise())
    powers = [tc.DebiasedECE(bins=3)(tc.OneClass(k)(PREDS)).power for k in range(4)]
    assert est.power == pytest.approx(np.mean(powers))


def test_both_classes_of_binary_predictions_are_equally_wrong():
    p, y = RNG.random(80), RNG.integers(0, 2, 80)
    est = tc.measure(tc.Predictions.from_probs(p, y), estimator=tc.BinnedECE(bins=10, norm=2), lens=tc.ClassWise())
    assert est.parts[0] == pytest.approx(est.parts[1])


def test_weights_reach_every_lens():
    w = RNG.integers(1, 4, 60)
    weighted = tc.Predictions.from_probs(PROBS, LABELS, weights=w)
    repeated = tc.Predictions.from_probs(PROBS.repeat(w, axis=0), LABELS.repeat(w))
    for lens in (tc.TopLabel(), tc.OneClass(2), tc.ClassWise()):
        one, other = (tc.measure(p, estimator=tc.DebiasedECE(), lens=lens) for p in (weighted, repeated))
        assert one.power == pytest.approx(other.power)
        assert one.n == other.n == w.sum()


@pytest.mark.parametrize(
    ("lens", "message"),
    [
        (lambda: tc.OneClass()(PREDS), "which of the 4 classes"),
        (lambda: tc.OneClass("fox")(PREDS), "no class 'fox'"),
        (lambda: tc.OneClass(4)(PREDS), "no class 4"),
        (lambda: tc.ClassWise(weights=(1, -1)), "not negative"),
        (lambda: tc.measure(PREDS, lens=tc.ClassWise(weights=(1, 2))), "2 class weights were given for 4"),
    ],
)
def test_bad_lenses(lens, message):
    with pytest.raises(tc.InputError, match=message):
        lens()
