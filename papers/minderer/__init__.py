"""Minderer et al., "Revisiting the calibration of modern neural networks" (2021, M).

Its figures compare many trained models, so that each is drawn from the store of a study: `truecal study import` reads the public
table of the paper's results, `truecal study run` evaluates predictions of one's own, and `truecal study figure NAME STORE` draws.
What needs no models of theirs is done here: the bias of a bin (equation 5) and why the sign of a trend depends on the number of
bins (Figure 9) by simulation, and the cost of abstaining (Figure 7) for two models of one's own, or two classifiers of digits.
"""

from dataclasses import replace

import numpy as np

import truecal as tc
from papers.drawing import Figure, heat, label_log_axis, panel, panels
from papers.experiment import Array, Experiment, Field, Setting, tidy
from papers.grading import Number, Quantities
from papers.roelofs import select
from truecal.lab import Beta, Cell, Frame, Power, World

_BIN_ROWS = (20, 50, 200)
_BITS = ((3.0, 1.04), (4.0, 1.09), (5.0, 1.15), (6.5, 1.22), (8.0, 1.3))  # Beta(alpha, 1) and T = c^d
_TEST_ROWS = 40_000  # 80 % of the ImageNet validation set
BINS = (15, 100, 5000)
_RATES = tuple(k / 10 for k in range(10))  # shares of cases not answered
_RATIOS = tuple(k / 10 for k in range(1, 11))  # cost of an abstention over that of an error


class _SquaredGap:
    """Squared difference of mean confidence and accuracy of a dataset taken as one bin."""

    name = "the squared gap of one bin"

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        return np.asarray((profile.scores.mean(axis=1) - profile.outcomes.mean(axis=1)) ** 2, dtype=np.float64)[None, :]


