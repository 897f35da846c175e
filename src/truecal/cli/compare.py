"""`truecal compare`: which of several models is better calibrated on the same rows?"""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truecal.cli.estimators import lens_option, level_option, make_lens, seed_option
from truecal.cli.output import answer, number, output_options, p_shown, table, working
from truecal.cli.source import Source, column_options, load
from truecal.errors import InputError

if TYPE_CHECKING:
    from truecal.lens import Lens
    from truecal.predictions import Predictions
    from truecal.uncertainty import Comparison


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--model", "models", metavar="NAME=COLUMNS", multiple=True, help="A model's columns in the one FILE; repeat."
)
@click.option("--reference", metavar="NAME", help="Compare every model with this one only.")
@click.option("--resamples", type=click.IntRange(99), default=1000, show_default=True, help="Bootstrap resamples.")
@click.option("--report", "page", metavar="FILE", help="Also write a self-contained HTML page.")
@lens_option
@level_option
@seed_option
@output_options
@column_options
def compare(
    source: Source,
    files: tuple[str, ...],
    models: tuple[str, ...],
    reference: str | None,
    resamples: int,
    page: str | None,
    lens: str,
    level: float,
    seed: int,
    as_json: bool,
    out: str | None,
) -> None:
    """Compare the calibration errors of models on the same rows, pair by pair, with interval and test.

    Give one FILE with the columns of every model (--model a='pa_*' --model b='pb_*'), or one FILE per model, all with the same
    rows in the same order.
    """
    import truecal as tc
    from truecal.report import document

    preds = _from_columns(source, files, models) if models else _from_files(source, files)
    first = next(iter(preds.values()))
    with working("resampling"):
        found = tc.compare_many(
            first.labels,
            {name: p.probs for name, p in preds.items()},
            reference=reference,
            lens=make_lens(lens, first),
            sample_weight=first.weights,
            clusters=first.clusters,
            resamples=resamples,
            level=level,
            rng=seed,
        )
    errors = {name: value for c in found for name, value in ((c.a, c.value_a), (c.b, c.value_b))}
    if page is not None:
        _write_page(preds, page, reference, make_lens(lens, first), level, resamples, seed)
    content = document(
        "compare", n=len(first), lens=found[0].lens, level=level, errors=errors, pairs=[c.row() for c in found]
    )
    answer(content, _shown(found, errors, level), as_json=as_json, out=out)


def _write_page(
    preds: "dict[str, Predictions]",
    page: str,
    reference: str | None,
    lens: "Lens | None",
    level: float,
    resamples: int,
    seed: int,
) -> None:
    from truecal.report import report_comparison

    with working("writing the page"):
        path = report_comparison(
            preds,
            page,
            reference=reference,
            lens=lens,
            level=level,
            resamples=resamples,
            command=shlex.join(["truecal", *sys.argv[1:]]),
            rng=seed,
        )
    click.echo(f"wrote {path}", err=True)


def _from_columns(source: Source, files: Sequence[str], models: Sequence[str]) -> "dict[str, Predictions]":
    if len(files) != 1:
        raise click.UsageError("--model names columns of one FILE; leave it out to compare files")
    if source.probs is not None or source.logits is not None:
        raise click.UsageError("--model says where the predictions are; leave out --score, --probs and --logits")
    found: dict[str, Predictions] = {}
    for model in models:
        name, equals, columns = model.partition("=")
        if not equals or not name or not columns:
            raise click.UsageError(f"--model is NAME=COLUMNS, such as a='pa_*', not {model!r}")
        if name in found:
            raise click.UsageError(f"--model {name} is given twice")
        found[name] = load(replace(source, file=files[0], probs=columns))
    return found


def _from_files(source: Source, files: Sequence[str]) -> "dict[str, Predictions]":
    import numpy as np

    if len(files) < 2:
        raise click.UsageError("give several files, or one file and --model NAME=COLUMNS for every model in it")
    stems = [Path(file).stem for file in files]
    names = stems if len(set(stems)) == len(stems) else list(files)
    if len(set(names)) < len(names):
        raise click.UsageError("a file is given twice")
    found = {name: load(replace(source, file=file)) for name, file in zip(names, files, strict=True)}
    first = found[names[0]]
    for name, preds in found.items():
        if len(preds) != len(first) or not np.array_equal(preds.labels, first.labels):
            raise InputError(f"{name} and {names[0]} do not hold the same rows in the same order: their labels differ")
    return found


def _shown(found: "Sequence[Comparison]", errors: dict[str, float], level: float) -> str:
    models = table(["model", "error (rms)"], [[name, number(value)] for name, value in errors.items()])
    rows = [
        [
            f"{c.a} - {c.b}",
            f"{c.difference:+.4f}",
            f"{float(c.interval.low):+.4f} to {float(c.interval.high):+.4f}",
            p_shown(c.p_value),
            p_shown(c.adjusted_p),
        ]
        for c in found
    ]
    pairs = table(["pair", "difference", f"{level:.0%} interval", "p-value", "adjusted"], rows)
    judged = f"{found[0].lens}, n = {found[0].n}, {found[0].interval.method}; below 0: the first is better calibrated"
    return "\n".join([models, "", pairs, judged])
