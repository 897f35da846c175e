"""The calibration error as scikit-learn scores models: a larger number is better."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from truecal.errors import InputError
from truecal.estimators.base import Estimator, as_estimator
from truecal.inference.measurement import measure
from truecal.lenses.lens import Lens, check_lens
from truecal.predictions import validation
from truecal.predictions.predictions import Predictions


@dataclass(frozen=True)
class Scorer:
    """Minus the calibration error of a fitted classifier on (X, y): see :func:`scorer`."""

    estimator: Estimator | None = None
    lens: Lens | None = None

    def __call__(self, model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the calibration error of a fitted classifier on rows X with labels y; refuse one without predict_proba."""
        if not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
            raise InputError(f"{type(model).__name__} has no probabilities: a calibration score needs predict_proba")
        return -self.metric(y, model.predict_proba(X), labels=model.classes_, sample_weight=sample_weight)

    def metric(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Measure the error as a plain number, for sklearn.metrics.make_scorer(..., greater_is_better=False).

        `y_prob` is P(positive), shape (n,), or one column per class, shape (n, classes), in the order of `labels` (None:
        0, 1, ...). Of two columns the second is judged, as a single one would be.
        """
        probs = validation.as_array(y_prob, "probs")
        classes = None if labels is None else validation.as_array(labels, "labels").tolist()
        if probs.ndim == 2 and probs.shape[1] == 2:
            probs = probs[:, 1]  # two classes: the positive one is judged, as for one column
        preds = Predictions.from_probs(probs, y_true, weights=sample_weight, classes=classes)
        return float(measure(preds, estimator=self.estimator, lens=self.lens))


def scorer(estimator: Estimator | None = None, lens: Lens | None = None) -> Scorer:
    """Make a scikit-learn scorer of the calibration error: minus the error, so that higher is better.

    Parameters
    ----------
    estimator : Estimator or None, default None
        How the error is estimated; default :class:`truecal.RankSeries`, the root-mean-square error.
    lens : Lens or None, default None
        What is judged; default the positive class of two, the top label of more.

    Returns
    -------
    Scorer
        To be given as `scoring=` to `cross_val_score` or `GridSearchCV`; called with a fitted classifier, X and y. Its method
        `metric(y_true, y_prob)` returns the error itself, for `sklearn.metrics.make_scorer(..., greater_is_better=False)`.

    Raises
    ------
    InputError
        If `estimator` is not an estimator, or `lens` not a lens.

    Notes
    -----
    A calibration error alone rewards a model that always predicts the base rate; weigh it with a proper score such as
    `neg_log_loss`.

    See Also
    --------
    truecal.calibration_error : Measure the error with its interval.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> import truecal as tc
    >>> X, y = load_iris(return_X_y=True)
    >>> (cross_val_score(LogisticRegression(max_iter=500), X, y, cv=3, scoring=tc.scorer(tc.BinnedECE())) <= 0).all()
    np.True_
    """
    if estimator is not None:
        as_estimator(estimator)
    check_lens(lens)
    return Scorer(estimator, lens)
