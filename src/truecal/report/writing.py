"""Files written whole or not at all."""

import os
from pathlib import Path

from truecal.errors import FileError


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write beside the target under another name, then rename: a reader sees the old file or the new one, never half of one."""
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "it is a directory")
        with open(part, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return target
