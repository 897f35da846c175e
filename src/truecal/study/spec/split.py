"""Which rows recalibrators learn from: a fraction of every class, drawn once and the same for all models of a dataset."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.types import Indices


def held_out(labels: Indices, fraction: float, seed: int) -> NDArray[np.bool_]:
    """True for the rows to learn from: floor(fraction * n) of them, and of every class its share to within one row.

    Depends on nothing but labels and seed, so models with the same labels are fitted, and judged, on the same rows.

    >>> import numpy as np
    >>> mask = held_out(np.repeat([0, 1], [10, 30]), 0.2, seed=0)
    >>> mask[:10].sum(), mask[10:].sum()
    (np.int64(2), np.int64(6))
    """
    n = len(labels)
    shuffled = np.random.default_rng(seed).permutation(n)
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    steps = np.floor(np.arange(n + 1) * fraction + 1e-9)  # a step up in every 1 / fraction rows
    chosen = np.zeros(n, bool)
    chosen[order[np.diff(steps) > 0]] = True
    if not chosen.any() or chosen.all():
        raise InputError(f"{fraction:g} of {n} rows leaves nothing to learn from, or nothing to judge; give more rows")
    return chosen


def labels_digest(labels: Indices) -> str:
    """Labels in a few letters: files that agree in them have the same rows, as far as labels tell."""
    return hashlib.blake2b(np.ascontiguousarray(labels, np.int64).tobytes(), digest_size=16).hexdigest()
