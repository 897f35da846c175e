"""The one verdict: which it is, what it says, and that no two of its renderings disagree."""

from dataclasses import replace

import numpy as np
import pytest

import truecal as tc
from truecal.errors import InputError
from truecal.estimators.estimate import Estimate, Interval
from truecal.inference import GroupError, RowCounts, Slope, conclude, stated_values, worst_region
from truecal.inference.conclusion import rows_to_settle

NAN = float("nan")


def estimate(value, low, high, *, p=0.5, direction=0.0, n=1000, lens="positive class"):
    return Estimate(
        value=value,
        power=value**2,
        n=n,
        effective_n=float(n),
        estimator=tc.RankSeries(),
        norm=2.0,
        direction=direction,
        lens=lens,
        interval=Interval(low, high, 0.95, "made up"),
        p_value=p,
    )


def group(name, low, high, p=0.5):
    return GroupError(name, 200, (low + high) / 2, low, high, p)


OFF, OPEN, FINE = group("off", 0.05, 0.09, 0.001), group("open", 0.0, 0.06), group("fine", 0.0, 0.01)


@pytest.mark.parametrize(
    ("limits", "groups", "every_group", "verdict", "passed"),
    [
        ((0.0, 0.01), [], False, "within", True),
        ((0.0, 0.02), [], False, "within", True),
        ((0.03, 0.05), [], False, "outside", False),
        ((0.0, 0.05), [], False, "not enough data", False),
        ((0.0, 0.01), [FINE], True, "within", True),
        ((0.0, 0.01), [FINE, OPEN], False, "within", True),
        ((0.0, 0.01), [FINE, OPEN], True, "not enough data", False),
        ((0.0, 0.01), [FINE, OFF], False, "groups differ", False),
        ((0.0, 0.05), [OPEN, OFF], True, "groups differ", False),
        ((0.03, 0.05), [FINE, OFF], True, "outside", False),
        ((NAN, NAN), [], False, "not enough data", False),
        ((0.0, NAN), [], False, "not enough data", False),
    ],
)
def test_verdict_follows_from_the_limits(limits, groups, every_group, verdict, passed):
    low, high = limits
    value = 0.005 if high != high else (low + high) / 2
    conclusion = conclude(estimate(value, low, high), tolerance=0.02, groups=groups, every_group=every_group)
    assert (conclusion.verdict, conclusion.passed) == (verdict, passed)
    assert conclusion.gate.startswith("PASS: " if passed else "FAIL: ")
    upper = max([conclusion.high, *(group.high for group in groups)] if every_group else [conclusion.high])
    assert f"{upper:.3f}" in conclusion.gate or verdict in ("outside", "groups differ")
    assert ("outside" in conclusion.headline.lower()) == (verdict in ("outside", "groups differ"))


def test_a_group_outside_is_named_in_headline_sentence_and_gate_alike():
    conclusion = conclude(estimate(0.005, 0.0, 0.01), tolerance=0.02, groups=[FINE, OPEN, OFF])
    assert conclusion.headline == "Groups differ: 1 of 3 groups outside tolerance"
    assert (
        "1 of 3 groups is outside it, most in off (7.0 points, 5.0 to 9.0 points); 1 more may be."
        in conclusion.sentence
    )
    assert "most in off" in conclusion.gate
    assert conclusion.to_dict()["worst_group"] == "off"
    assert conclusion.to_dict()["groups_outside"] == ["off"]


def test_slope_and_groups_count_as_evidence():
    plain = conclude(estimate(0.01, 0.0, 0.05), tolerance=0.02)
    assert "No miscalibration could be shown" in plain.sentence
    for more in (
        {"slope": Slope(0.698, 0.526, 0.870)},
        {"groups": [GroupError("a", 100, 0.03, 0.0, 0.06, 0.001)]},
    ):
        conclusion = conclude(estimate(0.01, 0.0, 0.05), tolerance=0.02, **more)
        assert conclusion.miscalibrated
        assert "No miscalibration" not in str(conclusion)
    assert not conclude(estimate(0.01, 0.0, 0.05), tolerance=0.02, slope=Slope(0.9, 0.7, 1.1)).miscalibrated


