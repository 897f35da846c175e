"""Promises: the debiased error of binned models, its limits, the explicit bounds, and how often a promise is broken."""

from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.stats import binomtest

from tests.simulations import datasets
from truecal.errors import InputError
from truecal.inference import rows_needed, verify
from truecal.inference.exact_limit import OutputCells, rejects, squared_errors
from truecal.inference.verification import upper_bound
from truecal.lenses import ClassWise
from truecal.predictions import Predictions
from truecal.profile import Profile, Sketch
from truecal.recalibration import ScalingBinning, choose_bins

Array = NDArray[np.float64]


def binned(n: int, off: float, outputs: int = 10, seed: int = 0) -> Predictions:
    """A model of few outputs whose root-mean-square calibration error is exactly `off`."""
    rng = np.random.default_rng(seed)
    s = np.linspace(0.15, 0.85, outputs)
    j = rng.integers(0, outputs, n)
    sign = np.where(np.arange(outputs) % 2 == 0, 1, -1)
    return Predictions.from_probs(s[j], rng.random(n) < (s + off * sign)[j])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=5, max_size=60))
@settings(max_examples=100, deadline=None)
def test_estimates_are_those_of_the_paper(rows: list[tuple[int, int]]) -> None:
    s = np.array([r[0] for r in rows]) / 5
    y = np.array([r[1] for r in rows])
    error = OutputCells.of(Profile.from_arrays(s, y))
    plugin = debiased = 0.0
    for value in np.unique(s):
        mask = y[s == value]
        share, rate, count = len(mask) / len(y), mask.mean(), len(mask)
        plugin += share * (value - rate) ** 2
        debiased += share * ((value - rate) ** 2 - (rate * (1 - rate) / (count - 1) if count > 1 else 0))
    assert_allclose(squared_errors(error.outputs, error.counts, error.ones), [plugin, debiased], atol=1e-12)
    assert error.squared == squared_errors(error.outputs, error.counts, error.ones)[1]
    shares = np.array([(s == v).mean() for v in np.unique(s)]) * len(np.unique(s))
    assert_allclose(error.balance, max(shares.max(), 1 / shares.min()))
    assert 0 <= error.lower(0.9) <= max(error.squared, 0)


def test_weights_are_counts() -> None:
    rng = np.random.default_rng(0)
    s, y, w = rng.integers(1, 5, 50) / 5, rng.integers(0, 2, 50), rng.integers(1, 5, 50)
    weighted = OutputCells.of(Profile.from_arrays(s, y, w))
    repeated = OutputCells.of(Profile.from_arrays(np.repeat(s, w), np.repeat(y, w)))
    assert_allclose(weighted.squared, repeated.squared)
    assert_allclose(weighted.lower(0.9), repeated.lower(0.9))


def test_the_explicit_bound_is_the_papers_formula() -> None:
    """Theorem F.9: at the bound, the two sides of the inequality are equal."""
    n, bins, smallest, level, estimate = 50_000, 15, 0.05, 0.9, 3e-4
    for estimator, pieces in (("debiased", 4), ("plugin", 3)):
        delta = (1 - level) / pieces
        result = upper_bound(estimate, n=n, bins=bins, smallest=smallest, level=level, estimator=estimator)
        c = sqrt(3 / (n * smallest) * log(2 * bins / delta))
        last = 3 * sqrt(bins) / n * log(n / delta) + delta / n
        if estimator == "plugin":
            last = bins / (2 * n) * log(2 * bins / delta)
        assert_allclose(result - estimate, c * result + sqrt(2 * (1 + c) * result / n * log(2 / delta)) + last)
    assert upper_bound(0.0, n=1000, bins=10, smallest=0.01, level=0.9, estimator="debiased") == inf


