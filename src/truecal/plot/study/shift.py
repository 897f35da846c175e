"""Models over the severity of shift."""

from typing import Any

from truecal.plot.canvas import SERIES
from truecal.plot.display import Display, Numbers, columns
from truecal.plot.study.families import MetricResult, chosen, families_of, family_legend, family_styles


class ShiftDisplay(Display):
    """A metric (or the error) against severity, a line per model in the colour and marker of its family.

    >>> frame = {"model": ["a", "a"], "family": ["x", "x"], "severity": [0.0, 1.0], "value": [0.02, 0.05]}
    >>> ShiftDisplay(frame).frame()["value"].tolist()
    [0.02, 0.05]
    """

    def __init__(self, numbers: Numbers, *, value: str = "value", label: str = "calibration error") -> None:
        super().__init__(numbers, "model", "family", "severity", value)
        self.value, self.label = value, label

    @classmethod
    def from_result(
        cls, result: MetricResult, *, dataset: str | None = None, value: str = "value", ax: Any = None
    ) -> "ShiftDisplay":
        """Draw one dataset of :func:`truecal.study.shift`; `value` names its column, such as "error" or "value_beside_largest"."""
        label = result.metric if value == "value" else value.replace("_", " ").replace("value", result.metric)
        return cls(chosen(result.frame(), dataset=dataset), value=value, label=label).plot(ax)

    def plot(self, ax: Any = None) -> "ShiftDisplay":
        """Draw on `ax`, or on a new figure."""
        models, severity, value = columns(self._frame, "model", "severity", self.value)
        families = families_of(self._frame)
        styles = family_styles(families)
        dashes = [style["linestyle"] for style in SERIES]
        named = set()
        self._open(ax)
        for model in dict.fromkeys(models):
            rows = [i for i, name in enumerate(models) if name == model and value[i] is not None]
            if not rows:
                continue
            family = families[rows[0]]
            points = sorted((severity[i], value[i]) for i in rows)
            self.ax_.plot(
                *zip(*points, strict=True),
                label=None if family in named else family,
                linestyle=dashes[list(styles).index(family) % len(dashes)],
                linewidth=1.2,
                markersize=4,
                alpha=0.85,
                **styles[family],
            )
            named.add(family)
        self.ax_.set(xlabel="Severity of shift", ylabel=self.label)
        family_legend(self.ax_, self._frame)
        return self._done()
