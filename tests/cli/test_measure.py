"""`truecal measure`."""

import json

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.cli.conftest import binary_frame, class_frame
from truecal.names import ESTIMATORS

RESULT = {
    "metric": str,
    "value": float,
    "norm": float,
    "power": float,
    "interval": dict,
    "p_value": float,
    "n": int,
    "effective_n": float,
    "direction": float,
    "estimator": dict,
    "lens": str,
    "bins": type(None),
    "parts": type(None),
    "warnings": list,
}


def test_json_is_the_library_s_answer(truecal, binary_csv):
    ran = truecal("measure", binary_csv, "--json", "--level", "0.9")
    content = json.loads(ran.out)
    assert ran.code == 0
    assert (content["schema"], content["version"]) == ("truecal.measure", 1)
    assert set(content) == {"schema", "version", "source", "level", "results", "conclusion"}
    (result,) = content["results"]
    assert {key: type(value) for key, value in result.items()} == RESULT
    frame = binary_frame()
    expected = tc.calibration_error(frame["y"], frame["p"], level=0.9)
    assert result["value"] == expected.value
    assert result["interval"] == {
        "low": expected.interval.low,
        "high": expected.interval.high,
        "level": 0.9,
        "method": "rank series",
    }
    assert result["p_value"] == expected.p_value


def test_people_get_lines(truecal, binary_csv):
    ran = truecal("measure", binary_csv)
    value = tc.calibration_error(binary_frame()["y"], binary_frame()["p"]).value
    assert f"root-mean-square calibration error  {value:.3f}" in ran.out
    assert "label 'y' [detected], probabilities 'p' [detected]" in ran.err
    assert truecal("measure", binary_csv, "--quiet").err == ""


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "npz"])
def test_every_kind_of_file(truecal, tmp_path, kind):
    frame, path = binary_frame(), tmp_path / f"preds.{kind}"
    if kind == "npz":
        np.savez(path, y=frame["y"].to_numpy(), p=frame["p"].to_numpy())
    else:
        getattr(frame, {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}[kind])(path)
    (result,) = json.loads(truecal("measure", path, "--json").out)["results"]
    assert result["value"] == pytest.approx(tc.calibration_error(frame["y"], frame["p"]).value, abs=1e-12)


def test_names_come_from_the_columns_or_the_user(truecal, class_parquet, tmp_path):
    by_star = json.loads(truecal("measure", class_parquet, "--json").out)["results"][0]
    assert by_star["lens"] == "top label"
    one = json.loads(truecal("measure", class_parquet, "--json", "--lens", "class=dog").out)["results"][0]
    assert one["lens"] == "class dog"
    numbered = class_frame().with_columns(label=pl.col("label").replace_strict({"cat": 0, "dog": 1, "fox": 2}))
    path = tmp_path / "numbers.parquet"
    numbered.write_parquet(path)
    (tmp_path / "names.txt").write_text("cat\ndog\nfox\n")
    for names in ("cat,dog,fox", f"@{tmp_path / 'names.txt'}"):
        again = json.loads(truecal("measure", path, "--json", "--class-names", names, "--lens", "class=dog").out)[
            "results"
        ][0]
        assert again["value"] == one["value"]


def test_numeric_names_are_names(truecal, tmp_path):
    path = tmp_path / "signs.csv"
    frame = binary_frame().with_columns(y=2 * pl.col("y") - 1)
    frame.write_csv(path)
    (result,) = json.loads(truecal("measure", path, "--json", "--class-names", "-1,1").out)["results"]
    assert result["value"] == pytest.approx(tc.calibration_error(binary_frame()["y"], frame["p"]).value, abs=1e-12)


def test_logits_and_class_wise(truecal, class_parquet):
    options = (
        "--logits",
        "z_*",
        "--class-names",
        "cat,dog,fox",
        "--lens",
        "class-wise",
        "--estimator",
        "debiased",
        "--bins",
        "8",
    )
    (result,) = json.loads(truecal("measure", class_parquet, "--json", *options).out)["results"]
    frame = class_frame()
    preds = tc.Predictions.from_frame(frame, label="label", logits="z_*", classes=["cat", "dog", "fox"])
    expected = tc.measure(preds, estimator=tc.DebiasedECE(bins=8), lens=tc.ClassWise())
    assert result["value"] == expected.value
    assert result["parts"] == expected.parts.tolist()
    assert result["estimator"]["options"]["bins"] == 8


