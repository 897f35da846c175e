"""The package as the tools see it: modules, the imports between them (also those inside functions), and their folders."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PACKAGE = "truecal"


@dataclass(frozen=True)
class Import:
    """One name taken from one module of the package."""

    importer: str
    module: str  # as written after `from`, or behind an attribute of the public API
    target: str  # the file that is meant: `module`, or the submodule called `name`
    name: str
    line: int
    inside: bool  # in the body of a function
    public: bool = False  # as `tc.name`, after `import truecal as tc`


@dataclass(frozen=True)
class Module:
    """One file."""

    name: str
    path: Path
    text: str
    tree: ast.Module = field(repr=False)

    @property
    def folder(self) -> str:
        """The part of the package it belongs to: `estimate` for truecal.estimators.sweep, the empty string for the root."""
        return folder_of(self.name)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def code_lines(self) -> int:
        """Lines that are no docstring, no comment and not blank."""
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docstrings = set[int]()
        for node in ast.walk(self.tree):
            if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
                docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        lines = enumerate(map(str.strip, self.text.splitlines()), 1)
        return sum(bool(line) and not line.startswith("#") and number not in docstrings for number, line in lines)


@dataclass(frozen=True)
class Tree:
    """All modules of a package under `src/`."""

    root: Path
    modules: dict[str, Module]

    @classmethod
    def read(cls, root: Path) -> "Tree":
        """Parse every file of `root`/src/truecal."""
        top = root / "src" / PACKAGE
        modules = {}
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top).with_suffix("").parts
            name = ".".join((PACKAGE, *parts)).removesuffix(".__init__")
            text = path.read_text(encoding="utf-8")
            modules[name] = Module(name, path, text, ast.parse(text))
        return cls(root, modules)

    def where(self, module: str, line: int | None = None) -> str:
        """File and line as an editor opens them."""
        path = self.modules[module].path.relative_to(self.root).as_posix()
        return path if line is None else f"{path}:{line}"

    @cached_property
    def public_homes(self) -> dict[str, str]:
        """Public name -> the module that is home to it, read from the imports for type checkers in the root file."""
        root = self.modules.get(PACKAGE)
        nodes = [n for n in ast.walk(root.tree) if isinstance(n, ast.ImportFrom)] if root else []
        return {
            alias.asname or alias.name: self._target(node.module or "", alias.name)
            for node in nodes
            for alias in node.names
            if (node.module or "").startswith(PACKAGE)
        }

    @cached_property
    def imports(self) -> list[Import]:
        """Every import between modules of the package, the root's own excepted."""
        return [edge for module in self.modules.values() if module.name != PACKAGE for edge in self._of(module)]

    def _of(self, module: Module) -> Iterator[Import]:
        inside = {id(n) for function in _outermost_functions(module.tree) for n in ast.walk(function)}
        aliases = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and _ours(node.module) and node.level == 0:
                for alias in node.names:
                    target = self._target(node.module or "", alias.name)
                    if node.module == PACKAGE and alias.name in self.public_homes:
                        target = self.public_homes[alias.name]
                    yield Import(module.name, node.module or "", target, alias.name, node.lineno, id(node) in inside)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == PACKAGE:
                        aliases.add(alias.asname or PACKAGE)
                    elif _ours(alias.name):
                        yield Import(module.name, alias.name, alias.name, "*", node.lineno, id(node) in inside)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
                home = self.public_homes.get(node.attr, PACKAGE)
                yield Import(module.name, PACKAGE, home, node.attr, node.lineno, id(node) in inside, public=True)
        if module.is_package:  # homes of names that are loaded on first use are written as strings
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in self.modules:
                    yield Import(module.name, node.value, node.value, "*", node.lineno, inside=False)

    def _target(self, module: str, name: str) -> str:
        return f"{module}.{name}" if f"{module}.{name}" in self.modules else module

    @cached_property
    def edges(self) -> dict[str, set[str]]:
        """File -> the files it imports."""
        edges: dict[str, set[str]] = {name: set() for name in self.modules}
        for edge in self.imports:
            if edge.target in self.modules and edge.target not in (edge.importer, PACKAGE):
                edges[edge.importer].add(edge.target)
        return edges

    def cycles(self) -> list[list[str]]:
        """Groups of files that reach each other through their imports (Tarjan's strongly connected components)."""
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        groups = []

        def visit(v: str) -> None:
            index[v] = low[v] = len(index)
            stack.append(v)
            for w in sorted(self.edges[v]):
                if w not in index:
                    visit(w)
                    low[v] = min(low[v], low[w])
                elif w in stack:
                    low[v] = min(low[v], index[w])
            if low[v] == index[v]:
                start = stack.index(v)
                group, stack[start:] = stack[start:], []
                if len(group) > 1:
                    groups.append(sorted(group))

        for name in self.modules:
            if name not in index:
                visit(name)
        return groups


def folder_of(module: str) -> str:
    """The first part of a module's name below the package."""
    return module.split(".")[1] if "." in module else ""


def _outermost_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _outermost_functions(child)


def _ours(name: str | None) -> bool:
    return name == PACKAGE or (name or "").startswith(f"{PACKAGE}.")
