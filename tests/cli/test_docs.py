"""Commands in the documentation exist with the options they are shown with."""

import re
import shlex
from pathlib import Path

import click
import pytest

from truecal.cli.main import _group

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def command_lines(page):
    """List the lines of code blocks that begin with `truecal`, without comments and pipes."""
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced ^= line.strip().startswith("```")
        code = re.match(r"\s*(?:\$ )?truecal ([a-z].*)", line) if fenced or line.startswith("    ") else None
        if code and not re.search(r"[<>{}`]|\.\.\.", line):
            yield shlex.split(re.split(r"\s+#|\s\||\s&&|\s;", code[1])[0].rstrip("\\"))


def find_command(words):
    group, context = _group(), None
    while isinstance(group, click.Group):
        context = click.Context(group, parent=context, resilient_parsing=True)
        command = group.get_command(context, words[0])
        assert command is not None, words
        group, words = command, words[1:]
    return group, words


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documented_commands_exist(page):
    for line in command_lines(page):
        command, words = find_command(line)
        known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0] in known | {"--help", "--config"}, " ".join(line)


def test_every_command_and_option_has_help():
    def visit(command, words):
        if isinstance(command, click.Group):
            context = click.Context(command, resilient_parsing=True)
            for name in command.list_commands(context):
                visit(command.get_command(context, name), (*words, name))
            return
        assert command.help, words
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, (words, param.opts)

    visit(_group(), ())
