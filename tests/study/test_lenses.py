"""Lenses on several probabilities and metrics of one's own in a study."""

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.study.studies import write_files, write_study

GROUPS = "groupings:\n  use: {first: [0, 1], second: [2]}\n"
LENSES = "lenses: [top-label, class-wise, top-2, canonical, 'grouping:use']\n"
METRICS = "metrics: [error, ece-width-15-l1, generalized-l1, 'tests.study.own_metrics:mean_gap']\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lenses")
    write_files(folder, models=("mlp",))
    return tc.study.Study.read(write_study(folder, GROUPS + LENSES + METRICS)).run(folder / "store", workers=1)


def one(store, lens, metric):
    return store.frame().filter((pl.col("lens") == lens) & (pl.col("metric") == metric)).row(0, named=True)


def judged(store):
    with np.load(store.folder.parent / "runs/digits/mlp-0-0.npz") as arrays:
        return tc.Predictions.from_logits(arrays["logits"], arrays["labels"])


def test_lenses_on_several_probabilities_equal_tc_measure(store):
    preds = judged(store)
    lenses = {"top-2": tc.TopK(2), "canonical": tc.Canonical(), "grouping:use": tc.Grouping({"a": [0, 1], "b": [2]})}
    for word, lens in lenses.items():
        row = one(store, word, "generalized-l1")
        estimate = tc.measure(preds, estimator=tc.GeneralizedECE(), lens=lens)
        assert row["value"] == pytest.approx(estimate.value, abs=1e-12)
        assert (row["low"], row["high"]) == (
            pytest.approx(estimate.interval.low),
            pytest.approx(estimate.interval.high),
        )
    metrics = store.frame().filter(pl.col("lens").is_in(list(lenses)))["metric"].unique().to_list()
    assert metrics == ["generalized-l1"]


def test_a_function_is_a_metric_of_every_lens_on_one_probability(store):
    preds = judged(store)
    name = "tests.study.own_metrics:mean_gap"
    top = preds.probs.max(axis=1)
    right = preds.probs.argmax(axis=1) == preds.labels
    assert one(store, "top-label", name)["value"] == pytest.approx(abs(top.mean() - right.mean()), abs=1e-12)
    gaps = [abs(preds.probs[:, k].mean() - np.mean(preds.labels == k)) for k in range(3)]
    shares = tc.ClassWise().shares(preds)
    assert one(store, "class-wise", name)["value"] == pytest.approx(np.average(gaps, weights=shares), abs=1e-12)


@pytest.mark.parametrize(
    ("more", "words"),
    {
        "no metric": (
            "lenses: [top-2]\nmetrics: [nll]\n",
            "judges several probabilities; add the metric generalized-l1",
        ),
        "no grouping": ("lenses: ['grouping:use']\n", "there is no lens 'grouping:use'"),
        "no class": (GROUPS.replace("[2]", "[7]") + LENSES + "metrics: [generalized-l1]\n", "7"),
        "no module": ("metrics: ['nowhere.at:all']\n", "cannot load 'nowhere.at:all'"),
        "no list": ("groupings: [a, b]\n", "groupings must give lists of classes"),
    }.values(),
)
def test_studies_that_cannot_be_meant(tmp_path, more, words):
    write_files(tmp_path, models=("mlp",))
    with pytest.raises(tc.InputError, match=words):
        tc.study.Study.read(write_study(tmp_path, more))
