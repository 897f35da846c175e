"""From all significant tests to one row per cause.

One bad segment makes dozens of overlapping ones significant. The test of the largest u is taken as a cause; the scores of its
segment are corrected by a shift of their log odds, piece by piece, and the tests are looked at again. Only what is significant both
on the scores as they are and on the corrected ones is taken next: the first keeps the family-wise error (a segment that looks wrong
only because a neighbour was corrected is never listed), the second keeps the list short.
"""

from dataclasses import dataclass

import numpy as np

from truecal.breakdown.segments.null import Null, contrasted, contrasted_moments, normal_score, surprise
from truecal.breakdown.segments.records import Records
from truecal.breakdown.segments.tables import Tables
from truecal.types import Float64s, Indices

MOST = 20  # causes listed
_PIECES = (4, 64)  # of the scores of a segment, corrected one by one ...
_ROWS_OF_PIECE = 250  # ... each of about so many rows
_STEPS = 30
_LARGEST = 30.0  # log odds that a shift starts from


@dataclass(frozen=True, eq=False)
class Cause:
    """One segment to be listed: the test that found it, how many other segments it explains, and the scores after mending."""

    test: int
    segment: int
    explains: int
    mended: Float64s


def find_causes(records: Records, tables: Tables, null: Null, significant: Float64s, limit: float) -> list[Cause]:
    """Causes, strongest first. `significant` holds the u of every test on the scores as they are, -inf where not significant;
    at the `limit` it is so at the first step."""
    tests, score = null.tests, records.score
    causes: list[Cause] = []
    open_tests = np.isfinite(significant)
    least = min(limit, float(significant[open_tests].min())) if open_tests.any() else np.inf
    now = significant
    while open_tests.any() and len(causes) < MOST:
        test = int(np.argmax(np.where(open_tests, now, -np.inf)))
        segment = int(tests.segment[test])
        before = np.unique(tests.segment[open_tests])
        score = mended(records, np.flatnonzero(tables.mask(segment)), score)
        now = _surprises(records, tables, null, score)
        # Pieces are corrected on average only: what is left of a segment is no new cause.
        open_tests &= (now >= least) & (tests.segment != segment)
        explains = len(before) - 1 - len(np.intersect1d(before, np.unique(tests.segment[open_tests])))
        causes.append(Cause(test, segment, explains, score))
    return causes


def _surprises(records: Records, tables: Tables, null: Null, score: Float64s) -> Float64s:
    """u of every test on other scores; its deviation grows or shrinks as that of independent rows does."""
    sums = contrasted(tables(records.residual(score)[:, None]), null.tests)[:, 0]
    before, _ = contrasted_moments(records, tables, null.tests, records.score)
    second, third = contrasted_moments(records, tables, null.tests, score)
    z = sums / (null.deviation * np.sqrt(second / before))
    return np.asarray(surprise(normal_score(z, third / second**1.5), null.tests.price))


def mended(records: Records, rows: Indices, score: Float64s) -> Float64s:
    """The scores with those of `rows` shifted in log odds so that they agree with the outcomes, neighbouring scores together.

    Equal scores are one piece: parted by the order of rows, those of a sorted column would be mended value by value.
    """
    _, tied = np.unique(records.score[rows], return_inverse=True)
    size = np.bincount(tied, records.counts[rows])
    reached = np.cumsum(size)
    pieces = int(np.clip(reached[-1] // _ROWS_OF_PIECE, *_PIECES))
    piece = np.minimum((reached - size / 2) * pieces / reached[-1], pieces - 1).astype(np.intp)[tied]
    given = np.clip(score[rows], 1e-12, 1 - 1e-12)
    odds, mass = np.log(given / (1 - given)), records.mass[rows]
    weight = 1.0 if records.weight is None else records.weight[rows]
    ones = np.bincount(piece, weight * records.ones[rows], pieces)
    shift = np.zeros(pieces)
    for _ in range(_STEPS):
        rate = 1 / (1 + np.exp(-np.clip(odds + shift[piece], -_LARGEST, _LARGEST)))
        surplus = ones - np.bincount(piece, mass * rate, pieces)
        # One more row of variance 1 keeps the shift of a piece without ones (or zeros) finite.
        shift += np.clip(surplus / (np.bincount(piece, mass * rate * (1 - rate), pieces) + 1), -1, 1)
    result = score.copy()
    result[rows] = 1 / (1 + np.exp(-np.clip(odds + shift[piece], -_LARGEST, _LARGEST)))
    return result
