"""Analyses of a study's results: each against a naive transcription, and what must not change an answer."""

import importlib
import inspect
import itertools
import pkgutil

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import truecal as tc
from tests.simulations import datasets, within
from tests.study.results import frame_of, number, random_study, study
from truecal.study import points
from truecal.study.analyses.base import correlate, fit_line
from truecal.study.analyses.pareto import on_front

# ------------------------------------------------------------------ fronts


def naive_front(x, y):
    def beats(i, j):
        return x[i] <= x[j] and y[i] <= y[j] and (x[i] < x[j] or y[i] < y[j])

    return [not any(beats(i, j) for i in range(len(x))) for j in range(len(x))]


grid = st.integers(0, 6).map(float) | st.just(float("inf"))
plane = st.lists(st.tuples(grid, grid), min_size=1, max_size=25)


@given(plane)
def test_front_is_who_nobody_beats(cloud):
    x, y = np.array(cloud).T
    assert on_front(x, y).tolist() == naive_front(x, y)


@given(plane, st.data())
def test_a_beaten_model_changes_nobody(cloud, data):
    x, y = np.array(cloud).T
    before = on_front(x, y).tolist()
    i = data.draw(st.integers(0, len(x) - 1))
    after = on_front(np.array([*x, x[i] + 1]), np.array([*y, y[i] + 2]))
    if np.isfinite(x[i]) or np.isfinite(y[i]):  # a point worse than (inf, inf) is its equal
        assert after.tolist() == [*before, False]


def test_front_of_nothing():
    assert on_front(np.empty(0), np.empty(0)).tolist() == []


def test_pareto_over_metrics_and_shift():
    metrics = ("rank-series-l2", "ece-mass-100-l1", "nll")
    frame = random_study(9, metrics=metrics, severities=(0.0, 2.0))
    analysis = tc.study.pareto(frame, metrics=metrics)
    table = analysis.frame()
    assert table.height == 9 * 3 * 2
    wide = frame.pivot(on="metric", index=["model", "severity"], values="value", aggregate_function="first")
    on_every = set(wide["model"])
    for metric, severity in itertools.product(metrics, (0.0, 2.0)):
        mask = wide.filter(pl.col("severity") == severity)
        expected = dict(zip(mask["model"], naive_front(mask["error"], mask[metric]), strict=True))
        mask = table.filter((pl.col("metric") == metric) & (pl.col("severity") == severity))
        assert dict(zip(mask["model"], mask["front"], strict=True)) == expected
        on_every &= {model for model, on in expected.items() if on}
    counts = analysis.frame("counts")
    assert set(counts.filter("always")["model"]) == on_every
    assert counts["of"].to_list() == [6] * 9
    assert int(counts["fronts"].sum()) == int(table["front"].sum())
    fronts = table.pivot(on="severity", index=["metric", "model"], values="front")
    assert (fronts["0.0"] == fronts["2.0"]).all()  # a shift that moves all models alike keeps the front


@given(st.integers(0, 10**6))
def test_adding_a_dominated_model_keeps_every_front(seed):
    frame = random_study(6, seed=seed)
    worst = [number("worst", metric, 2.0) for metric in ("error", "rank-series-l2", "ece-mass-100-l1")]
    metrics = ("rank-series-l2", "ece-mass-100-l1")
    before = tc.study.pareto(frame, metrics=metrics)
    after = tc.study.pareto(pl.concat([frame, frame_of(worst)]), metrics=metrics)
    assert after.notes[0] == before.notes[0]  # who is on every front
    same = after.frame().filter(pl.col("model") != "worst").select(before.frame().columns).drop("supported")
    assert same.equals(before.frame().drop("supported"))
    assert not after.frame().filter(pl.col("model") == "worst")["front"].any()


def test_memberships_that_intervals_do_not_support():
    def box(model, error, value):
        return [
            number(model, "error", error, low=error - 0.01, high=error + 0.01),
            number(model, "rank-series-l2", value, low=value - 0.01, high=value + 0.01),
        ]

    rows = [*box("good", 0.1, 0.03), *box("near", 0.105, 0.035), *box("far", 0.3, 0.2), *box("other", 0.4, 0.005)]
    analysis = tc.study.pareto(frame_of(rows))
    values = {r["model"]: (r["front"], r["supported"]) for r in analysis.frame().iter_rows(named=True)}
    assert values == {"good": (True, False), "near": (False, False), "far": (False, True), "other": (True, True)}
    assert "2 of 4 memberships" in " ".join(analysis.notes)
    bare = tc.study.pareto(study([0.1, 0.2, 0.3], {"rank-series-l2": [0.3, 0.2, 0.1]}))
    assert bare.frame()["supported"].to_list() == [None] * 3
    assert "no intervals" in " ".join(bare.notes)


