"""The ladder: groups of equal confidence, the most confident first, with the rows and the errors in each.

Rows of equal confidence have no order. What is answered of a group is answered at random, so every number here is the mean over all
orders within groups: no answer depends on the order of rows, and a row of weight 3 equals three rows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.estimate import resampling
from truecal.lens import Lens, check_lens
from truecal.predictions import check_predictions
from truecal.profile import Cut
from truecal.types import Float64s


@dataclass(frozen=True, eq=False)
class Ladder:
    """`confidence` of every group, falling, shape (groups,); number of rows and of errors, shape (batch, groups)."""

    confidence: Float64s
    count: Float64s
    wrong: Float64s

    @classmethod
    def of(cls, preds: tc.Predictions, lens: Lens | None = None) -> "Ladder":
        """From one sort of the rows by confidence; the rest is read from the prefix sums of the profile.

        >>> import truecal as tc
        >>> ladder = Ladder.of(tc.Predictions.from_probs([0.9, 0.1, 0.6, 0.7], [1, 1, 1, 0]))
        >>> ladder.confidence, ladder.count, ladder.wrong
        (array([0.9, 0.7, 0.6]), array([[2., 1., 1.]]), array([[1., 1., 0.]]))
        """
        check_predictions(preds)
        profile: tc.Profile = answer_lens(preds, lens)(preds)
        places = resampling.cell_places(profile, profile.rows)[None]
        cut = Cut(places, places)
        weight, right = (np.diff(profile.sums(name, cut), axis=1)[:, ::-1] for name in ("w", "y"))
        scale = float(profile.size[0] / profile.total[0])
        scores = profile.scores[0, places[0, :-1]].astype(np.float64)
        return cls(scores[::-1], weight * scale, np.clip(weight - right, 0.0, weight) * scale)

    @cached_property
    def answered(self) -> Float64s:
        """Rows answered when the first 0, 1, 2, ... groups are, shape (batch, groups + 1)."""
        return _sums(self.count)

    @cached_property
    def errors(self) -> Float64s:
        """Errors among them."""
        return _sums(self.wrong)

    @property
    def n(self) -> Float64s:
        """Number of rows, shape (batch,)."""
        return self.answered[:, -1]

    def loss(self, coverage: Float64s) -> Float64s:
        """Errors among the most confident share of rows, as a share of all rows, shape (batch, q)."""
        losses = np.empty((len(self.count), len(coverage)))
        for i, (answered, errors) in enumerate(zip(self.answered, self.errors, strict=True)):
            losses[i] = np.interp(coverage * answered[-1], answered, errors) / answered[-1]
        return losses

    def area(self) -> Float64s:
        """Mean over k = 1..n of the risk of the k most confident rows, shape (batch,).

        In a group that starts after a rows with E errors, and has m rows with e errors, the k-th row brings the mean risk
        (E + (k - a) e/m) / k. Summed over the group: e + (E - a e/m) (H(a + m) - H(a)), with the harmonic numbers H.
        """
        a, before = self.answered[:, :-1], self.errors[:, :-1]
        rate = self.wrong / np.where(self.count > 0, self.count, 1.0)
        return (self.wrong + (before - a * rate) * _harmonic(a, self.count)).sum(axis=1) / self.n

    def best_area(self) -> Float64s:
        """The same if confidence had put all right answers before all wrong ones, shape (batch,)."""
        wrong = self.errors[:, -1]
        right = self.n - wrong
        return (wrong - right * _harmonic(right, wrong)) / self.n


def answer_lens(preds: tc.Predictions, lens: Lens | None) -> Lens:
    """What is answered with which confidence: the predicted class with its probability, unless told otherwise.

    Where rows are answers already (classes "wrong" and "correct"), their confidence is the probability itself, however small.
    """
    check_lens(lens)
    chosen: Lens = lens if lens is not None else tc.OneClass() if preds.of_answers else tc.TopLabel()
    if chosen.several or chosen.shares(preds) is not None:
        raise InputError("an answer has one confidence; use tc.TopLabel() or tc.OneClass(name)")
    return chosen


def _sums(values: Float64s) -> Float64s:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _harmonic(start: Float64s, length: Float64s) -> Float64s:
    """1/(start + 1) + ... + 1/(start + length); fractions of rows count in proportion (digamma)."""
    from scipy.special import psi

    return np.where(length == 1, 1 / (start + 1), psi(start + length + 1) - psi(start + 1))
