"""Roelofs et al., appendix A: the fits (Tables 1 and 2), their check (Table 3), and Figures 3 and 5.

Every table has two readings. "as printed" repeats what the authors did, as their published code shows: the softmax is computed in
float32 as exp(x - logsumexp x), half of the top scores round to exactly 1, and 1e-16 is subtracted from those for the Beta, while
the curves drop them. The printed Beta is that of this rounding. Table 3 takes the ECE of the validation split, and simulates 1000
rows from the printed Beta and a curve fitted on the validation split: 100 datasets, from the seeds of the published code, give the
printed mean to its last digit (the caption says 1000), and more datasets a lower one. "as it should be" counts a score of 1 as
one below the resolution, fits the test split, and simulates as many rows as there are. "printed parameters" simulates 1000 rows, as
the authors did, from the rounded parameters of Tables 1 and 2.

Networks that are not given with --data are replaced by data simulated from their printed world.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

import truecal as tc
from papers.drawing import TRUE_LINE, Figure, lines, panel, panels, shared_legend
from papers.experiment import Array, Experiment, Field, Network, Outputs, Setting, tidy
from papers.roelofs.bias import EW
from truecal.lab import GLM, PAPER_WORLDS, Beta, BetaFit, CurveFit, Frame, Power, World, dataset_of, fit_world

AS_PRINTED, AS_IT_SHOULD_BE, SIMULATED = "as printed", "as it should be", "simulated data"
MORE_DATASETS, PRINTED_PARAMETERS = "as printed, more datasets", "printed parameters"
_PRINTED_ROWS, _PRINTED_DATASETS, _PRINTED_SEED = 1000, 100, 47  # behind the simulated column of Table 3
# Columns of Table 2 from bootstraps of the rows.
_BOOTSTRAPPED = ("m", *(f"{name}_{part}" for name in ("aic", "b0", "b1", "above_best") for part in ("mean", "sd")))
_DATASETS = 10_000  # of 1000 rows, for a standard error of 0.013
# Table 2: curve, AIC, b0 and b1 of resnet110_c10, the network whose outputs are public; the row of lowest AIC of the others is the
# curve of PAPER_WORLDS.
RESNET110_C10: Mapping[str, tuple[float, float | None, float | None]] = MappingProxyType(
    {
        "logflip_logflip_b0_b1": (2779.22, -0.24, 0.30),
        "logit_logflip_b0_b1": (2790.40, -0.55, -0.38),
        "logit_logflip_b1": (2827.51, None, -0.31),
        "logit_logit_b0_b1": (2840.70, -0.38, 0.36),
        "logit_logit_b1": (2900.02, None, 0.30),
        "logflip_logflip_b1": (2932.09, None, 0.34),
        "log_log_b0_b1": (3221.72, -0.06, 2.53),
        "logit_logit_b0": (3799.63, 1.99, None),
        "logflip_logflip_b0": (3811.98, -2.13, None),
        "log_log_b0": (3829.05, -0.13, None),
        "logit_logflip_b0": (3868.40, 1.95, None),
        "log_log_b1": (4281.78, None, 4.75),
    }
)

# Table 3: equal-width ECE (norm 2, percent) on the networks' own outputs, and averaged over simulations.
TABLE_3: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "resnet110_c10": (6.67, 8.42),
        "resnet110_SD_c10": (6.54, 8.79),
        "resnet_wide32_c10": (6.09, 8.44),
        "densenet40_c10": (6.70, 8.09),
        "resnet110_c100": (20.26, 18.87),
        "resnet110_SD_c100": (17.44, 15.78),
        "resnet_wide32_c100": (20.40, 17.53),
        "densenet40_c100": (23.12, 19.69),
        "resnet152_imgnet": (6.85, 9.26),
        "densenet161_imgnet": (6.15, 6.87),
    }
)


def printed_world(name: str) -> tuple[Beta, GLM]:
    """The Beta of Table 1 and the curve of lowest AIC of Table 2, as printed."""
    world = PAPER_WORLDS[name]
    assert isinstance(world.scores, Beta)
    assert isinstance(world.curve, GLM)
    return world.scores, world.curve


def evaluation_size(world_name: str) -> int:
    """Rows of the papers' evaluation sets: 10,000 for CIFAR, 25,000 for ImageNet."""
    return 25_000 if dataset_of(world_name) == "ImageNet" else 10_000


