"""Models by error and calibration: Figures 1, 2, 3, 6 and 10 of Minderer et al. (2021)."""

from typing import Any

import polars as pl

import truecal as tc
from truecal.errors import InputError
from truecal.plot.canvas import BLUE, GREY
from truecal.plot.study.families import draw_models, families_of, frame_of, name_models
from truecal.plot.study.figures.panels import Panel, Shown, StudyFigure, title

_DIAGRAMS = 6  # reliability diagrams beside the scatter


def clouds(shown: Shown, table: Any, words: str, recalibrator: str = "") -> Panel:
    """A panel of models by error and metric, with the points from elsewhere that belong to a recalibrator."""
    points = [point for point in shown.choice.external if point.recalibrator == recalibrator]

    def draw(ax: Any) -> None:
        frame = frame_of(table)
        draw_models(ax, frame, "error", "value", bars=table.height <= 30, styles=shown.styles)
        for point in points:
            ax.plot(point.error, point.value, marker="*", markersize=12, color="black", linestyle="none", zorder=4)
            place = {"xytext": (6, 5), "textcoords": "offset points", "fontsize": "small", "parse_math": False}
            ax.annotate(point.name, (point.error, point.value), **place)
        ax.set(xlabel="Classification error", ylabel=shown.metric)
        ax.set_ylim(bottom=0)
        name_models(ax, frame, "error", "value")
        title(ax, words)

    return draw


def _on(shown: Shown, dataset: str, recalibrator: str) -> Any:
    """Error and calibration of all models on one dataset."""
    options = shown.options(recalibrator)
    return tc.study.error_against_calibration(shown.frame, metric=shown.metric, dataset=dataset, **options)


def on(table: Any, dataset: str, severity: float = 0.0) -> Any:
    return table.filter((pl.col("dataset") == dataset) & (pl.col("severity") == severity))


def families(shown: Shown) -> StudyFigure:
    """Figure 1: calibration against error by family; beside it reliability diagrams and histograms of confidence."""
    points = _on(shown, shown.clean, "none")
    table = on(points.frame(), shown.clean)
    drawn = diagram_panels(shown, table)
    rows: list[list[Panel | None]] = [[clouds(shown, table, f"{shown.clean}, before recalibration", "none")]]
    for start in range(0, len(drawn), 3):
        part: list[Panel | None] = [panel for panel in drawn[start : start + 3]]
        if start == 0:
            rows[0] += part
        else:
            rows.append([None, *part])
    notes = points.notes if drawn else (*points.notes, "the store holds no reliability diagrams of these models")
    return StudyFigure("families", rows, table, notes, shown.styles)


def diagram_panels(shown: Shown, table: Any) -> list[Panel]:
    """Reliability diagrams of the models asked for, or of the most accurate model of every family."""
    wanted = list(shown.choice.models)
    if not wanted:
        best = table.sort("error").unique("family", keep="first", maintain_order=True)
        wanted = best["model"].to_list()[:_DIAGRAMS]
    jobs = shown.frame.filter(
        (pl.col("dataset") == shown.clean) & (pl.col("severity") == 0) & pl.col("model").is_in(wanted)
    ).select("job", "model", "seed")
    first = jobs.sort("seed").unique("model", keep="first")
    bins = (
        shown.store.diagrams()
        .join(first, on="job")
        .filter(
            (pl.col("lens") == shown.choice.lens)
            & (pl.col("recalibrator") == "none")
            & (pl.col("selection") == shown.choice.selection)
        )
    )
    scheme = "mass" if "mass" in bins["scheme"] else "width"
    bins = bins.filter(pl.col("scheme") == scheme).sort("bin")
    return [_diagram(part, str(model)) for model in wanted if (part := bins.filter(pl.col("model") == model)).height]


