"""Promises at their edges: verdicts at exact ties, the nulls that are tried one by one, outputs listed and classes put together."""

from math import exp, inf, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import truecal as tc
from truecal.estimators import RankSeries
from truecal.inference import exact_limit, rows_needed, verify
from truecal.inference.exact_limit import NullTerms, OutputCells, terms
from truecal.inference.measurement import measure_profiles
from truecal.inference.verification import _verify_smooth, upper_bound
from truecal.lenses import ClassWise
from truecal.predictions import Predictions
from truecal.profile import Sketch
from truecal.special import clopper_pearson


def counted(outputs, counts, ones):
    """Predictions with so many rows and ones at every output."""
    labels = [np.arange(n) < k for n, k in zip(counts, ones, strict=True)]
    return Predictions.from_probs(np.repeat(outputs, counts), np.concatenate(labels).astype(int))


def test_a_limit_at_the_threshold_does_not_exceed_it():
    """The lower limit of a calibrated model is 0."""
    assert verify(counted([0.5], [100], [50]), 0.0).verdict == "not enough data"
    assert verify(counted([0.5], [100], [100]), 0.0).verdict == "exceeded"


def test_bins_are_well_balanced_up_to_two():
    even, uneven = (verify(counted([0.5, 0.25], [75 + i, 25], [40, 6]), 0.1) for i in (0, 1))
    assert (even.balance, even.well_balanced, even.warnings) == (2.0, True, ())
    assert uneven.balance > 2
    assert not uneven.well_balanced
    assert uneven.warnings == ("bins are not well balanced, so the error of the rare ones is hard to see",)


@pytest.mark.parametrize(("rows", "outputs"), [(20, 2), (19, None)])
def test_ten_rows_for_each_output_make_them_few(rows, outputs):
    assert verify(counted([0.25, 0.5], [10, rows - 10], [2, 5]), 0.1).outputs == outputs


def test_the_lower_limits_of_classes_share_the_level():
    """Of three classes each has a third of 5 %, and the limit is the root of the mean of theirs."""
    rng = np.random.default_rng(0)
    rows = np.array([[0.2, 0.3, 0.5], [0.5, 0.2, 0.3], [0.3, 0.5, 0.2]])
    preds = Predictions.from_probs(rows[rng.integers(0, 3, 3000)], rng.integers(0, 3, 3000))
    result = verify(preds, 0.02, lens=ClassWise())
    errors = [OutputCells.of(sample.profile) for sample in ClassWise().samples(preds)]
    shares = ClassWise().shares(preds)
    assert result.low == pytest.approx(
        sqrt(sum(w * e.lower(1 - 0.05 / 3) for w, e in zip(shares, errors, strict=True)))
    )
    assert result.value == pytest.approx(sqrt(sum(w * e.squared for w, e in zip(shares, errors, strict=True))))
    # of F.6 and F.9 each has half of a third of 5 %, and the smaller counts
    bounds = []
    for e in errors:
        plugin = float((e.shares * (e.outputs - e.ones / e.counts) ** 2).sum())
        options = {"n": 3000, "bins": 3, "smallest": e.counts.min() / 3000, "level": 1 - 0.05 / 6}
        f_6 = upper_bound(plugin, estimator="plugin", **options)
        bounds.append(min(f_6, upper_bound(e.squared, estimator="debiased", **options)))
    assert result.explicit == pytest.approx(sqrt(sum(w * b for w, b in zip(shares, bounds, strict=True))))


def test_the_explicit_bound_is_at_most_one_or_there_is_none():
    assert verify(counted([0.1], [110], [105]), 0.1).explicit == 1.0
    assert verify(counted([0.1], [50], [48]), 0.1).explicit == inf


def test_a_sketch_of_continuous_outputs_is_measured():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    sketch = Sketch.from_arrays(p, rng.random(3000) < p)
    found = next(measure_profiles([sketch.to_profile()], RankSeries(level=0.8), 0.8, np.random.default_rng(0)))
    result = verify(sketch, 0.1, 0.9)
    error = found.sketch_error or 0.0
    assert (result.low, result.high) == (max(found.interval.low - error, 0.0), found.interval.high + error)
    assert result.verdict == "supported"


