"""What all recalibrators share: scikit-learn's fit and predict_proba, a declared input, class names, JSON and export."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.predictions import validation
from truecal.predictions.predictions import check_predictions
from truecal.recalibration import serialization
from truecal.recalibration.export import Graph, is_row_maximum, onnx_model, torch_module
from truecal.recalibration.likelihood import LOG_ZERO
from truecal.types import Float64s, Floats, Indices

if TYPE_CHECKING:
    import onnx
    import torch

Input = Literal["logits", "probs"]

_BLOCK_VALUES = 1 << 20  # derived: outputs recalibrated at a time; their working arrays take some 30 MB
_MIN_ROWS_EVIDENT = 20  # by choice: so many log odds that all lie in (0, 1) are taken for probabilities
_PROJECTED_COLUMNS = 16  # by choice: enough to distinguish rows, cheap for a thousand classes
_MIN_DISTINCT = 0.9  # by choice: share of distinct rows below which equal rows are a coincidence


class ImpossibleRowError(InputError):
    """A fit was refused because of one row; `row` is its number among the rows of the fit."""

    def __init__(self, row: int, reason: str) -> None:
        """Store the row and the reason; the message is "row {row} {reason}"."""
        super().__init__(f"row {row} {reason}")
        self.row = row
        self.reason = reason

    def renumber(self, rows: Indices) -> ImpossibleRowError:
        """Return the same error with the row's number in the table from which `rows` were taken.

        >>> ImpossibleRowError(1, "is impossible").renumber(np.array([4, 7]))
        ImpossibleRowError('row 7 is impossible')
        """
        return ImpossibleRowError(int(rows[self.row]), self.reason)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return constructor and arguments for pickle."""
        return ImpossibleRowError, (self.row, self.reason)


# ----------------------------------------------------------------------------------------------------
# Model outputs: validated, then as one logit or one score per class


def read_outputs(X: ArrayLike, kind: Input) -> Floats:
    """Validate outputs and return them with shape (n, K), K >= 2; one column of the positive class becomes two.

    Logits of minus infinity (a class ruled out) become LOG_ZERO, -1e30; NaN, plus infinity and numbers that are no
    probabilities are refused by row and value. A logit z of one column becomes (0, z), a probability p (1 - p, p).

    >>> read_outputs([0.25, 0.5], "probs")
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> read_outputs([[1.0, -np.inf]], "logits")
    array([[ 1.e+00, -1.e+30]])
    """
    what = "logits" if kind == "logits" else "probabilities"
    # in the order of rows: the sums of a fit, and so where it stops, must not depend on the layout of a frame
    outputs = np.ascontiguousarray(validation.as_floats(X, what))
    if outputs.dtype == np.float16:
        outputs = outputs.astype(np.float32)
    if outputs.ndim not in (1, 2) or 0 in outputs.shape[1:]:
        raise InputError(
            f"{what} must be 1-D (the positive class) or have one column per class, not of shape {outputs.shape}"
        )
    validation.refuse_empty(len(outputs), what)
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        outputs = outputs[:, 0]
    if kind == "logits":
        validation.check_finite(outputs)
        _warn_if_probabilities(outputs)
        if outputs.ndim == 1:
            outputs = np.column_stack([np.zeros_like(outputs), outputs])
        return np.maximum(outputs, outputs.dtype.type(LOG_ZERO)) if outputs.min() == -np.inf else outputs
    if outputs.ndim == 1:
        validation.refuse_outside_unit(outputs, what)
        outputs = outputs.astype(np.float64, copy=False)
        return np.column_stack([1 - outputs, outputs])
    validation.check_probabilities(outputs)
    return outputs


def _warn_if_probabilities(outputs: Floats) -> None:
    """Warn where every row lies in [0, 1] and sums to 1, or 20 or more values of one column lie in [0, 1] and one inside."""
    if outputs.min() < 0 or outputs.max() > 1:
        return
    if outputs.ndim == 1:
        evident = len(outputs) >= _MIN_ROWS_EVIDENT and bool(((outputs > 0) & (outputs < 1)).any())
    else:
        evident = bool((np.abs(outputs.sum(axis=1, dtype=np.float64) - 1) <= validation.SUM_TOLERANCE).all())
    if evident:
        rows = "every value lies in [0, 1]" if outputs.ndim == 1 else "every row lies in [0, 1] and sums to 1"
        warnings.warn(
            f'X was declared as logits, but {rows}, as probabilities do; declare input="probs", or pass the logits',
            TruecalWarning,
            stacklevel=4,
        )


