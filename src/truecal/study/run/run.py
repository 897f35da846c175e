"""Running a study: jobs that are not done yet, in several processes, each with one model in memory.

Workers judge, and their parent writes, in a thread of its own so that no worker waits for the disk. Workers are started with
`spawn`, because a fork of a process with threads may hang. They ignore Ctrl-C (the parent decides) and end with their parent, so
that a killed run leaves no process behind. Files that recalibrators learn from come first: what they learn is kept for the others.
"""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.lab.trials.batches import one_thread_each
from truecal.study.run.claims import Claims
from truecal.study.run.job import Evaluated, Job, evaluate, plan, wanted_of
from truecal.study.spec.spec import Spec
from truecal.study.store import Store

Progress = Callable[[int, int], object]
Answer = Evaluated | str  # the rows of the store, or why there are none
_POLL = 0.5  # seconds between looks at jobs that other runs work on


def run_study(
    spec: Spec,
    store: Store,
    *,
    workers: int | None = None,
    skip_broken: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Evaluate what the store lacks. A file that cannot be judged does not stop the others; all such are listed at the end."""
    jobs = plan(spec)
    wanted = wanted_of(spec.options)
    store.begin(_meta(spec, jobs, wanted))
    missing = store.missing([job.name for job in jobs], wanted)
    todo = [replace(job, wanted=tuple(missing[job.name])) for job in jobs if job.name in missing]
    report = progress or (lambda done, total: None)
    report(len(jobs) - len(todo), len(jobs))
    asked = workers if workers is not None else spec.workers
    count = min(asked if asked is not None else _cores(), len(todo))
    failed = []
    with Claims(store.folder / "claims").kept() as claims:
        for number, refusal in enumerate(_work(todo, store, claims, count), start=len(jobs) - len(todo) + 1):
            if refusal is not None:
                failed.append(refusal)
            report(number, len(jobs))
    if failed and skip_broken:
        skipped = dict(refusal.split(": ", 1) for refusal in failed)
        store.begin(_meta(spec, jobs, wanted) | {"broken": {**dict(spec.broken), **skipped}})
    elif failed:
        raise InputError(
            "\n".join(
                [f"{len(failed)} of {len(jobs)} prediction files could not be judged (all others are kept)", *failed]
            )
        )
    return store


def _meta(spec: Spec, jobs: Sequence[Job], wanted: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What study.json says."""
    covariates = {job.name: list(spec.covariates_of(job.source).values()) for job in jobs} if spec.covariates else {}
    return {
        "name": spec.name,
        "study": spec.written,
        "jobs": [job.name for job in jobs],
        "wanted": list(wanted),
        "files": {job.name: str(job.source.path) for job in jobs},
        "fits": sorted({fit for job in jobs for _, fit in job.fits}),
        "covariates": {"names": list(spec.covariates), "of": covariates},
        "broken": dict(spec.broken),
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _work(todo: Sequence[Job], store: Store, claims: Claims, workers: int) -> Iterator[str | None]:
    """Do every job, or see another run do it; yields, as they are kept, None, or why a file was refused."""
    left = {job.name: job for job in sorted(todo, key=lambda job: job.teacher != job.source)}
    while left:
        before = len(left)
        for job, refusal in _once(list(left.values()), store, claims, workers):
            del left[job.name]
            yield refusal
        for job in [job for job in left.values() if store.has(job.name, job.wanted)]:  # other runs did these
            del left[job.name]
            yield None
        if len(left) == before:
            time.sleep(_POLL)


def _once(jobs: Sequence[Job], store: Store, claims: Claims, workers: int) -> Iterator[tuple[Job, str | None]]:
    """Do the jobs that no other run is at work on."""
    fits = store.folder / "fits"
    answers = _alone(_free(jobs, store, claims), fits)
    if workers > 1:
        answers = _together(_free(jobs, store, claims), fits, workers)
    writing: deque[tuple[Job, Future[None]]] = deque()

    def written() -> tuple[Job, str | None]:
        job, future = writing.popleft()
        future.result()
        claims.release(job.name)
        return job, None

    with ThreadPoolExecutor(1) as writer:
        for job, answer in answers:
            if isinstance(answer, str):
                claims.release(job.name)
                yield job, f"{job.source.path}: {answer}"
                continue
            writing.append((job, writer.submit(store.add, job.name, answer.results, answer.diagrams, answer.draws)))
            if len(writing) > 1:
                yield written()
        while writing:
            yield written()


def _free(jobs: Sequence[Job], store: Store, claims: Claims) -> Iterator[Job]:
    """Jobs that no other run has done or is at work on, claimed one by one as they are asked for."""
    for job in jobs:
        if store.has(job.name, job.wanted) or not claims.take(job.name):
            continue
        if store.has(job.name, job.wanted):  # done, and given up, between the two looks
            claims.release(job.name)
            continue
        yield job


def _alone(todo: Iterable[Job], fits: Path) -> Iterator[tuple[Job, Answer]]:
    _keep_memory()
    for job in todo:
        yield job, _judge(job, fits)


def _together(todo: Iterable[Job], fits: Path, workers: int) -> Iterator[tuple[Job, Answer]]:
    waiting: dict[Future[Answer], Job] = {}
    upcoming = iter(todo)
    with (
        one_thread_each(),
        ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=prepare_worker) as pool,
    ):
        try:
            while True:
                # A short queue: little to lose when interrupted, and few claims.
                for job in islice(upcoming, workers + 1 - len(waiting)):
                    waiting[pool.submit(_judge, job, fits)] = job
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process died: out of memory (use fewer workers), or a script without "
                "if __name__ == '__main__': around its calls; what was finished is kept"
            ) from error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _judge(job: Job, fits: Path) -> Answer:
    try:
        return evaluate(job, fits)
    except InputError as error:
        return str(error)


def prepare_worker() -> None:
    """What a worker process does first: leave Ctrl-C to its parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _keep_memory()


def _keep_memory() -> None:
    """Let the allocator keep what one job frees for the next: page faults would cost a quarter of the time.

    glibc gives back what lies above twice the largest block it has seen freed, up to 32 MiB; so show it one, never touched.
    """
    np.empty(31 << 20, np.uint8)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
