"""Where verbs write: never over what they read, whole or not at all, and nothing that a reader would run."""

import os
import signal
import subprocess
import sys
import time

import click
import numpy as np
import polars as pl
import pytest

import truecal as tc
from truecal.cli.command import OutputPath
from truecal.cli.verbs import VERBS
from truecal.cli.verbs import truecal as root
from truecal.table import write_table


def commands(group, path=()):
    """Every verb of the command line, with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_option_that_names_an_output_is_checked():
    checked = set()
    for words, command in commands(root):
        for param in command.params:
            if {"--out", "--figure", "--numbers", "--report"} & set(param.opts):
                assert isinstance(param.type, OutputPath), words
                checked.add(words)
    assert {words[0] for words in checked} == set(VERBS)


READING = {
    "measure": "measure {file} --out {out}",
    "report": "report {file} --out {out}",
    "verify": "verify {file} --max-error 0.1 --out {out}",
    "audit": "audit {file} --out {out}",
    "compare": "compare {other} {file} --out {out}",
    "fit": "recalibrate fit {file} --out {out}",
    "apply": "recalibrate apply {other} --model {file} --out {out}",
    "likert": "likert {file} --out {out}",
    "sketch": "sketch save {file} --out {out}",
    "groups": "sketch save {file} --by site --out {out}",
    "state": "watch update {file} {other} --at 1 --out {out}",
    "batch": "watch update state.json {file} --at 1 --out {out}",
    "show": "watch show {file} --out {out}",
    "page": "watch report {file} --out {out}",
    "import": "study import {other} --preset revisiting-calibration --diagrams {file} --out {out}",
    "folder": "measure {folder} --out {out}",
}


@pytest.mark.parametrize("words", READING.values(), ids=list(READING))
def test_an_input_is_not_overwritten(truecal, binary_csv, tmp_path, monkeypatch, words):
    folder = tmp_path / "inputs"
    folder.mkdir()
    file, other, link = folder / "x.csv", tmp_path / "other.csv", tmp_path / "link.csv"
    file.write_bytes(binary_csv.read_bytes())
    other.write_bytes(file.read_bytes())
    link.symlink_to(file)
    monkeypatch.chdir(tmp_path)
    before = file.read_bytes()
    for out in (file, link):
        ran = truecal(*words.format(file=file, other=other, folder=folder, out=out).split())
        assert ran.code == 2
        assert f"cannot write {out}: the command reads it" in ran.err
        assert file.read_bytes() == before
    assert not (tmp_path / "state.json").exists()


def test_what_cannot_be_written_is_refused_before_reading(truecal, tmp_path):
    for verb in ("report", "measure", "audit"):
        ran = truecal(verb, tmp_path / "no-such.csv", "--out", tmp_path / "no" / "such" / "folder.html")
        assert ran.code == 2
        assert "cannot write" in ran.err


def test_answers_go_to_devices(truecal, binary_csv):
    assert truecal("measure", binary_csv, "--json", "--out", "/dev/null").code == 0


# ---------------------------------------------------------------------- folders of sketches


def grouped(path, groups, column="k"):
    rng = np.random.default_rng(0)
    p = rng.random(20 * groups)
    y = (rng.random(len(p)) < p).astype(int)
    pl.DataFrame({"p": p, "y": y, column: [f"g{i % groups}" for i in range(len(p))]}).write_parquet(path)
    return path


def test_groups_that_are_gone_do_not_stay(truecal, tmp_path):
    out = tmp_path / "day=2026-05-01"
    for groups in (5, 3):
        file = grouped(tmp_path / "day.parquet", groups)
        assert truecal("sketch", "save", file, "--by", "k", "--out", out, "-q").code == 0
        assert sorted(path.name for path in out.iterdir()) == [f"k=g{i}" for i in range(groups)]
    (out / "notes.txt").write_text("mine")
    ran = truecal("sketch", "save", file, "--by", "k", "--out", out, "-q")
    assert ran.code == 2
    assert "it holds notes.txt" in ran.err


def test_column_names_stay_inside_the_folder(truecal, tmp_path):
    file, out = grouped(tmp_path / "day.parquet", 2, "../../k"), tmp_path / "deep" / "out"
    assert truecal("sketch", "save", file, "--by", "../../k", "--out", out, "-q").code == 0
    assert sorted(path.name for path in out.iterdir()) == ["..%2F..%2Fk=g0", "..%2F..%2Fk=g1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["day.parquet", "deep"]
    ran = truecal("watch", "update", tmp_path / "s.json", out, "--by", "../../k", "--at", 1)
    assert ran.code in (0, 1)
    assert "g0" in ran.out


# ---------------------------------------------------------------------- what a reader would run

EVIL = "=cmd|' /C calc'!A0"


def test_formulas_are_quoted_in_every_csv(tmp_path):
    frame = pl.DataFrame(
        {"=name": [EVIL, "plain", None], "n": [-1, 2, 3], "kind": pl.Series(["@a", "b", "b"], dtype=pl.Categorical)}
    )
    write_table(frame, tmp_path / "table.csv")
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines == ["'=name,n,kind", f"'{EVIL},-1,'@a", "plain,2,b", ",3,b"]
    write_table(frame, tmp_path / "table.parquet")
    assert pl.read_parquet(tmp_path / "table.parquet")["=name"].to_list() == [EVIL, "plain", None]
    with pytest.raises(tc.InputError, match="unknown kind of file"):
        write_table(frame, tmp_path / "table.xls")


def test_recalibrated_rows_hold_no_formula(truecal, binary_csv, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    fitted = tc.recalibration.BetaCalibration().fit(p, (rng.random(300) < p).astype(int))
    (tmp_path / "map.json").write_text(fitted.to_json())
    frame = pl.read_csv(binary_csv).with_columns(site=pl.lit(EVIL))
    frame.write_csv(tmp_path / "evil.csv")
    out = tmp_path / "out.csv"
    ran = truecal(
        "recalibrate", "apply", tmp_path / "evil.csv", "--model", tmp_path / "map.json", "--score", "p", "--out", out
    )
    assert ran.code == 0, ran.err
    assert set(pl.read_csv(out)["site"]) == {f"'{EVIL}"}


def test_html_is_escaped_in_markdown(truecal, tmp_path):
    frame = pl.read_parquet(grouped(tmp_path / "x.parquet", 2)).with_columns(k=pl.lit("<img src=x onerror=alert(1)>"))
    frame.write_parquet(tmp_path / "x.parquet")
    out = truecal("measure", tmp_path / "x.parquet", "--by", "k", "--format", "markdown", "-q").out
    assert "&lt;img src=x onerror=alert(1)&gt;" in out
    assert "<" not in out


# ---------------------------------------------------------------------- kills

WRITING = {
    "measure": "measure x.parquet --json --out out",
    "report": "report x.parquet --fast --out out",
    "sketch": "sketch save x.parquet --out out",
    "groups": "sketch save x.parquet --by k --out out",
    "merge": "sketch merge a.npz b.npz --out out",
    "watch": "watch update out x.parquet --at 2",
    "undo": "watch undo out",
    "page": "watch report s.json --out out",
    "table": "recalibrate apply x.parquet --model map.json --score p --out out.csv",
}


def content(path):
    """All that a reader sees; None where there is nothing."""
    if path.is_dir():
        return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
    return path.read_bytes() if path.exists() else None


def killed_or_whole(processes, tmp_path, words, kills, seed):
    """Run a verb in its own process and kill it at a random moment; the output is the old one or a whole one, every time."""
    rng = np.random.default_rng(seed)
    command = [sys.executable, "-m", "truecal.cli.main", *words.split()]
    grouped(tmp_path / "x.parquet", 30)
    p = np.linspace(0.01, 0.99, 200)
    fitted = tc.recalibration.BetaCalibration().fit(p, (rng.random(200) < p).astype(int))
    (tmp_path / "map.json").write_text(fitted.to_json())
    for name in ("a.npz", "b.npz"):
        tc.Sketch.from_arrays(p, p > 0.5).save(tmp_path / name)
    watch = tc.Watch()
    watch.update(tc.Predictions.from_probs(p, p > 0.5), at=1)
    watch.save(tmp_path / "s.json")
    out = tmp_path / ("out.csv" if words.endswith("csv") else "out")
    state = "out" in words.split()[2:3]
    if state:
        watch.save(out)
    old = content(out)
    started = time.monotonic()
    processes.run(*command, cwd=tmp_path)
    took, new = time.monotonic() - started, content(out)
    assert new not in (None, old)
    whole = set()
    for _ in range(kills):
        if state:
            watch.save(out) if not out.exists() else out.write_bytes(old)
        running = processes.start(*command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.5, 1.05) * took)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        observed = content(out)
        if "report" in words:  # a page holds the time it was written
            assert observed.rstrip().endswith(b"</html>")
        else:
            assert observed in (old, new)
        whole.add(observed == new)
    tc.Sketch.from_arrays(p, p > 0.5).save(tmp_path / "last.npz")
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".truecal")]


@pytest.mark.full
@pytest.mark.parametrize("words", WRITING.values(), ids=list(WRITING))
def test_thirty_kills_leave_the_old_or_the_new(processes, tmp_path, words):
    killed_or_whole(processes, tmp_path, words, kills=30, seed=1)


def test_a_few_kills_leave_the_old_or_the_new(processes, tmp_path):
    killed_or_whole(processes, tmp_path, WRITING["groups"], kills=2, seed=2)
