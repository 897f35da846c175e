"""Smoothing on [0, 1] with reflection at both ends, on a regular grid.

The data are gathered into cells of equal width, represented by their midpoints. Mirroring at 0 and 1 makes the sequence even
and periodic, so that convolution with any symmetric kernel is a product in the discrete cosine transform: no end is halved, no
mass is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator, Findings, SketchBound
from truecal.estimators.bins import power_mean
from truecal.estimators.estimate import Estimate
from truecal.profile.binning import Cut
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.profile.rows import Sum
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# Smoothing on [0, 1] with reflection at both ends, on a regular grid

_UNDERFLOW = 38.7  # standard deviations; derived: exp(-38.7^2 / 2) underflows to 0, so higher frequencies are skipped


def cell_shares(profile: Profile, cells: int, names: tuple[Sum, ...]) -> list[Float64s]:
    """Sum the named quantities ("w", "c", "y", ...) in each of `cells` cells of equal width on [0, 1], over the total weight.

    One array of shape (batch, cells) for each name. `cells` is a power of two; a score on an edge is in the upper cell.
    """
    starts = profile.count_below((np.arange(cells + 1) / cells).astype(np.float32), "left")  # exact edges
    starts[:, -1] = profile.rows
    cut = Cut(starts, starts)
    return [np.diff(profile.sums(name, cut), axis=1) / profile.total[:, None] for name in names]


def midpoints(cells: int) -> Float64s:
    """Return the midpoints of `cells` cells of equal width on [0, 1].

    >>> midpoints(2)
    array([0.25, 0.75])
    """
    return (np.arange(cells) + 0.5) / cells


def smooth(values: Float64s, response: Float64s) -> Float64s:
    """Convolve values in cells, shape (..., cells), with the kernel whose factor for the k-th cosine is response[..., k].

    Values are reflected at both ends; the shape stays. A response of ones returns the values.

    >>> smooth(np.array([1.0, 3.0]), np.array([1.0, 0.0]))  # the constant term alone
    array([2., 2.])
    """
    from scipy.fft import dct, idct

    return idct(dct(values, type=2, axis=-1) * response, type=2, axis=-1)


def gaussian_response(cells: int, sigma: Float64s) -> Float64s:
    """Compute the factor exp(-(pi k sigma)^2 / 2) of a Gaussian for the k-th cosine, shape (batch, cells).

    `sigma`, shape (batch,), is the standard deviation on [0, 1]. Where the factor underflows for all datasets it is 0.

    >>> gaussian_response(2, np.array([1 / np.pi])).round(4)  # 1 and exp(-1/2)
    array([[1.    , 0.6065]])
    """
    response = np.zeros((len(sigma), cells))
    terms = min(cells, int(_UNDERFLOW / (np.pi * max(float(np.min(sigma, initial=np.inf)), 1 / cells))) + 2)
    response[:, :terms] = np.exp(-0.5 * (sigma[:, None] * (np.pi * np.arange(terms))) ** 2)
    return response


def sampled_response(kernel: Float64s) -> Float64s:
    """Compute the factors for cosines, shape (..., cells), of a kernel sampled at distances of 0, ..., cells cells (last axis).

    The kernel is scaled to total mass 1, so that the factor for k = 0 is 1.

    >>> sampled_response(np.array([1.0, 0.0, 0.0]))
    array([1., 1.])
    """
    mirrored = np.concatenate([kernel, kernel[..., -2:0:-1]], axis=-1)
    response = np.fft.rfft(mirrored, axis=-1).real[..., :-1]
    return response / response[..., :1]


# ----------------------------------------------------------------------------------------------------
# The kernel-density calibration error

_CELLS = 4096  # by choice: cells of the grid on [0, 1]; a power of two, so that edges are exact


@dataclass(frozen=True)
class KernelDensityECE(Estimator):
    r"""Estimate the calibration error by kernel regression of outcomes on scores.

    Parameters
    ----------
    norm : float, default 2
        The p of the error.
    bandwidth : float or None, default None
        Standard deviation h of the kernel; None for :math:`\mathrm{std}(c) (2n)^{-1/5}`.

    Raises
    ------
    InputError
        For a bandwidth outside (0, 1].

    Notes
    -----
    :math:`(\int |c - T(c)|^p f(c)\,dc)^{1/p}` with :math:`T(c) = \sum_i K(c - c_i) y_i / \sum_i K(c - c_i)`, f the density of the
    scores and K the triweight kernel, reflected at 0 and 1. Computed on 4096 cells of equal width; a bandwidth below two cells
    is raised to two cells (only scores that hardly vary ask for one).

    References
    ----------
    Zhang, J., Kailkhura, B. and Han, T. Y.-J. (2020). Mix-n-Match: ensemble and compositional methods for uncertainty
    calibration in deep learning. ICML. arXiv:2003.07329

    Roelofs, R., Cain, N., Shlens, J. and Mozer, M. C. (2022). Mitigating bias in calibration error estimation. AISTATS.
    arXiv:2012.08668

    Examples
    --------
    >>> import truecal as tc
    >>> scores = [i / 100 for i in range(100)]
    >>> round(tc.estimators.KernelDensityECE(norm=1)(tc.profile.Profile.from_arrays(scores, [1] * 100)).value, 3)
    0.504
    """

    norm: float = 2
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        options.norm(self.norm)
        if self.bandwidth is not None and not (options.is_number(self.bandwidth) and 0 < self.bandwidth <= 1):
            raise InputError(f"bandwidth must lie in (0, 1], not {self.bandwidth!r}")

    def estimate(self, profile: Profile) -> Findings:
        """Compute the power of every dataset, shape (batch,); `settings["bandwidth"]` has the bandwidths, at least two cells."""
        bandwidths = np.maximum(self.bandwidths(profile), 2 / _CELLS)
        weight, outcome = cell_shares(profile, _CELLS, ("w", "y"))
        return Findings(self._power(weight, outcome, bandwidths), settings={"bandwidth": bandwidths})

    def bandwidths(self, profile: Profile) -> Float64s:
        """Choose the bandwidth of every dataset.

        Parameters
        ----------
        profile : Profile
            Scores and outcomes.

        Returns
        -------
        ndarray of shape (batch,)
            The option, or the standard deviation of the scores times (2 n)^(-1/5).
        """
        if self.bandwidth is not None:
            return np.full(profile.batch, float(self.bandwidth))
        whole = profile.whole()
        mean, square = (profile.sums(name, whole)[:, 0] / profile.total for name in ("c", "cc"))
        return np.sqrt(np.maximum(square - mean**2, 0.0)) * (2 * profile.size) ** -0.2

    def _power(self, weight: Float64s, outcome: Float64s, h: Float64s) -> Float64s:
        """Compute error^norm, shape (batch,), from shares of rows and of ones in cells (batch, cells), and bandwidths h (batch,).

        The mean of |c - rate(c)|^norm over the smoothed density of scores, with rate the smoothed ones over the smoothed rows.
        """
        response = sampled_response(_triweight(3 * h))  # a support of 3h gives the standard deviation h
        density = np.maximum(smooth(weight, response), 0.0)
        positive = smooth(outcome, response)
        supported = density > 1e-12 / _CELLS  # below that only rounding is left of the density
        curve = np.clip(positive / np.where(supported, density, 1.0), 0.0, 1.0)
        share = np.where(supported, density, 0.0)
        share = share / share.sum(axis=1, keepdims=True)
        return power_mean(midpoints(_CELLS) - curve, share, self.norm)


def _triweight(reach: Float64s) -> Float64s:
    """Evaluate (1 - (x / reach)^2)^3, reflected at 0 and 1, at distances x of 0, 1, ... cells; shape (batch, cells + 1).

    `reach`, shape (batch,), is half the support of the kernel, on [0, 1].

    >>> _triweight(np.array([0.5]))[0, [0, -1]]
    array([1., 0.])
    """
    images = int(np.ceil(reach.max() / 2))  # the mirrored line repeats with period 2
    total = np.zeros((len(reach), _CELLS + 1))
    for image in range(-images, images + 1) if reach.max() > 1 else (0,):
        height = (np.arange(_CELLS + 1) / _CELLS + 2.0 * image) / reach[:, None]
        height *= height
        np.subtract(1.0, height, out=height)
        np.maximum(height, 0.0, out=height)
        total += height * height * height
    return total


# ----------------------------------------------------------------------------------------------------
# The smooth calibration error as the package relplot (1.0.3) computes it, grid by grid

_SMALLEST = 1e-3  # derived: as relplot, which takes narrower bandwidths as too narrow
_BISECTIONS = 10  # derived: as relplot, which finds the bandwidth to 1/1024
_ADDED = 1e-4  # derived: as relplot, which adds it to the sum of kernels at a point


def relplot_fixed_point(scores: Float64s, residuals: Float64s, weights: Float64s) -> tuple[float, float]:
    """Find the bandwidth that equals its smoothed error, as relplot does by ten bisections; return (error, bandwidth).

    All arguments have shape (n,); residuals are (c - y) w. The bandwidth lies between 0.001 and 1; it is 1 where the error is
    larger.
    """

    def error(sigma: float) -> float:
        """Compute the error smoothed with bandwidth sigma."""
        grid = np.linspace(0, 1, max(round(10 / sigma), 200))
        points = max(2000, round(20 / sigma)) // 2 + 1
        size = np.abs(_smoothed(scores, residuals, sigma, points, grid)).sum()
        return float(size / (_smoothed(scores, weights, sigma, points, grid) + _ADDED).sum())

    def too_narrow(sigma: float) -> bool:
        """Decide whether the fixed point is at a larger bandwidth."""
        return sigma < _SMALLEST or sigma < error(sigma)

    if too_narrow(1.0):
        return error(1.0), 1.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_narrow(middle) else (low, middle)
    return error(high), high


def _smoothed(scores: Float64s, values: Float64s, sigma: float, points: int, points_at: Float64s) -> Float64s:
    """Convolve values at the scores with a Gaussian, reflected at 0 and 1, on a grid of `points` points from 0 to 1.

    Values, shape (n,), are divided between both neighbouring points; the result is interpolated at `points_at`, whose shape it
    has.
    """
    from scipy.signal import fftconvolve

    position = scores * (points - 1)
    lower = np.clip(position.astype(np.intp), 0, points - 2)
    part = position - lower
    grid = np.bincount(lower, (1 - part) * values, points) + np.bincount(lower + 1, part * values, points)
    mirrored = np.concatenate([grid[:0:-1], grid, grid[-2::-1]])
    offset = np.linspace(-0.5, 0.5, points)
    kernel = np.exp(-(offset**2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    start = points // 2
    smooth = fftconvolve(mirrored, kernel, "valid")[start : start + points]
    return np.interp(points_at, np.linspace(0, 1, points), smooth)


# ----------------------------------------------------------------------------------------------------
# The smooth calibration error (smECE)

_CELLS_SMOOTH = 8192  # by choice: cells of the grid on [0, 1]; a power of two, so that edges are exact
_STEPS = 60  # derived: twice the steps that halving takes to the precision below
_PRECISION = 1e-9  # by choice: relative, far below what 8192 cells resolve


@dataclass(frozen=True)
class SmoothECE(Estimator):
    r"""Estimate the smooth calibration error (smECE): residuals smoothed at the scale of the error itself.

    Parameters
    ----------
    rule : {"exact", "relplot"}, default "exact"
        "relplot" gives the number of that package, which searches and smooths on grids of its own (see `tc.like`); from rows
        only.

    Notes
    -----
    :math:`\mathrm{smECE} = \sigma^*` with :math:`\sigma^* = \int_0^1 |\frac1n \sum_i (y_i - c_i) K_{\sigma^*}(t, c_i)|\,dt`, K
    the Gaussian reflected at 0 and 1: a consistent measure within a factor of the distance to calibration. The right side falls as
    sigma grows, so the fixed point is unique. Computed on 8192 cells of equal width; errors below 1/8192 are reported as the
    smoothed residual at that scale.

    An absolute (norm 1) error, and a lower one than a binned error of the same data: residuals of opposite sign within sigma of
    each other cancel.

    References
    ----------
    Błasiok, J. and Nakkiran, P. (2024). Smooth ECE: principled reliability diagrams via kernel smoothing. ICLR.
    arXiv:2309.12236

    See Also
    --------
    truecal.like : Numbers of other tools.

    Examples
    --------
    >>> import truecal as tc
    >>> round(tc.SmoothECE()(tc.profile.Profile.from_arrays([0.9] * 1000, [1] * 500 + [0] * 500)).value, 3)
    0.4
    """

    rule: Literal["exact", "relplot"] = "exact"

    def __post_init__(self) -> None:
        options.choice(self.rule, ("exact", "relplot"), "rule")

    norm = 1.0  # the mean absolute smoothed residual

    def estimate(self, profile: Profile) -> Findings:
        """Compute the smooth error of every dataset, shape (batch,); `settings["bandwidth"]` is the fixed point sigma."""
        if self.rule == "relplot":
            value, sigma = np.array([relplot_fixed_point(*rows) for rows in _rows(profile)]).T
            return Findings(value, settings={"bandwidth": sigma})
        score, outcome = cell_shares(profile, _CELLS_SMOOTH, ("c", "y"))
        value, sigma = _fixed_point(outcome - score)
        return Findings(value, settings={"bandwidth": sigma})

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the value of all rows by rounding (proved); raise InputError for rule="relplot", whose grids need rows."""
        if self.rule == "relplot":
            raise InputError("another tool's grids need rows, not a sketch; use tc.SmoothECE()")
        return super().sketch_bound(cells, estimate)


