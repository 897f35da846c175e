"""A scikit-learn classifier and its recalibrator as one classifier: already trained, or cross-fitted."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from truecal import options
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.recalibration.contract import Recalibrator
from truecal.types import Float64s, Indices


class RecalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities go through a recalibrator.

    Without `cv` the classifier must be fitted already, on other rows than those given to `fit`, and is never trained
    again; wrapping it in scikit-learn's `FrozenEstimator` keeps it so when a pipeline or a search clones this object.

    With `cv` the rows given to `fit` serve both: in each fold the classifier is trained on the other folds and its outputs
    for this fold are what the recalibrator learns from, so no output comes from a model that saw the row.

    Parameters
    ----------
    estimator : a classifier.
    recalibrator : any recalibrator. It is given `predict_proba` when it declares input="probs", `decision_function`
        when it declares input="logits". Its classes are set to those of the classifier.
    cv : None, a number of folds (stratified by class; by `groups` where they are given), or a scikit-learn splitter.
    ensemble : with `cv`, True keeps one model and one map per fold and combines their answers (the mean; for
        `VennAbers` the cross Venn-Abers predictor); False fits one map to the outputs of all folds, for a model trained
        on all rows.

    Attributes
    ----------
    recalibrator_ : the fitted copy of `recalibrator`, unless there is one per fold.
    estimator_ : the classifier it is applied to.
    folds_ : pairs of fitted classifier and recalibrator, for an ensemble.
    classes_ : the classes of the classifier.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from truecal.recalibration import BetaCalibration, RecalibratedClassifier
    >>> X, y = make_classification(n_samples=600, n_redundant=10, random_state=0)
    >>> model = GaussianNB().fit(X[:300], y[:300])
    >>> fixed = RecalibratedClassifier(FrozenEstimator(model), BetaCalibration(clip=1e-12)).fit(X[300:], y[300:])
    >>> bool(abs(fixed.predict_proba(X)[:, 1] - 0.5).mean() < abs(model.predict_proba(X)[:, 1] - 0.5).mean())
    True
    >>> crossed = RecalibratedClassifier(GaussianNB(), BetaCalibration(clip=1e-12), cv=5).fit(X, y)
    >>> len(crossed.folds_)
    5
    """

    def __init__(
        self,
        estimator: Any,
        recalibrator: Recalibrator,
        cv: Any = None,
        *,
        ensemble: bool = True,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.ensemble = ensemble

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the recalibrator, and with `cv` the classifier too. Rows of one group are never on both sides of a fold."""
        options.choice(self.ensemble, (True, False), "ensemble")
        weights = (
            None if sample_weight is None else validation.as_floats(sample_weight, "sample_weight").astype(np.float64)
        )
        if self.cv is None:
            if groups is not None:
                raise InputError("groups= keeps rows of a group in one fold, but there are no folds; pass cv=5")
            check_is_fitted(self.estimator)
            self.classes_ = self.estimator.classes_
            self.estimator_ = self.estimator
            self.recalibrator_ = self._fit_map(self._outputs(self.estimator, X), y, weights)
            return self
        labels = validation.as_array(y, "y")
        self.classes_ = np.unique(labels)
        folds = self._split(X, labels, groups)
        if self.ensemble:
            self.folds_ = [self._fold(X, labels, weights, train, test) for train, test in folds]
            return self
        outputs, places = self._held_out_outputs(X, labels, weights, folds)
        self.recalibrator_ = self._fit_map(outputs, labels[places], None if weights is None else weights[places])
        self.estimator_ = _fitted(self.estimator, X, labels, weights)
        return self

    def _split(self, X: Any, y: NDArray[Any], groups: ArrayLike | None) -> list[tuple[Indices, Indices]]:
        from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold, check_cv

        if options.is_whole(self.cv):
            if groups is None:
                splitter: Any = StratifiedKFold(int(self.cv))
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
        else:
            splitter = check_cv(self.cv, y, classifier=True)
        folds = list(splitter.split(np.zeros(len(y)), y, groups))
        if groups is not None and any(len(np.unique(y[train])) < len(self.classes_) for train, _ in folds):
            # stratifying by group can empty a class of a fold; whole groups dealt out evenly may not
            folds = list(GroupKFold(len(folds)).split(np.zeros(len(y)), y, groups))
        for train, _ in folds:
            if len(np.unique(y[train])) < len(self.classes_):
                lost = sorted(set(self.classes_.tolist()) - set(y[train].tolist()))[0]
                raise InputError(
                    f"class {lost!r} lies in one fold only, so one model would never see it; use fewer folds"
                )
        return folds

    def _fold(
        self, X: Any, y: NDArray[Any], weights: Float64s | None, train: Indices, test: Indices
    ) -> tuple[Any, Recalibrator]:
        part = None if weights is None else weights[train]
        model = _fitted(self.estimator, _rows(X, train), y[train], part)
        outputs = self._outputs(model, _rows(X, test))
        return model, self._fit_map(outputs, y[test], None if weights is None else weights[test])

    def _held_out_outputs(
        self, X: Any, y: NDArray[Any], weights: Float64s | None, folds: list[tuple[Indices, Indices]]
    ) -> tuple[Any, Indices]:
        parts = []
        for train, test in folds:
            part = None if weights is None else weights[train]
            parts.append(self._outputs(_fitted(self.estimator, _rows(X, train), y[train], part), _rows(X, test)))
        return np.concatenate(parts), np.concatenate([test for _, test in folds])

    def _fit_map(self, outputs: Any, y: ArrayLike, weights: Float64s | None) -> Recalibrator:
        recalibrator: Recalibrator = clone(self.recalibrator).set_params(classes=self.classes_.tolist())
        return recalibrator.fit(outputs, y, weights)

    def _outputs(self, model: Any, X: ArrayLike) -> Any:
        method: Literal["predict_proba", "decision_function"] = (
            "predict_proba" if self.recalibrator.input == "probs" else "decision_function"
        )
        if not hasattr(model, method):
            raise InputError(
                f'a recalibrator of input="{self.recalibrator.input}" reads {method}, which '
                f"{type(model).__name__} does not have; declare the other input"
            )
        return getattr(model, method)(X)

    def predict_proba(self, X: ArrayLike) -> Float64s:
        """Recalibrated class probabilities."""
        check_is_fitted(self, "classes_")
        if self.cv is not None and self.ensemble:
            maps = [fitted for _, fitted in self.folds_]
            return self.recalibrator.combine(maps, [self._outputs(model, X) for model, _ in self.folds_])
        return self.recalibrator_.predict_proba(self._outputs(self.estimator_, X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of largest recalibrated probability."""
        names: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return names


def _rows(X: Any, places: Indices) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, places)


def _fitted(estimator: Any, X: Any, y: Any, weights: Float64s | None) -> Any:
    model = clone(estimator)
    if weights is None:
        return model.fit(X, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise InputError(f"{type(model).__name__} takes no sample_weight; leave the weights out, or use another model")
    return model.fit(X, y, sample_weight=weights)
