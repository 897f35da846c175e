"""What a release must not contain or lack, and that all places agree on its version."""

import re
import tomllib
from email.parser import Parser

from tests.tools.test_layers import ROOT
from tools import dist

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GOOD = {"truecal/py.typed": b"", "truecal/inference/tests.py": b"x = '/homework/'"}


def test_private_paths_tests_and_size_are_found():
    assert list(dist.problems_of_content("w", 1000, GOOD)) == []
    planted = {
        "names a path": {**GOOD, "truecal/a.py": b"DATA = '/home/jo/data'"},
        "does not belong": {**GOOD, "tests/test_a.py": b""},
        "py.typed is missing": {"truecal/a.py": b""},
    }
    for says, files in planted.items():
        assert any(says in problem for problem in dist.problems_of_content("w", 1000, files)), says
    assert any("4,000,000 bytes" in problem for problem in dist.problems_of_content("w", 4_000_000, GOOD))


def metadata(version: str, text: str) -> str:
    classifiers = "".join(f"Classifier: {c}\n" for c in PROJECT["classifiers"])
    urls = "".join(f"Project-URL: {name}, {url}\n" for name, url in PROJECT["urls"].items())
    head = f"Version: {version}\nSummary: s\nLicense-Expression: Apache-2.0\nRequires-Python: >=3.11\nKeywords: k\n"
    return f"{head}Description-Content-Type: text/markdown\n{classifiers}{urls}\n{text}"


def test_metadata_is_complete_and_agrees_with_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    good = Parser().parsestr(metadata(PROJECT["version"], "x" * 2000))
    assert list(dist.problems_of_metadata(good, PROJECT, changelog)) == []
    old = list(dist.problems_of_metadata(Parser().parsestr(metadata("9.9.9", "short")), PROJECT, changelog))
    assert any("no section 9.9.9" in p for p in old)
    assert any("long description" in p for p in old)
    bare = list(dist.problems_of_metadata(Parser().parsestr("Version: 0.2.0\n\n"), PROJECT, changelog))
    assert any("no address of Homepage" in p for p in bare)
    assert any("classifier for Python 3.13" in p for p in bare)


def test_all_places_agree_on_the_version():
    version = PROJECT["version"]
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    assert f'version = "{version}"' in (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_recipe_and_the_hook_ask_for_the_versions_of_the_project():
    project = (ROOT / "pyproject.toml").read_text()
    for path in (ROOT / "packaging" / "conda" / "meta.yaml", ROOT / ".pre-commit-hooks.yaml"):
        text = path.read_text().replace("matplotlib-base", "matplotlib").replace("- python >=3.11", "")
        bounds = re.findall(r"([a-z][a-z-]+) ?>=([0-9.]+)", text)
        assert len(bounds) >= 3
        assert [f"{path.name}: {name}" for name, version in bounds if f"{name}>={version}" not in project] == []
