"""HTML in which every string that came from outside is text."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

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
    return (files("truecal.report") / "assets" / name).read_text(encoding="utf-8")


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
