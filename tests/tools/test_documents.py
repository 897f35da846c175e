"""The guide for contributors, the architecture page and the decisions say what is there."""

import re

import pytest

from tests.tools.test_house import ROOT
from tools.tree import Tree

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


def test_the_map_of_the_guide_names_every_folder_and_no_other():
    table = GUIDE.partition("| folder |")[2].partition("\n\n")[0]
    named = {name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`([a-z]+(?:/|\.py))`", table)}
    assert named - {"border", "methods"} == {module.folder for module in Tree.read(ROOT).modules.values()} - {""}


def test_what_the_guide_calls_make_has():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"make ([a-z]+)", GUIDE)) - {"all"} <= targets


def test_files_that_the_guide_names_exist():
    for path in re.findall(r"`((?:src|tests|docs|tools)/[\w/.-]+\.\w+)`", GUIDE):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem[:4])
def test_decisions_are_numbered_dated_and_name_alternatives(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {int(path.stem[:4])}. ")
    assert re.search(r"^Date: \d{4}-\d\d-\d\d · Status: (proposed|accepted|superseded)", text, flags=re.M)
    assert "## Decision" in text
    assert len(text.partition("## Alternatives")[2].strip()) > 20
    assert f"]({path.name})" in (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")


def test_decision_numbers_have_no_gaps():
    assert [int(path.stem[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
