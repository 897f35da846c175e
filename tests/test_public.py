"""The public surface, what importing costs, and that every public name works without optional packages."""

import ast
from pathlib import Path

import pytest

import truecal as tc

MODULES = {
    "clinical", "engines", "errors", "estimators", "groups", "inference", "integrations", "lab", "lenses", "plot", "profile",
    "recalibration", "scores", "selective", "study", "train",
}  # fmt: skip
SURFACE = """
Accumulator AllLabels BinnedECE Canonical ClassWise DebiasedECE Estimate GeneralizedECE Grouping InputError NearestECE
OneClass Predictions RankSeries Sketch SmoothECE SweepECE TopK TopLabel TruecalError TruecalWarning Watch audit
by_column by_label by_output calibration_error clinical compare decision_loss engines errors estimators evaluate
groups inference integrations lab lenses like likert measure plot profile read recalibration report scan scorer scores
selective study subgroups train verify
"""


def test_the_surface_is_exactly_this():
    assert tc.__all__ == SURFACE.split()


def test_every_public_name_is_there_and_documented():
    pytest.importorskip("torch")  # truecal.train is a public name
    for name in tc.__all__:
        assert getattr(tc, name).__doc__, name
    assert sorted(tc.__all__) == tc.__all__
    assert dir(tc) == sorted(tc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ece'"):
        tc.ece  # noqa: B018


def test_importing_the_package_or_its_pytest_plugin_loads_next_to_nothing(processes):
    code = "import sys, pytest; before = {*sys.modules}; import truecal, truecal.integrations.pytest_plugin"
    loaded = processes.python(
        f"{code}; print(*{{m.partition('.')[0] for m in {{*sys.modules}} - before}})"
    ).stdout.split()
    assert "truecal" in loaded
    heavy = {
        "pandas",
        "torch",
        "matplotlib",
        "sklearn",
        "numpy",
        "scipy",
        "polars",
        "narwhals",
        "click",
        "rich",
        "pyspark",
    }
    assert not heavy & set(loaded)


def test_editors_see_the_names_that_are_there_at_run_time():
    tree = ast.parse(Path(tc.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    observed = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert observed == set(tc.__all__)


def test_importing_a_module_never_hides_a_function(processes):
    pytest.importorskip("torch")
    code = "import pkgutil, types, truecal as tc; [__import__(f'truecal.{m.name}') for m in pkgutil.iter_modules(tc.__path__)]"
    answer = processes.python(
        f"{code}; print(*[n for n in tc.__all__ if isinstance(getattr(tc, n), types.ModuleType)])"
    )
    assert answer.stdout.split() == [name for name in SURFACE.split() if name in MODULES]


def test_version():
    assert tc.__version__.count(".") == 2
