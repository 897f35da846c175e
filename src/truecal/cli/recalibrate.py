"""`truecal recalibrate fit | apply | export`: learn what fixes the predictions of a model, use it on others, serve it."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import truecal as tc
from truecal import names
from truecal.cli.output import Result, out_option, working, writes
from truecal.cli.source import (
    Loaded,
    Source,
    as_file,
    input_options,
    load_all,
    open_columns,
    outputs_of,
    predictions_in,
)
from truecal.errors import FileError, InputError
from truecal.predictions import files, frames
from truecal.table import check_table, write_table
from truecal.writing import write_whole

if TYPE_CHECKING:
    from truecal.recalibration.contract import Recalibrator
# What 'auto' compares: one of each kind of map, none that takes minutes or gives up accuracy for a guarantee.
_AUTO_TWO = (
    *("temperature", "platt", "beta", "isotonic", "centered-isotonic", "spline", "venn-abers", "histogram"),
    "scaling-binning",
)
_AUTO_MANY = (
    *("temperature", "bias-corrected-temperature", "vector", "ensemble-temperature", "structured-vector"),
    *("structured-matrix", "beta", "isotonic", "histogram", "scaling-binning"),
)
_MOST_CLASSES = 100  # beyond, maps per class and matrices of classes are left out of 'auto'


def _form_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a map of one score serves many classes; the command receives one `form`, options of the recalibrator."""

    @wraps(command)
    def received(*, multiclass: str | None, no_renormalise: bool, **options: Any) -> Any:
        form: dict[str, object] = {} if multiclass is None else {"multiclass": multiclass}
        return command(form={**form, "normalize": False} if no_renormalise else form, **options)

    for option in (
        click.option(
            "--no-renormalise",
            is_flag=True,
            help="Leave the outputs of maps per class as they are, so that they stay few; read them with --unnormalised.",
        ),
        click.option("--per-class", "multiclass", flag_value="one-vs-rest", help="One map for every class."),
        click.option(
            "--top-label",
            "multiclass",
            flag_value="top-label",
            help="One map, for the probability that the predicted class is right.",
        ),
    ):
        received = option(received)
    return received


@click.group()
def recalibrate() -> None:
    """Fit a recalibrator, apply a fitted one, or write it for serving."""


@recalibrate.command()
@click.option(
    "--method",
    type=click.Choice(["auto", *names.RECALIBRATORS]),
    default="auto",
    show_default=True,
    help="'auto' compares some of each kind on held-out folds and takes the recommended one.",
)
@click.option("--bins", type=click.IntRange(1), help="Number of bins (histogram, scaling-binning).")
@_form_options
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Folds of the comparison.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the folds.")
@out_option("Where the fit is written.", "recalibrator.json")
@writes
@input_options
def fit(
    source: Source,
    method: str,
    bins: int | None,
    form: dict[str, object],
    folds: int,
    seed: int,
    out: str,
) -> Result:
    """Learn a recalibration from the predictions and labels in FILE and write it as JSON.

    FILE should hold rows that the model was not trained on. The table shows every method on rows it was not fitted on.
    """
    loaded = load_all(source)
    if form and method == "auto":
        raise InputError("--top-label, --per-class and --no-renormalise are for one --method; say which")
    made = {name: _make(name, loaded, bins, form) for name in (_auto(loaded) if method == "auto" else (method,))}
    if "normalize" in form:
        return _fit_alone(made[method], method, loaded, source, out)
    with working("comparing on held-out folds"):
        evaluation = tc.evaluate(made, loaded.preds, logits=loaded.logits, folds=folds, rng=seed)
    order = (evaluation.recommended, *evaluation.tied)
    chosen = method if method != "auto" else next((name for name in order if name in made), None)
    if chosen is None:
        raise InputError(
            "every method makes these predictions significantly worse; choose one with --method to fit it anyway"
        )
    fitted = _fit(made[chosen], loaded)
    path = write_whole(out, fitted.to_json() + "\n")
    facts = {name: getattr(evaluation, name) for name in ("winner", "recommended", "reason")}
    content = {"source": source.name, "method": chosen, "path": str(path), **facts, "refused": dict(evaluation.refused)}
    content |= {"folds": folds, "results": [row.record() for row in evaluation.rows]}
    text = f"{evaluation}\nwrote {chosen}, fitted on all {len(loaded.preds)} rows, to {path}"
    return Result("recalibrate-fit", content, text)


