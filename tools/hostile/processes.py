"""Kills, full disks and races of every verb that writes: the old file or the new one, never another; no batch is lost.

Children are forked from a server that has loaded truecal and computed nothing. A kill is made inside a write (between opening,
writing, syncing and renaming) or at a random moment; a full disk is a limit of the size of files.
"""

import multiprocessing
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tools.hostile import scans
from tools.hostile.judge import Outcome

STAGES = ("opened", "written", "synced", "renamed")
HARMS = (*STAGES, *STAGES, "random moment", "full disk")
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "truecal.cli.main",
        "truecal.study",
        "truecal.pages",
        "truecal.recalibration",
        "polars",
        "sklearn.base",
        "scipy.optimize",
        "scipy.stats",
    ]
)
STUDY = """name: killed
predictions:
  - {files: "m{model}.npz", dataset: d}
columns: {label: labels, probs: probs}
metrics: [ece-width-15-l1, error]
"""
# Verbs that write: the command line, and what it writes.
VERBS: dict[str, tuple[list[str], str]] = {
    "report": (["report", "x.csv", "--fast", "--out", "out.html"], "out.html"),
    "recalibrate fit": (["recalibrate", "fit", "x.csv", "--out", "out.json"], "out.json"),
    "recalibrate apply": (["recalibrate", "apply", "x.csv", "--model", "map.json", "--out", "out.csv"], "out.csv"),
    "sketch save": (["sketch", "save", "x.csv", "--out", "out.npz"], "out.npz"),
    "sketch save by": (["sketch", "save", "x.csv", "--by", "site", "--out", "out"], "out"),
    "sketch merge": (["sketch", "merge", "day1.npz", "day2.npz", "--out", "out.npz"], "out.npz"),
    "watch update": (["watch", "update", "state.json", "x.csv", "--at", "2026-02-01"], "state.json"),
    "watch report": (["watch", "report", "state.json", "--out", "out.html"], "out.html"),
    "study run": (["study", "run", "study.yaml", "--store", "store", "--workers", "1"], "store"),
    "study export": (["study", "export", "done", "--out", "out.csv"], "out.csv"),
}


def make_study(folder: Path, models: int) -> Path:
    """Write a study of small files, most of whose work is writing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    for i in range(models):
        p = rng.random(60)
        np.savez(folder / f"m{i}.npz", probs=np.column_stack([1 - p, p]), labels=labels)
    study = folder / "study.yaml"
    study.write_text(STUDY)
    return study


def prepare(folder: Path) -> None:
    """Write what the verbs read, and other things where they write."""
    rows = {name: column for name, column in scans.table().items() if name in ("y", "p", "site")}
    (folder / "x.csv").write_bytes(scans.as_csv(rows))
    (folder / "old.csv").write_bytes(scans.as_csv({name: column[:12] for name, column in rows.items()}))
    make_study(folder, 2)
    for words in (
        ["recalibrate", "fit", "old.csv", "--out", "map.json"],
        ["sketch", "save", "x.csv", "--out", "day1.npz"],
        ["sketch", "save", "old.csv", "--out", "day2.npz"],
        ["sketch", "save", "old.csv", "--by", "site", "--out", "out"],
        ["watch", "update", "state.json", "old.csv", "--at", "2026-01-01"],
        ["watch", "update", "sites.json", "old.csv", "--by", "site", "--at", "2026-01-01"],
        ["study", "run", "study.yaml", "--store", "done", "--workers", "1"],
    ):
        assert run_verb(folder, words, "") == 0, words
    for name in ("out.html", "out.json", "out.csv", "out.npz"):
        (folder / name).write_bytes(b"old")


def content(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of the files of a folder; without what is temporary, and without the minute that a page states."""
    files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    files = [file for file in files if file.is_file() and not file.name.startswith(".")]
    return {str(f.relative_to(path)): re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"", f.read_bytes()) for f in files}


def _child(folder: str, words: list[str], harm: str, count: int) -> None:
    """Run one command line in a child process, and end it inside its write of that number."""
    from truecal import writing
    from truecal.cli.main import main

    reached = 0

    def stop(stage: str) -> None:
        nonlocal reached
        reached += stage == harm
        if stage == harm and reached > count:
            os.kill(os.getpid(), signal.SIGKILL)

    os.chdir(folder)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    writing._reached = stop
    if harm == "full disk":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (count, resource.RLIM_INFINITY))
    os._exit(main(words))


def start(folder: Path, words: list[str], harm: str = "", count: int = 0) -> Any:
    """Start a command line in a child process."""
    child = _CONTEXT.Process(target=_child, args=(str(folder), words, harm, count))
    child.start()
    return child


