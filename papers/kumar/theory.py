"""Kumar et al., what theorems and lemmas say in numbers: sample complexity, balanced bins, mean squared errors, bounds.

The theorems have constants that are not printed; what can be checked is how the number of rows grows. The lemmas of their proofs
print theirs.
"""

from collections.abc import Callable
from math import inf, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

import truecal as tc
from papers.drawing import Figure, label_log_axis, lines, panel, panels
from papers.experiment import Array, Experiment, Field, Setting, the_network, tidy
from papers.kumar.synthetic import TRUTH
from truecal.lab import Power, Uniform, World

Counts = npt.NDArray[Any]
BINS = (64, 256, 1024, 4096)
GAP = 0.05  # |output - rate| of every output: the calibration error
FAILURE = 0.1  # delta
_REPLICATES = 4
_STEPS = 9  # of bisection: rows to within a factor of 1.02
BALANCED_BINS = (10, 30, 100, 300)


def _least(enough: Callable[[int], bool], low: float, high: float) -> int:
    """The smallest number of rows (to a factor of 1.02) for which `enough` holds."""
    a, b = log(low), log(high)
    for _ in range(_STEPS):
        middle = (a + b) / 2
        if enough(round(np.exp(middle))):
            b = middle
        else:
            a = middle
    return round(np.exp(b))


def squared_estimates(counts: Counts, ones: Counts, outputs: Array) -> tuple[Array, Array]:
    """Plug-in and debiased squared error (definitions 5.1 and 5.2) of datasets given by counts of outputs, shape (m, B)."""
    n = counts.sum(axis=1, keepdims=True)
    rate = ones / np.maximum(counts, 1)
    plugin = np.sum(counts / n * (outputs - rate) ** 2, axis=1)
    noise = np.where(counts > 1, rate * (1 - rate) / np.maximum(counts - 1, 1), 0.0)
    return plugin, plugin - np.sum(counts / n * noise, axis=1)


def _close_enough(kind: int, bins: int, rng: np.random.Generator, m: int) -> Callable[[int], bool]:
    outputs = (np.arange(bins) + 0.5) / bins
    rates = np.clip(outputs + GAP * np.where(outputs < 0.5, 1, -1), 0, 1)
    truth = float(np.mean((outputs - rates) ** 2))

    def enough(n: int) -> bool:
        counts = rng.multinomial(n, np.full(bins, 1 / bins), m)
        estimates = squared_estimates(counts, rng.binomial(counts, rates), outputs)[kind]
        return bool(np.mean(np.abs(estimates - truth) <= truth / 2) >= 1 - FAILURE)

    return enough


