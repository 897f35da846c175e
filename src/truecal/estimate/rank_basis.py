"""Cells of neighbouring ranks, and polynomials orthonormal over them: the ground RankSeries stands on."""

from dataclasses import dataclass

import numpy as np

from truecal.profile import Cut, Profile
from truecal.types import Float64s

MOST_CELLS = (
    1024  # more distinct scores than this are joined into so many cells of equal mass: 16 for every term of the series
)
_MOST_TERMS = 64
_SMALLEST_NORM = 1e-6
_LARGEST_OVERLAP = (
    1e-9  # of a new term with the constant one, before it is made orthogonal to all earlier ones once more
)


@dataclass(frozen=True)
class Cells:
    """Neighbouring rows taken together, shape (m, G); equal scores share one mid-rank, so ties form one cell in effect."""

    n: Float64s  # (m,) sample size
    count: Float64s  # rows in each cell
    share: Float64s  # count / n
    residual: Float64s  # sum of y - c
    square: Float64s  # sum of (y - c)^2
    score: Float64s  # mean c
    chance: Float64s  # mean c (1 - c): the variance of an outcome under calibration
    rank: Float64s  # mean mid-rank / n
    distinct: Float64s  # (m,) how many different ranks there are


@dataclass(frozen=True)
class Basis:
    """Functions orthonormal under the cells' shares, shape (m, K, G); beyond a dataset's own number of terms they are zero."""

    phi: Float64s


def most_cells(profile: Profile) -> int:
    """At most so many cells stand for a dataset of this profile."""
    return min(profile.rows, MOST_CELLS)


def rank_cells(profile: Profile) -> Cells:
    """One cell per row up to 1024 rows, one per distinct score up to 1024 of them, then 1024 of equal mass."""
    distinct = np.minimum(profile.distinct, MOST_CELLS)
    if profile.rows <= MOST_CELLS:
        rows = np.arange(profile.rows + 1)[None, :]
        cut = (
            profile.at_count(rows)
            if profile.weights is None
            else profile.at_mass(np.broadcast_to(profile.prefix("w"), (profile.batch, profile.rows + 1)))
        )
    elif profile.distinct.max() <= MOST_CELLS:
        cut = _group_cut(profile)
    else:
        cut = profile.mass_cut(MOST_CELLS)
    scale = (profile.size / profile.total)[:, None]
    count, c, y, cc, cy = (np.diff(profile.sums(name, cut), axis=1) * scale for name in ("w", "c", "y", "cc", "cy"))
    safe = np.where(count > 0, count, 1.0)
    n = profile.size
    below, above = (
        profile.sums("w", Cut(cut.below, cut.below)),
        profile.sums("w", Cut(cut.above, cut.above)),
    )
    here = profile.sums("w", cut)
    # integral of the mid-rank up to the cut: t^2/2 at the end of a group, on the chord within it
    area = below**2 / 2 + (here - below) * (below + above) / 2
    rank = np.diff(area, axis=1) * scale / safe / profile.total[:, None]
    return Cells(
        n=n,
        count=count,
        share=count / n[:, None],
        residual=y - c,
        square=np.maximum(y - 2 * cy + cc, 0.0),
        score=np.clip(c / safe, 0.0, 1.0),
        chance=np.maximum(c - cc, 0.0) / safe,
        rank=rank,
        distinct=distinct.astype(float),
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
    """Orthonormal polynomials in the rank, by the three-term recurrence: min(64, max(3, sqrt(n)/2)) terms, constant included."""
    most = np.minimum(np.minimum(_MOST_TERMS, np.maximum(3, np.floor(np.sqrt(cells.n) / 2))), cells.distinct).astype(
        int
    )
    share = cells.share
    x = cells.rank - (share * cells.rank).sum(axis=1, keepdims=True)
    phi = np.zeros((len(share), int(most.max()), share.shape[1]))
    phi[:, 0] = 1.0
    alive = np.ones(len(share), bool)
    weighted = np.empty_like(share)
    last_norm = np.zeros((len(share), 1))
    for j in range(1, phi.shape[1]):
        now = phi[:, j - 1]
        new = x * now
        np.multiply(share, now, out=weighted)
        slope = np.einsum("mg,mg->m", weighted, new)[:, None]
        new -= slope * now
        if j > 1:
            new -= last_norm * phi[:, j - 2]
        np.multiply(share, new, out=weighted)
        norm = np.sqrt(np.einsum("mg,mg->m", weighted, new))[:, None]
        if (np.abs(weighted.sum(axis=1)) > _LARGEST_OVERLAP * norm[:, 0]).any():
            # Many equal scores make the recurrence forget earlier terms, as Lanczos' does; the constant term shows it first.
            before = phi[:, :j]
            new -= (((share * new)[:, None, :] @ before.transpose(0, 2, 1)) @ before)[:, 0]
            norm = np.sqrt(np.einsum("mg,mg,mg->m", share, new, new))[:, None]
        alive &= (norm[:, 0] >= _SMALLEST_NORM) & (j < most)
        np.multiply(new, np.where(alive[:, None], 1 / np.where(norm > 0, norm, 1.0), 0.0), out=phi[:, j])
        last_norm = norm
    return Basis(phi)
