"""List every sentence that a user can see: `python -m tools.messages [FOLDER ...]` prints them, one a line, with their places.

Read are the string literals of the package with at least three words (errors, warnings, labels, sentences of the command line and
of pages; documentation strings only where they are the help of a command), the text of HTML templates, and the literals of scripts
and of specifications of charts. A value that is filled in at run time is shown in braces.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "truecal"
MIN_WORDS = 3  # shorter literals are names, keys and labels
Message = tuple[str, int, str, str]  # path, line, kind, text


def python_messages(path: Path) -> Iterator[Message]:
    """List the messages of a Python file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = _kinds(tree)
    for node in ast.walk(tree):
        kind = kinds.get(node)
        if kind is None:
            continue
        text = " ".join(_text(node).split())
        if kind == "help" or len(re.findall(r"[A-Za-z]{2,}", text)) >= MIN_WORDS:
            yield str(path.relative_to(ROOT)), node.lineno, kind, text  # type: ignore[attr-defined]


def _kinds(tree: ast.AST) -> dict[ast.AST, str]:
    """Give each string of a module its kind: raise, warn, help or text. Parts of an f-string belong to the whole."""
    kinds: dict[ast.AST, str] = {}
    docstrings: dict[ast.AST, bool] = {}  # whether it is the help of a command or of options

    def visit(node: ast.AST, kind: str) -> None:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", [])]
            is_command = any(re.search(r"(^|\.)(command|group)\b", text) for text in decorators)
            lists_options = re.search(r"^    --\w", ast.get_docstring(node, clean=False) or "", re.MULTILINE)
            if isinstance(node.body[0], ast.Expr):
                docstrings[node.body[0].value] = is_command or lists_options is not None
        if isinstance(node, ast.Raise):
            kind = "raise"
        elif isinstance(node, ast.Call) and "warn" in ast.unparse(node.func):
            kind = "warn"
        elif isinstance(node, ast.keyword) and node.arg == "help":
            kind = "help"
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            if docstrings.get(node, True):
                kinds[node] = "help" if node in docstrings else kind
            if isinstance(node, ast.JoinedStr):
                return
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                    visit(child, kind)

    visit(tree, "text")
    return kinds


def _text(node: ast.AST) -> str:
    """Return the text of a string or f-string; values that are filled in at run time stand in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return "{" + ast.unparse(node.value) + "}" if isinstance(node, ast.FormattedValue) else ""


def template_messages(path: Path) -> Iterator[Message]:
    """List the lines of text of an HTML template."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = " ".join(re.sub(r"<[^>]*>|\{[%#].*?[%#]\}", " ", line).split())
        if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{\{.*?\}\}", " ", text))) >= MIN_WORDS:
            yield str(path.relative_to(ROOT)), number, "page", text


def script_messages(path: Path) -> Iterator[Message]:
    """List the string literals of a script, or of a chart specification, with at least three words."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for text in re.findall(r"""'([^']*)'|"([^"]*)"|`([^`]*)`""", re.sub(r"^\s*//.*", "", line)):
            words = "".join(text)
            if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\$\{.*?\}", " ", words))) >= MIN_WORDS and " " in words:
                yield str(path.relative_to(ROOT)), number, "page", words


def messages(folders: list[str]) -> Iterator[Message]:
    """List the messages of the package, or of some of its folders and files."""
    for start in [PACKAGE / folder for folder in folders] or [PACKAGE]:
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.suffix == ".py":
                yield from sorted(python_messages(path), key=lambda message: message[1])
            elif path.suffix in (".html", ".jinja", ".j2"):
                yield from template_messages(path)
            elif path.suffix in (".js", ".json"):
                yield from script_messages(path)


if __name__ == "__main__":
    for path, line, kind, text in messages(sys.argv[1:]):
        print(f"{path}:{line}: {kind}: {text}")