def test_direction_is_named_by_what_is_judged():
    assert conclude(estimate(0.05, 0.03, 0.07, p=0.001, direction=0.04)).reading == (
        "Predicted too high by 4.0 points on average."
    )
    top = conclude(estimate(0.05, 0.03, 0.07, p=0.001, direction=-0.04, lens="top label"))
    assert top.reading == "Underconfident by 4.0 points on average."
    both = conclude(estimate(0.05, 0.03, 0.07, p=0.001, direction=0.001))
    assert both.reading == "Outcomes are predicted too high in some ranges of the score and too low in others."


def test_dropped_and_selected_rows_are_stated():
    rows = RowCounts(read=2065, analysed=1000, dropped=65, selection="site = a (1000 of 2000 rows)")
    text = str(conclude(estimate(0.01, 0.0, 0.05), tolerance=0.02, rows=rows))
    assert "65 of 2,065 rows were dropped because of missing values; 1,000 rows were selected: site = a" in text
    assert RowCounts(2000, 2000).sentence == ""


def test_region_quotes_counts_of_the_rows_with_few_scores():
    scores = np.repeat([0.1, 0.5, 0.9], [300, 96, 300])
    outcomes = np.concatenate([np.arange(300) < 30, np.arange(96) < 32, np.arange(300) < 270])
    region = worst_region(tc.profile.Profile.from_arrays(scores, outcomes))
    assert (round(region.mean_score, 9), region.rows, region.outcomes) == (0.5, 96, 32)
    assert "of about 50% came true in 32 of 96 rows (33%" in region.sentence("positive class")
    values = stated_values(tc.profile.Profile.from_arrays(scores, outcomes))
    assert [(round(v.mean_score, 9), v.rows, v.outcomes) for v in values] == [
        (0.1, 300, 30),
        (0.5, 96, 32),
        (0.9, 300, 270),
    ]


def test_opposite_errors_do_not_hide_the_worst_region():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(0.08, 0.14, 400), rng.uniform(0.86, 0.92, 400)])
    truth = np.where(scores < 0.5, scores + 0.28, scores - 0.28)
    region = worst_region(tc.profile.Profile.from_arrays(scores, rng.random(800) < truth))
    assert region.highest - region.lowest <= 0.15
    assert abs(region.mean_score - region.frequency) > 0.2


def test_no_region_is_named_where_chance_explains_all():
    rng = np.random.default_rng(1)
    named = 0
    for _ in range(100):
        p = rng.random(1000)
        named += worst_region(tc.profile.Profile.from_arrays(p, rng.random(1000) < p)) is not None
    assert named <= 10  # at most 5 % in expectation


