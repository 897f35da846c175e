"""What `truecal measure --clinical` and `truecal report --dossier` answer; the verbs hand over what the user said."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import truecal as tc
from truecal.cli.estimators import make_lens
from truecal.cli.output import Reply, working
from truecal.cli.scan import is_scan
from truecal.cli.source import Source, load_all
from truecal.errors import InputError
from truecal.pages import records

if TYPE_CHECKING:
    from truecal.clinical.summaries import Clinical


@dataclass(frozen=True)
class NumberRecord:
    """One number with its interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ClinicalRecord:
    """The numbers of one cohort, or of one group of it."""

    rows: int
    events: int
    patients: int
    prevalence: float
    numbers: tuple[NumberRecord, ...]
    warnings: tuple[str, ...]
    group: str | None = field(default=None, metadata=records.OPTIONAL)

    @classmethod
    def of(cls, cohort: "Clinical", group: str | None = None) -> "ClinicalRecord":
        numbers = tuple(
            NumberRecord(row["name"], *(row[end] for end in ("value", "low", "high"))) for row in cohort.frame()
        )
        return cls(cohort.rows, cohort.events, cohort.patients, cohort.prevalence, numbers, cohort.warnings, group)


@dataclass(frozen=True)
class ClinicalAnswer:
    """What `truecal measure --clinical` answers."""

    source: str
    level: float
    lens: str
    whole: ClinicalRecord
    groups: tuple[ClinicalRecord, ...] = ()


def answer_clinical(source: Source, lens: str, level: float, seed: int, reply: Reply) -> None:
    """Print the clinical numbers of the predictions that the user named, per group where groups were asked for."""
    if is_scan(source):
        raise InputError("clinical numbers need the rows of one file in memory; leave out --engine and further files")
    loaded = load_all(source)
    with working("measuring"):
        numbers = tc.clinical.summary(
            loaded.preds, level=level, lens=make_lens(lens, loaded.preds), by=list(source.by) or None, rng=seed
        )
    groups = () if numbers.sites is None else tuple(zip(numbers.sites.names, numbers.sites.results, strict=True))
    record = ClinicalAnswer(
        source.name,
        level,
        numbers.lens,
        ClinicalRecord.of(numbers),
        tuple(ClinicalRecord.of(result, name) for name, result in groups),
    )
    dropped = f"\nwarning: {loaded.dropped} rows with missing values were left out" if loaded.dropped else ""
    reply.give("clinical", f"{numbers}{dropped}", record)


def make_dossier(source: Source, kind: str, out: str, lens: str, level: float, seed: int, command: str) -> Path:
    """Write the dossier of the predictions that the user named."""
    from truecal.pages.dossier import write_dossier

    if is_scan(source):
        raise InputError("a dossier needs the rows of one file in memory; leave out --engine and further files")
    preds = load_all(source).preds
    with working("writing the dossier"):
        return write_dossier(
            preds,
            out,
            kind=kind,
            lens=make_lens(lens, preds),
            by=list(source.by) or None,
            level=level,
            source=source.name,
            command=command,
            rng=seed,
        )
