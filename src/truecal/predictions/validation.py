"""Containers of any kind as numpy arrays: lists, series, tensors, Arrow columns. What numpy would misread is refused.

Nothing is parsed: text is text, also where it spells a number. Mixed lists stay mixed; numpy alone would turn them into text.
"""

import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import compress, pairwise
from numbers import Real
from operator import is_
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError, TruecalWarning
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Containers of any kind as numpy arrays: lists, series, tensors, Arrow columns. What numpy would misread is refused

_TURNED = 1024  # derived: rows turned into columns at a time, which stay in cache


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Convert lists, torch tensors, series and arrays to a numpy array in native byte order, without a copy if possible.

    Lists that mix text with other values become objects. Refuses sets, dicts, masked arrays, sparse matrices and ragged rows;
    `what` names the values.

    >>> as_array([1, "a", None], "labels"), as_array([0.5, 1], "scores")
    (array([1, 'a', None], dtype=object), array([0.5, 1. ]))
    """
    container: Any = values
    if type(container) is np.ndarray and container.dtype.kind in "biuf" and container.dtype.isnative:
        return container
    # scipy's dok_matrix is a dict, too
    if isinstance(container, (set, frozenset, dict)) and not hasattr(container, "toarray"):
        raise InputError(f"{what} are a {type(values).__name__}, which has no rows in order; give a list or an array")
    try:
        plain = _to_numpy_readable(values, what)
        array = np.asarray(plain)
    except InputError:
        raise
    except Exception as error:  # whatever an object raises that is asked for its array
        ragged = isinstance(values, (list, tuple)) and isinstance(error, ValueError)
        why = "the rows have different lengths" if ragged else (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{what} do not form an array: {why}") from error
    if isinstance(plain, np.ndarray) and hasattr(plain, "mask") and np.ma.is_masked(plain):  # np.ma loads late
        raise InputError(f"{what} are masked in places; remove the masked rows first")
    if array.dtype.kind in "US" and array.ndim == 1 and isinstance(plain, (list, tuple)) and _is_misread(plain):
        array = np.empty(len(plain), object)
        array[:] = plain
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _is_misread(values: Any) -> bool:
    """Whether numpy changes values of a list with text: numbers and missing values become text, a NUL at the end is lost.

    >>> _is_misread(["a", "b"]), _is_misread(["a", 1])
    (False, True)
    """
    return any(not isinstance(value, (str, bytes)) or value[-1:] in ("\0", b"\0") for value in values)


def _to_numpy_readable(values: Any, what: str) -> Any:
    """Convert torch tensors (bfloat16 to float32), series and Arrow columns to numpy arrays; return others unchanged.

    Refuse sparse matrices and tensors, and tensors on the meta device; `what` names the values in the message.
    """
    if hasattr(values, "detach"):  # a torch tensor, perhaps on a device or of a type numpy lacks (bfloat16)
        if values.device.type == "meta":
            raise InputError(
                f"{what} are a tensor on the meta device, which holds no values; move the model to a real one"
            )
        if "strided" not in str(values.layout):
            raise InputError(f"{what} are a sparse tensor; convert them by .to_dense()")
        tensor = values.detach().cpu()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if hasattr(values, "toarray"):  # a scipy.sparse matrix, which numpy would wrap whole in one object
        raise InputError(f"{what} are a sparse matrix; convert them by .toarray()")
    if isinstance(values, np.ndarray) or not hasattr(values, "to_numpy"):
        return values
    if type(values).__module__.startswith("pyarrow"):  # nulls, booleans and text cannot be lent without a copy
        return np.asarray(values.to_pylist(), object) if values.null_count else values.to_numpy(zero_copy_only=False)
    return values.to_numpy()


def as_floats(values: ArrayLike, what: str) -> Floats:
    """Convert to a floating array: float16, float32 and float64 as they are, wider floats, integers and booleans as float64.

    Refuses the first value that is no number, and text that spells one.

    >>> as_floats([1, 0], "scores")
    array([1., 0.])
    >>> as_floats(["a"], "scores")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: scores must be numbers: row 0 is 'a'
    """
    array = as_array(values, what)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind == "f":
        return array if array.dtype.itemsize <= 8 else array.astype(np.float64)
    if array.dtype == object and all(map(_is_number, array.flat)):
        return array.astype(np.float64)
    for position, value in enumerate(array.flat):
        if not _is_number(value) and not spells_number(value):
            index = tuple(int(i) for i in np.unravel_index(position, array.shape))
            raise InputError(f"{what} must be numbers: {where(index)} is {shown(value)}")
    raise InputError(f"{what} must be numbers, not text; read the column as numbers")


def _is_number(value: object) -> bool:
    """Whether a value of a mixed array is a real number that a float can hold, not text that spells one.

    >>> _is_number(0.5), _is_number("0.5"), _is_number(np.float32(1))
    (True, False, True)
    """
    try:
        float(value if isinstance(value, (Real, Decimal, np.bool_)) else "")
    except (OverflowError, TypeError, ValueError):  # TypeError: numpy counts spans of time as whole numbers
        return False
    return True


def spells_number(value: object) -> bool:
    """Whether a value is text that spells a finite number.

    >>> spells_number("1e3"), spells_number("nan"), spells_number("a"), spells_number(1.0)
    (True, False, False, False)
    """
    try:
        return isinstance(value, str) and bool(np.isfinite(float(value)))
    except ValueError:
        return False


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, NaT or another library's missing value (one that cannot be compared with itself).

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(np.datetime64("NaT"))
    (True, True, False, True)
    """
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True