def test_region_of_clusters_weights_and_sketches():
    rng = np.random.default_rng(2)
    p = np.repeat(rng.random(300), 4)
    y = rng.random(1200) < np.where(p > 0.8, p - 0.3, p)
    rows = tc.Predictions.from_probs(p, y)
    clusters = replace(rows, clusters=np.arange(1200) // 4)
    weights = replace(rows, weights=rng.random(1200))
    for preds in (rows, clusters, weights):
        region = worst_region(tc.OneClass()(preds))
        assert region.lowest > 0.75
        assert region.low < region.frequency < region.high < region.mean_score
    assert worst_region(tc.OneClass()(weights)).weighted
    sketch = tc.Sketch()
    sketch.update(tc.OneClass()(rows).scores[0], tc.OneClass()(rows).outcomes[0])
    assert worst_region(sketch.to_profile()).lowest > 0.7


def test_forecast_of_rows_is_the_square_root_law():
    assert rows_to_settle(0.01, 0.0, 0.03, 0.02, 1000) == 3000
    assert rows_to_settle(0.02, 0.0, 0.03, 0.02, 1000) is None
    undecided = conclude(estimate(0.01, 0.0, 0.03), tolerance=0.02)
    assert "about 3,000 further rows would let it pass" in undecided.gate
    above = conclude(estimate(0.025, 0.0, 0.05), tolerance=0.02)
    assert "if the estimate of 0.025 is right, more rows would not let it pass" in above.gate


def test_an_estimate_without_interval_cannot_be_judged():
    none = replace(estimate(0.01, 0.0, 0.03), interval=None)
    assert conclude(none).verdict is None
    with pytest.raises(InputError, match="needs an interval"):
        conclude(none, tolerance=0.02)
    with pytest.raises(InputError, match="tolerance"):
        conclude(estimate(0.01, 0.0, 0.03), tolerance=2)


def test_the_value_has_the_decimals_of_its_limits():
    assert "13.95 points (95% confidence: 13.35 to 14.66 points)" in conclude(estimate(0.1395, 0.1335, 0.1466)).sentence
    assert "14 points (95% confidence: 8 to 28 points)" in conclude(estimate(0.14, 0.08, 0.28)).sentence


def test_a_direction_within_chance_is_marked():
    drawn = estimate(0.14, 0.08, 0.28, p=0.001, direction=-0.053, n=100)
    assert "too low by 5.3 points on average, which may be chance" in conclude(drawn).reading
    assert "chance" not in conclude(replace(drawn, n=10_000, effective_n=10_000.0)).reading


def test_a_group_alone_says_nothing_about_all_rows():
    south = GroupError("south", 5000, 0.06, 0.045, 0.08, 0.001, 0.05)
    conclusion = conclude(estimate(0.004, 0.0, 0.012, direction=0.003), tolerance=0.02, groups=[FINE, south])
    assert conclusion.reading == (
        "All rows together are not shown to be miscalibrated. In south: predicted too high by 5.0 points on average."
    )
    assert "some ranges" not in str(conclusion)


def test_percentages_of_a_region_have_the_digits_of_their_limits():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(3000, 0.07), rng.uniform(0.96, 1, 3000)])
    y = rng.random(6000) < np.where(p < 0.5, 0.034, 0.8)
    region = worst_region(tc.profile.Profile.from_arrays(p, y))
    assert "99.99" not in region.sentence("positive class")


def test_a_gate_names_whose_limit_and_whose_estimate_decide():
    """All rows may decide although groups are judged too, and a group's estimate may be what more rows would not help."""
    whole = conclude(estimate(0.01, 0.0, 0.09), tolerance=0.02, groups=[FINE, OPEN], every_group=True)
    assert "may be as large as 0.090, and" in whole.gate
    group_alone = conclude(estimate(0.005, 0.0, 0.01), tolerance=0.02, groups=[FINE, OPEN], every_group=True)
    assert "may be as large as 0.060 in open" in group_alone.gate
    assert "if the estimate of 0.030 in open is right, more rows would not let it pass" in group_alone.gate


def test_a_forecast_covers_all_rows_and_undecided_groups():
    small = GroupError("small", 100, 0.01, 0.0, 0.05)
    alone = conclude(estimate(0.01, 0.0, 0.021), tolerance=0.02)
    both = conclude(estimate(0.01, 0.0, 0.021), tolerance=0.02, groups=[small], every_group=True)
    assert (alone.further, both.further) == (211, 1500)
    assert conclude(estimate(0.01, 0.0, 0.021), tolerance=0.02, groups=[small]).further == 211


def test_the_group_that_is_read_out_is_one_whose_error_is_shown():
    noisy = GroupError("noisy", 30, 0.1, 0.0, 0.3, 0.6, -0.08)
    shown = GroupError("shown", 2000, 0.03, 0.01, 0.05, 0.001, 0.03)
    for tolerance in (None, 0.06):
        reading = conclude(estimate(0.01, 0.0, 0.03), tolerance=tolerance, groups=[noisy, shown]).reading
        assert reading.endswith("In shown: predicted too high by 3.0 points on average.")


def test_numbers_beside_the_tolerance_show_on_which_side_they_lie():
    assert "is at most 2.04 points" in conclude(estimate(0.01, 0.0, 0.0204), tolerance=0.02).sentence
    assert "2.01 to 2.40 points), more than" in conclude(estimate(0.022, 0.0201, 0.024), tolerance=0.02).sentence
    off = GroupError("off", 200, 0.05, 0.02004, 0.09, 0.001, 0.05)
    conclusion = conclude(estimate(0.005, 0.0, 0.01), tolerance=0.02, groups=[FINE, off])
    assert "at least 0.02004" in conclusion.gate
    assert "2.004 to 9.000 points" in conclusion.sentence