@recalibrate.command()
@click.argument("file", metavar="FILE")
@click.option("--model", metavar="FILE", required=True, help="A recalibrator written by 'truecal recalibrate fit'.")
@predictions_in
@out_option("Where the rows go, with new probabilities: csv, jsonl, parquet or npz.", required=True)
@writes
def apply(file: str, model: str, probs: str | None, logits: str | None, out: str) -> Result:
    """Recalibrate the predictions in FILE; labels are not needed. Probability columns are replaced, all others kept.

    From logits the new probabilities go to columns p_<class>.
    """
    fitted = _read(model)
    if Path(out).suffix != ".npz":
        check_table(out)
    with as_file(file) as path:
        frame, columns = open_columns(path)
        where = frames.choose_predictions(columns, probs=probs, logits=logits)
        kind = "probs" if where[0] is not None else "logits"
        if fitted.input != kind:
            raise InputError(f"the recalibrator was fitted on {fitted.input}, but {where[0] or where[1]!r} are {kind}")
        wanted = str(where[0] or where[1])
        values, columns_read = outputs_of(path, frame, wanted)
        classes = _classes(columns, wanted) if frame is not None else None
        probs_after = fitted.predict_named(values, classes)
        arrays = _npz(path, columns_read, probs_after, kind) if frame is None else None
    if (arrays is None) == (Path(out).suffix == ".npz"):
        raise InputError("arrays of an npz file are written to an npz file, and tables to .csv, .parquet or .jsonl")
    if arrays is None:
        names_after = classes or fitted.order_.columns.tolist()
        write_table(_replaced(frame, columns_read, probs_after, kind, names_after), out)
    else:
        write_whole(out, arrays)
    replaced = columns_read if kind == "probs" else []
    what = (
        f"; new values in {', '.join(map(repr, replaced[:6]))}{', ...' if len(replaced) > 6 else ''}"
        if replaced
        else ""
    )
    content = {"rows": len(probs_after), "path": out, "replaced": replaced}
    return Result("recalibrate-apply", content, f"wrote {len(probs_after)} rows to {out}{what}")


@recalibrate.command()
@click.option("--model", metavar="FILE", required=True, help="A recalibrator written by 'truecal recalibrate fit'.")
@out_option("Where it goes: .onnx, or .pt for a scripted torch module.", required=True)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    show_default=True,
    help="Type of the input and output of an ONNX model.",
)
@writes
def export(model: str, out: str, dtype: Literal["float32", "float64"]) -> Result:
    """Write a fitted recalibrator as a model to serve: from the same outputs to the recalibrated probabilities.

    The ONNX input is called "logits" or "probs", as the recalibrator was fitted; the output "probabilities".
    """
    fitted = _read(model)
    suffix = Path(out).suffix.lower()
    if suffix == ".onnx":
        write_whole(out, fitted.to_onnx(dtype=dtype).SerializeToString())
    elif suffix == ".pt":
        write_whole(out, _scripted(fitted))
    else:
        raise InputError(f"{Path(out).name}: unknown kind of file; write to .onnx or .pt")
    kind = type(fitted).__name__
    content = {"recalibrator": kind, "input": fitted.input, "classes": list(map(str, fitted.classes_)), "path": out}
    text = f"wrote {kind} of {fitted.input}, {len(fitted.classes_)} classes, to {out}"
    return Result("recalibrate-export", content, text)


