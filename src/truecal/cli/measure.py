"""`truecal measure`: one number with its interval, its test and its warnings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from typing import TYPE_CHECKING

import click

import truecal as tc
from truecal import names
from truecal.cli.clinical import answer_clinical
from truecal.cli.estimators import Asked, estimator_options, make_lens
from truecal.cli.output import Answer, Finding, Output, Reply, Share, format_options, number, p_shown, table, working
from truecal.cli.scan import ScanRecord, is_scan, scan_estimates, scanned
from truecal.cli.source import Source, by_option, load_all, scan_options
from truecal.errors import InputError, printable
from truecal.pages import records

if TYPE_CHECKING:
    from truecal.estimators.base import Estimator
    from truecal.lenses.lens import Lens
    from truecal.predictions.selection import Selection


@dataclass(frozen=True)
class GateRecord:
    """Whether the upper end of every interval, and what a sketch leaves open above it, is at most the error allowed.

    `worst` is the group that reaches highest, where there are groups.
    """

    max_error: float
    upper: float
    passed: bool
    worst: str | None = field(default=None, metadata=records.OPTIONAL)


@dataclass(frozen=True)
class MeasureRecord:
    """What `truecal measure` answers: one estimate per group and estimator."""

    source: str
    level: float
    results: tuple[records.EstimateRecord, ...]
    scan: ScanRecord | None = field(default=None, metadata=records.OPTIONAL)
    gate: GateRecord | None = field(default=None, metadata=records.OPTIONAL)


@click.command()
@estimator_options
@click.option("--max-error", type=Share(0, 1), help="Gate: exit 1 unless the error is below this, at --level.")
@click.option(
    "--like",
    metavar="TOOL",
    help="Beside it the number of another tool, such as torchmetrics, and why it differs.",
)
@click.option(
    "--clinical", is_flag=True, help="O/E, intercept, slope, ICI, c-statistic and Brier score, with intervals."
)
@format_options
@by_option
@scan_options
def measure(
    source: Source,
    asked: Asked,
    lens: str,
    level: float,
    seed: int,
    max_error: float | None,
    like: str | None,
    clinical: bool,
    output: Output,
) -> int:
    """Measure the calibration error of the predictions in FILE (csv, jsonl, parquet, npz, or - for standard input).

    A pattern such as 'logs/*.parquet', a folder, or several files are scanned in one pass and in bounded memory; the answer then
    says how far it can be from that of all rows at once. --engine scans a single file too.

    With --max-error this is a gate: it passes (exit 0) only if the upper end of the interval is at most that, so that too little
    data fails as well as too large an error (exit 1).
    """
    if clinical:
        if max_error is not None or like is not None:
            raise InputError("--max-error and --like are about the calibration error; leave out --clinical")
        if output.form not in ("text", "json"):
            raise InputError(f"--clinical answers as text or --json, not as {output.form}")
        answer_clinical(source, lens, level, seed, Reply(output.form == "json", output.file))
        return 0
    if asked.estimator == "all" and max_error is not None:
        raise InputError("--max-error judges one estimator; leave out --estimator all")
    if like is not None and (max_error is not None or is_scan(source)):
        raise InputError("--like compares with another tool, row by row; leave out --max-error, and give one file")
    scan = scanned(source, lens) if is_scan(source) else None
    estimates = (
        _in_memory(source, lens, asked, level, seed, like)
        if scan is None
        else scan_estimates(scan, asked.made(scan.lens), level, seed)
    )
    results = tuple(
        records.EstimateRecord.of(estimate, level=level, group=group if source.by else None)
        for group, estimate in estimates
    )
    record = MeasureRecord(
        source.name,
        level,
        results,
        None if scan is None else ScanRecord(scan.engine, scan.rows, scan.dropped),
        None if max_error is None else _gate(results, max_error),
    )
    output.write(
        Answer(
            "measure",
            records.document("measure", record),
            _text(record, source.by),
            [_finding(record, result) for result in results],
            "" if record.gate is None else _gate_line(record, record.gate),
            list(dict.fromkeys(note for result in results for note in result.warnings)),
        )
    )
    return 0 if record.gate is None or record.gate.passed else 1


def _in_memory(
    source: Source, lens: str, asked: Asked, level: float, seed: int, like: str | None
) -> "list[tuple[str, tc.Estimate]]":
    """Group (empty where there are none) and estimate, group by group; last what another tool would say."""
    from truecal.lenses.one_probability import default_lens

    loaded = load_all(source)
    preds = loaded.preds if loaded.whole is None else loaded.whole
    judged = make_lens(lens, preds) or default_lens(preds)
    estimators = asked.made(judged)
    groups = preds_by(preds, source.by) if source.by else {"": preds}
    if loaded.select is not None:
        groups = {group: rows for group, rows in groups.items() if loaded.select.mask(rows).any()}
    with working("measuring"):
        estimates = [
            (group, _measure(rows, Question(estimator, judged, loaded.select), level, seed, group))
            for group, rows in groups.items()
            for estimator in estimators
        ]
        if like is not None:
            if loaded.select is not None:
                groups = {group: loaded.select(rows) for group, rows in groups.items()}
            estimates += [
                (group, _foreign(rows, like, level, seed, estimates[0][1].lens)) for group, rows in groups.items()
            ]
    return [(group, estimate.but(warnings=(*loaded.notes, *estimate.warnings))) for group, estimate in estimates]


def _foreign(preds: "tc.Predictions", tool: str, level: float, seed: int, ours: str) -> "tc.Estimate":
    """What another tool would say, with the reasons why it differs among the warnings; `ours` is what we judge."""
    from truecal.inference.conventions import like_for

    convention = like_for(preds, tool)
    estimate = convention.measure(preds, level=level, rng=seed)
    other = () if estimate.lens == ours else (f"it is about the {estimate.lens}, ours about the {ours}",)
    reasons = tuple(f"as {tool} computes it: {reason}" for reason in (*other, *convention.differs))
    return estimate.but(warnings=(*reasons, *estimate.warnings))


def preds_by(preds: "tc.Predictions", columns: Sequence[str]) -> "dict[str, tc.Predictions]":
    """The rows of each value of a column, or of each combination of values of several, in their order."""
    import numpy as np

    from truecal.predictions.selection import categories

    parts = [categories(preds, column) for column in columns]
    combinations, member = np.unique(np.stack([index for _, index in parts], axis=1), axis=0, return_inverse=True)
    titles = [[words[i] for (words, _), i in zip(parts, row, strict=True)] for row in combinations.tolist()]
    joined = [", ".join(words) for words in titles]
    alike = len(set(joined)) < len(joined)  # values with commas
    names = [", ".join(map(repr, words)) for words in titles] if alike else joined
    return {name: preds.take(member.ravel() == i) for i, name in enumerate(names)}


@dataclass(frozen=True)
class Question:
    """What is asked of every group: how, what and on which rows."""

    estimator: "Estimator"
    lens: "Lens"
    select: "Selection | None"


def _measure(preds: "tc.Predictions", question: Question, level: float, seed: int, group: str) -> "tc.Estimate":
    try:
        return tc.measure(
            preds, estimator=question.estimator, lens=question.lens, select=question.select, level=level, rng=seed
        )
    except InputError as error:
        raise InputError(f"group {group!r}: {error}" if group else str(error)) from error


def _gate(results: Sequence[records.EstimateRecord], max_error: float) -> GateRecord:
    worst = max(results, key=_upper)
    return GateRecord(max_error, _upper(worst), _upper(worst) <= max_error, worst.group)


def _upper(result: records.EstimateRecord) -> float:
    """The largest error that the data allow: the upper end of the interval and what a sketch leaves open above it.

    An upper end that is not a number allows any error: max() over NaN depends on the order, and NaN must fail a gate.
    """
    if result.interval is None:
        raise InputError(
            "--max-error needs an interval, which a class-wise scan does not have; judge one class with --lens class=NAME"
            if result.sketch_error is not None
            else "--max-error needs an interval, which this estimator does not have; use the default, rank-series"
        )
    upper = result.interval.high + (result.sketch_error or 0.0)
    return inf if isnan(upper) else upper


def _finding(record: MeasureRecord, result: records.EstimateRecord) -> Finding:
    interval, word = result.interval, names.word_of(result.estimator.name, names.ESTIMATORS)
    reach = "" if interval is None else f" [{interval.low:.4f}, {interval.high:.4f}] at {interval.level:.0%}"
    allowed = "" if record.gate is None else f", {record.gate.max_error:g} allowed"
    p = "" if result.p_value is None else f", p {p_shown(result.p_value)}"
    labels = {"source": record.source, "estimator": word, "norm": f"{result.norm:g}", "lens": result.lens}
    return Finding(
        record.source if result.group is None else result.group,
        f"{result.metric} {result.value:.4f}{reach}{allowed}, n = {result.n}{p} ({word}, {result.lens})",
        {
            "error": result.value,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "p_value": result.p_value,
            "direction": result.direction,
            "rows": float(result.n),
            **({} if result.sketch_error is None else {"sketch_error": result.sketch_error}),
        },
        None if record.gate is None else _upper(result) <= record.gate.max_error,
        labels if result.group is None else {**labels, "group": result.group},
    )


def _text(record: MeasureRecord, by: Sequence[str]) -> str:
    """The record for people."""
    text = _one(record.results[0]) if len(record.results) == 1 else _many(record.results, by)
    return text if record.gate is None else f"{text}\n{_gate_line(record, record.gate)}"


def _gate_line(record: MeasureRecord, gate: GateRecord) -> str:
    sure, most = f"{record.level:.0%}", f"{gate.max_error:g}"
    if gate.passed:
        return f"PASS: at {sure} the error is at most {gate.upper:.4f}, below {most}"
    failed = [result for result in record.results if _upper(result) > gate.max_error]
    above = {r.group: r.interval.low for r in failed if r.interval is not None and r.interval.low > gate.max_error}
    if gate.worst is None:
        where, others = "", ""
    else:
        worst = max(above, key=lambda group: above[group]) if above else gate.worst
        where = f" in {len(above or failed)} of {len(record.results)} groups, most in {worst}"
        others = f"; it may be in {len(failed) - len(above)} more" if len(failed) > len(above) else ""
    if above:
        return f"FAIL: at {sure} the error is above {most}{where}{others}"
    return f"FAIL: the error may be as large as {gate.upper:.4f}, so at {sure} it cannot be promised to be below {most}{where}"


def _one(result: records.EstimateRecord) -> str:
    """Label and value, line by line."""
    lines = [(result.metric, f"{result.value:.4f}")]
    if result.interval is not None:
        interval = result.interval
        lines.append((f"{interval.level:.0%} interval", f"[{interval.low:.4f}, {interval.high:.4f}]"))
    if result.p_value is not None:
        lines.append(("p-value of 'is calibrated'", p_shown(result.p_value)))
    if abs(result.direction) >= 0.0005:
        lines.append(("on average", f"{names.tendency(result.lens, result.direction)} by {abs(result.direction):.4f}"))
    if result.chance is not None:
        lines.append(("if it were calibrated", f"{result.chance:.4f}"))
    where = "" if result.selection is None else f", where {result.selection}"
    lines.append(("judged", f"{result.lens}, n = {result.n}{where}"))
    if result.sketch_error is not None:
        lines.append(("from a sketch", f"within {result.sketch_error:.1g} of the value of all rows"))
    bins = "" if result.bins is None else f", {len(result.bins)} bins"
    binning = result.estimator.options.get("binning")
    lines.append(("estimator", f"{result.estimator.name}{bins}{'' if binning is None else f', {binning}'}"))
    lines += [("warning", text) for text in result.warnings]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{printable(name):<{width}}  {printable(value)}" for name, value in lines)


def _many(results: Sequence[records.EstimateRecord], by: Sequence[str]) -> str:
    """One line per group and estimator."""
    rows, notes = [], []
    for r in results:
        name = names.word_of(r.estimator.name, names.ESTIMATORS)
        low, high = (None, None) if r.interval is None else (r.interval.low, r.interval.high)
        norm = "max" if r.norm == float("inf") else f"{r.norm:g}"
        bins = "-" if r.bins is None else str(len(r.bins))
        sketch = [] if r.sketch_error is None else [f"{r.sketch_error:.1g}"]
        numbers = [number(r.value), number(low), number(high), p_shown(r.p_value), str(r.n), bins, *sketch]
        rows.append([*([] if r.group is None else [r.group]), name, norm, *numbers])
        notes += [f"warning: {'' if r.group is None else f'{r.group}: '}{name}: {text}" for text in r.warnings]
    header = [*([", ".join(by)] if by else []), "estimator", "norm", "error", "low", "high", "p-value", "n", "bins"]
    if any(r.sketch_error is not None for r in results):
        header.append("sketch error")
    if len({r.group for r in results}) > 1:
        notes.append(
            "every group is judged alone, and of many some look wrong by chance: truecal report judges them together"
        )
    return "\n".join([table(header, rows), *map(printable, dict.fromkeys(notes))])