def test_a_direction_that_is_not_known_is_not_described():
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.4, 0.6, 0.8], 4000)
    conclusion = tc.verify(tc.Predictions.from_probs(p, rng.random(4000) < p - 0.15), 0.02).conclusion()
    assert conclusion.verdict == "outside"
    assert conclusion.to_dict()["direction"] is None
    assert "in some ranges" not in conclusion.reading


def test_no_sentence_denies_an_error_whose_lower_limit_is_above_zero():
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.4, 0.6, 0.8], 4000)
    conclusion = tc.verify(tc.Predictions.from_probs(p, rng.random(4000) < p - 0.05), 0.05).conclusion()
    assert conclusion.verdict == "not enough data"
    assert conclusion.low > 0
    assert "No miscalibration" not in str(conclusion)


def test_the_verdict_of_a_smooth_curve_is_that_of_its_limits():
    """A test of 1 - level that does not reject leaves no lower limit above 0, as everywhere."""
    below = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = rng.random(300)
        result = tc.verify(tc.Predictions.from_probs(p, rng.random(300) < p - 0.06 * (p > 0.5)), 0.01)
        assert (result.verdict == "exceeded") == (result.low > 0.01)
        below += result.verdict == "not enough data"
    assert 0 < below < 60


def test_evidence_is_what_the_limits_rest_on_at_any_level():
    """999 redraws give no p-value below 0.001, which therefore rejects at 99.95 % too."""
    shown = estimate(0.05, 0.03, 0.07, p=0.001, direction=0.04)
    conclusion = conclude(replace(shown, interval=replace(shown.interval, level=0.9995)), tolerance=0.04)
    assert conclusion.miscalibrated
    assert "No test rejects" not in conclusion.reading


def test_a_p_value_that_is_not_a_number_is_none():
    conclusion = conclude(estimate(0.01, 0.0, 0.03, p=NAN))
    assert conclusion.p_value is None
    assert conclusion.reading == ""


def test_a_single_spike_is_no_error_of_both_signs():
    """One region is off, upwards; that the mean is small beside the error does not make any other region too low."""
    rng = np.random.default_rng(7)
    p = rng.random(4000)
    preds = tc.Predictions.from_probs(p, rng.random(4000) < np.where((p > 0.7) & (p < 0.75), 0.3, p))
    conclusion = conclude(tc.measure(preds), profile=tc.OneClass()(preds))
    assert "some ranges" not in conclusion.reading
    assert conclusion.reading.startswith("Predicted too high by ")
    turned = tc.Predictions.from_probs(p, rng.random(4000) < np.clip(p + 0.15 * np.sign(0.5 - p), 0, 1))
    assert "too high in some ranges" in conclude(tc.measure(turned), profile=tc.OneClass()(turned)).reading


def test_no_rows_are_forecast_where_nothing_limits_the_error():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    preds = tc.Predictions.from_probs(p, rng.random(500) < p, clusters=np.zeros(500, int))
    conclusion = conclude(tc.measure(preds), tolerance=0.05)
    assert conclusion.further is None
    assert conclusion.gate.endswith(
        "may be as large as 1.000, and 0.05 is allowed; these rows give no upper limit below 1"
    )


def test_the_direction_of_few_clusters_may_be_chance():
    """Copies of rows add nothing to what is known of the mean difference."""
    rng = np.random.default_rng(2)
    p = rng.random(60)
    y = rng.random(60) < np.clip(p - 0.1, 0, 1)
    rows = [
        tc.Predictions.from_probs(np.repeat(p, k), np.repeat(y, k), clusters=np.arange(60).repeat(k)) for k in (1, 50)
    ]
    margins = [conclude(tc.measure(preds), profile=tc.OneClass()(preds)).direction_margin for preds in rows]
    assert margins[1] == pytest.approx(margins[0], rel=1e-9)
    alone = tc.Predictions.from_probs(p, y)
    assert conclude(tc.measure(alone), profile=tc.OneClass()(alone)).direction_margin == pytest.approx(
        margins[0], rel=0.3
    )