def equation_5(setting: Setting) -> Experiment:
    """Bias of the squared gap of a bin over simulated datasets, beside (V[A] + V[C] - 2 Cov[C, A]) / n."""
    name, world = setting.world_or("resnet110_c100")
    curve = world.curve.at  # type: ignore[union-attr]
    mean_c, mean_a = world.scores.expectation(lambda c, rest: c), world.accuracy()
    var_c = world.scores.expectation(lambda c, rest: c * c) - mean_c**2
    cov = world.scores.expectation(lambda c, rest: c * curve(c, rest)) - mean_c * mean_a
    var_a = mean_a * (1 - mean_a)
    run = replace(setting.run, cache=None)
    cells = [Cell(name, world, n, setting.m, (_SquaredGap(),)) for n in _BIN_ROWS]
    rows: list[tuple[Field, ...]] = []
    for cell, (answers,) in zip(cells, tc.lab.simulate(cells, rng=setting.rng, run=run), strict=True):
        bias = float(answers.mean()) - (mean_c - mean_a) ** 2
        se = float(answers.std(ddof=1)) / setting.m**0.5
        rows.append((cell.n, setting.m, bias, se, (var_a + var_c - 2 * cov) / cell.n, var_a / cell.n))
    table = tidy(("rows_in_bin", "m", "bias", "bias_se", "equation_5", "accuracy_alone"), rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        n = table["rows_in_bin"]
        axes.errorbar(n, table["bias"], 2 * table["bias_se"], fmt="o", label="simulated bias, two standard errors")
        axes.loglog(n, table["equation_5"], label="equation 5")
        axes.loglog(n, table["accuracy_alone"], "--", label="V[A] / n alone")
        label_log_axis(axes, n.tolist())
        axes.set(xlabel="rows in the bin", ylabel="bias of the squared gap", title=name)
        axes.legend(loc="lower left")

    return Experiment("minderer-eq5", "bias of the squared gap of a bin", table, draw)


def figure_9(setting: Setting) -> Experiment:
    """ECE against error of five simulated models, more accurate ones worse calibrated, with 15, 100 and 5000 bins of equal mass."""
    worlds = {f"model {k}": World(Beta(alpha, 1.0), Power(d)) for k, (alpha, d) in enumerate(_BITS)}
    grid = {str(b): tc.BinnedECE(bins=b, scheme="mass", norm=1, ties="split") for b in BINS}
    rows: list[tuple[Field, ...]] = []
    for t in setting.trials(grid, worlds, n=[_TEST_ROWS]):
        error = 1 - worlds[t.world_name].accuracy()
        rows.append((t.world_name, error, int(t.estimator_name), t.m, t.truth, t.mean, t.standard_error))
    table = tidy(("model", "error", "bins", "m", "true_ece", "ece", "ece_se"), rows)

    def draw(figure: Figure) -> None:
        for axes, bins in zip(panels(figure, len(BINS), share_y=False), BINS, strict=True):
            part = sorted(select(table, bins=bins), key=lambda r: float(r["error"]))
            axes.plot([r["error"] for r in part], [r["ece"] for r in part], "o-", label="ECE")
            axes.plot([r["error"] for r in part], [r["true_ece"] for r in part], "k:", label="true error")
            axes.set(title=f"{bins} bins", xlabel="classification error", ylabel="calibration error")
            axes.legend()

    return Experiment("minderer-fig9", "trend of ECE with error by number of bins, simulated models", table, draw)


def figure_7(setting: Setting) -> Experiment:
    """Cost of a first model relative to a second one, each of which does not answer the share of cases it is least confident of.

    The models are two given networks with the same labels, or logistic regression and naive Bayes on digits.
    """
    models = {name: network.test.preds for name, network in setting.data.items()} or _classifiers_of_digits()
    if len(models) != 2:
        raise tc.InputError(f"minderer-fig7 compares two models: give --data NAME=FILE twice, not {len(models)} times")
    (first, a), (second, b) = models.items()
    if not np.array_equal(a.labels, b.labels):
        raise tc.InputError(f"{first} and {second} have different labels; give predictions of the same rows")
    wrong = [preds.probs.argmax(axis=1) != preds.labels for preds in (a, b)]
    error_se = float(np.std(wrong[0] * 1.0 - wrong[1], ddof=1) / len(a) ** 0.5)
    curves = [tc.selective.risk_coverage(preds, resamples=2) for preds in (a, b)]
    rows: list[tuple[Field, ...]] = []
    for rate in _RATES:
        errors = [float(curve.at([1 - rate])[0]) * (1 - rate) for curve in curves]  # per case, answered or not
        for ratio in _RATIOS:
            costs = [error + ratio * rate for error in errors]
            relative = costs[0] / costs[1] - 1 if costs[1] > 0 else 0.0
            rows.append((first, second, rate, ratio, *costs, relative, error_se))
    table = tidy(("a", "b", "rate", "cost_ratio", "cost_a", "cost_b", "relative", "error_difference_se"), rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure, wide=True)
        numbers = table["relative"].reshape(len(_RATES), len(_RATIOS))[::-1].tolist()
        heat(axes, numbers, rows=[f"{rate:.0%}" for rate in _RATES[::-1]], columns=[f"{ratio:g}" for ratio in _RATIOS])
        axes.set(
            xlabel="cost of abstaining / cost of an error",
            ylabel="cases not answered",
            title=f"blue: {first} is cheaper",
        )

    return Experiment("minderer-fig7", f"cost of abstaining, {first} relative to {second}", table, draw)


def _classifiers_of_digits() -> dict[str, tc.Predictions]:
    """Logistic regression and naive Bayes on one half of scikit-learn's digits, judged on the other half."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    digits = load_digits()
    train, test = np.arange(len(digits.target)) % 2 == 0, np.arange(len(digits.target)) % 2 == 1
    return {
        name: tc.Predictions.from_probs(
            model.fit(digits.data[train] / 16, digits.target[train]).predict_proba(digits.data[test] / 16),
            digits.target[test],
        )
        for name, model in (
            ("logistic regression", LogisticRegression(max_iter=1000)),
            ("naive Bayes", GaussianNB(var_smoothing=1e-2)),
        )
    }


def read_figure_7(table: Frame) -> Quantities:
    """The difference of both errors, and up to which rate the first model is cheaper at every cost ratio (-1: at none)."""
    answered = select(table, rate=0.0, cost_ratio=1.0)[0]
    difference = answered["cost_a"] - answered["cost_b"]
    cheaper = [all(row["relative"] < 0 for row in select(table, rate=rate)) for rate in _RATES]
    last = cheaper.index(False) if False in cheaper else len(cheaper)
    return {
        "error_difference": Number(difference, answered["error_difference_se"]),
        "cheaper_up_to": Number(_RATES[last - 1] if last else -1.0),
    }


def read_equation_5(table: Frame) -> Quantities:
    (row,) = select(table, rows_in_bin=50)
    return {
        "bias_over_formula": Number(row["bias"] / row["equation_5"], row["bias_se"] / row["equation_5"]),
        "bias_over_accuracy_alone": Number(row["bias"] / row["accuracy_alone"], row["bias_se"] / row["accuracy_alone"]),
    }


def read_figure_9(table: Frame) -> Quantities:
    quantities = {}
    for bins in BINS:
        rows = select(table, bins=bins)
        error = np.array([row["error"] for row in rows])
        weights = (error - error.mean()) / np.sum((error - error.mean()) ** 2)
        slope = float(weights @ [row["ece"] for row in rows])
        quantities[f"slope_{bins}"] = Number(
            slope, float(np.sqrt(np.sum((weights * [r["ece_se"] for r in rows]) ** 2)))
        )
    return quantities
