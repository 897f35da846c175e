"""Check the built site: `python -m tools.links site`. Pages, pictures and anchors that links name must exist (nothing is fetched),
and every public name must have an entry."""

import inspect
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import truecal as tc

SPACES = (tc, tc.lab, tc.plot, tc.selective, tc.study, tc.train)  # whose names users call


class Page(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag points to and what it can be pointed at by."""
        attributes = dict(attrs)
        for name in ("href", "src"):
            if value := attributes.get(name):
                self.links.append(value)
        for name in ("id", "name"):
            if value := attributes.get(name):
                self.anchors.add(value)


def broken(site: Path) -> Iterator[str]:
    """Page and link of everything that leads nowhere within the site."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            address, anchor = urldefrag(link)
            if urlsplit(link).scheme or link.startswith(("//", "data:")) or path.name == "404.html":
                continue
            target = (path.parent / unquote(urlsplit(address).path)).resolve() if address else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            where = f"{path.relative_to(site).as_posix()}: {link}"
            if not target.exists():
                yield where
            elif anchor and target.suffix == ".html":
                target_page = next((p for q, p in pages.items() if q.resolve() == target), None)
                if target_page is not None and unquote(anchor) not in target_page.anchors:
                    yield f"{where} (no such anchor)"


def undocumented(site: Path) -> Iterator[str]:
    """Public functions and classes without an entry on any page."""
    pages = [Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")]
    entries = {anchor.rpartition(".")[2] for page in pages for anchor in page.anchors if anchor.startswith("truecal.")}
    for space in SPACES:
        for name in space.__all__:
            if name not in entries and (inspect.isclass(member := getattr(space, name)) or inspect.isfunction(member)):
                yield f"{space.__name__}.{name} has no entry in docs/api"


def main(arguments: list[str] | None = None) -> int:
    """Print broken links and missing entries; 1 if there are any."""
    (site,) = arguments if arguments is not None else sys.argv[1:]
    links, missing = list(broken(Path(site))), list(undocumented(Path(site)))
    print(*links, *missing, f"{len(links)} broken links, {len(missing)} public names without an entry", sep="\n")
    return 1 if links or missing else 0


if __name__ == "__main__":
    sys.exit(main())
