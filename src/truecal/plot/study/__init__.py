"""Pictures of studies. Figures of a store need polars, and are loaded on use."""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; at run time __getattr__ does the same on use
    from truecal.plot.study.figures import FIGURES as FIGURES
    from truecal.plot.study.figures import Choice as Choice
    from truecal.plot.study.figures import External as External
    from truecal.plot.study.figures import StudyFigure as StudyFigure
    from truecal.plot.study.figures import draw_figure as draw_figure
    from truecal.plot.study.interventions import write_pictures as write_pictures

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.plot.study.figures": "FIGURES Choice External StudyFigure draw_figure",
        "truecal.plot.study.interventions": "write_pictures",
    },
)
