"""Check the links of the built site: `python -m tools.links site`. Pages, pictures and anchors must exist; nothing is fetched."""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class Page(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag points to and what it can be pointed at by."""
        held = dict(attrs)
        for name in ("href", "src"):
            if value := held.get(name):
                self.links.append(value)
        for name in ("id", "name"):
            if value := held.get(name):
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
                known = next((p for q, p in pages.items() if q.resolve() == target), None)
                if known is not None and unquote(anchor) not in known.anchors:
                    yield f"{where} (no such anchor)"


def main(arguments: list[str] | None = None) -> int:
    """Print broken links; 1 if there are any."""
    (site,) = arguments if arguments is not None else sys.argv[1:]
    found = list(broken(Path(site)))
    print(*found, f"{len(found)} broken links", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
