"""How often intervals of differences hold: `python -m tests.uncertainty.comparisons --datasets 100`.

One line for every way of pairing, size and pair of models: differences of true errors from 0 to 0.14, at 90 %.
"""

import argparse
import itertools

import numpy as np

import truecal as tc

PAIRINGS = ("rows", "clusters", "unpaired", "own labels")
CLUSTERS = 40


def moved(p, slope, offset=0.0):
    return 1 / (1 + np.exp(-slope * np.log(p / (1 - p)) - offset))


WORLDS = {  # what both models show where the chance is p
    "calibrated, the other in eighths": (lambda p: p, lambda p: np.clip(np.round(8 * p) / 8, 0.01, 0.99)),
    "a little over, a little under": (lambda p: moved(p, 1.05), lambda p: moved(p, 0.95)),
    "over, more over": (lambda p: moved(p, 1.1), lambda p: moved(p, 1.25)),
    "calibrated, over": (lambda p: p, lambda p: moved(p, 1.6)),
    "shifted, more shifted": (lambda p: moved(p, 1, 0.2), lambda p: moved(p, 1, 0.9)),
    "over, under": (lambda p: moved(p, 1.4), lambda p: moved(p, 0.7)),
    "far over, farther": (lambda p: moved(p, 2.0), lambda p: moved(p, 2.3)),
}
SHAPES = {"even": (1.5, 1.2), "skewed": (3.0, 0.4)}


def chances(n, shape, rng):
    return np.clip(rng.beta(*SHAPES[shape], n), 0.003, 0.997)


def error(show, p):
    """Of a model that shows show(p); equal scores have the mean chance of their rows."""
    shown = show(p)
    _, place = np.unique(shown, return_inverse=True)
    rate = (np.bincount(place, p) / np.bincount(place))[place]
    return float(np.sqrt(np.mean((rate - shown) ** 2)))


def draw(world, shape, n, pairing, rng):
    """Two models on data of their world."""
    a, b = WORLDS[world]
    p, luck, clusters = chances(n, shape, rng), rng.random(n), None
    if pairing == "clusters":
        clusters = np.arange(n) % CLUSTERS
        luck = np.where(rng.random(n) < 0.4, rng.random(CLUSTERS)[clusters], luck)
    first = tc.Predictions.from_probs(a(p), luck < p, clusters=clusters)
    if pairing == "unpaired":
        p, luck = chances(n, shape, rng), rng.random(n)
    if pairing == "own labels":  # another answer: on half of the rows another chance, half of the luck in common
        p = np.where(rng.random(n) < 0.5, p, chances(n, shape, rng))
        luck = np.where(rng.random(n) < 0.5, luck, rng.random(n))
    return first, tc.Predictions.from_probs(b(p), luck < p, clusters=clusters)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--datasets", type=int, default=100)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 10_000])
    parser.add_argument("--pairings", nargs="+", default=PAIRINGS)
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args()
    print("| pairing | n | scores | models | true difference | covered | mean length | told apart |")
    print("|---|---|---|---|---|---|---|---|")
    for pairing, n, shape, world in itertools.product(said.pairings, said.rows, SHAPES, WORLDS):
        many = chances(1_000_000, shape, np.random.default_rng(1))
        true = error(WORLDS[world][0], many) - error(WORLDS[world][1], many)
        ends = []
        for i in range(said.datasets):
            pair = draw(world, shape, n, pairing, np.random.default_rng([said.seed, i, n]))
            interval = tc.compare(*pair, level=0.9, paired=pairing != "unpaired").interval
            ends.append((interval.low, interval.high))
        low, high = np.array(ends).T
        held, apart = np.mean((low <= true) & (true <= high)), np.mean((low > 0) | (high < 0))
        numbers = f"{true:+.4f} | {held:.2f} | {np.mean(high - low):.4f} | {apart:.2f}"
        print(f"| {pairing} | {n} | {shape} | {world} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
