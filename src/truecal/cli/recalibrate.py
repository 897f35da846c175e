"""`truecal recalibrate fit | apply | export`: learn what fixes the predictions of a model, use it on others, serve it."""

from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import numpy as np

import truecal as tc
from truecal import names
from truecal.cli.command import Count, Seed, Several, WriteTo, command
from truecal.cli.input import Loaded, OutputColumns, PlainFile, as_file, load, read_text
from truecal.cli.output import Reply, working
from truecal.errors import FileError, InputError
from truecal.predictions import files, frames
from truecal.table import Frame, check_table, write_table
from truecal.writing import write_whole

# What 'auto' compares: one of each kind of map, none that takes minutes or gives up accuracy for a guarantee.
_AUTO_TWO = (
    *("temperature", "platt", "beta", "isotonic", "centered-isotonic"),
    *("spline", "venn-abers", "histogram", "scaling-binning"),
)
_AUTO_MANY = (
    *("temperature", "bias-corrected-temperature", "vector", "ensemble-temperature", "structured-vector"),
    *("structured-matrix", "beta", "isotonic", "histogram", "scaling-binning"),
)
_AUTO_HUNDREDS = ("temperature", "ensemble-temperature", "structured-vector")
_MANY_CLASSES = 100  # beyond, maps per class and matrices of classes are left out of 'auto'


@click.group()
def recalibrate() -> None:
    """Fit a recalibrator, apply a fitted one, or write it for serving."""


@command(recalibrate)
def fit(
    source: PlainFile,
    *,
    method: Annotated[str, click.Choice(["auto", *names.RECALIBRATORS])] = "auto",
    bins: Count | None = None,
    top_label: bool = False,
    per_class: bool = False,
    no_renormalise: bool = False,
    folds: Several = 5,
    seed: Seed = 0,
    out: WriteTo = "recalibrator.json",
) -> Reply:
    """Fit a recalibration method to the predictions and labels in FILE and write it as JSON.

    FILE should hold rows that the model was not trained on. The table shows every method on rows it was not fitted on.
    With --multilabel every label gets a map of its own.

    --method METHOD   'auto' compares some of each kind on held-out folds and takes the recommended one.
    --bins N          Number of bins (histogram, scaling-binning).
    --top-label       One map, for the probability that the predicted class is right.
    --per-class       One map for every class.
    --no-renormalise  Leave the outputs of maps per class as they are, so that they stay few; read them with --unnormalised.
    --folds N         Folds of the comparison.
    --out FILE        Where the fit is written.
    """
    loaded = load(source)
    form: dict[str, object] = {"multiclass": "top-label"} if top_label else {}
    form |= {"multiclass": "one-vs-rest"} if per_class else {}
    form |= {"normalize": False} if no_renormalise else {}
    if form and (method == "auto" or loaded.preds.multilabel):
        raise InputError(
            "--top-label, --per-class and --no-renormalise are for one --method of classes: name it; labels have a map each"
        )
    if loaded.preds.multilabel:
        return _fit_labels(loaded, source.name, method, bins, folds, seed, out)
    count = loaded.preds.class_count
    auto = _AUTO_TWO if count == 2 else _AUTO_MANY if count <= _MANY_CLASSES else _AUTO_HUNDREDS
    methods = {name: _make_recalibrator(name, loaded, bins, form) for name in (auto if method == "auto" else (method,))}
    content: dict[str, object] = {"source": source.name}
    chosen: str | None = method
    table, remark = "", "; its rows need not sum to 1: judge them with --unnormalised"
    if not no_renormalise:  # held-out scores of distributions do not apply to rows that need not sum to 1
        with working("comparing on held-out folds"):
            evaluation = tc.evaluate(methods, loaded.preds, logits=loaded.logits, folds=folds, rng=seed)
        if method == "auto":
            ranking = (evaluation.recommended, *evaluation.tied)
            chosen = next((name for name in ranking if name in methods), None)
        content |= {name: getattr(evaluation, name) for name in ("winner", "recommended", "reason")}
        records = [row.record() for row in evaluation.rows]
        content |= {"refused": dict(evaluation.refused), "folds": folds, "results": records}
        table, remark = f"{evaluation}\n", ""
        if method == "auto" and chosen != evaluation.recommended:
            remark = "; none is recommended, and this one comes closest"
    if chosen is None:
        raise InputError(
            "every method makes these predictions significantly worse; choose one with --method to fit it anyway"
        )
    preds, recalibrator = loaded.preds, methods[chosen]
    labels: Any = preds.labels
    if preds.classes is not None:
        recalibrator.set_params(classes=list(preds.classes))
        labels = np.array(preds.classes, object)[labels]
    recalibrator.fit(preds.probs if loaded.logits is None else loaded.logits, labels, preds.weights)
    path = write_whole(out, recalibrator.to_json() + "\n")
    text = f"{table}wrote {chosen}, fitted on all {len(preds)} rows, to {path}{remark}"
    return Reply("recalibrate-fit", {**content, "method": chosen, "path": str(path)}, text)


