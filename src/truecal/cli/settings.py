"""Settings files: [tool.truecal] of the nearest pyproject.toml, or truecal.toml, stand for options that are not given.

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
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from truecal import names
from truecal.errors import FileError, InputError, printable


def use_settings(ctx: click.Context, verb: str, command: click.Command, verbs: Collection[str]) -> None:
    """Make the settings of --config, else of the nearest file, defaults of a verb's options, and print them on stderr."""
    config = ctx.params.get("config")
    file = _nearest_settings(Path.cwd()) if config is None else Path(config)
    if file is None or ctx.resilient_parsing:
        return
    options = {param.opts[0].lstrip("-"): param for param in command.params if isinstance(param, click.Option)}
    chosen = _settings_of_verb(file, verb, list(options), verbs)
    if chosen:
        ctx.default_map = {
            verb: {
                options[key].name: [value] if options[key].multiple and not isinstance(value, list) else value
                for key, value in chosen.items()
            }
        }
        listed = ", ".join(f"{option} = {value}" for option, value in chosen.items())
        click.echo(printable(f"settings of {file}: {listed}"), err=True)


def _read_settings(file: Path) -> dict[str, Any]:
    """Read a TOML file as settings: all of it, or of a pyproject.toml the table [tool.truecal], {} if it has none.

    Raises FileError for a file that cannot be read or is not TOML.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"cannot read the settings in {file}: {error}") from error
    return content.get("tool", {}).get("truecal", {}) if file.name == "pyproject.toml" else content


def _nearest_settings(folder: Path) -> Path | None:
    """Return the nearest file with settings in a folder or those above it, None if there is none.

    Refuses a file that belongs to another user (not this one, not root), or is in such a user's folder: it may name files to write.
    """
    for parent in (folder, *folder.parents):
        for file in (parent / "truecal.toml", parent / "pyproject.toml"):
            if not file.is_file() or not _read_settings(file):
                continue
            for path in (file, parent) if hasattr(os, "geteuid") else ():
                owner = path.stat().st_uid
                if owner not in (0, os.geteuid()):
                    raise FileError(
                        f"the settings in {file} may be another user's: {path} belongs to user {owner}; "
                        f"use them by truecal --config {file} ..., or none by truecal --config {os.devnull} ..."
                    )
            return file
    return None


def _settings_of_verb(file: Path, verb: str, options: list[str], verbs: Collection[str]) -> dict[str, Any]:
    """Return the settings of a verb by option: those of its table, then general ones that are options of it.

    Refuses tables of unknown `verbs`, and unknown options in the table of the verb.
    """
    values = _read_settings(file)
    general = {key: value for key, value in values.items() if key not in verbs}
    of_verb = values.get(verb, {})
    if not isinstance(of_verb, Mapping):
        raise InputError(f"{file}: [tool.truecal.{verb}] must be a table of options")
    for key, value in general.items():
        if isinstance(value, Mapping):
            raise InputError(f"{file}: there is no verb {key!r}{names.did_you_mean(key, verbs)}")
    for key in of_verb:
        if key.replace("_", "-") not in options:
            raise InputError(f"{file}: truecal {verb} has no option {key!r}{names.did_you_mean(key, options)}")
    chosen = {key.replace("_", "-"): value for key, value in {**general, **of_verb}.items()}
    return {key: value for key, value in chosen.items() if key in options}
