"""Writing files: whole or not at all, never over an input, and under a lock where several processes write."""

import errno
import io
import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO

from truecal.errors import FileError

Content = str | bytes | Callable[[BinaryIO], object]

_DATA_ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".npz", ".gz", ".zst")  # of files in folders
_LOCK_SECONDS = 600.0  # by choice: how long a second process waits for the first
_POLL_SECONDS = 0.02  # by choice: between two attempts to take a lock
# by choice: age of unfinished files that are removed where they cannot be locked (Windows)
_ABANDONED_SECONDS = 86_400.0

# ----------------------------------------------------------------------------------------------------
# Writing whole files and folders


def write_whole(path: str | os.PathLike[str], content: Content) -> Path:
    """Write a file so that a reader sees the old one or the new one, never a part of one.

    The content goes to a temporary file beside the target, which is then renamed. A symbolic link is followed: the file that it
    points to is replaced and the link stays. The new file has the permissions and the owner of the one it replaces; other hard
    links to that one keep the old content. Devices and pipes are written to as they are. Temporary files of killed processes in the
    same folder are removed.

    Parameters
    ----------
    path : where to write.
    content : text, bytes, or a function that writes to an open file.

    Raises
    ------
    FileError
        If the target is a folder, read-only or another user's, or cannot be written.
    """
    with _named_errors(path):
        if _is_stream(path):
            with open(path, "wb") as stream:
                stream.write(_bytes_of(content))
            return Path(path)
        target = _resolve_target(path)
        before = _check_replaceable(target)
        _remove_abandoned(target.parent)
        handle, temporary = _create_temporary(target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                _write_temporary(file, content, before)
                if os.name != "nt":  # renamed while locked, so that no other process takes it for an abandoned file
                    os.replace(temporary, target)
            if os.name == "nt":  # where an open file cannot be renamed
                os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        _reached("renamed")
        _sync_folder(target.parent)
    return Path(path)


def write_folder(path: str | os.PathLike[str], write: Callable[[Path], object], replaceable: str) -> Path:
    """Write a folder so that a reader sees the old one or the new one; files of the old one do not stay.

    Parameters
    ----------
    path : the folder. One that is there is replaced only if every file in it is named `replaceable`.
    write : writes the files below the empty folder that it is given.
    replaceable : name of the files that may be replaced.

    Raises
    ------
    FileError
        The folder is a file, holds other files, or cannot be written.
    """
    with _named_errors(path):
        target = _resolve_target(path)
        check_folder(target, replaceable)
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent)
        handle, reserved = _create_temporary(target.parent)
        temporary = reserved.with_suffix(".folder")  # abandoned together with the locked file of the same name
        try:
            temporary.mkdir()
            write(temporary)
            _reached("synced")
            if target.exists():
                _exchange(temporary, target)
            else:
                temporary.rename(target)
            _reached("renamed")
            _sync_folder(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            os.close(handle)
            reserved.unlink(missing_ok=True)
    return Path(path)


def _write_temporary(file: BinaryIO, content: Content, before: os.stat_result | None) -> None:
    """Write content to an open temporary file and sync it to disk; give it owner and mode of `before`, the file it replaces.

    Text is written as UTF-8; a function is called with the file.
    """
    if before is not None and hasattr(os, "fchown"):
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
    _reached("opened")
    if callable(content):
        content(file)
    else:
        file.write(_bytes_of(content))
    file.flush()
    _reached("written")
    os.fsync(file.fileno())
    _reached("synced")


def _bytes_of(content: Content) -> bytes:
    """Return content as bytes: text as UTF-8, bytes as they are, and of a function what it writes into a buffer.

    >>> _bytes_of("a"), _bytes_of(b"a"), _bytes_of(lambda stream: stream.write(b"b"))
    (b'a', b'a', b'b')
    """
    if callable(content):  # into memory: writers of npz and Parquet seek, which a pipe cannot
        content(buffer := io.BytesIO())
        return buffer.getvalue()
    return content.encode() if isinstance(content, str) else content


def _resolve_target(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path with symbolic links resolved; refuse an empty one.

    >>> _resolve_target("a.csv").is_absolute()
    True
    >>> _resolve_target("")
    Traceback (most recent call last):
        ...
    truecal.errors.FileError: the name of the file to write is empty (is a shell variable unset?)
    """
    if not os.fspath(path):
        raise FileError("the name of the file to write is empty (is a shell variable unset?)")
    return Path(os.path.realpath(path))


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether the path is a device or a pipe, such as /dev/null or /dev/stdout; False if it does not exist.

    >>> _is_stream("there/is/no/such/file")
    False
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _check_replaceable(target: Path) -> os.stat_result | None:
    """Return the status of the file to be replaced, None if there is none.

    Raises FileError for folders, devices, read-only files and, unless for root, those of other users.

    >>> _check_replaceable(Path("there is no such file"))
    """
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
    if hasattr(os, "geteuid") and os.geteuid() not in (0, state.st_uid):
        raise FileError(f"cannot write {target}: it belongs to another user; name another file")
    return state


def _exchange(new: Path, old: Path) -> None:
    """Swap two existing folders: atomically where the system can (renameat2 of Linux), else by three renames."""
    import ctypes

    at_current_folder, exchange = -100, 2
    try:
        swap = ctypes.CDLL(None).renameat2
        if swap(at_current_folder, os.fsencode(new), at_current_folder, os.fsencode(old), exchange) == 0:
            return
    except (AttributeError, OSError, TypeError):
        pass
    aside = new.with_suffix(".old")
    old.rename(aside)
    new.rename(old)
    aside.rename(new)


def _sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk; nothing is done on Windows."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise OSError and ValueError of the block as a FileError that names the path; a FileError passes as it is."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error


def _reached(stage: str) -> None:
    """Do nothing; tests replace it to interrupt a write at "opened", "written", "synced" (before the rename) or "renamed"."""


# ----------------------------------------------------------------------------------------------------
# Temporary files: locked while their writer lives, so that those of killed writers can be found and removed


def _create_temporary(folder: Path) -> tuple[int, Path]:
    """Create and lock a file .truecal-*.part with the mode of new files of this process; return its open handle and path."""
    while True:
        path = folder / f".truecal-{secrets.token_hex(8)}.part"
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        if os.name == "nt" or (_try_lock(handle) and os.fstat(handle).st_nlink):
            return handle, path
        os.close(handle)  # another process took it for an abandoned file, before it was locked


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files and folders of processes that ended before the rename: those whose lock is free."""
    names = [name for name in os.listdir(folder) if name.startswith(".truecal-") and name.endswith(".part")]
    for path in map(folder.joinpath, names):
        try:
            if os.name == "nt":
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()
                continue
            handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # gone, or another user's
            continue
        try:
            if _try_lock(handle, without_locks=False):
                shutil.rmtree(path.with_suffix(".folder"), ignore_errors=True)
                path.unlink(missing_ok=True)
        finally:
            os.close(handle)


# ----------------------------------------------------------------------------------------------------
# Checks before anything is computed


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Refuse a file that cannot be written, or that is one of the inputs, before anything is computed.

    Parameters
    ----------
    path : where an answer is to be written.
    inputs : files, patterns and folders that are read. Links are followed. In a folder only files that may hold data count.

    Raises
    ------
    FileError
        If the file is an input, or cannot be written.
    """
    with _named_errors(path):
        if _is_stream(path):
            return
        target = _resolve_target(path)
        check_not_input(path, inputs)
        _check_replaceable(target)
        handle, temporary = _create_temporary(target.parent)  # the only test that holds for every file system
        os.close(handle)
        temporary.unlink(missing_ok=True)


def check_folder(path: str | os.PathLike[str], replaceable: str) -> None:
    """Refuse to replace a file, or a folder that holds a file of another name than `replaceable`; a missing one is accepted.

    Files in subfolders count.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise FileError(f"cannot write {target}: it is a file, and a folder is to be written; name another")
    for file in target.rglob("*"):
        if file.name != replaceable and not file.is_dir():
            raise FileError(f"cannot replace the folder {target}: it holds {file.name}; name a new folder")


def check_not_input(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse an output that is one of the inputs, also by links and patterns, or an existing data file in an input folder."""
    target = _resolve_target(path)
    for name in [os.fspath(source) for source in inputs]:
        if not name or "://" in name or "\0" in name:
            continue
        pattern = has_magic(name) and not os.path.lexists(name)
        for source in glob(name, recursive=True) if pattern else [name]:
            folder = Path(os.path.realpath(source))
            within = folder.is_dir() and folder in target.parents and target.suffix.lower() in _DATA_ENDINGS
            if folder == target or _same_file(folder, target) or (within and target.exists()):
                raise FileError(f"cannot write {path}: the command reads it; name another file")


def _same_file(first: Path, second: Path) -> bool:
    """Whether two paths are the same existing file, also by links; False if either does not exist."""
    try:
        return first.samefile(second)
    except OSError:
        return False


# ----------------------------------------------------------------------------------------------------
# Locks: one process at a time from reading a file to replacing it

_thread = threading.local()


@contextmanager
def locked(path: str | os.PathLike[str], seconds: float = _LOCK_SECONDS) -> Iterator[None]:
    """Let one process at a time read a file, change it and write it back.

    The lock is on a file `.NAME.lock` beside it, which is removed afterwards. The operating system ends it with the process, in
    whatever way: a lock file that a killed process left is taken over. On file systems without locks nothing is locked. A thread
    that holds the lock may take it again.

    Parameters
    ----------
    path : the file, which need not exist.
    seconds : how long to wait for another process.

    Raises
    ------
    FileError
        If another process still holds the lock then; it is named by its number.
    """
    target = _resolve_target(path)
    lock = target.parent / f".{target.name}.lock"
    owned: set[Path] = _thread.__dict__.setdefault("locks", set())
    if lock in owned:
        yield
        return
    with _named_errors(path):
        handle = _acquire_lock(lock, target, seconds)
    owned.add(lock)
    try:
        yield
    finally:
        owned.discard(lock)
        if os.name == "nt":
            os.close(handle)
            with suppress(OSError):  # another process may have it open
                lock.unlink()
        else:  # removed while locked: a waiting process finds it unlinked and creates another
            lock.unlink(missing_ok=True)
            os.close(handle)


def _acquire_lock(lock: Path, target: Path, seconds: float) -> int:
    """Open and lock a lock file, waiting up to `seconds`; write the process number into it and return its handle.

    Refuses to write `target` if another process still holds the lock then.
    """
    end = time.monotonic() + seconds
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666)
        if _try_lock(handle):
            if os.name == "nt" or os.fstat(handle).st_nlink:
                os.truncate(handle, 0)
                os.write(handle, str(os.getpid()).encode())
                return handle
            os.close(handle)  # its owner has just removed it
            continue
        owner = os.read(handle, 20).decode("ascii", "replace") or "of unknown number"
        os.close(handle)
        if time.monotonic() >= end:
            raise FileError(f"{target} is in use by process {owner}; wait until it has ended, then run this again")
        time.sleep(_POLL_SECONDS)


def _try_lock(handle: int, *, without_locks: bool = True) -> bool:
    """Lock an open file for this process; return whether that worked. Closing the file ends the lock.

    Another holder gives False at once; `without_locks` is returned on file systems that have no locks.
    """
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(handle, 1 << 30, os.SEEK_SET)  # a byte beyond the content, which others may read
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return without_locks and error.errno not in (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK, errno.EDEADLK)
    return True
