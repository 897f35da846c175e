"""Rank cells and polynomials orthonormal over them.

Arrays have the datasets of a batch first: m datasets, K terms, G cells. Equation numbers are those of
docs/methods/rank-series.md.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s, Indices

MIN_ORDER = 3  # derived: constant, slope and bend, what a bias and a temperature do to a curve
MAX_ORDER = 64  # derived: the cost is K x cells; reached from n = 16,384 on
MAX_CELLS = 1024  # derived: 16 cells resolve the oscillation of each of 64 terms
_MIN_NORM = 1e-6  # derived: a new polynomial has a norm near 1/4 until the distinct ranks are used up, then 1e-15
_MAX_OVERLAP = 1e-9  # derived: rounding of a sum of 1024 products, with a margin of 1e4


def max_order(n: Float64s) -> Float64s:
    """Largest number of terms for n rows: sqrt(n) / 2, between 3 and 64."""
    return np.clip(np.floor(np.sqrt(n) / 2), MIN_ORDER, MAX_ORDER)


@dataclass(frozen=True, eq=False)
class RankCells:
    """Sums over cells of rows with neighbouring ranks, shape (m, G).

    Without ties and weights all datasets of a batch have the same counts and ranks, which are then stored once.
    """

    n: Float64s  # (m,) sample size
    counts: Float64s  # (m or 1, G) rows in each cell
    residual_sums: Float64s  # sum of y - c
    square_sums: Float64s  # sum of (y - c)^2
    scores: Float64s  # mean c
    null_variances: Float64s  # mean c (1 - c): the variance of an outcome under calibration
    ranks: Float64s  # (m or 1, G) mean mid-rank / n, ascending
    distinct: Float64s  # (m or 1,) number of distinct ranks

    @cached_property
    def shares(self) -> Float64s:
        """Share of the rows in each cell, shape (m or 1, G)."""
        return self.counts / self.n[: len(self.counts), None]

    @property
    def dataset_counts(self) -> Float64s:
        """The counts of every dataset, shape (m, G)."""
        return np.broadcast_to(self.counts, self.scores.shape)

    @property
    def dataset_ranks(self) -> Float64s:
        """The ranks of every dataset, shape (m, G)."""
        return np.broadcast_to(self.ranks, self.scores.shape)


# ---------------------------------------------------------------------- cells


def rank_cells(profile: Profile) -> RankCells:
    """Join rows in cells: single rows or distinct scores up to 1024 of them, else 1024 cells of equal mass."""
    profile = profile.spread(MAX_CELLS)
    if profile.rows <= MAX_CELLS and profile.weights is None:
        return _single_rows(profile)
    distinct = np.minimum(profile.distinct, MAX_CELLS)
    if profile.rows <= MAX_CELLS:
        cut = profile.at_rows()
    elif profile.distinct.max() <= MAX_CELLS:
        cut = _distinct_score_cut(profile)
    else:
        cut = profile.mass_cut(MAX_CELLS)
    return _cells_between(profile, cut, distinct.astype(float))


def _single_rows(profile: Profile) -> RankCells:
    """Make a cell of every row."""
    scores = profile.scores.astype(np.float64, copy=False)
    residuals = profile.outcomes - scores
    if profile.has_ties:
        first, last = profile.groups
        ranks = (first + last) / (2.0 * profile.rows)  # (3)
    else:
        ranks = (np.arange(profile.rows)[None] + 0.5) / profile.rows
    return RankCells(
        n=profile.size,
        counts=np.ones_like(ranks),
        residual_sums=residuals,
        square_sums=residuals * residuals,
        scores=np.broadcast_to(scores, residuals.shape),
        null_variances=np.broadcast_to(scores * (1 - scores), residuals.shape),
        ranks=ranks,
        distinct=profile.distinct.astype(float),
    )


def _cells_between(profile: Profile, cut: Cut, distinct: Float64s) -> RankCells:
    """Make a cell of the rows between two neighbouring cuts, by differences of prefix sums."""
    scale = (profile.size / profile.total)[:, None]
    same_counts = profile.alike or (profile.weights is None and not profile.has_ties)
    datasets = slice(0, 1 if same_counts else None)
    mass = profile.sums("w", cut)[datasets]
    # Rounding of prefix sums can make a row of no weight slightly negative.
    counts = np.maximum(np.diff(mass, axis=1), 0.0) * scale[datasets]
    divisors = positive(counts)
    # The mean mid-rank (3) of a cell is a difference of integrals of the mid-rank up to the cuts: t^2 / 2 at the end of
    # a group of ties, linear within it.
    group_start, group_end = (profile.sums("w", Cut(rows, rows))[datasets] for rows in (cut.below, cut.above))
    integral = group_start**2 / 2 + (mass - group_start) * (group_start + group_end) / 2
    ranks = np.diff(integral, axis=1) * scale[datasets] / divisors / profile.total[datasets, None]
    c, y, cc, cy = (np.diff(profile.sums(name, cut), axis=1) * scale for name in ("c", "y", "cc", "cy"))
    return RankCells(
        n=profile.size,
        counts=counts,
        residual_sums=y - c,
        square_sums=np.maximum(y - 2 * cy + cc, 0.0),
        scores=np.clip(c / divisors, 0.0, 1.0),
        null_variances=np.maximum(c - cc, 0.0) / divisors,
        ranks=np.maximum.accumulate(ranks, axis=1),  # an empty cell takes the rank of the one before it
        distinct=distinct,
    )


def _distinct_score_cut(profile: Profile) -> Cut:
    """Cut between distinct scores; datasets with fewer of them end in empty cells."""
    ends = np.full((len(profile.scores), int(profile.distinct.max()) + 1), profile.rows)
    ends[:, 0] = 0
    for dataset_ends, scores in zip(ends, profile.scores, strict=True):
        starts = np.flatnonzero(scores[1:] != scores[:-1]) + 1
        dataset_ends[1 : len(starts) + 1] = starts
    return Cut(ends, ends)


# ---------------------------------------------------------------------- basis


def rank_basis(cells: RankCells) -> Float64s:
    """Compute functions of the rank that are orthonormal over the cells (4), shape (m or 1, K, G).

    Each function is multiplied by the root of the share of its cell, so that it is a vector of length 1. It is zero in
    empty cells and beyond a dataset's own number of terms. Datasets of as many rows without ties share their basis.
    """
    datasets = slice(0, len(cells.counts))
    orders = np.minimum(max_order(cells.n[datasets]), cells.distinct[datasets])
    if len(orders) == 1:
        return _cached_basis(cells.shares.tobytes(), cells.ranks.tobytes(), float(orders[0]))
    return _polynomials(cells.shares, cells.ranks, orders)


def basis_functions(basis: Float64s, cells: RankCells) -> Float64s:
    """Compute the orthonormal functions themselves, shape (m or 1, K, G); zero in empty cells."""
    return basis / np.sqrt(np.where(cells.counts > 0, cells.shares, 1.0))[:, None, :]


def select_basis(basis: Float64s, datasets: Indices) -> Float64s:
    """Select the basis of datasets of the batch, shape (len(datasets) or 1, K, G)."""
    return basis if len(basis) == 1 else basis[datasets]


@lru_cache(maxsize=8)
def _cached_basis(shares: bytes, ranks: bytes, order: float) -> Float64s:
    basis = _polynomials(np.frombuffer(shares)[None], np.frombuffer(ranks)[None], np.array([order]))
    basis.flags.writeable = False
    return basis


def _polynomials(shares: Float64s, ranks: Float64s, orders: Float64s) -> Float64s:
    """Orthonormalise powers of the rank by the three-term recurrence, as many terms as each dataset has."""
    constant = np.sqrt(shares)
    x = ranks - np.vecdot(shares, ranks)[:, None]
    # In memory terms come first: one term of all datasets is contiguous.
    basis = np.zeros((int(orders.max()), *x.shape)).transpose(1, 0, 2)
    basis[:, 0] = constant
    active = np.ones(len(x), bool)
    norm = np.zeros(len(x))
    scratch = np.empty_like(x)  # of batches: larger arrays are allocated page by page
    for j in range(1, basis.shape[1]):
        previous = basis[:, j - 1]
        new = np.multiply(x, previous, out=basis[:, j])
        new -= np.multiply(previous, np.vecdot(previous, new)[:, None], out=scratch)
        if j > 1:
            new -= np.multiply(basis[:, j - 2], norm[:, None], out=scratch)
        norm = np.sqrt(np.vecdot(new, new))
        if (np.abs(np.vecdot(new, constant)) > _MAX_OVERLAP * norm).any():
            # Long ties let the recurrence lose orthogonality, as Lanczos' does; the constant term shows it first.
            earlier = basis[:, :j]
            new -= ((new[:, None, :] @ earlier.transpose(0, 2, 1)) @ earlier)[:, 0]
            norm = np.sqrt(np.vecdot(new, new))
        active &= (norm >= _MIN_NORM) & (j < orders)
        new *= np.where(active, 1 / positive(norm), 0.0)[:, None]
    return basis
