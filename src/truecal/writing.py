"""The one way files are written: whole or not at all, and only where a regular file of the user's is or can be."""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from truecal.errors import FileError


def write_whole(path: str | os.PathLike[str], content: str | bytes | Callable[[BinaryIO], object]) -> Path:
    """Write beside the target under another name, then rename: a reader sees the old file or the new one, never half of one.

    `content` may be a function that writes into the open file. A symbolic link is followed: the file it points to is replaced, the
    link stays. A file that is replaced hands on its permissions and owner. Devices, pipes, sockets, read-only files, files of
    other users and files with several names (hard links) are refused.
    """
    if not os.fspath(path):
        raise FileError("the name of the file to write is empty (is a shell variable unset?)")
    try:
        target = Path(os.path.realpath(path))
        before = _replaceable(target)
        temporary = target.parent / f".{secrets.token_hex(8)}.part"
        try:
            _write(temporary, content, before)
            _reached("synced")
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _reached("renamed")
        _sync_folder(target.parent)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
    return Path(path)


def _write(temporary: Path, content: str | bytes | Callable[[BinaryIO], object], before: os.stat_result | None) -> None:
    """The whole content under a new name, on disk; created with the permissions that the process gives to new files."""
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    with os.fdopen(handle, "wb") as file:
        if before is not None and hasattr(os, "fchown"):
            if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, before.st_uid, before.st_gid)
            os.fchmod(handle, stat.S_IMODE(before.st_mode))
        _reached("opened")
        if callable(content):
            content(file)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        _reached("written")
        os.fsync(file.fileno())


def _replaceable(target: Path) -> os.stat_result | None:
    """What is known of the file that is to be replaced, None where there is none; what must not be replaced is refused."""
    try:
        state = target.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(state.st_mode):
        raise FileError(f"cannot write {target}: it is a directory")
    if not stat.S_ISREG(state.st_mode):
        raise FileError(f"cannot write {target}: it is not a regular file; name another, or - for standard output")
    if not state.st_mode & stat.S_IWUSR:
        raise FileError(f"cannot write {target}: it is read-only; make it writable, or name another file")
    if state.st_nlink > 1:
        raise FileError(f"cannot write {target}: it has another name (a hard link), which would keep the old content")
    if hasattr(os, "geteuid") and os.geteuid() not in (0, state.st_uid):
        raise FileError(f"cannot write {target}: it belongs to another user; name another file")
    return state


def _sync_folder(folder: Path) -> None:
    """Put the new name itself on disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reached(stage: str) -> None:
    """Tests interrupt a write here: "opened", "written", "synced" (before the rename) and "renamed"."""
