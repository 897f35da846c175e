"""`truecal recalibrate fit | apply`: learn what fixes the predictions of a model, and use it on others."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.cli.output import answer, number, table, working
from truecal.cli.source import Loaded, Source, as_file, input_options, load_all, open_columns, outputs_of
from truecal.errors import FileError, InputError
from truecal.predictions.readers.columns import choose_predictions
from truecal.study.spec.spec import RECALIBRATORS

if TYPE_CHECKING:
    from truecal.recalibrate import Evaluation, Recalibrator

_WRITERS = {".csv": "write_csv", ".jsonl": "write_ndjson", ".ndjson": "write_ndjson", ".parquet": "write_parquet"}


@click.group()
def recalibrate() -> None:
    """Fit a recalibrator, or apply a fitted one."""


@recalibrate.command()
@click.option(
    "--method",
    type=click.Choice(["auto", *RECALIBRATORS]),
    default="auto",
    show_default=True,
    help="'auto' compares all on held-out folds and takes the one with the lowest log loss.",
)
@click.option("--bins", type=click.IntRange(1), help="Number of bins (histogram, scaling-binning).")
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Folds of the comparison.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the folds.")
@click.option("--out", metavar="FILE", default="recalibrator.json", show_default=True, help="Where the fit is written.")
@click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document.")
@input_options
def fit(source: Source, method: str, bins: int | None, folds: int, seed: int, out: str, as_json: bool) -> None:
    """Learn a recalibration from the predictions and labels in FILE and write it as JSON.

    FILE should hold rows that the model was not trained on. The table shows every method on rows it was not fitted on.
    """
    from truecal.recalibrate import evaluate
    from truecal.report.records import document
    from truecal.writing import write_whole

    loaded = load_all(source)
    names = list(RECALIBRATORS) if method == "auto" else [method]
    made = {name: _make(name, loaded, bins) for name in names}
    if method == "auto" and not loaded.preds.binary:
        made.pop("platt")  # of many classes, temperature is its counterpart
    with working("comparing on held-out folds"):
        found = evaluate(made, loaded.preds, logits=loaded.logits, folds=folds, rng=seed)
    chosen = method if method != "auto" else next((name for name in (found.winner, *found.tied) if name in made), None)
    if chosen is None:
        raise InputError(
            "every method makes these predictions significantly worse; choose one with --method to fit it anyway"
        )
    fitted = _fit(made[chosen], loaded)
    path = write_whole(out, fitted.to_json() + "\n")
    content = document(
        "recalibrate-fit",
        source=source.name,
        method=chosen,
        path=str(path),
        winner=found.winner,
        folds=folds,
        results=found.frame(),
    )
    answer(
        content,
        f"{_shown(found)}\nwrote {chosen}, fitted on all {len(loaded.preds)} rows, to {path}",
        as_json=as_json,
        out=None,
    )


@recalibrate.command()
@click.argument("file", metavar="FILE")
@click.option("--model", metavar="FILE", required=True, help="A recalibrator written by 'truecal recalibrate fit'.")
@click.option("--score", metavar="COLUMN", help="Column of P(positive), for two classes.")
@click.option("--probs", metavar="COLUMNS", help="Class probabilities, e.g. 'p_*' (npz: an array).")
@click.option("--logits", metavar="COLUMNS", help="The same as logits, e.g. 'z_*'.")
@click.option(
    "--out",
    metavar="FILE",
    required=True,
    help="Where the rows go, with new probabilities: csv, jsonl, parquet or npz.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer as one JSON document.")
def apply(
    file: str, model: str, score: str | None, probs: str | None, logits: str | None, out: str, as_json: bool
) -> None:
    """Recalibrate the predictions in FILE; labels are not needed. Probability columns are replaced, all others kept.

    From logits the new probabilities go to columns p_<class>.
    """
    from truecal.recalibrate import Recalibrator
    from truecal.report.records import document
    from truecal.writing import write_whole

    if sum(option is not None for option in (score, probs, logits)) > 1:
        raise click.UsageError("--score, --probs and --logits exclude each other; give one")
    try:
        fitted = Recalibrator.from_json(Path(model).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"cannot read the recalibrator {model}: {getattr(error, 'strerror', None) or 'not a text file'}"
        ) from error
    with as_file(file) as path:
        frame, columns = open_columns(path)
        where = choose_predictions(columns, probs=score or probs, logits=logits)
        kind = "probs" if where[0] is not None else "logits"
        if fitted.input != kind:
            raise InputError(f"the recalibrator was fitted on {fitted.input}, but {where[0] or where[1]!r} are {kind}")
        values, names = outputs_of(path, frame, str(where[0] or where[1]))
        found = fitted.predict_proba(values)
        data = _npz(path, names, found, kind) if frame is None else None
    if data is None:
        data = _written(_replaced(frame, names, found, kind, fitted), Path(out))
    elif Path(out).suffix != ".npz":
        raise InputError("arrays of an npz file can only be written to an npz file")
    write_whole(out, data)
    answer(
        document("recalibrate-apply", rows=len(found), path=out),
        f"wrote {len(found)} rows to {out}",
        as_json=as_json,
        out=None,
    )


def _make(name: str, loaded: Loaded, bins: int | None) -> "Recalibrator":
    import truecal.recalibrate as methods

    kind: Callable[..., Recalibrator] = getattr(methods, RECALIBRATORS[name])
    options: dict[str, Any] = {"input": "probs" if loaded.logits is None else "logits"}
    if bins is not None and name in ("histogram", "scaling-binning"):
        options["bins"] = bins
    return kind(**options)


def _fit(recalibrator: "Recalibrator", loaded: Loaded) -> "Recalibrator":
    import numpy as np

    preds = loaded.preds
    labels: Any = preds.labels
    if preds.classes is not None:
        recalibrator.set_params(classes=list(preds.classes))
        labels = np.array(preds.classes, object)[preds.labels]
    return recalibrator.fit(preds.probs if loaded.logits is None else loaded.logits, labels, preds.weights)


def _shown(found: "Evaluation") -> str:
    rows = [
        [
            row["recalibrator"],
            number(row["log_loss"]),
            number(row["brier"]),
            number(row["accuracy"]),
            number(row["error"]),
            f"{number(row['error_low'])} to {number(row['error_high'])}",
        ]
        for row in found.frame()
    ]
    text = table(
        ["on held-out folds", "log loss", "brier", "accuracy", "error (rms)", f"{found.level:.0%} interval"], rows
    )
    close = f"; not significantly worse: {', '.join(found.tied[1:])}" if len(found.tied) > 1 else ""
    return f"{text}\nlowest {found.score}: {found.winner}{close}"


def _replaced(frame: Any, names: list[str], found: Any, kind: str, fitted: "Recalibrator") -> Any:
    """The frame with recalibrated probabilities in the columns they came from, or new columns beside logits."""
    import polars as pl

    if kind == "probs":
        columns = {names[0]: found[:, 1]} if len(names) == 1 else {name: found[:, k] for k, name in enumerate(names)}
    elif len(names) == 1:
        columns = {"p": found[:, 1]}
    else:
        columns = {f"p_{name}": found[:, k] for k, name in enumerate(fitted.classes_.tolist())}
    return frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def _written(frame: Any, path: Path) -> bytes:
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InputError(f"{path.name}: unknown kind of file; write to .csv, .jsonl or .parquet")
    buffer = BytesIO()
    getattr(frame, writer)(buffer)
    return buffer.getvalue()


def _npz(path: Path, names: list[str], found: Any, kind: str) -> bytes:
    import numpy as np

    from truecal.predictions.readers.files import read_arrays

    held = read_arrays(path)
    held[names[0] if kind == "probs" else "probs"] = found if held[names[0]].ndim == 2 else found[:, 1]
    buffer = BytesIO()
    np.savez(buffer, **held)  # type: ignore[arg-type]
    return buffer.getvalue()
