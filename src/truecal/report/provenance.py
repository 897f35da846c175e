"""Where a page came from: versions, options, the command, and a fingerprint of the data."""

import hashlib
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from truecal.predictions import Predictions
from truecal.profile import Profile

_PACKAGES = ("truecal", "numpy", "scipy", "scikit-learn", "polars", "vl-convert-python")


def versions() -> dict[str, str]:
    """Python and the packages that had a part in the numbers or the page, where installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def fingerprint(data: Predictions | Profile) -> str:
    """SHA-256 of what was judged: the same rows in the same order and precision give the same fingerprint.

    >>> import truecal as tc
    >>> a, b = (tc.Predictions.from_probs([0.5, p], [0, 1]) for p in (0.25, 0.26))
    >>> fingerprint(a) == fingerprint(a), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    arrays = (
        (data.probs, data.labels, data.weights)
        if isinstance(data, Predictions)
        else (data.scores, data.outcomes, data.weights)
    )
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
