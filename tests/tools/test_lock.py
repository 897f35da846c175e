"""The lock file pins every package the development environment asks for, at a version that pyproject.toml accepts."""

import tomllib

from packaging.requirements import Requirement

from tests.tools.test_layers import ROOT
from tools.lock import normal

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = (ROOT / "requirements" / "dev.lock").read_text().splitlines()
PINS = dict(line.split("==") for line in LINES if not line.startswith("#"))


def asked(extra: str) -> list[Requirement]:
    """The requirements of an extra, those of the extras it names included."""
    own_values = [Requirement(line) for line in PROJECT["optional-dependencies"][extra]]
    others = [
        more for r in own_values if r.name == PROJECT["name"] for name in sorted(r.extras) for more in asked(name)
    ]
    return [r for r in own_values if r.name != PROJECT["name"]] + others


def test_every_requirement_is_pinned_at_a_version_it_accepts():
    for requirement in [*map(Requirement, PROJECT["dependencies"]), *asked("dev")]:
        assert normal(requirement.name) in PINS, f"{requirement} is not pinned; run: make lock"
        assert requirement.specifier.contains(PINS[normal(requirement.name)]), requirement


def test_the_lock_is_sorted_and_names_no_machine():
    assert list(PINS) == sorted(PINS)
    assert all("/" not in line and "@" not in line and "+" not in line for line in LINES if not line.startswith("#"))
