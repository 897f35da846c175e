"""Mutation testing: small changes inside functions, one at a time; tests that fail on a change have noticed it.

`python -m tools.mutants [--most N] [--seed S] [GROUP ...]` draws at most N changes per group and lists those that no test notices.
Changed are comparisons, arithmetic, and/or, not, numbers and truth values; not the words of messages.

pytest collects the tests once. A first child process runs each of them and remembers the statements it reached; then every change
is planted in the memory of a child of its own, which runs the tests that reach the changed statement, quickest first, until one
fails. Children are forked before any test has run: threads that a library starts (polars does) would not survive a fork.
"""

import argparse
import ast
import importlib
import inspect
import os
import pickle
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# Files of each group, and the tests that must notice a change in them.
GROUPS = {
    "validation": (
        ("predictions/validation.py", "predictions/arrays.py"),
        ("tests/predictions/test_validation_edges.py", "tests/predictions/test_validation.py",
         "tests/predictions/test_predictions.py", "tests/predictions/test_arrays.py"),
    ),
    "cuts": (
        ("profile/binning.py", "profile/rows.py"),
        ("tests/profile/test_cut.py", "tests/profile/test_profile.py", "tests/profile/test_unsorted.py"),
    ),
    "verify": (
        ("inference/verification.py", "inference/exact_limit.py"),
        ("tests/inference/test_verify.py", "tests/inference/test_verify_edges.py", "tests/inference/test_verify_formulas.py",
         "tests/inference/test_verify_tails.py"),
    ),
    "resampling": (
        tuple(f"resampling/{name}.py" for name in ("cells", "columns", "draws", "units")),
        ("tests/resampling", "tests/inference/test_bootstrap.py", "tests/inference/test_clusters.py"),
    ),
    "readers": (
        tuple(f"predictions/{name}.py" for name in ("readers", "files", "frames", "eval_logs", "verdicts")),
        ("tests/predictions/readers", "tests/predictions/test_mistakes.py", "tests/lenses/test_multilabel.py",
         "tests/cli/test_hostile_files.py", "tests/cli/test_newcomers.py", "tests/hostile/test_found.py",
         "tests/hostile/test_findings.py", "tests/profile/test_profile.py"),
    ),
}  # fmt: skip
# Of processor time: tests that take longer are left out, and a change is given up after so many seconds of tests.
LONGEST, BUDGET = 4.0, 20.0
_OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow")
_NOT_PLANTED = 3
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change at a line of a function: the n-th node of its tree that can be changed, in a statement from line to line."""

    file: str
    function: str
    line: int
    place: int
    words: str
    span: tuple[int, int]


def mutants(file: str) -> list[Mutant]:
    """All changes inside the functions of a file."""
    tree = ast.parse(Path("src/truecal", file).read_text(encoding="utf-8"))
    changes = []
    for name, function in _functions(tree):
        for number, (node, words, span) in enumerate(_changeable(function)):
            changes.append(Mutant(file, name, getattr(node, "lineno", function.lineno), number, words, span))
    return changes


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _changeable(function: ast.FunctionDef) -> Iterator[tuple[Any, str, tuple[int, int]]]:
    """Nodes that can be changed, in a fixed order; nothing inside raise, defaults, annotations or nested functions."""
    waiting: list[tuple[Any, tuple[int, int]]] = [(node, (0, 0)) for node in function.body]
    while waiting:
        node, span = waiting.pop(0)
        if isinstance(node, (ast.Raise, ast.FunctionDef, ast.Lambda, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.stmt) or span == (0, 0):
            # The head of a statement with a body is as long as its expression, which sets the span when it is its turn.
            span = (0, 0) if hasattr(node, "body") and isinstance(node, ast.stmt) else _lines(node)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
            yield node, f"{type(node.ops[0]).__name__} -> {_SWAPS[type(node.ops[0])].__name__}", span
        elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in _SWAPS:
            yield node, f"{type(node.op).__name__} -> {_SWAPS[type(node.op)].__name__}", span
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "not removed", span
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            yield node, f"{node.value} -> {_other(node.value)}", span
        children = [
            child for child in ast.iter_child_nodes(node) if not isinstance(node, ast.AnnAssign) or child is node.value
        ]
        waiting = [(child, span) for child in children] + waiting


def _lines(node: Any) -> tuple[int, int]:
    return (node.lineno, node.end_lineno) if hasattr(node, "lineno") else (0, 0)


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
    _change(next(node for i, (node, _, _) in enumerate(_changeable(function)) if i == mutant.place))
    changed = compile(ast.fix_missing_locations(tree), str(source.resolve()), "exec")
    thing: Any = _module(mutant.file)
    for part in mutant.function.split("."):
        thing = inspect.getattr_static(thing, part)
    thing = inspect.unwrap(getattr(thing, "__func__", getattr(thing, "func", getattr(thing, "fget", None))) or thing)
    thing.__code__ = _code(changed, mutant.function.split("."))


def _module(file: str) -> Any:
    return importlib.import_module("truecal." + file.removesuffix(".py").replace("/", "."))


def _code(module: CodeType, path: list[str]) -> CodeType:
    for part in path:
        module = next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return module


def _in_child(work: Callable[[], int], seconds: float) -> int:
    """What the work returns in a forked process that is ended after so many seconds of processor time; 1 where it was."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(int(10 * seconds))
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os._exit(work())
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1


