"""Read a YAML file as plain values with the line of each, check it against a JSON Schema, and list all problems at once.

PyYAML's safe loader composes the nodes, so nothing in a file is ever executed; anchors and aliases are refused, because a few
lines of them can stand for more values than fit in memory. In the schemas, `title` names a value, `description` completes
"... must be", and `errorMessage` replaces the message of a keyword.
"""

import difflib
import json
import os
from dataclasses import dataclass, field
from importlib import resources
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from truecal.errors import FileError, InputError, extra

_LISTED_PER_LINE = 6  # problems of one line that are listed; the others are counted
Where = tuple[str | int, ...]  # keys and positions that lead to a value


@dataclass
class Document:
    """The values of a file, the line of each by its path, and what is wrong with them."""

    file: str
    value: Any = None
    lines: dict[Where, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)

    def line(self, *path: str | int) -> int:
        """Return the line of a value, or of what it is missing from."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def add(self, where: int | Where, text: str) -> None:
        """Note a problem at a line, or at a value."""
        line = where if isinstance(where, int) else self.line(*where)
        if (line, text) not in self.problems:
            self.problems.append((line, text))

    def refuse(self) -> None:
        """Raise if there are problems, naming every line; of many problems of one line the first few."""
        if not self.problems:
            return
        count, texts = len(self.problems), []
        for line, group in groupby(sorted(self.problems), key=itemgetter(0)):
            members = [f"{self.file}:{line}: {text}" for _, text in group]
            texts += members[:_LISTED_PER_LINE]
            if len(members) > _LISTED_PER_LINE:
                texts.append(f"{self.file}:{line}: and {len(members) - _LISTED_PER_LINE} more")
        raise InputError("\n".join([f"{self.file} has {count} problem{'s' if count > 1 else ''}", *texts]))

    def check(self, schema: dict[str, Any]) -> None:
        """Note what violates the schema and remove it, so that what remains can be read; a list keeps None in its place."""
        validator = extra("jsonschema", "study").Draft202012Validator(schema)
        for error in sorted(validator.iter_errors(self.value), key=lambda e: -len(e.absolute_path)):
            path = tuple(error.absolute_path)
            for extra_path, text in _explain(error, path):
                self.add(extra_path, text)
                self._remove(extra_path)

    def _remove(self, path: Where) -> None:
        """Remove the value at a path (set it to None in a list), so that later checks need not allow for it."""
        if not path:
            self.value = self.value if isinstance(self.value, dict) else {}
            return
        parent = self.value
        for step in path[:-1]:
            if parent is None or (isinstance(parent, dict) and step not in parent):
                return  # removed already
            parent = parent[step]
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
        elif isinstance(parent, list) and isinstance(path[-1], int):
            parent[path[-1]] = None


def _explain(error: Any, path: Where) -> list[tuple[Where, str]]:
    """Return path and message of every problem that an error of jsonschema stands for."""
    schema, value, keyword = error.schema, error.instance, error.validator
    title = schema.get("title") or (path and path[-1]) or "the file"
    if keyword in schema.get("errorMessage", {}):
        return [(path, schema["errorMessage"][keyword])]
    if keyword == "additionalProperties":
        options, problems = list(schema["properties"]), []
        for name in [name for name in value if name not in options]:
            near = difflib.get_close_matches(name, options, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(options)}"
            problems.append(((*path, name), f"{title} has no option {name!r}; {hint}"))
        return problems
    if keyword == "required":
        return [(path, f"{title} needs {name!r}") for name in error.validator_value if name not in value]
    if keyword == "uniqueItems":
        repeated = next(one for i, one in enumerate(value) if one in value[:i])
        return [(path, f"{title}: {repeated!r} is listed twice")]
    if "description" not in schema:
        return [(path, f"{title}: {error.message}")]
    return [(path, f"{title} must be {schema['description']}, not {value!r}")]


def load_schema(name: str) -> dict[str, Any]:
    """Read a schema that is part of this package."""
    schema: dict[str, Any] = json.loads((resources.files("truecal.study") / name).read_text(encoding="utf-8"))
    return schema


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a file; raise for what is not YAML, is empty, has a name twice, or uses anchors."""
    yaml = extra("yaml", "study")
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {file}: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    document = Document(file.name)
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise FileError(f"{file} is empty")
        document.value = _plain(root, (), loader, document, set())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        reason = str(getattr(error, "problem", None) or error).splitlines()[0]
        raise FileError(f"{file.name}{line}: this is not YAML: {reason}") from error
    except RecursionError as error:
        raise FileError(f"{file.name}: values are nested too deeply to be those of a study") from error
    document.refuse()
    return document


def _plain(node: Any, path: Where, loader: Any, document: Document, visited: set[int]) -> Any:
    """Return the value of a YAML node; note its line in the document."""
    line = document.lines.setdefault(path, node.start_mark.line + 1)
    if id(node) in visited:
        document.add(line, "anchors and aliases (&, *) are not supported; write the value out")
        return None
    visited.add(id(node))
    if node.id == "sequence":
        return [_plain(item, (*path, i), loader, document, visited) for i, item in enumerate(node.value)]
    if node.id == "scalar":
        try:
            return loader.construct_object(node)
        except ValueError as error:  # a date that does not exist, a number of thousands of digits
            document.add(line, f"{node.value[:40]!r} cannot be read: {error}")
            return None
    items: dict[str, Any] = {}
    for key, value in node.value:
        name, key_line = str(key.value), key.start_mark.line + 1
        if name in items:
            document.add(key_line, f"{name!r} is given twice (first on line {document.line(*path, name)})")
        document.lines[*path, name] = key_line
        items[name] = _plain(value, (*path, name), loader, document, visited)
    return items