def single_precision_top(outputs: Outputs) -> tuple[Array, Array]:
    """Top scores by exp(x - logsumexp x) in float32, and whether they came true."""
    x = outputs.logits_or_logs().astype(np.float32)
    largest = x.max(axis=1, keepdims=True)
    log_sum = np.log(np.sum(np.exp(x - largest), axis=1, keepdims=True, dtype=np.float32)) + largest
    probs = np.exp(x - log_sum)
    right = probs.argmax(axis=1) == outputs.preds.labels
    return np.minimum(probs.max(axis=1), np.float32(1)).astype(np.float64), right.astype(np.float64)


@dataclass(frozen=True)
class Reading:
    """One way to read a network: its Beta, its curves, and how many of its scores are exactly 1."""

    name: str
    beta: BetaFit
    curves: tuple[CurveFit, ...]
    ones: int


def _as_printed(outputs: Outputs) -> Reading:
    top, right = single_precision_top(outputs)
    ones = top == 1
    beta = fit_world(tc.profile.Profile.from_arrays(np.where(ones, 1.0 - 1e-16, top), right)).beta
    curves = fit_world(tc.profile.Profile.from_arrays(top[~ones], right[~ones])).curves
    return Reading(AS_PRINTED, beta, curves, int(ones.sum()))


def _as_it_should_be(profile: tc.profile.Profile, name: str) -> Reading:
    fit = fit_world(profile)
    return Reading(name, fit.beta, fit.curves, int(fit.beta.ones))


def readings(name: str, setting: Setting) -> list[Reading]:
    """Both readings of a given network, or the fit to data simulated from the printed world."""
    if name in setting.data:
        outputs = setting.data[name].test
        return [_as_printed(outputs), _as_it_should_be(tc.profile.Profile.from_arrays(*outputs.top()), AS_IT_SHOULD_BE)]
    scores, outcomes = PAPER_WORLDS[name].draw(evaluation_size(name), 1, rng=setting.rng)
    return [_as_it_should_be(tc.profile.Profile.from_arrays(scores[0], outcomes[0]), SIMULATED)]


def table_1(setting: Setting) -> Experiment:
    """The Beta of every network."""
    rows: list[tuple[Field, ...]] = []
    for name in PAPER_WORLDS:
        printed, _ = printed_world(name)
        for reading in readings(name, setting):
            beta = reading.beta
            ours = (beta.scores.alpha, beta.alpha_standard_error, beta.scores.beta, beta.beta_standard_error)
            rows.append((name, reading.name, *ours, reading.ones, printed.alpha, printed.beta))
    columns = ("world", "reading", "alpha", "alpha_se", "beta", "beta_se", "scores_of_1", "paper_alpha", "paper_beta")
    return _against_print("roelofs-tab1", "Beta fits", tidy(columns, rows), "alpha")


def table_2(setting: Setting) -> Experiment:
    """Every candidate curve of every network, best AIC first, and means over bootstraps of the rows where print has those."""
    rows: list[tuple[Field, ...]] = []
    for name in PAPER_WORLDS:
        for reading in readings(name, setting):
            drawn = _bootstrapped_curves(setting.data[name].test, setting) if reading.name == AS_PRINTED else {}
            for rank, c in enumerate(reading.curves, start=1):
                means = drawn.get(c.name, (None,) * len(_BOOTSTRAPPED))
                ours = (c.aic, c.curve.b0, c.b0_standard_error, c.curve.b1, c.b1_standard_error)
                rows.append((name, reading.name, rank, c.name, *ours, *means, *_printed_curve(name, c)))
    columns = (
        *("world", "reading", "place", "curve", "aic", "b0", "b0_se", "b1", "b1_se"),
        *_BOOTSTRAPPED,
        *("paper_aic", "paper_b0", "paper_b1"),
    )
    return _against_print("roelofs-tab2", "calibration curves by AIC", tidy(columns, rows), "b1")


def _printed_curve(name: str, fit: CurveFit) -> tuple[float | None, float | None, float | None]:
    if name == "resnet110_c10":
        return RESNET110_C10.get(fit.name, (None, None, None))
    _, best = printed_world(name)
    terms = "b0_b1" if best.b0 else "b1"
    if (fit.curve.link, fit.curve.transform, fit.terms) == (best.link, best.transform, terms):
        return None, best.b0, best.b1
    return None, None, None


