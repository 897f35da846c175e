"""How simulations are run: on how many processes, with which cache, and who hears of progress. None of it changes a number."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike

from truecal import options, parallel


@dataclass(frozen=True)
class Run:
    """Worker processes, cache folder and progress of simulations.

    workers > 1 uses processes (a script that asks for them needs the usual `if __name__ == "__main__":`); worlds and
    estimators must then be picklable. `cache` is a folder: what was simulated once is read from it, and an interrupted run goes
    on where it was. `progress` is told every finished batch; without it, a bar is shown on a terminal.

    >>> import truecal as tc
    >>> run = tc.lab.Run(workers=1)
    >>> tc.lab.bias(tc.BinnedECE(norm=2), tc.lab.World(tc.lab.Uniform()), n=100, m=20, run=run).m
    20
    """

    workers: int = 1
    cache: str | PathLike[str] | None = None
    progress: parallel.Progress | None = None
    pool: parallel.Pool | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        options.whole(self.workers, "workers")

    @contextmanager
    def kept(self) -> "Iterator[Run]":
        """The same run with its processes kept for all that is simulated within."""
        if self.pool is not None:
            yield self
            return
        with parallel.Pool(self.workers) as pool:
            yield replace(self, pool=pool)

    @property
    def processes(self) -> parallel.Pool:
        """The pool of a run that is `kept`."""
        assert self.pool is not None, "processes exist only within run.kept()"
        return self.pool

    def reporting(self, words: str) -> AbstractContextManager[parallel.Progress]:
        """The progress to tell: the one given, or a bar."""
        return parallel.progress_bar(words) if self.progress is None else nullcontext(self.progress)
