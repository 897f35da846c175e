"""Which prediction files a study consists of: listed one by one, or found by a pattern that names their parts.

    - {file: runs/vgg.npz, model: vgg16, dataset: cifar10}
    - {files: "runs/{dataset}/{model}-{seed}.npz", family: resnet}

In a pattern {model}, {family}, {dataset}, {size}, {severity}, {seed} and the covariates of the study stand for any text (or number)
within one part of the path, and * for anything that is not kept. A dataset or model may be put together from such parts:
dataset: "imagenet-c-{corruption}". Paths are relative to the study file.
"""

import glob
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truecal.study.spec.document import Entry, Problems

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
