"""What abstaining costs, model against model: Figure 7 of Minderer et al. (2021). Reads the prediction files of a study again."""

from itertools import combinations
from typing import Any

import polars as pl

import truecal as tc
from truecal.errors import InputError
from truecal.plot.study.cost_map import CostMapDisplay
from truecal.plot.study.figures.panels import Panel, Shown, StudyFigure, title

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