def _fit_labels(loaded: Loaded, source: str, method: str, bins: int | None, folds: int, seed: int, out: str) -> Reply:
    """Fit one map for every label of multilabel rows, write them to `out`, and reply with the table of labels.

    'auto' takes the method recommended for a label; labels with too few rows of an outcome stay as they are.
    """
    preds = loaded.preds
    methods = {
        name: _make_recalibrator(name, loaded, bins, {}) for name in (_AUTO_TWO if method == "auto" else (method,))
    }
    maps: dict[object, Any] = {}
    results: list[dict[str, Any]] = []
    for label in preds.classes or range(preds.class_count):
        try:
            with working(f"comparing on held-out folds: {label}"):
                evaluation = tc.evaluate(methods, preds.one_label(label), folds=folds, rng=seed)
        except InputError as error:  # too few rows of an outcome, for instance
            maps[label] = None
            results.append({"label": label, "method": "uncalibrated", "reason": str(error)})
            continue
        chosen = evaluation.recommended if method == "auto" else method
        maps[label] = methods.get(chosen)
        before, after = evaluation.rows[0], evaluation[chosen]
        losses = {"log_loss_before": before.log_loss, "log_loss_after": after.log_loss}
        errors = {"error_before": float(before.error.value), "error_after": float(after.error.value)}
        results.append({"label": label, "method": chosen, **losses, **errors, "reason": evaluation.reason})
    fitted = tc.recalibration.PerLabel(maps, preds.classes).fit(preds.probs, preds.labels, preds.weights)
    path = write_whole(out, fitted.to_json() + "\n")
    count = sum(label_map is not None for label_map in fitted.maps_)
    written = f"wrote maps of {count} of {len(maps)} labels, fitted on all {len(preds)} rows, to {path}"
    content = {"source": source, "method": method, "folds": folds, "results": results, "path": str(path)}
    return Reply("recalibrate-fit", content, f"{Frame.from_records(results).to_text()}\n{written}")


@command(recalibrate)
def apply(file: str, columns: OutputColumns, *, model: str, out: WriteTo) -> Reply:
    """Recalibrate the predictions in FILE; labels are not needed. Probability columns are replaced, all others stay.

    From logits the new probabilities go to columns p_<class>.

    --model FILE  A recalibrator written by 'truecal recalibrate fit'.
    --out FILE    Where the rows go, with new probabilities: csv, jsonl, parquet or npz.
    """
    fitted = _read_recalibrator(model)
    if Path(out).suffix != ".npz":
        check_table(out)
    with as_file(file) as path:
        from_arrays = files.kind_of(path) == "npz"
        table: Any = files.read_arrays(path) if from_arrays else files.read_frame(path)
    if not len(table):
        raise FileError(f"{file} has no rows")
    if from_arrays != (Path(out).suffix == ".npz"):
        raise InputError("arrays of an npz file are written to an npz file, and tables to .csv, .parquet or .jsonl")
    available = list(table if from_arrays else table.columns)
    of_labels = isinstance(fitted, tc.recalibration.PerLabel)
    classes_of_fit = [] if of_labels else [str(name) for name in fitted.classes_]
    probs: Any = columns.probabilities
    if probs is None and columns.logits is None and classes_of_fit and set(classes_of_fit) <= set(available):
        probs = classes_of_fit  # columns named after the classes need no option
    probs, logits = frames.choose_predictions(available, probs=probs, logits=columns.logits)
    kind, pattern = ("logits", str(logits)) if probs is None else ("probs", probs)
    if fitted.input != kind:
        raise InputError(f"the recalibrator was fitted on {fitted.input}, but {pattern!r} are {kind}")
    output_names, stars = frames.matching(available, pattern, "predictions")
    # class names, by which predict_named matches columns to those of the fit
    stars = output_names if sorted(output_names) == sorted(classes_of_fit) else stars
    classes = None if stars is None else list(map(str, stars))
    values = table[output_names[0]] if from_arrays else table.select(output_names).to_numpy()
    one_column = not from_arrays and len(output_names) == 1 and not of_labels
    recalibrated = fitted.predict_named(values[:, 0] if one_column else values, classes)
    replaced = output_names if kind == "probs" else []
    if from_arrays:
        table[replaced[0] if replaced else "probs"] = recalibrated if values.ndim == 2 else recalibrated[:, 1]
        write_whole(out, lambda opened: np.savez(opened, **table))
    else:
        from polars import Series

        new_names = replaced or (
            ["p"] if one_column else [f"p_{name}" for name in classes or fitted.order_.columns.tolist()]
        )
        values_by_name = [recalibrated[:, -1]] if len(output_names) == 1 else recalibrated.T
        write_table(table.with_columns(map(Series, new_names, values_by_name)), out)
    listed = f"{', '.join(map(repr, replaced[:6]))}{', ...' if len(replaced) > 6 else ''}"
    text = f"wrote {len(recalibrated)} rows to {out}{f'; new values in {listed}' if replaced else ''}"
    return Reply("recalibrate-apply", {"rows": len(recalibrated), "path": out, "replaced": replaced}, text)


