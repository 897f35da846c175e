"""From a prediction file to the rows that are judged: columns found, classes chosen before the softmax, rows selected."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.predictions import files, frames, validation
from truecal.predictions.selection import Selection
from truecal.study.spec import Columns, Options, Problems, Selected, Source
from truecal.study.store import polars
from truecal.types import Indices

# ----------------------------------------------------------------------------------------------------
# From a prediction file to the rows that are judged: columns found, classes chosen before the softmax, rows selected


@dataclass(frozen=True, eq=False)
class Rows:
    """What a file holds, all rows and all classes: logits or probabilities, labels, and the other columns."""

    outputs: NDArray[Any]
    labels: Indices
    classes: tuple[object, ...] | None
    columns: Columns
    others: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def weights(self) -> NDArray[Any] | None:
        return None if self.columns.weight is None else self.others[self.columns.weight]

    def judged(self, kept: NDArray[np.bool_]) -> NDArray[Any]:
        """The outputs of the rows kept."""
        return self.outputs if kept.all() else self.outputs[kept]

    def predictions(
        self, kept: NDArray[np.bool_], subset: tuple[object, ...] | None, probs: NDArray[Any] | None = None
    ) -> tc.Predictions:
        """The rows kept, as predictions: what the file holds, or recalibrated probabilities of all classes for these rows.

        With a subset of classes, rows of other labels are left out and the logits are restricted to the subset before the
        softmax. Recalibrated probabilities are divided by what the subset has of them, which is the same.
        """
        outputs = self.judged(kept) if probs is None else probs
        labels, classes = self.labels[kept], self.classes
        others = {name: column[kept] for name, column in self.others.items()}
        if subset is not None:
            outputs, labels, classes, others = _subset(outputs, labels, classes, others, subset)
        logits = probs is None and self.columns.kind == "logits"
        if probs is not None and subset is not None:
            outputs = _shared_out(outputs)
        if probs is not None and self.outputs.ndim == 1:
            outputs = outputs[:, 1]
        build = tc.Predictions.from_logits if logits else tc.Predictions.from_probs
        weight, cluster = self.columns.weight, self.columns.cluster
        preds = build(
            outputs,
            labels,
            weights=None if weight is None else others.pop(weight),
            clusters=None if cluster is None else others.pop(cluster),
            columns=others,
        )
        return replace(preds, classes=classes)


def load_rows(path: Path, columns: Columns) -> Rows:
    """Read one file."""
    outputs, raw, others, stars = _npz(path, columns) if path.suffix.lower() == ".npz" else _table(path, columns)
    names = columns.classes if columns.classes is not None or not _is_text(raw) else stars
    count = 2 if outputs.ndim == 1 else outputs.shape[1]
    labels, classes = index_labels(raw, len(outputs), names, count)
    if not np.isfinite(outputs).all():  # rows are named as the file counts them
        (tc.Predictions.from_logits if columns.kind == "logits" else tc.Predictions.from_probs)(outputs, labels)
    return Rows(outputs, labels, classes, columns, others)


def _shared_out(probs: NDArray[Any]) -> NDArray[Any]:
    total = probs.sum(axis=1, keepdims=True)
    if not total.all():
        row = int(np.flatnonzero(total[:, 0] == 0)[0])
        raise InputError(f"recalibrated row {row} gives the whole subset of classes probability 0")
    return np.asarray(probs / total)


def index_labels(
    raw: NDArray[Any], rows: int, names: tuple[object, ...] | None, count: int
) -> tuple[Indices, tuple[object, ...] | None]:
    """Labels as columns, and the classes' names. Numeric labels are columns unless the names are numbers too."""
    classes = validation.check_classes(names, count)
    numbered = classes is not None and not all(isinstance(name, (int, float)) for name in classes)
    by_position = numbered and not _is_text(raw)
    return validation.check_labels(raw, rows, None if by_position else classes, count), classes


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind not in "iubf"


