"""Kumar, Liang and Ma, "Verified uncertainty calibration": what needs no real model. Appendix E (Figures 8 to 11), the
illustration of Figure 1, Example 3.2, and Figure 2 in worlds whose true error is known.

Scores z are uniform and P(y = 1 | z) = sigmoid(2 logit z + 1). A recalibrator is fitted on n rows and its own squared
calibration error E[(output - P(y = 1 | output))^2] is computed, not estimated: on 10,000 evenly spaced z, where equal
outputs are taken together, since that is what calibration asks of a model that gives the same answer to all of them.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

import truecal as tc
from papers.drawing import TRUE_LINE, Figure, Line, banded, lines, panel, panels, shared_legend
from papers.experiment import Array, Experiment, Field, Setting, tidy
from truecal.estimators import Estimator
from truecal.lab import GLM, PAPER_WORLDS, Cell, Frame, Uniform, World
from truecal.recalibration import Recalibrator

Kind = Literal["histogram binning", "scaling-binning", "scaling"]
TRUTH = GLM("logit", "logit", 1.0, 2.0)
NOISE = 0.02
_POINTS = 10_000


@dataclass(frozen=True)
class SquaredError:
    """True squared calibration error of a recalibrator fitted on each dataset, scores uniform on [low, high].

    `noise` is the size of an extra, unlearnable +-noise on P(y = 1 | z), of either sign for each z. A fit sees only the
    average, so the data needs no change; a continuous output is off by noise^2 more, while outputs shared by many z average it
    out.
    """

    kind: Kind
    bins: int
    low: float = 0.0
    high: float = 1.0
    noise: float = 0.0

    @property
    def name(self) -> str:
        return f"the squared error of {self.kind} with {self.bins} bins"

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        z = self.low + (np.arange(_POINTS) + 0.5) / _POINTS * (self.high - self.low)
        results = [
            self._error(z, scores.astype(np.float64), outcomes)
            for scores, outcomes in zip(profile.scores, profile.outcomes, strict=True)
        ]
        return np.array(results)[None, :]

    def _error(self, z: Array, scores: Array, outcomes: Array) -> float:
        output = self.recalibrator().fit(scores, outcomes.astype(np.int64)).predict_proba(z)[:, 1]
        truth = TRUTH(z)
        if self.kind == "scaling":
            return float(np.mean((output - truth) ** 2)) + self.noise**2
        answers, group = np.unique(output, return_inverse=True)
        share = np.bincount(group) / z.size
        average = np.bincount(group, weights=truth) / z.size / share
        return float(np.sum(share * (answers - average) ** 2))

    def recalibrator(self) -> Recalibrator:
        if self.kind == "histogram binning":
            return tc.recalibration.HistogramBinning(bins=self.bins, input="probs")
        scaling = tc.recalibration.BetaCalibration(parameters=2, input="probs")
        return (
            scaling
            if self.kind == "scaling"
            else tc.recalibration.ScalingBinning(bins=self.bins, input="probs", scaling=scaling)
        )


_E_COLUMNS = ("calibrator", "n", "bins", "m", "squared_error", "squared_error_se", "low_90", "high_90")
_NORMAL = 1.6449  # of a 90 % interval


def _mean_row(errors: Array) -> tuple[float, float, float, float]:
    """Mean, its standard error and its 90 % interval."""
    mean, se = float(errors.mean()), float(errors.std(ddof=1)) / float(np.sqrt(errors.size))
    return mean, se, mean - _NORMAL * se, mean + _NORMAL * se


def appendix_e_a(setting: Setting) -> Experiment:
    """(A) 1/error^2 of both calibrators over n at 10 bins (Figure 8), and over bins at n = 2000 (Figure 9)."""
    m = setting.m
    settings = [(n, 10) for n in (500, 1000, 2000, 4000)] + [(2000, b) for b in (5, 20, 40)]
    kinds: tuple[Kind, ...] = ("histogram binning", "scaling-binning")
    world = World(Uniform(), TRUTH)
    cells = [Cell("a=2, c=1", world, n, m, tuple(SquaredError(kind, b) for kind in kinds)) for n, b in settings]
    rows: list[tuple[Field, ...]] = []
    for (n, b), answers in zip(settings, setting.answers(cells), strict=True):
        for kind, errors in zip(kinds, answers, strict=True):
            rows.append((kind, n, b, m, *_mean_row(errors)))
    table = tidy(_E_COLUMNS, rows)

    def draw(figure: Figure) -> None:
        drawn = [(kind, by) for by in ("n", "bins") for kind in kinds]
        for axes, (kind, by) in zip(panels(figure, 4, columns=2, share_y=False), drawn, strict=True):
            part = [r for r in table if r["calibrator"] == kind and (r["bins"] == 10 if by == "n" else r["n"] == 2000)]
            part.sort(key=lambda r: float(r[by]))
            xs, ys, low, high = (
                [float(r[by]) for r in part],
                *([1 / float(r[name]) for r in part] for name in ("squared_error", "high_90", "low_90")),
            )
            lines(axes, {"": (xs, ys, low, high)}, title=kind, x=by, y="1 / squared error", legend=False)
            axes.set_ylim(bottom=0)

    return Experiment("kumar-e-a", "squared calibration error of the calibrators", table, draw)


def appendix_e_b(setting: Setting) -> Experiment:
    """(B) Noise of +-0.02 on uniform [0.25, 0.75] scores: binning measures and averages out what scaling cannot see."""
    m = setting.m
    kinds: tuple[Kind, ...] = ("scaling", "scaling-binning")
    sizes = (500, 1000, 2000, 3000, 5000)
    world = World(Uniform(0.25, 0.75), TRUTH)
    questions = tuple(SquaredError(kind, 10, 0.25, 0.75, NOISE) for kind in kinds)
    cells = [Cell("a=2, c=1, noise", world, n, m, questions) for n in sizes]
    rows: list[tuple[Field, ...]] = []
    for n, answers in zip(sizes, setting.answers(cells), strict=True):
        for kind, errors in zip(kinds, answers, strict=True):
            rows.append((kind, n, 10, m, *_mean_row(errors)))
    table = tidy(_E_COLUMNS, rows)

    def draw(figure: Figure) -> None:
        curves: dict[str, Line] = {}
        for kind in kinds:
            part = [r for r in table if r["calibrator"] == kind]
            curves[kind] = banded(part, "n", "squared_error")
        lines(panel(figure), curves, x="samples to recalibrate", y="squared calibration error")

    return Experiment("kumar-e-b", "scaling-binning against the scaling it bins", table, draw)


def figure_2_worlds(setting: Setting) -> Experiment:
    """The binned error of a recalibrated model grows with the number of bins towards (and past) the true error.

    The models are the Platt-scaled worlds of resnet110_c10 and resnet_wide32_c100; n = 25,000 as in the paper.
    """
    m = setting.m
    bins = (2, 4, 8, 15, 32, 64, 128)
    raw = setting.worlds_or({name: PAPER_WORLDS[name] for name in ("resnet110_c10", "resnet_wide32_c100")})
    worlds = {name: world.platt_scaled() for name, world in raw.items()}
    grid: dict[str, Estimator] = {}
    for b in bins:
        grid[f"plugin {b}"] = tc.BinnedECE(bins=b, scheme="mass", norm=2)
        grid[f"debiased {b}"] = tc.DebiasedECE(bins=b, norm=2)
    rows: list[tuple[Field, ...]] = []
    for t in replace(setting, own={}).trials(grid, worlds, n=[25_000]):
        kind, b_text = t.estimator_name.split()
        low, high = np.quantile(t.values, (0.05, 0.95))
        ours = (100 * t.mean, 100 * t.standard_error, 100 * float(low), 100 * float(high))
        rows.append((t.world_name, kind, int(b_text), t.n, m, 100 * t.truth, *ours))
    columns = ("world", "estimator", "bins", "n", "m", "truth_percent", "mean_percent", "mean_se", "low_90", "high_90")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        for axes, name in zip(panels(figure, len(worlds), columns=2, share_y=False), worlds, strict=True):
            curves: dict[str, Line] = {}
            for kind in ("plugin", "debiased"):
                part = [r for r in table if (r["world"], r["estimator"]) == (name, kind)]
                curves[kind] = banded(part, "bins", "mean_percent")
            axes.axhline(100 * worlds[name].true_error(), **TRUE_LINE)
            lines(axes, curves, title=name, x="bins", y="binned error (%)", log_x=True)

    return Experiment("kumar-fig2-worlds", "binned error by number of bins; green: the true error", table, draw)


def figure_1(setting: Setting) -> Experiment:
    """The three approaches on 60 rows with 4 bins: labels, and the outputs of scaling, histogram binning and scaling-binning."""
    scores, outcomes = World(Uniform(), TRUTH).draw(60, 1, rng=setting.rng)
    grid = (np.arange(200) + 0.5) / 200
    kinds: tuple[Kind, ...] = ("scaling", "histogram binning", "scaling-binning")
    columns = {"z": grid, "truth": TRUTH(grid)}
    for kind in kinds:
        fitted = SquaredError(kind, 4).recalibrator().fit(scores[0], outcomes[0].astype(np.int64))
        columns[kind] = np.asarray(fitted.predict_proba(grid)[:, 1], dtype=np.float64)
    table = Frame(columns)

    def draw(figure: Figure) -> None:
        for axes, kind in zip(panels(figure, 3), kinds, strict=True):
            axes.plot(scores[0], outcomes[0], "kx", label="labels")
            axes.plot(grid, columns["truth"], label="P(y = 1 | score)", **TRUE_LINE)
            axes.plot(grid, columns[kind], label="output")
            axes.set(title=kind, xlabel="score", ylabel="probability")
        shared_legend(figure, axes)

    return Experiment("kumar-fig1", "three approaches to recalibration", table, draw)


def figure_10(setting: Setting) -> Experiment:
    """P(Y = 1 | z) of experiments (A) and (B); in (B) each z has +-0.02 of its own."""
    z = (np.arange(400) + 0.5) / 400
    inner = 0.25 + z / 2
    sign = np.where(
        np.random.default_rng(setting.rng if isinstance(setting.rng, int) else 0).random(z.size) < 0.5, -1, 1
    )
    table = Frame({"z_a": z, "p_a": TRUTH(z), "z_b": inner, "p_b": TRUTH(inner) + NOISE * sign})

    def draw(figure: Figure) -> None:
        left, right = panels(figure, 2, columns=2)
        lines(left, {"": (z.tolist(), table["p_a"].tolist())}, title="(A)", x="z", y="P(Y = 1 | z)", legend=False)
        right.plot(inner, table["p_b"], ".", markersize=1)
        right.set(xlabel="z", title="(B)")

    return Experiment("kumar-fig10", "P(Y = 1 | z) of the synthetic experiments", table, draw)


def example_3_2(setting: Setting) -> Experiment:
    """A model whose binned error is 0 and whose error is 0.49 or more, for any number of equal-width bins.

    Scores are two million evenly spaced points of [0.49, 0.51]. P(y) is 1 where the running sum of scores passes a whole number,
    else 0: over any stretch of scores it is their mean, and it is never nearer to a score than 0.49.
    """
    points = 2_000_000
    position = (np.arange(points) + 0.5) / points
    c = 0.49 + 0.02 * position
    truth = np.diff(np.floor(np.cumsum(c)), prepend=0.0)
    rows: list[tuple[Field, ...]] = []
    for bins in (1, 2, 5, 15, 100):
        within = np.floor(position * bins).astype(np.intp)
        gap = np.bincount(within, c - truth, bins) / np.bincount(within, minlength=bins)
        rows.append((bins, float(np.abs(gap).mean()), float(np.abs(c - truth).mean())))
    table = tidy(("bins", "binned_error_l1", "true_error_l1"), rows)

    def draw(figure: Figure) -> None:
        bins = [float(b) for b in table["bins"]]
        curves: dict[str, Line] = {
            f"{kind} error": (bins, table[f"{kind}_error_l1"].tolist()) for kind in ("binned", "true")
        }
        lines(panel(figure), curves, x="bins", y="l1 error", log_x=True)

    return Experiment("kumar-ex3.2", "a binned error of 0 and a true error of 0.5", table, draw)
