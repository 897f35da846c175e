"""Lines of code by folder: `python -m tools.weight` renews the numbers of the table in docs/architecture.md."""

import re
from collections import Counter
from pathlib import Path

from tools.tree import Tree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
_ROW = re.compile(r"^\| ([^|]+) \| ([\d,]+) \|(?= [\d,]+ \|)", flags=re.MULTILINE)


def lines_by_folder(root: Path = ROOT) -> Counter[str]:
    """Count the lines of every folder and single file of the package."""
    counts = Counter[str]()
    for module in Tree.read(root).modules.values():
        counts[module.folder] += module.code_lines
    return counts


def table(text: str) -> dict[str, int]:
    """Read the numbers of lines that the page states, by the names in the first column."""
    return {names: int(number.replace(",", "")) for names, number in _ROW.findall(text)}


def counted(names: list[str], counts: Counter[str]) -> dict[str, int]:
    """Count each row of the table: folders and files by name, `the rest` and `all`."""
    rows = {row: [re.sub(r"(/|\.py)$", "", name) for name in row.split(", ")] for row in names}
    single = {name for parts in rows.values() for name in parts}
    sums = {row: sum(counts[name] for name in parts) for row, parts in rows.items()}
    rest = sum(number for name, number in counts.items() if name not in single)
    return sums | {"the rest": rest, "all": counts.total()}


def main() -> None:
    """Write the page with numbers rounded to tens."""
    text = PAGE.read_text(encoding="utf-8")
    numbers = counted(list(table(text)), lines_by_folder())
    PAGE.write_text(_ROW.sub(lambda row: f"| {row[1]} | {round(numbers[row[1]], -1):,} |", text), encoding="utf-8")


if __name__ == "__main__":
    main()
