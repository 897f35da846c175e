"""The coverage map: how often each interval holds the truth, where it does not, and how long it is.

`truecal lab coverage --full` runs the map of docs/coverage.md; `--peers` sets the intervals of other packages beside ours.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache, partial
from itertools import groupby
from math import sqrt
from types import MappingProxyType
from zlib import crc32

import numpy as np

import truecal as tc
from truecal import checks, parallel
from truecal.errors import InputError
from truecal.estimate import Estimator
from truecal.frame import Frame
from truecal.lab.trials.run import Run
from truecal.lab.trials.trials import tidy
from truecal.lab.worlds.curves import GLM, Power
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.score_distributions import Beta, Discrete, Mixture, Uniform
from truecal.lab.worlds.world import World

Ends = tuple[Array, Array]
SIZES = (100, 200, 1000, 5000, 20_000)
_MOST_ROWS = 2_000_000  # of all datasets of one size together, so that memory stays bounded
_VERBAL = Discrete([0.5, 0.7, 0.8, 0.9, 0.95, 1.0], [0.05, 0.1, 0.2, 0.35, 0.2, 0.1])

OTHER_WORLDS: Mapping[str, World] = MappingProxyType(
    {
        "five tied scores": World(Discrete([0.1, 0.3, 0.5, 0.7, 0.9]), Power(1.3)),
        "verbal confidences": World(_VERBAL, lambda c: 0.6 * c + 0.2),
        "rare events": World(Beta(0.5, 20), lambda c: 0.6 * c),
        "underconfident": World(Uniform(), GLM("logit", "logit", 0.0, 2.0)),
        "mixture": World(Mixture((Beta(8, 2), Beta(2, 8)), (0.5, 0.5)), Power(1.3)),
        "kink": World(Uniform(), lambda c: np.where(c < 0.6, c, 0.6 + 0.6 * (c - 0.6))),
        "wave": World(Uniform(), lambda c: c + 0.07 * np.sin(4 * np.pi * c)),
        "small step": World(Uniform(0.1, 0.9), lambda c: c + np.where(c < 0.5, -0.05, 0.05)),
        "spike at one": World(Mixture((Uniform(), Discrete([1.0])), (0.7, 0.3)), lambda c: 0.92 * c),
        "not monotone": World(Uniform(), lambda c: 2 * c * (1 - c) + 0.25),
    }
)


def map_worlds() -> dict[str, dict[str, World]]:
    """Uncalibrated, calibrated and nearly calibrated worlds of the papers, and ten of other shapes."""
    return {
        "papers": dict(PAPER_WORLDS),
        "papers, recalibrated": {name: w.perfectly_recalibrated() for name, w in PAPER_WORLDS.items()},
        "papers, nearly calibrated": {name: w.partly_recalibrated(0.02) for name, w in PAPER_WORLDS.items()},
        "others": dict(OTHER_WORLDS),
    }


@dataclass(frozen=True)
class Candidate:
    """An interval to be judged: its ends for a batch at a level, and the norm of the error it is for."""

    name: str
    norm: float
    ends: Callable[[tc.Profile, float], Ends]
    share: float = 1.0  # of the m datasets: resampling is slow
    most_rows: int | None = None  # no larger datasets than this


def _rank_series(profile: tc.Profile, level: float) -> Ends:
    interval = tc.RankSeries(level=level)(profile).interval
    assert interval is not None
    return np.atleast_1d(interval.low), np.atleast_1d(interval.high)


def _debiased(profile: tc.Profile, level: float) -> Ends:
    interval = tc.uncertainty.debiased_interval(profile, level=level)
    return np.atleast_1d(interval.low), np.atleast_1d(interval.high)


@dataclass(frozen=True)
class _Bootstrapped:
    """truecal's bootstrap interval, corrected for bias."""

    estimator: Estimator

    def __call__(self, profile: tc.Profile, level: float) -> Ends:
        results = [
            tc.bootstrap(self.estimator, profile.take(np.array([i])), resamples=200, level=level, rng=i).interval()
            for i in range(profile.batch)
        ]
        return np.array([float(i.low) for i in results]), np.array([float(i.high) for i in results])


