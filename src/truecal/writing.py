"""The one way files are written: whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from truecal.errors import FileError


def write_whole(path: str | os.PathLike[str], content: str | bytes | Callable[[BinaryIO], object]) -> Path:
    """Write beside the target under another name, then rename: a reader sees the old file or the new one, never half of one.

    `content` may be a function that writes into the open file.
    """
    target = Path(path)
    if target.is_dir():
        raise FileError(f"cannot write {target}: it is a directory")
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        os.fchmod(handle, 0o666 & ~_umask())
        with os.fdopen(handle, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
    return target


def _umask() -> int:
    """The permissions new files are born without (it can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
