"""The plan of a comparison of interventions: recipe, settings and data."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import FileError, InputError, extra
from truecal.groups import answer_scales
from truecal.predictions import files
from truecal.study.spec import Entry, Problems, read_document

# ----------------------------------------------------------------------------------------------------
# What is trained and how, as values that need no torch

Kind: TypeAlias = Literal["mlp", "cnn"]
NETWORKS: tuple[Kind, ...] = ("cnn", "mlp")


@dataclass(frozen=True)
class Recipe:
    """A base model and how it is trained: stochastic gradient descent with momentum, the rate falling to 0 along a half cosine.

    The model is one of NETWORKS, or one's `own`: a function that is imported and called with the shape of an input and the number
    of classes, and answers a torch.nn.Module from (n, *shape) to (n, classes) logits.
    """

    network: Kind = "cnn"
    own: str | None = None  # "module:function" that makes another network from (shape, classes)
    width: int = 16
    epochs: int = 20
    batch: int = 64
    learning_rate: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 0.0


# ----------------------------------------------------------------------------------------------------
# The file of a comparison of interventions as values; all that is wrong with it is told at once, before training

WHILE_TRAINING = ("label-smoothing", "mixup", "focal", "mc-dropout")
AFTERWARDS = ("temperature", "bias-corrected-temperature", "histogram", "histogram-width")
TOGETHER = "ensemble"
BUNDLED = ("warped-digits", "digits")
BASELINE = "none"
Strength = float | str | None
Groups = Mapping[str, tuple[object, ...]]

_LIMITS = {"label-smoothing": (0.0, 1.0), "mixup": (0.0, 100.0), "focal": (0.0, 100.0), "mc-dropout": (0.0, 1.0)}
_BINNED = ("histogram", "histogram-width")
_DEFAULTS: Mapping[str, tuple[Strength, ...]] = {
    "label-smoothing": (0.005, 0.01, 0.02, 0.05),
    "mixup": (0.02, 0.05, 0.1, 0.2),
    "focal": (0.5, 1, 2, "flsd-53"),
    "temperature": (None,),
    "bias-corrected-temperature": (None,),
    "histogram": (5, 10, 15, 25),
}
# What is done only where the file names it.
_ASKED: Mapping[str, tuple[Strength, ...]] = {
    "histogram-width": (5, 10, 15, 25),
    "mc-dropout": (0.1, 0.2, 0.4),
    TOGETHER: (2, 3),
}
_KNOWN = {**_DEFAULTS, **_ASKED}


@dataclass(frozen=True)
class DataPlan:
    """Which data, and how it is split; `seed` fixes the split, which is the same for all models.

    With `logits` nothing is trained: it is a folder with a folder of .npz files for every method, one file per seed.
    """

    source: str = "warped-digits"
    logits: str | None = None
    validation: float = 0.2
    test: float = 0.4
    seed: int = 0


@dataclass(frozen=True)
class LensPlan:
    """What is judged beside the usual error of the top class: top k, groups of classes, labels, a Likert scale."""

    top_k: tuple[int, ...] = (1, 2, 3, 5)
    groupings: Mapping[str, Groups] = field(default_factory=dict)
    labels: tuple[object, ...] = ()
    likert: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(answer_scales.SCALE))
    likert_of: object = None
    gamma: float = 0.1


@dataclass(frozen=True)
class Plan:
    """A comparison of interventions, as its file says."""

    name: str
    data: DataPlan
    training: Recipe
    lenses: LensPlan
    seeds: tuple[int, ...]
    interventions: Mapping[str, tuple[Strength, ...]]
    accuracy_loss: float
    lines: Mapping[str, int]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Plan":
        """Read the file; raises one InputError that lists every problem with its line."""
        return _Reader(Path(path)).plan()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.root = read_document(path)
        self.problems = Problems(path.name)
        self.folder, self.stem = path.parent, path.stem
        self.lines: dict[str, int] = {}

    def plan(self) -> Plan:
        known = ("name", "data", "model", "training", "seeds", "interventions", "accuracy_loss", "lenses")
        top = self.problems.keys(self.root, known, what="the file", required=("data",))
        empty = Entry({}, self.root.line)
        plan = Plan(
            name=str(top["name"].plain()) if "name" in top else self.stem,
            data=self._data(top.get("data", empty)),
            training=self._training(top.get("model", empty), top.get("training", empty)),
            lenses=self._lenses(top.get("lenses", empty)),
            seeds=self._seeds(top.get("seeds")),
            interventions=self._interventions(top.get("interventions")),
            accuracy_loss=self._number(top, "accuracy_loss", 0.05, low=0.0, high=1.0),
            lines=self.lines,
        )
        self.problems.refuse()
        return plan

    def _data(self, entry: Entry) -> DataPlan:
        given = self.problems.keys(entry, ("set", "file", "logits", "validation", "test", "seed"), what="data")
        usual = DataPlan()
        self.lines["data"] = entry.line
        if "logits" in given:
            folder = self.folder / str(given["logits"].plain())
            if len(given) > 1:
                self.problems.add(entry.line, "data: logits stands alone; its files hold validation and test rows")
            elif not folder.is_dir():
                self.problems.add(given["logits"].line, f"there is no folder {folder}")
            return DataPlan(logits=str(folder))
        source = usual.source
        if ("set" in given) == ("file" in given):
            self.problems.add(
                entry.line,
                f"data needs either set: (one of {', '.join(BUNDLED)}), file: (an .npz file) or logits: (a folder)",
            )
        elif "set" in given:
            source = str(given["set"].plain())
            if source not in BUNDLED:
                self.problems.add(given["set"].line, f"there is no set {source!r}; known are {', '.join(BUNDLED)}")
        else:
            file = self.folder / str(given["file"].plain())
            source = str(file)
            if file.suffix != ".npz" or not file.is_file():
                self.problems.add(given["file"].line, f"there is no .npz file {file}")
        validation = self._number(given, "validation", usual.validation, low=0.0, high=1.0, open_ends=True)
        test = self._number(given, "test", usual.test, low=0.0, high=1.0, open_ends=True)
        if validation + test >= 1:
            self.problems.add(entry.line, f"validation {validation:g} and test {test:g} leave no rows to train on")
        return DataPlan(source, None, validation, test, self._whole(given, "seed", usual.seed, low=0))

    def _training(self, model: Entry, training: Entry) -> Recipe:
        usual = Recipe()
        of_model = self.problems.keys(model, ("network", "width", "import"), what="model")
        own = None if "import" not in of_model else str(of_model["import"].plain())
        if own is not None and len(of_model) > 1:
            self.problems.add(model.line, "model: import: stands alone; network and width are of the bundled ones")
        network = of_model["network"].plain() if "network" in of_model else usual.network
        if network not in NETWORKS:
            self.problems.add(of_model["network"].line, f"network must be {' or '.join(NETWORKS)}, not {network!r}")
        self.lines["model"] = model.line
        names = ("epochs", "batch", "learning_rate", "momentum", "weight_decay")
        given = self.problems.keys(training, names, what="training")
        return Recipe(
            network=next((known for known in NETWORKS if known == network), usual.network),
            own=own,
            width=self._whole(of_model, "width", usual.width, low=1),
            epochs=self._whole(given, "epochs", usual.epochs, low=1),
            batch=self._whole(given, "batch", usual.batch, low=1),
            learning_rate=self._number(given, "learning_rate", usual.learning_rate, low=0.0, high=1e3, open_ends=True),
            momentum=self._number(given, "momentum", usual.momentum, low=0.0, high=0.999),
            weight_decay=self._number(given, "weight_decay", usual.weight_decay, low=0.0, high=1e3),
        )

    def _seeds(self, entry: Entry | None) -> tuple[int, ...]:
        if entry is None:
            return (0, 1, 2, 3, 4)
        seeds = [item.plain() for item in self.problems.items(entry, what="seeds")]
        bad = [seed for seed in seeds if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**31]
        if bad:
            self.problems.add(entry.line, f"seeds must be whole numbers of at least 0, not {bad[0]!r}")
        elif len(set(seeds)) < len(seeds):
            self.problems.add(entry.line, "a seed is given twice; each makes one model")
        return tuple(seeds)

    def _interventions(self, entry: Entry | None) -> Mapping[str, tuple[Strength, ...]]:
        if entry is None:
            return dict(_DEFAULTS)
        given = self.problems.keys(entry, tuple(_KNOWN), what="interventions")
        if isinstance(entry.value, dict) and not entry.value:
            self.problems.add(entry.line, "interventions must name at least one")
        return {name: self._strengths(name, item) for name, item in given.items()}

    def _strengths(self, name: str, entry: Entry) -> tuple[Strength, ...]:
        if entry.value is None:
            return _KNOWN[name]
        if _KNOWN[name] == (None,):
            self.problems.add(entry.line, f"{name} has no strength to choose; write '{name}:' alone")
            return (None,)
        strengths: list[Strength] = []
        for item in self.problems.items(entry, what=f"the strengths of {name}"):
            value = item.plain()
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name == TOGETHER:
                fine, words = isinstance(value, int) and number and value >= 2, "numbers of members of at least 2"
            elif name in _BINNED:
                fine, words = isinstance(value, int) and number and value >= 1, "numbers of bins of at least 1"
            elif name == "focal" and isinstance(value, str):
                fine, words = value == "flsd-53", "numbers, or flsd-53"
            else:
                low, high = _LIMITS[name]
                fine, words = number and low < value < high, f"numbers above {low:g} and below {high:g}"
            if not fine:
                self.problems.add(item.line, f"the strengths of {name} must be {words}, not {value!r}")
            elif value in strengths:
                self.problems.add(item.line, f"the strength {value} of {name} is given twice")
            strengths.append(value)
        return tuple(strengths)

    def _lenses(self, entry: Entry) -> LensPlan:
        usual = LensPlan()
        given = self.problems.keys(
            entry, ("top_k", "groupings", "labels", "likert", "likert_of", "gamma"), what="lenses"
        )
        for name, item in given.items():
            self.lines[name] = item.line
        top_k = usual.top_k
        if "top_k" in given:
            top_k = tuple(item.plain() for item in self.problems.items(given["top_k"], what="top_k"))
            bad = [k for k in top_k if not isinstance(k, int) or isinstance(k, bool) or k < 1]
            if bad:
                self.problems.add(given["top_k"].line, f"top_k must be whole numbers of at least 1, not {bad[0]!r}")
        labels = (
            tuple(i.plain() for i in self.problems.items(given["labels"], what="labels")) if "labels" in given else ()
        )
        return LensPlan(
            top_k=top_k,
            groupings=self._groupings(given["groupings"]) if "groupings" in given else {},
            labels=labels,
            likert=self._scale(given["likert"]) if "likert" in given else usual.likert,
            likert_of=given["likert_of"].plain() if "likert_of" in given else None,
            gamma=self._number(given, "gamma", usual.gamma, low=0.0, high=1.0, open_ends=True),
        )

    def _groupings(self, entry: Entry) -> Mapping[str, Groups]:
        groups: dict[str, Groups] = {}
        if not isinstance(entry.value, dict):
            self.problems.add(entry.line, "groupings must name groupings, each with named groups of classes")
            return groups
        for name, grouping in entry.value.items():
            self.lines[f"grouping {name}"] = grouping.line
            if not isinstance(grouping.value, dict) or len(grouping.value) < 2:
                self.problems.add(grouping.line, f"grouping {name!r} must have at least two named groups of classes")
                continue
            groups[name] = {
                group: tuple(item.plain() for item in self.problems.items(members, what=f"group {group!r}"))
                for group, members in grouping.value.items()
            }
        return groups

    def _scale(self, entry: Entry) -> Mapping[str, tuple[float, float]]:
        try:
            return dict(answer_scales.checked_scale(entry.plain()))
        except InputError as error:
            self.problems.add(entry.line, f"likert: {error}")
            return answer_scales.SCALE

    def _number(
        self, given: dict[str, Entry], name: str, usual: float, *, low: float, high: float, open_ends: bool = False
    ) -> float:
        value = self._scalar(given, name, (int, float), "a number")
        if value is None:
            return usual
        if not (low < value < high if open_ends else low <= value <= high):
            ends = "above {:g} and below {:g}" if open_ends else "from {:g} to {:g}"
            self.problems.add(given[name].line, f"{name} must be {ends.format(low, high)}, not {value!r}")
            return usual
        return float(value)

    def _whole(self, given: dict[str, Entry], name: str, usual: int, *, low: int) -> int:
        value = self._scalar(given, name, int, "a whole number")
        if value is None:
            return usual
        if value < low:
            self.problems.add(given[name].line, f"{name} must be at least {low}, not {value}")
            return usual
        return int(value)

    def _scalar(self, given: dict[str, Entry], name: str, kind: Any, words: str) -> Any:
        return self.problems.of_type(given[name], kind, what=name, words=words) if name in given else None


# ----------------------------------------------------------------------------------------------------
# The data of a comparison: bundled digits, the same digits warped, or an .npz file of one's own; split once, for all models

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
    held = files.read_arrays(path)
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
