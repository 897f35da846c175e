"""Render templates into one offline HTML file.

Every value is escaped by jinja2 (autoescape); numbers for the charts stand in the page as JSON that no string can leave.
"""

import hashlib
import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from io import BytesIO
from math import inf, isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from truecal import digits, names
from truecal.errors import FileError, extra
from truecal.table import plain
from truecal.writing import check_output, write_whole

_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # characters that HTML forbids
_SCRIPTS = {  # of the folder assets, by the template that they draw for
    "model.html": "theme rates measure tables curves model",
    "comparison.html": "theme tables curves comparison",
    "watch.html": "theme tables watch",
    "study.html": "theme tables study",
}


class Page(SimpleNamespace):
    """The contents of a page by name: its template reads all of them, its scripts draw some."""

    template: ClassVar[str]

    def drawn(self) -> dict[str, object]:
        """Return the numbers that scripts draw, by name."""
        raise NotImplementedError

    def html(self) -> str:
        """Return the HTML text of the page."""
        return render(self.template, self.drawn(), page=self)

    def pick(self, *names: str) -> dict[str, object]:
        """Return fields of the page by name, {name: value}."""
        return {name: getattr(self, name) for name in names}


def render(template: str, data: Mapping[str, object] | None = None, **context: Any) -> str:
    """Return the HTML text of a page; `data` are the numbers that its scripts draw, None for a page without scripts.

    `template` is the name of a file in the folder templates, which sees `context`, the style sheet assets/page.css, the
    scripts that _SCRIPTS lists for it, and their SHA-256 for the content security policy of the page.
    """
    scripts: dict[str, str] = {}
    if data is not None:
        code = "\n".join(asset(f"assets/{name}.js") for name in _SCRIPTS[template].split())
        specs = {name: json.loads(asset(f"specs/{name}.json")) for name in re.findall(r"chartSpec\('(\w+)'", code)}
        scripts = {
            "library": charting_bundle() if specs else "",
            "numbers": script_json(plain({**data, "specs": specs})),
            "code": inert(f"(() => {{\n'use strict';\n{code}\n}})();"),
        }
    hashes = " ".join(f"'sha256-{_digest(scripts[name])}'" for name in ("library", "code") if scripts.get(name))
    style = asset("assets/page.css")
    return str(_environment().get_template(template).render(scripts=scripts, hashes=hashes, style=style, **context))


