"""The rows of a prediction file: read, checked against the other files of a study, split and selected."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.predictions import files, frames, validation
from truecal.predictions.selection import Selection
from truecal.study.document import Document
from truecal.study.spec import FORMATS, FileColumns, Options, PredictionFile
from truecal.study.store import pl
from truecal.types import Indices

Names = tuple[object, ...] | None


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows and all classes of a file: logits or probabilities, labels, and the other columns."""

    outputs: NDArray[Any]
    labels: Indices
    classes: Names
    columns: FileColumns
    others: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def weights(self) -> NDArray[Any] | None:
        """Weights of the rows, where the file has a column of them."""
        return None if self.columns.weight is None else self.others[self.columns.weight]

    def select(self, mask: NDArray[np.bool_]) -> NDArray[Any]:
        """Outputs of the rows in a mask."""
        return self.outputs if mask.all() else self.outputs[mask]

    def predictions(
        self, mask: NDArray[np.bool_], subset: Sequence[object] | None, probs: NDArray[Any] | None = None
    ) -> tc.Predictions:
        """Make predictions of the rows in a mask, or of recalibrated probabilities of all classes for these rows.

        With a subset of classes, rows of other labels are left out and the logits are restricted to the subset before the
        softmax. Recalibrated probabilities are divided by their sum over the subset, which is the same.
        """
        build = tc.Predictions.from_logits if self.columns.kind == "logits" else tc.Predictions.from_probs
        is_part = probs is None and (subset is not None or not mask.all())
        if is_part and not np.isfinite(self.outputs).all():
            build(self.outputs, self.labels)  # refuses the row as the file counts it
        outputs = self.select(mask) if probs is None else probs
        labels, classes = self.labels[mask], self.classes
        others = {name: column[mask] for name, column in self.others.items()}
        if subset is not None:
            if outputs.ndim != 2:
                raise InputError("a subset of classes needs one column of logits per class")
            chosen = class_columns(subset, classes, outputs.shape[1])
            position = np.full(outputs.shape[1], -1, np.intp)
            position[chosen] = np.arange(len(chosen))
            inside = position[labels] >= 0
            if not inside.any():
                raise InputError("no row has a label in the subset of classes")
            classes = tuple(index if classes is None else classes[index] for index in chosen)
            outputs, labels = outputs[inside][:, chosen], position[labels[inside]]
            others = {name: column[inside] for name, column in others.items()}
        if probs is not None and subset is not None:
            total = outputs.sum(axis=1, keepdims=True)
            if not total.all():
                row = int(np.flatnonzero(total[:, 0] == 0)[0])
                raise InputError(f"recalibrated row {row} gives the whole subset of classes probability 0")
            outputs = outputs / total
        if probs is not None and self.outputs.ndim == 1:
            outputs = outputs[:, 1]
        build = build if probs is None else tc.Predictions.from_probs
        weights, clusters = (
            None if name is None else others.pop(name) for name in (self.columns.weight, self.columns.cluster)
        )
        return replace(build(outputs, labels, weights=weights, clusters=clusters, columns=others), classes=classes)


def load_rows(path: Path, columns: FileColumns) -> Rows:
    """Read one file."""
    stars: Names = None
    if path.suffix.lower() == ".npz":
        arrays = files.read_arrays(path)
        outputs, raw = arrays.pop(str(columns.outputs)), arrays.pop(columns.label)
        others = {name: array for name, array in arrays.items() if array.shape == raw.shape}
    else:
        frame = files.read_frame(path)
        names, stars = _matching(frame.columns, columns)
        for name in (*names, columns.label):
            _refuse_missing(frame[name])
        outputs = frame[names[0]].to_numpy() if len(names) == 1 else frame.select(names).to_numpy()
        raw = frame[columns.label].to_numpy()
        others = {name: frame[name].to_numpy() for name in frame.columns if name not in {*names, columns.label}}
    labels, classes = _index_labels(raw, len(outputs), columns, stars, 2 if outputs.ndim == 1 else outputs.shape[1])
    return Rows(outputs, labels, classes, columns, others)


def _matching(names: Sequence[str], columns: FileColumns) -> tuple[list[str], Names]:
    """Return the output columns of a file and the class names in their pattern; refuse a missing label column."""
    outputs, stars = frames.matching(names, columns.outputs, "predictions")
    frames.matching(names, [columns.label], "the label")
    return outputs, None if stars is None else tuple(stars)