def _rows(profile: Profile) -> Iterator[tuple[Float64s, Float64s, Float64s]]:
    """Yield scores, residuals (c - y) w, and weights w of each dataset, shape (rows,) each.

    >>> [rows for scores in _rows(Profile.from_arrays([0.25, 0.5], [0, 1])) for rows in scores]
    [array([0.25, 0.5 ]), array([ 0.25, -0.5 ]), array([1., 1.])]
    """
    weights = np.ones((1, profile.rows)) if profile.weights is None else profile.weights
    for i in range(profile.batch):
        score, y, w = (table[i % len(table)] for table in (profile.scores.astype(float), profile.outcomes, weights))
        yield score, (score - y) * w, w


def _fixed_point(residual: Float64s) -> tuple[Float64s, Float64s]:
    """Solve smECE(sigma) = sigma, given sums of y - c (of either sign) in cells over n, shape (batch, cells).

    smECE is the sum over cells of the absolute value after smoothing with a Gaussian of standard deviation sigma, reflected at 0
    and 1. Returns (errors, bandwidths), shape (batch,) each; where the error is below 1 / cells, that of the bandwidth 1 / cells.
    """
    from scipy.fft import dct, idct

    cosines = dct(residual, type=2, axis=1)

    def smoothed(sigma: Float64s, rows: Indices | slice = slice(None)) -> Float64s:
        """Compute the error smoothed with bandwidths sigma of the datasets `rows`, shape (datasets,)."""
        return np.abs(idct(cosines[rows] * gaussian_response(_CELLS_SMOOTH, sigma), type=2, axis=1)).sum(axis=1)

    # The excess over sigma falls from low to high; false position with halving (Illinois) keeps the root between them.
    low, high = np.full(len(residual), 1 / _CELLS_SMOOTH), np.ones(len(residual))
    at_low, at_high = smoothed(low) - low, smoothed(high) - high
    inside = at_low > 0  # otherwise the error is below what the cells can tell
    for _ in range(_STEPS):
        rows = np.flatnonzero(inside & (high - low > _PRECISION * high))  # those whose root is not known yet
        if not rows.size:
            break
        a, b, at_a, at_b = low[rows], high[rows], at_low[rows], at_high[rows]
        sigma = np.clip((a * at_b - b * at_a) / (at_b - at_a), a, b)
        excess = smoothed(sigma, rows) - sigma
        rising, settled = excess > 0, np.abs(excess) <= _PRECISION * sigma
        low[rows], high[rows] = np.where(rising | settled, sigma, a), np.where(rising & ~settled, b, sigma)
        at_low[rows], at_high[rows] = np.where(rising, excess, at_a / 2), np.where(rising, at_b / 2, excess)
    return smoothed(low), low
