"""Kill -9 at every stage of a write: `python -m tools.hostile.kills --kills 200`.

A study is run again and again and killed, half of the time inside a write (stopped between opening, writing, syncing and renaming
by a hook) and half of the time at a random moment. After every kill the store must be readable and hold whole parts only; in the
end a last run must give the store of a run that was never killed.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

STAGES = ("opened", "written", "synced", "renamed")
_RUN = """
import os, signal, sys
import truecal.writing as writing
study, store, stage, after = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
reached = [0]
def stop(now):
    if now == stage:
        reached[0] += 1
        if reached[0] > after:
            os.kill(os.getpid(), signal.SIGKILL)
writing._reached = stop
if __name__ == "__main__":
    from truecal.study import Study
    Study.read(study).run(store, workers=1)
"""


def make_study(folder: Path, models: int) -> Path:
    """A study of many small files, so that most of the work is writing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    for i in range(models):
        p = rng.random(60)
        np.savez(folder / f"m{i}.npz", probs=np.column_stack([1 - p, p]), labels=labels)
    study = folder / "study.yaml"
    study.write_text(
        'name: killed\npredictions:\n  - {files: "{model}.npz", dataset: d}\n'
        "columns: {label: labels, probs: probs}\nmetrics: [ece-width-15-l1, error]\n"
    )
    return study


def run(kills: int, seed: int, models: int = 6, inside: float = 0.6) -> Counter[str]:
    """Kill that many runs, a share of them `inside` a write; how many at which stage. Raises where anything is not whole."""
    import truecal as tc

    rng, counts = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study, script = make_study(folder, models), folder / "run.py"
        script.write_text(_RUN)
        whole = tc.study.Study.read(study).run(folder / "whole", workers=1)
        store = folder / "killed"
        rounds = 0
        while sum(counts.values()) < kills:
            stage = rng.choice(STAGES) if rng.random() < inside else ""
            ended = _one(script, study, store, stage, rng, 2 * models)
            if ended == -signal.SIGKILL:
                counts[stage or "random moment"] += 1
            if (store / "study.json").exists():
                frame = tc.study.Store(store).frame()
                assert frame["job"].n_unique() == len(tc.study.Store(store).done()) or not len(frame)
            if ended == 0:
                rounds += 1
                found = tc.study.Store(store)
                assert found.frame().equals(whole.frame()), "the rerun differs"
                assert found.diagrams().equals(whole.diagrams()), "the diagrams differ"
                store = folder / f"killed{rounds}"
        assert _one(script, study, store, "", rng, 1, wait=True) == 0
        last = tc.study.Store(store)
        assert last.frame().equals(whole.frame())
        last.collect()
        assert not list(store.rglob("*.part"))
    return counts


def _one(
    script: Path, study: Path, store: Path, stage: str, rng: random.Random, writes: int, *, wait: bool = False
) -> int:
    command = [sys.executable, str(script), str(study), str(store), stage or "-", str(rng.randrange(writes))]
    process = subprocess.Popen(command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    if not stage and not wait:
        time.sleep(0.3 + rng.random() * 1.5)
        process.send_signal(signal.SIGKILL)
    return process.wait()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts = run(asked.kills, asked.seed)
    inside = sum(counts[stage] for stage in STAGES)
    print(f"{sum(counts.values())} kills, {inside} inside a write: {dict(counts)}; store intact, reruns identical")
    return 0


if __name__ == "__main__":
    sys.exit(main())
