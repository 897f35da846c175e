"""Where predictions come from and how they are judged: the options that commands share, and reading what they name."""

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from glob import has_magic
from math import inf
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import click
import numpy as np

import truecal as tc
from truecal import names
from truecal.cli.command import Count, Fraction, NumberRange, Parsed, Seed, Words
from truecal.cli.output import note
from truecal.errors import FileError, InputError
from truecal.inference.conclusion import RowCounts
from truecal.predictions import Selection, files, readers

# ----------------------------------------------------------------------------------------------------
# Values of options


def _parse_class_names(text: str) -> list[str]:
    """Return class names separated by commas, or those in the file of "@FILE", one per line.

    >>> _parse_class_names("cat, dog")
    ['cat', 'dog']
    """
    if not text.startswith("@"):
        return [name.strip() for name in text.split(",")]
    return read_text(text[1:], "class names").splitlines()


def read_text(file: str, content: str) -> str:
    """Read a UTF-8 text file; refuse one that cannot be read, where `content` is what it should hold ("class names")."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise FileError(f"cannot read the {content} in {file}: {reason}") from error


def parse_pairs(text: str) -> dict[str, str]:
    """Parse "NAME=VALUE,..." to values by name; raise ValueError for a name that is empty or repeated, as without "=".

    >>> parse_pairs("likely=0.8,unsure=0.5")
    {'likely': '0.8', 'unsure': '0.5'}
    """
    pairs = [part.rpartition("=") for part in text.split(",")]
    values = {name.strip(): value for name, _, value in pairs}
    if "" in values or len(values) < len(pairs):
        raise ValueError(text)
    return values


def _parse_numbers_by_name(text: str) -> dict[str, float]:
    """Parse "likely=0.8,unsure=0.5" to numbers by name.

    >>> _parse_numbers_by_name("likely=0.8,unsure=0.5")
    {'likely': 0.8, 'unsure': 0.5}
    """
    return {name: float(value) for name, value in parse_pairs(text).items()}


def _parse_limits(text: str) -> tuple[float, float] | None:
    """Parse LOW:HIGH, where a missing end is infinite; None if the text is no interval, or ":" alone.

    >>> _parse_limits("0.5:1"), _parse_limits("40:"), _parse_limits("a:b"), _parse_limits(":")
    ((0.5, 1.0), (40.0, inf), None, None)
    """
    low, colon, high = text.partition(":")
    try:
        return (float(low or -inf), float(high or inf)) if colon and text != ":" else None
    except ValueError:
        return None


def _parse_scale(text: str) -> dict[str, tuple[float, float]]:
    """Parse an answer scale such as "low=0:0.33,high=0.66:1" to (low, high) by word; raise ValueError for infinite limits.

    >>> _parse_scale("low=0:0.33,high=0.66:1")
    {'low': (0.0, 0.33), 'high': (0.66, 1.0)}
    """
    scale = {word: _parse_limits(span) or (-inf, inf) for word, span in parse_pairs(text).items()}
    if inf in {abs(limit) for limits in scale.values() for limit in limits}:
        raise ValueError(text)
    return scale


Scale = Annotated[
    dict[str, tuple[float, float]],
    Parsed(_parse_scale, "WORD=LOW:HIGH,... with different words, such as low=0:0.1,high=0.1:1"),
]
NumbersByName = Annotated[
    dict[str, float], Parsed(_parse_numbers_by_name, "NAME=NUMBER,..., such as likely=0.8,unsure=0.5")
]
Norm = Annotated[float, NumberRange(1)]  # inf is the maximum

# ----------------------------------------------------------------------------------------------------
# --select and --lens


def classes_by_word(preds: "tc.Predictions") -> dict[str, object]:
    """Map the text of every class to the class; indices where classes have no names.

    >>> classes_by_word(tc.Predictions.from_probs([0.2], [0]))
    {'0': 0, '1': 1}
    """
    return {str(name): name for name in preds.classes or range(preds.class_count)}


def selected_columns(select: Sequence[str]) -> tuple[str, ...]:
    """List the columns that --select names, without repeats, "label" and "output".

    >>> selected_columns(["site=a", "output=0.5:1", "age=40:", "site=b"])
    ('site', 'age')
    """
    return tuple(
        dict.fromkeys(name for word in select if (name := _split_selection(word)[0]) not in ("label", "output"))
    )


def parse_selection(select: Sequence[str], classes: Mapping[str, object], kinds: Mapping[str, str]) -> Selection | None:
    """Combine all of --select by `and`; None without any.

    `classes` are the classes by their text; `kinds` is the numpy kind of every column ("U" if absent), which says whether LOW:HIGH
    is a range.

    >>> print(parse_selection(["label=dog", "age=40:65"], {"dog": "dog"}, {"age": "i"}))
    label is dog and age in [40, 65]
    """
    selection = None
    for word in select:
        name, values = _split_selection(word)
        limits, kind = _parse_limits(values), kinds.get(name, "U")
        if name == "label":
            part = tc.by_label(*(classes.get(value, value) for value in values.split(",")))
        elif name == "output":
            if limits is None:
                raise InputError(f"--select output is LOW:HIGH, such as output=0.5:1, not {word!r}")
            low, high = limits
            part = tc.by_output(low=0.0 if low == -inf else low, high=1.0 if high == inf else high)
        elif limits is not None and kind in "iuf":
            part = tc.by_column(name, low=limits[0], high=limits[1])
        else:
            part = tc.by_column(name, *(_typed_value(name, value, kind) for value in values.split(",")))
        selection = part if selection is None else selection & part
    return selection


def _split_selection(word: str) -> tuple[str, str]:
    """Split NAME=VALUES of --select at the first "="; refuse an empty part.

    >>> _split_selection("site=a,b")
    ('site', 'a,b')
    """
    name, _, values = word.partition("=")
    if not name or not values:
        raise InputError(
            f"--select is label=NAME,..., output=LOW:HIGH, COLUMN=VALUE,... or COLUMN=LOW:HIGH, not {word!r}"
        )
    return name, values


def _typed_value(column: str, word: str, kind: str) -> object:
    """Convert text to the type of a column by its dtype kind: bool ("b"), float ("i", "u", "f"), else text.

    >>> _typed_value("age", "40", "i"), _typed_value("smoker", "True", "b"), _typed_value("site", "40", "U")
    (40.0, True, '40')
    """
    if kind == "b":
        if word.lower() not in ("true", "false"):
            raise InputError(f"column {column!r} holds true and false; select one of them, not {word!r}")
        return word.lower() == "true"
    try:
        return float(word) if kind in "iuf" else word
    except ValueError as error:
        raise InputError(f"column {column!r} holds numbers; select one, or a range LOW:HIGH, not {word!r}") from error


def make_lens(word: str, classes: Mapping[str, object]) -> "tc.lenses.Lens | None":
    """Make the lens of --lens, None for "auto", which leaves the choice to the library; `classes` are the classes by their text.

    >>> make_lens("top-5", {}), make_lens("class=3", {"3": 3}), make_lens("auto", {})
    (TopK(k=5), OneClass(name=3), None)
    """
    if word.startswith("grouping="):
        return _read_grouping(word.removeprefix("grouping="), classes)
    lens: tc.lenses.Lens | None = None if word == "auto" else names.lens_named(word, classes).of(tc.lenses)
    return lens


def _read_grouping(file: str, classes: Mapping[str, object]) -> "tc.lenses.Lens":
    """Read a Grouping lens from a JSON file {"group": ["class", ...], ...}; `classes` are the classes by their text."""
    try:
        groups = json.loads(read_text(file, "grouping"))
    except json.JSONDecodeError as error:
        raise FileError(f"cannot read the grouping in {file}: it is not JSON ({error})") from error
    if not isinstance(groups, dict) or not all(isinstance(members, list) for members in groups.values()):
        raise FileError(f'{file} must hold one JSON object of lists of classes, such as {{"pet": ["cat", "dog"]}}')
    return tc.Grouping({name: [classes.get(str(m), m) for m in members] for name, members in groups.items()})


# ----------------------------------------------------------------------------------------------------
# Estimators


@dataclass(frozen=True)
class EstimatorOptions:
    """How the error is measured.

    --estimator NAME  How to measure; 'all' shows every estimator side by side.  [default: rank-series; bins of several
                      probabilities where the lens judges those]
    --bins N          Number of bins (binned, label-binned, debiased).
    --scheme SCHEME   Bins of equal width or equal mass.
    --norm P          1 mean absolute, 2 root mean square, inf maximum.
    --level P         Confidence level of intervals and gates.
    --seed N          Seed of random numbers.
    """

    estimator: Annotated[str | None, click.Choice([*names.ESTIMATORS, *names.CITED, "all"])] = None
    bins: Count | None = None
    scheme: Literal["width", "mass"] | None = None
    norm: Norm | None = None
    level: Fraction = 0.95
    seed: Seed = 0

    def estimators(self, lens: "tc.lenses.Lens | None") -> "list[tc.estimators.Estimator]":
        """Make the estimators for a lens: GeneralizedECE if it judges several probabilities, all for 'all', else one.

        Refuses settings that the lens or the estimator does not have.
        """
        if lens is not None and lens.several:
            given = [name for name in ("estimator", "bins", "scheme") if getattr(self, name) is not None]
            if given:
                raise InputError(
                    f"--{given[0]} is for one probability per row; this lens judges several by bins of whole predictions, "
                    "which estimator=tc.GeneralizedECE(binning=...) chooses in Python"
                )
            return [tc.GeneralizedECE() if self.norm is None else tc.GeneralizedECE(norm=self.norm)]
        if self.estimator == "all":
            return [make_estimator(name) for name in names.ESTIMATORS]
        return [make_estimator(self.estimator or "rank-series", bins=self.bins, scheme=self.scheme, norm=self.norm)]


def make_estimator(
    name: str, *, bins: int | None = None, scheme: str | None = None, norm: float | None = None
) -> "tc.estimators.Estimator":
    """Make an estimator by its word with the settings that are not None; refuse a setting that it does not have.

    >>> make_estimator("binned", bins=10)
    BinnedECE(bins=10, scheme='width', norm=1, ties='keep', closed='left')
    """
    named = names.estimator_named(name)
    settings = {"bins": bins, "scheme": scheme, "norm": norm}
    options = {option: value for option, value in settings.items() if value is not None}
    for option in options.keys() - {field.name for field in fields(getattr(tc.estimators, named.name))}:
        raise InputError(f"the {name} estimator has no --{option}")
    estimator: tc.estimators.Estimator = named.of(tc.estimators, **options)
    return estimator


# ----------------------------------------------------------------------------------------------------
# Files and columns

# Pairs of labels whose second is the positive one by convention
_POSITIVE_LAST = {
    *(("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("0", "1"), ("0.0", "1.0")),
    *(("negative", "positive"), ("neg", "pos"), ("wrong", "correct")),
}


@dataclass(frozen=True)
class OutputColumns:
    """Columns of the predictions.

    --score COLUMN    Column of P(positive), for two classes.
    --probs COLUMNS   Class probabilities, e.g. 'p_*' or cat,dog,fox (npz: an array).
    --logits COLUMNS  The same as logits, e.g. 'z_*'.
    """

    score: str | None = None
    probs: str | None = None
    logits: str | None = None

    def __post_init__(self) -> None:
        """Refuse more than one of --score, --probs and --logits."""
        if sum(column is not None for column in (self.score, self.probs, self.logits)) > 1:
            raise click.UsageError("--score, --probs and --logits exclude each other; give one")

    @property
    def probabilities(self) -> str | list[str] | None:
        """Column, pattern or list of columns of probabilities: --probs (split at commas unless a pattern), else --score.

        >>> OutputColumns(probs="p_*").probabilities, OutputColumns(probs="cat,dog").probabilities
        ('p_*', ['cat', 'dog'])
        """
        if self.probs is not None and "," in self.probs and "*" not in self.probs:
            return self.probs.split(",")
        return self.probs if self.score is None else self.score


@dataclass(frozen=True)
class PlainFile(OutputColumns):
    """A file of predictions, and which of its columns are what.

    --label COLUMN                Column of true labels: class indices or names.
    --pos-label NAME              The positive of two classes.  [default: the last in order]
    --weights, --weight COLUMN    Column of row weights.
    --clusters, --cluster COLUMN  Rows that share a value here are not independent (patient, question).
    --judge COLUMNS               Verdicts of a judge for every row; labels may then be missing.
    --drop-null                   Leave out rows with missing values, and report how many.
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

    metavar: ClassVar[str] = "FILE"

    label: str | None = None
    pos_label: str | None = None
    weights: str | None = None
    clusters: str | None = None
    judge: str | None = None
    drop_null: bool = False
    percent: bool = False
    words: NumbersByName | None = None
    preset: Literal["stated", "options", "options-per-character", "agreement"] | None = None
    multilabel: bool = False
    unnormalised: bool = False
    select: Words = ()
    classes: Annotated[list[str] | None, Parsed(_parse_class_names, "A,B,...")] = None
    quiet: bool = False
    files: Words = ()
    lens: str = "auto"
    engine: Literal["polars", "duckdb", "spark", "dask"] | None = None
    by: Words = ()

    @property
    def file(self) -> str:
        """The only file, or the first.

        >>> PlainFile(files=("a.csv", "b.csv")).file
        'a.csv'
        """
        return self.files[0]

    @property
    def name(self) -> str:
        """Name of the input for messages: that of a file, the pattern or folder as typed, "standard input", or "3 files".

        >>> PlainFile(files=("a.csv", "b.csv")).name, PlainFile(files=("-",)).name, PlainFile(files=("logs/*.csv",)).name
        ('2 files', 'standard input', 'logs/*.csv')
        """
        if len(self.files) != 1:
            return f"{len(self.files)} files"
        if self.file == "-":
            return "standard input"
        return Path(self.file).name if Path(self.file).is_file() else self.file

    @property
    def scans(self) -> bool:
        """Whether files are scanned: with an engine, several files, an address, a folder or a pattern.

        >>> PlainFile(files=("a.csv",)).scans, PlainFile(files=("a.csv", "b.csv")).scans, PlainFile(files=("logs/*.csv",)).scans
        (False, True, True)
        """
        if self.engine or len(self.files) > 1 or "://" in self.file:
            return True
        return Path(self.file).is_dir() or (has_magic(self.file) and not Path(self.file).exists())

    def read_request(self) -> readers.ReadRequest:
        """Return the options as a request of the readers, with the columns of --by and --select to keep."""
        options = {f.name: getattr(self, f.name) for f in fields(readers.ReadRequest) if hasattr(self, f.name)}
        columns = tuple(dict.fromkeys((*self.by, *selected_columns(self.select))))
        return readers.ReadRequest(
            **{**options, "probs": self.probabilities, "by": columns, "normalized": not self.unnormalised}
        )