def _refuse_missing(column: Any) -> None:
    """Refuse a column with missing values."""
    if nulls := column.null_count():
        raise InputError(f"column {column.name!r} has {nulls} missing values; drop or fill those rows")


def _index_labels(
    raw: NDArray[Any], rows: int, columns: FileColumns, stars: Names, count: int
) -> tuple[Indices, Names]:
    """Labels as columns, and the classes' names. Numeric labels are columns unless the names are numbers too."""
    is_text = raw.dtype.kind not in "iubf"
    classes = validation.check_classes(stars if columns.classes is None and is_text else columns.classes, count)
    named = classes is not None and not all(isinstance(name, (int, float)) for name in classes)
    return validation.check_labels(raw, rows, None if named and not is_text else classes, count), classes


def class_columns(subset: Sequence[object], classes: Names, count: int) -> list[int]:
    """Columns of classes given by name, or by column where they have no names."""
    position = {str(name): i for i, name in enumerate(range(count) if classes is None else classes)}
    missing = [name for name in subset if str(name) not in position]
    if missing:
        raise InputError(f"there is no class {missing[0]!r} among the {count} classes")
    return [position[str(name)] for name in subset]


def make_selection(selection: Mapping[str, Any], preds: tc.Predictions | None = None) -> Selection:
    """Make the selection that a study file describes; class names are looked up among those of `preds`."""
    ((kind, arguments),) = selection.items()
    if kind == "by_label":
        return tc.by_label(*(class_named(name, preds) for name in arguments))
    limits = {name: arguments[name] for name in ("low", "high", "closed") if name in arguments}
    if kind == "by_output":
        return tc.by_output(class_named(arguments.get("class"), preds), **limits)
    values = arguments.get("values", ())
    return tc.by_column(
        arguments["column"], *(values if isinstance(values, list) else (values,) * bool(values)), **limits
    )


def class_named(word: object, preds: tc.Predictions | None) -> object:
    """Return the class whose name reads like `word`: YAML does not distinguish '1', 1 and a class named "1"."""
    if preds is None or word is None:
        return word
    return {str(name): name for name in preds.classes or range(preds.class_count)}.get(str(word), word)


