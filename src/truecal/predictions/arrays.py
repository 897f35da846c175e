"""Containers of any kind as numpy arrays: lists, series, tensors, Arrow columns. What numpy would misread is refused.

Nothing is parsed: text is text, also where it spells a number. Mixed lists stay mixed; numpy alone would turn them into text.
"""

from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.errors import InputError
from truecal.types import Floats

# Tensors that numpy reads as they are.
_SHARED = {(f"torch.{kind}", "torch.strided") for kind in ("float32", "float64", "int64", "int32", "bool", "uint8")}

_TURNED = 1024  # rows turned into columns at a time


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """A numpy array without copying where possible: lists, torch tensors, series and arrays are welcome."""
    given: Any = values
    if type(given) is np.ndarray and given.dtype.kind in "biuf" and given.dtype.isnative:
        return given
    # scipy's dok_matrix is a dict, too
    if isinstance(given, (set, frozenset, dict)) and not hasattr(given, "toarray"):
        raise InputError(f"{what} are a {type(values).__name__}, which has no rows in order; give a list or an array")
    try:
        plain = _plain(values, what)
        array = np.asarray(plain)
    except InputError:
        raise
    except Exception as error:  # whatever an object raises that is asked for its array
        ragged = isinstance(values, (list, tuple)) and isinstance(error, ValueError)
        why = "the rows have different lengths" if ragged else (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{what} do not form an array: {why}") from error
    if isinstance(plain, np.ndarray) and hasattr(plain, "mask") and np.ma.is_masked(plain):  # np.ma loads late
        raise InputError(f"{what} are masked in places; remove the masked rows first")
    if array.dtype.kind in "US" and array.ndim == 1 and isinstance(plain, (list, tuple)) and _misread(plain):
        array = np.empty(len(plain), object)
        array[:] = plain
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _misread(values: Any) -> bool:
    """Whether numpy changes values of a list with text: numbers and missing values become text, a NUL at the end is lost."""
    return any(not isinstance(value, (str, bytes)) or value[-1:] in ("\0", b"\0") for value in values)


def _plain(values: Any, what: str) -> Any:
    """What numpy can read itself: tensors off their device, series and Arrow columns out of their own memory."""
    if hasattr(values, "detach"):  # a torch tensor, perhaps on a device or of a type numpy lacks (bfloat16)
        if getattr(values, "is_cpu", False) and (_spelled(values.dtype), _spelled(values.layout)) in _SHARED:
            return (values.detach() if values.requires_grad else values).numpy()
        if values.device.type == "meta":
            raise InputError(
                f"{what} are a tensor on the meta device, which holds no values; move the model to a real one"
            )
        if getattr(values, "layout", None) is not None and "strided" not in _spelled(values.layout):
            raise InputError(f"{what} are a sparse tensor; give {what}.to_dense()")
        tensor = values.dequantize() if values.is_quantized else values
        tensor = tensor.detach().cpu()
        return tensor.float().numpy() if _spelled(tensor.dtype) == "torch.bfloat16" else tensor.resolve_conj().numpy()
    if hasattr(values, "toarray"):  # a scipy.sparse matrix, which numpy would wrap whole in one object
        raise InputError(f"{what} are a sparse matrix; give {what}.toarray()")
    if isinstance(values, np.ndarray) or not hasattr(values, "to_numpy"):
        return values
    if type(values).__module__.startswith("pyarrow"):  # nulls, booleans and text cannot be lent without a copy
        return np.asarray(values.to_pylist(), object) if values.null_count else values.to_numpy(zero_copy_only=False)
    return values.to_numpy()


@lru_cache(64)
def _spelled(kind: object) -> str:
    """A type or layout of torch in words; to spell it takes longer than all the rest."""
    return str(kind)


def as_floats(values: ArrayLike, what: str) -> Floats:
    """A floating array in the precision given; whole numbers and booleans become float64."""
    array = as_array(values, what)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind == "f":
        return array if array.dtype.itemsize <= 8 else array.astype(np.float64)
    if array.dtype == object and all(map(_is_number, array.flat)):
        return array.astype(np.float64)
    for position, value in enumerate(array.flat):
        if not _is_number(value) and not _spells_number(value):
            at = tuple(int(i) for i in np.unravel_index(position, array.shape))
            raise InputError(f"{what} must be numbers: {where(at)} is {shown(value)}")
    raise InputError(f"{what} must be numbers, not text; read the column as numbers")


def _is_number(value: object) -> bool:
    """Whether a value of a mixed array is a real number that a float can hold, not text that spells one."""
    try:
        float(value if isinstance(value, (Real, Decimal, np.bool_)) else "")
    except (OverflowError, TypeError, ValueError):  # TypeError: numpy counts spans of time as whole numbers
        return False
    return True


def _spells_number(value: object) -> bool:
    """Whether a value is text that spells a finite number."""
    try:
        return isinstance(value, str) and bool(np.isfinite(float(value)))
    except ValueError:
        return False


def is_missing(value: object) -> bool:
    """None, NaN, NaT or a library's own sign of a missing value (which cannot say whether it equals itself)."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True


def shown(value: object) -> str:
    """A value in an error message: short, whatever it is."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def where(index: tuple[int, ...]) -> str:
    """Words for a place in an array of any number of dimensions."""
    names = ("the value",) if not index else (f"row {index[0]}", *(f"column {i}" for i in index[1:]))
    return ", ".join(names)


def turned(matrix: Floats) -> Floats:
    """The columns of a matrix as rows of an array of their own; some rows at a time, or each number would be read from far away."""
    columns = np.empty(matrix.shape[::-1], matrix.dtype)
    for start in range(0, len(matrix), _TURNED):
        columns[:, start : start + _TURNED] = matrix[start : start + _TURNED].T
    return columns
