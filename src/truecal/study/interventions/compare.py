"""The comparison of Kirchenbauer, Oaks & Heim (2022), section 5: what is done while training against what is done after it.

A base model is trained with and without each intervention, or repaired afterwards; strengths are chosen on validation rows by the
usual error of the top class; then every lens judges the test rows. The question: does what lowers the usual error lower the others?
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import parallel
from truecal.errors import extra
from truecal.study.interventions import text as text_module
from truecal.study.interventions.models import (
    Outputs,
    StrengthChoice,
    Training,
    choose,
    of_logits,
    of_probs,
    outputs_of_all,
    ready_logits,
    recalibrated,
    with_ensembles,
)
from truecal.study.interventions.plan import (
    AFTERWARDS,
    BASELINE,
    InterventionData,
    Plan,
    Strength,
    check_plan,
    load_data,
)
from truecal.study.interventions.summary import SeedNumber, Summed, numbers, summed
from truecal.study.interventions.text import Columns, picture_columns
from truecal.table import write_table
from truecal.writing import write_whole

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class InterventionComparison:
    """What a run found: `findings` one row per number and seed, `summary` over seeds, `choice` of the strengths."""

    plan: Plan
    choice: StrengthChoice
    findings: tuple[SeedNumber, ...]
    rows: Mapping[str, int]
    notes: tuple[str, ...]

    @cached_property
    def summary(self) -> tuple[Summed, ...]:
        return summed(self.findings)

    def frame(self) -> "polars.DataFrame":
        """One row per intervention, seed and number."""
        return _frame([f.record() for f in self.findings])

    def summary_frame(self) -> "polars.DataFrame":
        """One row per intervention and number, over the seeds."""
        return _frame([asdict(s) | {"verdict": s.verdict} for s in self.summary])

    def tried_frame(self) -> "polars.DataFrame":
        """Every strength on the validation rows of every seed, and whether it was chosen."""
        chosen = self.choice.strengths
        rows = [
            {**asdict(t), "strength": _shown(t.strength), "chosen": chosen[t.intervention] == t.strength}
            for t in self.choice.tried
        ]
        return _frame(rows)

    def pictures(self) -> dict[str, tuple[str, Columns]]:
        """Name -> title of the vertical axis and columns to draw, for every picture that the plan's lenses allow."""
        return picture_columns(self.summary, self.plan.lenses)

    def verdict(self) -> list[str]:
        """Does what lowers the usual error lower the others?"""
        return text_module.verdict(self)

    def tables(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """Title -> header and rows of every table, for a page."""
        frames = text_module.tables(self).items()
        return {title: (list(frame.columns), [list(row.values()) for row in frame]) for title, frame in frames}

    def facts(self) -> list[str]:
        """What was judged, in a few words."""
        rows = [f"{count:,} {side} rows" for side, count in self.rows.items() if count and " " not in side]
        return [*rows, f"{len(self.plan.seeds)} seeds"]

    def text(self) -> str:
        """All tables, the answer and the notes, for a terminal."""
        return text_module.text(self)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Results, summary and validation as .csv and .parquet, the summary as .txt and .md; returns their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        frames = {"results": self.frame(), "summary": self.summary_frame(), "validation": self.tried_frame()}
        paths = []
        for name, frame in frames.items():
            paths += [write_table(frame, target / f"{name}{ending}") for ending in (".csv", ".parquet")]
        paths.append(write_whole(target / "summary.txt", self.text() + "\n"))
        paths.append(
            write_whole(target / "summary.md", f"# {self.plan.name}\n\n{text_module.text(self, markdown=True)}\n")
        )
        return paths


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
        outputs = outputs_of_all(plan, data, Path(folder) / "models", workers=workers, progress=progress)
    else:
        plan, data, outputs = ready_logits(plan, Path(plan.data.logits))
        check_plan(plan, data)
    outputs = with_ensembles(plan, outputs)
    progress(parallel.Step("judging the test rows", len(outputs), len(outputs)))
    choice = choose(plan, data, outputs)
    findings: list[SeedNumber] = []
    notes = list(choice.notes)
    for kind, strength in choice.strengths.items():
        for seed in plan.seeds:
            preds, warned = _test_predictions(kind, strength, seed, data, outputs)
            notes += [note for note in warned if note not in notes]
            measured = numbers(preds, plan.lenses, seed=seed)
            findings += [SeedNumber(kind, _shown(strength), seed, number) for number in measured]
    rows = {side: len(getattr(data, side).labels) for side in ("train", "validation", "test")}
    originals = len(np.unique(data.test.original))
    return InterventionComparison(plan, choice, tuple(findings), rows | {"test originals": originals}, tuple(notes))


def _test_predictions(
    kind: str, strength: Strength, seed: int, data: InterventionData, outputs: Mapping[Training, Outputs]
) -> Any:
    """Predictions of the test rows, and what a recalibrator had to say."""
    if kind not in AFTERWARDS:
        return of_logits(outputs[Training(kind, strength, seed)].test, data.test, data.classes), []
    base = outputs[Training(BASELINE, None, seed)]
    probs, warned = recalibrated(kind, strength, base.validation, data.validation.labels, base.test)
    return of_probs(probs, data.test, data.classes), warned


def _shown(strength: Strength) -> str:
    return "" if strength is None else f"{strength:g}" if isinstance(strength, int | float) else strength


def _frame(records: list[dict[str, Any]]) -> "polars.DataFrame":
    return extra("polars", "study").DataFrame(records, infer_schema_length=None)
