"""A row that a method cannot take, such as a true class of probability exactly 0 under a map that keeps zeros."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isabstract
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.predictions import validation
from truecal.predictions.predictions import check_predictions
from truecal.recalibration import documents
from truecal.recalibration.documents import field, whole
from truecal.recalibration.export import Graph, Value, onnx_model, torch_module
from truecal.recalibration.likelihood import LOG_ZERO
from truecal.types import Float64s, Floats, Indices

if TYPE_CHECKING:
    import onnx
    import torch


# ----------------------------------------------------------------------------------------------------
# A row that a method cannot take, such as a true class of probability exactly 0 under a map that keeps zeros


class ImpossibleRowError(InputError):
    """A fit was refused because of one row; `row` is its number among the rows the fit was given."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(f"row {row} {why}")
        self.row = row
        self.why = why

    def among(self, rows: Indices) -> "ImpossibleRowError":
        """The same with the row's number in the table of which `rows` were given to the fit."""
        return ImpossibleRowError(int(rows[self.row]), self.why)

    def __reduce__(self) -> tuple[Any, ...]:
        return ImpossibleRowError, (self.row, self.why)


# ----------------------------------------------------------------------------------------------------
# A model's outputs as recalibrators read them: checked at the border, then one column per class, or one score per

Input = Literal["logits", "probs"]

_ENOUGH = 20  # so many log odds that all lie in [0, 1] are probabilities


def as_table(X: ArrayLike) -> Any:
    """What scikit-learn's bookkeeping of column counts and names expects: two dimensions, frames as they are."""
    if hasattr(X, "columns"):
        return X
    array = validation.as_array(X, "X")
    return array[:, None] if array.ndim == 1 else array


def read_outputs(X: ArrayLike, kind: Input) -> Floats:
    """Checked outputs of shape (n, K), K >= 2. A single column of the positive class becomes two.

    Logits of minus infinity (a class ruled out) become LOG_ZERO; NaN, plus infinity and numbers that are no
    probabilities are refused by row and value.
    """
    what = "logits" if kind == "logits" else "probabilities"
    # Frames hold columns, arrays rows: sums are taken in one order, or a fit would stop elsewhere by its tolerance.
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
        notice_probabilities(outputs)
        if outputs.ndim == 1:
            outputs = np.column_stack([np.zeros_like(outputs), outputs])
        return (
            np.where(np.isneginf(outputs), outputs.dtype.type(LOG_ZERO), outputs)
            if outputs.min() == -np.inf
            else outputs
        )
    if outputs.ndim == 1:
        validation.refuse_outside_unit(outputs, what)
        outputs = outputs.astype(np.float64, copy=False)
        return np.column_stack([1 - outputs, outputs])
    validation.check_probabilities(outputs)
    return outputs


def notice_probabilities(outputs: Floats) -> None:
    """Warn when what was declared as logits is evidently probabilities: rows of numbers in [0, 1] that sum to 1."""
    if outputs.min() < 0 or outputs.max() > 1:
        return
    if outputs.ndim == 1:
        evident = len(outputs) >= _ENOUGH and bool(((outputs > 0) & (outputs < 1)).any())
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
    """One logit per class: the logits themselves, or the logarithms of probabilities."""
    if kind == "logits":
        return outputs
    with np.errstate(divide="ignore"):
        logits = np.log(outputs)
    logits[np.isneginf(logits)] = LOG_ZERO
    return logits


def class_scores(outputs: Floats, kind: Input) -> Float64s:
    """One score per class against the rest, shape (n, K): its probability, or from logits its log odds.

    The log odds of class k are z_k - log sum_{j != k} exp z_j. They stay exact where probabilities round to 0 or 1.
    """
    scores = outputs.astype(np.float64)
    if kind == "probs":
        return scores
    if scores.shape[1] == 2:
        difference = scores[:, 1] - scores[:, 0]
        return np.column_stack([-difference, difference])
    rows = np.arange(len(scores))
    leader = scores.argmax(axis=1)
    peak = scores[rows, leader][:, None]
    mass = np.exp(scores - peak)
    rest = mass.sum(axis=1, keepdims=True) - mass
    # replaced below: the difference of two nearly equal sums
    rest[rows, leader] = 1.0
    odds: Float64s = scores - peak - np.log(rest)
    others = scores.copy()
    others[rows, leader] = -np.inf
    second = others.max(axis=1)
    odds[rows, leader] = peak[:, 0] - second - np.log(np.exp(others - second[:, None]).sum(axis=1))
    return odds


