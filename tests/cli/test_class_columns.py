"""Columns named after the classes: found by the values of the label, in any order, in memory and on engines."""

import json

import numpy as np
import polars as pl
import pytest

import truecal as tc


@pytest.fixture
def animals(tmp_path):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(600, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    names = np.array(["cat", "dog", "fox"])
    columns = {"animal": names[labels], **dict(zip(names, probs.T, strict=True)), "camera": rng.choice(["a", "b"], 600)}
    path = tmp_path / "animals.csv"
    pl.DataFrame(columns).write_csv(path)
    return path, tc.Predictions.from_probs(probs, labels)


@pytest.mark.parametrize("words", [[], ["--probs", "cat,dog,fox"], ["--label", "animal"], ["--engine", "polars"]])
def test_columns_named_after_classes_are_read_in_one_try(truecal, animals, words):
    path, preds = animals
    ran = truecal("measure", path, *words, "--json")
    assert ran.code == 0, ran.err
    (result,) = json.loads(ran.out)["results"]
    assert result["lens"] == "top label"
    assert result["value"] == pytest.approx(tc.measure(preds).value, abs=5e-3 if words[:1] == ["--engine"] else 1e-12)


def test_python_reads_the_same_columns(animals):
    path, preds = animals
    for options in ({}, {"probs": ["fox", "dog", "cat"]}):
        assert tc.measure(tc.read(path, **options)).value == pytest.approx(tc.measure(preds).value, abs=1e-12)


def test_a_map_is_applied_by_the_names_of_classes(truecal, animals, tmp_path):
    path, _ = animals
    fit = truecal("recalibrate", "fit", path, "--method", "vector", "--out", tmp_path / "map.json")
    assert fit.code == 0, fit.err
    outs = []
    for words in ([], ["--probs", "fox,cat,dog"]):
        outs.append(tmp_path / f"{len(outs)}.csv")
        ran = truecal("recalibrate", "apply", path, *words, "--model", tmp_path / "map.json", "--out", outs[-1])
        assert ran.code == 0, ran.err
    assert outs[0].read_text() == outs[1].read_text()


def test_words_alone_need_a_probability_each(truecal, tmp_path):
    path = tmp_path / "words.csv"
    pl.DataFrame({"confidence": ["likely", "almost certain"] * 30, "correct": [1, 0] * 30}).write_csv(path)
    ran = truecal("measure", path)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].endswith("--words 'likely=P,almost certain=P'")


def test_percentages_are_read_in_the_second_try(truecal, tmp_path):
    path = tmp_path / "percent.csv"
    pl.DataFrame({"y": [1, 0] * 50, "p": [80.0, 30.0] * 50}).write_csv(path)
    assert truecal("measure", path).err.splitlines()[-1].endswith("percent.csv --percent")
    assert truecal("measure", path, "--percent").code == 0


def test_a_warning_of_every_group_is_printed_once(truecal, tmp_path):
    p = np.random.default_rng(0).random(400)
    path = tmp_path / "models.csv"
    pl.DataFrame(
        {"y": (p > 0.5).astype(int), "p": p, "model": ["a", "b"] * 200, "day": ["mon"] * 200 + ["tue"] * 200}
    ).write_csv(path)
    out = truecal("measure", path, "--by", "day").out
    assert out.count("judged together; --by model") == 1
