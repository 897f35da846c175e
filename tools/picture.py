"""The picture of the architecture, drawn from the imports: `python -m tools.picture` writes docs/images/architecture.svg.

Folders stand above what they import. Only arrows that no chain of other arrows implies are drawn (the transitive reduction).
"""

import argparse
import sys
from collections import defaultdict
from html import escape
from pathlib import Path

from tools.tree import Tree, folder_of

ROOT = Path(__file__).resolve().parents[1]
PICTURE = Path("docs") / "images" / "architecture.svg"
# Drawn by everybody: arrows to these would hide the others.
GROUND = ("errors", "types", "options", "writing", "names")
WIDTH, ROW, BOX, HEIGHT = 760, 64, 104, 34
STYLE = (
    "rect{fill:#f4f6fb;stroke:#5b6b8c}text{font:13px system-ui,sans-serif;fill:#1d2433;text-anchor:middle}"
    "path{fill:none;stroke:#8a97b1;stroke-width:1.3}"
    "@media(prefers-color-scheme:dark){rect{fill:#232a3a;stroke:#8a97b1}text{fill:#e8ecf5}}"
)


def folder_imports(tree: Tree) -> dict[str, set[str]]:
    """Folder -> the folders it imports from, the ground left out."""
    folders = {module.folder for module in tree.modules.values()} - {"", *GROUND}
    imports: dict[str, set[str]] = {folder: set() for folder in sorted(folders)}
    for importer, targets in tree.edges.items():
        for target in targets:
            above, below = folder_of(importer), folder_of(target)
            if above in imports and below in imports and above != below:
                imports[above].add(below)
    return imports


def reachable(imports: dict[str, set[str]], start: str) -> set[str]:
    """All that `start` imports, directly or not."""
    visited: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        folder = waiting.pop()
        if folder not in visited:
            visited.add(folder)
            waiting.extend(imports[folder])
    return visited


def reduction(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no chain of other arrows implies."""
    return {
        above: {below for below in direct if not any(below in reachable(imports, via) for via in direct - {below})}
        for above, direct in imports.items()
    }


def levels(imports: dict[str, set[str]]) -> dict[str, int]:
    """How many steps the longest chain of imports below each folder has."""
    level_of: dict[str, int] = {}

    def level(folder: str) -> int:
        if folder not in level_of:
            level_of[folder] = 1 + max((level(below) for below in imports[folder]), default=-1)
        return level_of[folder]

    for folder in imports:
        level(folder)
    return level_of


def draw(tree: Tree) -> str:
    """The picture as SVG."""
    imports = folder_imports(tree)
    height = levels(imports)
    rows = defaultdict(list)
    for folder in sorted(imports):
        rows[height[folder]].append(folder)
    top = max(rows)
    position = {
        folder: (round(WIDTH * (i + 1) / (len(row) + 1)), ROW * (top - level) + 10)
        for level, row in rows.items()
        for i, folder in enumerate(row)
    }
    lines = []
    for above, belows in reduction(imports).items():
        for below in sorted(belows):
            (x, y), (u, v) = position[above], position[below]
            # An arrow over several rows bends aside, away from the boxes between.
            bend = 0 if height[above] - height[below] == 1 else (90 if x + u >= WIDTH else -90)
            start, end = y + HEIGHT, v - 4
            lines.append(
                f'<path d="M{x} {start}C{x + bend} {start + 24} {u + bend} {end - 24} {u} {end}" marker-end="url(#a)"/>'
            )
    boxes = [
        f'<rect x="{x - BOX // 2}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x}" y="{y + 22}">{escape(folder)}</text>'
        for folder, (x, y) in position.items()
    ]
    ground = ROW * (top + 1) + 10
    boxes.append(f'<rect x="40" y="{ground}" width="{WIDTH - 80}" height="{HEIGHT}" rx="6"/>')
    present = {module.folder for module in tree.modules.values()}
    boxes.append(f'<text x="{WIDTH // 2}" y="{ground + 22}">{", ".join(f for f in GROUND if f in present)}</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ground + HEIGHT + 10}" role="img" '
            'aria-label="Folders of truecal, each above those it imports">',
            f"<style>{STYLE}</style>",
            '<defs><marker id="a" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" style="fill:#8a97b1;stroke:none"/></marker></defs>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Write the picture, or with --check say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; end with 1 if the picture is not up to date"
    )
    options = parser.parse_args(arguments)
    picture, path = draw(Tree.read(ROOT)), ROOT / PICTURE
    if options.check:
        if not path.is_file() or path.read_text(encoding="utf-8") != picture:
            print(f"{PICTURE.as_posix()} is not what the imports say; run: make picture")
            return 1
        return 0
    path.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
