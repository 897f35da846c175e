"""Print the outputs of executed examples anew: `python -m tools.refresh [FILE ...]`, without names all pages and docstrings.

An output that no longer agrees is replaced in its file by what the present version prints, and listed, so that a change of numbers
is read before it is committed. Outputs given in part (with `...`) and examples that raise are listed and left to a person.
"""

import doctest
import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PACKAGES = {"src/truecal": "src", "benchmarks/coverage": ".", "papers": "."}  # folder of modules, and its import root


@dataclass(frozen=True)
class Change:
    """An output, by its first line in the file (from 0), that is no longer what the example prints."""

    line: int
    want: str
    got: str
    indent: int

    @property
    def replaceable(self) -> bool:
        return "..." not in self.want and "Traceback" not in self.want and bool(self.want)


class _Collector(doctest.DocTestRunner):
    """Runs examples and keeps every output that differs."""

    def __init__(self) -> None:
        super().__init__(optionflags=OPTIONS, verbose=False)
        self.changes: list[Change] = []

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        line = (test.lineno or 0) + example.lineno + example.source.count("\n")
        self.changes.append(Change(line, example.want, got, example.indent))

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        line = (test.lineno or 0) + example.lineno + example.source.count("\n")
        self.changes.append(Change(line, "", f"{exc_info[0].__name__}: {exc_info[1]}\n", example.indent))


def examples_of(path: Path) -> list[doctest.DocTest]:
    """Read the examples of a page or of a module's docstrings."""
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
        return [doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, path.name, str(path), 0)]
    name = path.relative_to(ROOT).as_posix()
    root = next(import_root for folder, import_root in PACKAGES.items() if name.startswith(folder))
    module = ".".join(path.relative_to(ROOT / root).with_suffix("").parts).removesuffix(".__init__")
    return doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module))


def with_outputs(text: str, changes: list[Change]) -> str:
    r"""Return a text whose outputs are replaced by the present ones.

    >>> with_outputs(">>> 1 + 1\n3\n", [Change(1, "3\n", "2\n", 0)])
    '>>> 1 + 1\n2\n'
    """
    lines = text.split("\n")
    for change in sorted(changes, key=lambda change: -change.line):
        printed = change.got.rstrip("\n").split("\n")
        lines[change.line : change.line + change.want.count("\n")] = [
            " " * change.indent + (line or "<BLANKLINE>") for line in printed
        ]
    return "\n".join(lines)


def refresh(path: Path) -> int:
    """Replace the outputs of one file, list what changed, and return how many examples a person must look at."""
    collector = _Collector()
    for test in examples_of(path):
        collector.run(test, out=lambda text: None, clear_globs=False)
    replaced = [change for change in collector.changes if change.replaceable]
    for change in collector.changes:
        word = "replaced" if change.replaceable else "LOOK AT"
        print(f"{path.relative_to(ROOT)}:{change.line + 1}: {word}\n- {change.want.strip()}\n+ {change.got.strip()}")
    if replaced:
        path.write_text(with_outputs(path.read_text(encoding="utf-8"), replaced), encoding="utf-8")
    return len(collector.changes) - len(replaced)


def main(arguments: list[str]) -> int:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    modules = [path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py"))]
    paths = [Path(argument).resolve() for argument in arguments] or [*pages, *modules]
    return int(sum(refresh(path) for path in paths if ">>> " in path.read_text(encoding="utf-8")) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