# ------------------------------------------------------------------ points


def test_seeds_are_averaged_and_rows_compared():
    rows = [number("a", "rank-series-l2", v, seed=s, low=v - 0.1, high=v + 0.1) for s, v in enumerate([0.2, 0.4])]
    rows += [number("b", "rank-series-l2", 0.5, n=800)]
    result = points(frame_of(rows), ["rank-series-l2"])
    a, b = result.frame().iter_rows(named=True)
    assert (a["value"], a["low"], a["high"], a["seeds"]) == pytest.approx((0.3, 0.2, 0.4, 2))
    assert b["low"] is None
    assert any("different rows (800 to 1000 of them)" in note and note.endswith("(on digits)") for note in result.notes)
    assert any("different numbers of seeds" in note for note in result.notes)


def test_seeds_further_apart_than_intervals_are_told():
    def two(apart):
        return frame_of(
            [
                number("a", "rank-series-l2", v, seed=s, low=v - 0.1, high=v + 0.1)
                for s, v in enumerate([0.2, 0.2 + apart])
            ]
        )

    assert points(two(0.15), ["rank-series-l2"]).notes == ()
    assert points(two(0.25), ["rank-series-l2"]).notes == (
        "1 of 1 numbers differ between seeds by more than the width of their intervals: "
        "intervals do not include the variation between trainings",
    )


def test_points_say_what_is_wrong():
    frame = random_study(3)
    with pytest.raises(tc.InputError, match="no metric 'ece' among the results; there are ece-mass-100-l1"):
        points(frame, ["ece"])
    with pytest.raises(tc.InputError, match="no dataset 'mnist' among the results; there are digits"):
        points(frame, ["error"], dataset="mnist")
    with pytest.raises(tc.InputError, match="no recalibrator 'temperature'"):
        points(frame, ["error"], recalibrator="temperature")
    with pytest.raises(tc.InputError, match="no column 'family'"):
        points(frame.drop("family"), ["error"])
    with pytest.raises(tc.InputError, match=r"list is not a data frame of polars; pass a store or store.frame\(\)"):
        points([1, 2], ["error"])
    with pytest.raises(tc.InputError, match=r"two values of error for m0 on digits \(seed 0\)"):
        points(pl.concat([frame, frame]), ["error"])
    infinite = pl.concat([frame, frame_of([number("m0", "nll", np.inf), number("m1", "nll", 0.3)])])
    result = points(infinite, ["nll"])
    assert result.frame()["model"].to_list() == ["m1"]
    assert result.notes == ("nll is infinite and left out (m0 on digits)",)


def test_other_frames_are_refused():
    with pytest.raises(tc.InputError, match="is not a data frame of polars"):
        tc.study.pareto(random_study(6).to_pandas())


# ------------------------------------------------------------------ correlations


def test_correlation_is_scipys():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 8, 20), rng.integers(0, 8, 20)
    result = correlate(x, y)
    assert result.value == pytest.approx(stats.kendalltau(x, y)[0], abs=1e-12)
    assert result.low < result.value < result.high


def test_correlation_at_its_limits():
    perfect = correlate(np.arange(8), np.arange(8))
    assert perfect.value == pytest.approx(1)
    assert perfect.low < 0.95 <= perfect.high
    assert np.isnan(correlate([1, 1, 1], [1, 2, 3]).value)
    assert np.isnan(correlate([1, 2, 3], [1, 2, 3]).low)


@pytest.mark.slow
def test_correlation_intervals_hold_the_truth():
    """Normal pairs of known tau: 95 % intervals over 15 models hold it in 93 to 97.5 % of 2000 draws."""
    rng = np.random.default_rng(2)
    rho = 0.6
    truth = 2 / np.pi * np.arcsin(rho)
    x = rng.normal(size=(datasets(2000), 15))
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=x.shape)
    values = [(c := correlate(a, b)).low <= truth <= c.high for a, b in zip(x, y, strict=True)]
    assert within(sum(values), len(values), 0.93, 0.975)


