"""How often intervals of differences hold: `python -m benchmarks.coverage.comparisons --datasets 200`.

One line for every way of pairing, size and pair of models, at 90 %. Two models see two correlated normal numbers of a row, and the
outcome depends on both, so that the chance of an outcome given either model's score is known in closed form:

    y = [mean + slope ((z_a + z_b) / 2) + e > 0],   corr(z_a, z_b) = alike,   e normal.

Each model shows a distorted version of that chance. In clusters a part of e and of both z is the same for all rows of a cluster,
which leaves the chances as they are; clusters are of unequal size. No rule was chosen on the pairs named JUDGED, though counts of
them had been seen before the last change; those named CHOSEN were used to choose.
"""

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

import truecal as tc

PAIRINGS = ("rows", "clusters", "own labels", "key", "unpaired")
CLUSTERS = 40
SHARED = 0.3  # of the variance of e that is a cluster's ...
SHARED_SCORES = 0.15  # ... and of that of the scores
Shown = Callable[[np.ndarray], np.ndarray]


def moved(slope: float = 1.0, offset: float = 0.0) -> Shown:
    """Log odds times `slope` plus `offset`."""

    def show(t: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(1 / (1 + np.exp(-slope * (np.log(t) - np.log1p(-t)) - offset)))

    return show


def steps(count: int) -> Shown:
    """Rounded to `count` steps; the least is 0.01, the largest 0.99."""
    return lambda t: np.clip(np.round(count * t) / count, 0.01, 0.99)


def kinked(above: float, times: float) -> Shown:
    """Overconfident above a chance only."""
    return lambda t: np.where(t > above, 1 - (1 - t) / times, t)


def waved(height: float, waves: int) -> Shown:
    return lambda t: np.clip(t + height * np.sin(2 * np.pi * waves * t) * np.minimum(1, 4 * t * (1 - t)), 0, 1)


@dataclass(frozen=True)
class Pair:
    """Two models of one world."""

    a: Shown
    b: Shown
    mean: float = 0.6
    slope: float = 1.2
    alike: float = 0.8

    def chance(self, z: np.ndarray) -> np.ndarray:
        """Of an outcome, given what one model sees."""
        own_slope, others = self.slope * (1 + self.alike) / 2, self.slope / 2
        return np.asarray(ndtr((self.mean + own_slope * z) / np.sqrt(1 + others**2 * (1 - self.alike**2))))

    def difference(self) -> float:
        """Of the true errors."""
        return error(self.a, self.chance(_MANY)) - error(self.b, self.chance(_MANY))

    def draw(self, n: int, pairing: str, rng: np.random.Generator) -> tuple[tc.Predictions, tc.Predictions]:
        """Both models on data of this world."""
        clusters = np.sort(rng.integers(0, CLUSTERS, n)) if pairing == "clusters" else None
        z_a, z_b, y = self._rows(n, clusters, rng)
        key = {"key": np.arange(n)}
        first = tc.Predictions.from_probs(self.a(self.chance(z_a)), y, clusters=clusters, columns=key)
        if pairing == "unpaired":
            _, z_b, y = self._rows(n, None, rng)
        if pairing in ("own labels", "key"):  # answers of their own, right together more often than by chance
            again = self._rows(n, None, rng)
            theirs = rng.random(n) < 0.5
            z_b, y = np.where(theirs, again[1], z_b), np.where(theirs, again[2], y)
        second = tc.Predictions.from_probs(self.b(self.chance(z_b)), y, clusters=clusters, columns=key)
        return first, second.take(rng.permutation(n)) if pairing == "key" else second

    def _rows(
        self, n: int, clusters: np.ndarray | None, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first, second, e = rng.normal(size=(3, n))
        if clusters is not None:
            common = rng.normal(size=(3, CLUSTERS))[:, clusters]
            part = np.sqrt([SHARED_SCORES, SHARED_SCORES, SHARED])
            first, second, e = (
                np.sqrt(1 - p * p) * x + p * c for p, x, c in zip(part, (first, second, e), common, strict=True)
            )
        z_b = self.alike * first + np.sqrt(1 - self.alike**2) * second
        return first, z_b, self.mean + self.slope * (first + z_b) / 2 + e > 0


_MANY = np.asarray(ndtri(np.linspace(0, 1, 400_002)[1:-1]))


def error(show: Shown, t: np.ndarray) -> float:
    """Of a model that shows show(t) where the chance is t; equal scores have the mean chance of their rows."""
    scores = show(t)
    _, cell = np.unique(scores, return_inverse=True)
    rate = (np.bincount(cell, t) / np.bincount(cell))[cell]
    return float(np.sqrt(np.mean((rate - scores) ** 2)))


def same(t: np.ndarray) -> np.ndarray:
    return t


CHOSEN = {
    "calibrated, in eighths": Pair(same, steps(8), alike=1.0),
    "a little over, a little under": Pair(moved(1.08), moved(0.93), alike=1.0),
    "over, more over": Pair(moved(1.2), moved(1.5), alike=1.0),
    "calibrated, over": Pair(same, moved(1.7), alike=1.0),
    "shifted, more shifted": Pair(moved(1, 0.2), moved(1, 0.7), alike=0.9),
    "over, under": Pair(moved(1.5), moved(0.7), alike=1.0),
    "far over, farther": Pair(moved(2.2), moved(2.6), alike=0.95),
    "confident: calibrated, over": Pair(same, moved(1.7), mean=1.8, alike=1.0),
    "confident: over, more over": Pair(moved(1.4), moved(2.0), mean=1.8, alike=0.9),
    "both calibrated, little in common": Pair(same, same, alike=0.4),
}
JUDGED = {
    "both calibrated, nearly alike": Pair(same, same, alike=0.98),
    "both calibrated, half in common": Pair(same, same, mean=0.0, slope=1.6, alike=0.6),
    "equally over, nearly alike": Pair(moved(1.6), moved(1.6), mean=1.0, alike=0.97),
    "equally over, little in common": Pair(moved(1.5), moved(1.5), mean=0.3, alike=0.3),
    "shifted up, shifted down": Pair(moved(1, 0.35), moved(1, -0.35), mean=0.0, alike=0.9),
    "over, a little more": Pair(moved(1.35), moved(1.55), mean=0.9, slope=1.5, alike=1.0),
    "under, calibrated": Pair(moved(0.65), same, mean=0.2, slope=1.5, alike=0.8),
    "calibrated, shifted": Pair(same, moved(1, 0.55), mean=0.2, slope=1.0, alike=0.7),
    "saturated: over, calibrated": Pair(moved(2.5), same, mean=2.0, slope=3.0, alike=0.9),
    "saturated: over, more over": Pair(moved(1.5), moved(4.0), mean=1.0, slope=4.0, alike=0.95),
    "rare: calibrated, doubled": Pair(same, moved(1, 0.7), mean=-2.2, slope=0.9, alike=0.9),
    "rare: over, shifted": Pair(moved(1.4), moved(1, 0.4), mean=-2.0, slope=1.0, alike=0.5),
    "kinked, in tenths": Pair(kinked(0.7, 3.0), steps(10), mean=1.0, slope=1.3, alike=0.9),
    "waved, shifted": Pair(waved(0.08, 2), moved(1, 0.3), mean=0.0, slope=1.4, alike=1.0),
}
WORLDS = {"chosen": CHOSEN, "judged": JUDGED}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 3000, 10_000])
    parser.add_argument("--pairings", nargs="+", default=PAIRINGS)
    parser.add_argument("--pairs", choices=WORLDS, default="judged")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(
        "| pairing | n | models | true difference | covered | below, above | mean length | told apart | both told 0 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for pairing, n, (number, (name, pair)) in itertools.product(
        options.pairings, options.rows, enumerate(WORLDS[options.pairs].items())
    ):
        true = pair.difference()
        ends = []
        for i in range(options.datasets):
            both = pair.draw(n, pairing, np.random.default_rng([options.seed, i, n, number, PAIRINGS.index(pairing)]))
            comparison = tc.compare(
                *both, level=0.9, paired=pairing != "unpaired", key="key" if pairing == "key" else None
            )
            ends.append(
                (comparison.interval.low, comparison.interval.high, max(comparison.value_a, comparison.value_b))
            )
        low, high, larger = np.array(ends).T
        covered, apart = np.mean((low <= true) & (true <= high)), np.mean((low > 0) | (high < 0))
        missed = f"{np.mean(high < true):.3f}, {np.mean(low > true):.3f}"
        numbers = f"{true:+.4f} | {covered:.3f} | {missed} | {np.mean(high - low):.4f} | {apart:.2f} | {np.mean(larger == 0):.2f}"
        print(f"| {pairing} | {n} | {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
