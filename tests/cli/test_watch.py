"""`truecal watch` and `truecal sketch`."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import truecal as tc


@pytest.fixture
def month(tmp_path):
    """Files by day of three models, of which b is overconfident from the 8th on."""
    rng = np.random.default_rng(1)
    folder = tmp_path / "logs"
    folder.mkdir()
    for day in range(1, 13):
        p, model = rng.beta(4, 1, 1200), rng.choice(["a", "b", "c"], 1200)
        true = np.where((model == "b") & (day >= 8), p / (p + 3 * (1 - p)), p)
        frame = pl.DataFrame({"p": p, "y": (rng.random(1200) < true).astype(int), "model": model})
        frame.write_parquet(folder / f"2026-05-{day:02}.parquet")
    return folder


def test_a_month_is_replayed_and_gone_on_with(truecal, month, tmp_path):
    state = tmp_path / "state.json"
    first = truecal("watch", "update", state, month / "2026-05-01.parquet", "--by", "model", "--tolerance", 0.02, "-q")
    assert first.code == 0
    assert first.out.startswith("2026-05-01: 3 groups: ok")
    ran = truecal("watch", "update", state, month, "--by", "model", "-q", "--format", "json")
    content = json.loads(ran.out)
    assert ran.code == 1
    assert content["schema"] == "truecal.watch"
    assert [step["at"] for step in content["steps"]] == [f"2026-05-{day:02}" for day in range(2, 13)]
    assert content["steps"][-1]["called"] == [["b"]]
    last = {group["group"][0]: group for group in content["steps"][-1]["groups"]}
    assert last["b"]["since"] in ("2026-05-07", "2026-05-08", "2026-05-09")
    assert not last["a"]["alarm"]
    before = state.read_bytes()
    again = truecal("watch", "update", state, month, "--by", "model", "-q")  # everything is counted already
    assert again.code == 2
    assert "nothing was counted" in again.err
    assert "skipped 2026-05-01: already counted" in again.err
    assert "ok" not in again.out
    assert state.read_bytes() == before
    watch = tc.Watch(by="model")
    for day in range(1, 13):
        frame = pl.read_parquet(month / f"2026-05-{day:02}.parquet")
        step = watch.update(tc.Predictions.from_frame(frame, label="y", probs="p"), at=f"2026-05-{day:02}")
    assert step.groups["b",].log_e == pytest.approx(last["b"]["log_e"])


def test_show_prometheus_and_page(truecal, month, tmp_path):
    state, page = tmp_path / "state.json", tmp_path / "watch.html"
    truecal("watch", "update", state, month, "--by", "model", "-q")
    answer = truecal("watch", "show", state)
    assert answer.code == 1
    assert "2026-05-12: b: ALARM" in answer.out
    metrics = truecal("watch", "show", state, "--format", "prometheus", "--out", tmp_path / "watch.prom")
    assert metrics.out == ""
    lines = (tmp_path / "watch.prom").read_text().splitlines()
    assert 'truecal_watch_alarm{model="b"} 1' in lines
    assert 'truecal_watch_alarm{model="a"} 0' in lines
    assert "truecal_watch_any_alarm 1" in lines
    assert sum(line.startswith("# TYPE") for line in lines) == 11
    assert 'truecal_watch_last_batch{model="a"} 1778544000' in lines  # 2026-05-12
    written = truecal("watch", "report", state, "--out", page)
    assert written.code == 0
    assert "predicted too high" in page.read_text()
    history = tc.Watch.load(state).group("a").history
    assert history.lines[0].at == "2026-05-01"


def test_days_kept_as_sketches(truecal, month, tmp_path):
    kept = tmp_path / "kept"
    for day in ("2026-05-01", "2026-05-02"):
        ran = truecal("sketch", "save", month / f"{day}.parquet", "--by", "model", "--out", kept / f"day={day}", "-q")
        assert ran.code == 0
    assert len(list(kept.rglob("sketch.npz"))) == 6
    rows, sketches = tmp_path / "rows.json", tmp_path / "sketches.json"
    truecal("watch", "update", sketches, kept, "--by", "model", "-q")
    files = [month / f"{day}.parquet" for day in ("2026-05-01", "2026-05-02")]
    truecal("watch", "update", rows, *files, "--by", "model", "-q")
    first, second = (tc.Watch.load(path).step() for path in (rows, sketches))
    assert first.log_e == pytest.approx(second.log_e)
    assert first.groups["a",].error == pytest.approx(second.groups["a",].error)
    parts = sorted(kept.rglob("sketch.npz"))
    ran = truecal("sketch", "merge", *parts, "--out", tmp_path / "all.npz")
    assert "2400 rows of 6 sketches" in ran.out
    assert "2400 rows of 6 sketches" in truecal("sketch", "merge", kept, "--out", tmp_path / "folder.npz").out
    assert json.loads(truecal("sketch", "show", kept, "--json").out)["rows"] == 2400
    record = json.loads(truecal("sketch", "show", tmp_path / "all.npz", "--json").out)
    assert (record["rows"], record["schema"]) == (2400, "truecal.sketch")
    assert record["low"] <= record["value"] <= record["high"]
    single = tmp_path / "single.json"
    assert truecal("watch", "update", single, tmp_path / "all.npz", "--at", "2026-05-02").code == 0
    wrong = truecal(
        "watch", "update", tmp_path / "no.json", tmp_path / "all.npz", "--at", "2026-05-02", "--by", "model"
    )
    assert wrong.code == 2
    assert "its folders do not name the group" in wrong.err


def test_labels_that_lack_and_come_late(truecal, tmp_path):
    rng = np.random.default_rng(2)
    p = rng.random(200)
    y = [int(v) if i < 150 else None for i, v in enumerate(rng.random(200) < p)]
    pl.DataFrame({"p": p, "y": y}).write_parquet(tmp_path / "day.parquet")
    pl.DataFrame({"p": p[150:], "y": (rng.random(50) < p[150:]).astype(int)}).write_parquet(tmp_path / "late.parquet")
    state = tmp_path / "state.json"
    ran = truecal("watch", "update", state, tmp_path / "day.parquet", "--at", "2026-05-01", "--drop-null", "-q")
    assert "150 labelled of 200" in ran.out
    other = truecal("watch", "update", state, tmp_path / "late.parquet", "--at", "2026-05-01", "-q")
    assert other.code == 2
    assert "--late" in other.err
    late = truecal("watch", "update", state, tmp_path / "late.parquet", "--at", "2026-05-01", "--late", "-q")
    assert "(200 in all)" in late.out
    later = truecal("watch", "update", state, tmp_path / "late.parquet", "--at", "2026-05-03", "-q")
    assert later.code == 0
    truecal("watch", "update", state, tmp_path / "late.parquet", "--at", "2026-05-02", "--late", "-q")
    metrics = truecal("watch", "show", state, "--format", "prometheus").out
    assert "truecal_watch_last_batch 1777766400" in metrics  # 2026-05-03: late labels do not move it
    engine = tmp_path / "engine.json"
    ran = truecal(
        "watch", "update", engine, tmp_path / "day.parquet", "--at", 1, "--drop-null", "-q", "--engine", "duckdb"
    )
    assert "150 labelled of 200" in ran.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--tolerance", "0.05"),
            "state.json was started with --tolerance 0.02, not 0.05. Drop --tolerance, or use a new",
        ),
        (("--alpha", "0.01"), "started with --alpha 0.05, not 0.01"),
        (("--run-length", "50"), "started with --run-length 1000, not 50"),
        (("--by", "site"), "state.json was started without --by. Drop --by, or use a new state file."),
        (("--lens", "top-label"), "started with --lens auto, not top-label"),
        (("--restart", "--label", "none"), "'none'"),
    ],
)
def test_other_settings_than_the_state_s_are_refused(truecal, binary_csv, tmp_path, options, words):
    state = tmp_path / "state.json"
    assert truecal("watch", "update", state, binary_csv, "--at", 1, "-q").code in (0, 1)
    before = state.read_bytes()
    ran = truecal("watch", "update", state, binary_csv, "--at", 2, "-q", *options)
    assert ran.code == 2
    assert words in ran.err
    assert state.read_bytes() == before


def test_refusals(truecal, binary_csv, tmp_path):
    state = tmp_path / "state.json"
    ran = truecal("watch", "update", state, binary_csv)
    assert ran.code == 2
    assert "no date in the name" in ran.err
    assert not state.exists()
    ran = truecal("watch", "show", state)
    assert ran.code == 2
    assert "cannot read the state" in ran.err
    bad = tmp_path / "2026-05-01.csv"
    bad.write_text("y,p\n1,0.5\n0,nan\n")
    assert truecal("watch", "update", state, bad).code == 2
    assert not state.exists()


def test_days_are_compared_as_days_and_skips_are_explained(truecal, month, tmp_path):
    state = tmp_path / "state.json"
    words = ("watch", "update", state)
    assert truecal(*words, month / "2026-05-03.parquet", "--at", "20260503", "-q").code == 0
    ran = truecal(*words, month, "-q", "--json")
    content = json.loads(ran.out)
    assert [step["at"] for step in content["steps"]] == [f"2026-05-{day:02}" for day in range(4, 13)]
    assert [line["at"] for line in content["skipped"]] == ["2026-05-01", "2026-05-02", "2026-05-03"]
    assert "skipped 2026-05-02: before the last counted batch, 2026-05-03; --late counts it" in ran.err
    assert "skipped 2026-05-03: already counted" in ran.err
    one = truecal(*words, month / "2026-05-12.parquet", "--at", "2026-05-12", "-q")
    assert one.code == 2
    assert "nothing was counted" in one.err
    assert "skipped 2026-05-12: already counted, with the same rows" in one.err


def test_a_batch_of_the_far_future_is_taken_back(truecal, month, tmp_path):
    state = tmp_path / "state.json"
    truecal("watch", "update", state, month / "2026-05-01.parquet", "-q")
    before = json.loads(truecal("watch", "show", state, "--json").out)
    ran = truecal("watch", "update", state, month / "2026-05-02.parquet", "--at", "2999-01-01", "-q")
    assert "warning: 2999-01-01 is more than a year ahead" in ran.err
    assert truecal("watch", "update", state, month, "-q").code == 2
    undone = truecal("watch", "undo", state)
    assert (undone.code, undone.out) == (0, "removed the batch at 2999-01-01; the last is now 2026-05-01\n")
    assert json.loads(truecal("watch", "show", state, "--json").out) == before
    again = truecal("watch", "undo", state)
    assert again.code == 2
    assert "only the last one can be, once" in again.err
    assert truecal("watch", "update", state, month / "2026-05-02.parquet", "-q").code == 0
    content = json.loads(truecal("watch", "undo", state, "--json").out)
    assert (content["undone"], content["latest"]) == ("2026-05-02", "2026-05-01")


def test_every_verb_answers_in_json(truecal, month, tmp_path):
    state, page = tmp_path / "state.json", tmp_path / "watch.html"
    for words in (
        ("update", state, month / "2026-05-01.parquet", "-q"),
        ("show", state),
        ("report", state, "--out", page),
        ("undo", state),
    ):
        ran = truecal("watch", *words, "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["schema"].startswith("truecal.watch")


def test_the_difference_is_named(truecal, month, tmp_path):
    state = tmp_path / "state.json"
    ran = truecal("watch", "update", state, month / "2026-05-01.parquet", "-q")
    assert "mean difference (predicted - observed) " in ran.out
    (group,) = json.loads(truecal("watch", "show", state, "--json").out)["steps"][0]["groups"]
    assert group["difference_low"] < group["difference"] < group["difference_high"]
    assert "error" not in group
    assert "difference" in group["worst"]


def race(processes, folder, files):
    """Count several files into one state at once, each in a process of its own."""
    state = folder / "state.json"
    command = [sys.executable, "-m", "truecal.cli.main", "watch", "update", state]
    running = [
        processes.start(*command, file, "--by", "site", "--at", "1", "-q", stdout=subprocess.DEVNULL) for file in files
    ]
    assert all(process.wait() in (0, 1) for process in running)
    return tc.Watch.load(state)


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=pytest.mark.full)])
def test_two_updates_at_once_lose_nothing(processes, month, tmp_path, rounds):
    files = []
    for i in range(2):
        frame = pl.read_parquet(month / "2026-05-01.parquet").with_columns(site=pl.lit(f"s{i}"))
        frame.write_parquet(tmp_path / f"{i}.parquet")
        files.append(tmp_path / f"{i}.parquet")
    for i in range(rounds):
        folder = tmp_path / str(i)
        folder.mkdir()
        watch = race(processes, folder, files)
        assert watch.groups == (("s0",), ("s1",))
        assert [path.name for path in folder.iterdir()] == ["state.json"]


def test_the_page_is_written_by_a_process_of_its_own(processes, month, tmp_path):
    """The public modules load on first use, and other tests may have loaded the pages before."""
    state, page = tmp_path / "state.json", tmp_path / "watch.html"
    watch = tc.Watch()
    frame = pl.read_parquet(month / "2026-05-01.parquet")
    watch.update(tc.Predictions.from_frame(frame, label="y", probs="p"), at="2026-05-01")
    ran = processes.truecal("watch", "report", watch.save(state), "--out", page)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert page.exists()


def test_an_update_of_many_days_says_once_what_was_read(truecal, month, tmp_path):
    ran = truecal("watch", "update", tmp_path / "state.json", month, "--by", "model")
    assert ran.err.count("label 'y'") == 1, ran.err
