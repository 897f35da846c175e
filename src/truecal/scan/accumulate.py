"""Calibration of a stream: a training loop, an evaluation log, anything that comes batch by batch and is not kept."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.estimate import Estimate, Estimator
from truecal.lens import Lens, OneClass, TopLabel
from truecal.predictions import Predictions
from truecal.predictions.border import as_array
from truecal.profile.sketch.sketch import Sketch
from truecal.profile.sketch.tally import Tally
from truecal.scan.answer import measure_sketch
from truecal.types import Float64s, Floats

if TYPE_CHECKING:
    from collections.abc import Sequence

_WAITING = 16_384  # rows held back until it pays to count them into the cells


class Accumulator:
    """Count in batches with `update`, ask with `compute`, join workers with `merge`.

    The state stays below 2 MiB for any number of rows.

    `y_true` and `y_prob` are as in :func:`calibration_error`: 1-D probabilities mean P(positive), 2-D class probabilities. Torch
    tensors of any floating type are welcome. Logits are never guessed: pass probabilities.

    Parameters
    ----------
    lens : TopLabel or OneClass; default the positive class for 1-D and the top label for 2-D probabilities.
    classes : class names, where labels are names.

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

    def __init__(self, *, lens: Lens | None = None, classes: "Sequence[object] | None" = None) -> None:
        if lens is not None and not isinstance(lens, (TopLabel, OneClass)):
            raise InputError(
                f"an accumulator judges one score per row: TopLabel or OneClass, not {type(lens).__name__}"
            )
        self.lens = lens
        self.classes = classes
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._judged = ""  # what earlier batches were judged as, in words
        self._tally = Tally()
        self._scores = np.empty(_WAITING)
        self._outcomes = np.empty(_WAITING, np.uint8)
        self._held = 0
        self._precision = 8
        self._merged = Sketch()

    def update(self, y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: ArrayLike | None = None) -> None:
        """Count in a batch of labels and probabilities, which may be empty."""
        labels, probs = as_array(y_true, "labels"), as_array(y_prob, "probs")  # once: every look at a tensor costs
        if labels.shape[:1] == (0,):
            return
        preds = Predictions.from_probs(probs, labels, weights=sample_weight, classes=self.classes)
        lens = self.lens if self.lens is not None else OneClass() if preds.binary else TopLabel()
        judged = lens.describe(preds)
        if self._judged and judged != self._judged:
            raise InputError(
                f"earlier batches were judged as '{self._judged}' and this one as '{judged}'; do not mix them"
            )
        self._judged = judged
        self._precision = min(self._precision, preds.probs.dtype.itemsize)
        scores, outcomes, weights = judged_rows(preds, lens)
        if weights is not None or len(scores) > _WAITING // 2:
            self._tally.add(scores, outcomes, weights)
            return
        if self._held + len(scores) > _WAITING:
            self._flush()
        rows = slice(self._held, self._held + len(scores))
        self._scores[rows], self._outcomes[rows] = scores, outcomes
        self._held = rows.stop

    def _flush(self) -> None:
        self._tally.add(self._scores[: self._held], self._outcomes[: self._held])
        self._held = 0

    def merge(self, other: "Accumulator | Sketch") -> "Accumulator":
        """Take in all rows of another accumulator (another worker's) or of a sketch; returns the accumulator itself."""
        if isinstance(other, Accumulator):
            if other._judged and self._judged and other._judged != self._judged:
                raise InputError(
                    f"one accumulator judged '{self._judged}' and the other '{other._judged}'; they do not add"
                )
            self._judged = self._judged or other._judged
            other = other.sketch
        self._merged.merge(other)
        return self

    @property
    def sketch(self) -> Sketch:
        """All rows counted in so far, as a sketch of its own."""
        self._flush()
        return Sketch.from_tally(self._tally, self._precision) + self._merged

    @property
    def rows(self) -> int:
        """Number of rows counted in."""
        return int(self._tally.sums[0].sum()) + self._held + self._merged.rows

    @property
    def nbytes(self) -> int:
        """Memory of the state."""
        tally = self._tally
        arrays = (tally.sums, tally.low, tally.high, self._scores, self._outcomes)
        return sum(a.nbytes for a in arrays) + self._merged.nbytes

    def compute(self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0) -> Estimate:
        """The calibration error of everything so far; options as in :func:`calibration_error`. More batches may follow."""
        lens = self._judged or "scores"
        return measure_sketch(self.sketch, estimator=estimator, lens=lens, level=level, rng=rng)

    def save(self, path: str | Path) -> None:
        """Write the sketch of everything so far; Sketch.load and `merge` bring it back."""
        self.sketch.save(path)

    def __repr__(self) -> str:
        return f"Accumulator({self.rows} rows{f', {self._judged}' if self._judged else ''})"


def judged_rows(preds: Predictions, lens: Lens) -> tuple[Floats, NDArray[np.uint8], Float64s | None]:
    """Scores, outcomes and weights that the lens judges, in any order. One class needs no sorting, so small batches stay cheap."""
    if isinstance(lens, OneClass):
        index = lens.index(preds)
        return preds.class_probs(index), (preds.labels == index).view(np.uint8), preds.weights
    profile = lens(preds)
    weights = None if profile.weights is None else profile.weights[0]
    return profile.scores[0], profile.outcomes[0].astype(np.uint8, copy=False), weights
