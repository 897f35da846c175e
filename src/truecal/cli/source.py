"""Where predictions come from: the options every verb shares, and reading what they point at."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truecal.errors import FileError, InputError
from truecal.predictions.readers.columns import Choice, choose

if TYPE_CHECKING:
    from truecal.predictions import Predictions

_MAGIC = ((b"PAR1", ".parquet"), (b"PK\x03\x04", ".npz"), (b"{", ".jsonl"))


@dataclass(frozen=True)
class Source:
    """What the user said about the input."""

    file: str
    label: str | None = None
    probs: str | None = None
    logits: str | None = None
    weight: str | None = None
    cluster: str | None = None
    by: str | None = None
    class_names: str | None = None
    quiet: bool = False
    also: tuple[str, ...] = ()  # further files, for the verbs that can scan
    engine: str | None = None
    drop_null: bool = False

    @property
    def name(self) -> str:
        if self.also:
            return f"{len(self.also) + 1} files"
        if self.file == "-":
            return "standard input"
        return (
            Path(self.file).name if Path(self.file).is_file() else self.file
        )  # patterns and folders as they were typed


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument FILE and the options that say which of its columns are what; the command receives one `source`.

    `by_option` is separate, for the verbs that give one answer per group.
    """
    return click.argument("file", metavar="FILE")(column_options(command))


def independent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same without --cluster, for a verb that takes rows as independent."""
    return click.argument("file", metavar="FILE")(_receiving(command, [o for o in _COLUMNS if o is not _CLUSTER]))


def scan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a verb that can also scan: FILE may be a pattern, a folder or several files; --engine and --drop-null."""
    return click.argument("file", metavar="FILE...", nargs=-1, required=True)(
        _receiving(command, [*_COLUMNS[:-1], *_SCANNING, _COLUMNS[-1]])
    )


