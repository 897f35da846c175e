"""The comparison of Kirchenbauer, Oaks & Heim (2022), section 5: what is done while training against what is done after it.

A base model is trained with and without each intervention, or repaired afterwards; strengths are chosen on validation rows by the
usual error of the top class; then every lens judges the test rows. The question: does what lowers the usual error lower the others?
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import parallel
from truecal.errors import extra
from truecal.study.interventions import models
from truecal.study.interventions.judging import Number, numbers
from truecal.study.interventions.models import Outputs, StrengthChoice, Training
from truecal.study.interventions.plan import (
    AFTERWARDS,
    BASELINE,
    TOGETHER,
    WHILE_TRAINING,
    InterventionData,
    Plan,
    Strength,
    check_plan,
    load_data,
)
from truecal.table import Frame, write_table
from truecal.writing import write_whole

if TYPE_CHECKING:
    import polars

# ----------------------------------------------------------------------------------------------------
# Numbers over the seeds


@dataclass(frozen=True)
class Summed:
    """One number over all seeds: mean, standard deviation, and the mean difference to the base model of the same seed.

    The interval of the difference is Student's, at 95 %, over the seeds: it says what another training would give, not what other
    test rows would. None where fewer than two seeds gave a number.
    """

    intervention: str
    strength: str
    lens: str
    selection: str
    metric: str
    mean: float
    sd: float | None
    seeds: int
    if_calibrated: float | None
    difference: float | None
    difference_sd: float | None
    difference_low: float | None
    difference_high: float | None

    @property
    def verdict(self) -> str:
        """Whether the intervention changed the number: "lower", "higher" or "" (undecided)."""
        if self.difference_low is None or self.difference_high is None or self.intervention == BASELINE:
            return ""
        return "lower" if self.difference_high < 0 else "higher" if self.difference_low > 0 else ""


def summed(findings: tuple[Number, ...]) -> tuple[Summed, ...]:
    """Means, standard deviations and differences to the base model, over seeds."""
    from scipy.special import stdtrit

    groups: dict[tuple[str, ...], dict[int, Number]] = {}
    for one in findings:
        groups.setdefault((one.intervention, one.lens, one.selection, one.metric), {})[one.seed] = one
    summaries = []
    for (kind, lens, selection, metric), by_seed in groups.items():
        values = np.array([f.value for f in by_seed.values()])
        base = groups.get((BASELINE, lens, selection, metric), {})
        with np.errstate(invalid="ignore"):
            gaps = np.array([f.value - base[s].value for s, f in by_seed.items() if s in base])
        low = high = gap_sd = None
        gaps = gaps[np.isfinite(gaps)]  # a log loss may be infinite
        if len(gaps) > 1:
            gap_sd = float(gaps.std(ddof=1))
            half_width = float(stdtrit(len(gaps) - 1, 0.975)) * gap_sd / len(gaps) ** 0.5
            low, high = float(gaps.mean()) - half_width, float(gaps.mean()) + half_width
        calibrated = [f.if_calibrated for f in by_seed.values() if f.if_calibrated is not None]
        summaries.append(
            Summed(
                kind,
                next(iter(by_seed.values())).strength,
                *(lens, selection, metric),
                mean=float(values.mean()),
                sd=float(values.std(ddof=1)) if len(values) > 1 and np.isfinite(values).all() else None,
                seeds=len(values),
                if_calibrated=float(np.mean(calibrated)) if calibrated else None,
                difference=float(gaps.mean()) if len(gaps) else None,
                difference_sd=gap_sd,
                difference_low=low,
                difference_high=high,
            )
        )
    return tuple(summaries)


# ----------------------------------------------------------------------------------------------------
# Which numbers stand in which table and picture

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
    """Return the column of an error among the rows of one label; None for other numbers."""
    if one.metric != "error" or one.selection == "all":
        return None
    return one.selection if one.lens.startswith("groups ") else f"{one.selection} ({one.lens})"


def _select_score(one: Summed) -> str | None:
    """Return the column of an accuracy or a score; None for other numbers."""
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


# ----------------------------------------------------------------------------------------------------
# The comparison


@dataclass(frozen=True)
class InterventionComparison:
    """What a run found: `findings` one row per number and seed, `summary` over seeds, `choice` of the strengths."""

    plan: Plan
    choice: StrengthChoice
    findings: tuple[Number, ...]
    rows: Mapping[str, int]
    notes: tuple[str, ...]

    @cached_property
    def summary(self) -> tuple[Summed, ...]:
        return summed(self.findings)

    def frame(self) -> polars.DataFrame:
        """Return a table with one row per intervention, seed and number."""
        return _frame(
            [
                {"intervention": f.intervention, "strength": f.strength, "seed": f.seed, **asdict(f)}
                for f in self.findings
            ]
        )

    def summary_frame(self) -> polars.DataFrame:
        """Return a table with one row per intervention and number: mean, spread and verdict over the seeds."""
        return _frame([asdict(s) | {"verdict": s.verdict} for s in self.summary])

    def tried_frame(self) -> polars.DataFrame:
        """Return a table of every strength on the validation rows of every seed, and whether it was chosen."""
        chosen = self.choice.strengths
        rows = [
            {**asdict(t), "strength": _strength_text(t.strength), "chosen": chosen[t.intervention] == t.strength}
            for t in self.choice.tried
        ]
        return _frame(rows)

    def tables(self) -> dict[str, Frame]:
        """Title -> table with one row per intervention: mean ± standard deviation over the seeds, and an arrow where it changed."""
        first = next(iter(self.plan.lenses.groupings), "all classes")
        frames = {"Strength chosen on the validation rows": _tabulate_strengths(self)}
        frames |= {title.format(first): _tabulate(self, selector) for title, selector in _TABLES.items()}
        return {title: frame for title, frame in frames.items() if len(frame.columns) > 1}

    def verdict(self) -> list[str]:
        """Write whether each intervention that lowers the usual error lowers the others: a line for each, then a summary."""
        lines, helped, everywhere, harmful = [], [], [], []
        for kind in self.choice.strengths:
            if kind == BASELINE:
                continue
            errors = _errors(self, kind)
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
        return lines + _compare_orders(self) + _compare_labels(self, helped)

    def text(self, *, markdown: bool = False) -> str:
        """Write all tables, the answer and the notes as text or as Markdown."""
        rows, seeds = self.rows, len(self.plan.seeds)
        same = "" if rows["test originals"] == rows["test"] else f" (made from {rows['test originals']} originals)"
        parts = [
            f"{self.plan.name}: {rows['train']} rows to train on, {rows['validation']} to choose by, {rows['test']} to judge"
            f"{same}; {seeds} seed{'s' if seeds > 1 else ''}. Mean ± standard deviation over seeds; ↓ ↑ lower or higher than the "
            "base model (95 %, paired by seed). 'if calibrated': what the base model would get if its outputs were the truth."
        ]
        for title, frame in self.tables().items():
            parts.append(f"## {title}\n\n{frame.to_markdown()}" if markdown else f"{title}\n\n{frame.to_text()}")
        parts.append("\n".join(f"- {line}" for line in self.verdict()))
        if self.notes:
            parts.append("\n".join(f"note: {note}" for note in self.notes))
        return "\n\n".join(parts)

    def pictures(self) -> dict[str, tuple[str, Columns]]:
        """Return title of the vertical axis and columns to draw, by name, for every picture that the plan's lenses allow."""
        selectors = dict(_PICTURES)
        for group in next(iter(self.plan.lenses.groupings.values()), {}):
            name = "group_confidence_" + "".join(c if c.isalnum() else "_" for c in group)
            selectors[name] = (f"Mean confidence where the label is {group}", _select_group(group))
        pictures = {}
        for name, (title, selector) in selectors.items():
            orders = {"groups": [*self.plan.lenses.groupings, "full"]} | {
                likert: list(self.plan.lenses.likert) for likert in ("likert", "likert_within", "likert_share")
            }
            columns = _columns(self.summary, selector, orders.get(name), relative=name == "confidence")
            if columns["what"]:
                pictures[name] = (title, columns)
        return pictures

    def facts(self) -> list[str]:
        """Return the numbers of rows of each part and of seeds as text."""
        rows = [f"{count:,} {side} rows" for side, count in self.rows.items() if count and " " not in side]
        return [*rows, f"{len(self.plan.seeds)} seeds"]

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write results, summary and validation as .csv and .parquet, the summary as .txt and .md; return their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        frames = {"results": self.frame(), "summary": self.summary_frame(), "validation": self.tried_frame()}
        paths = []
        for name, frame in frames.items():
            paths += [write_table(frame, target / f"{name}{ending}") for ending in (".csv", ".parquet")]
        paths.append(write_whole(target / "summary.txt", self.text() + "\n"))
        paths.append(write_whole(target / "summary.md", f"# {self.plan.name}\n\n{self.text(markdown=True)}\n"))
        return paths


