"""A YAML file as values that remember their line, and all of its problems told at once.

PyYAML's safe loader composes the nodes, so nothing in a file is ever executed; anchors and aliases are refused, because a few
lines of them can stand for more values than fit in memory.
"""

import difflib
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from truecal.errors import FileError, InputError, extra

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