def column_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options alone, for a verb that reads several files: its `source` has no file yet."""
    return _receiving(command, _COLUMNS)


def _receiving(command: Callable[..., Any], columns: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    def received(
        score: str | None, probs: str | None, file: str | tuple[str, ...] | None = None, **options: Any
    ) -> Any:
        if sum(option is not None for option in (score, probs, options["logits"])) > 1:
            raise click.UsageError("--score, --probs and --logits exclude each other; give one")
        names = Source.__dataclass_fields__.keys() & options.keys()
        first, *also = file if isinstance(file, tuple) else (file or "",)
        said = {name: options.pop(name) for name in names}
        return command(
            source=Source(first, probs=probs if score is None else score, also=tuple(also), **said), **options
        )

    received.__doc__, received.__name__ = command.__doc__, command.__name__
    if hasattr(command, "__click_params__"):
        received.__click_params__ = command.__click_params__  # type: ignore[attr-defined]
    for option in reversed(columns):
        received = option(received)
    return received


by_option = click.option("--by", metavar="COLUMN", help="One answer per value of this column.")
_CLUSTER = click.option(
    "--cluster", metavar="COLUMN", help="Rows that share a value here are not independent (patient, question)."
)
_SCANNING = (
    click.option(
        "--engine",
        type=click.Choice(["polars", "duckdb", "spark", "dask"]),
        help="Scan out of core with this engine (patterns, folders and several files: polars unless said otherwise).",
    ),
    click.option("--drop-null", is_flag=True, help="Leave out rows with missing values, and say how many."),
)
_COLUMNS = (
    click.option("--label", metavar="COLUMN", help="Column of true labels: class indices or names."),
    click.option("--score", metavar="COLUMN", help="Column of P(positive), for two classes."),
    click.option("--probs", metavar="COLUMNS", help="Class probabilities, e.g. 'p_*' (npz: an array)."),
    click.option("--logits", metavar="COLUMNS", help="The same as logits, e.g. 'z_*'."),
    click.option("--weight", metavar="COLUMN", help="Column of row weights."),
    _CLUSTER,
    click.option("--class-names", metavar="A,B,...", help="Class names in column order, or @FILE with one per line."),
    click.option("--quiet", "-q", is_flag=True, help="Do not say what was read."),
)


@dataclass(frozen=True)
class Loaded:
    """Checked predictions, for logits the logits themselves, and how many rows --drop-null left out."""

    preds: "Predictions"
    logits: Any = None
    dropped: int = 0


def load(source: Source) -> "Predictions":
    """Read and check the predictions; say on stderr what was read."""
    return load_all(source).preds


def load_all(source: Source) -> Loaded:
    """:func:`load`, keeping the logits where the file holds logits."""
    with as_file(source.file) as path:
        loaded, choice, columns = _load(path, source)
    if not source.quiet:
        gone = f", {loaded.dropped} rows with missing values left out" if source.drop_null else ""
        click.echo(f"read {len(loaded.preds)} rows from {source.name}: {choice.describe(columns)}{gone}", err=True)
    return loaded


def choose_from(columns: Sequence[str], source: Source) -> Choice:
    """The columns that the user named, and those told from the names of the others."""
    other = [name for name in (source.weight, source.cluster, source.by) if name is not None]
    return choose(columns, label=source.label, probs=source.probs, logits=source.logits, other=other)


def _load(path: Path, source: Source) -> tuple[Loaded, Choice, list[str]]:
    from truecal.predictions import Predictions, read

    frame, columns = open_columns(path)
    choice = choose_from(columns, source)
    dropped = 0
    if source.drop_null and frame is not None:
        frame, dropped = _without_nulls(frame, choice, source)
    if source.by is not None and (frame is None or source.by not in columns):
        kinds = "npz files have no columns to group by" if frame is None else f"the columns are {', '.join(columns)}"
        raise InputError(f"there is no column {source.by!r} for --by; {kinds}")
    named: dict[str, Any] = {"label": choice.label, "weights": source.weight, "clusters": source.cluster}
    where: dict[str, Any] = {"probs": choice.probs, "logits": choice.logits}
    names = class_names(source.class_names)
    if frame is None:
        preds = read(path, classes=names, **named, **where)
    elif names is not None and choice.label in columns and frame[choice.label].dtype.is_numeric():
        preds = _numbered(frame, names, named, where)
    elif names is None and "*" not in (choice.probs or choice.logits or "") and _is_text(frame, choice.label):
        first = frame[choice.label][0]
        raise InputError(
            f"labels are text (first {first!r}); list the classes with --class-names, the positive one last"
        )
    else:
        preds = Predictions.from_frame(frame, classes=names, **named, **where)
    logits = None if choice.logits is None else outputs_of(path, frame, choice.logits)[0]
    return Loaded(preds, logits, dropped), choice, columns


def _without_nulls(frame: Any, choice: Choice, source: Source) -> tuple[Any, int]:
    """The rows in which nothing that is needed is missing, and how many others there were."""
    from truecal.predictions.readers.frames import matching

    wanted = choice.probs if choice.probs is not None else choice.logits
    assert wanted is not None
    single = [name for name in (choice.label, source.weight, source.cluster) if name is not None]
    needed = [*matching(frame.columns, wanted, "predictions")[0], *matching(frame.columns, single, "label")[0]]
    kept = frame.drop_nulls(needed)
    if not len(kept):
        raise InputError(f"all {len(frame)} rows have missing values in {', '.join(needed)}; nothing is left to judge")
    return kept, len(frame) - len(kept)


def open_columns(path: Path) -> tuple[Any, list[str]]:
    """The frame in a file and its columns; no frame, but the names of the arrays, for npz."""
    from truecal.predictions.readers.files import read_frame

    if path.suffix == ".npz":
        return None, _npz_names(path)
    frame = read_frame(path)
    if not len(frame):
        raise FileError(f"{path.name} has no rows")
    return frame, list(frame.columns)


def outputs_of(path: Path, frame: Any, wanted: str) -> tuple[Any, list[str]]:
    """The values of the prediction columns (or array) and the names of those columns."""
    from truecal.predictions.readers.frames import matching

    if frame is None:
        from truecal.predictions.readers.files import read_arrays

        arrays = read_arrays(path)
        if wanted not in arrays:
            raise InputError(f"{path.name} has no array {wanted!r}; it has {', '.join(arrays)}")
        return arrays[wanted], [wanted]
    names, _ = matching(list(frame.columns), wanted, "predictions")
    return (frame[names[0]].to_numpy() if len(names) == 1 else frame.select(names).to_numpy()), names


def _is_text(frame: Any, column: str) -> bool:
    return column in frame.columns and len(frame) > 0 and str(frame[column].dtype) in ("String", "Categorical", "Enum")


def _numbered(frame: Any, names: Sequence[str], named: dict[str, Any], where: dict[str, Any]) -> "Predictions":
    """Numeric labels with class names: the names are numbers too, or the labels are positions in the list of names."""
    from truecal.predictions import Predictions
    from truecal.predictions.border import check_classes

    if all(name.lstrip("-").isdigit() for name in names):
        return Predictions.from_frame(frame, classes=[int(name) for name in names], **named, **where)
    preds = Predictions.from_frame(frame, **named, **where)
    return replace(preds, classes=check_classes(names, preds.class_count))


def _npz_names(path: Path) -> list[str]:
    from zipfile import BadZipFile, ZipFile

    if not path.is_file():
        raise FileError(f"there is no file {path}")
    try:
        with ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (BadZipFile, OSError) as error:
        raise FileError(f"{path.name} is damaged or not an npz file") from error


def class_names(given: str | None) -> list[str] | None:
    """The names in --class-names, or in the file it points at."""
    if given is None:
        return None
    if not given.startswith("@"):
        return [name.strip() for name in given.split(",")]
    try:
        return Path(given[1:]).read_text().splitlines()
    except OSError as error:
        raise FileError(f"cannot read the class names in {given[1:]}: {error.strerror}") from error


@contextmanager
def as_file(file: str) -> Iterator[Path]:
    """The file itself, or standard input copied to a temporary file whose suffix tells its format."""
    if file != "-":
        path = Path(file)
        if not path.is_file():
            raise FileError(f"there is no file {path}")
        yield path
        return
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise FileError("standard input is empty")
    suffix = next((suffix for magic, suffix in _MAGIC if data.lstrip().startswith(magic)), ".csv")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{suffix}"
        path.write_bytes(data)
        yield path
