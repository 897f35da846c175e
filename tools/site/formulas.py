r"""Turn LaTeX into MathML, which browsers draw without a script: `$...$` in a line, `$$...$$` on its own."""

import re

from latex2mathml.converter import convert

# Code is left alone: fenced blocks first, then spans.
_PATTERN = re.compile(
    r"(?P<code>^```.*?^```$|`[^`\n]+`)|\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<line>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\w$])",
    re.MULTILINE | re.DOTALL,
)


def to_mathml(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML on one line.

    >>> "<msup><mi>x</mi><mn>2</mn></msup>" in to_mathml("x^2")
    True
    """
    latex = (
        " ".join(latex.split())
        .replace(r"\arg\max", r"\operatorname{argmax}")
        .replace(r"\arg\min", r"\operatorname{argmin}")
    )
    return convert(latex, display=display)


def with_formulas(markdown: str) -> str:
    """Return the page with its formulas as MathML.

    >>> with_formulas("`$x$` and $x$").count("<math")
    1
    """

    def formula(match: re.Match[str]) -> str:
        if match["code"]:
            return match["code"]
        if match["block"]:
            return f'<div class="formula">{to_mathml(match["block"], "block")}</div>'
        return to_mathml(match["line"])

    return _PATTERN.sub(formula, markdown)
