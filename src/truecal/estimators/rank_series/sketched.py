"""How far the rank series of all rows may be from that of the cells of a sketch.

The bound is probed, not proved, because which of its terms the series keeps can change with any row: rows inside every cell are put
into the orders that move the value most, apart and tied, and four times the largest move is stated, and at least what every
number of terms gives that may be the chosen one.
"""

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.estimate import Estimate
from truecal.estimators.rank_series.basis import MOST_CELLS, Cells, rank_cells
from truecal.estimators.rank_series.fit import Fit, fit_cells, fit_series, value_of
from truecal.estimators.sketch_bounds import arranged
from truecal.profile.cell_profile import CellProfile
from truecal.types import Float64s

_MARGIN = 4.0  # times what was seen to move
_EVEN = 1e-9  # risks this close may be ordered either way


def largest_move(norm: float, profile: CellProfile, estimate: Estimate) -> float:
    """How far the rank series of all rows may be from that of the cells, by all that was tried.

    Rows are put into orders that add up, apart or tied, and what moves is taken four times. The risks by which the series chooses
    its number of terms move as well: every number whose risk may then be the smallest counts, with the value it gives.
    """
    if not profile.counted:
        return 1.0  # how importance weights are spread inside cells is not known
    fit, others = profile.once("rank series", fit_series), _tried(profile, _orders(profile, estimate))
    value = float(estimate.value)
    moved = max(float(np.abs(value_of(other, norm) - value).max()) for other in others)
    terms = min(len(some.risk) for some in (fit, *others))
    risk = fit.risk[:terms, 0]
    differ = [np.abs(other.risk[:terms] - risk[:, None]).max(axis=1) for other in others]
    unsure = _MARGIN * np.max(differ, axis=0) + _EVEN
    possible = risk - unsure <= (risk + unsure).min()
    low = _by_terms(norm, fit, terms)[0]
    loose = _MARGIN * np.max([np.abs(_by_terms(norm, other, terms) - low).max(axis=0) for other in others], axis=0)
    high = _corrected(low, fit, terms)
    elsewhere = np.maximum(np.abs(low - value), np.abs(high - value)) + loose
    possible[int(fit.chosen[0].sum()) - 1 :][:1] = False  # the number that was chosen: its value is known
    return max(_MARGIN * moved, float(loose.max()), float(elsewhere[possible].max(initial=0.0)))


def _tried(profile: CellProfile, orders: NDArray[np.bool_]) -> list[Fit]:
    """Fits of rows in these orders, apart and tied, and of cells as they are; those of a batch share what they can."""
    apart = [rank_cells(profile.tied()), rank_cells(arranged(profile, orders))]
    return [fit_cells(cells) for cells in (*Cells.batches(apart), rank_cells(profile.ordered(MOST_CELLS, orders)))]


def _by_terms(norm: float, fit: Fit, terms: int) -> Float64s:
    """The value of the series with every number of terms, shape (m, terms), not corrected for noise."""
    low = np.sqrt(np.maximum(fit.theta[:terms].T, 0.0))
    if norm == 2:
        return low
    gap, share = _gaps(fit, terms), fit.cells.share[:, :, None]
    return low * (np.abs(gap) @ share)[:, :, 0] / np.sqrt(np.maximum((gap * gap @ share)[:, :, 0], 1e-300))


def _corrected(low: Float64s, fit: Fit, terms: int) -> Float64s:
    """The most that the correction for noise can make of the values of a single fit, shape (terms,)."""
    square = _gaps(fit, terms)[0] ** 2
    second = np.maximum(square @ fit.cells.share[0], 1e-300)
    theta = np.maximum(fit.theta[:terms, 0], 0.0)
    noise = (1 / np.maximum(theta, 1e-300) + square.max(axis=1) / second) / (8 * float(fit.cells.n[0]))
    factor = 1 + np.minimum(noise, 0.25)
    plain = np.sqrt(theta)
    shape = np.divide(low, plain, out=np.ones_like(low), where=plain > 0)
    return np.minimum(plain * factor, 1.0) * shape


def _gaps(fit: Fit, terms: int) -> Float64s:
    """The fitted gap with every number of terms, shape (m, terms, G)."""
    return np.cumsum(fit.beta[:, :terms, None] * fit.basis.functions(fit.cells)[:, :terms], axis=1)


def _orders(profile: CellProfile, estimate: Estimate) -> NDArray[np.bool_]:
    """Where the fitted gap rises, ones last make it steeper: along the gap and against it; and one way everywhere."""
    rises = np.ones(profile.rows, bool)
    if estimate.curve is not None and profile.rows > 1:
        gap = np.interp(profile.scores[0], estimate.curve.score, estimate.curve.outcome - estimate.curve.score)
        rises = np.gradient(gap) > 0
    everywhere = np.ones(profile.rows, bool)
    return np.stack([rises, ~rises, everywhere, ~everywhere])
