"""Predictions of a classifier and the labels, checked once, here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal import options
from truecal.errors import InputError
from truecal.predictions import frames
from truecal.predictions.validation import (
    as_array,
    as_floats,
    binary_classes,
    check_classes,
    check_clusters,
    check_columns,
    check_finite,
    check_labels,
    check_outcomes,
    check_probabilities,
    check_rows,
    check_weights,
    refuse_empty,
    refuse_other_order,
    refuse_outside_unit,
    refuse_several_labels,
    refuse_swapped,
    shown,
    warn_of_probabilities,
)
from truecal.predictions.verdicts import check_verdicts, split_missing
from truecal.special import expit, softmax
from truecal.types import Float64s, Floats, Indices

_REMEDY = "build them with tc.Predictions.from_probs(probs, labels)"
ANSWERS = ("wrong", "correct")  # classes of rows that are answers, whose probability is the confidence in the answer


@dataclass(frozen=True, eq=False)
class Predictions:
    """Hold probabilities and labels, row by row, with optional weights, clusters and further columns.

    Build them with `from_probs`, `from_logits`, `from_frame`, `from_multilabel` or `from_answers`, or with :func:`truecal.read`:
    these check every row; the constructor takes rows that were checked.

    Attributes
    ----------
    probs : ndarray of shape (n,) or (n, k)
        P(positive class) of binary predictions, or class probabilities.
    labels : ndarray of shape (n,), or (n, k) for several labels per row
        Class indices, signed integers of the size they came in; 0 or 1 for every label of a row.
    weights : ndarray of shape (n,) or None
        Whole numbers count repetitions, others are importance weights.
    clusters : ndarray of shape (n,) or None
        Cluster numbers; rows of one cluster (a patient, a question) are not independent.
    classes : tuple or None
        Class names in the order of the columns.
    columns : mapping of str to ndarray
        Further columns to select or group by.
    normalized : bool
        False where rows are one probability per class that need not sum to 1 (one map per class, left as it is).
    judge : ndarray of shape (n, j) or None
        Verdicts of judges for every row, -1 to 1 or log odds; labels of rows without a trusted one are -1.

    See Also
    --------
    truecal.read : From a file.
    truecal.measure : The calibration error of predictions.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.Predictions.from_probs([0.9, 0.2, 0.7], [1, 0, 1])
    Predictions(3 rows, binary)
    >>> tc.Predictions.from_logits([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0]], ["cat", "dog"], classes=["cat", "dog", "fox"])
    Predictions(2 rows, 3 classes)
    """

    probs: Floats
    labels: Indices
    weights: Float64s | None = None
    clusters: Indices | None = None
    classes: tuple[object, ...] | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    normalized: bool = True
    judge: Float64s | None = None

    @classmethod
    def from_probs(
        cls,
        probs: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        classes: Sequence[object] | None = None,
        pos_label: object = None,
        columns: Mapping[str, ArrayLike] | None = None,
        normalized: bool = True,
        judge: ArrayLike | None = None,
    ) -> Predictions:
        """Build predictions from probabilities. Nothing is copied that need not be.

        Parameters
        ----------
        probs : array-like of shape (n,) or (n, k)
            P(positive), or one column per class.
        labels : array-like of shape (n,)
            Class indices, or names listed in `classes`. Two classes given as text need no `classes`: they are taken in
            alphabetical order, as scikit-learn does, and the second is the positive one unless `pos_label` names it.
        weights : array-like of shape (n,), default None
            Row weights: whole numbers count repetitions, others are importance weights.
        clusters : array-like of shape (n,), default None
            Rows of one cluster (a patient, a question) are not independent.
        classes : sequence, default None
            Class names in the order of the columns, where labels are names.
        pos_label : object, default None
            The positive of two classes.
        columns : mapping of str to array-like, default None
            Further columns to select or group by.
        normalized : bool, default True
            False declares one probability per class that need not sum to 1, as maps per class leave them; lenses that need a
            distribution over the classes then refuse.
        judge : array-like of shape (n,) or (n, j), default None
            Verdicts (0 or 1, or the probability of 1) of one judge for every row, or of several as columns. Labels may then be
            missing (NaN or None): rows that have one are trusted.

        Returns
        -------
        preds : Predictions
            Checked rows.

        Raises
        ------
        InputError
            A probability is missing or outside [0, 1], a row does not sum to 1, a label is no class, lengths differ, or the
            arguments are swapped; the message names the row, the value and the remedy.

        Notes
        -----
        With a judge, trusted rows must be a random sample, or `weights` are one over the probability with which each was
        labelled; `tc.measure` corrects the verdicts by the trusted labels.

        Examples
        --------
        >>> import truecal as tc
        >>> preds = tc.Predictions.from_probs([[0.9, 0.4], [0.2, 0.7]], [0, 1], normalized=False)
        >>> tc.OneClass(1)(preds).scores
        array([[0.4, 0.7]])
        """
        options.choice(normalized, (True, False), "normalized")
        refuse_other_order(labels=labels, probs=probs, weights=weights, clusters=clusters)
        if judge is not None:
            trusted, labels = split_missing(labels)
            verdicts = check_verdicts(judge, len(trusted))
        refuse_swapped(labels, probs, "probabilities come first in from_probs(probs, labels)")
        p = as_floats(probs, "probabilities")
        if p.ndim not in (1, 2):
            raise InputError(f"probabilities must be one- or two-dimensional, not of shape {p.shape}")
        refuse_empty(len(p), "probabilities")
        if p.ndim == 1:
            refuse_outside_unit(p, "probabilities")
        else:
            refuse_several_labels(labels, p.shape)
            check_probabilities(p, sums=normalized)
        rows, count = len(p), 2 if p.ndim == 1 else p.shape[1]
        names = check_classes(classes, count)
        if pos_label is not None or (names is None and count == 2):
            names, first_is_positive = binary_classes(labels, names, pos_label, count, columns=p.ndim)
            p = p[:, ::-1] if first_is_positive else p
        p = p[:, 1] if judge is not None and p.shape[1:] == (2,) else p  # two columns say no more than one
        preds = cls(
            p,
            check_labels(labels, rows, names, count),
            None if weights is None else check_weights(weights, (rows,)),
            None if clusters is None else check_clusters(clusters, rows),
            names,
            MappingProxyType(check_columns(columns, rows)),
            normalized,
        )
        if judge is None:
            return preds
        if not preds.binary:
            raise InputError(
                "a judge says yes or no, so it needs one probability per row: the confidence in the answer, and labels "
                "that say whether it was right; see Predictions.from_answers"
            )
        return preds if trusted.all() else replace(preds, labels=np.where(trusted, preds.labels, -1), judge=verdicts)

    @classmethod
    def from_multilabel(
        cls,
        probs: ArrayLike,
        labels: ArrayLike,
        classes: Sequence[object] | None = None,
        *,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
    ) -> Predictions:
        """Build predictions of several yes-or-no labels per row, each with its own probability.

        Parameters
        ----------
        probs : array-like of shape (n, k)
            Probability of each label; rows need not sum to 1.
        labels : array-like of 0 and 1, shape (n, k)
            Whether each label applies.
        classes : sequence, default None
            Names of the labels in the order of the columns.
        weights : array-like of shape (n,), default None
            Row weights: whole numbers count repetitions, others are importance weights.
        clusters : array-like of shape (n,), default None
            Rows of one cluster (a patient, a question) are not independent.
        columns : mapping of str to array-like, default None
            Further columns to select or group by.

        Returns
        -------
        Predictions
            With `labels` of shape (n, k). They are judged class by class unless a lens says otherwise: `tc.OneClass(name)`
            for one label, `tc.AllLabels()` for all pairs pooled. The row is the unit: labels of one row are correlated.

        Raises
        ------
        InputError
            Shapes that differ, probabilities outside [0, 1], labels other than 0 and 1.

        See Also
        --------
        truecal.recalibration.PerLabel : One recalibration map per label.

        Examples
        --------
        >>> import truecal as tc
        >>> preds = tc.Predictions.from_multilabel([[0.9, 0.8], [0.2, 0.7]], [[1, 1], [0, 1]], classes=["cat", "indoor"])
        >>> preds
        Predictions(2 rows, 2 labels per row)
        >>> preds.one_label("indoor").labels
        array([1, 1], dtype=uint8)
        """
        refuse_other_order(labels=labels, probs=probs, weights=weights, clusters=clusters)
        p = as_floats(probs, "probabilities")
        if p.ndim != 2:
            raise InputError(f"probabilities must have one column per label, not the shape {p.shape}; see from_probs")
        refuse_empty(len(p), "probabilities")
        check_probabilities(p, sums=False)
        if as_array(labels, "labels").shape != p.shape:
            shape = as_array(labels, "labels").shape
            raise InputError(f"labels must be 0 or 1 for every probability, of shape {p.shape}, not {shape}")
        return cls(
            p,
            check_outcomes(labels, p.shape, "labels"),  # type: ignore[arg-type]
            None if weights is None else check_weights(weights, (len(p),)),
            None if clusters is None else check_clusters(clusters, len(p)),
            check_classes(classes, p.shape[1]),
            MappingProxyType(check_columns(columns, len(p))),
            normalized=False,
        )

    @classmethod
    def from_logits(
        cls,
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        classes: Sequence[object] | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
    ) -> Predictions:
        """Build predictions from logits.

        Parameters
        ----------
        logits : array-like of shape (n,) or (n, k)
            Log odds of the positive class, through a sigmoid, or one column per class, through a softmax; both in float64.
        labels : array-like of shape (n,)
            Class indices, or names listed in `classes`.
        weights : array-like of shape (n,), default None
            Row weights: whole numbers count repetitions, others are importance weights.
        clusters : array-like of shape (n,), default None
            Rows of one cluster (a patient, a question) are not independent.
        classes : sequence, default None
            Class names in the order of the columns, where labels are names.
        columns : mapping of str to array-like, default None
            Further columns to select or group by.

        Returns
        -------
        preds : Predictions
            Checked rows.

        Raises
        ------
        InputError
            A logit is NaN or infinite, or what `from_probs` refuses.

        Warns
        -----
        TruecalWarning
            All logits look like probabilities.

        Examples
        --------
        >>> import truecal as tc
        >>> tc.Predictions.from_logits([0.0, 2.0], [0, 1]).probs.round(3)
        array([0.5  , 0.881])
        """
        refuse_other_order(labels=labels, logits=logits, weights=weights, clusters=clusters)
        refuse_swapped(labels, logits, "logits come first in from_logits(logits, labels)")
        z = as_floats(logits, "logits")
        if z.ndim not in (1, 2) or (z.ndim == 2 and z.shape[1] < 2):
            raise InputError(f"logits must be 1-D (binary) or have one column per class, not of shape {z.shape}")
        refuse_empty(len(z), "logits")
        check_finite(z)
        warn_of_probabilities(z)
        p = expit(z) if z.ndim == 1 else softmax(z)
        return cls.from_probs(p, labels, weights=weights, clusters=clusters, classes=classes, columns=columns)

    @classmethod
    def from_answers(
        cls,
        confidence: ArrayLike,
        correct: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
    ) -> Predictions:
        """Build predictions from answers: the confidence in each, and whether it was correct.

        Parameters
        ----------
        confidence : array-like of shape (n,)
            Probability that the answer is correct.
        correct : array-like of shape (n,)
            1 or True where it is; words are refused.
        weights : array-like of shape (n,), default None
            Row weights: whole numbers count repetitions, others are importance weights.
        clusters : array-like of shape (n,), default None
            Rows of one cluster (a patient, a question) are not independent.
        columns : mapping of str to array-like, default None
            Further columns to select or group by.

        Returns
        -------
        preds : Predictions
            Checked rows.

        Raises
        ------
        InputError
            There are several confidences per answer, words instead of 0 and 1, or what `from_probs` refuses.

        Examples
        --------
        >>> import truecal as tc
        >>> tc.Predictions.from_answers([0.9, 0.1], [True, False]).classes
        ('wrong', 'correct')
        """
        refuse_swapped(correct, confidence, "the confidence comes first in from_answers(confidence, correct)")
        if np.ndim(as_array(confidence, "confidence")) > 1:
            raise InputError("an answer has one confidence; pass a one-dimensional array")
        right = as_array(correct, "correct")
        if right.dtype.kind in "UST" or (right.dtype == object and any(isinstance(value, str) for value in right.flat)):
            word = next(value for value in right.flat if isinstance(value, str))
            raise InputError(
                f"correct must be 0 or 1, not text; compare with the word for right, such as correct == {shown(word)}"
            )
        preds = cls.from_probs(confidence, correct, weights=weights, clusters=clusters, columns=columns)
        return replace(preds, classes=ANSWERS)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str,
        probs: str | Sequence[str] | None = None,
        logits: str | Sequence[str] | None = None,
        weights: str | None = None,
        clusters: str | None = None,
        classes: Sequence[object] | None = None,
        normalized: bool = True,
        judge: str | None = None,
    ) -> Predictions:
        """Build predictions from columns of a pandas, polars, pyarrow or any other frame that narwhals reads.

        Parameters
        ----------
        frame : data frame
            One row per prediction. Columns that nothing names are there to select and group by.
        label : str
            Column of labels.
        probs : str or sequence of str, default None
            One column (P(positive)), a pattern such as "p_*" whose star names the classes, or columns in the order of the classes.
        logits : str or sequence of str, default None
            The same of logits; one of the two is given.
        weights : str, default None
            Column of weights.
        clusters : str, default None
            Column of clusters.
        classes : sequence, default None
            Class names in the order of the columns.
        normalized : bool, default True
            As in `from_probs`.
        judge : str, default None
            Column, or pattern of columns, of verdicts; labels may then be missing, as in `from_probs`.

        Returns
        -------
        preds : Predictions
            Checked rows.

        Raises
        ------
        InputError
            A column is not there, named twice or has missing values, or what `from_probs` refuses.

        Examples
        --------
        >>> import pandas as pd, truecal as tc
        >>> frame = pd.DataFrame({"y": ["a", "b"], "p_a": [0.9, 0.3], "p_b": [0.1, 0.7], "site": ["x", "y"]})
        >>> tc.Predictions.from_frame(frame, label="y", probs="p_*").classes
        ('a', 'b')
        """
        if (probs is None) == (logits is None):
            raise InputError("say where the predictions are: probs= or logits=, one of the two")
        if probs is None and judge is not None:
            raise InputError("a judge needs a column of probabilities, not logits: give probs=")
        table = frames.as_table(frame)
        selector: Any = logits if probs is None else probs
        names, stars = frames.match_outputs(table.columns, selector, classes)
        frames.refuse_shared(names, label, weights)
        single = [name for name in (label, weights, clusters) if name is not None]
        frames.matching(table.columns, single, "label, weights and clusters")
        frames.refuse_nested(table.schema, single, "labels, weights and clusters")
        judges = [] if judge is None else frames.matching(table.columns, judge, "judge")[0]
        needed = [name for name in (*single, *judges) if judge is None or name != label]
        for name in (*needed, *(names if len(names) == 1 else ())):
            frames.refuse_missing_values(table[name], name, has_scores=name in names)
        values, events = frames.outputs_of(table, names)
        if len(names) > 1 and (values.dtype == object or (values.dtype.kind == "f" and np.isnan(values).any())):
            for name in names:
                frames.refuse_missing_values(table[name], name)
        labels = frames.to_array(table[label])
        numeric = labels.dtype.kind in "iubf"
        used = {*names, *single, *judges}
        further: dict[str, Any] = {
            "weights": None if weights is None else table[weights].to_numpy(),
            "clusters": None if clusters is None else frames.to_array(table[clusters]),
            "classes": frames.class_names(names, selector, stars or events, classes, numeric=numeric),
            "columns": {name: frames.to_array(table[name]) for name in table.columns if name not in used},
        }
        if probs is None:
            return cls.from_logits(values, labels, **further)
        verdicts = table.select(judges).to_numpy() if judges else None
        return cls.from_probs(values, labels, **further, normalized=normalized, judge=verdicts)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields with a plain dict of columns: a read-only view of a mapping cannot be pickled or copied."""
        return {**vars(self), "columns": dict(self.columns)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes from pickle, with read-only columns."""
        vars(self).update(state, columns=MappingProxyType(state["columns"]))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    @property
    def multilabel(self) -> bool:
        """Whether rows have several yes-or-no labels, as a matrix of the shape of the probabilities.

        >>> Predictions.from_multilabel([[0.2, 0.8]], [[0, 1]]).multilabel
        True
        """
        return self.labels.ndim == 2

    def outcomes(self, index: int) -> NDArray[Any]:
        """Tell whether a class is the label of each row, or among its labels.

        Parameters
        ----------
        index : int
            Position of the class.

        Returns
        -------
        outcomes : ndarray of shape (n,)
            True or 1 where it is.

        Raises
        ------
        InputError
            Rows without a trusted label are judged by a judge.
        """
        if self.judge is not None:
            raise InputError(
                "rows without a trusted label are judged by tc.measure, tc.compare and tc.report alone; "
                "take the trusted rows for anything else: preds.take(preds.labels >= 0)"
            )
        return np.asarray(self.labels[:, index] if self.multilabel else self.labels == index)

    def one_label(self, name: object) -> Predictions:
        """Take one class against the others: one label, where rows have several.

        Parameters
        ----------
        name : object
            The class by name; a whole number that is no name is its position.

        Returns
        -------
        preds : Predictions
            Binary predictions of that class.
        """
        index = self.class_index(name)
        labels: NDArray[Any] = self.outcomes(index).astype(np.uint8)
        classes = None if self.classes is None else (f"not {self.class_name(index)}", self.classes[index])
        return Predictions(
            self.class_probs(index),
            labels,
            self.weights,
            self.clusters,
            classes,
            self.columns,
        )

    def refuse_multilabel(self, what: str) -> None:
        """Refuse rows of several labels, and rows that lack trusted labels.

        Parameters
        ----------
        what : str
            What needs one label per row.

        Raises
        ------
        InputError
            Rows have several labels, or lack trusted ones.
        """
        if self.multilabel:
            raise InputError(
                f"{what} needs one label per row, and these rows have {self.class_count} each; "
                "judge one of them: preds.one_label(name)"
            )
        if self.judge is not None:
            self.outcomes(0)

    @property
    def binary(self) -> bool:
        """Whether probabilities are one-dimensional: P(positive).

        >>> Predictions.from_probs([0.2], [0]).binary, Predictions.from_probs([[0.2, 0.8]], [0]).binary
        (True, False)
        """
        return self.probs.ndim == 1

    @property
    def of_answers(self) -> bool:
        """Whether rows are answers, right or wrong, and probabilities the confidence in them: classes "wrong" and "correct".

        >>> Predictions.from_answers([0.7], [1]).of_answers
        True
        """
        return self.binary and self.classes == ANSWERS

    @property
    def class_count(self) -> int:
        """Number of classes.

        >>> Predictions.from_probs([0.2], [0]).class_count, Predictions.from_probs([[0.2, 0.3, 0.5]], [0]).class_count
        (2, 3)
        """
        return 2 if self.binary else int(self.probs.shape[1])

    def class_index(self, name: object) -> int:
        """Find the column of a class.

        Parameters
        ----------
        name : object
            The class by name; a whole number that is no name is its position.

        Returns
        -------
        index : int
            Its position.

        Raises
        ------
        InputError
            There is no class of this name or position.
        """
        if self.classes is not None and name in self.classes:
            return self.classes.index(name)
        if options.is_whole(name) and name in range(self.class_count):
            return int(name)  # type: ignore[call-overload]
        names = "" if self.classes is None else f" ({', '.join(map(str, self.classes[:10]))}...)"
        raise InputError(f"there is no class {name!r} among the {self.class_count} classes{names}")

    def class_probs(self, index: int) -> Floats:
        """Return the probability of one class in every row.

        Parameters
        ----------
        index : int
            Position of the class.

        Returns
        -------
        probs : ndarray of shape (n,)
            Its probabilities.

        Raises
        ------
        InputError
            There is no column of this number.
        """
        if not options.is_whole(index) or not 0 <= index < self.class_count:
            raise InputError(f"there is no class {index!r} among the {self.class_count} classes; give its column")
        if not self.binary:
            return self.probs[:, index]
        return self.probs if index == 1 else 1 - self.probs

    def class_name(self, index: int) -> str:
        """Name a class by its position.

        Parameters
        ----------
        index : int
            Position of the class.

        Returns
        -------
        name : str
            Its name, or the position where classes have no names.
        """
        return str(index if self.classes is None else self.classes[index])

    def take(self, rows: ArrayLike) -> Predictions:
        """Take some of the rows, in the order asked for.

        Parameters
        ----------
        rows : array-like of bool or int
            True or False for each row, or numbers of rows.

        Returns
        -------
        preds : Predictions
            Those rows, with their weights, clusters and columns.

        Raises
        ------
        InputError
            `rows` is no mask of all rows, and no list of numbers of rows.
        """
        chosen = check_rows(rows, len(self))
        if chosen.dtype == np.bool_:  # converted once, not for every column
            chosen = np.flatnonzero(chosen)
        labels = self.labels[chosen]
        return replace(
            self,
            probs=self.probs[chosen],
            labels=labels,
            weights=None if self.weights is None else self.weights[chosen],
            clusters=None if self.clusters is None else self.clusters[chosen],
            # where every label is trusted, a judge adds nothing
            judge=None if self.judge is None or (labels >= 0).all() else self.judge[chosen],
            columns=MappingProxyType({name: values[chosen] for name, values in self.columns.items()}),
        )

    def __repr__(self) -> str:
        """Return the number of rows and of classes, and whether there are a judge, weights and clusters.

        >>> Predictions.from_probs([0.2, 0.8], [0, 1], weights=[1, 2])
        Predictions(2 rows, binary, weighted)
        """
        columns_text = f"{self.class_count} {'labels per row' if self.multilabel else 'classes'}"
        kind = "binary" if self.binary else columns_text
        if self.judge is not None:
            kind += f", {np.count_nonzero(self.labels >= 0)} trusted labels and {self.judge.shape[1]} judge(s)"
        extra = "".join(
            f", {what}"
            for what, values in (("weighted", self.weights), ("clustered", self.clusters))
            if values is not None
        )
        return f"Predictions({len(self)} rows, {kind}{extra})"


def as_predictions(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    classes: Sequence[object] | None = None,
    pos_label: object = None,
    columns: Mapping[str, ArrayLike] | None = None,
    judge: ArrayLike | None = None,
) -> Predictions:
    """Build Predictions by `Predictions.from_probs(y_prob, y_true)`, with the order and names of scikit-learn.

    >>> as_predictions([0, 1], [0.2, 0.8])
    Predictions(2 rows, binary)
    """
    if judge is None:
        refuse_swapped(y_true, y_prob, "y_true comes first, then y_prob")
    return Predictions.from_probs(
        y_prob,
        y_true,
        weights=sample_weight,
        clusters=clusters,
        classes=classes,
        pos_label=pos_label,
        columns=columns,
        judge=judge,
    )


def check_predictions(preds: object, *others: type, name: str = "preds") -> None:
    """Refuse what is neither Predictions nor of the types `others`; for arrays and names of files with a remedy.

    >>> check_predictions("scores.csv")
    Traceback (most recent call last):
    truecal.errors.InputError: preds must be Predictions, not 'scores.csv'; read the file first: tc.read('scores.csv')
    """
    if isinstance(preds, (Predictions, *others)):
        return
    expected = " or ".join(["Predictions", *(f"a {other.__name__}" for other in others)])
    is_path = isinstance(preds, (str, PathLike))
    remedy = f"read the file first: tc.read({str(preds)!r})" if is_path else _REMEDY
    options.instance(preds, (Predictions, *others), name, expected, remedy)
