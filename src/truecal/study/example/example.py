"""A real study to look at: real models on real and generated data, under shift, several times over.

`make_example(folder)` trains the models, writes their predictions and a study file beside them. A file that is there whole is not
made again; files are renamed into place when finished, so a run that was killed goes on where it stopped. The same seeds give the
same files, whatever the number of workers.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from truecal import parallel
from truecal.errors import FileError, InputError, extra
from truecal.predictions import readers
from truecal.study.example.data import SEVERITIES, SHIFTS, load, shifted
from truecal.study.example.models import Model, log_probabilities, models
from truecal.writing import write_whole

_SEEDS = (0, 1, 2)
_QUICK_MODELS = ("logistic", "tree-16", "boosting-10", "naive-bayes", "svm-linear")
_QUICK_DATA = ("digits", "cancer")
_STUDY = """\
# Classifiers on data that get worse: noise, blur and missing pixels on handwritten digits, noise on tables.
# Evaluate:  truecal study run study.yaml --store store
# Look:      truecal study page store --out page.html
name: Classifiers under shift
predictions:
  - files: "predictions/{{dataset}}/{{model}}/severity-{{severity}}-seed-{{seed}}.npz"
models:
{models}
columns: {{label: labels, logits: logits}}
lenses: [{lenses}]
metrics: [{metrics}]
recalibrators: [temperature]
split: {{fraction: 0.2, seed: 0, fit: clean}}   # temperatures are learnt on a fifth of the clean rows
"""


@dataclass(frozen=True)
class Plan:
    """Which part of the example is made: all of it, or a small part whose files are the same."""

    models: tuple[Model, ...]
    data: tuple[str, ...]
    severities: tuple[int, ...]
    seeds: tuple[int, ...]
    lenses: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def trainings(self) -> list[tuple[Model, str, int]]:
        return [(model, name, seed) for name in self.data for model in self.models for seed in self.seeds]


def plan(*, quick: bool = False) -> Plan:
    """The whole example, or five models on two sets at two severities with one seed.

    >>> len(plan(quick=True).models), plan(quick=True).severities
    (5, (0, 3))
    """
    every = models()
    if quick:
        few = tuple(model for model in every if model.name in _QUICK_MODELS)
        metrics = ("error", "nll", "brier", "rank-series-l2", "debiased-15-l2", "ece-width-15-l1", "ece-mass-100-l1")
        return Plan(few, _QUICK_DATA, (0, 3), (0,), ("top-label",), metrics)
    return Plan(tuple(every), tuple(SHIFTS), SEVERITIES, _SEEDS, ("top-label", "class-wise"), ("paper-grid",))


def make_example(
    folder: str | os.PathLike[str],
    *,
    quick: bool = False,
    workers: int = 2,
    progress: parallel.Progress = parallel.unheard,
) -> Path:
    """Train, predict, write predictions/ and study.yaml into the folder, and return the path of the study file.

    `progress` is called with a Step: how many of all trainings are done.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    extra("sklearn")
    wanted = plan(quick=quick)
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {root}: {error.strerror}") from error
    parts = {task: _paths(root, wanted.severities, *task) for task in wanted.trainings}
    strange = set(root.glob("predictions/*/*/*.npz")) - {path for paths in parts.values() for path in paths}
    if strange:
        raise InputError(
            f"{root} holds predictions that are no part of this example, such as {min(strange)}; choose another folder"
        )
    missing = [task for task, paths in parts.items() if not all(map(_whole, paths))]
    total = len(parts)
    progress(parallel.Step("training", total - len(missing), total))
    for done, _ in enumerate(_all(root, wanted, missing, workers), total - len(missing) + 1):
        progress(parallel.Step("training", done, total))
    return write_whole(root / "study.yaml", _study(wanted))


def _path(root: Path, dataset: str, model: str, severity: int, seed: int) -> Path:
    return root / "predictions" / dataset / model / f"severity-{severity}-seed-{seed}.npz"


def _paths(root: Path, severities: Sequence[int], model: Model, name: str, seed: int) -> list[Path]:
    """The files of one training."""
    return [_path(root, dataset, model.name, severity, seed) for dataset in SHIFTS[name] for severity in severities]


def _whole(path: Path) -> bool:
    """Whether a file is there and holds predictions; damaged ones are made again."""
    if not path.is_file():
        return False
    try:
        held = readers.read_arrays(path)
    except FileError:
        return False
    return set(held) == {"logits", "labels"} and len(held["logits"]) == len(held["labels"])


def _all(root: Path, wanted: Plan, tasks: Sequence[tuple[Model, str, int]], workers: int) -> Iterator[None]:
    """Do every training, yielding after each."""
    arguments = [(root, wanted.severities, model.name, name, seed) for model, name, seed in tasks]
    with parallel.Pool(workers) as pool:
        for _ in pool.each(_train_given, arguments):
            yield


def _train_given(given: tuple[Path, Sequence[int], str, str, int]) -> None:  # runs in a worker
    _train(*given)


def _train(root: Path, severities: Sequence[int], model_name: str, name: str, seed: int) -> None:
    """One model on one set with one seed: learn once, predict at every severity, write every file whole."""
    model = next(model for model in models() if model.name == model_name)
    data = load(name)
    places = [(dataset, shift, severity) for dataset, shift in SHIFTS[name].items() for severity in severities]
    sets = [shifted(data, dataset, shift, severity, seed) for dataset, shift, severity in places]
    answers = log_probabilities(model, *data.learnt_from(seed), sets, seed)
    labels = data.test_y.astype(np.int16)
    for (dataset, _, severity), logits in zip(places, answers, strict=True):
        path = _path(root, dataset, model.name, severity, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, partial(np.savez_compressed, logits=logits, labels=labels))


def _study(wanted: Plan) -> str:
    described = "\n".join(f"  {m.name}: {{family: {m.family}, size: {m.size}}}" for m in wanted.models)
    return _STUDY.format(models=described, lenses=", ".join(wanted.lenses), metrics=", ".join(wanted.metrics))