@dataclass(frozen=True)
class OneFile(PlainFile):
    """A file that is judged through a lens.

    --lens LENS  What is judged: auto (the positive class of two, else the top label), top-label, positive, all-label,
                 class-wise, canonical, top-K, class=NAME or grouping=FILE (JSON: lists of classes by the name of their group).
    """


@dataclass(frozen=True)
class OptionalFile(OneFile):
    """A file that is judged through a lens, and may be left out."""

    metavar: ClassVar[str] = "[FILE]"


@dataclass(frozen=True)
class Files(OneFile):
    """Files that may be scanned.

    --engine ENGINE  Scan out of core with this engine (patterns, folders and several files: polars by default).
    """

    metavar: ClassVar[str] = "FILE..."


@dataclass(frozen=True)
class GroupedFiles(Files):
    """Files that may be scanned together, judged by groups.

    --by COLUMN  One answer per value of this column; may be repeated.
    """


# ----------------------------------------------------------------------------------------------------
# Rows in memory


@dataclass(frozen=True)
class Loaded:
    """Predictions in memory: `whole` are all rows, `preds` those of --select, `logits` (None of probabilities) of `preds`.

    `counts` are rows read, judged and dropped; `notes` are warnings for the reply.
    """

    preds: "tc.Predictions"
    whole: "tc.Predictions"
    counts: RowCounts
    lens: "tc.lenses.Lens | None" = None  # as --lens names it; None leaves the choice to the library
    logits: Any = None
    notes: tuple[str, ...] = ()
    select: Selection | None = None


