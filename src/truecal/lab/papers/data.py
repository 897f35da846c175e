"""The outputs of real networks that an experiment is given with --data: a test split, and a validation split where there is one."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.types import Float64s, Floats

_PREFIXES = {"test": ("test_", ""), "validation": ("val_", "validation_")}


@dataclass(frozen=True)
class Outputs:
    """Predictions of one split, and the logits behind them where the file has logits."""

    preds: tc.Predictions
    logits: Floats | None = None

    def logits_or_logs(self) -> Floats:
        """Logits, or log probabilities, which are logits up to a constant per row."""
        if self.logits is not None:
            return self.logits
        probs = self.preds.probs
        both = np.stack([1.0 - probs, probs], axis=1) if self.preds.binary else probs
        return np.asarray(np.log(np.maximum(both, np.finfo(np.float64).tiny)), dtype=np.float64)

    def top(self) -> tuple[Float64s, Float64s]:
        """Highest probability of every row, and whether it came true."""
        probs = self.preds.probs
        both = np.stack([1.0 - probs, probs], axis=1) if self.preds.binary else probs
        return both.max(axis=1).astype(np.float64), (both.argmax(axis=1) == self.preds.labels).astype(np.float64)


@dataclass(frozen=True)
class Network:
    """A trained network on its test split and, for recalibration, on its validation split."""

    test: Outputs
    validation: Outputs | None = None

    def held_out(self, experiment: str) -> Outputs:
        """The validation split; refused by name where the file has none."""
        if self.validation is None:
            raise InputError(
                f"{experiment} recalibrates on a validation split: give an .npz file with val_logits and val_labels beside "
                "test_logits and test_labels"
            )
        return self.validation


def read_network(path: str | PathLike[str]) -> Network:
    """From an .npz file of logits (or probs) and labels, or of test_logits, test_labels, val_logits and val_labels."""
    file = Path(path)
    if not file.is_file():
        raise FileError(f"no file {path}; --data takes NAME=FILE")
    with np.load(file, allow_pickle=False) as stored:
        arrays = dict(stored)
    splits = {split: _outputs(arrays, prefixes) for split, prefixes in _PREFIXES.items()}
    if splits["test"] is None:
        raise FileError(
            f"{path} holds {', '.join(arrays)}; it needs logits (or probs) and labels, or test_logits and test_labels"
        )
    return Network(splits["test"], splits["validation"])


def _outputs(arrays: Mapping[str, Floats], prefixes: tuple[str, ...]) -> Outputs | None:
    for prefix in prefixes:
        labels = arrays.get(f"{prefix}labels")
        if labels is not None and f"{prefix}logits" in arrays:
            logits = arrays[f"{prefix}logits"]
            return Outputs(tc.Predictions.from_logits(logits, labels), logits)
        if labels is not None and f"{prefix}probs" in arrays:
            return Outputs(tc.Predictions.from_probs(arrays[f"{prefix}probs"], labels))
    return None


def the_network(data: Mapping[str, Network], experiment: str) -> Network:
    """The one network of an experiment that is about one."""
    if len(data) != 1:
        raise InputError(
            f"{experiment} is about one network: give --data NAME=FILE once (.npz of logits or probs, and labels)"
        )
    return next(iter(data.values()))