def class_logits(outputs: Floats, kind: Input) -> Floats:
    """Return logits (n, K): outputs of kind "logits" as they are, of "probs" their logarithms, at least LOG_ZERO = -1e30.

    >>> class_logits(np.array([[1.0, 0.0]]), "probs")
    array([[ 0.e+00, -1.e+30]])
    """
    if kind == "logits":
        return outputs
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(outputs), LOG_ZERO)


def class_scores(outputs: Float64s, kind: Input, classes: int) -> Float64s:
    """Return one score per class against the others, (n, K), of outputs (n, K): its probability, or from logits its log odds.

    The log odds of class k are z_k - log sum_{j != k} exp z_j. They stay exact where probabilities round to 0 or 1.

    >>> class_scores(np.array([[0.0, 1.0], [2.0, 2.0]]), "logits", 2)
    array([[-1.,  1.],
           [-0.,  0.]])
    """
    if kind == "probs":
        return outputs
    if classes == 2:
        difference = outputs[:, 1] - outputs[:, 0]
        return np.column_stack([-difference, difference])
    leads = is_row_maximum(outputs, classes)
    largest = outputs.max(axis=1, keepdims=True)
    mass = np.exp(outputs - largest)
    # the leader's log odds are computed apart: its complement is the difference of two nearly equal sums
    others = np.where(leads, 4 * LOG_ZERO, outputs)
    second = others.max(axis=1, keepdims=True)
    of_leader = largest - second - np.log(np.exp(others - second).sum(axis=1, keepdims=True))
    complement = np.where(leads, 1.0, mass.sum(axis=1, keepdims=True) - mass)
    return np.where(leads, of_leader, outputs - largest - np.log(complement))


# ----------------------------------------------------------------------------------------------------
# Which class is which column, and which rows a fit has seen


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """Names of the columns of X, and the order that sorts them.

    Attributes
    ----------
    columns : the name of each column; 0..K-1 where no names were given.
    named : whether names were given.
    sorting : the column of each class of `classes`.
    """

    columns: NDArray[Any]
    named: bool
    sorting: Indices

    @classmethod
    def of(cls, names: Sequence[object] | None, count: int) -> ClassOrder:
        """Make the order of `count` columns from their names; None names them 0..K-1.

        Names of types that cannot be compared are not sorted.

        >>> ClassOrder.of(["b", "a"], 2).sorting, ClassOrder.of(None, 2).columns
        (array([1, 0]), array([0, 1]))
        """
        if names is None:
            return cls(np.arange(count), False, np.arange(count))
        columns = np.array(names)
        try:
            sorting = np.argsort(columns, kind="stable")
        except TypeError:  # names of several types have no order; no scorer can sort them either
            sorting = np.arange(count)
        return cls(columns, True, sorting)

    @property
    def classes(self) -> NDArray[Any]:
        """The names in sorted order.

        >>> ClassOrder.of(["b", "a"], 2).classes
        array(['a', 'b'], dtype='<U1')
        """
        names: NDArray[Any] = self.columns[self.sorting]
        return names

    @property
    def is_sorted(self) -> bool:
        """Whether the columns are in the sorted order of the classes.

        >>> ClassOrder.of(["b", "a"], 2).is_sorted
        False
        """
        return bool((np.diff(self.sorting) > 0).all())

    def sort_columns(self, probs: Float64s) -> Float64s:
        """Put columns of probabilities (n, K), in the order of X, into the order of `classes`.

        >>> ClassOrder.of(["b", "a"], 2).sort_columns(np.array([[0.2, 0.8]]))
        array([[0.8, 0.2]])
        """
        return probs if self.is_sorted else probs[:, self.sorting]

    def positions_in(self, names: Sequence[object] | None) -> Indices | None:
        """Return the position of each column among `names`, shape (K,); None for the same order or no names; refuse other
        names.

        >>> ClassOrder.of(["b", "a", "c"], 3).positions_in(["a", "b", "c"])
        array([1, 0, 2])
        """
        if names is None or not self.named:
            return None
        ours, theirs = [str(name) for name in self.columns.tolist()], [str(name) for name in names]
        if ours == theirs:
            return None
        if sorted(ours) != sorted(theirs):
            odd = sorted(set(theirs) - set(ours)) or sorted(set(ours) - set(theirs))
            raise InputError(
                f"the recalibrator was fitted on the classes {_join_names(ours)}, but the predictions have "
                f"{_join_names(theirs)}; {odd[0]!r} is not in both"
            )
        return np.array([theirs.index(name) for name in ours])

    def describe(self, positions: Sequence[int]) -> str:
        """Return the class names at positions of columns as text, at most five, then ", ...".

        >>> ClassOrder.of(["b", "a", "c"], 3).describe([0, 2])
        "'b', 'c'"
        """
        names = self.columns.tolist()
        return _join_names([names[k] for k in positions])


