"""A YAML file as values that remember their line, and all of its problems told at once.

PyYAML's safe loader composes the nodes, so nothing in a file is ever executed; anchors and aliases are refused, because a few
lines of them can stand for more values than fit in memory.
"""

import difflib
import glob
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from truecal.errors import FileError, InputError, extra
from truecal.study.metrics import GRID

# ----------------------------------------------------------------------------------------------------
# A YAML file as values that remember their line, and all of its problems told at once

_MOST_OF_A_LINE = 6  # problems of one line that are listed; the others are counted


@dataclass(frozen=True)
class Entry:
    """A value of the file and the line it starts on. Mappings hold {str: Entry}, lists hold [Entry], scalars Python values."""

    value: Any
    line: int

    def plain(self) -> Any:
        """The value without lines."""
        if isinstance(self.value, dict):
            return {name: entry.plain() for name, entry in self.value.items()}
        if isinstance(self.value, list):
            return [entry.plain() for entry in self.value]
        return self.value


@dataclass
class Problems:
    """Everything wrong with one file, gathered so that the user can correct all of it at once."""

    file: str
    listed: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        if (line, text) not in self.listed:
            self.listed.append((line, text))

    def refuse(self) -> None:
        """Raise if anything was found, naming every line; of many problems of one line the first few."""
        if not self.listed:
            return
        count = len(self.listed)
        lines = []
        for line, of_line in groupby(sorted(self.listed), key=itemgetter(0)):
            texts = [text for _, text in of_line]
            lines += [f"{self.file}:{line}: {text}" for text in texts[:_MOST_OF_A_LINE]]
            if len(texts) > _MOST_OF_A_LINE:
                lines.append(f"{self.file}:{line}: and {len(texts) - _MOST_OF_A_LINE} more")
        raise InputError("\n".join([f"{self.file} has {count} problem{'s' if count > 1 else ''}", *lines]))

    def keys(
        self, entry: Entry, known: Collection[str], *, what: str, required: Collection[str] = ()
    ) -> dict[str, Entry]:
        """The items of a mapping; unknown and missing names become problems, with the nearest name as a hint."""
        if not isinstance(entry.value, dict):
            self.add(entry.line, f"{what} must be a list of names and values, such as {next(iter(known))}: ...")
            return {}
        for name, item in entry.value.items():
            if name not in known:
                near = difflib.get_close_matches(name, list(known), 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                self.add(item.line, f"{what} has no option {name!r}; {hint}")
        for name in required:
            if name not in entry.value:
                self.add(entry.line, f"{what} needs {name!r}")
        return {name: item for name, item in entry.value.items() if name in known}

    def items(self, entry: Entry, *, what: str) -> list[Entry]:
        """The members of a list that must not be empty."""
        if not isinstance(entry.value, list) or not entry.value:
            self.add(entry.line, f"{what} must be a list with at least one member")
            return []
        return entry.value

    def of_type(self, entry: Entry, kind: type | tuple[type, ...], *, what: str, words: str) -> Any:
        """The scalar if it is of the kind asked for, else None and a problem. A boolean is not a number."""
        value = entry.value
        wants_bool = kind is bool or (isinstance(kind, tuple) and bool in kind)
        if not isinstance(value, kind) or (isinstance(value, bool) and not wants_bool):
            self.add(entry.line, f"{what} must be {words}, not {entry.plain()!r}")
            return None
        return value


def read_document(path: str | os.PathLike[str]) -> Entry:
    """The file's top entry. Raises for what is not YAML, is empty, has a name twice, or uses anchors."""
    yaml = extra("yaml")
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    problems = Problems(file.name)
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise FileError(f"{file} is empty")
        entry = _entry(root, loader, problems, set())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}" if mark is not None else ""
        reason = str(getattr(error, "problem", None) or error).splitlines()[0]
        raise FileError(f"{file.name}{where}: this is not YAML: {reason}") from error
    except RecursionError as error:
        raise FileError(f"{file.name}: values are nested too deeply to be those of a study") from error
    problems.refuse()
    return entry


