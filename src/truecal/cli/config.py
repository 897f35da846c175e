"""Settings in files: [tool.truecal] of the nearest pyproject.toml, or truecal.toml, stand for options that are not given.

    [tool.truecal]                # for every verb that has the option
    label = "y"
    [tool.truecal.measure]        # for one verb
    max-error = 0.02
    by = ["site"]

A key that no option has is refused: a threshold that is misspelt must not be ignored.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truecal import names
from truecal.errors import FileError, InputError

_FILES = ("truecal.toml", "pyproject.toml")


@dataclass(frozen=True)
class Settings:
    """The settings of a file: those for all verbs and those of single verbs. Without a file there are none."""

    file: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def for_verb(self, verb: str, verbs: Mapping[str, object], options: Mapping[str, bool]) -> dict[str, Any]:
        """Values by parameter; `options` are the parameters of the verb, and whether each may be repeated."""
        general = {key: value for key, value in self.values.items() if key not in verbs}
        special = self.values.get(verb, {})
        if not isinstance(special, Mapping):
            raise InputError(f"{self.file}: [tool.truecal.{verb}] must be a table of options")
        for key, value in general.items():
            if isinstance(value, Mapping):
                raise InputError(f"{self.file}: there is no verb {key!r}{names.did_you_mean(key, verbs)}")
        chosen = {_parameter(key): value for key, value in general.items() if _parameter(key) in options}
        for key, value in special.items():
            if _parameter(key) not in options:
                near = names.did_you_mean(key, [name.replace("_", "-") for name in options])
                raise InputError(f"{self.file}: truecal {verb} has no option {key!r}{near}")
            chosen[_parameter(key)] = value
        return {
            name: [value] if options[name] and not isinstance(value, list) else value for name, value in chosen.items()
        }


def nearest_settings(folder: Path) -> Settings:
    """The settings of a folder or of the nearest one above it that has some."""
    for place in (folder, *folder.parents):
        for name in _FILES:
            file = place / name
            if not file.is_file():
                continue
            try:
                held = tomllib.loads(file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                raise FileError(f"cannot read the settings in {file}: {error}") from error
            values = held if name == "truecal.toml" else held.get("tool", {}).get("truecal")
            if values is not None:
                return Settings(file, values)
    return Settings()


def _parameter(key: str) -> str:
    """The parameter of a command that a key means: the option's name with underscores."""
    return key.replace("-", "_")
