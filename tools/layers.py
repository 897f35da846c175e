"""Check the imports of the package: `python -m tools.layers` prints every violation and ends with 1 if there is one.

Three rules: folders import downwards only (the layers stand in pyproject.toml), files do not import each other in a circle,
and the module of a base class does not import the modules of its subclasses.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.tree import PACKAGE, Tree, folder_of

ROOT = Path(__file__).resolve().parents[1]
_ROWS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["layers"]["rows"]
# A folder imports only from rows below its own; folders of one row do not import each other.
LAYERS = tuple(tuple(re.findall(rf"{PACKAGE}\.(\w+)", row)) for row in _ROWS)

Violations = Iterator[str]


def layers(tree: Tree) -> Violations:
    """Folders import downwards only, also through the public names (`tc.name`), and every folder has a place."""
    height = {folder: row for row, folders in enumerate(LAYERS) for folder in folders}
    for folder in sorted({module.folder for module in tree.modules.values()} - {"", *height}):
        yield f"src/{PACKAGE}/{folder}: has no layer; add it to tool.layers in pyproject.toml"
    for edge in tree.imports:
        above, below = folder_of(edge.importer), folder_of(edge.target)
        if above != below and above in height and below in height and height[below] <= height[above]:
            yield f"{tree.where(edge.importer, edge.line)}: {above} must not import {below} ({edge.name})"


def cycles(tree: Tree) -> Violations:
    """Files do not import each other in a circle, wherever in the file the import stands."""
    for group in tree.cycles():
        yield f"{tree.where(group[0])}: cycle between {', '.join(group)}"


def bases(tree: Tree) -> Violations:
    """The module of a base class knows nothing of its subclasses."""
    homes = {
        node.name: (module.name, {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases})
        for module in tree.modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    imports = defaultdict(list)
    for edge in tree.imports:
        imports[edge.importer].append(edge)
    for subclass, (home, parents) in homes.items():
        modules = {homes[parent][0]: parent for parent in parents if parent in homes and homes[parent][0] != home}
        for edge in (edge for module in modules for edge in imports[module]):
            if edge.target == home or edge.name == subclass:
                where = tree.where(edge.importer, edge.line)
                yield f"{where}: the module of {modules[edge.importer]} must not import its subclass {subclass}"


RULES: tuple[Callable[[Tree], Violations], ...] = (layers, cycles, bases)


def check(tree: Tree) -> dict[str, list[str]]:
    """Every rule's violations."""
    return {rule.__name__: list(rule(tree)) for rule in RULES}


def main(arguments: list[str] | None = None) -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    violations = check(Tree.read(parser.parse_args(arguments).root))
    for rule, messages in violations.items():
        for message in messages:
            print(f"{message} [{rule}]")
    return 1 if any(violations.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