def _join_names(names: Sequence[object]) -> str:
    """Join the reprs of the first five names by commas, with ", ..." for others.

    >>> _join_names(["a", 1]), _join_names(range(6))
    ("'a', 1", '0, 1, 2, 3, 4, ...')
    """
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def fingerprint_rows(outputs: Floats, labels: Indices) -> Float64s:
    """Project outputs (n, K), at most 16 columns of them, and labels on a random direction; return the sorted numbers, (n,).

    They are the same for equal rows and labels, in every call.

    >>> rows, labels = np.array([[0.1, 0.9], [0.4, 0.6]]), np.array([1, 0])
    >>> bool((fingerprint_rows(rows, labels) == fingerprint_rows(rows[::-1], labels[::-1])).all())
    True
    """
    count = outputs.shape[1]
    columns = np.unique(np.linspace(0, count - 1, min(count, _PROJECTED_COLUMNS)).astype(np.intp))
    direction = np.random.default_rng(0).normal(size=len(columns) + 1)
    # beside logits of LOG_ZERO the others would be lost in rounding
    values = np.clip(outputs[:, columns].astype(np.float64), -1e6, 1e6)
    return np.sort((values * direction[:-1]).sum(axis=1) + direction[-1] * labels)


def count_shared_rows(fitted: Float64s, evaluated: Float64s) -> int:
    """Count the fingerprints of `evaluated` rows that are among those of the `fitted` rows.

    Where under 90 % of the fitted rows are distinct, equal rows are a coincidence: 0, unless all rows are the same.

    >>> count_shared_rows(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0])), count_shared_rows(np.zeros(3), np.zeros(2))
    (1, 0)
    """
    if np.array_equal(fitted, evaluated):
        return len(evaluated)
    if len(np.unique(fitted)) < _MIN_DISTINCT * len(fitted):
        return 0
    return int(np.isin(evaluated, fitted).sum())


# ----------------------------------------------------------------------------------------------------
# The base class