def _npz(path: Path, columns: Columns) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]], None]:
    held = files.read_arrays(path)
    outputs, labels = held[str(columns.outputs)], held[columns.label]
    kept = {
        name: a for name, a in held.items() if a.shape == labels.shape and name not in (columns.outputs, columns.label)
    }
    return outputs, labels, kept, None


def _table(
    path: Path, columns: Columns
) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]], tuple[str, ...] | None]:
    frame = files.read_frame(path)
    names, stars = frames.matching(frame.columns, columns.outputs, "predictions")
    for name in (*names, columns.label):
        nulls = frame[name].null_count()
        if nulls:
            raise InputError(f"column {name!r} has {nulls} missing values; drop or fill those rows")
    outputs = frame[names[0]].to_numpy() if len(names) == 1 else frame.select(names).to_numpy()
    kept = {name: frame[name].to_numpy() for name in frame.columns if name not in {*names, columns.label}}
    return outputs, frame[columns.label].to_numpy(), kept, None if stars is None else tuple(stars)


def _subset(
    outputs: NDArray[Any],
    labels: Indices,
    classes: tuple[object, ...] | None,
    others: dict[str, NDArray[Any]],
    subset: tuple[object, ...],
) -> tuple[NDArray[Any], Indices, tuple[object, ...], dict[str, NDArray[Any]]]:
    if outputs.ndim != 2:
        raise InputError("a subset of classes needs one column of logits per class")
    at = subset_positions(subset, classes, outputs.shape[1])
    place = np.full(outputs.shape[1], -1, np.intp)
    place[at] = np.arange(len(at))
    kept = place[labels] >= 0
    if not kept.any():
        raise InputError("no row has a label in the subset of classes")
    names = tuple(index if classes is None else classes[index] for index in at)
    return outputs[kept][:, at], place[labels[kept]], names, {name: a[kept] for name, a in others.items()}


def subset_positions(subset: tuple[object, ...], classes: tuple[object, ...] | None, count: int) -> list[int]:
    """The columns of some classes, given by name, or by column where they have no names."""
    position = {str(name): i for i, name in enumerate(range(count) if classes is None else classes)}
    missing = [name for name in subset if str(name) not in position]
    if missing:
        raise InputError(f"there is no class {missing[0]!r} among the {count} classes")
    return [position[str(name)] for name in subset]


def make_selection(selected: Selected, preds: tc.Predictions | None = None) -> Selection:
    """The selection of truecal.predictions.selection that a study file describes; class names are found among those of `preds`."""
    given = dict(selected.arguments)
    if selected.kind == "by_label":
        return tc.by_label(*(class_named(name, preds) for name in _listed(given.get("classes", ()))))
    if selected.kind == "by_output":
        return tc.by_output(class_named(given.pop("class", None), preds), **_limits(given))
    values = _listed(given.pop("values", ()))
    if "column" not in given:
        raise InputError("by_column needs 'column', the name of the column")
    return tc.by_column(str(given.pop("column")), *values, **_limits(given))


def class_named(word: object, preds: tc.Predictions | None) -> object:
    """The class a study file means: in YAML '1', 1 and the name of a class may all be the same word."""
    if preds is None or word is None:
        return word
    known = preds.classes or range(preds.class_count)
    return {str(name): name for name in known}.get(str(word), word)


