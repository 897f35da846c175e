"""Where it is wrong, and the clinical numbers: what `tc.audit` and `tc.clinical` say of the rows of a page, as records."""

from collections.abc import Sequence
from dataclasses import dataclass

import truecal as tc
from truecal.errors import InputError
from truecal.lens import Lens
from truecal.report.html import element
from truecal.report.model.forest import Forest, forests_of
from truecal.report.records import Absent, picked
from truecal.select import column

_MOST_CLINICAL = 1_000_000
_MOST_GROUPS = 40  # in a forest plot; each takes a tenth of a second


@dataclass(frozen=True)
class SegmentRow:
    """A segment that an audit listed, `depth` levels below the one that contains it; `curve` is its score, outcome and rows."""

    name: str
    depth: int
    region: str
    rows: int
    share: float
    difference: float
    low: float
    high: float
    p_value: float
    beyond: bool | None
    contribution: float
    explains: int
    curve: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True)
class SegmentsRecord:
    """The segments in the order of their tree, what was searched in words, and notes."""

    rows: tuple[SegmentRow, ...]
    summary: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ClinicalRow:
    """A clinical number with its interval, its value for a calibrated model, and how to read it."""

    title: str
    value: float
    low: float
    high: float
    calibrated: float | None
    reading: str


@dataclass(frozen=True)
class ClinicalRecord:
    """The clinical numbers of a page, and of its groups; `apart` says why there are none by group."""

    rows: tuple[ClinicalRow, ...]
    counts: str
    warnings: tuple[str, ...]
    forests: tuple[Forest, ...] = ()
    apart: str = ""


def segments_of(
    data: tc.Predictions | tc.Scan, by: Sequence[str], *, lens: Lens | None, level: float, tolerance: float
) -> SegmentsRecord | Absent:
    """What `tc.audit` finds in the columns of a page; absent where it cannot search."""
    try:
        audit = tc.audit(data, by=list(by), lens=lens, level=level, tolerance=tolerance)
    except InputError as error:
        return Absent(f"Not searched: {error}.")
    rows = tuple(
        picked(
            SegmentRow,
            {**vars(one), "name": one.name, "depth": depth, "contribution": one.contribution},
        )
        for depth, one in audit.tree()
    )
    return SegmentsRecord(rows, audit.summary(), audit.notes)


def clinical_of(
    preds: tc.Predictions, by: Sequence[str], *, lens: Lens, level: float, rng: int
) -> ClinicalRecord | Absent:
    """The numbers of `tc.clinical`; absent where the cohort has none, or is so large that they take longer than the page."""
    if len(preds) > _MOST_CLINICAL:
        return Absent(
            f"Curves and lines of {len(preds):,} rows take longer than all else on this page, which has them for up to "
            f"{_MOST_CLINICAL:,}; tc.clinical and `truecal clinical` give them for any number."
        )
    try:
        numbers = tc.clinical(preds, lens=lens, level=level, rng=rng)
    except InputError as error:
        return Absent(f"Not possible on these data: {error}.")
    rows = tuple(picked(ClinicalRow, row) for row in numbers.frame())
    units = f" of {numbers.patients:,} clusters" if preds.clusters is not None else ""
    counts = f"{numbers.rows:,} rows{units}, {numbers.events:,} events ({numbers.prevalence:.1%})"
    return ClinicalRecord(rows, counts, numbers.warnings, *_by_group(preds, by, lens, level, rng))


def _by_group(
    preds: tc.Predictions, by: Sequence[str], lens: Lens, level: float, rng: int
) -> tuple[tuple[Forest, ...], str]:
    """The forest plots of the groups of a page, or why there are none."""
    if not by:
        return (), ""
    groups = len({tuple(map(str, row)) for row in zip(*(column(preds, name) for name in by), strict=True)})
    if groups > _MOST_GROUPS:
        return (), f"The forest plot is drawn for up to {_MOST_GROUPS} groups, not for {groups:,}."
    try:
        sites = tc.clinical(preds, lens=lens, level=level, by=list(by), rng=rng).sites
    except InputError as error:
        return (), f"No forest plot of the groups: {error}."
    return (() if sites is None else forests_of(sites)), ""


def small_diagram(curve: Sequence[tuple[float, float, int]]) -> str:
    """A reliability diagram of the quarters of a segment's scores, as a picture of 48 pixels."""
    words = "; ".join(f"score {score:.2f}, outcome {outcome:.2f}" for score, outcome, _ in curve)
    points = "".join(
        element("circle", cx=f"{4 + 40 * score:.1f}", cy=f"{44 - 40 * outcome:.1f}", r="2.5", class_="dot")
        for score, outcome, _ in curve
    )
    line = element("path", d="M4 44L44 4", class_="diagonal")
    return element("svg", line, points, width=48, height=48, role="img", aria_label=words, class_="small")
