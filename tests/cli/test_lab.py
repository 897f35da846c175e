"""`truecal lab`: coverage, power, bias and ranking of estimators in worlds whose true error is known."""

import json

import numpy as np
import pytest

import truecal as tc

OWN = """
from dataclasses import dataclass
import truecal as tc

@dataclass(frozen=True)
class Mine(tc.RankSeries):
    pass

mild = tc.lab.World(tc.lab.Uniform(), tc.lab.Power(1.2))
broken = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "coverage_of_mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "coverage_of_mine"


def test_json_has_a_row_per_world_and_n(truecal):
    words = ("--world", "resnet110_c10", "--world", "resnet110_c100", "--n", 300, "--n", 100, "--m", 20, "--workers", 1)
    ran = truecal("lab", "coverage", *words, "--level", 0.8, "--json")
    content = json.loads(ran.out)
    assert (ran.code, content["estimator"], content["level"], content["m"]) == (0, "rank-series", 0.8, 20)
    assert [(row["world"], row["n"]) for row in content["rows"]] == [
        ("resnet110_c10", 100),
        ("resnet110_c10", 300),
        ("resnet110_c100", 100),
        ("resnet110_c100", 300),
    ]
    library = tc.lab.coverage(tc.RankSeries(), tc.lab.PAPER_WORLDS["resnet110_c10"], n=100, m=20, level=0.8)
    row = content["rows"][0]
    assert (row["coverage"], row["width"], row["true_error"]) == (library.rate, library.width, library.truth)


def test_text_has_every_paper_world(truecal):
    ran = truecal("lab", "coverage", "--n", 50, "--m", 2, "--workers", 1)
    assert ran.code == 0
    assert "share of 2 datasets whose 95 % interval contains" in ran.out
    assert all(name in ran.out for name in tc.lab.PAPER_WORLDS)


def test_binned_interval_is_resampled(truecal):
    words = ("--estimator", "binned", "--bins", 5, "--norm", 2, "--world", "resnet110_c10", "--n", 60, "--m", 3)
    ran = truecal("lab", "coverage", *words, "--workers", 1, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["rows"][0]["width"] > 0


def test_own_estimator_and_world(truecal, own_module):
    words = ("--estimator", f"{own_module}:Mine", "--world", f"{own_module}:mild", "--n", 100, "--m", 10)
    ran = truecal("lab", "coverage", *words, "--workers", 1, "--json")
    (row,) = json.loads(ran.out)["rows"]
    world = tc.lab.World(tc.lab.Uniform(), tc.lab.Power(1.2))
    assert ran.code == 0
    assert row["true_error"] == world.true_error(2)
    assert row["coverage"] == tc.lab.coverage(tc.RankSeries(), world, n=100, m=10, level=0.95).rate


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--world", "resnet110_c11"], "did you mean 'resnet110_c10'"),
        (["--estimator", "bined"], "binned"),
        (["--estimator", "no_such_module:Mine"], "No module named 'no_such_module'"),
        (["--estimator", "coverage_of_mine:Other"], "has no attribute 'Other'"),
        (["--estimator", "coverage_of_mine:broken"], "estimator must be"),
        (["--world", "coverage_of_mine:broken"], "world must be"),
        (["--estimator", "coverage_of_mine:Mine", "--bins", "3"], "set them in your own"),
        (["--level", "1"], "--level"),
        (["--n", "1"], "--n"),
        (["--m", "1"], "--m"),
    ],
)
def test_bad_options_of_coverage_are_refused(truecal, own_module, words, message):
    ran = truecal("lab", "coverage", *words, "--workers", 1)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_power_and_leaderboard_take_estimators_and_worlds_of_the_user(truecal, own_module, tmp_path):
    own_values = ("--estimator", f"{own_module}:Mine", "--world", f"{own_module}:mild")
    ran = truecal("lab", "power", *own_values, "--error", 0.04, "--m", 10, "--workers", 1, "--json")
    content = json.loads(ran.out)
    assert ran.code == 0
    assert content["n_low"] <= content["n"] <= content["n_high"]
    powers = [row["power"] for row in content["rows"]]
    assert powers == sorted(powers)
    ran = truecal("lab", "leaderboard", *own_values, "--m", 2, "--workers", 1, "--folder", tmp_path, "--json")
    rows = [row for row in json.loads(ran.out)["rows"] if row["worlds"] == "own"]
    assert f"{own_module}:Mine" in {row["estimator"] for row in rows}


def test_power_is_that_of_the_library(truecal):
    words = ("--world", "resnet110_c10", "--estimator", "binned", "--error", 0.08, "--m", 20, "--workers", 1)
    ran = truecal("lab", "power", *words, "--json")
    content = json.loads(ran.out)
    assert (ran.code, content["estimator"], content["norm"]) == (0, "binned", 2)
    world = tc.lab.PAPER_WORLDS["resnet110_c10"]
    library = tc.lab.samples_needed(tc.BinnedECE(norm=2), world=world, error=0.08, m=20)
    assert (content["n"], content["n_low"], content["n_high"]) == (library.n, library.low, library.high)
    powers = [row["power"] for row in content["rows"]]
    assert powers == sorted(powers)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--world", "resnet110_c11"], "did you mean 'resnet110_c10'"),
        (["--estimator", "bined"], "binned"),
        (["--estimator", "smooth", "--norm", "2"], "the smooth estimator has no --norm"),
        (["--m", "1"], "--m"),
    ],
)
def test_bad_options_are_refused(truecal, words, message):
    ran = truecal("lab", "power", *words, "--workers", 1)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_bias_rests_on_the_world_fitted_to_the_file(truecal, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(2, 0.5, 400)
    y = (rng.random(400) < p**1.3).astype(int)
    tc.lab.Frame({"p": p, "y": y}).write(tmp_path / "preds.csv")
    words = (tmp_path / "preds.csv", "--label", "y", "--score", "p", "--m", 2, "--workers", 1, "--json")
    bias = json.loads(truecal("lab", "bias", *words).out)
    world = tc.lab.fit_world(tc.profile.Profile.from_arrays(p, y)).empirical_world
    assert bias["true_error"] == pytest.approx(world.true_error())
