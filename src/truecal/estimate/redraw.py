"""Outcomes redrawn from the scores: what the data would look like if the model were perfectly calibrated."""

import numpy as np

from truecal.types import Float64s

_NORMAL_FROM = 25.0  # a cell whose number of ones has a variance above this is drawn as a normal


def redraw(count: Float64s, score: Float64s, variance: Float64s, resamples: int, rng: np.random.Generator) -> Float64s:
    """Surplus of ones over the expected number in every cell when outcomes follow the scores, shape (resamples, cells).

    `count` rows of mean `score` in each cell; `variance` is that of their number of ones, sum c (1 - c). Single rows are
    Bernoulli, cells of large variance normal, all others binomial. Under importance weights a cell of fractional size n stands
    for rint(n) rows, scaled.
    """
    if (count == 1).all():
        return (rng.random((resamples, len(count))) < score) - score
    drawn = np.empty((len(count), resamples))
    many = variance > _NORMAL_FROM
    drawn[many] = rng.standard_normal((int(many.sum()), resamples)) * np.sqrt(variance[many])[:, None]
    whole = np.rint(count).astype(np.int64)
    for cell in np.flatnonzero(~many):  # one call per cell: its sampler is set up once, not once per draw
        n, c = int(whole[cell]), float(score[cell])
        scale = float(count[cell]) / n if n else 0.0
        drawn[cell] = scale * (rng.binomial(n, c, resamples) - n * c)
    return drawn.T
