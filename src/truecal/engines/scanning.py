"""`tc.scan`: files and tables reduced to sketches by the engine that holds them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

import truecal as tc
from truecal import options
from truecal.engines.cells import Gathered, Group, gather, refuse_unfit
from truecal.engines.columns import (
    SELECTED,
    ColumnRequest,
    SourceColumns,
    arrays_as_lists,
    as_filter,
    choose_columns,
    refuse_unfit_types,
    text_labels,
    with_present,
    with_probs,
)
from truecal.engines.sources import (
    Engine,
    engine_errors,
    files_of,
    folder_values,
    frame_of,
    installed,
    is_path,
    is_text,
    open_frame,
)
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.estimators.base import Estimator, as_estimator, with_level
from truecal.estimators.bins import combine_powers
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import frames, validation
from truecal.predictions.selection import Selection, check_selection, name_groups
from truecal.special import root
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Many files as one: which may be read together, and a refusal of those that do not belong together before any row is read

_MAX_PARTS = 100  # by choice: into which a scan is split for its progress


@dataclass(frozen=True)
class FilePart:
    """Files that are read together, and the `by` columns that their folders hold for all their rows (day=2026-05-01)."""

    files: list[str]
    constants: dict[str, str | None]


def parts_of(
    files: Sequence[str],
    engine: Engine,
    request: ColumnRequest,
    *,
    apart: bool,
) -> list[FilePart]:
    """Split files into parts that are read in order: all Parquet files at once if their columns have the same types.

    A file of text is a part of its own: it is parsed in memory, and released before the next. Every file must have the requested
    columns; those of `request.by` may stand in the names of its folders instead (day=2026-05-01/...), and files of different
    values are then read apart. With `apart`, for progress, files of one group are split into up to 100 parts, except in Spark,
    which distributes the files itself.
    """
    local = not any("://" in file for file in files)
    if is_text(files):
        if local:
            files = [file for file in files if Path(file).stat().st_size] or files  # an empty file has no rows
        return [FilePart([file], _folder_groups(file, request)) for file in files]
    if not local:
        return [FilePart(list(files), {})]
    schemas = [_schema_of_file(file, engine) for file in files]
    folder_constants = [
        {k: v for k, v in _folder_groups(file, request).items() if k not in schemas[0]} for file in files
    ]
    for file, schema, values in zip(files, schemas, folder_constants, strict=True):
        refuse_different_columns(file, schema, values, files[0], list(schemas[0]), request)
        refuse_unfit_types(schema, frames.matching(list(schema), request.predictions, "predictions")[0], request)
    if any(schema != schemas[0] for schema in schemas):
        return [FilePart([file], values) for file, values in zip(files, folder_constants, strict=True)]
    groups: dict[tuple[object, ...], FilePart] = {}
    for file, values in zip(files, folder_constants, strict=True):
        groups.setdefault(tuple(values.items()), FilePart([], values)).files.append(file)
    if not apart or engine.name == "spark" or len(groups) > 1:
        return list(groups.values())
    count = min(len(files), _MAX_PARTS)
    return [
        FilePart(list(files[i * len(files) // count : (i + 1) * len(files) // count]), folder_constants[0])
        for i in range(count)
    ]


def _folder_groups(file: str, request: ColumnRequest) -> dict[str, str | None]:
    """Return the `by` columns that stand in the names of a file's folders, with their values."""
    return {name: value for name, value in folder_values(file).items() if name in request.by}


def _schema_of_file(file: str, engine: Engine) -> dict[str, Any]:
    """Return the types (narwhals) of the columns of a file by name, read by polars if installed (the fastest), else by `engine`."""
    frame, _ = open_frame([file], Engine("polars") if installed("polars") else engine)
    return dict(frame.collect_schema())


def refuse_different_columns(
    file: str,
    schema: Mapping[str, Any],
    folders: Mapping[str, object],
    first: str,
    firsts: list[str],
    request: ColumnRequest,
) -> None:
    """Refuse a file that lacks requested columns or has unfit ones, or other columns of predictions than the first file.

    `schema` has its columns as the file names them, which some engines do not keep (names that differ in case), `folders` the
    columns in the names of its folders; `firsts` are the columns of the file `first`.
    """
    name, first_name = Path(file).name, Path(first).name
    try:
        outputs = frames.matching(list(schema), request.predictions, "predictions")[0]
        used = [*request.needed, *request.by]
        frames.matching([*schema, *folders], used, "label, weights and groups")
        frames.refuse_twins([*schema, *folders], [*outputs, *used])
    except InputError as error:
        raise FileError(f"{name}: {error}") from error
    expected = frames.matching(firsts, request.predictions, "predictions")[0]
    if outputs != expected:
        unshared = next((name for name in (*outputs, *expected) if (name in outputs) != (name in expected)), outputs[0])
        raise FileError(
            f"{name} and {first_name} have different columns for {request.predictions!r} ({len(outputs)} and {len(expected)}, e.g. "
            f"{unshared!r}); scan files of one kind at a time"
        )


