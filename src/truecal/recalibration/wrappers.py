"""Recalibrators around others: of a classifier, of several labels per row, of other class frequencies, of segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.groups import segments
from truecal.predictions import validation
from truecal.recalibration.contract import ClassOrder, Input, Recalibrator
from truecal.recalibration.score_maps import BetaCalibration, renormalize
from truecal.recalibration.serialization import (
    read_document,
    read_field,
    read_number,
    read_numbers,
    to_json,
    write_document,
)
from truecal.special import expit, logit, positive
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# A scikit-learn classifier and its recalibrator as one classifier: already trained, or cross-fitted


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
        folds = self._split(labels, groups)
        for train, test in folds:
            models.append(_fit_model(self.estimator, _take(X, train), labels[train], _take(weights, train)))
            outputs.append(self._outputs(models[-1], _take(X, test)))
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

    def _split(self, y: NDArray[Any], groups: ArrayLike | None) -> list[tuple[Indices, Indices]]:
        """Return (train, test) rows of every fold of `cv`: for a number of folds stratified by class, without splitting groups.

        Refuse folds that lack a class in training, and a class, or groups, too few for a number of folds.
        """
        from sklearn.model_selection import StratifiedGroupKFold, check_cv

        splitter: Any = check_cv(self.cv, y, classifier=True)
        if options.is_whole(self.cv) and groups is not None:
            count = len(np.unique(validation.as_array(groups, "groups")))
            if count < self.cv:
                raise InputError(f"{count} groups cannot fill cv={self.cv} folds; use at most cv={count}")
            splitter = StratifiedGroupKFold(int(self.cv))
        elif options.is_whole(self.cv):
            rare = self.classes_[np.unique(y, return_counts=True)[1] < self.cv]
            if len(rare):
                raise InputError(
                    f"class {rare.tolist()[0]!r} has fewer than cv={self.cv} rows, so a fold would lack it; use fewer folds"
                )
        folds = list(splitter.split(np.zeros(len(y)), y, groups))
        for train, _ in folds:
            absent = set(self.classes_.tolist()) - set(y[train].tolist())
            if absent:
                raise InputError(
                    f"all rows of class {min(absent)!r} are in one fold, so one model is trained without it; use fewer folds"
                )
        return folds

    def _fit_recalibrator(self, outputs: Any, y: ArrayLike, weights: Float64s | None) -> Recalibrator:
        """Fit a clone of the recalibrator, with the classes of the classifier, to outputs of a model."""
        recalibrator: Recalibrator = clone(self.recalibrator).set_params(classes=self.classes_.tolist())
        return recalibrator.fit(outputs, y, weights)

    def _outputs(self, model: Any, X: ArrayLike) -> Any:
        """Return predict_proba(X) for input="probs", decision_function(X) for input="logits"; refuse a model without it.

        >>> from sklearn.dummy import DummyClassifier
        >>> from truecal.recalibration import PlattScaling
        >>> model = DummyClassifier(strategy="prior").fit([[0], [0]], [0, 1])
        >>> RecalibratedClassifier(model, PlattScaling())._outputs(model, [[0]])
        array([[0.5, 0.5]])
        """
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

        Raises
        ------
        NotFittedError
            It was not fitted.
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


def _take(table: Any, rows: Indices) -> Any:
    """Select rows (indices) of an array, a sparse matrix or a data frame; None stays None.

    >>> _take(np.array([5, 6, 7]), np.array([2, 0]))
    array([7, 5])
    """
    from sklearn.utils import _safe_indexing

    return None if table is None else _safe_indexing(table, rows)


def _fit_model(estimator: Any, X: Any, y: Any, weights: Float64s | None) -> Any:
    """Fit a clone of a classifier; refuse weights that it does not take.

    >>> from sklearn.dummy import DummyClassifier
    >>> _fit_model(DummyClassifier(), [[0], [0]], [0, 1], np.array([1.0, 3.0])).class_prior_
    array([0.25, 0.75])
    """
    model = clone(estimator)
    if weights is None:
        return model.fit(X, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise InputError(f"{type(model).__name__} takes no sample_weight; leave the weights out, or use another model")
    return model.fit(X, y, sample_weight=weights)


# ----------------------------------------------------------------------------------------------------
# One map for each of several labels per row


@dataclass(eq=False, repr=False)
class PerLabel(BaseEstimator):  # type: ignore[misc]
    """Recalibrate each of several yes-or-no labels per row by a map of its own.

    Parameters
    ----------
    recalibrator : Recalibrator or mapping of label to Recalibrator, default BetaCalibration()
        Map of one probability, fitted once per column; in a mapping None leaves the probabilities of a label as they are.
    classes : sequence, default None
        Names of the labels in the order of the columns; None for 0..k-1.

    Attributes
    ----------
    maps_ : list of Recalibrator
        The fitted map of each column; None where probabilities stay as they are.
    classes_ : ndarray of shape (k,)
        The label of each column.

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

    recalibrator: Recalibrator | Mapping[object, Recalibrator | None] | None = None
    classes: Sequence[object] | None = None
    input: ClassVar[Input] = "probs"

    @property
    def classes_(self) -> NDArray[Any]:
        """The label of each column."""
        return self.order_.columns

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
            Probabilities outside [0, 1], labels other than 0 and 1, shapes that differ, or a mapping without a label.
        """
        preds = tc.Predictions.from_multilabel(X, y, self.classes, weights=sample_weight)
        self.order_ = ClassOrder.of(self.classes, preds.class_count)
        self.maps_: list[Any] = []
        for name, p, labels in zip(self.order_.columns.tolist(), preds.probs.T, preds.labels.T, strict=True):
            templates = self.recalibrator or BetaCalibration()
            if isinstance(templates, Mapping) and name not in templates:
                raise InputError(f"there is no recalibrator of the label {name!r}; None leaves it as it is")
            template = templates[name] if isinstance(templates, Mapping) else templates
            fits = template is not None and labels.min() < labels.max()
            self.maps_.append(clone(template).fit(p, labels, sample_weight) if fits else None)
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
            The number of columns is not that of the fit, or a value is not a probability.
        """
        return self.predict_named(X, None)

    def predict_named(self, X: ArrayLike, classes: Sequence[object] | None) -> Float64s:
        """Return recalibrated probabilities of columns that are named, in the order of those columns.

        Parameters
        ----------
        X : array-like of shape (n, k)
            Probabilities of the k labels of the fit.
        classes : sequence or None
            Label of each column; None, or a fit without names, goes by position.

        Returns
        -------
        probs : ndarray of shape (n, k)
            One column for each name.

        Raises
        ------
        NotFittedError
            It was not fitted.
        InputError
            X has another number of columns or values outside [0, 1], or the classes are others.
        """
        check_is_fitted(self, "maps_")
        p = validation.as_floats(X, "probabilities").astype(np.float64)
        if p.ndim != 2 or p.shape[1] != len(self.maps_):
            raise InputError(f"the maps were fitted on {len(self.maps_)} columns, and X has the shape {p.shape}")
        validation.refuse_outside_unit(p, "probabilities")
        positions = self.order_.positions_in(classes)
        after = p.copy()
        for fitted, column in zip(self.maps_, range(len(self.maps_)) if positions is None else positions, strict=True):
            if fitted is not None:
                after[:, column] = fitted.predict_proba(p[:, column])[:, 1]
        return after

    def to_json(self) -> str:
        """Write the fitted maps as human-readable JSON; floats survive bit for bit."""
        check_is_fitted(self, "maps_")
        maps = [None if fitted is None else fitted._to_content() for fitted in self.maps_]
        names = self.order_.columns if self.order_.named else None
        return write_document({"kind": "PerLabel", "classes": to_json(names), "maps": maps})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read maps that `to_json` wrote.

        Parameters
        ----------
        text : str
            The JSON text.

        Returns
        -------
        recalibrator : PerLabel
            Fitted.

        Raises
        ------
        FileError
            The text is damaged, of another version, or of another recalibrator.
        """
        content = read_document(text)
        maps, names = read_field(content, "maps", list), read_field(content, "classes")
        if names is not None and (not isinstance(names, list) or len(set(map(repr, names))) != len(maps)):
            raise FileError(f'"classes" must be null or a list of {len(maps)} different names')
        fitted = cls(classes=names)
        fitted.order_ = ClassOrder.of(names, len(maps))
        fitted.maps_ = [None if content is None else Recalibrator._of_content(content) for content in maps]
        return fitted


# ----------------------------------------------------------------------------------------------------
# Prior shift: a recalibrated model adapted to other class frequencies


_MAX_ITERATIONS = 10_000  # by choice: steps of the fixed point at most
_TOLERANCE = 1e-10  # by choice: largest change of a class frequency in the last iteration


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
        """Refuse a `recalibrator` of another class or one that reads another input than this; without one (None), refuse
        logits.

        >>> PriorShift(input="logits")._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: without a recalibrator the probabilities are needed: declare input="probs"
        """
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
        """Set `source_`, the class frequencies (K,) by weight, `recalibrator_`, fitted if there is one, and `prevalence_` (K,).

        That is the prevalence set, by default `source_`. Warns of classes that do not occur.
        """
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
        """Return the prevalence as class frequencies, shape (classes,); a single number is that of the second of two classes.

        Refuse frequencies outside [0, 1] or whose sum is not 1 to 1e-6.

        >>> PriorShift(prevalence=0.25)._read_prevalence(2)
        array([0.75, 0.25])
        """
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

        Raises
        ------
        NotFittedError
            It was not fitted.
        InputError
            X or the weights are invalid.
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
        """Return new (`frequency`, (K,)) divided by old class frequencies, (K,); 1 for classes that did not occur in the fit.

        >>> shift = PriorShift()
        >>> shift.source_ = np.array([0.5, 0.5, 0.0])
        >>> shift._factors(np.array([0.25, 0.75, 0.0]))
        array([0.5, 1.5, 1. ])
        """
        occurs = self.source_ > 0
        return np.where(occurs, frequency / np.where(occurs, self.source_, 1.0), 1.0)

    def _calibrate(self, outputs: Float64s) -> Float64s:
        """Recalibrate checked outputs (n, K) to probabilities by the fitted map; without a recalibrator return them unchanged."""
        return outputs if self.recalibrator is None else self.recalibrator_._apply(outputs)

    def _apply(self, outputs: Float64s) -> Float64s:
        """Recalibrate checked outputs (n, K), multiply by the ratios of class frequencies, and divide rows by their sums.

        >>> shift = PriorShift()
        >>> shift.source_, shift.prevalence_, shift.classes_ = np.array([0.5, 0.5]), np.array([0.25, 0.75]), np.arange(2)
        >>> shift._apply(np.array([[0.5, 0.5]]))
        array([[0.25, 0.75]])
        """
        return renormalize(self._calibrate(outputs) * self._factors(self.prevalence_), len(self.classes_))

    def _state(self) -> dict[str, Any]:
        """Return "source" and "prevalence", the old and new class frequencies, and as "map" what the recalibrator learned.

        >>> shift = PriorShift()
        >>> shift.source_, shift.prevalence_ = np.array([0.5, 0.5]), np.array([0.25, 0.75])
        >>> shift._state()
        {'source': [0.5, 0.5], 'prevalence': [0.25, 0.75]}
        """
        state: dict[str, Any] = {"source": self.source_.tolist(), "prevalence": self.prevalence_.tolist()}
        return state if self.recalibrator is None else {**state, "map": self.recalibrator_._fit_to_json()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Read "source" and "prevalence", K frequencies in [0, 1] each, and as "map" what the recalibrator learned."""
        count = len(self.classes_)
        self.source_ = read_numbers(state, "source", count, low=0.0, high=1.0)
        self.prevalence_ = read_numbers(state, "prevalence", count, low=0.0, high=1.0)
        if self.recalibrator is not None:
            self.recalibrator_ = clone(self.recalibrator).set_params(classes=None)
            self.recalibrator_._fit_from_json(read_field(state, "map", dict))


