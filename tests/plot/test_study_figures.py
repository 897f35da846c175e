"""The figures of a store: they draw from numbers alone where they can, and say why where they cannot."""

from functools import cache

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.study.public_table import NATURAL, about_models, public_diagrams, public_table
from tests.study.studies import write_files, write_study
from truecal.plot.figures import FIGURES, draw_figure

FROM_NUMBERS = list(FIGURES)


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    public_table(models=48, variants=7).write_csv(folder / "all.csv")
    public_diagrams(models=48, datasets=NATURAL[:1]).write_csv(folder / "bins.csv")
    about = about_models(48).with_columns(data=pl.Series([("jft", "in1k")[i % 2] for i in range(48)]))
    about.write_csv(folder / "a.csv")
    return tc.study.import_table(
        folder / "all.csv",
        folder / "store",
        preset="revisiting-calibration",
        diagrams=folder / "bins.csv",
        about=folder / "a.csv",
    )


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    write_files(folder, models=[f"m{i}" for i in range(5)], severities=(0, 1, 2), rows=150)
    models = "models:\n" + "".join(f"  m{i}: {{family: {'ab'[i % 2]}, size: {i + 1}}}\n" for i in range(5))
    more = "recalibrators: [temperature]\nmetrics: [error, nll, brier, ece-mass-10-l2, ece-mass-5-l2, rank-series-l2]\n"
    return tc.study.Study.read(write_study(folder, more + models)).run(folder / "store", workers=1)


@pytest.fixture(scope="module")
def plotted(imported):
    """Draw a figure of the imported numbers, once for all tests that look at it."""
    return cache(lambda name, **options: draw_figure(imported, name, **options).plot())


@pytest.mark.parametrize("name", FROM_NUMBERS)
def test_figures_draw_from_measured_numbers(plotted, name):
    drawn = plotted(name, **({"covariate": "data"} if name == "covariate" else {}))
    drawn.figure_.canvas.draw()
    assert drawn.frame().height > 0
    visible = [ax for ax in drawn.figure_.axes if ax.get_visible()]
    assert all(ax.has_data() for ax in visible)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw_from_an_evaluated_study(evaluated, name):
    drawn = draw_figure(evaluated, name).plot()
    drawn.figure_.canvas.draw()
    assert drawn.frame().height > 0


def test_figure_1_draws_the_histogram_of_equal_width_bins(plotted):
    drawn = plotted("families")
    widths = {round(bar.get_width(), 9) for ax in drawn.figure_.axes[1:] for bar in ax.patches}
    assert widths == {0.1}


def test_figure_5_has_a_row_of_errors_and_figure_8_five_rows_of_four_datasets(imported):
    panels = {name: draw_figure(imported, name).panels for name in ("sizes", "residuals", "bins", "covariate")}
    assert {name: (len(rows), len(rows[0])) for name, rows in panels.items()} == {
        "sizes": (2, 2),
        "residuals": (5, 4),
        "bins": (2, 4),
        "covariate": (1, 2),
    }


def test_figure_4_has_one_height_for_all_families(plotted):
    drawn = plotted("severities")
    rows = [[ax.get_ylim() for ax in drawn.figure_.axes[start : start + 16]] for start in (0, 16)]
    assert all(len(set(row)) == 1 for row in rows)
    labels = {ax.get_ylabel().rpartition("\n")[2] for ax in drawn.figure_.axes if ax.get_ylabel()}
    assert labels == {"before recalibration", "after temperature"}


def test_before_and_after_are_said_and_different(plotted):
    drawn = plotted("recalibration")
    titles = [ax.get_title() for ax in drawn.figure_.axes]
    assert titles == ["imagenet, before recalibration", "imagenet, after temperature"]
    means = dict(drawn.frame().group_by("recalibrator").agg(pl.col("value").mean()).iter_rows())
    assert means["temperature"] < means["none"]


