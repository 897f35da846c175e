"""The software bill of materials: what truecal and its extras need, in which version and under which licence.

`python -m tools.sbom FILE` writes it as CycloneDX 1.5 from what is installed, and ends with 1 where a licence is not one that an
Apache-2.0 package may depend on.
"""

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

EXTRAS = ("cli", "files", "sklearn", "plot", "report", "torch", "onnx", "study", "torchmetrics", "duckdb", "dask")
# Words that name a permissive licence, or a weak copyleft whose use as a library is free.
ALLOWED = ("mit", "bsd", "apache", "psf", "python software foundation", "isc", "mpl", "mozilla public", "zlib", "hpnd", "unlicense",
           "cc0", "zpl", "lgpl", "0bsd", "nvidia proprietary")  # fmt: skip
FORBIDDEN = ("agpl", "affero", "sspl", "busl", "gnu general public license v3", "gpl-3.0-only", "gpl-2.0-only")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


def needed(root: str = "truecal") -> dict[str, Distribution]:
    """Every installed distribution that the package or one of its extras leads to, by name."""
    packages: dict[str, Distribution] = {}
    waiting: list[tuple[str, tuple[str, ...]]] = [(root, EXTRAS)]
    while waiting:
        name, extras = waiting.pop()
        key = name.lower().replace("_", "-")
        if key in packages:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # an extra that is not installed here, or for another platform
            continue
        packages[key] = package
        for requirement in package.requires or ():
            name_part, _, marker = requirement.partition(";")
            match = _NAME.match(name_part.strip())
            marker_extras = re.findall(r"extra\s*==\s*['\"]([^'\"]+)", marker)
            if match and (not marker_extras or any(extra in extras for extra in marker_extras)):
                waiting.append((match[0], ()))
    return packages


def licence(package: Distribution) -> str:
    """The licence that a distribution states."""

    def all_of(name: str) -> list[str]:
        return package.metadata.get_all(name) or []

    classified = [line.rpartition("::")[2].strip() for line in all_of("Classifier") if line.startswith("License")]
    expression, free = " ".join(all_of("License-Expression")), " ".join(all_of("License"))
    return expression or "; ".join(classified) or free.strip().partition("\n")[0]


def problem(text: str) -> bool:
    """Whether a licence is not one to depend on.

    >>> problem("MIT"), problem("AGPL-3.0-only"), problem("")
    (False, True, True)
    """
    words = text.lower()
    return any(word in words for word in FORBIDDEN) or not any(word in words for word in ALLOWED)


def bill(packages: dict[str, Distribution]) -> dict[str, object]:
    """The CycloneDX document."""
    parts = [
        {
            "type": "library",
            "name": name,
            "version": package.version,
            "purl": f"pkg:pypi/{name}@{package.version}",
            "licenses": [{"license": {"name": licence(package)}}],
        }
        for name, package in sorted(packages.items())
    ]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": parts}


def main() -> int:
    """Write the bill and name every licence that does not do."""
    packages = needed()
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/sbom.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill(packages), indent=1) + "\n", encoding="utf-8")
    wrong = {name: licence(package) for name, package in packages.items() if problem(licence(package))}
    print(f"{len(packages)} distributions in {target}; {len(wrong)} with a licence to look at")
    for name, text in sorted(wrong.items()):
        print(f"  {name}: {text or 'states none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
