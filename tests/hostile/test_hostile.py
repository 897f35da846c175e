"""A quick slice of the hostile runs; `make hostile` goes on for as long as it is given."""

import random
import shutil

import pytest

from tools.hostile import damage, judge, processes, scans
from tools.hostile.__main__ import run

TABLE = scans.draw(39, 200)
QUICK = ("memory", "polars", "duckdb")


@pytest.mark.parametrize("case", TABLE[::8], ids=str)
def test_engines_give_the_naive_answer_or_refuse(case, tmp_path):
    outcome = scans.check(case, tmp_path, QUICK)
    assert not outcome.failed, outcome


@pytest.mark.full
@pytest.mark.parametrize("case", TABLE, ids=str)
def test_all_engines_give_the_naive_answer_or_refuse(case, tmp_path):
    outcome = scans.check(case, tmp_path, scans.ENGINES)
    assert not outcome.failed, outcome


def test_cases_depend_on_the_seed_alone():
    assert scans.draw(39, 200) == TABLE
    assert scans.draw(40, 200) != TABLE
    assert {case.layout for case in TABLE} == set(scans.LAYOUTS)
    assert {case.content for case in TABLE} == set(scans.CONTENTS)
    assert {case.options for case in TABLE} == set(scans.OPTIONS)


def test_damaged_files_are_read_or_refused():
    kinds, failures = run("damage", seed=3, count=84)
    assert not failures
    assert kinds.total() == 84


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes") / "prepared"
    folder.mkdir()
    processes.prepare(folder)
    return folder


@pytest.mark.parametrize("verb", ["sketch save by", "sketch merge", "watch update"])
def test_killed_verbs_leave_the_old_output_or_the_new(verb, prepared, tmp_path):
    rng = random.Random(5)
    for i in range(2):
        outcome = processes.harm_verb(verb, prepared, tmp_path / str(i), rng)
        assert not outcome.failed, outcome


@pytest.mark.full
@pytest.mark.parametrize("verb", processes.VERBS)
def test_thirty_kills_of_every_writing_verb(verb, prepared, tmp_path):
    rng = random.Random(30)
    for i in range(30):
        outcome = processes.harm_verb(verb, prepared, tmp_path / f"scratch{i}", rng)
        assert not outcome.failed, outcome


@pytest.mark.full
def test_races_of_watch_updates_lose_nothing(prepared, tmp_path):
    for i in range(25):
        outcome = processes.race(prepared, tmp_path / f"scratch{i}", random.Random(i))
        assert not outcome.failed, outcome


# ---------------------------------------------------------------------- the judges can fail


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda: 0.5, "answer"),
        (lambda: 1 / 0, "foreign"),
        (lambda: float("nan"), "nan"),
        (lambda: {"a": {"b": float("nan")}}, "nan"),
        (lambda: next(i for i in range(10**12) if i < 0), "slow"),
    ],
)
def test_judge_names_failures(function, kind, monkeypatch):
    monkeypatch.setattr(judge, "SECONDS", 0.2)
    assert judge.run(function).kind == kind


def test_judge_names_refusals_that_are_not_clean():
    assert judge.refusal("x.csv: line 3 has 4 fields").kind == "refused"
    for text in ("", "two\nlines", "\x1b[31mred", "Traceback (most recent call last)", "x" * 1000):
        assert judge.refusal(text).kind == "unclean"


def test_answers_are_compared_with_naive_code_and_refusals_with_each_other():
    case = scans.Case("csv", "plain", "score by site")
    naive = scans.expected(case)
    assert naive is not None
    assert {key.split("/")[1] for key in naive} == {"a", "b", "c"}
    right, wrong = judge.Outcome("answer", "", naive), judge.Outcome("answer", "", {**naive, "/a/error": 0.9})
    refused = judge.Outcome("refused", "polars cannot")
    assert scans.judged(naive, {"memory": right, "polars": right}).kind == "answer"
    assert "/a/error" in scans.judged(naive, {"memory": right, "polars": wrong}).detail
    assert scans.judged(naive, {"memory": right, "polars": refused}).kind == "differs"
    assert scans.judged(None, {"memory": refused, "polars": right}).kind == "differs"
    other = judge.Outcome("refused", "duckdb cannot either")
    assert scans.judged(None, {"memory": other, "polars": refused}).kind == "refused"
    assert scans.judged(None, {"polars": refused, "duckdb": other}).kind == "differs"
    assert scans.expected(scans.Case("csv", "missing score", "score")) is None
    assert scans.expected(scans.Case("csv", "label 2", "top label")) is not None


def test_whole_weights_count_rows_in_naive_answers():
    naive = scans.expected(scans.Case("parquet", "one row", "score, weights"))
    assert naive is not None
    assert naive["//rows"] == scans.table()["w"][0] == 2


def test_sites_of_numbers_are_written_in_narrow_types(tmp_path):
    case = scans.Case("parquet of narrow types", "sites that look like numbers", "score by site")
    assert scans.check(case, tmp_path, QUICK).kind == "answer"


@pytest.mark.parametrize("layout", ["csv with NA", "csv with NaN words"])
def test_missing_sites_written_as_words_are_a_group_of_that_name(layout, tmp_path):
    case = scans.Case(layout, "missing site", "score by site")
    assert scans.check(case, tmp_path, QUICK).kind == "answer"


def test_stores_of_studies_are_compared_by_their_numbers(prepared, tmp_path):
    words, _ = processes.VERBS["study run"]
    processes._new_content("study run", prepared)
    folder = tmp_path / "copy"
    shutil.copytree(prepared, folder)
    assert processes.run_verb(folder, words, "") == 0
    assert processes._same_answers("study run", folder, prepared, complete=True)
    shutil.rmtree(folder / "store")
    assert processes._same_answers("study run", folder, prepared, complete=False)
    assert not processes._same_answers("study run", folder, prepared, complete=True)


def test_full_disks_and_kills_are_made(prepared, tmp_path):
    words, output = processes.VERBS["sketch merge"]
    folder = tmp_path / "copy"
    shutil.copytree(prepared, folder)
    assert processes.run_verb(folder, words, "full disk", 100) == 2
    assert processes.content(folder / output) == {".": b"old"}
    assert processes.run_verb(folder, words, "written") == -9
    assert processes.run_verb(folder, words, "", wait=0.0) == -9


def test_damage_changes_every_kind_of_file(tmp_path):
    rng = random.Random(1)
    for name in damage.good_files():
        content = damage.make_content(name, tmp_path)
        assert damage.damage(content, rng) != content or damage.damage(content, rng) != content