@dataclass(frozen=True)
class _Plain:
    """Quantiles of the estimate over resampled rows, uncorrected: what other packages offer."""

    estimator: Estimator

    def __call__(self, profile: tc.Profile, level: float) -> Ends:
        low, high = np.empty(profile.batch), np.empty(profile.batch)
        for i in range(profile.batch):
            values = tc.bootstrap(self.estimator, profile.take(np.array([i])), resamples=200, rng=i).values
            low[i], high[i] = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return low, high


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("rank series (default)", 2, _rank_series),
    Candidate("debiased, 15 bins", 2, _debiased),
    Candidate("bootstrap, equal mass l2", 2, _Bootstrapped(tc.BinnedECE(scheme="mass", norm=2)), 0.2),
    Candidate("bootstrap, equal width l1", 1, _Bootstrapped(tc.BinnedECE()), 0.2),
    Candidate("bootstrap, sweep l2", 2, _Bootstrapped(tc.SweepECE()), 0.02, most_rows=1000),
    Candidate("plain percentile, equal width l1", 1, _Plain(tc.BinnedECE()), 0.2),
)


@dataclass(frozen=True)
class MapCell:
    """One interval in one world at one n: how often it held the truth, and how it failed."""

    interval: str
    group: str
    world: str
    n: int
    m: int
    truth: float
    covered: float
    too_high: float  # the whole interval lay above the truth
    too_low: float
    length: float

    @property
    def standard_error(self) -> float:
        return sqrt(max(self.covered * (1 - self.covered), 1 / self.m) / self.m)


def coverage_map(
    groups: Mapping[str, Mapping[str, World]] | None = None,
    *,
    n: Sequence[int] = SIZES,
    m: int = 200,
    level: float = 0.9,
    candidates: Iterable[Candidate] = CANDIDATES,
    rng: int = 0,
    run: Run | None = None,
) -> list[MapCell]:
    """Every interval in every world at every n, on the same datasets.

    Each world has random streams of its own, so neither the other worlds nor the number of workers change its numbers.
    Worlds of your own (`groups`) run in this process: their curves may be plain functions. There is no cache.

    >>> from truecal.lab import Uniform, World
    >>> found = coverage_map({"calibrated": {"uniform": World(Uniform())}}, n=[200], m=50, candidates=CANDIDATES[:2])
    >>> [(cell.interval, cell.covered > 0.8) for cell in found]
    [('rank series (default)', True), ('debiased, 15 bins', True)]
    """
    asked, run = tuple(candidates), run or Run()
    checks.level(level)
    checks.whole(m, "m")
    checks.whole(rng, "rng", 0)
    if not n or min(n) < 2 or not asked:
        raise InputError("a coverage map needs sizes of 2 rows or more and an interval")
    if groups is not None and run.workers > 1:
        raise InputError("worlds of your own run with workers=1")
    worlds = map_worlds() if groups is None else groups
    places = [(group, name) for group, named in worlds.items() for name in named]
    jobs = [_Job(group, name, tuple(n), m, level, asked, rng) for group, name in places]
    cells: dict[int, list[MapCell]] = {}
    work = _run_known if groups is None else partial(_run_given, groups)
    with run.kept() as kept, kept.reporting("coverage") as progress:
        for place, made in kept.processes.each(work, jobs):
            cells[place] = made
            progress(parallel.Step("coverage of worlds", len(cells), len(jobs)))
    return [cell for place in range(len(jobs)) for cell in cells[place]]


