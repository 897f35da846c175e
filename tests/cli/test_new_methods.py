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
    ran = truecal("recalibrate", "fit", path, "--multilabel", "--per-class")
    assert (ran.code, "labels have a map each" in ran.err) == (2, True)


def test_every_label_is_recalibrated_by_a_map_of_its_own(truecal, labels_csv, tmp_path):
    path, preds = labels_csv
    model, out = tmp_path / "maps.json", tmp_path / "after.csv"
    answer = run_json(truecal, "recalibrate", "fit", path, "--multilabel", "--method", "beta", "--out", model)
    assert [(row["label"], row["method"]) for row in answer["results"]] == [(x, "beta") for x in preds.classes]
    assert answer["results"][2]["error_after"] < answer["results"][2]["error_before"] / 2
    fitted = tc.recalibration.PerLabel(classes=preds.classes).fit(preds.probs, preds.labels)
    expected = fitted.predict_proba(preds.probs)
    assert truecal("recalibrate", "apply", path, "--model", model, "--out", out).code == 0
    after = tc.read(out, multilabel=True)
    assert list(after.classes) == list(preds.classes)
    np.testing.assert_allclose(after.probs, expected, atol=1e-12)
    np.testing.assert_array_equal(after.labels, preds.labels)
    arrays = tmp_path / "after.npz"
    assert truecal("recalibrate", "apply", path.with_suffix(".npz"), "--model", model, "--out", arrays).code == 0
    np.testing.assert_allclose(np.load(arrays)["probs"], expected, atol=1e-12)
    refused = truecal("recalibrate", "export", "--model", model, "--out", tmp_path / "m.onnx")
    assert (refused.code, "have no export" in refused.err) == (2, True)


def test_labels_are_matched_by_name_and_auto_leaves_calibrated_ones_alone(truecal, labels_csv, tmp_path):
    path, preds = labels_csv
    model, out = tmp_path / "maps.json", tmp_path / "after.csv"
    ran = truecal("recalibrate", "fit", path, "--multilabel", "--out", model)
    assert ran.out.splitlines()[1].split()[:2] == ["cat", "uncalibrated"]
    assert "wrote maps of 1 of 3 labels, fitted on all 400 rows" in ran.out
    lines = path.read_text().splitlines()
    swapped = [line.split(",") for line in lines]
    other = tmp_path / "other.csv"
    other.write_text("\n".join(",".join([row[2], row[0], row[1], *row[3:]]) for row in swapped))
    assert truecal("recalibrate", "apply", other, "--model", model, "--out", out).code == 0
    after = tc.read(out, multilabel=True)
    np.testing.assert_allclose(after.one_label("cat").probs, preds.one_label("cat").probs, atol=1e-12)
    assert tc.measure(after.one_label("night")).value < 0.1
    other.write_text(other.read_text().replace("p_cat", "p_dog"))
    refused = truecal("recalibrate", "apply", other, "--model", model, "--out", out)
    assert (refused.code, "'dog' is not in both" in refused.err) == (2, True)


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
