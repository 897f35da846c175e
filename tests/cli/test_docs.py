"""Commands in the documentation exist with the options they are shown with."""

import re
import shlex
from pathlib import Path

import click
import pytest

from truecal.cli.command import ALL_FORMATS
from truecal.cli.verbs import truecal as root
from truecal.names import LENSES

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
    group, context = root, None
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
        known_names = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0] in known_names | {"--help", "--config"}, " ".join(line)


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

    visit(root, ())


def leaf_commands(group, words=()):
    context = click.Context(group, resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaf_commands(command, (*words, name))
        else:
            yield (*words, name), {option for param in command.params for option in param.opts}


def test_page_of_the_command_line_names_what_there_is():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    commands = dict(leaf_commands(root))
    for option in re.findall(r"`(--[a-z-]+)", page):
        assert any(option in options for options in commands.values()) or option in ("--help", "--config"), option
    formats = page.partition("also have `--format`: ")[2].partition(". All are made")[0]
    assert {"text", "json", *re.findall(r"`(\w+)`", formats)} == set(ALL_FORMATS)
    verbs = re.search(r"((?:`\w+`, )+`\w+` and\n?\s*`\w+`) also have `--format`", page)[1]
    assert set(re.findall(r"`(\w+)`", verbs)) == {
        words[0] for words, options in commands.items() if "--format" in options
    }
    scanned = re.search(r"((?:`[\w ]+`, )+`[\w ]+` and `[\w ]+`) also take a pattern", page)[1]
    # watch update reads its files as batches, each of which may be a folder or pattern
    of_engine = {" ".join(words) for words, options in commands.items() if "--engine" in options} - {"watch update"}
    assert set(re.findall(r"`([\w ]+)`", scanned)) == of_engine
    assert "truecal[zst]" in page


def test_lens_option_names_every_lens():
    command, _ = find_command(["measure"])
    help_ = next(param.help for param in command.params if "--lens" in param.opts)
    assert all(f"{word}," in help_ for word in LENSES)