def test_groups(truecal, binary_csv):
    content = json.loads(truecal("measure", binary_csv, "--json", "--by", "site").out)
    assert [result["group"] for result in content["results"]] == ["north", "south"]
    frame = binary_frame().filter(pl.col("site") == "south")
    assert content["results"][1]["value"] == pytest.approx(
        tc.calibration_error(frame["y"], frame["p"]).value, abs=1e-12
    )
    text = truecal("measure", binary_csv, "--by", "site").out
    assert text.rstrip().splitlines()[-1].startswith("groups are tested one by one")
    assert "north" in text
    assert "south" in text


def test_all_estimators(truecal, binary_csv):
    text = truecal("measure", binary_csv, "--estimator", "all").out
    assert all(name in text for name in ESTIMATORS)
    assert "tested one by one" not in text


def test_weights_and_clusters(truecal, binary_csv):
    (result,) = json.loads(truecal("measure", binary_csv, "--json", "--weight", "w", "--cluster", "patient").out)[
        "results"
    ]
    frame = binary_frame()
    expected = tc.calibration_error(frame["y"], frame["p"], sample_weight=frame["w"], clusters=frame["patient"])
    assert result["value"] == expected.value
    assert result["warnings"] == list(expected.warnings)


def gate(truecal, path, most):
    ran = truecal("measure", path, "--max-error", most, "--json")
    return ran.code, json.loads(ran.out)["conclusion"]["passed"]


def test_the_gate(truecal, binary_csv, tmp_path):
    frame = binary_frame()
    interval = tc.calibration_error(frame["y"], frame["p"]).interval
    assert gate(truecal, binary_csv, round(interval.high + 0.001, 4)) == (0, True)
    assert gate(truecal, binary_csv, round(interval.high - 0.001, 4)) == (1, False)
    assert "PASS" in truecal("measure", binary_csv, "--max-error", "0.5").out
    middle = round((interval.low + interval.high) / 2, 4)
    assert "FAIL: at 95% the error may be as large as" in truecal("measure", binary_csv, "--max-error", middle).out
    far_off = tmp_path / "far_off.csv"
    pl.DataFrame({"y": [0, 1] * 200, "p": [0.9] * 400}).write_csv(far_off)
    last = truecal("measure", far_off, "--max-error", "0.1").out.splitlines()[-1]
    assert last.startswith("FAIL: at 95% the error is at least 0.3")
    assert last.endswith("and 0.1 is allowed; recalibrate the model")


def test_the_gate_judges_the_worst_group(truecal, binary_csv):
    uppers = [
        r["interval"]["high"]
        for r in json.loads(truecal("measure", binary_csv, "--json", "--by", "site").out)["results"]
    ]
    between = (min(uppers) + max(uppers)) / 2
    assert truecal("measure", binary_csv, "--by", "site", "--max-error", between).code == 1


def test_out_holds_what_would_be_printed(truecal, binary_csv, tmp_path):
    target = tmp_path / "answer.json"
    ran = truecal("measure", binary_csv, "--json", "--out", target)
    assert ran.out == ""
    assert target.read_text() == truecal("measure", binary_csv, "--json").out


def test_cited_errors_have_words_and_names_of_their_own(truecal, binary_csv):
    assert "Kolmogorov-Smirnov calibration error" in truecal("measure", binary_csv, "--estimator", "ks").out


def test_another_tool_s_number_stands_beside_ours_with_the_reasons(truecal, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("p,y\n0.95,1\n1.0,0\n0.95,1\n1.0,1\n0.3,0\n0.2,0\n")
    ran = truecal(
        "measure", path, "--label", "y", "--estimator", "binned", "--bins", 10, "--like", "torchmetrics", "--json"
    )
    ours, theirs = json.loads(ran.out)["results"]
    assert (round(ours["value"], 4), round(theirs["value"], 4)) == (0.2333, 0.2667)
    assert theirs["warnings"][0] == "as torchmetrics computes it: a score of exactly 1 has a bin of its own"
    refused = truecal("measure", path, "--label", "y", "--like", "torchmetrics", "--max-error", 0.1)
    assert refused.code == 2
    assert "leave out --max-error" in refused.err


def test_another_tool_s_number_says_what_it_is_about(truecal, binary_csv):
    """relplot judges the probability of the positive class as we do, HELM the predicted class."""

    def lens_and_reason(tool):
        theirs = json.loads(truecal("measure", binary_csv, "--like", tool, "--json").out)["results"][1]
        return theirs["lens"], theirs["warnings"][0]

    assert lens_and_reason("relplot")[0] == "positive class"
    assert lens_and_reason("helm") == (
        "top label",
        "as helm computes it: it is about the top label, ours about the positive class",
    )
