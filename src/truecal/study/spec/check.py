"""Whether the prediction files of a study fit together, told from labels and shapes alone, before any long work."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import FileError, InputError
from truecal.predictions import readers
from truecal.study.spec.document import Problems
from truecal.study.spec.files import Source
from truecal.study.spec.rows import index_labels, subset_positions
from truecal.study.spec.spec import Columns, Options
from truecal.study.spec.split import labels_digest
from truecal.study.store import polars
from truecal.types import Indices


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
    except readers.DAMAGED_ZIP as error:
        raise FileError("it is damaged or not an npz file") from error


def _peek_table(
    path: Path, columns: Columns
) -> tuple[NDArray[Any], tuple[int, ...], tuple[str, ...] | None, list[str]]:
    pl = polars()
    kind = readers.FRAME_FORMATS[path.suffix.lower()]
    try:
        options = {"glob": False} if kind != "ndjson" else {}
        scan = getattr(pl, f"scan_{kind}")(path, **options)
        held = scan.collect_schema().names()
        names, stars = readers.matching(held, columns.outputs, "predictions")
        readers.matching(held, [columns.label], "the label")
        labels = scan.select(columns.label).collect()[columns.label]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(f"it is not a readable {kind} file: {str(error).splitlines()[0]}") from error
    if labels.null_count():
        raise InputError(f"column {columns.label!r} has {labels.null_count()} missing values; drop or fill those rows")
    shape = (len(labels),) if len(names) == 1 else (len(labels), len(names))
    return labels.to_numpy(), shape, None if stars is None else tuple(stars), held