@dataclass(eq=False, repr=False, kw_only=True)
class Recalibrator(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of all recalibration methods: a scikit-learn classifier of a model's outputs.

    Labels are the indices 0..K-1 of the columns of X, or the names given in `classes`.

    Parameters
    ----------
    input : {"logits", "probs"}, default "logits"
        What the columns of X hold.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes in sorted order, which is the order of the columns of `predict_proba`.
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    truecal.evaluate : Compare recalibrators on rows they were not fitted on.
    """

    input: Input = "logits"
    classes: Sequence[object] | None = None
    _learned: ClassVar[Mapping[str, serialization.Learned]] = {}  # learned attributes (without "_") that JSON holds

    @abstractmethod
    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Learn from checked outputs (n, K), K >= 2, class indices (n,) and positive weights (n,); None weighs every row by 1."""

    @abstractmethod
    def _apply(self, outputs: Float64s) -> Float64s:
        """Recalibrate checked outputs (n, K) to probabilities (n, K), with operations of `export.OPERATIONS` alone."""

    def _state(self) -> dict[str, Any]:
        """Return what was learned by name, without "_", as plain numbers and lists; infinite numbers are left out.

        >>> import truecal as tc
        >>> fitted = tc.recalibration.TemperatureScaling().fit([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1])
        >>> list(fitted._state())
        ['temperature']
        """
        values = {name: serialization.to_json(getattr(self, f"{name}_")) for name in self._learned}
        return {name: value for name, value in values.items() if value != np.inf}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Set the learned attributes, `<name>_`, from a state written by `_state`; refuse values that cannot be right."""
        for name, learned in self._learned.items():
            setattr(self, f"{name}_", learned.read(state, name, len(self.classes_)))

    def _check_params(self) -> None:
        """Refuse invalid values of the constructor's arguments; `fit` calls this first."""
        options.choice(self.input, get_args(Input), "input")

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the map from model outputs and true labels.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, K)
            Outputs for the positive class, or one column per class, of the declared `input`.
        y : array-like of shape (n,)
            Labels: column indices, or names of `classes`.
        sample_weight : array-like of shape (n,), default None
            Non-negative weights; a weight of 2 is the same as the row occurring twice.

        Returns
        -------
        self : Recalibrator
            The fitted recalibrator.

        Raises
        ------
        InputError
            Outputs, labels or weights are invalid, y holds a single class, or a row cannot be explained by the map.
        """
        self._check_params()
        if y is None:
            raise InputError("a recalibrator requires y to be passed, but the target y is None")
        self._check_features(X, reset=True)
        outputs = read_outputs(X, self.input)
        rows, count = outputs.shape
        names = validation.check_classes(self.classes, count)
        labels = validation.check_labels(y, rows, names, count)
        weights = None if sample_weight is None else validation.check_weights(sample_weight, (rows,))
        self.fingerprints_ = fingerprint_rows(outputs, labels)
        positive = np.arange(rows)
        if weights is not None and not weights.all():
            positive = np.flatnonzero(weights)
            outputs, labels, weights = outputs[positive], labels[positive], weights[positive]
        self._set_classes(ClassOrder.of(names, count))
        label_counts = np.bincount(labels, minlength=count)
        if np.count_nonzero(label_counts) < 2:
            name = self.order_.describe([int(label_counts.argmax())])
            raise InputError(f"y holds only one class ({name}); a recalibrator needs rows of at least two classes")
        self.absent_classes_: list[int] = np.flatnonzero(label_counts == 0).tolist()
        try:
            self._learn(outputs, labels, weights)
        except ImpossibleRowError as refusal:
            raise refusal.renumber(positive) from None
        return self

    def fit_rows(self, preds: tc.Predictions, X: ArrayLike) -> Self:
        """Learn from predictions whose model outputs are `X`.

        Parameters
        ----------
        preds : Predictions
            Labels, weights and, for maps that need them, columns of the rows.
        X : array-like of shape (n,) or (n, K)
            Outputs of the declared `input`.

        Returns
        -------
        self : Recalibrator
            The fitted recalibrator.

        Raises
        ------
        InputError
            As :meth:`fit`, or `preds` are no Predictions.
        """
        check_predictions(preds)
        return self.fit(X, preds.labels, preds.weights)

    def predict_proba(self, X: ArrayLike) -> Float64s:
        """Return recalibrated class probabilities.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, K)
            Outputs of the declared `input`.

        Returns
        -------
        probs : ndarray of shape (n, K), float64
            The columns are those of `classes_`, which is sorted as scikit-learn's scorers expect. Without `classes=`,
            and with names in sorted order, that is the order of the columns of X.

        Raises
        ------
        NotFittedError
            It was not fitted.
        InputError
            X is invalid, or has other columns than in the fit.
        """
        check_is_fitted(self, "classes_")
        return self.order_.sort_columns(self._predict_columns(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the largest recalibrated probability.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, K)
            Outputs of the declared `input`.

        Returns
        -------
        classes : ndarray of shape (n,)
            Members of `classes_`.
        """
        probs = self._predict_columns(X)
        names: NDArray[Any] = self.order_.columns[probs.argmax(axis=1)]
        return names

    def recalibrate(self, preds: tc.Predictions, X: ArrayLike | None = None) -> tc.Predictions:
        """Return the same rows with recalibrated probabilities.

        Parameters
        ----------
        preds : Predictions
            Where both these and the recalibrator name their classes, the names decide which column is which.
        X : array-like of shape (n,) or (n, K), default None
            The logits, for a recalibrator of input="logits"; others read the probabilities of `preds`.

        Returns
        -------
        preds : Predictions
            Labels, weights, clusters and columns as before.

        Raises
        ------
        InputError
            Logits are needed and not given, or the classes have other names than those of the fit.
        """
        check_is_fitted(self, "classes_")
        check_predictions(preds)
        if X is None:
            if self.input != "probs":
                raise InputError('Predictions hold probabilities; pass the logits as X, or declare input="probs"')
            X = preds.probs
        probs = self.predict_named(X, preds.classes)
        return replace(preds, probs=probs[:, 1] if preds.binary else probs)

    def predict_named(self, X: ArrayLike, classes: Sequence[object] | None) -> Float64s:
        """Return recalibrated probabilities of outputs whose columns are named, in the order of those columns.

        Parameters
        ----------
        X : array-like of shape (n,) or (n, K)
            Outputs of the declared `input`.
        classes : sequence or None
            Name of each column; None, or a recalibrator without names, goes by position.

        Returns
        -------
        probs : ndarray of shape (n, K), float64
            One column for each name.

        Raises
        ------
        NotFittedError
            It was not fitted.
        InputError
            X is invalid, or the classes are others than in the fit.
        """
        check_is_fitted(self, "classes_")
        positions = self.order_.positions_in(classes)
        if positions is None:
            return self._predict_columns(X)
        outputs = validation.as_floats(X, self.input)
        if outputs.ndim == 2 and outputs.shape[1] == len(positions):
            outputs = outputs[:, positions]
        else:  # one column of two classes in the other order
            outputs = 1 - outputs if self.input == "probs" else -outputs
        return self._predict_columns(outputs)[:, np.argsort(positions)]

    def combine(self, fitted: Sequence[Self], X: Sequence[ArrayLike]) -> Float64s:
        """Average the probabilities of copies of this recalibrator that were fitted in different folds.

        Parameters
        ----------
        fitted : sequence of Recalibrator
            One fitted copy per fold.
        X : sequence of array-like
            For each copy, the outputs of its fold's model for the same rows.

        Returns
        -------
        probs : ndarray of shape (n, K)
            Combined probabilities, with the columns of `classes_`.
        """
        return np.mean([part.predict_proba(outputs) for part, outputs in zip(fitted, X, strict=True)], axis=0)

    @property
    def parameter_count(self) -> int:
        """How many numbers were learned."""
        check_is_fitted(self, "classes_")
        return _count_numbers(self._state())

    def to_json(self) -> str:
        """Write everything that `predict_proba` needs as human-readable JSON; floats survive bit for bit."""
        check_is_fitted(self, "classes_")
        return serialization.write_document(self._to_content())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a recalibrator that `to_json` wrote.

        Parameters
        ----------
        text : str
            The JSON text.

        Returns
        -------
        recalibrator : Recalibrator
            Fitted, and of the class that was written.

        Raises
        ------
        FileError
            The text is damaged, of another version, or was edited into values that cannot be right.
        """
        recalibrator = Recalibrator._of_content(serialization.read_document(text))
        if not isinstance(recalibrator, cls):
            name = type(recalibrator).__name__
            raise InputError(f"this is a {name}, not a {cls.__name__}; use {name}.from_json")
        return recalibrator

    def to_torch(self) -> torch.nn.Module:
        """Export a torch module from outputs to what `predict_proba` gives, for serving; torch.jit.script takes it."""
        return torch_module(self._graph(), single_column=self.n_features_in_ == 1)

    def to_onnx(self, *, dtype: Literal["float32", "float64"] = "float32") -> onnx.ModelProto:
        """Export an ONNX model from outputs to what `predict_proba` gives, for serving.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default "float32"
            Type of the model's input and output; all arithmetic is in float64.

        Returns
        -------
        model : onnx.ModelProto
            The input, of shape (rows, columns), is called "logits" or "probs", the output "probabilities". Write it
            with ``onnx.save(model, path)``.

        Raises
        ------
        NotFittedError
            It was not fitted.
        MissingExtraError
            The package onnx is missing.
        """
        options.choice(dtype, ("float32", "float64"), "dtype")
        graph = self._graph()
        notes = {"recalibrator": type(self).__name__, "classes": repr(self.classes_.tolist())}
        return onnx_model(graph, columns=self.n_features_in_, input_name=self.input, dtype=dtype, notes=notes)

    def _graph(self) -> Graph:
        """Record the operations from model outputs (n, columns) to what `predict_proba` returns, (n, K), as a graph."""
        check_is_fitted(self, "classes_")
        graph = Graph()
        outputs: Any = graph.input()
        if self.n_features_in_ == 1:
            outputs = np.column_stack([1 - outputs if self.input == "probs" else outputs * 0.0, outputs])
        if self.input == "logits":
            outputs = np.maximum(outputs, LOG_ZERO)
        probs: Any = self._apply(outputs)
        if not self.order_.is_sorted:
            probs = probs[:, self.order_.sorting]
        if probs.position != len(graph.entries) - 1:  # the result of a graph is its last entry
            probs = probs + 0.0
        return graph

    @classmethod
    def _subclasses(cls) -> dict[str, type[Self]]:
        """Return this class, unless it is abstract, and all derived from it, directly or not, by name.

        >>> import truecal as tc
        >>> list(tc.recalibration.TemperatureScaling._subclasses())
        ['TemperatureScaling']
        """
        kinds = {} if isabstract(cls) else {cls.__name__: cls}
        for child in cls.__subclasses__():
            kinds |= child._subclasses()
        return kinds

    def _to_content(self) -> dict[str, Any]:
        """Return the content of the JSON: "kind" (class), "params" (arguments), and what was fitted.

        That is "columns" (number of columns of X), "classes" (names) and "learned" (numbers by name).
        """
        return {**serialization.settings(self), **self._fit_to_json()}

    @staticmethod
    def _of_content(content: object) -> Recalibrator:
        """Make a fitted recalibrator from {"kind", "params", "columns", "classes", "learned"}; FileError for other content."""
        if not isinstance(content, Mapping):
            raise FileError("a recalibrator must be an object")
        recalibrator: Recalibrator = serialization.make_unfitted(content, Recalibrator._subclasses())
        recalibrator._fit_from_json(content)
        return recalibrator

    def _fit_to_json(self) -> dict[str, Any]:
        """Return what `fit` set: {"columns": number of columns of X, "classes": their names, "learned": `_state`}.

        >>> import truecal as tc
        >>> fitted = tc.recalibration.TemperatureScaling().fit([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1])
        >>> fitted._fit_to_json()["columns"], fitted._fit_to_json()["classes"]
        (2, [0, 1])
        """
        return {
            "columns": int(self.n_features_in_),
            "classes": serialization.to_json(self.order_.columns),
            "learned": self._state(),
        }

    def _fit_from_json(self, content: Mapping[str, Any]) -> None:
        """Restore the fit from "columns" (of X), "classes" (their names) and "learned" (the state); refuse other content."""
        self.n_features_in_ = serialization.read_whole(content, "columns", low=1)
        names = serialization.read_class_names(content, self.n_features_in_)
        self._set_classes(ClassOrder.of(names if self.classes is not None else None, len(names)))
        self._restore(serialization.read_field(content, "learned", dict))

    def _set_classes(self, order: ClassOrder) -> None:
        """Set `order_` to the order of the columns, and `classes_` to the sorted names."""
        self.order_ = order
        self.classes_ = order.classes

    def _predict_columns(self, X: ArrayLike) -> Float64s:
        """Return recalibrated probabilities (n, K) with the columns in the order of X, computed in blocks of rows."""
        outputs = self._check_outputs(X)
        probs = np.empty(outputs.shape)
        step = max(1, _BLOCK_VALUES // outputs.shape[1])
        for start in range(0, len(outputs), step):
            rows = slice(start, start + step)
            probs[rows] = self._apply(outputs[rows].astype(np.float64, copy=False))
        return probs

    def _check_features(self, X: ArrayLike, *, reset: bool) -> None:
        """Store (`reset`) the number and names of the columns of X as scikit-learn does, or refuse others than those stored."""
        table: Any = X
        if not hasattr(X, "columns"):
            table = validation.as_array(X, "X")
            table = table[:, None] if table.ndim == 1 else table
        try:
            validate_data(self, table, skip_check_array=True, reset=reset)
        except (ValueError, TypeError) as error:
            raise error if isinstance(error, InputError) else InputError(str(error)) from error

    def _check_outputs(self, X: ArrayLike) -> Floats:
        """Validate outputs by `read_outputs`, shape (n, K), for a fitted recalibrator; refuse another number of classes."""
        check_is_fitted(self, "classes_")
        self._check_features(X, reset=False)
        outputs = read_outputs(X, self.input)
        if outputs.shape[1] != len(self.classes_):
            raise InputError(
                f"X has {outputs.shape[1]} classes, but this recalibrator was fitted on {len(self.classes_)}"
            )
        return outputs

    def _warn(self, message: str) -> None:
        """Warn with the name of the class in front, at the line of the caller of a public method."""
        warnings.warn(f"{type(self).__name__}: {message}", TruecalWarning, stacklevel=4)


def warn_if_constant(recalibrator: Recalibrator, correct: Float64s) -> None:
    """Warn where `correct` (n,), 1 where the largest output is the label, is the same in every row."""
    if correct.min() == correct.max():
        frequency = "always" if correct[0] else "never"
        recalibrator._warn(f"the largest output is {frequency} right; the map is learned from one outcome alone")


def _count_numbers(state: Any) -> int:
    """Count the numbers, booleans not included, in a nested state of dicts and lists.

    >>> _count_numbers({"edges": [0.1, 0.2], "isotonic": True, "map": {"slope": 1}})
    3
    """
    if isinstance(state, Mapping):
        return sum(_count_numbers(value) for value in state.values())
    if isinstance(state, list):
        return sum(_count_numbers(value) for value in state)
    return int(isinstance(state, int | float) and not isinstance(state, bool))
