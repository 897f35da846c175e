"""Cells of neighbouring ranks, and polynomials orthonormal over them: the ground RankSeries stands on.

Equation numbers are those of the derivation in docs/methods/rank-series.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from truecal.profile.binning import Cut
from truecal.profile.profile import Profile
from truecal.types import Float64s, Indices

MOST_CELLS = (
    1024  # more distinct scores than this are joined into so many cells of equal mass: 16 for every term of the series
)
_MOST_TERMS = 64
_SMALLEST_NORM = 1e-6
_LEAST_VARIANCE, _LEAST_SCALE = 1e-280, 1e-20  # together they divide the square of a coefficient of 1 without overflow
_LARGEST_OVERLAP = (
    1e-9  # of a new term with the constant one, before it is made orthogonal to all earlier ones once more
)


@dataclass(frozen=True, eq=False)
class Cells:
    """Neighbouring rows taken together, shape (m, G); equal scores share one mid-rank, so ties form one cell in effect.

    Without ties and weights every dataset of a batch has the same counts and ranks: `count` and `rank` then have one row for all.
    """

    n: Float64s  # (m,) sample size
    count: Float64s  # (m or 1, G) rows in each cell
    residual: Float64s  # sum of y - c
    square: Float64s  # sum of (y - c)^2
    score: Float64s  # mean c
    chance: Float64s  # mean c (1 - c): the variance of an outcome under calibration
    rank: Float64s  # (m or 1, G) mean mid-rank / n
    distinct: Float64s  # (m,) how many different ranks there are

    @property
    def share(self) -> Float64s:
        return self.count / self.n[: len(self.count), None]

    def take(self, datasets: Indices) -> "Cells":
        """Some datasets of the batch."""
        alike = len(self.count) == 1 < len(self.n)
        own = np.zeros(1, np.intp) if alike else datasets
        residual, square, score, chance = (a[datasets] for a in (self.residual, self.square, self.score, self.chance))
        return Cells(
            self.n[datasets], self.count[own], residual, square, score, chance, self.rank[own], self.distinct[own]
        )

    @staticmethod
    def batches(parts: "Sequence[Cells]") -> "Iterator[Cells]":
        """Those with equally many cells as one batch each."""
        for size in dict.fromkeys(part.residual.shape[1] for part in parts):
            same = [part for part in parts if part.residual.shape[1] == size]
            yield Cells(*(np.concatenate([getattr(part, held.name) for part in same]) for held in fields(Cells)))


def terms_paid(n: Float64s) -> Float64s:
    """How many terms so many rows pay for."""
    return np.clip(np.floor(np.sqrt(n) / 2), 3, _MOST_TERMS)


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions orthonormal under the cells' shares, times the root of the share: `waves` of unit length, shape (K, m or 1, G).

    Beyond a dataset's own number of terms, and in empty cells, they are zero.
    """

    waves: Float64s

    def of(self, dataset: int) -> Float64s:
        """The waves of one dataset, shape (K, G)."""
        return self.waves[:, dataset if self.waves.shape[1] > 1 else 0]

    def functions(self, cells: Cells) -> Float64s:
        """The orthonormal functions themselves, shape (m or 1, K, G); zero in empty cells."""
        return self.by_dataset() / np.sqrt(np.where(cells.count > 0, cells.share, 1.0))[:, None, :]

    def by_dataset(self, datasets: Indices | None = None) -> Float64s:
        """The same numbers with the datasets first, shape (m or 1, K, G)."""
        some = self.waves if datasets is None or self.waves.shape[1] == 1 else self.waves[:, datasets]
        return some.transpose(1, 0, 2)


def most_cells(profile: Profile) -> int:
    """At most so many cells stand for a dataset of this profile."""
    return min(profile.rows, MOST_CELLS)


def rank_cells(profile: Profile) -> Cells:
    """One cell per row up to 1024 rows, one per distinct score up to 1024 of them, then 1024 of equal mass."""
    profile = profile.spread(MOST_CELLS)
    if profile.rows <= MOST_CELLS and profile.weights is None:
        return _row_cells(profile)
    distinct = np.minimum(profile.distinct, MOST_CELLS)
    if profile.rows <= MOST_CELLS:
        cut = profile.at_rows()
    elif profile.distinct.max() <= MOST_CELLS:
        cut = _group_cut(profile)
    else:
        cut = profile.mass_cut(MOST_CELLS)
    scale = (profile.size / profile.total)[:, None]
    alike = slice(0, 1 if profile.alike or (profile.weights is None and not profile.has_ties) else None)
    here = profile.sums("w", cut)[alike]
    below, above = (profile.sums("w", Cut(place, place))[alike] for place in (cut.below, cut.above))
    # Sums up to a row of no weight may round below those before it.
    count = np.maximum(np.diff(here, axis=1), 0.0) * scale[alike]
    safe = np.where(count > 0, count, 1.0)
    # the mid-rank (3) of a cell is a difference of its integral up to the cuts: t^2/2 at the end of a group, on the chord within
    area = below**2 / 2 + (here - below) * (below + above) / 2
    rank = np.diff(area, axis=1) * scale[alike] / safe / profile.total[alike, None]
    # An empty cell stands where the one before it does, so that ranks never fall: runs of neighbours are sought among them.
    rank = np.maximum.accumulate(rank, axis=1)
    c, y, cc, cy = (np.diff(profile.sums(name, cut), axis=1) * scale for name in ("c", "y", "cc", "cy"))
    return Cells(
        n=profile.size,
        count=count,
        residual=y - c,
        square=np.maximum(y - 2 * cy + cc, 0.0),
        score=np.clip(c / safe, 0.0, 1.0),
        chance=np.maximum(c - cc, 0.0) / safe,
        rank=rank,
        distinct=distinct.astype(float),
    )


