"""The metric grid against estimators called one by one, and against a plain transcription of the binned error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from tests.simulations import datasets, within
from truecal.study.metrics import (
    GRID,
    GRID_BINS,
    diagram,
    measure_lens,
    measure_scores,
    metrics_of,
    parse_metric,
)

LENSES = {
    "top-label": tc.TopLabel(),
    "all-label": tc.AllLabels(),
    "class-wise": tc.ClassWise(),
    "class:1": tc.OneClass(1),
}
MANY = (GRID, "nearest-l2", "rank-series-l1", "rank-series-l2", "exact-10-l2", "sweep-width-max", "sweep-mass-l2")


def preds_of(n=300, classes=4, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(classes, 0.5), n)
    labels = np.array([rng.choice(classes, p=p) for p in probs])
    if ties:  # tenths: many equal scores, all of them on edges of bins
        probs = rng.multinomial(10, probs) / 10
    return tc.Predictions.from_probs(probs, labels)


def naive_ece(scores, outcomes, scheme, bins, norm):
    order = np.argsort(scores, kind="stable")
    scores, outcomes = scores[order], outcomes[order]
    n = len(scores)
    if scheme == "width":
        edges = np.arange(bins + 1) / bins
        member = np.minimum(np.searchsorted(edges, scores, "right") - 1, bins - 1)
    else:
        member = np.empty(n, int)
        for k in range(bins):
            member[-(-k * n // bins) : -(-(k + 1) * n // bins)] = k
    gaps = [
        (np.count_nonzero(member == k) / n, abs(scores[member == k].mean() - outcomes[member == k].mean()))
        for k in np.unique(member)
    ]
    if norm == np.inf:
        return max(gap for _, gap in gaps)
    return sum(share * gap**norm for share, gap in gaps) ** (1 / norm)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("lens", LENSES)
def test_every_metric_equals_its_estimator(lens, ties):
    preds = preds_of(ties=ties)
    metrics = metrics_of(MANY, lens)
    result = measure_lens(preds, LENSES[lens], metrics)
    assert [one.metric for one in result] == list(metrics)
    for one in result:
        estimator = one.metric.estimator()
        if lens == "class-wise" or one.metric.kind == "rank":
            direct = tc.measure(preds, lens=LENSES[lens], estimator=estimator)
        else:
            direct = estimator(LENSES[lens](preds))
        assert one.value == pytest.approx(direct.value, abs=1e-12), one.metric.name
        assert one.n == direct.n
        if one.metric.kind == "rank" and lens not in ("all-label", "class-wise"):
            assert (one.low, one.high) == pytest.approx((direct.interval.low, direct.interval.high), abs=1e-12)
        elif not one.metric.is_resampled or lens in ("all-label", "class-wise"):
            assert one.low is None


@given(
    n=st.integers(20, 200),
    scheme=st.sampled_from(["width", "mass"]),
    bins=st.integers(1, 20),
    norm=st.sampled_from(["l1", "l2", "max"]),
    seed=st.integers(0, 1000),
)
def test_binned_errors_against_the_definition(n, scheme, bins, norm, seed):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    outcomes = (rng.random(n) < scores**2).astype(int)
    preds = tc.Predictions.from_probs(scores, outcomes)
    metric = parse_metric(f"ece-{scheme}-{bins}-{norm}")
    (result,) = measure_lens(preds, tc.OneClass(), [metric])
    assert result.value == pytest.approx(naive_ece(scores, outcomes, scheme, bins, metric.norm), abs=1e-12)


def test_class_wise_in_blocks(monkeypatch):
    preds = preds_of()
    metrics = metrics_of((GRID, "rank-series-l2"), "class-wise")
    whole = measure_lens(preds, tc.ClassWise(), metrics)
    monkeypatch.setattr("truecal.lenses.lens._BLOCK", 300)
    for one, other in zip(whole, measure_lens(preds, tc.ClassWise(), metrics), strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-12)


def test_bootstrap_intervals_are_those_of_measure():
    preds = preds_of()
    metrics = [parse_metric(name) for name in ("ece-mass-15-l1", "sweep-mass-l2")]
    for one in measure_lens(preds, tc.TopLabel(), metrics, intervals="bootstrap"):
        direct = tc.measure(preds, lens=tc.TopLabel(), estimator=one.metric.estimator()).interval
        assert (one.low, one.high) == pytest.approx((direct.low, direct.high), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_interval_of_the_rank_series_is_that_of_measure(seed):
    """Calibrated and nearly calibrated rows, where the test of calibration decides the lower limit."""
    rng = np.random.default_rng(seed)
    p = rng.random(600)
    preds = tc.Predictions.from_probs(p, rng.random(600) < p ** (1 + 0.1 * (seed % 4)))
    for norm in ("l1", "l2"):
        (one,) = measure_lens(preds, tc.OneClass(), [parse_metric(f"rank-series-{norm}")])
        direct = tc.measure(preds, lens=tc.OneClass(), estimator=one.metric.estimator())
        assert (one.value, one.low, one.high) == (direct.value, direct.interval.low, direct.interval.high)


def scored(preds, metrics, *, level=0.95):
    return measure_scores(preds, tc.TopLabel().sample(preds), metrics, intervals=True, level=level)


def test_scores():
    preds = preds_of(n=500)
    values = {one.metric.name: one for one in scored(preds, metrics_of((GRID,), ""), level=0.9)}
    assert values["nll"].value == pytest.approx(tc.scores.log_loss(preds), abs=1e-12)
    assert values["brier"].value == pytest.approx(tc.scores.brier(preds), abs=1e-12)
    assert values["error"].value == pytest.approx(1 - tc.scores.accuracy(preds), abs=1e-12)
    assert values["confidence"].value == pytest.approx(tc.scores.mean_confidence(preds), abs=1e-12)
    losses = -np.log(preds.probs[np.arange(500), preds.labels])
    margin = 1.6448536269514722 * losses.std(ddof=1) / np.sqrt(500)
    assert values["nll"].high - values["nll"].value == pytest.approx(margin)
    top = preds.probs.max(axis=1)
    assert values["confidence"].value - values["confidence"].low == pytest.approx(
        1.6448536269514722 * top.std(ddof=1) / np.sqrt(500)
    )


@pytest.mark.slow
def test_wilson_interval_of_the_error_covers():
    """90 % interval of an error rate of 5 % from 200 rows: covered in 0.85 to 0.95 of 400 datasets."""
    rng = np.random.default_rng(5)
    covered, trials = 0, datasets(400)
    for _ in range(trials):
        preds = tc.Predictions.from_probs(np.full(200, 0.9), (rng.random(200) < 0.95).astype(int))
        metric = parse_metric("error")
        (result,) = scored(preds, [metric], level=0.9)
        covered += result.low <= 0.05 <= result.high
    assert within(covered, trials, 0.85, 0.95)


def test_a_label_of_probability_zero_has_infinite_loss_and_no_interval():
    preds = tc.Predictions.from_probs([[1.0, 0.0], [0.5, 0.5]], [1, 0])
    (result,) = scored(preds, [parse_metric("nll")])
    assert result.value == np.inf
    assert result.low is None
    assert result.warnings == ("a label was given probability 0",)


def test_the_grid_holds_the_whole_product():
    names = {metric.name for metric in metrics_of((GRID,), "top-label")}
    for scheme in ("width", "mass"):
        for bins in GRID_BINS:
            assert {f"ece-{scheme}-{bins}-{norm}" for norm in ("l1", "l2", "max")} <= names
    assert {"sweep-mass-l1", "debiased-15-l2", "rank-series-l2"} <= names
    assert {metric.name for metric in metrics_of((GRID,), "")} == {"nll", "brier", "error", "confidence"}


def test_diagrams_hold_every_row_once():
    profile = tc.TopLabel()(preds_of(n=301))
    rows = diagram(profile)
    for scheme in ("mass", "width"):
        part = [row for row in rows if row["scheme"] == scheme]
        assert sum(row["count"] for row in part) == 301
        gap = sum(row["count"] * abs(row["confidence"] - row["outcome"]) for row in part) / 301
        assert gap == pytest.approx(tc.BinnedECE(bins=15, scheme=scheme)(profile).value, abs=1e-12)
        assert all(row["low"] <= row["confidence"] + 1e-12 <= row["high"] + 2e-12 for row in part)
