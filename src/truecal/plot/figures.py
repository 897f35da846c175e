"""The figures of Minderer et al. (2021) from the store of a study: `draw_figure(store, "families")`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.plot.display import BLUE, GREY, axes_width, plain_text, shorten, wrap
from truecal.plot.study import (
    DOTTED,
    MAX_NAMED,
    NO_FAMILY,
    AgreementDisplay,
    BinTrendDisplay,
    draw_dots,
    draw_models,
    family_styles,
    name_models,
)
from truecal.study.store import pl

Panel = Callable[[Any], Callable[[], None] | None]  # draws on its axes; may return what to write once limits are set
_PREFERRED = ("ece-mass-100-l1", "rank-series-l2", "debiased-15-l2", "ece-mass-15-l1", "ece-width-15-l1", "ece")
_NOT_ERRORS = ("error", "confidence", "nll", "brier", "best-temperature")
_TITLES = {"nll": "Log loss", "brier": "Brier score"}
_MAX_DIAGRAMS = 6  # by choice: reliability diagrams beside the models
_BINS = (15, 100, 5000)  # by choice: numbers of bins of the errors in Figure 9
_LINE = {"color": "#999999", "linewidth": 0.7, "zorder": 1}  # joins models of a family
_MAX_ACROSS = 4  # by choice: panels side by side
# by choice: inches of a panel by the number of panels across: one fits a column of 3.25 inches, two or three a page.
_PANEL = {1: (3.25, 2.6), 2: (2.7, 2.3), 3: (2.2, 2.0), 4: (1.9, 1.8)}
# by choice: inches of a legend: mark and margins, a letter, height of an entry
_HANDLE, _LETTER, _ENTRY = 0.4, 0.055, 0.18
_STYLE = {
    "figure.dpi": 130,  # that of pictures: letters have other widths at other resolutions, and the layout is made for these
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.ymargin": 0.12,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
}


@dataclass(eq=False)
class StudyFigure:
    """A figure of a study: its panels, the numbers drawn, and notes about them."""

    panels: Sequence[Sequence[Panel | None]]  # row by row; None leaves a space
    numbers: Any  # polars frame
    notes: Sequence[str] = ()
    styles: dict[str, dict[str, Any]] = field(default_factory=dict)  # entries of the legend: color and marker by name
    size: tuple[float, float] | None = None  # inches of a panel
    share_y: Literal["row", "all", False] = False  # one vertical axis for the panels of a row, or for all
    share_x: Literal["col", False] = False  # one horizontal axis for the panels of a column
    from_zero: bool = False  # vertical axes start at 0
    figure_: Any = None  # the matplotlib figure, once drawn

    def frame(self) -> Any:
        """Return the numbers that are drawn, as a polars frame."""
        return self.numbers

    def plot(self) -> StudyFigure:
        """Draw the panels on a new matplotlib figure, `figure_`, in the sizes of a printed page; return the StudyFigure itself.

        Inner labels of shared axes are left out. The legend at the right lists `styles`, unless they are those of no family only.
        """
        from matplotlib import pyplot
        from matplotlib.lines import Line2D

        down, across = len(self.panels), max(len(row) for row in self.panels)
        width, height = self.size or _PANEL[min(across, _MAX_ACROSS)]
        entries = {shorten(name): style for name, style in self.styles.items()} if {*self.styles} - {NO_FAMILY} else {}
        legend_width = max((_HANDLE + _LETTER * len(name) for name in entries), default=0.0)
        size = width * across + legend_width, max(height * down, _ENTRY * len(entries))
        with pyplot.rc_context(_STYLE):
            layout = {"figsize": size, "layout": "constrained", "squeeze": False}
            self.figure_, grid = pyplot.subplots(down, across, sharex=self.share_x, sharey=self.share_y, **layout)
            after_limits = []
            panels = [[*row, *[None] * (across - len(row))] for row in self.panels]
            for (i, j), ax in np.ndenumerate(grid):
                if (panel := panels[i][j]) is None:
                    ax.set_visible(False)
                    continue
                after_limits.append(panel(ax))
                if self.share_y and j:
                    ax.set_ylabel("")
                if self.share_x and any(row[j] for row in panels[i + 1 :]):
                    ax.set_xlabel("")
                else:
                    ax.tick_params(labelbottom=True)
            if self.from_zero:
                for ax in self.figure_.axes:
                    ax.set_ylim(bottom=0)
            if entries:
                handles = [Line2D([], [], linestyle="none", label=name, **style) for name, style in entries.items()]
                plain_text(self.figure_.legend(handles=handles, loc="outside right upper", frameon=False))
            for ax in self.figure_.axes:
                ax.spines[:].set_in_layout(False)  # each would find the ticks anew, to no effect: they are the frame
            layout_engine = self.figure_.get_layout_engine()
            layout_engine.execute(self.figure_)  # gives the axes their size, in which titles and names must fit
            texts = [(ax, text) for ax in self.figure_.axes for text in (ax.title, ax.xaxis.label)]
            broken = [wrap(text.get_text(), axes_width(ax), text.get_size()) for ax, text in texts]
            fits = all(words == text.get_text() for words, (_, text) in zip(broken, texts, strict=True))
            for words, (_, text) in zip(broken, texts, strict=True):
                text.set_text(words)
            for write in after_limits:
                if write is not None:
                    write()
            if not fits:
                layout_engine.execute(self.figure_)
            self.figure_.set_layout_engine(None)  # with a layout engine savefig draws everything twice
        return self


# ----------------------------------------------------------------------------------------------------
# The store, and what is shown of it


@dataclass(frozen=True, eq=False)
class FigureData:
    """Results of a store, and what its figures show."""

    store: Any
    frame: Any  # polars frame of the results
    metric: str
    recalibrators: tuple[str, ...]  # "none" first, then the one that is shown, if any
    clean: str  # dataset of figures on clean data
    reference: Any  # clean dataset of the shifted ones, one for all or a mapping by dataset; None: severity 0 of each
    covariate: str  # column that Figures 3 and 10 are coloured by
    models: tuple[str, ...]  # limits diagrams and the figure of a covariate to these; (): all

    @classmethod
    def of(
        cls,
        store: Any,
        *,
        metric: str | None = None,
        dataset: str | None = None,
        reference: str | None = None,
        covariate: str = "size",
        colour: str | None = None,
        after: str | None = None,
        model: tuple[str, ...] = (),
    ) -> FigureData:
        """Read the results of a store, which choose what is None: metric, `dataset` (clean), `reference`, recalibrator `after`.

        That recalibrator is temperature if it is there, else the first. `colour` is a covariate by which models are coloured,
        marked and grouped instead of their family. Refuses an empty store, and names of columns, recalibrators, datasets and
        metrics that are not in it.
        """
        frame = store.frame()
        if not frame.height:
            raise InputError("the store holds no finished result yet; run the study first")
        if colour is not None:
            _refuse_unknown(colour, frame.columns, "covariate")
            frame = frame.with_columns(family=pl.col(colour).cast(pl.String))
        names = [name for name in frame["recalibrator"].unique().sort().to_list() if name != "none"]
        if after is not None:
            _refuse_unknown(after, names, "recalibrator")
        chosen = after or ("temperature" if "temperature" in names else next(iter(names), None))
        recalibrators = ("none",) if chosen is None else ("none", chosen)
        clean = choose_clean(store, frame, dataset or reference)
        reference = reference or store.references() or None
        return cls(store, frame, _choose_metric(frame, metric), recalibrators, clean, reference, covariate, model)

    @cached_property
    def results(self) -> Any:
        """Rows of `frame` with the metric, or with the classification error."""
        return self.frame.filter(pl.col("metric").is_in([self.metric, "error"]))

    @cached_property
    def styles(self) -> dict[str, dict[str, Any]]:
        """Color and marker by family, the same in all panels (see `family_styles`)."""
        return family_styles(self.frame["family"].unique().to_list())

    @cached_property
    def mean_over_corruptions(self) -> list[tuple[str, Any, Any]]:
        """Recalibrator, analysis `tc.study.shift` (means over types of corruption) and its table for one clean dataset.

        That is `clean` if it has corruptions, else the dataset with most rows; families that are null become NO_FAMILY.
        """
        parts = []
        for after in self.recalibrators:
            settings = {"metric": self.metric, "reference": self.reference, "recalibrator": after}
            means = tc.study.shift(self.results, **settings)
            table = means.frame()
            clean = self.clean if self.clean in table["dataset"] else table["dataset"].mode().sort()[0]
            table = table.filter(pl.col("dataset") == clean).with_columns(pl.col("family").fill_null(NO_FAMILY))
            parts.append((after, means, table))
        return parts

    def title(self, ax: Any, subject: str, recalibrator: str) -> None:
        """Set the title of axes: "subject, before recalibration" for "none", else "subject, after <recalibrator>".

        Without a subject ("") the title is what follows the comma.
        """
        words = f"{subject}, {when(recalibrator)}" if subject else when(recalibrator)
        ax.set_title(words, parse_math=False)

    def label(self, ax: Any, subject: str, recalibrator: str) -> None:
        """Label axes of `metric` (vertical) against classification error; the title is that of `title`."""
        ax.set(xlabel="Classification error", ylabel=axis_title(self.metric))
        self.title(ax, subject, recalibrator)

    def error_against_metric(self, dataset: str, recalibrator: str) -> Any:
        """Return `tc.study.error_against_calibration` of `metric`, for all models on one dataset with one recalibrator."""
        return tc.study.error_against_calibration(
            self.results, metric=self.metric, dataset=dataset, recalibrator=recalibrator
        )

    def natural_datasets(self) -> list[str]:
        """Return the clean dataset, then all others that have no severity above 0."""
        severity = self.frame.group_by("dataset", maintain_order=True).agg(pl.col("severity").max())
        names = severity.filter(pl.col("severity") == 0)["dataset"].to_list()
        return [self.clean, *(name for name in names if name != self.clean)]


def when(recalibrator: str) -> str:
    """Return "before recalibration" for "none", else "after <recalibrator>".

    >>> when("none"), when("temperature")
    ('before recalibration', 'after temperature')
    """
    return "before recalibration" if recalibrator == "none" else f"after {recalibrator}"


def axis_title(metric: str) -> str:
    r"""Return the title of the axis of a metric: "Log loss" (nll), "Brier score" (brier), else "Calibration error\n(name)".

    >>> axis_title("nll"), axis_title("ece-mass-15-l1")
    ('Log loss', 'Calibration error\n(ece-mass-15-l1)')
    """
    return _TITLES.get(metric, f"Calibration error\n({metric})")


def _refuse_unknown(name: str, names: Iterable[Any], kind: str) -> None:
    """Refuse a name that is not among `names`, listing up to 12; `kind` says in the message what it names.

    >>> _refuse_unknown("vgg", ["resnet", "vit"], "model")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: there is no model 'vgg'; there are resnet, vit
    """
    listed = sorted(map(str, names))
    if name not in listed:
        words = ", ".join(listed[:12]) + (", ..." if len(listed) > 12 else "") or "nothing"
        raise InputError(f"there is no {kind} {name!r}; there are {words}")


def _choose_metric(frame: Any, metric: str | None) -> str:
    """Return the metric, or for None the first calibration error in `frame`: in the order of _PREFERRED, then of the alphabet.

    Only metrics of the lens top-label, or without a lens, count. Refuse an unknown name, and results without calibration error.
    """
    metrics = frame.filter(pl.col("lens").is_in(["top-label", ""]))["metric"].unique().to_list()
    if metric is not None:
        _refuse_unknown(metric, metrics, "metric")
        return metric
    errors = [name for name in (*_PREFERRED, *sorted(metrics)) if name in metrics and name not in _NOT_ERRORS]
    if not errors:
        raise InputError("the store holds no calibration error of the top label")
    return errors[0]


def choose_clean(store: Any, frame: Any, name: str | None) -> str:
    """Return the dataset `name`, or for None the clean dataset that most shifted ones of the store refer to.

    Without such references it is the first of severity 0 in `frame`. Refuse an unknown name, and results without severity 0.
    """
    if name is not None:
        _refuse_unknown(name, frame["dataset"].unique().to_list(), "dataset")
        return name
    names = frame.filter(pl.col("severity") == 0)["dataset"].unique(maintain_order=True).to_list()
    references = [clean for clean in store.references().values() if clean in names]
    if not names:
        raise InputError("the results hold no dataset of severity 0")
    return max(dict.fromkeys(references), key=references.count) if references else str(names[0])


def _rows_unshifted(table: Any, dataset: str) -> Any:
    """Return the rows of a table that are of a dataset at severity 0.

    >>> _rows_unshifted(pl.DataFrame({"dataset": ["a", "a", "b"], "severity": [0, 1, 0]}), "a").rows()
    [('a', 0)]
    """
    return table.filter((pl.col("dataset") == dataset) & (pl.col("severity") == 0))


def _concat_tables(analyses: Sequence[tuple[str, Any, Any]]) -> tuple[Any, list[str]]:
    """Stack the tables of (recalibrator, Analysis, table) with a column `recalibrator`; return it and the distinct notes."""
    tables = [table.with_columns(recalibrator=pl.lit(after)) for after, _, table in analyses]
    notes = dict.fromkeys(note for _, result, _ in analyses for note in result.notes)
    return pl.concat(tables, how="vertical_relaxed"), list(notes)


# ----------------------------------------------------------------------------------------------------
# Models by error and calibration: Figures 1, 2, 3, 6 and 10


def _draw_cloud(data: FigureData, table: Any, subject: str, after: str, ax: Any) -> Callable[[], None]:
    """Draw the columns value (vertical) and error of `table`; return a function that writes the models' names.

    It is to be called once limits are set. `subject` and the recalibrator `after` are words of the title; intervals are drawn for
    up to 12 models.
    """
    draw_models(ax, table, "error", "value", data.styles, bars=table.height <= MAX_NAMED)
    data.label(ax, subject, after)
    return partial(name_models, ax, table, "error", "value")


def families(data: FigureData) -> StudyFigure:
    """Return Figure 1: calibration against error by family on the clean dataset, not recalibrated; beside it diagrams.

    The numbers have a row per model: those of `tc.study.error_against_calibration`. Up to six diagrams stand in rows of three.
    """
    points = data.error_against_metric(data.clean, "none")
    table = _rows_unshifted(points.frame(), data.clean)
    diagrams = _diagram_panels(data, table)
    first: list[Panel | None] = [partial(_draw_cloud, data, table, data.clean, "none"), *diagrams[:3]]
    rows = [first, *([None, *diagrams[i : i + 3]] for i in range(3, len(diagrams), 3))]
    notes = points.notes if diagrams else (*points.notes, "the store holds no reliability diagrams of these models")
    size = (1.9, 2.2) if diagrams else None
    return StudyFigure(rows, table, notes, data.styles, size, from_zero=True)


def _diagram_panels(data: FigureData, table: Any) -> list[Panel]:
    """Return a panel per reliability diagram: of `data.models`, else of the most accurate model of every family, at most six.

    `table` has columns model, family and error. Of each model the first seed on the clean dataset is drawn, not recalibrated;
    models without bins in the store are left out.
    """
    best = table.sort("error").unique("family", keep="first", maintain_order=True)
    models = list(data.models) or best["model"].to_list()[:_MAX_DIAGRAMS]
    jobs = _rows_unshifted(data.frame, data.clean).filter(pl.col("model").is_in(models)).select("job", "model", "seed")
    conditions = {"lens": "top-label", "recalibrator": "none", "selection": "all"}
    bins = data.store.diagrams().join(jobs.sort("seed").unique("model", keep="first"), on="job").filter(**conditions)
    scheme = "width" if "width" in bins["scheme"] else "mass"  # of equal mass, a histogram is flat
    bins = bins.filter(pl.col("scheme") == scheme).sort("bin")
    parts = {model: bins.filter(pl.col("model") == model) for model in models}
    return [partial(_draw_diagram, part, str(model)) for model, part in parts.items() if part.height]


def _draw_diagram(bins: Any, model: str, ax: Any) -> None:
    """Draw outcome against confidence of each bin, dots growing with its share of the rows, over bars of these shares.

    `bins` has a row per bin with columns low, high, count, confidence and outcome.
    """
    share = bins["count"] / bins["count"].sum()
    width = (bins["high"] - bins["low"]).clip(0.005).to_list()
    ax.bar(bins["low"].to_list(), share.to_list(), width, align="edge", color=GREY, alpha=0.35, linewidth=0)
    ax.plot([0, 1], [0, 1], **DOTTED)
    across, up = bins["confidence"].to_list(), bins["outcome"].to_list()
    ax.plot(across, up, color=BLUE, linewidth=0.8, alpha=0.5)
    ax.scatter(across, up, (4 + 36 * share.sqrt()).to_list(), color=BLUE, zorder=3)  # bins of few rows are small
    ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="Confidence\n(bars: share of rows)", ylabel="Accuracy")
    ax.set_title(shorten(model), parse_math=False)


def recalibration(data: FigureData) -> StudyFigure:
    """Return Figure 2: calibration against error on the clean dataset, before and after recalibration side by side."""
    return _cloud_figure(data, [data.clean], side_by_side=True)


def natural(data: FigureData) -> StudyFigure:
    """Return Figure 6: calibration against error, a column of panels per natural dataset and a row per recalibrator."""
    return _cloud_figure(data, data.natural_datasets(), side_by_side=False)


def _cloud_figure(data: FigureData, datasets: list[str], *, side_by_side: bool) -> StudyFigure:
    """Return a figure of metric against error with a panel per recalibrator and dataset at severity 0.

    Panels of a recalibrator form a row, in the order of `datasets`; with `side_by_side` all panels form one row.
    """
    keys = [(after, dataset) for after in data.recalibrators for dataset in datasets]
    results = [(after, data.error_against_metric(dataset, after), dataset) for after, dataset in keys]
    parts = [(after, points, _rows_unshifted(points.frame(), dataset)) for after, points, dataset in results]
    panels: list[Panel | None] = [
        partial(_draw_cloud, data, table, dataset, after)
        for (after, dataset), (_, _, table) in zip(keys, parts, strict=True)
    ]
    width = len(panels) if side_by_side else len(datasets)
    rows = [panels[i : i + width] for i in range(0, len(panels), width)]
    share_x: Literal["col", False] = False if side_by_side else "col"
    return StudyFigure(rows, *_concat_tables(parts), data.styles, share_y="all", share_x=share_x, from_zero=True)


def covariate(data: FigureData) -> StudyFigure:
    """Return Figures 3 and 10: error and calibration coloured by a covariate (pretraining data, steps, size), before and after.

    A panel per recalibrator, of models on the clean dataset (those in `data.models`, if any); the legend names up to eight
    values of the covariate, evenly spaced. Refuses a covariate of which no model on the clean dataset has a value.
    """
    name = data.covariate
    parts = []
    for after in data.recalibrators:
        settings = {"metric": data.metric, "dataset": data.clean, "recalibrator": after}
        trend = tc.study.covariate_trend(data.results, name, **settings)
        table = _rows_unshifted(trend.frame(), data.clean)
        if data.models:
            table = table.filter(pl.col("model").is_in(data.models))
        if not table.height:
            raise InputError(f"no model on {data.clean} has a value of {name}")
        parts.append((after, trend, table))
    table, notes = _concat_tables(parts)
    levels = table[name].unique().sort().to_list()
    colours = _level_colours(levels)
    row = [partial(_draw_covariate, data, part, name, colours, after) for after, _, part in parts]
    few = [levels[i] for i in sorted({round(i) for i in np.linspace(0, len(levels) - 1, min(len(levels), 8))})]
    words = {level: f"{name} {level:g}" if isinstance(level, float) else str(level) for level in few}
    styles = {word: {"color": colours[level], "marker": "s"} for level, word in words.items()}
    present = table["family"].drop_nulls().unique().to_list()
    styles |= {family: {**style, "color": GREY} for family, style in data.styles.items() if family in present}
    return StudyFigure([row], table, notes, styles, share_y="row", from_zero=True)


def _draw_covariate(data: FigureData, table: Any, name: str, colours: dict[Any, Any], after: str, ax: Any) -> None:
    """Draw the columns value (vertical) and error of every model, coloured by `colours` of its value of the covariate `name`.

    A line joins the models of a family in the order of the covariate; markers are those of families.
    """
    for (family,), part in table.partition_by("family", as_dict=True, maintain_order=True).items():
        part = part.sort(name, "model")
        error, value = part["error"].to_list(), part["value"].to_list()
        ax.plot(error, value, **_LINE)
        colour = [colours[level] for level in part[name]]
        ax.scatter(error, value, 16, colour, marker=data.styles[family or NO_FAMILY]["marker"], zorder=3)
    data.label(ax, data.clean, after)


def _level_colours(levels: Sequence[Any]) -> dict[Any, Any]:
    """Return by level an RGBA colour of the map viridis, evenly spaced from its first (first level) to its last colour.

    >>> [round(float(colour[1]), 2) for colour in _level_colours([0, 1]).values()]
    [0.0, 0.91]
    """
    import matplotlib

    return dict(zip(levels, matplotlib.colormaps["viridis"](np.linspace(0, 1, max(len(levels), 2))), strict=False))


# ----------------------------------------------------------------------------------------------------
# Corruptions of growing severity: Figures 4 and 5


def severities(data: FigureData) -> StudyFigure:
    """Return Figure 4: calibration against error, a panel per recalibrator and family, a colour per severity.

    Values are means over types of corruption (the table of `tc.study.shift`); panels stand at most four in a row.
    """
    parts = data.mean_over_corruptions
    table, notes = _concat_tables(parts)
    levels = table["severity"].unique().sort().to_list()
    colours = _level_colours(levels)
    rows: list[list[Panel | None]] = []
    for after, _, part in parts:
        names = part["family"].unique().sort().to_list()
        panels = [partial(_draw_severities, data, part, family, colours, after) for family in names]
        rows += [[*panels[i : i + _MAX_ACROSS]] for i in range(0, len(panels), _MAX_ACROSS)]
    styles = {f"severity {level:g}": {"color": colour, "marker": "o"} for level, colour in colours.items()}
    return StudyFigure(rows, table, notes, styles, share_y="all", share_x="col", from_zero=True)


def _draw_severities(data: FigureData, table: Any, family: str, colours: dict[float, Any], after: str, ax: Any) -> None:
    """Draw value against error for one family in the colour of each severity, dots growing with `relative_size`.

    A line per severity joins the models of known size in its order. Columns are those of `FigureData.mean_over_corruptions`.
    """
    from matplotlib.collections import LineCollection

    models = table.filter(pl.col("family") == family).sort("severity", "size", "model")
    sizes = (6 + 24 * models["relative_size"].fill_null(0.3)).to_list()
    points = models.select("error", "value").to_numpy()
    ax.scatter(*points.T, sizes, color=[colours[severity] for severity in models["severity"]], zorder=3)
    sized = models.filter(pl.col("size").is_not_null()).partition_by("severity", maintain_order=True)
    lines = [part.select("error", "value").to_numpy() for part in sized]
    ax.add_collection(LineCollection(lines, colors=_LINE["color"], linewidths=_LINE["linewidth"], zorder=1))
    ax.set(xlabel="Classification error", ylabel=f"{axis_title(data.metric)}\n{when(after)}")
    ax.set_title(shorten(family), parse_math=False)


def sizes(data: FigureData) -> StudyFigure:
    """Return Figure 5: error (upper row) and metric (lower) of models minus those of the largest of the family, over severities.

    A column of panels per recalibrator; models of unknown size are left out, with a note if there is no other.
    """
    sized = pl.col("value_beside_largest").is_not_null()
    parts = [(after, means, table.filter(sized)) for after, means, table in data.mean_over_corruptions]
    table, notes = _concat_tables(parts)
    if not table.height:
        notes.append("sizes of models are unknown; give them under models, or with --about when importing")
    rows = [[partial(_draw_sizes, data, part, y, after) for after, _, part in parts] for y in ("error", "value")]
    return StudyFigure(rows, table, notes, data.styles, share_y="row", share_x="col")


def _draw_sizes(data: FigureData, table: Any, y: str, after: str, ax: Any) -> None:
    """Draw a line with dots per model over severities of the column `<y>_beside_largest`, `y` "error" or "value" (the metric)."""
    from matplotlib.collections import LineCollection

    ax.axhline(0, color="#999999", linewidth=0.8, linestyle=":")
    table = table.sort("model", "severity")
    points = table.select("severity", f"{y}_beside_largest").to_numpy()
    looks = [data.styles[family] for family in table["family"]]
    starts = np.flatnonzero(np.r_[True, (table["model"] != table["model"].shift())[1:]])  # of each model
    widths = (0.4 + 1.2 * table["relative_size"].fill_null(0.3)).to_numpy()[starts]
    lines = np.split(points, starts[1:])
    ax.add_collection(LineCollection(lines, colors=[looks[i]["color"] for i in starts], linewidths=widths))
    draw_dots(ax, points, [6] * len(points), looks)
    ax.autoscale_view()
    name = "Classification error" if y == "error" else axis_title(data.metric)
    ax.set(xlabel="Severity of shift", ylabel=f"{name}\nminus the family's largest")
    ax.set_xticks(table["severity"].unique().sort().to_list())
    data.title(ax, "", after)


# ----------------------------------------------------------------------------------------------------
# Scores, bins and temperatures: Figures 8, 9 and 11, appendices D and E


def residuals(data: FigureData) -> StudyFigure:
    """Return Figure 8: metric, log loss and Brier score against error, and the residuals of the two scores given the error.

    A column of panels per natural dataset, after the last recalibrator; numbers are those of `tc.study.residuals`. Refuse a store
    without log loss and Brier score.
    """
    scores = [name for name in ("brier", "nll") if name in set(data.frame["metric"])]
    if not scores:
        raise InputError("the store holds neither nll nor brier")
    after = data.recalibrators[-1]
    unshifted = data.frame.filter(pl.col("severity") == 0)
    fits = tc.study.residuals(unshifted, metrics=[data.metric, *scores], recalibrator=after)
    table, notes = _concat_tables([(after, fits, fits.frame())])
    quantities = [(data.metric, "value"), *((name, y) for name in scores for y in ("value", "residual"))]
    datasets = [name for name in data.natural_datasets() if name in table["dataset"]]
    rows: list[list[Panel | None]] = []
    for score, y in quantities:
        parts = [_rows_unshifted(table, name).filter(pl.col("metric") == score) for name in datasets]
        rows.append([partial(_draw_score, data, part, score, y, not rows) for part in parts])
    return StudyFigure(rows, table, notes, data.styles, (2.2, 1.6), share_y="row", share_x="col")


def _draw_score(data: FigureData, table: Any, name: str, y: str, titled: bool, ax: Any) -> None:
    """Draw the column `y` ("value" or "residual") of the metric `name` against the classification error, a dot per model.

    The title, if `titled`, names dataset and recalibrator of the first row.
    """
    draw_models(ax, table, "error", y, data.styles, bars=False)
    if y == "residual":
        ax.axhline(0, **DOTTED)
    ax.set(
        xlabel="Classification error", ylabel=f"{axis_title(name)} (residual)" if y == "residual" else axis_title(name)
    )
    if titled:
        data.title(ax, table["dataset"][0], table["recalibrator"][0])


def bins(data: FigureData) -> StudyFigure:
    """Return Figure 9: errors of few and of many bins against classification error; beside them the slope by number of bins.

    A row of panels per recalibrator, on the clean dataset; numbers are the slopes of `tc.study.bin_trend`.
    """
    parts, rows = [], []
    for after in data.recalibrators:
        trend = tc.study.bin_trend(data.frame, dataset=data.clean, recalibrator=after)
        table = trend.frame().filter(pl.col("severity") == 0)
        parts.append((after, trend, table))
        models = _rows_unshifted(trend.frame("models"), data.clean).with_columns(recalibrator=pl.lit(after))
        scores = [(models.filter(pl.col("metric") == name), name) for name in _binned_metrics(table)]
        row: list[Panel | None] = [partial(_draw_score, data, part, name, "value", True) for part, name in scores]
        rows.append([*row, partial(_draw_bin_trend, data, table, after)])
    return StudyFigure(rows, *_concat_tables(parts), data.styles, size=(2.4, 3.0))


def _binned_metrics(table: Any) -> list[str]:
    """Return the names of the equal-mass errors with 15, 100 or 5000 bins; if fewer than two, of those with fewest and most bins.

    `table` is that of slopes of `tc.study.bin_trend`; of several norms only the smallest counts.
    """
    binned = table.filter(~pl.col("debiased") & (pl.col("scheme") == "mass")).sort("norm", "bins")
    binned = binned.filter(pl.col("norm") == pl.col("norm").min())
    few = binned.filter(pl.col("bins").is_in(_BINS))
    if few.height < 2:
        few = binned.filter((pl.col("bins") == pl.col("bins").min()) | (pl.col("bins") == pl.col("bins").max()))
    return [str(name) for name in few["metric"]]


def _draw_bin_trend(data: FigureData, table: Any, after: str, ax: Any) -> None:
    """Draw the slope of binned errors on the classification error by number of bins: `BinTrendDisplay` with its legend inside."""
    BinTrendDisplay(table).plot(ax)
    ax.get_legend().remove()
    data.title(ax, data.clean, after)
    bottom, top = ax.get_ylim()
    ax.set_ylim(top=top + 0.45 * (top - bottom))  # room for a legend that keeps the panels of a row level
    plain_text(ax.legend(frameon=False, loc="upper left", labelspacing=0.2))


def loglog(data: FigureData) -> StudyFigure:
    """Return Figure 11: calibration error against error on logarithmic scales, a panel per recalibrator.

    A line per family goes through the models of all datasets; numbers are the table "lines" of `tc.study.log_fits`.
    """
    fits = {a: tc.study.log_fits(data.results, metric=data.metric, recalibrator=a) for a in data.recalibrators}
    row = [partial(_draw_log_fits, data, fit, after) for after, fit in fits.items()]
    parts = [(after, fit, fit.frame("lines")) for after, fit in fits.items()]
    return StudyFigure([row], *_concat_tables(parts), data.styles, share_y="row")


def _draw_log_fits(data: FigureData, fits: Any, after: str, ax: Any) -> None:
    """Draw models and the fitted line value = 10^intercept * error^slope of every family on logarithmic axes.

    `fits` is the result of `tc.study.log_fits`; a family without a finite slope has no line.
    """
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    for family, style in data.styles.items():
        part, lines = (t.filter(pl.col("family").fill_null(NO_FAMILY) == family) for t in fits.tables.values())
        if not part.height:
            continue
        error, value = part["error"].to_list(), part["value"].to_list()
        ax.plot(error, value, linestyle="none", markersize=2, alpha=0.45, **style)
        slope, intercept = lines["slope"][0], lines["intercept"][0]
        if slope is not None and np.isfinite(slope):
            ends = np.array([min(error), max(error)])
            ax.plot(ends, 10**intercept * ends**slope, color=style["color"], linewidth=1.4, zorder=4)
    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
        axis.set_minor_locator(NullLocator())
    data.label(ax, "", after)


def temperatures(data: FigureData) -> StudyFigure:
    """Return the figure of appendix D: the temperature fitted on the clean dataset of every model; above 1 it was overconfident.

    Without fits in the store it is the metric best-temperature. Numbers: model, dataset, temperature, family and size, and seed
    where there are fits. Refuse a store without either.
    """
    covariates = data.frame.select("model", "family", "size").unique("model", keep="first")
    table = data.store.fits().filter((pl.col("dataset") == data.clean) & pl.col("temperature").is_not_null())
    if table.height:
        table = table.join(covariates, on="model", how="left")
    else:  # a table from elsewhere has the best temperatures on the judged rows
        best_temperatures = data.frame.filter(
            (pl.col("metric") == "best-temperature") & (pl.col("dataset") == data.clean)
        )
        table = best_temperatures.select("model", "dataset", pl.col("value").alias("temperature"), "family", "size")
    if not table.height:
        raise InputError("the store holds no fitted temperatures; ask for the recalibrator temperature")
    table = table.sort("family", "model")
    return StudyFigure([[partial(_draw_temperatures, data, table)]], table)


def _draw_temperatures(data: FigureData, table: Any, ax: Any) -> None:
    """Draw the column temperature of `table` at 0, 1, ... for each family, spread from -0.25 to 0.25 in rising order."""
    for i, (family, style) in enumerate(data.styles.items()):
        part = table.filter(pl.col("family").fill_null(NO_FAMILY) == family).sort("temperature")
        spread = np.linspace(-0.25, 0.25, part.height) if part.height > 1 else np.zeros(part.height)
        ax.plot(i + spread, part["temperature"].to_list(), linestyle="none", **style)
    ax.axhline(1, **DOTTED)
    ax.set_xticks(range(len(data.styles)), list(data.styles), rotation=90, parse_math=False)
    ax.set(ylabel="Temperature\n(above 1: overconfident)")
    ax.set_title(data.clean, parse_math=False)


def agreement(data: FigureData) -> StudyFigure:
    """Return the figure of appendix E: a heat map of Kendall's tau between metrics over the models on the clean dataset.

    Numbers are those of `tc.study.rank_agreement` at severity 0.
    """
    coefficients = tc.study.rank_agreement(data.frame, dataset=data.clean)
    table = coefficients.frame().filter(pl.col("severity") == 0)

    def draw(ax: Any) -> None:
        """Draw the heat map in small type."""
        AgreementDisplay(table).plot(ax)
        ax.set_aspect("auto")  # square cells would leave names of metrics outside the picture, and a taller colour bar
        ax.tick_params(labelsize=6)
        ax.set_title(data.clean, parse_math=False)

    side = max(3.25, 0.3 * len({*table["metric_a"], *table["metric_b"]}) + 1.8)
    return StudyFigure([[draw]], table, coefficients.notes, size=(side, side))


_OF_MODELS = (families, recalibration, covariate, severities, sizes, natural)  # Figures 1 to 6, and 10 (covariate)
_OF_METRICS = (residuals, bins, loglog, temperatures, agreement)  # Figures 8, 9 and 11, appendices D and E
FIGURES: dict[str, Callable[[FigureData], StudyFigure]] = {fig.__name__: fig for fig in (*_OF_MODELS, *_OF_METRICS)}


def draw_figure(store: Any, name: str, **choice: Any) -> StudyFigure:
    """Return a figure of a store by its name in FIGURES, not drawn yet: `plot()` draws it, `frame()` has its numbers.

    `choice` are keyword arguments of `FigureData.of`. For several figures of one store, `store` may be a FigureData.
    """
    options.choice(name, tuple(FIGURES), "figure")
    return FIGURES[name](store if isinstance(store, FigureData) else FigureData.of(store, **choice))