def _diagram(bins: Any, model: str) -> Panel:
    def draw(ax: Any) -> None:
        share = bins["count"] / bins["count"].sum()
        width = (bins["high"] - bins["low"]).clip(0.005).to_list()
        ax.bar(bins["low"].to_list(), share.to_list(), width, align="edge", color=GREY, alpha=0.35, linewidth=0)
        ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
        ax.plot(bins["confidence"].to_list(), bins["outcome"].to_list(), marker="o", markersize=3.5, color=BLUE)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="Confidence (bars: share of rows)", ylabel="Accuracy")
        title(ax, model)

    return draw


def recalibration(shown: Shown) -> StudyFigure:
    """Figure 2: calibration against error, before and after recalibration side by side."""
    row: list[Panel | None] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        points = _on(shown, shown.clean, recalibrator)
        table = on(points.frame(), shown.clean)
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in points.notes if note not in notes]
        row.append(clouds(shown, table, f"{shown.clean}, {shown.when(recalibrator)}", recalibrator))
    return StudyFigure("recalibration", [row], pl.concat(tables), tuple(notes), shown.styles)


def natural(shown: Shown) -> StudyFigure:
    """Figure 6: the clean and the naturally shifted datasets side by side, before and after recalibration."""
    shifted = set(shown.frame.filter(pl.col("severity") > 0)["dataset"].unique())
    names = [name for name in shown.frame["dataset"].unique(maintain_order=True).to_list() if name not in shifted]
    names = [shown.clean, *(name for name in names if name != shown.clean)]
    rows: list[list[Panel | None]] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        row: list[Panel | None] = []
        for name in names:
            points = _on(shown, name, recalibrator)
            part = on(points.frame(), name)
            row.append(clouds(shown, part, f"{name}, {shown.when(recalibrator)}"))
            tables.append(part.with_columns(recalibrator=pl.lit(recalibrator)))
            notes += [note for note in points.notes if note not in notes]
        rows.append(row)
    return StudyFigure("natural", rows, pl.concat(tables), tuple(notes), shown.styles)


def covariate(shown: Shown) -> StudyFigure:
    """Figures 3 and 10: error and calibration against a covariate (pretraining data, steps, size), before and after."""
    name = shown.choice.covariate or "size"
    rows: list[list[Panel | None]] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        options = shown.options(recalibrator)
        trend = tc.study.covariate_trend(shown.frame, name, metric=shown.metric, dataset=shown.clean, **options)
        table = on(trend.frame(), shown.clean)
        if not table.height:
            raise InputError(f"no model on {shown.clean} has a value of {name}")
        words = f"{shown.clean}, {shown.when(recalibrator)}"
        rows.append([_against(shown, table, name, y, words) for y in ("value", "error")])
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in trend.notes if note not in notes]
    return StudyFigure("covariate", rows, pl.concat(tables), tuple(notes), shown.styles)


def _against(shown: Shown, table: Any, name: str, y: str, words: str) -> Panel:
    """Lines of families over the values of a covariate; a text is drawn at equal distances in its order."""

    def draw(ax: Any) -> None:
        numeric = table[name].dtype.is_numeric()
        levels = table[name].unique().sort().to_list()
        place = {level: level if numeric else i for i, level in enumerate(levels)}
        of_row = families_of(frame_of(table))
        for family, style in shown.styles.items():
            rows = [i for i, one in enumerate(of_row) if one == family]
            if not rows:
                continue
            across, up = [place[table[name][i]] for i in rows], [table[y][i] for i in rows]
            ax.plot(across, up, linestyle="none", alpha=0.8, markersize=5, **style)
            means = sorted({x: _mean([v for a, v in zip(across, up, strict=True) if a == x]) for x in across}.items())
            ax.plot(*zip(*means, strict=True), color=style["color"], linewidth=1)
        if numeric and len(levels) > 1 and levels[0] > 0 and levels[-1] / levels[0] > 20:
            ax.set_xscale("log")
        if not numeric:
            ax.set_xticks(range(len(levels)), levels, rotation=30, ha="right", parse_math=False)
        ax.set(xlabel=name, ylabel="Classification error" if y == "error" else shown.metric)
        ax.set_ylim(bottom=0)
        title(ax, words)

    return draw


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
