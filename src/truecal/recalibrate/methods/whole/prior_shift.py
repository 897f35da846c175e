"""Prior shift: the classes have other frequencies now than in the rows the map was fitted on."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from truecal.errors import FileError, InputError
from truecal.predictions import border
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.methods.scores.lift import renormalized, traced_renormalized
from truecal.recalibrate.outputs import Input
from truecal.types import Float64s, Floats, Indices

_STEPS = 10_000
_CHANGE = 1e-10  # of any class frequency in one step: then the iteration has ended


class PriorShift(Recalibrator):
    r"""Any map, then the change of class frequencies by Bayes' rule.

    .. math:: p'_k \propto \frac{\pi'_k}{\pi_k}\, p_k

    pi are the class frequencies of the rows fitted on, pi' those where predictions are made. Known ones are given as
    `prevalence`; unknown ones are learned from unlabelled rows by `adapt`, with the EM iteration of Saerens et al.: it
    maximises the likelihood of the unlabelled outputs, provided p is calibrated. That is why a map comes first.

    Parameters
    ----------
    recalibrator : the map that calibrates first, with the same `input`; None uses the probabilities as they are
        (input="probs").
    prevalence : the class frequencies to predict for: one per column, or for two classes that of the second. None keeps
        those of the fit until `adapt` is called.
    input : "probs" or "logits".
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    source_ : (K,) the class frequencies pi of the fit, in the order of the columns.
    prevalence_ : (K,) pi', the same unless given or adapted.
    recalibrator_ : the fitted map.

    Notes
    -----
    Assumed: rows of a class look the same in both places (label shift). A class that never occurred in the fit cannot
    be reweighted; its factor is 1, and a warning says so.

    References
    ----------
    Saerens, Latinne, Decaestecker. Adjusting the outputs of a classifier to new a priori probabilities. Neural
    Computation 14, 2002. Alexandari, Kundaje, Shrikumar. ICML 2020 (calibrate first).

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibrate import BetaCalibration, PriorShift
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, share):
    ...     y = rng.random(n) < share
    ...     return 1 / (1 + np.exp(-(2 * rng.normal(size=n) + 4 * y - 2))), y
    >>> s, y = draw(5000, 0.5)
    >>> fixed = PriorShift(BetaCalibration()).fit(s, y)
    >>> new, truth = draw(5000, 0.1)  # labels are not shown to it
    >>> fixed.adapt(new).prevalence_[1].round(1)
    np.float64(0.1)
    """

    def __init__(
        self,
        recalibrator: Recalibrator | None = None,
        *,
        prevalence: float | Sequence[float] | None = None,
        input: Input = "probs",  # noqa: A002
        classes: Sequence[object] | None = None,
    ) -> None:
        self.recalibrator = recalibrator
        self.prevalence = prevalence
        self.input = input
        self.classes = classes

    def check_params(self) -> None:
        super().check_params()
        if self.recalibrator is None:
            if self.input != "probs":
                raise InputError('without a recalibrator the probabilities are needed: declare input="probs"')
            return
        if not isinstance(self.recalibrator, Recalibrator):
            raise InputError(f"recalibrator must be a recalibrator or None, not {self.recalibrator!r}")
        self.recalibrator.check_params()
        if self.recalibrator.input != self.input:
            raise InputError(
                f'the recalibrator reads input="{self.recalibrator.input}" but this one input="{self.input}"; declare the same'
            )

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        count = outputs.shape[1]
        self.source_ = np.bincount(labels, weights, count) / (len(labels) if weights is None else weights.sum())
        if self.unseen_:
            self._warn(f"class {self._named(self.unseen_)} never occurs in y; its frequency cannot be shifted")
        if self.recalibrator is not None:
            # the fitted map reads columns and labels by number; names are kept here
            self.recalibrator_: Recalibrator = clone(self.recalibrator).set_params(classes=None)
            self.recalibrator_.fit(outputs, labels, weights)
        self.prevalence_ = self.source_ if self.prevalence is None else self._read_prevalence(count)

    def _read_prevalence(self, count: int) -> Float64s:
        values = border.as_floats(self.prevalence, "prevalence").astype(np.float64)  # type: ignore[arg-type]
        if values.ndim == 0 and count == 2:
            values = np.array([1 - values, values])
        if values.shape != (count,) or not ((values >= 0) & (values <= 1)).all() or abs(values.sum() - 1) > 1e-6:
            raise InputError(
                f"prevalence must be {count} class frequencies that sum to 1, in the order of the columns"
                f"{' (or that of the second class)' if count == 2 else ''}, not {self.prevalence!r}"
            )
        return values / values.sum()

    def adapt(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the class frequencies of unlabelled rows; later predictions are made for them. Returns itself.

        EM: the frequencies are replaced by the mean of the predictions made with them, until they stay.
        """
        check_is_fitted(self, "classes_")
        probs = self._calibrated(self._checked(X))
        weights = np.ones(len(probs)) if sample_weight is None else border.check_weights(sample_weight, (len(probs),))
        weights = weights / weights.sum()
        frequency = self.source_
        for _ in range(_STEPS):
            after = weights @ renormalized(probs * self._factors(frequency))
            after = after / after.sum()
            moved = float(np.abs(after - frequency).max())
            frequency = after
            if moved < _CHANGE:
                break
        self.prevalence_ = frequency
        return self

    def _factors(self, frequency: Float64s) -> Float64s:
        known = self.source_ > 0
        return np.where(known, frequency / np.where(known, self.source_, 1.0), 1.0)

    def _calibrated(self, outputs: Floats) -> Float64s:
        return outputs.astype(np.float64) if self.recalibrator is None else self.recalibrator_._apply(outputs)

    def _apply(self, outputs: Floats) -> Float64s:
        return renormalized(self._calibrated(outputs) * self._factors(self.prevalence_))

    def _trace(self, outputs: Value) -> Value:
        probs = outputs if self.recalibrator is None else self.recalibrator_._trace(outputs)
        return traced_renormalized(probs * self._factors(self.prevalence_), len(self.classes_))

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"source": self.source_.tolist(), "prevalence": self.prevalence_.tolist()}
        return state if self.recalibrator is None else {**state, "map": self.recalibrator_._learned()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        count = len(self.classes_)
        self.source_ = fields.numbers(state, "source", count, low=0.0, high=1.0)
        self.prevalence_ = fields.numbers(state, "prevalence", count, low=0.0, high=1.0)
        if self.recalibrator is None:
            return
        part = fields.field(state, "map")
        if not isinstance(part, dict):
            raise FileError('"map" must be an object')
        self.recalibrator_ = clone(self.recalibrator).set_params(classes=None)
        self.recalibrator_._take_up(part)
