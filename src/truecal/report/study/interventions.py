"""The page of a comparison of interventions: its answer, its figures and its tables, in one file that runs nothing."""

from base64 import b64encode
from pathlib import Path
from typing import Protocol

from truecal.report.html import asset, document_of, element, escaped, paragraph, section
from truecal.report.table import Cell, table
from truecal.writing import write_whole


class Tabled(Protocol):
    """A comparison of interventions: what its page says."""

    def verdict(self) -> list[str]:
        """Its answer, in sentences."""

    def tables(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """Title -> header and rows."""

    def facts(self) -> list[str]:
        """What was judged, in a few words."""


def write_interventions(result: Tabled, title: str, figures: list[Path], path: Path) -> Path:
    """Write the page; `figures` are .png files, which it holds."""
    answer = "".join(element("li", escaped(line)) for line in result.verdict())
    parts = [section("answer", "Does what lowers the usual error lower the others?", element("ul", answer))]
    for figure in figures:
        name = figure.stem.replace("_", " ")
        image = f'<img alt="{escaped(name)}" src="data:image/png;base64,{b64encode(figure.read_bytes()).decode()}">'
        parts.append(section(figure.stem, name[:1].upper() + name[1:], element("figure", image)))
    for i, (name, (header, rows)) in enumerate(result.tables().items()):
        cells = [[Cell(text) for text in row] for row in rows]
        parts.append(section(f"table-{i}", name, table(name, header, cells, id_=f"numbers-{i}")))
    style = f"{asset('page.css')} figure img {{ max-width: 100%; background: white; }}"
    facts = paragraph(" · ".join(result.facts()), class_="facts")
    body = element("header", element("div", element("h1", escaped(title)), facts)) + "\n" + element("main", *parts)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return write_whole(path, document_of(title, style, body, policy))
