"""Models that need no training here: ready logits of several methods and seeds, and ensembles of the base model's seeds."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.predictions import readers
from truecal.study.interventions.config import AFTERWARDS, BASELINE, TOGETHER, Plan, Strength
from truecal.study.interventions.data import Data, Part
from truecal.study.interventions.models import Job, Logits, Outputs

_ARRAYS = ("validation_logits", "validation_labels", "test_logits", "test_labels")


def ready_logits(plan: Plan, folder: Path) -> tuple[Plan, Data, dict[Job, Outputs]]:
    """Logits of METHOD/SEED.npz for every method and seed; the method "none" is the base model.

    Every file holds validation_logits, validation_labels, test_logits and test_labels of the same rows. Methods take the place of
    the plan's interventions while training, and the seeds found that of its seeds; what is done afterwards stays as planned.
    """
    files = {path.name: sorted(path.glob("*.npz")) for path in sorted(folder.iterdir()) if path.is_dir()}
    files = {method: paths for method, paths in files.items() if paths}
    if BASELINE not in files:
        raise InputError(
            f"{folder} has no folder {BASELINE!r} with the logits of the base model, one .npz file per seed"
        )
    taken = [name for name in files if name in (*AFTERWARDS, TOGETHER)]
    if taken:
        raise InputError(f"{taken[0]} is made from the base model here; give its logits under another name")
    seeds = {method: tuple(path.stem for path in paths) for method, paths in files.items()}
    for method, own in seeds.items():
        if own != seeds[BASELINE]:
            raise InputError(f"{method} has the seeds {', '.join(own)} and the base model {', '.join(seeds[BASELINE])}")
    outputs: dict[Job, Outputs] = {}
    labels: dict[str, np.ndarray] = {}
    for method, paths in files.items():
        for seed, path in enumerate(paths):
            arrays = _arrays(path)
            for side in ("validation", "test"):
                known = labels.setdefault(side, arrays[f"{side}_labels"])
                if not np.array_equal(known, arrays[f"{side}_labels"]):
                    raise FileError(f"{path}: the {side} labels are not those of the other files")
            outputs[Job(method, None, seed)] = Outputs(arrays["validation_logits"], arrays["test_logits"])
    first = next(iter(outputs.values()))
    count = first.test.shape[1]
    parts = {side: _part(labels[side], count, side) for side in ("validation", "test")}
    data = Data(_part(np.empty(0, np.int64), count, "train"), parts["validation"], parts["test"], tuple(range(count)))
    methods: dict[str, tuple[Strength, ...]] = {name: (None,) for name in files if name != BASELINE}
    after = {name: s for name, s in plan.interventions.items() if name in (*AFTERWARDS, TOGETHER)}
    return (
        replace(plan, seeds=tuple(range(len(files[BASELINE]))), interventions={**methods, **after}),
        data,
        outputs,
    )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    held = readers.read_arrays(path)
    missing = [name for name in _ARRAYS if name not in held]
    if missing:
        raise FileError(f"{path} has no array {missing[0]!r}; it needs {', '.join(_ARRAYS)}")
    for side in ("validation", "test"):
        logits, labels = held[f"{side}_logits"], held[f"{side}_labels"]
        if logits.ndim != 2 or labels.shape != logits.shape[:1] or labels.dtype.kind not in "iu":
            raise FileError(
                f"{path}: {side}_logits {logits.shape} and {side}_labels {labels.shape} must be (n, classes) and (n,)"
            )
        tc.Predictions.from_logits(logits, labels)  # refuses what are no logits, or no classes
    return held


def _part(labels: np.ndarray, count: int, side: str) -> Part:
    if labels.size and not 0 <= labels.min() <= labels.max() < count:
        raise FileError(f"the {side} labels go from {labels.min()} to {labels.max()}, and there are {count} classes")
    numbers = labels.astype(np.int64)
    return Part(np.empty((len(labels), 0), np.float32), numbers, np.arange(len(labels)))


def with_ensembles(plan: Plan, outputs: Mapping[Job, Outputs]) -> dict[Job, Outputs]:
    """The outputs, and for each seed the mean probabilities of the base models of this and the next seeds (Lakshminarayanan et
    al. 2017). Ensembles of neighbouring seeds share members, so that their spread is smaller than that of new ones."""
    every = dict(outputs)
    for members in plan.interventions.get(TOGETHER, ()):
        size = int(members or 0)
        if size > len(plan.seeds):
            raise InputError(f"an ensemble of {size} needs as many seeds, and there are {len(plan.seeds)}")
        for place, seed in enumerate(plan.seeds):
            chosen = [plan.seeds[(place + k) % len(plan.seeds)] for k in range(size)]
            models = [outputs[Job(BASELINE, None, one)] for one in chosen]
            every[Job(TOGETHER, members, seed)] = Outputs(
                _mean([m.validation for m in models]), _mean([m.test for m in models])
            )
    return every


def _mean(logits: list[Logits]) -> Logits:
    """Log of the mean of the probabilities."""
    probs = np.mean([tc.Predictions.from_logits(z, np.zeros(len(z), int)).probs for z in logits], axis=0)
    return np.log(np.maximum(probs, np.finfo(np.float64).tiny)).astype(np.float32)