def _bootstrapped_curves(outputs: Outputs, setting: Setting) -> dict[str, tuple[float, ...]]:
    """Number of bootstraps, and mean and standard deviation of AIC, b0, b1 and AIC less that of the printed best curve.

    As in the published code, all rows are resampled and scores of 1 are dropped afterwards. The authors take ten bootstraps of its
    own for every curve; here all curves see the same ones, so that their AICs can be compared.
    """
    top, right = single_precision_top(outputs)
    rng = setting.stream(0)
    drawn: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range(setting.m):
        rows = rng.integers(0, top.size, top.size)
        rows = rows[top[rows] < 1]
        for fit in fit_world(tc.profile.Profile.from_arrays(top[rows], right[rows])).curves:
            drawn.setdefault(fit.name, []).append((fit.aic, fit.curve.b0, fit.curve.b1))
    aic_of_best = np.array(drawn[next(iter(RESNET110_C10))])[:, 0]
    numbers = {}
    for name, values in drawn.items():
        columns = [*np.array(values).T, np.array(values)[:, 0] - aic_of_best]
        numbers[name] = (setting.m, *(float(f(column)) for column in columns for f in (np.mean, np.std)))
    return numbers


@dataclass(frozen=True)
class _Check:
    """A row of Table 3: the ECE of the data, and of m datasets of n rows from a world, where not already known in percent."""

    name: str
    reading: str
    on_data: float | None
    world: World
    n: int
    m: int
    known: Array | None = None


def table_3(setting: Setting) -> Experiment:
    """Equal-width ECE (norm 2) on the data, and averaged over simulated datasets; also Figure 5c."""
    checks = [check for name in TABLE_3 for check in _checks(name, setting)]
    rows: list[tuple[Field, ...]] = []
    with setting.run.with_pool() as run:
        for check in checks:
            values = check.known
            if values is None:
                fewer = replace(setting, m=check.m, run=run)
                values = (
                    100
                    * fewer.trials({"EW": EW}, {f"{check.name} {check.reading}": check.world}, n=[check.n])[0].values
                )
            paper_data, paper_simulated = TABLE_3[check.name]
            simulated = (float(values.mean()), float(values.std(ddof=1)) / values.size**0.5, paper_simulated)
            rows.append((check.name, check.reading, check.m, check.on_data, paper_data, check.n, *simulated))
    columns = (
        *("world", "reading", "m", "ece_percent", "paper_ece", "n"),
        *("simulated_percent", "simulated_se", "paper_simulated"),
    )
    return _against_print(
        "roelofs-tab3", "ECE on simulated data", tidy(columns, rows), "simulated_percent", "paper_simulated"
    )


def figure_5c(setting: Setting) -> Experiment:
    """ECE on the data against ECE averaged over datasets simulated from the fits, as in Table 3."""
    table = table_3(setting).table

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        axes.axline((5, 5), slope=1, **TRUE_LINE)
        printed_rows = [r for r in table if r["reading"] == PRINTED_PARAMETERS]
        for dataset in dict.fromkeys(dataset_of(r["world"]) for r in printed_rows):
            part = [r for r in printed_rows if dataset_of(r["world"]) == dataset]
            axes.errorbar(
                [r["paper_ece"] for r in part],
                [r["simulated_percent"] for r in part],
                [2 * r["simulated_se"] for r in part],
                fmt="o",
                label=dataset,
            )
        axes.set(xlabel="ECE on the data (%), as printed", ylabel="ECE on 1000 simulated rows (%)", aspect="equal")
        axes.legend()

    return Experiment("roelofs-fig5c", "ECE on data and on simulated data", table, draw)


def _checks(name: str, setting: Setting) -> list[_Check]:
    """Every reading of one network."""
    checks = []
    if name in setting.data:
        network = setting.data[name]
        printed, proper = readings(name, setting)
        on_validation, curve = _on_validation(network)
        published = _published_stream(printed.beta.scores, curve)
        world = World(printed.beta.scores, curve)
        checks += [
            _Check(name, AS_PRINTED, on_validation, world, _PRINTED_ROWS, published.size, published),
            _Check(name, MORE_DATASETS, on_validation, world, _PRINTED_ROWS, _DATASETS),
        ]
        on_test = 100 * float(EW.values(tc.profile.Profile.from_arrays(*network.test.top()))[0])
        world = World(proper.beta.scores, proper.curves[0].curve)
        checks.append(_Check(name, AS_IT_SHOULD_BE, on_test, world, len(network.test.preds), setting.m))
    return [*checks, _Check(name, PRINTED_PARAMETERS, None, PAPER_WORLDS[name], _PRINTED_ROWS, setting.m)]


def _on_validation(network: Network) -> tuple[float, GLM]:
    """ECE (percent) and curve of the validation split, which Table 3 takes beside the Beta of the test split."""
    fit = network.held_out("roelofs-tab3 as printed")
    on_data = 100 * float(EW.values(tc.profile.Profile.from_arrays(*fit.top()))[0])
    chosen = next(iter(RESNET110_C10))
    return on_data, next(c.curve for c in _as_printed(fit).curves if c.name == chosen)