def find_missing(rows: list[Any]) -> NDArray[np.bool_]:
    """Return for each value whether it `is_missing`, shape (n,).

    >>> find_missing(["a", None, float("nan")])
    array([False,  True,  True])
    """
    kinds = set(map(type, rows))
    if kinds <= {str, int, bool}:  # the usual kinds need no comparison with themselves
        return np.zeros(len(rows), bool)
    if kinds <= {str, int, bool, type(None)}:
        return np.fromiter(map(partial(is_, None), rows), bool, len(rows))
    return np.fromiter(map(is_missing, rows), bool, len(rows))


def shown(value: object) -> str:
    """Return the repr of a value for an error message, cut to 60 characters.

    >>> shown("a"), shown(np.float64(0.5)), len(shown("a" * 100))
    ("'a'", '0.5', 60)
    """
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def kind_in_words(array: NDArray[Any]) -> str:
    """Return "text" for an array of text, else the name of its dtype.

    >>> kind_in_words(np.array(["a"])), kind_in_words(np.array([1.0]))
    ('text', 'float64')
    """
    return "text" if array.dtype.kind in "UST" else array.dtype.name


def where(index: tuple[int, ...]) -> str:
    """Word an index of an array: "row 3", "row 3, column 1", or "the value" for an array of no dimension.

    >>> where((3,)), where((3, 1)), where(())
    ('row 3', 'row 3, column 1', 'the value')
    """
    names = ("the value",) if not index else (f"row {index[0]}", *(f"column {i}" for i in index[1:]))
    return ", ".join(names)


def transpose(matrix: Floats) -> Floats:
    """Return the transpose of a matrix (n, k) as a contiguous array (k, n), copied block by block for the cache.

    >>> transpose(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 3.],
           [2., 4.]])
    """
    columns = np.empty(matrix.shape[::-1], matrix.dtype)
    for start in range(0, len(matrix), _TURNED):
        columns[:, start : start + _TURNED] = matrix[start : start + _TURNED].T
    return columns


# ----------------------------------------------------------------------------------------------------
# Validation: everything that enters truecal is checked here, once

SUM_TOLERANCE = 1e-3  # by choice: how far the probabilities of a row may be from summing to 1
HALF_TOLERANCE = (
    1e-2  # the same where a model computed them in float16 or bfloat16; derived: ten classes, half an ulp each
)
HALF_BITS = 11  # derived: significant bits of float16; bfloat16 has 8
HALF_SPLIT = (
    2.0 ** (53 - HALF_BITS) + 1
)  # derived: Veltkamp's factor; s = v * factor: s - (s - v) is v rounded to HALF_BITS bits
SUSPICIOUS_ROWS = 10  # by choice: fewer may be in [0, 1] by chance, or in an example
LOOK_LIKE_PROBABILITIES = (
    "all logits look like probabilities; if they are, use Predictions.from_probs (probs=, --probs or --score)"
)
_LISTED_CLASSES = 10  # by choice: classes that a remedy writes out
_ROUNDING = 1e-6  # derived: how far a softmax in float32 leaves [0, 1] at most
LARGEST_EXACT = (
    2.0**53
)  # derived: up to here every whole number is a float64, and from here on every float64 a whole number
# By choice: how much lighter than the heaviest a row may be, within the 16 digits of a float64, and the least weight, whose square
# is still a float64.
_LARGEST_RATIO, _LEAST_WEIGHT = 1e12, 1e-100
# Derived: by the bytes of a number, whole numbers of its size, and the one with the bits of 1.
_BITS = {2: (np.uint16, 0x3C00), 4: (np.uint32, 0x3F800000), 8: (np.uint64, 0x3FF0000000000000)}
_BLOCK_BYTES = 1 << 18  # derived: a block of rows this size stays in cache while it is checked