def test_debiasing_needs_fewer_rows_as_bins_grow() -> None:
    """Theorems 5.3 and 5.4: of the order of B rows for the plug-in, sqrt(B) for the debiased estimate."""

    def needed(bins: int, estimator: str) -> float:
        return rows_needed(0.01, bins=bins, smallest=0.5, level=0.9, estimator=estimator)

    assert needed(10_000, "plugin") / needed(100, "plugin") > 80
    assert needed(10_000, "debiased") / needed(100, "debiased") < 15
    n = needed(100, "debiased")
    options = {"bins": 100, "smallest": 0.5, "level": 0.9, "estimator": "debiased"}
    assert upper_bound(0.0, n=n, **options) <= 1e-4 < upper_bound(0.0, n=n - 1, **options)
    assert rows_needed(0.01, error=sqrt(2e-4), **options) == inf


def test_the_three_verdicts() -> None:
    promised = verify(binned(20_000, 0.0), 0.03)
    assert promised.verdict == "promised"
    assert promised
    assert promised.further is None
    assert promised.outputs == 10
    assert promised.well_balanced
    assert promised.high <= 0.03 < promised.explicit
    exceeded = verify(binned(20_000, 0.06), 0.03)
    assert exceeded.verdict == "exceeded"
    assert not exceeded
    assert exceeded.low > 0.03
    unsure = verify(binned(1000, 0.0), 0.03)
    assert unsure.verdict == "not enough data"
    assert not unsure
    assert unsure.further is not None
    for result in (promised, exceeded, unsure):
        assert result.verdict.split()[0] in str(result)


def test_a_gate_names_the_assumption_of_a_supported_verdict_unless_it_may_rest_on_it() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(5000)
    supported = verify(Predictions.from_probs(p, rng.random(5000) < p), threshold=0.2)
    assert supported.verdict == "supported"
    conclusion = supported.conclusion()
    assert (conclusion.verdict, conclusion.assumption) == ("within", "smooth")
    assert conclusion.metric == "root-mean-square calibration error"
    assert supported.conclusion(assume_smooth=True).assumption is None
    promised = verify(binned(20_000, 0.02), threshold=0.2).conclusion()
    assert (promised.verdict, promised.assumption) == ("within", None)
    exceeded = verify(binned(20_000, 0.2), threshold=0.1).conclusion(assume_smooth=True)
    assert (exceeded.verdict, exceeded.assumption) == ("outside", None)


@pytest.mark.parametrize(("off", "verdict"), [(0.0, "promised"), (0.05, "exceeded")])
def test_the_further_rows_are_about_right(off: float, verdict: str) -> None:
    few = verify(binned(800, off, seed=1), 0.03)
    assert few.verdict == "not enough data"
    assert few.further is not None
    counts = {-1: 0, 1: 0}
    for seed in range(8):
        for side, share in ((-1, 0.25), (1, 4.0)):
            n = 800 + int(few.further * share)
            counts[side] += verify(binned(n, off, seed=seed), 0.03).verdict == verdict
    assert counts[1] >= 6
    assert counts[-1] < counts[1]


def test_an_estimate_below_zero_promises_no_more_than_one_of_zero() -> None:
    zero_estimate = verify(binned(800, 0.0, seed=2), 0.03)
    assert zero_estimate.value == 0.0
    assert zero_estimate.high > 0.04
    assert zero_estimate.verdict == "not enough data"


def test_an_unbalanced_model_is_said_to_be() -> None:
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.5, 0.8], 3000, p=[0.05, 0.15, 0.8])
    result = verify(Predictions.from_probs(p, rng.random(3000) < p))
    assert not result.well_balanced
    assert "not well balanced" in str(result)
    assert result.warnings


