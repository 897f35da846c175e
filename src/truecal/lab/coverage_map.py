"""The coverage map: how often each interval holds the truth, where it does not, and how long it is.

`python -m truecal.lab.coverage_map` prints the table of docs/coverage.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from types import MappingProxyType

import numpy as np

from truecal.errors import InputError
from truecal.estimate import BinnedECE, Estimator, RankSeries, SweepECE
from truecal.lab.curves import GLM, Power
from truecal.lab.paper_worlds import PAPER_WORLDS
from truecal.lab.quadrature import Array
from truecal.lab.score_distributions import Beta, Discrete, Mixture, Uniform
from truecal.lab.world import World
from truecal.profile import Profile
from truecal.uncertainty import bootstrap, debiased_interval

Ends = tuple[Array, Array]
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
    ends: Callable[[Profile, float], Ends]
    share: float = 1.0  # of the m datasets: resampling is slow


def _rank_series(profile: Profile, level: float) -> Ends:
    interval = RankSeries(level=level)(profile).interval
    assert interval is not None
    return np.atleast_1d(interval.low), np.atleast_1d(interval.high)


def _debiased(profile: Profile, level: float) -> Ends:
    interval = debiased_interval(profile, level=level)
    return np.atleast_1d(interval.low), np.atleast_1d(interval.high)


def _bootstrapped(estimator: Estimator) -> Callable[[Profile, float], Ends]:
    def ends(profile: Profile, level: float) -> Ends:
        found = [
            bootstrap(estimator, profile.take(np.array([i])), resamples=200, level=level, rng=i).interval()
            for i in range(profile.batch)
        ]
        return np.array([float(i.low) for i in found]), np.array([float(i.high) for i in found])

    return ends


def _plain(estimator: Estimator) -> Callable[[Profile, float], Ends]:
    """Quantiles of the estimate over resampled rows, uncorrected: what other packages offer."""

    def ends(profile: Profile, level: float) -> Ends:
        low, high = np.empty(profile.batch), np.empty(profile.batch)
        for i in range(profile.batch):
            values = bootstrap(estimator, profile.take(np.array([i])), resamples=200, rng=i).values
            low[i], high[i] = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return low, high

    return ends


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("rank series (default)", 2, _rank_series),
    Candidate("debiased, 15 bins", 2, _debiased),
    Candidate("bootstrap, equal mass l2", 2, _bootstrapped(BinnedECE(scheme="mass", norm=2)), 0.5),
    Candidate("bootstrap, equal width l1", 1, _bootstrapped(BinnedECE()), 0.5),
    Candidate("bootstrap, sweep l2", 2, _bootstrapped(SweepECE()), 0.2),
    Candidate("plain percentile, equal width l1", 1, _plain(BinnedECE()), 0.5),
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
    n: Sequence[int] = (100, 200, 1000, 5000),
    m: int = 200,
    level: float = 0.9,
    candidates: Iterable[Candidate] = CANDIDATES,
    rng: int = 0,
) -> list[MapCell]:
    """Every interval in every world at every n, on the same datasets.

    >>> from truecal.lab import Uniform, World
    >>> found = coverage_map({"calibrated": {"uniform": World(Uniform())}}, n=[200], m=50, candidates=CANDIDATES[:2])
    >>> [(cell.interval, cell.covered > 0.8) for cell in found]
    [('rank series (default)', True), ('debiased, 15 bins', True)]
    """
    if m < 1 or not 0 < level < 1:
        raise InputError(
            f"a coverage map needs m >= 1 datasets and a level between 0 and 1, not m={m}, level={level!r}"
        )
    cells = []
    for group, worlds in (map_worlds() if groups is None else groups).items():
        for world_name, world in worlds.items():
            for size in n:
                datasets = max(1, min(m, 2_000_000 // size))
                profile = Profile.from_arrays(*world.draw(size, datasets, rng=rng))
                for candidate in candidates:
                    some = profile.take(np.arange(max(1, round(datasets * candidate.share))))
                    cells.append(_judge(candidate, some, level, group, world_name, world))
    return cells


def _judge(candidate: Candidate, profile: Profile, level: float, group: str, name: str, world: World) -> MapCell:
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


def markdown(cells: Sequence[MapCell]) -> str:
    """One line per interval and group; at each n the mean coverage, the lowest of any world, and the mean length."""
    sizes = sorted({cell.n for cell in cells})
    lines = [
        "| interval | worlds | " + " | ".join(f"n = {n}" for n in sizes) + " |",
        "|---|---|" + "---|" * len(sizes),
    ]
    order = {cell.interval: i for i, cell in reversed(list(enumerate(cells)))}
    ranked = sorted(cells, key=lambda cell: (order[cell.interval], cell.group))
    for (interval, group), some in groupby(ranked, key=lambda cell: (cell.interval, cell.group)):
        held = list(some)
        entries = []
        for n in sizes:
            here = [cell for cell in held if cell.n == n]
            worst = min(here, key=lambda cell: cell.covered)
            mean = np.mean([cell.covered for cell in here])
            length = np.mean([cell.length for cell in here])
            entries.append(f"{mean:.2f} ({worst.covered:.2f} {worst.world}), {length:.3f}")
        lines.append(f"| {interval} | {group} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(coverage_map()))
