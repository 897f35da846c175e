"""Comparisons of Predictions: labels of each model's own, rows paired by place, by a key, or not at all."""

from dataclasses import replace

import numpy as np
import pytest

import truecal as tc
from truecal.estimators.estimate import Interval
from truecal.inference.ranking import conclude_ranking


def answers(n, power, seed, *, repeats=1, skill=0.0):
    """A model's confidences and whether its own answers were correct; `skill` is shared by all models of a question."""
    rng = np.random.default_rng(seed)
    question = np.repeat(np.arange(n), repeats)
    p = np.clip(rng.random(n * repeats) * 0.9 + skill, 0, 1)
    correct = rng.random(n * repeats) < p**power
    return tc.Predictions.from_probs(p, correct.astype(int), columns={"question": question})


def test_labels_of_each_models_own():
    good, bad = answers(2000, 1.0, 0), answers(2000, 3.0, 1)
    assert not np.array_equal(good.labels, bad.labels)
    comparison = tc.compare(good, bad, names=("good", "bad"))
    assert comparison.value_a == pytest.approx(tc.measure(good).value, abs=1e-9)
    assert comparison.value_b == pytest.approx(tc.measure(bad).value, abs=1e-9)
    assert comparison.interval.high < 0
    assert comparison.p_value < 0.01


def test_equal_labels_give_what_arrays_give():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    by_arrays = tc.compare(y, p, p**2, resamples=199)
    a, b = (tc.Predictions.from_probs(x, y) for x in (p, p**2))
    by_predictions = tc.compare(a, b, resamples=199)
    assert by_arrays.interval == by_predictions.interval
    assert by_arrays.p_value == by_predictions.p_value


def test_a_key_finds_the_rows_in_any_order():
    a, b = answers(600, 1.0, 0), answers(600, 2.0, 1)
    order = np.random.default_rng(5).permutation(600)
    straight, shuffled = tc.compare(a, b, key="question"), tc.compare(a, b.take(order), key="question")
    assert shuffled.value_b == pytest.approx(straight.value_b, abs=1e-12)
    assert shuffled.interval.low == pytest.approx(straight.interval.low, abs=1e-9)
    assert shuffled.interval.high == pytest.approx(straight.interval.high, abs=1e-9)


