"""The verdict says no more than the interval allows."""

import pytest

import truecal as tc
from truecal.estimators import Interval
from truecal.pages.content import judge, percent, points


def estimate(value, low, high, p):
    base = tc.RankSeries()(tc.profile.Profile.from_arrays([0.2, 0.8] * 40, [0, 1] * 40))
    return base.but(value=value, interval=Interval(low, high, 0.9, "given"), p_value=p, n=80)


@pytest.mark.parametrize(
    ("value", "low", "high", "p", "kind"),
    [
        (0.01, 0.0, 0.02, 0.5, "within"),
        (0.01, 0.005, 0.02, 0.001, "within"),
        (0.05, 0.03, 0.07, 0.001, "outside"),
        (0.05, 0.01, 0.07, 0.001, "off"),
        (0.05, 0.0, 0.07, 0.099, "off"),
        (0.05, 0.0, 0.07, 0.101, "open"),
    ],
)
def test_kind(value, low, high, p, kind):
    verdict = judge(estimate(value, low, high, p), tolerance=0.02)
    assert verdict.kind == kind
    assert "90% confidence" in verdict.sentence
    assert "2 points" in verdict.sentence


def test_a_calibrated_model_is_not_accused():
    assert "finds nothing against" in judge(estimate(0.0, 0.0, 0.05, 0.8), tolerance=0.02).reading


def test_the_example_comes_from_the_curve():
    shown = tc.RankSeries()(tc.profile.Profile.from_arrays([0.9] * 1000, [1, 0] * 500)).but(p_value=0.001)
    verdict = judge(shown, tolerance=0.02)
    assert verdict.kind == "outside"
    assert "overconfident by 40 points" in verdict.reading
    assert "predictions of about 90% come true 50% of the time" in verdict.reading
    assert "root mean square" in verdict.sentence


def test_the_example_is_taken_where_the_error_is():
    """Most predictions are near 1 and nearly right: the example must not come from them."""
    c = [0.9998] * 9000 + [0.6] * 1000
    y = [1] * 8998 + [0] * 2 + [1, 0, 0, 0, 0] * 200
    verdict = judge(tc.RankSeries()(tc.profile.Profile.from_arrays(c, y)).but(p_value=0.001), tolerance=0.02)
    assert "predictions of about 60% come true 2" in verdict.reading


def test_a_risk_is_too_high_or_too_low_and_not_confident():
    shown = tc.RankSeries()(tc.profile.Profile.from_arrays([0.3] * 1000, [1, 0] * 500)).but(p_value=0.001)
    verdict = judge(shown, tolerance=0.02, judged="class malignant")
    assert "too low by 20 points" in verdict.reading
    assert verdict.sentence.startswith("Probabilities are off by")
    assert "confident" not in verdict.reading


def test_opposite_gaps_are_not_called_a_direction():
    c = [0.2] * 500 + [0.8] * 500
    y = [1, 0] * 250 + [1, 0] * 250
    verdict = judge(tc.RankSeries()(tc.profile.Profile.from_arrays(c, y)).but(p_value=0.001), tolerance=0.02)
    assert "overconfident in places and underconfident in others" in verdict.reading


@pytest.mark.parametrize(
    ("value", "shown"), [(0.123, "12 points"), (0.01, "1.0 points"), (1.0, "100 points"), (0.0, "0 points")]
)
def test_points(value, shown):
    assert points(value) == shown


@pytest.mark.parametrize("value", [0.9999, 0.99999, 0.0001, 1 - 1e-5])
def test_percent_never_rounds_to_certainty(value):
    assert percent(value) not in ("100%", "0%")
