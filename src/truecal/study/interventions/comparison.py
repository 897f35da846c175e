"""The comparison of Kirchenbauer, Oaks & Heim (2022), section 5: what is done while training against what is done after it.

A base model is trained with and without each intervention, or repaired afterwards; strengths are chosen on validation rows by the
usual error of the top class; then every lens judges the test rows. The question: does what lowers the usual error lower the
others?
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truecal import parallel
from truecal.study.interventions import models
from truecal.study.interventions.judging import judge
from truecal.study.interventions.models import StrengthChoice, Training
from truecal.study.interventions.plan import (
    AFTERWARDS,
    BASELINE,
    TOGETHER,
    WHILE_TRAINING,
    Groups,
    Plan,
    check_plan,
    load_data,
)
from truecal.study.store import pl
from truecal.table import Frame, write_table
from truecal.writing import write_whole

if TYPE_CHECKING:
    import polars

_ARROWS = {"lower": " ↓", "higher": " ↑", "": ""}
_KEY = ("lens", "selection", "metric")


def summarize(results: Any) -> Any:
    """Summarise every number over its seeds, and its difference from the base model of the same seed.

    `results` has a row per number (`judging.Number`), with intervention ("none": the base model), strength and seed. Returns a
    row per intervention, strength, lens, selection and metric: mean, sd (of the seeds; null if one is not finite), seeds,
    if_calibrated, difference, difference_sd, difference_low, difference_high and verdict. Limits are Student's at 95 % over the
    finite differences (null below two); the verdict is "lower" or "higher" if they exclude 0, else "".
    """
    from scipy.special import stdtrit

    base = results.filter(intervention=BASELINE).select(*_KEY, "seed", base="value")
    table = results.join(base, on=[*_KEY, "seed"], how="left", maintain_order="left")
    gap = (pl.col("value") - pl.col("base")).filter((pl.col("value") - pl.col("base")).is_finite())
    table = table.group_by("intervention", "strength", *_KEY, maintain_order=True).agg(
        mean=pl.col("value").mean(),
        sd=pl.when(pl.col("value").is_finite().all()).then(pl.col("value").std()),
        seeds=pl.len(),
        if_calibrated=pl.col("if_calibrated").mean(),
        difference=gap.mean(),
        difference_sd=gap.std(),
        pairs=gap.len(),
    )
    pairs = table["pairs"].to_numpy()
    factor = pl.Series(stdtrit(np.maximum(pairs - 1, 1), 0.975) / np.sqrt(np.maximum(pairs, 1)))
    low, high = (pl.col("difference") + sign * factor * pl.col("difference_sd") for sign in (-1, 1))
    lower, higher = (condition & (pl.col("intervention") != BASELINE) for condition in (high < 0, low > 0))
    verdict = pl.when(lower).then(pl.lit("lower")).when(higher).then(pl.lit("higher")).otherwise(pl.lit(""))
    return table.drop("pairs").with_columns(difference_low=low, difference_high=high, verdict=verdict)


# ----------------------------------------------------------------------------------------------------
# Views: which numbers stand in which table and picture


class View(NamedTuple):
    """A choice of rows of the summary, for a table and a picture."""

    table: str  # title of the table; "": there is none
    axis: str  # title of the vertical axis of the picture; "": there is none
    name: Any  # polars expression of the summary: the column of a number in the table, null for numbers that are not shown


def _name_by_lens(metric: str, *starts: str) -> Any:
    """Return a polars expression: the lens, without "groups " or "likert ", of a metric over all rows, else null.

    The lens must begin with one of `starts` (regular expressions).
    """
    fits = (pl.col("metric") == metric) & (pl.col("selection") == "all")
    fits &= pl.col("lens").str.contains(f"^({'|'.join(starts)})")
    return pl.when(fits).then(pl.col("lens").str.replace("^(groups|likert) ", ""))


def list_views(groupings: Mapping[str, Groups]) -> dict[str, View]:
    """Return the views of a comparison by the name of their picture: errors, groups, labels, likert, scores and others.

    Each group of the first of `groupings` has a further one, "group_confidence_GROUP", other characters than letters and digits
    written as "_".
    """
    metric, lens, selection = (pl.col(name) for name in ("metric", "lens", "selection"))
    first, groups = next(iter(groupings.items()), ("all classes", {}))
    of_label = pl.when(lens.str.starts_with("groups ")).then(selection).otherwise(pl.format("{} (full)", selection))
    errors, of_groups = _name_by_lens("error", "traditional", "top-", "full"), _name_by_lens("error", "groups ", "full")
    labels = pl.when((metric == "error") & (selection != "all")).then(of_label)
    leaving, inside = _name_by_lens("inter-interval", "likert "), _name_by_lens("total-variation", "likert ")
    share, ranks = _name_by_lens("share", "likert "), _name_by_lens("confidence", "rank ")
    accuracy, score = lens.str.replace("top-1", "accuracy"), metric.is_in(["entropy", "log loss", "brier"])
    scores = pl.coalesce(pl.when(metric == "accuracy").then(accuracy), pl.when(score).then(metric))
    entropy = pl.when(metric == "entropy").then(pl.lit("all classes"))
    confidence = "Mean confidence of the k-th most probable class, less the base model's"
    listed = {
        "errors": View("Calibration error: the usual one, top k, all classes", "Calibration error", errors),
        "groups": View("Calibration error of groups of classes", "Calibration error", of_groups),
        "labels": View(f"Calibration error of {first} among the rows of one label", "Calibration error", labels),
        "likert": View("Error outside the Likert interval", "Error outside the interval", leaving),
        "likert_within": View("Error inside the Likert interval (total variation)", "Error in the interval", inside),
        "likert_share": View("Share of outputs in each Likert interval", "Share of outputs", share),
        "scores": View("Accuracy, top-k accuracy and scores", "", scores),
        "top_k_accuracy": View("", "Top-k accuracy", _name_by_lens("accuracy", "")),
        "entropy": View("", "Mean entropy (nats)", entropy),
        "confidence": View(confidence, "Mean confidence, less the base model's", ranks),
    }
    for group in groups:
        name = "group_confidence_" + "".join(c if c.isalnum() else "_" for c in group)
        part = pl.when((metric == "confidence") & (selection == f"label {group}")).then(
            lens.str.split(": ").list.last()
        )
        listed[name] = View("", f"Mean confidence where the label is {group}", part)
    return listed


# ----------------------------------------------------------------------------------------------------
# The comparison


@dataclass(frozen=True, eq=False)
class InterventionComparison:
    """Results of a comparison of interventions."""

    plan: Plan
    choice: StrengthChoice
    results: polars.DataFrame  # a row per number: intervention, strength (text), seed, the fields of `judging.Number`
    rows: Mapping[str, int]  # numbers of rows: train, validation, test, and "test originals" they were made from
    notes: tuple[str, ...]

    @cached_property
    def _views(self) -> dict[str, View]:
        """The views of the plan's groupings."""
        return list_views(self.plan.lenses.groupings)

    @cached_property
    def summary(self) -> polars.DataFrame:
        """The table of `summarize`: a row per intervention and number, with mean, sd and verdict over the seeds."""
        return summarize(self.results)

    def tables(self) -> dict[str, Frame]:
        """Return tables by title, with one row per intervention: mean ± standard deviation over the seeds.

        An arrow marks a significant difference from the base model. Tables without any number are left out.
        """
        frames = {"Strength chosen on the validation rows": _tabulate_strengths(self.choice)}
        frames |= {view.table: _tabulate(self, view.name) for view in self._views.values() if view.table}
        return {title: frame for title, frame in frames.items() if len(frame.columns) > 1}

    def verdict(self) -> list[str]:
        """Write a line per intervention (which errors are lower, higher or not clearly changed), then a summary of all.

        The summary counts interventions that lower the usual error, and of these those that lower or raise others over all rows.
        """
        lines: list[str] = []
        helpful: list[str] = []
        everywhere, harmful = [], []
        all_errors = self.summary.filter(pl.col("metric").is_in(["error", "inter-interval"]))
        name = pl.when(selection="all").then("lens").otherwise("selection")
        for kind in list(self.choice.strengths)[1:]:
            errors = all_errors.filter(intervention=kind)
            usual = errors.filter(lens="traditional")["verdict"][0]
            others = errors.filter(pl.col("lens") != "traditional")
            changed = {
                change_name: others.filter(verdict=change).select(name)["lens"].to_list()
                for change, change_name in (("lower", "lower"), ("higher", "HIGHER"), ("", "no clear change"))
            }
            parts = "; ".join(f"{change_name} {', '.join(lenses)}" for change_name, lenses in changed.items() if lenses)
            lines.append(f"{kind}: usual error {usual or 'not clearly changed'}; {parts}")
            if usual == "lower":
                helpful.append(kind)
                all_rows = others.filter(selection="all")
                everywhere += [kind] if (all_rows.filter(metric="error")["verdict"] == "lower").all() else []
                harmful += [kind] if "higher" in all_rows["verdict"] else []
        if not helpful:
            return [*lines, f"None of the {len(lines)} interventions clearly lowers the usual error here."]
        counts = [f"{len(names)} ({', '.join(names)})" if names else "0" for names in (helpful, everywhere, harmful)]
        lines.append(
            f"Of {len(lines)} interventions {counts[0]} clearly lower the usual error. Of these, {counts[1]} "
            f"also lower every other error over all rows (top k, all classes, groups), and {counts[2]} have one that rose."
        )
        return lines + _compare_labels(all_errors.filter(pl.col("intervention").is_in(helpful)))

    def text(self) -> str:
        """Write all tables, the answer and the notes as text.

        First a paragraph with the name, the numbers of rows and seeds, and what the marks in the tables mean; then `tables`
        with their titles, `verdict` as a list, and the notes, with empty lines between.
        """
        rows, seeds = self.rows, len(self.plan.seeds)
        same = "" if rows["test originals"] == rows["test"] else f" (made from {rows['test originals']} originals)"
        parts = [
            f"{self.plan.name}: {rows['train']} rows to train on, {rows['validation']} to choose by, {rows['test']} to judge"
            f"{same}; {seeds} seed{'s' if seeds > 1 else ''}. Mean ± standard deviation over seeds; ↓ ↑ lower or higher than the "
            "base model (95 %, paired by seed). 'if calibrated': what the base model would get if its outputs were the truth."
        ]
        parts += [f"{title}\n\n{frame.to_text()}" for title, frame in self.tables().items()]
        parts.append("\n".join(f"- {line}" for line in self.verdict()))
        if self.notes:
            parts.append("\n".join(f"note: {note}" for note in self.notes))
        return "\n\n".join(parts)

    def pictures(self) -> dict[str, tuple[str, dict[str, list[Any]]]]:
        """Return (title of the vertical axis, columns) by name, for every view with an axis and a number.

        The columns are intervention, style (an index that is the same in all pictures), what (place on the horizontal axis),
        mean, sd and if_calibrated; for "confidence" mean and sd are those of the difference from the base model.
        """
        order = [*self.plan.lenses.groupings, "full", *self.plan.lenses.likert]
        kinds = dict.fromkeys((BASELINE, *WHILE_TRAINING, *AFTERWARDS, TOGETHER, *self.choice.strengths))
        style = {kind: i for i, kind in enumerate(kinds)}  # the same in every picture
        pictures = {}
        for name, view in self._views.items():
            table = self.summary.with_columns(what=view.name).filter(pl.col("what").is_not_null())
            if name == "confidence":
                table = table.filter(pl.col("intervention") != BASELINE)
                table = table.with_columns(mean="difference", sd="difference_sd")
            if name.startswith(("groups", "likert")):
                table = table.sort(pl.col("what").replace_strict({word: i for i, word in enumerate(order)}))
            table = table.with_columns(style=pl.col("intervention").replace_strict(style, return_dtype=pl.Int64))
            columns = table.select("intervention", "style", "what", "mean", "sd", "if_calibrated")
            if columns.height and view.axis:
                pictures[name] = (view.axis, columns.to_dict(as_series=False))
        return pictures

    def facts(self) -> list[str]:
        """Return the numbers of rows of each part, unless 0, and of seeds, as texts such as "1,000 test rows" and "5 seeds"."""
        rows = [f"{count:,} {side} rows" for side, count in self.rows.items() if count and " " not in side]
        return [*rows, f"{len(self.plan.seeds)} seeds"]

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write results, summary and validation as .csv, the tables and the answer as summary.txt; return their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        frames = {"results": self.results, "summary": self.summary, "validation": self.choice.frame()}
        paths = [write_table(frame, target / f"{name}.csv") for name, frame in frames.items()]
        return [*paths, write_whole(target / "summary.txt", self.text() + "\n")]