def estimated(low, high, sketch_error=None, p_value=0.05):
    interval = SimpleNamespace(low=low, high=high)
    return SimpleNamespace(
        interval=interval,
        p_value=p_value,
        sketch_error=sketch_error,
        value=0.5 * (low + high),
        n=100,
        lens="scores",
        warnings=(),
    )


@pytest.mark.parametrize(
    ("low", "high", "error", "threshold", "expected"),
    [
        (0.1, 0.3, None, 0.3, ("supported", 0.1, 0.3)),
        (0.1, 0.3, None, 0.1, ("not enough data", 0.1, 0.3)),
        (0.1, 0.3, None, 0.09, ("exceeded", 0.1, 0.3)),
        (0.25, 0.75, 0.125, 0.5, ("not enough data", 0.125, 0.875)),
        (0.25, 0.75, 0.5, 0.5, ("not enough data", 0.0, 1.0)),
    ],
)
def test_what_a_sketch_leaves_open_widens_the_limits_within_0_and_1(low, high, error, threshold, expected):
    result = _verify_smooth(estimated(low, high, error), threshold, 0.95, ())
    assert (result.verdict, result.low, result.high) == expected
    assert result.warnings[0].startswith("outputs are continuous")
    assert "recalibrate to a few distinct outputs with ScalingBinning(normalize=False)" in result.warnings[0]


def test_an_excess_that_the_test_does_not_show_is_not_claimed():
    assert _verify_smooth(estimated(0.1, 0.3, p_value=0.051), 0.09, 0.95, ()).verdict == "not enough data"
    assert _verify_smooth(estimated(0.1, 0.3, p_value=0.051), 0.3, 0.95, ()).verdict == "supported"


def divisions(cells, squared):
    return list(exact_limit._divisions(cells, exact_limit._gap_limits(cells), squared))


def naive_tails(cells, squared, closed, stop):
    """All nulls in turn, in plain loops; the functions that make gaps have tests of their own."""
    s, counts, a, n = cells.outputs, cells.counts, cells.weight, cells.rows
    limits = exact_limit._gap_limits(cells)
    observed = np.array([a[k] * terms(s[k], counts[k], cells.ones[k]) for k in range(len(s))])
    for part in (1.0, 0.75, 0.5, 0.25, 0.0):
        for gaps in exact_limit._divisions(cells, limits, part * squared):
            rest = (1 - part) * squared
            rates = np.array([min(max(s[k] + gaps[k], 0), 1) for k in range(len(s))])
            null = NullTerms(s, counts, rates, a, observed, cells.spread, n * rest)
            if part == 1:
                yield null.tail()
                continue
            if not closed and exp(-n * rest / max(a)) > stop:
                yield exp(-n * rest / max(a)) * null.tail()
            for j in range(len(s)):
                if counts[j] >= 50 or limits.largest[j] == 0:
                    continue
                left = rest / a[j] + counts[j] / n * gaps[j] ** 2
                low, high = clopper_pearson(counts[j : j + 1], np.array([n]), 0.005)
                needed = left / limits.largest[j] ** 2
                if needed <= high[0]:
                    for share in sorted({max(low[0], needed), max(counts[j] / n, needed)}):
                        rate = s[j] + limits.side[j] * sqrt(left / share)
                        yield null.tail_with(j, n * share, min(max(rate, 0), 1))


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("squared", [1e-4, 1e-3, 0.01, 0.06])
@pytest.mark.parametrize("spread", [1.0, 1.5])
def test_every_null_is_tried(closed, squared, spread):
    s, counts = np.array([0.1, 0.4, 0.7, 0.95]), np.array([100.0, 50.0, 49.0, 3.0])
    cells = OutputCells(s, counts, np.array([12.0, 18.0, 30.0, 2.0]), np.array([0.5, 0.5, 0.25, 0.5]), 202.0, spread)
    result = list(exact_limit._null_probabilities(cells, squared, closed, 0.05))
    expected = list(naive_tails(cells, squared, closed, 0.05))
    assert_allclose(sorted(result), sorted(expected), rtol=1e-9)


def test_nulls_of_few_rows_and_of_an_output_never_seen():
    cells = OutputCells(np.array([0.2, 0.9]), np.array([12.0, 0.0]), np.array([3.0, 0.0]), np.array([1.0, 0.5]), 12.0)
    for squared in (0.001, 0.02, 0.3):
        result, expected = (f(cells, squared, False, 0.05) for f in (exact_limit._null_probabilities, naive_tails))
        assert_allclose(sorted(result), sorted(expected), rtol=1e-9)


