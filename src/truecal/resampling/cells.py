"""Cells of equal or neighbouring scores: what resamples and redraws are made of, so that no row is sorted twice."""

from collections.abc import Iterator

import numpy as np

from truecal.errors import InputError
from truecal.profile.binning import Cut
from truecal.profile.profile import Profile, check_profile
from truecal.special import positive
from truecal.types import Float64s, Indices

CELLS = 128  # by choice: distinct scores of a resample; more are joined into so many cells of equal mass


class Counted(Profile):
    """A profile of distinct scores whose weights are numbers of rows, even where they are fractions (importance weights)."""

    counted = True


def cell_starts(profile: Profile, limit: int) -> Indices:
    """Find the first row of every cell of sorted scores, and the end of the last one: ascending indices, shape (cells + 1,).

    A cell is a group of equal scores; if there are more than `limit`, neighbours are joined into at most `limit` cells of about
    equal mass. Of a batch, the scores of the first dataset count.
    """
    scores = profile.scores[0]
    rises = scores[1:] != scores[:-1]
    if np.count_nonzero(rises) < limit:
        return np.concatenate([[0], np.flatnonzero(rises) + 1, [profile.rows]])
    first_dataset = Profile(profile.scores, profile.outcomes[:1], profile.weights)
    starts = np.unique(first_dataset.mass_cut(limit).below[0])
    return np.concatenate([[0], starts[1:-1], [profile.rows]])  # rows of weight 0 at either end belong to a cell too


def collapse(profile: Profile, limit: int = 4096) -> Profile:
    """Join the rows of each distinct score (or of neighbouring ones, into at most `limit` cells); weights count rows.

    All datasets of the batch must share their scores and weights (see :func:`share_scores`); outcomes become means. Importance
    weights are scaled to sum to their effective number of rows; cells of weight 0 are left out.

    >>> import truecal as tc
    >>> cells = collapse(tc.profile.Profile.from_arrays([0.2, 0.9, 0.9], [0, 1, 0]))
    >>> cells.scores, cells.outcomes, cells.weights
    (array([[0.2, 0.9]]), array([[0. , 0.5]]), array([[1., 2.]]))
    """
    return collapse_at(profile, cell_starts(profile, limit))


def collapse_at(profile: Profile, starts: Indices) -> Profile:
    """Join sorted rows into the cells of `cell_starts`, shape (cells + 1,): mean scores, mean outcomes, weights as in `collapse`.

    A cell of equal scores keeps its score exactly.
    """
    cut = Cut(starts[None, :], starts[None, :])
    weight, score = np.diff(profile.sums("w", cut)), np.diff(profile.sums("c", cut))
    outcome = np.diff(profile.sums("y", cut))
    filled = weight[0] > 0
    weight, score, outcome = weight[:1, filled], score[:1, filled], outcome[:, filled]
    first, last = profile.scores[:1, starts[:-1][filled]], profile.scores[:1, starts[1:][filled] - 1]
    mean = (score / weight).astype(profile.scores.dtype)
    scale = profile.size[0] / profile.total[0]
    return Counted(np.where(first == last, first, mean), outcome / weight, weight * scale, single=profile.single)


def share_scores(profile: Profile) -> Iterator[tuple[slice, Profile]]:
    """Yield parts of a batch whose datasets share scores and weights, each with its slice of the batch.

    The whole batch is one part if all datasets share them by construction; else every dataset is a part.
    """
    shared = profile.scores.shape[0] == 1 and (profile.weights is None or profile.weights.shape[0] == 1)
    if shared:
        yield slice(0, profile.batch), profile
        return
    for i in range(profile.batch):
        part = profile if profile.batch == 1 else profile.take(np.array([i]))
        yield slice(i, i + 1), part


def refuse_batch(profile: Profile) -> None:
    """Raise InputError for a batch: datasets are resampled one at a time.

    >>> from truecal.profile import Profile
    >>> refuse_batch(Profile.from_arrays([0.5], [0]))
    """
    check_profile(profile)
    if profile.batch != 1:
        raise InputError(f"one dataset is needed, not a batch of {profile.batch}; take them one at a time")


def profile_of(cells: Profile, zeros: Float64s, ones: Float64s) -> Profile:
    """Make a batch of m datasets from numbers of zeros and ones in every cell, shape (m, cells), on the scores of `cells`.

    Weights are the counts and outcomes the rates of ones; an empty cell has weight and rate 0.
    """
    count = zeros + ones
    return Counted(cells.scores, ones / positive(count), count)
