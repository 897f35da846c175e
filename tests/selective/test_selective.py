"""Selective prediction against enumerations of every order, and the properties that must hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truecal as tc
from tests.datasets import small
from tests.simulations import datasets, within
from truecal.selective import ConfidenceGroups

FEW = {"resamples": 20}


def predictions(confidence, right, weights=None, clusters=None):
    """Binary predictions whose top label has this confidence (at least 1/2) and is right or wrong as given."""
    return tc.Predictions.from_probs(
        np.asarray(confidence), np.asarray(right).astype(int), weights=weights, clusters=clusters
    )


def upper(data):
    """A small dataset with confidences in [0.5, 1] and plenty of ties."""
    scores, outcomes = data
    return 0.5 + scores / 2, outcomes


def naive_losses(confidence, right):
    """Errors among the k most confident, k = 0..n, averaged over every order that respects confidence."""
    n = len(confidence)
    orders = [
        p
        for p in itertools.permutations(range(n))
        if all(confidence[p[i]] >= confidence[p[i + 1]] for i in range(n - 1))
    ]
    curves = [np.concatenate([[0], np.cumsum([1 - right[i] for i in order])]) for order in orders]
    return np.mean(curves, axis=0)


# ------------------------------------------------------------------ the curve and its area


@given(small(most=7))
@settings(max_examples=30)
def test_curve_and_area_are_means_over_every_order(data):
    confidence, right = upper(data)
    n = len(right)
    losses = naive_losses(confidence, right)
    ladder = ConfidenceGroups.of(predictions(confidence, right))
    assert ladder.loss(np.arange(n + 1) / n)[0] * n == pytest.approx(losses)
    risks = losses[1:] / np.arange(1, n + 1)
    assert ladder.area()[0] == pytest.approx(risks.mean())
    best = naive_losses(np.asarray(right, float), right)[1:] / np.arange(1, n + 1)
    assert ladder.best_area()[0] == pytest.approx(best.mean())
    assert ladder.area()[0] >= ladder.best_area()[0] - 1e-12


@given(small(most=30), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_weights_are_repetitions(data, random):
    confidence, right = upper(data)
    order = list(range(len(right)))
    random.shuffle(order)
    weights = np.array([random.randint(1, 3) for _ in order])
    plain = ConfidenceGroups.of(predictions(confidence, right))
    shuffled = ConfidenceGroups.of(predictions(confidence[order], right[order]))
    assert shuffled.area()[0] == plain.area()[0]
    assert np.array_equal(shuffled.errors, plain.errors)
    weighted = ConfidenceGroups.of(predictions(confidence, right, weights))
    repeated = ConfidenceGroups.of(predictions(np.repeat(confidence, weights), np.repeat(right, weights)))
    assert weighted.area()[0] == pytest.approx(repeated.area()[0], abs=1e-12)
    assert weighted.best_area()[0] == pytest.approx(repeated.best_area()[0], abs=1e-12)
    coverage = np.linspace(0, 1, 13)
    assert weighted.loss(coverage) == pytest.approx(repeated.loss(coverage), abs=1e-12)


def test_curve_by_hand():
    curve = tc.selective.risk_coverage(predictions([0.9, 0.8, 0.8, 0.6], [1, 1, 0, 0]))
    assert curve.threshold.tolist() == [0.9, 0.8, 0.6]
    assert curve.coverage.tolist() == [0.25, 0.75, 1]
    assert curve.risk == pytest.approx([0, 1 / 3, 1 / 2])
    assert curve.at(0.5) == pytest.approx(0.25)  # half an error among two
    assert curve.area.value == pytest.approx((0 + 0.25 + 1 / 3 + 1 / 2) / 4)
    assert curve.area.excess == pytest.approx(curve.area.value - (1 / 3 + 2 / 4) / 4)
    assert (curve.area.error, curve.n) == (0.5, 4)
    frame = curve.frame()
    assert frame["answered"][-1] == 1
    assert frame["risk"][-1] == pytest.approx(0.5)
    assert [frame["threshold"][i] for i in (24, 25, 74, 99)] == [0.9, 0.8, 0.8, 0.6]
    with pytest.raises(tc.InputError, match="coverage must lie above 0"):
        curve.at(0)
    with pytest.raises(tc.InputError, match="preds must be Predictions, not "):
        tc.selective.aurc([0.5, 0.6])


def test_large_sums_stay_exact():
    rng = np.random.default_rng(0)
    confidence = 0.5 + rng.random(50_000) / 2
    right = rng.random(50_000) < confidence
    order = np.argsort(-confidence)
    expected = (np.cumsum(~right[order]) / np.arange(1, 50_001)).mean()
    assert ConfidenceGroups.of(predictions(confidence, right)).area()[0] == pytest.approx(expected, rel=1e-12)


def test_many_classes_use_the_largest_probability():
    probs = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    curve = tc.selective.risk_coverage(tc.Predictions.from_probs(probs, [0, 2, 2]), **FEW)
    assert curve.threshold.tolist() == [0.8, 0.5, 0.4]
    assert curve.risk == pytest.approx([1, 1 / 2, 1 / 3])


def test_area_of_real_confidences(resnet110):
    """A network's confidences as printed, to two digits, tie in long runs: the mean over 200 random orders of ties is met within 4
    standard errors. Unrounded they hardly tie, and one order is the mean."""
    whole = tc.Predictions.from_logits(resnet110["test_logits"], resnet110["test_labels"])
    confidence, right = whole.probs.max(axis=1), whole.probs.argmax(axis=1) == whole.labels
    rng = np.random.default_rng(3)

    def area_of_one_order(values):
        order = np.lexsort((rng.random(len(right)), -values))
        return (np.cumsum(~right[order]) / np.arange(1, len(right) + 1)).mean()

    assert tc.selective.aurc(whole, **FEW).value == pytest.approx(area_of_one_order(confidence), abs=1e-12)
    printed = np.maximum(confidence.round(2), 0.5)
    areas = [area_of_one_order(printed) for _ in range(200)]
    result = ConfidenceGroups.of(predictions(printed, right)).area()[0]
    assert abs(result - np.mean(areas)) < 4 * np.std(areas) / np.sqrt(200)
    assert np.std(areas) > 1e-4  # the order of ties matters to those who break them


# ------------------------------------------------------------------ costs


def naive_cost(confidence, right, rate, ratio):
    """Answered rows one by one; rate must be a multiple of 1/n."""
    n = len(right)
    return naive_losses(confidence, right)[round((1 - rate) * n)] / n + ratio * rate


@given(small(most=6), st.integers(0, 6), st.integers(0, 10))
@settings(max_examples=30)
def test_cost_of_abstaining(data, left, tenths):
    confidence, right = upper(data)
    if len(right) < 2:
        return
    rate, ratio = min(left, len(right)) / len(right), tenths / 10
    result = tc.selective.abstention_cost(predictions(confidence, right), rate=rate, cost_ratio=ratio, **FEW)
    assert result.value == pytest.approx(naive_cost(confidence, right, rate, ratio))
    assert result.value in result.interval
    if rate < 1:
        assert result.value == pytest.approx((1 - rate) * result.risk + ratio * rate)
        selected = np.sort(confidence)[::-1][: round((1 - rate) * len(right))]
        assert result.threshold == selected[-1]


# ------------------------------------------------------------------ intervals


def world(n, m, rng):
    """Confidences on [0.5, 1], right with probability c - 0.05 (never below 1/2 - 0.05)."""
    c = 0.5 + 0.5 * rng.beta(2, 1, (m, n))
    return c, rng.random((m, n)) < c - 0.05


def test_a_model_without_errors_is_not_certain():
    result = tc.selective.aurc(predictions(np.linspace(0.6, 0.99, 50), np.ones(50)))
    assert result.value == 0
    assert result.interval.low == 0
    assert 0.002 < result.interval.high < 0.2


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(1)
    c, y = world(40, 1, rng)
    confidence, right, cluster = np.repeat(c[0], 10), np.repeat(y[0], 10), np.repeat(np.arange(40), 10)
    alone = tc.selective.aurc(predictions(confidence, right)).interval
    together = tc.selective.aurc(predictions(confidence, right, clusters=cluster)).interval
    assert together.high - together.low > 2 * (alone.high - alone.low)


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """95 % intervals of AURC and of a cost hold the truth in 90 to 99 % of 200 samples of 300 rows."""
    rng = np.random.default_rng(2)
    ratio, coverage = 0.25, np.array([0.8])

    big_c, big_y = (a[0] for a in world(400_000, 1, rng))
    big = ConfidenceGroups.of(predictions(big_c, big_y))
    true_area, true_loss = big.area()[0], big.loss(coverage)[0, 0]
    covered, samples = np.zeros(2), datasets(200)
    for confidence, right in zip(*world(300, samples, rng), strict=True):
        a = predictions(confidence, right)
        covered[0] += true_area in tc.selective.aurc(a, resamples=300).interval
        covered[1] += (
            true_loss + 0.2 * ratio
            in tc.selective.abstention_cost(a, rate=0.2, cost_ratio=ratio, resamples=300).interval
        )
    assert all(within(count, samples, 0.9, 0.99) for count in covered), covered


def half_right():
    """Half at 0.1 and wrong, half at 0.9 and right."""
    return np.repeat([0.1, 0.9], 500), np.repeat([0, 1], 500)


def test_answers_are_judged_by_the_confidence_in_them():
    confidence, correct = half_right()
    answers = tc.Predictions.from_answers(confidence, correct)
    assert tc.selective.risk_coverage(answers).at([0.5, 1]).tolist() == [0, 0.5]
    classes = tc.Predictions.from_probs(confidence, correct)
    assert tc.selective.risk_coverage(classes).at(1).tolist() == [0]  # the predicted class is right every time
    assert tc.selective.risk_coverage(classes, lens=tc.OneClass()).at(1).tolist() == [0.5]
    assert tc.selective.abstention_cost(answers, rate=0.5, cost_ratio=0.1).value == pytest.approx(0.05)
    with pytest.raises(tc.InputError, match="several confidences per row"):
        tc.selective.aurc(classes, lens=tc.ClassWise())


def test_a_file_of_answers_is_judged_by_its_confidence(tmp_path):
    confidence, correct = half_right()
    rows = "\n".join(f"{c},{y}" for c, y in zip(confidence, correct, strict=True))
    (tmp_path / "answers.csv").write_text(f"confidence,is_correct\n{rows}\n")
    assert tc.selective.aurc(tc.read(tmp_path / "answers.csv")).error == 0.5


def test_who_never_answers_has_no_risk():
    wrong = tc.Predictions.from_probs([0.9, 0.8, 0.95], [0, 0, 0])
    assert tc.selective.abstention_cost(wrong, rate=1.0, cost_ratio=0.3, resamples=20).risk is None


def test_results_print_in_a_line():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    cost = str(tc.selective.abstention_cost(y, p, rate=0.5, cost_ratio=0.2))
    assert cost.startswith("cost 0.1")
    assert "50% are not answered" in cost
    assert len(cost) < 240