def held_out(labels: Indices, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Draw the mask of the rows to fit on: floor(fraction * n) of them, and of every class its share to within one row.

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
        raise InputError(f"{fraction:g} of {n} rows leaves nothing to fit on, or nothing to judge; give more rows")
    return chosen


def labels_digest(labels: Indices) -> str:
    """Hash of the labels: files that agree in it have the same rows, as far as labels tell."""
    return hashlib.blake2b(np.ascontiguousarray(labels, np.int64).tobytes(), digest_size=16).hexdigest()


# ----------------------------------------------------------------------------------------------------
# Whether the prediction files of a study fit together, by labels and shapes alone, before any long work


@dataclass(frozen=True)
class _Head:
    """A file without its predictions; labels are kept as their digest."""

    source: PredictionFile
    rows: int
    digest: str
    count: int
    classes: Names
    names: tuple[str, ...]  # of all columns or arrays

    @property
    def layout(self) -> tuple[int, int, str]:
        """What all files on the same rows have in common."""
        return self.rows, self.count, self.digest


def check_files(
    document: Document, sources: Sequence[PredictionFile], options: Options, *, skip_broken: bool = False
) -> tuple[list[PredictionFile], dict[str, str]]:
    """Read labels and shapes of every file and compare those that must agree; return the usable files, and the others.

    A file that cannot be read, or whose labels are not those of the other models, is a problem of the study, or is skipped.
    """
    broken: dict[str, str] = {}

    def refuse(source: PredictionFile, text: str) -> None:
        if skip_broken:
            broken[str(source.path)] = text
        else:
            document.add(source.line, text)

    heads: list[_Head] = []
    # absent files and unknown endings are problems already
    readable = [source for source in sources if source.path.is_file() and source.path.suffix.lower() in FORMATS]
    for source in readable:
        try:
            labels, count, classes, names = _read_labels(source, options.columns)
            heads.append(_Head(source, len(labels), labels_digest(labels), count, classes, names))
        except InputError as error:
            refuse(source, f"{source.path.name}: {error}")
    groups: dict[object, list[_Head]] = {}
    for head in heads:
        groups.setdefault(head.source.rows_key, []).append(head)
    first: dict[object, _Head] = {}  # of every dataset, severity and seed, a file with the layout that most have
    for rows, group in groups.items():
        ((layout, _),) = Counter(head.layout for head in group).most_common(1)
        first[rows] = next(head for head in group if head.layout == layout)
    usable = []
    for head in heads:
        difference = _difference(head, first[head.source.rows_key], options.columns)
        if difference is None:
            usable.append(head)
        else:
            refuse(head.source, difference)
        _check_columns(document, head, options)
    if options.recalibrators:
        usable = _check_fit_sources(document, usable, options, refuse)
        _check_clean(document, list(first.values()), options)
    _check_classes(document, list(first.values()), options)
    refused = [] if skip_broken else [source for source in sources if source not in readable]
    return [*(head.source for head in usable), *refused], broken


def _difference(head: _Head, other: _Head, columns: FileColumns) -> str | None:
    """Return why two models cannot be on the same rows of a dataset, or None."""
    one, two = head.source.path, other.source.path
    dataset, severity, seed = head.source.rows_key
    models = f"models of dataset {dataset!r}, severity {severity:g}, seed {seed}"
    if head.layout == other.layout:
        return None
    if head.rows != other.rows:
        return f"{one} has {head.rows} rows but {two} {other.rows}; {models} must share rows"
    if head.count != other.count:
        return f"{one} has {head.count} classes but {two} {other.count}"
    rows = np.flatnonzero(_read_labels(head.source, columns)[0] != _read_labels(other.source, columns)[0])
    return (
        f"{one} and {two} have different labels in {len(rows)} of {head.rows} rows, the first in row {rows[0]}; "
        f"{models} must be judged on the same rows in the same order"
    )


def _check_columns(document: Document, head: _Head, options: Options) -> None:
    """Columns of weights and clusters, and those that rows are selected by, must be there."""
    needed = [("columns", name, "to read") for name in (options.columns.weight, options.columns.cluster) if name]
    columns = [one["by_column"]["column"] for one in options.selections.values() if "by_column" in one]
    for key, column, purpose in [*needed, *(("selections", column, "to select by") for column in columns)]:
        if column not in head.names:
            text = f"{head.source.path} has no {column!r} {purpose}; it has {', '.join(head.names)}"
            document.add((key,), text)


def _check_fit_sources(
    document: Document, heads: Sequence[_Head], options: Options, refuse: Callable[[PredictionFile, str], None]
) -> list[_Head]:
    """Refuse files without a clean file of the same model, classes and (shared rows) labels to fit on; return the others."""
    by_key = {head.source.key: head for head in heads}
    dataset = options.split.dataset
    if dataset is not None and dataset not in {head.source.dataset for head in heads}:
        document.add(("split",), f"split names {dataset!r}, but no prediction file is of that dataset")
        return list(heads)
    usable = []
    for head in heads:
        path = head.source.path
        model, clean, _, seed = options.fit_source(head.source)
        fit_source = by_key.get(options.fit_source(head.source))
        if fit_source is None:
            refuse(
                head.source,
                f"{model!r} has no file of dataset {clean!r}, severity 0, seed {seed} to fit on; name a clean dataset "
                "(datasets), or fit on each file itself: split: {fit: same}",
            )
        elif (fit_source.count, fit_source.classes) != (head.count, head.classes):
            refuse(
                head.source,
                f"{path} has other classes than {fit_source.source.path}, on which its recalibrators are fitted",
            )
        elif options.shares_rows(head.source.dataset) and fit_source.digest != head.digest:
            refuse(
                head.source,
                f"{path} has other labels than {fit_source.source.path} of severity 0, so the rows of the "
                "fit cannot be left out; use the same rows, declare the dataset independent, or split: {fit: same}",
            )
        else:
            usable.append(head)
    return usable


def _check_clean(document: Document, heads: Sequence[_Head], options: Options) -> None:
    """Add a problem to the document where it is open which datasets are clean, or share the rows of the clean one."""
    if options.split.fit == "same":
        return
    clean = options.split.dataset
    by_classes: dict[object, list[_Head]] = {}
    by_rows = {head.source.rows_key: head for head in heads}
    for head in heads:
        name, dataset = head.source.dataset, options.dataset(head.source.dataset)
        if dataset.independent or dataset.clean is not None or head.source.severity:
            continue
        if clean in (None, name):
            by_classes.setdefault((head.count, head.classes), []).append(head)
        elif (other := by_rows.get((clean, 0.0, head.source.seed))) is not None and other.digest == head.digest:
            document.add(
                head.source.line,
                f"{name!r} has the labels of {clean!r}, row by row; say datasets: {{{name}: "
                f"{{clean: {clean}}}}} if its rows are the same, or independent: true if not",
            )
    for group in by_classes.values():
        digests = {head.digest for head in group if head.source.seed == group[0].source.seed}
        if len(digests) > 1 and "split" not in document.value:
            names = ", ".join(map(repr, dict.fromkeys(head.source.dataset for head in group)))
            document.add(
                group[-1].source.line,
                f"{names} have the same classes and different rows, and recalibrators need to know which "
                "are clean; say under datasets, for each: clean: NAME (itself, or the one whose rows it shares) or "
                "independent: true",
            )


def _check_classes(document: Document, heads: Sequence[_Head], options: Options) -> None:
    """Classes named in lenses, selections and subsets must be there."""
    lenses = [name.removeprefix("class:") for name in options.lenses if name.startswith("class:")]
    named: list[tuple[str, Sequence[object]]] = [("lenses", lenses)]
    named += [("groupings", classes) for groups in options.groupings.values() for classes in groups.values()]
    for selection in options.selections.values():
        output = selection.get("by_output", {}).get("class")
        named.append(("selections", selection.get("by_label", [] if output is None else [output])))
    for head in heads:
        dataset, classes, count = head.source.dataset, head.classes, head.count
        try:
            if dataset in options.class_subsets:
                chosen = class_columns(options.class_subsets[dataset], classes, count)
                classes = tuple(i if classes is None else classes[i] for i in chosen)
                count = len(classes)
        except InputError as error:
            document.add(("class_subsets",), f"{dataset!r}: {error}")
            continue
        for key, words in named:
            try:
                class_columns(words, classes, count)
            except InputError as error:
                document.add((key,), f"dataset {dataset!r}: {error}")
    for dataset in options.class_subsets:
        if heads and dataset not in {head.source.dataset for head in heads}:
            text = f"class_subsets names {dataset!r}, but no prediction file is of that dataset"
            document.add(("class_subsets",), text)


def _read_labels(source: PredictionFile, columns: FileColumns) -> tuple[Indices, int, Names, tuple[str, ...]]:
    """Labels as columns, number and names of classes, and all names in the file."""
    path = source.path
    read = _npz_labels if path.suffix.lower() == ".npz" else _table_labels
    raw, shape, stars, names = read(path, columns)
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] < 2):
        raise InputError(f"predictions must be 1-D (binary) or have one column per class, not of shape {shape}")
    if shape[0] == 0:
        raise InputError("it has no rows")
    count = 2 if len(shape) == 1 else shape[1]
    labels, classes = _index_labels(raw, shape[0], columns, stars, count)
    return labels, count, classes, tuple(names)


