"""The papers' printed numbers on real logits."""

import pytest

import truecal as tc


def test_resnet110_on_cifar10_has_the_errors_printed_by_roelofs(resnet110):
    preds = tc.Predictions.from_logits(resnet110["test_logits"], resnet110["test_labels"])
    for estimator in (tc.BinnedECE(bins=15, norm=1), tc.SweepECE(scheme="mass", norm=1)):
        assert round(100 * tc.measure(preds, estimator=estimator).value, 2) == 4.75


def test_resnet110_is_overconfident_beyond_doubt(resnet110):
    preds = tc.Predictions.from_logits(resnet110["test_logits"], resnet110["test_labels"])
    est = tc.measure(preds)
    assert est.interval.low > 0.08
    assert est.direction == pytest.approx(0.0475, abs=1e-4)
    assert est.p_value == 0.001
