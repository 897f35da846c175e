"""What the figures of a study share: a grid of panels, one look for every family, and the choice of what is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.plot.decisions import CostMapDisplay
from truecal.plot.display import BLUE, GREY, new_axes
from truecal.plot.study import (
    NO_FAMILY,
    AgreementDisplay,
    BinTrendDisplay,
    draw_models,
    family_styles,
    frame_of,
    name_models,
)

# ----------------------------------------------------------------------------------------------------
# What the figures of a study share: a grid of panels, one look for every family, and the choice of what is shown

Panel = Callable[[Any], None]  # draws on its axes
_PREFERRED = ("ece-mass-100-l1", "rank-series-l2", "debiased-15-l2", "ece-mass-15-l1", "ece-width-15-l1", "ece")
_NOT_ERRORS = ("error", "confidence", "nll", "brier", "brier-top", "aurc", "best-temperature")


@dataclass(frozen=True)
class External:
    """A point from elsewhere, such as a published model: drawn beside the models, and in no analysis."""

    name: str
    error: float
    value: float
    recalibrator: str = "none"


@dataclass(frozen=True)
class Choice:
    """What a figure shows; what is None is chosen by what the store holds."""

    metric: str | None = None
    lens: str = "top-label"
    selection: str = "all"
    dataset: str | None = None
    reference: str | None = None
    covariate: str | None = None
    colour: str | None = None  # a covariate by which models are coloured, marked and grouped instead of their family
    after: str | None = None
    models: tuple[str, ...] = ()
    external: tuple[External, ...] = ()


@dataclass(frozen=True, eq=False)
class Shown:
    """A store and a choice, resolved: the metric, the recalibrators before and after, the clean dataset, the look of families."""

    store: Any
    frame: Any
    choice: Choice
    metric: str
    recalibrators: tuple[str, ...]
    clean: str

    @classmethod
    def of(cls, store: Any, choice: Choice) -> "Shown":
        frame = store.frame()
        if not frame.height:
            raise InputError("the store holds no finished result yet; run the study first")
        if choice.colour is not None:
            if choice.colour not in frame.columns:
                raise InputError(f"there is no covariate {choice.colour!r}; there are {_some(frame.columns)}")
            frame = frame.with_columns(family=pl.col(choice.colour).cast(pl.String))
        return cls(
            store, frame, choice, _metric(frame, choice), _recalibrators(frame, choice), _clean(store, frame, choice)
        )

    @cached_property
    def styles(self) -> dict[str, dict[str, Any]]:
        """Colour and marker of every family, the same in all panels."""
        return family_styles(self.frame["family"].unique().to_list())

    def options(self, recalibrator: str) -> dict[str, Any]:
        """Keyword arguments of an analysis."""
        return {"lens": self.choice.lens, "selection": self.choice.selection, "recalibrator": recalibrator}

    def when(self, recalibrator: str) -> str:
        """Before or after, in words."""
        return "before recalibration" if recalibrator == "none" else f"after {recalibrator}"


@dataclass(eq=False)
class StudyFigure:
    """A figure of a study: panels in rows, the numbers behind them, and what to know about them."""

    name: str
    panels: Sequence[Sequence[Panel | None]]
    numbers: Any
    notes: tuple[str, ...] = ()
    styles: dict[str, dict[str, Any]] = field(default_factory=dict)
    size: tuple[float, float] = (4.2, 3.6)  # inches of a panel
    same_heights: bool = False  # one y axis for the panels of a row
    figure_: Any = None

    def frame(self) -> Any:
        """The numbers that are drawn, as a table."""
        return self.numbers

    def plot(self) -> "StudyFigure":
        """Draw on a new figure."""
        from matplotlib import pyplot

        down, across = len(self.panels), max(len(row) for row in self.panels)
        wide, high = self.size
        if down == across == 1:
            self.figure_, ax = new_axes(None, size=(wide * 1.6, high * 1.5))
            grid = [[ax]]
        else:
            self.figure_, axes = pyplot.subplots(
                down,
                across,
                figsize=(wide * across, high * down),
                layout="constrained",
                squeeze=False,
                sharey="row" if self.same_heights else False,
            )
            grid = axes.tolist()
        for row, places in zip(self.panels, grid, strict=True):
            for ax in places[len(row) :]:
                ax.set_visible(False)
            for panel, ax in zip(row, places[: len(row)], strict=True):
                if panel is None:
                    ax.set_visible(False)
                else:
                    panel(ax)
        self._legend()
        return self

    def _legend(self) -> None:
        if not self.styles or set(self.styles) == {NO_FAMILY}:
            return
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], linestyle="none", label=name, **style) for name, style in self.styles.items()]
        legend = self.figure_.legend(handles=handles, loc="outside right upper", frameon=False, fontsize="small")
        for text in legend.get_texts():
            text.set_parse_math(False)


def title(ax: Any, words: str) -> None:
    """The title of a panel: names are text, not formulas."""
    ax.set_title(words, fontsize="medium", parse_math=False)


def _metric(frame: Any, choice: Choice) -> str:
    there = frame.filter(frame["lens"].is_in([choice.lens, ""]))["metric"].unique().to_list()
    if choice.metric is not None:
        if choice.metric not in there:
            raise InputError(
                f"there is no metric {choice.metric!r} with the lens {choice.lens!r}; there are {_some(there)}"
            )
        return choice.metric
    errors = [name for name in (*_PREFERRED, *sorted(there)) if name in there and name not in _NOT_ERRORS]
    if not errors:
        raise InputError(
            f"the store holds no calibration error with the lens {choice.lens!r}; there are {_some(there)}"
        )
    return errors[0]


def _recalibrators(frame: Any, choice: Choice) -> tuple[str, ...]:
    there = [name for name in frame["recalibrator"].unique().sort().to_list() if name != "none"]
    if choice.after is not None and choice.after not in there:
        raise InputError(f"there is no recalibrator {choice.after!r} in the results; there is {_some(there)}")
    after = choice.after or ("temperature" if "temperature" in there else there[0] if there else None)
    return ("none",) if after is None else ("none", after)


def _clean(store: Any, frame: Any, choice: Choice) -> str:
    """The clean dataset to show: the one asked for, else the one most others refer to, else the first without shift."""
    import polars as pl

    names = frame.filter(pl.col("severity") == 0)["dataset"].unique(maintain_order=True).to_list()
    if (name := choice.dataset or choice.reference) is not None:
        if name not in frame["dataset"]:
            raise InputError(f"there is no dataset {name!r}; there are {_some(frame['dataset'].unique().to_list())}")
        return name
    named = [clean for clean in store.references().values() if clean in names]
    if named:
        return max(dict.fromkeys(named), key=named.count)
    if not names:
        raise InputError("the results hold no dataset of severity 0")
    return str(names[0])


def _some(names: Sequence[str], most: int = 12) -> str:
    listed = sorted(map(str, names))
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "") or "nothing"


# ----------------------------------------------------------------------------------------------------
# What abstaining costs, model against model: Figure 7 of Minderer et al. (2021). Reads the prediction files of a study again

_MOST = 4  # models that are compared in pairs


def costs(shown: Shown) -> StudyFigure:
    """Figure 7: where one model is cheaper than another, for the most accurate model of every family, before and after."""
    models = _models(shown)
    rows: list[list[Panel | None]] = []
    tables = []
    for recalibrator in shown.recalibrators:
        preds = {model: tc.study.predictions_of(shown.store, model, shown.clean, recalibrator) for model in models}
        panels: list[Panel | None] = []
        for a, b in combinations(models, 2):
            map_of_costs = tc.selective.cost_map(preds[a], preds[b])
            about = {"a": pl.lit(a), "b": pl.lit(b), "recalibrator": pl.lit(recalibrator)}
            tables.append(map_of_costs.frame().to_polars().with_columns(**about))
            panels.append(_map(map_of_costs, (a, b), shown.when(recalibrator)))
        rows.append(panels)
    return StudyFigure("costs", rows, pl.concat(tables, how="vertical_relaxed"), (), {}, (5.0, 4.0))


def _models(shown: Shown) -> list[str]:
    if shown.choice.models:
        return list(shown.choice.models)
    options = shown.options("none")
    points = tc.study.error_against_calibration(
        shown.frame, metric=shown.metric, dataset=shown.clean, **options
    ).frame()
    clean = points.filter((pl.col("dataset") == shown.clean) & (pl.col("severity") == 0)).sort("error")
    best = clean.unique("family", keep="first", maintain_order=True)
    names = (best if best.height > 1 else clean)["model"].to_list()[:_MOST]
    if len(names) < 2:
        raise InputError("a cost map needs two models")
    return names


def _map(result: Any, names: tuple[str, str], words: str) -> Panel:
    def draw(ax: Any) -> None:
        CostMapDisplay.from_result(result, names=names, ax=ax)
        title(ax, f"blue: {names[0]} is cheaper, orange: {names[1]}\n{words}")

    return draw


# ----------------------------------------------------------------------------------------------------
# Models by error and calibration: Figures 1, 2, 3, 6 and 10 of Minderer et al. (2021)

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
    scheme = "width" if "width" in bins["scheme"] else "mass"  # of equal mass, a histogram is flat
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


def natural_datasets(shown: Shown) -> list[str]:
    """The clean dataset, then all others that have no severities."""
    severity = shown.frame.group_by("dataset", maintain_order=True).agg(pl.col("severity").max())
    names = severity.filter(pl.col("severity") == 0)["dataset"].to_list()
    return [shown.clean, *(name for name in names if name != shown.clean)]


def natural(shown: Shown) -> StudyFigure:
    """Figure 6: the clean and the naturally shifted datasets side by side, before and after recalibration."""
    names = natural_datasets(shown)
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
    """Figures 3 and 10: error and calibration, coloured by a covariate (pretraining data, steps, size), before and after."""
    name = shown.choice.covariate or "size"
    row: list[Panel | None] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        options = shown.options(recalibrator)
        trend = tc.study.covariate_trend(shown.frame, name, metric=shown.metric, dataset=shown.clean, **options)
        table = on(trend.frame(), shown.clean)
        if shown.choice.models:
            table = table.filter(pl.col("model").is_in(shown.choice.models))
        if not table.height:
            raise InputError(f"no model on {shown.clean} has a value of {name}")
        row.append(_plane(shown, table, name, f"{shown.clean}, {shown.when(recalibrator)}"))
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in trend.notes if note not in notes]
    return StudyFigure("covariate", [row], pl.concat(tables), tuple(notes), shown.styles, same_heights=True)


def _plane(shown: Shown, table: Any, name: str, words: str) -> Panel:
    """Error and metric of every model, its colour the covariate; a line joins the models of a family in its order."""

    def draw(ax: Any) -> None:
        import matplotlib

        levels = table[name].unique().sort().to_list()
        colours = matplotlib.colormaps["viridis"].resampled(max(len(levels), 2))
        for (family,), part in table.partition_by("family", as_dict=True, maintain_order=True).items():
            part = part.sort(name, "model")
            error, value = part["error"].to_list(), part["value"].to_list()
            ax.plot(error, value, color="#999999", linewidth=0.7, zorder=1)
            colour = [colours(levels.index(level)) for level in part[name]]
            ax.scatter(error, value, 30, colour, marker=shown.styles[family or NO_FAMILY]["marker"], zorder=3)
        ax.set(xlabel="Classification error", ylabel=shown.metric)
        ax.set_ylim(bottom=0)
        legend_of_levels(ax, levels, colours, name)
        title(ax, words)

    return draw


def legend_of_levels(ax: Any, levels: Sequence[Any], colours: Any, name: str) -> None:
    """A legend of at most eight colours, the first and last among them."""
    from matplotlib.lines import Line2D

    few = sorted({round(i) for i in np.linspace(0, len(levels) - 1, min(len(levels), 8))})
    words = {i: f"{levels[i]:g}" if isinstance(levels[i], float) else str(levels[i]) for i in few}
    handles = [Line2D([], [], linestyle="none", marker="o", color=colours(i), label=word) for i, word in words.items()]
    legend = ax.legend(handles=handles, title=name, frameon=False, fontsize="x-small", title_fontsize="x-small")
    for text in legend.get_texts():
        text.set_parse_math(False)


# ----------------------------------------------------------------------------------------------------
# Estimators, scores and temperatures: Figures 8, 9 and 11 of Minderer et al. (2021), and its appendices D and E


def residuals(shown: Shown) -> StudyFigure:
    """Figure 8: calibration error, log loss and Brier score, and what of the scores error does not explain, by dataset."""
    metrics = set(shown.frame["metric"])
    scores = [name for name in ("brier", "nll") if name in metrics]
    if not scores:
        raise InputError("the store holds neither nll nor brier")
    options = shown.options(shown.recalibrators[-1])
    unshifted = shown.frame.filter(pl.col("severity") == 0)
    fitted = tc.study.residuals(unshifted, metrics=[shown.metric, *scores], **options)
    table = fitted.frame().with_columns(recalibrator=pl.lit(shown.recalibrators[-1]))
    quantities = [(shown.metric, "value"), *((name, y) for name in scores for y in ("value", "residual"))]
    names = [name for name in natural_datasets(shown) if name in table["dataset"]]
    rows: list[list[Panel | None]] = [
        [_score(shown, on(table, name).filter(pl.col("metric") == score), score, y) for name in names]
        for score, y in quantities
    ]
    return StudyFigure("residuals", rows, table, fitted.notes, shown.styles, (3.4, 2.6))


def _score(shown: Shown, table: Any, name: str, y: str) -> Panel:
    def draw(ax: Any) -> None:
        draw_models(ax, frame_of(table), "error", y, bars=False, styles=shown.styles)
        if y == "residual":
            ax.axhline(0, color=GREY, linewidth=1, linestyle=":")
        ax.set(xlabel="Classification error", ylabel=f"{name} (residual)" if y == "residual" else name)
        title(ax, f"{table['dataset'][0]}, {shown.when(table['recalibrator'][0])}")

    return draw


_BINS_OF_DOTS = (15, 100, 5000)  # those of Figure 9


def bins(shown: Shown) -> StudyFigure:
    """Figure 9: models by error and by the error of few and of many bins; beside them the slope by number of bins."""
    rows: list[list[Panel | None]] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        trend = tc.study.bin_trend(shown.frame, dataset=shown.clean, **shown.options(recalibrator))
        table = trend.frame().filter(pl.col("severity") == 0)
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in trend.notes if note not in notes]
        models = on(trend.points(), shown.clean)
        dots = [_dots(shown, models.filter(pl.col("metric") == name), name) for name in _metrics_of_dots(table)]
        rows.append([*dots, _bin_panel(table, f"{shown.clean}, {shown.when(recalibrator)}")])
    return StudyFigure("bins", rows, pl.concat(tables, how="vertical_relaxed"), tuple(notes), shown.styles)


def _metrics_of_dots(table: Any) -> list[str]:
    """Equal-mass errors with 15, 100 and 5000 bins, or with the fewest and the most there are; norm 1 where it is there."""
    binned = table.filter(~pl.col("debiased") & (pl.col("scheme") == "mass")).sort("norm", "bins")
    binned = binned.filter(pl.col("norm") == pl.col("norm").min())
    few = binned.filter(pl.col("bins").is_in(_BINS_OF_DOTS))
    if few.height < 2:
        few = binned.filter((pl.col("bins") == pl.col("bins").min()) | (pl.col("bins") == pl.col("bins").max()))
    return [str(name) for name in few["metric"]]


def _dots(shown: Shown, table: Any, name: str) -> Panel:
    def draw(ax: Any) -> None:
        draw_models(ax, frame_of(table), "error", "value", bars=False, styles=shown.styles)
        ax.set(xlabel="Classification error", ylabel=name)
        title(ax, f"{name}, {shown.clean}")

    return draw


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


# ----------------------------------------------------------------------------------------------------
# Models under corruptions of growing severity: Figures 4 and 5 of Minderer et al. (2021)


def severities(shown: Shown) -> StudyFigure:
    """Figure 4: error and calibration of every family at every severity, mean over types of corruption; before and after."""
    rows: list[list[Panel | None]] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        means = _over_types(shown, recalibrator)
        table = means.frame().with_columns(pl.col("family").fill_null(NO_FAMILY), recalibrator=pl.lit(recalibrator))
        tables.append(table)
        notes += [note for note in means.notes if note not in notes]
        rows.append(
            [
                _cloud(shown, table.filter(pl.col("family") == family), f"{family}, {shown.when(recalibrator)}")
                for family in table["family"].unique().sort()
            ]
        )
    return StudyFigure("severities", rows, pl.concat(tables), tuple(notes), same_heights=True)


def _over_types(shown: Shown, recalibrator: str) -> Any:
    reference = shown.choice.reference or shown.store.references() or None
    return tc.study.shift_over_types(
        shown.frame, metric=shown.metric, reference=reference, **shown.options(recalibrator)
    )


def _cloud(shown: Shown, table: Any, words: str) -> Panel:
    def draw(ax: Any) -> None:
        import matplotlib

        levels = table["severity"].unique().sort().to_list()
        colours = matplotlib.colormaps["viridis"].resampled(max(len(levels), 2))
        for i, severity in enumerate(levels):
            part = table.filter(pl.col("severity") == severity)
            size = (20 + 60 * part["relative_size"].fill_null(0.3)).to_list()
            ax.scatter(part["error"].to_list(), part["value"].to_list(), size, color=colours(i), label=f"{severity:g}")
            ordered = part.sort("size")
            if ordered["size"].null_count() < ordered.height:
                ax.plot(
                    ordered["error"].to_list(), ordered["value"].to_list(), color="#999999", linewidth=0.7, zorder=1
                )
        ax.set(xlabel="Classification error", ylabel=shown.metric)
        ax.set_ylim(bottom=0)
        ax.legend(title="severity", frameon=False, fontsize="x-small", title_fontsize="x-small")
        title(ax, words)

    return draw


def sizes(shown: Shown) -> StudyFigure:
    """Figure 5: error and calibration error of every model minus those of the largest of its family, over severities."""
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        means = _over_types(shown, recalibrator)
        table = means.frame().filter(pl.col("value_beside_largest").is_not_null())
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in means.notes if note not in notes]
    if not any(table.height for table in tables):
        notes.append("sizes of models are unknown; give them under models, or with --about when importing")
    rows: list[list[Panel | None]] = [
        [_beside(shown, table, y, shown.when(name)) for name, table in zip(shown.recalibrators, tables, strict=True)]
        for y in ("error", "value")
    ]
    return StudyFigure("sizes", rows, pl.concat(tables), tuple(notes), shown.styles, same_heights=True)


def _beside(shown: Shown, table: Any, y: str, words: str) -> Panel:
    def draw(ax: Any) -> None:
        ax.axhline(0, color="#999999", linewidth=0.8, linestyle=":")
        for part in table.sort("severity").partition_by("model", maintain_order=True):
            style = shown.styles[part["family"][0] or NO_FAMILY]
            width = 0.6 + 1.6 * float(part["relative_size"][0] or 0.3)
            across, up = part["severity"].to_list(), part[f"{y}_beside_largest"].to_list()
            ax.plot(across, up, linewidth=width, markersize=3, **style)
        name = "Classification error" if y == "error" else shown.metric
        ax.set(xlabel="Severity of shift", ylabel=f"{name}\nminus the largest of the family")
        title(ax, words)

    return draw


# ----------------------------------------------------------------------------------------------------
# The figures of Minderer et al. (2021), drawn from a store: `draw_figure(store, "families")`

# Name -> what draws it; the figures of the paper in its order.
FIGURES: dict[str, Callable[[Shown], StudyFigure]] = {
    "families": families,  # 1
    "recalibration": recalibration,  # 2
    "covariate": covariate,  # 3 and 10
    "severities": severities,  # 4
    "sizes": sizes,  # 5
    "natural": natural,  # 6
    "costs": costs,  # 7
    "residuals": residuals,  # 8
    "bins": bins,  # 9
    "loglog": loglog,  # 11
    "temperatures": temperatures,  # appendix D
    "agreement": agreement,  # appendix E
}


def draw_figure(store: Any, name: str, choice: Choice | None = None) -> StudyFigure:
    """A figure of a store by name, not drawn yet: `.plot().figure_` is matplotlib's, `.frame()` the numbers in it."""
    options.choice(name, tuple(FIGURES), "figure")
    return FIGURES[name](Shown.of(store, choice or Choice()))