def load(source: PlainFile) -> Loaded:
    """Read and check the predictions of one file; print on stderr what was read, unless --quiet.

    Notes tell of an assumed positive class, of several models and of rows left out. `preds` are the rows of --select, `whole` all
    rows; logits, if the file has them, are those of the selected rows.
    """
    with as_file(source.file) as path:
        try:
            reading = readers.read_file(path, source.read_request())
        except InputError as error:
            if "arguments are swapped" in str(error):  # the message names the arguments of Python
                raise InputError("labels are fractions and scores whole numbers: swap --label and --score") from error
            raise
    all_preds = reading.preds
    kinds = {name: np.asarray(all_preds.columns[name]).dtype.kind for name in selected_columns(source.select)}
    classes = classes_by_word(all_preds)
    select = parse_selection(source.select, classes, kinds)
    preds = all_preds if select is None else select(all_preds)
    notes = list(reading.notes)
    other_class = ""
    if source.classes is None and source.pos_label is None and all_preds.binary and _positive_is_assumed(all_preds):
        negative, positive = map(str, all_preds.classes or ())
        option = f"--pos-label {shlex.quote(negative)}"
        other_class = f" ({option} if the score is that of {negative!r})"
        notes.append(
            f"the score is taken as the probability of {positive!r}, the last of {negative!r} and {positive!r} in alphabetical "
            f"order; if it is that of {negative!r}, add {option}"
        )
    if not source.quiet:
        rows = "" if select is None else f"; selected {len(preds)} where {select}"
        note(f"read {len(all_preds)} rows from {source.name}: {reading.summary}{other_class}{rows}")
    models = set(map(str, all_preds.columns["model"].tolist())) if "model" in all_preds.columns else ()
    if len(models) > 1 and "model" not in source.by:
        notes.append(f"the rows of {len(models)} models are judged together; --by model gives one answer each")
    if reading.dropped:
        notes.append(f"{reading.dropped} rows with missing values were left out")
    logits = reading.logits if reading.logits is None or select is None else reading.logits[select.mask(all_preds)]
    counts = RowCounts(
        len(all_preds) + reading.dropped, len(preds), reading.dropped, "" if select is None else str(select)
    )
    return Loaded(preds, all_preds, counts, make_lens(source.lens, classes), logits, tuple(notes), select)


def _positive_is_assumed(preds: "tc.Predictions") -> bool:
    """Whether the positive class is the second in alphabetical order only: names are none of `_POSITIVE_LAST`.

    False without class names and for answers.

    >>> _positive_is_assumed(tc.Predictions.from_probs([0.2, 0.8], ["cat", "dog"]))
    True
    """
    if preds.classes is None or preds.of_answers:
        return False
    return tuple(str(name).lower() for name in preds.classes) not in _POSITIVE_LAST


@contextmanager
def as_file(file: str) -> Iterator[Path]:
    """Yield the path of an existing file, or for "-" of a temporary copy of standard input, named without an ending."""
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
