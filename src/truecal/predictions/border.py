"""The border: everything that enters truecal is checked here, once.

Nothing is repaired. What cannot be judged is refused by an InputError that names the row, the value and the remedy; what is
accepted is never clipped, renormalised, dropped or changed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.types import Float64s, Floats, Indices

SUM_TOLERANCE = 1e-3  # how far the probabilities of a row may be from summing to 1 (float16: 1e-2)
_BLOCK_BYTES = 1 << 18  # a block of rows this size stays in cache while it is checked


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """A numpy array without copying where possible: lists, torch tensors, series and arrays are welcome."""
    if hasattr(values, "detach"):  # a torch tensor, perhaps on a device or of a type numpy lacks (bfloat16)
        tensor: Any = values.detach().cpu()
        values = tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy()
    elif hasattr(values, "toarray"):  # a scipy.sparse matrix, which numpy would wrap whole in one object
        raise InputError(f"{what} are a sparse matrix; give {what}.toarray()")
    elif hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} do not form an array: the rows have different lengths") from error
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{what} are masked in places; remove the masked rows first")
    return array


def as_floats(values: ArrayLike, what: str) -> Floats:
    """A floating array in the precision given; whole numbers and booleans become float64."""
    array = as_array(values, what)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind == "f":
        return array if array.dtype.itemsize <= 8 else array.astype(np.float64)
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            pass  # falls through to the refusal below, which shows the value
    for position, value in enumerate(array.flat):
        if not _is_finite_number(value):
            at = tuple(int(i) for i in np.unravel_index(position, array.shape))
            raise InputError(f"{what} must be numbers: {_where(at)} is {str(value)!r}")
    raise InputError(f"{what} must be numbers, not text; read the column as numbers")


def _is_finite_number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _where(index: tuple[int, ...]) -> str:
    """Words for a place in an array of any number of dimensions."""
    names = ("the value",) if not index else (f"row {index[0]}", *(f"column {i}" for i in index[1:]))
    return ", ".join(names)


def _first(wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def refuse_outside_unit(values: Floats, what: str) -> None:
    """Raise for NaN, infinities and numbers outside [0, 1], naming the first."""
    if values.size == 0:
        return
    low, high = values.min(), values.max()
    if low >= 0 and high <= 1:  # false as well when either is NaN
        return
    wrong = ~((values >= 0) & (values <= 1))
    at = _first(wrong)
    value = values[at]
    count = np.count_nonzero(wrong)
    others = f" (and {count - 1} more)" if count > 1 else ""
    if not np.isfinite(value):
        raise InputError(f"{what}: {_where(at)} is {value}{others}; remove or repair such rows before measuring")
    hint = (
        "these look like percentages; divide by 100"
        if 1 < high <= 100 and low >= 0 and high > 20
        else "if these are logits use Predictions.from_logits"
    )
    raise InputError(f"{what} must lie in [0, 1]: {_where(at)} is {value}{others}; {hint}")


def refuse_empty(count: int, what: str) -> None:
    if count == 0:
        raise InputError(f"{what} are empty; at least one row is needed")


def check_scores(scores: ArrayLike) -> Floats:
    """One-dimensional scores, or a batch of them."""
    c = as_floats(scores, "scores")
    if c.ndim not in (1, 2):
        raise InputError(f"scores must be one- or two-dimensional (datasets x rows), not of shape {c.shape}")
    refuse_empty(c.size, "scores")
    refuse_outside_unit(c, "scores")
    return c


def check_outcomes(outcomes: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """0/1 outcomes of the given shape, as bytes."""
    y = as_array(outcomes, "outcomes")
    if y.shape != shape:
        raise InputError(f"scores have shape {shape} but outcomes {y.shape}; they must match row by row")
    if y.dtype == np.bool_:
        return y.view(np.uint8)
    if y.dtype.kind not in "iuf":
        raise InputError(f"outcomes must be 0 or 1, not {y.dtype.name}")
    wrong = (y != 0) & (y != 1)
    if wrong.any():
        at = _first(wrong)
        hint = "; were the arguments swapped?" if y.dtype.kind == "f" and bool(((y >= 0) & (y <= 1)).all()) else ""
        raise InputError(f"outcomes must be 0 or 1: {_where(at)} is {y[at]}{hint}")
    return y.astype(np.uint8)


def check_weights(weights: ArrayLike, shape: tuple[int, ...]) -> Float64s:
    """Finite non-negative weights, not all zero in any dataset."""
    w = as_floats(weights, "weights").astype(np.float64)
    if w.shape != shape:
        raise InputError(f"weights have shape {w.shape} but there are {shape[-1]} rows; give one weight per row")
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        at = _first(wrong)
        raise InputError(f"weights must be finite and not negative: {_where(at)} is {w[at]}")
    if not (w.sum(axis=-1) > 0).all():
        raise InputError("all weights are zero; nothing is left to measure")
    return w


def check_clusters(clusters: ArrayLike, rows: int) -> Indices:
    """Cluster numbers 0..k-1 for any labels (numbers, strings) that mark rows which belong together."""
    labels = as_array(clusters, "clusters")
    if labels.shape != (rows,):
        raise InputError(
            f"clusters have shape {labels.shape} but there are {rows} rows; give one cluster label per row"
        )
    if labels.dtype == object:
        labels = labels.astype(str)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError(f"clusters: {_where(_first(np.isnan(labels)))} is nan; every row needs a cluster")
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)


def check_classes(classes: Sequence[object] | None, count: int) -> tuple[object, ...] | None:
    """Class names, one per column, all different."""
    if classes is None:
        return None
    names = tuple(np.asarray(classes, dtype=object).tolist())
    if len(names) != count:
        raise InputError(f"{len(names)} class names were given for {count} classes")
    if len(set(names)) != count:
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"class name {twice!r} is given twice; names must differ")
    return names


def check_labels(labels: ArrayLike, rows: int, classes: tuple[object, ...] | None, count: int) -> Indices:
    """Labels as class indices 0..count-1, from indices or from the class names."""
    y = as_array(labels, "labels")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and y.shape == (rows, count):
        raise InputError("labels are one-hot; pass labels.argmax(axis=1)")
    if y.ndim != 1:
        raise InputError(f"labels must be one-dimensional, not of shape {y.shape}")
    if len(y) != rows:
        raise InputError(f"there are {rows} rows of probabilities but {len(y)} labels; they must match row by row")
    if classes is not None:
        return _labels_by_name(y, classes)
    if y.dtype.kind not in "iubf":
        raise InputError(
            f"labels are {y.dtype.name} (first {y.flat[0]!r}); pass classes=[...] in the order of the columns"
        )
    if y.dtype.kind == "f":
        wrong = ~(y == np.floor(y)) | ~np.isfinite(y)
        if wrong.any():
            at = _first(wrong)
            raise InputError(f"labels must be class indices: {_where(at)} is {y[at]}; were y_true and y_prob swapped?")
    low, high = y.min(), y.max()
    if low < 0 or high >= count:
        wrong = (y < 0) | (y >= count)
        at = _first(wrong)
        hint = (
            "labels -1/1 need classes=[-1, 1]"
            if low == -1 and count == 2
            else f"labels 1..{count} need classes=range(1, {count + 1})"
            if low == 1 and high == count
            else f"labels are class indices 0..{count - 1}, or names listed in classes="
        )
        raise InputError(f"labels: {_where(at)} is {y[at]:g}, but there are {count} classes; {hint}")
    return y.astype(np.intp)


def _labels_by_name(y: NDArray[Any], classes: tuple[object, ...]) -> Indices:
    position = {name: i for i, name in enumerate(classes)}
    values, inverse = np.unique(y.astype(str) if y.dtype == object else y, return_inverse=True)
    if y.dtype == object:
        position = {str(name): i for i, name in enumerate(classes)}
    unknown = [v for v in values.tolist() if v not in position]
    if unknown:
        row = int(np.flatnonzero(inverse == values.tolist().index(unknown[0]))[0])
        listed = ", ".join(map(repr, classes[:8])) + (", ..." if len(classes) > 8 else "")
        numbered = y.dtype.kind in "iu" and all(isinstance(name, str) for name in classes)
        hint = "; labels given as class indices need no classes=, or use classes[label]" if numbered else ""
        raise InputError(
            f"labels: row {row} is {unknown[0]!r}, which is not among the {len(classes)} classes ({listed}){hint}"
        )
    return np.array([position[v] for v in values.tolist()], dtype=np.intp)[inverse]


def check_probabilities(probs: Floats, *, sums: bool = True) -> None:
    """Rows of class probabilities: in [0, 1] and (unless sums=False) summing to 1 within SUM_TOLERANCE.

    One pass in cache-sized blocks.
    """
    rows, count = probs.shape
    if count < 2:
        raise InputError("probabilities have one column; pass a 1-D array of P(positive), or one column per class")
    if not sums:
        refuse_outside_unit(probs, "probabilities")
        return
    tolerance = 1e-2 if probs.dtype == np.float16 else SUM_TOLERANCE
    step = max(1, _BLOCK_BYTES // (count * probs.dtype.itemsize))
    ones: Floats = np.ones(count, np.float32 if probs.dtype == np.float32 else np.float64)
    for start in range(0, rows, step):
        block = probs[start : start + step]
        low = block.min()
        off = np.abs(block @ ones - 1)
        if low >= 0 and off.max() <= tolerance and block.max() <= 1:  # NaN fails all of them
            continue
        refuse_outside_unit(probs, "probabilities")
        row = start + int(off.argmax())
        total = float(probs[row].sum(dtype=np.float64))
        raise InputError(
            f"probabilities of row {row} sum to {total:.6g}, not 1 (tolerance {tolerance:g}); "
            "normalise them, declare normalized=False (--unnormalised), or use Predictions.from_logits for logits"
        )


def check_finite(logits: Floats) -> None:
    """Logits may have any size but not be NaN or infinite (-inf is allowed: a class ruled out)."""
    if logits.size == 0 or np.isfinite(logits.sum(dtype=np.float64)):
        return
    wrong = np.isnan(logits) | (logits == np.inf)
    if wrong.any():
        at = _first(wrong)
        raise InputError(f"logits: {_where(at)} is {logits[at]}; remove or repair such rows before measuring")
    if logits.ndim == 2:
        ruled_out = np.flatnonzero(np.isneginf(logits).all(axis=1))
        if len(ruled_out):
            raise InputError(f"logits: every class of row {ruled_out[0]} is -inf")


def refuse_swapped(y_true: ArrayLike, y_prob: ArrayLike) -> None:
    """Raise when the two arguments are evidently the wrong way round."""
    labels, probs = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
    if labels.dtype.kind not in "iubf" or probs.dtype.kind not in "iubf" or not labels.size or not probs.size:
        return
    if labels.dtype.kind != "f" or not ((labels > 0) & (labels < 1)).any():
        return
    two_d_first = labels.ndim == 2 and labels.shape[1] > 1 and probs.ndim == 1
    whole = probs.ndim == 1 and bool((probs == np.floor(probs)).all())
    if two_d_first or (labels.ndim == 1 and whole):
        raise InputError(
            "y_true holds fractions and y_prob whole numbers: the arguments are swapped; y_true comes first"
        )
