"""Every exception and warning of truecal.

TruecalError
├── InputError            (also a ValueError)   what was passed in cannot be judged; the message names the row and the remedy
│   └── FileError                               a file is missing, damaged, or of a version this release cannot read
└── MissingExtraError     (also an ImportError) an optional package is needed; the message says how to install it

TruecalWarning            (also a UserWarning)  the answer stands, but read it with care
"""

from importlib import import_module
from typing import Any

# Optional packages by the name they are imported under: what to call them, and the extra that brings them.
_EXTRAS = {
    "rich": ("rich", "cli"),
    "click": ("click", "cli"),
    "polars": ("polars", "files"),
    "sklearn": ("scikit-learn", "sklearn"),
    "matplotlib": ("matplotlib", "plot"),
    "vl_convert": ("vl-convert-python", "report"),
    "yaml": ("PyYAML", "study"),
    "torch": ("torch", "torch"),
    "torchmetrics": ("torchmetrics", "torchmetrics"),
    "duckdb": ("duckdb", "duckdb"),
    "onnx": ("onnx", "onnx"),
}


_LONGEST = 3000


def printable(text: object) -> str:
    r"""Text of which no control character can steer a terminal or start a line of its own: names and values come from data.

    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    words = str(text)
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def _from_checkout() -> bool:
    """Whether truecal was installed from a folder, not from an index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("truecal").read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return origin is not None and "dir_info" in json.loads(origin)


class TruecalError(Exception):
    """Root of everything truecal raises on purpose. A message that quotes data at any length is cut to what a person can read."""

    def __init__(self, message: object = "") -> None:
        text = "\n".join(map(printable, str(message).split("\n")))
        super().__init__(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 40]} ... ({len(text):,} characters)")


class InputError(TruecalError, ValueError):
    """The input cannot be judged as it is."""


class FileError(InputError):
    """A file cannot be read or written as asked."""


class MissingExtraError(TruecalError, ImportError):
    """An optional package is not installed."""

    @classmethod
    def of(cls, package: str, extra: str) -> "MissingExtraError":
        """The error for a package that an extra of truecal brings."""
        local = f", or in the checkout: pip install -e '.[{extra}]'" if _from_checkout() else ""
        return cls(f"this needs {package}; install it with: pip install 'truecal[{extra}]'{local}")

    @classmethod
    def behind(cls, error: ModuleNotFoundError) -> "MissingExtraError | None":
        """The error behind a failed import, where the module that is missing belongs to an extra."""
        entry = _EXTRAS.get((error.name or "").partition(".")[0])
        return None if entry is None else cls.of(*entry)


class TruecalWarning(UserWarning):
    """The answer stands, but read it with care."""


def extra(module: str, name: str = "") -> Any:
    """An optional module, imported on use; where it is missing, the error names the extra that brings it, or `name`."""
    try:
        return import_module(module)
    except ImportError as error:
        package, usual = _EXTRAS[module.partition(".")[0]]
        raise MissingExtraError.of(package, name or usual) from error