def test_severities_are_means_over_types(imported):
    analysis = tc.study.shift(imported.frame(), metric="ece-mass-100-l1", reference=imported.references()).frame()
    frame = imported.frame().filter(
        (pl.col("metric") == "ece-mass-100-l1") & (pl.col("recalibrator") == "none") & (pl.col("selection") == "all")
    )
    for row in analysis.sample(20, seed=0).iter_rows(named=True):
        mask = frame.filter((pl.col("model") == row["model"]) & (pl.col("severity") == row["severity"]))
        if row["severity"] == 0:
            mask = mask.filter(pl.col("dataset") == "imagenet")
        values = mask["value"].to_numpy()
        assert row["types"] == len(values) == (15 if row["severity"] else 1)
        assert row["value"] == pytest.approx(values.mean(), abs=1e-12)
        if row["severity"]:
            reach = 2.1447866879169273 * values.std(ddof=1) / np.sqrt(15)  # Student's, 14 degrees of freedom
            assert row["value_high"] - row["value"] == pytest.approx(reach, rel=1e-9)
        else:
            assert row["value_low"] is None
    largest = analysis.filter(pl.col("relative_size") == 1.0)
    assert largest["value_beside_largest"].min() <= 0


def test_lines_of_families_on_logarithmic_scales(imported):
    lines = tc.study.log_fits(imported.frame(), metric="ece-mass-100-l1").frame("lines")
    frame = tc.study.log_fits(imported.frame(), metric="ece-mass-100-l1").frame()
    for row in lines.iter_rows(named=True):
        part = frame.filter(pl.col("family") == row["family"])
        slope, intercept = np.polyfit(np.log10(part["error"]), np.log10(part["value"]), 1)
        assert (row["slope"], row["intercept"]) == (pytest.approx(slope), pytest.approx(intercept))
        assert row["slope_low"] < slope < row["slope_high"]
        assert row["points"] == 3 * 79


def test_trends_with_covariates_of_numbers(imported):
    analysis = tc.study.covariate_trend(imported.frame(), "data", metric="ece-mass-100-l1", dataset="imagenet")
    assert analysis.frame("trends").height == 0
    sizes = tc.study.covariate_trend(imported.frame(), "size", metric="ece-mass-100-l1", dataset="imagenet")
    assert sizes.frame("trends").filter(pl.col("family").is_null())["models"].to_list() == [48]
    with pytest.raises(tc.InputError, match="no covariate 'depth' in the results; there are"):
        tc.study.covariate_trend(imported, "depth", metric="error")


@pytest.mark.parametrize("name", [np.zeros(2), pl.Series(["digits"]), object(), 3])
def test_names_that_are_not_text_are_refused(evaluated, name):
    frame = evaluated.frame()
    for call in (
        lambda: tc.study.covariate_trend(frame, "size", recalibrator=name),
        lambda: tc.study.residuals(frame, dataset=name),
        lambda: tc.study.pareto(frame, selection=name),
        lambda: tc.study.covariate_trend(frame, name),
        lambda: tc.study.shift(frame, metric=name),
        lambda: tc.study.rank(frame, lens=name),
    ):
        with pytest.raises(tc.InputError, match=r"must be|there is no"):
            call()


def test_what_cannot_be_drawn_says_why(imported, evaluated):
    with pytest.raises(tc.InputError, match="there is no metric 'x'"):
        draw_figure(imported, "families", metric="x")
    with pytest.raises(tc.InputError, match="there is no dataset 'x'"):
        draw_figure(imported, "families", dataset="x")
    with pytest.raises(tc.InputError, match="figure must be"):
        draw_figure(imported, "pie")


@pytest.mark.parametrize("name", ["recalibration", "covariate", "severities", "natural"])
def test_panels_that_share_an_axis_show_all_models(plotted, name):
    drawn = plotted(name)
    panels = [ax for ax in drawn.figure_.axes if ax.get_visible()]
    for ax in panels:
        bottom, top = ax.get_ylim()
        heights = np.concatenate([points.get_offsets()[:, 1] for points in ax.collections if len(points.get_offsets())])
        assert bottom == 0
        assert heights.max() < top
    labels = [ax.get_ylabel() for ax in panels if ax.get_ylabel()]
    assert len(labels) == len(drawn.panels)
    assert all(label.startswith("Calibration error\n(ece-mass-100-l1)") for label in labels)


def test_a_figure_of_one_panel_fits_a_column(plotted):
    assert plotted("temperatures").figure_.get_size_inches()[0] == 3.25


def test_models_are_coloured_by_any_covariate(imported):
    drawn = draw_figure(imported, "recalibration", colour="data").plot()
    (legend,) = drawn.figure_.legends
    assert {text.get_text() for text in legend.get_texts()} == {"jft", "in1k"}
    with pytest.raises(tc.InputError, match="there is no covariate 'weather'"):
        draw_figure(imported, "recalibration", colour="weather")