@command(recalibrate)
def export(*, model: str, out: WriteTo, dtype: Literal["float32", "float64"] = "float32") -> Reply:
    """Write a fitted recalibrator as a model to serve: from the same outputs to the recalibrated probabilities.

    The ONNX input is called "logits" or "probs", as the recalibrator was fitted; the output "probabilities".

    --model FILE   A recalibrator written by 'truecal recalibrate fit'.
    --out FILE     Where it goes, ending in .onnx.
    --dtype DTYPE  Type of the input and output.
    """
    fitted = _read_recalibrator(model)
    if isinstance(fitted, tc.recalibration.PerLabel):
        raise InputError(
            "maps of several labels have no export to ONNX; serve their JSON with tc.recalibration.PerLabel.from_json"
        )
    if Path(out).suffix.lower() != ".onnx":
        raise InputError(
            f"{Path(out).name}: unknown kind of file; write to .onnx (to_torch of the recalibrator in Python)"
        )
    write_whole(out, fitted.to_onnx(dtype=dtype).SerializeToString())
    kind = type(fitted).__name__
    content = {"recalibrator": kind, "input": fitted.input, "classes": list(map(str, fitted.classes_)), "path": out}
    text = f"wrote {kind} of {fitted.input}, {len(fitted.classes_)} classes, to {out}"
    return Reply("recalibrate-export", content, text)


def _read_recalibrator(model: str) -> "tc.recalibration.Recalibrator | tc.recalibration.PerLabel":
    """Load a recalibrator, or maps of several labels, from a JSON file, which names the kind.

    Raises FileError, with the path in front, for one that cannot be read.
    """
    from truecal.recalibration.serialization import read_document

    text = read_text(model, "recalibrator")
    try:
        kind = (
            tc.recalibration.PerLabel
            if read_document(text).get("kind") == "PerLabel"
            else tc.recalibration.Recalibrator
        )
        return kind.from_json(text)
    except InputError as error:
        raise FileError(f"{model}: {error}") from error


def _make_recalibrator(
    name: str, loaded: Loaded, bins: int | None, form: dict[str, object]
) -> "tc.recalibration.Recalibrator":
    """Make a recalibrator by its word, with input "logits" if those were read; refuse options in `form` that it does not have.

    `bins` is for methods with bins and ignored by others.
    """
    named = names.recalibrator_named(name)
    options: dict[str, object] = {"input": "probs" if loaded.logits is None else "logits", **form}
    allowed = signature(getattr(tc.recalibration, named.name)).parameters
    for option, flag in (("multiclass", "--top-label or --per-class"), ("normalize", "--no-renormalise")):
        if option in form and option not in allowed:
            raise InputError(f"{name} has no {flag}: it does not map each score by itself")
    if bins is not None and "bin" in name + named.name.lower():
        options["bins"] = bins
    recalibrator: tc.recalibration.Recalibrator = named.of(tc.recalibration, **options)
    return recalibrator
