"""A quick slice of the hostile runs; `make hostile` goes on for as long as it is given."""

import random
from functools import partial

import numpy as np
import pytest

import truecal as tc
from tools.hostile import calls, commands, files, judge, values
from tools.hostile.__main__ import run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Some calls write a page to the folder they are made in."""
    monkeypatch.chdir(tmp_path)


def test_calls_of_everything_public():
    done = run(calls=150, minutes=5, seed=20)
    assert done.calls == 150
    assert not done.failures, "\n".join(done.failures.values())
    assert done.kinds["answer"] > 25


def test_command_lines():
    counts, failures = commands.run(40, minutes=5, seed=4)
    assert not failures
    assert sum(counts.values()) == 40
    assert counts["answer"] >= 5


def test_memory_is_limited_for_each_command_anew(monkeypatch):
    """Libraries that earlier command lines had loaded took up the memory of later ones."""
    renewed = []
    monkeypatch.setattr(commands, "renew_limit", lambda: renewed.append(True))
    for _ in range(2):
        commands.judge(["measure", "--help"])
    assert len(renewed) == 2


def test_a_command_line_can_fail(monkeypatch):
    assert commands.judge(["measure", "--help"]).kind == "answer"
    assert commands.judge(["measure", "no-such.csv"]).kind == "refused"
    monkeypatch.setattr("truecal.cli.main._group", lambda: 1 / 0)
    assert commands.judge(["measure"]).kind == "foreign"
    monkeypatch.setattr("truecal.cli.main.main", lambda words: print("{NaN}" if "--json" in words else "\x1b[31m") or 0)
    assert commands.judge(["measure", "--json"]).detail.startswith("no JSON")
    assert commands.judge(["measure"]).detail.startswith("steers the terminal")


def test_damaged_files():
    counts, failures = files.fuzz(120, minutes=5, seed=3)
    assert not failures
    assert sum(counts.values()) == 120


def test_every_public_name_is_called_or_left_out_on_purpose():
    paths = {target.path.partition(".")[0] for target in calls.targets()}
    errors = {
        name for name in tc.__all__ if name.endswith(("Error", "Warning")) and not hasattr(getattr(tc, name), "find")
    }
    assert set(tc.__all__) - paths - errors - calls.LEFT_OUT <= {
        "clinical", "engines", "errors", "estimators", "groups", "inference", "integrations", "lenses", "plot", "profile",
        "recalibration", "scores",
    }  # fmt: skip


NAMES = values.dataset(5)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("tc.calibration_error(y, p)", "answer"),
        ("tc.calibration_error(y, 'x')", "refused"),
        ("1 / 0", "foreign"),
        ("np.float64(1) / 0", "warning"),
        ("nan", "nan"),
        ("[p, nan]", "nan"),
        ("type(as_list(p)) is list or nan", "answer"),
        ("np.sum(as_list(p)) + isinstance(as_list(p), list) * 1.0", "differs"),
    ],
)
def test_the_judge_can_fail(line, kind):
    assert judge.judge(line, NAMES).kind == kind


def test_the_judge_tells_what_should_have_been_refused_and_what_takes_too_long(monkeypatch):
    assert judge.judge("tc.calibration_error(y, p)", NAMES, must_refuse=True).kind == "accepted"
    monkeypatch.setattr(judge, "SECONDS", 0.2)
    assert judge.judge("sum(i for i in range(10**12))", NAMES).kind == "slow"


def test_what_cannot_be_shown_or_sent_is_told(monkeypatch):
    line = "tc.calibration_error(y, p)"
    monkeypatch.setattr(tc.Estimate, "to_dict", lambda self: {"value": float("nan")})
    assert judge.judge(line, NAMES).detail.startswith("ValueError: Out of range float values")
    monkeypatch.undo()
    monkeypatch.setattr(tc.Estimate, "_repr_html_", lambda self: 1 / 0)
    assert judge.judge(line, NAMES).detail.startswith("ZeroDivisionError")
    monkeypatch.undo()
    monkeypatch.setattr(tc.Estimate, "__reduce__", lambda self: (float, (2.0,)), raising=False)
    assert judge.judge(line, NAMES).detail.startswith("AssertionError: another answer after pickling")


def test_a_failure_is_shortened():
    target = next(t for t in calls.targets() if t.path == "calibration_error")
    call = calls.Call(
        "calibration_error", (("y_true", "y"), ("level", "None"), ("rng", "0")), needed=frozenset({"y_true"})
    )
    assert [c.line for c in calls.shorter(call)] == [
        "tc.calibration_error(y_true=y, rng=0)",
        "tc.calibration_error(y_true=y, level=None)",
    ]
    made = [calls.make(target, random.Random(seed)).line for seed in range(30)]
    assert len(set(made)) > 20
    assert all(line.startswith("tc.calibration_error(y_true=") for line in made)


def _naive(scores, outcomes, weights, bins, norm):
    """The binned error, bin by bin."""
    cell = [min(int(np.floor(c * bins + 1e-12)), bins - 1) for c in scores]
    total, gaps = 0.0, []
    for k in range(bins):
        rows = [i for i in range(len(scores)) if cell[i] == k]
        weight = sum(weights[i] for i in rows)
        if weight > 0:
            gap = abs(sum(weights[i] * (scores[i] - outcomes[i]) for i in rows)) / weight
            gaps.append(gap)
            total += weight / sum(weights) * gap**norm
    return max(gaps) if norm == np.inf else total ** (1 / norm)


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_those_of_naive_code(seed):
    """In any container, of any precision and order of bytes, with and without weights."""
    rng = random.Random(seed)
    held = values.dataset(seed + 1000)
    weights = held["w"] if rng.random() < 0.5 else np.ones(held["n"])
    bins, norm = rng.choice((2, 4, 8)), rng.choice((1, 2, np.inf))
    container = partial(held[rng.choice(list(values.CONTAINERS))])
    estimator = tc.BinnedECE(bins=bins, norm=norm)
    several = rng.random() < 0.5
    labels, probs = (held["Y"], held["P"]) if several else (held["y"], held["p"])
    scores = probs.max(axis=1) if several else probs
    outcomes = (probs.argmax(axis=1) == labels).astype(int) if several else labels
    try:
        found = tc.calibration_error(container(labels), container(probs), sample_weight=weights, estimator=estimator)
    except tc.InputError:
        return
    assert found.value == pytest.approx(_naive(scores, outcomes, weights, bins, norm), abs=1e-9)
