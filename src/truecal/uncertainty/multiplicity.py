"""Many statements at once: p-values that keep the chance of any false one below alpha."""

import numpy as np

from truecal.errors import InputError
from truecal.predictions import border
from truecal.types import Float64s


def holm(p: Float64s) -> Float64s:
    """Holm's adjusted p-values (1979): sorted upwards, the i-th of k is multiplied by k - i + 1 and not below its precursor.

    >>> holm(np.array([0.04, 0.01, 0.03]))
    array([0.06, 0.03, 0.06])
    """
    p = border.as_floats(p, "p-values").astype(np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError("p-values must be a list of numbers in [0, 1]")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
