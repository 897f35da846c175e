"""The examples in the docstrings: one test for each module that has any, which is imported when it runs and not before."""

import doctest
import importlib
from functools import cached_property
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


FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def cached_examples(module):
    """The examples of cached properties, which doctest's own finder passes over."""
    for owner in vars(module).values():
        if isinstance(owner, type) and owner.__module__ == module.__name__:
            for name, member in vars(owner).items():
                if isinstance(member, cached_property):
                    where = f"{owner.__qualname__}.{name}"
                    yield doctest.DocTestParser().get_doctest(
                        member.__doc__ or "", dict(vars(module)), where, module.__file__, 0
                    )


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for examples in (*doctest.DocTestFinder().find(module), *cached_examples(module)):
        runner.run(examples)
    result = runner.summarize(verbose=False)
    assert result.attempted, "its examples were not found"
    assert not result.failed
