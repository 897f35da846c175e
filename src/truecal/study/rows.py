"""The rows of a prediction file: read, checked against the other files of a study, and split."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.predictions import files, frames, validation
from truecal.study.document import Document
from truecal.study.spec import FORMATS, FileColumns, Options, PredictionFile
from truecal.study.store import pl
from truecal.types import Indices

Classes = tuple[object, ...] | None  # names of the classes; None: they are called 0, 1, ...
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows and all classes of a file."""

    outputs: NDArray[Any]  # (n, k), or (n,) for the second of two classes
    labels: Indices  # class indices (n,)
    classes: Classes
    kind: str  # of the outputs: "logits" or "probs"
    weights: NDArray[Any] | None = None  # (n,)
    clusters: NDArray[Any] | None = None  # (n,)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    @property
    def class_count(self) -> int:
        """Number of classes: two where a row has a single score."""
        return 2 if self.outputs.ndim == 1 else self.outputs.shape[1]

    def select(self, mask: Mask) -> NDArray[Any]:
        """Return the outputs of the rows in a mask (n,), without a copy where it holds all rows."""
        return self.outputs if mask.all() else self.outputs[mask]

    def predictions(self, mask: Mask, probs: NDArray[Any] | None = None) -> tc.Predictions:
        """Make predictions of the rows in a mask, or of recalibrated probabilities (n, k) of these rows."""
        from_logits = self.kind == "logits" and probs is None
        build = tc.Predictions.from_logits if from_logits else tc.Predictions.from_probs
        if probs is None and not mask.all() and not np.isfinite(self.outputs).all():
            build(self.outputs, self.labels)  # refuses the row by its number in the file
        outputs = self.select(mask) if probs is None else probs[:, 1] if self.outputs.ndim == 1 else probs
        weights, clusters = (None if part is None else part[mask] for part in (self.weights, self.clusters))
        return replace(build(outputs, self.labels[mask], weights=weights, clusters=clusters), classes=self.classes)


def load_rows(path: Path, columns: FileColumns, *, labels_only: bool = False) -> Rows:
    """Read one file. With `labels_only` outputs are zeros of the right shape, and there are no weights and clusters.

    Text labels are names: those of `columns.classes`, else what a pattern such as p_* matched. Numeric labels are positions of
    classes, unless the names are numbers too. Raises InputError for outputs of another shape than (n,) or (n, classes), for a
    file without rows and for labels that are no classes.
    """
    read = _read_npz if path.suffix.lower() == ".npz" else _read_table
    outputs, contents, star_names = read(path, columns, labels_only)
    if outputs.ndim not in (1, 2) or (outputs.ndim == 2 and outputs.shape[1] < 2):
        raise InputError(f"predictions must be 1-D (binary) or have one column per class, not of shape {outputs.shape}")
    if not len(outputs):
        raise InputError("it has no rows")
    count, raw_labels = 2 if outputs.ndim == 1 else outputs.shape[1], contents[columns.label]
    is_text = raw_labels.dtype.kind not in "iubf"
    classes = validation.check_classes(star_names if columns.classes is None and is_text else columns.classes, count)
    # numeric labels are indices of columns unless the class names are numbers too
    by_index = classes is not None and not is_text and not all(isinstance(name, (int, float)) for name in classes)
    labels = validation.check_labels(raw_labels, len(outputs), None if by_index else classes, count)
    weights, clusters = (contents.get(name or "") for name in (columns.weight, columns.cluster))
    return Rows(outputs, labels, classes, columns.kind, weights, clusters)


# Outputs (n,) or (n, k), further columns by name (labels, and unless only these are read weights and clusters), and the class
# names that a pattern such as p_* matched; None without a pattern.
_Contents = tuple[NDArray[Any], dict[str, NDArray[Any]], Classes]


def _read_npz(path: Path, columns: FileColumns, labels_only: bool) -> _Contents:
    """Read the outputs and all arrays by name of an npz file, and None; refuse a file without one of `columns`.

    With `labels_only` the outputs are zeros of the shape in the header of their array, and the labels are the only array.
    """
    if not isinstance(columns.outputs, str):
        raise InputError("an npz file keeps its predictions in one array; name that, not a list of columns")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            for name in (columns.outputs, *columns.others):
                if name not in arrays.files:
                    raise InputError(f"there is no array {name!r}; it has {', '.join(arrays.files)}")
            if labels_only:
                with arrays.zip.open(f"{columns.outputs}.npy") as member:
                    first = np.lib.format.read_magic(member) == (1, 0)
                    header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
                    shape, _, _ = header(member)
                return np.broadcast_to(np.float32(0), shape), {columns.label: arrays[columns.label]}, None
    except InputError:
        raise
    except files.damaged_zip() as error:
        raise FileError("it is damaged or not an npz file") from error
    contents = files.read_arrays(path)
    return contents[columns.outputs], contents, None


