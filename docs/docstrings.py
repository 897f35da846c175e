"""How docstrings become pages: examples under a heading, formulas as plain text, names as code. Used by mkdocs.yml alone."""

import re
from typing import Any

import griffe

_PLAIN = (
    (r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"(\1) / (\2)"),
    (r"\\(?:mathrm|text|hat)\s*\{([^{}]*)\}", r"\1"),
    (r"\\q?quad", "   "),
    (r"\\(?:big|hat)\b", ""),
    (r"\\arg\\max", "argmax"),
    (r"\\ge\b", ">="),
    (r"\\odot", "*"),
    (r"\\sigma", "sigmoid"),
    (r"\\([{}])", r"\1"),
    (r"\\([a-z]+)", r"\1"),
    (r"(?<=[_^])\{([^{}]*)\}", r"(\1)"),
    (r"  +(?=\S)", "  "),
)


def plain(formula: str) -> str:
    r"""LaTeX as text.

    >>> plain(r"p = \sigma(a s + b), \qquad t = \frac{n_+ + 1}{n_+ + 2}")
    'p = sigmoid(a s + b),  t = (n_+ + 1) / (n_+ + 2)'
    """
    for pattern, text in _PLAIN:
        formula = re.sub(pattern, text, formula)
    return formula.strip()


def _entries(section: re.Match[str]) -> str:
    """A section of parameters with one entry per name; what follows the colon is a description, not a type."""
    entries = re.sub(r"^(\w[\w*, ]*) : +(.*(?:\n +\S.*)*)", _entry, section[2], flags=re.MULTILINE)
    return f"{section[1]}{entries}"


def _entry(found: re.Match[str]) -> str:
    return "\n".join(f"{name}\n    {found[2]}" for name in found[1].split(", "))


def readable(docstring: str) -> str:
    """The docstring as the page shows it.

    >>> readable("One, see :class:`Two`.\\n\\n>>> 1 + 1\\n2").splitlines()
    ['One, see `Two`.', '', 'Examples', '--------', '>>> 1 + 1', '2']
    """
    text = re.sub(r":(?:class|func|meth):`([^`]+)`", r"`\1`", docstring)
    formula = re.compile(r"^\.\. math:: *(.*(?:\n +\S.*)*)", re.MULTILINE)
    text = formula.sub(lambda found: "    " + plain(re.sub(r"\s*\n\s*", " ", found[1])), text)
    text = re.sub(
        r"(^(?:Parameters|Attributes)\n-+\n(?:.+\n)+\n)(?!>>> |.*\n--|.* : )",
        r"\1Notes\n-----\n",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"(^(?:Parameters|Attributes)\n-+\n)((?:.+(?:\n|\Z))+)", _entries, text, flags=re.MULTILINE)
    if re.search(r"^Examples\n-+$", text, re.MULTILINE):
        return text
    return re.sub(r"(?:\A|\n)(?=>>> )", lambda found: f"{found[0]}Examples\n--------\n", text, count=1)


class Docstrings(griffe.Extension):
    """Makes every docstring readable."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