def test_an_output_never_seen_has_no_gap_among_those_seen():
    cells = OutputCells(np.array([0.9, 0.2]), np.array([0.0, 20.0]), np.array([0.0, 12.0]), np.ones(2), 20.0)
    assert [0.0, pytest.approx(0.1)] in [gaps.tolist() for gaps in divisions(cells, 0.01)]


def test_the_output_filled_first_has_the_largest_variance():
    rng = np.random.default_rng(0)
    for _ in range(100):
        counts = rng.integers(1, 60, 4).astype(float)
        ones, a = np.floor(counts * rng.random(4)), rng.random(4)
        cells = OutputCells(rng.random(4), counts, ones, a, float(counts.sum()))
        limits = exact_limit._gap_limits(cells)
        value = []
        for k in range(4):
            p = cells.outputs[k] + limits.side[k] * limits.largest[k]
            value.append(a[k] * (4 * p * (1 - p) + limits.largest[k] ** 2))
        first = int(np.argmax(value))
        squared = 0.5 * a[first] * counts[first] / cells.rows * limits.largest[first] ** 2
        gaps = divisions(cells, squared)[0]
        expected = np.zeros(4)
        expected[first] = limits.side[first] * limits.largest[first] * sqrt(0.5)
        assert_allclose(gaps, expected, atol=1e-12)


def test_outputs_are_filled_up_one_after_the_other():
    limits = exact_limit.GapLimits(np.array([0.1, 0.0, 0.2, 0.3]), np.array([1.0, 1.0, -1.0, 1.0]), np.ones(4))
    w, order = np.array([0.4, 0.3, 0.3, 0.0]), np.array([3, 1, 2, 0])
    full = 0.3 * 0.2**2
    assert_allclose(exact_limit._fill(w, limits, order, full / 4), [0, 0, -0.1, 0])
    assert_allclose(exact_limit._fill(w, limits, order, full + 0.4 * 0.05**2), [0.05, 0, -0.2, 0])
    assert_allclose(exact_limit._fill(w, limits, order, full + 0.4 * 0.1**2 - 1e-12), [0.1, 0, -0.2, 0], atol=1e-8)
    assert exact_limit._fill(w, limits, order, full + 0.4 * 0.1**2 + 1e-9) is None


def test_how_far_a_rate_may_be_and_to_which_side():
    """More room is above below a half; where even the far limit of the rate lies on the other side, that side is taken."""
    cells = OutputCells(
        np.array([0.3, 0.5, 0.8, 0.4, 0.6]),
        np.full(5, 50.0),
        np.array([15.0, 25.0, 40.0, 1.0, 49.0]),
        np.ones(5),
        250.0,
    )
    low, high = clopper_pearson(cells.ones, cells.counts, 0.005)
    limits = exact_limit._gap_limits(cells)
    assert limits.wide.tolist() == [1, -1, -1, 1, -1]
    assert limits.side.tolist() == [1, -1, -1, -1, 1]
    s = cells.outputs
    assert_allclose(limits.largest, [high[0] - s[0], s[1] - low[1], s[2] - low[2], s[3] - low[3], high[4] - s[4]])


@pytest.mark.parametrize("threshold", [0.02, 0.3, 0.9])
def test_the_upper_limit_is_the_smallest_error_rejected(threshold):
    cells = OutputCells(np.array([0.2, 0.6]), np.array([300.0, 200.0]), np.array([75.0, 130.0]), np.ones(2), 500.0)
    below, high = exact_limit.upper_limit(cells, threshold, 0.95)
    assert below == exact_limit.rejects(cells, threshold, 0.95) == (threshold >= high)
    assert exact_limit.rejects(cells, high, 0.95)
    assert not exact_limit.rejects(cells, 0.99 * high - 1e-6, 0.95)


def test_no_error_at_all_is_never_promised():
    assert not exact_limit.rejects(
        OutputCells(np.ones(1), np.full(1, 1e6), np.full(1, 1e6), np.ones(1), 1e6), 0.0, 0.95
    )