# ----------------------------------------------------------------------------------------------------
# Shifts of the log odds for the segments in which scores are wrong, as found by an audit


_NEWTON_STEPS = 50  # by choice: steps of Newton's method at most
_MAX_SHIFT = 30.0  # of log odds; derived: those of _LIMIT
_LIMIT = 1e-13  # of scores whose log odds are computed; derived: they stay finite and exact to 1 %
_NEEDS_COLUMNS = (
    "SegmentOffsets needs the columns of the rows: use fit_rows(preds) and recalibrate(preds), or "
    "evaluate([SegmentOffsets()], preds); serve its JSON (to_json, `truecal recalibrate apply`)"
)


@dataclass(frozen=True)
class Offset:
    """A shift of the log odds for the rows of a segment.

    Attributes
    ----------
    levels : tuple of Level
        What defines the segment: one level for each of its columns.
    shift : float
        What is added to the log odds.

    See Also
    --------
    SegmentOffsets : Fits offsets.
    """

    levels: tuple[segments.Level, ...]
    shift: float

    def mask(self, preds: tc.Predictions) -> NDArray[np.bool_]:
        """Mark the rows in the segment, shape (n,); refuse predictions without its columns.

        >>> preds = tc.Predictions.from_probs([0.2, 0.8], [0, 1], columns={"site": ["a", "b"]})
        >>> Offset((segments.Level("site", "a", "value", ("a",)),), 0.5).mask(preds)
        array([ True, False])
        """
        return segments.rows_within(self.levels, preds.columns, len(preds))


