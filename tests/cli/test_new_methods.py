"""The command line on judged rows, several labels per row, and thresholds."""

import json

import numpy as np
import pytest

import truecal as tc


@pytest.fixture
def labels_csv(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random((400, 3)).round(4)
    y = (rng.random((400, 3)) < p ** [1, 1.5, 2]).astype(int)
    rows = [
        f"{a},{b},{c},{z},{x},{w},{'u' if i < 200 else 'v'}"
        for i, ((a, b, c), (x, w, z)) in enumerate(zip(p, y, strict=True))
    ]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["p_cat,p_indoor,p_night,y_night,y_cat,y_indoor,site", *rows]))
    np.savez(tmp_path / "labels.npz", probs=p, labels=y)
    return path, tc.Predictions.from_multilabel(p, y, ["cat", "indoor", "night"])


def run_json(truecal, *words):
    ran = truecal(*words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_several_labels_are_read_by_the_names_of_their_columns(truecal, labels_csv):
    path, preds = labels_csv
    answer = run_json(truecal, "measure", path, "--multilabel")
    assert answer["results"][0]["value"] == tc.measure(preds).value
    arrays = run_json(truecal, "measure", path.with_suffix(".npz"), "--multilabel")
    assert arrays["results"][0]["value"] == tc.measure(preds).value
    one = run_json(truecal, "measure", path, "--multilabel", "--lens", "class=night")
    assert one["results"][0]["value"] == tc.measure(preds, lens=tc.OneClass("night")).value
    decision = run_json(truecal, "decision", path, "--multilabel", "--lens", "class=night", "--threshold", "0.2")
    assert decision["loss"][0] == pytest.approx(tc.decision_loss(preds, [0.2], lens=tc.OneClass("night")).at(0.2).value)
    assert len(run_json(truecal, "measure", path, "--multilabel", "--by", "site")["results"]) == 2


def test_several_labels_are_refused_where_they_do_not_fit(truecal, labels_csv):
    path, _ = labels_csv
    for words, reason in (
        (("--engine", "polars"), "--multilabel needs the rows"),
        (("--label", "y_c*"), "is in one of them only"),
        (("--lens", "top-label"), "one label per row"),
        (("--percent",), "percent does not go with"),
        (("--judge", "site"), "judge does not go with"),
    ):
        ran = truecal("measure", path, "--multilabel", *words)
        assert (ran.code, reason in ran.err) == (2, True), ran.err
    assert truecal("recalibrate", "fit", path, "--multilabel").code == 2


def test_a_judge_is_compared_and_refused_in_scans(truecal, tmp_path):
    rng = np.random.default_rng(0)
    c = rng.beta(4, 1, 600)
    y = (rng.random(600) < 0.85 * c).astype(int)
    for name, scores in (("a", c), ("b", np.sqrt(c))):
        rows = [
            f"{s},{label if i % 4 == 0 else ''},{label}" for i, (s, label) in enumerate(zip(scores, y, strict=True))
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["confidence,correct,verdict", *rows]))
    answer = run_json(truecal, "compare", tmp_path / "a.csv", tmp_path / "b.csv", "--judge", "verdict")
    assert answer["pairs"][0]["high"] < 0
    assert "with the judge, as informative as" in truecal("measure", tmp_path / "a.csv", "--judge", "verdict").out
    ran = truecal("measure", tmp_path / "a.csv", "--judge", "verdict", "--engine", "polars")
    assert (ran.code, "--judge needs the rows" in ran.err) == (2, True)
