"""Figure 2 of Roelofs et al. with the truth known: how often does each metric pick the better recalibration, in worlds?

A validation set is drawn from a world, three recalibrations are fitted to it, and every metric judges their outputs on a test set.
The true error of each fitted map is computed from the world, so that the pick can be called right or wrong.
"""

from dataclasses import dataclass

import numpy as np

import truecal as tc
from truecal.estimate import Estimator
from truecal.lab.papers.drawing import Figure
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.trials.batches import Cell
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import World
from truecal.recalibrate import Recalibrator

SIZES = (1500, 15_000)  # rows, a third of them to recalibrate: a tenth of the CIFAR splits, and all of them
METHODS = ("histogram", "scaling", "isotonic")
_GRID = 20_000  # evenly spaced quantiles of the raw scores on which the truth of a map is computed


def metrics() -> dict[str, Estimator]:
    """What could choose a recalibration; all in norm 1."""
    return {
        "EW": tc.BinnedECE(bins=15, norm=1),
        "EMsweep": tc.SweepECE(norm=1, ties="split"),
        "debiased": tc.DebiasedECE(bins=15, norm=1),
        "RankSeries": tc.RankSeries(norm=1),
    }


def _recalibrator(method: str) -> Recalibrator:
    if method == "histogram":
        return tc.HistogramBinning(bins=15, scheme="width", input="probs")
    return (
        tc.BetaCalibration(parameters=2, input="probs", clip=1e-7)
        if method == "scaling"
        else tc.IsotonicCalibration(input="probs")
    )


@dataclass(frozen=True)
class Choices:
    """For every dataset: the true l1 error of each fitted map, then each metric's estimate for each map."""

    world: World

    @property
    def name(self) -> str:
        return "the recalibration each metric prefers"

    def __call__(self, profile: tc.Profile, seed: np.random.SeedSequence) -> Array:
        rng = np.random.default_rng(seed)
        columns = [self._one(c, y, rng) for c, y in zip(profile.scores, profile.outcomes, strict=True)]
        return np.stack(columns, axis=1)

    def _one(self, c: Array, y: Array, rng: np.random.Generator) -> Array:
        order = rng.permutation(c.size)
        fit, judge = order[: c.size // 3], order[c.size // 3 :]
        raw, rest = self.world.scores.from_uniforms(((np.arange(_GRID) + 0.5) / _GRID)[None, :])
        truth = self.world.curve.at(raw, rest)  # type: ignore[union-attr]
        errors, estimates = [], []
        for method in METHODS:
            map_ = _recalibrator(method).fit(c[fit], y[fit].astype(np.int64))
            shown, group = np.unique(map_.predict_proba(raw)[:, 1], return_inverse=True)
            count = np.bincount(group)
            errors.append(float(np.sum(count * np.abs(shown - np.bincount(group, truth) / count))) / _GRID)
            judged = tc.Profile.from_arrays(map_.predict_proba(c[judge])[:, 1], y[judge])
            estimates.append([float(e.values(judged)[0]) for e in metrics().values()])
        return np.concatenate([errors, np.ravel(estimates, order="F")])


def figure_2_worlds(setting: Setting) -> Experiment:
    """How often each metric picks the recalibration of least true error, and how much true error a wrong pick costs."""
    cells = [Cell(name, world, n, setting.m, (Choices(world),)) for name, world in PAPER_WORLDS.items() for n in SIZES]
    rows: list[tuple[Field, ...]] = []
    for cell, (answers,) in zip(cells, setting.answers(cells), strict=True):
        true = answers[: len(METHODS)]
        for k, metric in enumerate(metrics()):
            first = len(METHODS) * (k + 1)
            pick = answers[first : first + len(METHODS)].argmin(axis=0)
            regret = 100 * (np.take_along_axis(true, pick[None, :], axis=0)[0] - true.min(axis=0))
            right = pick == true.argmin(axis=0)
            share = float(right.mean())
            error = float(np.sqrt(max(share * (1 - share), 1 / setting.m) / setting.m))
            rows.append((cell.name, cell.n, metric, setting.m, share, error, float(regret.mean())))
    table = tidy(("world", "n", "metric", "m", "right_share", "right_se", "regret_percent"), rows)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for n in SIZES:
            shares = [np.mean([r["right_share"] for r in table if (r["n"], r["metric"]) == (n, m)]) for m in metrics()]
            axes.plot(list(metrics()), shares, "o-", label=f"n = {n}")
        axes.set_ylabel("share of datasets in which the better recalibration is picked")
        axes.legend()

    return Experiment("roelofs-fig2-worlds", "how often a metric picks the better recalibration", table, draw)
