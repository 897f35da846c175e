"""Where predictions come from: the options that every command shares, and reading what they point at."""

import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import numpy as np

import truecal as tc
from truecal import names
from truecal.cli.command import Parsed, Words
from truecal.cli.estimators import classes_by_word, make_lens, parse_selection, selected_columns
from truecal.cli.output import note
from truecal.errors import FileError, InputError
from truecal.inference.conclusion import RowCounts
from truecal.predictions import files, readers

if TYPE_CHECKING:
    from truecal.lenses.lens import Lens
    from truecal.predictions.selection import Selection


def _class_names(text: str) -> list[str]:
    """Return class names with commas between them, or those in @FILE."""
    if not text.startswith("@"):
        return [name.strip() for name in text.split(",")]
    try:
        return Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise FileError(f"cannot read the class names in {text[1:]}: {reason}") from error


def _word_values(text: str) -> dict[str, float]:
    """Return the probabilities that words stand for."""
    pairs = [part.rpartition("=") for part in text.split(",")]
    if not all(word.strip() for word, *_ in pairs):
        raise ValueError(text)
    return {word.strip(): float(value) for word, _, value in pairs}


# Two labels of which everybody takes the second as positive
_POSITIVE_LAST = {
    *(("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("0", "1"), ("0.0", "1.0")),
    *(("negative", "positive"), ("neg", "pos"), ("wrong", "correct")),
}


@dataclass(frozen=True)
class OutputColumns:
    """Columns of the predictions.

    --score COLUMN    Column of P(positive), for two classes.
    --probs COLUMNS   Class probabilities, e.g. 'p_*' (npz: an array).
    --logits COLUMNS  The same as logits, e.g. 'z_*'.
    """

    score: str | None = None
    probs: str | None = None
    logits: str | None = None

    def __post_init__(self) -> None:
        if sum(column is not None for column in (self.score, self.probs, self.logits)) > 1:
            raise click.UsageError("--score, --probs and --logits exclude each other; give one")

    @property
    def probabilities(self) -> str | None:
        """Column, pattern or array of probabilities."""
        return self.probs if self.score is None else self.score


@dataclass(frozen=True)
class Input(OutputColumns):
    """Files of predictions, and which of their columns are what.

    --label COLUMN                Column of true labels: class indices or names.
    --pos-label NAME              The positive of two classes.  [default: the last in order]
    --weights, --weight COLUMN    Column of row weights.
    --clusters, --cluster COLUMN  Rows that share a value here are not independent (patient, question).
    --judge COLUMNS               Verdicts of a judge for every row; labels may then be missing.
    --drop-null                   Leave out rows with missing values, and say how many.
    --percent                     Probabilities are percent: 90% or 90; goes together with --words.
    --words WORD=P,...            Probabilities that words stand for: likely=0.8,unsure=0.5.
    --preset PRESET               Which confidence of a language model is judged.
    --multilabel                  Several yes-or-no labels per row: --probs 'p_*' and --label 'y_*', or two columns of lists.
    --unnormalised                One probability per class; the rows need not sum to 1.
    --select WHICH                Judge only these rows: label=NAME,..., output=LOW:HIGH, COLUMN=VALUE,... or
                                  COLUMN=LOW:HIGH; repeat to narrow.
    --classes, --class-names A,B,...  Class names in the order of the labels 0, 1, ..., or @FILE with one per line.
    --quiet, -q                   Do not print what was read.
    """

    label: str | None = None
    pos_label: str | None = None
    weights: str | None = None
    clusters: str | None = None
    judge: str | None = None
    drop_null: bool = False
    percent: bool = False
    words: Annotated[dict[str, float] | None, Parsed(_word_values, "WORD=P,..., such as likely=0.8,unsure=0.5")] = None
    preset: Literal["stated", "options", "options-per-character", "agreement"] | None = None
    multilabel: bool = False
    unnormalised: bool = False
    select: Words = ()
    classes: Annotated[list[str] | None, Parsed(_class_names, "A,B,...")] = None
    quiet: bool = False
    files: Words = ()
    engine: str | None = None
    by: Words = ()
    lens: str = "auto"

    @property
    def file(self) -> str:
        """The only file, or the first."""
        return self.files[0]

    @property
    def name(self) -> str:
        """What was read, in words: patterns and folders as they were typed."""
        if len(self.files) != 1:
            return f"{len(self.files)} files"
        if self.file == "-":
            return "standard input"
        return Path(self.file).name if Path(self.file).is_file() else self.file

    @property
    def scans(self) -> bool:
        """Whether files are scanned. A plain file is read into memory unless an engine is named."""
        if self.engine or len(self.files) > 1 or "://" in self.file:
            return True
        return Path(self.file).is_dir() or (has_magic(self.file) and not Path(self.file).exists())

    def read_request(self) -> readers.ReadRequest:
        """Return the options as a request of the readers."""
        same = ("label", "logits", "weights", "clusters", "pos_label", "percent", "drop_null", "preset", "judge")
        options: dict[str, Any] = {name: getattr(self, name) for name in (*same, "multilabel", "classes", "words")}
        return readers.ReadRequest(
            **options,
            probs=self.probabilities,
            by=tuple(dict.fromkeys((*self.by, *selected_columns(self.select)))),
            normalized=not self.unnormalised,
        )


def _as_files(ctx: click.Context, param: click.Parameter, value: Any) -> tuple[str, ...]:
    """Return the FILE arguments as a tuple; refuse an empty one."""
    paths = tuple(value or ()) if not isinstance(value, str) else (value,)
    if "" in paths:  # an unset shell variable, not the current folder
        raise click.UsageError("a FILE is the empty string; is a shell variable unset?")
    return paths


def _files_argument(metavar: str, **settings: Any) -> click.Argument:
    """Make the argument FILE, one or several."""
    return click.Argument(["files"], metavar=metavar, type=click.Path(), callback=_as_files, **settings)


_ENGINE = click.Option(
    ["--engine"],
    type=click.Choice(["polars", "duckdb", "spark", "dask"]),
    help="Scan out of core with this engine (patterns, folders and several files: polars by default).",
)
_LENS = click.Option(
    ["--lens"],
    default="auto",
    show_default=True,
    metavar="LENS",
    help=f"What is judged: auto (the positive class of two, else the top label), {', '.join(names.LENSES)}, top-K, class=NAME "
    "or grouping=FILE (JSON: lists of classes by the name of their group).",
)
PlainFile = Annotated[Input, _files_argument("FILE")]  # judged as it is, without a lens
PlainOptionalFile = Annotated[Input, _files_argument("[FILE]", required=False)]
OneFile = Annotated[PlainFile, _LENS]
OptionalFile = Annotated[PlainOptionalFile, _LENS]
Models = Annotated[Input, _files_argument("FILE...", nargs=-1, required=True), _LENS]
Files = Annotated[Models, _ENGINE]  # may be scanned


def grouped(help_: str = "One answer per value of this column; may be repeated.") -> click.Option:
    """Make the option --by."""
    return click.Option(["--by"], multiple=True, metavar="COLUMN", help=help_)


GroupedFiles = Annotated[Files, grouped()]


@dataclass(frozen=True)
class Loaded:
    """Predictions: `whole` are all rows, of which --select took `preds`; for logits also the logits of `preds`."""

    preds: "tc.Predictions"
    whole: "tc.Predictions"
    counts: RowCounts
    lens: "Lens | None" = None  # as --lens names it; None leaves the choice to the library
    logits: Any = None
    notes: tuple[str, ...] = ()
    select: "Selection | None" = None


def load(source: Input) -> Loaded:
    """Read and check predictions; print on stderr what was read."""
    with as_file(source.file) as path:
        try:
            reading = readers.read_file(path, source.read_request())
        except InputError as error:
            if "arguments are swapped" in str(error):  # the message names the arguments of Python
                raise InputError("the label holds fractions and the score labels: swap --label and --score") from error
            raise
    whole = reading.preds
    kinds = {name: np.asarray(whole.columns[name]).dtype.kind for name in selected_columns(source.select)}
    select = parse_selection(source.select, classes_by_word(whole), kinds)
    preds = whole if select is None else select(whole)
    notes = list(reading.notes)
    other_class = ""
    if source.classes is None and source.pos_label is None and whole.binary and _is_guess(whole):
        negative, positive = map(str, whole.classes or ())
        option = f"--pos-label {shlex.quote(negative)}"
        other_class = f" ({option} if the score is that of {negative!r})"
        notes.append(
            f"the score is taken as the probability of {positive!r}, the last of {negative!r} and {positive!r} in alphabetical "
            f"order; if it is that of {negative!r}, add {option}"
        )
    if not source.quiet:
        rows = "" if select is None else f"; selected {len(preds)} where {select}"
        note(f"read {len(whole)} rows from {source.name}: {reading.summary}{other_class}{rows}")
    models = set(map(str, whole.columns["model"].tolist())) if "model" in whole.columns else ()
    if len(models) > 1 and "model" not in source.by:
        notes.append(f"the rows of {len(models)} models are judged together; --by model gives one answer each")
    if reading.dropped:
        notes.append(f"{reading.dropped} rows with missing values were left out")
    logits = reading.logits if reading.logits is None or select is None else reading.logits[select.mask(whole)]
    counts = RowCounts(len(whole) + reading.dropped, len(preds), reading.dropped, "" if select is None else str(select))
    return Loaded(preds, whole, counts, make_lens(source.lens, whole), logits, tuple(notes), select)


def _is_guess(preds: "tc.Predictions") -> bool:
    """Return whether the positive class was taken as the second of two whose names do not say so, as no and yes do."""
    if preds.classes is None or preds.of_answers:
        return False
    return tuple(str(name).lower() for name in preds.classes) not in _POSITIVE_LAST


@contextmanager
def as_file(file: str) -> Iterator[Path]:
    """Open the file itself, or standard input copied to a temporary file, whose first bytes tell its format."""
    if file != "-":
        yield files.existing_file(file)
        return
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise FileError("standard input is empty")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        path.write_bytes(data)
        yield path
