"""HTML in which every string that came from outside is text."""

from collections.abc import Sequence
from html import escape


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
