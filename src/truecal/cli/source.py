"""Where predictions come from: the options every verb shares, and reading what they point at."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import truecal as tc
from truecal.cli.estimators import classes_by_word, select_option, selected_columns, selection_of
from truecal.cli.output import Command, note
from truecal.errors import FileError, InputError
from truecal.inference.conclusion import RowCounts
from truecal.predictions import files, frames, readers

if TYPE_CHECKING:
    from truecal.predictions.selection import Selection


@dataclass(frozen=True)
class Source:
    """What the user said about the input."""

    file: str
    label: str | None = None
    probs: str | None = None
    logits: str | None = None
    weights: str | None = None
    clusters: str | None = None
    by: tuple[str, ...] = ()
    combine: bool = False
    classes: str | None = None
    pos_label: str | None = None
    quiet: bool = False
    also: tuple[str, ...] = ()  # further files, for the verbs that can scan
    engine: str | None = None
    drop_null: bool = False
    percent: bool = False
    words: str | None = None
    preset: str | None = None
    select: tuple[str, ...] = ()
    unnormalised: bool = False
    judge: str | None = None

    @property
    def name(self) -> str:
        if self.also:
            return f"{len(self.also) + 1} files"
        if self.file == "-":
            return "standard input"
        # Patterns and folders as they were typed
        return Path(self.file).name if Path(self.file).is_file() else self.file


def input_options(command: Command) -> Command:
    """Add the argument FILE and the options that say which of its columns are what; the command receives one `source`."""
    return click.argument("file", metavar="FILE", type=click.Path())(column_options(command))


def scan_options(command: Command) -> Command:
    """Add the same for a verb that can also scan: FILE may be a pattern, a folder or several files."""
    argument = click.argument("file", metavar="FILE...", nargs=-1, required=True, type=click.Path())
    return argument(_receiving(command, [*_COLUMNS[:-1], _ENGINE, _COLUMNS[-1]]))


def column_options(command: Command) -> Command:
    """Add the options alone, for a verb that reads several files: its `source` has no file yet."""
    return _receiving(command, _COLUMNS)


def _receiving(command: Command, columns: Sequence[Callable[..., Any]]) -> Command:
    @wraps(command)
    def received(file: str | tuple[str, ...] | None = None, **options: Any) -> Any:
        if "" in (file if isinstance(file, tuple) else (file,)):  # an unset shell variable, not the current folder
            raise click.UsageError("a FILE is the empty string; is a shell variable unset?")
        names = Source.__dataclass_fields__.keys() & options.keys()
        first, *also = file if isinstance(file, tuple) else (file or "",)
        given = {name: options.pop(name) for name in names}
        return command(source=Source(first, also=tuple(also), **given), **options)

    for option in reversed(columns):
        received = option(received)
    return received


def predictions_in(command: Command) -> Command:
    """Add --score, --probs and --logits, of which one may be given; the command receives `probs` and `logits`."""

    @wraps(command)
    def received(score: str | None, probs: str | None, logits: str | None, **options: Any) -> Any:
        if sum(option is not None for option in (score, probs, logits)) > 1:
            raise click.UsageError("--score, --probs and --logits exclude each other; give one")
        return command(probs=probs if score is None else score, logits=logits, **options)

    for option in (
        click.option("--logits", metavar="COLUMNS", help="The same as logits, e.g. 'z_*'."),
        click.option("--probs", metavar="COLUMNS", help="Class probabilities, e.g. 'p_*' (npz: an array)."),
        click.option("--score", metavar="COLUMN", help="Column of P(positive), for two classes."),
    ):
        received = option(received)
    return received


by_option = click.option(
    "--by", metavar="COLUMN", multiple=True, help="One answer per value of this column; repeatable."
)


_ENGINE = click.option(
    "--engine",
    type=click.Choice(["polars", "duckdb", "spark", "dask"]),
    help="Scan out of core with this engine (patterns, folders and several files: polars unless said otherwise).",
)
_PRESETS = ["stated", "options", "options-per-character", "agreement"]
_COLUMNS = (
    click.option("--label", metavar="COLUMN", help="Column of true labels: class indices or names."),
    predictions_in,
    click.option("--pos-label", metavar="NAME", help="The positive of two classes.  [default: the last in order]"),
    click.option("--weights", "--weight", "weights", metavar="COLUMN", help="Column of row weights."),
    click.option(
        *("--clusters", "--cluster", "clusters"),
        metavar="COLUMN",
        help="Rows that share a value here are not independent (patient, question).",
    ),
    click.option("--judge", metavar="COLUMNS", help="Verdicts of a judge for every row; labels may then be missing."),
    click.option("--drop-null", is_flag=True, help="Leave out rows with missing values, and say how many."),
    click.option("--percent", is_flag=True, help="Probabilities are percent: 90% or 90; goes together with --words."),
    click.option("--words", metavar="WORD=P,...", help="Probabilities that words stand for: likely=0.8,unsure=0.5."),
    click.option("--preset", type=click.Choice(_PRESETS), help="Which confidence of a language model is judged."),
    click.option("--unnormalised", is_flag=True, help="One probability per class; the rows need not sum to 1."),
    select_option,
    click.option(
        *("--classes", "--class-names", "classes"),
        metavar="A,B,...",
        help="Class names in the order of the labels 0, 1, ..., or @FILE with one per line.",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Do not say what was read."),
)


@dataclass(frozen=True)
class Loaded:
    """Checked predictions, for logits the logits themselves, how many rows were read and dropped, and what else to know.

    `whole` are all rows, of which --select took `preds`.
    """

    preds: "tc.Predictions"
    whole: "tc.Predictions"
    counts: RowCounts
    logits: Any = None
    notes: tuple[str, ...] = ()
    select: "Selection | None" = None


def load(source: Source) -> "tc.Predictions":
    """Read and check the predictions; say on stderr what was read."""
    return load_all(source).preds


def load_all(source: Source) -> Loaded:
    """Do the same, keeping the logits where the file holds logits."""
    with as_file(source.file) as path:
        reading = readers.read_file(path, wanted_of(source))
    whole = reading.preds
    select = _selected(source, whole)
    rows = None if select is None else select.mask(whole)
    preds = whole if select is None else select(whole)
    if not source.quiet:
        chosen = "" if select is None else f"; judged are {len(preds)} where {select}"
        note(f"read {len(whole)} rows from {source.name}: {reading.summary}{chosen}")
    dropped = (f"{reading.dropped} rows with missing values were left out",) if reading.dropped else ()
    notes = (*reading.notes, *_several_models(whole, source), *dropped)
    logits = reading.logits if reading.logits is None or rows is None else reading.logits[rows]
    counts = RowCounts(len(whole) + reading.dropped, len(preds), reading.dropped, "" if select is None else str(select))
    return Loaded(preds, whole, counts, logits, notes, select)


def _selected(source: Source, preds: "tc.Predictions") -> "Selection | None":
    kinds = {name: np.asarray(preds.columns[name]).dtype.kind for name in selected_columns(source.select)}
    return selection_of(source.select, classes_by_word(preds), kinds)


def _several_models(preds: "tc.Predictions", source: Source) -> tuple[str, ...]:
    """Return a note where the rows of several models are judged as if they were of one."""
    if "model" not in preds.columns or "model" in source.by:
        return ()
    models = len(set(map(str, preds.columns["model"].tolist())))
    if models < 2:
        return ()
    return (f"the rows of {models} models are judged together; --by model gives one answer each",)


def wanted_of(source: Source) -> readers.Wanted:
    """Return what the options ask of a file."""
    return readers.Wanted(
        label=source.label,
        probs=source.probs,
        logits=source.logits,
        weights=source.weights,
        clusters=source.clusters,
        by=tuple(dict.fromkeys((*source.by, *selected_columns(source.select)))),
        classes=class_names(source.classes),
        pos_label=source.pos_label,
        percent=source.percent,
        words=_word_values(source.words),
        drop_null=source.drop_null,
        preset=source.preset,
        normalized=not source.unnormalised,
        judge=source.judge,
    )


def open_columns(path: Path) -> tuple[Any, list[str]]:
    """Return the frame in a file and its columns; no frame, but the names of the arrays, for npz."""
    if files.kind_of(path) == "npz":
        return None, list(files.read_arrays(path))
    frame = files.read_frame(path)
    if not len(frame):
        raise FileError(f"{path} has no rows")
    return frame, list(frame.columns)


def outputs_of(path: Path, frame: Any, wanted: str) -> tuple[Any, list[str]]:
    """Return the values of the prediction columns (or array) and the names of those columns."""
    if frame is None:
        arrays = files.read_arrays(path)
        if wanted not in arrays:
            raise InputError(f"{path.name} has no array {wanted!r}; it has {', '.join(arrays)}")
        return arrays[wanted], [wanted]
    names, _ = frames.matching(list(frame.columns), wanted, "predictions")
    return (frame[names[0]].to_numpy() if len(names) == 1 else frame.select(names).to_numpy()), names


def class_names(given: str | None) -> list[str] | None:
    """Return the names in --classes, or in the file it points at."""
    if given is None:
        return None
    if not given.startswith("@"):
        return [name.strip() for name in given.split(",")]
    try:
        return Path(given[1:]).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FileError(f"cannot read the class names in {given[1:]}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read the class names in {given[1:]}: it is not a text file") from error


def _word_values(given: str | None) -> dict[str, float] | None:
    """Return the probabilities in --words."""
    if given is None:
        return None
    values: dict[str, float] = {}
    for part in given.split(","):
        word, equals, value = part.rpartition("=")
        try:
            values[word.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not word.strip():
            raise click.UsageError(f"--words is WORD=P,..., such as likely=0.8,unsure=0.5, not {part!r}")
    return values


@contextmanager
def as_file(file: str) -> Iterator[Path]:
    """Open the file itself, or standard input copied to a temporary file, whose first bytes tell its format."""
    if file != "-":
        yield files.existing(file)
        return
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise FileError("standard input is empty")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        path.write_bytes(data)
        yield path
