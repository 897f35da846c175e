"""Drawings of a study's models and of selective prediction: they draw the result's numbers and change nothing else."""

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.lazy import Lazy
from tests.study.results import frame_of, number, random_study
from truecal.plot import AbstentionDisplay
from truecal.plot.study import AgreementDisplay, BinTrendDisplay, draw_models, family_styles, name_models

plt = Lazy("matplotlib.pyplot")


METRICS = ("rank-series-l2", "ece-mass-5-l1", "ece-mass-100-l1", "nll")


@pytest.fixture
def frame():
    return random_study(9, metrics=METRICS, severities=(0.0, 1.0, 2.0))


def drawn(display):
    """Draw for real, which is when matplotlib finds mistakes."""
    display.figure_.canvas.draw()
    return display


def draw_points(frame, ax, **options):
    """The models of the severity 0 by error and value, and their table."""
    table = tc.study.error_against_calibration(frame).frame().filter(pl.col("severity") == 0)
    draw_models(ax, table, "error", "value", family_styles(table["family"].unique().to_list()), **options)
    return table


def test_every_model_is_a_dot_sized_within_its_family(frame):
    from matplotlib.collections import LineCollection, PathCollection

    figure, ax = plt.subplots()
    table = draw_points(frame, ax)
    figure.canvas.draw()
    groups = [c for c in ax.collections if isinstance(c, PathCollection)]
    dots = sorted(tuple(point) for group in groups for point in np.asarray(group.get_offsets()).tolist())
    assert dots == sorted(table.select("error", "value").iter_rows())
    assert {len(set(group.get_sizes())) for group in groups} == {3}  # three sizes in each family
    segments = sum(len(c.get_segments()) for c in ax.collections if isinstance(c, LineCollection))
    assert segments == table.height  # an interval of the value; errors of this study have none


def test_sizes_that_are_unknown_are_drawn_alike():
    figure, ax = plt.subplots(figsize=(6, 5))
    rows = [number(f"m{i}", name, 0.1 * i) for i in range(6) for name in ("error", "rank-series-l2")]
    draw_points(frame_of(rows), ax, bars=False)
    figure.canvas.draw()
    (group,) = ax.collections
    assert group.get_sizes().tolist() == [40] * 6


def test_hostile_names_are_text(frame):
    figure, ax = plt.subplots()
    table = draw_points(frame.with_columns(family=pl.lit("$x^{"), model=pl.col("model") + "$_$"), ax)
    name_models(ax, table, "error", "value")
    figure.canvas.draw()
    assert ax.texts[0].get_text().endswith("$_$")


def test_families_can_be_told_apart():
    styles = family_styles([f"family {i}" for i in range(55)])
    assert len({(style["color"], style["marker"]) for style in styles.values()}) == 55


def test_bin_trend(frame):
    result = tc.study.bin_trend(frame)
    table = result.frame().filter(pl.col("severity") == 0)
    display = drawn(BinTrendDisplay(table).plot())
    rows = {row["metric"]: row["slope"] for row in table.iter_rows(named=True)}
    values = [y for line in display.ax_.lines[1:] if len(line.get_xdata()) for y in line.get_ydata()]
    assert {rows["ece-mass-5-l1"], rows["ece-mass-100-l1"], rows["rank-series-l2"]} <= set(values)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["5", "100", "rank-series-l2"]


def test_agreement(frame):
    result = tc.study.rank_agreement(frame)
    table = result.frame().filter(pl.col("severity") == 0)
    display = drawn(AgreementDisplay(table).plot())
    row = table.row(0, named=True)
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
