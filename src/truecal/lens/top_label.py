"""Judge the predicted class only: is it right as often as it is confident?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.lens.lens import Lens
from truecal.lens.pushed_down import PushedDown
from truecal.lens.sample import Sample
from truecal.predictions import Predictions
from truecal.types import Floats


@dataclass(frozen=True)
class TopLabel(Lens):
    """Score: the largest probability of a row. Outcome: whether that class was the label (the first of equals counts).

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> profile = tc.TopLabel()(preds)
    >>> profile.scores, profile.outcomes
    (array([[0.4, 0.7]]), array([[0, 1]], dtype=uint8))
    """

    @property
    def outcome_name(self) -> str:
        return "accuracy"

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        yield Sample.of(preds, *self.judged(preds), names=("top 1", "rest"))

    def judged(self, preds: Predictions) -> tuple[Floats, NDArray[Any]]:
        p = preds.probs
        if preds.binary:
            predicted = p >= 0.5
            confidence = np.where(predicted, p, 1 - p)
        else:
            predicted = p.argmax(axis=1)
            confidence = p[np.arange(len(p)), predicted]
        return confidence, predicted == preds.labels

    def describe(self, preds: Predictions) -> str:
        return "top label"

    def pushed_down(self) -> PushedDown:
        return PushedDown("top")
