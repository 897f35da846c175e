"""The rules of the house, checked on the source: `python -m tools.house` prints every violation and ends with 1 if there is one.

Each rule is a function from the tree of the package to its violations; tests/tools/test_house.py plants one of each.
With --report the exit code is 0, with --counts only the totals are printed.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.tree import PACKAGE, Module, Tree, folder_of

# A folder imports only from rows below its own; folders of one row do not import each other. Written once, for import-linter too.
LAYERS = tuple(
    tuple(re.findall(r"truecal\.(\w+)", row))
    for row in tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "tool"
    ]["importlinter"]["contracts"][0]["layers"]
)
CORE = "uncertainty"  # folders above it use the library as its users do and may `import truecal as tc`
PROTOCOLS = ("Estimator", "Lens", "Profile")  # nobody asks which subclass of these it holds
ALWAYS_THERE = ("numpy", "scipy", "narwhals")  # what the core depends on; everything else is an optional extra
FORBIDDEN_STEMS = ("utils", "util", "helpers", "helper", "common", "base", "core", "misc")
UNTYPED = "dict[str, Any]"

MOST_NAMES_CROSSING = 90
MOST_UNTYPED = 5
MOST_FILES = 15
MOST_ALIKE = 3  # files of a folder that begin with the same word
MOST_LINES = 400
MOST_FUNCTION_LINES = 60  # without the docstring, which may be as long as it needs to be
MOST_ARGUMENTS = 8  # self and cls not counted

# What is longer or takes more than the rules allow, with the reason. An entry that is no longer needed is a violation itself.
_COMMAND = "click passes one argument per option of the command"
_DOOR = "a public door: its options are keyword-only, documented one by one, and independent of each other"
EXCEPTIONS: dict[str, str] = {
    "cli/compare.py:compare arguments": _COMMAND,
    "cli/measure.py:measure arguments": _COMMAND,
    "cli/report.py:report arguments": _COMMAND,
    "clinical/sample_size.py:sample_size_by_simulation arguments": _DOOR,
    "estimate/generalized/resample.py:resample arguments": "what is drawn from, what judges it and how often are independent",
    "plot/model/class_wise.py:from_predictions arguments": _DOOR,
    "predictions/readers/read.py:read arguments": _DOOR,
    "recalibrate/evaluate.py:evaluate arguments": _DOOR,
    "recalibrate/methods/scores/scaling_binning.py:__init__ arguments": "settings of a scikit-learn estimator, keyword-only",
    "report/doors.py:report arguments": _DOOR,
    "report/doors.py:report_comparison arguments": _DOOR,
    "report/dossier/dossier.py:write_dossier arguments": _DOOR,
    "scan/scan.py:scan arguments": _DOOR,
    "uncertainty/compare.py:compare arguments": _DOOR,
    "uncertainty/compare.py:compare_many arguments": _DOOR,
    "uncertainty/measurement.py:calibration_error arguments": _DOOR,
}

Violations = Iterator[str]


def layers(tree: Tree) -> Violations:
    """Folders import downwards only, and every folder has a place."""
    height = {folder: row for row, folders in enumerate(LAYERS) for folder in folders}
    for module in tree.modules.values():
        if module.folder and module.folder not in height:
            yield f"{tree.where(module.name)}: folder {module.folder!r} has no layer; add it to LAYERS in tools/house.py"
    for found in tree.imports:
        above, below = folder_of(found.importer), folder_of(found.target)
        if above != below and above in height and height.get(below, len(LAYERS)) <= height[above]:
            yield f"{tree.where(found.importer, found.line)}: {above} must not import {below} ({found.name})"
        of_the_root = found.public or (found.module == PACKAGE and f"{PACKAGE}.{found.name}" not in tree.modules)
        if of_the_root and height.get(above, 0) >= height[CORE]:
            yield f"{tree.where(found.importer, found.line)}: only folders above {CORE} may use the public API ({found.name})"


def cycles(tree: Tree) -> Violations:
    """Files do not import each other in a circle, wherever in the file the import stands."""
    for group in tree.cycles():
        yield f"{tree.where(group[0])}: cycle between {', '.join(group)}"


def imports_inside(tree: Tree) -> Violations:
    """Functions import from the package only in cli/, or what needs an optional package."""
    extra = _needing_extras(tree)
    for found in tree.imports:
        if found.inside and not found.public and folder_of(found.importer) != "cli" and found.target not in extra:
            yield f"{tree.where(found.importer, found.line)}: imports {found.name} inside a function; do so at the top"


def _needing_extras(tree: Tree) -> set[str]:
    """Modules that cannot be imported without an optional package, directly or through what they import."""
    own = set()
    for module in tree.modules.values():
        for node in _at_top(module.tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            tops = {name.partition(".")[0] for name in names}
            if tops - {PACKAGE, *ALWAYS_THERE} - sys.stdlib_module_names:
                own.add(module.name)
    while True:
        at_top = {f.importer for f in tree.imports if not f.inside and f.target in own} - own
        if not at_top:
            return own
        own |= at_top


def _at_top(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, those of a `try` included."""
    for node in tree.body:
        yield from (node, *node.body) if isinstance(node, ast.Try) else (node,)


