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


@given(small(most=25), st.integers(0, 20))
def test_best_threshold_is_the_cheapest_of_all(data, twentieths):
    confidence, right = upper(data)
    if len(right) < 2:
        return
    ratio = twentieths / 20

    def cost(threshold):
        answered = confidence >= threshold
        return ((1 - right) * answered).mean() + ratio * (~answered).mean()

    result = tc.selective.best_threshold(predictions(confidence, right), cost_ratio=ratio, **FEW)
    every = [*np.unique(confidence), np.inf]  # rising: the first of the least answers most
    costs = np.array([cost(t) for t in every])
    assert result.cost == pytest.approx(costs.min())
    assert result.threshold == every[int(np.flatnonzero(costs <= costs.min() + 1e-12)[0])]
    assert result.answer_all == pytest.approx(1 - right.mean())
    assert result.answer_none == pytest.approx(ratio)
    assert result.calibrated_cost == pytest.approx(cost(1 - ratio))
    assert result.rate == pytest.approx((confidence < result.threshold).mean())
    assert result.cost in result.interval
    assert result.optimism >= 0


def classified(confidence, right, labels):
    """Two columns, the predicted one with this confidence."""
    predicted = np.where(right, labels, 1 - labels)
    probs = np.stack([1 - confidence, confidence], axis=1)
    return tc.Predictions.from_probs(np.where(predicted[:, None] == 1, probs, probs[:, ::-1]), labels)


@given(small(most=6), small(most=6), st.lists(st.integers(0, 1), min_size=6, max_size=6))
@settings(max_examples=25)
def test_cost_map_is_cell_by_cell(first, second, labels):
    n = min(len(first[1]), len(second[1]))
    if n < 2:
        return
    rates, ratios = np.arange(n + 1) / n, np.array([0.0, 0.3, 1.0])
    models, costs = [], []
    for scores, right in (first, second):
        confidence = 0.51 + 0.49 * scores[:n]  # above 1/2: one class is predicted
        models.append(classified(confidence, right[:n], np.array(labels[:n])))
        losses = naive_losses(confidence, right[:n])[::-1] / n  # least confident first: one more row abstained each
        costs.append(losses[:, None] + rates[:, None] * ratios)
    result = tc.selective.cost_map(*models, rates=rates, cost_ratios=ratios, **FEW)
    assert result.cost_a == pytest.approx(costs[0], abs=1e-12)
    assert result.cost_b == pytest.approx(costs[1], abs=1e-12)
    assert result.difference == pytest.approx((costs[0] - costs[1])[:, 1], abs=1e-12)
    frame = result.frame()
    assert len(frame) == len(rates) * len(ratios)
    assert frame["cost_a"].tolist() == result.cost_a.ravel().tolist()
    same = tc.selective.cost_map(models[0], models[0], rates=rates, cost_ratios=ratios, **FEW)
    assert not same.relative.any()
    assert not same.high.any()  # paired: a model never differs from itself
    assert not same.low.any()


