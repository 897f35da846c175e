"""The leaderboard: every estimator of truecal, ranked by how wrong it is where the truth is known."""

from typing import TYPE_CHECKING

import numpy as np

from truecal.lab.papers.drawing import panels
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.trials.batches import Cell
from truecal.lab.trials.detection import held
from truecal.lab.trials.estimators import all_estimators
from truecal.lab.trials.measures import Bounds, has_interval
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS
from truecal.lab.worlds.world import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (200, 1000, 5000)
NEARLY = 0.02
LEVEL = 0.9


def world_groups() -> dict[str, dict[str, World]]:
    """The ten printed worlds, their perfect recalibrations, and recalibrations that leave a true error of 2 %."""
    return {
        "uncalibrated": dict(PAPER_WORLDS),
        "calibrated": {name: world.perfectly_recalibrated() for name, world in PAPER_WORLDS.items()},
        "nearly calibrated": {name: world.partly_recalibrated(NEARLY) for name, world in PAPER_WORLDS.items()},
    }


def leaderboard(setting: Setting, *, n: tuple[int, ...] = SIZES) -> Experiment:
    """Mean |bias|, mean RMSE and coverage of the 90 % interval by group of worlds; best mean |bias| overall first.

    Coverage is that of the estimator's own interval, for those that have one. SmoothECE measures another quantity than
    the l1 error it is compared with here (a smoothed one, at most as large): its rank says how far it is from that.
    """
    m = setting.m
    rows: list[tuple[Field, ...]] = []
    for group, worlds in world_groups().items():
        results = setting.trials(all_estimators(), worlds, n=n)
        covered = _coverage(worlds, n, setting)
        for name in all_estimators():
            part = [t for t in results if t.estimator_name == name]
            bias = np.array([100 * t.bias for t in part])
            error = float(np.sqrt(np.sum([(100 * t.standard_error) ** 2 for t in part]))) / len(part)
            rmse = float(np.mean([100 * t.rmse for t in part]))
            share = covered.get(name, float("nan"))
            rows.append((group, name, m, float(np.abs(bias).mean()), float(bias.mean()), error, rmse, share))
    columns = ("worlds", "estimator", "m", "mean_abs_bias", "mean_bias", "mean_bias_se", "mean_rmse", "coverage_90")
    overall = {name: np.mean([float(r[3] or 0) for r in rows if r[1] == name]) for name in all_estimators()}
    order = sorted(overall, key=lambda name: overall[name])
    groups = list(world_groups())
    rows.sort(key=lambda row: (groups.index(str(row[0])), order.index(str(row[1]))))
    table = tidy(columns, rows)

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(12, 5)
        records = table
        for axes, group in zip(panels(figure, len(groups)), groups, strict=True):
            part = [r for r in records if r["worlds"] == group][::-1]
            axes.barh([str(r["estimator"]) for r in part], [float(r["mean_abs_bias"]) for r in part])
            axes.set(title=group, xlabel="mean |bias| (%)")

    return Experiment("leaderboard", f"estimators by mean |bias|, n = {', '.join(map(str, n))}", table, draw)


def _coverage(worlds: dict[str, World], n: tuple[int, ...], setting: Setting) -> dict[str, float]:
    """Share of 90 % intervals that hold the truth, over all worlds and sizes, for estimators with an interval."""
    able = {name: e.at_level(LEVEL) for name, e in all_estimators().items() if has_interval(e)}
    cells = [
        Cell(world_name, world, size, setting.m, tuple(Bounds(e) for e in able.values()))
        for world_name, world in worlds.items()
        for size in n
    ]
    hits = np.zeros(len(able))
    for cell, answers in zip(cells, setting.answers(cells), strict=True):
        for k, (bounds, estimator) in enumerate(zip(answers, able.values(), strict=True)):
            hits[k] += held(bounds, cell.world.true_error(estimator.power_norm)).mean()
    return dict(zip(able, (hits / len(cells)).tolist(), strict=True))
