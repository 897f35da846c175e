"""Which numbers of a comparison of interventions stand in which picture (Kirchenbauer, Oaks & Heim 2022, section 5)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from truecal.study.interventions.config import AFTERWARDS, BASELINE, TOGETHER, WHILE_TRAINING, LensPlan
from truecal.study.interventions.summary import Summed

Columns = dict[str, list[Any]]
_KNOWN = (BASELINE, *WHILE_TRAINING, *AFTERWARDS, TOGETHER)  # an intervention looks the same in every picture

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


def picture_columns(summary: Sequence[Summed], lenses: LensPlan) -> dict[str, tuple[str, Columns]]:
    """Name -> title of the vertical axis, and columns to draw, for every picture that the plan's lenses allow."""
    shown = {}
    for name, (ylabel, wanted) in _PICTURES.items():
        relative = name == "confidence"
        frame = _frame(summary, wanted, relative=relative)
        if name.startswith("likert"):  # an interval that the base model leaves empty keeps its place
            frame = _in_order(frame, list(lenses.likert))
        if name == "groups":  # from coarse to fine
            frame = _in_order(frame, [*lenses.groupings, "full"])
        if frame["what"]:
            shown[name] = (ylabel, frame)
    for given in next(iter(lenses.groupings.values()), {}):
        frame = _frame(summary, partial(_of_group, given))
        if frame["what"]:
            name = f"group_confidence_{_file_name(given)}"
            shown[name] = (f"Mean confidence where the label is {given}", frame)
    return shown


def _frame(summary: Sequence[Summed], wanted: Callable[[Summed], str | None], *, relative: bool = False) -> Columns:
    names = ("intervention", "style", "what", "mean", "sd", "if_calibrated")
    frame: Columns = {name: [] for name in names}
    others = [name for name in dict.fromkeys(one.intervention for one in summary) if name not in _KNOWN]
    place = {name: i for i, name in enumerate((*_KNOWN, *others))}
    for one in summary:
        what = wanted(one)
        if what is None or (relative and one.intervention == BASELINE):
            continue
        mean, spread = (one.difference, one.difference_sd) if relative else (one.mean, one.sd)
        row = (one.intervention, place[one.intervention], what, mean, spread, one.if_calibrated)
        for name, value in zip(names, row, strict=True):
            frame[name].append(value)
    return frame


def _in_order(frame: Columns, things: list[str]) -> Columns:
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
