"""Let functions of Predictions be called with labels and probabilities."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from truecal.predictions.predictions import Predictions, as_predictions

P = ParamSpec("P")
Answer = TypeVar("Answer", covariant=True)
Judged = TypeVar("Judged", contravariant=True)
First = TypeVar("First")


class OfPredictions(Protocol[Judged, P, Answer]):
    """A function of Predictions that can also be called with `y_true, y_prob`."""

    @overload
    def __call__(self, preds: Judged, /, *args: P.args, **options: P.kwargs) -> Answer: ...
    @overload
    def __call__(self, y_true: ArrayLike, y_prob: ArrayLike, /, *args: Any, **options: Any) -> Answer: ...


_ARRAY_OPTIONS = ("sample_weight", "clusters", "classes", "pos_label", "columns", "judge")


def takes_arrays(function: Callable[Concatenate[Judged, P], Answer]) -> OfPredictions[Judged, P, Answer]:
    """Let `function(preds, ...)` be called as `function(y_true, y_prob, ...)` too, by position or by name.

    With arrays, the options `sample_weight`, `clusters`, `classes`, `pos_label`, `columns` and `judge` of
    `as_predictions` are accepted and enter the predictions.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Answer:
        """Call the function with Predictions in place of two arrays."""
        return function(*_with_predictions(args, options, 0), **options)

    return call


def takes_arrays_second(
    function: Callable[Concatenate[First, Judged, P], Answer],
) -> Callable[..., Answer]:
    """Let `function(first, preds, ...)` be called as `function(first, y_true, y_prob, ...)` too, by position or by name.

    With arrays, the options `sample_weight`, `clusters`, `classes`, `pos_label`, `columns` and `judge` of `as_predictions` are
    accepted and enter the predictions.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Answer:
        """Call the function with Predictions in place of two arrays after the first argument."""
        return function(*_with_predictions(args, options, 1), **options)

    return call


def _with_predictions(args: tuple[Any, ...], options: dict[str, Any], position: int) -> tuple[Any, ...]:
    """Replace `y_true, y_prob` at `position` of `args`, or in `options`, by one Predictions; return the new `args`.

    Removes `y_true`, `y_prob`, `sample_weight`, `clusters`, `classes`, `pos_label`, `columns` and `judge` from `options`, in
    place. Where there are not two arrays, nothing is built, and `function` refuses the arguments.

    >>> options = {"sample_weight": [1, 2], "level": 0.9}
    >>> _with_predictions(([0, 1], [0.2, 0.8]), options, 0), options
    ((Predictions(2 rows, binary, weighted),), {'level': 0.9})
    """
    if len(args) <= position and "y_true" in options:
        args = (*args, options.pop("y_true"))
    if len(args) <= position or not _is_array(args[position]):
        return args
    if "y_prob" in options:
        args = (*args[: position + 1], options.pop("y_prob"), *args[position + 1 :])
    if len(args) <= position + 1 or not _is_array(args[position + 1]):
        return args  # the function itself refuses what is not Predictions, with its remedy
    array_options = {name: options.pop(name) for name in _ARRAY_OPTIONS if name in options}
    return (
        *args[:position],
        as_predictions(args[position], args[position + 1], **array_options),
        *args[position + 2 :],
    )


def _is_array(value: object) -> bool:
    """Whether a value can be an array of labels or probabilities: an array, list, tuple, series or tensor.

    False for text, mappings and Predictions.

    >>> _is_array([1, 2]), _is_array("ab"), _is_array({"a": 1})
    (True, False, False)
    """
    if isinstance(value, (str, bytes, Mapping, Predictions)):
        return False
    return isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "__array__") or hasattr(value, "to_numpy")
