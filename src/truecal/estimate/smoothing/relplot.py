"""The smooth calibration error as the package relplot (1.0.3) computes it, grid by grid.

Beside the definition in `smooth` it differs by: a bandwidth that is a multiple of 2^-10 (ten bisections of [0, 1], the upper end
taken) or 1; rows shared linearly by two points of a grid; residuals mirrored without the end points, so that scores of exactly 0
and 1 count half; for an even number of points a kernel half a step off; a density that is sampled, and 1e-4 added to it.
"""

import numpy as np

from truecal.types import Float64s

_SMALLEST = 1e-3  # bandwidth below which the search does not look at the error
_BISECTIONS = 10
_ADDED = 1e-4  # to the sum of kernels at a point


def fixed_point(scores: Float64s, residuals: Float64s, weights: Float64s) -> tuple[float, float]:
    """The error and the bandwidth it is measured at; one value per row, residuals times weights."""

    def error(sigma: float) -> float:
        at = np.linspace(0, 1, max(round(10 / sigma), 200))
        points = max(2000, round(20 / sigma)) // 2 + 1
        size = np.abs(_smoothed(scores, residuals, sigma, points, at)).sum()
        return float(size / (_smoothed(scores, weights, sigma, points, at) + _ADDED).sum())

    def too_narrow(sigma: float) -> bool:
        return sigma < _SMALLEST or sigma < error(sigma)

    if too_narrow(1.0):
        return error(1.0), 1.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_narrow(middle) else (low, middle)
    return error(high), high


def _smoothed(scores: Float64s, values: Float64s, sigma: float, points: int, at: Float64s) -> Float64s:
    """Values at the scores, convolved with the Gaussian on a grid of so many points, at the places `at`."""
    from scipy.signal import fftconvolve

    place = scores * (points - 1)
    lower = np.clip(place.astype(np.intp), 0, points - 2)
    part = place - lower
    grid = np.bincount(lower, (1 - part) * values, points) + np.bincount(lower + 1, part * values, points)
    mirrored = np.concatenate([grid[:0:-1], grid, grid[-2::-1]])
    offset = np.linspace(-0.5, 0.5, points)
    kernel = np.exp(-(offset**2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    start = points // 2
    smooth = fftconvolve(mirrored, kernel, "valid")[start : start + points]
    return np.interp(at, np.linspace(0, 1, points), smooth)
