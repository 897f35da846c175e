"""`truecal compare`: models with answers of their own, and the gate between an old and a new one."""

import json

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import binary_frame


def answers(n, power, seed):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return pl.DataFrame(
        {"question_id": np.arange(n), "confidence": p, "correct": (rng.random(n) < p**power).astype(int)}
    )


@pytest.fixture
def logs(tmp_path):
    """Two models with their own correctness, and the second again in another order."""
    good, bad = answers(800, 1.0, 0), answers(800, 3.0, 1)
    good.write_ndjson(tmp_path / "gpt.jsonl")
    bad.write_ndjson(tmp_path / "claude.jsonl")
    bad.sample(fraction=1.0, shuffle=True, seed=0).write_ndjson(tmp_path / "shuffled.jsonl")
    pl.concat([good.with_columns(model=pl.lit("gpt")), bad.with_columns(model=pl.lit("claude"))]).write_ndjson(
        tmp_path / "both.jsonl"
    )
    return tmp_path


def test_models_with_labels_of_their_own(truecal, logs):
    ran = truecal("compare", logs / "gpt.jsonl", logs / "claude.jsonl", "--json")
    assert ran.code == 0, ran.err
    content = json.loads(ran.out)
    assert [model["name"] for model in content["models"]] == ["gpt", "claude"]
    (pair,) = content["pairs"]
    assert pair["high"] < 0
    clustered = truecal(
        "compare", logs / "gpt.jsonl", logs / "claude.jsonl", "--label", "correct", "--score", "confidence",
        "--cluster", "question_id",
    )  # fmt: skip
    assert clustered.code == 0, clustered.err


def test_a_key_finds_the_rows(truecal, logs):
    pairs = [
        json.loads(truecal("compare", logs / "gpt.jsonl", logs / f"{name}.jsonl", "--key", "question_id", "--json").out)
        for name in ("claude", "shuffled")
    ]
    assert pairs[0]["pairs"][0]["high"] == pytest.approx(pairs[1]["pairs"][0]["high"], abs=1e-9)


def test_the_models_of_one_file(truecal, logs):
    content = json.loads(
        truecal("compare", logs / "both.jsonl", "--split", "model", "--key", "question_id", "--json").out
    )
    assert {model["name"] for model in content["models"]} == {"gpt", "claude"}
    assert "give several files" in truecal("compare", logs / "both.jsonl").err


def test_a_gate_between_old_and_new(truecal, logs):
    worse = truecal("compare", logs / "gpt.jsonl", logs / "claude.jsonl", "--max-increase", "0.01")
    assert worse.code == 1
    assert "FAIL: at 95% the error of claude exceeds that of gpt by at least" in worse.out
    better = truecal("compare", logs / "claude.jsonl", logs / "gpt.jsonl", "--max-increase", "0.01")
    assert better.code == 0
    assert "PASS" in better.out
    gate = json.loads(
        truecal("compare", logs / "claude.jsonl", logs / "gpt.jsonl", "--max-increase", "0.01", "--json").out
    )["conclusion"]
    assert gate["passed"]
    assert gate["worst"] == "gpt"
    junit = truecal("compare", logs / "gpt.jsonl", logs / "claude.jsonl", "--max-increase", "0.01", "--format", "junit")
    assert 'failures="1"' in junit.out


def test_day_against_day(truecal, tmp_path):
    for day, n in (("monday", 700), ("tuesday", 500)):
        answers(n, 1.0, n).write_csv(tmp_path / f"{day}.csv")
    files = [tmp_path / "monday.csv", tmp_path / "tuesday.csv"]
    refused = truecal("compare", *files)
    assert refused.code == 2
    assert "--unpaired" in refused.err
    ran = truecal("compare", *files, "--unpaired")
    assert ran.code == 0
    assert "unpaired" in ran.out
    assert truecal("compare", *files, "--unpaired", "--key", "question_id").code == 2


def test_the_page_of_models_with_their_own_labels(truecal, logs):
    out = logs / "page.html"
    ran = truecal("compare", logs / "gpt.jsonl", logs / "claude.jsonl", "--report", out, "--resamples", "99")
    assert ran.code == 0, ran.err
    assert "gpt minus claude" in out.read_text()


def test_folders_and_sketches_are_compared_day_against_day(truecal, tmp_path):
    for day, seed in (("monday", 0), ("tuesday", 1)):
        (tmp_path / day).mkdir()
        for part in range(2):
            binary_frame(n=600, seed=10 * seed + part).write_parquet(tmp_path / day / f"part-{part}.parquet")
    assert truecal("sketch", "save", tmp_path / "monday", "--out", tmp_path / "monday.npz").code == 0
    columns = ("--label", "y", "--score", "p", "--resamples", "99")
    days = truecal("compare", tmp_path / "monday", tmp_path / "tuesday", *columns, "--max-increase", "0.2", "--json")
    assert days.code == 0, days.err
    answer = truecal(
        "compare", tmp_path / "monday.npz", tmp_path / "tuesday", *columns, "--max-increase", "0.2", "--json"
    )
    assert json.loads(days.out)["pairs"] == json.loads(answer.out)["pairs"]
    assert json.loads(days.out)["n"] == 1200
    assert truecal("compare", tmp_path / "monday", tmp_path / "tuesday", *columns, "--max-increase", "0").code == 1
    for option in ("--key", "--cluster"):
        refused = truecal("compare", tmp_path / "monday", tmp_path / "tuesday", *columns, option, "patient")
        assert refused.code == 2
        assert "keep sums" in refused.err
    verified = truecal("verify", tmp_path / "monday", "--max-error", "0.5", "--assume-smooth")
    assert verified.code == 0, verified.err
    assert (
        truecal("verify", tmp_path / "monday.npz", "--max-error", "0.5", "--assume-smooth").out.splitlines()[1:]
        == (verified.out.splitlines()[1:])
    )


def test_the_page_and_the_answer_rest_on_one_computation(truecal, tmp_path, monkeypatch):
    import truecal as tc

    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    for name, scores in (("a", p), ("b", p**2)):
        pl.DataFrame({"p": scores, "y": y}).write_csv(tmp_path / f"{name}.csv")
    plain = truecal("compare", tmp_path / "a.csv", tmp_path / "b.csv", "--resamples", "99").out
    calls = []
    compute = tc.inference.compare_many
    monkeypatch.setattr(tc.inference, "compare_many", lambda *a, **k: calls.append(1) or compute(*a, **k))
    words = ("--resamples", "99", "--report", tmp_path / "page.html")
    assert truecal("compare", tmp_path / "a.csv", tmp_path / "b.csv", *words).out == plain
    assert calls == [1]
