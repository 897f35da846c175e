"""Simulated cohorts whose true numbers are known, with and without patients that have several rows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy.special import expit, logit, ndtr

import truecal as tc
from truecal.clinical.distances import distances
from truecal.special import fit_logistic

NAMES = ("oe", "intercept", "slope", "ici", "e50", "e90", "emax", "c_statistic", "brier", "scaled_brier")


@dataclass(frozen=True)
class World:
    """Scores sigmoid(mean + spread z), z standard normal; events happen with probability truth(score)."""

    name: str
    truth: Callable[[np.ndarray], np.ndarray]
    mean: float = -1.0
    spread: float = 1.0

    def draw(self, rng, rows: int = 800, size: int = 1, shared: float = 0.5):
        """Scores, outcomes and clusters (None for size 1). Within a cluster scores and outcomes have correlation `shared` through
        normal variables, so that every row alone still has the probability truth(score)."""
        groups = rows // size
        mixed = [
            np.sqrt(shared) * rng.normal(size=(groups, 1)) + np.sqrt(1 - shared) * rng.normal(size=(groups, size))
            for _ in range(2)
        ]
        p = expit(self.mean + self.spread * mixed[0]).ravel()
        y = (ndtr(mixed[1]).ravel() < self.truth(p)).astype(int)
        return p, y, None if size == 1 else np.repeat(np.arange(groups), size)

    def preds(self, rng, rows: int = 800, size: int = 1, **options) -> tc.Predictions:
        p, y, clusters = self.draw(rng, rows, size)
        return tc.Predictions.from_probs(p, y, clusters=clusters, **options)

    def cohorts(self, seeds: Iterable[int], rows: int, size: int) -> Iterator[tc.Predictions]:
        """One cohort per seed, independent rows (size 1) or clusters of `size` rows."""
        world = crc32(self.name.encode())  # worlds have independent draws
        return (self.preds(np.random.default_rng([r, size, rows, world]), rows, size) for r in seeds)

    def numbers(self) -> dict[str, float]:
        """The true value of every number, from 400,000 quadrature points."""
        from scipy.special import ndtri

        p = expit(self.mean + self.spread * ndtri((np.arange(400_000) + 0.5) / 400_000))
        q = self.truth(p)
        z = logit(p)
        design = np.column_stack([np.ones(len(z)), z])
        brier = float((q * (1 - p) ** 2 + (1 - q) * p**2).mean())
        ici, e50, e90, emax = distances(q - p, np.ones(len(p)))
        return {
            "oe": q.mean() / p.mean(),
            "intercept": fit_logistic(design[:, :1], q, None, z).coefficients[0],
            "slope": fit_logistic(design, q).coefficients[1],
            "ici": float(ici),
            "e50": float(e50),
            "e90": float(e90),
            "emax": float(emax),
            "c_statistic": float((q * (np.cumsum(1 - q) - (1 - q) / 2)).sum() / (q.sum() * (1 - q).sum())),
            "brier": brier,
            "scaled_brier": 1 - brier / (q.mean() * (1 - q.mean())),
        }


WORLDS = (
    World("calibrated", lambda p: p),
    World("too extreme", lambda p: expit(0.3 + 0.6 * logit(p))),
    World("power", lambda p: p**1.5, 0.0, 1.7),
    World("shifted", lambda p: expit(logit(p) + 0.4), -1.5, 1.2),
    World("rare", lambda p: expit(-1 + 0.7 * logit(p)), -4.0, 1.0),
)

# Not looked at while methods were chosen: for judging them.
KEPT = (
    World("too cautious", lambda p: expit(-0.2 + 1.4 * logit(p)), -0.5, 0.8),
    World("nearly calibrated", lambda p: expit(0.1 + 0.93 * logit(p)), -1.2, 1.5),
    World("wave", lambda p: expit(logit(p) + 0.4 * np.sin(1.2 * logit(p))), 0.0, 1.2),
    World("eight tenths", lambda p: 0.8 * p, -0.8, 1.3),
    World("uncommon", lambda p: expit(0.5 + 1.1 * logit(p)), -3.3, 0.9),
)

# The hardest curve for a band that assumes only that it does not fall: every run of scores has the same rate.
FLAT = World("flat", lambda p: np.full(len(p), 0.3))