@cache
def _environment() -> Any:
    """Make the jinja2 environment of the templates, with escaping and filters.

    Templates are those of truecal.pages; an unknown name in one is an error, and control characters are taken out. Filters write
    numbers, p-values and intervals.
    """
    jinja2 = extra("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("truecal.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (rounded, interval, formatted, sort_key, digits.points, digits.percent, digits.count_of):
        environment.filters[function.__name__] = function
    environment.filters |= {"p_value": digits.p_text, "p_equation": digits.p_equation, "prose": _prose, "zip": zip}
    environment.globals |= {
        "points_between": digits.points_between,
        "points_within": digits.points_within,
        "tendency": names.tendency,
    }
    return environment


# ----------------------------------------------------------------------------------------------------
# Filters of the templates: numbers as cells of a table


def rounded(value: float | None, low: float | None = None, high: float | None = None, sign: str = "") -> str:
    """Write a number with the decimals that its interval allows; "" for None and NaN.

    >>> rounded(0.03217, 0.021, 0.043), rounded(-0.0001, -0.02, 0.02), rounded(float("inf")), rounded(None)
    ('0.032', '0.000', 'infinite', '')
    """
    return formatted(value, f"{sign}z.{digits.decimals(low, high)}f")


def interval(low: float | None, high: float | None, sign: str = "", missing: str = "") -> str:
    """Write two limits with the decimals that their distance allows; `missing` if one is None or NaN.

    >>> interval(0.0211, 0.0434), interval(0.2, float("inf")), interval(None, None, missing="too few rows")
    ('0.021 to 0.043', '0.2000 to infinite', 'too few rows')
    """
    if low is None or high is None or low != low or high != high:
        return missing
    return f"{rounded(low, low, high, sign)} to {rounded(high, low, high, sign)}"


def formatted(value: Any, spec: str) -> str:
    """Write a number by a format; "" for None and NaN, "infinite" for infinities.

    >>> formatted(0.5, ".2f"), formatted(None, ".2f"), formatted(float("-inf"), ".2f")
    ('0.50', '', 'infinite')
    """
    if value is None or value != value:
        return ""
    return format(value, spec) if isfinite(value) else "infinite"


def sort_key(value: Any) -> str:
    """Return what a table cell is sorted by, as JavaScript reads it: a number or text, "-1" for None and NaN.

    >>> sort_key(float("inf")), sort_key(None), sort_key(0.5), sort_key("a")
    ('Infinity', '-1', '0.5', 'a')
    """
    if value is None or value != value:
        return "-1"
    if isinstance(value, str):
        return value
    return "Infinity" if value == inf else "-Infinity" if value == -inf else repr(float(value))


def _without_controls(value: Any) -> Any:
    """Replace control characters in the text of a value by U+FFFD; markup is returned unchanged.

    >>> _without_controls("a" + chr(0)) == "a" + chr(0xFFFD)
    True
    """
    return value if hasattr(value, "__html__") else _FORBIDDEN.sub("\ufffd", str(value))


def _prose(value: str) -> Any:
    """Escape text and mark up what stands between backticks as code; unchanged if backticks are unpaired.

    >>> _prose("use `tc.read`"), _prose("a ` b")
    (Markup('use <code>tc.read</code>'), 'a ` b')
    """
    markup = extra("markupsafe").Markup
    parts = str(value).split("`")
    if len(parts) % 2 == 0:  # a single backtick is one
        return value
    cleaned = map(_without_controls, parts)
    return markup().join(markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(cleaned))


# ----------------------------------------------------------------------------------------------------
# Scripts, styles and files


def asset(path: str) -> str:
    """Return the text of a file of this folder, by its path in it: a style sheet, script or chart specification."""
    return files("truecal.pages").joinpath(path).read_text(encoding="utf-8")


def picture(figure: Any) -> str:
    """Close a matplotlib figure and return it as an SVG in a data address; equal figures give equal addresses."""
    content = BytesIO()
    with extra("matplotlib").rc_context({"svg.hashsalt": "truecal"}):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    extra("matplotlib.pyplot").close(figure)
    return f"data:image/svg+xml;base64,{b64encode(content.getvalue()).decode()}"


def script_json(value: Any) -> str:
    """Return JSON that can stand inside a script element whatever strings it holds.

    >>> script_json({"name": "</script>&\\u2028"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u0026\\\\u2028"}'
    """
    encoded = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    for character in "<>&":  # the other dangerous ones, U+2028 and U+2029, are not ASCII and escaped already
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded


def inert(script: str) -> str:
    r"""Return JavaScript in which no string can end the script element or open a comment in it.

    >>> print(inert("'</script>'"))
    '<\/script>'
    """
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    """Return the base64 SHA-256 of a script, for the content security policy.

    >>> _digest("")
    '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def charting_bundle() -> str:
    """Return JavaScript that defines `vegaEmbed`, from the installed vl-convert package, and keep it in the user's cache."""
    vl_convert = extra("vl_convert")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truecal"
    cached = folder / f"charting-{version('vl-convert-python')}.js"
    try:
        return cached.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        bundle = inert(f"(() => {{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}}})();")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(cached, bundle)
    except (OSError, FileError):
        return bundle  # without a cache the next page takes seconds longer
    return bundle


def write_page(path: str | os.PathLike[str], make: Callable[[], str]) -> Path:
    """Write the HTML text that `make` returns, whole or not at all.

    A path that cannot be written, a PDF and missing packages are refused before `make` is called.
    """
    check_output(path)
    _environment()
    if Path(path).suffix.lower() == ".pdf":
        raise FileError(f"{path} asks for a PDF; write .html, and print it from any browser")
    return write_whole(path, make())
