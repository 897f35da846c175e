"""Reading a file of any kind as Predictions, for Python and for the command line."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from truecal import options
from truecal.errors import FileError, InputError
from truecal.predictions import frames
from truecal.predictions.eval_logs import PRESETS, EvalLog, eval_log, preset_table
from truecal.predictions.files import existing_file, kind_of, read_arrays, read_frame
from truecal.predictions.predictions import ANSWERS, Predictions
from truecal.predictions.validation import check_classes, is_missing

if TYPE_CHECKING:
    import narwhals as nw


@dataclass(frozen=True)
class ReadRequest:
    """Columns and options with which a file is read: the arguments of :func:`read` (`probs` is also its `score`).

    `by` are columns to keep for groups; `normalized` is that of `Predictions`.
    """

    label: str | None = None
    probs: str | Sequence[str] | None = None
    logits: str | Sequence[str] | None = None
    weights: str | None = None
    clusters: str | None = None
    by: tuple[str, ...] = ()
    classes: Sequence[object] | None = None
    percent: bool = False
    words: Mapping[str, float] | None = None
    drop_null: bool = False
    preset: str | None = None
    normalized: bool = True
    judge: str | None = None
    pos_label: object = None
    multilabel: bool = False


@dataclass(frozen=True)
class Reading:
    """Checked predictions, and the columns read as text (`summary`).

    `logits` are the values of columns of logits, None for probabilities; `dropped` counts rows left out by drop_null; `notes` are
    warnings of an evaluation log.
    """

    preds: Predictions
    summary: str
    logits: NDArray[Any] | None = None
    dropped: int = 0
    notes: tuple[str, ...] = ()


def read(
    path: str | Path,
    *,
    label: str | None = None,
    score: str | None = None,
    probs: str | Sequence[str] | None = None,
    logits: str | Sequence[str] | None = None,
    weights: str | None = None,
    clusters: str | None = None,
    judge: str | None = None,
    classes: Sequence[object] | None = None,
    pos_label: object = None,
    percent: bool = False,
    words: Mapping[str, float] | None = None,
    drop_null: bool = False,
    preset: str | None = None,
    multilabel: bool = False,
    progress: Callable[[str], object] | None = None,
) -> Predictions:
    """Read predictions from a file: csv, tsv, json, jsonl (also packed as .gz or .zst), parquet or npz; or an evaluation log.

    Logs of language models are recognised: samples of lm-evaluation-harness, logs of Inspect (.eval, .json), instances of HELM,
    results of promptfoo, test runs of DeepEval. A row is then an answer, its prediction the confidence in it, its label whether it
    was correct, and several answers to one question are one cluster. Where people checked some answers (a scorer, metric or
    assertion whose name begins with "human", or `human` in the metadata), theirs are labels and the log's own verdicts the judge.

    Parameters
    ----------
    path : str or Path
        The file.
    label : str, default None
        Column of labels; None detects it by name, or by its values where one column has two.
    score : str, default None
        Column of P(positive). Without `score`, `probs` and `logits` the predictions are detected by name, or by values from 0 to 1.
    probs : str or sequence of str, default None
        Columns of class probabilities: a pattern such as "p_*", a list, or one column of lists.
    logits : str or sequence of str, default None
        The same of logits; one column is the log odds of the positive class.
    weights : str, default None
        Column of weights.
    clusters : str, default None
        Column of clusters: rows that are not independent.
    judge : str, default None
        Column (or pattern of columns) of verdicts of a judge for every row; labels may then be missing.
    classes : sequence, default None
        Class names in the order of the columns. Two labels that are text need none: they are taken in alphabetical order.
    pos_label : object, default None
        The positive of two classes, where it is not the last.
    percent : bool, default False
        Whether predictions are percent, as numbers or as text such as "90%".
    words : mapping of str to float, default None
        Probabilities that words stand for, such as {"likely": 0.8}, where predictions are words.
    drop_null : bool, default False
        Leave out rows in which something needed is missing or NaN, and say how many.
    preset : {"stated", "options", "options-per-character", "agreement"}, default None
        Which confidence of a language model: as stated; softmax over the log-likelihoods of the options (divided by the length of
        each option); or the share of the samples of a question that give the commonest answer.
    multilabel : bool, default False
        Several yes-or-no labels per row: `probs` and `label` are patterns ("p_*" and "y_*" where left out) whose stars name the
        same labels, columns of lists, or arrays of one shape.
    progress : callable, default None
        Called with what was read in words, such as which columns were recognised.

    Returns
    -------
    preds : Predictions
        Checked rows; columns that nothing names are there to select and group by.

    Raises
    ------
    FileError
        The file is not there, damaged, or unpacks to more than is allowed; the message names the line where there is one.
    InputError
        A column is not there or ambiguous, or a row is invalid; the message names the column, the row and the option that mends it.

    Notes
    -----
    Text is parsed by one reader for files in memory and for every engine of :func:`truecal.scan`: the separator of the first line,
    UTF-8 or UTF-16, types decided by all rows, words such as "NA" missing in columns of numbers, blank lines skipped.

    See Also
    --------
    truecal.scan : Files that do not fit into memory.
    truecal.Predictions.from_frame : Frames in memory.

    Examples
    --------
    >>> import tempfile, pathlib, truecal as tc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "answers.csv")
    ...     _ = path.write_text("confidence;is_correct\\n90%;1\\n60%;0\\n")
    ...     tc.read(path, percent=True, progress=lambda text: print(text.partition(": ")[2]))
    label 'is_correct' [detected], probabilities 'confidence' [detected]
    Predictions(2 rows, binary)
    """
    options.instance(
        path, (str, os.PathLike), "path", "text or a Path", "columns of a frame are read by tc.Predictions.from_frame"
    )
    if sum(option is not None for option in (score, probs, logits)) > 1:
        raise InputError("score, probs and logits exclude each other; give one")
    request = ReadRequest(
        label,
        score if probs is None else probs,
        logits,
        weights,
        clusters,
        (),
        classes,
        percent,
        words,
        drop_null,
        preset,
        judge=judge,
        pos_label=pos_label,
        multilabel=multilabel,
    )
    reading = read_file(path, request)
    if progress is not None:
        progress(f"read {len(reading.preds)} rows from {path}: {reading.summary}")
    return reading.preds


def read_file(path: str | Path, request: ReadRequest) -> Reading:
    """Read predictions from an npz file, an evaluation log or a table, by kind and content of the file.

    Columns are those that `request` names, else detected by name or value. Refuses an unknown preset, and a table without rows.
    """
    file = existing_file(path)
    if kind_of(file) == "npz":
        return _read_npz(file, request)
    if request.preset is not None and request.preset not in PRESETS:
        raise InputError(f"there is no preset {request.preset!r}; use {', '.join(PRESETS)}")
    log = eval_log(file, request.preset)
    if log is not None:
        return _read_eval_log(log, request)
    frame = read_frame(file)
    if not len(frame):
        raise FileError(f"{file} has no rows")
    if request.preset is None:
        return read_table(frame, request)
    frame, confidence = preset_table(frame, request.preset)
    reading = read_table(frame, request)
    return replace(reading, summary=f"{reading.summary}, confidence {confidence}")


def _read_eval_log(log: EvalLog, request: ReadRequest) -> Reading:
    """Read the answers of an evaluation log as predictions of one probability per row, the confidence.

    Unless the request names others, several answers to one question are one cluster, and where a person checked answers the log's
    own score is the judge.
    """
    clusters = "question" if request.clusters is None and log.repeated else request.clusters
    judge = "judge" if request.judge is None and log.checked else request.judge
    reading = read_table(log.frame(), replace(request, clusters=clusters, judge=judge))
    return replace(reading, summary=f"{log.describe()}; {reading.summary}", notes=(*log.notes(), *reading.notes))


def read_table(frame: Any, request: ReadRequest) -> Reading:
    """Build predictions from a frame in memory, as :func:`read` does from a file, with the columns that `request` names.

    Columns that are not named are detected by name or by value; class columns may be named after the values of the label. With
    drop_null, rows with missing values in a column that is read are left out.
    """
    import narwhals as nw

    table = frames.as_table(frame)
    if request.multilabel:
        return _read_multilabel(table, request)
    taken = [name for name in (request.weights, request.clusters) if name is not None]
    judges = [] if request.judge is None else frames.matching(table.columns, request.judge, "judge")[0]
    taken += judges
    choice = choose_columns(table.columns, lambda: table, request, taken)
    if request.classes is None and _are_class_names(table, choice.label, choice.outputs):
        request = replace(request, classes=list(choice.outputs))
    if request.by:
        frames.matching(table.columns, request.by, "groups")
    names, stars = frames.match_outputs(table.columns, choice.outputs, request.classes)
    if request.percent or request.words is not None:
        if choice.logits is not None or len(names) > 1:
            raise InputError(
                "percent and words are for one column of probabilities; logits and several columns are numbers"
            )
        column = nw.new_series(
            "share", frames.as_shares(table[names[0]], names[0], request.words), backend=table.implementation
        )
        table = table.with_columns(column.alias(names[0]))
    singles = [name for name in (choice.label, request.weights, request.clusters) if name is not None]
    frames.matching(table.columns, singles, "label, weights and clusters")
    needed = [*names, *judges, *(name for name in singles if request.judge is None or name != choice.label)]
    table, dropped = _without_missing(table, needed) if request.drop_null else (table, 0)
    frames.refuse_twins(table.columns, [*names, *judges, *singles, *request.by])
    preds = _build_predictions(table, choice, request)
    preds = preds if request.pos_label is None else _with_positive(preds, request.pos_label)
    grouped = {name: frames.to_array(table[name]) for name in request.by if name not in preds.columns}
    preds = replace(preds, columns=MappingProxyType({**preds.columns, **grouped}))
    summary = choice.describe(table.columns)
    if stars is not None and len(names) > 1 and table[choice.label].dtype.is_numeric():
        summary += frames.label_columns(names)
    if request.classes is None and preds.binary and preds.classes is not None and not preds.of_answers:
        summary += f", positive class {str(preds.classes[1])!r}{' [detected]' if request.pos_label is None else ''}"
    if request.drop_null:
        summary += f", {dropped} rows with missing values left out"
    logits = None if choice.logits is None else frames.outputs_of(table, names)[0]
    return Reading(preds, summary, logits, dropped)


def _read_multilabel(table: "nw.DataFrame[Any]", request: ReadRequest) -> Reading:
    """Read probabilities of several labels per row from columns p_*, and their 0/1 labels from y_*, or as the request names them.

    Labels are put in the order of the probabilities; all other columns are kept. Refuse patterns whose stars match different
    names, and the options logits, judge, words, pos_label, preset and percent.
    """
    _refuse_single_label_options(request)
    probs, label = request.probs or "p_*", request.label or "y_*"
    names, stars = frames.matching(table.columns, probs, "predictions")
    labels, label_stars = frames.matching(table.columns, label, "labels")
    if stars is not None and label_stars is not None:
        unmatched = sorted(set(stars) ^ set(label_stars))
        if unmatched:
            raise InputError(f"{probs!r} and {label!r} name different labels: {unmatched[0]!r} is in one of them only")
        labels = [labels[label_stars.index(star)] for star in stars]
    singles = [name for name in (request.weights, request.clusters) if name is not None]
    frames.matching(table.columns, [*names, *singles, *request.by], "weights, clusters and groups")
    used = [*names, *labels, *singles]
    table, dropped = _without_missing(table, used) if request.drop_null else (table, 0)
    preds = Predictions.from_multilabel(
        frames.outputs_of(table, names)[0],
        frames.outputs_of(table, labels)[0],
        request.classes or stars,
        weights=None if request.weights is None else table[request.weights].to_numpy(),
        clusters=None if request.clusters is None else table[request.clusters].to_numpy(),
        columns={
            name: frames.to_array(table[name]) for name in table.columns if name not in used or name in request.by
        },
    )
    summary = f"{preds.class_count} labels per row, labels {label!r}, probabilities {probs!r}"
    return Reading(preds, summary, dropped=dropped)


def _refuse_single_label_options(request: ReadRequest) -> None:
    """Refuse options that need one label per row: logits, judge, words, pos_label, preset and percent.

    >>> _refuse_single_label_options(ReadRequest(percent=True))
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: percent does not go with several labels per row; divide the columns by 100
    """
    for option in ("logits", "judge", "words", "pos_label", "preset"):
        if getattr(request, option) is not None:
            raise InputError(f"{option} does not go with several labels per row; leave it out")
    if request.percent:
        raise InputError("percent does not go with several labels per row; divide the columns by 100")


def _build_predictions(table: "nw.DataFrame[Any]", choice: frames.ColumnChoice, request: ReadRequest) -> Predictions:
    """Build Predictions from the chosen columns of a table, with weights, clusters and judge of the request.

    Numeric labels are positions in `request.classes` if these are text. A 0/1 label that is named "correct", "is_correct" or
    alike gives the classes "wrong" and "correct".
    """
    classes, names, outputs = request.classes, None, choice.outputs
    numeric = table[choice.label].dtype.is_numeric()
    if classes is not None and numeric and all(str(name).lstrip("-").isdigit() for name in classes):
        classes = [int(str(name)) for name in classes]
    elif classes is not None and numeric and all(isinstance(name, str) for name in classes):
        # labels are positions in the list of names
        outputs, stars = frames.match_outputs(table.columns, choice.outputs, classes)
        events = stars if len(outputs) > 1 else frames.outputs_of(table, outputs)[1]
        frames.class_names(outputs, choice.outputs, events, classes, numeric=True)
        classes, names = None, classes
    preds = Predictions.from_frame(
        table,
        label=choice.label,
        probs=None if choice.probs is None else outputs,
        logits=None if choice.logits is None else outputs,
        weights=request.weights,
        clusters=request.clusters,
        classes=classes,
        normalized=request.normalized,
        judge=request.judge,
    )
    if request.classes is None and frames.plain_name(choice.label) in frames.CORRECT and preds.binary:
        names = ANSWERS if _distinct_values(table[choice.label]) <= {0, 1} else None
    return preds if names is None else replace(preds, classes=check_classes(names, preds.class_count))


def _distinct_values(labels: Any) -> set[object]:
    """Return the distinct values of a column without missing ones.

    >>> import polars
    >>> _distinct_values(polars.Series(["a", None, "a"]))
    {'a'}
    """
    return {value for value in labels.unique().to_list() if not is_missing(value)}


_SEXES = ({"f", "m"}, {"w", "m"}, {"female", "male"}, {"woman", "man"})  # groups, which are no outcome
_TWO_WORDS = ({"yes", "no"}, {"true", "false"}, {"0", "1"}, {"0.0", "1.0"}, {"y", "n"}, {"t", "f"})


def choose_columns(
    columns: Sequence[str], rows: "Callable[[], nw.DataFrame[Any]]", request: ReadRequest, other: Sequence[str]
) -> frames.ColumnChoice:
    """Choose the columns of labels and predictions by name, or by the values of `rows()` where no name is recognised.

    Columns that the request names are taken. Last, columns of fractions named after the values of a text label. `other` columns
    are never chosen; refuse what remains unclear.
    """
    listed = request.probs is not None and not isinstance(request.probs, str)
    choice = _choose_class_columns(rows(), request, other) if listed and request.label is None else None
    if choice is not None:
        return choice
    try:
        return frames.choose(
            columns,
            label=request.label,
            probs=request.probs,
            logits=request.logits,
            other=other,
            by=request.by,
            score_like=lambda free: _score_like(rows(), free),
            label_like=lambda free: _label_like(rows(), free),
        )
    except InputError:
        choice = None if request.logits is not None else _choose_class_columns(rows(), request, other)
        if choice is None:
            raise
        return choice


def _choose_class_columns(
    table: "nw.DataFrame[Any]", request: ReadRequest, other: Sequence[str]
) -> frames.ColumnChoice | None:
    """Choose the first text column as label whose values are all names of the columns of predictions; None if there is none.

    Those are `request.probs`, else all columns of fractions in [0, 1], and at least two. `other` columns are never chosen.
    """
    free = [name for name in table.columns if name not in (*other, *request.by, request.label)]
    outputs = _score_like(table, free) if request.probs is None else request.probs
    labels = [name for name in free if name not in outputs] if request.label is None else [request.label]
    named = {name for name, value in (("label", request.label), ("predictions", request.probs)) if value is not None}
    for label in labels:
        if _are_class_names(table, label, outputs):
            return frames.ColumnChoice(label, outputs, None, frozenset(named))
    return None


def _are_class_names(table: "nw.DataFrame[Any]", label: str, outputs: str | Sequence[str]) -> bool:
    """Whether two or more listed columns of predictions include all values of a text label among their names."""
    if isinstance(outputs, str) or len(outputs) < 2 or label not in table.columns or table[label].dtype.is_numeric():
        return False
    return _distinct_values(table[label]) <= set(outputs)


def _score_like(table: "nw.DataFrame[Any]", names: Sequence[str]) -> list[str]:
    """Return the float columns whose values all lie in [0, 1] or are NaN, at least one of them not a whole number.

    >>> import narwhals as nw, polars
    >>> table = nw.from_native(polars.DataFrame({"p": [0.5, 1.0], "y": [0.0, 1.0], "t": [0.5, 3.0]}), eager_only=True)
    >>> _score_like(table, ["p", "y", "t"])
    ['p']
    """
    columns = [name for name in names if table[name].dtype.is_float()]
    values = {name: table[name].drop_nulls().to_numpy() for name in columns}
    return [
        name for name, v in values.items() if v.size and ((v >= 0) & (v <= 1) | (v != v)).all() and (v % 1 > 0).any()
    ]


def _label_like(table: "nw.DataFrame[Any]", names: Sequence[str]) -> list[str]:
    """Return the columns of two distinct values other than the sexes; if just one of them holds a known pair, only that.

    Known are pairs such as yes and no, true and false, or 0 and 1, in any case; missing values do not count.
    """
    unique = {name: {str(v).lower() for v in table[name].drop_nulls().unique().to_list()} for name in names}
    two = [name for name, values in unique.items() if len(values) == 2 and values not in _SEXES]
    words = [name for name in two if unique[name] in _TWO_WORDS]
    return words if len(words) == 1 else two


def _with_positive(preds: Predictions, pos_label: object) -> Predictions:
    """Make `pos_label` the second of two classes: swap class names, labels and, if there are two, the columns.

    A single column is taken as the probability of the named class and stays as it is. Refuses other numbers of classes and an
    unknown name.
    """
    if preds.class_count != 2:
        raise InputError(
            f"pos_label is for two classes, and there are {preds.class_count}; judge one with --lens class=NAME"
        )
    classes = preds.classes or (0, 1)
    words = [str(name) for name in classes]
    if str(pos_label) not in words:
        raise InputError(f"pos_label {str(pos_label)!r} is not among the classes {words[0]!r} and {words[1]!r}")
    if words[1] == str(pos_label):
        return preds
    probs = preds.probs if preds.binary else preds.probs[:, ::-1]
    return replace(preds, probs=probs, labels=1 - preds.labels, classes=(classes[1], classes[0]))


def _without_missing(table: "nw.DataFrame[Any]", needed: Sequence[str]) -> "tuple[nw.DataFrame[Any], int]":
    """Drop rows with null or NaN values, also within lists, in the needed columns; return also their number.

    Refuses a table of which no row remains.
    """
    import narwhals as nw

    null = (nw.col(name).is_null() for name in needed)
    nan = (nw.col(name).is_nan() for name in needed if table[name].dtype.is_float())
    complete = table.filter(~nw.any_horizontal(*null, *nan, ignore_nulls=False))
    for name in needed:
        if isinstance(complete[name].dtype, (nw.List, nw.Array)):
            rows = complete[name].to_list()
            complete = complete.filter([not any(map(is_missing, row)) for row in rows])
    if not len(complete):
        raise InputError(f"all {len(table)} rows have missing values in {', '.join(needed)}; nothing is left to judge")
    return complete, len(table) - len(complete)


def _read_npz(file: Path, request: ReadRequest) -> Reading:
    """Read predictions from the arrays of an npz file, label and predictions by the names of the request, else detected by name.

    Refuse names without an array, a list of arrays of predictions, columns to group by, and one array for two purposes.
    """
    arrays = read_arrays(file)
    choice = frames.choose(list(arrays), label=request.label, probs=request.probs, logits=request.logits)
    name = choice.outputs
    if not isinstance(name, str):
        raise InputError("name one array of predictions in an npz file: probs= or logits=")
    if request.by:
        raise InputError(f"there is no column {request.by[0]!r} for --by or --select; npz files have no columns")
    missing = [k for k in (name, choice.label, request.weights, request.clusters) if k is not None and k not in arrays]
    if missing:
        raise InputError(f"{file} has no array {missing[0]!r}; it has {', '.join(arrays)}")
    frames.refuse_shared([name], choice.label, request.weights)
    further: dict[str, Any] = {
        "weights": None if request.weights is None else arrays[request.weights],
        "clusters": None if request.clusters is None else arrays[request.clusters],
        "classes": request.classes,
    }
    if request.multilabel:
        _refuse_single_label_options(request)
        preds = Predictions.from_multilabel(arrays[name], arrays[choice.label], **further)
    elif choice.probs is None:
        preds = Predictions.from_logits(arrays[name], arrays[choice.label], **further)
    else:
        preds = Predictions.from_probs(arrays[name], arrays[choice.label], **further, normalized=request.normalized)
    return Reading(preds, choice.describe(list(arrays)), arrays[name] if choice.logits is not None else None)
