"""The one place that reads prediction files: csv, jsonl and parquet through polars, npz through numpy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from truecal.errors import FileError, InputError, MissingExtraError
from truecal.predictions.predictions import Predictions

FRAME_FORMATS = {".csv": "csv", ".jsonl": "ndjson", ".ndjson": "ndjson", ".parquet": "parquet", ".pq": "parquet"}


def read(
    path: str | Path,
    *,
    label: str,
    probs: str | Sequence[str] | None = None,
    logits: str | Sequence[str] | None = None,
    weights: str | None = None,
    clusters: str | None = None,
    classes: Sequence[object] | None = None,
) -> Predictions:
    """Read predictions from a csv, jsonl, parquet or npz file.

    Column names (for npz: array names) are those of :meth:`Predictions.from_frame`.
    """
    file = Path(path)
    if not file.is_file():
        raise FileError(f"there is no file {file}")
    if file.suffix == ".npz":
        return _read_npz(
            file, label=label, probs=probs, logits=logits, weights=weights, clusters=clusters, classes=classes
        )
    return Predictions.from_frame(
        read_frame(file), label=label, probs=probs, logits=logits, weights=weights, clusters=clusters, classes=classes
    )


def read_frame(file: Path) -> Any:
    """The rows of a csv, jsonl or parquet file as a polars frame."""
    kind = FRAME_FORMATS.get(file.suffix.lower())
    if kind is None:
        raise FileError(f"{file.name}: unknown kind of file; use .csv, .jsonl, .parquet or .npz")
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtraError.of("polars", "files") from error
    try:
        if kind == "ndjson":
            with file.open("rb") as opened:
                return pl.read_ndjson(opened)
        return getattr(pl, f"read_{kind}")(file, glob=False)  # a name with brackets is a name
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError(f"{file.name} is not a readable {kind} file: {str(error).splitlines()[0]}") from error


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """All arrays of an npz file, without pickle."""
    file = Path(path)
    if not file.is_file():
        raise FileError(f"there is no file {file}")
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (BadZipFile, OSError, EOFError, ValueError, AttributeError) as error:  # AttributeError: a lone .npy array
        raise FileError(f"{file.name} is damaged or not an npz file") from error


def _read_npz(
    file: Path,
    *,
    label: str,
    probs: str | Sequence[str] | None,
    logits: str | Sequence[str] | None,
    weights: str | None,
    clusters: str | None,
    classes: Sequence[object] | None,
) -> Predictions:
    name = probs if probs is not None else logits
    if (probs is None) == (logits is None) or not isinstance(name, str):
        raise InputError("name the array of predictions in the npz file: probs= or logits=, one of the two")
    held = read_arrays(file)
    missing = [key for key in (name, label, weights, clusters) if key is not None and key not in held]
    if missing:
        raise InputError(f"{file.name} has no array {missing[0]!r}; it has {', '.join(held)}")
    build = Predictions.from_probs if probs is not None else Predictions.from_logits
    return build(
        held[name],
        held[label],
        weights=None if weights is None else held[weights],
        clusters=None if clusters is None else held[clusters],
        classes=classes,
    )