def _first_true(wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first True of an array that has one, in row order.

    >>> _first_true(np.array([[False, False], [False, True]]))
    (1, 1)
    """
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def refuse_outside_unit(values: Floats, what: str) -> None:
    """Refuse NaN, infinities and numbers outside [0, 1], naming the first, how many there are, and a remedy.

    >>> refuse_outside_unit(np.array([0.5, 1.5, 2.0]), "scores")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: scores must lie in [0, 1]: row 1 is 1.5 (and 1 more); repair such rows; if these are logits
    use Predictions.from_logits (logits=, --logits)
    """
    if values.size == 0:
        return
    # as integers, the bits of floats >= 0 are in their order, and those of NaN and of negative floats are larger than those of 1
    if values.flags.c_contiguous:
        bits_type, bits_of_one = _BITS[values.itemsize]
        if values.view(bits_type).max() <= bits_of_one:
            return
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:  # false as well when either is NaN
        return
    wrong = ~((values >= 0) & (values <= 1))
    index = _first_true(wrong)
    value = values[index]
    count = np.count_nonzero(wrong)
    more_text = f" (and {count - 1} more)" if count > 1 else ""
    if not np.isfinite(value):
        raise InputError(f"{what}: {where(index)} is {value}{more_text}; remove or repair such rows before measuring")
    remedy = outside_unit_remedy(low, high)
    options = "--percent" if "(--percent)" in remedy else ""
    raise InputError(f"{what} must lie in [0, 1]: {where(index)} is {value}{more_text}; {remedy}", options=options)


def outside_unit_remedy(low: float, high: float) -> str:
    """Word the remedy for numbers from `low` to `high`, not all in [0, 1], that should be probabilities.

    To clip them, if they are within 1e-6 of [0, 1]; to divide by 100, if in [0, 100] and some above 20; else to repair the rows,
    or to read them as logits.

    >>> outside_unit_remedy(0.0, 1 + 1e-9)
    'this is rounding: clip them to [0, 1] first, such as by numpy.clip(p, 0, 1)'
    >>> outside_unit_remedy(3.0, 97.0)
    'these look like percentages; divide by 100, or read the file with percent=True (--percent)'
    """
    if low >= -_ROUNDING and high <= 1 + _ROUNDING:
        return "this is rounding: clip them to [0, 1] first, such as by numpy.clip(p, 0, 1)"
    if 20 < high <= 100 and low >= 0:
        return "these look like percentages; divide by 100, or read the file with percent=True (--percent)"
    return "repair such rows; if these are logits use Predictions.from_logits (logits=, --logits)"


def refuse_empty(count: int, what: str) -> None:
    """Refuse zero rows; `what` names them in the message.

    >>> refuse_empty(0, "scores")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: scores are empty; at least one row is needed
    """
    if count == 0:
        raise InputError(f"{what} are empty; at least one row is needed")


def check_scores(scores: ArrayLike) -> Floats:
    """Return scores as floats: shape (n,), or (datasets, n) for a batch; refuse empty ones and values outside [0, 1].

    >>> check_scores([0, 0.5])
    array([0. , 0.5])
    """
    c = as_floats(scores, "scores")
    if c.ndim not in (1, 2):
        raise InputError(f"scores must be one- or two-dimensional (datasets x rows), not of shape {c.shape}")
    refuse_empty(c.size, "scores")
    refuse_outside_unit(c, "scores")
    return c


def check_outcomes(outcomes: ArrayLike, shape: tuple[int, ...], what: str = "outcomes") -> NDArray[np.uint8]:
    """Return 0/1 outcomes of the given shape as uint8; refuse other values, another shape, and text.

    >>> check_outcomes([True, False], (2,))
    array([1, 0], dtype=uint8)
    >>> check_outcomes([1, 2], (2,))
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: outcomes must be 0 or 1: row 1 is 2
    """
    y = as_array(outcomes, what)
    if y.shape != shape:
        raise InputError(f"scores have shape {shape} but {what} {y.shape}; they must match row by row")
    if y.dtype == np.bool_:
        return y.view(np.uint8)
    if y.dtype.kind not in "iuf":
        raise InputError(f"{what} must be 0 or 1, not {kind_in_words(y)}")
    if y.dtype.kind in "iu" and y.size and y.min() >= 0 and y.max() <= 1:
        return y.view(np.uint8) if y.dtype.itemsize == 1 else y.astype(np.uint8)
    wrong = (y != 0) & (y != 1)
    if wrong.any():
        index = _first_true(wrong)
        hint = "; were the arguments swapped?" if y.dtype.kind == "f" and bool(((y >= 0) & (y <= 1)).all()) else ""
        raise InputError(f"{what} must be 0 or 1: {where(index)} is {y[index]}{hint}")
    return y.astype(np.uint8)


def check_weights(weights: ArrayLike, shape: tuple[int, ...]) -> Float64s:
    """Return weights of the given shape, (n,) or (datasets, n), as float64.

    Refuses negative and infinite ones, a dataset of zeros only, a sum above 2**53, and a smallest positive weight below 1e-12 of
    the largest or below 1e-100.

    >>> check_weights([1, 2], (2,))
    array([1., 2.])
    """
    w = as_floats(weights, "weights").astype(np.float64)
    if w.shape != shape:
        raise InputError(f"weights have shape {w.shape} but there are {shape[-1]} rows; give one weight per row")
    wrong = ~(np.isfinite(w) & (w >= 0))
    if wrong.any():
        index = _first_true(wrong)
        raise InputError(f"weights must be finite and not negative: {where(index)} is {w[index]}")
    if not (w.max(axis=-1, initial=0.0) > 0).all():
        raise InputError("all weights are zero; nothing is left to measure")
    with np.errstate(over="ignore"):
        total = float(w.sum(axis=-1).max())
    index = _first_true(w == w[w > 0].min())
    refuse_weight_range(float(w[index]), float(w.max()), total, f"{where(index)} weighs")
    return w


def refuse_weight_range(lightest: float, heaviest: float, total: float, subject: str = "the smallest is") -> None:
    """Refuse weights whose float64 sums would lose rows: a total above 2**53, or a smallest below 1e-12 of the largest or 1e-100.

    `lightest` is the smallest positive weight, which `subject` names in the message.

    >>> refuse_weight_range(1e-20, 1.0, 2.0)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: weights: the smallest is 1e-20 beside a largest of 1, too small for sums to hold it; give
    weights of at least 1e-12, or 0 to leave a row out
    """
    if total > LARGEST_EXACT:
        raise InputError(
            f"weights sum to {total:g}, and counts are exact only up to {LARGEST_EXACT:.2g}; divide them by their largest"
        )
    smallest = max(heaviest / _LARGEST_RATIO, _LEAST_WEIGHT)
    if lightest < smallest:
        raise InputError(
            f"weights: {subject} {lightest:g} beside a largest of {heaviest:g}, too small for sums to hold it; "
            f"give weights of at least {smallest:.2g}, or 0 to leave a row out"
        )


def check_clusters(clusters: ArrayLike, rows: int) -> Indices:
    """Return cluster numbers 0..k-1, shape (n,), in the order of the distinct labels (numbers or text); refuse missing ones.

    >>> check_clusters(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    labels = as_array(clusters, "clusters")
    if labels.shape != (rows,):
        raise InputError(
            f"clusters have shape {labels.shape} but there are {rows} rows; give one cluster label per row"
        )
    refuse_missing(labels, "clusters", "cluster")
    return distinct(labels, "clusters")[1]


def refuse_missing(labels: NDArray[Any], what: str, each: str) -> None:
    """Refuse a column with a missing value, naming the first; `each` says what every row needs ("label").

    >>> refuse_missing(np.array([1.0, np.nan]), "labels", "label")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: labels: row 1 is nan; every row needs a label
    """
    missing = labels != labels if labels.dtype.kind in "fcmM" else None
    if labels.dtype == object:
        missing = np.fromiter(map(is_missing, labels), bool, len(labels))
    if missing is not None and missing.any():
        index = _first_true(missing)
        raise InputError(f"{what}: {where(index)} is {shown(labels[index])}; every row needs a {each}")


def distinct(labels: NDArray[Any], what: str) -> tuple[list[Any], Indices]:
    """Return the distinct values of a column in ascending order, and the position of each row's value among them, shape (n,).

    Values of different types are different (1 and "1"). All missing values are one, None or NaN, the last.

    >>> distinct(np.array(["b", 1, "b", None], object), "clusters")
    ([1, 'b', None], array([1, 0, 1, 2]))
    """
    if labels.dtype.kind not in "OU":
        numbers, codes = _distinct_numbers(labels)
        if numbers.dtype.str.endswith("[ns]"):  # Python has no times of nanoseconds
            numbers = numbers.astype(f"{numbers.dtype.kind}8[us]")
        return numbers.tolist(), codes
    rows, code_of = labels.tolist(), _Codes()
    try:
        codes = np.fromiter(map(code_of.__getitem__, rows), np.intp, len(rows))
    except TypeError as error:
        row = next(i for i, value in enumerate(rows) if not _hashable(value))
        kind = type(rows[row]).__name__
        raise InputError(f"{what}: row {row} is {shown(rows[row])} ({kind}); give numbers or text") from error
    if (0 in code_of or 1 in code_of) and ({bool, int} <= (kinds := set(map(type, rows))) or {bool, float} <= kinds):
        raise InputError(f"{what} mix True or False with numbers, which equal each other; give one kind")
    missing = find_missing(list(code_of))
    values = list(compress(code_of, ~missing))
    try:
        values.sort()
    except TypeError:
        values.sort(key=lambda value: (type(value).__name__, str(value)))
    number = np.full(len(code_of), len(values), np.intp)
    number[[code_of[value] for value in values]] = np.arange(len(values))
    return [*values, *([None] if missing.any() else [])], number[codes]


class _Codes(dict[Any, int]):
    """Position of each value in the order of first occurrence; a lookup adds a new value."""

    def __missing__(self, value: Any) -> int:
        """Give a new value the next code: 0, 1, 2, ... in the order in which values are first looked up.

        >>> codes = _Codes()
        >>> codes["b"], codes["a"], codes["b"]
        (0, 1, 0)
        """
        self[value] = len(self)
        return self[value]


def _distinct_numbers(numbers: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """Return the distinct numbers in ascending order (NaN last), and the position of each row's number among them, shape (n,).

    >>> _distinct_numbers(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    if numbers.dtype.kind in "iu" and numbers.size:
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < len(numbers):  # counting is quicker than sorting
            start = np.uint64(low % 2**64)  # modulo 2**64, where no integer type overflows
            offsets = (numbers.astype(np.uint64) - start).astype(np.intp)
            occurs = np.bincount(offsets, minlength=high - low + 1) > 0
            values = (np.flatnonzero(occurs).astype(np.uint64) + start).astype(numbers.dtype)
            return values, (np.cumsum(occurs) - 1)[offsets]
    values, codes = np.unique(numbers, return_inverse=True)
    return values, codes.astype(np.intp)


def _hashable(value: object) -> bool:
    """Whether a value can be hashed.

    >>> _hashable("a"), _hashable([1])
    (True, False)
    """
    try:
        hash(value)
    except (TypeError, ValueError):  # ValueError: a span of time without a unit
        return False
    return True


def check_classes(classes: Sequence[object] | None, count: int) -> tuple[object, ...] | None:
    """Return class names as a tuple, None for None; refuse another number than `count` and names that are equal or read alike.

    >>> check_classes(["cat", "dog"], 2)
    ('cat', 'dog')
    >>> check_classes([1, "1"], 2)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: class name '1' reads like 1; names must differ
    """
    if classes is None:
        return None
    if isinstance(classes, (set, frozenset, Mapping, str, bytes)):
        raise InputError(f"classes are a {type(classes).__name__}, which lists no names in order; give a list of them")
    try:
        listed = as_array(np.asarray(classes), "classes").tolist() if hasattr(classes, "dtype") else list(classes)
        names = tuple(name.item() if isinstance(name, np.generic) else name for name in listed)
    except TypeError as error:
        raise InputError(f"classes must be a list of names, not {shown(classes)}") from error
    if len(names) != count:
        raise InputError(f"{len(names)} class names were given for {count} classes")
    first: dict[object, object] = {}
    for i, name in enumerate(names):
        if not _can_name_class(name):
            raise InputError(f"class name {i} is {shown(name)}; name every class by a number or text")
        for key in (name, str(name)):  # 1 equals 1.0 and True, and reads like "1"
            if key in first:
                conflict = "is given twice" if type(first[key]) is type(name) else f"reads like {first[key]!r}"
                raise InputError(f"class name {name!r} {conflict}; names must differ")
        first[name] = first[str(name)] = name
    return names


def binary_classes(
    labels: ArrayLike, names: tuple[object, ...] | None, pos_label: object, count: int, *, columns: int
) -> tuple[tuple[object, ...] | None, bool]:
    """Return the names of two classes, the positive one last, and whether the first of two columns is the positive one.

    Names come from `names`, else from the labels, in alphabetical order; None where labels are class indices (numbers, and
    `pos_label` None or 1). `columns` is the number of dimensions of the probabilities, 1 or 2; `count` the number of classes.

    >>> binary_classes(["yes", "no"], None, None, 2, columns=1), binary_classes(["yes", "no"], None, "no", 2, columns=1)
    ((('no', 'yes'), False), (('yes', 'no'), False))
    """
    if pos_label is not None and count != 2:
        raise InputError(
            f"pos_label is for two classes, and there are {count}; judge one of them with tc.OneClass(...)"
        )
    if names is None:
        y = as_array(labels, "labels")
        is_text = y.dtype.kind in "UST" or (y.dtype == object and y.size > 0 and isinstance(y.flat[0], str))
        if y.ndim != 1 or (not is_text and pos_label in (None, 1, True)):
            return None, False
        values = distinct(y, "labels")[0]
        only_positive = pos_label is not None and columns == 1 and values == [pos_label]
        names = (f"not {pos_label}", pos_label) if only_positive else name_two_classes(values)
    if pos_label is None:
        return names, False
    if pos_label not in names:
        raise InputError(f"pos_label={shown(pos_label)} is not among the classes {names[0]!r} and {names[1]!r}")
    if names[1] == pos_label:
        return names, False
    return (names[1], names[0]), columns == 2


def name_two_classes(labels: Sequence[object]) -> tuple[object, object]:
    """Return two distinct labels in alphabetical order, the last the positive one; refuse another number of labels.

    >>> name_two_classes(["yes", "no"])
    ('no', 'yes')
    """
    names = sorted(labels, key=str)
    if len(names) != 2:
        count = f"{len(names)} values" if len(names) != 1 else "1 value"
        listed = ", ".join(map(shown, names[:8])) + (", ..." if len(names) > 8 else "")
        raise InputError(
            f"labels have {count} ({listed}) for two classes; list them, the positive one last: "
            "classes=[negative, positive] (--classes)"
        )
    return names[0], names[1]


def check_name(name: object) -> None:
    """Refuse what cannot name a class; None (not given) is allowed.

    >>> check_name([1])
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: a class is named by a number or text, not [1]
    """
    if name is not None and not _can_name_class(name):
        raise InputError(f"a class is named by a number or text, not {shown(name)}")


def _can_name_class(name: object) -> bool:
    """Whether a value can name a class: no lists, arrays, NaN, modules, functions.

    >>> _can_name_class("cat"), _can_name_class(3), _can_name_class([1]), _can_name_class(float("nan"))
    (True, True, False, False)
    """
    code = isinstance(name, ModuleType) or callable(name)
    return not code and _hashable(name) and not is_missing(name)


def check_rows(rows: ArrayLike, count: int, what: str = "rows") -> NDArray[np.bool_] | Indices:
    """Return a mask of shape (count,) or row numbers from -count to count - 1 as an array; refuse anything else.

    >>> check_rows([True, False], 2), check_rows([1, -2], 2)
    (array([ True, False]), array([ 1, -2]))
    >>> check_rows([2], 2)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: rows must be True or False for each of the 2 rows, or numbers of rows from 0 to 1
    """
    chosen = as_array(rows, what)
    mask = chosen.dtype.kind == "b" and chosen.shape == (count,)
    numbers = chosen.dtype.kind in "iu" and chosen.ndim == 1
    if not mask and not (numbers and (not chosen.size or (-count <= chosen.min() and chosen.max() < count))):
        raise InputError(
            f"{what} must be True or False for each of the {count} {what}, or numbers of {what} from 0 to {count - 1}"
        )
    return chosen


def check_points(values: ArrayLike, what: str, shape: tuple[int, ...] | None = None) -> Floats:
    """Return points of a curve as floats; refuse NaN and infinities, and a shape other than `shape` but a single number.

    >>> check_points([0.5, 1], "rates", (2,))
    array([0.5, 1. ])
    """
    points = as_floats(values, what)
    if not np.isfinite(points).all():
        raise InputError(f"{what} must be finite numbers, not {points[~np.isfinite(points)][0]}")
    if shape is not None and points.shape != shape and points.ndim:
        raise InputError(f"{what} have shape {points.shape}, but the scores {shape}; they must match one by one")
    return points


def check_columns(columns: Mapping[str, ArrayLike] | None, rows: int) -> dict[str, NDArray[Any]]:
    """Return further columns by name as arrays, with one value (or row of values) per row; {} for None.

    Refuse names that are not text, and another number of values than `rows`.

    >>> check_columns({"site": ["a", "b"]}, 2), check_columns(None, 2)
    ({'site': array(['a', 'b'], dtype='<U1')}, {})
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise InputError(f"columns must map names to values, such as {{'site': sites}}, not {type(columns).__name__}")
    arrays: dict[str, NDArray[Any]] = {}
    for name, values in (columns or {}).items():
        if not isinstance(name, str):
            raise InputError(f"columns are named by text, not {shown(name)}")
        arrays[name] = as_array(values, f"column {name!r}")
        if arrays[name].shape[:1] != (rows,):
            raise InputError(f"column {name!r} has {len(np.atleast_1d(arrays[name]))} values but there are {rows} rows")
    return arrays


def refuse_several_labels(labels: ArrayLike, shape: tuple[int, ...]) -> None:
    """Refuse a matrix of labels with the shape of the probabilities (n, k), k > 1: one-hot, or several labels per row.

    >>> refuse_several_labels([[1, 0], [0, 1]], (2, 2))
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: labels are one-hot; pass labels.argmax(axis=1)
    """
    y = as_array(labels, "labels")
    if y.shape != shape or shape[1] == 1:
        return
    if y.dtype.kind in "iubf" and bool((y.sum(axis=1) == 1).all()):
        raise InputError("labels are one-hot; pass labels.argmax(axis=1)")
    raise InputError(
        "labels have several columns that are not one-hot: several yes-or-no labels per row; "
        "use tc.Predictions.from_multilabel(probs, labels), or --multilabel"
    )


def check_labels(labels: ArrayLike, rows: int, classes: tuple[object, ...] | None, count: int) -> Indices:
    """Return labels as class indices 0..count-1, shape (n,), from indices or from the names in `classes`; refuse other values.

    A column of shape (n, 1) is flattened. Indices keep their size as signed integers where they fit; names and floats give intp.

    >>> check_labels([1.0, 0.0], 2, None, 2), check_labels(["dog", "cat"], 2, ("cat", "dog"), 2)
    (array([1, 0]), array([1, 0]))
    """
    y = as_array(labels, "labels")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    refuse_several_labels(y, (rows, count))
    if y.ndim != 1:
        raise InputError(f"labels must be one-dimensional, not of shape {y.shape}")
    if len(y) != rows:
        raise InputError(f"there are {rows} rows of probabilities but {len(y)} labels; they must match row by row")
    if classes is not None:
        return _labels_by_name(y, classes)
    refuse_missing(y, "labels", "label")
    if y.dtype == object and all(map(_is_number, y)):
        y = y.astype(np.int64 if all(isinstance(label, (int, np.integer)) for label in y) else np.float64)
    if y.dtype.kind not in "iubf":
        raise InputError(
            f"labels are {kind_in_words(y)} (first {shown(y.flat[0])}); pass classes=[...] in the order of the columns"
        )
    if y.dtype.kind == "f":
        wrong = ~(y == np.floor(y)) | ~np.isfinite(y)
        if wrong.any():
            index = _first_true(wrong)
            raise InputError(
                f"labels must be class indices: {where(index)} is {y[index]}; were labels and probabilities swapped?"
            )
    low, high = y.min(), y.max()
    if low < 0 or high >= count:
        wrong = (y < 0) | (y >= count)
        index = _first_true(wrong)
        hint, options = f"labels are class indices 0..{count - 1}, or names listed in classes= (--classes)", ""
        if low == -1 and count == 2:
            hint, options = "labels -1/1 need classes=[-1, 1] (--classes=-1,1)", "--classes=-1,1"
        elif low == 1 and high == count:
            listed = ",".join(map(str, range(1, count + 1))) if count <= _LISTED_CLASSES else f"1,...,{count}"
            hint = f"labels 1..{count} need classes=range(1, {count + 1}) (--classes {listed})"
            options = f"--classes {listed}" if count <= _LISTED_CLASSES else ""
        elif count == 2:
            hint += "; more than two classes need a column of probabilities each"
        raise InputError(
            f"labels: {where(index)} is {y[index]:g}, but there are {count} classes; {hint}", options=options
        )
    # Signed integers of the size they came in where they fit: no wider, no copy
    if y.dtype.kind == "i":
        return y
    signed: np.dtype[Any] = np.dtype(f"i{y.dtype.itemsize}") if y.dtype.kind in "ub" else np.dtype(np.intp)
    fits = y.dtype.kind in "ub" and int(high) <= np.iinfo(signed).max
    return y.view(signed) if fits and y.dtype.isnative else y.astype(np.intp)


def _labels_by_name(y: NDArray[Any], classes: tuple[object, ...]) -> Indices:
    """Return the index of each label in `classes`, shape (n,); refuse labels that are not among them.

    >>> _labels_by_name(np.array(["dog", "cat"]), ("cat", "dog"))
    array([1, 0])
    """
    position = {name: i for i, name in enumerate(classes)}
    values, inverse = distinct(y, "labels")
    unknown = next((i for i, value in enumerate(values) if value not in position), None)
    if unknown is not None:
        row = int(np.flatnonzero(inverse == unknown)[0])
        listed = ", ".join(map(shown, classes[:8])) + (", ..." if len(classes) > 8 else "")
        numbered = y.dtype.kind in "iu" and all(isinstance(name, str) for name in classes)
        remedy = "correct the label or the names of the classes"
        if numbered:
            remedy = "labels given as class indices need no classes=, or use classes[label]"
        raise InputError(
            f"labels: row {row} is {shown(values[unknown])}, which is not among the {len(classes)} classes ({listed}); {remedy}"
        )
    return np.array([position[value] for value in values], dtype=np.intp)[inverse]


def check_probabilities(probs: Floats, *, sums: bool = True) -> None:
    """Check class probabilities (n, k >= 2): in [0, 1] and (unless sums=False) each row summing to 1 within 0.001.

    Rows computed in half precision may be off by 0.01. One pass in cache-sized blocks.

    >>> check_probabilities(np.array([[0.5, 0.5]]))
    >>> check_probabilities(np.array([[0.5, 0.25]]), sums=False)
    """
    rows, count = probs.shape
    if count < 2:
        raise InputError("probabilities have one column; pass a 1-D array of P(positive), or one column per class")
    if not sums:
        refuse_outside_unit(probs, "probabilities")
        return
    step = max(1, _BLOCK_BYTES // (count * probs.dtype.itemsize))
    ones: Floats = np.ones(count, np.float32 if probs.dtype == np.float32 else np.float64)
    for start in range(0, rows, step):
        block = probs[start : start + step]
        low = block.min()
        deviation = np.abs(block @ ones - 1)
        if low >= 0 and deviation.max() <= SUM_TOLERANCE and block.max() <= 1:  # NaN fails all of them
            continue
        refuse_outside_unit(probs, "probabilities")
        tolerance = np.where(_half_precision(block), HALF_TOLERANCE, SUM_TOLERANCE)
        deviation[deviation <= tolerance] = 0.0
        if deviation.max() == 0:
            continue
        row = int(deviation.argmax())
        total = float(block[row].sum(dtype=np.float64))
        raise InputError(
            f"probabilities of row {start + row} sum to {total:.6g}, not 1 (tolerance {tolerance[row]:g}); "
            "normalise them, declare normalized=False (--unnormalised), or use Predictions.from_logits for logits"
        )


def _half_precision(block: Floats) -> NDArray[np.bool_]:
    """Find rows (n,) of float16 or float32 probabilities with at most 11 significant bits each; none in float64.

    >>> _half_precision(np.array([[0.5, 0.5], [0.1, 0.9]], np.float32))
    array([ True, False])
    """
    if block.dtype.itemsize > 4:
        return np.zeros(len(block), bool)
    wide = block.astype(np.float64)
    split = wide * HALF_SPLIT
    return (split - (split - wide) == wide).all(axis=1)


def warn_of_probabilities(logits: Floats) -> None:
    """Warn if 10 or more rows of logits all lie in [0, 1] and, with a column per class, each row sums to 1 within 0.001."""
    if len(logits) < SUSPICIOUS_ROWS or logits.min() < 0 or logits.max() > 1:
        return
    if logits.ndim == 1 or np.allclose(logits.sum(axis=1, dtype=np.float64), 1, atol=SUM_TOLERANCE):
        warnings.warn(LOOK_LIKE_PROBABILITIES, TruecalWarning, stacklevel=3)


def refuse_other_order(**arguments: object) -> None:
    """Raise InputError for pandas objects with the same index in another order: rows are paired by position.

    Each argument is compared with the one before it; objects without an index, and other indexes, pass.
    """
    indexed: list[tuple[str, Any]] = []
    for name, value in arguments.items():
        if hasattr(value, "iloc"):
            indexed.append((name, value.index))  # type: ignore[attr-defined]
    for (first, index), (name, other) in pairwise(indexed):
        if len(index) == len(other) and not index.equals(other) and bool(index.isin(other).all()):
            raise InputError(
                f"{name} and {first} have the same index in another order, and rows are paired by position; "
                f"give {name}.loc[{first}.index], or both without index (.to_numpy())"
            )


def check_finite(logits: Floats) -> None:
    """Refuse logits that are NaN or +inf; -inf is allowed (a class ruled out) unless a row of classes has nothing else.

    >>> check_finite(np.array([[0.0, -np.inf]]))
    >>> check_finite(np.array([0.0, np.nan]))
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: logits: row 1 is nan; remove or repair such rows before measuring
    """
    with np.errstate(over="ignore", invalid="ignore"):  # inf and nan ask for a closer look
        total = logits.sum(dtype=np.float64)
    if np.isfinite(total):
        return
    wrong = np.isnan(logits) | (logits == np.inf)
    if wrong.any():
        index = _first_true(wrong)
        raise InputError(f"logits: {where(index)} is {logits[index]}; remove or repair such rows before measuring")
    if logits.ndim == 2:
        ruled_out = np.flatnonzero(np.isneginf(logits).all(axis=1))
        if len(ruled_out):
            raise InputError(f"logits: every class of row {ruled_out[0]} is -inf")


def refuse_swapped(y_true: ArrayLike, y_prob: ArrayLike, remedy: str) -> None:
    """Refuse labels that are fractions beside probabilities that are whole numbers or have fewer dimensions: they are swapped.

    >>> refuse_swapped([0.2, 0.8], [0, 1], "y_true comes first")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: the labels are fractions and the probabilities whole numbers: the arguments are swapped;
    y_true comes first
    """
    labels, probs = as_array(y_true, "labels"), as_array(y_prob, "probabilities")
    if labels.dtype.kind not in "iubf" or probs.dtype.kind not in "iubf" or not labels.size or not probs.size:
        return
    if labels.dtype.kind != "f" or not ((labels > 0) & (labels < 1)).any():
        return
    two_d_first = labels.ndim == 2 and labels.shape[1] > 1 and probs.ndim == 1
    whole_numbers = probs.ndim == 1 and bool((probs == np.floor(probs)).all())
    if two_d_first or (labels.ndim == 1 and whole_numbers):
        raise InputError(
            f"the labels are fractions and the probabilities whole numbers: the arguments are swapped; {remedy}"
        )
