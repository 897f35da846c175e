"""Batches of a watch from predictions, sketches, a scan, or parts of these: one batch per group and class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError, printable
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.selection import group_values
from truecal.watch.e_processes import Batch
from truecal.watch.findings import Group

MISSING = "(missing)"  # name of the group of rows without a value
MAX_CLASSES = 10  # by choice: of a class-wise watch: about 10 kB of state each


@dataclass(frozen=True)
class Target:
    """What the scores of a batch are of: the kind of the lens ("top", "class" or "classes"), its words, the number of classes.

    `names` are those of the classes, None where unknown.
    """

    kind: str
    words: str
    classes: int
    names: tuple[str, ...] | None = None

    def refuse_other(self, other: Target) -> None:
        """Raise InputError if another target differs in lens, number of classes, or (where both know them) class names.

        >>> Target("top", "top label", 3).refuse_other(Target("top", "top label", 4))
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: the watch judges 'top label' of 3 classes, this batch 'top label' of 4; watch one
        lens and one set of classes in one state
        """
        if (self.kind, self.words, self.classes) != (other.kind, other.words, other.classes):
            raise InputError(
                f"the watch judges '{self.words}' of {self.classes} classes, this batch '{other.words}' of {other.classes}; "
                "watch one lens and one set of classes in one state"
            )
        if self.names is not None and other.names is not None and self.names != other.names:
            raise InputError(
                f"the classes of the watch are {_join_names(self.names)}, those of this batch {_join_names(other.names)}; "
                "give them in the same order, or start another watch"
            )


@dataclass(frozen=True)
class Incoming:
    """Batches of every group, one per class where classes are watched, with the weights of the classes.

    `shares` and `labels` have one entry per class: (1.0,) and (None,) for one outcome per row.
    """

    batches: dict[Group, tuple[Batch, ...]]
    shares: tuple[float, ...]
    labels: tuple[str | None, ...]  # of the classes
    target: Target | None  # None for sketches, which do not store it
    dropped: int = 0  # rows without a label


def read(data: Any, lens: Lens | None, by: tuple[str, ...]) -> Incoming:
    """Convert predictions, a sketch, a scan, a mapping of groups to sketches, or a list of these, to batches by group.

    The items of a list are parts of one batch and are added; other types are refused. `lens` None is the default lens of
    predictions; `by` are the columns that name groups, () for none. `dropped` of the result counts the rows without a label that
    a scan left out.
    """
    if isinstance(data, (list, tuple)):
        return _join_parts([read(part, lens, by) for part in data])
    if isinstance(data, tc.Predictions):
        return _read_predictions(data, lens, by)
    if isinstance(data, tc.engines.Scan):
        return _read_scan(data, lens, by)
    if isinstance(data, tc.Sketch):
        return _read_sketches({(): data}, by)
    if isinstance(data, Mapping) and all(isinstance(sketch, tc.Sketch) for sketch in data.values()):
        groups = [_group(key) for key in data]
        _refuse_equal(groups, "groups")
        return _read_sketches(dict(zip(groups, data.values(), strict=True)), by)
    raise InputError(
        "a watch takes Predictions, a Sketch, a Scan, a mapping of groups to sketches, or a list of these, "
        f"not {type(data).__name__}"
    )


def _read_predictions(preds: tc.Predictions, lens: Lens | None, by: tuple[str, ...]) -> Incoming:
    """Split predictions into groups by the columns `by`, and make a batch per group and class of the lens; refuse weights.

    `lens` None is the default lens of the predictions. Labels are names of classes where each is watched, else (None,).
    """
    judge = default_lens(preds) if lens is None else lens
    if preds.weights is not None:
        raise InputError(
            "the evidence of a watch needs unweighted rows; leave out the weights, or watch each weight class separately"
        )
    target = Target(judge.pushed_down().kind, judge.describe(preds), preds.class_count, _names(preds.classes))
    shares = judge.shares(preds)
    groups = {group: preds.take(rows) for group, rows in _group_rows(preds, by).items()}
    batches = {group: tuple(_read_sample(sample) for sample in judge.samples(rows)) for group, rows in groups.items()}
    labels = [preds.class_name(k) for k in range(preds.class_count)] if shares is not None else [None]
    return Incoming(batches, _shares(shares), tuple(labels), target)


def _read_sample(sample: tc.lenses.Sample) -> Batch:
    """Make the batch of a sample of one probability per row: of single rows, or of clusters where the sample has units."""
    if sample.units is None:
        return Batch.from_sketch(tc.Sketch.from_arrays(sample.scores, sample.outcomes))
    return Batch.from_units(sample.scores.astype(np.float64), sample.outcomes.astype(np.float64), sample.units)


def _group_rows(preds: tc.Predictions, by: tuple[str, ...]) -> dict[Group, Any]:
    """Return the row indices, ascending, of every group (values of columns as text), groups sorted; without `by`, all under ().

    >>> preds = tc.Predictions.from_probs([0.2, 0.4, 0.6], [0, 1, 1], columns={"site": ["b", "a", "b"]})
    >>> _group_rows(preds, ("site",))
    {('a',): array([1]), ('b',): array([0, 2])}
    """
    if not by:
        return {(): np.arange(len(preds))}
    keys = list(zip(*(_values_as_text(preds, name) for name in by), strict=True))
    rows_of: dict[Group, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    return {key: np.array(rows_of[key]) for key in sorted(rows_of)}


def _values_as_text(preds: tc.Predictions, name: str) -> list[str]:
    """Return the values of a column as text, one per row; refuse two values with the same text.

    >>> _values_as_text(tc.Predictions.from_probs([0.2, 0.4], [0, 1], columns={"ward": [1, 2]}), "ward")
    ['1', '2']
    """
    values, codes = group_values(preds, name)
    texts = [_value_text(value) for value in values]
    _refuse_equal([text for text in texts if text != MISSING], f"values of column {name!r}")
    return [texts[i] for i in codes]


def _refuse_equal(keys: Sequence[object], what: str) -> None:
    """Raise InputError if a key occurs twice: the state distinguishes groups by text. `what` names the keys in the message.

    >>> _refuse_equal(["1", "2", "1"], "groups")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: two groups read '1', as a number and its text do; give them one type
    """
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated is not None:
        raise InputError(f"two {what} read {repeated!r}, as a number and its text do; give them one type")


def _read_scan(scan: tc.engines.Scan, lens: Lens | None, by: tuple[str, ...]) -> Incoming:
    """Make batches of the groups of a scan, (missing) for None; refuse columns other than `by`, and another kind of lens."""
    if tuple(scan.by) != by:
        raise InputError(
            f"the watch groups by {_join_names(by)} and the scan by {_join_names(scan.by)}; scan with the same by="
        )
    kind = scan.lens.pushed_down().kind
    if lens is not None and lens.pushed_down().kind != kind:
        raise InputError(f"the watch was given {lens!r} and the scan {scan.lens!r}; scan with the lens of the watch")
    batches = {
        tuple(map(_value_text, group)): tuple(_read_sketch(sketch) for sketch in sketches)
        for group, sketches in scan.sketches.items()
    }
    labels = tuple(str(k) for k in range(scan.classes)) if scan.shares is not None else (None,)
    target = Target(kind, scan.lens_name, scan.classes)
    return Incoming(dict(sorted(batches.items())), _shares(scan.shares), labels, target, scan.dropped)


def _read_sketches(sketches: Mapping[Group, tc.Sketch], by: tuple[str, ...]) -> Incoming:
    """Make a batch of every sketch that has rows, groups sorted; refuse keys that have not one value for each column of `by`.

    >>> list(_read_sketches({("a",): tc.Sketch.from_arrays([0.5], [1])}, ("site",)).batches)
    [('a',)]
    """
    if any(len(group) != len(by) for group in sketches):
        data = "a sketch for all rows" if any(not group for group in sketches) else "sketches of groups"
        expected = f"groups by {_join_names(by)}: pass a mapping of groups to sketches" if by else "has no groups"
        raise InputError(f"got {data}, but the watch {expected}")
    batches: dict[Group, tuple[Batch, ...]] = {
        group: (_read_sketch(sketch),) for group, sketch in sorted(sketches.items()) if sketch.cells
    }
    return Incoming(batches, (1.0,), (None,), None)


def _read_sketch(sketch: tc.Sketch) -> Batch:
    """Make the batch of a sketch, each of its rows counted once; refuse a sketch of weighted rows.

    >>> _read_sketch(tc.Sketch.from_arrays([0.5, 0.5], [0, 1])).rows
    2
    """
    if not np.array_equal(sketch.sums["n"], sketch.sums["w"]):
        raise InputError("the sketch holds weighted rows; the evidence of a watch needs unweighted rows")
    return Batch.from_sketch(sketch)


def _join_parts(parts: Sequence[Incoming]) -> Incoming:
    """Add up parts of one batch, group by group and class by class; refuse no parts, and parts of different lens or classes.

    A group may be missing from some parts. Shares and labels are those of the first part, the target that of the first with one.
    """
    if not parts:
        raise InputError("an empty list holds no batch; pass at least one part")
    first = parts[0]
    batches: dict[Group, tuple[Batch, ...]] = {}
    target = next((part.target for part in parts if part.target is not None), None)
    for part in parts:
        if target is not None and part.target is not None:
            target.refuse_other(part.target)
        if part.shares != first.shares:
            raise InputError("some parts of the batch watch every class and others one score; use one lens")
        for group, parts_of_group in part.batches.items():
            before = batches.get(group)
            batches[group] = parts_of_group if before is None else tuple(map(_add_batches, before, parts_of_group))
    return replace(first, batches=dict(sorted(batches.items())), target=target, dropped=sum(p.dropped for p in parts))


def _add_batches(first: Batch, second: Batch) -> Batch:
    """Add two batches cell by cell; refuse batches with clusters, which both may share."""
    if first.units is not None or second.units is not None:
        raise InputError("parts with clusters cannot be joined, for a cluster may be in several; join the rows first")
    return first + second


def _shares(shares: Any) -> tuple[float, ...]:
    """Return the weights of the classes as floats, (1.0,) for None (one outcome per row); refuse more than 10 classes.

    >>> _shares(None), _shares(np.array([0.25, 0.75]))
    ((1.0,), (0.25, 0.75))
    """
    if shares is not None and len(shares) > MAX_CLASSES:
        raise InputError(
            f"every class needs evidence of its own, and that of {len(shares)} classes would not fit into 200 kB of state per "
            f"group; at most {MAX_CLASSES} can be watched together: watch TopLabel(), or single classes by OneClass(name), one "
            "state each"
        )
    return (1.0,) if shares is None else tuple(float(share) for share in shares)


def _group(key: Any) -> Group:
    """Return a key, a tuple of values or a single one, as a tuple of texts.

    >>> _group(("BR", 3)), _group(None)
    (('BR', '3'), ('(missing)',))
    """
    return tuple(map(_value_text, key)) if isinstance(key, tuple) else (_value_text(key),)


def _value_text(value: object) -> str:
    """Return a value as printable text, "(missing)" for a missing one.

    >>> _value_text(3), _value_text(float("nan"))
    ('3', '(missing)')
    """
    return MISSING if validation.is_missing(value) else printable(value)


def _names(classes: Sequence[object] | None) -> tuple[str, ...] | None:
    """Return class names as texts; None for None.

    >>> _names(["cat", 1])
    ('cat', '1')
    """
    return None if classes is None else tuple(map(str, classes))


def _join_names(names: Sequence[str]) -> str:
    """Join the first eight names by commas, with ", ..." for more; "nothing" for none.

    >>> _join_names(["a", "b"]), _join_names([])
    ('a, b', 'nothing')
    """
    return (", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")) or "nothing"
