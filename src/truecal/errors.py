"""Every exception and warning of truecal.

TruecalError
├── InputError            (also a ValueError)   what was passed in cannot be judged; the message names the row and the remedy
│   └── FileError                               a file is missing, damaged, or of a version this release cannot read
└── MissingExtraError     (also an ImportError) an optional package is needed; the message says how to install it

TruecalWarning            (also a UserWarning)  the answer stands, but read it with care
"""


class TruecalError(Exception):
    """Root of everything truecal raises on purpose."""


class InputError(TruecalError, ValueError):
    """The input cannot be judged as it is."""


class FileError(InputError):
    """A file cannot be read or written as asked."""


class MissingExtraError(TruecalError, ImportError):
    """An optional package is not installed."""

    @classmethod
    def of(cls, package: str, extra: str) -> "MissingExtraError":
        return cls(f"this needs {package}; install it with: pip install 'truecal[{extra}]'")


class TruecalWarning(UserWarning):
    """The answer stands, but read it with care."""