def _entry(node: Any, loader: Any, problems: Problems, seen: set[int]) -> Entry:
    import yaml

    line = node.start_mark.line + 1
    if id(node) in seen:
        problems.add(line, "anchors and aliases (&, *) are not supported; write the value out")
        return Entry(None, line)
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return Entry([_entry(item, loader, problems, seen) for item in node.value], line)
    if not isinstance(node, yaml.MappingNode):
        try:
            return Entry(loader.construct_object(node), line)
        except ValueError as error:  # a date that does not exist, a number of thousands of digits
            problems.add(line, f"{node.value[:40]!r} cannot be read: {error}")
            return Entry(None, line)
    items: dict[str, Entry] = {}
    for key, value in node.value:
        name = str(key.value)
        if name in items:
            problems.add(key.start_mark.line + 1, f"{name!r} is given twice (first on line {items[name].line})")
        entry = _entry(value, loader, problems, seen)
        items[name] = Entry(entry.value, key.start_mark.line + 1)
    return Entry(items, line)


# ----------------------------------------------------------------------------------------------------
# Which prediction files a study consists of: listed one by one, or found by a pattern that names their parts

FIELDS = ("model", "family", "size", "dataset", "severity", "seed")
FORMATS = (".npz", ".csv", ".jsonl", ".ndjson", ".parquet", ".pq")
_NUMBER = r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?"
_MARK = re.compile(r"\{([^{}]*)\}|(\*+)")


@dataclass(frozen=True)
class Source:
    """One prediction file and whose predictions on what it holds."""

    path: Path
    line: int
    model: str
    dataset: str
    family: str | None = None
    size: float | None = None
    severity: float = 0.0
    seed: int = 0
    covariates: tuple[tuple[str, object], ...] = ()

    @property
    def who(self) -> tuple[str, str, float, int]:
        """What must be unique in a study."""
        return self.model, self.dataset, self.severity, self.seed

    @property
    def rows_of(self) -> tuple[str, float, int]:
        """Files that agree in this were made on the same rows."""
        return self.dataset, self.severity, self.seed

    def described(self) -> str:
        seed = f", seed {self.seed}" if self.seed else ""
        severity = f", severity {self.severity:g}" if self.severity else ""
        return f"{self.model!r} on {self.dataset!r}{severity}{seed}"


