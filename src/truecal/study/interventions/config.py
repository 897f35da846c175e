"""The file of a comparison of interventions as values; all that is wrong with it is told at once, before training."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truecal import breakdown
from truecal.errors import InputError
from truecal.study.spec.document import Entry, Problems, read_document
from truecal.train import recipe

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
    likert: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(breakdown.SCALE))
    likert_of: object = None
    gamma: float = 0.1


@dataclass(frozen=True)
class Plan:
    """A comparison of interventions, as its file says."""

    name: str
    data: DataPlan
    training: recipe.Recipe
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

    def _training(self, model: Entry, training: Entry) -> recipe.Recipe:
        usual = recipe.Recipe()
        of_model = self.problems.keys(model, ("network", "width", "import"), what="model")
        own = None if "import" not in of_model else str(of_model["import"].plain())
        if own is not None and len(of_model) > 1:
            self.problems.add(model.line, "model: import: stands alone; network and width are of the bundled ones")
        network = of_model["network"].plain() if "network" in of_model else usual.network
        if network not in recipe.NETWORKS:
            self.problems.add(
                of_model["network"].line, f"network must be {' or '.join(recipe.NETWORKS)}, not {network!r}"
            )
        self.lines["model"] = model.line
        names = ("epochs", "batch", "learning_rate", "momentum", "weight_decay")
        given = self.problems.keys(training, names, what="training")
        return recipe.Recipe(
            network=next((known for known in recipe.NETWORKS if known == network), usual.network),
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
            return dict(breakdown.checked_scale(entry.plain()))
        except InputError as error:
            self.problems.add(entry.line, f"likert: {error}")
            return breakdown.SCALE

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
