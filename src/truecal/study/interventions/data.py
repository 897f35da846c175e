"""The data of a comparison: bundled digits, the same digits warped, or an .npz file of one's own; split once, for all models."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import FileError, InputError, extra
from truecal.predictions import readers
from truecal.study.interventions.config import BUNDLED, DataPlan, Plan
from truecal.study.spec.document import Problems

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
COPIES = (3, 6, 8)  # warped versions of each digit to train on, validate on, test on
_TURN, _MOVE, _SIZE, _NOISE = 30.0, 1.0, 0.2, 0.1  # degrees, pixels, share, standard deviation


@dataclass(frozen=True, eq=False)
class Part:
    """Inputs, class numbers, and the original each row was made from (its own, where nothing was warped)."""

    inputs: Images
    labels: Labels
    original: Labels


@dataclass(frozen=True, eq=False)
class Data:
    """Rows to train on, to choose and fit by, and to judge; `classes` are the names of the class numbers."""

    train: Part
    validation: Part
    test: Part
    classes: tuple[object, ...]


def load_data(plan: DataPlan) -> Data:
    """The data, split by the plan's seed. Originals are split before they are warped, so no digit is on two sides."""
    inputs, labels, classes = _digits() if plan.source in BUNDLED else _from_file(Path(plan.source))
    rng = np.random.default_rng(plan.seed)
    order = rng.permutation(len(labels))
    test, validation = round(plan.test * len(labels)), round(plan.validation * len(labels))
    sides = (order[test + validation :], order[test : test + validation], order[:test])
    if min(map(len, sides)) < 2:
        raise InputError(f"{len(labels)} rows are too few to train, validate and test on")
    parts = []
    for rows, copies in zip(sides, COPIES, strict=True):
        own = rows if plan.source != "warped-digits" else rows.repeat(copies)
        images = inputs[own]
        if plan.source == "warped-digits":
            images = _warped(images, rng)
        parts.append(Part(np.ascontiguousarray(images, np.float32), labels[own], own))
    return Data(parts[0], parts[1], parts[2], classes)


def check_plan(plan: Plan, data: Data, file: str) -> None:
    """Refuse, all at once, what in the plan does not fit the data: classes that are not there, images that are none."""
    problems = Problems(file)
    count = len(data.classes)
    probe = tc.Predictions.from_probs(np.full((1, count), 1 / count), np.array(data.classes)[:1], classes=data.classes)
    lenses, lines = plan.lenses, plan.lines

    def check_at(line: int, check: Callable[..., object], *arguments: object) -> None:
        try:
            check(*arguments)
        except InputError as error:
            problems.add(line, str(error))

    if "top_k" in lines and max(lenses.top_k) > count:
        problems.add(lines["top_k"], f"top_k is {max(lenses.top_k)}, but there are only {count} classes")
    for name, groups in lenses.groupings.items():
        check_at(lines[f"grouping {name}"], lambda g: tc.Grouping(g).group_of(probe), groups)
    for label in lenses.labels:
        check_at(lines["labels"], probe.class_index, label)
    first = next(iter(lenses.groupings.values()), {})
    if lenses.likert_of is not None and lenses.likert_of not in first:
        check_at(lines["likert_of"], probe.class_index, lenses.likert_of)
    bundled = plan.data.logits is None and plan.training.own is None
    if bundled and plan.training.network == "cnn" and data.train.inputs.ndim not in (3, 4):
        shape = data.train.inputs.shape[1:]
        problems.add(lines["model"], f"a cnn needs images, and these inputs have shape {shape}; use network: mlp")
    bins = [b for kind in ("histogram", "histogram-width") for b in plan.interventions.get(kind, ()) if b is not None]
    most = max((int(b) for b in bins), default=0)
    if most > len(data.validation.labels) // 2:
        problems.add(
            lines["data"], f"half of the {len(data.validation.labels)} validation rows cannot fill {most} bins"
        )
    problems.refuse()


def _digits() -> tuple[Images, Labels, tuple[object, ...]]:
    digits = extra("sklearn.datasets").load_digits()
    return (digits.images / 16).astype(np.float32), digits.target.astype(np.int64), tuple(range(10))


def _warped(images: Images, rng: np.random.Generator) -> Images:
    """Each image turned, moved, scaled about its middle, and roughened by noise."""
    from scipy.ndimage import affine_transform

    middle = (np.array(images.shape[1:]) - 1) / 2
    moved = np.empty_like(images)
    for i, image in enumerate(images):
        turn = np.deg2rad(rng.uniform(-_TURN, _TURN))
        cosine, sine = np.cos(turn), np.sin(turn)
        matrix = np.array([[cosine, -sine], [sine, cosine]]) / rng.uniform(1 - _SIZE, 1 + _SIZE)
        offset = middle - matrix @ (middle + rng.uniform(-_MOVE, _MOVE, 2))
        moved[i] = affine_transform(image, matrix, offset, order=1)
    return moved + rng.normal(scale=_NOISE, size=images.shape).astype(np.float32)


def _from_file(path: Path) -> tuple[Images, Labels, tuple[object, ...]]:
    held = readers.read_arrays(path)
    missing = [name for name in ("inputs", "labels") if name not in held]
    if missing:
        raise FileError(f"{path.name} has no array {missing[0]!r}; it needs inputs (n, ...) and labels (n,)")
    inputs, labels = held["inputs"], held["labels"]
    if inputs.ndim < 2 or labels.shape != inputs.shape[:1]:
        raise FileError(f"{path.name}: inputs {inputs.shape} and labels {labels.shape} must have as many rows")
    wide = inputs.astype(np.float32)
    if not np.isfinite(wide).all():
        raise FileError(f"{path.name}: inputs hold values that are not finite")
    names, numbers = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise FileError(f"{path.name}: labels hold one class only")
    return wide, numbers.astype(np.int64), tuple(names.tolist())