def _listed(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    for name in ("low", "high"):
        value = given.get(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{name} must be a number, not {value!r}")
    return given


# ----------------------------------------------------------------------------------------------------
# Which rows recalibrators learn from: a fraction of every class, drawn once and the same for all models of a dataset


def held_out(labels: Indices, fraction: float, seed: int) -> NDArray[np.bool_]:
    """True for the rows to learn from: floor(fraction * n) of them, and of every class its share to within one row.

    Depends on nothing but labels and seed, so models with the same labels are fitted, and judged, on the same rows.

    >>> import numpy as np
    >>> mask = held_out(np.repeat([0, 1], [10, 30]), 0.2, seed=0)
    >>> mask[:10].sum(), mask[10:].sum()
    (np.int64(2), np.int64(6))
    """
    n = len(labels)
    shuffled = np.random.default_rng(seed).permutation(n)
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    steps = np.floor(np.arange(n + 1) * fraction + 1e-9)  # a step up in every 1 / fraction rows
    chosen = np.zeros(n, bool)
    chosen[order[np.diff(steps) > 0]] = True
    if not chosen.any() or chosen.all():
        raise InputError(f"{fraction:g} of {n} rows leaves nothing to learn from, or nothing to judge; give more rows")
    return chosen


def labels_digest(labels: Indices) -> str:
    """Labels in a few letters: files that agree in them have the same rows, as far as labels tell."""
    return hashlib.blake2b(np.ascontiguousarray(labels, np.int64).tobytes(), digest_size=16).hexdigest()


# ----------------------------------------------------------------------------------------------------
# Whether the prediction files of a study fit together, told from labels and shapes alone, before any long work


@dataclass(frozen=True)
class _Peek:
    """What is known of a file without reading its predictions: labels are kept as their digest."""

    source: Source
    rows: int
    digest: str
    classes: int
    names: tuple[object, ...] | None
    held: tuple[str, ...]  # names of all columns or arrays

    @property
    def layout(self) -> tuple[int, int, str]:
        """What all files on the same rows have in common."""
        return self.rows, self.classes, self.digest


Broken = tuple[tuple[str, str], ...]


def check_files(
    problems: Problems, sources: Sequence[Source], options: Options, lines: dict[str, int], *, skip_broken: bool = False
) -> tuple[list[Source], Broken]:
    """Look into every file that is there; compare those that must agree. Returns the usable files, and those that are not.

    A file that cannot be read, or whose labels are not those of the other models, is a problem of the study, or is skipped.
    """
    broken: list[tuple[str, str]] = []

    def refuse(source: Source, text: str) -> None:
        if skip_broken:
            broken.append((str(source.path), text))
        else:
            problems.add(source.line, text)

    seen: list[_Peek] = []
    for source in sources:
        if not source.path.is_file():
            continue  # a problem already
        try:
            seen.append(_peek(source, options.columns))
        except InputError as error:
            refuse(source, f"{source.path.name}: {error}")
    first = _references(seen)
    usable = []
    for peek in seen:
        wrong = _difference(peek, first[peek.source.rows_of], options.columns)
        if wrong is None:
            usable.append(peek)
        else:
            refuse(peek.source, wrong)
        _check_columns(problems, peek, options, lines)
    if options.recalibrators:
        usable = _check_teachers(problems, usable, options, lines, refuse)
        _check_declared(problems, first, options, lines)
    _check_classes(problems, first, options, lines)
    unread = [] if skip_broken else [source for source in sources if not source.path.is_file()]
    return [*(peek.source for peek in usable), *unread], tuple(broken)


def _references(seen: Sequence[_Peek]) -> dict[object, _Peek]:
    """For every dataset, severity and seed the first file with the layout that most files have."""
    groups: dict[object, list[_Peek]] = {}
    for peek in seen:
        groups.setdefault(peek.source.rows_of, []).append(peek)
    references = {}
    for rows, group in groups.items():
        (layout, _), *_ = Counter(peek.layout for peek in group).most_common(1)
        references[rows] = next(peek for peek in group if peek.layout == layout)
    return references


def _difference(peek: _Peek, other: _Peek, columns: Columns) -> str | None:
    """Why two models cannot be on the same rows of a dataset, or None."""
    one, two = peek.source.path, other.source.path
    if peek.layout == other.layout:
        return None
    if peek.rows != other.rows:
        return f"{one} has {peek.rows} rows but {two} {other.rows}; models of {_where(peek)} must share rows"
    if peek.classes != other.classes:
        return f"{one} has {peek.classes} classes but {two} {other.classes}"
    rows = np.flatnonzero(_labels(peek.source, columns)[0] != _labels(other.source, columns)[0])
    return (
        f"{one} and {two} have different labels in {len(rows)} of {peek.rows} rows, the first in row {rows[0]}; "
        f"models of {_where(peek)} must be judged on the same rows in the same order"
    )


def _check_columns(problems: Problems, peek: _Peek, options: Options, lines: dict[str, int]) -> None:
    """Columns that rows are selected, weighed or grouped by must be there."""
    wanted = [("columns", name, "to read") for name in options.columns.others]
    selected = [dict(one.arguments) for one in options.selections if one.kind == "by_column"]
    wanted += [("selections", str(arguments.get("column")), "to select by") for arguments in selected]
    for key, column, what in wanted:
        if column not in peek.held:
            problems.add(lines[key], f"{peek.source.path} has no {column!r} {what}; it has {', '.join(peek.held)}")


def _where(peek: _Peek) -> str:
    dataset, severity, seed = peek.source.rows_of
    return f"dataset {dataset!r}, severity {severity:g}, seed {seed}"


def _check_teachers(
    problems: Problems,
    seen: Sequence[_Peek],
    options: Options,
    lines: dict[str, int],
    refuse: Callable[[Source, str], None],
) -> list[_Peek]:
    """Every file needs a clean file of its model to learn from, of the same classes and, where rows are shared, the same labels."""
    known = {peek.source.who: peek for peek in seen}
    dataset = options.split.dataset
    if dataset is not None and dataset not in {peek.source.dataset for peek in seen}:
        problems.add(lines["split"], f"split names {dataset!r}, but no prediction file is of that dataset")
        return list(seen)
    usable = []
    for peek in seen:
        model, clean, _, seed = options.teacher(peek.source)
        teacher = known.get(options.teacher(peek.source))
        if teacher is None:
            refuse(
                peek.source,
                f"{model!r} has no file of dataset {clean!r}, severity 0, seed {seed} to learn from; name a clean dataset "
                "(datasets), or learn on each file itself: split: {fit: same}",
            )
        elif (teacher.classes, teacher.names) != (peek.classes, peek.names):
            refuse(peek.source, f"{peek.source.path} has other classes than {teacher.source.path}, to be learnt from")
        elif options.shares_rows(peek.source.dataset) and teacher.digest != peek.digest:
            refuse(
                peek.source,
                f"{peek.source.path} has other labels than {teacher.source.path} of severity 0, so the rows a recalibrator "
                "learnt from cannot be left out; use the same rows, declare the dataset independent, or split: {fit: same}",
            )
        else:
            usable.append(peek)
    return usable


def _check_declared(problems: Problems, first: dict[object, _Peek], options: Options, lines: dict[str, int]) -> None:
    """Nothing is recalibrated on itself, or by another dataset that it may share rows with, unless the study says so."""
    if options.split.fit == "same":
        return
    clean: dict[tuple[int, object], list[_Peek]] = {}
    for peek in first.values():
        about, name = options.about(peek.source.dataset), peek.source.dataset
        if about.independent or about.clean is not None or peek.source.severity:
            continue
        if options.split.dataset not in (None, name):
            other = first.get((options.split.dataset, 0.0, peek.source.seed))
            if other is not None and other.digest == peek.digest:
                problems.add(
                    peek.source.line,
                    f"{name!r} has the labels of {options.split.dataset!r}, row by row; say datasets: {{{name}: "
                    f"{{clean: {options.split.dataset}}}}} if its rows are the same, or independent: true if not",
                )
            continue
        clean.setdefault((peek.classes, peek.names), []).append(peek)
    for group in clean.values():
        names = list(dict.fromkeys(peek.source.dataset for peek in group))
        if (
            len({peek.digest for peek in group if peek.source.seed == group[0].source.seed}) > 1
            and "split" not in lines
        ):
            problems.add(
                group[-1].source.line,
                f"{', '.join(map(repr, names))} have the same classes and different rows, and recalibrators need to know which "
                "are clean; say under datasets, for each: clean: NAME (itself, or the one whose rows it shares) or "
                "independent: true",
            )


def _check_classes(problems: Problems, first: dict[object, _Peek], options: Options, lines: dict[str, int]) -> None:
    """Classes named in lenses, selections and subsets must be there."""
    subsets = dict(options.class_subsets)
    wanted: list[tuple[str, tuple[object, ...]]] = [
        ("lenses", (name.removeprefix("class:"),)) for name in options.lenses if name.startswith("class:")
    ]
    wanted += [("groupings", classes) for _, groups in options.groupings for _, classes in groups]
    for selected in options.selections:
        given = dict(selected.arguments)
        listed = given.get("classes", given.get("class", ()))
        wanted.append(("selections", listed if isinstance(listed, tuple) else (listed,)))
    for peek in first.values():
        dataset = peek.source.dataset
        names = peek.names
        try:
            if dataset in subsets:
                at = subset_positions(subsets[dataset], names, peek.classes)
                names = tuple(i if names is None else names[i] for i in at)
        except InputError as error:
            problems.add(lines["class_subsets"], f"{dataset!r}: {error}")
            continue
        for key, classes in wanted:
            try:
                subset_positions(classes, names, peek.classes if names is None else len(names))
            except InputError as error:
                problems.add(lines[key], f"dataset {dataset!r}: {error}")
    for dataset in subsets:
        if first and dataset not in {peek.source.dataset for peek in first.values()}:
            problems.add(
                lines["class_subsets"], f"class_subsets names {dataset!r}, but no prediction file is of that dataset"
            )


def _peek(source: Source, columns: Columns) -> _Peek:
    labels, classes, names, held = _labels(source, columns)
    return _Peek(source, len(labels), labels_digest(labels), classes, names, held)


def _labels(source: Source, columns: Columns) -> tuple[Indices, int, tuple[object, ...] | None, tuple[str, ...]]:
    """Labels as columns, number and names of classes, and all names in the file."""
    path = source.path
    raw, shape, stars, held = _peek_npz(path, columns) if path.suffix.lower() == ".npz" else _peek_table(path, columns)
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] < 2):
        raise InputError(f"predictions must be 1-D (binary) or have one column per class, not of shape {shape}")
    if shape[0] == 0:
        raise InputError("it has no rows")
    names = stars if columns.classes is None and raw.dtype.kind not in "iubf" else columns.classes
    classes = 2 if len(shape) == 1 else shape[1]
    labels, known = index_labels(raw, shape[0], names, classes)
    return labels, classes, known, tuple(held)


