"""`truecal compare`: which of several models is better calibrated, and is the new one worse than the old?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import truecal as tc
from truecal.cli.estimators import lens_option, level_option, make_lens, seed_option
from truecal.cli.output import Answer, Finding, Output, as_typed, format_options, note, number, p_shown, table, working
from truecal.cli.scan import is_sketched, sketch_of
from truecal.cli.source import Source, column_options, load
from truecal.errors import InputError, printable
from truecal.pages import comparison, records
from truecal.pages.comparison import PairRow

if TYPE_CHECKING:
    Models = dict[str, tc.Predictions] | dict[str, tc.Sketch]


_RMS = "root-mean-square calibration error"


@dataclass(frozen=True)
class IncreaseRecord:
    """Whether no model's error exceeds that of the reference by more than is allowed, at the level of the intervals."""

    max_increase: float
    upper: float
    worst: str
    passed: bool


@dataclass(frozen=True)
class CompareRecord:
    """What `truecal compare` answers."""

    n: int
    lens: str
    metric: str
    level: float
    errors: Mapping[str, float]
    pairs: tuple[comparison.PairRow, ...]
    gate: IncreaseRecord | None = field(default=None, metadata=records.OPTIONAL)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--model", "models", metavar="NAME=COLUMNS", multiple=True, help="A model's columns in the one FILE; repeat."
)
@click.option("--split", metavar="COLUMN", help="The one FILE holds the rows of several models, named in this column.")
@click.option("--reference", metavar="NAME", help="Compare every model with this one only.")
@click.option("--key", metavar="COLUMN", help="Rows of two models with the same value here belong together (question).")
@click.option("--unpaired", is_flag=True, help="Rows of the models do not belong together (day against day).")
@click.option(
    "--max-increase",
    type=click.FloatRange(0, 1),
    help="Gate: exit 1 unless no error exceeds that of the reference (default: the first) by more, at --level.",
)
@click.option("--resamples", type=click.IntRange(99), default=1000, show_default=True, help="Bootstrap resamples.")
@click.option("--report", "page", metavar="FILE", type=click.Path(), help="Also write a self-contained HTML page.")
@lens_option
@level_option
@seed_option
@format_options
@column_options
def compare(
    source: Source,
    files: tuple[str, ...],
    models: tuple[str, ...],
    split: str | None,
    reference: str | None,
    key: str | None,
    unpaired: bool,
    max_increase: float | None,
    resamples: int,
    page: str | None,
    lens: str,
    level: float,
    seed: int,
    output: Output,
) -> int:
    """Compare the calibration errors of models, pair by pair, with interval and test.

    Give one FILE per model; or one FILE with the columns of every model (--model a='pa_*' --model b='pb_*') or with the rows of
    every model (--split model). Labels may be each model's own: whether its answer was correct. Rows belong together by their
    place, by --key, or not at all (--unpaired). A FILE may also be a folder, a pattern or a saved sketch (day against day).

    With --max-increase this is a gate against a reference: exit 0 if no model is worse by more than that, at --level; else 1.
    """
    if key is not None and unpaired:
        raise click.UsageError("--key pairs rows and --unpaired does not; give one")
    if not unpaired and any(word.startswith("output=") for word in source.select):
        raise InputError("--select output=... chooses other rows for each model; compare them with --unpaired")
    source = source if key is None or split is None else replace(source, by=(split,))
    preds = _models(source, files, models, split, lens)
    if max_increase is not None and reference is None:
        reference = next(iter(preds))
    first = next(iter(preds.values()))
    sums = isinstance(first, tc.Sketch)  # of folders and sketches, whose rows cannot be paired
    if sums and key is not None:
        raise InputError("--key pairs rows, and folders and sketches keep sums; leave it out, or compare files")
    judged = make_lens(lens, first) if isinstance(first, tc.Predictions) else None
    pairing = comparison.Pairing(key, not (unpaired or sums), reference, resamples)
    with working("resampling"):
        comparisons = comparison.compare_models(preds, pairing, lens=judged, level=level, rng=seed)
    record = _record(comparisons, level, reference, max_increase)
    if page is not None:
        with working("writing the page"):
            options: dict[str, Any] = {"reference": reference, "key": key, "paired": pairing.paired}
            options["resamples"] = resamples
            path = tc.report(preds, page, lens=judged, level=level, command=as_typed(), rng=seed, **options)
        note(f"wrote {path}", err=True)
    method = comparisons[0].interval.method
    findings = [_finding(record, pair) for pair in record.pairs]
    verdict = "" if record.gate is None else _gate_line(record, record.gate)
    output.write(
        Answer("compare", records.document("compare", record), _text(record, method), findings, verdict=verdict)
    )
    return 0 if record.gate is None or record.gate.passed else 1


def _models(source: Source, files: Sequence[str], models: Sequence[str], split: str | None, lens: str) -> "Models":
    if models and split:
        raise click.UsageError("--model names columns and --split rows; give one")
    if models:
        return _from_columns(source, files, models)
    return _from_files(source, files, lens) if split is None else _from_rows(source, files, split)


