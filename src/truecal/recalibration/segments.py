"""Offsets for the segments in which scores are wrong: the smallest change that mends what an audit finds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.groups import segments
from truecal.predictions import validation
from truecal.recalibration.contract import ClassOrder, Recalibrator
from truecal.recalibration.documents import field, number
from truecal.recalibration.export import Value
from truecal.special import expit, logit, positive
from truecal.types import Float64s, Floats, Indices

_STEPS = 50
_LARGEST = 30.0  # log odds
_ROWS = "use fit_rows(preds) and recalibrate(preds), or evaluate([SegmentOffsets()], preds)"


@dataclass(frozen=True)
class Offset:
    """A shift of the log odds for the rows of a segment."""

    levels: tuple[segments.Level, ...]
    shift: float

    def mask(self, preds: tc.Predictions) -> NDArray[np.bool_]:
        """The rows of the segment."""
        return segments.rows_within(self.levels, preds.columns, len(preds))


class SegmentOffsets(Recalibrator):
    r"""One shift of the log odds for every segment that :func:`truecal.audit` finds, and none elsewhere.

    Segments come in the order of the audit, each fitted to what the earlier ones left, so that nested segments add up. With d the
    shift of highest likelihood and s its standard error, the shift applied is d max(0, 1 - s^2 / d^2) (James & Stein 1961): what is
    hardly beyond chance is hardly moved. Binary predictions move P(positive); with more classes the probability of the most
    probable class moves, and the others share what is left of 1 as before.

    Columns of the predictions are needed to fit and to apply, so :meth:`fit_rows` and :meth:`recalibrate` take the place of
    `fit(X, y)` and `predict_proba(X)`, which refuse; :func:`truecal.evaluate` searches and fits anew in every fold. There is no
    `to_onnx` or `to_torch`: what is served is the JSON.

    Parameters
    ----------
    by, depth, level, min_rows : as in :func:`truecal.audit`.
    classes : names of the classes, or None.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> site, p = rng.choice(["A", "B", "C"], 6000), rng.beta(2, 2, 6000)
    >>> odds = np.log(p / (1 - p)) - 0.6 * (site == "B")
    >>> preds = tc.Predictions.from_probs(p, rng.random(6000) < 1 / (1 + np.exp(-odds)), columns={"site": site})
    >>> mended = SegmentOffsets().fit_rows(preds)
    >>> [(o.levels[0].text, round(o.shift, 1)) for o in mended.offsets_]
    [('B', -0.6)]
    """

    input = "probs"

    def __init__(
        self,
        by: list[str] | None = None,
        depth: int = 3,
        level: float = 0.95,
        min_rows: int | None = None,
        classes: list[object] | None = None,
    ) -> None:
        self.by, self.depth, self.level, self.min_rows, self.classes = by, depth, level, min_rows, classes

    def fit_rows(self, preds: tc.Predictions, X: object = None) -> Self:
        """Search the predictions for segments and fit their offsets. `X` is not read: the probabilities are those of `preds`."""
        found = tc.audit(preds, by=self.by, depth=self.depth, level=self.level, min_rows=self.min_rows)
        score, outcome = _judged(preds)
        weight = np.ones(len(preds)) if preds.weights is None else preds.weights
        odds = _odds(score)
        names = validation.check_classes(self.classes, preds.class_count)
        self.n_features_in_ = 1 if preds.binary else preds.class_count
        self._name_classes(ClassOrder.of(names, preds.class_count))
        self.offsets_: tuple[Offset, ...] = ()
        for segment in found.segments:
            rows = np.flatnonzero(segment.mask(preds))
            shift = shrunk_shift(odds[rows], outcome[rows], weight[rows])
            if shift != 0:
                odds[rows] += shift
                self.offsets_ = (*self.offsets_, Offset(segment.levels, shift))
        return self

    def recalibrate(self, preds: tc.Predictions, X: object = None) -> tc.Predictions:
        """The same rows with the probabilities of the segments shifted; others stay as they are, bit by bit."""
        if not hasattr(self, "offsets_"):
            raise InputError("this recalibrator is not fitted; call fit_rows(preds) first")
        if preds.class_count != len(self.classes_):
            raise InputError(
                f"the predictions have {preds.class_count} classes, but this recalibrator was fitted on {len(self.classes_)}"
            )
        self._refuse_other_classes(preds)
        shift = np.zeros(len(preds))
        for offset in self.offsets_:
            shift[offset.mask(preds)] += offset.shift
        rows = np.flatnonzero(shift)
        score, _ = _judged(preds)
        moved = expit(_odds(score[rows]) + shift[rows])
        # No shift moves a score of exactly 0 or 1.
        moved = np.where((score[rows] == 0) | (score[rows] == 1), score[rows], moved)
        probs = preds.probs.astype(np.float64)
        if preds.binary:
            probs[rows] = moved
            return replace(preds, probs=probs)
        top = probs[rows].argmax(axis=1)
        left = 1 - score[rows]
        probs[rows] *= ((1 - moved) / positive(left))[:, None]
        probs[rows, top] = moved
        return replace(preds, probs=probs)

    def _refuse_other_classes(self, preds: tc.Predictions) -> None:
        """A shift belongs to the positive class, or to whichever class is on top: names must agree, where both have some."""
        places = self.order_.places_in(preds.classes)
        if places is not None and preds.binary:
            raise InputError("the two classes come in the other order than when this recalibrator was fitted")

    @property
    def parameter_count(self) -> int:
        """How many shifts were learned."""
        check_is_fitted(self, "offsets_")
        return len(self.offsets_)

    def _state(self) -> dict[str, Any]:
        listed = [{"levels": [level.record() for level in o.levels], "shift": o.shift} for o in self.offsets_]
        return {"offsets": listed}

    def _restore(self, state: Mapping[str, Any]) -> None:
        offsets = field(state, "offsets")
        if not isinstance(offsets, list):
            raise FileError('"offsets" must be a list')
        self.offsets_ = tuple(_offset(offset) for offset in offsets)

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        raise InputError(f"{type(self).__name__} needs the columns of the rows: {_ROWS}")

    def _apply(self, outputs: Floats) -> Float64s:
        raise InputError(f"{type(self).__name__} needs the columns of the rows: {_ROWS}")

    def _trace(self, outputs: Value) -> Value:
        raise InputError(
            "the segments are made of columns, which a model of outputs alone does not see; serve the JSON "
            "(to_json, `truecal recalibrate apply`)"
        )


def _offset(content: Any) -> Offset:
    if not isinstance(content, Mapping) or not isinstance(content.get("levels"), list):
        raise FileError('every offset must be an object with "levels" and "shift"')
    shift = number(content, "shift", low=-_LARGEST, high=_LARGEST)
    return Offset(tuple(segments.Level.of(level) for level in content["levels"]), shift)


def shrunk_shift(odds: Float64s, outcome: Indices, weight: Float64s) -> float:
    """The shift of log odds of highest likelihood, shrunk by James & Stein's factor."""
    shift = 0.0
    for _ in range(_STEPS):
        rate = expit(odds + shift)
        curvature = float((weight * rate * (1 - rate)).sum())
        # One more row of variance 1 keeps the shift of rows without ones (or zeros) finite.
        shift += float(np.clip((weight * (outcome - rate)).sum() / (curvature + 1), -1, 1))
    return float(shift * max(0.0, 1 - 1 / ((curvature + 1) * shift**2))) if shift else 0.0


def _odds(score: Float64s) -> Float64s:
    return logit(np.clip(score, 1e-13, 1 - 1e-13))


def _judged(preds: tc.Predictions) -> tuple[Float64s, Indices]:
    """The probability that moves, and whether its event happened."""
    if preds.binary:
        return preds.probs.astype(np.float64), preds.labels
    sample = tc.TopLabel().sample(preds)
    return sample.scores.astype(np.float64), sample.outcomes