def test_line_is_scipys():
    rng = np.random.default_rng(3)
    x, y = rng.random(12), rng.random(12)
    line, expected = fit_line(x, y), stats.linregress(x, y)
    assert (line.slope, line.intercept) == pytest.approx((expected.slope, expected.intercept))
    assert line.explained == pytest.approx(expected.rvalue**2)
    assert line.slope_high - line.slope == pytest.approx(stats.t.ppf(0.975, 10) * expected.stderr)
    assert np.isnan(fit_line([1, 1], [1, 2]).slope)


def test_error_against_calibration():
    frame = random_study(12)
    analysis = tc.study.error_against_calibration(frame)
    table = analysis.frame()
    assert table["relative_size"].max() == 1
    assert table.filter(pl.col("model") == "m0")["relative_size"].item() == 1 / 8  # sizes 1, 2, 4, 8
    whole = analysis.frame("trends").filter(pl.col("family").is_null()).row(0, named=True)
    expected = stats.linregress(table["error"], table["value"])
    assert whole["slope"] == pytest.approx(expected.slope)
    assert whole["tau"] == pytest.approx(stats.kendalltau(table["error"], table["value"])[0])
    assert sorted(analysis.frame("trends")["family"].drop_nulls()) == ["a", "b", "c"]
    assert any("neighbours in rankings by rank-series-l2 have" in note for note in analysis.notes)
    few = tc.study.error_against_calibration(random_study(4))
    assert any("4 models say little about a correlation" in note for note in few.notes)


# ------------------------------------------------------------------ agreement of rankings


@given(st.integers(3, 12), st.integers(0, 10**6))
def test_tau_is_scipys_and_flips_are_counted(models, seed):
    rng = np.random.default_rng(seed)
    values = {name: rng.integers(0, 6, models) / 10 for name in ("ece-a", "ece-b", "ece-c")}
    frame = study(rng.random(models), values, half=0.12)
    analysis = tc.study.rank_agreement(frame)
    for row in analysis.frame().iter_rows(named=True):
        a, b = values[row["metric_a"]], values[row["metric_b"]]
        expected = stats.kendalltau(a, b)[0]
        assert row["tau"] == pytest.approx(expected, abs=1e-12, nan_ok=True)
        pairs = list(itertools.combinations(range(models), 2))
        flips = [(i, j) for i, j in pairs if (a[i] - a[j]) * (b[i] - b[j]) < 0]
        sure = [(i, j) for i, j in flips if min(abs(a[i] - a[j]), abs(b[i] - b[j])) > 0.24]
        assert (row["pairs"], row["flips"], row["supported_flips"]) == (len(pairs), len(flips), len(sure))


def test_agreement_notes_and_lenses():
    frame = study(np.linspace(0.1, 0.3, 6), {"ece-a": np.arange(6) / 10, "ece-b": np.arange(6)[::-1] / 10}, half=0.3)
    analysis = tc.study.rank_agreement(frame, metrics=["ece-a", "ece-b"])
    assert analysis.frame()["tau"].to_list() == [-1]
    assert any("0 of 15 flips" in note for note in analysis.notes)
    half = frame.with_columns(low=pl.when(pl.col("metric") == "ece-a").then("low"))
    partly = tc.study.rank_agreement(half)
    assert partly.frame()["supported_flips"].to_list() == [None]
    assert any("no intervals of ece-b: which" in note for note in partly.notes)
    assert any("6 models say little" in note for note in analysis.notes)
    with pytest.raises(tc.InputError, match="at least two metrics"):
        tc.study.rank_agreement(frame, metrics=["ece-a"])
    short = frame.filter((pl.col("model") != "m0") | (pl.col("metric") == "ece-a"))
    assert any(
        "models without all of the metrics are left out: m0 (on digits)" in note
        for note in tc.study.rank_agreement(short).notes
    )


# ------------------------------------------------------------------ public names


def test_no_module_of_the_study_hides_a_function():
    for module in pkgutil.iter_modules(tc.study.__path__):
        if not module.name.startswith("example"):  # those need scikit-learn or torch
            importlib.import_module(f"truecal.study.{module.name}")
    for name in tc.study.__all__:
        assert not inspect.ismodule(getattr(tc.study, name)), name
        assert getattr(tc.study, name).__doc__, name
