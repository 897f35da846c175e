"""The laboratory: whole benchmarks of the papers against the time numpy needs to draw and sort the same data.

The floor draws the scores (with numpy's own Beta) and outcomes of every dataset and sorts the scores, on as many processes, in
the same run. Ours draws and sorts too, and then puts all estimators to the data.
"""

import os
import resource
from collections.abc import Callable

import numpy as np

from benchmarks.speed.harness import Row, peak_extra_bytes, seconds_together
from papers.peng import benchmark as peng
from papers.peng.benchmark import peng_estimators
from papers.roelofs.bias import RANK_SERIES, roelofs_estimators
from truecal.lab import PAPER_WORLDS, Beta, Run, World, trials
from truecal.lab.trials import Estimators, batch_sizes
from truecal.parallel import Pool, ignore_progress

WORKERS = max(1, os.cpu_count() or 1)
_LIMIT_GIB = 2.0


def rows() -> list[Row]:
    """The benchmark of Peng et al. in full, and Figure 6 of Roelofs et al. with a tenth of its datasets."""
    six = {**roelofs_estimators(), "RankSeries": RANK_SERIES}
    return [
        _against_floor("Peng: 10 worlds x 7 sizes x 250 datasets x 6 estimators", peng_estimators, m=250),
        _against_floor("Roelofs Figure 6: 10 worlds x 7 sizes x 100 datasets x 7 estimators", six, m=100),
        _memory(m=40),
    ]


def _against_floor(what: str, estimators: Estimators | Callable[[str], Estimators], *, m: int) -> Row:
    def ours() -> object:
        return trials(estimators, PAPER_WORLDS, n=peng.SIZES, m=m, run=Run(WORKERS, progress=ignore_progress))

    duration, floor = seconds_together(ours, lambda: _draw_and_sort_all(m), repeat=2)
    return Row(what, duration, duration / floor, f"drawing and sorting it with numpy on {WORKERS} processes", bound=4.0)


def _draw_and_sort_all(m: int) -> None:
    jobs = [
        (world, n, size, number)
        for world in PAPER_WORLDS.values()
        for n in peng.SIZES
        for number, size in enumerate(batch_sizes(n, m))
    ]
    jobs.sort(key=lambda job: -job[1] * job[2])
    with Pool(WORKERS) as pool:
        list(pool.each(_draw_and_sort, jobs))


def _draw_and_sort(job: tuple[World, int, int, int]) -> float:
    """With numpy's own sampler of the Beta, not ours."""
    world, n, size, seed = job
    rng = np.random.default_rng(seed)
    assert isinstance(world.scores, Beta)
    rest = rng.beta(world.scores.beta, world.scores.alpha, (size, n))
    outcomes = rng.random((size, n)) < world.curve(1.0 - rest)  # type: ignore[operator]
    return float(np.sort(1.0 - rest, axis=1)[0, 0]) + float(outcomes[0, 0])


def _memory(*, m: int) -> Row:
    """Peak memory of this process and all workers together, in GiB, as the ratio to one GiB."""

    def work() -> object:
        return trials(peng_estimators, PAPER_WORLDS, n=peng.SIZES, m=m, run=Run(WORKERS, progress=ignore_progress))

    (duration,) = seconds_together(work, repeat=1)
    parent = peak_extra_bytes(work)
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # the largest of all workers so far
    gib = (parent + WORKERS * child) / 2**30
    return Row(f"Peng, {m} datasets: memory of all {WORKERS + 1} processes", duration, gib, "1 GiB", bound=_LIMIT_GIB)
