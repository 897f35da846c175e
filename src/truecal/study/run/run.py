"""Running a study: jobs that are not done yet, in several processes, each with one model in memory.

Workers judge, and the process that holds the lock writes, in a thread of its own so that no worker waits for the disk. Workers are
started with `spawn`, because a fork of a process with threads may hang. They ignore Ctrl-C (the parent decides) and end with
their parent, so that a killed run leaves no process behind.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context, parent_process

import numpy as np

from truecal.errors import InputError
from truecal.parallel import one_thread_each
from truecal.study.run.job import Job, Records, evaluate, plan
from truecal.study.spec.spec import Spec
from truecal.study.store import Store

Progress = Callable[[int, int], object]
Answer = tuple[Records, Records] | str  # results and diagrams, or why there are none


def run_study(
    spec: Spec,
    store: Store,
    *,
    workers: int | None = None,
    wait: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Evaluate what the store lacks. A file that cannot be judged does not stop the others; all such are listed at the end."""
    with store.locked(wait=wait):
        jobs = plan(spec)
        files = {job.name: str(job.source.path) for job in jobs}
        store.begin({"name": spec.name, "study": spec.written, "jobs": [job.name for job in jobs], "files": files})
        done = set(store.done())
        todo = [job for job in jobs if job.name not in done]
        report = progress or (lambda done, total: None)
        report(len(done), len(jobs))
        failed = []
        asked = workers if workers is not None else spec.workers
        count = min(asked if asked is not None else _cores(), len(todo))
        for number, refusal in enumerate(_work(todo, store, count), start=1):
            if refusal is not None:
                failed.append(refusal)
            report(len(done) + number, len(jobs))
    if failed:
        raise InputError(
            "\n".join(
                [f"{len(failed)} of {len(jobs)} prediction files could not be judged (all others are kept)", *failed]
            )
        )
    return store


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _work(todo: Sequence[Job], store: Store, workers: int) -> Iterator[str | None]:
    """Do every job; yields, as they are kept, None, or why a file was refused."""
    answers = _alone(todo) if workers <= 1 else _together(todo, workers)
    writing: deque[Future[None]] = deque()
    with ThreadPoolExecutor(1) as writer:
        for job, answer in answers:
            if isinstance(answer, str):
                yield f"{job.source.path}: {answer}"
                continue
            writing.append(writer.submit(store.add, job.name, *answer))
            if len(writing) > 1:
                yield writing.popleft().result()
        while writing:
            yield writing.popleft().result()


def _alone(todo: Sequence[Job]) -> Iterator[tuple[Job, Answer]]:
    _keep_memory()
    for job in todo:
        yield job, _judge(job)


def _together(todo: Sequence[Job], workers: int) -> Iterator[tuple[Job, Answer]]:
    waiting: dict[Future[Answer], Job] = {}
    upcoming = iter(todo)
    with (
        one_thread_each(),
        ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=prepare_worker) as pool,
    ):
        try:
            while True:
                for job in islice(
                    upcoming, 2 * workers - len(waiting)
                ):  # a short queue: little to lose when interrupted
                    waiting[pool.submit(_judge, job)] = job
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


def _judge(job: Job) -> Answer:
    try:
        return evaluate(job)
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
