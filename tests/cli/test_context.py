"""Lens, selection and scale in words: the command line says what the library says."""

import json

import numpy as np
import polars as pl
import pytest

import truecal as tc

NAMES = ["cat", "lynx", "dog", "wolf"]
GROUPS = {"cats": ["cat", "lynx"], "dogs": ["dog", "wolf"]}


def frame(n=500, sharpness=1.8, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 4)) * 1.5
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    odds = np.exp(sharpness * logits)
    probs = odds / odds.sum(axis=1, keepdims=True)
    columns = {f"p_{name}": probs[:, k] for k, name in enumerate(NAMES)}
    site, age = rng.choice(["north", "south"], n), rng.integers(0, 90, n)
    return pl.DataFrame({"label": np.array(NAMES)[labels], **columns, "site": site, "age": age, "new": age < 30})


def predictions(table):
    probs = table.select([f"p_{name}" for name in NAMES]).to_numpy()
    columns = {name: table[name].to_numpy() for name in ("site", "age", "new")}
    return tc.Predictions.from_probs(probs, table["label"].to_list(), classes=NAMES, columns=columns)


@pytest.fixture
def files(tmp_path):
    frame().write_csv(tmp_path / "a.csv")
    frame(sharpness=3.0).write_csv(tmp_path / "b.csv")
    frame().write_parquet(tmp_path / "a.parquet")
    (tmp_path / "groups.json").write_text(json.dumps(GROUPS))
    return tmp_path


CASES = {
    "top-2": (["--lens", "top-2"], {"lens": tc.TopK(2)}),
    "canonical": (["--lens", "canonical"], {"lens": tc.Canonical()}),
    "all-labels": (["--lens", "all-labels"], {"lens": tc.AllLabels()}),
    "one class": (["--lens", "class=wolf"], {"lens": tc.OneClass("wolf")}),
    "groups": (["--lens", "grouping={folder}/groups.json"], {"lens": tc.Grouping(GROUPS)}),
    "norm": (["--lens", "top-2", "--norm", "2"], {"lens": tc.TopK(2), "estimator": tc.GeneralizedECE(norm=2)}),
    "an interval": (["--select", "output=0.6:"], {"lens": tc.TopLabel(), "select": tc.by_output(low=0.6)}),
    "labels": (
        ["--lens", "class=wolf", "--select", "label=dog,wolf"],
        {"lens": tc.OneClass("wolf"), "select": tc.by_label("dog", "wolf")},
    ),
    "columns": (
        ["--select", "site=north", "--select", "age=20:60", "--select", "new=false"],
        {"select": tc.by_column("site", "north") & tc.by_column("age", low=20, high=60) & tc.by_column("new", False)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_measure_says_what_the_library_says(truecal, files, case):
    words, options = CASES[case]
    ran = truecal("measure", files / "a.csv", *(word.format(folder=files) for word in words), "--json")
    expected = tc.measure(predictions(frame()), **options)
    (record,) = json.loads(ran.out)["results"]
    assert record["value"] == pytest.approx(float(expected.value), abs=1e-12)
    assert record["interval"]["high"] == pytest.approx(float(expected.interval.high), abs=1e-12)
    assert record["lens"] == expected.lens
    assert record.get("selection", "") == expected.selection


def test_a_scan_selects_the_same_rows(truecal, files):
    words = ["--select", "site=north", "--select", "age=20:60", "--select", "new=true", "--select", "label=dog,wolf"]
    rows = json.loads(truecal("measure", files / "a.csv", *words, "--json").out)["results"][0]["n"]
    names = ["--class-names", ",".join(NAMES)]
    scanned = truecal("measure", files / "a.parquet", "--engine", "polars", *words, *names, "--json")
    assert json.loads(scanned.out)["results"][0]["n"] == rows


def test_rows_of_a_label_stand_beside_a_calibrated_model(truecal, files):
    answer = truecal("measure", files / "a.csv", "--lens", "class=wolf", "--select", "label=wolf").out
    assert "if it were calibrated" in answer
    assert "p-value" not in answer


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lens", "top-9"], "only 4 classes"),
        (["--lens", "top-2", "--bins", "5"], "--bins is for one probability"),
        (["--lens", "top"], "there is no lens 'top'"),
        (["--lens", "grouping=nowhere.json"], "cannot read the grouping"),
        (["--select", "site"], "--select is label="),
        (["--select", "nope=1"], "no column 'nope'"),
        (["--select", "age=old"], "holds numbers"),
        (["--select", "new=maybe"], "true and false"),
        (["--select", "output=high"], "LOW:HIGH"),
        (["--select", "site=west"], "no row is left"),
    ],
)
def test_words_that_mean_nothing_are_refused(truecal, files, words, message):
    ran = truecal("measure", files / "a.csv", *words)
    assert ran.code == 2
    assert message in ran.err


def test_likert_with_words_of_ones_own(truecal, files):
    ran = truecal("likert", files / "a.csv", "--scale", "unsure=0:0.6,sure=0.6:1", "--json")
    expected = tc.likert(predictions(frame()), {"unsure": (0, 0.6), "sure": (0.6, 1)})
    record = json.loads(ran.out)
    assert [c["name"] for c in record["categories"]] == ["unsure", "sure"]
    assert [c["holds"] for c in record["categories"]] == [c.holds for c in expected.categories]
    assert ran.code == int(any(c.holds is False for c in expected.categories))
    assert truecal("likert", files / "a.csv", "--of", "wolf").code in (0, 1)
    assert truecal("likert", files / "a.csv", "--of", "bear").code == 2
    assert truecal("likert", files / "a.csv", "--scale", "sure").code == 2


def test_comparison_and_gate_in_context(truecal, files):
    both = (files / "a.csv", files / "b.csv", "--lens", f"grouping={files}/groups.json", "--resamples", "199")
    ran = truecal("compare", *both, "--max-increase", "0.01", "--json")
    record = json.loads(ran.out)
    models = {name: predictions(frame(sharpness=s)) for name, s in (("a", 1.8), ("b", 3.0))}
    for name, preds in models.items():
        assert {model["name"]: model["value"] for model in record["models"]}[name] == pytest.approx(
            float(tc.measure(preds, lens=tc.Grouping(GROUPS)).value), abs=1e-12
        )
    assert ran.code == 1
    assert record["pairs"][0]["low"] > 0.01
    refused = truecal("compare", files / "a.csv", files / "b.csv", "--select", "output=0.5:1")
    assert refused.code == 2
    assert truecal("measure", files / "a.csv", "--lens", "top-2", "--max-error", "0.9").code == 0
    assert truecal("measure", files / "a.csv", "--lens", "top-2", "--max-error", "0.01").code == 1


def test_the_page_shows_what_was_asked_for(truecal, files):
    out = files / "page.html"
    words = ["--lens", "top-3", "--select", "label=wolf", "--bands", "unsure=0:0.6,sure=0.6:1"]
    assert truecal("report", files / "a.csv", *words, "--fast", "--out", out).code == 0
    page = out.read_text()
    section = page.partition('id="context"')[2].partition("</section>")[0]
    for lens in ("top label", "top 2 labels", "top 3 labels"):
        assert f">{lens}</t" in section
    assert "label is wolf" in section
    assert "unsure" in page
    assert truecal("report", files / "a.csv", "--select", "site=north", "--fast", "--out", out).code == 0
    assert "where site is north" in out.read_text()
