"""Read a YAML file as plain values with the line of each, check it against a JSON Schema, and list all problems at once.

PyYAML's safe loader composes the nodes, so nothing in a file is ever executed; anchors and aliases are refused, because a few
lines of them can stand for more values than fit in memory. In the schemas, `title` names a value, `description` completes
"... must be", and `errorMessage` replaces the message of a keyword.
"""

import json
import os
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from truecal import names
from truecal.errors import FileError, InputError, extra

Where = tuple[str | int, ...]  # keys and positions that lead to a value


@dataclass
class Document:
    """The values of a file, the line of each by its path, and what is wrong with them."""

    file: str  # its name, for messages
    value: Any = None
    lines: dict[Where, int] = field(default_factory=dict)  # by path, from 1
    problems: list[tuple[int, str]] = field(default_factory=list)  # line and text

    def line(self, *path: str | int) -> int:
        """Return the line (from 1) of the value at a path of keys and positions; without one, that of its nearest parent.

        >>> Document(Path("a.yaml"), {}, {(): 1, ("data",): 4}).line("data", "set")
        4
        """
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def add(self, where: int | Where, text: str) -> None:
        """Add a problem at a line, or at the line of the value at a path; the same text at the same line is kept once.

        >>> document = Document(Path("a.yaml"), {}, {("data",): 4})
        >>> document.add(("data",), "wrong"); document.add(4, "wrong"); document.problems
        [(4, 'wrong')]
        """
        line = where if isinstance(where, int) else self.line(*where)
        if (line, text) not in self.problems:
            self.problems.append((line, text))

    def refuse(self) -> None:
        """Raise InputError that lists the problems by line; do nothing if there are none.

        >>> document = Document(Path("a.yaml"), {}, {}, [(2, "wrong")])
        >>> document.refuse()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: a.yaml has 1 problem
        a.yaml:2: wrong
        """
        if self.problems:
            count = len(self.problems)
            listed = [f"{self.file}:{line}: {text}" for line, text in sorted(self.problems)]
            raise InputError("\n".join([f"{self.file} has {count} problem{'s' if count > 1 else ''}", *listed]))

    def check(self, schema: dict[str, Any]) -> None:
        """Raise InputError that lists all violations of a JSON Schema, and the problems added before."""
        validator = extra("jsonschema", "study").Draft202012Validator(schema)
        for error in validator.iter_errors(self.value):
            for path, text in _list_problems(error, tuple(error.absolute_path)):
                self.add(path, text)
        self.refuse()


def _list_problems(error: Any, path: Where) -> list[tuple[Where, str]]:
    """Return path and message of every problem in an error of jsonschema at `path`: one for each unknown or missing name.

    The message is that of the schema's `errorMessage` for the violated keyword, if it has one. Else an unknown option is told
    with similar or all known ones, a missing one as "TITLE needs NAME", a repeated item by its value, and any other violation
    as "TITLE must be DESCRIPTION, not VALUE" in the words of the schema.
    """
    schema, value, keyword = error.schema, error.instance, error.validator
    title = schema.get("title") or (path and path[-1]) or "the file"
    if keyword in schema.get("errorMessage", {}):
        return [(path, schema["errorMessage"][keyword])]
    if keyword == "additionalProperties":
        options, problems = list(schema["properties"]), []
        for name in [name for name in value if name not in options]:
            hint = names.did_you_mean(name, options) or f"; known are {', '.join(options)}"
            problems.append(((*path, name), f"{title} has no option {name!r}{hint}"))
        return problems
    if keyword == "required":
        return [(path, f"{title} needs {name!r}") for name in error.validator_value if name not in value]
    if keyword == "uniqueItems":
        repeated = next(item for i, item in enumerate(value) if item in value[:i])
        return [(path, f"{title}: {repeated!r} is listed twice")]
    if "description" not in schema:
        return [(path, f"{title}: {error.message}")]
    return [(path, f"{title} must be {schema['description']}, not {value!r}")]


def load_schema(name: str) -> dict[str, Any]:
    """Read a JSON file of the package `truecal.study` by its name, such as "study.schema.json".

    >>> load_schema("study.schema.json")["type"]
    'object'
    """
    schema: dict[str, Any] = json.loads((resources.files("truecal.study") / name).read_text(encoding="utf-8"))
    return schema


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a YAML file as plain values with the line of each.

    Raises FileError for a file that cannot be read, is empty or no YAML, InputError for names given twice and for anchors.
    """
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
        document.value = _read_node(root, (), loader, document, set())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        reason = str(getattr(error, "problem", None) or error).splitlines()[0]
        raise FileError(f"{file.name}{line}: this is not YAML: {reason}") from error
    except RecursionError as error:
        raise FileError(f"{file.name}: values are nested too deeply to be those of a study") from error
    document.refuse()
    return document


def _read_node(node: Any, path: Where, loader: Any, document: Document, visited: set[int]) -> Any:
    """Return the plain value of a YAML node at `path`, and add its line to the document; `visited` are the nodes read before.

    An alias (a node visited before) and a scalar that cannot be converted give None and a problem, a repeated name a problem.
    """
    line = document.lines.setdefault(path, node.start_mark.line + 1)
    if id(node) in visited:
        document.add(line, "anchors and aliases (&, *) are not supported; write the value out")
        return None
    visited.add(id(node))
    if node.id == "sequence":
        return [_read_node(item, (*path, i), loader, document, visited) for i, item in enumerate(node.value)]
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
        items[name] = _read_node(value, (*path, name), loader, document, visited)
    return items
