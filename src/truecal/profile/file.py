"""Profiles on disk: a versioned npz file, written whole or not at all, read without pickle."""

from pathlib import Path

import numpy as np

from truecal.errors import FileError
from truecal.predictions.readers.files import read_arrays
from truecal.profile.profile import Profile
from truecal.writing import write_whole

_FORMAT, _VERSION = "truecal.profile", 1
_ARRAYS = ("scores", "outcomes", "weights", "squares", "products")


def save_profile(profile: Profile, path: str | Path) -> None:
    """Write a profile; the file at `path` is replaced in one step."""
    arrays = {name: array for name in _ARRAYS if (array := getattr(profile, name)) is not None}
    header = {"format": np.array(_FORMAT), "version": np.array(_VERSION), "single": np.array(profile.single)}
    write_whole(path, lambda file: np.savez(file, **header, **arrays))  # type: ignore[arg-type]


def load_profile(path: str | Path) -> Profile:
    """Read what save_profile wrote."""
    file = Path(path)
    arrays = read_arrays(file)
    if str(arrays.get("format")) != _FORMAT or not {"version", "single", "scores", "outcomes"} <= arrays.keys():
        raise FileError(f"{file.name} is not a saved profile")
    if int(arrays["version"]) > _VERSION:
        raise FileError(f"{file.name} was written by a newer truecal (version {int(arrays['version'])} of the format)")
    parts = [arrays.get(name) for name in _ARRAYS]
    scores = parts[0]
    if scores is None or scores.ndim != 2 or not scores.size or not (np.diff(scores, axis=1) >= 0).all():
        raise FileError(f"{file.name} is damaged: its scores are not sorted")
    if any(a is not None and (a.ndim != 2 or a.shape[1] != scores.shape[1]) for a in parts):
        raise FileError(f"{file.name} is damaged: its arrays do not match")
    return Profile(*parts, single=bool(arrays["single"]))  # type: ignore[arg-type]
