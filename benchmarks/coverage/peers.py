"""Intervals of other packages as statements, for `python -m benchmarks.coverage --peers`; each package is imported only when used.

The truth is the error that the package estimates: mean absolute (l1) for calzone and relplot, root mean square (l2) for
uncertainty-calibration. Each is called the way its documentation calls it, and left out where it is not installed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

import truecal as tc
from benchmarks.coverage.statements import LEVEL, Statement, Trials, draw_profiles
from benchmarks.coverage.worlds import Array
from truecal.lab import World

MOST_ROWS = 1000  # they resample row by row, in Python: larger datasets take seconds each
Interval = Callable[[Array, npt.NDArray[np.int64], float], tuple[float, float]]


def _calzone(c: Array, y: npt.NDArray[np.int64], level: float) -> tuple[float, float]:
    """Quantiles of the 1000 resampled values of its equal-width ECE (10 bins) that `bootstrap` returns."""
    metrics = import_module("calzone.metrics").CalibrationMetrics
    results = metrics(class_to_calculate=1, num_bins=10).bootstrap(
        y, np.stack([1 - c, c], axis=1), metrics=["ECE-H"], n_samples=1000
    )
    low, high = np.quantile(results["ECE-H"], [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _relplot(c: Array, y: npt.NDArray[np.int64], level: float) -> tuple[float, float]:
    """Its smooth ECE plus and minus the half-width it prints beside it, always stated at 95 %."""
    results = import_module("relplot.diagrams").prepare_rel_diagram(c, y, plot_confidence_band=False)
    return float(results["ce"] - results["ce_ci_width"]), float(results["ce"] + results["ce_ci_width"])


@dataclass(frozen=True)
class _UncertaintyCalibration:
    """Lower and upper of `get_calibration_error_uncertainties`.

    Its documentation says alpha is a share (0.1 for 90 %), but its code takes percentiles at alpha / 2 and 100 - alpha / 2,
    so that 0.1 gives the range of its 100 resamples and only 10 gives what is stated: both are judged.
    """

    unit: float  # alpha is given as this times 1 - level: 1 (a share) or 100 (percent)

    def __call__(self, c: Array, y: npt.NDArray[np.int64], level: float) -> tuple[float, float]:
        interval_of = import_module("calibration").get_calibration_error_uncertainties
        low, _, high = interval_of(c, y, p=2, alpha=self.unit * (1 - level))
        return float(low), float(high)


def peer_limits(interval: Interval, profile: tc.profile.Profile, level: float) -> tuple[Array, Array]:
    """Limits of a peer's intervals, one dataset of the batch after the other, each with its own seed."""
    limits = np.empty((2, profile.batch))
    for i in range(profile.batch):
        with _seeded(i):
            limits[:, i] = interval(profile.scores[i], profile.outcomes[i].astype(np.int64), level)
    return limits[0], limits[1]


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed numpy's global state, from which peers draw, and restore it; their warnings are ignored."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        with catch_warnings():
            simplefilter("ignore")
            yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


@dataclass(frozen=True)
class Peer:
    """A package, the name it is imported under, and its interval."""

    package: str
    module: str
    name: str
    norm: float
    interval: Interval
    datasets: int  # at most, per world and n


_UC = "uncertainty-calibration, "
PEERS: tuple[Peer, ...] = (
    Peer("calzone-tool", "calzone", "calzone, ECE-H (l1)", 1, _calzone, 5),
    Peer("relplot", "relplot", "relplot, smooth ECE at 95 % (l1)", 1, _relplot, 3),
    Peer("uncertainty-calibration", "calibration", _UC + "alpha as a share (l2)", 2, _UncertaintyCalibration(1), 5),
    Peer("uncertainty-calibration", "calibration", _UC + "alpha in percent (l2)", 2, _UncertaintyCalibration(100), 5),
)


def _judge(peer: Peer, world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    profiles = draw_profiles(world, n, min(m, peer.datasets), rng)
    low, high = np.concatenate([peer_limits(peer.interval, profile, LEVEL) for profile in profiles], axis=1)
    return Trials.of_limits(low, high, world.true_error(peer.norm))


def peer_statements(peers: Sequence[Peer] = PEERS) -> tuple[list[Statement], list[str]]:
    """The installed peers' intervals as statements, and the packages that are absent.

    >>> nobody = Peer("nobody", "no_such_module", "nobody's interval", 1, _calzone, 10)
    >>> peer_statements([nobody])
    ([], ['nobody'])
    """
    installed = [peer for peer in peers if find_spec(peer.module) is not None]
    statements = [Statement(p.name, "interval", LEVEL, partial(_judge, p), most_rows=MOST_ROWS) for p in installed]
    return statements, list(dict.fromkeys(peer.package for peer in peers if peer not in installed))
