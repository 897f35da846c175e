"""Judge the probability of one class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from truecal.errors import InputError, printable
from truecal.lens.lens import Lens
from truecal.lens.pushed_down import PushedDown
from truecal.lens.sample import Sample
from truecal.predictions import Predictions, border
from truecal.types import Floats


@dataclass(frozen=True)
class OneClass(Lens):
    """Score: the probability of a class, by name or index. Outcome: whether it was the label.

    Without a class: the positive class of binary predictions.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], ["a", "b"], classes=["a", "b", "c"])
    >>> tc.OneClass("b")(preds).scores
    array([[0.2, 0.3]])
    """

    name: object = None

    def __post_init__(self) -> None:
        border.check_name(self.name)

    def index(self, preds: Predictions) -> int:
        """The column of the class."""
        if self.name is not None:
            return preds.class_index(self.name)
        if preds.class_count != 2:
            raise InputError(f"say which of the {preds.class_count} classes to judge: OneClass(name)")
        return 1

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        names = (preds.class_name(self.index(preds)), "other")
        yield Sample.of(preds, *self.judged(preds), names=names)

    def judged(self, preds: Predictions) -> tuple[Floats, NDArray[Any]]:
        index = self.index(preds)
        return preds.class_probs(index), preds.labels == index

    def pushed_down(self) -> PushedDown:
        return PushedDown("class", self.index)

    def describe(self, preds: Predictions) -> str:
        if self.name is None and preds.classes is None:
            return "positive class"
        return f"class {printable(preds.class_name(self.index(preds)))}"
