"""Mutation testing: small changes inside functions, one at a time; tests that fail on a change have noticed it.

`python -m tools.mutants [--most N] [--seed S] [GROUP ...]` draws at most N changes per group, runs the tests of the group on each
in a process of its own (forked, so that nothing is imported twice), and lists the changes that no test notices.
Changed are comparisons, arithmetic, and/or, not, numbers and truth values; not the words of messages.
"""

import argparse
import ast
import importlib
import inspect
import os
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

GROUPS = {
    "border": (
        ("predictions/border.py", "predictions/arrays.py"),
        ("tests/predictions/test_border.py", "tests/predictions/test_predictions.py"),
    ),
    "cut": (("profile/cut.py",), ("tests/profile/test_profile.py", "tests/profile/test_cut.py")),
    "verify": (
        ("uncertainty/verify/verify.py", "uncertainty/verify/limit.py", "uncertainty/verify/cells.py",
         "uncertainty/verify/bounds.py", "uncertainty/verify/binned_error.py"),
        ("tests/uncertainty/test_verify.py",),
    ),
    "readers": (
        ("predictions/readers/columns.py", "predictions/readers/files.py", "predictions/readers/frames.py",
         "predictions/readers/read.py", "predictions/readers/values.py"),
        ("tests/predictions/readers", "tests/cli/test_hostile_files.py"),
    ),
}  # fmt: skip
SECONDS = 120
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "not slow", "-W",
            "ignore::pytest.PytestAssertRewriteWarning")  # fmt: skip
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change at a line of a function: the n-th node of its tree that can be changed."""

    file: str
    function: str
    line: int
    place: int
    words: str


def mutants(file: str) -> list[Mutant]:
    """All changes inside the functions of a file."""
    tree = ast.parse(Path("src/truecal", file).read_text(encoding="utf-8"))
    found = []
    for name, function in _functions(tree):
        for place, (node, words) in enumerate(_changeable(function)):
            found.append(Mutant(file, name, getattr(node, "lineno", function.lineno), place, words))
    return found


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _changeable(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str]]:
    """Nodes that can be changed, in a fixed order; nothing inside raise, defaults, annotations or nested functions."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.Raise, ast.FunctionDef, ast.Lambda, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
            yield node, f"{type(node.ops[0]).__name__} -> {_SWAPS[type(node.ops[0])].__name__}"
        elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in _SWAPS:
            yield node, f"{type(node.op).__name__} -> {_SWAPS[type(node.op)].__name__}"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "not removed"
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            yield node, f"{node.value} -> {_other(node.value)}"
        children = [
            child for child in ast.iter_child_nodes(node) if not isinstance(node, ast.AnnAssign) or child is node.value
        ]
        waiting = children + waiting


def _other(value: Any) -> Any:
    return not value if isinstance(value, bool) else value + 1


def _change(node: Any) -> None:
    def swapped(operator: ast.AST) -> Any:
        return _SWAPS[type(operator)]()

    if isinstance(node, ast.Compare):
        node.ops[0] = swapped(node.ops[0])
    elif isinstance(node, (ast.BinOp, ast.BoolOp)):
        node.op = swapped(node.op)
    elif isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
    else:
        node.value = _other(node.value)


def _plant(mutant: Mutant) -> None:
    """Give the function in memory the changed code."""
    source = Path("src/truecal", mutant.file)
    tree = ast.parse(source.read_text(encoding="utf-8"))
    function = dict(_functions(tree))[mutant.function]
    _change(next(node for i, (node, _) in enumerate(_changeable(function)) if i == mutant.place))
    changed = compile(ast.fix_missing_locations(tree), str(source.resolve()), "exec")
    thing: Any = importlib.import_module("truecal." + mutant.file.removesuffix(".py").replace("/", "."))
    for part in mutant.function.split("."):
        thing = inspect.getattr_static(thing, part)
    thing = inspect.unwrap(getattr(thing, "__func__", getattr(thing, "func", getattr(thing, "fget", None))) or thing)
    thing.__code__ = _code(changed, mutant.function.split("."))


def _code(module: CodeType, path: list[str]) -> CodeType:
    for part in path:
        module = next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return module


def noticed(mutant: Mutant, tests: tuple[str, ...]) -> bool:
    """Whether a test fails (or hangs) on the change."""
    import pytest

    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        try:
            _plant(mutant)
            code = int(pytest.main([*_OPTIONS, *tests]))
        except BaseException:  # noqa: BLE001 (a change that cannot be planted or breaks pytest itself is noticed)
            code = 1
        os._exit(code)
    return os.waitpid(child, 0)[1] != 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS])
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for group in asked.groups or GROUPS:
        files, tests = GROUPS[group]
        tests = tuple(test for test in tests if Path(test).exists())
        every = [mutant for file in files for mutant in mutants(file)]
        drawn = random.Random(asked.seed).sample(every, min(asked.most, len(every)))
        for file in files:
            importlib.import_module("truecal." + file.removesuffix(".py").replace("/", "."))
        _warm(tests)
        alive = 0
        for tried, mutant in enumerate(drawn, start=1):
            if not noticed(mutant, tests):
                alive += 1
                place = f"{mutant.file}:{mutant.line} {mutant.function}"
                print(f"  {place}: {mutant.words} (not noticed, {alive} of {tried})", flush=True)
        share = 1 - alive / len(drawn)
        print(f"{group}: {len(drawn)} of {len(every)} changes, {len(drawn) - alive} noticed ({share:.0%})", flush=True)
    return 0


def _warm(tests: tuple[str, ...]) -> None:
    """Import what the tests import, once; the tests must pass as they are."""
    import pytest

    if pytest.main([*_OPTIONS, *tests]) != 0:
        raise SystemExit(f"the tests {tests} fail without any change")


if __name__ == "__main__":
    sys.exit(main())
