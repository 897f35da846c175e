"""Smoothing on [0, 1] with reflection at both ends, on a regular grid.

The data are gathered into cells of equal width, represented by their midpoints. Mirroring at 0 and 1 makes the sequence even
and periodic, so that convolution with any symmetric kernel is a product in the discrete cosine transform: no end is halved, no
mass is lost.
"""

import numpy as np

from truecal.profile import Cut, Profile
from truecal.types import Float64s, Indices

_SILENT = 38.7  # standard deviations: exp(-38.7^2 / 2) is the number 0, so higher frequencies need no exponential
_SEARCH_FROM = 16  # rows per cell from which searching every edge beats counting every row


def cell_sums(profile: Profile, cells: int) -> tuple[Float64s, Float64s, Float64s]:
    """Weight, sum of scores and sum of outcomes in each of `cells` (a power of two) cells of equal width, as shares."""
    place = _cell_places(profile, cells)
    cut = Cut(place, place)
    weight, score, outcome = (
        np.diff(profile.sums(name, cut), axis=1) / profile.total[:, None] for name in ("w", "c", "y")
    )
    return weight, score, outcome


def _cell_places(profile: Profile, cells: int) -> Indices:
    """How many rows lie below each edge j / cells, the last one closed. A power of two makes edges and products exact."""
    if profile.rows > _SEARCH_FROM * cells:
        place = profile.places((np.arange(cells + 1) / cells).astype(np.float32), "left")
        place[:, -1] = profile.rows
        return place
    place = np.zeros((len(profile.scores), cells + 1), np.intp)
    for own, scores in zip(place, profile.scores, strict=True):  # fewer rows than that are counted faster than searched
        cell = np.minimum((scores * scores.dtype.type(cells)).astype(np.intp), cells - 1)
        np.cumsum(np.bincount(cell, minlength=cells), out=own[1:])
    return place


def midpoints(cells: int) -> Float64s:
    return (np.arange(cells) + 0.5) / cells


def smooth(values: Float64s, response: Float64s) -> Float64s:
    """Convolve with the kernel whose response to the k-th cosine is response[..., k]."""
    from scipy.fft import dct, idct

    return idct(dct(values, type=2, axis=-1) * response, type=2, axis=-1)


def gaussian_response(cells: int, sigma: Float64s) -> Float64s:
    """Response of a Gaussian of standard deviation sigma, shape (batch, cells)."""
    response = np.zeros((len(sigma), cells))
    heard = min(cells, int(_SILENT / (np.pi * max(float(np.min(sigma, initial=np.inf)), 1 / cells))) + 2)
    response[:, :heard] = np.exp(-0.5 * (sigma[:, None] * (np.pi * np.arange(heard))) ** 2)
    return response


def sampled_response(kernel: Float64s) -> Float64s:
    """Response of a kernel sampled at cell distances 0, 1, ..., cells (last axis), normalised to keep total mass."""
    mirrored = np.concatenate([kernel, kernel[..., -2:0:-1]], axis=-1)
    response = np.fft.rfft(mirrored, axis=-1).real[..., :-1]
    return response / response[..., :1]
