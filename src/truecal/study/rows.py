"""The rows of a prediction file: read, checked against the other files of a study, split and selected."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
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

Classes = tuple[object, ...] | None  # names of the classes; None: they are called 0, 1, ...
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows and all classes of a file: logits or probabilities (n, k) or (n,), label indices (n,), and the other columns."""

    outputs: NDArray[Any]
    labels: Indices
    classes: Classes
    columns: FileColumns
    others: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def weights(self) -> NDArray[Any] | None:
        """Weights of the rows, where the file has a column of them."""
        return None if self.columns.weight is None else self.others[self.columns.weight]

    @property
    def class_count(self) -> int:
        """Number of classes: two where a row has a single score."""
        return 2 if self.outputs.ndim == 1 else self.outputs.shape[1]

    def select(self, mask: Mask) -> NDArray[Any]:
        """Return the outputs of the rows in a mask, without a copy where it holds all rows."""
        return self.outputs if mask.all() else self.outputs[mask]

    def predictions(
        self, mask: Mask, subset: Sequence[object] | None, probs: NDArray[Any] | None = None
    ) -> tc.Predictions:
        """Make predictions of the rows in a mask, or of recalibrated probabilities of all classes for these rows.

        With a subset of classes, rows of other labels are left out and the logits are restricted to the subset before the
        softmax. Recalibrated probabilities are divided by their sum over the subset, which is the same.
        """
        from_logits = self.columns.kind == "logits" and probs is None
        build = tc.Predictions.from_logits if from_logits else tc.Predictions.from_probs
        is_part = probs is None and (subset is not None or not mask.all())
        if is_part and not np.isfinite(self.outputs).all():
            build(self.outputs, self.labels)  # refuses the row by its number in the file
        outputs = self.select(mask) if probs is None else probs
        labels, classes = self.labels[mask], self.classes
        others = {name: column[mask] for name, column in self.others.items()}
        if subset is not None:
            if outputs.ndim != 2:
                raise InputError("a subset of classes needs one column of logits per class")
            chosen = class_columns(subset, classes, self.class_count)
            inside = np.isin(labels, chosen)
            if not inside.any():
                raise InputError("no row has a label in the subset of classes")
            order = np.argsort(chosen)
            labels = order[np.searchsorted(chosen, labels[inside], sorter=order)]
            classes = tuple(index if classes is None else classes[index] for index in chosen)
            outputs = outputs[inside][:, chosen] if probs is None else _normalize(outputs[inside][:, chosen])
            others = {name: column[inside] for name, column in others.items()}
        elif probs is not None and self.outputs.ndim == 1:
            outputs = outputs[:, 1]
        weights, clusters = (
            None if name is None else others.pop(name) for name in (self.columns.weight, self.columns.cluster)
        )
        return replace(build(outputs, labels, weights=weights, clusters=clusters, columns=others), classes=classes)


def _normalize(probs: NDArray[Any]) -> NDArray[Any]:
    """Divide rows of probabilities (n, k) by their sums; refuse a row of zeros."""
    total = probs.sum(axis=1, keepdims=True)
    if not total.all():
        row = int(np.flatnonzero(total[:, 0] == 0)[0])
        raise InputError(f"recalibrated row {row} gives the whole subset of classes probability 0")
    return probs / total


def load_rows(path: Path, columns: FileColumns, *, labels_only: bool = False) -> Rows:
    """Read one file. With `labels_only` outputs are zeros of the right shape, and the other columns are there but empty."""
    read = _read_npz if path.suffix.lower() == ".npz" else _read_table
    outputs, raw_labels, others, star_names = read(path, columns, labels_only)
    if outputs.ndim not in (1, 2) or (outputs.ndim == 2 and outputs.shape[1] < 2):
        raise InputError(f"predictions must be 1-D (binary) or have one column per class, not of shape {outputs.shape}")
    if not len(outputs):
        raise InputError("it has no rows")
    count = 2 if outputs.ndim == 1 else outputs.shape[1]
    is_text = raw_labels.dtype.kind not in "iubf"
    classes = validation.check_classes(star_names if columns.classes is None and is_text else columns.classes, count)
    # numeric labels are indices of columns unless the class names are numbers too
    by_index = classes is not None and not is_text and not all(isinstance(name, (int, float)) for name in classes)
    labels = validation.check_labels(raw_labels, len(outputs), None if by_index else classes, count)
    return Rows(outputs, labels, classes, columns, others)


# Outputs, labels as they are in the file, other columns, and the class names in a pattern such as p_*.
_Contents = tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]], Classes]


