"""Bins of vectors: which predictions share a bin, and what each bin holds.

A binning is a small frozen value that turns a Sample into a Partition.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.estimators.bins import Bins
from truecal.lenses.lens import Sample
from truecal.profile.binning import Cut, width_edges
from truecal.profile.profile import Profile
from truecal.resampling.draws import blocks
from truecal.special import kish, positive
from truecal.types import Float64s, Floats, Indices

_MAX_WRITTEN = 2_000_000  # derived: rows of 16 MB a column; of larger counts a row is one draw of that weight


@dataclass(frozen=True, eq=False)
class Partition:
    """The bin of every row: `bin_of`, shape (n,), from 0 to count - 1.

    `bins` are the sums of the bins for a cut along one probability, else None.
    """

    bin_of: Indices
    count: int
    bins: Bins | None = None


@dataclass(frozen=True)
class VectorBinning(ABC):
    """A rule that assigns the rows of a Sample to bins."""

    @abstractmethod
    def partition(self, vector: Sample) -> Partition:
        """Decide which rows share a bin.

        Parameters
        ----------
        vector : Sample
            Rows of one or several probabilities.

        Returns
        -------
        Partition
            Bins may be empty.
        """

    @abstractmethod
    def __str__(self) -> str:
        """Return the binning in words."""


@dataclass(frozen=True)
class EqualWidth(VectorBinning):
    """Cut every probability into intervals of equal width.

    Parameters
    ----------
    bins : int, default 15
        Number b of intervals.
    closed : {"left", "right"}, default "left"
        Interval j is [j/b, (j+1)/b), the last one closed; "right" gives (j/b, (j+1)/b].

    Notes
    -----
    Two events are cut along the event of interest alone, exactly as :class:`BinnedECE` does. Three or more are cut along all of
    them, so that the order of the classes does not matter; only cells that hold data count. The number of cells grows as
    bins^events and most hold one row: prefer :class:`KDTree`.

    See Also
    --------
    GeneralizedECE : The error in these bins.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.1, 0.2, 0.7, 0.8], [0, 1, 1, 0])
    >>> round(tc.GeneralizedECE(lens=tc.OneClass(1), binning=tc.estimators.EqualWidth(2))(preds).value, 12)
    0.3
    """

    bins: int = 15
    closed: Literal["left", "right"] = "left"

    def __post_init__(self) -> None:
        """Raise InputError for a number of bins outside 1 to a million, and a side other than "left" and "right"."""
        options.bins(self.bins)
        options.choice(self.closed, ("left", "right"), "closed")

    def partition(self, vector: Sample) -> Partition:
        """Put rows of equal intervals of every probability into one bin; of two events `vector.event` alone is cut.

        Bins of more than two events are numbered by the sorted tuples of intervals that occur, so that none is empty; of two
        events bin j is interval j, which may be empty.

        >>> sample = Sample(np.array([0.1, 0.2, 0.9]), np.array([0, 1, 1]))
        >>> EqualWidth(2).partition(sample).bin_of
        array([0, 0, 1])
        """
        if vector.dimension == 2:
            return _partition_event(vector, lambda profile: profile.width_cut(self.bins, self.closed))
        inner_edges = width_edges(self.bins, vector.columns.dtype)[1:-1]
        intervals = np.searchsorted(inner_edges, vector.columns, "right" if self.closed == "left" else "left")
        cells, bin_of = np.unique(intervals, axis=1, return_inverse=True)
        return Partition(bin_of.ravel(), cells.shape[1])

    def __str__(self) -> str:
        """Write the number of bins.

        >>> print(EqualWidth(15))
        15 intervals of equal width
        """
        return f"{self.bins} intervals of equal width"


@dataclass(frozen=True)
class EqualMass(VectorBinning):
    """Cut one probability into bins of the same number of rows.

    Parameters
    ----------
    bins : int, default 15
        Number of bins; rows of equal score stay together, as in :class:`BinnedECE`.

    Raises
    ------
    InputError
        If the lens sees more than two events.

    See Also
    --------
    GeneralizedECE : The error in these bins.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.1, 0.6, 0.7, 0.8], [0, 1, 1, 0])
    >>> tc.GeneralizedECE(lens=tc.OneClass(1), binning=tc.estimators.EqualMass(2))(preds).vector_bins.count
    array([2., 2.])
    """

    bins: int = 15

    def __post_init__(self) -> None:
        """Raise InputError for a number of bins outside 1 to a million."""
        options.bins(self.bins)

    def partition(self, vector: Sample) -> Partition:
        """Cut the probability of `vector.event` into bins of equal numbers of rows; InputError for more than two events.

        >>> sample = Sample(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 1, 1, 1]))
        >>> EqualMass(2).partition(sample).bin_of
        array([0, 0, 1, 1])
        """
        if vector.dimension != 2:
            raise InputError(f"EqualMass cuts one probability, but the lens has {vector.dimension} events; use KDTree")
        return _partition_event(vector, lambda profile: profile.mass_cut(self.bins))

    def __str__(self) -> str:
        """Write the number of bins.

        >>> print(EqualMass(15))
        15 bins of equal mass
        """
        return f"{self.bins} bins of equal mass"


def _partition_event(vector: Sample, cut_of: Callable[[Profile], Cut]) -> Partition:
    """Partition rows of two events by cuts of the sorted probabilities of `vector.event`, with the sums of the bins.

    `cut_of` maps the sorted rows to cuts, which lie between groups of equal probabilities.
    """
    scores = vector.columns[vector.event]
    profile = Profile.from_arrays(scores, vector.labels == vector.event, vector.weights)
    cut = cut_of(profile)
    starts = cut.below[0]
    # A cut between two rows falls between two distinct scores: a row lies above it when its score reaches the upper one.
    inner = starts[1:-1]
    upper = np.where(inner < profile.rows, profile.scores[0, np.minimum(inner, profile.rows - 1)], np.inf)
    bin_of = np.searchsorted(upper, scores, "right")
    return Partition(bin_of, len(starts) - 1, Bins.of(profile, cut))


@dataclass(frozen=True, eq=False)
class VectorBins:
    """Counts and sums of each of the b bins over d events; an empty bin has count 0.

    Attributes
    ----------
    weight : (b,) sum of weights. output_sum, outcome_sum : (b, d) weighted sums of probabilities and of one-hot outcomes.
    count : (b,) sample size. names : the d events.
    """

    weight: Float64s
    output_sum: Float64s
    outcome_sum: Float64s
    count: Float64s
    names: tuple[str, ...]
    implied: int | None

    @classmethod
    def of(cls, vector: Sample, partition: Partition) -> "VectorBins":
        """Sum the weights, probabilities and outcomes of every bin of a partition, in float64.

        Importance weights count as their effective number of rows: counts are weights times Kish's (sum w)^2 / sum w^2 over sum
        w. The probability of the implied event is what the others leave of the weight.
        """
        b, d, w, bin_of = partition.count, vector.dimension, vector.weights, partition.bin_of
        if partition.bins is None or vector.implied is None:
            weight = np.bincount(bin_of, w, b).astype(np.float64)
            columns = [np.bincount(bin_of, weighted(column, w), b) for column in vector.probs.T]
        else:
            weight, columns = partition.bins.weight[0], [partition.bins.score_sum[0]]
        explicit = np.stack(columns, axis=1).astype(np.float64)
        outcome = np.bincount(bin_of * d + vector.labels, w, b * d).astype(np.float64).reshape(b, d)
        counted = w is None or bool((w == np.rint(w)).all())
        scale = 1.0 if counted or w is None else float(kish(w) / w.sum())
        return cls(
            weight,
            with_implied(explicit, vector.implied, weight),
            outcome,
            weight * scale,
            vector.names,
            vector.implied,
        )

    @cached_property
    def safe(self) -> Float64s:
        """Weights with 1 in place of 0, shape (b, 1), to divide by."""
        return positive(self.weight)[:, None]

    @cached_property
    def share(self) -> Float64s:
        """Part of the data in each bin, shape (b,)."""
        return self.weight / self.weight.sum()

    @cached_property
    def gap(self) -> Float64s:
        """Mean outcome minus mean output, shape (b, d); 0 for empty bins."""
        gap = np.clip((self.outcome_sum - self.output_sum) / self.safe, -1.0, 1.0)  # rounding, as in Bins
        if self.implied is not None:
            gap[:, self.implied] = -np.delete(gap, self.implied, axis=1).sum(axis=1)
        return gap

    @property
    def filled(self) -> int:
        """Number of bins whose weight is not 0."""
        return int(np.count_nonzero(self.weight))

    @property
    def mean_output(self) -> Float64s:
        """Mean probabilities of each bin, shape (b, d)."""
        return self.output_sum / self.safe

    @property
    def mean_outcome(self) -> Float64s:
        """How often each event happened in each bin, shape (b, d)."""
        return self.outcome_sum / self.safe

    def of_event(self, event: int) -> Bins:
        """Return the sums of the event number `event` in the same bins, as those of a single probability."""
        return Bins(
            self.weight[None],
            self.output_sum[None, :, event],
            self.outcome_sum[None, :, event],
            self.count[None],
            single=True,
        )


def write_out(sample: Sample, partition: Partition) -> tuple[Sample, Partition]:
    """Repeat every row as often as its whole-number weight says, without weights; the same for the partition.

    Both are returned as they are without weights, with weights that are all 1 or not whole, with units, and for more than two
    million rows.
    """
    weights = sample.weights
    if (
        weights is None
        or sample.units is not None
        or (weights == 1).all()
        or (weights != np.rint(weights)).any()
        or weights.sum() > _MAX_WRITTEN
    ):
        return sample, partition
    rows = np.repeat(np.arange(len(weights)), weights.astype(np.int64))
    return replace(sample.take(rows), weights=None), replace(partition, bin_of=partition.bin_of[rows])


def weighted(values: Floats, weights: Float64s | None) -> Floats:
    """Multiply values (..., n) by the weights of their rows (n,); return them unchanged without weights.

    >>> weighted(np.array([1.0, 2.0]), np.array([3.0, 0.5]))
    array([3., 1.])
    """
    return values if weights is None else weights * values


def with_implied(explicit: Float64s, implied: int | None, total: Float64s) -> Float64s:
    """Insert `total` (b,) minus the sum of the explicit columns (b, e) as the column number `implied`, shape (b, e + 1).

    Without an implied event the explicit columns are returned.

    >>> with_implied(np.array([[0.25]]), 1, np.array([1.0]))
    array([[0.25, 0.75]])
    """
    if implied is None:
        return explicit
    return np.insert(explicit, implied, total - explicit.sum(axis=-1), axis=-1)


# ----------------------------------------------------------------------------------------------------
# The k-d tree: bins of vectors that adapt to where the predictions are

_VARIANCE_TIE = 1e-9  # derived: relative rounding of a variance; of equal ones the first coordinate is cut
_MEAN_TIE = 1e-12  # derived: relative rounding of a mean, whatever the order of its sum
_BLOCK = 1 << 16  # derived: numbers that stay in a cache of 1 MiB


@dataclass(frozen=True)
class KDTree(VectorBinning):
    """Split predictions along the probability of highest variance, at its mean, down to a share of the data.

    Parameters
    ----------
    fraction : float, default 0.1
        Nodes of at least round(fraction * n) rows are split (gamma of the paper, which recommends 0.1); under importance
        weights, nodes of at least this share of the total weight.

    Raises
    ------
    InputError
        If the fraction is not above 0 and at most 1.

    Notes
    -----
    Values strictly below the mean go to the lower side; a node whose predictions are all equal is not split. All bins are
    leaves of the tree, so neighbouring predictions share a bin however many events there are.

    References
    ----------
    Vaicenavicius, J. et al. (2019). Evaluating model calibration in classification. AISTATS. arXiv:1902.06977

    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? Evaluating classifier calibration under
    context-specific definitions of reliability. arXiv:2205.11454, appendix B.

    See Also
    --------
    GeneralizedECE : The error in these bins.
    sweep_granularity : The error against the fraction.

    Examples
    --------
    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 0])
    >>> tc.GeneralizedECE(lens=tc.OneClass(1), binning=tc.estimators.KDTree(1.0))(preds).vector_bins.count
    array([2., 2.])
    """

    fraction: float = 0.1

    def __post_init__(self) -> None:
        """Raise InputError unless 0 < fraction <= 1."""
        if not options.is_number(self.fraction) or not 0 < self.fraction <= 1:
            raise InputError(f"fraction must be a number above 0 and at most 1, not {self.fraction!r}")

    def minimum(self, vector: Sample) -> float:
        """Compute the size of the smallest node that is split.

        Parameters
        ----------
        vector : Sample
            Rows of one or several probabilities.

        Returns
        -------
        float
            Number of rows, or weight.
        """
        w = vector.weights
        if w is None:
            return round(float(self.fraction) * len(vector))
        total = float(w.sum())
        return round(float(self.fraction) * total) if (w == np.rint(w)).all() else float(self.fraction) * total

    def tree(self, vector: Sample) -> "Tree":
        """Grow the tree.

        Parameters
        ----------
        vector : Sample
            Rows of one or several probabilities.

        Returns
        -------
        Tree
            Nodes of at least `minimum` are split where their predictions differ.
        """
        return grow(vector.columns, vector.weights, self.minimum(vector))

    def partition(self, vector: Sample) -> Partition:
        """Return the leaves of the tree as bins; none is empty.

        >>> sample = Sample(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 1, 1, 1]))
        >>> KDTree(1.0).partition(sample).count
        2
        """
        return self.tree(vector).pruned(0)

    def __str__(self) -> str:
        """Write the fraction.

        >>> print(KDTree(0.1))
        k-d tree down to 0.1 of the data
        """
        return f"k-d tree down to {self.fraction:g} of the data"


@dataclass(frozen=True, eq=False)
class Tree:
    """A grown tree. Nodes are numbered parents first; the root is node 0.

    Attributes
    ----------
    leaf_of : (n,) the node in which each row ended. parent : (nodes,) the node above (the root's is itself). size : (nodes,)
    sum of weights. depth : how many splits lie above the deepest leaf.
    """

    leaf_of: Indices
    parent: list[int]
    size: list[float]
    depth: int

    def pruned(self, minimum: float) -> Partition:
        """Partition rows by the tree in which only nodes of size at least `minimum` are split; no bin is empty.

        With a minimum below that of the tree, its leaves are the bins.
        """
        # The bin that a node belongs to: itself, or the highest one not to be split
        top = list(range(len(self.parent)))
        for node, above in enumerate(self.parent):
            if above != node and (top[above] != above or self.size[above] < minimum):
                top[node] = top[above]
        highest = np.array(top, np.intp)
        filled = np.zeros(len(top), bool)
        filled[highest[self.leaf_of]] = True
        number = np.cumsum(filled) - 1
        return Partition(number[highest][self.leaf_of], int(filled.sum()))


def grow(columns: Floats, weights: Float64s | None, minimum: float) -> Tree:
    """Grow a tree on `columns`, shape (events, n): nodes of a size of at least `minimum` are split by `lower_side`.

    The size is the number of rows, or their weight. A node whose predictions are all equal is a leaf.

    >>> tree = grow(np.array([[0.1, 0.2, 0.8, 0.9], [0.9, 0.8, 0.2, 0.1]]), None, 3)
    >>> tree.size, len(set(tree.leaf_of.tolist()))  # only the root has three rows
    ([4.0, 2.0, 2.0], 2)
    """
    rows = np.arange(columns.shape[1])
    leaf_of = np.empty(len(rows), np.intp)
    parent: list[int] = []
    size: list[float] = []
    deepest = 0
    stack: list[tuple[Floats, Float64s | None, Indices, int, int]] = [(columns, weights, rows, 0, 0)]
    while stack:
        columns, weights, rows, above, depth = stack.pop()
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
            side_weights = None if weights is None else weights.take(chosen)
            stack.append((columns.take(chosen, axis=1), side_weights, rows.take(chosen), node, depth + 1))
    return Tree(leaf_of, parent, size, deepest)


def lower_side(columns: Floats, weights: Float64s | None) -> NDArray[np.bool_] | None:
    """Find the rows strictly below the mean of the column of highest variance, bool (n,); None if one side would be empty.

    `columns` have shape (events, n), weights (n,). Of equal variances the first column is taken.

    >>> lower_side(np.array([[0.1, 0.9, 0.8], [0.5, 0.5, 0.5]]), None)
    array([ True, False, False])
    """
    total = columns.shape[1] if weights is None else weights.sum()
    mean = (columns.sum(axis=1, dtype=np.float64) if weights is None else columns @ weights) / total
    spread = np.empty(len(mean))
    for part in blocks(len(mean), columns.shape[1], _BLOCK):
        centred = columns[part] - mean[part, None]
        if weights is None:
            spread[part] = np.einsum("ij,ij->i", centred, centred)
        else:
            spread[part] = (centred * centred) @ weights
    widest = int(np.flatnonzero(spread >= spread.max() * (1 - _VARIANCE_TIE))[0])
    low: NDArray[np.bool_] = columns[widest] < mean[widest] * (1 - _MEAN_TIE)
    return low if low.any() and not low.all() else None
