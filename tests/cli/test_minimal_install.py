"""With numpy, scipy and narwhals alone, every public name works or names the extra that it needs.

The program runs in a process that can import nothing else: its path holds links to the three packages and to truecal.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import truecal

CORE = ("numpy", "scipy", "narwhals")
_PROGRAM = """
import inspect, sys
sys.path[:] = [path for path in sys.path if "site-packages" not in path]
sys.path.insert(0, sys.argv[1])
from importlib.util import find_spec
assert not any(map(find_spec, ("click", "polars", "sklearn", "matplotlib", "pandas", "torch", "yaml")))
import numpy as np
import truecal as tc

folder = sys.argv[2]
rng = np.random.default_rng(0)
p = rng.random(300)
y = (rng.random(300) < p).astype(int)
preds = tc.Predictions.from_probs(p, y, columns={"site": np.array(["a", "b", "c"] * 100)})
logits = rng.normal(size=(300, 3))
many = tc.Predictions.from_logits(logits, rng.integers(0, 3, 300))
np.savez(folder + "/a.npz", p=p, y=y)
watch = tc.Watch(tolerance=0.02)
watch.update(preds, at="2026-05-01")
here = lambda name: folder + "/" + name

CALLS = {
    "audit": lambda: tc.audit(preds, by=["site"], depth=1),
    "band": lambda: tc.inference.band(tc.OneClass()(preds)),
    "below": lambda: tc.inference.below(preds, 0.1),
    "beyond_top": lambda: tc.groups.beyond_top({"raw": many}, ks=[2]),
    "bootstrap": lambda: tc.inference.bootstrap(tc.BinnedECE(), preds, resamples=99),
    "by_column": lambda: tc.measure(preds, select=tc.by_column("site", "a")),
    "by_label": lambda: tc.measure(preds, select=tc.by_label(1)),
    "by_output": lambda: tc.measure(preds, select=tc.by_output(1, 0.2, 0.9)),
    "calibration_error": lambda: tc.calibration_error(y, p),
    "censoring_weights": lambda: tc.clinical.censoring_weights(rng.exponential(5, 300), y, 3.0),
    "choose_bins": lambda: tc.recalibration.choose_bins(preds),
    "clinical": lambda: tc.clinical.summary(preds),
    "compare": lambda: tc.compare(y, p, p**2, resamples=99),
    "compare_many": lambda: tc.inference.compare_many(y, {"a": p, "b": p**2}, resamples=99),
    "decision_loss": lambda: tc.decision_loss(preds, thresholds=[0.2]),
    "evaluate": lambda: tc.evaluate({"a": None}, preds),
    "flexible_curve": lambda: tc.clinical.flexible_curve(preds),
    "like": lambda: tc.like("torchmetrics").measure(preds),
    "likert": lambda: tc.likert(preds, replicates=50),
    "measure": lambda: tc.measure(preds),
    "net_benefit": lambda: tc.clinical.net_benefit(preds),
    "read": lambda: (tc.read(here("a.npz")), tc.read(here("a.csv"))),
    "report": lambda: tc.report(preds, here("r.html"), fast=True),
    "report_comparison": lambda: tc.report({"a": preds, "b": preds}, here("c.html"), resamples=99),
    "report_study": lambda: tc.report(tc.study.Store(here("store")), here("s.html")),
    "report_watch": lambda: tc.report(watch, here("w.html")),
    "rows_needed": lambda: tc.inference.rows_needed(0.02, bins=10),
    "sample_size": lambda: tc.clinical.sample_size,
    "sample_size_by_simulation": lambda: tc.clinical.sample_size_by_simulation,
    "scan": lambda: tc.scan(here("a.csv"), label="y", score="p"),
    "scorer": lambda: tc.scorer(),
    "subgroups": lambda: tc.subgroups(preds, "site"),
    "sweep_granularity": lambda: tc.estimators.sweep_granularity(many),
    "verify": lambda: tc.verify(preds, 0.02),
}
functions = set()
refused = set()
for name in tc.__all__:
    try:
        found = getattr(tc, name)
    except tc.errors.MissingExtraError as error:
        assert "pip install 'truecal[" in str(error), error
        refused.add(name)
        continue
    if inspect.ismodule(found):
        for inside in getattr(found, "__all__", ()):
            try:
                getattr(found, inside)
            except tc.errors.MissingExtraError:
                refused.add(f"{name}.{inside}")
    elif inspect.isfunction(found):
        functions.add(name)
assert not functions - set(CALLS), functions - set(CALLS)
for name, call in CALLS.items():
    try:
        call()
    except tc.errors.MissingExtraError:
        refused.add(name)
    except tc.errors.FileError as error:
        assert name == "report_study", error
print(",".join(sorted(refused)))
"""


@pytest.fixture
def core(tmp_path):
    """A folder that holds the core packages and truecal, and nothing else."""
    folder = tmp_path / "core"
    folder.mkdir()
    for package in CORE:
        home = Path(find_spec(package).origin).parent
        for result in (home, home.parent / f"{package}.libs"):
            if result.exists():
                (folder / result.name).symlink_to(result)
    (folder / "truecal").symlink_to(Path(truecal.__file__).parent)
    return folder


def test_every_public_name_works_or_names_its_extra(processes, core, tmp_path):
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n")
    ran = processes.run(sys.executable, "-I", "-S", "-c", _PROGRAM, core, tmp_path)
    assert ran.returncode == 0, ran.stderr
    refused = set(ran.stdout.strip().split(","))
    assert {"recalibration", "evaluate", "read", "scan", "report"} <= refused
    assert not refused & {"measure", "verify", "compare", "audit", "subgroups", "likert", "clinical", "net_benefit"}
