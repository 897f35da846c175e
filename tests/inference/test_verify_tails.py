"""The distribution behind a promise: exact tails against enumeration and simulation."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, poisson

import truecal as tc
from benchmarks.coverage.worlds import FEW_OUTPUTS, few_outputs
from truecal.inference.exact_limit import NullTerms, OutputCells, rejects, terms


def naive_term(s, n, k):
    if n == 0:
        return 0.0
    rate = (k + 2 * s) / (n + 2)
    return n * (k / n - s) ** 2 - rate * (1 - rate)


CASES = {
    "one output": ([0.7], [12], [0.6], [8]),
    "certain": ([1.0, 0.0], [15, 9], [0.95, 0.1], [15, 0]),
    "confident": ([0.999, 0.5, 0.9], [20, 6, 11], [0.93, 0.4, 0.8], [19, 3, 10]),
    "weighted": ([0.2, 0.4, 0.9], [7, 8, 9], [0.3, 0.3, 0.7], [2, 3, 7]),
}


def parts(name):
    s, n, p, k = (np.array(part, float) for part in CASES[name])
    weight = np.array([0.5, 1.0, 2.0]) if name == "weighted" else np.ones(len(s))
    return s, n, p, k, weight


def enumerated(s, n, p, weight, observed):
    total = 0.0
    for counts in product(*(range(int(each) + 1) for each in n)):
        t = sum(w * naive_term(*cell) for w, *cell in zip(weight, s, n, counts, strict=True))
        if t <= observed + 1e-12:
            total += float(np.prod(binom.pmf(counts, n, p)))
    return total


@pytest.mark.parametrize("name", CASES)
def test_the_tail_is_that_of_all_datasets(name):
    s, n, p, k, weight = parts(name)
    observed = weight * terms(s, n, k)
    np.testing.assert_allclose(
        observed, [w * naive_term(*cell) for w, *cell in zip(weight, s, n, k, strict=True)], atol=1e-14
    )
    null = NullTerms(s, n, p, weight, observed)
    expected = enumerated(s, n, p, weight, max(float(observed.sum()), 0.0))
    # Within rounding to 2048 cells: T a fraction of a cell beyond the one observed may count.
    assert expected - 1e-9 <= null.tail() <= expected + 0.01
    assert 0.001 < expected < 1


def test_the_dataset_seen_counts_as_seen():
    """All outputs 1 and no miss: only that dataset has so small a T."""
    null = NullTerms(np.array([1.0]), np.array([20.0]), np.array([0.9]), np.ones(1), np.zeros(1))
    assert null.tail() == pytest.approx(0.9**20, rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_an_output_of_poisson_counts(name):
    s, n, p, k, weight = parts(name)
    seen = weight * terms(s, n, k)
    observed = max(float(seen.sum()), 0.0)
    rows, rate, j = 5.0, 0.6, len(s) - 1
    expected = 0.0
    for ones, zeros in product(range(25), range(25)):
        chance = poisson.pmf(ones, rows * rate) * poisson.pmf(zeros, rows * (1 - rate))
        left = observed - weight[j] * naive_term(s[j], ones + zeros, ones)
        others = enumerated(s[:j], n[:j], p[:j], weight[:j], left) if j else float(left >= -1e-12)
        expected += chance * others
    result = NullTerms(s, n, p, weight, seen).tail_with(j, rows, rate)
    assert expected - 1e-6 <= result <= expected + 0.015


@pytest.mark.parametrize(("outputs", "spread"), [(12, 1.6), (400, 1.0), (400, 1.4)])
def test_stretched_sums_and_many_outputs_against_simulation(outputs, spread):
    rng = np.random.default_rng(outputs)
    s, n = rng.uniform(0.05, 0.95, outputs), rng.integers(10, 60, outputs).astype(float)
    p = np.clip(s + rng.normal(0, 0.2, outputs), 0, 1)
    drawn = terms(s, n, rng.binomial(n.astype(int), p, (20_000, outputs)).astype(float)).sum(axis=1)
    stretched = drawn.mean() + np.sqrt(spread) * (drawn - drawn.mean())
    observed = np.quantile(stretched, 0.05)
    null = NullTerms(s, n, p, np.ones(outputs), np.full(outputs, observed / outputs), spread)
    # With many outputs the normal tail is the heavier one.
    assert 0.045 < null.tail() < (0.075 if outputs > 200 else 0.056)


def test_large_counts_are_looked_at_in_steps():
    s, n, p = np.array([0.3, 0.8]), np.array([2e6, 3e6]), np.array([0.301, 0.7995])
    rng = np.random.default_rng(0)
    drawn = terms(s, n, rng.binomial(n.astype(int), p, (40_000, 2)).astype(float)).sum(axis=1)
    observed = np.full(2, np.quantile(drawn, 0.05) / 2)
    assert NullTerms(s, n, p, np.ones(2), observed).tail() == pytest.approx(0.05, abs=0.006)


@pytest.mark.parametrize("name", ["spread", "confident", "hard 0 and 1, one miss"])
def test_the_atlas_asks_what_verify_answers(name):
    """The atlas judges counts of few outputs; the same rows through verify are promised or not alike."""
    world, n = FEW_OUTPUTS[name], 400
    s, shares, rates = world.at(n)
    rng = np.random.default_rng(1)
    answers = set()
    for threshold in (0.02, 0.06, 0.3):
        counts = rng.multinomial(n, shares)
        ones = rng.binomial(counts, rates)
        rows = np.repeat(s, counts)
        labels = np.concatenate([np.arange(c) < k for c, k in zip(counts, ones, strict=True)]).astype(int)
        verdict = tc.verify(tc.Predictions.from_probs(rows, labels), threshold).verdict
        request = rejects(OutputCells.counted(s, counts.astype(float), ones.astype(float)), threshold, 0.95)
        assert request == (verdict == "promised")
        answers.add(request)
    assert answers == {True, False}


def test_worlds_of_few_outputs_have_the_misses_they_say():
    for world in few_outputs()["few outputs"].values():
        s, shares, rates = world.at(200)
        assert shares.sum() == pytest.approx(1)
        assert ((rates >= 0) & (rates <= 1)).all()
        assert shares @ (rates - s) ** 2 > 0
    s, shares, rates = FEW_OUTPUTS["hard 0 and 1, one miss"].at(1000)
    np.testing.assert_allclose(rates, [0.001, 0.999])
    assert FEW_OUTPUTS["all outputs 1, 1.5 misses"].at(300)[2] == pytest.approx(1 - 1.5 / 300)


def test_the_limit_lies_where_promises_end():
    rng = np.random.default_rng(0)
    p = rng.choice([0.1, 0.5, 0.9], 3000)
    preds = tc.Predictions.from_probs(p, (rng.random(3000) < p).astype(int))
    limit = tc.verify(preds, 0.5).high
    for threshold in (0.001, 0.9 * limit, 1.02 * limit, 1.0):
        verification = tc.verify(preds, threshold)
        assert (verification.verdict == "promised") == (threshold > limit)
        assert verification.high == pytest.approx(limit, rel=0.02)