@dataclass(eq=False, repr=False)
class SegmentOffsets(Recalibrator):
    r"""Shift the log odds of every segment that :func:`truecal.audit` finds, and nothing else.

    .. math:: \mathrm{shift} = d \max(0, 1 - s^2 / d^2)

    d is the shift of highest likelihood and s its standard error: shifts that are not significant are shrunk to nearly 0. Binary
    predictions shift P(positive); with more classes the probability of the most probable class shifts, and the others share
    the remainder as before. Segments come in the order of the audit, each fitted after the shifts of the earlier ones, so that
    shifts of nested segments add up.

    Parameters
    ----------
    by : list of str, default None
        Columns to search; as in :func:`truecal.audit`.
    depth : int, default 3
        Largest number of columns that define a segment.
    level : float, default 0.95
        Level at which a segment is significant, for the whole search.
    min_rows : int, default None
        Smallest segment; None lets the audit choose.
    classes : list, default None
        Names of the classes.

    Attributes
    ----------
    offsets_ : tuple
        The segments, with `levels` and `shift`.

    Notes
    -----
    Columns of the predictions are needed to fit and to apply, so :meth:`fit_rows` and :meth:`recalibrate` replace
    `fit(X, y)` and `predict_proba(X)`, which refuse; :func:`truecal.evaluate` searches and fits anew in every fold. There is no
    `to_onnx` or `to_torch`: serve the JSON.

    References
    ----------
    James, Stein. Estimation with quadratic loss. Fourth Berkeley Symposium, 1961 (the shrinkage).

    See Also
    --------
    truecal.audit : Search for the segments.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> site, p = rng.choice(["A", "B", "C"], 6000), rng.beta(2, 2, 6000)
    >>> odds = np.log(p / (1 - p)) - 0.6 * (site == "B")
    >>> preds = tc.Predictions.from_probs(p, rng.random(6000) < 1 / (1 + np.exp(-odds)), columns={"site": site})
    >>> fitted = tc.recalibration.SegmentOffsets().fit_rows(preds)
    >>> [(o.levels[0].text, round(o.shift, 1)) for o in fitted.offsets_]
    [('B', -0.6)]
    """

    by: list[str] | None = None
    depth: int = 3
    level: float = 0.95
    min_rows: int | None = None
    input: Input = field(default="probs", init=False)

    def fit_rows(self, preds: tc.Predictions, X: object = None) -> Self:
        """Search the predictions for segments and fit their shifts.

        Parameters
        ----------
        preds : Predictions
            Rows with columns.
        X : object, default None
            Not read: the probabilities are those of `preds`.

        Returns
        -------
        self : SegmentOffsets
            The fitted recalibrator.

        Raises
        ------
        InputError
            As :func:`truecal.audit`: there is no column to search, or no segment has enough rows.
        """
        audit = tc.audit(preds, by=self.by, depth=self.depth, level=self.level, min_rows=self.min_rows)
        score, outcome = _score_and_outcome(preds)
        weight = np.ones(len(preds)) if preds.weights is None else preds.weights
        odds = _log_odds(score)
        names = validation.check_classes(self.classes, preds.class_count)
        self.n_features_in_ = 1 if preds.binary else preds.class_count
        self._set_classes(ClassOrder.of(names, preds.class_count))
        self.offsets_: tuple[Offset, ...] = ()
        for segment in audit.segments:
            rows = np.flatnonzero(segment.mask(preds))
            shift = fit_shrunk_shift(odds[rows], outcome[rows], weight[rows])
            if shift != 0:
                odds[rows] += shift
                self.offsets_ = (*self.offsets_, Offset(segment.levels, shift))
        return self

    def recalibrate(self, preds: tc.Predictions, X: object = None) -> tc.Predictions:
        """Shift the probabilities of the segments; other rows stay as they are, bit by bit.

        Parameters
        ----------
        preds : Predictions
            Rows with the columns of the fit.
        X : object, default None
            Not read.

        Returns
        -------
        preds : Predictions
            The same rows with new probabilities.

        Raises
        ------
        InputError
            Not fitted, or the classes are not those of the fit.
        """
        if not hasattr(self, "offsets_"):
            raise InputError("this recalibrator is not fitted; call fit_rows(preds) first")
        if preds.class_count != len(self.classes_):
            raise InputError(
                f"the predictions have {preds.class_count} classes, but this recalibrator was fitted on {len(self.classes_)}"
            )
        if self.order_.positions_in(preds.classes) is not None and preds.class_count == 2:
            raise InputError("the two classes come in the other order than when this recalibrator was fitted")
        shift = np.zeros(len(preds))
        for offset in self.offsets_:
            shift[offset.mask(preds)] += offset.shift
        rows = np.flatnonzero(shift)
        score = _score_and_outcome(preds)[0][rows]
        shifted = np.where((score == 0) | (score == 1), score, expit(_log_odds(score) + shift[rows]))
        probs = preds.probs.astype(np.float64)
        if preds.binary:
            probs[rows] = shifted
            return replace(preds, probs=probs)
        top = np.ones(len(rows), np.intp) if preds.class_count == 2 else probs[rows].argmax(axis=1)
        remainder = 1 - score
        probs[rows] *= ((1 - shifted) / positive(remainder))[:, None]
        probs[rows, top] = shifted
        return replace(preds, probs=probs)

    @property
    def parameter_count(self) -> int:
        """How many shifts were learned."""
        check_is_fitted(self, "offsets_")
        return len(self.offsets_)

    def _state(self) -> dict[str, Any]:
        """Return {"offsets": [{"levels": [...], "shift": log odds}, ...]}, one object per segment.

        A level has "column", "text", "kind", "values", "low" and "high".

        >>> offsets = SegmentOffsets()
        >>> offsets.offsets_ = (Offset((), 0.5),)
        >>> offsets._state()
        {'offsets': [{'levels': [], 'shift': 0.5}]}
        """
        return {
            "offsets": [{"levels": [level.record() for level in o.levels], "shift": o.shift} for o in self.offsets_]
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Read "offsets", an object with "levels" and "shift" for every segment.

        >>> offsets = SegmentOffsets()
        >>> offsets._restore({"offsets": [{"levels": [], "shift": 0.5}]})
        >>> offsets._state()
        {'offsets': [{'levels': [], 'shift': 0.5}]}
        """
        self.offsets_ = tuple(_read_offset(offset) for offset in read_field(state, "offsets", list))

    def _learn(self, outputs: Floats, labels: Indices, weights: Float64s | None) -> None:
        """Refuse to learn from outputs alone."""
        raise InputError(_NEEDS_COLUMNS)

    def _apply(self, outputs: Float64s) -> Float64s:
        """Refuse to recalibrate outputs alone."""
        raise InputError(_NEEDS_COLUMNS)


def _read_offset(content: Any) -> Offset:
    """Read an offset from {"levels": [...], "shift": number from -30 to 30}; refuse other content.

    A level has "column", "text", "kind", "values", "low" and "high".

    >>> _read_offset({"levels": [], "shift": 0.5})
    Offset(levels=(), shift=0.5)
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("levels"), list):
        raise FileError('every offset must be an object with "levels" and "shift"')
    shift = read_number(content, "shift", low=-_MAX_SHIFT, high=_MAX_SHIFT)
    return Offset(tuple(segments.Level.of(level) for level in content["levels"]), shift)


