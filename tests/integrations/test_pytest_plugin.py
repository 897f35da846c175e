"""The fixture `calibration`, in a run of pytest of its own."""

import sys
from importlib.metadata import entry_points

PROGRAM = """
import numpy as np, truecal as tc
rng = np.random.default_rng(0)
p = rng.random(4000)
good, bad = rng.random(4000) < p, rng.random(4000) < p**2

def test_a_good_model(calibration):
    assert calibration.check(good, p, max_error=0.05).n == 4000

def test_predictions_and_the_option(calibration):
    calibration.check(tc.Predictions.from_probs(p, good))

def test_a_bad_model(calibration):
    calibration.check(bad, p, max_error=0.05)
"""


def run(processes, tmp_path, *options):
    (tmp_path / "test_model.py").write_text(PROGRAM)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    installed = any(point.name == "truecal" for point in entry_points(group="pytest11"))
    named = [] if installed else ["-p", "truecal.integrations.pytest_plugin"]
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *named, *options)
    return processes.run(*command, cwd=tmp_path).stdout


def test_a_check_passes_fails_and_says_why(processes, tmp_path):
    answer = run(processes, tmp_path, "--calibration-max-error", "0.1")
    assert "1 failed, 2 passed" in answer
    assert "FAIL: at 95% the error " in answer
    assert "and 0.05 is allowed; " in answer
    assert "root-mean-square calibration error" in answer


def test_a_check_without_a_limit_is_an_error(processes, tmp_path):
    assert "say how large the error may be" in run(processes, tmp_path, "-k", "option")
