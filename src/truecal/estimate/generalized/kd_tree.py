"""The k-d tree: bins of vectors that adapt to where the predictions are.

A node that holds enough predictions is split in two at the mean of the coordinate that varies most. The predictions of a node are
moved together into memory of their own (one contiguous run per coordinate), so that every level of the tree costs a few sequential
passes. Nodes wait on a list, not on the call stack: depth is limited by memory only.

Whether a node is split depends on that node alone. So the tree for a larger minimum is the tree for a smaller one with its lower
branches cut off, and one grown tree serves a whole sweep of granularities.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.estimate.generalized.bins import Partition, VectorBinning
from truecal.lens import Sample
from truecal.types import Float64s, Floats, Indices

_VARIANCE_TIE = 1e-9  # relative; coordinates whose variances differ by less vary alike, and the first of them is cut
_MEAN_TIE = 1e-12  # relative; a value this close to the mean equals it, whatever order the sum was taken in
_BLOCK = 1 << 16  # numbers centred together


@dataclass(frozen=True)
class KDTree(VectorBinning):
    """Split every node that holds at least round(fraction * n) predictions, along the coordinate of highest variance, at its mean.

    Values strictly below the mean go low; a node is left whole when one side would be empty (all its predictions are equal). The
    dynamic binning of Vaicenavicius et al. (2019) as used by Kirchenbauer, Oaks & Heim (2022), appendix B, who recommend a fraction
    (their gamma) of 0.1. Under importance weights "at least fraction of the total weight" takes the place of the count.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 0])
    >>> tc.GeneralizedECE(lens=tc.OneClass(1), binning=tc.KDTree(1.0))(preds).vector_bins.count
    array([2., 2.])
    """

    fraction: float = 0.1

    def __post_init__(self) -> None:
        if not options.is_number(self.fraction) or not 0 < self.fraction <= 1:
            raise InputError(f"fraction must be a number above 0 and at most 1, not {self.fraction!r}")

    def minimum(self, vector: Sample) -> float:
        """The smallest node that is split."""
        w = vector.weights
        if w is None:
            return round(float(self.fraction) * len(vector))
        total = float(w.sum())
        return round(float(self.fraction) * total) if (w == np.rint(w)).all() else float(self.fraction) * total

    def tree(self, vector: Sample) -> "Tree":
        return grow(vector.columns, vector.weights, self.minimum(vector))

    def partition(self, vector: Sample) -> Partition:
        return self.tree(vector).pruned(0)

    def __str__(self) -> str:
        return f"k-d tree down to {self.fraction:g} of the data"


@dataclass(frozen=True, eq=False)
class Tree:
    """A grown tree. Nodes are numbered parents first; the root is node 0.

    Attributes
    ----------
    leaf_of : (n,) the node in which each row ended. parent : (nodes,) the node above (the root's is itself). size : (nodes,) sum of
    weights. depth : how many splits lie above the deepest leaf.
    """

    leaf_of: Indices
    parent: list[int]
    size: list[float]
    depth: int

    def pruned(self, minimum: float) -> Partition:
        """The bins of the tree in which only nodes of at least `minimum` are split."""
        # The bin that a node belongs to: itself, or the highest one not to be split
        top = list(range(len(self.parent)))
        for node, above in enumerate(self.parent):
            if above != node and (top[above] != above or self.size[above] < minimum):
                top[node] = top[above]
        highest = np.array(top, np.intp)
        found = np.zeros(len(top), bool)
        found[highest[self.leaf_of]] = True
        number = np.cumsum(found) - 1
        return Partition(number[highest][self.leaf_of], int(found.sum()))


def grow(columns: Floats, weights: Float64s | None, minimum: float) -> Tree:
    """Split nodes of at least `minimum` (rows, or weight) until none is left that can be. `columns` has shape (events, n)."""
    rows = np.arange(columns.shape[1])
    leaf_of = np.empty(len(rows), np.intp)
    parent: list[int] = []
    size: list[float] = []
    deepest = 0
    waiting: list[tuple[Floats, Float64s | None, Indices, int, int]] = [(columns, weights, rows, 0, 0)]
    while waiting:
        columns, weights, rows, above, depth = waiting.pop()
        node = len(parent)
        parent.append(above)
        size.append(float(len(rows)) if weights is None else float(weights.sum()))
        deepest = max(deepest, depth)
        low = None if size[node] < minimum or len(rows) < 2 else lower_side(columns, weights)
        if low is None:
            leaf_of[rows] = node
            continue
        for side in (~low, low):  # the low side is taken up first
            chosen = np.flatnonzero(side)
            kept = None if weights is None else weights.take(chosen)
            waiting.append((columns.take(chosen, axis=1), kept, rows.take(chosen), node, depth + 1))
    return Tree(leaf_of, parent, size, deepest)


def lower_side(columns: Floats, weights: Float64s | None) -> NDArray[np.bool_] | None:
    """Which rows lie strictly below the mean of the coordinate of highest variance; None when one side would be empty."""
    total = columns.shape[1] if weights is None else weights.sum()
    mean = (columns.sum(axis=1, dtype=np.float64) if weights is None else columns @ weights) / total
    spread = np.empty(len(mean))
    step = max(1, _BLOCK // columns.shape[1])
    for start in range(0, len(mean), step):
        part = slice(start, start + step)
        centred = columns[part] - mean[part, None]
        if weights is None:
            spread[part] = np.einsum("ij,ij->i", centred, centred)
        else:
            spread[part] = (centred * centred) @ weights
    widest = int(np.flatnonzero(spread >= spread.max() * (1 - _VARIANCE_TIE))[0])
    low: NDArray[np.bool_] = columns[widest] < mean[widest] * (1 - _MEAN_TIE)
    return low if low.any() and not low.all() else None
