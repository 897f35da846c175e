"""The lowest versions that pyproject.toml allows, as pins: `python -m tools.lowest > lowest.txt`; see `make test-lowest`.

What the tests need beside the package (pytest and others) is pinned as well, so that both ends of every range are real.
"""

import re
import sys
import tomllib
from pathlib import Path

# Extras whose packages are too large, or need a Java machine; their lower bounds are those of the newest-version run.
LEFT_OUT = ("docs", "spark", "torch", "torchmetrics")
# Tools that judge the source, not the package; and dcurves, which asks for newer statsmodels and pandas than the package does.
NOT_TESTED = (
    "build",
    "dcurves",
    "mypy",
    "ruff",
    "scipy-stubs",
    "selenium",
    "types-PyYAML",
    "torch",
    "torchmetrics",
)
_BOUND = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(\[[^]]*\])?\s*(>=|==)\s*(?P<version>[0-9.]+)")


def pins(project: Path = Path("pyproject.toml")) -> list[str]:
    """name==version for every requirement with a lower bound; the highest of the bounds that one package has.

    >>> "numpy==2.0" in pins()
    True
    """
    metadata = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    needed = [*metadata["dependencies"]]
    for extra, requirements in metadata["optional-dependencies"].items():
        needed += [] if extra in LEFT_OUT else requirements
    lowest: dict[str, tuple[int, ...]] = {}
    for requirement in needed:
        match = _BOUND.match(requirement)
        if match and match["name"] not in NOT_TESTED and match["name"] != metadata["name"]:
            version = tuple(int(part) for part in match["version"].split("."))
            lowest[match["name"]] = max(version, lowest.get(match["name"], ()))
    return [f"{name}=={'.'.join(map(str, version))}" for name, version in sorted(lowest.items())]


if __name__ == "__main__":
    sys.stdout.write("\n".join(pins()) + "\n")