def to_number(value: Any) -> float | None:
    """A number, also one that YAML takes for text (25e6), or None."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def read_sources(
    problems: Problems, items: dict[str, Entry], folder: Path, covariates: tuple[str, ...] = ()
) -> list[Source]:
    """All files of a study in the order of the file, patterns in the order of their paths."""
    if "predictions" not in items:
        return []
    sources: list[Source] = []
    for entry in problems.items(items["predictions"], what="predictions"):
        sources += _of_entry(problems, entry, folder, covariates)
    if "models" in items:
        sources = _described(problems, items["models"], sources, covariates)
    first: dict[tuple[str, str, float, int], Source] = {}
    for source in sources:
        other = first.setdefault(source.who, source)
        if other is not source:
            same = "this file" if other.path == source.path else str(other.path)
            problems.add(
                source.line, f"{source.described()} is there twice: {source.path} and {same} (line {other.line})"
            )
    return sources


def _of_entry(problems: Problems, entry: Entry, folder: Path, covariates: tuple[str, ...]) -> list[Source]:
    names = (*FIELDS, *covariates)
    items = problems.keys(entry, ("file", "files", *names), what="an entry of predictions")
    if not items:
        return []
    given = {name: item for name, item in items.items() if name in names}
    if ("file" in items) == ("files" in items):
        problems.add(entry.line, "an entry of predictions needs file (one path) or files (a pattern), one of the two")
        return []
    where = items.get("file", items.get("files"))
    assert where is not None
    if not isinstance(where.value, str):
        problems.add(where.line, f"a path must be a text, not {where.plain()!r}")
        return []
    constants = {name: field_value(problems, name, item.value, item.line) for name, item in given.items()}
    if "file" in items:
        path = folder / where.value
        if not path.is_file():
            problems.add(where.line, f"there is no file {path}")
        return _made(problems, path, where.line, constants, entry)
    made: list[Source] = []
    for path, parts in _matches(problems, where, folder, constants, names):
        fields = {
            name: field_value(problems, name, text, where.line, f" in {path}")
            for name, text in {**parts, **_put_together(constants, parts)}.items()
        }
        made += _made(problems, path, where.line, {**constants, **fields}, entry)
    return made


def _put_together(constants: dict[str, Any], parts: dict[str, str]) -> dict[str, str]:
    """Texts that name parts of the path, such as dataset: "imagenet-c-{corruption}"."""
    texts = {}
    for name, value in constants.items():
        if isinstance(value, str) and "{" in value:
            texts[name] = _MARK.sub(lambda mark: parts.get(mark.group(1) or "", mark.group(0)), value)
    return texts


def _made(problems: Problems, path: Path, line: int, fields: dict[str, Any], entry: Entry) -> list[Source]:
    if path.suffix.lower() not in FORMATS:
        problems.add(line, f"{path} is not of a known format ({', '.join(FORMATS)})")
    missing = [name for name in ("model", "dataset") if fields.get(name) is None]
    for name in missing:
        if name not in fields:
            problems.add(entry.line, f"an entry of predictions needs {name!r}, given or as {{{name}}} in the pattern")
    if missing:
        return []
    kept = {name: value for name, value in fields.items() if value is not None}
    own = {name: kept.pop(name) for name in list(kept) if name in FIELDS}
    return [Source(path, line, **own, covariates=tuple(kept.items()))]


def _matches(
    problems: Problems, where: Entry, folder: Path, constants: dict[str, Any], names: tuple[str, ...]
) -> list[tuple[Path, dict[str, str]]]:
    """The files of a pattern, each with the texts its marks stood for."""
    pattern: str = where.value
    wild, regex, seen, last = "", "", set[str](), 0
    for mark in _MARK.finditer(pattern):
        text, name = pattern[last : mark.start()], mark.group(1)
        last = mark.end()
        wild, regex = wild + glob.escape(text), regex + re.escape(text)
        if name is None:
            deep = len(mark.group(2)) > 1
            wild, regex = wild + ("**" if deep else "*"), regex + (".*" if deep else "[^/]*")
        elif name not in names:
            problems.add(where.line, f"a pattern has no part {{{name}}}; known are {', '.join(names)}")
            return []
        elif name in constants:
            problems.add(where.line, f"{name!r} is given and also a part of the pattern; leave one out")
            return []
        elif name in seen:
            wild, regex = wild + "*", regex + f"(?P={name})"
        else:
            seen.add(name)
            kind = {"seed": "[0-9]+", "severity": _NUMBER, "size": _NUMBER}.get(name, "[^/]+")
            wild, regex = wild + "*", regex + f"(?P<{name}>{kind})"
    wild, regex = wild + glob.escape(pattern[last:]), regex + re.escape(pattern[last:])
    root = Path(pattern).anchor
    paths = glob.glob(wild, root_dir=None if root else folder, recursive=True)
    matches = [(folder / name, match.groupdict()) for name in sorted(paths) if (match := re.fullmatch(regex, name))]
    if not matches:
        problems.add(where.line, f"no file matches {pattern!r} in {folder}")
    return matches


def field_value(problems: Problems, name: str, value: Any, line: int, where: str = "") -> Any:
    """A field of a file or model as its kind of value, or None and a problem."""
    if name not in ("size", "severity", "seed", "model", "family", "dataset"):
        return _covariate(problems, name, value, line, where)
    if name in ("model", "family", "dataset"):
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
            return str(value)
        problems.add(line, f"{name} must be a text{where}, not {value!r}")
        return None
    number = to_number(value)
    if name == "seed":
        if number is None or not number.is_integer() or number < 0:
            problems.add(line, f"seed must be a whole number of at least 0{where}, not {value!r}")
            return None
        return int(number)
    if number is None or not math.isfinite(number) or number < 0 or (name == "size" and number == 0):
        least = "above 0" if name == "size" else "of at least 0"
        problems.add(line, f"{name} must be a number {least}{where}, not {value!r}")
        return None
    return number


def _covariate(problems: Problems, name: str, value: Any, line: int, where: str) -> str | float | None:
    """A number where it reads as one, else a text."""
    number = to_number(value)
    if number is not None and math.isfinite(number):
        return number
    if isinstance(value, bool) or not str(value).strip() or isinstance(value, (dict, list)):
        problems.add(line, f"{name} must be a text or a number{where}, not {value!r}")
        return None
    return str(value)


def _described(problems: Problems, entry: Entry, sources: list[Source], covariates: tuple[str, ...]) -> list[Source]:
    """`models: {resnet50: {family: resnet, size: 25e6, pretraining: jft}}`: what file names do not say."""
    if not isinstance(entry.value, dict):
        problems.add(entry.line, "models must give family and size by name, such as vgg16: {family: vgg, size: 138e6}")
        return sources
    known: dict[str, dict[str, Any]] = {}
    names = {source.model for source in sources}
    for model, about in entry.value.items():
        if model not in names and sources:
            problems.add(about.line, f"models describes {model!r}, but no prediction file is of that model")
        items = problems.keys(about, ("family", "size", *covariates), what=f"the model {model!r}")
        known[model] = {name: field_value(problems, name, item.value, item.line) for name, item in items.items()}
    described = []
    for source in sources:
        about_model = dict(known.get(source.model, {}))
        own = {name: about_model.pop(name) for name in ("family", "size") if name in about_model}
        described.append(replace(source, **own, covariates=tuple({**about_model, **dict(source.covariates)}.items())))
    return described


# ----------------------------------------------------------------------------------------------------
# The study file as values: what is evaluated, and how. `read` makes them

LENSES = ("top-label", "all-label", "class-wise", "canonical")


@dataclass(frozen=True)
class Columns:
    """Where a file keeps what: columns of a table or arrays of an npz file. `kind` is "logits" or "probs"."""

    label: str
    outputs: str | tuple[str, ...]
    kind: Literal["logits", "probs"]
    classes: tuple[object, ...] | None = None
    weight: str | None = None
    cluster: str | None = None

    @classmethod
    def of(cls, held: Mapping[str, Any]) -> "Columns":
        """What JSON kept of it."""
        lists: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in held.items()
        }
        return cls(**lists)

    @property
    def others(self) -> tuple[str, ...]:
        """Names of columns that must be there beside label and outputs."""
        return tuple(name for name in (self.weight, self.cluster) if name is not None)


@dataclass(frozen=True)
class Dataset:
    """What a dataset has to do with the clean data that recalibrators learn from.

    `clean` names the dataset whose rows it shares, shifted or not, in the same order: the rows learnt from are left out.
    `independent`: it shares no row with any other; it is judged whole, recalibrated by the map of the clean dataset `by`.
    """

    clean: str | None = None
    independent: bool = False
    by: str | None = None
    covariates: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Split:
    """The rows recalibrators learn from: a fraction of every class, the same for all models.

    fit="clean": learnt on the file of severity 0 of the same model and seed, of the clean dataset; "same": on the file that is
    judged. `dataset` names the clean dataset of all datasets that do not name their own.
    """

    fraction: float = 0.2
    seed: int = 0
    fit: Literal["clean", "same"] = "clean"
    dataset: str | None = None


@dataclass(frozen=True)
class Selected:
    """A named selection of rows: one of truecal.predictions.selection's, with its arguments."""

    name: str
    kind: str
    arguments: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Options:
    """All that the numbers depend on beside the prediction files."""

    columns: Columns
    lenses: tuple[str, ...] = ("top-label",)
    groupings: tuple[tuple[str, tuple[tuple[str, tuple[object, ...]], ...]], ...] = ()  # name -> group -> classes
    selections: tuple[Selected, ...] = ()
    class_subsets: tuple[tuple[str, tuple[object, ...]], ...] = ()
    metrics: tuple[str, ...] = (GRID,)
    recalibrators: tuple[str, ...] = ()
    split: Split = Split()
    datasets: tuple[tuple[str, Dataset], ...] = ()  # name or pattern -> what it is; the first that fits counts
    intervals: bool | Literal["bootstrap"] = True
    level: float = 0.95

    def about(self, dataset: str) -> Dataset:
        """What the study says of a dataset."""
        return next((one for pattern, one in self.datasets if fnmatchcase(dataset, pattern)), Dataset())

    def clean_of(self, dataset: str) -> str:
        """The dataset whose clean rows the recalibrators of a dataset learn from."""
        about = self.about(dataset)
        return about.clean or about.by or self.split.dataset or dataset

    def shares_rows(self, dataset: str) -> bool:
        """Whether the rows of a dataset are those of its clean one."""
        about = self.about(dataset)
        return not about.independent and (about.clean is not None or self.clean_of(dataset) == dataset)

    def teacher(self, source: Source) -> tuple[str, str, float, int]:
        """Who the recalibrators of a file learn from: model, dataset, severity, seed."""
        if self.split.fit == "same":
            return source.who
        return source.model, self.clean_of(source.dataset), 0.0, source.seed


