"""The rows behind the cells of a sketch, made up: spread evenly, or put into extreme orders to see how far an estimate can move."""

import numpy as np
from numpy.typing import NDArray

from truecal.estimate.estimate import Estimate
from truecal.estimate.rank_series.basis import MOST_CELLS
from truecal.estimate.rank_series.series import Fit, RankSeries, fit_series
from truecal.profile import Profile
from truecal.profile.sketch.profile import CellProfile
from truecal.types import Float64s

_MARGIN = 4.0  # times what was seen to move
_EVEN = 1e-9  # risks this close may be ordered either way


def arranged(profile: CellProfile, zeros_first: NDArray[np.bool_]) -> Profile:
    """Every cell of several scores as two rows, its zeros and its ones, in the order asked for; all sums stay what they were.

    A cell of zeros only, or of ones only, is halved.
    """
    assert profile.weights is not None
    assert profile.squares is not None
    assert profile.products is not None
    weight, score, rate = profile.weights[0], profile.scores[0].astype(np.float64), profile.outcomes[0]
    ranged = profile.low < profile.high
    mixed = (rate > 0) & (rate < 1)
    first = np.where(mixed, np.where(zeros_first, 1 - rate, rate), 0.5)  # share of the cell's weight that comes first
    down, up = (score - profile.low) / np.maximum(1 - first, 1e-300), (profile.high - score) / np.maximum(first, 1e-300)
    room = np.minimum(down, up)
    room = np.where(ranged, np.maximum(room, 0.0) / 2, 0.0)
    lower, upper = score - room * (1 - first), score + room * first
    some = np.rint(weight * first) if profile.counted else weight * first
    cell = np.repeat(np.arange(profile.rows), np.where(ranged, 2, 1))
    second = np.zeros(len(cell), bool)
    second[1:] = cell[1:] == cell[:-1]
    split = ranged[cell]

    def rows(whole: Float64s, before: Float64s, after: Float64s) -> Float64s:
        return np.where(split, np.where(second, after[cell], before[cell]), whole[cell])[None]

    ones = profile.products[0] / np.where(rate > 0, rate, 1.0)  # mean c of the ones, which zeros do not have
    before = np.where(mixed, np.where(zeros_first, 0.0, 1.0), rate)
    after = np.where(mixed, 1.0 - before, rate)
    return Profile(
        np.maximum.accumulate(rows(score, lower, upper), axis=1),
        rows(rate, before, after),
        rows(weight, some, weight - some),
        rows(profile.squares[0], profile.squares[0], profile.squares[0]),
        rows(profile.products[0], ones * before, ones * after),
        single=True,
    )


def largest_move(estimator: RankSeries, profile: CellProfile, estimate: Estimate) -> float:
    """How far the rank series of all rows may be from that of the cells, by all that was tried.

    Rows are put into orders that add up, apart or tied, and what moves is taken four times. The risks by which the series chooses
    its number of terms move as well: every number whose risk may then be the smallest counts, with the value it gives.
    """
    if not profile.counted:
        return 1.0  # how importance weights are spread inside cells is not known
    tried = [profile.tied()]
    for order in _orders(profile, estimate):
        tried += [arranged(profile, order), profile.spread(MOST_CELLS, order)]
    fit, others = fit_series(profile), [fit_series(rows) for rows in tried]
    value = float(estimate.value)
    moved = max(abs(float(estimator.value_of(other)[0]) - value) for other in others)
    terms = min(len(some.risk) for some in (fit, *others))
    risk = fit.risk[:terms, 0]
    unsure = _MARGIN * np.max([np.abs(other.risk[:terms, 0] - risk) for other in others], axis=0) + _EVEN
    possible = risk - unsure <= (risk + unsure).min()
    low, high = _by_terms(estimator, fit, terms)
    loose = _MARGIN * np.max([np.abs(_by_terms(estimator, other, terms)[0] - low) for other in others], axis=0)
    elsewhere = np.maximum(np.abs(low - value), np.abs(high - value)) + loose
    possible[int(fit.chosen[0].sum()) - 1 :][:1] = False  # the number that was chosen: its value is known
    return max(_MARGIN * moved, float(loose.max()), float(elsewhere[possible].max(initial=0.0)))


def _by_terms(estimator: RankSeries, fit: Fit, terms: int) -> tuple[Float64s, Float64s]:
    """Between which values the series lies with every number of terms; the correction for noise is left open."""
    share, n = fit.cells.share[0], float(fit.cells.n[0])
    gap = np.cumsum(fit.beta[0, :terms, None] * fit.basis.functions(fit.cells)[0, :terms], axis=0)
    second = np.maximum((gap**2) @ share, 1e-300)
    theta = np.maximum(fit.theta[:terms, 0], 0.0)
    shape = (np.abs(gap) @ share) / np.sqrt(second) if estimator.norm == 1 else 1.0
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
