"""A model's outputs as recalibrators read them: checked at the border, then one column per class, or one score per
question.

`input` is declared by the caller, never guessed: "probs" are probabilities, "logits" are unnormalised log probabilities
(for one column: the log odds of the positive class). Rows of probabilities under input="logits" are noticed.
"""

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truecal.errors import InputError, TruecalWarning
from truecal.predictions import border
from truecal.recalibrate.solvers.likelihood import LOG_ZERO
from truecal.types import Float64s, Floats, Indices

Input = Literal["logits", "probs"]

_ENOUGH = 20  # so many log odds that all lie in [0, 1] are probabilities


def as_table(X: ArrayLike) -> Any:
    """What scikit-learn's bookkeeping of column counts and names expects: two dimensions, frames as they are."""
    if hasattr(X, "columns"):
        return X
    array = border.as_array(X, "X")
    return array[:, None] if array.ndim == 1 else array


def read_outputs(X: ArrayLike, kind: Input) -> Floats:
    """Checked outputs of shape (n, K), K >= 2. A single column of the positive class becomes two.

    Logits of minus infinity (a class ruled out) become LOG_ZERO; NaN, plus infinity and numbers that are no
    probabilities are refused by row and value.
    """
    what = "logits" if kind == "logits" else "probabilities"
    # Frames hold columns, arrays rows: sums are taken in one order, or a fit would stop elsewhere by its tolerance.
    outputs = np.ascontiguousarray(border.as_floats(X, what))
    if outputs.dtype == np.float16:
        outputs = outputs.astype(np.float32)
    if outputs.ndim not in (1, 2) or 0 in outputs.shape[1:]:
        raise InputError(
            f"{what} must be 1-D (the positive class) or have one column per class, not of shape {outputs.shape}"
        )
    border.refuse_empty(len(outputs), what)
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        outputs = outputs[:, 0]
    if kind == "logits":
        border.check_finite(outputs)
        notice_probabilities(outputs)
        if outputs.ndim == 1:
            outputs = np.column_stack([np.zeros_like(outputs), outputs])
        return (
            np.where(np.isneginf(outputs), outputs.dtype.type(LOG_ZERO), outputs)
            if outputs.min() == -np.inf
            else outputs
        )
    if outputs.ndim == 1:
        border.refuse_outside_unit(outputs, what)
        outputs = outputs.astype(np.float64, copy=False)
        return np.column_stack([1 - outputs, outputs])
    border.check_probabilities(outputs)
    return outputs


def notice_probabilities(outputs: Floats) -> None:
    """Warn when what was declared as logits is evidently probabilities: rows of numbers in [0, 1] that sum to 1."""
    if outputs.min() < 0 or outputs.max() > 1:
        return
    if outputs.ndim == 1:
        evident = len(outputs) >= _ENOUGH and bool(((outputs > 0) & (outputs < 1)).any())
    else:
        evident = bool((np.abs(outputs.sum(axis=1, dtype=np.float64) - 1) <= border.SUM_TOLERANCE).all())
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