def fit_shrunk_shift(odds: Float64s, outcome: Indices, weight: Float64s) -> float:
    """Fit the shift d of log odds (n,) to 0/1 outcomes by 50 damped Newton steps of maximum likelihood, and shrink it towards
    0.

    Returns d max(0, 1 - s^2 / d^2) with s^2 = 1 / (1 + information at d); finite also where all outcomes are equal.

    >>> odds = np.zeros(400)
    >>> round(fit_shrunk_shift(odds, np.repeat([1, 0], [300, 100]), np.ones(400)), 4)  # ln 3 = 1.0986, shrunk
    1.0866
    """
    shift = 0.0
    for _ in range(_NEWTON_STEPS):
        rate = expit(odds + shift)
        curvature = float((weight * rate * (1 - rate)).sum())
        # a prior information of 1 keeps the shift of rows that are all positive, or all negative, finite
        shift += float(np.clip((weight * (outcome - rate)).sum() / (curvature + 1), -1, 1))
    return float(shift * max(0.0, 1 - 1 / ((curvature + 1) * shift**2))) if shift else 0.0


def _log_odds(score: Float64s) -> Float64s:
    """Compute log odds of scores (n,) clipped to [1e-13, 1 - 1e-13].

    >>> _log_odds(np.array([0.5, 1.0])).round(4)
    array([ 0.    , 29.9333])
    """
    return logit(np.clip(score, _LIMIT, 1 - _LIMIT))


def _score_and_outcome(preds: tc.Predictions) -> tuple[Float64s, Indices]:
    """Select P(second class) and labels of two classes; of more, the top probability and whether that class is the label; (n,).

    >>> _score_and_outcome(tc.Predictions.from_probs([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], [1, 2]))
    (array([0.5, 0.7]), array([False,  True]))
    """
    if preds.class_count == 2:
        return preds.class_probs(1).astype(np.float64), preds.labels
    sample = tc.TopLabel().sample(preds)
    return sample.scores.astype(np.float64), sample.outcomes