def test_cost_map_refuses_other_rows():
    a = predictions([0.9, 0.8, 0.7], [1, 1, 0])
    with pytest.raises(tc.InputError, match="have 3 and 2 rows"):
        tc.selective.cost_map(a, predictions([0.9, 0.8], [1, 1]))
    with pytest.raises(tc.InputError, match="row 2 has different labels"):
        tc.selective.cost_map(a, predictions([0.9, 0.8, 0.7], [1, 1, 1]))
    with pytest.raises(tc.InputError, match="different weights"):
        tc.selective.cost_map(a, predictions([0.9, 0.8, 0.7], [1, 1, 0], weights=[1, 2, 1]))
    with pytest.raises(tc.InputError, match=r"rate must be a number from 0 to 1, not 1.5"):
        tc.selective.cost_map(a, a, rates=[1.5])
    with pytest.raises(tc.InputError, match="cost_ratio must be a number from 0 to 1, not 'low'"):
        tc.selective.abstention_cost(a, rate=0.5, cost_ratio="low")


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
    """95 % intervals of AURC, of a cost, of the best threshold's cost and of the difference of two models on the same rows hold the
    truth in 90 to 99 % of 200 samples of 300 rows."""
    rng = np.random.default_rng(2)
    ratio, coverage = 0.25, np.array([0.8])

    def noisy(c):  # another model: the same answers, its confidence blurred
        return np.clip(c + rng.normal(0, 0.1, c.shape), 0.5, 1.0)

    big_c, big_y = (a[0] for a in world(400_000, 1, rng))
    big, blurred = (ConfidenceGroups.of(predictions(c, big_y)) for c in (big_c, noisy(big_c)))
    true_area, true_loss = big.area()[0], big.loss(coverage)[0, 0]
    true_difference = true_loss - blurred.loss(coverage)[0, 0]

    def true_cost(threshold):
        answered = big_c >= threshold
        return (answered & ~big_y).mean() + ratio * (~answered).mean()

    covered, samples = np.zeros(4), datasets(200)
    for confidence, right in zip(*world(300, samples, rng), strict=True):
        a, b = predictions(confidence, right), predictions(noisy(confidence), right)
        covered[0] += true_area in tc.selective.aurc(a, resamples=300).interval
        covered[1] += (
            true_loss + 0.2 * ratio
            in tc.selective.abstention_cost(a, rate=0.2, cost_ratio=ratio, resamples=300).interval
        )
        best = tc.selective.best_threshold(a, cost_ratio=ratio, resamples=300)
        covered[2] += true_cost(best.threshold) in best.interval
        both = tc.selective.cost_map(a, b, rates=[0.2], cost_ratios=[ratio], resamples=300)
        covered[3] += both.low[0] <= true_difference <= both.high[0]
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
    assert tc.selective.best_threshold(answers, cost_ratio=0.1).threshold == 0.9
    with pytest.raises(tc.InputError, match="several confidences per row"):
        tc.selective.aurc(classes, lens=tc.ClassWise())


def test_a_file_of_answers_is_judged_by_its_confidence(tmp_path):
    confidence, correct = half_right()
    rows = "\n".join(f"{c},{y}" for c, y in zip(confidence, correct, strict=True))
    (tmp_path / "answers.csv").write_text(f"confidence,is_correct\n{rows}\n")
    assert tc.selective.aurc(tc.read(tmp_path / "answers.csv")).error == 0.5


def test_two_models_may_be_right_on_different_questions():
    rng = np.random.default_rng(0)
    a, b = (tc.Predictions.from_answers(c, rng.random(300) < c) for c in rng.random((2, 300)))
    assert not np.array_equal(a.labels, b.labels)
    result = tc.selective.cost_map(a, b, rates=[0.0], cost_ratios=[0.5])
    assert result.difference[0] == pytest.approx(b.labels.mean() - a.labels.mean())


def test_who_never_answers_has_no_risk():
    wrong = tc.Predictions.from_probs([0.9, 0.8, 0.95], [0, 0, 0])
    assert tc.selective.best_threshold(wrong, cost_ratio=0.3, resamples=20).risk is None
    assert tc.selective.abstention_cost(wrong, rate=1.0, cost_ratio=0.3, resamples=20).risk is None


def test_results_print_in_a_line():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    cost = str(tc.selective.abstention_cost(y, p, rate=0.5, cost_ratio=0.2))
    assert cost.startswith("cost 0.1")
    assert "50% are not answered" in cost
    best = str(tc.selective.best_threshold(y, p, cost_ratio=0.3))
    assert best.startswith("answer from a confidence of 0.")
    a, b = tc.Predictions.from_probs(p, y), tc.Predictions.from_probs(1 - p, y)
    costs = tc.selective.cost_map(a, b)
    assert str(costs).endswith("the first is cheaper at 20 rates, the second at 0 (95%, each rate by itself)")
    assert repr(tc.selective.best_threshold(y, p, cost_ratio=0.3)) == f"BestThreshold: {best}"
    assert all(len(text) < 240 for text in (cost, best, repr(costs)))
