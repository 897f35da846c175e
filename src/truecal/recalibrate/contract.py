"""The contract every recalibrator keeps: scikit-learn's fit / predict_proba, a declared input, and JSON that is exact.

    Recalibrator                                fit, predict_proba, predict, recalibrate, to_json, from_json, to_torch,
    │                                           to_onnx
    ├── SoftmaxScaling (methods/softmax/)       temperature, bias-corrected, vector, matrix, Dirichlet, ensemble
    ├── ScoreMapping   (methods/scores/)        Platt, beta, isotonic, spline, Venn-Abers, histogram, scaling-binning
    └── (methods/whole/)                        top-versus-all, prior shift: on top of another map

`fit` checks the input once and hands clean arrays to `_learn`; `predict_proba` does the same for `_apply`. Both see the
columns in the order of X; only `predict_proba` puts them in the order of `classes_`, which scikit-learn wants sorted.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import isabstract
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.predictions import border, check_predictions
from truecal.recalibrate.classes import ClassOrder
from truecal.recalibrate.export import document
from truecal.recalibrate.export.fields import field, whole
from truecal.recalibrate.export.graph import Graph, Value
from truecal.recalibrate.export.onnx_model import onnx_model
from truecal.recalibrate.export.torch_module import torch_module
from truecal.recalibrate.impossible import ImpossibleRowError
from truecal.recalibrate.leakage import RowsSeen
from truecal.recalibrate.outputs import Input, as_table, read_outputs
from truecal.recalibrate.solvers.likelihood import LOG_ZERO
from truecal.types import Float64s, Floats, Indices

if TYPE_CHECKING:
    import onnx
    import torch


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
    def _trace(self, outputs: Value) -> Value:
        """What `_apply` does, as operations of a graph."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What was learned, as plain numbers and lists."""

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state written by `_state`; refuse one that cannot be right."""

    def check_params(self) -> None:
        """Refuse settings that cannot be meant."""
        options.choice(self.input, get_args(Input), "input")

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
        self._see(X, reset=True)
        outputs = read_outputs(X, self.input)
        rows, count = outputs.shape
        names = border.check_classes(self.classes, count)
        labels = border.check_labels(y, rows, names, count)
        weights = None if sample_weight is None else border.check_weights(sample_weight, (rows,))
        self.rows_seen_ = RowsSeen.of(outputs, labels)
        kept = np.arange(rows)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            outputs, labels, weights = outputs[kept], labels[kept], weights[kept]
        self._name_classes(ClassOrder.of(names, count))
        seen = np.bincount(labels, minlength=count)
        if np.count_nonzero(seen) < 2:
            name = self.order_.listed([int(seen.argmax())])
            raise InputError(f"y holds only one class ({name}); a recalibrator needs rows of at least two classes")
        self.unseen_: list[int] = np.flatnonzero(seen == 0).tolist()
        try:
            self._learn(outputs, labels, weights)
        except ImpossibleRowError as refusal:
            raise refusal.among(kept) from None
        return self

    def fit_rows(self, preds: tc.Predictions, X: ArrayLike) -> Self:
        """Learn from predictions whose outputs are `X`; a map that needs more of the rows than these overrides it."""
        check_predictions(preds)
        return self.fit(X, preds.labels, preds.weights)

    def predict_proba(self, X: ArrayLike) -> Float64s:
        """Recalibrated class probabilities, shape (n, K), in float64; the columns are those of `classes_`.

        `classes_` is sorted, as scikit-learn's scorers expect. Without `classes=`, and with names given in sorted
        order, that is the order of the columns of X.
        """
        check_is_fitted(self, "classes_")
        return self.order_.sorted_columns(self._by_column(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of largest recalibrated probability."""
        probs = self._by_column(X)
        names: NDArray[Any] = self.order_.columns[probs.argmax(axis=1)]
        return names

    # ------------------------------------------------------------------ truecal's side

    def recalibrate(self, preds: tc.Predictions, X: ArrayLike | None = None) -> tc.Predictions:
        """The same rows with recalibrated probabilities. `X` holds the logits, for a recalibrator of input="logits".

        Where both this recalibrator and the predictions name their classes, the names decide which column is which;
        other names are refused.
        """
        check_is_fitted(self, "classes_")
        check_predictions(preds)
        if X is None:
            if self.input != "probs":
                raise InputError('Predictions hold probabilities; pass the logits as X, or declare input="probs"')
            X = preds.probs
        probs = self.by_name(X, preds.classes)
        return replace(preds, probs=probs[:, 1] if preds.binary else probs)

    def by_name(self, X: ArrayLike, classes: Sequence[object] | None) -> Float64s:
        """Recalibrated probabilities, shape (n, K), of outputs whose columns are named, in the order of those columns.

        Names decide which column is which, where this recalibrator has names too; without names positions do.
        """
        check_is_fitted(self, "classes_")
        places = self.order_.places_in(classes)
        if places is None:
            return self._by_column(X)
        outputs = border.as_floats(X, self.input)
        if outputs.ndim == 2 and outputs.shape[1] == len(places):
            outputs = outputs[:, places]
        else:
            # one column of two classes in the other order
            outputs = 1 - outputs if self.input == "probs" else -outputs
        return self._by_column(outputs)[:, np.argsort(places)]

    def combine(self, fitted: Sequence[Self], X: Sequence[ArrayLike]) -> Float64s:
        """One answer from copies of this recalibrator, each fitted in another fold, for outputs of another model each.

        The mean of their probabilities.
        """
        each = [part.predict_proba(outputs) for part, outputs in zip(fitted, X, strict=True)]
        return np.mean(each, axis=0)

    @property
    def parameter_count(self) -> int:
        """How many numbers were learned."""
        check_is_fitted(self, "classes_")
        return _count_numbers(self._state())

    # ------------------------------------------------------------------ keeping and serving

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
            name = type(recalibrator).__name__
            raise InputError(f"this is a {name}, not a {cls.__name__}; use {name}.from_json")
        return recalibrator

    def to_torch(self) -> "torch.nn.Module":
        """A torch module from the same input to what `predict_proba` gives, for serving; torch.jit.script takes it."""
        return torch_module(self._graph(), single=self.n_features_in_ == 1)

    def to_onnx(self, *, dtype: Literal["float32", "float64"] = "float32") -> "onnx.ModelProto":
        """An ONNX model from the same input, shape (rows, columns) and of `dtype`, to what `predict_proba` gives.

        The input is called "logits" or "probs", the output "probabilities". All arithmetic is in float64. Write it with
        ``onnx.save(model, path)``.
        """
        options.choice(dtype, get_args(Literal["float32", "float64"]), "dtype")
        graph = self._graph()
        notes = {"recalibrator": type(self).__name__, "classes": repr(self.classes_.tolist())}
        return onnx_model(graph, columns=self.n_features_in_, input_name=self.input, dtype=dtype, notes=notes)

    def _graph(self) -> Graph:
        """The whole way from model outputs to `predict_proba`."""
        check_is_fitted(self, "classes_")
        graph = Graph()
        outputs = graph.input()
        if self.n_features_in_ == 1:
            first = 1 - outputs if self.input == "probs" else outputs * 0.0
            outputs = first.beside(outputs)
        if self.input == "logits":
            outputs = outputs.at_least(LOG_ZERO)
        probs = self._trace(outputs)
        if not self.order_.is_sorted:
            probs = probs.columns(self.order_.sorting)
        # the last place of a graph is its result
        if probs.place != len(graph.places) - 1:
            probs = probs + 0.0
        return graph

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
            "classes": document.plain(self.order_.columns),
            "learned": self._state(),
        }

    def _take_up(self, content: Mapping[str, Any]) -> None:
        """Become fitted by what `_learned` wrote."""
        self.n_features_in_ = whole(content, "columns", low=1)
        names = document.class_names(content, self.n_features_in_)
        self._name_classes(ClassOrder.of(names if self.classes is not None else None, len(names)))
        learned = field(content, "learned")
        if not isinstance(learned, dict):
            raise FileError('"learned" must be an object')
        self._restore(learned)

    # ------------------------------------------------------------------ for subclasses

    def _name_classes(self, order: ClassOrder) -> None:
        self.order_ = order
        self.classes_ = order.classes

    def _by_column(self, X: ArrayLike) -> Float64s:
        """Recalibrated probabilities with the columns in the order of X."""
        return self._apply(self._checked(X))

    def _see(self, X: ArrayLike, *, reset: bool) -> None:
        """Note or compare the number and names of features, as scikit-learn does it."""
        try:
            validate_data(self, as_table(X), skip_check_array=True, reset=reset)
        except (ValueError, TypeError) as error:
            raise error if isinstance(error, InputError) else InputError(str(error)) from error

    def _checked(self, X: ArrayLike) -> Floats:
        """Outputs of shape (n, K) for a fitted recalibrator."""
        check_is_fitted(self, "classes_")
        self._see(X, reset=False)
        outputs = read_outputs(X, self.input)
        if outputs.shape[1] != len(self.classes_):
            raise InputError(
                f"X has {outputs.shape[1]} classes, but this recalibrator was fitted on {len(self.classes_)}"
            )
        return outputs

    def _named(self, classes: Sequence[int]) -> str:
        """Classes by name, for messages."""
        return self.order_.listed(classes)

    def _warn(self, message: str) -> None:
        warnings.warn(f"{type(self).__name__}: {message}", TruecalWarning, stacklevel=4)


def _count_numbers(state: Any) -> int:
    """Numbers in a nested state of dicts and lists."""
    if isinstance(state, Mapping):
        return sum(_count_numbers(value) for value in state.values())
    if isinstance(state, list):
        return sum(_count_numbers(value) for value in state)
    return int(isinstance(state, int | float) and not isinstance(state, bool))