def dispatch(tree: Tree) -> Violations:
    """Nobody asks an estimator, lens or profile which concrete class it is; the class itself knows."""
    bases = {
        node.name: (module.name, {ast.unparse(b).rpartition(".")[2] for b in node.bases})
        for module in tree.modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    concrete: set[str] = set()
    while more := {c for c, (_, up) in bases.items() if up & (concrete | set(PROTOCOLS))} - concrete:
        concrete |= more
    for module in tree.modules.values():
        foreign = {c for c in concrete if bases[c][0] != module.name}
        for line, names in _types_asked_for(module.tree):
            for name in sorted(names & foreign):
                yield f"{tree.where(module.name, line)}: asks whether something is a {name}; ask the object instead"


def _types_asked_for(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """Lines with isinstance, issubclass, type(...) comparisons and class patterns, and the names they ask for."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            yield node.lineno, {name for argument in node.args[1:] for name in _names(argument)}
        elif isinstance(node, ast.Compare) and any(_is_type_call(side) for side in (node.left, *node.comparators)):
            yield node.lineno, {name for side in (node.left, *node.comparators) for name in _names(side)}
        elif isinstance(node, ast.MatchClass):
            yield node.lineno, set(_names(node.cls))


def _is_type_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "type"
        and len(node.args) == 1
    )


def _names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def through_init(tree: Tree) -> Violations:
    """Names of another folder come from an __init__, or a part of it is taken whole (`from truecal.estimate import resampling`)."""
    for found in tree.imports:
        if found.public or folder_of(found.importer) == folder_of(found.module) or found.module == PACKAGE:
            continue
        module = tree.modules.get(found.module)
        if found.module.count(".") > 1 and not (module and module.is_package):
            yield f"{tree.where(found.importer, found.line)}: {found.name} comes from {found.target}, not from __init__"


def names_crossing(tree: Tree) -> Violations:
    """Few names cross the borders of folders."""
    names = crossing(tree)
    if len(names) > MOST_NAMES_CROSSING:
        listed = ", ".join(f"{folder}.{name}" for folder, name in sorted(names))
        yield f"src/{PACKAGE}: {len(names)} names cross folder borders (at most {MOST_NAMES_CROSSING}): {listed}"


def crossing(tree: Tree) -> set[tuple[str, str]]:
    """(folder, name) of all that is imported from another folder."""
    return {
        (folder_of(f.module), f.name)
        for f in tree.imports
        if not f.public and folder_of(f.module) != folder_of(f.importer)
    }


def untyped(tree: Tree) -> Violations:
    """Pages and commands are made from typed records."""
    places = [(m, m.text.count(UNTYPED)) for m in tree.modules.values() if m.folder in ("report", "cli")]
    total = sum(count for _, count in places)
    if total > MOST_UNTYPED:
        listed = ", ".join(f"{tree.where(m.name)} ({count})" for m, count in places if count)
        yield f"src/{PACKAGE}: {total} {UNTYPED} in report and cli (at most {MOST_UNTYPED}): {listed}"


def prefixes(tree: Tree) -> Violations:
    """A word that more than three files of a folder begin with wants to be a folder."""
    for folder, stems in _stems(tree).items():
        for word, count in Counter(stem.partition("_")[0] for stem in stems).items():
            if count > MOST_ALIKE:
                yield f"{folder}: {count} files begin with {word!r}; make a folder of them"


def crowds(tree: Tree) -> Violations:
    """No folder has more than 15 files side by side, and no file has a name that says nothing."""
    for folder, stems in _stems(tree).items():
        if len(stems) > MOST_FILES:
            yield f"{folder}: {len(stems)} files side by side (at most {MOST_FILES})"
        for stem in stems:
            if stem in FORBIDDEN_STEMS:
                yield f"{folder}/{stem}.py: name the idea in it"


def _stems(tree: Tree) -> dict[str, list[str]]:
    stems = defaultdict(list)
    for module in tree.modules.values():
        if not module.is_package:
            stems[module.path.parent.relative_to(tree.root).as_posix()].append(module.path.stem)
    return stems


def sizes(tree: Tree) -> Violations:
    """Files, functions and argument lists stay short, or are listed with a reason."""
    over = {key: message for module in tree.modules.values() for key, message in _oversized(tree, module)}
    for key, message in over.items():
        if key not in EXCEPTIONS:
            yield message
    for key in EXCEPTIONS.keys() - over.keys():
        yield f"tools/house.py: EXCEPTIONS has no need of {key!r} any more"


def _oversized(tree: Tree, module: Module) -> Iterator[tuple[str, str]]:
    """(key, message) of what is too long; the key of a function is path:name, of a file its path."""
    path = module.path.relative_to(tree.root / "src" / PACKAGE).as_posix()
    if (lines := len(module.text.splitlines())) > MOST_LINES:
        yield path, f"{tree.where(module.name)}: {lines} lines (at most {MOST_LINES})"
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        where, key = tree.where(module.name, node.lineno), f"{path}:{node.name}"
        if (lines := _lines(node) - _docstring_lines(node)) > MOST_FUNCTION_LINES:
            yield f"{key} lines", f"{where}: {node.name} has {lines} lines (at most {MOST_FUNCTION_LINES})"
        arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if (count := len(arguments) - (arguments[:1] in (["self"], ["cls"]))) > MOST_ARGUMENTS:
            yield f"{key} arguments", f"{where}: {node.name} takes {count} arguments (at most {MOST_ARGUMENTS})"


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return _lines(first) if is_text else 0


RULES: tuple[Callable[[Tree], Violations], ...] = (
    layers,
    cycles,
    imports_inside,
    dispatch,
    through_init,
    names_crossing,
    untyped,
    prefixes,
    crowds,
    sizes,
)


def check(tree: Tree) -> dict[str, list[str]]:
    """Every rule's violations."""
    return {rule.__name__: list(rule(tree)) for rule in RULES}


def main(arguments: list[str] | None = None) -> int:
    """Print what is wrong, then one line of totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--report", action="store_true", help="print, but end with 0")
    parser.add_argument("--counts", action="store_true", help="print the totals only")
    options = parser.parse_args(arguments)
    tree = Tree.read(options.root)
    violations = check(tree)
    for rule, messages in violations.items():
        for message in messages if not options.counts else ():
            print(f"{message} [{rule}]")
    lines = sum(len(module.text.splitlines()) for module in tree.modules.values())
    totals = ", ".join(f"{rule} {len(messages)}" for rule, messages in violations.items())
    print(
        f"house: {len(tree.modules)} files, {lines} lines, {len(crossing(tree))} names crossing; violations: {totals}"
    )
    return 0 if options.report or not any(violations.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
