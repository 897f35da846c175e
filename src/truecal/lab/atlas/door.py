"""A door: a statement that truecal makes about one dataset, and how it is held against the truth."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from truecal.estimate import Interval
from truecal.lab.atlas.worlds import atlas_worlds
from truecal.lab.worlds.quadrature import Array

Kind = Literal["interval", "test", "promise"]
LEVEL = 0.9
ALPHA = 0.05
ROUNDING = 1e-9  # of a truth found by quadrature


@dataclass(frozen=True)
class Trials:
    """What a door said about m datasets.

    Of an interval: whether all of it lay above the truth, or below, and its length. Of a test or promise `above` says whether
    it was false: calibration rejected though it held, an error promised that was larger.
    """

    above: npt.NDArray[np.bool_]
    below: npt.NDArray[np.bool_]
    length: Array
    truth: float

    @classmethod
    def of_intervals(cls, low: Array, high: Array, truth: Array | float) -> "Trials":
        above, below = low > np.asarray(truth) + ROUNDING, high < np.asarray(truth) - ROUNDING
        return cls(above, below, high - low, float(np.mean(truth)))

    @classmethod
    def of_each(cls, intervals: Iterable[Interval | None], truth: Array | float) -> "Trials":
        """The intervals of datasets, alone or in batches; those that could not be stated are left out."""
        stated = [interval for interval in intervals if interval is not None]
        low, high = (np.concatenate([np.atleast_1d(getattr(i, end)) for i in stated]) for end in ("low", "high"))
        return cls.of_intervals(low, high, truth)

    @classmethod
    def of_tests(cls, p_values: Iterable[Any], alpha: float, truth: float = 0.0) -> "Trials":
        """Tests of a statement that holds, of datasets alone or in batches: false where p is at most alpha."""
        p = np.concatenate([np.atleast_1d(value) for value in p_values])
        return cls.of_verdicts(p <= alpha, truth)

    @classmethod
    def of_verdicts(cls, false: npt.ArrayLike, truth: float = 0.0) -> "Trials":
        wrong = np.asarray(false, dtype=bool)
        return cls(wrong, np.zeros(len(wrong), bool), np.zeros(len(wrong)), truth)


# The world, rows of a dataset, number of datasets, stream of random numbers; None where a door says nothing in such a world.
Judge = Callable[[Any, int, int, np.random.Generator], Trials | None]


@dataclass(frozen=True)
class Door:
    """A statement: its kind, the level it states, and what it costs to try.

    stated : coverage of an interval, or the largest rate at which a test or promise may be false.
    share : of the datasets asked for, where a dataset is slow. most_rows : no larger datasets than this. least_rows : nor smaller.
    worlds : where it is tried, in groups. counted : whether datasets are drawn as counts, so that large ones cost no more.
    """

    name: str
    kind: Kind
    stated: float
    judge: Judge
    share: float = 1.0
    most_rows: int = 1_000_000
    least_rows: int = 2
    worlds: Callable[[], Mapping[str, Mapping[str, Any]]] = atlas_worlds
    counted: bool = False
    promised: float | None = None  # what the documentation states for the worst world, where that is not `stated`

    @property
    def least(self) -> float:
        """What the worst world must reach: coverage at least this, or a rate of false statements at most this."""
        return self.stated if self.promised is None else self.promised


def interval_door(name: str, judge: Judge, *sizes: float, **more: Any) -> Door:
    """A door that states an interval at the level of the atlas."""
    return Door(name, "interval", LEVEL, judge, *sizes, **more)  # type: ignore[arg-type]


def test_door(name: str, judge: Judge, *sizes: float, **more: Any) -> Door:
    """A door that tests at the type I error of the atlas."""
    return Door(name, "test", ALPHA, judge, *sizes, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class AtlasCell:
    """One door in one world at one n. For an interval `rate` is its coverage, else the rate of false statements."""

    door: str
    kind: Kind
    stated: float
    group: str
    world: str
    n: int
    m: int
    truth: float
    rate: float
    above: float  # intervals that lay above the truth
    below: float
    length: float

    @property
    def standard_error(self) -> float:
        """Of the rate, with one hit and one miss added so that 0 and 1 are not taken for certainties."""
        p = (self.rate * self.m + 1) / (self.m + 2)
        return float(np.sqrt(p * (1 - p) / self.m))
