"""Where a page came from: versions, options, the command, and a fingerprint of the data."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from numpy.typing import NDArray

_PACKAGES = ("truecal", "numpy", "scipy", "scikit-learn", "polars", "jinja2", "vl-convert-python")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that compute or render pages, by name.

    >>> "python" in versions(), "numpy" in versions()
    (True, True)
    """
    installed = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def now() -> str:
    """Return the time in UTC, such as "2026-05-01 12:00 UTC".

    >>> len(now())
    20
    """
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True)
class Provenance:
    """When a page was made, from which data and files, by which command and options, with which versions.

    `fingerprints` are of the arrays that were judged, `files` SHA-256 of whole files, as sha256sum gives them.
    """

    fingerprints: Mapping[str, str]
    command: str | None
    options: Mapping[str, object]
    files: Mapping[str, str] = field(default_factory=dict)
    made: str = field(default_factory=now)
    versions: Mapping[str, str] = field(default_factory=versions)

    def lines(self, otherwise: str) -> list[tuple[str, str]]:
        """Return (title, text) of files, command, options other than None, and versions; `otherwise` if there is no command.

        >>> Provenance({}, None, {"level": 0.95, "by": None}, {"a.csv": "12ab"}).lines("written by a program")[:3]
        [('File a.csv', 'SHA-256 12ab'), ('Command', 'written by a program'), ('Options', 'level = 0.95')]
        """
        return [
            *((f"File {name}", f"SHA-256 {digest}") for name, digest in self.files.items()),
            ("Command", self.command or otherwise),
            ("Options", ", ".join(f"{key} = {value}" for key, value in self.options.items() if value is not None)),
            ("Versions", ", ".join(f"{name} {number}" for name, number in self.versions.items())),
        ]


def fingerprint(arrays: Sequence[NDArray[np.generic] | None]) -> str:
    """Return the SHA-256 of arrays: equal values in the same order, shape and precision give the same fingerprint.

    >>> a, b = ((np.array([0.5, p]), np.array([0, 1]), None) for p in (0.25, 0.26))
    >>> fingerprint(a) == fingerprint(a), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