def _from_columns(source: Source, files: Sequence[str], models: Sequence[str]) -> "dict[str, tc.Predictions]":
    if len(files) != 1:
        raise click.UsageError("--model names columns of one FILE; leave it out to compare files")
    if source.probs is not None or source.logits is not None:
        raise click.UsageError("--model says where the predictions are; leave out --score, --probs and --logits")
    parts: dict[str, tc.Predictions] = {}
    for model in models:
        name, equals, columns = model.partition("=")
        if not equals or not name or not columns:
            raise click.UsageError(f"--model is NAME=COLUMNS, such as a='pa_*', not {model!r}")
        if name in parts:
            raise click.UsageError(f"--model {name} is given twice")
        parts[name] = load(replace(source, file=files[0], probs=columns))
    return parts


def _from_rows(source: Source, files: Sequence[str], split: str) -> "dict[str, tc.Predictions]":
    from truecal.cli.measure import preds_by

    if len(files) != 1:
        raise click.UsageError("--split names a column of one FILE; leave it out to compare files")
    parts = preds_by(load(replace(source, file=files[0], by=(split,))), (split,))
    if len(parts) < 2:
        raise InputError(f"column {split!r} has one value, {next(iter(parts))!r}; a comparison needs two models")
    return parts


def _from_files(source: Source, files: Sequence[str], lens: str) -> "Models":
    if len(files) < 2:
        raise click.UsageError(
            "give several files; or one file with --model NAME=COLUMNS for every model in it, or --split COLUMN"
        )
    stems = [Path(file).name.partition(".")[0] for file in files]
    names = stems if len(set(stems)) == len(stems) else list(files)
    if len(set(names)) < len(names):
        raise click.UsageError("a file is given twice")
    each = {name: replace(source, file=file) for name, file in zip(names, files, strict=True)}
    if any(is_sketched(one) for one in each.values()):
        if source.cluster is not None:
            raise InputError("--cluster needs the rows, and folders and sketches keep sums; compare files without it")
        return {name: sketch_of(one, lens) for name, one in each.items()}
    return {name: load(one) for name, one in each.items()}


def _record(
    comparisons: "Sequence[tc.inference.Comparison]", level: float, reference: str | None, max_increase: float | None
) -> CompareRecord:
    errors = {name: value for c in comparisons for name, value in ((c.a, c.value_a), (c.b, c.value_b))}
    pairs = tuple(PairRow.of(comparison) for comparison in comparisons)
    gate = None
    if max_increase is not None:
        increases = {pair.a if pair.b == reference else pair.b: _increase(pair, reference) for pair in pairs}
        worst = max(increases, key=increases.__getitem__)
        gate = IncreaseRecord(max_increase, increases[worst], worst, increases[worst] <= max_increase)
    first = comparisons[0]
    return CompareRecord(first.n, first.lens, first.estimator.name or _RMS, level, errors, pairs, gate)


def _increase(pair: comparison.PairRow, reference: str | None) -> float:
    """The largest increase over the reference that the data allow; any, where a limit is not a number."""
    increase = pair.high if pair.b == reference else -pair.low
    return inf if isnan(increase) else increase


def _finding(record: CompareRecord, pair: comparison.PairRow) -> Finding:
    reach = f"[{pair.low:+.4f}, {pair.high:+.4f}] at {record.level:.0%}"
    errors = f"{record.errors[pair.a]:.4f} - {record.errors[pair.b]:.4f}"
    reference = next((name for name in (pair.b, pair.a) if all(name in (p.a, p.b) for p in record.pairs)), None)
    return Finding(
        f"{pair.a} - {pair.b}",
        f"{errors} = {pair.difference:+.4f} {reach}, adjusted p {p_shown(pair.adjusted_p)}, n = {record.n}",
        {
            "difference": pair.difference,
            "low": pair.low,
            "high": pair.high,
            "p_value": pair.p_value,
            "adjusted_p": pair.adjusted_p,
        },
        None if record.gate is None else _increase(pair, reference) <= record.gate.max_increase,
        {"a": pair.a, "b": pair.b, "lens": record.lens},
    )


def _gate_line(record: CompareRecord, gate: IncreaseRecord) -> str:
    sure, most = f"{record.level:.0%}", f"{gate.max_increase:g}"
    if gate.passed:
        return f"PASS: at {sure} the error increases by at most {gate.upper:.4f}, below {most}"
    return (
        f"FAIL: at {sure} the error of {printable(gate.worst)} may increase by {gate.upper:.4f}, and {most} is allowed"
    )


def _text(record: CompareRecord, method: str) -> str:
    error = "error (rms)" if record.metric == _RMS else "error"
    models = table(["model", error], [[name, number(value)] for name, value in record.errors.items()])
    rows = [
        [
            f"{pair.a} - {pair.b}",
            f"{pair.difference:+.4f}",
            f"{pair.low:+.4f} to {pair.high:+.4f}",
            p_shown(pair.p_value),
            p_shown(pair.adjusted_p),
        ]
        for pair in record.pairs
    ]
    pairs = table(["pair", "difference", f"{record.level:.0%} interval", "p-value", "adjusted"], rows)
    metric = "" if record.metric == _RMS else f"{record.metric}, "
    judged = f"{metric}{record.lens}, n = {record.n}, {method}; below 0: the first is better calibrated"
    gate = [] if record.gate is None else [_gate_line(record, record.gate)]
    return "\n".join([models, "", pairs, judged, *gate])
