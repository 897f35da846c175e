"""The user's question, from Python and from the shell."""

import json

import numpy as np
import pytest

from truecal.errors import InputError
from truecal.estimators import BinnedECE, RankSeries
from truecal.lab import PAPER_WORLDS, Beta, Power, TopLabelWorld, Uniform, World, how_biased
from truecal.lenses import OneClass
from truecal.predictions import Predictions
from truecal.profile import Profile

TWO = {"EW": BinnedECE(norm=2), "RankSeries": RankSeries()}


def profile_of(world, n=3000):
    scores, outcomes = world.draw(n, rng=0)
    return Profile.from_arrays(scores[0], outcomes[0])


def test_the_answer_is_near_the_bias_in_the_true_world():
    world = PAPER_WORLDS["resnet110_c100"]
    answer = how_biased(profile_of(world), estimators=TWO, n=400, m=150)
    from truecal.lab import bias

    for trial in answer.trials:
        direct = bias(TWO[trial.estimator_name], world, n=400, m=150, rng=1)
        assert trial.bias == pytest.approx(direct.bias, abs=0.012)
        assert trial.n == 400
    assert abs(answer.goodness.z) < 3.5
    assert "bias" in str(answer)


def test_predictions_go_through_the_lens_of_calibration_error():
    probs, labels = TopLabelWorld(World(Uniform(0.4, 1.0), Power(1.5)), classes=3).draw(2000, rng=1)
    preds = Predictions.from_probs(probs, labels)
    top = how_biased(preds, estimators=TWO, m=20)
    assert top.trials[0].n == 2000
    assert top.world.true_error() == pytest.approx(World(Uniform(0.4, 1.0), Power(1.5)).true_error(), abs=0.02)
    one = how_biased(preds, estimators=TWO, m=20, lens=OneClass(0))
    assert one.fit.profile.scores.max() == pytest.approx(probs[:, 0].max())


def test_beta_scores_on_request():
    profile = profile_of(World(Beta(2, 0.5), Power(1.2)))
    assert isinstance(how_biased(profile, estimators=TWO, m=10, scores="beta").world.scores, Beta)
    with pytest.raises(InputError, match="'empirical' or 'beta'"):
        how_biased(profile, scores="gamma")


def test_what_is_not_predictions_is_refused():
    with pytest.raises(InputError, match="must be Predictions or a Profile, not ndarray"):
        how_biased(np.ones(3))


def test_a_world_that_does_not_fit_is_said():
    # A curve no GLM can follow: the check must notice.
    wave = World(Uniform(), lambda c: 0.5 + 0.45 * np.sin(12 * c))
    assert "simulated data differ from yours" in str(how_biased(profile_of(wave), estimators=TWO, m=30))


@pytest.fixture
def predictions_file(tmp_path):
    scores, outcomes = World(Beta(2, 0.5), Power(1.4)).draw(1500, rng=2)
    path = tmp_path / "preds.csv"
    rows = "\n".join(f"{int(y)},{c!r}" for c, y in zip(scores[0].tolist(), outcomes[0], strict=True))
    path.write_text(f"y,p\n{rows}\n")
    return str(path)


class TestCommandLine:
    @pytest.fixture
    def run(self, capsys):
        from truecal.cli.main import main

        def call(*arguments):
            code = main(["lab", *map(str, arguments)])
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        return call

    def test_worlds(self, run):
        code, out, _ = run("worlds", "--json")
        rows = json.loads(out)["rows"]
        assert code == 0
        assert len(rows) == 10
        assert rows[0]["error_l2"] == pytest.approx(0.1071, abs=1e-4)

    def test_bias(self, run, predictions_file):
        code, out, _ = run("bias", predictions_file, "--m", 5, "--n", 100, "--workers", 1, "--json")
        record = json.loads(out)
        assert code == 0
        assert {row["estimator"] for row in record["rows"]} >= {"RankSeries", "SweepECE"}
        assert record["rows"][0]["n"] == 100
        code, out, _ = run("bias", predictions_file, "--m", 5, "--n", 100, "--workers", 1)
        assert "simulated world" in out

    def test_power(self, run, predictions_file):
        code, out, _ = run("power", "--error", 0.15, "--m", 40, "--workers", 1, "--json")
        assert code == 0
        assert 30 < json.loads(out)["n"] < 600
        code, out, _ = run("power", predictions_file, "--error", 0.08, "--m", 40, "--workers", 1)
        assert code == 0
        assert out.startswith("rank-series, norm 2: about n = ")
        assert "rows detect an error of 0.08 with probability 0.8" in out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("power", "--world", "mars"), "there is no world 'mars'"),
            (("power", "--alpha", "0"), "alpha must lie"),
            (("power", "--error", "2"), "error must lie"),
            (("bias", "missing.csv"), "no file missing.csv"),
        ],
    )
    def test_bad_input_is_exit_code_2_and_one_line(self, run, arguments, message):
        code, _, err = run(*arguments)
        assert code == 2
        assert message in err
