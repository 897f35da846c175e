"""How far the rank series of all rows may be from that of the cells of a sketch.

The bound is probed, not proved, because which of its terms the series keeps can change with any row: rows inside every cell are put
into the orders that move the value most, apart and tied, and four times the largest move is stated, and at least what every
number of terms gives that may be the chosen one.
"""

import numpy as np
from numpy.typing import NDArray

from truecal.estimate.estimate import Estimate
from truecal.estimate.rank_series.basis import MOST_CELLS
from truecal.estimate.rank_series.fit import Fit, fit_series, value_of
from truecal.estimate.sketched.arranged import arranged
from truecal.profile import CellProfile
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
    tried = [profile.tied()]
    for order in _orders(profile, estimate):
        tried += [arranged(profile, order), profile.spread(MOST_CELLS, order)]
    fit, others = profile.once("rank series", fit_series), [fit_series(rows) for rows in tried]
    value = float(estimate.value)
    moved = max(abs(float(value_of(other, norm)[0]) - value) for other in others)
    terms = min(len(some.risk) for some in (fit, *others))
    risk = fit.risk[:terms, 0]
    unsure = _MARGIN * np.max([np.abs(other.risk[:terms, 0] - risk) for other in others], axis=0) + _EVEN
    possible = risk - unsure <= (risk + unsure).min()
    low, high = _by_terms(norm, fit, terms)
    loose = _MARGIN * np.max([np.abs(_by_terms(norm, other, terms)[0] - low) for other in others], axis=0)
    elsewhere = np.maximum(np.abs(low - value), np.abs(high - value)) + loose
    possible[int(fit.chosen[0].sum()) - 1 :][:1] = False  # the number that was chosen: its value is known
    return max(_MARGIN * moved, float(loose.max()), float(elsewhere[possible].max(initial=0.0)))


def _by_terms(norm: float, fit: Fit, terms: int) -> tuple[Float64s, Float64s]:
    """Between which values the series lies with every number of terms; the correction for noise is left open."""
    share, n = fit.cells.share[0], float(fit.cells.n[0])
    gap = np.cumsum(fit.beta[0, :terms, None] * fit.basis.functions(fit.cells)[0, :terms], axis=0)
    second = np.maximum((gap**2) @ share, 1e-300)
    theta = np.maximum(fit.theta[:terms, 0], 0.0)
    shape = (np.abs(gap) @ share) / np.sqrt(second) if norm == 1 else 1.0
    noise = (1 / np.maximum(theta, 1e-300) + (gap**2).max(axis=1) / second) / (8 * n)
    low = np.sqrt(theta)
    return low * shape, np.minimum(low * (1 + np.minimum(noise, 0.25)), 1.0) * shape


def _orders(profile: CellProfile, estimate: Estimate) -> list[NDArray[np.bool_]]:
    """Where the fitted gap rises, ones last make it steeper: along the gap and against it; and one way everywhere."""
    rises = np.ones(profile.rows, bool)
    if estimate.curve is not None and profile.rows > 1:
        gap = np.interp(profile.scores[0], estimate.curve.score, estimate.curve.outcome - estimate.curve.score)
        rises = np.gradient(gap) > 0
    everywhere = np.ones(profile.rows, bool)
    return [rises, ~rises, everywhere, ~everywhere]