def test_rows_of_one_key_are_drawn_together():
    a, b = answers(300, 1.5, 0), answers(300, 2.0, 1)
    copies = [
        tc.Predictions.from_probs(x.probs.repeat(4), x.labels.repeat(4), columns={"q": np.arange(1200) // 4})
        for x in (a, b)
    ]
    alone = tc.compare(a, b)
    together = tc.compare(*copies, key="q")
    width = together.interval.high - together.interval.low
    assert together.interval.method == "paired rank series of clusters"
    assert width == pytest.approx(alone.interval.high - alone.interval.low, rel=0.25)  # copies add nothing


def test_unpaired_models_may_have_any_number_of_rows():
    a, b = answers(1500, 1.0, 0), answers(900, 3.0, 1)
    comparison = tc.compare(a, b, paired=False)
    assert comparison.interval.method == "rank series of rows, unpaired"
    assert comparison.interval.high < 0
    assert comparison.n == 900


def test_pairing_cancels_what_models_share():
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    y = (rng.random(1500) < p**2).astype(int)
    a, b = (tc.Predictions.from_probs(x, y) for x in (p, np.clip(p + 0.01, 0, 1)))
    widths = [c.interval.high - c.interval.low for c in (tc.compare(a, b), tc.compare(a, b, paired=False))]
    assert widths[0] < 0.5 * widths[1]


def test_many_models():
    models = {name: answers(400, power, seed) for seed, (name, power) in enumerate({"a": 1, "b": 1, "c": 4}.items())}
    comparisons = tc.inference.compare_many(models, reference="a")
    assert [(c.a, c.b) for c in comparisons] == [("b", "a"), ("c", "a")]
    assert comparisons[1].adjusted_p < 0.05


def test_refusals():
    a, b = answers(100, 1.0, 0), answers(90, 1.0, 1)
    clustered = tc.Predictions.from_probs(a.probs, a.labels, clusters=np.arange(100) // 2)
    for call, words in [
        (lambda: tc.compare(a, b), "a has 100 rows and b has 90"),
        (lambda: tc.compare(a, b, key="question"), "10 values of 'question' are not in both"),
        (lambda: tc.compare(a, b, key="nope"), "nope"),
        (lambda: tc.compare(a, a, key="question", paired=False), "give one"),
        (lambda: tc.compare(a, clustered), "clusters of b"),
        (lambda: tc.compare(a, [0.5]), "compare two Predictions"),
        (lambda: tc.compare([0, 1], [0.5, 0.5]), "both models"),
        (lambda: tc.inference.compare_many({"a": a}), "at least two"),
        (lambda: tc.inference.compare_many([0, 1]), "Predictions by name"),
        (lambda: tc.compare(a, a, sample_weight=[1.0]), "leave them out"),
    ]:
        with pytest.raises(tc.InputError, match=words):
            call()


def _softmax(logits):
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _of_means(lens, probs, truth):
    """The error of the means of the estimator's own bins, with expected outcomes in the place of outcomes."""
    sample = lens.sample(tc.Predictions.from_probs(probs, np.zeros(len(probs), int)))
    partition = tc.estimators.KDTree().partition(sample)
    error = 0.0
    for one in range(partition.count):
        rows = partition.bin_of == one
        if rows.any():
            gap = (probs[rows] - truth[rows]).mean(axis=0)
            error += rows.mean() * 0.5 * float(np.abs(gap).sum())
    return error


@pytest.mark.parametrize(("a", "b"), [(1.6, 1.0), (1.6, 1.3), (0.6, 1.6)])
def test_differences_in_context_are_covered(a, b):
    """60 pairs at 90 %: a coverage of 87 % (the least of 20 worlds at 200 pairs each) gives fewer than 45 once in 1000."""
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        logits = 1.5 * rng.normal(size=(600, 5))
        truth = _softmax(logits)
        labels = (rng.random((600, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 4)
        one, other = _softmax(a * logits), _softmax(b * logits)
        comparison = tc.compare(labels, one, other, lens=tc.Canonical(), resamples=199, level=0.9, rng=seed)
        difference = _of_means(tc.Canonical(), one, truth) - _of_means(tc.Canonical(), other, truth)
        covered += comparison.interval.low <= difference <= comparison.interval.high
    assert covered >= 45


def test_calibrated_models_do_not_differ_in_context():
    """80 pairs of a calibrated model and a coarser one, also calibrated: level 10 %."""
    rejected = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        fine = _softmax(1.5 * rng.normal(size=(500, 5)))
        coarse = fine.copy()
        coarse[:, 3:] = fine[:, 3:].mean(axis=1, keepdims=True)
        labels = (rng.random((500, 1)) > fine.cumsum(axis=1)).sum(axis=1).clip(0, 4)
        rejected += tc.compare(labels, fine, coarse, lens=tc.TopK(2), resamples=199, rng=seed).p_value < 0.1
    assert rejected <= 15


def test_context_needs_what_it_can_honour():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 200)
    labels = rng.integers(0, 3, 200)
    with pytest.raises(tc.InputError, match="class-wise"):
        tc.compare(labels, probs, probs, lens=tc.ClassWise(), estimator=tc.GeneralizedECE())
    with pytest.raises(tc.InputError, match="before they are compared"):
        tc.compare(labels, probs, probs, estimator=tc.GeneralizedECE(select=tc.by_output(low=0.5)))
    same = tc.compare(labels, probs, probs, lens=tc.Canonical(), resamples=99)
    assert same.p_value == 1.0
    assert same.difference == 0.0


def sketch_of(power, seed, n=3000):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = rng.random(n) < p**power
    return tc.Sketch.from_arrays(p, y), tc.Predictions.from_probs(p, y)


def test_sketches_are_compared_like_unpaired_rows():
    (a, rows_a), (b, rows_b) = sketch_of(1.6, 0), sketch_of(1.0, 1)
    result, expected = tc.compare(a, b), tc.compare(rows_a, rows_b, paired=False)
    assert result.difference == pytest.approx(expected.difference, abs=1e-6)
    assert result.interval.low == pytest.approx(float(expected.interval.low), abs=0.03)
    assert result.interval.high == pytest.approx(float(expected.interval.high), abs=0.01)
    assert result.p_value < 0.01
    with pytest.raises(tc.InputError, match="sketches are compared with sketches"):
        tc.inference.compare_many({"a": a, "b": rows_b})
    with pytest.raises(tc.InputError, match="sketches are compared with sketches"):
        tc.compare(a, b, lens=tc.TopLabel())


def test_what_sketches_leave_open_widens_the_interval(monkeypatch):
    from truecal.inference import comparison

    rng = np.random.default_rng(0)
    p = rng.random(2000)
    sketches = [tc.Sketch.from_arrays(p**power, rng.random(2000) < p) for power in (1, 2)]
    exact = comparison._measure_sketches
    plain = tc.compare(*sketches).interval

    def less_certain(*arguments):
        measured = exact(*arguments)
        return replace(measured, sketch_errors={name: e + 0.002 for name, e in measured.sketch_errors.items()})

    monkeypatch.setattr(comparison, "_measure_sketches", less_certain)
    wide = tc.compare(*sketches).interval
    assert (plain.low - wide.low, wide.high - plain.high) == (pytest.approx(0.004), pytest.approx(0.004))


def test_a_difference_is_as_unsure_as_its_parts_and_what_they_share_cancels():
    """Ends as Zou and Donner write them; at rho = 1 and equal distances nothing is left of either."""
    from truecal.inference.comparison import ResampledError

    rng = np.random.default_rng(0)
    drawn, other = rng.random(50), rng.random(50)
    a = ResampledError(0.10, drawn, False, interval=(0.07, 0.14), powers=drawn)
    b = ResampledError(0.05, other, False, interval=(0.03, 0.08), powers=drawn)
    low, high, p = a.limits(b, 0.95, paired=False)
    assert low == pytest.approx(0.05 - np.hypot(0.03, 0.03))
    assert high == pytest.approx(0.05 + np.hypot(0.04, 0.02))
    assert (p < 0.05) == (low > 0)
    low, high, _ = a.limits(b, 0.95, paired=True)
    assert (low, high) == (pytest.approx(0.05), pytest.approx(0.07))


def test_equal_days_are_rarely_told_apart():
    rejected = sum(
        tc.compare(sketch_of(1.3, 2 * i, 800)[0], sketch_of(1.3, 2 * i + 1, 800)[0], resamples=99).p_value <= 0.05
        for i in range(60)
    )
    assert rejected <= 7  # of 60 at 5 %: more has probability 0.02


def test_a_gate_of_a_smaller_error_states_the_decrease():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = rng.random(3000) < p
    comparisons = tc.inference.compare_many(y, {"new": p, "old": p**2}, reference="old")
    gate = conclude_ranking(comparisons, reference="old", max_increase=0.01).gate
    assert gate.startswith("PASS: at 95% the error of new is below that of old by at least 0.1")
    assert gate.endswith(", and an increase of 0.01 is allowed")
    turned = conclude_ranking([pair.reversed() for pair in comparisons], reference="old", max_increase=0.01)
    assert turned.gate == gate


def test_keys_are_named_as_text():
    a, b = answers(100, 1.0, 0), answers(90, 1.0, 1)
    with pytest.raises(tc.InputError, match=r"such as '\w+' \(in a only\)"):
        tc.compare(a, b, key="question")


def pair_of(name, value, low, high):
    """A comparison of a model with a reference of error 0.02."""
    interval = Interval(low, high, 0.95, "x")
    return tc.inference.Comparison(name, "old", 0.02 + value, 0.02, interval, 0.5, 0.5, tc.RankSeries(), "scores", 1000)


def test_the_gate_names_a_model_that_is_worse_before_one_that_may_be():
    pairs = [pair_of("clear", 0.06, 0.05, 0.07), pair_of("vague", 0.0, -0.2, 0.2)]
    conclusion = conclude_ranking(pairs, reference="old", max_increase=0.01)
    assert conclusion.headline == "clear is worse than old by more than 0.01"
    assert conclusion.gate.endswith("exceeds that of old by at least 0.050, and 0.01 is allowed; recalibrate clear")


def test_the_forecast_of_a_gate_is_for_all_models():
    wide, narrow = pair_of("wide", -0.02, -0.1, 0.06), pair_of("narrow", 0.0, -0.05, 0.05)
    conclusion = conclude_ranking([wide, narrow], reference="old", max_increase=0.01)
    assert "about 24,000 further rows would let it pass" in conclusion.gate
    hopeless = conclude_ranking([wide, pair_of("over", 0.02, -0.01, 0.05)], reference="old", max_increase=0.01)
    assert hopeless.gate.endswith("more rows alone would not help: the estimated increase of over is 0.020")
