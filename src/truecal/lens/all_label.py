"""Judge every probability of every row at once: all labels pooled."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truecal.lens.lens import Lens
from truecal.lens.sample import Sample, unit_of
from truecal.predictions import Predictions


@dataclass(frozen=True)
class AllLabels(Lens):
    """One dataset of n x K pairs: score the probability of a class in a row, outcome whether it was the row's label.

    The "all-label" variant of Nixon et al. (2019) and Minderer et al. (2021). Unlike :class:`ClassWise` it pools the classes, so
    that errors of opposite sign at the same confidence cancel. The K pairs of a row are not independent; intervals therefore
    come from resampling rows (or clusters of rows), not pairs. Its n is the number of pairs.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    >>> profile = tc.AllLabels()(preds)
    >>> profile.scores, profile.outcomes
    (array([[0.25, 0.5 , 0.5 , 0.75]]), array([[0, 0, 1, 1]], dtype=uint8))
    """

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        p = np.stack([1 - preds.probs, preds.probs], axis=1) if preds.binary else preds.probs
        outcomes = np.zeros(p.shape, bool)
        outcomes[np.arange(len(p)), preds.labels] = True
        weights = None if preds.weights is None else np.repeat(preds.weights, p.shape[1])
        units = np.repeat(np.arange(len(p)) if preds.clusters is None else preds.clusters, p.shape[1])
        yield Sample(p.ravel(), outcomes.ravel(), weights, units, unit_of(preds), pooled=True)

    def describe(self, preds: Predictions) -> str:
        return f"all labels of {preds.class_count} classes"
