"""Shifts of the log odds for the segments in which scores are wrong, as found by an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.groups import segments
from truecal.predictions import validation
from truecal.recalibration.contract import ClassOrder, Input, Recalibrator
from truecal.recalibration.serialization import read_field, read_number
from truecal.recalibration.tracing import Tracer
from truecal.special import expit, logit, positive
from truecal.types import Float64s, Floats, Indices

_NEWTON_STEPS = 50
_MAX_SHIFT = 30.0  # of log odds
_HOW_TO_CALL = "use fit_rows(preds) and recalibrate(preds), or evaluate([SegmentOffsets()], preds)"


@dataclass(frozen=True)
class Offset:
    """A shift of the log odds for the rows of a segment."""

    levels: tuple[segments.Level, ...]
    shift: float

    def mask(self, preds: tc.Predictions) -> NDArray[np.bool_]:
        """Mark the rows of the segment."""
        return segments.rows_within(self.levels, preds.columns, len(preds))


@dataclass(eq=False, repr=False)
class SegmentOffsets(Recalibrator):
    r"""Shift the log odds of every segment that :func:`truecal.audit` finds, and nothing else.

    .. math:: \mathrm{shift} = d \max(0, 1 - s^2 / d^2)

    d is the shift of highest likelihood and s its standard error: shifts that are not significant are shrunk to nearly 0. Binary
    predictions shift P(positive); with more classes the probability of the most probable class shifts, and the others share
    the remainder as before. Segments come in the order of the audit, each fitted to what the earlier ones left, so that nested
    segments add up.

    Parameters
    ----------
    by : list of str, default None
        Columns to search; as in :func:`truecal.audit`.
    depth : int, default 3
        Largest number of columns that define a segment.
    level : float, default 0.95
        Level at which a segment is significant, for the whole search.
    min_rows : int, default None
        Smallest segment; None lets the audit choose.
    classes : list, default None
        Names of the classes.

    Attributes
    ----------
    offsets_ : tuple
        The segments, with `levels` and `shift`.

    Notes
    -----
    Columns of the predictions are needed to fit and to apply, so :meth:`fit_rows` and :meth:`recalibrate` replace
    `fit(X, y)` and `predict_proba(X)`, which refuse; :func:`truecal.evaluate` searches and fits anew in every fold. There is no
    `to_onnx` or `to_torch`: serve the JSON.

    References
    ----------
    James, Stein. Estimation with quadratic loss. Fourth Berkeley Symposium, 1961 (the shrinkage).

    See Also
    --------
    truecal.audit : Search for the segments.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> site, p = rng.choice(["A", "B", "C"], 6000), rng.beta(2, 2, 6000)
    >>> odds = np.log(p / (1 - p)) - 0.6 * (site == "B")
    >>> preds = tc.Predictions.from_probs(p, rng.random(6000) < 1 / (1 + np.exp(-odds)), columns={"site": site})
    >>> fitted = tc.recalibration.SegmentOffsets().fit_rows(preds)
    >>> [(o.levels[0].text, round(o.shift, 1)) for o in fitted.offsets_]
    [('B', -0.6)]
    """

    by: list[str] | None = None
    depth: int = 3
    level: float = 0.95
    min_rows: int | None = None
    input: Input = field(default="probs", init=False)

    def fit_rows(self, preds: tc.Predictions, X: object = None) -> Self:
        """Search the predictions for segments and fit their shifts.

        Parameters
        ----------
        preds : Predictions
            Rows with columns.
        X : object, default None
            Not read: the probabilities are those of `preds`.

        Returns
        -------
        self : SegmentOffsets
            The fitted recalibrator.
        """
        audit = tc.audit(preds, by=self.by, depth=self.depth, level=self.level, min_rows=self.min_rows)
        score, outcome = _score_and_outcome(preds)
        weight = np.ones(len(preds)) if preds.weights is None else preds.weights
        odds = _log_odds(score)
        names = validation.check_classes(self.classes, preds.class_count)
        self.n_features_in_ = 1 if preds.binary else preds.class_count
        self._set_classes(ClassOrder.of(names, preds.class_count))
        self.offsets_: tuple[Offset, ...] = ()
        for segment in audit.segments:
            rows = np.flatnonzero(segment.mask(preds))
            shift = fit_shrunk_shift(odds[rows], outcome[rows], weight[rows])
            if shift != 0:
                odds[rows] += shift
                self.offsets_ = (*self.offsets_, Offset(segment.levels, shift))
        return self

    def recalibrate(self, preds: tc.Predictions, X: object = None) -> tc.Predictions:
        """Shift the probabilities of the segments; other rows stay as they are, bit by bit.

        Parameters
        ----------
        preds : Predictions
            Rows with the columns of the fit.
        X : object, default None
            Not read.

        Returns
        -------
        preds : Predictions
            The same rows with new probabilities.

        Raises
        ------
        InputError
            Not fitted, or the classes are not those of the fit.
        """
        if not hasattr(self, "offsets_"):
            raise InputError("this recalibrator is not fitted; call fit_rows(preds) first")
        if preds.class_count != len(self.classes_):
            raise InputError(
                f"the predictions have {preds.class_count} classes, but this recalibrator was fitted on {len(self.classes_)}"
            )
        if self.order_.positions_in(preds.classes) is not None and preds.class_count == 2:
            raise InputError("the two classes come in the other order than when this recalibrator was fitted")
        shift = np.zeros(len(preds))
        for offset in self.offsets_:
            shift[offset.mask(preds)] += offset.shift
        rows = np.flatnonzero(shift)
        score = _score_and_outcome(preds)[0][rows]
        shifted = np.where((score == 0) | (score == 1), score, expit(_log_odds(score) + shift[rows]))
        probs = preds.probs.astype(np.float64)
        if preds.binary:
            probs[rows] = shifted
            return replace(preds, probs=probs)
        top = np.ones(len(rows), np.intp) if preds.class_count == 2 else probs[rows].argmax(axis=1)
        remainder = 1 - score
        probs[rows] *= ((1 - shifted) / positive(remainder))[:, None]
        probs[rows, top] = shifted
        return replace(preds, probs=probs)

    @property
    def parameter_count(self) -> int:
        """How many shifts were learned."""
        check_is_fitted(self, "offsets_")
        return len(self.offsets_)

    def _state(self) -> dict[str, Any]:
        return {
            "offsets": [{"levels": [level.record() for level in o.levels], "shift": o.shift} for o in self.offsets_]
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.offsets_ = tuple(_read_offset(offset) for offset in read_field(state, "offsets", list))

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        raise InputError(f"{type(self).__name__} needs the columns of the rows: {_HOW_TO_CALL}")

    def _apply(self, outputs: Float64s) -> Float64s:
        traced: object = outputs
        if isinstance(traced, Tracer):
            raise InputError(
                "the segments depend on columns, which an exported model of outputs does not have; serve the JSON "
                "(to_json, `truecal recalibrate apply`)"
            )
        raise InputError(f"{type(self).__name__} needs the columns of the rows: {_HOW_TO_CALL}")


def _read_offset(content: Any) -> Offset:
    """Read one offset (levels, shift in log odds) from JSON; refuse other content."""
    if not isinstance(content, Mapping) or not isinstance(content.get("levels"), list):
        raise FileError('every offset must be an object with "levels" and "shift"')
    shift = read_number(content, "shift", low=-_MAX_SHIFT, high=_MAX_SHIFT)
    return Offset(tuple(segments.Level.of(level) for level in content["levels"]), shift)


def fit_shrunk_shift(odds: Float64s, outcome: Indices, weight: Float64s) -> float:
    """Fit the shift of log odds of highest likelihood, shrunk by James and Stein's factor."""
    shift = 0.0
    for _ in range(_NEWTON_STEPS):
        rate = expit(odds + shift)
        curvature = float((weight * rate * (1 - rate)).sum())
        # the 1 keeps the shift of rows that are all positive, or all negative, finite
        shift += float(np.clip((weight * (outcome - rate)).sum() / (curvature + 1), -1, 1))
    return float(shift * max(0.0, 1 - 1 / ((curvature + 1) * shift**2))) if shift else 0.0


def _log_odds(score: Float64s) -> Float64s:
    """Compute log odds of scores clipped to [1e-13, 1 - 1e-13]."""
    return logit(np.clip(score, 1e-13, 1 - 1e-13))


def _score_and_outcome(preds: tc.Predictions) -> tuple[Float64s, Indices]:
    """Return the probability that shifts, and whether its event happened."""
    if preds.class_count == 2:
        return preds.class_probs(1).astype(np.float64), preds.labels
    sample = tc.TopLabel().sample(preds)
    return sample.scores.astype(np.float64), sample.outcomes
