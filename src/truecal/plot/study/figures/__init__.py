"""The figures of Minderer et al. (2021), drawn from a store: `draw_figure(store, "families")`."""

from collections.abc import Callable
from typing import Any

from truecal import options
from truecal.plot.study.figures.costs import costs
from truecal.plot.study.figures.models import covariate, families, natural, recalibration
from truecal.plot.study.figures.panels import Choice, External, Shown, StudyFigure
from truecal.plot.study.figures.scores import agreement, bins, loglog, residuals, temperatures
from truecal.plot.study.figures.shifted import severities, sizes

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


__all__ = ["FIGURES", "Choice", "External", "StudyFigure", "draw_figure"]
