"""Beside an earlier state of the project: what became faster by how much, and that nothing became slower.

The sources of that commit are taken from git into a temporary folder. Old and new run in processes of their own, in turns, by
processor time; the best of the turns counts. Without the commit (a shallow clone) these rows are left out.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.harness import Row
from benchmarks.speed.peers import SORTS, N

BASE = "2924208223"
ROUNDS = 3
NOISE = 1.1  # two runs of the same code differ by up to a tenth
# What a default call may take beside the same call then.
FASTER = {"1e+03": 4 / 7, "1e+04": 15 / 33, "1e+05": 35 / 71}
# A study then had no intervals of binned errors and kept nothing to compare models in pairs by; of a file this small that takes
# as long as all the numbers. At 50,000 x 1000 it hardly shows (1.01 to 1.09); study.py has the promise at full size.
SLOWER = {"study of two models, 5000 x 10": 2.4, "study of two models, 50,000 x 1000": 1.2}
HERE = Path(__file__).parents[2]  # the repository

_WORKS = """
import json, sys, tempfile, time, warnings
from pathlib import Path
import numpy as np
import truecal as tc
assert str(Path(tc.__file__).parents[2]) == str(Path(sys.argv[1])), tc.__file__
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
def data(n, power=1.1):
    scores = rng.random(n)
    return scores, (rng.random(n) < scores**power).astype(np.int8)
def best(work, repeat):
    times = []
    for _ in range(repeat + 1):  # what loads on first use is not counted
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times[1:])
def default(n, power, repeat):
    c, y = data(n, power)
    return best(lambda: tc.calibration_error(y, c), repeat)
def public(name):
    for module in (tc, *(getattr(tc, word, None) for word in ("estimators", "inference", "uncertainty", "recalibration"))):
        if callable(getattr(module, name, None)):
            return getattr(module, name)
    raise AttributeError(name)
found = {}
"""

_USUAL = """
for n, repeat in ((1000, 20), (10_000, 10), (100_000, 5)):
    for name, power in (("calibrated", 1.0), ("not calibrated", 1.5)):
        found[f"default call, n = {n:.0e}, {name}"] = default(n, power, repeat)
c, y = data(1_000_000)
profile = tc.profile.Profile.from_arrays(c, y)
profile.scores
for name in ("SmoothECE", "NearestECE", "KernelDensityECE", "IsotonicError"):
    estimator = public(name)()
    found[f"{name}, 1e6, given its profile"] = best(lambda: estimator.values(profile), 3)
few = tc.profile.Profile.from_arrays(*data(100_000))
found["bootstrap of 1000, DebiasedECE, n = 1e5"] = best(lambda: public("bootstrap")(tc.DebiasedECE(), few, resamples=1000), 3)
logits = rng.normal(size=(5000, 1000)).astype(np.float32)
labels = rng.integers(0, 1000, 5000)
logits[np.arange(5000), labels] += 5
found["temperature, 5000 x 1000 float32"] = best(lambda: public("TemperatureScaling")(input="logits").fit(logits, labels), 6)
import polars as pl
frame = pl.LazyFrame({"p": c.astype(np.float32), "y": y})
found["scan of 1e6 rows, polars"] = best(lambda: tc.scan(frame, label="y", score="p"), 3)
study = "name: s\\npredictions:\\n  - {files: '{model}.npz', dataset: d}\\ncolumns: {label: labels, logits: logits}\\nworkers: 1\\n"
def of_study(logits, labels):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in range(2):
            np.savez(folder / f"m{model}.npz", logits=logits, labels=labels)
        (folder / "study.yaml").write_text(study)
        runs = iter(range(9))
        read = tc.study.Study.read(folder / "study.yaml")
        return best(lambda: read.run(folder / f"store{next(runs)}"), 3)
found["study of two models, 5000 x 10"] = of_study(logits[:, :10], labels % 10)
found["study of two models, 50,000 x 1000"] = of_study(np.tile(logits, (10, 1)), np.tile(labels, 10))
print(json.dumps(found))
"""

_LARGE = "found['large'] = default(int(sys.argv[2]), 1.1, 2)\nprint(json.dumps(found))\n"


def _run(root: Path, code: str, off: str) -> dict[str, float]:
    env = {**os.environ, "PYTHONPATH": str(root / "src"), "NPY_DISABLE_CPU_FEATURES": off, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", _WORKS + code, str(root), str(N)]
    out = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(out.stderr)
    answer: dict[str, float] = json.loads(out.stdout.splitlines()[-1])
    return answer


def _in_turns(then: Path, code: str, off: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Best seconds of every work, then and now."""
    runs = [(_run(then, code, off), _run(HERE, code, off)) for _ in range(rounds)]
    names = runs[0][0]
    return {name: (min(old[name] for old, _ in runs), min(new[name] for _, new in runs)) for name in names}


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="truecal-before-") as name:
        folder = Path(name)
        packed = subprocess.run(["git", "archive", BASE, "src"], cwd=HERE, capture_output=True)
        if packed.returncode:
            print(f"commit {BASE} is not in this clone: rows beside it are left out", file=sys.stderr)
            return []
        subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
        table = []
        for what, (old, new) in _in_turns(folder, _USUAL, "", ROUNDS).items():
            bound = next((goal for size, goal in FASTER.items() if f"n = {size}," in what), SLOWER.get(what, NOISE))
            table.append(Row(what, new, new / old, f"the same at {BASE}", round(bound, 3)))
        for setting, off in SORTS.items():
            old, new = _in_turns(folder, _LARGE, off, 1)["large"]
            what = f"default call, n = {N:.0e}, sorts {setting}"
            table.append(Row(what, new, new / old, f"the same at {BASE}", NOISE))
    return table
