"""Prior shift: a recalibrated model adapted to other class frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from truecal.errors import InputError
from truecal.predictions import validation
from truecal.recalibration.contract import Input, Recalibrator
from truecal.recalibration.score_maps import renormalize
from truecal.recalibration.serialization import read_field, read_numbers
from truecal.types import Float64s, Floats, Indices

_MAX_ITERATIONS = 10_000
_TOLERANCE = 1e-10  # largest change of a class frequency in the last iteration


@dataclass(eq=False, repr=False, kw_only=True)
class PriorShift(Recalibrator):
    r"""Recalibrate by any map, then change the class frequencies by Bayes' rule.

    .. math:: p'_k \propto \frac{\pi'_k}{\pi_k}\, p_k

    pi are the class frequencies of the rows fitted on, pi' those where predictions are made. If these are known they are
    given as `prevalence`; unknown ones are learned from unlabelled rows by `adapt`, with the EM iteration of Saerens et al.: it
    maximises the likelihood of the unlabelled outputs, provided p is calibrated. That is why a map comes first.

    Parameters
    ----------
    recalibrator : Recalibrator, default None
        The map that calibrates first, with the same `input`; None uses the probabilities as they are (input="probs").
    prevalence : float or sequence of float, default None
        The class frequencies to predict for: one per column, or for two classes that of the second. None keeps those of
        the fit until `adapt` is called.
    input : {"probs", "logits"}, default "probs"
        What X holds.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    source_ : ndarray of shape (K,)
        The class frequencies pi of the fit, in the order of the columns.
    prevalence_ : ndarray of shape (K,)
        pi', the same unless given or adapted.
    recalibrator_ : Recalibrator
        The fitted map.

    Notes
    -----
    Assumes label shift: the distribution of outputs within a class is the same in both populations. A class that never
    occurred in the fit cannot be reweighted; its factor is 1, and a warning says so.

    References
    ----------
    Saerens, Latinne, Decaestecker. Adjusting the outputs of a classifier to new a priori probabilities. Neural Computation
    14, 2002. https://doi.org/10.1162/089976602753284446
    Alexandari, Kundaje, Shrikumar. Maximum likelihood with bias-corrected calibration is hard-to-beat at label shift
    adaptation. ICML 2020 (calibrate first). https://doi.org/10.48550/arXiv.1901.06852

    See Also
    --------
    BiasCorrectedTemperature : A map for the first step.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import BetaCalibration, PriorShift
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, share):
    ...     y = rng.random(n) < share
    ...     return 1 / (1 + np.exp(-(2 * rng.normal(size=n) + 4 * y - 2))), y
    >>> s, y = draw(5000, 0.5)
    >>> fitted = PriorShift(BetaCalibration()).fit(s, y)
    >>> new, _ = draw(5000, 0.1)  # its labels are not used
    >>> fitted.adapt(new).prevalence_[1].round(1)
    np.float64(0.1)
    """

    recalibrator: Recalibrator | None = field(default=None, kw_only=False)
    prevalence: float | Sequence[float] | None = None
    input: Input = "probs"

    def _check_params(self) -> None:
        super()._check_params()
        if self.recalibrator is not None:
            if not isinstance(self.recalibrator, Recalibrator):
                raise InputError(f"recalibrator must be a recalibrator or None, not {self.recalibrator!r}")
            self.recalibrator._check_params()
            if self.recalibrator.input != self.input:
                raise InputError(
                    f'the recalibrator reads input="{self.recalibrator.input}" but this one input="{self.input}"; '
                    "declare the same"
                )
        elif self.input != "probs":
            raise InputError('without a recalibrator the probabilities are needed: declare input="probs"')

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        count = outputs.shape[1]
        self.source_ = np.bincount(labels, weights, count) / (len(labels) if weights is None else weights.sum())
        if self.absent_classes_:
            names = self.order_.describe(self.absent_classes_)
            self._warn(f"class {names} never occurs in y; its frequency cannot be shifted")
        if self.recalibrator is not None:
            # the fitted map reads columns and labels by number; this object holds the names
            self.recalibrator_: Recalibrator = clone(self.recalibrator).set_params(classes=None)
            self.recalibrator_.fit(outputs, labels, weights)
        self.prevalence_ = self.source_ if self.prevalence is None else self._read_prevalence(count)

    def _read_prevalence(self, count: int) -> Float64s:
        """Return the prevalence as class frequencies, shape (classes,); a single number is that of the second of two classes."""
        values = validation.as_floats(self.prevalence, "prevalence").astype(np.float64)  # type: ignore[arg-type]
        if values.ndim == 0 and count == 2:
            values = np.array([1 - values, values])
        if values.shape != (count,) or not ((values >= 0) & (values <= 1)).all() or abs(values.sum() - 1) > 1e-6:
            raise InputError(
                f"prevalence must be {count} class frequencies that sum to 1, in the order of the columns"
                f"{' (or that of the second class)' if count == 2 else ''}, not {self.prevalence!r}"
            )
        return values / values.sum()

    def adapt(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the class frequencies of unlabelled rows by EM; later predictions are made for them.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, K)
            Outputs of the declared `input`.
        sample_weight : array-like of shape (n,), default None
            Non-negative weights.

        Returns
        -------
        self : PriorShift
            With a new `prevalence_`: the fixed point at which it equals the mean of the predictions made with it.
        """
        check_is_fitted(self, "classes_")
        probs = self._calibrate(self._check_outputs(X).astype(np.float64))
        rows, count = probs.shape
        weights = np.ones(rows) if sample_weight is None else validation.check_weights(sample_weight, (rows,))
        weights = weights / weights.sum()
        frequency = self.source_
        for _ in range(_MAX_ITERATIONS):
            before = frequency
            frequency = weights @ renormalize(probs * self._factors(frequency), count)
            frequency = frequency / frequency.sum()
            if np.abs(frequency - before).max() < _TOLERANCE:
                break
        self.prevalence_ = frequency
        return self

    def _factors(self, frequency: Float64s) -> Float64s:
        """Return the ratio of new to old class frequencies; 1 for classes that did not occur."""
        occurs = self.source_ > 0
        return np.where(occurs, frequency / np.where(occurs, self.source_, 1.0), 1.0)

    def _calibrate(self, outputs: Float64s) -> Float64s:
        """Apply the recalibrator, if there is one."""
        return outputs if self.recalibrator is None else self.recalibrator_._apply(outputs)

    def _apply(self, outputs: Float64s) -> Float64s:
        return renormalize(self._calibrate(outputs) * self._factors(self.prevalence_), len(self.classes_))

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"source": self.source_.tolist(), "prevalence": self.prevalence_.tolist()}
        return state if self.recalibrator is None else {**state, "map": self.recalibrator_._fit_to_json()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        count = len(self.classes_)
        self.source_ = read_numbers(state, "source", count, low=0.0, high=1.0)
        self.prevalence_ = read_numbers(state, "prevalence", count, low=0.0, high=1.0)
        if self.recalibrator is not None:
            self.recalibrator_ = clone(self.recalibrator).set_params(classes=None)
            self.recalibrator_._fit_from_json(read_field(state, "map", dict))