@dataclass(frozen=True)
class _Job:
    """One world, by name: worlds that hold plain functions cannot be sent to another process."""

    group: str
    name: str
    sizes: tuple[int, ...]
    m: int
    level: float
    candidates: tuple[Candidate, ...]
    rng: int

    def cells(self, world: World) -> list[MapCell]:
        results = []
        for size in self.sizes:
            datasets = max(1, min(self.m, _MOST_ROWS // size))
            stream = np.random.SeedSequence([self.rng, crc32(f"{self.group}/{self.name}".encode()), size])
            profile = tc.Profile.from_arrays(*world.draw(size, datasets, rng=stream))
            for candidate in self.candidates:
                if candidate.most_rows is None or size <= candidate.most_rows:
                    part = profile.take(np.arange(max(1, min(datasets, round(self.m * candidate.share)))))
                    results.append(_judge(candidate, part, self.level, self.group, self.name, world))
        return results


_known_worlds = cache(map_worlds)


def _run_known(job: _Job) -> list[MapCell]:
    return job.cells(_known_worlds()[job.group][job.name])


def _run_given(groups: Mapping[str, Mapping[str, World]], job: _Job) -> list[MapCell]:
    return job.cells(groups[job.group][job.name])


def _judge(candidate: Candidate, profile: tc.Profile, level: float, group: str, name: str, world: World) -> MapCell:
    truth = world.true_error(candidate.norm)
    low, high = candidate.ends(profile, level)
    too_high, too_low = float((low > truth + 1e-9).mean()), float((high < truth - 1e-9).mean())
    return MapCell(
        candidate.name,
        group,
        name,
        profile.rows,
        profile.batch,
        truth,
        1 - too_high - too_low,
        too_high,
        too_low,
        float((high - low).mean()),
    )


def cell_table(cells: Sequence[MapCell]) -> Frame:
    """Every cell as a row, with the Monte-Carlo standard error of its coverage."""
    columns = (*(field.name for field in fields(MapCell)), "covered_se")
    return tidy(columns, [(*astuple(cell), cell.standard_error) for cell in cells])


def _lines(cells: Sequence[MapCell]) -> Iterator[tuple[str, str, dict[int, list[MapCell]]]]:
    """Interval, group, and the cells of the group's worlds by n; intervals in the order they were asked for."""
    order = {cell.interval: i for i, cell in reversed(list(enumerate(cells)))}
    ranked = sorted(cells, key=lambda cell: (order[cell.interval], cell.group, cell.n))
    for (interval, group), part in groupby(ranked, key=lambda cell: (cell.interval, cell.group)):
        yield interval, group, {n: list(here) for n, here in groupby(part, key=lambda cell: cell.n)}


def _spread(here: Sequence[MapCell]) -> tuple[float, float, str, float]:
    """Mean coverage over worlds, the lowest, the world it is in, and the mean length."""
    worst = min(here, key=lambda cell: cell.covered)
    mean, length = np.mean([cell.covered for cell in here]), np.mean([cell.length for cell in here])
    return float(mean), worst.covered, worst.world, float(length)


def summary(cells: Sequence[MapCell]) -> Frame:
    """One row per interval, group and n: mean coverage over the worlds, the lowest of them, and the mean length.

    >>> cells = coverage_map(n=[100], m=2, candidates=CANDIDATES[:1])
    >>> summary(cells)["worlds"].tolist()
    ['others', 'papers', 'papers, nearly calibrated', 'papers, recalibrated']
    """
    rows = [
        (interval, group, n, here[0].m, *_spread(here))
        for interval, group, by_n in _lines(cells)
        for n, here in by_n.items()
    ]
    return tidy(("interval", "worlds", "n", "datasets", "coverage", "lowest", "in", "length"), rows)


def markdown(cells: Sequence[MapCell]) -> str:
    """One line per interval and group; at each n the mean coverage, the lowest of any world, and the mean length."""
    sizes = sorted({cell.n for cell in cells})
    lines = [
        "| interval | worlds | " + " | ".join(f"n = {n}" for n in sizes) + " |",
        "|---|---|" + "---|" * len(sizes),
    ]
    for interval, group, by_n in _lines(cells):
        entries = []
        for n in sizes:
            if n not in by_n:
                entries.append("-")
                continue
            mean, lowest, where, length = _spread(by_n[n])
            entries.append(f"{mean:.2f} ({lowest:.2f} {where}), {length:.3f}")
        lines.append(f"| {interval} | {group} | " + " | ".join(entries) + " |")
    return "\n".join(lines)
