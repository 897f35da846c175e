"""Models under corruptions of growing severity: Figures 4 and 5 of Minderer et al. (2021)."""

from typing import Any

import polars as pl

import truecal as tc
from truecal.plot.study.families import NO_FAMILY
from truecal.plot.study.figures.panels import Panel, Shown, StudyFigure, title


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
    return StudyFigure("severities", rows, pl.concat(tables), tuple(notes))


def _over_types(shown: Shown, recalibrator: str) -> Any:
    reference = shown.store.references() or None
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
    """Figure 5: calibration error of every model minus that of the largest of its family, over severities."""
    row: list[Panel | None] = []
    tables, notes = [], []
    for recalibrator in shown.recalibrators:
        means = _over_types(shown, recalibrator)
        table = means.frame().filter(pl.col("value_beside_largest").is_not_null())
        tables.append(table.with_columns(recalibrator=pl.lit(recalibrator)))
        notes += [note for note in means.notes if note not in notes]
        row.append(_beside(shown, table, shown.when(recalibrator)))
    if not any(table.height for table in tables):
        notes.append("sizes of models are unknown; give them under models, or with --about when importing")
    return StudyFigure("sizes", [row], pl.concat(tables), tuple(notes), shown.styles)


def _beside(shown: Shown, table: Any, words: str) -> Panel:
    def draw(ax: Any) -> None:
        ax.axhline(0, color="#999999", linewidth=0.8, linestyle=":")
        for model in table["model"].unique(maintain_order=True):
            part = table.filter(pl.col("model") == model).sort("severity")
            style = shown.styles[part["family"][0] or NO_FAMILY]
            width = 0.6 + 1.6 * float(part["relative_size"][0] or 0.3)
            ax.plot(
                part["severity"].to_list(),
                part["value_beside_largest"].to_list(),
                linewidth=width,
                markersize=3,
                **style,
            )
        ax.set(xlabel="Severity of shift", ylabel=f"{shown.metric}\nminus the largest of the family")
        title(ax, words)

    return draw
