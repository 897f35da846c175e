"""`truecal lab`: how many rows detect an error, and the bias of estimators on data like a file's."""

import json

import numpy as np
import pytest

import truecal as tc


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
        (["--world", "resnet110_c11"], "is not one of 'resnet110_c10'"),
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
