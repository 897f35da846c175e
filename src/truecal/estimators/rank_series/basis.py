"""Rank cells, and functions of the rank that are orthonormal over them, for all rows or for each side of 1/2.

Arrays have the datasets of a batch first: m datasets, K terms, G cells. Equation numbers are those of
docs/methods/rank-series.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.bins import distinct_cut
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.special import positive
from truecal.types import Float64s, Indices

MIN_ORDER = 3  # derived: constant, slope and bend, what a bias and a temperature do to a curve
MAX_ORDER = 64  # by choice: the cost is K x cells; reached from n = 16,384 on
# Tuned on the atlas: with 1/2 its RMSE is 1 to 2 % higher and the bias of recalibrated models 6 % higher at n = 200.
SMALL_SIDE_TERMS = 0.25  # of the root of the rows on the smaller side
MAX_CELLS = 1024  # derived: 16 cells resolve the oscillation of each of 64 terms
RANK_ROUNDING = 1e-9  # derived: rounding of a rank times a number of windows, whose values are 1 / (2 n) apart
_PART_CELLS = 1 << 15  # derived: cells of a batch that are fitted together: what stays in cache
_PART_ROWS = 1 << 17  # by choice: rows of datasets that wait for the others of their batch
_MIN_VARIANCE, _MIN_SCALE = 1e-280, 1e-20  # derived: their product divides a squared coefficient of 1 without overflow
_SINGLE_THREAD_PRODUCTS = 1 << 18  # by choice: multiplications up to which BLAS stays on one thread
_MIN_NORM = 1e-6  # derived: a new polynomial has a norm near 1/4 until the distinct ranks are used up, then 1e-15
_MAX_OVERLAP = 1e-9  # derived: rounding of a sum of 1024 products, with a margin of 1e4


def max_order(n: Float64s) -> Float64s:
    """Return the largest number of terms for n rows or clusters, floor(sqrt(n) / 2) between 3 and 64, of the shape of n.

    >>> max_order(np.array([10, 400, 1_000_000]))
    array([ 3., 10., 64.])
    """
    return np.clip(np.floor(np.sqrt(n) / 2), MIN_ORDER, MAX_ORDER)


class Sides(NamedTuple):
    """The sides of 1/2 that cells lie on (3a); a smaller side of fewer than 16 rows (or clusters) is joined to the larger one."""

    small: NDArray[np.bool_]  # (m or 1, G) cells of the smaller side
    small_share: Float64s  # (m or 1,) share of the rows there
    small_order: Float64s  # (m or 1,) largest number of terms there, 0 where both sides are one
    ranks: Float64s  # (m or 1, G) mid-rank within the side from 1/2 outwards, over its number of rows


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
    upper: NDArray[np.bool_]  # (m or 1, G) cells above 1/2; at 1/2 those of the side with more rows
    units: Float64s  # (m or 1,) number of independent units, rows or clusters

    @cached_property
    def shares(self) -> Float64s:
        """Share of the rows in each cell, shape (m or 1, G)."""
        return self.counts / self.n[: len(self.counts), None]

    @cached_property
    def few_scores(self) -> NDArray[np.bool_]:
        """Whether there are no more distinct scores than `max_order` of the units (4b), shape (m or 1,)."""
        return self.distinct[: len(self.counts)] <= max_order(self.units)

    @cached_property
    def orders(self) -> Float64s:
        """Largest number of terms of each dataset, min(`max_order` of the units, distinct ranks), shape (m or 1,)."""
        return np.minimum(max_order(self.units), self.distinct[: len(self.counts)])

    @cached_property
    def basis(self) -> Float64s:
        """Functions of the rank of all rows, orthonormal over the cells, shape (m or 1, K, G); see `rank_basis`."""
        return rank_basis(self)

    @cached_property
    def null_covariance(self) -> Float64s:
        """Covariance (10) of the coefficients of `basis` under calibration, shape (m, K, K); see `null_covariance`."""
        return null_covariance(self, self.basis)

    @cached_property
    def sides(self) -> Sides:
        """Which cells lie on the side of 1/2 with fewer rows, and ranks within the sides (3a); see `Sides`."""
        upper_share = np.vecdot(self.shares, self.upper)
        lower_share = 1 - upper_share
        small_share = np.minimum(upper_share, lower_share)
        small_order = np.floor(SMALL_SIDE_TERMS * np.sqrt(self.units * small_share + RANK_ROUNDING))
        upper_is_large, joined = upper_share >= lower_share, small_order < 1
        start = np.where(joined, ~upper_is_large, lower_share)[:, None]  # the rank that is nearest to 1/2
        width = np.where(self.upper, upper_share[:, None], lower_share[:, None])
        width = np.where(joined[:, None], 1.0, positive(width))
        return Sides(
            (self.upper != upper_is_large[:, None]) & ~joined[:, None],
            np.where(joined, 0.0, small_share),
            small_order,
            np.abs(self.ranks - start) / width,
        )


# ---------------------------------------------------------------------- cells


def stacked_cells(profiles: Iterable[Profile]) -> Iterator[tuple[list[Profile], RankCells]]:
    """Join the rows of single datasets of any sizes in rank cells; yield consecutive datasets in batches of bounded memory.

    Each batch comes with the list of its profiles, in the order given.
    """
    batch: list[Profile] = []
    largest = total = 0
    for profile in profiles:
        largest, total = max(largest, min(profile.rows, MAX_CELLS)), total + profile.rows
        if batch and ((len(batch) + 1) * largest > _PART_CELLS or total > _PART_ROWS):
            yield batch, stack_cells(batch)
            batch, largest, total = [], min(profile.rows, MAX_CELLS), profile.rows
        batch.append(profile)
    if batch:
        yield batch, stack_cells(batch)


def stack_cells(profiles: Sequence[Profile]) -> RankCells:
    """Join the rows of single datasets in rank cells, one RankCells each, and stack these in one batch of len(profiles).

    Datasets with fewer cells than others end with empty cells of the rank of their last one. The cells of each are stored in its
    cache.
    """
    datasets: list[RankCells] = []
    for profile in profiles:
        if "rank cells" not in profile.cache:
            profile.cache["rank cells"] = rank_cells(profile)
        datasets.append(profile.cache["rank cells"])
    if len(datasets) == 1:
        return datasets[0]
    cells = max(dataset.scores.shape[1] for dataset in datasets)

    def stack(name: str) -> np.ndarray:
        """Stack a field of all datasets, shape (m,) or (m, cells)."""
        values = [getattr(dataset, name)[0] for dataset in datasets]
        if np.ndim(values[0]) == 0:
            return np.array(values)
        stacked = np.zeros((len(values), cells), values[0].dtype)
        for row, value in zip(stacked, values, strict=True):
            row[: len(value)] = value
            if name in ("ranks", "upper"):
                row[len(value) :] = value[-1]
        return stacked

    return RankCells(*(stack(field.name) for field in fields(RankCells)))


def cell_parts(profile: Profile) -> Iterator[RankCells]:
    """Join the rows of a batch in rank cells; yield them in parts of bounded memory, datasets in order."""
    if profile.batch == 1:
        yield stack_cells([profile])
        return
    step = max(1, _PART_CELLS // min(profile.rows, MAX_CELLS))
    for start in range(0, profile.batch, step):
        yield rank_cells(profile if step >= profile.batch else profile.take(slice(start, start + step)))


def rank_cells(profile: Profile) -> RankCells:
    """Join rows in cells: single rows or distinct scores up to 1024 of them, else 1024 cells of equal mass.

    Rows of equal score share their outcomes. No cell of several scores crosses 1/2; those at 1/2 belong to the side with
    more rows.
    """
    profile = profile.spread(MAX_CELLS)
    if profile.rows <= MAX_CELLS:
        lower_rows = (profile.scores < 0.5).sum(axis=1, keepdims=True)
        not_above = (profile.scores <= 0.5).sum(axis=1, keepdims=True)
    else:
        half = np.array([[0.5]], profile.precision)
        lower_rows, not_above = profile.count_below(half, "left"), profile.count_below(half, "right")
    if (lower_rows != not_above).any():
        below_mass, not_above_mass = (profile.sums("w", Cut(rows, rows)) for rows in (lower_rows, not_above))
        lower_rows = np.where(profile.total[:, None] - not_above_mass >= below_mass, lower_rows, not_above)
    if profile.rows <= MAX_CELLS and profile.weights is None:
        return _single_rows(profile, lower_rows)
    if profile.rows > MAX_CELLS:
        cut = _equal_mass_cut(profile, lower_rows)
        if (np.diff(cut.below, axis=1) > 0).all():  # every cell has a score of its own
            distinct = np.full(len(cut.below), float(MAX_CELLS))
            return _cells_between(profile, cut, distinct, cut.below[:, :-1] >= lower_rows)
        if profile.distinct.max() <= MAX_CELLS:
            cut = distinct_cut(profile)
    elif profile.has_ties:
        cut = profile.at_mass(np.broadcast_to(profile.prefix("w"), (profile.batch, profile.rows + 1)))
    else:
        every_row = np.arange(profile.rows + 1)[None]
        cut = Cut(every_row, every_row)
    distinct = np.minimum(profile.distinct, MAX_CELLS).astype(float)
    return _cells_between(profile, cut, distinct, cut.below[:, :-1] >= lower_rows)


def _equal_mass_cut(profile: Profile, lower_rows: Indices) -> Cut:
    """Cut into 1024 cells of equal mass that keep ties together; the cut nearest to `lower_rows` is moved there.

    `lower_rows`, shape (m or 1, 1), is the number of rows on the lower side of 1/2; where it is none or all, no cut is moved.
    """
    total = profile.total[: 1 if profile.weights is None or profile.alike else None, None]
    masses = np.arange(MAX_CELLS + 1) * total / MAX_CELLS
    masses = np.ceil(masses) if profile.counted else masses
    lower_mass = profile.sums("w", Cut(lower_rows, lower_rows))[: len(lower_rows)]
    masses = np.repeat(masses, len(lower_mass) if len(masses) == 1 else 1, axis=0)
    nearest = np.abs(masses[:, 1:-1] - lower_mass).argmin(axis=1)[:, None] + 1
    crosses = (lower_mass > 0) & (lower_mass < total)
    np.put_along_axis(masses, nearest, np.where(crosses, lower_mass, np.take_along_axis(masses, nearest, 1)), axis=1)
    cut = profile.at_count(masses.astype(np.intp)) if profile.weights is None else profile.at_mass(masses)
    return cut.keep_ties()


def _single_rows(profile: Profile, lower_rows: Indices) -> RankCells:
    """Make a cell of every row of unweighted datasets; cells from `lower_rows`, shape (m or 1, 1), on are above 1/2.

    Ranks are (i + 1/2) / n of the row at position i, and for equal scores the middle of their positions (3).
    """
    scores = profile.scores.astype(np.float64, copy=False)
    residuals = profile.outcomes - scores
    if (profile.distinct < profile.rows).any():
        first, last = profile.groups
        ranks = (first + last) / (2.0 * profile.rows)  # (3)
    else:
        ranks = (np.arange(profile.rows)[None] + 0.5) / profile.rows
    if (lower_rows != lower_rows[0]).any():
        ranks = np.broadcast_to(ranks, scores.shape)
    return RankCells(
        n=profile.size,
        counts=np.ones_like(ranks),
        residual_sums=residuals,
        square_sums=residuals * residuals,
        scores=np.broadcast_to(scores, residuals.shape),
        null_variances=np.broadcast_to(scores * (1 - scores), residuals.shape),
        ranks=ranks,
        distinct=profile.distinct.astype(float),
        upper=np.broadcast_to(np.arange(profile.rows) >= lower_rows[: len(ranks)], ranks.shape),
        units=profile.size[: len(ranks)],
    )


def _cells_between(profile: Profile, cut: Cut, distinct: Float64s, upper: NDArray[np.bool_]) -> RankCells:
    """Make a cell of the rows between any two consecutive cuts; c cuts give G = c - 1 cells.

    `distinct` and `upper` are those of `RankCells`. Importance weights are scaled to the effective sample size.
    """
    scale = (profile.size / profile.total)[:, None]
    same_counts = profile.alike or (
        profile.weights is None and not profile.has_ties and len(cut.below) == len(upper) == 1
    )
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
        upper=np.broadcast_to(upper[datasets], counts.shape),
        units=profile.size[datasets],
    )


# ---------------------------------------------------------------------- basis


def rank_basis(cells: RankCells, order: int | None = None, *, by_side: bool = False) -> Float64s:
    """Compute functions of the score that are orthonormal over the cells (4), shape (m or 1, K, G).

    They are polynomials in the rank, of degrees 0, ..., K - 1 (`by_side`: in the rank within each side of 1/2, combined by (4a)),
    or, where there are no more distinct scores than terms, indicators of distinct scores (4b). Each function is multiplied by the
    root of the share of its cell, so that basis @ basis' is the identity matrix.

    K is `order`, by default as many as the number of units allows, and at most the distinct ranks. Functions are zero in empty
    cells and beyond the dataset's number of terms. Datasets of as many rows on each side without ties share their basis.
    """
    orders = cells.orders if order is None else np.minimum(float(order), cells.distinct[: len(cells.counts)])
    shares, few = cells.shares, cells.few_scores
    if few.all():
        return _distinct_score_functions(shares, cells.ranks, int(orders.max()))
    zero = np.zeros(len(orders))
    sides = cells.sides if by_side else Sides(np.zeros(shares.shape, bool), zero, zero, cells.ranks)
    if len(orders) == 1:
        return _cached_basis(shares.tobytes(), float(orders[0]), *map(np.ndarray.tobytes, sides))
    basis = _two_sided_functions(shares, orders, sides)
    if few.any():
        basis[few] = _distinct_score_functions(shares[few], cells.ranks[few], basis.shape[1])
    return basis


def basis_functions(basis: Float64s, cells: RankCells) -> Float64s:
    """Divide a basis by the roots of the shares of cells: phi of (4) itself, whose mean square over rows is 1, (m or 1, K, G).

    Zero in empty cells.
    """
    return basis / np.sqrt(np.where(cells.counts > 0, cells.shares, 1.0))[:, None, :]


def null_covariance(cells: RankCells, basis: Float64s) -> Float64s:
    """Compute the covariance (10) of the coefficients of a basis under calibration, E[phi_j phi_k c (1 - c)] / n, (m, K, K)."""
    terms, variances = basis.shape[1], cells.null_variances[:, None]
    total = np.zeros((len(cells.n), terms, terms))
    step = max(128, _SINGLE_THREAD_PRODUCTS // terms**2)
    for start in range(0, basis.shape[2], step):
        part = basis[:, :, start : start + step]
        total += (part * variances[:, :, start : start + step]) @ part.transpose(0, 2, 1)
    return total / cells.n[:, None, None]


def smooth_test_statistic(coefficients: Float64s, covariance: Float64s) -> Float64s:
    """Compute the largest standardised sum of excess squares of the first coefficients (18), shape (...).

    max_k sum_{j <= k} (b_j^2 - V_jj) / sqrt(2 sum_{i, j <= k} V_ij^2), with the coefficients b of shape (..., K) and their
    covariance V under calibration, shape (K, K), of which a diagonal entry is positive.

    >>> float(smooth_test_statistic(np.array([2.0]), np.array([[2.0]])).round(4))  # (4 - 2) / sqrt(8)
    0.7071
    """
    # Relative to the largest variance, squares of tiny scores do not underflow.
    variances = covariance.diagonal()
    unit = max(float(variances.max()), _MIN_VARIANCE)
    scale = np.sqrt(2 * np.cumsum(np.cumsum((covariance / unit) ** 2, axis=0), axis=1).diagonal())
    first = int(np.argmax(scale > 0))  # sums of squares: once positive they stay positive
    sums = np.tri(len(scale))[first:] / np.maximum(scale[first:], _MIN_SCALE)[:, None]
    squares = (coefficients / np.sqrt(unit)) ** 2
    return np.asarray(((sums @ squares.T).T - sums @ variances / unit).max(axis=-1))


@lru_cache(maxsize=8)
def _cached_basis(shares: bytes, order: float, small: bytes, *numbers: bytes) -> Float64s:
    """Compute `_two_sided_functions` of one dataset, shape (1, K, G), read-only, and store the last eight results.

    `shares`, `small` and `numbers` are the bytes of arrays of shape (G,) or (1,), those of `Sides`, which can be keys of the cache.
    """
    small_share, small_order, ranks = map(np.frombuffer, numbers)
    sides = Sides(np.frombuffer(small, bool)[None], small_share, small_order, ranks[None])
    basis = _two_sided_functions(np.frombuffer(shares)[None], np.array([order]), sides)
    basis.flags.writeable = False
    return basis


def rank_groups(shares: Float64s, ranks: Float64s) -> Indices:
    """Number the groups of cells of equal rank from 0 on, (m, cells), given shares and ascending ranks of that shape.

    Two cells have different ranks if these differ by more than a quarter of the sum of their shares: mid-ranks of two scores
    differ by at least half of it, those of one score by rounding, which no fixed number bounds for rows of very small weight.

    >>> rank_groups(np.array([[0.25, 0.25, 0.5]]), np.array([[0.25, 0.25, 0.75]]))
    array([[0, 0, 1]])
    """
    steps = np.diff(ranks, axis=1) > (shares[:, 1:] + shares[:, :-1]) / 4
    steps &= np.cumsum(shares, axis=1)[:, :-1] > 0  # the first cell that is not empty begins the first group
    return np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1)


def _distinct_score_functions(shares: Float64s, ranks: Float64s, terms: int) -> Float64s:
    """Compute the indicator of the j-th distinct rank times the root of `shares`, scaled to length 1 (4b), (m, terms, cells).

    Equal ranks are those of one group of :func:`rank_groups`. Indicators beyond the distinct ranks of a dataset are 0.

    >>> _distinct_score_functions(np.array([[0.25, 0.25, 0.5]]), np.array([[0.25, 0.25, 0.75]]), 2).round(4)
    array([[[0.7071, 0.7071, 0.    ],
            [0.    , 0.    , 1.    ]]])
    """
    group, roots = rank_groups(shares, ranks), np.sqrt(shares)
    basis = np.where(group[:, None] == np.arange(terms)[:, None], roots[:, None], 0.0)
    return basis / np.sqrt(positive(np.vecdot(basis, basis)))[:, :, None]


def _two_sided_functions(shares: Float64s, orders: Float64s, sides: Sides) -> Float64s:
    """Combine polynomials in the rank within each side of 1/2 (4a), shape (m, terms, cells).

    `shares` have shape (m, cells), `orders` (m,) are the numbers of terms. As many polynomials as both sides have come in pairs,
    sqrt(1-p) large - sqrt(p) small and sqrt(p) large + sqrt(1-p) small, with p the share of the small side; then those of the
    larger number alone. Without a small side they are the polynomials in the rank of all rows.
    """
    small, small_share, small_order, ranks = sides
    if not small.any():
        return _polynomials(shares, ranks, orders)
    large_vectors = _side_polynomials(shares, ranks, ~small, orders)
    small_vectors = _side_polynomials(shares, ranks, small, np.minimum(small_order, orders))
    large_count, small_count = (vectors.any(axis=2).sum(axis=1)[:, None] for vectors in (large_vectors, small_vectors))
    pairs = np.minimum(large_count, small_count)
    term = np.arange(large_vectors.shape[1])
    paired, opposite_signs = term < 2 * pairs, term % 2 == 0
    index = np.where(paired, term // 2, term - pairs)
    a, b = np.sqrt(1 - small_share)[:, None], np.sqrt(small_share)[:, None]
    inside = term < orders[:, None]
    of_large = np.where(paired, np.where(opposite_signs, a, b), 1.0) * inside
    of_small = np.where(paired, np.where(opposite_signs, -b, a), 1.0) * (inside & (index < small_count))
    basis, datasets = (
        np.empty_like(large_vectors),
        np.arange(len(shares)),
    )  # terms come first in memory, as in `_polynomials`
    for t in term:
        np.multiply(large_vectors[datasets, index[:, t]], of_large[:, t, None], out=basis[:, t])
        if of_small[:, t].any():
            j = np.minimum(index[:, t], small_vectors.shape[1] - 1)
            basis[:, t] += small_vectors[datasets, j] * of_small[:, t, None]
    return basis


def _side_polynomials(shares: Float64s, ranks: Float64s, inside: NDArray[np.bool_], orders: Float64s) -> Float64s:
    """Orthonormalise powers of the rank over the cells `inside` one side, bool (m, cells); zero in the others.

    Shape (m, terms, cells), as of `_polynomials`.

    >>> inside = np.array([[True, True, False]])
    >>> _side_polynomials(np.full((1, 3), 0.25), np.array([[0.1, 0.4, 0.8]]), inside, np.array([1])).round(4)
    array([[[0.7071, 0.7071, 0.    ]]])
    """
    side_shares = positive(np.vecdot(shares, inside))[:, None]
    if len(shares) > 1:
        return _polynomials(shares * inside / side_shares, ranks, orders)
    cells = np.flatnonzero(inside[0])
    basis = np.zeros((1, int(orders.max()), shares.shape[1]))
    basis[:, :, cells] = _polynomials(shares[:, cells] / side_shares, ranks[:, cells], orders)
    return basis


def _polynomials(shares: Float64s, ranks: Float64s, orders: Float64s) -> Float64s:
    """Orthonormalise powers of the rank by the three-term recurrence, shape (m, terms, cells).

    `shares` and `ranks` of the cells have shape (m, cells); dataset i has `orders[i]` terms, and the others are 0. Terms are
    multiplied by sqrt(shares), so that their inner product is a plain sum over cells.

    >>> _polynomials(np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]]), np.array([2])).round(4)
    array([[[ 0.7071,  0.7071],
            [-0.7071,  0.7071]]])
    """
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
