"""One recalibration map for each of several labels per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

import truecal as tc
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.recalibration.contract import Recalibrator
from truecal.recalibration.score_maps import BetaCalibration
from truecal.types import Float64s


@dataclass(eq=False, repr=False)
class PerLabel(BaseEstimator):  # type: ignore[misc]
    """Recalibrate each of several yes-or-no labels per row by a map of its own.

    Parameters
    ----------
    recalibrator : Recalibrator, default BetaCalibration()
        Map of one probability, fitted once per column.

    Attributes
    ----------
    maps_ : list of Recalibrator
        The fitted map of each column; None where its labels are all the same, and probabilities stay as they are.

    See Also
    --------
    truecal.Predictions.from_multilabel : Predictions with several labels per row.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((4000, 2))
    >>> y = rng.random((4000, 2)) < p**2
    >>> after = tc.recalibration.PerLabel().fit(p[:2000], y[:2000]).predict_proba(p[2000:])
    >>> bool(abs(after - p[2000:] ** 2).max() < 0.1)
    True
    """

    recalibrator: Recalibrator | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit one map per column; a column whose labels are all equal is left as it is.

        Parameters
        ----------
        X : array-like of shape (n, k)
            Probabilities of k labels; rows need not sum to 1.
        y : array-like of shape (n, k)
            Whether each label applies, 0 or 1.
        sample_weight : array-like of shape (n,), default None
            Non-negative weights.

        Returns
        -------
        self : PerLabel
            The fitted maps.

        Raises
        ------
        InputError
            Probabilities outside [0, 1], labels other than 0 and 1, or shapes that differ.
        """
        preds = tc.Predictions.from_multilabel(X, y, weights=sample_weight)
        template = BetaCalibration() if self.recalibrator is None else self.recalibrator
        self.maps_: list[Any] = []
        for column, labels in zip(preds.probs.T, preds.labels.T, strict=True):
            fits = labels.min() < labels.max()
            self.maps_.append(clone(template).fit(column, labels, sample_weight) if fits else None)
        return self

    def predict_proba(self, X: ArrayLike) -> Float64s:
        """Return recalibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n, k)
            Probabilities of the k labels of the fit.

        Returns
        -------
        probs : ndarray of shape (n, k)
            Recalibrated probabilities; rows need not sum to 1.

        Raises
        ------
        InputError
            The number of columns is not that of the fit.
        """
        check_is_fitted(self, "maps_")
        p = validation.as_floats(X, "probabilities").astype(np.float64)
        if p.ndim != 2 or p.shape[1] != len(self.maps_):
            raise InputError(f"the maps were fitted on {len(self.maps_)} columns, and X has the shape {p.shape}")
        columns = [c if m is None else m.predict_proba(c)[:, 1] for c, m in zip(p.T, self.maps_, strict=True)]
        return np.stack(columns, axis=1)