@dataclass(frozen=True)
class Spec:
    """A study file that was read without a problem, with what it says word for word."""

    name: str
    sources: tuple[Source, ...]
    options: Options
    workers: int | None
    written: dict[str, Any]
    covariates: tuple[str, ...] = ()
    by_content: bool = False  # files are told apart by their content, not by size and time
    broken: tuple[tuple[str, str], ...] = ()  # files that were skipped, and why

    def covariates_of(self, source: Source) -> dict[str, object]:
        """All covariates of a file: its own, its dataset's."""
        held = {**dict(self.options.about(source.dataset).covariates), **dict(source.covariates)}
        return {name: held.get(name) for name in self.covariates}


# ----------------------------------------------------------------------------------------------------
# What a study file says of its datasets: which rows they share with clean data, and their covariates

Named = tuple[str, Dataset]
_KEYS = ("clean", "independent", "by")


def read_datasets(
    problems: Problems, entry: Entry | None, sources: Sequence[Source], covariates: tuple[str, ...]
) -> tuple[Named, ...]:
    """Every entry of `datasets`, in order; names may be patterns with * and ?."""
    if entry is None:
        return ()
    if not isinstance(entry.value, dict):
        problems.add(entry.line, "datasets must say what each is, such as cifar10-c: {clean: cifar10}")
        return ()
    there = {source.dataset for source in sources}
    described = []
    for pattern, about in entry.value.items():
        if there and not any(fnmatchcase(name, pattern) for name in there):
            problems.add(about.line, f"datasets describes {pattern!r}, but no prediction file is of that dataset")
        items = problems.keys(about, (*_KEYS, *covariates), what=f"the dataset {pattern!r}")
        described.append((pattern, _dataset(problems, pattern, items, there)))
    return tuple(described)