def top_class(outputs: Floats) -> Indices:
    """The class of the largest output of each row (the first one of equals)."""
    top: Indices = outputs.argmax(axis=1)
    return top


# ----------------------------------------------------------------------------------------------------
# Which class is which column: names decide, not positions


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """The classes of the columns of X.

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
    def of(cls, names: Sequence[object] | None, count: int) -> "ClassOrder":
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
        """The names in sorted order."""
        names: NDArray[Any] = self.columns[self.sorting]
        return names

    @property
    def is_sorted(self) -> bool:
        return bool((np.diff(self.sorting) > 0).all())

    def sorted_columns(self, probs: Float64s) -> Float64s:
        """Probabilities with columns in the order of X, in the order of `classes`."""
        return probs if self.is_sorted else probs[:, self.sorting]

    def places_in(self, names: Sequence[object] | None) -> Indices | None:
        """Where each of our columns stands among `names`; None where it stands in its own place, or nothing is named."""
        if names is None or not self.named:
            return None
        ours, theirs = [str(name) for name in self.columns.tolist()], [str(name) for name in names]
        if ours == theirs:
            return None
        if sorted(ours) != sorted(theirs):
            odd = sorted(set(theirs) - set(ours)) or sorted(set(ours) - set(theirs))
            raise InputError(
                f"the recalibrator was fitted on the classes {_listed(ours)}, but the predictions have {_listed(theirs)}; "
                f"{odd[0]!r} is not in both"
            )
        return np.array([theirs.index(name) for name in ours])

    def listed(self, places: Sequence[int]) -> str:
        """Columns by name, for messages."""
        names = self.columns.tolist()
        return _listed([names[k] for k in places])


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


# ----------------------------------------------------------------------------------------------------
# Which rows a recalibrator has been fitted on, so that nobody measures it on them by accident

_COLUMNS = 16  # columns hashed: enough to tell rows apart, cheap for a thousand classes
_COARSE = 0.9  # below this share of distinct rows, equal rows are taken for chance


@dataclass(frozen=True, eq=False)
class RowsSeen:
    """Hashes of the rows of one fit."""

    hashes: NDArray[np.uint64]  # sorted

    @classmethod
    def of(cls, outputs: Floats, labels: Indices) -> "RowsSeen":
        count = outputs.shape[1]
        columns = np.unique(np.linspace(0, count - 1, min(count, _COLUMNS)).astype(np.intp))
        bits = np.ascontiguousarray(outputs[:, columns], np.float64).view(np.uint64)
        state = labels.astype(np.uint64)
        for column in bits.T:
            state = _mix(state ^ column)
        return cls(np.sort(state))

    def shared_with(self, other: "RowsSeen") -> int:
        """How many rows of `other` were in this fit."""
        if len(self.hashes) == len(other.hashes) and np.array_equal(self.hashes, other.hashes):
            return len(other.hashes)
        if len(np.unique(self.hashes)) < _COARSE * len(self.hashes):
            return 0
        return int(np.isin(other.hashes, self.hashes).sum())


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64: every input bit changes every output bit."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


# ----------------------------------------------------------------------------------------------------
# The contract every recalibrator keeps: scikit-learn's fit / predict_proba, a declared input, and JSON that is exact


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
        names = validation.check_classes(self.classes, count)
        labels = validation.check_labels(y, rows, names, count)
        weights = None if sample_weight is None else validation.check_weights(sample_weight, (rows,))
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
        outputs = validation.as_floats(X, self.input)
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
        return documents.write({**documents.settings(self), **self._learned()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The recalibrator that `to_json` wrote. A text that was damaged or edited into nonsense is refused."""
        content = documents.read(text)
        recalibrator: Recalibrator = documents.blank(content, Recalibrator._kinds())
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
            "classes": documents.plain(self.order_.columns),
            "learned": self._state(),
        }

    def _take_up(self, content: Mapping[str, Any]) -> None:
        """Become fitted by what `_learned` wrote."""
        self.n_features_in_ = whole(content, "columns", low=1)
        names = documents.class_names(content, self.n_features_in_)
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