def test_class_wise_promises_combine_classes() -> None:
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(40_000, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (logits * 0.7 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    fixed = ScalingBinning(bins=10, normalize=False).fit(probs[:20_000], labels[:20_000])
    after = fixed.recalibrate(Predictions.from_probs(probs[20_000:], labels[20_000:]))
    result = verify(after, 0.02, lens=ClassWise())
    assert result.verdict == "promised"
    assert result.outputs == 30
    assert "3 classes" in result.lens
    before = Predictions.from_probs(probs, labels)
    with pytest.raises(InputError, match="continuous"):
        verify(before, 0.02, lens=ClassWise())


def test_continuous_outputs_are_measured_with_a_warning() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    result = verify(Predictions.from_probs(p, rng.random(20_000) < p), 0.05)
    assert result.verdict == "supported"
    assert not result  # no finite sample can promise it
    assert any("smooth" in assumption for assumption in result.assumes)
    assert result.outputs is None
    assert result.explicit is None
    assert result.well_balanced is None
    assert "ScalingBinning" in result.warnings[0]
    off = Predictions.from_probs(p, rng.random(20_000) < p**2)
    assert verify(off, 0.05).verdict == "exceeded"
    unsure = verify(Predictions.from_probs(p[:300], rng.random(300) < p[:300]), 0.02)
    assert unsure.verdict == "not enough data"
    assert unsure.further is not None
    assert unsure.further > 300


def test_bad_calls() -> None:
    preds = binned(100, 0.0)
    with pytest.raises(InputError, match=r"threshold must lie in \[0, 1\]"):
        verify(preds, 2.0)
    with pytest.raises(InputError, match="level must lie"):
        verify(preds, 0.02, 0.4)
    clustered = Predictions.from_probs(preds.probs, preds.labels, clusters=np.arange(100) // 2)
    with pytest.raises(InputError, match="rows that are independent"):
        verify(clustered, outputs=np.unique(preds.probs))
    with pytest.raises(InputError, match=r"output 0\.\d+ occurs but is not among the outputs given"):
        verify(preds, outputs=[0.5])


def test_clusters_and_importance_weights_support_but_do_not_promise() -> None:
    preds = binned(20_000, 0.0)
    clustered = Predictions.from_probs(preds.probs, preds.labels, clusters=np.arange(20_000) // 2)
    result = verify(clustered, 0.05)
    assert result.verdict == "supported"
    assert any("clusters" in assumption for assumption in result.assumes)
    assert (
        verify(Predictions.from_probs(preds.probs, preds.labels, weights=np.full(20_000, 0.5)), 0.05).verdict
        == "supported"
    )


def test_a_sketch_of_few_outputs_is_promised_like_its_rows() -> None:
    preds = binned(20_000, 0.0)
    of_rows, of_sketch = verify(preds, 0.03), verify(Sketch.from_arrays(preds.probs, preds.labels), 0.03)
    assert (of_sketch.verdict, of_sketch.high) == (of_rows.verdict, of_rows.high)


def test_outputs_never_seen_are_not_promised_away() -> None:
    """Always right at 1.0 says nothing about outputs that did not occur; knowing that there are none does."""
    right = Predictions.from_probs(np.ones(20), np.ones(20, int))
    assert verify(right, 0.001).verdict == "not enough data"
    many = Predictions.from_probs(np.ones(2000), np.ones(2000, int))
    assert verify(many, 0.03).verdict == "not enough data"
    assert verify(many, 0.03, outputs=[1.0]).verdict == "promised"


RARE = {
    "confident": ([0.5, 0.9, 0.99, 0.999, 0.9999], [0.2] * 5, [-0.02] * 5),
    "rare": ([0.2, 0.5, 0.8, 0.95], [0.3, 0.3995, 0.3, 0.0005], [0, 0, 0, -0.9]),
    "rare, half": ([0.2, 0.5, 0.8, 0.95], [0.3, 0.3995, 0.3, 0.0005], [0, 0, 0, -0.5]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RARE)
@pytest.mark.parametrize("n", [200, 20_000])
def test_promises_hold_near_the_ends_and_on_rare_outputs(name: str, n: int) -> None:
    """True error 0.3 % above the threshold, 300 datasets: promised in at most 5 % (binomial test at 0.5 %)."""
    s, shares, off = (np.array(part, float) for part in RARE[name])
    rng = np.random.default_rng(0)
    rates = s + off
    threshold = 0.997 * float(np.sqrt(shares @ off**2))
    false, trials = 0, datasets(300)
    for _ in range(trials):
        counts = rng.multinomial(n, shares)
        cells = OutputCells(
            s, counts.astype(float), rng.binomial(counts, rates).astype(float), np.ones(len(s)), float(n)
        )
        false += rejects(cells, threshold, 0.95)
    assert binomtest(false, trials, 0.05, alternative="greater").pvalue > 0.005


@pytest.mark.slow
@pytest.mark.parametrize(("n", "outputs", "off"), [(400, 5, 0.1), (1000, 15, 0.02), (3000, 60, 0.05), (3000, 15, 0.1)])
def test_a_promise_is_broken_no_more_often_than_stated(n: int, outputs: int, off: float) -> None:
    """True error exactly at the threshold. Broken promises: at most 5 %. False alarms: 7 %, as the documentation says."""
    trials, broken, false_alarms = datasets(300), 0, 0
    for seed in range(trials):
        preds = binned(n, off, outputs, seed)
        profile = Profile.from_arrays(preds.probs, preds.labels)
        broken += rejects(OutputCells.of(profile), off, 0.95)
        false_alarms += OutputCells.of(profile).lower(0.95) > off**2
    assert binomtest(broken, trials, 0.05, alternative="greater").pvalue > 1e-3
    assert binomtest(false_alarms, trials, 0.07, alternative="greater").pvalue > 1e-3


def test_choosing_bins() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    preds = Predictions.from_probs(p, rng.random(4000) < p**2)
    choice = choose_bins(preds, 0.035, bins=[2, 5, 10, 20, 50])
    assert [c.bins for c in choice.candidates] == [2, 5, 10, 20, 50]
    for c in choice.candidates:
        assert c.debiased <= c.plugin
        assert c.debiased <= c.debiased_upper
        assert c.plugin <= c.plugin_upper
    allowed = [c for c in choice.candidates if c.debiased_upper <= 0.035]
    assert choice.recommended == min(allowed, key=lambda c: c.mean_squared_error).bins
    assert choice.recommended_by_plugin is not None
    assert choice.recommended > choice.recommended_by_plugin
    assert choice.frame()[0]["bins"] == 2
    two_columns = Predictions.from_probs(np.column_stack([1 - p, p]), preds.labels)
    same = choose_bins(two_columns, 0.035, bins=[2, 5, 10, 20, 50])
    assert_allclose([c.debiased_upper for c in same.candidates], [c.debiased_upper for c in choice.candidates])
    assert choose_bins(preds, 1e-6, bins=[5]).recommended is None
    with pytest.raises(InputError, match="without weights"):
        choose_bins(Predictions.from_probs(p, preds.labels, weights=np.ones(4000)), 0.03)
    with pytest.raises(InputError, match="fit_share"):
        choose_bins(preds, 0.03, fit_share=1.0)


def test_rows_needed_inverts_the_bound_and_refuses_what_is_no_probability():
    n = rows_needed(0.05, bins=4, error=0.01)
    limits = [
        upper_bound(0.01**2, n=m, bins=4, smallest=0.25, level=0.95, estimator="debiased") for m in (n, 0.99 * n - 1)
    ]
    assert limits[0] <= 0.05**2 < limits[1]
    assert rows_needed(0.05, bins=4, error=0.05) == inf
    for options, message in [
        ({"error": 1e308}, "error must lie strictly between 0 and 1"),
        ({"smallest": 0.0}, "smallest must lie strictly between 0 and 1"),
        ({"threshold": 1.0}, "threshold must lie strictly between 0 and 1"),
    ]:
        with pytest.raises(InputError, match=message):
            rows_needed(**{"bins": 4, **options})
