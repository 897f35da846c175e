"""The leaderboard: estimators ranked by their bias in worlds whose true error is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from truecal.errors import InputError, extra
from truecal.estimators.base import ErrorFunction, Estimator, as_estimator
from truecal.lab.curves import Power, ScoreCurve
from truecal.lab.detection import contains
from truecal.lab.distributions import Array, Discrete, Empirical, Uniform
from truecal.lab.trials import Bounds, Cell, Run, all_estimators, has_interval, simulate, trials
from truecal.lab.worlds import PAPER_WORLDS, Seed, World
from truecal.table import Frame
from truecal.writing import write_whole

SIZES = (200, 1000, 5000)  # by choice: rows of the datasets that are simulated
REMAINING_ERROR = 0.02  # by choice: of the nearly calibrated worlds
LEVEL = 0.9  # by choice: of the intervals whose coverage is counted
_WORDS = Discrete((0.5, 0.6, 0.7, 0.8, 0.9, 1.0), (0.1, 0.1, 0.15, 0.2, 0.3, 0.15))


@dataclass(frozen=True)
class Wave(ScoreCurve):
    """Curve T(c) = c - height sin(3 pi (c - 0.2) / 0.8) on [0.2, 1]: below the scores, above, and below again."""

    height: float

    def at(self, c: Array, rest: Array) -> Array:
        """Evaluate c - height sin(3 pi (c - 0.2) / 0.8).

        Parameters
        ----------
        c : ndarray
            Scores.
        rest : ndarray of the same shape
            Their complements 1 - c.

        Returns
        -------
        ndarray
            Probability at each score.
        """
        return c - self.height * np.sin(3 * np.pi * (c - 0.2) / 0.8)


def world_groups() -> dict[str, dict[str, World]]:
    """Return the groups of worlds of the ranking by name, each a mapping of names to worlds.

    They are the ten worlds of the paper (`PAPER_WORLDS`), "uncalibrated", their perfect recalibrations, "calibrated",
    recalibrations with a true error of 2 %, "nearly calibrated", and three harder groups. "tied": scores are 0.5, 0.6, ..., 1.
    "non-monotone": the curve falls in the middle. "empirical": scores are distributed like 2000 draws of a world of the paper.
    """
    return {
        "uncalibrated": dict(PAPER_WORLDS),
        "calibrated": {name: world.perfectly_recalibrated() for name, world in PAPER_WORLDS.items()},
        "nearly calibrated": {name: world.partly_recalibrated(REMAINING_ERROR) for name, world in PAPER_WORLDS.items()},
        "tied": {f"words, power {p:g}": World(_WORDS, Power(p)) for p in (1.0, 1.3, 2.0)},
        "non-monotone": {f"wave of {a:g}": World(Uniform(0.2, 1.0), Wave(a)) for a in (0.04, 0.08, 0.15)},
        "empirical": {
            name: _with_empirical_scores(PAPER_WORLDS[name])
            for name in ("resnet110_c10", "resnet110_c100", "resnet152_imgnet")
        },
    }


def _with_empirical_scores(world: World) -> World:
    """Return a world of the same curve, without recalibration, whose scores are distributed like 2000 draws (seed 0).

    >>> _with_empirical_scores(World(Uniform(), Power(2.0))).scores.describe()
    'distributed like 2,000 given ones'
    """
    return World(Empirical(world.draw(2000, rng=0)[0][0]), world.curve)


@dataclass(frozen=True)
class Leaderboard:
    """Hold a ranking of estimators as a table and a figure.

    Parameters
    ----------
    title : str
        Title of the figure.
    table : Frame
        One row per group of worlds and estimator.

    See Also
    --------
    leaderboard : Simulate the ranking.

    Examples
    --------
    >>> import truecal as tc
    >>> board = tc.lab.leaderboard(n=(100,), m=2)
    >>> board.table[0]["worlds"]
    'uncalibrated'
    """

    title: str
    table: Frame

    def draw(self, figure: Any) -> None:
        """Draw a panel of bars for every group of worlds.

        Parameters
        ----------
        figure : matplotlib.figure.Figure
            An empty figure; its size is set.
        """
        groups = list(dict.fromkeys(str(name) for name in self.table["worlds"]))
        figure.set_size_inches(12, 5)
        panels = figure.subplots(-(-len(groups) // 3), 3, sharey=True, squeeze=False)
        for spare in panels.flat[len(groups) :]:
            spare.remove()
        for axes, group in zip(panels.flat, groups, strict=False):
            part = [row for row in self.table if row["worlds"] == group][::-1]
            axes.barh([row["estimator"] for row in part], [row["mean_abs_bias"] for row in part])
            axes.set(title=group, xlabel="mean |bias| (%)")

    def write(self, folder: str | PathLike[str], *, table_format: str = "csv") -> list[Path]:
        """Write the table and the figure to files.

        Parameters
        ----------
        folder : str or path-like
            Folder of the files, created where it does not exist.
        table_format : {"csv", "parquet"}, default "csv"
            Format of the table.

        Returns
        -------
        list of Path
            Paths of leaderboard.csv (or .parquet) and leaderboard.png.

        Raises
        ------
        InputError
            If the format is unknown.
        """
        if table_format not in ("csv", "parquet"):
            raise InputError(f"table_format must be csv or parquet, not {table_format!r}")
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / f"leaderboard.{table_format}", target / "leaderboard.png"]
        self.table.write(paths[0])
        figure = extra("matplotlib.figure").Figure(figsize=(9, 5), layout="constrained")
        self.draw(figure)
        figure.suptitle(self.title)
        write_whole(paths[1], lambda file: figure.savefig(file, dpi=120, format="png"))
        return paths


def leaderboard(
    *,
    n: tuple[int, ...] = SIZES,
    m: int = 250,
    estimators: Mapping[str, Estimator | ErrorFunction] | None = None,
    worlds: Mapping[str, World] | None = None,
    rng: Seed = 0,
    run: Run | None = None,
) -> Leaderboard:
    """Rank every estimator by its mean |bias| in worlds whose true error is known.

    Parameters
    ----------
    n : tuple of int, default (200, 1000, 5000)
        Sizes of the simulated datasets.
    m : int, default 250
        Simulated datasets per world and size.
    estimators : mapping of str to Estimator or callable, default None
        Further estimators, or functions of scores and outcomes, ranked beside those of truecal.
    worlds : mapping of str to World, default None
        Worlds of one's own, a further group.
    rng : int or Generator, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress.

    Returns
    -------
    Leaderboard
        Mean |bias|, mean bias, mean RMSE (percent) and coverage of the 90 % interval by group of worlds and estimator, in the
        order of the mean |bias| over all groups.

    Notes
    -----
    Coverage is that of the estimator's own interval, for those that have one. SmoothECE measures another quantity than the l1
    error it is compared with here (a smoothed one, at most as large): its |bias| is the distance between the two.

    Examples
    --------
    >>> import truecal as tc
    >>> board = tc.lab.leaderboard(n=(200,), m=4)
    >>> board.table[0]["worlds"], len(board.table)
    ('uncalibrated', 60)
    """
    ranked = {**all_estimators(), **{name: as_estimator(estimator) for name, estimator in (estimators or {}).items()}}
    groups = world_groups() | ({"own": dict(worlds)} if worlds else {})
    rows: list[dict[str, Any]] = []
    with (run or Run()).with_pool() as running:
        for group, members in groups.items():
            results = trials(ranked, members, n=n, m=m, rng=rng, run=running)
            coverages = _coverages(ranked, members, n, m, rng, running)
            for name in ranked:
                part = [t for t in results if t.estimator_name == name]
                bias, error, rmse = 100 * np.array([(t.bias, t.standard_error, t.rmse) for t in part]).T
                rows.append(
                    {
                        "worlds": group,
                        "estimator": name,
                        "m": m,
                        "mean_abs_bias": float(np.abs(bias).mean()),
                        "mean_bias": float(bias.mean()),
                        "mean_bias_se": float(np.sqrt((error**2).sum())) / len(part),
                        "mean_rmse": float(rmse.mean()),
                        "coverage_90": coverages.get(name, float("nan")),
                    }
                )
    overall = {name: np.mean([row["mean_abs_bias"] for row in rows if row["estimator"] == name]) for name in ranked}
    rows.sort(key=lambda row: (list(groups).index(row["worlds"]), overall[row["estimator"]]))
    return Leaderboard(f"estimators by mean |bias|, n = {', '.join(map(str, n))}", Frame.from_records(rows))


def _coverages(
    estimators: Mapping[str, Estimator], worlds: Mapping[str, World], n: tuple[int, ...], m: int, rng: Seed, run: Run
) -> dict[str, float]:
    """Compute the share of 90 % intervals that contain the true error, over all worlds and sizes, by name of the estimator.

    Only for estimators with a closed-form interval.
    """
    with_interval = {name: estimator for name, estimator in estimators.items() if has_interval(estimator)}
    cells = [
        Cell(world_name, world, size, m, tuple(Bounds(e, LEVEL) for e in with_interval.values()))
        for world_name, world in worlds.items()
        for size in n
    ]
    hits = np.zeros(len(with_interval))
    for cell, intervals in zip(cells, simulate(cells, rng=rng, run=run), strict=True):
        for k, (bounds, estimator) in enumerate(zip(intervals, with_interval.values(), strict=True)):
            hits[k] += contains(bounds, cell.world.true_error(estimator.norm)).mean()
    return dict(zip(with_interval, (hits / len(cells)).tolist(), strict=True))