def rows_needed(setting: Setting) -> Experiment:
    """Theorems 5.3 and 5.4: rows with which an estimate is within half of the squared error with probability 0.9, by B.

    B outputs of equal probability, each 0.05 off. Four replicates give the standard errors of the slopes.
    """
    rows: list[tuple[Field, ...]] = []
    m = max(setting.m // _REPLICATES, 2)
    for k, kind in enumerate(("plugin", "debiased")):
        for bins in BINS:
            for replicate in range(_REPLICATES):
                enough = _close_enough(k, bins, setting.stream(k, bins, replicate), m)
                rows.append((kind, bins, replicate, setting.m, _least(enough, 500, 5e6)))
    table = tidy(("estimator", "bins", "replicate", "m", "rows"), rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        for kind, exponent in (("plugin", 1.0), ("debiased", 0.5)):
            means = [np.mean([r["rows"] for r in table if (r["estimator"], r["bins"]) == (kind, b)]) for b in BINS]
            axes.loglog(BINS, means, "o-", label="plug-in" if kind == "plugin" else kind)
            guide = [means[-1] * (b / BINS[-1]) ** exponent for b in BINS]
            axes.loglog(BINS, guide, ":", color="grey", label=f"slope {exponent:g}")
        axes.set(xlabel="number of outputs B", ylabel="rows needed")
        axes.legend()

    return Experiment("kumar-rows", "rows needed to know the squared error within a half", table, draw)


def balance(setting: Setting) -> Experiment:
    """Lemma 4.3: rows with which equal-mass bins are 2-well-balanced with probability 0.9, by B."""
    rows: list[tuple[Field, ...]] = []
    m = max(setting.m // _REPLICATES, 2)
    for bins in BALANCED_BINS:
        for replicate in range(_REPLICATES):
            rng = setting.stream(bins, replicate)

            def balanced(n: int, bins: int = bins, rng: np.random.Generator = rng) -> bool:
                # Masses between order statistics n/B apart are Dirichlet.
                masses = rng.dirichlet(np.diff(np.round(np.linspace(0, n + 1, bins + 1))), m) * bins
                return bool(np.mean((masses <= 2).all(axis=1) & (masses >= 0.5).all(axis=1)) >= 1 - FAILURE)

            needed = _least(balanced, 3 * bins, 200 * bins)
            rows.append((bins, replicate, setting.m, needed, needed / (bins * log(bins / FAILURE))))
    table = tidy(("bins", "replicate", "m", "rows", "constant"), rows)

    def draw(figure: Figure) -> None:
        axes = panel(figure)
        axes.loglog(table["bins"], table["rows"], "o", label="rows needed")
        x = np.array(BALANCED_BINS, dtype=float)
        constant = float(np.mean(table["constant"].astype(float)))
        axes.loglog(x, constant * x * np.log(x / FAILURE), ":", color="grey", label=f"{constant:.1f} B log(B / 0.1)")
        axes.set(xlabel="bins B", ylabel="rows")
        axes.legend()

    return Experiment("kumar-balance", "rows with which bins are 2-well-balanced", table, draw)


def inequalities(setting: Setting) -> Experiment:
    """Lemmas D.5, D.6 and Proposition D.4 on random functions: the largest left side less right side must not exceed 0.

    D.5 takes two random functions and a random P(y); D.6 a random g and bins of equal mass; D.4 the bins and means of 4000 sampled
    rows, where MSE - MSE(g) times B is bounded.
    """
    z = (np.arange(2000) + 0.5) / 2000
    rng = setting.stream(0)
    rows: list[tuple[Field, ...]] = []

    def mse(output: Array, truth: Array) -> float:
        return float(np.mean((output - truth) ** 2 + truth * (1 - truth)))

    for k in range(setting.m):
        f, g, truth = (_random_curve(z, rng) for _ in range(3))
        rows.append(("D.5", k, 0, mse(f, truth) - mse(g, truth) - 2 * float(np.mean(np.abs(f - g)))))
        for bins in (2, 5, 20, 100):
            group = np.empty(z.size, dtype=np.intp)
            group[np.argsort(g, kind="stable")] = np.arange(z.size) * bins // z.size
            binned = (np.bincount(group, g) / np.bincount(group))[group]
            rows.append(("D.6", k, bins, mse(binned, truth) - mse(g, truth) - 2 / bins))
        for bins in (5, 20, 100):
            sampled = np.sort(TRUTH(rng.random(4000)))
            edges = sampled[np.arange(1, bins) * 4000 // bins]
            means = np.array([part.mean() for part in np.split(sampled, np.searchsorted(sampled, edges))])
            curve = TRUTH(z)
            output = means[np.searchsorted(edges, curve, side="right")]
            rows.append(("D.4", k, bins, bins * (mse(output, curve) - mse(curve, curve))))
    table = tidy(("lemma", "draw", "bins", "left_less_right"), rows)

    def draw(figure: Figure) -> None:
        by_lemma = {lemma: [r for r in table if r["lemma"] == lemma] for lemma in ("D.5", "D.6", "D.4")}
        first, *others = panels(figure, 3, share_y=False)
        first.hist([r["left_less_right"] for r in by_lemma["D.5"]], bins=30)
        first.axvline(0, color="grey", linestyle="--", linewidth=0.8)
        first.set(title="Lemma D.5", xlabel="left less right side", ylabel="draws")
        words = {"D.6": ("Lemma D.6", "left less right side"), "D.4": ("Proposition D.4", "B times the rise of MSE")}
        for axes, (lemma, (title, label)) in zip(others, words.items(), strict=True):
            bins = [r["bins"] for r in by_lemma[lemma]]
            axes.plot(bins, [r["left_less_right"] for r in by_lemma[lemma]], ".", markersize=2)
            axes.axhline(0, color="grey", linestyle="--", linewidth=0.8)
            axes.set(title=title, xlabel="bins B", ylabel=label)
            label_log_axis(axes, sorted({float(b) for b in bins}))

    return Experiment("kumar-inequalities", "Lemmas D.5, D.6 and Proposition D.4 on random functions", table, draw)


def _random_curve(z: Array, rng: np.random.Generator) -> Array:
    """A function from [0, 1] to [0, 1]: a few random steps and waves."""
    waves = sum(rng.normal() * np.sin(2 * np.pi * rng.integers(1, 6) * z + rng.uniform(0, 6)) for _ in range(3))
    steps = rng.normal(size=8)[np.minimum((z * 8).astype(int), 7)]
    return np.asarray(1 / (1 + np.exp(-2 * (waves + steps))), dtype=np.float64)


STEP_BINS = (5, 20, 100)
_SCALING_ROWS = (500, 2000, 8000)
_MISSPECIFIED = Power(1.5)  # P(y) that no sigmoid in the log odds equals


def proof_steps(setting: Setting) -> Experiment:
    """Lemmas D.2, D.3 and F.1 to F.8: the share of simulated datasets beyond each bound, delta = 0.1.

    F: B outputs with random probabilities p, rates about 0.1 off, and the fewest rows with p_i > 12 log(2 B / delta) / n for all i;
    as in the proof of F.4, the factor 2 belongs to (P2). D.2: its constants are those of the last lines of its proof,
    sqrt(log(4 B / delta) / n) and sqrt(2 log(4 B / delta) / (B n)). D.3: scaling by least squares, and the 0.9 quantile of its
    squared error above the least.
    """
    rows: list[tuple[Field, ...]] = []
    for bins in STEP_BINS:
        for lemma, n, ratios in [*_terms_of_estimates(bins, setting), *_empirical_binning(bins, setting)]:
            beyond = float(np.mean(ratios > 1)) if ratios.size else 0.0
            rows.append((lemma, bins, n, 0, setting.m, float(ratios.max(initial=0.0)), beyond))
    m = max(setting.m // _REPLICATES, 4)
    rows += [
        ("D.3", 0, n, replicate, m, _excess_of_scaling(n, m, setting.stream(n, replicate)), 0.0)
        for n in _SCALING_ROWS
        for replicate in range(_REPLICATES)
    ]
    table = tidy(("lemma", "bins", "n", "replicate", "m", "largest", "beyond"), rows)

    def draw(figure: Figure) -> None:
        left, right = panels(figure, 2, columns=2, share_y=False)
        names = [lemma for lemma in dict.fromkeys(table["lemma"]) if lemma not in ("D.3", "F.2", "F.7")]
        for bins in STEP_BINS:
            part = {r["lemma"]: r["largest"] for r in table if r["bins"] == bins}
            left.plot(range(len(names)), [part[name] for name in names], ".", label=f"{bins} outputs")
        left.axhline(1, color="grey", linestyle="--", linewidth=0.8)
        left.set_xticks(range(len(names)), names, rotation=40, ha="right")
        left.set(title="largest over bound", ylabel="left side / right side", yscale="log")
        left.legend()
        scaled = [[r["largest"] for r in table if (r["lemma"], r["n"]) == ("D.3", n)] for n in _SCALING_ROWS]
        for n, values in zip(_SCALING_ROWS, scaled, strict=True):
            right.plot([n] * len(values), values, ".", color="C0")
        right.plot(_SCALING_ROWS, [np.mean(scaled[0]) * _SCALING_ROWS[0] / n for n in _SCALING_ROWS], ":", color="grey")
        label_log_axis(right, _SCALING_ROWS)
        right.set(title="Lemma D.3, and 1 / n", xlabel="rows n", ylabel="squared error above the least", yscale="log")

    return Experiment("kumar-steps", "Lemmas D.2, D.3 and F.1 to F.8 on simulated datasets", table, draw)


def _terms_of_estimates(bins: int, setting: Setting) -> list[tuple[str, int, Array]]:
    """Left side over right side of Lemmas F.1 to F.8 in each of m datasets; F.2 and F.7 are equations: |left - right|."""
    rng = setting.stream(1, bins)
    p = rng.dirichlet(np.full(bins, 20.0))
    outputs = np.sort(rng.random(bins))
    rates = np.clip(outputs + 0.1 * rng.normal(size=bins), 0.01, 0.99)
    e = outputs - rates
    squared = float(np.sum(p * e**2))
    n = int(12 / p.min() * log(2 * bins / FAILURE)) + 1
    c = sqrt(3 / (n * p.min()) * log(2 * bins / FAILURE))
    counts = rng.multinomial(n, p, setting.m)
    ones = rng.binomial(counts, rates)
    share, gap = counts / n, ones / np.maximum(counts, 1) - rates
    rate = gap + rates
    p1, p2, p3 = (np.sum(share * term, axis=1) for term in (e**2, 2 * e * gap, gap**2))
    c3 = p3 - np.sum(share * rate * (1 - rate) / np.maximum(counts - 1, 1), axis=1)
    plugin, debiased = squared_estimates(counts, ones, outputs)
    far = np.max(np.abs(share - p) / (c * p), axis=1)
    near = far < 1  # what F.3, F.4, F.5 and F.8 suppose
    last = 3 * sqrt(bins) / n * log(n / FAILURE) + FAILURE / n
    return [
        ("F.1", n, far),
        ("F.2", n, np.abs(plugin - (p1 - p2 + p3))),
        ("F.3", n, np.abs(p1 - squared)[near] / (c * squared)),
        ("F.4", n, np.abs(p2)[near] / sqrt(2 * (1 + c) * squared / n * log(2 / FAILURE))),
        ("F.5", n, p3[near] / (bins / (2 * n) * log(2 * bins / FAILURE))),
        ("F.7", n, np.abs(debiased - (p1 - p2 + c3))),
        ("F.8", n, np.abs(c3)[near] / last),
    ]


def _empirical_binning(bins: int, setting: Setting) -> list[tuple[str, int, Array]]:
    """l2 and l1 distance of the sampled means of bins of equal mass from their limits, over the bounds of Lemma D.2."""
    n = 20 * bins
    z = setting.stream(2, bins).random((setting.m, n))
    group = (z * bins).astype(np.intp) + bins * np.arange(setting.m)[:, None]
    size = bins * setting.m
    counts, sums = (np.bincount(group.ravel(), w, size).reshape(-1, bins) for w in (None, TRUTH(z).ravel()))
    limits = TRUTH((np.arange(200 * bins) + 0.5) / (200 * bins)).reshape(bins, 200).mean(axis=1)
    gaps = np.abs(np.where(counts > 0, sums / np.maximum(counts, 1) - limits, limits))
    logarithm = log(4 * bins / FAILURE)
    l2, l1 = np.sqrt(np.mean(gaps**2, axis=1)), np.mean(gaps, axis=1)
    return [("D.2, l2", n, l2 / sqrt(logarithm / n)), ("D.2, l1", n, l1 / sqrt(2 * logarithm / (bins * n)))]


def _excess_of_scaling(n: int, m: int, rng: np.random.Generator) -> float:
    """0.9 quantile over m datasets of the squared calibration error of scaling above the least one of its family."""
    from scipy.optimize import least_squares
    from scipy.special import expit, logit

    z = (np.arange(2000) + 0.5) / 2000
    truth = _MISSPECIFIED(z)

    def gaps(theta: Array) -> Array:
        return np.asarray(expit(theta[0] + theta[1] * logit(z)) - truth, dtype=np.float64)

    least = 2 * float(least_squares(gaps, [0.0, 1.0]).cost) / z.size
    scores, outcomes = World(Uniform(), _MISSPECIFIED).draw(n, m, rng=rng)
    scaling = tc.recalibration.BetaCalibration(parameters=2, input="probs", loss="squared")
    excess = [
        float(np.mean((scaling.fit(c, y.astype(np.int64)).predict_proba(z)[:, 1] - truth) ** 2)) - least
        for c, y in zip(scores, outcomes, strict=True)
    ]
    return float(np.quantile(excess, 1 - FAILURE))


def explicit_bound(squared: float, n: float, bins: int, smallest: float, level: float, kind: str) -> float:
    """Largest squared error E2 that Theorem F.6 (plugin) or F.9 (debiased) allows for this estimate; infinite where c >= 1/2."""
    delta = (1 - level) / (3 if kind == "plugin" else 4)
    if smallest <= 12 / n * log(2 * bins / delta):
        return inf
    c = sqrt(3 / (n * smallest) * log(2 * bins / delta))
    last = (
        bins / (2 * n) * log(2 * bins / delta) if kind == "plugin" else 3 * sqrt(bins) / n * log(n / delta) + delta / n
    )

    def allowed(e2: float) -> bool:
        return e2 - squared <= c * e2 + sqrt(2 * (1 + c) * e2 / n * log(2 / delta)) + last

    low, high = 0.0, 10.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def explicit_bounds(setting: Setting) -> Experiment:
    """The explicit bounds F.6 and F.9 for a model binned to B outputs, their smaller one, and what `tc.verify` promises.

    The confidences are recalibrated by scaling-binning on a third of the rows, and judged on the others; the level is 0.95.
    """
    network = the_network(setting.data, "kumar-explicit")
    c, y = network.test.top()
    order = setting.stream(0).permutation(c.size)
    fit, judge = order[: c.size // 3], order[c.size // 3 :]
    rows: list[tuple[Field, ...]] = []
    for bins in (5, 10, 20, 50):
        scaling = tc.recalibration.BetaCalibration(parameters=2, input="probs", clip=1e-7)
        fitted = tc.recalibration.ScalingBinning(bins=bins, input="probs", scaling=scaling)
        scaled = fitted.fit(c[fit], y[fit].astype(np.int64)).predict_proba(c[judge])[:, 1]
        counts, ones, outputs = _by_output(scaled, y[judge])
        estimates = squared_estimates(counts[None, :], ones[None, :], outputs)
        limits = [
            sqrt(explicit_bound(float(e[0]), judge.size, outputs.size, counts.min() / judge.size, 0.95, kind))
            for kind, e in zip(("plugin", "debiased"), estimates, strict=True)
        ]
        verified = tc.verify(tc.Predictions.from_probs(scaled, y[judge].astype(int)), threshold=0.05)
        f9 = float("nan") if verified.explicit is None else float(verified.explicit)
        rows.append((bins, outputs.size, judge.size, *limits, min(limits), verified.high, f9, float(y.mean())))
    columns = ("bins", "outputs", "n", "F6", "F9", "smaller", "verify_high", "verify_explicit", "accuracy")
    table = tidy(columns, rows)

    def draw(figure: Figure) -> None:
        names = {"F6": "Theorem F.6", "F9": "Theorem F.9", "verify_high": "tc.verify"}
        curves = {words: (table["bins"].tolist(), table[name].tolist()) for name, words in names.items()}
        lines(panel(figure), curves, x="bins", y="upper limit of the calibration error")

    return Experiment("kumar-explicit", "95 % upper limits of the calibration error of a binned model", table, draw)


def _by_output(scaled: Array, y: Array) -> tuple[Counts, Counts, Array]:
    outputs, group = np.unique(scaled, return_inverse=True)
    return np.bincount(group), np.bincount(group, y), outputs
