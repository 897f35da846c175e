"""Read a study file: everything that is wrong with it is listed at once, with its line."""

import copy
import glob
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from truecal import names
from truecal.errors import InputError
from truecal.study.document import Document, Where, load_schema, read_document
from truecal.study.metrics import GRID, judges_several, parse_metric
from truecal.study.rows import check_files
from truecal.study.spec import FIELDS, FORMATS, LENSES, Dataset, FileColumns, Options, PredictionFile, Spec, Split
from truecal.study.store import RESULTS

# Columns of a store, and of what is made from it.
_RESERVED = {*RESULTS, "file", "files", "clean", "by", "error", "bin", "count", "outcome", "seeds"}
_NUMBER = r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?"
_PARTS = {"seed": "[0-9]+", "severity": _NUMBER, "size": _NUMBER}  # patterns of the parts of a path; of others "[^/]+"
_MARK = re.compile(r"\{([^{}]*)\}|(\*+)")


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a study file, and labels and shapes of every prediction file it names; raise with all problems and their lines."""
    file = Path(path)
    document = read_document(file)
    written = copy.deepcopy(document.value)
    covariates = _read_covariates(document)
    schema = load_schema("study.schema.json")
    for part in ("entry", "model", "dataset"):
        schema["$defs"][part]["properties"] |= {name: {} for name in covariates}
    document.check(schema)
    sources = _read_sources(document, file.parent, covariates)
    options = _read_options(document, sources)
    check_files(document, sources, options)
    document.refuse()
    values = document.value
    return Spec(values["name"], tuple(sources), options, values.get("workers"), written, covariates)


def _read_covariates(document: Document) -> tuple[str, ...]:
    """Read the names under `covariates`; add a problem for one that is a column of a store already, or no identifier.

    Without such a list there are none; names are returned as text, those with a problem too.
    """
    listed = document.value.get("covariates") if isinstance(document.value, dict) else None
    covariates = tuple(map(str, listed)) if isinstance(listed, list) else ()
    for name in covariates:
        if name in _RESERVED or not name.isidentifier():
            document.add(
                ("covariates",), f"a covariate cannot be called {name!r}; choose another word, of letters and _"
            )
    return covariates


# ----------------------------------------------------------------------------------------------------
# Which prediction files a study consists of: listed one by one, or matched by a pattern that names their parts


def to_number(value: Any) -> float | None:
    """Convert a value to a finite number, also text such as 25e6 that YAML takes for no number; None for others.

    >>> to_number("25e6"), to_number(True), to_number("inf"), to_number(None)
    (25000000.0, None, None, None)
    """
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _read_field(document: Document, where: int | Where, name: str, value: Any, path: str = "") -> Any:
    """Convert a field to its type: seed to int, size and severity to float, covariates to float or text, others to text.

    A value that is not valid gives None and a problem at `where`; `path` is put into its message.
    """
    number = to_number(value)
    is_text = isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip() != ""
    words = "a text" if name in ("model", "family", "dataset") else "a text or a number"
    valid, words = {
        "seed": (number is not None and number.is_integer() and number >= 0, "a whole number of at least 0"),
        "size": (number is not None and number > 0, "a number above 0"),
        "severity": (number is not None and number >= 0, "a number of at least 0"),
    }.get(name, (is_text, words))
    if not valid:
        document.add(where, f"{name} must be {words}{path}, not {value!r}")
        return None
    if number is None or name in ("model", "family", "dataset"):
        return str(value)
    return int(number) if name == "seed" else number


def _read_sources(document: Document, folder: Path, covariates: Sequence[str]) -> list[PredictionFile]:
    """Return all prediction files in the order of the study file, those of a pattern in the order of their paths.

    Files of the same model, dataset, severity and seed are added to the document as problems.
    """
    sources: list[PredictionFile] = []
    for i, entry in enumerate(document.value["predictions"]):
        sources += _expand_entry(document, ("predictions", i), entry, folder, (*FIELDS, *covariates))
    sources = _describe_models(document, sources)
    first: dict[object, PredictionFile] = {}
    for source in sources:
        other = first.setdefault(source.key, source)
        if other is not source:
            same = "this file" if other.path == source.path else str(other.path)
            document.add(source.line, f"{source} is there twice: {source.path} and {same} (line {other.line})")
    return sources


def _expand_entry(
    document: Document, where: Where, entry: dict[str, Any], folder: Path, names: Sequence[str]
) -> list[PredictionFile]:
    """Return the files of one entry of `predictions`, named by `file` or matched by the pattern `files`.

    Fields come from the entry, and from the parts of the pattern. Files without a model or dataset are left out with a problem.
    """
    kind = "file" if "file" in entry else "files"
    line = document.line(*where, kind)
    constants = {
        name: _read_field(document, (*where, name), name, value) for name, value in entry.items() if name in names
    }
    if kind == "file":
        matches: list[tuple[Path, dict[str, str]]] = [(folder / entry["file"], {})]
        if not matches[0][0].is_file():
            document.add(line, f"there is no file {matches[0][0]}")
    else:
        matches = _match_pattern(document, line, entry["files"], folder, constants, names)
    sources = []
    for path, parts in matches:
        texts = {name: _insert_parts(text, parts) for name, text in constants.items() if parts and "{" in str(text)}
        read = {
            name: _read_field(document, line, name, text, f" in {path}") for name, text in {**parts, **texts}.items()
        }
        fields = {**constants, **read}
        if path.suffix.lower() not in FORMATS:
            document.add(line, f"{path} is not of a known format ({', '.join(FORMATS)})")
        for name in ("model", "dataset"):
            if name not in fields:
                document.add(where, f"an entry of predictions needs {name!r}, given or as {{{name}}} in the pattern")
        if fields.get("model") is None or fields.get("dataset") is None:
            continue
        fields = {name: value for name, value in fields.items() if value is not None}
        covariates = {name: fields.pop(name) for name in list(fields) if name not in FIELDS}
        sources.append(PredictionFile(path, line, **fields, covariates=covariates))
    return sources


def _insert_parts(text: str, parts: dict[str, str]) -> str:
    """Replace names of parts of a path in a text, such as "imagenet-c-{corruption}", by what they match.

    >>> _insert_parts("imagenet-c-{corruption}", {"corruption": "fog"})
    'imagenet-c-fog'
    """
    return _MARK.sub(lambda mark: parts.get(mark[1] or "", mark[0]), text)


def _match_pattern(
    document: Document, line: int, pattern: str, folder: Path, constants: dict[str, Any], names: Sequence[str]
) -> list[tuple[Path, dict[str, str]]]:
    """Find the files of a pattern below `folder`, by name, each with the text that every {name} of the pattern matched.

    A * matches within a folder, ** across folders. A {name} that is not among `names` or is given in `constants` as well, and a
    pattern without a file, give [] and a problem at `line`.
    """
    glob_pattern, regex, end = "", "", 0
    for mark in _MARK.finditer(pattern):
        text, name = pattern[end : mark.start()], mark[1]
        end = mark.end()
        if name is not None and name not in names:
            document.add(line, f"a pattern has no part {{{name}}}; known are {', '.join(names)}")
            return []
        if name in constants:
            document.add(line, f"{name!r} is given and also a part of the pattern; leave one out")
            return []
        if name is None:
            wildcard, group = ("**", ".*") if len(mark[2]) > 1 else ("*", "[^/]*")
        else:
            repeated = f"(?P<{name}>" in regex
            wildcard, group = "*", f"(?P={name})" if repeated else f"(?P<{name}>{_PARTS.get(name, '[^/]+')})"
        glob_pattern, regex = glob_pattern + glob.escape(text) + wildcard, regex + re.escape(text) + group
    glob_pattern, regex = glob_pattern + glob.escape(pattern[end:]), regex + re.escape(pattern[end:])
    paths = glob.glob(glob_pattern, root_dir=None if Path(pattern).anchor else folder, recursive=True)
    matches = [(folder / name, match.groupdict()) for name in sorted(paths) if (match := re.fullmatch(regex, name))]
    if not matches:
        document.add(line, f"no file matches {pattern!r} in {folder}")
    return matches


def _describe_models(document: Document, sources: list[PredictionFile]) -> list[PredictionFile]:
    """Add the fields of `models: {resnet50: {family: resnet, size: 25e6}}` to the files of each model; `sources` is changed.

    Covariates of a file take precedence. A model without a file is added to the document as a problem.
    """
    models, described = {source.model for source in sources}, {}
    for model, values in document.value.get("models", {}).items():
        if model not in models and sources:
            document.add(("models", model), f"models describes {model!r}, but no prediction file is of that model")
        described[model] = {
            name: _read_field(document, ("models", model, name), name, value) for name, value in values.items()
        }
    for i, source in enumerate(sources):
        covariates = dict(described.get(source.model, {}))
        fields = {name: covariates.pop(name) for name in ("family", "size") if name in covariates}
        sources[i] = replace(source, **fields, covariates={**covariates, **source.covariates})
    return sources


# ----------------------------------------------------------------------------------------------------
# The other sections of the study file


def _read_options(document: Document, sources: Sequence[PredictionFile]) -> Options:
    """Read columns, lenses, metrics, recalibrators, groupings, split, datasets, intervals and level of a checked study file.

    Absent ones have the defaults of Options; an unknown lens, metric, recalibrator or dataset is added as a problem at its line.
    """
    values = document.value
    columns = _read_columns(document)
    metrics = values.get("metrics", GRID)
    groupings = values.get("groupings", {})
    lists: dict[str, Any] = {}
    checks: dict[str, Callable[[str], object]] = {
        "lenses": lambda name: _check_lens(name, [f"grouping:{one}" for one in groupings], metrics),
        "metrics": lambda name: name == GRID or parse_metric(name),
        "recalibrators": _check_recalibrator,
    }
    for key, check in checks.items():
        listed = [values[key]] if isinstance(values.get(key), str) else values.get(key, ())
        for i, name in enumerate(listed):
            try:
                check(str(name))
            except InputError as error:
                document.add((key, i), str(error))
        if listed:
            lists[key] = tuple(map(str, listed))
    plain = {name: values[name] for name in ("intervals", "level") if name in values}
    return Options(
        columns,
        groupings=groupings,
        split=Split(**values.get("split", {})),
        datasets=_read_datasets(document, {source.dataset for source in sources}),
        **lists,
        **plain,
    )


def _read_columns(document: Document) -> FileColumns:
    """Read the section `columns`; a class that is named twice is added to the document as a problem."""
    values = document.value["columns"]
    kind = next(kind for kind in ("probs", "logits", "score") if kind in values)
    classes = None if "classes" not in values else tuple(values["classes"])
    if classes is not None and len(set(map(str, classes))) < len(classes):
        document.add(("columns", "classes"), "classes names a class twice; names must differ")
    outputs = values[kind] if isinstance(values[kind], str) else [str(name) for name in values[kind]]
    input_kind: Any = "logits" if kind == "logits" else "probs"
    return FileColumns(values["label"], outputs, input_kind, classes, values.get("weight"), values.get("cluster"))


def _check_lens(name: str, groupings: Sequence[str], metrics: Sequence[str]) -> None:
    """Refuse an unknown lens (`groupings`: "grouping:NAME" of all), and one of several probabilities without generalized-*.

    >>> _check_lens("top-label", [], [])
    >>> _check_lens("canonical", [], ["ece-mass-15-l1"])
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: the lens 'canonical' judges several probabilities; add the metric generalized-l1
    """
    if name not in (*LENSES, *groupings) and not re.fullmatch(r"class:.+|top-[1-9][0-9]*", name):
        listed = ", ".join((*LENSES, *groupings))
        raise InputError(f"there is no lens {name!r}; use {listed}, top-K, class:NAME or grouping:NAME (see groupings)")
    if judges_several(name) and "generalized-" not in "".join(map(str, metrics)):
        raise InputError(f"the lens {name!r} judges several probabilities; add the metric generalized-l1")


def _check_recalibrator(name: str) -> None:
    """Refuse an unknown recalibrator, and "none", which is always there.

    >>> _check_recalibrator("none")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: the recalibrator 'none' is always there; leave it out of the list
    """
    if name == "none":
        raise InputError("the recalibrator 'none' is always there; leave it out of the list")
    if name not in names.RECALIBRATORS:
        raise InputError(f"there is no recalibrator {name!r}; use {', '.join(names.RECALIBRATORS)}")


def _read_datasets(document: Document, names: set[str]) -> dict[str, Dataset]:
    """Read the entries of `datasets` by name or pattern (* and ?), in order.

    `names` are the datasets of the prediction files; an entry, `clean` or `by` that is none of them, and one with both, are
    added to the document as problems.
    """
    datasets = {}
    for pattern, values in document.value.get("datasets", {}).items():
        where = ("datasets", pattern)
        if names and not any(fnmatchcase(name, pattern) for name in names):
            document.add(where, f"datasets describes {pattern!r}, but no prediction file is of that dataset")
        fields = {name: _read_field(document, (*where, name), name, value) for name, value in values.items()}
        clean, by = (None if values.get(name) is None else str(values[name]) for name in ("clean", "by"))
        for name, value in (("clean", clean), ("by", by)):
            if value is not None and names and value not in names:
                document.add((*where, name), f"{name} names {value!r}, but no prediction file is of that dataset")
        if clean is not None and by is not None:
            document.add(
                where, f"{pattern!r} cannot both share the rows of {clean!r} and have other rows; say clean or by"
            )
        datasets[pattern] = Dataset(clean, by, {name: fields[name] for name in fields if name not in ("clean", "by")})
    return datasets
