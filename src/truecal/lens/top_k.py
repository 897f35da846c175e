"""Judge the k most probable classes, in order, and everything else together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.lens.lens import Lens
from truecal.lens.sample import Sample
from truecal.predictions import Predictions
from truecal.types import Floats, Indices

_BLOCK = 1 << 16  # probabilities looked at together, so that the passes over a block stay in cache


@dataclass(frozen=True)
class TopK(Lens):
    r"""Events: "the most probable class is right", ..., "the k-th most probable class is right", "none of these" (k + 1 events).

    The top-k lens of eq. 4 in Kirchenbauer, Oaks & Heim (2022), after
    Vaicenavicius et al. (2019), with the rest added so that the events have probability 1 together. Among equal probabilities
    the first class ranks higher, as in :class:`TopLabel`; TopK(1) judges what TopLabel judges.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.125, 0.5, 0.375], [0.25, 0.25, 0.5]], [2, 1])
    >>> top = tc.TopK(2).sample(preds)
    >>> top.scores
    array([[0.5  , 0.375],
           [0.5  , 0.25 ]])
    >>> top.outcomes  # the label of row 0 ranked second; that of row 1 was in the rest
    array([1, 2])
    """

    k: int

    def __post_init__(self) -> None:
        options.whole(self.k, "k")

    @property
    def several(self) -> bool:
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        preds.refuse_unnormalized(f"TopK({self.k})")
        self._refuse_fewer_classes(preds)
        probs = np.stack([1 - preds.probs, preds.probs], axis=1) if preds.binary else preds.probs
        if preds.binary:  # at 0.5 the positive class is predicted, as by TopLabel
            top, ranks = _ranked(probs[:, ::-1], 1 - preds.labels, self.k)
        else:
            top, ranks = _ranked(probs, preds.labels, self.k)
        names = (*(f"top {i + 1}" for i in range(self.k)), "rest")
        yield Sample.of(preds, top, ranks, names=names, implied=self.k, judged=0)

    def _refuse_fewer_classes(self, preds: Predictions) -> None:
        if self.k > preds.class_count:
            raise InputError(f"k is {self.k}, but there are only {preds.class_count} classes; use a smaller k")

    def parts(self, preds: Predictions) -> Sequence[Lens]:
        self._refuse_fewer_classes(preds)
        return [TopK(k) for k in range(1, self.k)]

    def describe(self, preds: Predictions) -> str:
        return "top label" if self.k == 1 else f"top {self.k} labels"


def _ranked(probs: Floats, labels: Indices, k: int) -> tuple[Floats, Indices]:
    """The k largest probabilities of each row in falling order, and the rank of the label (k when it is not among them)."""
    rows, count = probs.shape
    top = np.empty((rows, k), probs.dtype)
    ranks = np.empty(rows, np.intp)
    step = max(1, _BLOCK // count)
    for start in range(0, rows, step):
        block = probs[start : start + step]
        label = labels[start : start + step]
        if k == 1:
            top[start : start + step, 0] = block.max(axis=1)
        else:
            largest = np.partition(block, count - k, axis=1)[:, count - k :]
            largest.sort(axis=1)
            top[start : start + step] = largest[:, ::-1]
        own = block[np.arange(len(block)), label][:, None]
        above = np.count_nonzero(block > own, axis=1)
        tied = np.flatnonzero((np.count_nonzero(block >= own, axis=1) > above + 1) & (above < k))
        if len(tied):  # equal probabilities rank in the order of the classes
            before = np.arange(count) < label[tied, None]
            above[tied] += np.count_nonzero((block[tied] == own[tied]) & before, axis=1)
        ranks[start : start + step] = np.minimum(above, k)
    return top, ranks
