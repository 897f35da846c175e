"""The store: its schema, readers beside writers, and other people's folders."""

import json
import threading

import polars as pl
import pytest

import truecal as tc
from truecal.study import Store
from truecal.study.store import DIAGRAMS, RESULTS


def filled(folder, jobs=("a", "b"), done=("a",), rows=3):
    store = Store(folder)
    store.begin({"name": "s", "study": {}, "jobs": list(jobs)})
    for job in done:
        store.add(job, [{"job": job, "metric": f"m{i}", "value": float(i)} for i in range(rows)], [])
    return store


def test_columns_are_as_documented(tmp_path):
    store = filled(tmp_path)
    for frame, columns in ((store.frame(), RESULTS), (store.diagrams(), DIAGRAMS)):
        assert {name: str(kind) for name, kind in frame.schema.items()} == columns
    empty = filled(tmp_path / "empty", done=())
    assert empty.frame().schema == store.frame().schema
    assert len(empty.frame()) == 0


def test_only_listed_jobs_are_read(tmp_path):
    store = filled(tmp_path, done=("a", "b"))
    filled(tmp_path, jobs=("b", "c"), done=())
    assert store.done() == ["b"]
    assert store.jobs() == ["b", "c"]
    assert set(store.frame()["job"]) == {"b"}


def test_what_a_killed_run_left_is_passed_over(tmp_path):
    filled(tmp_path)
    left = tmp_path / "results" / ".b.parquet.x1.part"
    left.write_bytes(b"PAR1 half")
    store = filled(tmp_path, done=())
    assert store.done() == ["a"]
    assert store.frame()["job"].unique().to_list() == ["a"]


def test_readers_see_whole_rows_while_parts_arrive(tmp_path):
    jobs = [f"j{i}" for i in range(40)]
    store = filled(tmp_path, jobs=jobs, done=(), rows=50)
    stop, results, wrong = threading.Event(), set(), []

    def read():
        while not stop.is_set():
            counts = store.frame()["job"].value_counts()["count"].to_list()
            results.add(len(counts))
            wrong.extend(count for count in counts if count != 50)

    reader = threading.Thread(target=read)
    reader.start()
    for job in jobs:
        store.add(job, [{"job": job, "value": 1.0}] * 50, [{"job": job}])
    stop.set()
    reader.join()
    assert not wrong
    assert len(results) > 1
    assert len(store.frame()) == 2000


@pytest.mark.parametrize(
    ("content", "words"),
    {
        "nothing": (None, "is no store: it has no study.json"),
        "half": ('{"jobs": [', "damaged"),
        "other": ("[]", "not that of a study"),
        "older": (json.dumps({"version": 1, "jobs": []}), "version 1, .*run the study again into another folder"),
        "newer": (json.dumps({"version": 99, "jobs": []}), "version 99, this release reads 5; update truecal"),
    }.values(),
)
def test_folders_that_are_no_store(tmp_path, content, words):
    if content is not None:
        (tmp_path / "study.json").write_text(content)
    with pytest.raises(tc.errors.FileError, match=words):
        Store(tmp_path).frame()


def test_a_damaged_part_is_told(tmp_path):
    store = filled(tmp_path)
    part = next((tmp_path / "results").iterdir())
    part.write_bytes(b"PAR1")
    with pytest.raises(tc.errors.FileError, match=rf"{part.name} is damaged; delete it and run the study again"):
        store.frame()


def test_another_study_does_not_take_over(tmp_path):
    filled(tmp_path)
    store = Store(tmp_path)
    with pytest.raises(tc.InputError, match="holds the study 's', not 'other'"):
        store.begin({"name": "other", "study": {}, "jobs": []})


def test_stars_in_the_folder_name_are_letters(tmp_path):
    filled(tmp_path / "x")
    odd = filled(tmp_path / "[x]*", done=("b",))
    assert odd.frame()["job"].unique().to_list() == ["b"]


def test_special_numbers_survive(tmp_path):
    store = Store(tmp_path)
    store.begin({"name": "s", "study": {}, "jobs": ["a"]})
    store.add("a", [{"job": "a", "norm": float("inf"), "value": float("nan"), "model": "é\n'\"<b>"}], [])
    row = store.frame().row(0, named=True)
    assert row["norm"] == float("inf")
    assert row["value"] != row["value"]
    assert row["model"] == "é\n'\"<b>"
    assert isinstance(store.frame(), pl.DataFrame)


@pytest.mark.parametrize("kind", ["results", "diagrams", "draws"])
def test_a_missing_part_is_computed_again(tmp_path, kind):
    store = filled(tmp_path)
    (job,) = store.done()[:1]
    next(path for path in (tmp_path / kind).iterdir() if path.name.startswith(job)).unlink()
    assert job not in store.done()
    assert not store.has(job)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", None),
        ("jobs", [1, 2]),
        ("covariates", {"names": ["a"], "of": {"a": []}}),
        ("clean", []),
        ("fits", {}),
    ],
)
def test_a_damaged_study_file_is_told(tmp_path, name, value):
    filled(tmp_path)
    path = tmp_path / "study.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(tc.errors.FileError, match=f"study.json is damaged: its '{name}'"):
        tc.study.Store(tmp_path).frame()
