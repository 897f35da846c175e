"""Trials: how far an estimator is from the known truth, on average and in spread, over many simulated datasets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from truecal.errors import InputError
from truecal.estimate import Estimator
from truecal.frame import Frame
from truecal.lab.trials.batches import Cell, answers_of
from truecal.lab.trials.measures import Value
from truecal.lab.trials.run import Run
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import Seed, World

Estimators = Mapping[str, Estimator]
Field = str | int | float | None


def tidy(columns: Sequence[str], rows: Iterable[Sequence[Field]]) -> Frame:
    """A frame from its columns' names and its rows.

    >>> tidy(("n", "bias"), [(200, 0.5), (400, 0.25)])["bias"].tolist()
    [0.5, 0.25]
    """
    return Frame.from_records([dict(zip(columns, row, strict=True)) for row in rows], columns)


@dataclass(frozen=True)
class Trial:
    """The m values one estimator gave at one n in one world, beside the truth; nothing is averaged away.

    bias = mean - truth, std and variance of the values, rmse = sqrt(mean (value - truth)^2), each with the Monte-Carlo
    standard error it has from m being finite.
    """

    estimator_name: str
    world_name: str
    n: int
    truth: float
    values: Array

    @property
    def m(self) -> int:
        return int(self.values.size)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def bias(self) -> float:
        return self.mean - self.truth

    @property
    def variance(self) -> float:
        return float(self.values.var(ddof=1))

    @property
    def std(self) -> float:
        return sqrt(self.variance)

    @property
    def rmse(self) -> float:
        return sqrt(float(np.mean((self.values - self.truth) ** 2)))

    @property
    def standard_error(self) -> float:
        """Of the bias (and of the mean)."""
        return self.std / sqrt(self.m)

    @property
    def variance_standard_error(self) -> float:
        centred = self.values - self.mean
        fourth = float(np.mean(centred**4))
        return sqrt(max(fourth - float(np.mean(centred**2)) ** 2, 0.0) / self.m)

    @property
    def std_standard_error(self) -> float:
        return self.variance_standard_error / (2 * self.std) if self.std else 0.0

    @property
    def rmse_standard_error(self) -> float:
        squares = (self.values - self.truth) ** 2
        return float(squares.std(ddof=1)) / sqrt(self.m) / (2 * self.rmse) if self.rmse else 0.0


def bias(
    estimator: Estimator,
    world: World,
    *,
    n: int = 1000,
    m: int = 300,
    rng: Seed = 0,
    run: Run | None = None,
) -> Trial:
    """Bias, spread and RMSE of one estimator on m datasets of n rows (Roelofs et al., equation 7).

    >>> import truecal as tc
    >>> trial = tc.lab.bias(tc.BinnedECE(norm=2), tc.lab.PAPER_WORLDS["resnet110_c10"], n=400, m=200)
    >>> -0.01 < trial.bias < 0.0, trial.standard_error < 0.003
    (True, True)
    """
    (trial,) = trials({repr(estimator): estimator}, {"world": world}, n=[n], m=m, rng=rng, run=run)
    return trial


def trials(
    estimators: Estimators | Callable[[str], Estimators],
    worlds: Mapping[str, World],
    *,
    n: Sequence[int],
    m: int = 300,
    rng: Seed = 0,
    run: Run | None = None,
) -> list[Trial]:
    """Every estimator in every world at every n. All estimators of a cell see the same datasets.

    `estimators` is a mapping of names, or a function from a world's name to one (an estimator may need settings that
    belong to the world). Estimates are compared with the true error in the estimator's own norm.

    >>> import truecal as tc
    >>> grid = {"EW": tc.BinnedECE(norm=2), "EM": tc.BinnedECE(scheme="mass", norm=2)}
    >>> found = tc.lab.trials(grid, {"uniform": tc.lab.World(tc.lab.Uniform())}, n=[100, 200], m=50)
    >>> [(t.estimator_name, t.n) for t in found]
    [('EW', 100), ('EM', 100), ('EW', 200), ('EM', 200)]
    """
    if not worlds or not n:
        raise InputError("trials need at least one world and one n")
    cells: list[Cell] = []
    named: list[Estimators] = []
    for name, world in worlds.items():
        chosen = estimators if isinstance(estimators, Mapping) else estimators(name)
        for estimator_name, estimator in chosen.items():
            if not isinstance(estimator, Estimator):
                raise InputError(f"{estimator_name!r} is {estimator!r}, not an estimator such as tc.RankSeries()")
        if not isinstance(world, World):
            raise InputError(f"{name!r} is {world!r}, not a World")
        for size in n:
            cells.append(Cell(name, world, size, m, tuple(Value(e) for e in chosen.values())))
            named.append(chosen)
    answers = answers_of(cells, rng=rng, run=run)
    truth: dict[tuple[int, float], float] = {}
    result: list[Trial] = []
    for cell, chosen, values in zip(cells, named, answers, strict=True):
        for (estimator_name, estimator), value in zip(chosen.items(), values, strict=True):
            key = (id(cell.world), estimator.power_norm)
            if key not in truth:
                truth[key] = cell.world.true_error(estimator.power_norm)
            result.append(Trial(estimator_name, cell.name, cell.n, truth[key], value[0]))
    return result


def table_of(made: Sequence[Trial]) -> Frame:
    """Trials as a tidy table, one row each, every number with its Monte-Carlo standard error."""
    columns = ("world", "estimator", "n", "m", "truth", "mean", "bias", "bias_se", "std", "std_se", "rmse", "rmse_se")
    return tidy(
        columns,
        [
            (
                *(t.world_name, t.estimator_name, t.n, t.m, t.truth, t.mean),
                *(t.bias, t.standard_error, t.std, t.std_standard_error, t.rmse, t.rmse_standard_error),
            )
            for t in made
        ],
    )
