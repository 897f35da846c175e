"""A pool of worker processes and progress reports for long computations: simulations, studies, trainings.

`Pool.each` runs jobs in this process or in workers and yields each result with its position as it is ready; an interrupted or
failed run leaves no process behind. Processes are started with spawn, which works on every system; a script with more than one
worker needs `if __name__ == "__main__":`.

Progress is reported to a function of a `Step`; `progress_bar` is one that draws on a terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from pickle import PicklingError
from types import TracebackType
from typing import Self, TypeVar

import numpy as np

from truecal import options
from truecal.errors import InputError

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """Describe how much of a long computation is done.

    Parameters
    ----------
    words : str
        Name of the work, for example "simulating".
    done : int, default 0
        Units of work finished.
    total : int, default 0
        All units of work; 0 where their number is unknown.

    Examples
    --------
    >>> import truecal as tc
    >>> step = tc.lab.Step("simulating", done=3, total=4)
    >>> step.done / step.total
    0.75
    """

    words: str
    done: int = 0
    total: int = 0


Progress = Callable[[Step], object]


def ignore_progress(step: Step) -> None:
    """Ignore progress: the default callback.

    >>> ignore_progress(Step("simulating", 1, 4))
    """


def cores() -> int:
    """Count the processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Run jobs in worker processes, which are started on first use and end with `close` or the `with` block.

    >>> with Pool(workers=1) as pool:
    ...     list(pool.each(len, ["a", "bb"]))
    [(0, 1), (1, 2)]
    """

    def __init__(self, workers: int = 1, *, prepare: Callable[[], object] | None = None) -> None:
        """Set the number of workers; `prepare`, a picklable function, is called first in every worker."""
        options.whole(workers, "workers")
        self.workers = int(workers)
        self._prepare = prepare
        self._executor: ProcessPoolExecutor | None = None

    def each(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[int, Result]]:
        """Yield (position of the job, its result) in the order in which jobs finish.

        One job, or one worker, runs in this process. With several workers, function, jobs and results must be picklable; twice as
        many jobs as workers are submitted ahead, so that little work is lost when the caller stops. A worker that dies raises
        InputError.
        """
        if self.workers == 1 or len(jobs) < 2:
            for position, job in enumerate(jobs):
                yield position, function(job)
            return
        upcoming = iter(enumerate(jobs))
        pending: dict[Future[Result], int] = {}
        try:
            executor = self._get_executor()
            while True:
                with one_thread_each():  # processes are started when jobs are submitted
                    for position, job in islice(upcoming, 2 * self.workers - len(pending)):
                        # a job that fails to be serialised in the pool's own thread can block its shutdown for ever
                        _refuse_unpicklable((function, job))
                        pending[executor.submit(function, job)] = position
                if not pending:
                    return
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(future), future.result()
        except BrokenProcessPool as error:
            self.close()
            raise InputError(
                "a worker process died: out of memory (use fewer workers), or a script without "
                'if __name__ == "__main__": around its calls; finished results are saved'
            ) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the worker processes, waiting for running jobs; jobs that have not begun are dropped."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None

    def _get_executor(self) -> ProcessPoolExecutor:
        """Return the pool of `workers` processes, started on first use."""
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self.workers, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(self._prepare,)
            )
        return self._executor

    def __enter__(self) -> Self:
        """Return the pool itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool; exceptions of the block are raised again."""
        self.close()


def _refuse_unpicklable(job: object) -> None:
    """Raise InputError for a job that cannot be pickled, to be sent to another process.

    >>> _refuse_unpicklable((len, [1, 2]))
    """
    try:
        ForkingPickler.dumps(job)
    except (PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"with workers > 1 functions and values must be picklable ({error}); use workers=1") from error


def _start_worker(prepare: Callable[[], object] | None) -> None:
    """Initialise a worker process: ignore Ctrl-C, end with the parent, keep freed memory, call `prepare`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_memory()
    if prepare is not None:
        prepare()


def _end_with_parent() -> None:
    """Wait for the parent process to end, then exit with 1; runs in a thread of a worker."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def keep_memory() -> None:
    """Let the allocator keep freed memory for the next job: page faults would cost a quarter of the time.

    glibc returns memory above twice the largest block freed so far, up to 32 MiB; so one such block is allocated and freed.
    """
    np.empty(31 << 20, np.uint8)


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Set OMP_NUM_THREADS and its like to 1 for processes that are started inside; restore them afterwards.

    >>> with one_thread_each():
    ...     os.environ["OMP_NUM_THREADS"]
    '1'
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def progress_bar(words: str, *, enabled: bool = True) -> Iterator[Progress]:
    """Draw progress on stderr, if that is a terminal and rich is installed; yield the callback, which takes a Step.

    Else, and with enabled=False, the callback ignores progress. `words` name the work until a step does.
    """
    if not (enabled and sys.stderr.isatty()):
        yield ignore_progress
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
    except ImportError:
        yield ignore_progress
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(words, total=None)
        yield lambda step: bars.update(
            task, description=step.words or words, completed=step.done, total=step.total or None
        )
