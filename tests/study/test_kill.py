"""A run may be killed at any moment: resumed, it gives the store of a run that was not."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import truecal as tc
from tests.study.studies import write_files, write_study

RUN = "import sys; from truecal.study import Study; Study.read(sys.argv[1]).run(sys.argv[2], workers=int(sys.argv[3]))"
MODELS = 80
MORE = "metrics: [ece-width-15-l1, rank-series-l2, error]\n"  # jobs so short that most of them is writing


def start(processes, study, store, workers):
    code = f"if __name__ == '__main__':\n    {RUN}\n"
    script = Path(study).with_name("go.py")
    script.write_text(code)
    command = (sys.executable, script, study, store, workers)
    return processes.start(*command, stderr=subprocess.PIPE, env={"OPENBLAS_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    write_files(folder, models=[f"m{i}" for i in range(MODELS)], rows=100)
    return write_study(folder, MORE)


@pytest.fixture(scope="module")
def whole(study):
    return tc.study.Study.read(study).run(study.with_name("whole"), workers=1)


@pytest.mark.full
def test_a_killed_run_is_resumed(processes, study, whole):
    store = study.with_name("once")
    process = start(processes, study, store, 1)
    _wait_for_a_part(process, store)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    analysis = tc.study.Study.read(study).run(store, workers=1)
    assert analysis.frame().equals(whole.frame())
    assert analysis.diagrams().equals(whole.diagrams())


@pytest.mark.full
def test_killed_at_random_moments_and_resumed(processes, study, whole):
    """Twenty kills, two of them of a run with two processes; jobs only ever get more, and in the end all is there once."""
    rng = random.Random(4)
    store = study.with_name("killed")
    done, kills, stops = 0, 0, []
    while kills < 20:
        workers = 2 if kills in (7, 14) else 1
        process = start(processes, study, store, workers)
        before = done
        expected = before + rng.choice((0, 0, 1, 2, 4))
        while process.poll() is None and _parts(store) < expected:
            time.sleep(0.001)
        # Either at any moment from the start of the process on, or within the few milliseconds of one job.
        time.sleep(rng.random() * (0.15 if expected == before else 0.005))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        if (store / "study.json").exists():
            done = len(tc.study.Store(store).done())
            frame = tc.study.Store(store).frame()
            assert frame["job"].n_unique() == done >= before
        stops.append(done)
    assert sum(number < MODELS for number in stops) >= 15, stops  # the kills fell into the work, not after it ...
    assert len(set(stops)) >= 5, stops  # ... and not before it
    process = start(processes, study, store, 1)
    process.communicate(timeout=60)
    assert process.returncode == 0
    analysis = tc.study.Store(store)
    assert analysis.frame().equals(whole.frame())
    assert analysis.diagrams().equals(whole.diagrams())
    assert {path.stem for path in (store / "results").glob("*.parquet")} == set(analysis.jobs())


def _parts(store):
    folder = store / "results"
    return len([p for p in folder.iterdir() if p.suffix == ".parquet"]) if folder.is_dir() else 0


def _wait_for_a_part(process, store):
    deadline = time.monotonic() + 60
    while not _parts(store):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.full
def test_workers_end_with_a_killed_parent(processes, study):
    store = study.with_name("orphans")
    process = start(processes, study, store, 2)
    _wait_for_a_part(process, store)
    children = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(children) >= 2
    deadline = time.monotonic() + 10
    while any(_alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [child for child in children if _alive(child)]


@pytest.mark.full
def test_runs_share_a_store_and_one_is_killed(processes, study, whole):
    """Three runs at once, two of them with two workers; one is killed, one joins late."""
    store = study.with_name("shared")
    first, second = start(processes, study, store, 2), start(processes, study, store, 1)
    _wait_for_a_part(first, store)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    third = start(processes, study, store, 2)
    for process in (second, third):
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    analysis = tc.study.Store(store)
    assert analysis.frame().equals(whole.frame())
    assert analysis.diagrams().equals(whole.diagrams())
    assert analysis.draws().equals(whole.draws())


def test_an_interrupted_run_keeps_whole_jobs(processes, study):
    store = study.with_name("busy")
    first = start(processes, study, store, 1)
    _wait_for_a_part(first, store)
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    frame = tc.study.Store(store).frame()
    assert 0 < frame["job"].n_unique() <= MODELS
    assert frame.group_by("job").len()["len"].n_unique() == 1
    assert isinstance(frame, pl.DataFrame)


def _children(pid):
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