def _read_npz(path: Path, columns: FileColumns, labels_only: bool) -> _Contents:
    """Read the arrays of an npz file; with `labels_only` the outputs are zeros of the shape in the header of their array."""
    if not isinstance(columns.outputs, str):
        raise InputError("an npz file keeps its predictions in one array; name that, not a list of columns")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            for name in (columns.outputs, columns.label):
                if name not in arrays.files:
                    raise InputError(f"there is no array {name!r}; it has {', '.join(arrays.files)}")
            if labels_only:
                with arrays.zip.open(f"{columns.outputs}.npy") as member:
                    first = np.lib.format.read_magic(member) == (1, 0)
                    header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
                    shape, _, _ = header(member)
                others = dict.fromkeys(arrays.files, np.empty(0))
                return np.broadcast_to(np.float32(0), shape), arrays[columns.label], others, None
    except InputError:
        raise
    except files.damaged_zip() as error:
        raise FileError("it is damaged or not an npz file") from error
    contents = files.read_arrays(path)
    outputs, labels = contents.pop(columns.outputs), contents.pop(columns.label)
    return outputs, labels, {name: array for name, array in contents.items() if array.shape == labels.shape}, None


def _read_table(path: Path, columns: FileColumns, labels_only: bool) -> _Contents:
    """Read the columns of a table; with `labels_only` outputs are zeros, and from Parquet the labels alone are read."""
    kind = files.kind_of(path)
    try:
        lazy = labels_only and kind == "parquet"
        frame = pl.scan_parquet(path, glob=False) if lazy else files.read_frame(path)
        names = frame.collect_schema().names()
        outputs, stars = frames.matching(names, columns.outputs, "predictions")
        frames.matching(names, [columns.label], "the label")
        used = [columns.label] if labels_only else [*outputs, columns.label]
        table = frame.select(used).collect() if lazy else frame
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(f"it is not a readable {kind} file: {str(error).splitlines()[0]}") from error
    for name in used:
        if nulls := table[name].null_count():
            raise InputError(f"column {name!r} has {nulls} missing values; drop or fill those rows")
    labels, others = table[columns.label].to_numpy(), [name for name in names if name not in used]
    star_names = None if stars is None else tuple(stars)
    if labels_only:
        shape = (len(labels),) if len(outputs) == 1 else (len(labels), len(outputs))
        return np.broadcast_to(np.float32(0), shape), labels, dict.fromkeys(others, np.empty(0)), star_names
    values = table[outputs[0]].to_numpy() if len(outputs) == 1 else table.select(outputs).to_numpy()
    return values, labels, {name: table[name].to_numpy() for name in others}, star_names


def class_columns(subset: Sequence[object], classes: Classes, count: int) -> list[int]:
    """Return the columns of classes given by name, or by column where they have no names; refuse an unknown class."""
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
    values = arguments.get("values", [])
    return tc.by_column(arguments["column"], *(values if isinstance(values, list) else [values]), **limits)


def class_named(word: object, preds: tc.Predictions | None) -> object:
    """Return the class whose name has the text of `word` (YAML may read the name "1" as 1); `word` itself if there is none."""
    if preds is None or word is None:
        return word
    return {str(name): name for name in preds.classes or range(preds.class_count)}.get(str(word), word)


def held_out(labels: Indices, fraction: float, seed: int) -> Mask:
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
    """Compute a hash of the labels (n,): files with different hashes do not have the same rows in the same order."""
    return hashlib.blake2b(np.ascontiguousarray(labels, np.int64).tobytes(), digest_size=16).hexdigest()


# ----------------------------------------------------------------------------------------------------
# Whether the prediction files of a study fit together, by labels and shapes alone, before any long work


@dataclass(frozen=True)
class _Header:
    """A prediction file without its predictions: its rows with outputs of zeros, and a hash of their labels."""

    source: PredictionFile
    rows: Rows
    digest: str

    @property
    def shape(self) -> tuple[object, ...]:
        """Numbers of rows and classes, and hash of the labels: equal for all files of one dataset, severity and seed."""
        return len(self.rows), self.rows.class_count, self.digest

    @property
    def classes(self) -> tuple[int, Classes]:
        """Number and names of the classes."""
        return self.rows.class_count, self.rows.classes


def check_files(document: Document, sources: Sequence[PredictionFile], options: Options) -> None:
    """Read labels and shapes of every file, and add a problem to the document for those that should agree and do not."""
    groups: dict[object, list[_Header]] = {}
    for source in sources:
        if not source.path.is_file() or source.path.suffix.lower() not in FORMATS:
            continue  # a problem of the document already
        try:
            rows = load_rows(source.path, options.columns, labels_only=True)
        except InputError as error:
            document.add(source.line, f"{source.path.name}: {error}")
            continue
        groups.setdefault(source.rows_key, []).append(_Header(source, rows, labels_digest(rows.labels)))
        _check_columns(document, groups[source.rows_key][-1], options)
    # typical: of every group one file of the most frequent shape; agreeing: all files of that shape
    typical, agreeing = [], []
    for group in groups.values():
        ((shape, _),) = Counter(header.shape for header in group).most_common(1)
        typical.append(next(header for header in group if header.shape == shape))
        for header in group:
            if header.shape == shape:
                agreeing.append(header)
            else:
                document.add(header.source.line, _describe_difference(header, typical[-1]))
    if options.recalibrators:
        _check_fit_sources(document, agreeing, options)
        _check_clean(document, typical, options)
    _check_classes(document, typical, options)