_Labels = tuple[NDArray[Any], tuple[int, ...], Names, list[str]]  # raw labels, shape of outputs, star names, all names


def _npz_labels(path: Path, columns: FileColumns) -> _Labels:
    """Labels, and the shape of the predictions from the head of their array."""
    if not isinstance(columns.outputs, str):
        raise InputError("an npz file keeps its predictions in one array; name that, not a list of columns")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            missing = [name for name in (columns.outputs, columns.label) if name not in arrays.files]
            if missing:
                raise InputError(f"there is no array {missing[0]!r}; it has {', '.join(arrays.files)}")
            with arrays.zip.open(f"{columns.outputs}.npy") as member:
                version = np.lib.format.read_magic(member)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, _ = read(member)
            return arrays[columns.label], shape, None, arrays.files
    except InputError:
        raise
    except files.damaged_zip() as error:
        raise FileError("it is damaged or not an npz file") from error


def _table_labels(path: Path, columns: FileColumns) -> _Labels:
    """Read labels, shape of the outputs, class names and columns of a table, without its outputs."""
    kind = files.kind_of(path)
    try:
        scan = pl.scan_parquet(path, glob=False) if kind == "parquet" else files.read_frame(path).lazy()
        names = scan.collect_schema().names()
        outputs, stars = _matching(names, columns)
        labels = scan.select(columns.label).collect()[columns.label]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(f"it is not a readable {kind} file: {str(error).splitlines()[0]}") from error
    _refuse_missing(labels)
    shape = (len(labels),) if len(outputs) == 1 else (len(labels), len(outputs))
    return labels.to_numpy(), shape, stars, names
