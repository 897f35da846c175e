"""Predictions that are too many to hold in memory: scanned into sketches; and `truecal sketch`, which keeps them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

import truecal as tc
from truecal import digits, names
from truecal.cli.command import Words, WriteFolder, WriteTo, command
from truecal.cli.input import GroupedFiles, PlainFile, make_lens, parse_selection, selected_columns
from truecal.cli.output import Reply, note, working
from truecal.engines import sources
from truecal.errors import InputError
from truecal.predictions import files, frames, readers
from truecal.writing import check_folder, check_output, write_folder

SKETCH = "sketch.npz"  # file of a group
_DETECTION_ROWS = 10_000  # of the first file, whose values identify columns that no name identifies
# Names of the parts of one dataset: part-0, 2026-05-01. Other names may be those of models.
_SHARD = re.compile(r"((part|shard|chunk|batch|day)[\W_]*)?[\d\W_]+", re.IGNORECASE)
_ONE_CLASS = "a class-wise scan has one sketch per class; judge one class with --lens class=NAME"


def is_sketch(file: str) -> bool:
    """Whether an .npz file holds a sketch, and not arrays of predictions; False for other or missing files.

    >>> is_sketch("missing.npz"), is_sketch("table.csv")
    (False, False)
    """
    if not file.endswith(".npz") or not Path(file).is_file():
        return False
    return str(files.read_arrays(Path(file)).get("format")) == "truecal.sketch"


def is_sketched(source: PlainFile) -> bool:
    """Whether the input is a sketch, or would be scanned into one."""
    return source.scans or is_sketch(source.file)


def read_sketch(source: PlainFile) -> "tc.Sketch":
    """Load the sketch in a file, or scan files of predictions into one; refuse a class-wise lens."""
    if is_sketch(source.file):
        return tc.Sketch.load(source.file)
    scan = scan_files(source if source.scans else replace(source, engine="polars"))
    if scan.shares is not None:
        raise InputError(_ONE_CLASS)
    return scan.sketch


def scan_files(source: PlainFile) -> "tc.engines.Scan":
    """Scan files in one pass, with columns detected as for a file in memory; print on stderr what was read, unless --quiet.

    Columns are detected from the types and first rows (_DETECTION_ROWS) of the first file. The scan is that of
    :func:`truecal.scan` with the lens in words, and with a note where rows of several models are pooled.
    """
    _refuse_row_options(source)
    paths = sources.files_of(list(source.files))
    frame = sources.open_frame(paths[:1], source.engine)[0]
    schema, classes = frame.collect_schema(), source.classes
    columns, taken = list(schema), [] if source.weights is None else [source.weights]
    choice = readers.choose_columns(
        columns, lambda: frame.head(_DETECTION_ROWS).collect(), source.read_request(), taken
    )
    frames.matching(columns, [choice.label], "label")
    frames.refuse_twins(columns, selected_columns(source.select))
    numeric = schema[choice.label].is_numeric()
    if classes is None and not numeric and not isinstance(choice.outputs, str):
        classes = list(choice.outputs)  # text labels are the names of listed columns
    outputs, stars = frames.match_outputs(columns, choice.outputs, classes)
    frames.class_names(outputs, choice.outputs, stars, classes, numeric=numeric)
    mapping = frames.label_columns(outputs) if numeric and stars is not None and len(outputs) > 1 else ""
    single_column = len(outputs) == 1 and not schema[outputs[0]].is_nested()
    kind = "logits" if choice.logits is not None else "score" if single_column else "probs"
    scan_classes, by_word = _scan_classes(classes, _class_words(source), numeric)
    dtypes = {name: schema[name] for name in selected_columns(source.select) if name in schema}
    # as the numpy kinds that `parse_selection` expects
    kinds = {name: "b" if t.is_boolean() else "f" if t.is_numeric() else "U" for name, t in dtypes.items()}
    named: dict[str, Any] = {kind: outputs if mapping else choice.outputs}
    with working(f"scanning {source.name}") as show:
        scan = tc.scan(
            paths,
            label=choice.label,
            lens=make_lens(source.lens, by_word),
            weights=source.weights,
            by=source.by or None,
            select=parse_selection(source.select, by_word, kinds),
            classes=scan_classes,
            engine=source.engine,
            drop_null=source.drop_null,
            progress=lambda done, of: show(f"scanning {source.name}: {done} of {of} files"),
            **named,
        )
    if not source.quiet:
        count = digits.count_of(len(paths), "file")
        dropped = f", {scan.dropped} rows with missing values left out" if source.drop_null else ""
        note(f"scanned {scan.rows} rows in {count} with {scan.engine}: {choice.describe(columns)}{mapping}{dropped}")
    description = f"class {class_name}" if (class_name := names.class_of(source.lens)) else scan.lens_name
    return replace(scan, lens_name=description, notes=_pooling_notes(source, paths, "model" in columns))


def _refuse_row_options(source: PlainFile) -> None:
    """Raise InputError for standard input, npz files and options that need rows in memory, such as --clusters."""
    if source.file == "-":
        raise InputError("standard input cannot be scanned; leave out --engine, or write it to a file first")
    if any(Path(file).suffix == ".npz" for file in source.files):
        raise InputError("npz files hold arrays, which no engine scans; leave out --engine and measure one at a time")
    for option in ("percent", "words", "unnormalised", "pos_label", "clusters", "judge", "multilabel"):
        if getattr(source, option):
            name = f"--{option.replace('_', '-')}"
            raise InputError(f"{name} needs the rows, and a scan keeps only sums; give one file, without --engine")


def _pooling_notes(source: PlainFile, files: Sequence[str], has_models: bool) -> tuple[str, ...]:
    """Return a note if the rows of several models are, or by the names of files may be, judged together; else nothing."""
    if "model" in source.by:
        return ()
    if has_models:
        parts = [[file] for file in files] if sources.is_text(files) else [files]
        columns = (sources.open_frame(part, source.engine)[0].select("model").unique().collect() for part in parts)
        models = len({model for column in columns for model in column["model"].to_list()})
        one_each = "judged together; --by model gives one answer each"
        return () if models < 2 else (f"the rows of {models} models are {one_each}",)
    stems = {Path(file).name.partition(".")[0] for file in source.files}
    if len(source.files) < 2 or all(_SHARD.fullmatch(stem) for stem in stems):
        return ()
    pooled = f"the rows of {len(source.files)} files are judged together, as those of one model"
    return (f"{pooled}; truecal compare judges every file by itself",)


def _class_words(source: PlainFile) -> list[str]:
    """Return the classes that --lens and --select name, as text.

    >>> _class_words(PlainFile(files=("a.csv",), select=("label=cat,dog",), lens="class=fox"))
    ['cat', 'dog', 'fox']
    """
    selected = [word.partition("=")[2].split(",") for word in source.select if word.startswith("label=")]
    return [*(name for words in selected for name in words), *filter(None, [names.class_of(source.lens)])]


def _scan_classes(
    classes: list[str] | None, words: Sequence[str], numeric: bool
) -> tuple[Sequence[object] | None, dict[str, object]]:
    """Return the classes of a scan (None: class indices), and the classes by their text; `words` are those that options name.

    >>> _scan_classes(None, ["3"], True), _scan_classes(["0", "1"], [], True), _scan_classes(["cat"], [], False)
    ((None, {'3': 3}), ([0, 1], {'0': 0, '1': 1}), (['cat'], {'cat': 'cat'}))
    """
    if classes is None:
        return None, {word: int(word) for word in words if word.isdigit()}
    if numeric and all(name.lstrip("-").isdigit() for name in classes):
        return [int(name) for name in classes], {name: int(name) for name in classes}
    return classes, dict(zip(classes, classes, strict=True))


def group_by(scan: "tc.engines.Scan", columns: Sequence[str]) -> "tc.engines.Scan":
    """Return the scan grouped by some of its columns, or by none: sketches of equal values are added."""
    if tuple(columns) == scan.by:
        return scan
    positions = [scan.by.index(column) for column in columns]
    parts: dict[tuple[object, ...], list[tuple[tc.Sketch, ...]]] = {}
    for group, sketches in scan.sketches.items():
        parts.setdefault(tuple(group[i] for i in positions), []).append(sketches)
    sums = {
        group: tuple(tc.Sketch().merge(*class_sketches) for class_sketches in zip(*members, strict=True))
        for group, members in parts.items()
    }
    return replace(scan, by=tuple(columns), sketches=sums)


def sketch_files(name: str) -> list[str]:
    """Return an .npz file itself, or all .npz files below a folder, sorted; none for another file.

    >>> sketch_files("day.npz"), sketch_files("day.csv")
    (['day.npz'], [])
    """
    path = Path(name)
    if path.suffix == ".npz" and not path.is_dir():
        return [name]
    files = path.rglob("*.npz") if path.is_dir() else ()
    return sorted(str(file) for file in files if "/.truecal-" not in file.as_posix())  # not what is being written


# ----------------------------------------------------------------------------------------------------
# `truecal sketch`


@click.group()
def sketch() -> None:
    """Store predictions as sketches: sums of scores and outcomes in fixed cells, small files that can be added.

    \b
    truecal sketch save logs/2026-05-01/*.parquet --out 2026-05-01.npz
    truecal sketch merge 2026-05-*.npz --out 2026-05.npz
    truecal sketch show 2026-05.npz
    """


@command(sketch)
def save(source: GroupedFiles, *, out: WriteFolder) -> Reply:
    """Write the sketch of the predictions in FILE, read in one pass and in bounded memory.

    With --by, OUT becomes a folder with one sketch per group, OUT/model=a/sketch.npz, which `truecal watch update` reads.

    --out FILE  The sketch to write; with --by a folder, one file per combination of values.
    """
    by = source.by
    if by:
        check_folder(out, SKETCH)
    else:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        check_output(out)
    scan = scan_files(source)
    if scan.shares is not None:
        raise InputError(_ONE_CLASS)
    if by:
        write_folder(out, lambda folder: _write_groups(scan, folder), SKETCH)
    else:
        scan.sketch.save(out)
    where = f"{len(scan.sketches)} groups below {out}" if by else out
    content = {"source": source.name, "path": out, "rows": scan.rows, "dropped": scan.dropped, "lens": scan.lens_name}
    text = f"wrote {where}: {scan.rows} rows, {scan.lens_name}"
    return Reply("sketch-written", {**content, "groups": len(scan.sketches)}, text)


def _write_groups(scan: "tc.engines.Scan", folder: Path) -> None:
    """Write the sketch of every group to column=value/.../sketch.npz, with names and values percent-encoded."""
    for group, (sums,) in scan.sketches.items():
        values = [sources.NO_VALUE if value is None else quote(str(value), safe="") for value in group]
        path = folder.joinpath(
            *(f"{quote(name, safe='')}={value}" for name, value in zip(scan.by, values, strict=True))
        )
        path.mkdir(parents=True, exist_ok=True)
        sums.save(path / SKETCH)


@command(sketch)
def merge(file: Words, *, out: WriteTo) -> Reply:
    """Add the sketches in FILE... up into one; they must judge the same scores. A folder stands for all sketches below it.

    --out FILE  The sketch to write.
    """
    total, count = _add_sketches(file)
    total.save(out)
    content = {"path": out, "rows": total.rows, "cells": total.cells, "sketches": count}
    text = f"wrote {out}: {total.rows} rows of {count} sketches in {total.cells} cells"
    return Reply("sketch-written", content, text)


@command(sketch)
def show(file: str) -> Reply:
    """Show what a sketch, or all sketches below a folder, hold: rows, cells, and the calibration error with its interval."""
    total, _ = _add_sketches([file])
    estimate = tc.measure(total)
    (row,) = estimate.frame()
    numbers = {name: row[name] for name in ("value", "low", "high", "level")}
    facts = {"rows": total.rows, "cells": total.cells, **numbers, "sketch_error": estimate.sketch_error}
    text = f"{total.rows} rows in {total.cells} cells\n{estimate}"
    return Reply("sketch", {"source": Path(file).name, **facts}, text)


def _add_sketches(paths: Sequence[str]) -> "tuple[tc.Sketch, int]":
    """Return the sum of the sketches in files and folders, and their number.

    Raises InputError for a file that is named twice; files of equal content are named on stderr, and both are counted.
    """
    files = [file for path in paths for file in sketch_files(path) or [path]]
    sources.refuse_twice(files)
    total = tc.Sketch().merge(*map(tc.Sketch.load, files))
    first: dict[bytes, str] = {}
    for file in files:  # no error: small groups may hold equal rows
        original = first.setdefault(sha256(Path(file).read_bytes()).digest(), file)
        if original != file:
            note(f"{file} and {original} hold the same sketch; if one is a copy, leave it out: its rows count twice")
    return total, len(files)
