"""`truecal compare`: which of several models is better calibrated, and is the new one worse than the old?"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import truecal as tc
from truecal import digits
from truecal.cli.estimators import lens_option, level_option, make_lens, seed_option
from truecal.cli.output import Finding, OutputFile, Result, answers, as_typed, note, table, working
from truecal.cli.scan import is_sketched, sketch_of
from truecal.cli.source import Source, column_options, load
from truecal.errors import InputError

if TYPE_CHECKING:
    Models = dict[str, tc.Predictions] | dict[str, tc.Sketch]


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
@click.option("--report", "page", cls=OutputFile, help="Also write a self-contained HTML page.")
@lens_option
@level_option
@seed_option
@answers
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
) -> Result:
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
    options: dict[str, Any] = {
        "reference": reference,
        "key": key,
        "paired": not (unpaired or sums),
        "resamples": resamples,
    }
    with working("resampling"):
        comparisons = tc.inference.compare_many(preds, lens=judged, level=level, rng=seed, **options)
        alone = {name: tc.measure(data, lens=judged, level=level, rng=seed) for name, data in preds.items()}
    if page is not None:
        with working("writing the page"):
            path = tc.report(preds, page, lens=judged, level=level, command=as_typed(), rng=seed, **options)
        note(f"wrote {path}")
    return _result(comparisons, alone, level, reference, max_increase)


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
        if source.clusters is not None:
            raise InputError("--clusters needs the rows, and folders and sketches keep sums; compare files without it")
        return {name: sketch_of(one, lens) for name, one in each.items()}
    return {name: load(one) for name, one in each.items()}


def _result(
    comparisons: "Sequence[tc.inference.Comparison]",
    alone: "dict[str, tc.Estimate]",
    level: float,
    reference: str | None,
    max_increase: float | None,
) -> Result:
    first = comparisons[0]
    values = {name: value for c in comparisons for name, value in ((c.a, c.value_a), (c.b, c.value_b))}
    ranking = sorted(values, key=lambda name: values[name])
    gate, content_gate = "", None
    increases = (
        {} if max_increase is None else {c.a if c.b == reference else c.b: _increase(c, reference) for c in comparisons}
    )
    if max_increase is not None:
        worst = max(increases, key=lambda name: increases[name])
        passed = increases[worst] <= max_increase
        content_gate = {"max_increase": max_increase, "upper": increases[worst], "worst": worst, "passed": passed}
        gate = _gate_line(worst, increases[worst], max_increase, level)
    content: dict[str, object] = {
        "n": first.n,
        "lens": first.lens,
        "metric": first.estimator.name or "root-mean-square calibration error",
        "level": level,
        "errors": values,
        "models": [{"name": name, **_limits(alone[name]), "error": values[name]} for name in ranking],
        "pairs": [_pair(c) for c in comparisons],
        **({} if content_gate is None else {"gate": content_gate}),
    }
    return Result(
        "compare",
        content,
        _text(comparisons, alone, ranking, values, level, str(content["metric"])),
        [
            _finding(c, level, None if max_increase is None else _increase(c, reference) <= max_increase)
            for c in comparisons
        ],
        gate,
        failed=content_gate is not None and not content_gate["passed"],
    )


def _limits(estimate: "tc.Estimate") -> dict[str, float | None]:
    interval = estimate.interval
    ends = (None, None) if interval is None else (float(interval.low), float(interval.high))
    return dict(zip(("low", "high"), ends, strict=True))


def _pair(c: "tc.inference.Comparison") -> dict[str, object]:
    ends = {"low": float(c.interval.low), "high": float(c.interval.high)}
    tests = {"p_value": float(c.p_value), "adjusted_p": float(c.adjusted_p)}
    return {"a": c.a, "b": c.b, "difference": float(c.difference), **ends, **tests}


def _increase(c: "tc.inference.Comparison", reference: str | None) -> float:
    """Return the largest increase over the reference that the data allow; infinite where a limit is not a number."""
    increase = float(c.interval.high) if c.b == reference else -float(c.interval.low)
    return inf if isnan(increase) else increase


def _finding(c: "tc.inference.Comparison", level: float, passed: bool | None) -> Finding:
    size = digits.with_interval(float(c.difference), float(c.interval.low), float(c.interval.high), sign=True)
    sentence = (
        f"{c.value_a:.4f} - {c.value_b:.4f} = {size} at {level:.0%}, adjusted {digits.p_equation(float(c.adjusted_p))}"
    )
    numbers = {key: value for key, value in _pair(c).items() if isinstance(value, float)}
    return Finding(f"{c.a} - {c.b}", f"{sentence}, n = {c.n}", numbers, passed, {"a": c.a, "b": c.b, "lens": c.lens})


def _gate_line(worst: str, upper: float, allowed: float, level: float) -> str:
    if upper <= allowed:
        return f"PASS: at {level:.0%} the error increases by at most {upper:.4f}, and {allowed:g} is allowed"
    remedy = "more rows narrow the interval, if the increase itself is smaller"
    return (
        f"FAIL: at {level:.0%} the error of {worst} may increase by {upper:.4f}, and {allowed:g} is allowed; {remedy}"
    )


def _text(
    comparisons: "Sequence[tc.inference.Comparison]",
    alone: "dict[str, tc.Estimate]",
    ranking: Sequence[str],
    values: dict[str, float],
    level: float,
    metric: str,
) -> str:
    error = "error (rms)" if metric.startswith("root") else "error"
    rows = []
    for name in ranking:
        low, high = _limits(alone[name]).values()
        places = digits.decimals(low, high)
        ends = "-" if low is None or high is None else f"{low:.{places}f} to {high:.{places}f}"
        rows.append([name, f"{values[name]:.{places}f}", ends])
    models = table(["model", error, f"{level:.0%} interval"], rows)
    rows = []
    for c in comparisons:
        low, high = float(c.interval.low), float(c.interval.high)
        spec = f"+.{digits.decimals(low, high)}f"
        tests = [digits.p_text(float(c.p_value)), digits.p_text(float(c.adjusted_p))]
        rows.append([f"{c.a} - {c.b}", f"{float(c.difference):{spec}}", f"{low:{spec}} to {high:{spec}}", *tests])
    pairs = table(["pair", "difference", f"{level:.0%} interval", "p-value", "adjusted"], rows)
    first = comparisons[0]
    judged = f"{metric}, {first.lens}, n = {first.n}, {first.interval.method}"
    return "\n".join([models, "", pairs, "a difference below 0: the first model is better calibrated", judged])
