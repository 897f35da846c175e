"""The public surface, what importing costs, and that every door works without optional packages."""

import subprocess
import sys

import pytest

import truecal as tc


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_every_public_name_is_there_and_documented():
    for name in tc.__all__:
        assert getattr(tc, name).__doc__, name
    assert sorted(tc.__all__) == tc.__all__
    assert dir(tc) == sorted(tc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ece'"):
        tc.ece  # noqa: B018


def test_importing_loads_numpy_and_little_else():
    loaded = run("import sys, truecal; print(*sorted({m.partition('.')[0] for m in sys.modules}))").split()
    heavy = {"pandas", "torch", "matplotlib", "sklearn", "scipy", "polars", "narwhals", "click", "rich", "pyspark"}
    assert not heavy & set(loaded)


def test_version():
    assert tc.__version__.count(".") == 2
