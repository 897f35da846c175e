"""Tables of pages: cells that sort by their numbers, columns that pair a header with the cell it makes of a record."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from truecal.report.html import element, escaped

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