# ----------------------------------------------------------------------------------------------------
# From sketches to an Estimate: what `tc.measure` returns, for data reduced to cells


def measure_classes(
    sketches: Sequence[tc.Sketch],
    shares: Float64s,
    *,
    estimator: Estimator | None = None,
    lens: str,
    level: float = 0.95,
) -> tc.Estimate:
    """Measure one error over all classes from their sketches: the p-th root of sum_k share_k * error_k^p, as :class:`ClassWise`.

    `shares` (k,) are the weights of the classes, `lens` what is judged, in words. `parts` of the Estimate holds the error of every
    class; there is no interval and no test.
    """
    chosen = _estimator_at_level(estimator, level)
    norm = chosen.norm
    parts = [chosen(sketch) for sketch in sketches]
    ranges = [chosen.sketch_bound(s.to_profile(), part) for s, part in zip(sketches, parts, strict=True)]
    power = np.array([[float(part.power), r.low, r.high] for part, r in zip(parts, ranges, strict=True)])
    overall = combine_powers(power, shares, norm)
    value, low, high = root(overall, norm).tolist()
    return tc.Estimate(
        value=value,
        power=float(overall[0]),
        n=max(part.n for part in parts),
        effective_n=max(float(part.effective_n) for part in parts),
        estimator=chosen,
        norm=norm,
        direction=float(shares @ np.array([float(part.direction) for part in parts])),
        lens=lens,
        warnings=tuple(dict.fromkeys(note for part in parts for note in part.warnings)),
        parts=root(power[:, 0], norm),
        sketch_error=min(max(high - value, value - low, 0.0) + 1e-12, 1.0),
        sketch_bound="probed" if any(r.bound == "probed" for r in ranges) else "proved",
    )


def _estimator_at_level(estimator: Estimator | None, level: float) -> Estimator:
    """Return the estimator, RankSeries() by default, with this level of its interval.

    >>> _estimator_at_level(None, 0.9).level
    0.9
    """
    return with_level(tc.RankSeries() if estimator is None else as_estimator(estimator), level)


# ----------------------------------------------------------------------------------------------------
# tc.scan: calibration errors of data that stay where they are, in one pass


