"""`truecal compare`: which of several models is better calibrated, and is the new one worse than the old?"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import click

import truecal as tc
from truecal import digits
from truecal.cli.command import ALL_FORMATS, Fraction, Parsed, Probability, Seed, WriteTo, command
from truecal.cli.input import Files, classes_by_word, load, make_lens
from truecal.cli.measure import split_rows
from truecal.cli.output import Reply, Statement, command_line, note, working
from truecal.cli.scan import is_sketched, read_sketch
from truecal.errors import InputError
from truecal.inference.ranking import RankingConclusion, conclude_ranking
from truecal.table import Frame


def _parse_model(text: str) -> tuple[str, str]:
    """Parse NAME=COLUMNS; raise ValueError if either is empty.

    >>> _parse_model("a=pa_*")
    ('a', 'pa_*')
    """
    name, _, columns = text.partition("=")
    if not name or not columns:
        raise ValueError(text)
    return name, columns


@command(formats=ALL_FORMATS)
def compare(
    source: Files,
    *,
    model: tuple[Annotated[tuple[str, str], Parsed(_parse_model, "NAME=COLUMNS, such as a='pa_*'")], ...] = (),
    split: str | None = None,
    reference: str | None = None,
    key: str | None = None,
    unpaired: bool = False,
    max_increase: Probability | None = None,
    resamples: Annotated[int, click.IntRange(99)] = 1000,
    report: WriteTo | None = None,
    level: Fraction = 0.95,
    seed: Seed = 0,
) -> Reply:
    """Compare the calibration errors of models, pair by pair, with interval and test.

    Give one FILE per model; or one FILE with the columns of every model (--model a='pa_*' --model b='pb_*') or with the rows of
    every model (--split model). Labels may be each model's own: whether its answer was correct. Rows belong together by their
    order, by --key, or not at all (--unpaired). A FILE may also be a folder, a pattern or a saved sketch (day against day).

    With --max-increase this is a gate against a reference: exit 0 if no model is worse by more than that, at --level; else 1.

    --model NAME=COLUMNS  A model's columns in the one FILE; may be repeated.
    --split COLUMN        The one FILE holds the rows of several models, named in this column.
    --reference NAME      Compare every model with this one only.
    --key COLUMN          Rows of two models with the same value here belong together (question).
    --unpaired            Rows of the models do not belong together (day against day).
    --max-increase E      Gate: exit 1 unless no error exceeds that of the reference (default: the first) by more, at --level.
    --resamples N         Bootstrap resamples.
    --report FILE         Also write a self-contained HTML page.
    """
    if key is not None and unpaired:
        raise click.UsageError("--key pairs rows and --unpaired does not; give one")
    if not unpaired and any(word.startswith("output=") for word in source.select):
        raise InputError("--select output=... chooses other rows for each model; compare them with --unpaired")
    data = _read_models(source, model, split)
    first = next(iter(data.values()))
    reference = next(iter(data)) if reference is None and max_increase is not None else reference
    sketched = isinstance(first, tc.Sketch)  # of folders and sketches, whose rows cannot be paired
    if sketched and key is not None:
        raise InputError("--key pairs rows, and folders and sketches keep sums; leave it out, or compare files")
    lens = None if sketched else make_lens(source.lens, classes_by_word(first))
    common: dict[str, Any] = {"lens": lens, "level": level, "rng": seed}
    pairing: dict[str, Any] = {"key": key, "paired": not (unpaired or sketched), "resamples": resamples}
    gate: dict[str, Any] = {"reference": reference, "max_increase": max_increase}
    with working("resampling"):
        if report is not None:
            from truecal.pages.comparison import gather_comparison
            from truecal.pages.render import write_page

            page = gather_comparison(data, command=command_line(), **gate, **pairing, **common)
            note(f"wrote {write_page(report, page.html)}")
            return _reply(page.conclusion, page.estimates)
        comparisons = tc.inference.compare_many(data, reference=reference, **pairing, **common)
        estimates = {name: tc.measure(preds, **common) for name, preds in data.items()}
    return _reply(conclude_ranking(comparisons, level, **gate), estimates)


def _read_models(source: Files, models: "tuple[tuple[str, str], ...]", split: str | None) -> "Mapping[str, Any]":
    """Read the data of every model by its name: Predictions, or Sketches if a file is scanned or a sketch.

    Files are (name, columns) pairs `models` of one file, its rows by the value of column `split`, or files.
    """
    if models and split:
        raise click.UsageError("--model names columns and --split rows; give one")
    if (models or split) and len(source.files) != 1:
        raise click.UsageError("--model and --split are for one FILE; leave them out to compare files")
    if split is not None:
        parts = split_rows(load(replace(source, by=(split,))).preds, (split,))
        if len(parts) < 2:
            raise InputError(f"column {split!r} has one value, {next(iter(parts))!r}; a comparison needs two models")
        return parts
    sources = _sources_of_models(source, models)
    if not any(map(is_sketched, sources.values())):
        return {name: load(model_source).preds for name, model_source in sources.items()}
    if source.clusters is not None:
        raise InputError("--clusters needs the rows, and folders and sketches keep sums; compare files without it")
    return {name: read_sketch(model_source) for name, model_source in sources.items()}


def _sources_of_models(source: Files, models: "tuple[tuple[str, str], ...]") -> dict[str, Files]:
    """Return the input of every model: (name, columns) of one file; or files, named by stems, or by paths if stems are equal."""
    if models:
        if source.probabilities is not None or source.logits is not None:
            raise click.UsageError("--model names the predictions; leave out --score, --probs and --logits")
        pairs = [(name, replace(source, probs=columns)) for name, columns in models]
    else:
        if len(source.files) < 2:
            raise click.UsageError(
                "give several files; or one file with --model NAME=COLUMNS for every model in it, or --split COLUMN"
            )
        stems = [Path(file).name.partition(".")[0] for file in source.files]
        names = stems if len(set(stems)) == len(stems) else source.files
        pairs = [(name, replace(source, files=(file,))) for name, file in zip(names, source.files, strict=True)]
    sources = dict(pairs)
    if len(sources) < len(pairs):
        raise click.UsageError("two models have the same name, or a file is given twice")
    return sources


def _reply(conclusion: RankingConclusion, estimates: "Mapping[str, tc.Estimate]") -> Reply:
    """Return the reply with errors of models and differences of pairs; a statement per pair, with its gate if there is one.

    Its content is n, lens, models ("name" and `Estimate.frame`, the smallest error first) and pairs (`Comparison.row`); its
    text is both tables, the method, and the sentence of the conclusion.
    """
    first = conclusion.comparisons[0]
    interval = f"[{conclusion.level:.0%} interval]"
    models = [{"name": name, **estimates[name].frame()[0]} for name in conclusion.ranking]
    errors = [
        {"model": m["name"], f"error {interval}": digits.with_interval(m["value"], m["low"], m["high"])} for m in models
    ]
    pairs, statements = [], []
    for c in conclusion.comparisons:
        low, high = float(c.interval.low), float(c.interval.high)
        name, size = f"{c.a} - {c.b}", digits.with_interval(c.difference, low, high, sign=True)
        p_values = {"p-value": digits.p_text(c.p_value), "adjusted": digits.p_text(c.adjusted_p)}
        pairs.append({"pair": name, f"difference {interval}": size, **p_values})
        pair_conclusion = replace(conclusion, comparisons=(c,))
        gate = pair_conclusion.gate.partition(": ")[2] or conclusion.finding(c)
        tests = f"at {conclusion.level:.0%}, adjusted {digits.p_equation(c.adjusted_p)}, n = {c.n}"
        numbers = {key: float(value) for key, value in c.row().items() if not isinstance(value, str)}
        labels = {"a": c.a, "b": c.b, "lens": c.lens}
        statements.append(
            Statement(name, f"difference {size} {tests}; {gate}", numbers, pair_conclusion.passed, labels)
        )
    text = [
        Frame.from_records(errors).to_text(),
        "",
        Frame.from_records(pairs).to_text(),
        f"{models[0]['metric']}, {first.lens}, n = {first.n}; intervals: {first.interval.method}",
        f"{conclusion.sentence} A negative difference favours the first model of a pair.",
    ]
    content = {"n": first.n, "lens": first.lens, "models": models, "pairs": [c.row() for c in conclusion.comparisons]}
    return Reply("compare", content, "\n".join(text), statements, conclusion)
