"""The `truecal` command as click has it: its verbs, each imported on use, and settings files.

    [tool.truecal]                # for every verb that has the option
    label = "y"
    [tool.truecal.measure]        # for one verb
    max-error = 0.02
    by = ["site"]

A key that no option has is refused: a threshold that is misspelt must not be ignored. So are files of other users, unless they are
named by --config.
"""

import os
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from truecal import names
from truecal.errors import FileError, InputError, printable

# Module and one line of help by verb, so that --help needs no module of a verb.
VERBS = {
    "measure": ("measure", "Measure the calibration error of predictions, with its interval."),
    "report": ("report", "Write a self-contained HTML report."),
    "verify": ("verdicts", "Test whether the error is below a threshold."),
    "audit": ("verdicts", "Find the segments whose scores are wrong, by more than the search explains."),
    "likert": ("verdicts", "Judge words for confidence: low, medium, high, or your own."),
    "decision": ("verdicts", "Estimate what miscalibration costs decisions at a threshold."),
    "compare": ("compare", "Compare models on the same rows, pair by pair."),
    "watch": ("watch", "Watch calibration over time: update, show, report."),
    "sketch": ("scan", "Keep days as sketches: save, merge, show."),
    "recalibrate": ("recalibrate", "Fit a recalibrator, or apply a fitted one."),
    "lab": ("lab", "Simulate worlds whose true error is known."),
    "study": ("study", "Evaluate many models, datasets and metrics: run, show, export."),
    "demo": ("report", "Train classifiers, measure them, fix them, and write a report."),
}

# ----------------------------------------------------------------------------------------------------
# Settings in files: [tool.truecal] of the nearest pyproject.toml, or truecal.toml, stand for options that are not given


def read_settings(file: Path) -> dict[str, Any]:
    """Read a TOML file as settings: all of it, or of a pyproject.toml the table [tool.truecal], {} if it has none."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"cannot read the settings in {file}: {error}") from error
    return content.get("tool", {}).get("truecal", {}) if file.name == "pyproject.toml" else content


def find_settings(folder: Path) -> Path | None:
    """Return the nearest settings file in a folder or those above it, None if there is none; refuse another user's."""
    for parent in (folder, *folder.parents):
        for file in (parent / "truecal.toml", parent / "pyproject.toml"):
            if file.is_file() and read_settings(file):
                _check_owner(file)
                return file
    return None


def _check_owner(file: Path) -> None:
    """Refuse a settings file of another user (not this one, not root), or in such a user's folder: it may name files to write."""
    for path in (file, file.parent) if hasattr(os, "geteuid") else ():
        owner = path.stat().st_uid
        if owner not in (0, os.geteuid()):
            raise FileError(
                f"the settings in {file} may be another user's: {path} belongs to user {owner}; "
                f"use them with --config {file}, or none with --config {os.devnull}"
            )


def settings_for(file: Path, verb: str, options: Mapping[str, bool]) -> dict[str, Any]:
    """Return the settings of a verb by option, where `options` maps its options to whether they may be repeated.

    Settings of the verb replace general ones; general ones that are no option of it are left out. Refuses unknown verbs and
    options.
    """
    values = read_settings(file)
    general = {key: value for key, value in values.items() if key not in VERBS}
    of_verb = values.get(verb, {})
    if not isinstance(of_verb, Mapping):
        raise InputError(f"{file}: [tool.truecal.{verb}] must be a table of options")
    for key, value in general.items():
        if isinstance(value, Mapping):
            raise InputError(f"{file}: there is no verb {key!r}{names.did_you_mean(key, VERBS)}")
    for key in of_verb:
        if key.replace("_", "-") not in options:
            raise InputError(f"{file}: truecal {verb} has no option {key!r}{names.did_you_mean(key, options)}")
    chosen = {key.replace("_", "-"): value for key, value in {**general, **of_verb}.items()}
    return {
        key: [value] if options[key] and not isinstance(value, list) else value
        for key, value in chosen.items()
        if key in options
    }


# ----------------------------------------------------------------------------------------------------
# The group


class LazyGroup(click.Group):
    """A group that imports the module of a verb on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = import_module(f"truecal.cli.{VERBS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        self._use_settings(ctx, cmd_name, command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move --config, which may stand before or after the verb, to the front, and parse."""
        end = args.index("--") if "--" in args else len(args)
        config = [i for i in range(end) if args[i].partition("=")[0] == "--config"]
        for i in reversed(config):
            words = args[i : i + 1] if "=" in args[i] else args[i : i + 2]
            args = [*words, *args[:i], *args[i + len(words) :]]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(f"there is no verb {args[0]!r}{names.did_you_mean(args[0], VERBS)}")
        return super().resolve_command(ctx, args)

    def _use_settings(self, ctx: click.Context, verb: str, command: click.Command) -> None:
        """Set the settings of the nearest file as defaults of the verb's options, and print them on stderr."""
        params = {p.opts[0].lstrip("-"): p for p in command.params if isinstance(p, click.Option)}
        config = ctx.params.get("config")
        if not params or ctx.resilient_parsing:
            return
        file = find_settings(Path.cwd()) if config is None else Path(config)
        options = {option: param.multiple for option, param in params.items()}
        chosen = {} if file is None else settings_for(file, verb, options)
        if chosen:
            ctx.default_map = {verb: {params[option].name: value for option, value in chosen.items()}}
            listed = ", ".join(f"{option} = {value}" for option, value in chosen.items())
            click.echo(printable(f"settings of {file}: {listed}"), err=True)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(None, "--version", package_name="truecal", message="truecal %(version)s")
@click.option(
    "--config", metavar="FILE", help="Settings file to use instead of the nearest truecal.toml or pyproject.toml."
)
def truecal(config: str | None) -> None:
    """How far a classifier's confidence is from the truth, how sure that answer is, and what fixes it.

    \b
    truecal measure preds.parquet                     one number with its interval
    truecal measure preds.csv --max-error 0.02        a gate for CI: exit 0 pass, 1 fail, 2 bad input
    truecal report preds.parquet --out report.html    a page to forward

    Shell completion: eval "$(_TRUECAL_COMPLETE=bash_source truecal)" (or zsh_source, fish_source).
    """