def _tabulate(result: InterventionComparison, column: Any) -> Frame:
    """Make a table with a row per intervention and a column per value of the polars expression `column` of the summary.

    Cells are as in `_write_cell`. A last row "if calibrated", where there are such values, holds those of the base model, or "-".
    """
    table = result.summary.with_columns(column=column).filter(pl.col("column").is_not_null())
    names = table["column"].unique(maintain_order=True).to_list()
    scale = list(result.plan.lenses.likert)
    if set(names) <= set(scale):  # in the order of the scale, also where the base model leaves an interval empty
        names.sort(key=scale.index)
    cells = {(row["intervention"], row["column"]): row for row in table.iter_rows(named=True)}
    kinds = list(result.choice.strengths)
    columns = {name: [_write_cell(cells.get((kind, name))) for kind in kinds] for name in names}
    if table["if_calibrated"].is_not_null().any():
        kinds.append("if calibrated")
        for name in names:
            floor = cells[BASELINE, name]["if_calibrated"] if (BASELINE, name) in cells else None
            columns[name].append("-" if floor is None else f"{floor:.4f}")
    return Frame({"intervention": kinds, **columns})


def _write_cell(row: Mapping[str, Any] | None) -> str:
    """Write a row of the summary as "0.1234 ± 0.0056 ↓" (mean, sd unless null, arrow of the verdict); "-" for None.

    For lenses "rank K" it is the difference from the base model, such as "+0.0123", and the mean for the base model itself.

    >>> row = {"lens": "top-label", "mean": 0.1234, "sd": 0.0056, "verdict": "lower", "difference": -0.01, "intervention": "mixup"}
    >>> _write_cell(row), _write_cell(None)
    ('0.1234 ± 0.0056 ↓', '-')
    """
    if row is None:
        return "-"
    if row["lens"].startswith("rank "):
        is_base = row["difference"] is None or row["intervention"] == BASELINE
        return f"{row['mean']:.4f}" if is_base else f"{row['difference']:+.4f}"
    spread = "" if row["sd"] is None else f" ± {row['sd']:.4f}"
    return f"{row['mean']:.4f}{spread}{_ARROWS[row['verdict']]}"