@dataclass(frozen=True)
class Scan:
    """Hold the sketches of one pass over the data, which any estimator can measure without another pass.

    Attributes
    ----------
    sketches : mapping of tuple to tuple of Sketch
        By group (one value per `by` column; the empty tuple without `by`): one sketch per class under a class-wise lens, else one.
    by : tuple of str
        The columns grouped by.
    lens : Lens
        What is judged.
    lens_name : str
        The same in words.
    classes : int
        Number of classes.
    shares : ndarray of shape (classes,) or None
        Weight of every class under a class-wise lens.
    dropped : int
        Rows left out because something in them was missing (only with drop_null).
    engine : str
        What read the data; of text, which is parsed and summed in this process, the engine that was named.
    selection : str
        Which rows were judged, in words; empty for all.
    notes : tuple of str
        Warnings added to every estimate.

    See Also
    --------
    truecal.scan : The function that returns it.
    """

    sketches: Mapping[Group, tuple[tc.Sketch, ...]]
    by: tuple[str, ...]
    lens: Lens
    lens_name: str
    classes: int
    shares: Float64s | None
    dropped: int
    engine: str
    selection: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the number of rows and groups, what is judged, and the engine."""
        groups = f"{len(self.sketches)} groups by {', '.join(self.by)}, " if self.by else ""
        return f"Scan({self.rows:,} rows, {groups}{self.lens_name}, {self.engine})"

    @property
    def sketch(self) -> tc.Sketch:
        """Sketch of all rows, groups merged; refuse a class-wise lens, which has one per class."""
        parts = self._merge_groups()
        if len(parts) > 1:
            raise InputError(f"the scan holds {len(parts)} sketches, one per class; use .sketches")
        return parts[0]

    @property
    def names(self) -> dict[Group, str]:
        """Name of every group, in the order of its values: these joined by commas, "missing" for a missing one."""
        return name_groups(list(self.sketches))

    @property
    def rows(self) -> int:
        """Number of rows judged."""
        return sum(max(part.rows for part in parts) for parts in self.sketches.values())

    def measure(self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0) -> tc.Estimate:
        """Measure all rows together, groups added up.

        Parameters
        ----------
        estimator : Estimator, default None
            As in :func:`truecal.measure`; None is the rank series.
        level : float, default 0.95
            Confidence level of the interval.
        rng : int, default 0
            Seed of redrawn labels.

        Returns
        -------
        estimate : Estimate
            With its interval, test and `sketch_error`.
        """
        return self._measure_parts(self._merge_groups(), estimator, level, rng)

    def groups(
        self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0
    ) -> dict[Group, tc.Estimate]:
        """Measure every group.

        Parameters
        ----------
        estimator : Estimator, default None
            As in :func:`truecal.measure`; None is the rank series.
        level : float, default 0.95
            Confidence level of the interval.
        rng : int, default 0
            Seed of redrawn labels.

        Returns
        -------
        estimates : dict of tuple to Estimate
            In the order of the groups' values.
        """
        return {group: self._measure_parts(self.sketches[group], estimator, level, rng) for group in self.names}

    def _merge_groups(self) -> tuple[tc.Sketch, ...]:
        """Merge the sketches of all groups: a tuple of one sketch, or of one per class under a class-wise lens."""
        # All at once: added one by one, thousands of groups would be copied thousands of times.
        return tuple(tc.Sketch().merge(*parts) for parts in zip(*self.sketches.values(), strict=True))

    def _measure_parts(
        self, parts: Sequence[tc.Sketch], estimator: Estimator | None, level: float, rng: int
    ) -> tc.Estimate:
        """Measure one sketch, or the sketches of all classes as one class-wise error by `shares`, with the notes of the scan."""
        if self.shares is None:
            estimate = tc.measure(parts[0], estimator=estimator, level=level, rng=rng)
            return self.with_notes(estimate.replace(lens=self.lens_name))
        return self.with_notes(
            measure_classes(parts, self.shares, estimator=estimator, lens=self.lens_name, level=level)
        )

    def with_notes(self, estimate: tc.Estimate) -> tc.Estimate:
        """Add to an estimate what this scan left out.

        Parameters
        ----------
        estimate : Estimate
            Measured from one of the sketches.

        Returns
        -------
        estimate : Estimate
            With the selection, and a warning of rows left out.
        """
        dropped = (f"{self.dropped} rows with missing values were left out",) if self.dropped else ()
        return estimate.replace(warnings=(*dropped, *self.notes, *estimate.warnings), selection=self.selection)


def scan(
    source: Any,
    *,
    label: str,
    score: str | None = None,
    probs: str | Sequence[str] | None = None,
    logits: str | Sequence[str] | None = None,
    lens: Lens | None = None,
    weights: str | None = None,
    by: str | Sequence[str] | None = None,
    select: Selection | None = None,
    classes: Sequence[object] | None = None,
    engine: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    drop_null: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Scan:
    """Reduce predictions of any size to sketches in one pass, by polars, DuckDB, Spark or Dask.

    Parameters
    ----------
    source : str, Path, list of these, or data frame
        A path, a folder, a pattern such as "logs/*.parquet" (parquet, csv, jsonl; addresses such as s3:// as far as the engine
        reads them), or a frame: polars LazyFrame, DuckDB relation, PySpark or Dask DataFrame, or one in memory.
    label : str
        Column of labels: class indices, or names. Two names beside predictions of two classes are taken in alphabetical order,
        which takes a pass of its own; others are listed in `classes`.
    score : str, default None
        Column of P(positive). One of `score`, `probs` and `logits` is given.
    probs : str or sequence of str, default None
        Class probabilities: a pattern such as "p_*", a list of columns, or one column of lists.
    logits : str or sequence of str, default None
        The same of logits, turned into probabilities by the engine; one column is the log odds of the positive class.
    lens : TopLabel, OneClass or ClassWise, default None
        What is judged; None is the positive class of two, the top label of more.
    weights : str, default None
        Column of weights.
    by : str or sequence of str, default None
        One answer per value of these columns; times with a zone are in UTC. A folder named day=2026-05-01 counts as a column of
        text.
    select : Selection, default None
        Which rows are judged, such as ``tc.by_column("site", "north")``.
    classes : sequence, default None
        Class names in the order of the columns, the positive one of two last.
    engine : {"polars", "duckdb", "spark", "dask"}, SparkSession, DuckDB connection or Dask client, default None
        What reads files; None is polars, else DuckDB. A session is used as it is. A frame is run by the engine that holds it.
    storage_options : mapping, default None
        Credentials and the like for addresses, handed on to polars or Dask.
    drop_null : bool, default False
        Leave out rows with missing values and report their number; otherwise they are an error that counts them.
    progress : callable, default None
        Called with (files done, files in all); files are then read in up to 100 parts, one after the other.

    Returns
    -------
    scan : Scan
        Sketches of all rows, or of every group.

    Raises
    ------
    FileError
        A file is not there, damaged, named twice, or unlike the others; the message names it.
    InputError
        A column is not there, or rows are missing or invalid; the message counts them and names the first file that has one.

    Notes
    -----
    Only sums over the 25,025 cells of a sketch leave the engine. Cells are found by additions, multiplications and comparisons
    that every engine rounds alike, so that all of them give the same sketch. Parquet is read by the engine, in bounded memory; a
    file of text is parsed in memory, one file at a time, by the reader of :func:`truecal.read`.

    See Also
    --------
    truecal.read : Files that fit into memory.
    truecal.Accumulator : A stream.

    Examples
    --------
    >>> import polars as pl, numpy as np, truecal as tc
    >>> from truecal.engines import scan
    >>> rng = np.random.default_rng(0)
    >>> p, day = rng.random(4000), np.repeat(["mon", "tue"], 2000)
    >>> frame = pl.LazyFrame({"p": p, "y": rng.random(4000) < np.where(day == "mon", p, p**2), "day": day})
    >>> result = scan(frame, label="y", score="p", by="day")
    >>> {day: round(float(est), 3) for (day,), est in result.groups().items()}
    {'mon': 0.009, 'tue': 0.183}
    """
    columns_by = () if by is None else tuple(by) if isinstance(by, (list, tuple)) else (by,)
    options.texts([label, *columns_by], "columns")
    request = ColumnRequest(label, score, probs, logits, weights, columns_by, classes)
    request.predictions  # noqa: B018 (refuses before anything is read)
    check_lens(lens)
    check_selection(select)
    if lens is not None:
        lens.pushed_down()  # refuses before anything is read

    def reduce_frame(frame: Any) -> tuple[Gathered, SourceColumns, Lens]:
        """Reduce a lazy frame to sketches; return also its columns and the lens, which may be the default one of these."""
        gather_rows = _gather_partitions if frame.implementation.is_dask() else _gather_frame
        with engine_errors("the engine could not read the data"):
            frame = arrays_as_lists(frame)
            columns = choose_columns(frame, request)
            judge = default_lens(columns.specimen) if lens is None else lens
            return gather_rows(frame, columns, judge, select), columns, judge

    def reduce_source(source: Any) -> tuple[Gathered, SourceColumns, Lens, str, int]:
        """Reduce all parts of a source; return sketches, columns, lens, name of the engine, and number of dropped rows.

        Text labels without classes take a pass of their own, which sets the classes of `request`.
        """
        nonlocal request
        parts = []
        for lazy, used in _lazy_frames(source, engine, storage_options, request, progress):
            if request.classes is None and text_labels(lazy, request) is not None:
                whole = _lazy_frames(source, engine, storage_options, request, None)
                tables = [text_labels(frame, request) for frame, _ in whole]
                if any(table is None for table in tables):
                    raise InputError(
                        f"labels in {label!r} are text in some files and numbers in others; give them one type"
                    )
                values = {value for table in tables for value in table.collect()[label].to_list()}
                if values:
                    request = replace(request, classes=validation.name_two_classes(list(values)))
            parts.append((*reduce_frame(lazy), used))
        if not parts:
            raise InputError("the source has no rows; at least one is needed")
        _, columns, judge, used = parts[0]
        gathered = reduce(add, (part[0] for part in parts))
        return gathered, columns, judge, used, refuse_unfit(gathered, columns, drop_null=drop_null)

    with getattr(engine, "as_current", nullcontext)():  # a Dask client that is not the default one
        try:
            gathered, columns, judge, used, dropped = reduce_source(source)
        except InputError as error:
            raise _name_failing_file(error, source, reduce_source) from error
    if not gathered.sketches:
        where = f" where {select}" if select is not None else ""
        reason = f"{dropped} rows have missing values" if dropped else "the source is empty"
        raise InputError(
            f"no row is left to judge{where}; {reason}{' or the selection is too narrow' if where else ''}"
        )
    if select is None and (columns.count == 2 or judge.pushed_down().index is None):
        _warn_of_probabilities(gathered, columns)
    return Scan(
        sketches=gathered.sketches,
        by=columns_by,
        lens=judge,
        lens_name=judge.describe(columns.specimen),
        classes=columns.count,
        shares=judge.shares(columns.specimen),
        dropped=dropped,
        engine=used,
        selection="" if select is None else str(select),
    )


def _gather_frame(frame: Any, columns: SourceColumns, lens: Lens, select: Selection | None) -> Gathered:
    """Reduce a lazy frame to sketches of the rows that `select` keeps (None: all); logits are turned into probabilities first.

    `columns` are those of the frame, as `choose_columns` found them.
    """
    schema = frame.collect_schema()
    # in float64: Dask forms no groups of float16
    groups = [nw.col(name).cast(nw.Float64) for name in columns.by if schema[name].is_float()]
    frame = with_present(frame.with_columns(*groups) if groups else frame, columns)
    frame, columns = with_probs(frame, columns)
    if select is not None:
        frame = frame.with_columns(as_filter(select, columns, schema).fill_null(False).alias(SELECTED))
    return gather(frame, columns, lens, selected=select is not None)


def _gather_partitions(frame: Any, columns: SourceColumns, lens: Lens, select: Selection | None) -> Gathered:
    """Reduce a Dask frame to sketches as `_gather_frame`: every worker its partitions, added up here."""
    import dask

    def task(partition: Any) -> Gathered:
        """Reduce one partition, a pandas frame, to sketches of the selected rows."""
        return _gather_frame(nw.from_native(partition).lazy(), columns, lens, select)

    partitions = nw.to_native(frame).to_delayed()
    return reduce(add, dask.compute(*(dask.delayed(task)(partition) for partition in partitions)))  # type: ignore[attr-defined,no-untyped-call]


def _warn_of_probabilities(gathered: Gathered, columns: SourceColumns) -> None:
    """Warn if all scores of k logits lie where logits in [0, 1] put them, as those of probabilities declared as logits do.

    That is between 1 / (1 + e (k - 1)) (1/2 for one column) and e / (e + k - 1). Silent without logits and for fewer than 10
    rows.
    """
    sketches = [sketch for parts in gathered.sketches.values() for sketch in parts if sketch.cells]
    if not columns.logits or sum(sketch.rows for sketch in sketches) < validation.SUSPICIOUS_ROWS:
        return
    other_classes = columns.count - 1
    lowest, highest = 0.5 if columns.binary else 1 / (1 + math.e * other_classes), math.e / (math.e + other_classes)
    if all(lowest <= sketch.low[0] and sketch.high[-1] <= highest for sketch in sketches):
        warnings.warn(validation.LOOK_LIKE_PROBABILITIES, TruecalWarning, stacklevel=3)


def _lazy_frames(
    source: Any,
    engine: Any,
    storage_options: Mapping[str, Any] | None,
    request: ColumnRequest,
    progress: Callable[[int, int], object] | None,
) -> Iterator[tuple[Any, str]]:
    """Yield (lazy frame, name of its engine) of every part of a source in order, with columns from the names of folders.

    `progress(files done, files in all)` is called before every part and at the end. Text files without rows are skipped if there
    are others; files of different columns are refused.
    """
    if not is_path(source):
        if engine is not None:
            raise InputError(f"engine={engine!r} is for files; a frame is run by the engine that holds it")
        frame = frame_of(source)
        yield frame, frame.implementation.value
        return
    on_progress = progress or (lambda done, of: None)
    files, done, engine = files_of(source), 0, Engine.of(engine, storage_options)
    first: list[str] | None = None
    for part in parts_of(files, engine, request, apart=progress is not None):
        on_progress(done, len(files))
        lazy, used = open_frame(part.files, engine)
        done += len(part.files)
        if is_text(part.files):
            schema = lazy.collect_schema()
            first = list(schema) if first is None else first
            refuse_different_columns(part.files[0], schema, part.constants, files[0], first, request)
            if len(files) > 1 and len(lazy.head(1).collect()) == 0:
                continue
            part = FilePart(part.files, {k: v for k, v in part.constants.items() if k not in schema})
        constants = [nw.lit(value, nw.String).alias(name) for name, value in part.constants.items()]
        yield (lazy.with_columns(*constants) if constants else lazy), used
    on_progress(done, len(files))


def _name_failing_file(error: InputError, source: Any, attempt: Callable[[Any], object]) -> InputError:
    """Return the error with the name of the first file for which `attempt` fails alone; as it is for one file or a frame."""
    files = files_of(source) if is_path(source) else []
    named = isinstance(error, FileError) and any(Path(file).name in str(error) for file in files)
    if len(files) < 2 or (named and " more: " not in str(error)):
        return error
    for file in files:
        try:
            attempt(file)
        except FileError as reason:
            return FileError(f"{Path(file).name}: {reason}") if Path(file).name not in str(reason) else reason
        except InputError:
            return InputError(f"{error} (first in {Path(file).name})")
    return error
