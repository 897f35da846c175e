"""Worlds written down by hand to judge intervals that were chosen on others: `python -m tests.estimators.random_worlds --written`.

Each is what a reader would try first: over- and underconfidence, a kink, a step, waves, ties, words for confidence, rare events,
scores that are all but 1, a constant, outputs of 0 and 1, a curve that falls, and calibrated models.
"""

import numpy as np

from tests.estimators.random_worlds import RandomWorld, beta_quantiles, logistic

_WORDS = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0])
_BELOW = np.cumsum([0.02, 0.03, 0.05, 0.05, 0.1, 0.15, 0.2, 0.25, 0.1])
_FIVE = np.array([0.2, 0.4, 0.6, 0.8, 0.95])


def _even(u):
    return u


def _decades(u):
    return 1 - 10.0 ** (-6 * u)


def _of_two():
    low, high = beta_quantiles(1, 8), beta_quantiles(8, 1)
    return lambda u: np.where(u < 0.5, low(2 * np.minimum(u, 0.5)), high(2 * np.maximum(u, 0.5) - 1))


def written_worlds():
    """All of them, in the order of this page."""
    worlds = {
        "overconfident": (beta_quantiles(3, 1), logistic(0, 0.6)),
        "skewed, underconfident": (beta_quantiles(5, 0.5), logistic(-0.3, 1.5)),
        "kink": (_even, lambda c: np.where(c > 0.6, 0.6 + 0.4 * (c - 0.6), c)),
        "skewed, kink": (beta_quantiles(4, 0.4), lambda c: np.minimum(c, 0.95)),
        "step of 0.3": (_even, lambda c: np.where(c < 0.5, c - 0.15, c + 0.15)),
        "step of 0.06": (beta_quantiles(2, 2), lambda c: np.where(c < 0.4, c - 0.03, c + 0.03)),
        "three waves": (_even, lambda c: c + 0.06 * np.sin(6 * np.pi * c)),
        "skewed, six waves": (
            beta_quantiles(3, 1),
            lambda c: c + 0.05 * np.sin(12 * np.pi * c) * np.minimum(1, 5 * c * (1 - c)),
        ),
        "five ties": (lambda u: _FIVE[np.minimum((u * 5).astype(int), 4)], lambda c: c**1.3),
        "words": (lambda u: _WORDS[np.searchsorted(_BELOW, u)], lambda c: 0.55 + 0.3 * (c - 0.5)),
        "rare, doubled": (beta_quantiles(0.5, 20), lambda c: 2 * c),
        "rare, calibrated": (beta_quantiles(0.4, 30), lambda c: c),
        "six decades, doubled": (_decades, lambda c: 1 - 2 * (1 - c)),
        "six decades, at most 0.985": (_decades, lambda c: np.minimum(c, 0.985)),
        "two kinds": (_of_two(), logistic(0.2, 0.8)),
        "constant": (lambda u: np.full_like(u, 0.7), lambda c: np.full_like(c, 0.64)),
        "0 and 1": (lambda u: (u > 0.4).astype(float), lambda c: np.where(c > 0.5, 0.98, 0.01)),
        "half at 1": (lambda u: np.where(u > 0.5, 1.0, 2 * u), lambda c: np.where(c == 1, 0.97, c)),
        "falls": (_even, lambda c: 0.8 - 0.6 * c),
        "skewed, calibrated": (beta_quantiles(6, 0.5), lambda c: c),
        "even, calibrated": (_even, lambda c: c),
        "to the middle": (beta_quantiles(1.2, 0.3), lambda c: 0.5 + 0.4 * (c - 0.5)),
    }
    return [
        RandomWorld(name, scores, lambda c, raw=raw: np.clip(raw(c), 0, 1)) for name, (scores, raw) in worlds.items()
    ]
