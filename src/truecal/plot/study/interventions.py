"""Bars with error bars for a comparison of interventions: one cluster per thing judged, one bar per intervention."""

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from truecal.plot.canvas import GREY, SERIES, Frame, columns, new_axes
from truecal.study.interventions.compare import Comparison, Summed
from truecal.study.interventions.config import AFTERWARDS, BASELINE, WHILE_TRAINING

_COLOURS = (*(series["color"] for series in SERIES), "#56b4e9", "#e69f00")
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo")
_KNOWN = (BASELINE, *WHILE_TRAINING, *AFTERWARDS)  # an intervention looks the same in every picture


class InterventionsDisplay:
    """Means over seeds as bars, standard deviations as error bars; a thick line marks what a calibrated model would get.

    >>> frame = {"intervention": ["none", "focal"], "what": ["full"] * 2, "mean": [0.1, 0.05], "sd": [0.01, None]}
    >>> display = InterventionsDisplay(frame)
    >>> display.frame()["mean"]
    [0.1, 0.05]
    """

    def __init__(self, frame: Frame, *, ylabel: str = "Calibration error") -> None:
        columns(frame, "intervention", "what", "mean", "sd")
        self._frame, self.ylabel = frame, ylabel
        self.figure_: Any = None
        self.ax_: Any = None

    def frame(self) -> Frame:
        """One row per intervention and thing judged, as columns."""
        return self._frame

    def plot(self, ax: Any = None) -> "InterventionsDisplay":
        """Draw on `ax`, or on a new figure."""
        kinds, whats, means, spreads = columns(self._frame, "intervention", "what", "mean", "sd")
        floor = self._frame.get("if_calibrated", [None] * len(kinds))
        methods, things = sorted(dict.fromkeys(kinds), key=_place), list(dict.fromkeys(whats))
        self.figure_, self.ax_ = new_axes(ax, size=(max(8.0, 1.5 * len(things) + 1), 4.5))
        width = 0.84 / len(methods)
        for i, name in enumerate(methods):
            rows = [j for j in range(len(kinds)) if kinds[j] == name]
            x = np.array([things.index(whats[j]) + (i - (len(methods) - 1) / 2) * width for j in rows])
            height = np.array([means[j] for j in rows], float)
            self.ax_.bar(x, height, width, label=name, **_style(name, i))
            spread = np.array([np.nan if spreads[j] is None else spreads[j] for j in rows], float)
            self.ax_.errorbar(x, height, np.nan_to_num(spread), fmt="none", ecolor="black", elinewidth=1, capsize=2)
            marks = [(at, floor[j]) for at, j in zip(x, rows, strict=True) if floor[j] is not None]
            if marks:
                low, high = np.array([at for at, _ in marks]) - width / 2, np.array([at for at, _ in marks]) + width / 2
                label = "if it were calibrated" if i == len(methods) - 1 else None
                self.ax_.hlines([value for _, value in marks], low, high, colors="black", linewidth=2, label=label)
        self.ax_.set_xticks(range(len(things)), things)
        self.ax_.axhline(0, color=GREY, linewidth=0.8)
        self.ax_.set(ylabel=self.ylabel)
        self.ax_.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize="small", handlelength=3
        )
        return self


def _place(name: str) -> int:
    return _KNOWN.index(name) if name in _KNOWN else len(_KNOWN)


def _style(name: str, position: int) -> dict[str, Any]:
    """Colour and hatch of an intervention; those we do not know follow by their position."""
    i = _place(name) + (0 if name in _KNOWN else position)
    turn, count = i // len(_COLOURS), len(_COLOURS)
    return {"color": _COLOURS[i % count], "hatch": _HATCHES[(i + turn) % count], "edgecolor": "white"}


_ERROR = "Calibration error"
_PICTURES: dict[str, tuple[str, Callable[[Summed], str | None]]] = {
    "errors": (_ERROR, lambda s: _plain(s, "traditional", "top-", "full")),
    "groups": (_ERROR, lambda s: _plain(s, "groups ", "full")),
    "labels": (_ERROR, lambda s: s.selection if s.metric == "error" and s.selection != "all" else None),
    "likert": ("Error that leaves the interval", lambda s: _of(s, "inter-interval", "likert ")),
    "likert_within": ("Error inside the interval", lambda s: _of(s, "total-variation", "likert ")),
    "likert_share": ("Share of outputs", lambda s: _of(s, "share", "likert ")),
    "top_k_accuracy": ("Top-k accuracy", lambda s: _of(s, "accuracy", "")),
    "entropy": ("Mean entropy (nats)", lambda s: "all classes" if s.metric == "entropy" else None),
    "confidence": ("Mean confidence, less the base model's", lambda s: s.lens if s.lens.startswith("rank ") else None),
}


def pictures(found: Comparison) -> dict[str, InterventionsDisplay]:
    """The figures of Kirchenbauer, Oaks & Heim (2022) by name, those that the plan's lenses allow."""
    shown = {}
    for name, (ylabel, wanted) in _PICTURES.items():
        relative = name == "confidence"
        frame = _frame(found.summary, wanted, relative=relative)
        if name.startswith("likert"):  # an interval that the base model leaves empty keeps its place
            frame = _in_order(frame, list(found.plan.lenses.likert))
        if name == "groups":  # from coarse to fine
            frame = _in_order(frame, [*found.plan.lenses.groupings, "full"])
        if frame["what"]:
            shown[name] = InterventionsDisplay(frame, ylabel=ylabel)
    for given in next(iter(found.plan.lenses.groupings.values()), {}):
        frame = _frame(found.summary, partial(_of_group, given))
        if frame["what"]:
            name = f"group_confidence_{_file_name(given)}"
            shown[name] = InterventionsDisplay(frame, ylabel=f"Mean confidence where the label is {given}")
    return shown


def write_pictures(found: Comparison, folder: str | PathLike[str]) -> list[Path]:
    """Draw every figure into `<folder>/<name>.png`; returns the paths."""
    from matplotlib import pyplot

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, display in pictures(found).items():
        figure = display.plot().figure_
        paths.append(target / f"{name}.png")
        figure.savefig(paths[-1], dpi=110, metadata={"Software": None})
        pyplot.close(figure)
    return paths


def _frame(summary: Sequence[Summed], wanted: Callable[[Summed], str | None], *, relative: bool = False) -> Frame:
    frame: Frame = {name: [] for name in ("intervention", "what", "mean", "sd", "if_calibrated")}
    for one in summary:
        what = wanted(one)
        if what is None or (relative and one.intervention == BASELINE):
            continue
        mean, spread = (one.difference, one.difference_sd) if relative else (one.mean, one.sd)
        for name, value in zip(frame, (one.intervention, what, mean, spread, one.if_calibrated), strict=True):
            frame[name].append(value)
    return frame


def _in_order(frame: Frame, things: list[str]) -> Frame:
    rows = sorted(range(len(frame["what"])), key=lambda i: things.index(frame["what"][i]))
    return {column: [values[i] for i in rows] for column, values in frame.items()}


def _plain(one: Summed, *starts: str) -> str | None:
    fits = one.metric == "error" and one.selection == "all" and one.lens.startswith(starts)
    return one.lens.removeprefix("groups ") if fits else None


def _of(one: Summed, metric: str, start: str) -> str | None:
    return one.lens.removeprefix(start) if one.metric == metric and one.lens.startswith(start) else None


def _of_group(given: str, one: Summed) -> str | None:
    fits = one.metric == "confidence" and one.selection == f"label {given}"
    return one.lens.partition(": ")[2] if fits else None


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)