def _tabulate(result: InterventionComparison, selector: Selector) -> Frame:
    """Make a table with a row per intervention and a column per name that `selector` returns."""
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
    """Write mean, standard deviation and verdict as text; for ranks the difference from the base model."""
    if one.lens.startswith("rank "):
        is_base = one.difference is None or one.intervention == BASELINE
        return f"{one.mean:.4f}" if is_base else f"{one.difference:+.4f}"
    spread = "" if one.sd is None else f" ± {one.sd:.4f}"
    return f"{one.mean:.4f}{spread} {ARROWS[one.verdict]}".rstrip()


def _tabulate_strengths(result: InterventionComparison) -> Frame:
    """Make a table of the chosen strengths with error and accuracy on the validation rows."""
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


def _count(names: list[str]) -> str:
    """Write the number of names and the names as text."""
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def _errors(result: InterventionComparison, kind: str) -> list[Summed]:
    """Select the calibration errors of an intervention."""
    return [s for s in result.summary if s.intervention == kind and s.metric in ("error", "inter-interval")]


def _compare_orders(result: InterventionComparison) -> list[str]:
    """Correlate the order of the interventions by the usual error with that by every other error (Kendall's tau)."""
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


def _compare_labels(result: InterventionComparison, helped: list[str]) -> list[str]:
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


