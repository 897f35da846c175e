"""Estimators, scores and temperatures: Figures 8, 9 and 11 of Minderer et al. (2021), and its appendices D and E."""

from typing import Any

import numpy as np
import polars as pl

import truecal as tc
from truecal.errors import InputError
from truecal.plot.canvas import GREY
from truecal.plot.study.agreement import AgreementDisplay
from truecal.plot.study.bin_trend import BinTrendDisplay
from truecal.plot.study.families import NO_FAMILY, draw_models, frame_of, name_models
from truecal.plot.study.figures.panels import Panel, Shown, StudyFigure, title


def residuals(shown: Shown) -> StudyFigure:
    """Figure 8: log loss and Brier score beyond what the error explains, before and after."""
    there = set(shown.frame["metric"])
    names = [name for name in ("nll", "brier") if name in there]
    if not names:
        raise InputError("the store holds neither nll nor brier")
    rows: list[list[Panel | None]] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        fitted = tc.study.residuals(shown.frame, metrics=names, dataset=shown.clean, **shown.options(recalibrator))
        table = fitted.frame().filter(pl.col("severity") == 0)
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in fitted.notes if note not in notes]
        rows.append(
            [_residual(shown, table.filter(pl.col("metric") == name), name, shown.when(recalibrator)) for name in names]
        )
    return StudyFigure("residuals", rows, pl.concat(tables), tuple(notes), shown.styles)


def _residual(shown: Shown, table: Any, name: str, words: str) -> Panel:
    def draw(ax: Any) -> None:
        ax.axhline(0, color=GREY, linewidth=1, linestyle=":")
        frame = frame_of(table)
        draw_models(ax, frame, "error", "residual", bars=False, styles=shown.styles)
        name_models(ax, frame, "error", "residual")
        ax.set(xlabel="Classification error", ylabel=f"{name} beyond what error explains")
        title(ax, f"{shown.clean}, {words}")

    return draw


def bins(shown: Shown) -> StudyFigure:
    """Figure 9: the slope of calibration on error by number of bins, beside estimators without the bias of bins."""
    row: list[Panel | None] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        options = shown.options(recalibrator)
        trend = tc.study.bin_trend(shown.frame, dataset=shown.clean, **options)
        table = trend.frame().filter(pl.col("severity") == 0)
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in trend.notes if note not in notes]
        row.append(_bin_panel(table, f"{shown.clean}, {shown.when(recalibrator)}"))
    return StudyFigure("bins", [row], pl.concat(tables, how="vertical_relaxed"), tuple(notes))


def _bin_panel(table: Any, words: str) -> Panel:
    def draw(ax: Any) -> None:
        BinTrendDisplay(frame_of(table)).plot(ax)
        title(ax, words)

    return draw


def loglog(shown: Shown) -> StudyFigure:
    """Figure 11: calibration error against error on logarithmic scales, a line per family through all datasets."""
    row: list[Panel | None] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        fits = tc.study.log_fits(shown.frame, metric=shown.metric, **shown.options(recalibrator))
        tables.append(fits.lines().with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in fits.notes if note not in notes]
        row.append(_log_panel(shown, fits, shown.when(recalibrator)))
    return StudyFigure("loglog", [row], pl.concat(tables), tuple(notes), shown.styles)


def _log_panel(shown: Shown, fits: Any, words: str) -> Panel:
    def draw(ax: Any) -> None:
        from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

        table, lines = fits.frame(), fits.lines()
        for family, style in shown.styles.items():
            part = table.filter(pl.col("family").fill_null(NO_FAMILY) == family)
            if not part.height:
                continue
            ax.plot(
                part["error"].to_list(), part["value"].to_list(), linestyle="none", markersize=3, alpha=0.45, **style
            )
            line = lines.filter(pl.col("family").fill_null(NO_FAMILY) == family).row(0, named=True)
            ends = np.array([part["error"].min(), part["error"].max()])
            if line["slope"] is not None and np.isfinite(line["slope"]):
                ax.plot(ends, 10 ** line["intercept"] * ends ** line["slope"], color=style["color"], linewidth=1.4)
        ax.set_xscale("log")
        ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FormatStrFormatter("%g"))
            axis.set_minor_locator(NullLocator())
        ax.set(xlabel="Classification error", ylabel=shown.metric)
        title(ax, words)

    return draw


def temperatures(shown: Shown) -> StudyFigure:
    """Appendix D: the fitted temperature of every model; above 1 the model was overconfident."""
    table = _temperatures(shown)

    def draw(ax: Any) -> None:
        names = sorted(shown.styles)
        for family, style in shown.styles.items():
            part = table.filter(pl.col("family").fill_null(NO_FAMILY) == family).sort("temperature")
            spread = np.linspace(-0.25, 0.25, part.height) if part.height > 1 else [0.0]
            ax.plot([names.index(family) + x for x in spread], part["temperature"].to_list(), linestyle="none", **style)
        ax.axhline(1, color=GREY, linewidth=1, linestyle=":")
        ax.set_xticks(range(len(names)), names, rotation=30, ha="right", parse_math=False)
        ax.set(ylabel="Temperature (above 1: overconfident)")
        title(ax, shown.clean)

    return StudyFigure("temperatures", [[draw]], table, (), {})


def _temperatures(shown: Shown) -> Any:
    """Fitted temperatures, or the best ones on the judged rows where a table from elsewhere has those."""
    about = shown.frame.select("model", "family", "size").unique("model", keep="first")
    fits = shown.store.fits().filter((pl.col("dataset") == shown.clean) & pl.col("temperature").is_not_null())
    if fits.height:
        return fits.join(about, on="model", how="left").sort("family", "model")
    best = shown.frame.filter((pl.col("metric") == "best-temperature") & (pl.col("dataset") == shown.clean))
    if not best.height:
        raise InputError("the store holds no fitted temperatures; ask for the recalibrator temperature")
    return best.select("model", "dataset", pl.col("value").alias("temperature"), "family", "size").sort(
        "family", "model"
    )


def agreement(shown: Shown) -> StudyFigure:
    """Appendix E: how far estimators agree in ranking the models (Kendall's tau)."""
    options = shown.options("none")
    coefficients = tc.study.rank_agreement(shown.frame, dataset=shown.clean, **options)
    table = coefficients.frame().filter(pl.col("severity") == 0)

    def draw(ax: Any) -> None:
        AgreementDisplay(frame_of(table)).plot(ax)
        title(ax, shown.clean)

    count = len({*table["metric_a"], *table["metric_b"]})
    side = max(4.2, 0.35 * count + 1.5)
    return StudyFigure("agreement", [[draw]], table, coefficients.notes, {}, (side, side))