def _tabulate_strengths(choice: StrengthChoice) -> Frame:
    """Make a table with a row per intervention: intervention, strength (chosen), tried (all, by commas), usual error, accuracy.

    Error and accuracy are means over seeds on the validation rows at the chosen strength; "-" stands for no strength.
    """
    strength, chosen = pl.col("strength").replace("", "-"), pl.col("chosen")
    table = choice.frame().group_by("intervention", maintain_order=True)
    means = {name: pl.col(name).filter(chosen).mean() for name in ("error", "accuracy")}
    table = table.agg(strength.filter(chosen).first(), strength.unique(maintain_order=True).alias("tried"), **means)
    digits = [pl.col(name).map_elements("{:.4f}".format, pl.String) for name in ("error", "accuracy")]
    table = table.with_columns(pl.col("tried").list.join(", "), *digits).rename({"error": "usual error"})
    return Frame({name: table[name].to_list() for name in table.columns})


def _compare_labels(errors: Any) -> list[str]:
    """Write a text on how many errors among the rows of one label are higher than the base model's, with mean and if_calibrated.

    `errors` are rows of the summary; those over all rows are left out. [] if no other has a value for a calibrated model.
    """
    errors = errors.filter((pl.col("selection") != "all") & pl.col("if_calibrated").is_not_null())
    if errors.is_empty():
        return []
    risen = errors.filter(verdict="higher").height
    return [
        f"Among the rows of one label, {risen} of these interventions' {errors.height} errors are higher than the base model's. "
        f"Such errors are not 0 for a calibrated model: on average they are {errors['mean'].mean():.3f}, and would be "
        f"{errors['if_calibrated'].mean():.3f} if the outputs were the truth."
    ]


