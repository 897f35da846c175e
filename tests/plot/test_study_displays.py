"""Displays of a study's analyses and of selective prediction: they draw the result's numbers and change nothing else."""

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.lazy import Lazy
from tests.study.results import frame_of, number, random_study
from truecal.plot import (
    AbstentionDisplay,
    AgreementDisplay,
    BinTrendDisplay,
    CostMapDisplay,
    ErrorCalibrationDisplay,
    InOutDisplay,
    ParetoDisplay,
    RecalibrationDisplay,
    ResidualDisplay,
    ShiftDisplay,
)
from truecal.plot.study import family_styles

plt = Lazy("matplotlib.pyplot")


METRICS = ("rank-series-l2", "ece-mass-5-l1", "ece-mass-100-l1", "nll")


@pytest.fixture
def frame():
    return random_study(9, metrics=METRICS, severities=(0.0, 1.0, 2.0))


def drawn(display):
    """Draw for real, which is when matplotlib finds mistakes."""
    display.figure_.canvas.draw()
    return display


def scattered(ax):
    from matplotlib.collections import PathCollection

    return [c for c in ax.collections if isinstance(c, PathCollection)]


def dots(ax):
    """Everything scattered, in one array, sorted."""
    return np.array(sorted(tuple(p) for c in scattered(ax) for p in c.get_offsets().data))


def sorted_points(x, y):
    return np.array(sorted(zip(x, y, strict=True)))


def test_error_calibration(frame):
    result = tc.study.error_against_calibration(frame)
    display = drawn(ErrorCalibrationDisplay.from_result(result, severity=1.0))
    table = result.frame().filter(pl.col("severity") == 1)
    assert dots(display.ax_) == pytest.approx(sorted_points(table["error"], table["value"]))
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b", "c"]
    assert display.frame()["model"].tolist() == table["model"].to_list()
    sizes = {len(set(c.get_sizes())) for c in scattered(display.ax_)}
    assert sizes == {3}  # three sizes in each family
    with pytest.raises(tc.InputError, match="more than one severity to draw; choose severity= one of 0, 1, 2"):
        ErrorCalibrationDisplay.from_result(result)
    with pytest.raises(tc.InputError, match=r"no severity 5\.0 to draw"):
        ErrorCalibrationDisplay.from_result(result, severity=5.0)


def test_hostile_names_are_text(frame):
    odd = frame.with_columns(family=pl.lit("$x^{"), model=pl.col("model") + "$_$")
    display = drawn(ErrorCalibrationDisplay.from_result(tc.study.error_against_calibration(odd), severity=0.0))
    assert display.ax_.get_legend().get_texts()[0].get_text() == "$x^{"
    assert display.ax_.texts[0].get_text().endswith("$_$")


def test_families_can_be_told_apart():
    styles = family_styles([f"family {i}" for i in range(55)])
    assert len({(style["color"], style["marker"]) for style in styles.values()}) == 55


def test_pareto_from_result(frame):
    result = tc.study.pareto(frame, metrics=METRICS[:2])
    display = drawn(ParetoDisplay.from_result(result, metric="ece-mass-5-l1", severity=0.0))
    table = result.frame().filter((pl.col("metric") == "ece-mass-5-l1") & (pl.col("severity") == 0))
    assert display.frame()["front"].tolist() == table["front"].to_list()
    assert display.ax_.get_ylabel() == "ece-mass-5-l1"


def test_recalibration(frame):
    after = frame.with_columns(recalibrator=pl.lit("temperature"), value=pl.col("value") * 0.5)
    result = tc.study.effect_of_recalibration(pl.concat([frame, after]))
    display = drawn(RecalibrationDisplay.from_result(result, severity=0.0))
    lines = [line.get_ydata().tolist() for line in display.ax_.lines]
    table = result.frame().filter(pl.col("severity") == 0)
    assert lines == [list(pair) for pair in table.select("before", "after").rows()]
    assert len(dots(display.ax_)) == 18