def _peek_npz(path: Path, columns: Columns) -> tuple[NDArray[Any], tuple[int, ...], None, list[str]]:
    """Labels, and the shape of the predictions from the head of their array."""
    if not isinstance(columns.outputs, str):
        raise InputError("an npz file keeps its predictions in one array; name that, not a list of columns")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as held:
            missing = [name for name in (columns.outputs, columns.label) if name not in held.files]
            if missing:
                raise InputError(f"there is no array {missing[0]!r}; it has {', '.join(held.files)}")
            with held.zip.open(f"{columns.outputs}.npy") as member:
                version = np.lib.format.read_magic(member)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, _ = read(member)
            return held[columns.label], shape, None, held.files
    except InputError:
        raise
    except files.damaged_zip() as error:
        raise FileError("it is damaged or not an npz file") from error


def _peek_table(
    path: Path, columns: Columns
) -> tuple[NDArray[Any], tuple[int, ...], tuple[str, ...] | None, list[str]]:
    pl = polars()
    kind = files.FRAME_FORMATS[path.suffix.lower()]
    try:
        options = {"glob": False} if kind != "ndjson" else {}
        scan = getattr(pl, f"scan_{kind}")(path, **options)
        held = scan.collect_schema().names()
        names, stars = frames.matching(held, columns.outputs, "predictions")
        frames.matching(held, [columns.label], "the label")
        labels = scan.select(columns.label).collect()[columns.label]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(f"it is not a readable {kind} file: {str(error).splitlines()[0]}") from error
    if labels.null_count():
        raise InputError(f"column {columns.label!r} has {labels.null_count()} missing values; drop or fill those rows")
    shape = (len(labels),) if len(names) == 1 else (len(labels), len(names))
    return labels.to_numpy(), shape, None if stars is None else tuple(stars), held