def _row_cells(profile: Profile) -> Cells:
    """Every row by itself."""
    c, y = profile.scores.astype(np.float64, copy=False), profile.outcomes
    residual = y - c
    if profile.has_ties:
        first, last = profile.groups
        rank = (first + last) / (2.0 * profile.rows)  # (3)
    else:
        rank = _even_ranks(profile.rows)
    return Cells(
        n=profile.size,
        count=np.ones_like(rank),
        residual=residual,
        square=residual * residual,
        score=np.broadcast_to(c, residual.shape),
        chance=np.broadcast_to(c * (1 - c), residual.shape),
        rank=rank,
        distinct=profile.distinct.astype(float),
    )


def _group_cut(profile: Profile) -> Cut:
    """Cuts between distinct scores; datasets with fewer of them end in empty cells."""
    scores = profile.scores
    ends = np.full((len(scores), int(profile.distinct.max()) + 1), profile.rows)
    ends[:, 0] = 0
    for own, row in zip(ends, scores, strict=True):
        places = np.flatnonzero(row[1:] != row[:-1]) + 1
        own[1 : len(places) + 1] = places
    return Cut(ends, ends)


def rank_basis(cells: Cells) -> Basis:
    """Polynomials in the rank that are orthonormal as in (4); min(64, max(3, sqrt(n)/2)) terms.

    Datasets of as many rows without ties have the same ranks: the basis of a single dataset is kept.
    """
    datasets = slice(0, len(cells.count))
    most = np.minimum(terms_paid(cells.n[datasets]), cells.distinct[datasets])
    if len(most) == 1:
        return _kept_basis(cells.share.tobytes(), cells.rank.tobytes(), float(most[0]))
    return Basis(_polynomials(cells.share, cells.rank, most))


@lru_cache(maxsize=8)
def _kept_basis(share: bytes, rank: bytes, most: float) -> Basis:
    waves = _polynomials(np.frombuffer(share)[None], np.frombuffer(rank)[None], np.array([most]))
    waves.flags.writeable = False
    return Basis(waves)


def _even_ranks(rows: int) -> Float64s:
    """Mid-ranks of rows without ties, shape (1, rows)."""
    return (np.arange(rows)[None] + 0.5) / rows


def _polynomials(share: Float64s, rank: Float64s, most: Float64s) -> Float64s:
    """The three-term recurrence, `most` terms of every dataset."""
    constant = np.sqrt(share)
    x = rank - np.vecdot(share, rank)[:, None]
    waves = np.zeros((int(most.max()), *x.shape))
    waves[0] = constant
    alive = np.ones(len(x), bool)
    norm = np.zeros(len(x))
    scratch = np.empty_like(x)
    for j in range(1, len(waves)):
        now, new = waves[j - 1], waves[j]
        np.multiply(x, now, out=new)
        new -= np.multiply(now, np.vecdot(now, new)[:, None], out=scratch)
        if j > 1:
            new -= np.multiply(waves[j - 2], norm[:, None], out=scratch)
        norm = np.sqrt(np.vecdot(new, new))
        if (np.abs(np.vecdot(new, constant)) > _LARGEST_OVERLAP * norm).any():
            # Many equal scores make the recurrence forget earlier terms, as Lanczos' does; the constant term shows it first.
            before = waves[:j].transpose(1, 0, 2)
            new -= ((new[:, None, :] @ before.transpose(0, 2, 1)) @ before)[:, 0]
            norm = np.sqrt(np.vecdot(new, new))
        alive &= (norm >= _SMALLEST_NORM) & (j < most)
        new *= np.where(alive, 1 / np.where(norm > 0, norm, 1.0), 0.0)[:, None]
    return waves


class LargestSum:
    """The statistic (18): max_k sum_{j<=k} (beta_j^2 - V_jj) / sqrt(2 ||V_{1..k}||_F^2), V = cov(beta) under calibration."""

    def __init__(self, covariance: Float64s) -> None:
        # in units of the largest variance squares do not vanish, however small the scores
        variance = covariance.diagonal()
        unit = max(float(variance.max()), _LEAST_VARIANCE)
        scale = np.sqrt(2 * np.cumsum(np.cumsum((covariance / unit) ** 2, axis=0), axis=1).diagonal())
        first = int(np.argmax(scale > 0))  # sums of squares: once above 0 they stay there
        share = 1 / np.maximum(scale[first:], _LEAST_SCALE)
        self._unit = np.sqrt(unit)
        self._upto = np.tri(len(scale))[first:] * share[:, None]  # line k takes the first k coefficients
        self._expected = self._upto @ variance / unit

    def __call__(self, beta: Float64s) -> Float64s:
        """Of coefficients of shape (..., K)."""
        squares = beta / self._unit
        squares *= squares
        return np.asarray(((self._upto @ squares.T).T - self._expected).max(axis=-1))


def largest_sum(beta: Float64s, covariance: Float64s) -> Float64s:
    """The same for one covariance that is asked once."""
    return LargestSum(covariance)(beta)
