"""The plan of a comparison of interventions: recipe, settings and data."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import InputError, extra
from truecal.groups import answer_scales
from truecal.study.document import Document, Where, load_schema, read_document

# ----------------------------------------------------------------------------------------------------
# What is trained and how, as values that need no torch

Kind: TypeAlias = Literal["mlp", "cnn"]


@dataclass(frozen=True)
class Recipe:
    """A base model and its training: stochastic gradient descent with momentum, the rate falling to 0 along a half cosine."""

    network: Kind = "cnn"
    width: int = 16  # units of a hidden layer, or channels of the first convolution
    epochs: int = 20
    batch: int = 64  # rows of a step
    learning_rate: float = 0.05  # of the first step
    momentum: float = 0.9
    weight_decay: float = 0.0


# ----------------------------------------------------------------------------------------------------
# The file of a comparison of interventions as values; all that is wrong with it is listed at once, before training

WHILE_TRAINING = ("label-smoothing", "mixup", "focal", "mc-dropout")
AFTERWARDS = ("temperature", "bias-corrected-temperature", "histogram", "histogram-width")
TOGETHER = "ensemble"
BASELINE = "none"
Strength = float | str | None
Groups = Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class DataPlan:
    """Source of the data, and how it is split; the split is the same for all models."""

    source: str = "warped-digits"  # or "digits"
    logits: str | None = (
        None  # folder with a folder of .npz files for every method, one per seed; then nothing is trained
    )
    validation: float = 0.2  # share of the rows
    test: float = 0.4  # share of the rows; the others are trained on
    seed: int = 0  # of the split


@dataclass(frozen=True)
class LensPlan:
    """What is judged beside the usual error of the top class."""

    top_k: tuple[int, ...] = (1, 2, 3, 5)  # numbers of most probable classes
    groupings: Mapping[str, Groups] = field(default_factory=dict)  # grouping -> group -> classes
    labels: tuple[object, ...] = ()  # classes whose rows are judged alone
    likert: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(answer_scales.SCALE))  # low and high
    likert_of: object = None  # class or group whose probability the answer scale is about; None: default lens
    gamma: float = 0.1  # of the k-d tree binning


@dataclass(frozen=True)
class Plan:
    """Hold the settings of a comparison of interventions. Made by :meth:`read`.

    Parameters
    ----------
    name : str
        Title of the comparison.
    data : DataPlan
        Which data, and how it is split.
    training : Recipe
        Base model and training.
    lenses : LensPlan
        What is judged.
    seeds : tuple of int
        Seeds of the models.
    interventions : mapping of str to tuple
        Strengths to choose from, by intervention.
    accuracy_loss : float
        Loss of accuracy on the validation rows that a strength may cost.
    document : Document
        The file, for messages with lines.

    See Also
    --------
    compare_interventions : Run a comparison.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import truecal as tc
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.yaml"
    >>> _ = path.write_text("data: {set: digits}\\nseeds: [0, 1]\\ninterventions: {focal: [1, 2], temperature: }\\n")
    >>> plan = tc.study.Plan.read(path)
    >>> plan.seeds, plan.interventions
    ((0, 1), {'focal': (1, 2), 'temperature': (None,)})
    """

    name: str
    data: DataPlan
    training: Recipe
    lenses: LensPlan
    seeds: tuple[int, ...]
    interventions: Mapping[str, tuple[Strength, ...]]
    accuracy_loss: float
    document: Document

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Plan":
        """Read the file of a comparison.

        Parameters
        ----------
        path : path
            The YAML file; interventions.schema.json lists what it may hold.

        Returns
        -------
        Plan
            The comparison. By default its name is that of the file, its interventions are all of the schema with the strengths
            there, its seeds 0 to 4 and `accuracy_loss` 0.05.

        Raises
        ------
        InputError
            With every problem and its line.
        """
        file = Path(path)
        document = read_document(file)
        schema = load_schema("interventions/interventions.schema.json")
        document.check(schema)
        values = document.value
        defaults = schema["properties"]["interventions"]  # defaults: interventions, and strengths of each
        interventions = values.get("interventions", dict.fromkeys(defaults["default"]))
        plan = cls(
            name=str(values.get("name", file.stem)),
            data=_read_data(document, file.parent),
            training=Recipe(**values.get("model", {}), **values.get("training", {})),
            lenses=_read_lenses(document),
            seeds=tuple(values.get("seeds", range(5))),
            interventions={
                name: tuple(strengths or defaults["properties"][name]["default"])
                for name, strengths in interventions.items()
            },
            accuracy_loss=values.get("accuracy_loss", 0.05),
            document=document,
        )
        document.refuse()
        return plan


def _read_data(document: Document, folder: Path) -> DataPlan:
    """Read the section `data`, with paths relative to `folder`; a missing folder and shares of 1 or more in sum are problems."""
    values = dict(document.value["data"])
    if "logits" in values and not (folder / values["logits"]).is_dir():
        document.add(("data", "logits"), f"there is no folder {folder / values['logits']}")
    source, logits = values.pop("set", DataPlan.source), values.pop("logits", None)
    plan = DataPlan(source, None if logits is None else str(folder / logits), **values)
    if plan.validation + plan.test >= 1:
        text = f"validation {plan.validation:g} and test {plan.test:g} leave no rows to train on"
        document.add(("data",), text)
    return plan


def _read_lenses(document: Document) -> LensPlan:
    """Read the section `lenses`; a Likert scale that is refused is left out and added to the document as a problem.

    Lists under `top_k` and `labels` become tuples; what is not given has the default of LensPlan.
    """
    values: dict[str, Any] = {
        name: tuple(value) if name in ("top_k", "labels") else value
        for name, value in document.value.get("lenses", {}).items()
    }
    if "likert" in values:
        try:
            values["likert"] = dict(answer_scales.check_scale(values["likert"]))
        except InputError as error:
            document.add(("lenses", "likert"), f"likert: {error}")
            del values["likert"]
    return LensPlan(**values)


# ----------------------------------------------------------------------------------------------------
# The data of a comparison: bundled digits, or the same digits warped; split once, for all models

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
COPIES = (3, 6, 8)  # by choice: warped versions of each digit to train on, validate on, test on
_TURN, _MOVE, _SIZE, _NOISE = 30.0, 1.0, 0.2, 0.1  # by choice: degrees, pixels, share, standard deviation


@dataclass(frozen=True, eq=False)
class DataPart:
    """Inputs (n, ...), class numbers (n,), and the number of the image or row that each was made from (n,)."""

    inputs: Images
    labels: Labels
    original: Labels


@dataclass(frozen=True, eq=False)
class InterventionData:
    """Rows to train on, to choose strengths and fit maps on (validation), and to judge (test); and the names of the classes."""

    train: DataPart
    validation: DataPart
    test: DataPart
    classes: tuple[object, ...]


@lru_cache(1)  # a worker process trains many models on the same data
def load_data(plan: DataPlan) -> InterventionData:
    """Load the data and split it by the plan's seed, before digits are warped, so that no digit is in two parts (cached).

    In a random order the first `plan.test` of the rows are the test part, the next `plan.validation` the validation part
    and the remaining ones the training part. For the source "warped-digits" each row is warped as many times as COPIES says.
    Raises InputError if a part has fewer than two rows.
    """
    inputs, labels, classes = _digits()
    rng = np.random.default_rng(plan.seed)
    order = rng.permutation(len(labels))
    test, validation = round(plan.test * len(labels)), round(plan.validation * len(labels))
    sides = (order[test + validation :], order[test : test + validation], order[:test])
    if min(map(len, sides)) < 2:
        raise InputError(f"{len(labels)} rows are too few to train, validate and test on")
    parts = []
    for rows, copies in zip(sides, COPIES, strict=True):
        warps = plan.source == "warped-digits"
        originals = rows.repeat(copies) if warps else rows
        images = _warp(inputs[originals], rng) if warps else inputs[originals]
        parts.append(DataPart(np.ascontiguousarray(images, np.float32), labels[originals], originals))
    return InterventionData(parts[0], parts[1], parts[2], classes)


def check_plan(plan: Plan, data: InterventionData) -> None:
    """Refuse a plan that does not fit the data, with all problems at once.

    Those are unknown classes, top k beyond the number of classes, and histograms with more bins than half of the validation rows.
    """
    document, lenses, count = plan.document, plan.lenses, len(data.classes)
    probe = tc.Predictions.from_probs(np.full((1, count), 1 / count), np.array(data.classes)[:1], classes=data.classes)
    checks: list[tuple[Where, Callable[[], object]]] = [
        (("lenses", "groupings", name), partial(tc.Grouping(groups).group_of, probe))
        for name, groups in lenses.groupings.items()
    ]
    checks += [(("lenses", "labels"), partial(probe.class_index, label)) for label in lenses.labels]
    if lenses.likert_of is not None and lenses.likert_of not in next(iter(lenses.groupings.values()), {}):
        checks.append((("lenses", "likert_of"), partial(probe.class_index, lenses.likert_of)))
    for where, check in checks:
        try:
            check()
        except InputError as error:
            document.add(where, str(error))
    if "top_k" in document.value.get("lenses", {}) and max(lenses.top_k) > count:
        document.add(("lenses", "top_k"), f"top_k is {max(lenses.top_k)}, but there are only {count} classes")
    rows = len(data.validation.labels)
    bins = [b for kind in ("histogram", "histogram-width") for b in plan.interventions.get(kind, ()) if b is not None]
    largest = max(map(int, bins), default=0)
    if largest > rows // 2:
        document.add(("data",), f"half of the {rows} validation rows cannot fill {largest} bins")
    document.refuse()


def _digits() -> tuple[Images, Labels, tuple[object, ...]]:
    """Load the digits: images (n, 8, 8) with pixels in [0, 1], labels (n,), and the classes 0 to 9."""
    digits = extra("sklearn.datasets").load_digits()
    return (digits.images / 16).astype(np.float32), digits.target.astype(np.int64), tuple(range(10))


def _warp(images: Images, rng: np.random.Generator) -> Images:
    """Rotate (up to 30 degrees), move (up to 1 pixel) and scale (by up to 20 %) each image (n, height, width), and add noise.

    The noise is normal with standard deviation 0.1.
    """
    from scipy.ndimage import affine_transform

    middle = (np.array(images.shape[1:]) - 1) / 2
    warped = np.empty_like(images)
    for i, image in enumerate(images):
        turn = np.deg2rad(rng.uniform(-_TURN, _TURN))
        cosine, sine = np.cos(turn), np.sin(turn)
        matrix = np.array([[cosine, -sine], [sine, cosine]]) / rng.uniform(1 - _SIZE, 1 + _SIZE)
        offset = middle - matrix @ (middle + rng.uniform(-_MOVE, _MOVE, 2))
        warped[i] = affine_transform(image, matrix, offset, order=1)
    return warped + rng.normal(scale=_NOISE, size=images.shape).astype(np.float32)
