"""A comparison of interventions in words, tables and columns to draw (Kirchenbauer, Oaks & Heim 2022, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from truecal.study.interventions.plan import AFTERWARDS, BASELINE, TOGETHER, WHILE_TRAINING, LensPlan
from truecal.study.interventions.summary import Compared, Summed
from truecal.table import Frame

ARROWS = {"lower": "↓", "higher": "↑", "": ""}
Selector = Callable[[Summed], str | None]  # the column a number belongs to, or None
Columns = dict[str, list[Any]]


def _select(metric: str, *starts: str) -> Selector:
    """Numbers of a metric over all rows, by the lens they start with; kinds of lenses are left out of the names."""

    def select(one: Summed) -> str | None:
        fits = one.metric == metric and one.selection == "all" and one.lens.startswith(starts)
        return one.lens.removeprefix("groups ").removeprefix("likert ") if fits else None

    return select


def _select_label(one: Summed) -> str | None:
    if one.metric != "error" or one.selection == "all":
        return None
    return one.selection if one.lens.startswith("groups ") else f"{one.selection} ({one.lens})"


def _select_score(one: Summed) -> str | None:
    if one.metric == "accuracy":
        return one.lens if one.lens != "top-1" else "accuracy"
    return one.metric if one.metric in ("entropy", "log loss", "brier") else None


_TABLES: Mapping[str, Selector] = {
    "Calibration error: the usual one, top k, all classes": _select("error", "traditional", "top-", "full"),
    "Calibration error of groups of classes": _select("error", "groups "),
    "Calibration error of {} among the rows of one label": _select_label,
    "Error that leaves the Likert interval": _select("inter-interval", "likert "),
    "Error inside the Likert interval (total variation)": _select("total-variation", "likert "),
    "Share of outputs in each Likert interval": _select("share", "likert "),
    "Accuracy, top-k accuracy and scores": _select_score,
    "Mean confidence of the k-th most probable class, less the base model's": _select("confidence", "rank "),
}
# Name of the picture -> title of its vertical axis, and what it shows.
_PICTURES: Mapping[str, tuple[str, Selector]] = {
    "errors": ("Calibration error", _select("error", "traditional", "top-", "full")),
    "groups": ("Calibration error", _select("error", "groups ", "full")),
    "labels": ("Calibration error", lambda s: s.selection if _select_label(s) is not None else None),
    "likert": ("Error that leaves the interval", _select("inter-interval", "likert ")),
    "likert_within": ("Error inside the interval", _select("total-variation", "likert ")),
    "likert_share": ("Share of outputs", _select("share", "likert ")),
    "top_k_accuracy": ("Top-k accuracy", _select("accuracy", "")),
    "entropy": ("Mean entropy (nats)", lambda s: "all classes" if s.metric == "entropy" else None),
    "confidence": ("Mean confidence, less the base model's", _select("confidence", "rank ")),
}


def tables(result: Compared) -> dict[str, Frame]:
    """Title -> table with one row per intervention: mean ± standard deviation over the seeds, and an arrow where it changed."""
    first = next(iter(result.plan.lenses.groupings), "all classes")
    frames = {"Strength chosen on the validation rows": _tabulate_strengths(result)}
    frames |= {title.format(first): _tabulate(result, selector) for title, selector in _TABLES.items()}
    return {title: frame for title, frame in frames.items() if len(frame.columns) > 1}


def _tabulate(result: Compared, selector: Selector) -> Frame:
    cells: dict[str, dict[str, str]] = {}
    names: list[str] = []
    calibrated: dict[str, str] = {}
    for one in result.summary:
        name = selector(one)
        if name is None:
            continue
        if name not in names:
            names.append(name)
        cells.setdefault(one.intervention, {})[name] = _cell(one)
        if one.intervention == BASELINE and one.if_calibrated is not None:
            calibrated[name] = f"{one.if_calibrated:.4f}"
    scale = list(result.plan.lenses.likert)
    if set(names) <= set(scale):  # in the order of the scale, also where the base model leaves an interval empty
        names.sort(key=scale.index)
    rows = {kind: cells.get(kind, {}) for kind in result.choice.strengths}
    rows |= {"if calibrated": calibrated} if calibrated else {}
    columns = {name: [row.get(name, "-") for row in rows.values()] for name in names}
    return Frame({"intervention": list(rows), **columns})


def _cell(one: Summed) -> str:
    if one.lens.startswith("rank "):
        is_base = one.difference is None or one.intervention == BASELINE
        return f"{one.mean:.4f}" if is_base else f"{one.difference:+.4f}"
    spread = "" if one.sd is None else f" ± {one.sd:.4f}"
    return f"{one.mean:.4f}{spread} {ARROWS[one.verdict]}".rstrip()


def _tabulate_strengths(result: Compared) -> Frame:
    rows = []
    for kind, strength in result.choice.strengths.items():
        tried = [t for t in result.choice.tried if t.intervention == kind]
        chosen = [t for t in tried if t.strength == strength]
        error, accuracy = (sum(getattr(t, name) for t in chosen) / len(chosen) for name in ("error", "accuracy"))
        words = (
            ["-", "-"]
            if strength is None
            else [str(strength), ", ".join(dict.fromkeys(str(t.strength) for t in tried))]
        )
        rows.append((kind, *words, f"{error:.4f}", f"{accuracy:.4f}"))
    names = ("intervention", "strength", "tried", "usual error", "accuracy")
    return Frame(dict(zip(names, zip(*rows, strict=True), strict=True)))


def verdict(result: Compared) -> list[str]:
    """Does what lowers the usual error lower the others? One line per intervention, then sentences for all."""
    lines, helped, everywhere, harmful = [], [], [], []
    for kind in result.choice.strengths:
        if kind == BASELINE:
            continue
        errors = _errors(result, kind)
        usual = next(s for s in errors if s.lens == "traditional")
        others = [s for s in errors if s is not usual]
        parts = []
        for change, words in (("lower", "lower"), ("higher", "HIGHER"), ("", "no clear change")):
            changed = [s.lens if s.selection == "all" else s.selection for s in others if s.verdict == change]
            parts += [f"{words} {', '.join(changed)}"] if changed else []
        lines.append(f"{kind}: usual error {usual.verdict or 'not clearly changed'}; {'; '.join(parts)}")
        if usual.verdict == "lower":
            helped.append(kind)
            all_rows = [s for s in others if s.selection == "all"]
            everywhere += [kind] if all(s.verdict == "lower" for s in all_rows if s.metric == "error") else []
            harmful += [kind] if any(s.verdict == "higher" for s in all_rows) else []
    if not helped:
        return [*lines, f"None of the {len(lines)} interventions clearly lowers the usual error here."]
    lines.append(
        f"Of {len(lines)} interventions {_count(helped)} clearly lower the usual error. Of these, {_count(everywhere)} "
        f"also lower every other error over all rows (top k, all classes, groups), and {_count(harmful)} have one that rose."
    )
    return lines + _compare_orders(result) + _compare_labels(result, helped)


def _count(names: list[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def _errors(result: Compared, kind: str) -> list[Summed]:
    return [s for s in result.summary if s.intervention == kind and s.metric in ("error", "inter-interval")]


def _compare_orders(result: Compared) -> list[str]:
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
    taus = [f"{lens} {kendalltau(usual, means).statistic:.2f}" for lens, means in by_lens.items()]
    return [
        f"The order of the {len(usual)} interventions by the usual error against that by others (Kendall's tau, 1 is the same "
        f"order): {', '.join(taus)}."
    ]


def _compare_labels(result: Compared, helped: list[str]) -> list[str]:
    """Errors among the rows of one label, beside those of a calibrated model."""
    errors = [
        s for kind in helped for s in _errors(result, kind) if s.selection != "all" and s.if_calibrated is not None
    ]
    if not errors:
        return []
    risen = sum(s.verdict == "higher" for s in errors)
    mean, calibrated = (
        sum(getattr(s, name) or 0.0 for s in errors) / len(errors) for name in ("mean", "if_calibrated")
    )
    return [
        f"Among the rows of one label, {risen} of these interventions' {len(errors)} errors are higher than the base model's. "
        f"Such errors are not 0 for a calibrated model: on average they are {mean:.3f}, and would be {calibrated:.3f} if the "
        "outputs were the truth."
    ]


def text(result: Compared, *, markdown: bool = False) -> str:
    """All tables, the answer and the notes, for a terminal or as Markdown."""
    rows, seeds = result.rows, len(result.plan.seeds)
    same = "" if rows["test originals"] == rows["test"] else f" (made from {rows['test originals']} originals)"
    parts = [
        f"{result.plan.name}: {rows['train']} rows to train on, {rows['validation']} to choose by, {rows['test']} to judge"
        f"{same}; {seeds} seed{'s' if seeds > 1 else ''}. Mean ± standard deviation over seeds; ↓ ↑ lower or higher than the "
        "base model (95 %, paired by seed). 'if calibrated': what the base model would get if its outputs were the truth."
    ]
    for title, frame in tables(result).items():
        parts.append(f"## {title}\n\n{frame.to_markdown()}" if markdown else f"{title}\n\n{frame.to_text()}")
    parts.append("\n".join(f"- {line}" for line in verdict(result)))
    if result.notes:
        parts.append("\n".join(f"note: {note}" for note in result.notes))
    return "\n\n".join(parts)


def picture_columns(summary: Sequence[Summed], lenses: LensPlan) -> dict[str, tuple[str, Columns]]:
    """Name -> title of the vertical axis, and columns to draw, for every picture that the plan's lenses allow."""
    selectors = dict(_PICTURES)
    for group in next(iter(lenses.groupings.values()), {}):
        name = "group_confidence_" + "".join(c if c.isalnum() else "_" for c in group)
        selectors[name] = (f"Mean confidence where the label is {group}", _select_group(group))
    pictures = {}
    for name, (title, selector) in selectors.items():
        orders = {"groups": [*lenses.groupings, "full"]} | {
            likert: list(lenses.likert) for likert in ("likert", "likert_within", "likert_share")
        }
        columns = _columns(summary, selector, orders.get(name), relative=name == "confidence")
        if columns["what"]:
            pictures[name] = (title, columns)
    return pictures


def _select_group(label: str) -> Selector:
    def select(one: Summed) -> str | None:
        fits = one.metric == "confidence" and one.selection == f"label {label}"
        return one.lens.partition(": ")[2] if fits else None

    return select


def _columns(summary: Sequence[Summed], selector: Selector, order: list[str] | None, *, relative: bool) -> Columns:
    """Columns of a picture, in the order of its names; an intervention has the same style in every picture."""
    interventions = (BASELINE, *WHILE_TRAINING, *AFTERWARDS, TOGETHER, *(one.intervention for one in summary))
    style = {name: i for i, name in enumerate(dict.fromkeys(interventions))}
    rows = []
    for one in summary:
        what = selector(one)
        if what is None or (relative and one.intervention == BASELINE):
            continue
        mean, spread = (one.difference, one.difference_sd) if relative else (one.mean, one.sd)
        rows.append((one.intervention, style[one.intervention], what, mean, spread, one.if_calibrated))
    if order is not None:
        rows.sort(key=lambda row: order.index(row[2]))
    names = ("intervention", "style", "what", "mean", "sd", "if_calibrated")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
