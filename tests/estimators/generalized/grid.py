"""How often intervals of generalized errors hold: `python -m tests.estimators.generalized.grid --datasets 100`.

One line for every number of classes, lens, size and exponent: labels are drawn from outputs to a power (1: calibrated), and the
interval at 90 % is held to the error of its bins; the last column is how often the test of calibration rejects at 5 %.
"""

import argparse
import itertools

import numpy as np

import truecal as tc

SPREAD = 2.0  # standard deviation of logits
GROUPS = 5


def softmax(logits):
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def outputs_of(kind, n, classes, rng):
    if kind == "normal":
        return softmax(SPREAD * rng.standard_normal((n, classes)))
    return np.clip(rng.dirichlet(np.full(classes, 2.0 / classes), n), 1e-12, None)


def draw(kind, classes, exponent, n, rng):
    """Predictions and the true rates of their classes."""
    outputs = outputs_of(kind, n, classes, rng)
    outputs /= outputs.sum(axis=1, keepdims=True)
    rates = softmax(exponent * np.log(outputs))
    labels = np.minimum((rates.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), classes - 1)
    return tc.Predictions.from_probs(outputs, labels), rates


def lenses(classes):
    ends = np.linspace(0, classes, GROUPS + 1).astype(int)
    yield "canonical", tc.Canonical()
    if classes > GROUPS:
        groups = {str(g): list(range(a, b)) for g, (a, b) in enumerate(itertools.pairwise(ends))}
        yield "grouping", tc.Grouping(groups)
        yield "top 5", tc.TopK(5)


def judged(name, outputs, rates):
    """True rates of the events a lens judges."""
    if name == "canonical":
        return rates
    if name == "grouping":
        ends = np.linspace(0, rates.shape[1], GROUPS + 1).astype(int)
        return np.stack([rates[:, a:b].sum(axis=1) for a, b in itertools.pairwise(ends)], axis=1)
    order = np.argsort(-outputs, axis=1, kind="stable")[:, :5]
    top = np.take_along_axis(rates, order, axis=1)
    return np.column_stack([top, 1 - top.sum(axis=1)])


def bin_error(sample, partition, rates):
    """Total variation of mean outputs and mean true rates, mean over rows."""
    gap = rates - sample.columns.T
    sums = np.stack([np.bincount(partition.bin_of, column, partition.count) for column in gap.T], axis=1)
    return float(np.abs(sums).sum() / 2 / len(gap))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--datasets", type=int, default=100)
    parser.add_argument("--rows", type=int, nargs="+", default=[150, 1000, 10_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 10, 50, 100])
    parser.add_argument("--exponents", type=float, nargs="+", default=[1.0, 0.6, 1.5])
    parser.add_argument("--outputs", choices=["normal", "dirichlet"], default="normal")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| classes | lens | n | exponent | mean true error | covered | too high | mean length | rejected |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n, classes, exponent in itertools.product(options.rows, options.classes, options.exponents):
        results = {name: [] for name, _ in lenses(classes)}
        for i in range(options.datasets):
            rng = np.random.default_rng([options.seed, i, n, classes])
            preds, rates = draw(options.outputs, classes, exponent, n, rng)
            for name, lens in lenses(classes):
                estimator = tc.GeneralizedECE(lens=lens, level=0.9, rng=options.seed)
                sample = lens.sample(preds)
                truth = bin_error(sample, estimator.binning.partition(sample), judged(name, preds.probs, rates))
                result = estimator(preds)
                results[name].append((truth, result.interval.low, result.interval.high, result.p_value <= 0.05))
        for name, rows in results.items():
            truth, low, high, rejected = np.array(rows).T
            mask, above = np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)), np.mean(low > truth + 1e-12)
            numbers = (
                f"{truth.mean():.4f} | {mask:.2f} | {above:.2f} | {np.mean(high - low):.4f} | {rejected.mean():.2f}"
            )
            print(f"| {classes} | {name} | {n} | {exponent} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
