"""A comparison of interventions in words and tables, for people: the same for the terminal and for Markdown."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from truecal.study.interventions.plan import AFTERWARDS, BASELINE, TOGETHER, WHILE_TRAINING, LensPlan
from truecal.study.interventions.summary import Compared, Summed
from truecal.table import Frame

# ----------------------------------------------------------------------------------------------------
# A comparison of interventions in words and tables, for people: the same for the terminal and for Markdown

ARROWS = {"lower": "↓", "higher": "↑", "": ""}
Wanted = Callable[[Summed], str | None]  # the column a number belongs to, or None


def tables(result: Compared) -> dict[str, Frame]:
    """Title -> table with one row per intervention: mean ± standard deviation over the seeds, and an arrow where it changed."""
    first = next(iter(result.plan.lenses.groupings), "")
    shown = {
        "Strength chosen on the validation rows": _strengths(result),
        "Calibration error: the usual one, top k, all classes": _table(result, _of_lens("traditional", "top-", "full")),
        "Calibration error of groups of classes": _table(result, _of_lens("groups ")),
        f"Calibration error of {first or 'all classes'} among the rows of one label": _table(result, _by_label),
        "Error that leaves the Likert interval": _table(result, _of_likert("inter-interval")),
        "Error inside the Likert interval (total variation)": _table(result, _of_likert("total-variation")),
        "Share of outputs in each Likert interval": _table(result, _of_likert("share")),
        "Accuracy, top-k accuracy and scores": _table(result, _scores),
        "Mean confidence of the k-th most probable class, less the base model's": _table(
            result, _rank, difference=True
        ),
    }
    return {title: table for title, table in shown.items() if len(table.columns) > 1}


def verdict(result: Compared) -> list[str]:
    """Does what lowers the usual error lower the others? One line per intervention, then sentences for all."""
    lines, helped, everywhere, harmful = [], [], [], []
    for kind in result.choice.strengths:
        if kind == BASELINE:
            continue
        own = _errors(result, kind)
        usual = next(s for s in own if s.lens == "traditional")
        others = [s for s in own if s is not usual]
        words = [
            f"{name} {', '.join(_name(s) for s in others if s.verdict == verdict_word)}"
            for verdict_word, name in (("lower", "lower"), ("higher", "HIGHER"), ("", "no clear change"))
            if any(s.verdict == verdict_word for s in others)
        ]
        lines.append(f"{kind}: usual error {usual.verdict or 'not clearly changed'}; {'; '.join(words)}")
        if usual.verdict == "lower":
            helped.append(kind)
            on_all_rows = [s for s in others if s.selection == "all"]
            everywhere += [kind] if all(s.verdict == "lower" for s in on_all_rows if s.metric == "error") else []
            harmful += [kind] if any(s.verdict == "higher" for s in on_all_rows) else []
    if not helped:
        return [*lines, f"None of the {len(lines)} interventions clearly lowers the usual error here."]
    lines.append(
        f"Of {len(lines)} interventions {_counted(helped)} clearly lower the usual error. Of these, {_counted(everywhere)} "
        f"also lower every other error over all rows (top k, all classes, groups), and {_counted(harmful)} have one that rose."
    )
    return lines + _order(result) + _labels(result, helped)


def _errors(result: Compared, kind: str) -> list[Summed]:
    return [s for s in result.summary if s.intervention == kind and s.metric in ("error", "inter-interval")]


def _order(result: Compared) -> list[str]:
    """Whether the usual error puts the interventions in the order of the other errors."""
    from scipy.stats import kendalltau

    by_lens: dict[str, list[float]] = {}
    for kind in result.choice.strengths:
        for one in _errors(result, kind):
            if kind != BASELINE and one.metric == "error" and one.selection == "all":
                by_lens.setdefault(one.lens, []).append(one.mean)
    usual = by_lens.pop("traditional")
    if len(usual) < 3:
        return []
    shown = [f"{lens} {kendalltau(usual, means).statistic:.2f}" for lens, means in by_lens.items()]
    return [
        f"The order of the {len(usual)} interventions by the usual error against that by others (Kendall's tau, 1 is the same "
        f"order): {', '.join(shown)}."
    ]


def _labels(result: Compared, helped: list[str]) -> list[str]:
    """Errors among the rows of one label, beside what they would be for outputs that are the truth."""
    own = [s for kind in helped for s in _errors(result, kind) if s.selection != "all" and s.if_calibrated is not None]
    if not own:
        return []
    risen = sum(s.verdict == "higher" for s in own)
    mean, twin = (sum(getattr(s, name) or 0.0 for s in own) / len(own) for name in ("mean", "if_calibrated"))
    return [
        f"Among the rows of one label, {risen} of these interventions' {len(own)} errors are higher than the base model's. Such "
        f"errors are not 0 for a calibrated model: on average they are {mean:.3f}, and would be {twin:.3f} if the outputs were "
        "the truth."
    ]


def _counted(names: list[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def text(result: Compared) -> str:
    """All tables, the answer and the notes."""
    return _joined(result, lambda title, table: f"{title}\n\n{table.to_text()}", "\n\n")


def markdown(result: Compared) -> str:
    """The same as Markdown."""
    return _joined(result, lambda title, table: f"## {title}\n\n{table.to_markdown()}", "\n\n")


def _joined(result: Compared, show: Callable[[str, Frame], str], gap: str) -> str:
    rows, seeds = result.rows, len(result.plan.seeds)
    same = "" if rows["test originals"] == rows["test"] else f" (made from {rows['test originals']} originals)"
    head = (
        f"{result.plan.name}: {rows['train']} rows to train on, {rows['validation']} to choose by, {rows['test']} to judge"
        f"{same}; {seeds} seed{'s' if seeds > 1 else ''}. Mean ± standard deviation over seeds; ↓ ↑ lower or higher than the "
        "base model (95 %, paired by seed). 'if calibrated': what the base model would get if its outputs were the truth."
    )
    parts = [head, *(show(title, table) for title, table in tables(result).items())]
    parts.append("\n".join(f"- {line}" for line in verdict(result)))
    if result.notes:
        parts.append("\n".join(f"note: {note}" for note in result.notes))
    return gap.join(parts)


def _table(result: Compared, wanted: Wanted, *, difference: bool = False) -> Frame:
    cells: dict[str, dict[str, str]] = {}
    names: list[str] = []
    floor: dict[str, str] = {}
    for one in result.summary:
        name = wanted(one)
        if name is None:
            continue
        if name not in names:
            names.append(name)
        cells.setdefault(one.intervention, {})[name] = _cell(one, difference)
        if one.intervention == BASELINE and one.if_calibrated is not None:
            floor[name] = f"{one.if_calibrated:.4f}"
    scale = list(result.plan.lenses.likert)
    if set(names) <= set(scale):  # an interval that the base model leaves empty keeps its place
        names.sort(key=scale.index)
    rows = [(kind, *(cells.get(kind, {}).get(name, "-") for name in names)) for kind in result.choice.strengths]
    if floor:
        rows.append(("if calibrated", *(floor.get(name, "-") for name in names)))
    return _framed(("intervention", *names), rows)


def _framed(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Frame:
    return Frame(dict(zip(columns, zip(*rows, strict=True), strict=True)))


def _cell(one: Summed, difference: bool) -> str:
    if difference:
        return (
            f"{one.difference:+.4f}"
            if one.difference is not None and one.intervention != BASELINE
            else f"{one.mean:.4f}"
        )
    spread = "" if one.sd is None else f" ± {one.sd:.4f}"
    return f"{one.mean:.4f}{spread} {ARROWS[one.verdict]}".rstrip()


def _strengths(result: Compared) -> Frame:
    rows = []
    for kind, strength in result.choice.strengths.items():
        tried = [t for t in result.choice.tried if t.intervention == kind]
        mine = [t for t in tried if t.strength == strength]
        others = list(dict.fromkeys(str(t.strength) for t in tried))
        error, right = (sum(getattr(t, name) for t in mine) / len(mine) for name in ("error", "accuracy"))
        chosen = "-" if strength is None else str(strength)
        rows.append((kind, chosen, "-" if strength is None else ", ".join(others), f"{error:.4f}", f"{right:.4f}"))
    return _framed(("intervention", "strength", "tried", "usual error", "accuracy"), rows)


def _of_lens(*starts: str) -> Wanted:
    def wanted(one: Summed) -> str | None:
        fits = one.metric == "error" and one.selection == "all" and one.lens.startswith(starts)
        return one.lens.removeprefix("groups ") if fits else None

    return wanted


def _of_likert(metric: str) -> Wanted:
    return lambda one: one.lens.removeprefix("likert ") if one.metric == metric else None


def _by_label(one: Summed) -> str | None:
    if one.metric != "error" or one.selection == "all":
        return None
    return one.selection if one.lens.startswith("groups ") else f"{one.selection} ({one.lens})"


def _scores(one: Summed) -> str | None:
    names = {"accuracy": one.lens if one.lens != "top-1" else "accuracy"}
    plain: Sequence[str] = ("entropy", "log loss", "brier")
    return names.get(one.metric) or (one.metric if one.metric in plain else None)


def _rank(one: Summed) -> str | None:
    return one.lens if one.lens.startswith("rank ") else None


def _name(one: Summed) -> str:
    return one.lens if one.selection == "all" else one.selection


# ----------------------------------------------------------------------------------------------------
# Which numbers of a comparison of interventions stand in which picture (Kirchenbauer, Oaks & Heim 2022, section 5)

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
