"""Sums of a matrix of probabilities in bins, class by class or pooled, by random groups of rows and without sorting.

Rows are independent, so drawing groups of them leaves the distribution of sums unchanged; 256 groups give its standard
deviation to 4 %.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from truecal.predictions import validation
from truecal.predictions.predictions import Predictions
from truecal.profile.binning import Edges
from truecal.resampling.draws import blocks
from truecal.resampling.units import Units, UnitSums
from truecal.special import positive
from truecal.types import Floats, Indices

# by choice: the standard deviation over 256 groups is known to 4 %; random groups that are resampled in place of rows
GROUPS = 256
_SEED = 256  # by choice: of the groups: rows are often sorted by label, so neighbours do not make groups that are alike
_MIN_ROWS = 4096  # derived: 16 rows a group; sums of smaller groups are not symmetric
_MIN_PROBABILITIES = 5_000_000  # by choice: fewer are quickly measured class by class
_TRANSPOSED = 1 << 20  # derived: probabilities transposed or counted at a time: 8 MiB
_CLASSES_AT_ONCE = 32  # by choice: classes of a batch of sums
_KEY_SHIFT = 15  # derived: of a float32: eight bits of the mantissa stay, 256 keys between powers of two
_KEYS = (0x3F800000 >> _KEY_SHIFT) + 1  # derived: of scores up to 1


def groups_suffice(preds: Predictions) -> bool:
    """Return whether random groups of rows can be resampled in place of rows.

    They can for at least 4096 rows and more than 5 million probabilities, without weights and clusters, of more than one column.
    """
    if preds.binary or preds.weights is not None or preds.clusters is not None:
        return False
    return len(preds) >= _MIN_ROWS and preds.probs.size > _MIN_PROBABILITIES


def row_groups(n: int) -> Units:
    """Put n rows into 256 groups at random, by a fixed seed; sizes differ by one at most.

    >>> np.bincount(row_groups(512).of_row)[:3]
    array([2, 2, 2])
    """
    return Units(np.random.default_rng(_SEED).permutation(n) % GROUPS, GROUPS, "rows")


def column_sums(
    probs: Floats,
    labels: Indices,
    units: Units,
    bins: int,
    scheme: Literal["width", "mass"],
    closed: Literal["left", "right"] = "left",
) -> Iterator[UnitSums]:
    """Sum the rows, ones and scores of every unit in every bin, class by class, of probabilities of shape (n, classes).

    Labels are of shape (n,), or indicators of shape (n, classes). Yields the sums of up to 32 neighbouring classes at a time, one
    dataset per class; bins are of equal width (`closed` as in `Profile.width_cut`) or of equal mass within the class.
    """
    first, size = units.of_row * bins, units.count * bins
    edges = Edges(probs.dtype, bins, closed, len(probs))
    batch: list[tuple[Any, ...]] = []
    for k, (column, ones) in enumerate(_class_columns(probs, labels), 1):
        code = first + (mass_bins(column, bins) if scheme == "mass" else edges.of(column))
        tables = np.bincount(code, None, size), np.bincount(code[ones], None, size), np.bincount(code, column, size)
        batch.append(tuple(table.reshape(units.count, bins).T for table in tables))
        if len(batch) == _CLASSES_AT_ONCE or k == probs.shape[1]:
            yield _unit_sums([np.concatenate(tables) for tables in zip(*batch, strict=True)], len(batch))
            batch = []


def pooled_sums(
    probs: Floats, labels: Indices, units: Units, bins: int, bin_of: Callable[[Floats], Indices]
) -> UnitSums:
    """Sum the rows, ones and scores of every unit in every bin, over all probabilities of shape (n, classes) as one dataset.

    `bin_of` maps scores to bins, both of shape (m,); a row has one label, and a one is the probability of that class.
    """
    size = units.count * bins
    rows, ones, scores = np.zeros((3, size))
    for part in blocks(len(probs), probs.shape[1], _TRANSPOSED):
        block = probs[part]
        code = bin_of(block.ravel()).reshape(block.shape) + units.of_row[part, None] * bins
        rows += np.bincount(code.ravel(), None, size)
        scores += np.bincount(code.ravel(), block.ravel(), size)
        ones += np.bincount(code[np.arange(len(block)), labels[part]], None, size)
    return _unit_sums([table.reshape(units.count, bins).T for table in (rows, ones, scores)], 1)


def _unit_sums(tables: list[Any], datasets: int) -> UnitSums:
    """Build UnitSums from tables (rows, ones, score sums), each of shape (datasets x bins, units).

    The variance of the ones of a bin of n rows is taken as n c (1 - c), c its mean score, which is at least the sum over its
    rows.
    """
    rows, ones, scores = (np.ascontiguousarray(table, np.float64) for table in tables)
    total = scores.sum(axis=1)
    return UnitSums(rows, ones, scores, total * (1 - total / positive(rows.sum(axis=1))), datasets)


def _class_columns(probs: Floats, labels: Indices) -> Iterator[tuple[Floats, Indices]]:
    """Yield, for every class, its scores of shape (n,) and the indices of the rows with that label, ascending.

    Labels are class indices of shape (n,), or 0/1 indicators of shape (n, classes), of which a row may have several.

    >>> [(scores, rows) for scores, rows in _class_columns(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 0]))]
    [(array([0.25, 0.5 ]), array([1])), (array([0.75, 0.5 ]), array([0]))]
    """
    classes = probs.shape[1]
    if labels.ndim == 2:
        rows = [np.flatnonzero(column) for column in labels.T]
    else:
        rows = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=classes))[:-1])
    for part in blocks(classes, len(probs), _TRANSPOSED):
        yield from zip(validation.transpose(probs[:, part]), rows[part], strict=True)


# ---------------------------------------------------------------------- bins of equal mass without a sort


def mass_bins(scores: Floats, bins: int) -> Indices:
    """Find the bin, 0 to `bins` - 1, of every score, shape (n,) in any order with n >= `bins`, ties kept together.

    Bins are of equal mass, with cuts and ties as in :meth:`truecal.profile.Profile.mass_cut`. Scores are counted by their leading
    bits; only those with the bits of a cut are sorted.

    >>> mass_bins(np.array([0.9, 0.1, 0.5, 0.2]), 2)
    array([1, 0, 1, 0])
    """
    scores = np.abs(scores)  # -0.0 becomes 0.0
    keys = _leading_bits(scores)
    return assign_bins(scores, _mass_edges(scores, keys, bins), keys)


def assign_bins(scores: Floats, edges: Floats, keys: Indices | None = None) -> Indices:
    """Find the bin of every score, shape (n,): the number of `edges` that are at most the score.

    `edges` are the smallest scores of every bin but the first, ascending, shape (bins - 1,). `keys` are the `_leading_bits` of
    the scores, computed here if not given. Only scores that share them with an edge are compared.

    >>> assign_bins(np.array([0.1, 0.5, 0.7]), np.array([0.5]))
    array([0, 1, 1])
    """
    keys = _leading_bits(scores) if keys is None else keys
    edge_keys = np.minimum(np.sort(_leading_bits(edges)), _KEYS)
    # For every key, how many edges have it or a smaller one
    below = np.repeat(np.arange(len(edge_keys) + 1), np.diff(edge_keys, prepend=0, append=_KEYS))
    below[edge_keys[edge_keys < _KEYS]] = -1
    bin_of = below.take(keys)
    undecided = np.flatnonzero(bin_of < 0)
    bin_of[undecided] = np.searchsorted(edges, scores[undecided], side="right")
    return bin_of


def cell_edges(probs: Floats, cells: int) -> Floats:
    """Find the smallest score of every cell but the first, for at most `cells` cells of about equal mass.

    All probabilities of shape (n, classes) are pooled. Cells begin where the leading bits of scores change, so nothing is sorted
    and groups of scores with equal leading bits stay together; returned are at most cells - 1 ascending edges.

    >>> cell_edges(np.array([[0.25, 0.75]]), 2)
    array([0.75])
    """
    count = np.zeros(_KEYS, np.intp)
    for part in blocks(len(probs), probs.shape[1], _TRANSPOSED):
        count += np.bincount(_leading_bits(np.abs(probs[part].ravel())), minlength=_KEYS)
    ends = np.cumsum(count)
    keys = np.unique(np.searchsorted(ends, ends[-1] * np.arange(1, cells) / cells, side="right"))
    return (keys[keys > 0].astype(np.uint32) << _KEY_SHIFT).view(np.float32).astype(probs.dtype)


def _leading_bits(scores: Floats) -> Indices:
    """Return scores in [0, 1], of shape (n,), as integers from 0 to _KEYS - 1 that do not decrease with the score.

    They are the sign, the exponent and the first eight bits of the mantissa as float32.

    >>> keys = _leading_bits(np.array([0.0, 0.25, 0.5, 1.0]))
    >>> bool((np.diff(keys) > 0).all())
    True
    """
    return (scores.astype(np.float32, copy=False).view(np.uint32) >> _KEY_SHIFT).astype(np.intp)


def _mass_edges(scores: Floats, keys: Indices, bins: int) -> Floats:
    """Find the smallest score of every bin of equal mass but the first, shape (bins - 1,).

    Where a bin is empty it is that of the next. Scores are of shape (n,) in any order, `keys` their leading bits. Only scores
    whose keys occur at a cut are sorted.

    >>> scores = np.array([0.9, 0.1, 0.4, 0.6])
    >>> _mass_edges(scores, _leading_bits(scores), 2)
    array([0.6])
    """
    n = len(scores)
    cut = -(-np.arange(1, bins) * n // bins)
    count = np.bincount(keys, minlength=_KEYS)
    end = np.cumsum(count)
    is_cut_key = np.zeros(_KEYS, bool)
    ranks = np.concatenate([cut - 1, np.minimum(cut, n - 1)])
    cut_keys, of_rank = np.unique(np.searchsorted(end, ranks, side="right"), return_inverse=True)
    is_cut_key[cut_keys] = True
    cut_scores = np.sort(scores[np.flatnonzero(is_cut_key.take(keys))])
    # Rows of smaller keys that are not among `cut_scores`
    skipped = (end[cut_keys] - np.cumsum(count[cut_keys]))[of_rank]
    lower, upper = cut_scores[ranks - skipped].reshape(2, -1)
    shift = skipped[: len(cut)]
    first, last = (np.searchsorted(cut_scores, lower, side=side) + shift for side in ("left", "right"))
    larger_part_below = (cut - first) * 2 >= last - first  # a group of ties goes to the side that has more of it
    tied = np.where(larger_part_below, np.nextafter(lower, scores.dtype.type(2)), lower)
    return np.where(lower == upper, tied, upper)
