"""Shared binning: one set of bins for all classes, cut where they say most about the labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import FileError
from truecal.recalibrate.methods.scores.isotonic import pooled
from truecal.recalibrate.methods.scores.lift import Multiclass, ScoreMapping
from truecal.recalibrate.methods.scores.steps import StepMap, read_steps
from truecal.recalibrate.outputs import Input
from truecal.types import Float64s, Indices

_CELLS = 512  # cuts are looked for between so many cells of positive and as many of negative pairs


class SharedBinning(ScoreMapping):
    r"""Bins of the class probability that maximise the mutual information of bin and label, shared by all classes.

    .. math:: \max_{\text{cuts}} \; I(\text{bin}; y) \;=\; \max \; H(y) - \sum_b \frac{n_b}{n} H\!\left(\frac{y_b}{n_b}\right)

    All pairs of a row and a class are pooled, so that a thousand classes share one map instead of having a handful of
    positives each. A bin's value is the frequency of its pairs. Values of a row are divided by their sum; where two
    classes fall into one bin the model's own probability decides between them (it enters with a weight of 1e-6), so the
    predicted class, and accuracy, stay.

    Parameters
    ----------
    bins : the number of bins; fewer where neighbouring bins would have equal frequencies.
    input : "probs" or "logits" (their log odds, which tell apart what rounds to 0 or 1).
    normalize : whether the values of a row are divided by their sum; without it they take at most `bins` values.
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : the one map, with inner `edges` and `values`.

    Notes
    -----
    The cuts are the exact optimum over cells that hold equal shares of the positive or of the negative pairs (dynamic
    programming), where I-Max iterates from a random start. Two classes have one map, of the second class.

    References
    ----------
    Patel, Beluch, Yang, Pfeiffer, Zhang. Multi-class uncertainty calibration via mutual information maximization-based
    binning. ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import SharedBinning
    >>> rng = np.random.default_rng(0)
    >>> logits = 6 * rng.normal(size=(3000, 20))
    >>> labels = (logits / 3 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fixed = SharedBinning(bins=8, input="logits").fit(logits, labels)
    >>> bool((fixed.predict(logits) == logits.argmax(axis=1)).all())
    True
    """

    multiclass: Multiclass = "shared"

    def __init__(
        self,
        bins: int = 15,
        *,
        input: Input = "probs",  # noqa: A002
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        self.bins = bins
        self.input = input
        self.normalize = normalize
        self.classes = classes

    def check_params(self) -> None:
        super().check_params()
        options.whole(self.bins, "bins", 1, 2 * _CELLS)

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> StepMap:
        x, w, ones = pooled(scores, outcomes, weights)
        start = _cells(w, ones)
        mass, positive = np.add.reduceat(w, start), np.add.reduceat(ones, start)
        cut = start[best_cuts(mass, positive, self.bins)]
        # an edge halfway between the scores on its sides
        low, high = x[cut[1:] - 1], x[cut[1:]]
        middle = low + (high - low) / 2
        edges = np.where(middle > low, middle, high)
        return StepMap(edges, np.add.reduceat(ones, cut) / np.add.reduceat(w, cut))

    def read_map(self, state: Mapping[str, Any]) -> StepMap:
        steps = read_steps(state, within=(-np.inf, np.inf))
        if len(steps.values) > self.bins:
            raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {self.bins}')
        return steps


def _cells(w: Float64s, ones: Float64s) -> Indices:
    """Where cells start: at even steps of the weight of positive pairs and at even steps of the weight of negative ones.

    Of a thousand classes one pair in a thousand is positive; cells of equal total weight would put all of them into one.
    """
    if len(w) <= 2 * _CELLS:
        return np.arange(len(w))
    starts = [np.zeros(1, np.intp)]
    for part in (ones, w - ones):
        reached = np.cumsum(part)
        if reached[-1] > 0:
            starts.append(np.searchsorted(reached, np.arange(1, _CELLS) / _CELLS * reached[-1]) + 1)
    cells = np.unique(np.concatenate(starts))
    return cells[cells < len(w)]


def best_cuts(mass: Float64s, positive: Float64s, bins: int) -> Indices:
    """First cells of at most `bins` runs of cells whose weighted entropy of outcomes is least.

    best[b][j], the least entropy of the first j cells in b bins, is min over i of best[b - 1][i] + H(cells i to j).
    """
    reached, ones = np.r_[0.0, np.cumsum(mass)], np.r_[0.0, np.cumsum(positive)]
    count = len(mass)
    whole = reached[None, :] - reached[:, None]
    part = ones[None, :] - ones[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(part / whole, 0.0, 1.0)
        entropy = -whole * (_xlogx(share) + _xlogx(1 - share))
    entropy[np.tril_indices(count + 1)] = np.inf
    best = entropy[0].copy()
    came_from: list[Indices] = []
    for _ in range(min(bins, count) - 1):
        total = best[:, None] + entropy
        before = total.argmin(axis=0)
        after = total[before, np.arange(count + 1)]
        # a further bin that saves nothing is no bin
        if not after[count] < best[count] - 1e-12 * reached[-1]:
            break
        came_from.append(before)
        best = after
    cuts, end = [], count
    for before in reversed(came_from):
        end = int(before[end])
        cuts.append(end)
    return np.array([0, *reversed(cuts)], np.intp)


def _xlogx(share: Float64s) -> Float64s:
    return np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0)