def _published_stream(scores: Beta, curve: GLM) -> Array:
    """The ECEs (percent) of the datasets behind the printed mean: the first number of a seed gives the next one, then every row
    takes a number that is not used, its score and its outcome.
    """
    seed = _PRINTED_SEED
    values = np.empty(_PRINTED_DATASETS)
    for number in range(_PRINTED_DATASETS):
        stream = np.random.RandomState(seed)
        seed = int(10_000_000 * stream.rand())
        drawn = [(stream.rand(), stream.beta(scores.alpha, scores.beta), stream.rand()) for _ in range(_PRINTED_ROWS)]
        _, c, u = np.array(drawn).T
        values[number] = 100 * EW.values(tc.profile.Profile.from_arrays(c, u < curve(c)))[0]
    return values


def figure_3(setting: Setting) -> Experiment:
    """What controls the true error: a density of scores and a curve, here Beta(2.8, 0.05) and T = c^2."""
    world = World(Beta(2.8, 0.05), Power(2))
    c = np.linspace(0.005, 0.995, 199)
    table = Frame({"score": c, "density": _density(Beta(2.8, 0.05), c), "accuracy": c**2, "gap": c - c**2})

    def draw(figure: Figure) -> None:
        left, right = panels(figure, 2, columns=2, share_y=False)
        left.semilogy(c, table["density"])
        left.set(xlabel="score", ylabel="density")
        lines(right, {"T(c) = c^2": (c.tolist(), table["accuracy"].tolist())}, x="score", y="P(correct)")
        right.axline((0, 0), slope=1, **TRUE_LINE)

    errors = f"{100 * world.true_error(1):.2f} % (l1), {100 * world.true_error(2):.2f} % (l2)"
    return Experiment("roelofs-fig3", f"a world: true error {errors}", table, draw)


def figure_5(setting: Setting) -> Experiment:
    """(a) densities and (b) curves of the ten printed worlds; (c) is `roelofs-tab3`."""
    c = np.linspace(0.005, 0.995, 100)
    records: list[dict[str, Any]] = [
        {"world": name, "dataset": dataset_of(name), "score": float(x), "density": float(d), "accuracy": float(t)}
        for name in PAPER_WORLDS
        for x, d, t in zip(c, _density(printed_world(name)[0], c), printed_world(name)[1](c), strict=True)
    ]
    table = Frame.from_records(records)

    def draw(figure: Figure) -> None:
        left, right = panels(figure, 2, columns=2, share_y=False, height=2.6)
        dashes = {"CIFAR-10": "-", "CIFAR-100": "--", "ImageNet": ":"}
        for name in PAPER_WORLDS:
            part = [r for r in records if r["world"] == name]
            (drawn,) = left.semilogy(c, [r["density"] for r in part], dashes[dataset_of(name)], label=name)
            right.plot(c, [r["accuracy"] for r in part], dashes[dataset_of(name)], color=drawn.get_color())
        left.set(xlabel="score", ylabel="density")
        right.set(xlabel="score", ylabel="P(correct)")
        right.axline((0, 0), slope=1, **TRUE_LINE)
        shared_legend(figure, left)

    return Experiment("roelofs-fig5", "fitted densities and calibration curves, ten networks", table, draw)


def _density(scores: Beta, c: Array) -> Array:
    from scipy.special import betaln

    log = (scores.alpha - 1) * np.log(c) + (scores.beta - 1) * np.log1p(-c) - betaln(scores.alpha, scores.beta)
    return np.asarray(np.exp(log))


def _against_print(name: str, title: str, table: Frame, ours: str, paper: str = "") -> Experiment:
    """Our numbers over the printed ones, by reading of the data."""
    paper = paper or f"paper_{ours}"
    comparable = [row for row in table if row[paper] is not None and row[paper] == row[paper]]

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        axes.axline((comparable[0][paper],) * 2, slope=1, **TRUE_LINE)
        for k, reading in enumerate(dict.fromkeys(row["reading"] for row in comparable)):
            part = [row for row in comparable if row["reading"] == reading]
            axes.plot([row[paper] for row in part], [row[ours] for row in part], "os^v"[k % 4], label=reading)
        words = {"simulated_percent": "simulated ECE (%)"}.get(ours, ours)
        axes.set(xlabel=f"{words}, as printed", ylabel=f"{words}, ours")
        axes.legend()

    return Experiment(name, title, table, draw)
