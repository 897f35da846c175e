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
    "onnx",
    "torch",
    "torchmetrics",
    "duckdb",
    "dask",
    "spark",
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


def main() -> None:
    """Print the table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = needed(project["dependencies"], set())
    print("| extra | brings | size |\n|---|---|---:|")
    print(f"| (none) | {', '.join(sorted(core))} | {sum(map(megabytes, core)):.0f} MB |")
    for extra in SHOWN:
        listed = project["optional-dependencies"][extra]
        direct = [r for r in listed if not r.startswith("truecal[")]
        inside = [
            r
            for word in re.findall(r"truecal\[(\w+)\]", " ".join(listed))
            for r in project["optional-dependencies"][word]
        ]
        brought = needed([*direct, *inside], set()) - core
        titles = ", ".join(_NAME.match(r)[0] for r in [*direct, *inside])  # type: ignore[index]
        print(f"| `{extra}` | {titles} | {sum(map(megabytes, brought)):.0f} MB |")


if __name__ == "__main__":
    main()
