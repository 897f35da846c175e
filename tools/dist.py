"""Build the distributions and try them as a user would: `python -m tools.dist [--quick]`.

Checks the metadata and the content of sdist and wheel, installs the wheel in an empty environment away from the checkout, measures
what that pulls in, and runs the README and the doctests of the installed package. --quick stops after the first example.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "dev.lock"
MOST_BYTES = 1_500_000
MOST_PULLED = 150_000_000  # what pip downloads for the core
# Folders of a developer's machine, and what must not travel.
PRIVATE_PATHS = re.compile(rb"(?<![\w.])(/home/\w|/Users/\w|/root/|/work/|[A-Z]:\\\\Users)")
NOT_SHIPPED = re.compile(r"(^|/)(tests?|conftest\.py|benchmarks|conformance|\.venv.*|__pycache__)(/|$)")
EXAMPLE = """
import numpy as np, truecal as tc
rng = np.random.default_rng(0)
p = rng.random(1000)
est = tc.calibration_error(rng.random(1000) < p, p)
assert 0 in est.interval and est.n == 1000, est
print(est)
"""


def build(folder: Path) -> tuple[Path, Path]:
    """sdist and wheel."""
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, stdout=subprocess.DEVNULL
    )
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def contents(archive: Path) -> dict[str, bytes]:
    """Every file of a distribution by its path."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as package:
            return {name: package.read(name) for name in package.namelist() if not name.endswith("/")}
    with tarfile.open(archive) as package:
        files = {member.name.partition("/")[2]: package.extractfile(member) for member in package if member.isfile()}
        return {name: file.read() for name, file in files.items() if file is not None}


def problems_of_content(name: str, size: int, files: dict[str, bytes]) -> Iterator[str]:
    """What must not be in a distribution, or is missing from it."""
    if size > MOST_BYTES:
        yield f"{name}: {size:,} bytes (at most {MOST_BYTES:,})"
    for path, data in files.items():
        if NOT_SHIPPED.search(path):
            yield f"{name}: {path} does not belong in it"
        if match := PRIVATE_PATHS.search(data):
            yield f"{name}: {path} names a path of a developer's machine: {match[0].decode(errors='replace')}"
    if not any(path.endswith("truecal/py.typed") for path in files):
        yield f"{name}: py.typed is missing, so type checkers ignore the annotations"


def problems_of_metadata(metadata: Message, project: dict[str, object], changelog: str) -> Iterator[str]:
    """What an index page needs, and whether version and changelog agree."""
    required = ("Summary", "License-Expression", "Requires-Python", "Description-Content-Type", "Keywords")
    yield from (f"metadata: no {field}" for field in required if not metadata[field])
    urls = {str(url).partition(",")[0] for url in metadata.get_all("Project-URL", [])}
    yield from (
        f"metadata: no address of {name}" for name in {"Homepage", "Documentation", "Changelog", "Issues"} - urls
    )
    if len(str(metadata.get_payload())) < 1000:
        yield "metadata: the long description is missing"
    classifiers = metadata.get_all("Classifier", [])
    yield from (
        f"metadata: no classifier for Python {v}"
        for v in ("3.11", "3.12", "3.13")
        if f"Programming Language :: Python :: {v}" not in classifiers
    )
    version = metadata["Version"]
    if version != project["version"]:
        yield f"metadata: version {version}, pyproject.toml says {project['version']}"
    if not re.search(rf"^## {re.escape(str(version))}\b", changelog, flags=re.M):
        yield f"CHANGELOG.md has no section {version}"


def environment(folder: Path, *packages: str, python: str | None = None) -> Path:
    """An empty environment with these packages; its interpreter."""
    if python is None:
        venv.create(folder, with_pip=True)
    else:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    interpreter = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *packages], check=True)
    return interpreter


def installed_bytes(interpreter: Path) -> int:
    """What the environment holds beside pip itself."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(
        subprocess.run([str(interpreter), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    )
    return sum(
        f.stat().st_size for f in site.rglob("*") if f.is_file() and not f.relative_to(site).parts[0].startswith("pip")
    )


def try_core(wheel: Path, folder: Path, python: str | None = None) -> Iterator[str]:
    """The wheel alone, in an empty environment, away from the checkout."""
    interpreter = environment(folder / "core", str(wheel), python=python)
    pulled = folder / "pulled"
    subprocess.run([str(interpreter), "-m", "pip", "download", "--quiet", "-d", str(pulled), str(wheel)], check=True)
    size = sum(file.stat().st_size for file in pulled.iterdir())
    print(f"core: pip pulls {size / 1e6:.0f} MB, which take {installed_bytes(interpreter) / 1e6:.0f} MB on disk")
    if size > MOST_PULLED:
        yield f"pip pulls {size:,} bytes for the core (at most {MOST_PULLED:,})"
    done = subprocess.run(
        [str(interpreter), "-I", "-c", EXAMPLE], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        yield f"the first example fails: {done.stderr.strip().splitlines()[-1]}"


def try_documentation(wheel: Path, folder: Path) -> Iterator[str]:
    """README, doctests and the demonstration against the installed wheel with its extras."""
    extras = ("pytest", "torch", "torchmetrics", "duckdb", "pyarrow", "pandas")
    interpreter = environment(folder / "all", "-c", str(LOCK), f"{wheel}[all]", *extras)
    (folder / "README.md").write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--doctest-glob=*.md",
        "--ignore-glob=*/integrations/calibration_error.py",  # needs evaluate at once
        "--ignore-glob=*/integrations/inspect_ai.py",  # needs inspect-ai at once
        "-o",
        "doctest_optionflags=NORMALIZE_WHITESPACE ELLIPSIS",
    ]
    for what, command in {
        "README": ["-m", "pytest", *options, "README.md"],
        "doctests": ["-m", "pytest", *options, "--doctest-modules", "--pyargs", "truecal"],
        "demo": ["-c", "from truecal.cli.main import main; main(['demo'])"],
    }.items():
        done = subprocess.run([str(interpreter), *command], cwd=folder, capture_output=True, text=True, check=False)
        print(f"{what}: {(done.stdout.strip().splitlines() or [''])[-1]}")
        if done.returncode:
            yield f"{what} fails against the wheel:\n{done.stdout[-3000:]}{done.stderr[-2000:]}"


def main(arguments: list[str] | None = None) -> int:
    """Build, check, try; print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="stop after the first example in an empty environment")
    parser.add_argument("--python", help="interpreter to try the core with, if not this one")
    options = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = ROOT / "dist"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    problems: list[str] = []
    sdist, wheel = build(folder)
    for archive in (sdist, wheel):
        files = contents(archive)
        print(f"{archive.name}: {archive.stat().st_size:,} bytes, {len(files)} files")
        problems += problems_of_content(archive.name, archive.stat().st_size, files)
    (path,) = (name for name in contents(wheel) if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(contents(wheel)[path].decode())
    problems += problems_of_metadata(metadata, project, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as away:
        problems += try_core(wheel, Path(away), options.python)
        if not options.quick:
            problems += try_documentation(wheel, Path(away))
    print(*problems, f"{len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
