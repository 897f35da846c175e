"""A scikit-learn classifier and its recalibrator as one classifier: already trained, or cross-fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from truecal import options
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.recalibration.contract import Recalibrator
from truecal.types import Float64s, Indices


@dataclass(eq=False, repr=False)
class RecalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Recalibrate the probabilities of a scikit-learn classifier.

    Without `cv` the classifier must be fitted already, on other rows than those given to `fit`, and is never trained again;
    wrapping it in scikit-learn's `FrozenEstimator` keeps it so when a pipeline or a search clones this object. With `cv` the
    rows given to `fit` serve both: in each fold the classifier is trained on the other folds and its outputs for this fold are
    what the recalibrator learns from, so no output comes from a model that was trained on the row.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The model.
    recalibrator : Recalibrator
        It reads `predict_proba` when it declares input="probs", `decision_function` when it declares input="logits". Its
        classes are set to those of the classifier.
    cv : int or scikit-learn splitter, default None
        Number of folds (stratified by class, and by `groups` where they are given), or a splitter.
    ensemble : bool, default True
        With `cv`: True keeps one model and one map per fold and combines their probabilities (the mean; for `VennAbers` the
        cross Venn-Abers predictor); False fits one map to the outputs of all folds, for a model trained on all rows.

    Attributes
    ----------
    recalibrator_ : Recalibrator
        The fitted copy of `recalibrator`, unless there is one per fold.
    estimator_ : scikit-learn classifier
        The classifier it is applied to.
    folds_ : list
        Pairs of fitted classifier and recalibrator, for an ensemble.
    classes_ : ndarray of shape (K,)
        The classes of the classifier.

    See Also
    --------
    truecal.evaluate : Compare recalibrators before one is chosen.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from truecal.recalibration import BetaCalibration, RecalibratedClassifier
    >>> X, y = make_classification(n_samples=600, n_redundant=10, random_state=0)
    >>> model = GaussianNB().fit(X[:300], y[:300])
    >>> fitted = RecalibratedClassifier(FrozenEstimator(model), BetaCalibration(clip=1e-12)).fit(X[300:], y[300:])
    >>> bool(abs(fitted.predict_proba(X)[:, 1] - 0.5).mean() < abs(model.predict_proba(X)[:, 1] - 0.5).mean())
    True
    >>> cross_fitted = RecalibratedClassifier(GaussianNB(), BetaCalibration(clip=1e-12), cv=5).fit(X, y)
    >>> len(cross_fitted.folds_)
    5
    """

    estimator: Any
    recalibrator: Recalibrator
    cv: Any = None
    ensemble: bool = field(default=True, kw_only=True)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the recalibrator, and with `cv` the classifier too.

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features of the classifier.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default None
            Non-negative weights, for the classifier and the recalibrator.
        groups : array-like of shape (n,), default None
            Rows of one group are never on both sides of a fold.

        Returns
        -------
        self : RecalibratedClassifier
            The fitted classifier.

        Raises
        ------
        InputError
            A fold would lack a class, there are fewer groups than folds, or the model takes no weights.
        """
        options.choice(self.ensemble, (True, False), "ensemble")
        weights = (
            None if sample_weight is None else validation.as_floats(sample_weight, "sample_weight").astype(np.float64)
        )
        if self.cv is None:
            if groups is not None:
                raise InputError("groups= puts rows of a group into one fold, but there are no folds; pass cv=5")
            check_is_fitted(self.estimator)
            self.classes_ = self.estimator.classes_
            self.estimator_ = self.estimator
            self.recalibrator_ = self._fit_recalibrator(self._outputs(self.estimator, X), y, weights)
            return self
        labels = validation.as_array(y, "y")
        self.classes_ = np.unique(labels)
        models, outputs = [], []
        folds = self._split(X, labels, groups)
        for train, test in folds:
            models.append(_fit_model(self.estimator, _take_rows(X, train), labels[train], _take(weights, train)))
            outputs.append(self._outputs(models[-1], _take_rows(X, test)))
        if self.ensemble:
            maps = [
                self._fit_recalibrator(part, labels[test], _take(weights, test))
                for part, (_, test) in zip(outputs, folds, strict=True)
            ]
            self.folds_ = list(zip(models, maps, strict=True))
            return self
        rows = np.concatenate([test for _, test in folds])
        self.recalibrator_ = self._fit_recalibrator(np.concatenate(outputs), labels[rows], _take(weights, rows))
        self.estimator_ = _fit_model(self.estimator, X, labels, weights)
        return self

    def _split(self, X: Any, y: NDArray[Any], groups: ArrayLike | None) -> list[tuple[Indices, Indices]]:
        """Return (train, test) rows of every fold: stratified by class, without splitting groups."""
        from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold, check_cv

        if not options.is_whole(self.cv):
            splitter: Any = check_cv(self.cv, y, classifier=True)
        elif groups is None:
            splitter = StratifiedKFold(int(self.cv))
            rare = self.classes_[np.unique(y, return_counts=True)[1] < self.cv]
            if len(rare):
                raise InputError(
                    f"class {rare.tolist()[0]!r} has fewer than cv={self.cv} rows, so a fold would lack it; use fewer folds"
                )
        else:
            count = len(np.unique(validation.as_array(groups, "groups")))
            if count < self.cv:
                raise InputError(f"{count} groups cannot fill cv={self.cv} folds; use at most cv={count}")
            splitter = StratifiedGroupKFold(int(self.cv))
        folds = list(splitter.split(np.zeros(len(y)), y, groups))
        if groups is not None and self._absent_class(y, folds) is not None:
            # stratifying by group can empty a class of a fold; whole groups dealt out evenly may not
            folds = list(GroupKFold(len(folds)).split(np.zeros(len(y)), y, groups))
        absent = self._absent_class(y, folds)
        if absent is not None:
            raise InputError(
                f"all rows of class {absent!r} are in one fold, so one model is trained without it; use fewer folds"
            )
        return folds

    def _absent_class(self, y: NDArray[Any], folds: list[tuple[Indices, Indices]]) -> Any:
        """Return a class that the training rows of a fold lack."""
        absent = (sorted(set(self.classes_.tolist()) - set(y[train].tolist())) for train, _ in folds)
        return next((classes[0] for classes in absent if classes), None)

    def _fit_recalibrator(self, outputs: Any, y: ArrayLike, weights: Float64s | None) -> Recalibrator:
        """Fit a clone of the recalibrator to outputs of the model."""
        recalibrator: Recalibrator = clone(self.recalibrator).set_params(classes=self.classes_.tolist())
        return recalibrator.fit(outputs, y, weights)

    def _outputs(self, model: Any, X: ArrayLike) -> Any:
        """Return probabilities or decision values of a model, whichever the recalibrator takes."""
        method = "predict_proba" if self.recalibrator.input == "probs" else "decision_function"
        if not hasattr(model, method):
            raise InputError(
                f'a recalibrator of input="{self.recalibrator.input}" reads {method}, which '
                f"{type(model).__name__} does not have; declare the other input"
            )
        return getattr(model, method)(X)

    def predict_proba(self, X: ArrayLike) -> Float64s:
        """Return recalibrated class probabilities.

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features of the classifier.

        Returns
        -------
        probs : ndarray of shape (n, K)
            The columns are those of `classes_`.
        """
        check_is_fitted(self, "classes_")
        if self.cv is not None and self.ensemble:
            maps = [fitted for _, fitted in self.folds_]
            return self.recalibrator.combine(maps, [self._outputs(model, X) for model, _ in self.folds_])
        return self.recalibrator_.predict_proba(self._outputs(self.estimator_, X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the largest recalibrated probability.

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features of the classifier.

        Returns
        -------
        classes : ndarray of shape (n,)
            Members of `classes_`.
        """
        names: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return names


def _take(weights: Float64s | None, rows: Indices) -> Float64s | None:
    """Select rows of the weights, if there are weights."""
    return None if weights is None else weights[rows]


def _take_rows(X: Any, rows: Indices) -> Any:
    """Select rows of an array, a sparse matrix or a data frame."""
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, rows)


def _fit_model(estimator: Any, X: Any, y: Any, weights: Float64s | None) -> Any:
    """Fit a clone of a classifier; refuse weights that it does not take."""
    model = clone(estimator)
    if weights is None:
        return model.fit(X, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise InputError(f"{type(model).__name__} takes no sample_weight; leave the weights out, or use another model")
    return model.fit(X, y, sample_weight=weights)
