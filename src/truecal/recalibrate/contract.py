"""The contract every recalibrator keeps: scikit-learn's fit / predict_proba, a declared input, and JSON that is exact.

    Recalibrator                                fit, predict_proba, predict, recalibrate, to_json, from_json
    ├── SoftmaxScaling (methods/softmax/)       temperature, bias-corrected temperature, vector scaling
    └── ScoreMapping   (methods/scores/)        Platt, beta, isotonic, histogram binning, scaling-binning

`fit` checks the input once and hands clean arrays to `_learn`; `predict_proba` does the same for `_apply`.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import isabstract
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from truecal.checks import check_choice
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.predictions import Predictions, border
from truecal.recalibrate.export import document
from truecal.recalibrate.export.fields import field, whole
from truecal.recalibrate.leakage import RowsSeen
from truecal.recalibrate.outputs import Input, read_outputs
from truecal.types import Float64s, Floats, Indices


class Recalibrator(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What all recalibrators share. Labels are the indices 0..K-1 of the columns, or the names given in `classes`."""

    input: Input
    classes: Sequence[object] | None

    # ------------------------------------------------------------------ what a recalibrator defines

    @abstractmethod
    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Learn from checked outputs of shape (n, K), K >= 2."""

    @abstractmethod
    def _apply(self, outputs: Floats) -> Float64s:
        """Recalibrated probabilities of checked outputs."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What was learned, as plain numbers and lists."""

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state written by `_state`; refuse one that cannot be right."""

    def check_params(self) -> None:
        """Refuse settings that cannot be meant."""
        check_choice(self.input, get_args(Input), "input")

    # ------------------------------------------------------------------ scikit-learn's side

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from model outputs `X` and true labels `y`.

        Parameters
        ----------
        X : (n,) or (n, 1) outputs for the positive class, or (n, K) with one column per class, of the declared `input`.
        y : (n,) labels.
        sample_weight : (n,) non-negative weights; a weight of 2 is the same as the row occurring twice.
        """
        self.check_params()
        if y is None:
            raise InputError("a recalibrator requires y to be passed, but the target y is None")
        validate_data(self, _as_columns(X), skip_check_array=True)
        outputs = read_outputs(X, self.input)
        rows, count = outputs.shape
        names = border.check_classes(self.classes, count)
        labels = border.check_labels(y, rows, names, count)
        weights = None if sample_weight is None else border.check_weights(sample_weight, (rows,))
        self.rows_seen_ = RowsSeen.of(outputs, labels)
        if weights is not None and not weights.all():
            kept = weights > 0
            outputs, labels, weights = outputs[kept], labels[kept], weights[kept]
        self.classes_: NDArray[Any] = np.arange(count) if names is None else np.array(names)
        seen = np.bincount(labels, minlength=count)
        if np.count_nonzero(seen) < 2:
            name = self._named([int(seen.argmax())])
            raise InputError(f"y holds only one class ({name}); a recalibrator needs rows of at least two classes")
        self.unseen_: list[int] = np.flatnonzero(seen == 0).tolist()
        self._learn(outputs, labels, weights)
        return self

    def predict_proba(self, X: ArrayLike) -> Float64s:
        """Recalibrated class probabilities, shape (n, K), in float64."""
        check_is_fitted(self, "classes_")
        validate_data(self, _as_columns(X), skip_check_array=True, reset=False)
        outputs = read_outputs(X, self.input)
        if outputs.shape[1] != len(self.classes_):
            raise InputError(
                f"X has {outputs.shape[1]} classes, but this recalibrator was fitted on {len(self.classes_)}"
            )
        return self._apply(outputs)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of largest recalibrated probability."""
        probs = self.predict_proba(X)
        names: NDArray[Any] = self.classes_[probs.argmax(axis=1)]
        return names

    # ------------------------------------------------------------------ truecal's side

    def recalibrate(self, preds: Predictions, X: ArrayLike | None = None) -> Predictions:
        """The same rows with recalibrated probabilities. `X` holds the logits, for a recalibrator of input="logits"."""
        if X is None:
            if self.input != "probs":
                raise InputError('Predictions hold probabilities; pass the logits as X, or declare input="probs"')
            X = preds.probs
        probs = self.predict_proba(X)
        return replace(preds, probs=probs[:, 1] if preds.binary else probs)

    def to_json(self) -> str:
        """Everything that `predict_proba` needs, as human-readable JSON; floats survive bit for bit."""
        check_is_fitted(self, "classes_")
        return document.write({**document.settings(self), **self._learned()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The recalibrator that `to_json` wrote. A text that was damaged or edited into nonsense is refused."""
        content = document.read(text)
        recalibrator: Recalibrator = document.blank(content, Recalibrator._kinds())
        recalibrator._take_up(content)
        if not isinstance(recalibrator, cls):
            raise InputError(
                f"this is a {type(recalibrator).__name__}, not a {cls.__name__}; use {type(recalibrator).__name__}.from_json"
            )
        return recalibrator

    @classmethod
    def _kinds(cls) -> dict[str, type[Self]]:
        """This recalibrator and those derived from it, by class name. The base asks Python for its subclasses."""
        kinds = {} if isabstract(cls) else {cls.__name__: cls}
        for child in cls.__subclasses__():
            kinds |= child._kinds()
        return kinds

    def _learned(self) -> dict[str, Any]:
        """What `fit` set: columns, classes and the learned numbers."""
        return {
            "columns": int(self.n_features_in_),
            "classes": document.plain(self.classes_),
            "learned": self._state(),
        }

    def _take_up(self, content: Mapping[str, Any]) -> None:
        """Become fitted by what `_learned` wrote."""
        self.n_features_in_ = whole(content, "columns", low=1)
        self.classes_ = np.array(document.class_names(content, self.n_features_in_))
        learned = field(content, "learned")
        if not isinstance(learned, dict):
            raise FileError('"learned" must be an object')
        self._restore(learned)

    def _named(self, classes: Sequence[int]) -> str:
        """Classes by name, for messages."""
        names = self.classes_.tolist()
        return ", ".join(repr(names[k]) for k in classes[:5]) + (", ..." if len(classes) > 5 else "")

    def _warn(self, message: str) -> None:
        warnings.warn(f"{type(self).__name__}: {message}", TruecalWarning, stacklevel=4)


def _as_columns(X: ArrayLike) -> Any:
    """What scikit-learn's bookkeeping of column counts and names expects: never one-dimensional."""
    if hasattr(X, "columns"):
        return X
    array = np.asarray(X)
    return array[:, None] if array.ndim == 1 else array