def test_shift(frame):
    result = tc.study.shift(frame)
    display = drawn(ShiftDisplay.from_result(result))
    assert len(display.ax_.lines) == 9
    first = result.frame().filter(pl.col("model") == "m0").sort("severity")
    assert display.ax_.lines[0].get_ydata().tolist() == first["value"].to_list()
    assert display.ax_.get_ylabel() == "rank-series-l2"
    assert len({(line.get_marker(), line.get_linestyle()) for line in display.ax_.lines}) == 3
    other = ShiftDisplay.from_result(result, value="error_increase", dataset="digits")
    assert other.ax_.get_ylabel() == "error increase"


def test_in_out(frame):
    result = tc.study.in_and_out(frame)
    display = drawn(InOutDisplay.from_result(result, severity=2.0))
    table = result.frame().filter(pl.col("severity") == 2)
    assert dots(display.ax_) == pytest.approx(sorted_points(table["inside"], table["outside"]))


def test_residuals(frame):
    result = tc.study.residuals(frame, metrics=["nll"])
    display = drawn(ResidualDisplay.from_result(result, severity=0.0))
    table = result.frame().filter(pl.col("severity") == 0)
    assert dots(display.ax_) == pytest.approx(sorted_points(table["error"], table["residual"]))
    assert display.ax_.get_ylabel() == "nll beyond what error explains"


def test_bin_trend(frame):
    result = tc.study.bin_trend(frame)
    display = drawn(BinTrendDisplay.from_result(result, severity=0.0))
    rows = {row["metric"]: row["slope"] for row in result.frame().filter(pl.col("severity") == 0).iter_rows(named=True)}
    values = [y for line in display.ax_.lines[1:] if len(line.get_xdata()) for y in line.get_ydata()]
    assert {rows["ece-mass-5-l1"], rows["ece-mass-100-l1"], rows["rank-series-l2"]} <= set(values)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["5", "100", "rank-series-l2"]


def test_agreement(frame):
    result = tc.study.rank_agreement(frame)
    display = drawn(AgreementDisplay.from_result(result, severity=0.0))
    row = result.frame().filter(pl.col("severity") == 0).row(0, named=True)
    names = display.names()
    assert display.table()[names.index(row["metric_a"]), names.index(row["metric_b"])] == row["tau"]
    assert np.array_equal(display.table(), display.table().T)
    assert len(display.ax_.texts) == len(names) ** 2


def two_models():
    rng = np.random.default_rng(0)
    c = 0.5 + 0.5 * rng.random(400)
    y = (rng.random(400) < c).astype(int)
    return tc.Predictions.from_probs(c, y), tc.Predictions.from_probs(np.clip(c - 0.2 * rng.random(400), 0, 1), y)


def test_risk_coverage_curves():
    a, b = two_models()
    curves = {name: tc.selective.risk_coverage(preds, resamples=50) for name, preds in (("a", a), ("b", b))}
    display = drawn(AbstentionDisplay.from_curves(curves))
    assert display.ax_.lines[0].get_ydata().tolist() == curves["a"].frame()["risk"].tolist()
    assert len(display.ax_.collections) == 2  # a band for each
    assert list(display.frame()["series"]) == ["a"] * 100 + ["b"] * 100


def test_cost_map():
    result = tc.selective.cost_map(*two_models(), rates=[0.0, 0.2, 0.5], cost_ratios=[0.1, 0.5], resamples=50)
    display = drawn(CostMapDisplay.from_result(result, names=("first", "second $")))
    assert display.table() == pytest.approx(result.relative)
    mesh = display.ax_.collections[0]
    assert mesh.get_array().data.ravel() == pytest.approx(result.relative.ravel())
    hatched = [patch.get_hatch() for patch in display.ax_.patches]
    assert hatched == ["///"] * int((~result.supported).sum())
    assert hatched  # so that the line above says something
    assert "second $" in display.ax_.get_title()
    one = CostMapDisplay.from_result(tc.selective.cost_map(*two_models(), rates=[0.2], cost_ratios=[0.1], resamples=50))
    assert drawn(one).table().shape == (1, 1)


def test_given_axes_are_used(frame):
    figure, (left, right) = plt.subplots(1, 2)
    rows = [number(f"m{i}", name, 0.1 * i) for i in range(6) for name in ("error", "rank-series-l2")]
    result = tc.study.error_against_calibration(frame_of(rows))
    display = drawn(ErrorCalibrationDisplay.from_result(result, ax=right))
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.collections
    assert right.get_legend() is None  # no families, nothing to explain
