"""Everything the page of a study says, as one record: computed here, drawn elsewhere."""

from typing import Any

from truecal import options
from truecal.errors import InputError
from truecal.report.bundle import charting_bundle
from truecal.report.provenance import now, versions
from truecal.report.study.analyses import analyses
from truecal.report.study.diagrams import explorer_diagrams
from truecal.report.study.numbers import explorer_numbers, refuse_undrawable
from truecal.report.study.record import Explorer, Numbers, Provenance, Start, StudyContent
from truecal.report.study.sections import analysis_html

_ELSEWHERE = 64_000  # bytes of styles, scripts and words
_LEVEL = 0.95
_MOST_WARNINGS = 5


def gather_study(store: Any, *, title: str | None, megabytes: float, command: str | None) -> StudyContent:
    """Numbers of the explorer, tables of the analyses, and where all of it came from."""
    frame, meta = store.frame(), store.meta()
    refuse_undrawable(frame)
    sections = analyses(store, frame)
    tables = sum(len(analysis_html(section)) for section in sections)
    options.between(megabytes, "megabytes", 0, 10_000)
    room = round(megabytes * 1e6) - len(charting_bundle()) - _ELSEWHERE - tables
    if room < 50_000:
        raise InputError(f"{megabytes:g} MB are too few: the charting library alone takes 0.9; ask for 1.5 or more")
    packed = explorer_numbers(frame, room=round(0.5 * room))
    diagrams = explorer_diagrams(frame, store.diagrams(), packed.numbers, room=room - packed.size)
    level = frame["level"].drop_nulls().max()
    name = str(meta.get("name") or "Study")
    return StudyContent(
        title=title or name,
        facts=[
            f"{len(packed.numbers.models)} models",
            *_counted(frame, "dataset", "dataset"),
            *_counted(frame, "severity", "severity", "severities"),
            *_counted(frame, "seed", "seed"),
            f"{frame.height:,} numbers",
        ],
        explorer=Explorer(packed.numbers, diagrams, _LEVEL if level is None else float(level), _start(packed.numbers)),
        left_out=packed.left_out,
        warnings=_warnings(frame),
        analyses=sections,
        reproduce=Provenance(now(), versions(), command, name, str(meta.get("truecal", meta.get("version", "")))),
    )


def _warnings(frame: Any) -> list[str]:
    """The warnings that numbers of the store carry, those of most numbers first."""
    import polars as pl

    kinds = (
        frame.filter(pl.col("warnings") != "")
        .group_by("warnings")
        .agg(pl.len())
        .sort(["len", "warnings"], descending=[True, False])
    )
    listed = [f"{count:,} numbers: {text}" for text, count in kinds.rows()]
    more = len(listed) - _MOST_WARNINGS
    return [*listed[:_MOST_WARNINGS], *([f"and {more} more"] if more > 0 else [])]


def _counted(frame: Any, column: str, one: str, many: str | None = None) -> list[str]:
    count = frame[column].n_unique()
    return [f"{count} {one if count == 1 else many or one + 's'}"]


def _start(numbers: Numbers) -> Start:
    """What is shown first: the first measure that is no error rate, on the clean data with most rows, not recalibrated."""
    measure = next(i for i, m in enumerate(numbers.measures) if m.metric != "error")

    def order(at: int) -> tuple[bool, bool, float, float]:
        place = numbers.places[at]
        return place.selection != "all", place.recalibrator != "none", place.severity, -(place.n or 0)

    return Start(measure, min(range(len(numbers.places)), key=order))
