"""HTML in which every string that came from outside is text."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from truecal.errors import FileError, extra
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# HTML in which every string that came from outside is text

_NO_ROWS = "This file is complete: it loads nothing and sends nothing. It holds no rows of the data."


def escaped(value: object) -> str:
    """Text for an element or an attribute; control characters, which HTML forbids, become the replacement character.

    >>> escaped("<b>")
    '&lt;b&gt;'
    """
    text = "".join(c if c in "\t\n" or (ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0) else "\ufffd" for c in str(value))
    return escape(text.encode("utf-8", "replace").decode("utf-8"), quote=True)


def element(tag: str, *inside: str, **attributes: object) -> str:
    """An element; `inside` is HTML already, attribute values are escaped. class_ stands for class, data_sort for data-sort.

    >>> element("p", "a", class_="x", data_sort="1")
    '<p class="x" data-sort="1">a</p>'
    """
    named = "".join(f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"' for key, value in attributes.items())
    return f"<{tag}{named}>{''.join(inside)}</{tag}>"


def paragraph(text: object, **attributes: object) -> str:
    """A paragraph of text."""
    return element("p", escaped(text), **attributes)


def terms(rows: Iterable[tuple[str, str]], class_: str) -> str:
    """Names and what belongs to them, as a list."""
    return element(
        "dl", *(element("dt", escaped(name)) + element("dd", escaped(text)) for name, text in rows), class_=class_
    )


def chart(id_: str, caption: str, heading: str = "") -> str:
    """A place that the scripts draw into, with its caption."""
    above = [element("h3", heading)] if heading else []
    return element("figure", *above, element("div", "", id=id_, class_="chart"), element("figcaption", caption))


def section(name: str, heading: str, html: str) -> str:
    """A section with its heading."""
    title = f"{name}-heading"
    return element("section", element("h2", escaped(heading), id=title), html, id=name, aria_labelledby=title)


def verdict_of(kind: str, badge: str, finding: str, reading: str = "", *more: str) -> str:
    """The head of a page: few words, the finding, what it means; `kind` colours it."""
    words = [paragraph(badge, class_="badge"), paragraph(finding, class_="finding")]
    words += [paragraph(reading, class_="reading")] if reading else []
    return element("section", *words, *more, id="verdict", class_=f"verdict {kind}", aria_label="Verdict")


def sections(parts: Sequence[tuple[str, str, str]]) -> str:
    """Sections below the links to them, given by name, heading and content."""
    links = "".join(element("a", escaped(heading), href=f"#{name}") for name, heading, _ in parts)
    return element("nav", links, aria_label="Sections") + "".join(section(*part) for part in parts)


def page_body(title: str, facts: Sequence[str], *main: str, footer: str = _NO_ROWS, skip: str = "verdict") -> str:
    """Everything inside the body element but the scripts: title, a line of facts, the switch between dark and light, content."""
    toggle = element("button", "Dark / light", type="button", id="theme", aria_label="Switch between dark and light")
    heading = element("h1", escaped(title)) + paragraph(" · ".join(facts), class_="facts")
    return (
        element("a", f"Skip to the {skip}", href="#verdict", class_="skip")
        + element("header", element("div", heading), toggle)
        + element("main", *main)
        + element("footer", paragraph(footer))
    )


def asset(name: str) -> str:
    """A style sheet or script of the pages."""
    return (files("truecal.pages") / "assets" / name).read_text(encoding="utf-8")


def document_of(title: str, style: str, body: str, policy: str, more: str = "") -> str:
    """A whole HTML file. `policy` says what it may load and run; `more` are further lines of its head."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
{more}<title>{escaped(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


# ----------------------------------------------------------------------------------------------------
# Tables of pages: cells that sort by their numbers, columns that pair a header with the cell it makes of a record

Row = TypeVar("Row")


class Cell:
    """A table cell: what is shown (text, escaped here), the value it sorts by, how far it is indented, and a picture (HTML)."""

    def __init__(
        self, shown: object, sort: float | str | None = None, *, title: str = "", indent: int = 0, picture: str = ""
    ) -> None:
        self.shown, self.sort, self.title, self.indent, self.picture = str(shown), sort, title, indent, picture

    def html(self, *, head: bool) -> str:
        attributes: dict[str, object] = {}
        if self.sort is not None:
            attributes["data_sort"] = repr(self.sort) if isinstance(self.sort, float) else self.sort
        if self.title:
            attributes["title"] = self.title
        if self.indent:
            attributes["style"] = f"padding-left:{0.75 + 1.5 * self.indent}em"
        if head:
            return element("th", escaped(self.shown), self.picture, scope="row", **attributes)
        return element("td", escaped(self.shown), self.picture, **attributes)


def table(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], *, page: int | None = None, id_: str = ""
) -> str:
    """A table whose columns sort by a click; with `page`, only that many rows show until more are asked for."""
    heads = "".join(element("th", element("button", escaped(name), type="button"), scope="col") for name in header)
    lines = "".join(element("tr", *(cell.html(head=i == 0) for i, cell in enumerate(row))) for row in rows)
    attributes: dict[str, object] = {"class_": "sortable"}
    if page is not None:
        attributes["data_page"] = page
    if id_:
        attributes["id"] = id_
    inner = element("caption", escaped(caption)) + element("thead", element("tr", heads)) + element("tbody", lines)
    return element(
        "div", element("table", inner, **attributes), class_="scroll", tabindex=0, role="region", aria_label=caption
    )


def table_of(
    caption: str,
    columns: Sequence[tuple[str, Callable[[Row], Cell]]],
    rows: Iterable[Row],
    *,
    page: int | None = None,
    id_: str = "",
) -> str:
    """A table of records: every column is its name and the cell that it makes of a record."""
    cells = [[cell(row) for _, cell in columns] for row in rows]
    return table(caption, [name for name, _ in columns], cells, page=page, id_=id_)


def number(value: float | None, form: str = ".4f") -> Cell:
    """A number; empty where there is none. Those that are not there sort first, infinite ones last."""
    return Cell("", -1.0) if value is None else Cell(format(value, form), float(value))


def span(low: float | None, high: float | None, form: str = ".4f", *, otherwise: str = "") -> Cell:
    """An interval, which sorts by its lower end."""
    if low is None or high is None:
        return Cell(otherwise, -1.0)
    return Cell(f"{low:{form}} to {high:{form}}", float(low))


def p_words(value: float | None) -> str:
    """A p-value in words a table can hold; nothing where there is none."""
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_cell(value: float | None) -> Cell:
    """A p-value."""
    return Cell(p_words(value), -1.0 if value is None else float(value))


# ----------------------------------------------------------------------------------------------------
# The charting library (Vega, Vega-Lite and Vega-Embed), taken from the installed vl-convert package: nothing is downloaded

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def charting_bundle() -> str:
    """JavaScript that defines `vegaEmbed`, safe to stand inside a script element."""
    vl_convert = extra("vl_convert")
    kept = _folder() / f"charting-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass  # not kept yet
    bundle = inert(f"(() => {{{vl_convert.javascript_bundle(_SNIPPET)}}})();")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, bundle)
    except (OSError, FileError):
        pass  # without a cache the next page takes seconds longer
    return bundle


def inert(script: str) -> str:
    """JavaScript in which no string can end the script element or open a comment in it."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truecal"
