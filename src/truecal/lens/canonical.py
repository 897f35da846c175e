"""Judge the whole distribution over the classes."""

from dataclasses import dataclass

from truecal.lens.vector import Vector, VectorLens
from truecal.predictions import Predictions


@dataclass(frozen=True)
class Canonical(VectorLens):
    """Full calibration: among predictions that say g, the classes occur with the frequencies g: P(Y | g(X)) = g(X).

    The strictest condition and the hardest to measure: the more classes, the fewer predictions share a neighbourhood. Look at
    :func:`sweep_granularity` before quoting it.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> tc.Canonical()(preds).dimension
    3
    """

    def __call__(self, preds: Predictions) -> Vector:
        names = tuple(preds.class_name(i) for i in range(preds.class_count))
        if preds.binary:
            return Vector(preds.probs[:, None], preds.labels, names, 0, 1, preds.weights, preds.clusters)
        return Vector(preds.probs, preds.labels, names, None, 1, preds.weights, preds.clusters)

    def describe(self, preds: Predictions) -> str:
        return f"all {preds.class_count} classes together"
