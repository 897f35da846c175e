"""What all displays draw on and with: axes, colours that the colour-blind can tell apart, and the scale that zooms in on 1.

Every series also differs in marker or dash, so that a grey print can be read.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal.errors import MissingExtraError
from truecal.types import Float64s

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#00795a", "#a5558c", "#5a6675"
SERIES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": GREEN, "linestyle": "-.", "marker": "^"},
    {"color": PURPLE, "linestyle": ":", "marker": "D"},
    {"color": GREY, "linestyle": (0, (5, 1, 1, 1)), "marker": "v"},
)


def new_axes(ax: Any, *, size: tuple[float, float] = (6.0, 5.0)) -> tuple[Any, Any]:
    """The figure and axes to draw on: those given, or new ones."""
    if ax is not None:
        return ax.figure, ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError.of("matplotlib", "plot") from error
    return pyplot.subplots(figsize=size, layout="constrained")


def zoomed(values: ArrayLike, floor: float) -> Float64s:
    """Distance from 1, at least `floor`: what a zoomed axis shows on a logarithmic scale."""
    return np.maximum(1 - np.asarray(values, np.float64), floor)


def zoom_axis(ax: Any, which: str, floor: float) -> None:
    """Turn an axis of distances from 1 into one of probabilities that spreads out towards 1: 0, 0.9, 0.99, ..."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    decades = round(-np.log10(floor))
    getattr(ax, f"set_{which}scale")("log")
    getattr(ax, f"set_{which}lim")(1.0, floor)
    axis = getattr(ax, f"{which}axis")
    axis.set_major_locator(FixedLocator([10.0**-k for k in range(decades + 1)]))
    axis.set_major_formatter(FuncFormatter(lambda gap, _: f"{1 - gap:.{max(0, round(-np.log10(gap)))}f}"))
    axis.set_minor_locator(NullLocator())


def zoom_floor(n: float) -> float:
    """The smallest distance from 1 worth showing for n predictions, a power of ten."""
    return float(max(1e-6, 10.0 ** np.floor(np.log10(0.5 / max(n, 1.0)))))
