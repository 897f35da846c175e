"""Five kinds of new users and what each came for, as lines they type on files that their libraries wrote."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import truecal as tc


def held_out(model, seed=0, classes=3, n=1600):
    """Predictions of a scikit-learn model on rows it has not seen, as pandas keeps them."""
    X, y = make_classification(n, 8, n_informative=5, n_classes=classes, flip_y=0.1, random_state=seed)
    model.fit(X[: n // 2], y[: n // 2])
    probs = model.predict_proba(X[n // 2 :])
    frame = pd.DataFrame(probs, columns=[f"p_{k}" for k in range(classes)])
    return frame.assign(label=y[n // 2 :], region=np.where(X[n // 2 :, 0] > 0, "north", "south"))


def test_a_gate_engineer_stops_a_release(shell, tmp_path):
    held_out(RandomForestClassifier(20, max_depth=3, random_state=0)).to_csv("candidate.csv", index=False)
    held_out(LogisticRegression()).to_csv("production.csv.gz", index=False)
    assert "FAIL" in shell("truecal measure candidate.csv --max-error 0.02", code=1)
    assert "PASS" in shell("truecal measure candidate.csv --max-error 0.9")
    assert "FAIL" in shell("truecal measure candidate.csv --max-error 0.02 --by region --format line", code=1)
    (tmp_path / "truecal.toml").write_text('label = "label"\nprobs = "p_*"\n[measure]\nmax-error = 0.02\n')
    assert shell("truecal measure candidate.csv --format github", code=1).startswith("::error title=truecal measure")
    (tmp_path / "truecal.toml").unlink()
    junit = ElementTree.fromstring(shell("truecal measure candidate.csv --max-error 0.02 --format junit", code=1))
    assert junit.get("failures") == "1"
    assert "| candidate.csv |" in shell("truecal measure candidate.csv --format markdown")
    assert "PASS" in shell("truecal compare production.csv.gz candidate.csv --max-increase 0.5 --resamples 99")
    assert "did you mean 'label'" in shell("truecal measure candidate.csv --label labell", code=2)
    shell("truecal recalibrate fit candidate.csv --method temperature --out map.json")
    shell("truecal recalibrate apply candidate.csv --model map.json --out better.csv")
    shell("truecal report candidate.csv --by region --fast --out report.html")
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_a_medical_evaluator_reads_risks(shell, tmp_path):
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 6, 1500)
    patients = pd.DataFrame(
        {
            "risk": risk,
            "died": (rng.random(1500) < risk**0.8).astype(int),
            "sex": rng.choice(["f", "m"], 1500),
            "site": rng.choice(["A", "B"], 1500),
            "patient": np.arange(1500) // 2,
        }
    )
    patients.to_csv("cohort.csv", sep=";", index=False)
    columns = "--label died --score risk --cluster patient"
    text = shell(f"truecal measure cohort.csv {columns} --clinical")
    assert all(word in text for word in ("O/E", "slope", "ICI", "c-statistic", "750 patients"))
    by = f"truecal measure cohort.csv {columns} --by sex --by site --json"
    groups = [(result["by"], result["group"]) for result in json.loads(shell(by))["results"]]
    assert groups == [("sex", "f"), ("sex", "m"), ("site", "A"), ("site", "B")]
    combined = json.loads(shell(f"{by} --combine"))["results"]
    assert [result["group"] for result in combined] == ["f, A", "f, B", "m, A", "m, B"]
    shell("truecal audit cohort.csv --label died --score risk --by sex --by site", code=1)
    shell(f"truecal report cohort.csv {columns} --bands low=0:0.1,high=0.1:1 --fast --out cohort.html")
    page = (tmp_path / "cohort.html").read_text()
    assert "750" in page
    assert "high" in page
    assert "too low by" in shell(f"truecal measure cohort.csv {columns}")


def jsonl(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


def test_an_evaluator_of_language_models_reads_logs(shell, tmp_path):
    rng = np.random.default_rng(0)
    for model, power in (("gpt", 1.2), ("claude", 2.0)):
        stated = rng.beta(4, 1.5, 400)
        rows = [
            {
                "question_id": f"q{i}",
                "model": model,
                "task": "law" if i % 2 else "maths",
                "confidence": f"{100 * c:.0f}%",
            }
            | {"correct": bool(rng.random() < c**power)}
            for i, c in enumerate(stated)
        ]
        jsonl(tmp_path / f"{model}.jsonl", rows)
    samples = [
        {
            "doc_id": i,
            "doc": {"choices": ["a", "b", "c"]},
            "target": str(int(rng.integers(3))),
            "filtered_resps": [[str(x), "False"] for x in rng.normal(-3, 2, 3)],
            "resps": [],
            "acc": 0.0,
        }
        for i in range(200)
    ]
    jsonl(tmp_path / "samples_local_2026-05-01T00-00-00.000000.jsonl", samples)
    assert "--percent" in shell("truecal measure gpt.jsonl", code=2)
    assert "class correct" in shell("truecal measure gpt.jsonl --percent")
    text = shell("truecal compare gpt.jsonl claude.jsonl --percent --key question_id --resamples 99 --report both.html")
    assert "claude - gpt" in text or "gpt - claude" in text
    assert "By task" in (tmp_path / "both.html").read_text()
    assert "n = 200" in shell("truecal measure samples_local_*.jsonl")


def test_an_evaluator_of_language_models_reads_what_the_harnesses_wrote(shell, tmp_path):
    for log in (Path(__file__).parent / "logs").iterdir():  # made by make_logs.py with lm-eval and Inspect
        shutil.copy(log, tmp_path)
    text = shell("truecal measure samples_local_choice_small.jsonl --json")
    assert json.loads(text)["results"][0]["n"] == 30
    rows = [json.loads(line) for line in (tmp_path / "samples_local_choice_small.jsonl").read_text().splitlines()]
    logs = np.array([[float(option[0]) for option in row["filtered_resps"]] for row in rows])
    sure = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    right = logs.argmax(axis=1) == [int(row["target"]) for row in rows]
    expected = tc.calibration_error(right, sure.max(axis=1))
    assert json.loads(text)["results"][0]["value"] == pytest.approx(float(expected))
    pair = "samples_local_choice_small.jsonl samples_local_choice_large.jsonl"
    assert "paired" in shell(f"truecal compare {pair} --key question --resamples 99")
    text = shell("truecal measure inspect_small.eval")
    assert "n = 32" in text
    assert "only 16 clusters" in text  # two epochs of a question are one unit
    shell("truecal measure inspect_small.eval --max-error 0.02", code=1)
    shell("truecal compare inspect_small.eval inspect_large.eval --resamples 99 --report models.html")
    page = (tmp_path / "models.html").read_text()
    assert "inspect_small" in page
    assert "inspect_large" in page


def test_a_researcher_writes_a_paper(shell, tmp_path):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(1500, 5)) * 2
    labels = (np.exp(0.6 * logits) / np.exp(0.6 * logits).sum(1, keepdims=True)).cumsum(1)
    labels = (labels < rng.random((1500, 1))).sum(1)
    np.savez("test.npz", logits=logits, labels=labels)
    every = json.loads(shell("truecal measure test.npz --estimator all --json"))["results"]
    assert {"RankSeries", "BinnedECE", "SweepECE", "DebiasedECE"} <= {result["estimator"]["name"] for result in every}
    assert "as torchmetrics computes it" in shell("truecal measure test.npz --like torchmetrics")
    table = tc.measure(tc.read("test.npz"), estimator=[tc.BinnedECE(), tc.SweepECE(), tc.RankSeries()])
    assert table.to_latex().count("\\\\") == 4
    assert table.frame().to_pandas().shape[0] == 3
    shell("truecal recalibrate fit test.npz --method temperature --out T.json")
    assert "bias" in shell("truecal lab bias test.npz --n 200 --m 20 --workers 1")


def test_a_platform_engineer_runs_a_daily_job(shell, tmp_path):
    rng = np.random.default_rng(0)
    for day in (1, 2, 3):
        folder = tmp_path / "logs" / f"day=2026-05-0{day}"
        folder.mkdir(parents=True)
        for part in range(2):
            p = rng.random(1500)
            frame = pl.DataFrame(
                {"p": p, "y": (rng.random(1500) < p).astype(int), "model": rng.choice(["a", "b"], 1500)}
            )
            frame.write_parquet(folder / f"part-{part}.parquet")
        columns = "--label y --score p --by model"
        shell(f"truecal sketch save logs/day=2026-05-0{day} {columns} --out kept/day=2026-05-0{day}")
        shell(f"truecal watch update state.json kept/day=2026-05-0{day} --at 2026-05-0{day} --by model --tolerance 0.1")
    gauges = shell("truecal measure logs/day=2026-05-01 --label y --score p --by model --format prometheus")
    assert 'truecal_measure_error{source="logs/day=2026-05-01"' in gauges
    shell("truecal sketch merge kept/day=2026-05-0*/model=a/sketch.npz --out a.npz")
    assert "rows in" in shell("truecal sketch show a.npz")
    shell("truecal verify a.npz --max-error 0.2 --assume-smooth")
    compared = "logs/day=2026-05-01 logs/day=2026-05-02 --label y --score p --resamples 99"
    assert "PASS" in shell(f"truecal compare {compared} --max-increase 0.2")
    shell("truecal watch report state.json --out watch.html")
    missing = shell("truecal measure logs/day=2026-05-09 --label y --score p", code=2)
    assert "day=2026-05-09" in missing
    pl.DataFrame({"p": [0.5, None], "y": [1, 0]}).write_parquet("holes.parquet")
    assert "--drop-null" in shell("truecal measure holes.parquet", code=2)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_everybody_asks_for_help_first(shell, option):
    assert "truecal" in shell(f"truecal {option}")
