"""Comparisons without training: ready logits of methods and seeds, ensembles; with training: dropout."""

import numpy as np
import pytest

import truecal as tc
from tests.study.interventions_files import records
from truecal.cli.main import main
from truecal.study import compare_interventions

READY = """\
data: {logits: logits}
interventions:
  temperature:
  histogram-width: [5]
  ensemble: [2]
lenses:
  top_k: [1, 2]
  groupings: {halves: {low: [0, 1], high: [2, 3]}}
"""
OWN = """\
data: {set: digits, validation: 0.3, test: 0.4}
model: {network: mlp, width: 24}
training: {epochs: 12, learning_rate: 0.2}
seeds: [0, 1]
interventions:
  mc-dropout: [0.2]
lenses: {top_k: [1]}
"""


@pytest.fixture
def ready(tmp_path):
    """Logits of an overconfident base model and of a calmer one, three seeds each."""
    rng = np.random.default_rng(0)
    truth = {side: 1.5 * rng.normal(size=(n, 4)) for side, n in (("validation", 400), ("test", 600))}
    labels = {side: (z + rng.gumbel(size=z.shape)).argmax(axis=1) for side, z in truth.items()}
    for method, sharpness in (("none", 2.5), ("calmer", 1.2)):
        folder = tmp_path / "logits" / method
        folder.mkdir(parents=True)
        for seed in range(3):
            arrays = {f"{side}_labels": labels[side] for side in truth}
            for side, z in truth.items():
                arrays[f"{side}_logits"] = (sharpness * z + 0.3 * rng.normal(size=z.shape)).astype(np.float32)
            np.savez(folder / f"{seed}.npz", **arrays)
    (tmp_path / "ready.yaml").write_text(READY)
    return tmp_path


def test_ready_logits_and_ensembles(ready):
    result = compare_interventions(ready / "ready.yaml", ready / "out")
    assert list(result.choice.strengths) == ["none", "calmer", "temperature", "histogram-width", "ensemble"]
    usual = {
        (s.intervention, s.lens): s for s in records(result.summary) if s.metric == "error" and s.selection == "all"
    }
    with np.load(ready / "logits" / "calmer" / "1.npz") as arrays:
        preds = tc.Predictions.from_logits(arrays["test_logits"].astype(float), arrays["test_labels"])
    judge = tc.GeneralizedECE(lens=tc.TopLabel(), binning=tc.estimators.EqualWidth(15), level=None)
    (own_values,) = [
        f.value
        for f in records(result.results)
        if (f.intervention, f.seed, f.lens, f.metric) == ("calmer", 1, "traditional", "error")
    ]
    assert own_values == pytest.approx(float(judge(preds)), abs=1e-12)
    assert usual["calmer", "traditional"].verdict == "lower"
    pair = []
    for seed in (0, 1):
        with np.load(ready / "logits" / "none" / f"{seed}.npz") as arrays:
            pair.append(tc.Predictions.from_logits(arrays["test_logits"].astype(float), arrays["test_labels"]))
    mean = tc.Predictions.from_probs((pair[0].probs + pair[1].probs) / 2, pair[0].labels)
    (together,) = [
        f.value
        for f in records(result.results)
        if (f.intervention, f.seed, f.lens, f.metric) == ("ensemble", 0, "traditional", "error")
    ]
    assert together == pytest.approx(float(judge(mean)), abs=1e-4)  # kept as float32 logarithms


def test_the_page_holds_answer_figures_and_tables(ready, capsys):
    assert main(["study", "interventions", str(ready / "ready.yaml"), "--folder", str(ready / "out")]) == 0
    capsys.readouterr()
    page = (ready / "out" / "index.html").read_text()
    assert page.count("data:image/png;base64,") == len(list((ready / "out" / "figures").glob("*.png")))
    assert "calmer: usual error lower" in page
    assert '<body class="static">' in page  # its tables have no script that sorts them
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: [p.unlink() for p in (f / "none").iterdir()], "no folder 'none'"),
        (lambda f: (f / "calmer" / "2.npz").unlink(), "has the seeds"),
        (lambda f: np.savez(f / "calmer" / "1.npz", test_logits=np.zeros((2, 2))), "no array"),
        (lambda f: (f / "calmer").rename(f / "temperature"), "under another name"),
    ],
)
def test_folders_that_do_not_fit_are_refused(ready, spoil, message):
    spoil(ready / "logits")
    with pytest.raises(tc.TruecalError, match=message):
        compare_interventions(ready / "ready.yaml", ready / "out")


def test_an_ensemble_needs_as_many_seeds(ready):
    (ready / "ready.yaml").write_text(READY.replace("[2]", "[4]"))
    with pytest.raises(tc.InputError, match="needs as many seeds"):
        compare_interventions(ready / "ready.yaml", ready / "out")


def test_dropout_left_on_is_less_sure_and_repeats_itself(tmp_path):
    (tmp_path / "own.yaml").write_text(OWN)
    result = compare_interventions(tmp_path / "own.yaml", tmp_path / "out")
    again = compare_interventions(tmp_path / "own.yaml", tmp_path / "other")
    assert result.results.equals(again.results)
    entropy = {s.intervention: s.mean for s in records(result.summary) if s.metric == "entropy"}
    assert entropy["mc-dropout"] > entropy["none"]
