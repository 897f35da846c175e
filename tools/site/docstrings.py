"""Show docstrings on pages: examples as code that can be copied, formulas as MathML, names as code."""

import re
from importlib import import_module
from typing import Any

import griffe

from tools.site.examples import are_abbreviated, copyable
from tools.site.formulas import to_mathml


def _entries(section: re.Match[str]) -> str:
    """A section of parameters with one entry per name; what follows the colon is a description, not a type."""
    entries = re.sub(r"^(\w[\w*, ]*) : +(.*(?:\n +\S.*)*)", _entry, section[2], flags=re.MULTILINE)
    return f"{section[1]}{entries}"


def _entry(match: re.Match[str]) -> str:
    return "\n".join(f"{name}\n    {match[2]}" for name in match[1].split(", "))


def readable(docstring: str, name: str = "docstring", variables: dict[str, Any] | None = None) -> str:
    """Return the docstring as the page shows it.

    >>> readable("One, see :class:`Two`.\\n\\n>>> 1 + 1\\n2").splitlines()
    ['One, see `Two`.', '', 'Examples', '--------', '```python', '1 + 1', '# 2', '```']
    """
    text = re.sub(r":(?:class|func|meth):`([^`]+)`", r"`\1`", docstring)
    formula = re.compile(r"^\.\. math:: *(.*(?:\n +\S.*)*)", re.MULTILINE)
    text = formula.sub(lambda match: to_mathml(match[1], "block"), text)
    text = re.sub(
        r"(^(?:Parameters|Attributes)\n-+\n(?:.+\n)+\n)(?!>>> |.*\n--|.* : )",
        r"\1Notes\n-----\n",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"(^(?:Parameters|Attributes)\n-+\n)((?:.+(?:\n|\Z))+)", _entries, text, flags=re.MULTILINE)
    if not re.search(r"^Examples\n-+$", text, re.MULTILINE):
        text = re.sub(r"(?:\A|\n)(?=>>> )", lambda match: f"{match[0]}Examples\n--------\n", text, count=1)
    head, separator, examples = text.partition("Examples\n--------\n")
    if not separator:
        return text
    return f"{head}{separator}{_copyable_parts(examples, name, variables)}"


def _copyable_parts(examples: str, name: str, variables: dict[str, Any] | None) -> str:
    """Fence every paragraph of examples; text between them, and sections after them, stay."""
    paragraphs = re.split(r"\n\n+", examples.strip("\n"))
    return "\n\n".join(
        f"```python\n{copyable(paragraph, f'{name}-{i}', variables)}\n```"
        if paragraph.startswith(">>> ")
        else paragraph
        for i, paragraph in enumerate(paragraphs)
    )


class Docstrings(griffe.Extension):
    """Makes every public docstring readable."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None or obj.name.startswith("_"):
            return
        text = obj.docstring.value
        variables = dict(vars(import_module(obj.module.path))) if are_abbreviated(text) else None
        obj.docstring.value = readable(text, obj.path, variables)
