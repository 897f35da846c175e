"""Running a study: jobs that are not done yet, in several processes, each with one model in memory.

Workers judge, and their parent writes, in a thread of its own so that no worker waits for the disk. Files that recalibrators learn
from come first: what they learn is kept for the others.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from truecal import parallel
from truecal.errors import InputError
from truecal.study.run.claims import Claims
from truecal.study.run.job import Evaluated, Job, evaluate, plan, wanted_of
from truecal.study.spec.spec import Spec
from truecal.study.store import Store

Answer = Evaluated | str | None  # the rows of the store, why there are none, or None: another run is at work on it
_POLL = 0.5  # seconds between looks at jobs that other runs work on


def run_study(
    spec: Spec,
    store: Store,
    *,
    workers: int | None = None,
    skip_broken: bool = False,
    progress: parallel.Progress = parallel.unheard,
) -> Store:
    """Evaluate what the store lacks. A file that cannot be judged does not stop the others; all such are listed at the end."""
    jobs = plan(spec)
    wanted = wanted_of(spec.options)
    store.begin(_meta(spec, jobs, wanted))
    missing = store.missing([job.name for job in jobs], wanted)
    todo = [replace(job, wanted=tuple(missing[job.name])) for job in jobs if job.name in missing]
    progress(parallel.Step(spec.name, len(jobs) - len(todo), len(jobs)))
    asked = workers if workers is not None else spec.workers
    count = min(asked if asked is not None else parallel.cores(), max(len(todo), 1))
    failed = []
    for number, refusal in enumerate(_work(todo, store, count), start=len(jobs) - len(todo) + 1):
        if refusal is not None:
            failed.append(refusal)
        progress(parallel.Step(spec.name, number, len(jobs)))
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
    names = dict.fromkeys(job.source.dataset for job in jobs)
    return {
        "name": spec.name,
        "study": spec.written,
        "jobs": [job.name for job in jobs],
        "wanted": list(wanted),
        "files": {job.name: str(job.source.path) for job in jobs},
        "columns": asdict(spec.options.columns),
        "protocol": {job.name: _protocol(job) for job in jobs},
        "fits": sorted({fit for job in jobs for _, fit in job.fits}),
        "clean": {name: clean for name in names if (clean := spec.options.clean_of(name)) != name},
        "covariates": {"names": list(spec.covariates), "of": covariates},
        "broken": dict(spec.broken),
    }


def _protocol(job: Job) -> dict[str, Any]:
    """How the rows of a job were chosen and recalibrated, for whoever goes back to its predictions."""
    options = job.options
    shares = bool(options.recalibrators) and options.shares_rows(job.source.dataset)
    return {
        "fraction": options.split.fraction if shares else None,
        "split_seed": options.split.seed,
        "subset": job.subset,
        "fits": dict(job.fits),
    }


def _work(todo: Sequence[Job], store: Store, workers: int) -> Iterator[str | None]:
    """Do every job, or see another run do it; yields, as they are kept, None, or why a file was refused."""
    left = {job.name: job for job in sorted(todo, key=lambda job: job.teacher != job.source)}
    claims = Claims(store.folder / "claims")
    with parallel.Pool(workers) as pool:
        while left:
            before = len(left)
            for job, refusal in _once(list(left.values()), store, claims, pool):
                del left[job.name]
                yield refusal
            for job in [job for job in left.values() if store.has(job.name, job.wanted)]:  # other runs did these
                del left[job.name]
                yield None
            if len(left) == before:
                time.sleep(_POLL)


def _once(jobs: Sequence[Job], store: Store, claims: Claims, pool: parallel.Pool) -> Iterator[tuple[Job, str | None]]:
    """Do the jobs that no other run is at work on; their claims are given up when their parts are written."""
    writing: deque[tuple[Job, Future[None]]] = deque()

    def written() -> tuple[Job, str | None]:
        job, future = writing.popleft()
        future.result()
        claims.release(job.name)
        return job, None

    tasks = [_Task(job, store.folder, claims.process) for job in jobs]
    with ThreadPoolExecutor(1) as writer:
        for place, answer in pool.each(_judge, tasks):
            job = jobs[place]
            if isinstance(answer, str):
                claims.release(job.name)
                yield job, f"{job.source.path}: {answer}"
            elif answer is not None:
                writing.append((job, writer.submit(store.add, job.name, answer.results, answer.diagrams, answer.draws)))
            if len(writing) > 1:
                yield written()
        while writing:
            yield written()


@dataclass(frozen=True)
class _Task:
    """A job, the store it is for, and the run that claims it."""

    job: Job
    folder: Path
    process: int


def _judge(task: _Task) -> Answer:
    """Claim a job and do it, in a worker process."""
    job, store = task.job, Store(task.folder)
    claims = Claims(task.folder / "claims", task.process)
    if store.has(job.name, job.wanted) or not claims.take(job.name):
        return None
    if store.has(job.name, job.wanted):  # done, and given up, between the two looks
        claims.release(job.name)
        return None
    try:
        return evaluate(job, task.folder / "fits")
    except InputError as error:
        return str(error)
    except BaseException:
        claims.release(job.name)
        raise