def _scripted(fitted: "Recalibrator") -> bytes:
    import warnings

    module = fitted.to_torch()
    import torch

    buffer = BytesIO()
    with warnings.catch_warnings():
        # torch advises its own compiler, which servers in C++ cannot load
        warnings.filterwarnings("ignore", ".*torch.jit", DeprecationWarning)
        warnings.filterwarnings("ignore", "The TorchScript type system", UserWarning)
        torch.jit.save(torch.jit.script(module), buffer)
    return buffer.getvalue()


def _read(model: str) -> "Recalibrator":
    from truecal.recalibration.contract import Recalibrator

    try:
        return Recalibrator.from_json(Path(model).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"cannot read the recalibrator {model}: {getattr(error, 'strerror', None) or 'not a text file'}"
        ) from error
    except InputError as error:
        raise FileError(f"{model}: {error}") from error


def _classes(columns: list[str], wanted: str) -> list[str] | None:
    """The classes named by a pattern such as p_*, or None where columns have no pattern."""
    classes = frames.matching(columns, wanted, "predictions")[1]
    return None if classes is None else [str(name) for name in classes]


def _auto(loaded: Loaded) -> tuple[str, ...]:
    count = loaded.preds.class_count
    if count == 2:
        return _AUTO_TWO
    return _AUTO_MANY if count <= _MOST_CLASSES else ("temperature", "ensemble-temperature", "structured-vector")


def _fit_alone(made: "Recalibrator", method: str, loaded: Loaded, source: Source, out: str) -> Result:
    """Fit and write a map whose rows need not sum to 1; held-out scores of distributions do not apply to it."""
    path = write_whole(out, _fit(made, loaded).to_json() + "\n")
    words = f"wrote {method}, fitted on all {len(loaded.preds)} rows, to {path}"
    text = f"{words}; its rows need not sum to 1: judge them with --unnormalised"
    return Result("recalibrate-fit", {"source": source.name, "method": method, "path": str(path)}, text)


def _make(name: str, loaded: Loaded, bins: int | None, form: dict[str, object]) -> "Recalibrator":
    options: dict[str, object] = {"input": "probs" if loaded.logits is None else "logits", **form}
    known = signature(getattr(tc.recalibration, names.recalibrator_named(name).name)).parameters
    for option, flag in (("multiclass", "--top-label or --per-class"), ("normalize", "--no-renormalise")):
        if option in form and option not in known:
            raise InputError(f"{name} has no {flag}: it is not made of maps of one score")
    if bins is not None and "bin" in name + names.recalibrator_named(name).name.lower():
        options["bins"] = bins
    recalibrator: Recalibrator = names.recalibrator_named(name).of(tc.recalibration, **options)
    return recalibrator


def _fit(recalibrator: "Recalibrator", loaded: Loaded) -> "Recalibrator":
    import numpy as np

    preds = loaded.preds
    labels: Any = preds.labels
    if preds.classes is not None:
        recalibrator.set_params(classes=list(preds.classes))
        labels = np.array(preds.classes, object)[preds.labels]
    return recalibrator.fit(preds.probs if loaded.logits is None else loaded.logits, labels, preds.weights)


def _replaced(frame: Any, columns_read: list[str], probs: Any, kind: str, classes: list[Any]) -> Any:
    """The frame with recalibrated probabilities in the columns they came from, or new columns beside logits."""
    import polars as pl

    if kind == "probs":
        columns = (
            {columns_read[0]: probs[:, 1]}
            if len(columns_read) == 1
            else {name: probs[:, k] for k, name in enumerate(columns_read)}
        )
    elif len(columns_read) == 1:
        columns = {"p": probs[:, 1]}
    else:
        columns = {f"p_{name}": probs[:, k] for k, name in enumerate(classes)}
    return frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def _npz(path: Path, columns_read: list[str], probs: Any, kind: str) -> bytes:
    import numpy as np

    held = files.read_arrays(path)
    held[columns_read[0] if kind == "probs" else "probs"] = probs if held[columns_read[0]].ndim == 2 else probs[:, 1]
    buffer = BytesIO()
    np.savez(buffer, **held)  # type: ignore[arg-type]
    return buffer.getvalue()
