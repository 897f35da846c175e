"""The flexible calibration curve with its bands, for one cohort or several sites."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from truecal.clinical import FlexibleCurve
from truecal.frame import Frame
from truecal.plot.canvas import GREY, SERIES
from truecal.plot.display import Display, Numbers, columns
from truecal.predictions import border

_MOST_BANDS = 2  # with more curves, bands would hide each other


class FlexibleDisplay(Display):
    """Outcome against predicted risk: curve, pointwise band (dark) and simultaneous band (light), and the scores beneath.

    Columns: `curve`, `score`, `outcome`, `low`, `high`, `lowest` and `highest`.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> curve = tc.flexible_curve(tc.Predictions.from_probs(p, rng.random(500) < p), at=[0.2, 0.5])
    >>> FlexibleDisplay.from_curves({"spline": curve}, plot=False).frame()["score"]
    array([0.2, 0.5])
    """

    def __init__(self, numbers: Numbers, *, scores: ArrayLike | None = None) -> None:
        super().__init__(numbers, "curve", "score", "outcome", "low", "high", "lowest", "highest")
        self.scores = None if scores is None else border.check_scores(scores)

    @classmethod
    def from_curves(
        cls, curves: Mapping[str, FlexibleCurve], *, scores: ArrayLike | None = None, plot: bool = True, ax: Any = None
    ) -> Self:
        """Draw what :func:`truecal.flexible_curve` found, by name; `scores` of the rows give the histogram."""
        rows = [{"curve": name, **row} for name, curve in curves.items() for row in curve.frame()]
        made = cls(Frame.from_records(rows), scores=scores)
        return made.plot(ax) if plot else made

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        (curve,) = columns(self._frame, "curve")
        axes = self._open(ax, size=(5.5, 5.5))
        names = list(dict.fromkeys(curve))
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 4)), linewidth=1, zorder=1)
        for i, name in enumerate(names):
            rows = [j for j in range(len(curve)) if curve[j] == name]
            style = {k: v for k, v in SERIES[i % len(SERIES)].items() if k != "marker"}
            x, y = self._frame["score"][rows], self._frame["outcome"][rows]
            axes.plot(x, y, label=str(name), linewidth=1.8, zorder=3, **style)
            if len(names) <= _MOST_BANDS:
                for below, above, shade in (("lowest", "highest", 0.12), ("low", "high", 0.2)):
                    bottom, top = self._frame[below][rows], self._frame[above][rows]
                    axes.fill_between(x, bottom, top, color=style["color"], alpha=shade, linewidth=0, zorder=2)
        if self.scores is not None:
            count, edges = np.histogram(self.scores, 50, (0, 1))
            height = 0.08 * count / max(count.max(), 1)
            axes.bar(edges[:-1], height, width=0.02, align="edge", color=GREY, alpha=0.6, linewidth=0)
        axes.set(xlabel="Predicted risk", ylabel="Observed frequency", xlim=(0, 1), ylim=(0, 1))
        if len(names) > 1:
            axes.legend(frameon=False, loc="upper left")
        return self._done()