def compare_interventions(
    config: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    progress: parallel.Progress = parallel.ignore_progress,
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
        Numbers by seed (`results`) and over seeds (`summary`), chosen strengths (`choice`) and notes.

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
    >>> import numpy as np, polars as pl
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
    >>> result.summary.filter(lens="traditional").select("intervention", pl.col("mean").round(2)).rows()
    [('none', 0.25), ('calmer', 0.12), ('temperature', 0.07)]
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
    records: list[dict[str, Any]] = []
    notes = list(choice.notes)
    for (kind, strength), seed in product(choice.strengths.items(), plan.seeds):
        if kind in AFTERWARDS:
            base = outputs[Training(BASELINE, None, seed)]
            probs, warned = models.recalibrate(kind, strength, base.validation, data.validation.labels, base.test)
            preds, notes = models.of_probs(probs, data.test, data.classes), notes + warned
        else:
            preds = models.of_logits(outputs[Training(kind, strength, seed)].test, data.test, data.classes)
        keys = {"intervention": kind, "strength": models.write_strength(strength), "seed": seed}
        records += [keys | asdict(number) for number in judge(preds, plan.lenses, seed=seed)]
    rows = {side: len(getattr(data, side).labels) for side in ("train", "validation", "test")}
    rows["test originals"] = len(np.unique(data.test.original))
    results = pl.DataFrame(records, infer_schema_length=None)
    return InterventionComparison(plan, choice, results, rows, tuple(dict.fromkeys(notes)))