def _read_table(path: Path, columns: FileColumns, labels_only: bool) -> _Contents:
    """Read outputs, columns by name and class names matched by a pattern from a table; refuse missing columns and values.

    With `labels_only` outputs are zeros, the labels are the only column, and from Parquet nothing else is read.
    """
    kind = files.kind_of(path)
    try:
        lazy = labels_only and kind == "parquet"
        frame = pl.scan_parquet(path, glob=False) if lazy else files.read_frame(path)
        names = frame.collect_schema().names()
        outputs, stars = frames.matching(names, columns.outputs, "predictions")
        frames.matching(names, columns.others, "the label, weight or cluster")
        used = [columns.label] if labels_only else [*outputs, *columns.others]
        table = frame.select(used).collect() if lazy else frame.select(used)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(f"it is not a readable {kind} file: {str(error).splitlines()[0]}") from error
    for name in used:
        if nulls := table[name].null_count():
            raise InputError(f"column {name!r} has {nulls} missing values; drop or fill those rows")
    contents = {name: table[name].to_numpy() for name in used if name in columns.others}
    star_names = None if stars is None else tuple(stars)
    if labels_only:
        shape = (len(table),) if len(outputs) == 1 else (len(table), len(outputs))
        return np.broadcast_to(np.float32(0), shape), contents, star_names
    return table[outputs[0]].to_numpy() if len(outputs) == 1 else table.select(outputs).to_numpy(), contents, star_names


def class_named(word: object, preds: tc.Predictions | None) -> object:
    """Return the class whose name has the text of `word` (YAML may read the name "1" as 1); `word` itself if there is none.

    `preds` None, or a `word` of None, returns `word`.

    >>> class_named(1, tc.Predictions.from_probs([[0.2, 0.8]], ["1"], classes=("0", "1")))
    '1'
    """
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
    """Compute a hash of the labels (n,): files with different hashes do not have the same rows in the same order.

    >>> import numpy as np
    >>> labels_digest(np.array([0, 1])) == labels_digest(np.array([0, 1], np.int8)), len(labels_digest(np.array([0])))
    (True, 32)
    """
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
    headers: list[_Header] = []
    first: dict[object, _Header] = {}  # of every dataset, severity and seed
    for source in sources:
        if not source.path.is_file() or source.path.suffix.lower() not in FORMATS:
            continue  # a problem of the document already
        try:
            rows = load_rows(source.path, options.columns, labels_only=True)
        except InputError as error:
            document.add(source.line, f"{source.path.name}: {error}")
            continue
        header = _Header(source, rows, labels_digest(rows.labels))
        other = first.setdefault(source.rows_key, header)
        if header.shape == other.shape:
            headers.append(header)
        else:
            document.add(source.line, _describe_difference(header, other))
    typical = list(first.values())
    if options.recalibrators:
        _check_fit_sources(document, headers, options)
        _check_clean(document, typical, options)
    _check_classes(document, typical, options)


def _describe_difference(header: _Header, other: _Header) -> str:
    """Describe the difference of two files of the same dataset, severity and seed: in rows, classes or labels.

    Different numbers of rows or classes are named first; else the number of rows with different labels, and the first one.
    """
    path, other_path = header.source.path, other.source.path
    dataset, severity, seed = header.source.rows_key
    models = f"models of dataset {dataset!r}, severity {severity:g}, seed {seed}"
    size, other_size = (f"{len(one.rows)} rows of {one.rows.class_count} classes" for one in (header, other))
    if size != other_size:
        return f"{path} has {size} but {other_path} {other_size}; {models} must share rows"
    rows = np.flatnonzero(header.rows.labels != other.rows.labels)
    return (
        f"{path} and {other_path} have different labels in {len(rows)} of {len(header.rows)} rows, the first in row {rows[0]}; "
        f"{models} must be judged on the same rows in the same order"
    )


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
            document.add(line, text + "(datasets)")
        elif fit_source.classes != header.classes:
            other = fit_source.source.path
            document.add(line, f"{path} has other classes than {other}, on which its recalibrators are fitted")
        elif options.shares_rows(header.source.dataset) and fit_source.digest != header.digest:
            other = fit_source.source.path
            text = f"{path} has other labels than {other} of severity 0, so the rows of the fit cannot be left out; "
            document.add(line, text + "use the same rows, or say by: NAME instead of clean: NAME")


def _check_clean(document: Document, headers: Sequence[_Header], options: Options) -> None:
    """Add a problem for datasets of severity 0 with the same classes and other rows, as it is not known which one is clean.

    Datasets with `clean` or `by` do not count, and nothing is checked for a study file with a section `split`.
    """
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
    """Add a problem for the first class named in lenses, or in a group of `groupings`, that a dataset lacks."""
    lenses = [name.removeprefix("class:") for name in options.lenses if name.startswith("class:")]
    named: list[tuple[str, Sequence[object]]] = [("lenses", lenses)]
    named += [("groupings", classes) for groups in options.groupings.values() for classes in groups.values()]
    for header, (key, words) in product(headers, named):
        count, classes = header.classes
        known = {str(name) for name in (range(count) if classes is None else classes)}
        for missing in [name for name in words if str(name) not in known][:1]:
            text = f"dataset {header.source.dataset!r}: there is no class {missing!r} among the {count} classes"
            document.add((key,), text)