@dataclass
class Loop:
    """A plugin of pytest that runs the collected tests on every change instead of once."""

    changes: dict[str, list[Mutant]]
    files: tuple[str, ...]
    out: Any
    reached: dict[str, tuple[float, set[tuple[str, int]]]] = field(default_factory=dict)

    def pytest_collection(self, session: Any) -> None:
        """Failing examples of hypothesis are not made smaller: nobody reads them here."""
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: Any) -> bool:
        """All of the work."""
        for file in self.files:
            _module(file)
        with tempfile.TemporaryDirectory() as folder:
            reached = Path(folder, "reached")
            if _in_child(lambda: self._walk(session.items, reached), 3600.0) != 0:
                raise SystemExit("the tests fail without any change")
            self.reached = pickle.loads(reached.read_bytes())
        quick = sorted((item for item in session.items if self._seconds(item) <= LONGEST), key=self._seconds)
        for group, drawn in self.changes.items():
            self._judge(group, drawn, quick)
        return True

    def _seconds(self, item: Any) -> float:
        return self.reached[item.nodeid][0]

    def _walk(self, items: list[Any], reached_file: Path) -> int:
        """Run every test once and remember what it reached."""
        names = {str(Path("src/truecal", file).resolve()): file for file in self.files}
        reached, failed = {}, False
        for item in items:
            visited: set[tuple[str, int]] = set()

            def line(frame: FrameType, event: str, _: Any, visited: set[tuple[str, int]] = visited) -> Any:
                visited.add((names[frame.f_code.co_filename], frame.f_lineno))
                return line

            start = time.process_time()
            sys.settrace(lambda frame, *_: line if frame.f_code.co_filename in names else None)
            passes = _passes(item)
            sys.settrace(None)
            reached[item.nodeid] = time.process_time() - start, visited
            if not passes:
                failed = True
                self._say(f"{item.nodeid} fails without any change")
        reached_file.write_bytes(pickle.dumps(reached))
        return int(failed)

    def _judge(self, group: str, drawn: list[Mutant], quick: list[Any]) -> None:
        alive, tried, start = 0, 0, time.monotonic()
        for mutant in drawn:
            tests = [item for item in quick if self._reaches(item, mutant)]
            ended = _in_child(lambda m=mutant, t=tests: _survives(m, t), 2 * BUDGET) if tests else 0  # type: ignore[misc]
            tried += ended != _NOT_PLANTED
            alive += ended == 0
            if ended in (0, _NOT_PLANTED):
                why = {0: f"not noticed by {len(tests)} tests", _NOT_PLANTED: "could not be planted"}[ended]
                self._say(f"  {mutant.file}:{mutant.line} {mutant.function}: {mutant.words} ({why})")
        minutes = (time.monotonic() - start) / 60
        share = f"{1 - alive / tried:.1%}" if tried else "none"
        self._say(f"{group}: {tried} changes, {tried - alive} noticed ({share}), {minutes:.1f} min")

    def _reaches(self, item: Any, mutant: Mutant) -> bool:
        lines = self.reached[item.nodeid][1]
        return any((mutant.file, line) in lines for line in range(mutant.span[0], mutant.span[1] + 1))

    def _say(self, words: str) -> None:
        print(words, file=self.out, flush=True)


def _survives(mutant: Mutant, tests: list[Any]) -> int:
    """0 if no test fails, within the budget of time."""
    try:
        _plant(mutant)
    except Exception:  # noqa: BLE001 (whatever it is, this change cannot be judged)
        return _NOT_PLANTED
    start = time.process_time()
    for item in tests:
        if not _passes(item):
            return 1
        if time.process_time() - start > BUDGET:
            break
    return 0


def _passes(item: Any) -> bool:
    from _pytest.runner import runtestprotocol

    try:
        return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))
    except BaseException:  # noqa: BLE001 (a change that breaks pytest itself is noticed)
        return False


def main() -> int:
    """The command line."""
    import pytest

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS])
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    changes, tests = {}, set[str]()
    for group in options.groups or GROUPS:
        every = [mutant for file in GROUPS[group][0] for mutant in mutants(file)]
        drawn = random.Random(options.seed).sample(every, min(options.most, len(every)))
        changes[group] = sorted(drawn, key=lambda mutant: (mutant.file, mutant.line, mutant.place))
        tests |= {*GROUPS[group][1], *(f"src/truecal/{file}" for file in GROUPS[group][0])}
    files = tuple({mutant.file for drawn in changes.values() for mutant in drawn})
    with tempfile.TemporaryDirectory() as folder, os.fdopen(os.dup(1), "w") as out:
        loop = Loop(changes, files, out)
        return int(pytest.main([*_OPTIONS, f"--basetemp={folder}/tests", *sorted(tests)], plugins=[loop]))


if __name__ == "__main__":
    sys.exit(main())
