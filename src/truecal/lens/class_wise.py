"""Judge every class's probability: the marginal calibration error."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truecal.errors import InputError
from truecal.lens.lens import Lens
from truecal.lens.pushed_down import PushedDown
from truecal.lens.sample import Sample
from truecal.predictions import Predictions, border
from truecal.profile import Profile
from truecal.types import Float64s

_BLOCK = 1 << 20  # probabilities turned from rows into columns at a time


@dataclass(frozen=True)
class ClassWise(Lens):
    """One dataset per class: score the probability of the class, outcome whether it was the label.

    The overall error is (sum_k w_k error_k^p)^(1/p) with w_k = 1/K unless `weights` gives one per class (Kumar et al. 2019, the
    marginal calibration error). Many classes are worked through in blocks of columns.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], [0, 1])
    >>> tc.ClassWise()(preds)
    Profile(3 datasets of 2 rows)
    """

    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.weights is not None:
            w = border.as_floats(self.weights, "class weights")
            if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any() or w.sum() <= 0:
                raise InputError("class weights must be finite, not negative, and not all zero")
            object.__setattr__(self, "weights", tuple(w.tolist()))

    def samples(self, preds: Predictions) -> Iterator[Sample]:
        step = max(1, _BLOCK // len(preds))
        for start in range(0, preds.class_count, step):
            stop = min(start + step, preds.class_count)
            if preds.binary:
                columns = np.stack([1 - preds.probs, preds.probs])[start:stop]
            else:
                columns = border.turned(preds.probs[:, start:stop])
            for k, scores in zip(range(start, stop), columns, strict=True):
                yield Sample.of(preds, scores, preds.labels == k, names=(preds.class_name(k), "other"))

    def profiles(self, preds: Predictions) -> Iterator[Profile]:
        if preds.binary or preds.weights is not None or preds.clusters is not None:
            yield from super().profiles(preds)
            return
        step = max(1, _BLOCK // len(preds))
        for start in range(0, preds.class_count, step):
            columns = border.turned(preds.probs[:, start : start + step])
            outcomes = np.zeros(columns.shape, np.uint8)
            rows = np.flatnonzero((preds.labels >= start) & (preds.labels < start + step))
            outcomes[preds.labels[rows].astype(np.intp) - start, rows] = 1
            yield Profile.of_rows(columns, outcomes)

    def shares(self, preds: Predictions) -> Float64s:
        if self.weights is None:
            return np.full(preds.class_count, 1 / preds.class_count)
        if len(self.weights) != preds.class_count:
            raise InputError(f"{len(self.weights)} class weights were given for {preds.class_count} classes")
        return np.asarray(self.weights) / np.sum(self.weights)

    def every_column(self, preds: Predictions) -> bool:
        return not preds.binary

    def pushed_down(self) -> PushedDown:
        return PushedDown("classes")

    def describe(self, preds: Predictions) -> str:
        return f"{preds.class_count} classes" + ("" if self.weights is None else ", weighted")
