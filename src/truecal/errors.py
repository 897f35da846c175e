"""Every exception and warning of truecal.

TruecalError
├── InputError            (also a ValueError)   the input is invalid; the message names the row and the remedy
│   └── FileError                               a file is missing, damaged, or of a version this release cannot read
└── MissingExtraError     (also an ImportError) an optional package is needed; the message says how to install it

TruecalWarning            (also a UserWarning)  the result is valid, with a limitation
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Optional packages by the name they are imported under: what to call them, and the extra that brings them.
_EXTRAS = {
    "rich": ("rich", "cli"),
    "click": ("click", "cli"),
    "polars": ("polars", "files"),
    "pyarrow": ("pyarrow", "zst"),
    "sklearn": ("scikit-learn", "sklearn"),
    "matplotlib": ("matplotlib", "plot"),
    "jinja2": ("jinja2", "report"),
    "markupsafe": ("jinja2", "report"),
    "vl_convert": ("vl-convert-python", "report"),
    "yaml": ("PyYAML", "study"),
    "torch": ("torch", "torch"),
    "torchmetrics": ("torchmetrics", "torchmetrics"),
    "duckdb": ("duckdb", "duckdb"),
    "onnx": ("onnx", "onnx"),
}


_MAX_MESSAGE = 3000  # by choice: characters of a message; longer ones are shortened


def printable(text: object) -> str:
    r"""Escape control characters, so that names and values from data cannot control a terminal or start a line.

    Parameters
    ----------
    text : object
        What is printed.

    Returns
    -------
    text : str
        The same with escapes.

    Examples
    --------
    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    words = str(text)
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def _from_checkout() -> bool:
    """Whether truecal was installed from a folder, or is not installed."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("truecal").read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return origin is not None and "dir_info" in json.loads(origin)


class TruecalError(Exception):
    """Base class of all errors that truecal raises. Control characters in messages are escaped, long messages shortened."""

    def __init__(self, message: object = "") -> None:
        """Store a message with control characters escaped, cut to the largest length with its number of characters.

        >>> str(TruecalError("a" + chr(7))) == "a" + chr(92) + "x07"
        True
        """
        text = "\n".join(map(printable, str(message).split("\n")))
        super().__init__(
            text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE - 40]} ... ({len(text):,} characters)"
        )


class InputError(TruecalError, ValueError):
    """The input is invalid; the message names the row, the value and the remedy.

    `options` are the command-line options that would mend it, as text; "" if none would.
    """

    def __init__(self, message: object = "", *, options: str = "") -> None:
        """Store a message, and `options`, those of the command line that remedy it."""
        super().__init__(message)
        self.options = options


class FileError(InputError):
    """A file cannot be read or written."""


class MissingExtraError(TruecalError, ImportError):
    """An optional package is not installed."""

    @classmethod
    def of(cls, package: str, extra: str) -> MissingExtraError:
        """Return the error that names a missing package and the extra of truecal that installs it."""
        local = f", or in the checkout: pip install -e '.[{extra}]'" if _from_checkout() else ""
        return cls(f"this needs {package}; install it with: pip install 'truecal[{extra}]'{local}")

    @classmethod
    def behind(cls, error: ModuleNotFoundError) -> MissingExtraError | None:
        """Return the error for a failed import, if the package belongs to an extra; else None."""
        entry = _EXTRAS.get((error.name or "").partition(".")[0])
        return None if entry is None else cls.of(*entry)


class TruecalWarning(UserWarning):
    """The result is valid, with a limitation that the message describes."""


def extra(module: str, name: str = "") -> Any:
    """Import an optional module; where it is missing, name the extra that brings it.

    Parameters
    ----------
    module : str
        Name of the module.
    name : str, default ""
        Name of the extra, where it is not the usual one of the package.

    Returns
    -------
    module : module
        The imported module.

    Raises
    ------
    MissingExtraError
        The package is not installed.

    Examples
    --------
    >>> extra("sklearn").__name__
    'sklearn'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package, usual = _EXTRAS[module.partition(".")[0]]
        raise MissingExtraError.of(package, name or usual) from error
