"""How large every extra is, installed: `python -m tools.extras` prints the table of docs/index.md from this environment.

A package counts with all that it needs, except what the core brings.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHOWN = (
    "cli",
    "files",
    "sklearn",
    "plot",
    "report",
    "study",
    "zst",
    "onnx",
    "torch",
    "torchmetrics",
    "duckdb",
    "dask",
    "spark",
    "all",
)
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def needed(names: list[str], visited: set[str]) -> set[str]:
    """Packages and all they need on this machine, by their normal names."""
    for requirement in names:
        match = _NAME.match(requirement)
        if match is None:
            continue
        name = match[0].lower().replace("_", "-")
        if name in visited:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another system or Python
            continue
        visited.add(name)
        extras = re.findall(r"\[(\w+)\]", requirement.partition(";")[0])
        plain = [r for r in package.requires or () if "extra ==" not in r]
        more = [
            r.partition(";")[0]
            for r in package.requires or ()
            if any(f'extra == "{a}"' in r.replace("'", '"') for a in extras)
        ]
        needed([*plain, *more], visited)
    return visited


def megabytes(name: str) -> float:
    """What the files of an installed package take on disk."""
    files = distribution(name).files or ()
    sizes = (path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
    return sum(sizes) / 1e6


def listed(extra: str, extras: dict[str, list[str]]) -> list[str]:
    """The requirements of an extra, with those of the extras it names."""
    requirements: list[str] = []
    for requirement in extras[extra]:
        inner = re.match(r"truecal\[([\w,]+)\]", requirement)
        requirements += (
            [requirement] if inner is None else [r for name in inner[1].split(",") for r in listed(name, extras)]
        )
    return list(dict.fromkeys(requirements))


def main() -> None:
    """Print the table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = needed(project["dependencies"], set())
    print("| extra | brings | size |\n|---|---|---:|")
    print(f"| (none) | {', '.join(sorted(core))} | {sum(map(megabytes, core)):.0f} MB |")
    for extra in SHOWN:
        requirements = listed(extra, project["optional-dependencies"])
        brought = needed(requirements, set()) - core
        names = ", ".join(_NAME.match(r)[0] for r in requirements)  # type: ignore[index]
        print(f"| `{extra}` | {names} | {sum(map(megabytes, brought)):.0f} MB |")


if __name__ == "__main__":
    main()
