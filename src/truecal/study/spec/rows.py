"""From a prediction file to the rows that are judged: columns found, classes chosen before the softmax, rows selected."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import InputError
from truecal.predictions import border, readers
from truecal.select import Selection
from truecal.study.spec.spec import Columns, Selected
from truecal.types import Indices


@dataclass(frozen=True, eq=False)
class Rows:
    """What a file holds, all rows and all classes: logits or probabilities, labels, and the other columns."""

    outputs: NDArray[Any]
    labels: Indices
    classes: tuple[object, ...] | None
    columns: Columns
    others: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def weights(self) -> NDArray[Any] | None:
        return None if self.columns.weight is None else self.others[self.columns.weight]

    def judged(self, kept: NDArray[np.bool_]) -> NDArray[Any]:
        """The outputs of the rows kept."""
        return self.outputs if kept.all() else self.outputs[kept]

    def predictions(
        self, kept: NDArray[np.bool_], subset: tuple[object, ...] | None, probs: NDArray[Any] | None = None
    ) -> tc.Predictions:
        """The rows kept, as predictions: what the file holds, or recalibrated probabilities of all classes for these rows.

        With a subset of classes, rows of other labels are left out and the logits are restricted to the subset before the
        softmax. Recalibrated probabilities are divided by what the subset has of them, which is the same.
        """
        outputs = self.judged(kept) if probs is None else probs
        labels, classes = self.labels[kept], self.classes
        others = {name: column[kept] for name, column in self.others.items()}
        if subset is not None:
            outputs, labels, classes, others = _subset(outputs, labels, classes, others, subset)
        logits = probs is None and self.columns.kind == "logits"
        if probs is not None and subset is not None:
            outputs = _shared_out(outputs)
        if probs is not None and self.outputs.ndim == 1:
            outputs = outputs[:, 1]
        build = tc.Predictions.from_logits if logits else tc.Predictions.from_probs
        weight, cluster = self.columns.weight, self.columns.cluster
        preds = build(
            outputs,
            labels,
            weights=None if weight is None else others.pop(weight),
            clusters=None if cluster is None else others.pop(cluster),
            columns=others,
        )
        return replace(preds, classes=classes)


def load_rows(path: Path, columns: Columns) -> Rows:
    """Read one file."""
    outputs, raw, others, stars = _npz(path, columns) if path.suffix.lower() == ".npz" else _table(path, columns)
    names = columns.classes if columns.classes is not None or not _is_text(raw) else stars
    count = 2 if outputs.ndim == 1 else outputs.shape[1]
    labels, classes = index_labels(raw, len(outputs), names, count)
    if not np.isfinite(outputs).all():  # rows are named as the file counts them
        (tc.Predictions.from_logits if columns.kind == "logits" else tc.Predictions.from_probs)(outputs, labels)
    return Rows(outputs, labels, classes, columns, others)


def _shared_out(probs: NDArray[Any]) -> NDArray[Any]:
    total = probs.sum(axis=1, keepdims=True)
    if not total.all():
        row = int(np.flatnonzero(total[:, 0] == 0)[0])
        raise InputError(f"recalibrated row {row} gives the whole subset of classes probability 0")
    return np.asarray(probs / total)


def index_labels(
    raw: NDArray[Any], rows: int, names: tuple[object, ...] | None, count: int
) -> tuple[Indices, tuple[object, ...] | None]:
    """Labels as columns, and the classes' names. Numeric labels are columns unless the names are numbers too."""
    classes = border.check_classes(names, count)
    numbered = classes is not None and not all(isinstance(name, (int, float)) for name in classes)
    by_position = numbered and not _is_text(raw)
    return border.check_labels(raw, rows, None if by_position else classes, count), classes


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind not in "iubf"


def _npz(path: Path, columns: Columns) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]], None]:
    held = readers.read_arrays(path)
    outputs, labels = held[str(columns.outputs)], held[columns.label]
    kept = {
        name: a for name, a in held.items() if a.shape == labels.shape and name not in (columns.outputs, columns.label)
    }
    return outputs, labels, kept, None


def _table(
    path: Path, columns: Columns
) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]], tuple[str, ...] | None]:
    frame = readers.read_frame(path)
    names, stars = readers.matching(frame.columns, columns.outputs, "predictions")
    for name in (*names, columns.label):
        nulls = frame[name].null_count()
        if nulls:
            raise InputError(f"column {name!r} has {nulls} missing values; drop or fill those rows")
    outputs = frame[names[0]].to_numpy() if len(names) == 1 else frame.select(names).to_numpy()
    kept = {name: frame[name].to_numpy() for name in frame.columns if name not in {*names, columns.label}}
    return outputs, frame[columns.label].to_numpy(), kept, None if stars is None else tuple(stars)


def _subset(
    outputs: NDArray[Any],
    labels: Indices,
    classes: tuple[object, ...] | None,
    others: dict[str, NDArray[Any]],
    subset: tuple[object, ...],
) -> tuple[NDArray[Any], Indices, tuple[object, ...], dict[str, NDArray[Any]]]:
    if outputs.ndim != 2:
        raise InputError("a subset of classes needs one column of logits per class")
    at = subset_positions(subset, classes, outputs.shape[1])
    place = np.full(outputs.shape[1], -1, np.intp)
    place[at] = np.arange(len(at))
    kept = place[labels] >= 0
    if not kept.any():
        raise InputError("no row has a label in the subset of classes")
    names = tuple(index if classes is None else classes[index] for index in at)
    return outputs[kept][:, at], place[labels[kept]], names, {name: a[kept] for name, a in others.items()}


def subset_positions(subset: tuple[object, ...], classes: tuple[object, ...] | None, count: int) -> list[int]:
    """The columns of some classes, given by name, or by column where they have no names."""
    position = {str(name): i for i, name in enumerate(range(count) if classes is None else classes)}
    missing = [name for name in subset if str(name) not in position]
    if missing:
        raise InputError(f"there is no class {missing[0]!r} among the {count} classes")
    return [position[str(name)] for name in subset]


def make_selection(selected: Selected, preds: tc.Predictions | None = None) -> Selection:
    """The selection of truecal.select that a study file describes; class names are found among those of `preds`."""
    given = dict(selected.arguments)
    if selected.kind == "by_label":
        return tc.by_label(*(class_named(name, preds) for name in _listed(given.get("classes", ()))))
    if selected.kind == "by_output":
        return tc.by_output(class_named(given.pop("class", None), preds), **_limits(given))
    values = _listed(given.pop("values", ()))
    if "column" not in given:
        raise InputError("by_column needs 'column', the name of the column")
    return tc.by_column(str(given.pop("column")), *values, **_limits(given))


def class_named(word: object, preds: tc.Predictions | None) -> object:
    """The class a study file means: in YAML '1', 1 and the name of a class may all be the same word."""
    if preds is None or word is None:
        return word
    known = preds.classes or range(preds.class_count)
    return {str(name): name for name in known}.get(str(word), word)


def _listed(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    for name in ("low", "high"):
        value = given.get(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{name} must be a number, not {value!r}")
    return given
