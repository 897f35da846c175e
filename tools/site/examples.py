"""Turn executed examples into code that can be copied: prompts go, outputs become comments, with no placeholder left."""

import doctest
import re
import textwrap
from typing import Any

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
WIDTH = 90  # characters of a line of output that fit on the page
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class _Recorder(doctest.DocTestRunner):
    """Runs examples and keeps what each printed."""

    def __init__(self) -> None:
        super().__init__(optionflags=OPTIONS, verbose=False)
        self.printed: dict[int, str] = {}

    def report_success(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.printed[example.lineno] = got

    def report_start(self, out: Any, test: doctest.DocTest, example: doctest.Example) -> None:
        return

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        raise AssertionError(f"{test.name}, line {example.lineno + 1}: expected {example.want!r}, got {got!r}")

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        raise AssertionError(f"{test.name}, line {example.lineno + 1}: {exc_info[1]!r}") from exc_info[1]


def _comment(output: str) -> list[str]:
    """The output as comments; of a traceback its last line."""
    lines = output.replace("<BLANKLINE>", "").rstrip("\n").split("\n")
    if lines[0].startswith("Traceback"):
        lines = [line for line in lines[1:] if not line.startswith(" ")]
    if len(lines) == 1:
        lines = textwrap.wrap(lines[0], WIDTH, subsequent_indent="  ") or [""]
    return [f"# {line}".rstrip() for line in lines]


def are_abbreviated(text: str) -> bool:
    """Whether an output of the examples is given in part, such as `0.33...`."""
    return any("..." in example.want for example in doctest.DocTestParser().get_examples(text))


def copyable(text: str, name: str, variables: dict[str, Any] | None) -> str:
    """Return examples as plain code with outputs as comments; run them if there are variables to run them with.

    >>> print(copyable('>>> x = 1 / 3\\n>>> x\\n0.33...\\n', "page", {}))
    x = 1 / 3
    x
    # 0.3333333333333333
    """
    parts = doctest.DocTestParser().parse(text, name)
    examples = [part for part in parts if isinstance(part, doctest.Example)]
    recorder = _Recorder()
    if variables is not None:
        test = doctest.DocTest(examples, variables, name, None, 0, text)
        test.globs = variables  # DocTest copies them; the next block of the page needs what this one defines
        recorder.run(test, clear_globs=False)
    lines: list[str] = []
    for part in parts:
        if isinstance(part, doctest.Example):
            lines += re.sub(r"[ \t]*# doctest:.*", "", part.source).rstrip("\n").split("\n")
            lines += _comment(recorder.printed.get(part.lineno, part.want)) if part.want else []
        elif part.strip("\n"):
            lines += part.strip("\n").split("\n")
        elif part.count("\n") > 1 and lines:
            lines.append("")
    return "\n".join(lines).rstrip("\n")


def with_copyable_examples(markdown: str, name: str) -> str:
    """Return the page with every block of examples as code that can be copied."""
    blocks = "\n".join(_FENCE.findall(markdown))
    variables = {"__name__": "__main__"} if are_abbreviated(blocks) else None

    def block(match: re.Match[str]) -> str:
        if ">>> " not in match[1]:
            return match[0]
        return f"```python\n{copyable(match[1], f'{name}-{match.start()}', variables)}\n```"

    return _FENCE.sub(block, markdown)
