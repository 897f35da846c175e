"""Whether the prediction files of a study fit together, told from labels and shapes alone, before any long work."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import FileError, InputError
from truecal.predictions import FRAME_FORMATS, matching
from truecal.study.spec.document import Problems
from truecal.study.spec.files import Source
from truecal.study.spec.rows import index_labels, subset_positions
from truecal.study.spec.spec import Columns, Options
from truecal.study.store import polars
from truecal.types import Indices


@dataclass(frozen=True)
class _Peek:
    """What is known of a file without reading its predictions."""

    source: Source
    labels: Indices
    classes: int
    names: tuple[object, ...] | None
    held: tuple[str, ...]  # names of all columns or arrays


def check_files(problems: Problems, sources: Sequence[Source], options: Options, lines: dict[str, int]) -> None:
    """Look into every file that is there; compare those that must agree."""
    seen: list[_Peek] = []
    for source in sources:
        if not source.path.is_file():
            continue  # already told
        try:
            seen.append(_peek(source, options.columns))
        except InputError as error:
            problems.add(source.line, f"{source.path.name}: {error}")
    first: dict[object, _Peek] = {}
    for peek in seen:
        other = first.setdefault(peek.source.rows_of, peek)
        _compare(problems, peek, other)
        _check_columns(problems, peek, options, lines)
    if options.recalibrators and options.split.fit == "clean":
        _check_severities(problems, first)
        _check_teachers(problems, seen, options, lines)
    _check_classes(problems, first, options, lines)


def _compare(problems: Problems, peek: _Peek, other: _Peek) -> None:
    """Two models on the same rows of a dataset."""
    one, two = peek.source.path, other.source.path
    if len(peek.labels) != len(other.labels):
        text = (
            f"{one} has {len(peek.labels)} rows but {two} {len(other.labels)}; models of {_where(peek)} must share rows"
        )
    elif peek.classes != other.classes:
        text = f"{one} has {peek.classes} classes but {two} {other.classes}"
    elif not np.array_equal(peek.labels, other.labels):
        rows = np.flatnonzero(peek.labels != other.labels)
        text = (
            f"{one} and {two} have different labels in {len(rows)} of {len(peek.labels)} rows, the first in row {rows[0]}; "
            f"models of {_where(peek)} must be judged on the same rows in the same order"
        )
    else:
        return
    problems.add(peek.source.line, text)


def _check_columns(problems: Problems, peek: _Peek, options: Options, lines: dict[str, int]) -> None:
    """Columns that rows are selected by must be there."""
    for selected in options.selections:
        column = str(dict(selected.arguments).get("column"))
        if selected.kind == "by_column" and column not in peek.held:
            problems.add(
                lines["selections"], f"{peek.source.path} has no {column!r} to select by; it has {', '.join(peek.held)}"
            )


def _where(peek: _Peek) -> str:
    dataset, severity, seed = peek.source.rows_of
    return f"dataset {dataset!r}, severity {severity:g}, seed {seed}"


def _check_severities(problems: Problems, first: dict[object, _Peek]) -> None:
    """A recalibrator learnt on clean rows leaves those rows out of every severity, so rows must be the same."""
    for peek in first.values():
        dataset, severity, seed = peek.source.rows_of
        clean = first.get((dataset, 0.0, seed))
        if severity and clean is not None and not np.array_equal(peek.labels, clean.labels):
            problems.add(
                peek.source.line,
                f"{peek.source.path} has other labels than {clean.source.path} of severity 0, so the rows a recalibrator learnt "
                "from cannot be left out; use the same rows, or split: {fit: same}",
            )


def _check_teachers(problems: Problems, seen: Sequence[_Peek], options: Options, lines: dict[str, int]) -> None:
    """Every model needs a clean file of the dataset its recalibrators learn on, with the same classes."""
    dataset = options.split.dataset
    if dataset is None:
        return
    known = {peek.source.who: peek for peek in seen}
    if dataset not in {peek.source.dataset for peek in seen}:
        problems.add(lines["split"], f"split names {dataset!r}, but no prediction file is of that dataset")
        return
    for peek in seen:
        teacher = known.get((peek.source.model, dataset, 0.0, peek.source.seed))
        if teacher is None:
            problems.add(
                peek.source.line,
                f"{peek.source.model!r} has no file of dataset {dataset!r}, severity 0, seed {peek.source.seed} to learn from",
            )
        elif (teacher.classes, teacher.names) != (peek.classes, peek.names):
            problems.add(
                peek.source.line, f"{peek.source.path} has other classes than {teacher.source.path}, to be learnt from"
            )


def _check_classes(problems: Problems, first: dict[object, _Peek], options: Options, lines: dict[str, int]) -> None:
    """Classes named in lenses, selections and subsets must be there."""
    subsets = dict(options.class_subsets)
    wanted = [("lenses", (name.removeprefix("class:"),)) for name in options.lenses if name.startswith("class:")]
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
    path = source.path
    raw, shape, stars, held = _peek_npz(path, columns) if path.suffix.lower() == ".npz" else _peek_table(path, columns)
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] < 2):
        raise InputError(f"predictions must be 1-D (binary) or have one column per class, not of shape {shape}")
    if shape[0] == 0:
        raise InputError("it has no rows")
    names = stars if columns.classes is None and raw.dtype.kind not in "iubf" else columns.classes
    classes = 2 if len(shape) == 1 else shape[1]
    labels, found = index_labels(raw, shape[0], names, classes)
    return _Peek(source, labels, classes, found, tuple(held))


def _peek_npz(path: Path, columns: Columns) -> tuple[NDArray[Any], tuple[int, ...], None, list[str]]:
    """Labels, and the shape of the predictions from the head of their array."""
    from zipfile import BadZipFile

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
    except (BadZipFile, OSError, EOFError, ValueError, AttributeError) as error:
        raise FileError("it is damaged or not an npz file") from error


def _peek_table(
    path: Path, columns: Columns
) -> tuple[NDArray[Any], tuple[int, ...], tuple[str, ...] | None, list[str]]:
    pl = polars()
    kind = FRAME_FORMATS[path.suffix.lower()]
    try:
        options = {"glob": False} if kind != "ndjson" else {}
        scan = getattr(pl, f"scan_{kind}")(path, **options)
        held = scan.collect_schema().names()
        names, stars = matching(held, columns.outputs, "predictions")
        matching(held, [columns.label], "the label")
        labels = scan.select(columns.label).collect()[columns.label]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError(f"it is not a readable {kind} file: {str(error).splitlines()[0]}") from error
    if labels.null_count():
        raise InputError(f"column {columns.label!r} has {labels.null_count()} missing values; drop or fill those rows")
    shape = (len(labels),) if len(names) == 1 else (len(labels), len(names))
    return labels.to_numpy(), shape, None if stars is None else tuple(stars), held
