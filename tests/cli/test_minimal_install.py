"""With numpy, scipy and narwhals alone, every public name works or names the extra that it needs."""

import subprocess
import sys

_PROGRAM = """
import sys

class Without:
    missing = {"sklearn", "click", "rich", "polars", "matplotlib", "vl_convert", "torch", "yaml", "pandas", "pyarrow", "duckdb"}

    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root in self.missing:
            raise ModuleNotFoundError(f"No module named {root!r}", name=root)

sys.meta_path.insert(0, Without())

import numpy as np
import truecal as tc

refused = set()
for name in tc.__all__:
    try:
        getattr(tc, name)
    except tc.MissingExtraError as error:
        assert "pip install 'truecal[" in str(error), error
        refused.add(name)
rng = np.random.default_rng(0)
p = rng.random(300)
preds = tc.Predictions.from_probs(p, (rng.random(300) < p).astype(int), columns={"site": np.array(["a", "b", "c"] * 100)})
tc.measure(preds); tc.verify(preds, 0.02); tc.subgroups(preds, "site"); tc.likert(preds)
np.savez(sys.argv[1], p=p, y=preds.labels)
assert len(tc.read(sys.argv[1])) == 300
for call in (lambda: tc.report(preds, sys.argv[1] + ".html"), lambda: tc.read(sys.argv[2]), lambda: tc.TemperatureScaling()):
    try:
        call()
    except tc.MissingExtraError:
        continue
    raise AssertionError("no extra was asked for")
print(",".join(sorted(refused)))
"""


def test_every_public_name_works_or_names_its_extra(tmp_path):
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n")
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "a.npz"), str(tmp_path / "a.csv")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "TemperatureScaling" in ran.stdout  # the recalibrators stand on scikit-learn
    assert "measure" not in ran.stdout
