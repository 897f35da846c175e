"""A file held by one process at a time; the system frees it when the process ends, however it ends.

POSIX has `flock`. Windows locks ranges of bytes, and what is locked cannot be read by others: there one byte far behind the text is
held, so that the number of the process that holds the lock stays readable.
"""

import os
import sys
from pathlib import Path

_FAR = 1 << 30  # the byte held on Windows
_PAUSE = 0.2  # seconds between attempts where the system cannot wait by itself


class HeldError(Exception):
    """Another process holds the lock; `holder` is its number, or "unknown"."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def hold(path: Path, *, wait: bool) -> int:
    """Open the file and hold it; raises HeldError where another process does and is not waited for. os.close frees it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        _take(handle, wait=wait)
    except OSError as error:
        os.lseek(handle, 0, os.SEEK_SET)
        holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(handle)
        raise HeldError(holder) from error
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, str(os.getpid()).encode())
    return handle


if sys.platform == "win32":
    import msvcrt
    import time

    def _take(handle: int, *, wait: bool) -> None:
        while True:
            os.lseek(handle, _FAR, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    raise
                time.sleep(_PAUSE)
            else:
                return

else:
    import fcntl

    def _take(handle: int, *, wait: bool) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
