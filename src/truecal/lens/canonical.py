"""Judge the whole distribution over the classes."""

from collections.abc import Iterator
from dataclasses import dataclass

from truecal.lens.lens import Lens
from truecal.lens.sample import Sample
from truecal.predictions import Predictions


@dataclass(frozen=True)
class Canonical(Lens):
    """Full calibration: among predictions that say g, the classes occur with the frequencies g: P(Y | g(X)) = g(X).

    The strictest condition and the hardest to measure: the more classes, the fewer predictions share a neighbourhood. Look at
    :func:`sweep_granularity` before quoting it.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> tc.Canonical().sample(preds).dimension
    3
    """

    @property
    def several(self) -> bool:
        return True

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        preds.refuse_unnormalized("Canonical()")
        names = tuple(preds.class_name(i) for i in range(preds.class_count))
        if preds.binary:
            yield Sample.of(preds, preds.probs[:, None], preds.labels, names=names, implied=0, judged=1)
        else:
            yield Sample.of(preds, preds.probs, preds.labels, names=names, implied=None, judged=1)

    def describe(self, preds: Predictions) -> str:
        return f"all {preds.class_count} classes together"
