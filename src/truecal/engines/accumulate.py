"""Calibration of a stream: a training loop, an evaluation log, anything that comes batch by batch and is not kept."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import truecal as tc
from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.predictions import as_predictions
from truecal.profile.cells import Tally
from truecal.types import Float64s, Floats

_WAITING = 32_768  # by choice: rows held back and counted into the cells together, which is faster


class Accumulator:
    """Count batches of a stream in bounded memory: `update` with each, ask with `compute`, join workers with `merge`.

    Parameters
    ----------
    lens : TopLabel or OneClass, default None
        What is judged; None is the positive class of two classes (one column or two), the top label of more.
    classes : sequence, default None
        Class names in the order of the columns, where labels are names.

    Raises
    ------
    InputError
        The lens judges more than one score of a row.

    Notes
    -----
    The state is a sketch and stays below 2 MiB for any number of rows; `sketch_error` of the Estimate bounds how far it is from
    the value of all rows. Torch tensors of any floating type are taken. Logits are never guessed: pass probabilities.

    See Also
    --------
    truecal.Sketch : The same for scores and outcomes, without a lens.
    truecal.scan : Data in files.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> acc = Accumulator()
    >>> for _ in range(20):
    ...     p = rng.random(500)
    ...     acc.update(rng.random(500) < p**1.5, p)
    >>> est = acc.compute()
    >>> acc.rows, round(est.value, 2), est.sketch_error < 1e-3
    (10000, 0.11, True)
    """

    def __init__(self, *, lens: Lens | None = None, classes: Sequence[object] | None = None) -> None:
        """Start without rows; refuse lenses of several scores per row and classes that are no list of names."""
        refuse_many(lens)
        self.lens = lens
        if classes is not None and not hasattr(classes, "__len__"):
            raise InputError(f"classes must be a list of class names, not {classes!r}")
        self.classes = None if classes is None else validation.check_classes(classes, len(classes))
        self._lock = RLock()
        self.reset()

    def reset(self) -> None:
        """Forget all rows and what was judged; `lens` and `classes` stay.

        >>> import truecal as tc
        >>> accumulator = Accumulator()
        >>> accumulator.update([0, 1], [0.2, 0.8]); accumulator.reset(); accumulator.rows
        0
        """
        with self._lock:
            self._subject: _Subject | None = None  # lens and first row of earlier batches
            self._tally = Tally()
            self._scores = np.empty(_WAITING)
            self._outcomes = np.empty(_WAITING, np.uint8)
            self._waiting_rows = 0
            self._precision = 8
            self._merged = tc.Sketch()

    def update(self, y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None) -> None:
        """Count a batch, which may be empty. Threads may do so at the same time.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels: class indices, or names listed in `classes`.
        y_prob : array-like of shape (n,) or (n, k)
            P(positive), or class probabilities.
        sample_weight : array-like of shape (n,), default None
            Row weights.

        Raises
        ------
        InputError
            A row is invalid, or earlier batches had other classes; nothing of the batch is counted then.
        """
        # Once: each conversion of a tensor takes time
        labels, probs = (
            validation.as_array(y_true, "labels"),
            validation.as_array(y_prob, "probabilities"),
        )
        if labels.shape[:1] == (0,) and probs.shape[:1] == (0,):
            return
        preds = as_predictions(labels, probs, sample_weight=sample_weight, classes=self.classes)
        lens = default_lens(preds) if self.lens is None else self.lens
        scores, outcomes, weights = judged_rows(preds, lens)
        with self._lock:
            if self._subject is None:
                self._subject = lens, replace(preds.take([0]), columns={})
            elif not _same_subject(self._subject, (lens, preds)):
                before, now = _subject_text(*self._subject), _subject_text(lens, preds)
                raise InputError(f"earlier batches were judged as {before} and this one as {now}; do not mix them")
            self._precision = min(self._precision, preds.probs.dtype.itemsize)
            if weights is not None or len(scores) > _WAITING // 2:
                self._tally.add(scores, outcomes, weights)
                return
            if self._waiting_rows + len(scores) > _WAITING:
                self._flush()
            rows = slice(self._waiting_rows, self._waiting_rows + len(scores))
            self._scores[rows], self._outcomes[rows] = scores, outcomes
            self._waiting_rows = rows.stop

    def _flush(self) -> None:
        """Add the rows that `update` has held back to the sums of their cells. Call with the lock held."""
        self._tally.add(self._scores[: self._waiting_rows], self._outcomes[: self._waiting_rows])
        self._waiting_rows = 0

    def merge(self, other: Accumulator | tc.Sketch) -> Accumulator:
        """Add all rows of another accumulator, such as another worker's, or of a sketch.

        Parameters
        ----------
        other : Accumulator or Sketch
            A sketch has no lens and no classes, so that these are not compared.

        Returns
        -------
        self : Accumulator
            The accumulator itself.

        Raises
        ------
        InputError
            The other accumulator has another lens, number of classes or class names.
        """
        if isinstance(other, Accumulator):
            with other._lock:  # never both locks at once: two accumulators may be merged into each other
                other_subject, other = other._subject, other.sketch
            with self._lock:
                if other_subject is not None:
                    subject = self._subject or self._own_subject(*other_subject)
                    if not _same_subject(subject, other_subject):
                        raise InputError(
                            f"one accumulator judged {_subject_text(*subject)} and the other {_subject_text(*other_subject)}; "
                            "they cannot be added"
                        )
                    self._subject = subject
                self._merged.merge(other)
            return self
        self._merged.merge(other)
        return self

    def _own_subject(self, lens: Lens, row: tc.Predictions) -> _Subject:
        """Return the subject (lens, row) of rows like `row`, with this accumulator's lens and classes where it has them."""
        classes = row.classes if self.classes is None else validation.check_classes(self.classes, row.class_count)
        return lens if self.lens is None else self.lens, replace(row, classes=classes)

    @property
    def sketch(self) -> tc.Sketch:
        """Sketch of all rows counted so far, merged ones included; later updates do not change it.

        >>> import truecal as tc
        >>> accumulator = Accumulator()
        >>> accumulator.update([0, 1], [0.2, 0.8]); accumulator.sketch
        Sketch(2 rows in 2 cells)
        """
        with self._lock:
            self._flush()
            return tc.Sketch.from_tally(self._tally, self._precision) + self._merged

    @property
    def rows(self) -> int:
        """Number of rows counted so far, merged ones included.

        >>> import truecal as tc
        >>> accumulator = Accumulator()
        >>> accumulator.update([0, 1], [0.2, 0.8]); accumulator.rows
        2
        """
        with self._lock:
            return int(self._tally.sums[0].sum()) + self._waiting_rows + self._merged.rows

    @property
    def nbytes(self) -> int:
        """Memory of the arrays of the state, in bytes."""
        tally = self._tally
        arrays = (tally.sums, tally.low, tally.high, self._scores, self._outcomes)
        return sum(a.nbytes for a in arrays) + self._merged.nbytes

    def compute(self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0) -> tc.Estimate:
        """Measure the calibration error of everything so far; more batches may follow.

        Parameters
        ----------
        estimator : Estimator, default None
            As in :func:`truecal.measure`; None is the rank series.
        level : float, default 0.95
            Confidence level of the interval.
        rng : int, default 0
            Seed of redrawn labels.

        Returns
        -------
        estimate : Estimate
            With its interval, test and `sketch_error`.
        """
        lens = "scores" if self._subject is None else self._subject[0].describe(self._subject[1])
        return tc.measure(self.sketch, estimator=estimator, level=level, rng=rng).replace(lens=lens)

    def save(self, path: str | Path) -> None:
        """Write the sketch of everything so far; `Sketch.load` and `merge` bring it back.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        self.sketch.save(path)

    def __getstate__(self) -> dict[str, Any]:
        """Return a copy of the state without the lock, which cannot be pickled."""
        with self._lock:
            self._flush()
            state = {name: value for name, value in vars(self).items() if name != "_lock"}
            return copy.deepcopy(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes from pickle, with a new lock."""
        self._lock = RLock()
        vars(self).update(state)

    def __repr__(self) -> str:
        """Return the number of rows and what is judged.

        >>> Accumulator()
        Accumulator(0 rows)
        """
        lens = "" if self._subject is None else f", {self._subject[0].describe(self._subject[1])}"
        return f"Accumulator({self.rows} rows{lens})"