def test_outputs_not_seen_join_with_no_rows():
    cells = OutputCells(
        np.array([0.2, 0.6]), np.array([3.0, 4.0]), np.ones(2), np.array([0.5, 0.25]), 7.0, 1.5
    ).with_outputs(np.array([0.1, 0.2, 0.6, 0.9]))
    assert cells.outputs.tolist() == [0.2, 0.6, 0.1, 0.9]
    assert cells.counts.tolist() == [3, 4, 0, 0]
    assert cells.ones.tolist() == [1, 1, 0, 0]
    assert cells.weight.tolist() == [0.5, 0.25, 0.5, 0.5]
    assert (cells.rows, cells.spread) == (7.0, 1.5)


@pytest.mark.parametrize(("classes", "bound"), [(60, False), (61, True)])
def test_the_spread_of_very_many_classes_is_bounded(classes, bound):
    probs = np.full((4, classes), 1 / classes)
    preds = Predictions.from_probs(probs, [0, 1, 2, 3])
    cells = OutputCells.class_wise(list(ClassWise().samples(preds)), ClassWise().shares(preds))
    assert (cells.spread == 2.0) == bound
    assert cells.spread <= 2.0


def test_rows_of_weight_zero_are_no_outputs_of_a_class():
    probs = [[0.2, 0.3, 0.5], [0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]
    preds = Predictions.from_probs(probs, [0, 1, 2], weights=[2, 1, 0])
    cells = OutputCells.class_wise(list(ClassWise().samples(preds)), np.full(3, 1 / 3))
    assert cells.outputs.tolist() == [0.2, 0.5, 0.2, 0.3, 0.3, 0.5]
    assert cells.counts.tolist() == [2, 1, 1, 2, 1, 2]
    assert cells.ones.tolist() == [2, 0, 1, 0, 0, 0]
    assert cells.rows == 3.0


def test_the_explicit_bound_ends_where_its_condition_does():
    """Every output needs more than 12/n log(2B/delta)."""
    n, bins, level = 5000, 4, 0.9
    for estimator, pieces in (("debiased", 4), ("plugin", 3)):
        lowest = 12 / n * np.log(2 * bins / ((1 - level) / pieces))
        options = {"n": n, "bins": bins, "level": level, "estimator": estimator}
        assert upper_bound(1e-4, smallest=lowest, **options) == inf
        assert upper_bound(1e-4, smallest=lowest * 1.0001, **options) < inf
    # an estimate far below 0 is no less than an estimate that leaves a constant of 0
    options = {"n": n, "bins": bins, "smallest": 0.25, "level": level, "estimator": "debiased"}
    assert upper_bound(-1.0, **options) == upper_bound(-2.0, **options) > 0


def test_rows_needed_for_outputs_of_equal_share():
    assert (
        rows_needed(0.05, bins=4) == rows_needed(0.05, bins=4, smallest=0.25) < rows_needed(0.05, bins=4, smallest=0.1)
    )
    with pytest.raises(tc.InputError, match="level must lie strictly between 0 and 1"):
        rows_needed(0.05, bins=4, level=1.0)
    with pytest.raises(tc.InputError, match="bins"):
        rows_needed(0.05, bins=0)
    with pytest.raises(tc.InputError, match="error must lie strictly between 0 and 1"):
        rows_needed(0.05, bins=4, error=1.0)
    with pytest.raises(tc.InputError, match="smallest must lie strictly between 0 and 1"):
        rows_needed(0.05, bins=4, smallest=1.0)


def test_gaps_along_a_direction_to_both_sides_and_none():
    s, w, direction = np.array([0.9, 0.5, 0.2, 0.7]), np.full(4, 0.25), np.array([1.0, 0.0, 0.5, -0.5])
    small = exact_limit._scale(s, w, direction, 0.25 * 0.05**2 * 1.5)
    assert_allclose(small, [0.05, 0.0, 0.025, -0.025])
    large = exact_limit._scale(s, w, direction, 0.25 * (0.1**2 + 2 * 0.6**2))  # the first is cut where its rate is 1
    assert_allclose(large, [0.1, 0.0, 0.6, -0.6], rtol=1e-9)
    assert exact_limit._scale(s, w, direction, 0.25 * (0.1**2 + 0.8**2 + 0.7**2) + 1e-9) is None
