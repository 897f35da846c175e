"""Worlds on which intervals and tests are judged."""

import numpy as np

from benchmarks.coverage.worlds import atlas_worlds
from truecal.lab import PAPER_WORLDS, Discrete, Uniform, World

CALIBRATED = {
    "uniform": World(Uniform()),
    "five tied scores": World(Discrete([0.1, 0.3, 0.5, 0.7, 0.9])),
    "verbal confidences": World(Discrete([0.5, 0.7, 0.8, 0.9, 0.95], [0.1, 0.2, 0.2, 0.3, 0.2])),
    "skewed": PAPER_WORLDS["resnet152_imgnet"].perfectly_recalibrated(),
}

GROUPS = {name: worlds for name, worlds in atlas_worlds().items() if name != "hard"}


def clustered(clusters, size, curve, rng, *, alike=0.8):
    """Rows of a cluster have neighbouring scores and, with probability `alike`, the uniform draw of the cluster."""
    c = rng.random((clusters, 1)) * 0.8 + 0.2 * rng.random((clusters, size))
    uniform = np.where(rng.random(c.shape) < alike, rng.random((clusters, 1)), rng.random(c.shape))
    return c.ravel(), (uniform < curve(c)).ravel().astype(int), np.repeat(np.arange(clusters), size)
