"""The pool: results with their place, errors that reach the caller, processes that are reused and do not stay behind."""

import multiprocessing
import os
from functools import partial

import pytest

from truecal.errors import InputError
from truecal.parallel import Pool, Step, cores, ignore_progress, one_thread_each, progress_bar

SHARED: list[int] = []


def square(number: int) -> int:
    return number * number


def fail_at(bad: int, number: int) -> int:
    if number == bad:
        raise ValueError(f"no {number}")
    return number


def who(number: int) -> int:
    return os.getpid()


def die(number: int) -> int:
    os._exit(3)


def threads(number: int) -> str | None:
    return os.environ.get("OPENBLAS_NUM_THREADS")


def remember(value: int) -> None:
    SHARED.append(value)


def remembered(number: int) -> int:
    return SHARED[0] + number


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_gives_its_result_with_its_place(workers):
    with Pool(workers) as pool:
        assert dict(pool.each(square, list(range(20)))) == {i: i * i for i in range(20)}
        assert list(pool.each(square, [])) == []
        assert list(pool.each(square, [3])) == [(0, 9)]


def test_processes_are_reused_and_end_with_the_pool():
    before = set(multiprocessing.active_children())  # of tests that ran earlier in this process
    with Pool(2) as pool:
        first, second = ({pid for _, pid in pool.each(who, list(range(8)))} for _ in range(2))
        assert os.getpid() not in first
        assert len(first | second) <= 2
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_job_reaches_the_caller_and_the_pool_goes_on(workers):
    with Pool(workers) as pool:
        with pytest.raises(ValueError, match="no 5"):
            list(pool.each(partial(fail_at, 5), list(range(9))))
        assert dict(pool.each(square, [1, 2, 3])) == {0: 1, 1: 4, 2: 9}


def test_a_worker_that_dies_is_named_with_its_likely_causes():
    with Pool(2) as pool, pytest.raises(InputError, match="a worker process died: out of memory"):
        list(pool.each(die, [1, 2]))


def test_workers_are_prepared_once_and_use_one_thread(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    with Pool(2, prepare=partial(remember, 100)) as pool:
        assert sorted(result for _, result in pool.each(remembered, [1, 2, 3])) == [101, 102, 103]
        assert {result for _, result in pool.each(threads, [1, 2, 3])} == {"1"}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"


def test_one_thread_each_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with one_thread_each():
        assert os.environ["MKL_NUM_THREADS"] == "1"
    assert "MKL_NUM_THREADS" not in os.environ


def test_a_pool_needs_a_worker_and_a_machine_has_one():
    with pytest.raises(InputError, match="workers must be a whole number of at least 1"):
        Pool(0)
    assert cores() >= 1


def test_progress_is_silent_where_nobody_looks(capsys):
    with progress_bar("working") as progress:
        assert progress(Step("working", 1, 2)) is None
    assert progress is ignore_progress
    assert capsys.readouterr().err == ""


def test_progress_is_drawn_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_bar("working") as progress:
        progress(Step("half way", 1, 2))
        progress(Step("", 2, 0))
    assert progress is not ignore_progress
    capsys.readouterr()