def _dataset(problems: Problems, pattern: str, items: dict[str, Entry], there: set[str]) -> Dataset:
    clean, by = (None if name not in items else str(items[name].plain()) for name in ("clean", "by"))
    independent = False
    if "independent" in items:
        independent = bool(problems.of_type(items["independent"], bool, what="independent", words="true or false"))
    line = next((entry.line for entry in items.values()), 0)
    for name, wanted in (("clean", clean), ("by", by)):
        if wanted is not None and there and wanted not in there:
            problems.add(items[name].line, f"{name} names {wanted!r}, but no prediction file is of that dataset")
    if clean is not None and independent:
        problems.add(line, f"{pattern!r} cannot both share the rows of {clean!r} and be independent")
    if by is not None and not independent:
        problems.add(line, "by is for independent datasets; one that shares rows with clean data says clean: NAME")
    own = {
        name: field_value(problems, name, entry.value, entry.line) for name, entry in items.items() if name not in _KEYS
    }
    return Dataset(clean, independent, by, tuple(own.items()))


def resolve(problems: Problems, options: Options, sources: Sequence[Source], line: int) -> Options:
    """The same with a clean dataset for every independent one: the only one there is, unless it names its own."""
    names = dict.fromkeys(source.dataset for source in sources)
    clean = [name for name in names if not options.about(name).independent and options.clean_of(name) == name]
    resolved = []
    for pattern, about in options.datasets:
        if about.independent and about.by is None and options.split.dataset is None and options.recalibrators:
            if len(clean) != 1:
                which = f"{len(clean)} datasets ({', '.join(clean)})" if clean else "no dataset"
                problems.add(line, f"{pattern!r} is independent, and {which} could recalibrate it; say by: NAME")
            else:
                about = replace(about, by=clean[0])
        resolved.append((pattern, about))
    return replace(options, datasets=tuple(resolved))
