"""Worlds on which intervals and tests are judged: ours beside the ten of the papers."""

import numpy as np

from truecal.lab import GLM, PAPER_WORLDS, Beta, Discrete, Mixture, Power, Uniform, World

VERBAL = Discrete([0.5, 0.7, 0.8, 0.9, 0.95, 1.0], [0.05, 0.1, 0.2, 0.35, 0.2, 0.1])

OTHERS = {
    "five tied scores": World(Discrete([0.1, 0.3, 0.5, 0.7, 0.9]), Power(1.3)),
    "verbal confidences": World(VERBAL, lambda c: 0.6 * c + 0.2),
    "rare events": World(Beta(0.5, 20), lambda c: 0.6 * c),
    "underconfident": World(Uniform(), GLM("logit", "logit", 0.0, 2.0)),
    "mixture": World(Mixture((Beta(8, 2), Beta(2, 8)), (0.5, 0.5)), Power(1.3)),
    "kink": World(Uniform(), lambda c: np.where(c < 0.6, c, 0.6 + 0.6 * (c - 0.6))),
    "wave": World(Uniform(), lambda c: c + 0.07 * np.sin(4 * np.pi * c)),
    "small step": World(Uniform(0.1, 0.9), lambda c: c + np.where(c < 0.5, -0.05, 0.05)),
    "spike at one": World(Mixture((Uniform(), Discrete([1.0])), (0.7, 0.3)), lambda c: 0.92 * c),
    "not monotone": World(Uniform(), lambda c: 2 * c * (1 - c) + 0.25),
}

CALIBRATED = {
    "uniform": World(Uniform()),
    "five tied scores": World(Discrete([0.1, 0.3, 0.5, 0.7, 0.9])),
    "verbal confidences": World(Discrete([0.5, 0.7, 0.8, 0.9, 0.95], [0.1, 0.2, 0.2, 0.3, 0.2])),
    "skewed": PAPER_WORLDS["resnet152_imgnet"].perfectly_recalibrated(),
}

GROUPS = {
    "papers": dict(PAPER_WORLDS),
    "papers, recalibrated": {name: w.perfectly_recalibrated() for name, w in PAPER_WORLDS.items()},
    "papers, nearly calibrated": {name: w.partly_recalibrated(0.02) for name, w in PAPER_WORLDS.items()},
    "others": OTHERS,
}


def clustered(clusters, size, curve, rng, *, alike=0.8):
    """Rows of a cluster have neighbouring scores and, with probability `alike`, the cluster's own luck."""
    c = rng.random((clusters, 1)) * 0.8 + 0.2 * rng.random((clusters, size))
    luck = np.where(rng.random(c.shape) < alike, rng.random((clusters, 1)), rng.random(c.shape))
    return c.ravel(), (luck < curve(c)).ravel().astype(int), np.repeat(np.arange(clusters), size)
