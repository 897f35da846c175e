"""`truecal measure`: one number with its interval, its test and its warnings."""

from typing import TYPE_CHECKING, Any

import click

from truecal.cli.estimators import all_estimators, estimator_options, make_estimator, make_lens
from truecal.cli.output import answer, number, output_options, p_shown, table, working
from truecal.cli.scan import answers, is_scan, scan_record, scanned
from truecal.cli.source import Source, by_option, load_all, scan_options
from truecal.errors import InputError

if TYPE_CHECKING:
    from truecal.estimate import Estimate, Estimator
    from truecal.lens import Lens
    from truecal.predictions import Predictions


@click.command()
@estimator_options
@click.option(
    "--max-error", type=click.FloatRange(0, 1), help="Gate: exit 1 unless the error is below this, at --level."
)
@output_options
@by_option
@scan_options
def measure(
    source: Source,
    estimator: str,
    bins: int | None,
    scheme: str | None,
    norm: str | None,
    lens: str,
    level: float,
    seed: int,
    max_error: float | None,
    as_json: bool,
    out: str | None,
) -> int:
    """Measure the calibration error of the predictions in FILE (csv, jsonl, parquet, npz, or - for standard input).

    A pattern such as 'logs/*.parquet', a folder, or several files are scanned in one pass and in bounded memory; the answer then
    says how far it can be from that of all rows at once. --engine scans a single file too.

    With --max-error this is a gate: it passes (exit 0) only if the upper end of the interval is at most that, so that too little
    data fails as well as too large an error (exit 1).
    """
    from truecal.report.records import document, estimate_record

    if estimator == "all":
        if max_error is not None:
            raise InputError("--max-error judges one estimator; leave out --estimator all")
        makers = all_estimators()
    else:
        makers = {estimator: make_estimator(estimator, bins=bins, scheme=scheme, norm=norm)}
    content: dict[str, Any] = {"source": source.name, "level": level}
    if is_scan(source):
        scan = scanned(source, lens)
        found = answers(scan, makers, level, seed)
        content["scan"] = scan_record(scan)
    else:
        found = _in_memory(source, lens, makers, level, seed)
    results = [
        {**({} if source.by is None else {"group": group}), **estimate_record(estimate, level=level)}
        for group, _, estimate in found
    ]
    content["results"] = results
    passed = True
    if max_error is not None:
        uppers = [_upper(estimate) for _, _, estimate in found]
        passed = max(uppers) <= max_error
        content["gate"] = {"max_error": max_error, "upper": max(uppers), "passed": passed}
    text = _one(found[0][2]) if len(found) == 1 else _many(found, source.by)
    if max_error is not None:
        text += "\n" + _gate_line(max(uppers), max_error, level, [e for _, _, e in found])
    answer(document("measure", **content), text, as_json=as_json, out=out)
    return 0 if passed else 1


def _in_memory(
    source: Source, lens: str, makers: "dict[str, Estimator]", level: float, seed: int
) -> "list[tuple[str, str, Estimate]]":
    """Group (empty where there are none), name of the estimator and estimate, group by group."""
    loaded = load_all(source)
    preds = loaded.preds
    judged = make_lens(lens, preds)
    groups = {"": preds} if source.by is None else preds_by(preds, source.by)
    with working("measuring"):
        found = [
            (group, name, _measure(rows, maker, judged, level, seed, group))
            for group, rows in groups.items()
            for name, maker in makers.items()
        ]
    gone = (f"{loaded.dropped} rows with missing values were left out",) if loaded.dropped else ()
    return [(group, name, estimate.but(warnings=(*gone, *estimate.warnings))) for group, name, estimate in found]


def preds_by(preds: "Predictions", column: str) -> "dict[str, Predictions]":
    """The rows of each value of a column, in the order of the values."""
    import numpy as np

    values = np.asarray(preds.columns[column])
    words = values.astype(str)
    return {str(word): preds.take(words == word) for word in np.unique(words)}


def _measure(
    preds: "Predictions", estimator: "Estimator", lens: "Lens | None", level: float, seed: int, group: str
) -> "Estimate":
    from truecal.uncertainty.measurement import measure as measured

    try:
        return measured(preds, estimator=estimator, lens=lens, level=level, rng=seed)
    except InputError as error:
        raise InputError(f"group {group!r}: {error}" if group else str(error)) from error


def _upper(estimate: "Estimate") -> float:
    if estimate.interval is None:
        raise InputError(
            "--max-error needs an interval, which a class-wise scan does not have; judge one class with --lens class=NAME"
            if estimate.sketch_error is not None
            else "--max-error needs an interval, which this estimator does not have; use the default, rank-series"
        )
    return float(estimate.interval.high)


def _gate_line(upper: float, most: float, level: float, estimates: "list[Estimate]") -> str:
    if upper <= most:
        return f"PASS: at {level:.0%} the error is at most {upper:.4f}, below {most:g}"
    surely = max(float(e.interval.low) for e in estimates if e.interval is not None) > most
    if surely:
        return f"FAIL: at {level:.0%} the error is above {most:g}"
    return (
        f"FAIL: the error may be as large as {upper:.4f}, so at {level:.0%} it cannot be promised to be below {most:g}"
    )


def _one(estimate: "Estimate") -> str:
    """Label and value, line by line."""
    lines = [(estimate.metric, f"{float(estimate.value):.4f}")]
    if estimate.interval is not None:
        low, high = float(estimate.interval.low), float(estimate.interval.high)
        lines.append((f"{estimate.interval.level:.0%} interval", f"[{low:.4f}, {high:.4f}]"))
    if estimate.p_value is not None:
        lines.append(("p-value of 'is calibrated'", p_shown(float(estimate.p_value))))
    direction = float(estimate.direction)
    if abs(direction) >= 0.0005:
        lines.append(("on average", f"{'over' if direction > 0 else 'under'}confident by {abs(direction):.4f}"))
    lines.append(("judged", f"{estimate.lens}, n = {estimate.n}"))
    if estimate.sketch_error is not None:
        lines.append(("from a sketch", f"within {estimate.sketch_error:.1g} of the value of all rows"))
    bins = "" if estimate.bins is None else f", {estimate.bins.filled} bins"
    lines.append(("estimator", f"{type(estimate.estimator).__name__}{bins}"))
    lines += [("warning", text) for text in estimate.warnings]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def _many(found: "list[tuple[str, str, Estimate]]", by: str | None) -> str:
    rows, notes = [], []
    for group, name, e in found:
        low, high = (None, None) if e.interval is None else (float(e.interval.low), float(e.interval.high))
        words = [] if by is None else [group]
        norm = "max" if e.norm == float("inf") else f"{e.norm:g}"
        bins = "-" if e.bins is None else str(e.bins.filled)
        p = None if e.p_value is None else float(e.p_value)
        sketch = [] if e.sketch_error is None else [f"{e.sketch_error:.1g}"]
        numbers = [number(float(e.value)), number(low), number(high), p_shown(p), str(e.n), bins, *sketch]
        rows.append([*words, name, norm, *numbers])
        notes += [f"warning: {f'{group}: ' if by else ''}{name}: {text}" for text in e.warnings]
    header = [*([] if by is None else [by]), "estimator", "norm", "error", "low", "high", "p-value", "n", "bins"]
    if any(e.sketch_error is not None for _, _, e in found):
        header.append("sketch error")
    return "\n".join([table(header, rows), *dict.fromkeys(notes)])
