"""The examples in the docstrings: one test for each module that has any, which is imported when it runs and not before."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (("src", "src/truecal"), (".", "benchmarks/coverage"), (".", "papers"))  # import root and folder
MODULES = sorted(
    ".".join(path.relative_to(ROOT / root).with_suffix("").parts).removesuffix(".__init__")
    for root, folder in SOURCES
    for path in (ROOT / folder).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.attempted, "its examples were not found"
    assert not result.failed
