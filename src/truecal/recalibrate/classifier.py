"""A trained scikit-learn classifier and its recalibrator as one classifier, for pipelines."""

from typing import Any, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from truecal.errors import InputError
from truecal.recalibrate.contract import Recalibrator
from truecal.types import Float64s


class RecalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities go through a recalibrator.

    `fit` never trains the classifier again: it must be fitted already, and wrapping it in scikit-learn's
    `FrozenEstimator` keeps it so when a pipeline or a search clones this object. Fit on rows the classifier was not
    trained on.

    Parameters
    ----------
    estimator : a fitted classifier.
    recalibrator : any recalibrator. It is given `predict_proba` when it declares input="probs", `decision_function`
        when it declares input="logits". Its classes are set to those of the classifier.

    Attributes
    ----------
    recalibrator_ : the fitted copy of `recalibrator`.
    classes_ : the classes of the classifier.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from truecal.recalibrate import BetaCalibration, RecalibratedClassifier
    >>> X, y = make_classification(n_samples=600, n_redundant=10, random_state=0)
    >>> model = make_pipeline(StandardScaler(), GaussianNB()).fit(X[:300], y[:300])
    >>> fixed = RecalibratedClassifier(FrozenEstimator(model), BetaCalibration(clip=1e-12)).fit(X[300:], y[300:])
    >>> bool(abs(fixed.predict_proba(X)[:, 1] - 0.5).mean() < abs(model.predict_proba(X)[:, 1] - 0.5).mean())
    True
    """

    def __init__(self, estimator: Any, recalibrator: Recalibrator) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the recalibrator on the classifier's outputs for `X`."""
        check_is_fitted(self.estimator)
        self.classes_ = self.estimator.classes_
        recalibrator: Recalibrator = clone(self.recalibrator).set_params(classes=self.classes_.tolist())
        self.recalibrator_ = recalibrator.fit(self._outputs(X), y, sample_weight)
        return self

    def _outputs(self, X: ArrayLike) -> Any:
        method = "predict_proba" if self.recalibrator.input == "probs" else "decision_function"
        if not hasattr(self.estimator, method):
            raise InputError(
                f'a recalibrator of input="{self.recalibrator.input}" reads {method}, which '
                f"{type(self.estimator).__name__} does not have; declare the other input"
            )
        return getattr(self.estimator, method)(X)

    def predict_proba(self, X: ArrayLike) -> Float64s:
        """Recalibrated class probabilities."""
        check_is_fitted(self, "recalibrator_")
        return self.recalibrator_.predict_proba(self._outputs(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of largest recalibrated probability."""
        names: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return names
