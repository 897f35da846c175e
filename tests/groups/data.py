"""Predictions on which rival answers differ: uneven classes, and errors of both signs."""

import numpy as np

from truecal.predictions import Predictions


def drawn(probs, rng):
    """One label per row, from its distribution."""
    labels = (rng.random((len(probs), 1)) > probs.cumsum(axis=1)).sum(axis=1)
    return np.minimum(labels, probs.shape[1] - 1)


def simulated(n, classes, seed=0, *, calibrated=False, **further):
    """Dirichlet probabilities; labels from them, or from a distorted version of them."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.linspace(0.3, 1.5, classes), n)
    truth = probs
    if not calibrated:
        truth = probs ** np.linspace(0.5, 2.0, classes) + 0.02
        truth = truth / truth.sum(axis=1, keepdims=True)
    return Predictions.from_probs(probs, drawn(truth, rng), **further)
