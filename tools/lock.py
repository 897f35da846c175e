"""The versions installed in this environment, as a constraints file: `python -m tools.lock > requirements/dev.lock`.

Constraints pin whatever gets installed and install nothing themselves, so one file serves every platform. Local versions (`+cpu`)
are left off: which build of a package is taken is the machine's choice.
"""

import re
from importlib.metadata import distributions

LEFT_OUT = {"truecal", "pip", "setuptools", "wheel", "uv"}


def normal(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> list[str]:
    """name==version of all that is installed, sorted."""
    installed = {normal(d.name): d.version.partition("+")[0] for d in distributions()}
    return [f"{name}=={version}" for name, version in sorted(installed.items()) if name not in LEFT_OUT]


if __name__ == "__main__":
    print("# The development environment, pinned. Written by `make lock`; used by make as constraints.")
    print("\n".join(pins()))
