"""The analyses on the store of a study that was run: from prediction files to conclusions."""

import numpy as np
import polars as pl
import pytest

import truecal as tc

STUDY = """\
name: six models
predictions:
  - files: "{dataset}/{model}/severity-{severity}-seed-{seed}.npz"
columns: {label: labels, logits: logits}
lenses: [top-label]
metrics: [error, nll, brier, rank-series-l2, debiased-15-l2, exact-50-l2, ece-mass-5-l2, ece-mass-50-l2, ece-mass-50-l1]
recalibrators: [temperature]
split: {fraction: 0.2, seed: 0}
"""
MODELS, ROWS = 6, 500


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 2, (ROWS, 3))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    for severity in (0, 2):
        for i in range(MODELS):
            for seed in (0, 1):
                logits = 1.5 * (truth + (0.3 * i + 0.4 * severity) * rng.normal(size=truth.shape))
                path = folder / f"clouds/m{i}/severity-{severity}-seed-{seed}.npz"
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savez(path, logits=logits, labels=labels)
    (folder / "study.yaml").write_text(STUDY)
    return tc.study.Study.read(folder / "study.yaml").run(folder / "store", workers=1)


def test_every_analysis_reads_a_store(store):
    frame = store.frame()
    effect = tc.study.effect_of_recalibration(frame)
    assert effect.frame()["change"].mean() < 0  # all logits were 1.5 times too large
    assert not any("different rows" in note for note in effect.notes)
    assert tc.study.error_against_calibration(frame).frame().height == 2 * MODELS
    assert tc.study.error_against_calibration(frame).frame()["seeds"].to_list() == [2] * 2 * MODELS
    assert tc.study.pareto(frame, metrics=["rank-series-l2", "nll"]).frame("counts").height == MODELS
    assert tc.study.shift(frame).frame("slopes")["error_slope"].min() > 0
    errors = tc.study.in_and_out(frame).frame("correlations").filter(pl.col("pair") == "error in, error out")
    assert errors["tau"].min() > 0.4  # noise grows from model to model, on clean and on shifted data
    assert tc.study.residuals(frame).frame().height == 2 * 2 * MODELS
    assert tc.study.rank_agreement(frame).frame()["models"].to_list()[0] == MODELS