def _select_group(label: str) -> Selector:
    """Make the selector of the mean confidences in groups among the rows of one label."""

    def select(one: Summed) -> str | None:
        fits = one.metric == "confidence" and one.selection == f"label {label}"
        return one.lens.partition(": ")[2] if fits else None

    return select


def _columns(summary: Sequence[Summed], selector: Selector, order: list[str] | None, *, relative: bool) -> Columns:
    """Return the columns of a picture, in the order of its names; an intervention has the same style in every picture."""
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


def compare_interventions(
    config: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    progress: parallel.Progress = parallel.unheard,
) -> InterventionComparison:
    """Run a comparison: train the missing models, choose strengths on validation rows, judge the test rows.

    Parameters
    ----------
    config : path
        The YAML file that says what to compare.
    folder : path
        Where the logits of trained models are written; a run that was stopped goes on where it was.
    workers : int, default 1
        Processes to train in; the numbers do not depend on it.
    progress : callable, default no report
        Called with a :class:`truecal.parallel.Step`: how many models are done, and what was done last.

    Returns
    -------
    InterventionComparison
        Numbers by seed and over seeds, chosen strengths and notes.

    Raises
    ------
    InputError
        If the file has problems, or does not fit the data.

    References
    ----------
    Kirchenbauer, Oaks & Heim (2022), section 5.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import truecal as tc
    >>> folder, rng = pathlib.Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> z = rng.normal(size=(400, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)  # the logits z are calibrated
    >>> for method, scale in {"none": 3.0, "calmer": 1.5}.items():
    ...     (folder / "logits" / method).mkdir(parents=True)
    ...     sides = {"validation_logits": scale * z, "validation_labels": y, "test_logits": scale * z, "test_labels": y}
    ...     np.savez(folder / "logits" / method / "0.npz", **sides)
    >>> _ = (folder / "plan.yaml").write_text("data: {logits: logits}\\ninterventions: {temperature: }\\n")
    >>> result = tc.study.compare_interventions(folder / "plan.yaml", folder / "out")
    >>> {one.intervention: round(one.mean, 2) for one in result.summary if one.lens == "traditional"}
    {'none': 0.25, 'calmer': 0.12, 'temperature': 0.07}
    """
    plan = Plan.read(config)
    if plan.data.logits is None:
        data = load_data(plan.data)
        check_plan(plan, data)
        outputs = models.outputs_of_all(plan, data, Path(folder) / "models", workers=workers, progress=progress)
    else:
        plan, data, outputs = models.ready_logits(plan, Path(plan.data.logits))
        check_plan(plan, data)
    outputs = models.with_ensembles(plan, outputs)
    progress(parallel.Step("judging the test rows", len(outputs), len(outputs)))
    choice = models.choose(plan, data, outputs)
    findings: list[Number] = []
    notes = list(choice.notes)
    for kind, strength in choice.strengths.items():
        for seed in plan.seeds:
            preds, warned = _test_predictions(kind, strength, seed, data, outputs)
            notes += [note for note in warned if note not in notes]
            measured = numbers(preds, plan.lenses, seed=seed)
            findings += [
                replace(number, intervention=kind, strength=_strength_text(strength), seed=seed) for number in measured
            ]
    rows = {side: len(getattr(data, side).labels) for side in ("train", "validation", "test")}
    originals = len(np.unique(data.test.original))
    return InterventionComparison(plan, choice, tuple(findings), rows | {"test originals": originals}, tuple(notes))


def _test_predictions(
    kind: str, strength: Strength, seed: int, data: InterventionData, outputs: Mapping[Training, Outputs]
) -> Any:
    """Return the predictions of the test rows, and the warnings of a recalibrator."""
    if kind not in AFTERWARDS:
        return models.of_logits(outputs[Training(kind, strength, seed)].test, data.test, data.classes), []
    base = outputs[Training(BASELINE, None, seed)]
    probs, warned = models.recalibrated(kind, strength, base.validation, data.validation.labels, base.test)
    return models.of_probs(probs, data.test, data.classes), warned


def _strength_text(strength: Strength) -> str:
    """Write a strength as text; "" for None."""
    return "" if strength is None else f"{strength:g}" if isinstance(strength, int | float) else strength


def _frame(records: list[dict[str, Any]]) -> polars.DataFrame:
    """Make a table of records, with types inferred from all rows."""
    return extra("polars", "study").DataFrame(records, infer_schema_length=None)