def run_verb(folder: Path, words: list[str], harm: str, count: int = 0, wait: float | None = None) -> int:
    """Run a command line to its end, or kill it after that many seconds; its exit code."""
    child = start(folder, words, harm, count)
    child.join(120 if wait is None else wait)
    if child.is_alive():
        child.kill()
        child.join()
    return int(child.exitcode)


def harm_verb(verb: str, folder: Path, scratch: Path, rng: random.Random) -> Outcome:
    """Harm one run of a verb in a copy of the folder; the output must be old or new, and the next run must succeed."""
    words, output = VERBS[verb]
    harm = rng.choice(HARMS)
    shutil.copytree(folder, scratch)
    old = content(scratch / output)
    wait = rng.random() * 0.5 if harm == "random moment" else None
    later = rng.choice((0, 1, 2)) if verb == "study run" else 0
    code = run_verb(scratch, words, harm, rng.choice((0, 1, 700)) if harm == "full disk" else later, wait)
    after = content(scratch / output)
    new = _new_content(verb, folder)
    detail = f"{verb}, {harm}, exit {code}"
    if code not in (0, 2, -signal.SIGKILL) or (harm == "full disk" and code == 0 and after != new):
        return Outcome("foreign", detail)
    whole = after in (old, new) or (verb == "study run" and all(new.get(name) == data for name, data in after.items()))
    if not whole and not _same_answers(verb, scratch, folder, complete=code == 0):
        return Outcome("differs", f"{detail}: neither the old nor the new output")
    last = run_verb(scratch, words, "")
    if last not in (0, 1) and not (
        verb == "watch update" and after == new
    ):  # a batch that was counted is refused twice
        return Outcome("foreign", f"{detail}: the next run ends with {last}")
    leftovers = [file.name for file in scratch.rglob(".truecal-*")]
    if leftovers and verb != "study run":
        return Outcome("foreign", f"{detail}: {leftovers[0]} stays after the next run")
    return Outcome("refused" if code else "answer", detail)


_NEW: dict[tuple[str, Path], dict[str, bytes]] = {}


def _new_content(verb: str, folder: Path) -> dict[str, bytes]:
    """What a run that nothing harms writes."""
    if (verb, folder) not in _NEW:
        words, output = VERBS[verb]
        copy = folder.parent / f"unharmed-{verb.replace(' ', '-')}"
        shutil.copytree(folder, copy)
        assert run_verb(copy, words, "") in (0, 1), verb
        _NEW[verb, folder] = content(copy / output)
    return _NEW[verb, folder]


def _same_answers(verb: str, scratch: Path, folder: Path, *, complete: bool) -> bool:
    """Whether a study's store, whose parts bear times, is readable and holds whole parts of the unharmed one, or all of them."""
    if verb != "study run":
        return False
    import truecal as tc

    store = tc.study.Store(scratch / "store")
    if not (scratch / "store" / "study.json").exists():
        return not complete
    # the name of a job holds the time of change of its file, which every copy renews; a model is one job here
    frame = store.frame().drop("job")
    whole = tc.study.Store(folder.parent / "unharmed-study-run" / "store").frame().drop("job")
    if complete:
        return frame.equals(whole)
    return frame.equals(whole.filter(whole["model"].is_in(frame["model"].to_list())))


def race(folder: Path, scratch: Path, rng: random.Random) -> Outcome:
    """Start three `watch update` of one state at once: every batch is counted."""
    import truecal as tc

    shutil.copytree(folder, scratch)
    state = rng.choice(("sites.json", "new.json"))
    children = []
    for site in ("r0", "r1", "r2"):
        (scratch / f"{site}.csv").write_text((scratch / "x.csv").read_text().replace(",a\n", f",{site}\n"))
        children.append(start(scratch, ["watch", "update", state, f"{site}.csv", "--by", "site", "--at", "2026-03-01"]))
        time.sleep(rng.random() * 0.02)
    for child in children:
        child.join(120)
    codes = [child.exitcode for child in children]
    groups = {name for (name,) in tc.Watch.load(scratch / state).groups}
    if not {"r0", "r1", "r2"} <= groups or any(code not in (0, 1) for code in codes):
        return Outcome("differs", f"race on {state}: exits {codes}, groups {sorted(groups)}")
    return Outcome("answer", f"race on {state}")


def check(number: int, folder: Path, scratch: Path, seed: int) -> Outcome:
    """Make the harm of that number: every verb in turn, and a race after each round."""
    rng = random.Random(f"{seed} {number}")
    verbs: list[Callable[[], Outcome]] = [lambda verb=verb: harm_verb(verb, folder, scratch, rng) for verb in VERBS]  # type: ignore[misc]
    verbs.append(lambda: race(folder, scratch, rng))
    try:
        return verbs[number % len(verbs)]()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
