"""The leaderboard: every estimator of truecal, ranked by how wrong it is where the truth is known."""

from dataclasses import dataclass

import numpy as np

from truecal.lab.papers.drawing import Figure, panels
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.trials.batches import Cell
from truecal.lab.trials.detection import held
from truecal.lab.trials.estimators import all_estimators
from truecal.lab.trials.measures import Bounds, has_interval
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.curves import Curve, Power
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.score_distributions import Discrete, Empirical, Uniform
from truecal.lab.worlds.world import World

SIZES = (200, 1000, 5000)
NEARLY = 0.02
LEVEL = 0.9
_WORDS = Discrete((0.5, 0.6, 0.7, 0.8, 0.9, 1.0), (0.1, 0.1, 0.15, 0.2, 0.3, 0.15))


@dataclass(frozen=True)
class Wave(Curve):
    """T(c) = c - height sin(3 pi (c - 0.2) / 0.8): below the scores, above, and below again."""

    height: float

    def at(self, c: Array, rest: Array) -> Array:
        return c - self.height * np.sin(3 * np.pi * (c - 0.2) / 0.8)


def world_groups() -> dict[str, dict[str, World]]:
    """The ten printed worlds, their perfect recalibrations, recalibrations that leave a true error of 2 %, and harder ones.

    Tied: scores are the words 0.5, 0.6, ..., 1, as a person or a language model says them. Non-monotone: the curve falls in the
    middle. Empirical: scores are 2000 draws of a printed world, smoothed, with its own curve.
    """
    return {
        "uncalibrated": dict(PAPER_WORLDS),
        "calibrated": {name: world.perfectly_recalibrated() for name, world in PAPER_WORLDS.items()},
        "nearly calibrated": {name: world.partly_recalibrated(NEARLY) for name, world in PAPER_WORLDS.items()},
        "tied": {f"words, power {p:g}": World(_WORDS, Power(p)) for p in (1.0, 1.3, 2.0)},
        "non-monotone": {f"wave of {a:g}": World(Uniform(0.2, 1.0), Wave(a)) for a in (0.04, 0.08, 0.15)},
        "empirical": {
            name: _like(PAPER_WORLDS[name]) for name in ("resnet110_c10", "resnet110_c100", "resnet152_imgnet")
        },
    }


def _like(world: World) -> World:
    """The same curve on scores like 2000 draws of a world."""
    return World(Empirical(world.draw(2000, rng=0)[0][0]), world.curve)


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

    def draw(figure: Figure) -> None:
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