_Subject = tuple[Lens, tc.Predictions]  # what is judged: a lens, and predictions of which only the classes matter


def _same_subject(first: _Subject, second: _Subject) -> bool:
    """Whether two subjects judge the same probability of equally many classes; names are compared where both have them."""
    names = [preds.classes for _, preds in (first, second)]
    if first[1].class_count != second[1].class_count or (None not in names and names[0] != names[1]):
        return False
    return _judged_class(*first) == _judged_class(*second)


def _judged_class(lens: Lens, preds: tc.Predictions) -> tuple[str, int | None]:
    """Return the kind of a lens, "top" or "class", and the position of its class in `preds` (None for "top").

    >>> import truecal as tc
    >>> _judged_class(tc.OneClass(), tc.Predictions.from_probs([0.2, 0.8], [0, 1]))
    ('class', 1)
    """
    condition = lens.pushed_down()
    return condition.kind, None if condition.index is None else condition.index(preds)


def _subject_text(lens: Lens, preds: tc.Predictions) -> str:
    """Return text such as "'top label' of 3 classes: cat, dog, fox", with the first five names.

    >>> import truecal as tc
    >>> _subject_text(tc.TopLabel(), tc.Predictions.from_probs([0.2, 0.8], [0, 1]))
    "'top label' of 2 classes"
    """
    names = preds.classes or ()
    listed = f": {', '.join(map(str, names[:5]))}{', ...' if len(names) > 5 else ''}" if names else ""
    return f"'{lens.describe(preds)}' of {preds.class_count} classes{listed}"


def refuse_many(lens: Lens | None) -> None:
    """Refuse a lens that judges more than one score of a row, such as ClassWise; None is accepted.

    >>> import truecal as tc
    >>> refuse_many(tc.ClassWise())
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: an accumulator judges one score per row: TopLabel or OneClass, not ClassWise
    """
    check_lens(lens)
    if lens is not None and lens.pushed_down().kind == "classes":
        raise InputError(f"an accumulator judges one score per row: TopLabel or OneClass, not {type(lens).__name__}")


def judged_rows(preds: tc.Predictions, lens: Lens) -> tuple[Floats, NDArray[np.uint8], Float64s | None]:
    """Return scores, outcomes (0 or 1) and weights or None, each (n,), that a lens judges, unsorted: small batches stay cheap.

    >>> import truecal as tc
    >>> judged_rows(tc.Predictions.from_probs([0.2, 0.8], [0, 1]), tc.OneClass())
    (array([0.2, 0.8]), array([0, 1], dtype=uint8), None)
    """
    scores, outcomes = lens.scores_and_outcomes(preds)
    return scores, outcomes.astype(np.uint8, copy=False), preds.weights