def _describe_difference(header: _Header, other: _Header) -> str:
    """Describe the first difference of two files of the same dataset, severity and seed: in rows, classes or labels."""
    path, other_path = header.source.path, other.source.path
    dataset, severity, seed = header.source.rows_key
    models = f"models of dataset {dataset!r}, severity {severity:g}, seed {seed}"
    if len(header.rows) != len(other.rows):
        return f"{path} has {len(header.rows)} rows but {other_path} {len(other.rows)}; {models} must share rows"
    if header.rows.class_count != other.rows.class_count:
        return f"{path} has {header.rows.class_count} classes but {other_path} {other.rows.class_count}"
    rows = np.flatnonzero(header.rows.labels != other.rows.labels)
    return (
        f"{path} and {other_path} have different labels in {len(rows)} of {len(header.rows)} rows, the first in row {rows[0]}; "
        f"{models} must be judged on the same rows in the same order"
    )


def _check_columns(document: Document, header: _Header, options: Options) -> None:
    """Add a problem for columns of weights and clusters, and of selections, that a file lacks."""
    needed = [("columns", name, "to read") for name in (options.columns.weight, options.columns.cluster) if name]
    columns = [one["by_column"]["column"] for one in options.selections.values() if "by_column" in one]
    needed += [("selections", column, "to select by") for column in columns]
    for key, column, purpose in needed:
        if column not in header.rows.others:
            text = f"{header.source.path} has no {column!r} {purpose}; it has {', '.join(header.rows.others)}"
            document.add((key,), text)


def _check_fit_sources(document: Document, headers: Sequence[_Header], options: Options) -> None:
    """Add a problem for files without a clean file of the same model, classes and (where rows are shared) labels to fit on."""
    by_key = {header.source.key: header for header in headers}
    for header in headers:
        path, line = header.source.path, header.source.line
        model, clean, _, seed = options.fit_source(header.source)
        fit_source = by_key.get(options.fit_source(header.source))
        if fit_source is None:
            text = (
                f"{model!r} has no file of dataset {clean!r}, severity 0, seed {seed} to fit on; name a clean dataset "
            )
            document.add(line, text + "(datasets), or fit on each file itself: split: {fit: same}")
        elif fit_source.classes != header.classes:
            other = fit_source.source.path
            document.add(line, f"{path} has other classes than {other}, on which its recalibrators are fitted")
        elif options.shares_rows(header.source.dataset) and fit_source.digest != header.digest:
            other = fit_source.source.path
            text = f"{path} has other labels than {other} of severity 0, so the rows of the fit cannot be left out; "
            document.add(line, text + "use the same rows, say by: NAME instead of clean: NAME, or split: {fit: same}")


def _check_clean(document: Document, headers: Sequence[_Header], options: Options) -> None:
    """Add a problem for undeclared datasets of severity 0 that have the same classes and other rows: which one is clean?"""
    if "split" in document.value:
        return
    by_classes: dict[object, list[_Header]] = {}
    for header in headers:
        dataset = options.dataset(header.source.dataset)
        if dataset.by is None and dataset.clean is None and not header.source.severity:
            by_classes.setdefault(header.classes, []).append(header)
    for group in by_classes.values():
        if len({header.digest for header in group if header.source.seed == group[0].source.seed}) > 1:
            names = ", ".join(map(repr, dict.fromkeys(header.source.dataset for header in group)))
            document.add(
                group[-1].source.line,
                f"{names} have the same classes and different rows, and recalibrators need to know which "
                "are clean; say under datasets, for each: clean: NAME (itself, or the one whose rows it shares) or "
                "by: NAME (of other rows, recalibrated by that one)",
            )


def _check_classes(document: Document, headers: Sequence[_Header], options: Options) -> None:
    """Add a problem for classes named in lenses, groupings, selections and subsets that a dataset lacks."""
    lenses = [name.removeprefix("class:") for name in options.lenses if name.startswith("class:")]
    named: list[tuple[str, Sequence[object]]] = [("lenses", lenses)]
    named += [("groupings", classes) for groups in options.groupings.values() for classes in groups.values()]
    for selection in options.selections.values():
        output = selection.get("by_output", {}).get("class")
        named.append(("selections", selection.get("by_label", [] if output is None else [output])))
    for header in headers:
        dataset, (count, classes) = header.source.dataset, header.classes
        try:
            if dataset in options.class_subsets:
                chosen = class_columns(options.class_subsets[dataset], classes, count)
                classes = tuple(i if classes is None else classes[i] for i in chosen)
        except InputError as error:
            document.add(("class_subsets",), f"{dataset!r}: {error}")
            continue
        for key, words in named:
            try:
                class_columns(words, classes, count if classes is None else len(classes))
            except InputError as error:
                document.add((key,), f"dataset {dataset!r}: {error}")
    for dataset in options.class_subsets:
        if headers and dataset not in {header.source.dataset for header in headers}:
            text = f"class_subsets names {dataset!r}, but no prediction file is of that dataset"
            document.add(("class_subsets",), text)
