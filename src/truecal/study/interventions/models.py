"""Every model a comparison needs, trained once: logits are kept by content, so that a run that was stopped goes on where it was."""

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import parallel
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.predictions import files
from truecal.study.interventions import plan
from truecal.study.interventions.plan import (
    AFTERWARDS,
    BASELINE,
    TOGETHER,
    WHILE_TRAINING,
    DataPart,
    InterventionData,
    Plan,
    Strength,
)

# ----------------------------------------------------------------------------------------------------
# Every model a comparison needs, trained once: logits are kept by content, so that a run that was stopped goes on where it was

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Training:
    """One model to train."""

    kind: str
    strength: Strength
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}{'' if self.strength is None else f' {self.strength}'}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Outputs:
    """The logits of the rows to choose by and about the rows to judge."""

    validation: Logits
    test: Logits


def jobs(plan: Plan) -> list[Training]:
    """List the trainings of a plan: base model and every strength of every training intervention, for each seed."""
    kinds = [(BASELINE, None)] + [(kind, s) for kind in WHILE_TRAINING for s in plan.interventions.get(kind, ())]
    return [Training(kind, strength, seed) for seed in plan.seeds for kind, strength in kinds]


def outputs_of_all(
    plan: Plan,
    data: InterventionData,
    folder: str | PathLike[str],
    *,
    workers: int = 1,
    progress: parallel.Progress = parallel.unheard,
) -> dict[Training, Outputs]:
    """Logits of every model, from the cache in `folder` or trained now; neither workers nor interruptions change a bit of them."""
    cache = tc.lab.BatchCache(folder)
    trainings = jobs(plan)
    setting = _setting(plan.training, data)
    keys = {job: _key(setting, job) for job in trainings}
    outputs_by_job: dict[Training, Outputs] = {}
    for job in trainings:
        arrays = cache.read(keys[job])
        if arrays.keys() >= {"validation", "test"}:
            outputs_by_job[job] = Outputs(arrays["validation"], arrays["test"])  # type: ignore[arg-type]
    progress(
        parallel.Step("taken from earlier runs" if outputs_by_job else "starting", len(outputs_by_job), len(trainings))
    )
    missing = [job for job in trainings if job not in outputs_by_job]
    for job, outputs in _trained(missing, plan.training, data, workers):
        cache.add(keys[job], {"validation": outputs.validation, "test": outputs.test})  # type: ignore[dict-item]
        outputs_by_job[job] = outputs
        progress(parallel.Step(str(job), len(outputs_by_job), len(trainings)))
    return {job: outputs_by_job[job] for job in trainings}


def _trained(
    missing: list[Training], recipe: plan.Recipe, data: InterventionData, workers: int
) -> Iterator[tuple[Training, Outputs]]:
    """Yield every job with its outputs, trained in this process or by workers, in order of completion."""
    if workers == 1 or len(missing) < 2:
        for job in missing:
            yield job, train(job, recipe, data)
        return
    with parallel.Pool(min(workers, len(missing)), prepare=partial(_remember, recipe, data)) as pool:
        for position, outputs in pool.each(_train_remembered, missing):
            yield missing[position], outputs


def train(job: Training, recipe: plan.Recipe, data: InterventionData) -> Outputs:
    """Train one model, in this process."""
    from truecal.study.interventions import training

    model = training.fit(
        data.train.inputs,
        data.train.labels,
        classes=len(data.classes),
        recipe=recipe,
        kind=job.kind,  # type: ignore[arg-type]
        strength=0.0 if job.strength is None else job.strength,  # type: ignore[arg-type]
        seed=job.seed,
    )
    logits = training.averaged_logits if job.kind == "mc-dropout" else training.logits_of
    return Outputs(logits(model, data.validation.inputs), logits(model, data.test.inputs))


_WORKER: dict[str, Any] = {}  # of a worker process: the recipe and the data, sent once


def _remember(recipe: plan.Recipe, data: InterventionData) -> None:
    """Store recipe and data in a worker process."""
    _WORKER.update(recipe=recipe, data=data)


def _train_remembered(job: Training) -> Outputs:
    """Train a job in a worker process, with the stored recipe and data."""
    return train(job, _WORKER["recipe"], _WORKER["data"])


def _setting(recipe: plan.Recipe, data: InterventionData) -> Mapping[str, Any]:
    """Return what the outputs of a training depend on besides the job: recipe, hashes of data and code, version of torch."""
    sources = (Path(__file__).with_name("training.py"), Path(__file__).parents[2] / "train.py")
    code = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    arrays = hashlib.sha256()
    for part in (data.train, data.validation, data.test):
        for array in (part.inputs, part.labels):
            arrays.update(f"{array.dtype}{array.shape}".encode())
            arrays.update(np.ascontiguousarray(array).tobytes())
    return {"recipe": asdict(recipe), "data": arrays.hexdigest(), "code": code, "torch": version("torch")}


def _key(setting: Mapping[str, Any], job: Training) -> str:
    """Return the SHA-256 of a job and all that its outputs depend on."""
    return hashlib.sha256(json.dumps({**setting, "job": asdict(job)}, sort_keys=True).encode()).hexdigest()


# ----------------------------------------------------------------------------------------------------
# Models that need no training here: ready logits of several methods and seeds, and ensembles of the base model's seeds

_ARRAYS = ("validation_logits", "validation_labels", "test_logits", "test_labels")


def ready_logits(plan: Plan, folder: Path) -> tuple[Plan, InterventionData, dict[Training, Outputs]]:
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
    reserved = [name for name in files if name in (*AFTERWARDS, TOGETHER)]
    if reserved:
        raise InputError(f"{reserved[0]} is made from the base model here; give its logits under another name")
    seeds = {method: tuple(path.stem for path in paths) for method, paths in files.items()}
    for method, names in seeds.items():
        if names != seeds[BASELINE]:
            raise InputError(
                f"{method} has the seeds {', '.join(names)} and the base model {', '.join(seeds[BASELINE])}"
            )
    outputs: dict[Training, Outputs] = {}
    labels: dict[str, np.ndarray] = {}
    for method, paths in files.items():
        for seed, path in enumerate(paths):
            arrays = _arrays(path)
            for side in ("validation", "test"):
                first_labels = labels.setdefault(side, arrays[f"{side}_labels"])
                if not np.array_equal(first_labels, arrays[f"{side}_labels"]):
                    raise FileError(f"{path}: the {side} labels are not those of the other files")
            outputs[Training(method, None, seed)] = Outputs(arrays["validation_logits"], arrays["test_logits"])
    first = next(iter(outputs.values()))
    count = first.test.shape[1]
    parts = {side: _part(labels[side], count, side) for side in ("validation", "test")}
    data = InterventionData(
        _part(np.empty(0, np.int64), count, "train"), parts["validation"], parts["test"], tuple(range(count))
    )
    methods: dict[str, tuple[Strength, ...]] = {name: (None,) for name in files if name != BASELINE}
    after = {name: s for name, s in plan.interventions.items() if name in (*AFTERWARDS, TOGETHER)}
    return (
        replace(plan, seeds=tuple(range(len(files[BASELINE]))), interventions={**methods, **after}),
        data,
        outputs,
    )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Read logits and labels of validation and test rows from a file; refuse missing ones and other shapes."""
    arrays = files.read_arrays(path)
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise FileError(f"{path} has no array {missing[0]!r}; it needs {', '.join(_ARRAYS)}")
    for side in ("validation", "test"):
        logits, labels = arrays[f"{side}_logits"], arrays[f"{side}_labels"]
        if logits.ndim != 2 or labels.shape != logits.shape[:1] or labels.dtype.kind not in "iu":
            raise FileError(
                f"{path}: {side}_logits {logits.shape} and {side}_labels {labels.shape} must be (n, classes) and (n,)"
            )
        tc.Predictions.from_logits(logits, labels)  # refuses what are no logits, or no classes
    return arrays


def _part(labels: np.ndarray, count: int, side: str) -> DataPart:
    """Make a data part of labels alone; refuse labels out of range."""
    if labels.size and not 0 <= labels.min() <= labels.max() < count:
        raise FileError(f"the {side} labels go from {labels.min()} to {labels.max()}, and there are {count} classes")
    numbers = labels.astype(np.int64)
    return DataPart(np.empty((len(labels), 0), np.float32), numbers, np.arange(len(labels)))


def with_ensembles(plan: Plan, outputs: Mapping[Training, Outputs]) -> dict[Training, Outputs]:
    """Add to the outputs, for each seed, the mean probabilities of the base models of this and the next seeds.

    Deep ensembles (Lakshminarayanan et al. 2017). Those of neighbouring seeds share members, so that their variance is smaller
    than that of independent ensembles.
    """
    every = dict(outputs)
    for members in plan.interventions.get(TOGETHER, ()):
        size = int(members or 0)
        if size > len(plan.seeds):
            raise InputError(f"an ensemble of {size} needs as many seeds, and there are {len(plan.seeds)}")
        for i, seed in enumerate(plan.seeds):
            chosen = [plan.seeds[(i + k) % len(plan.seeds)] for k in range(size)]
            models = [outputs[Training(BASELINE, None, one)] for one in chosen]
            every[Training(TOGETHER, members, seed)] = Outputs(
                _mean([m.validation for m in models]), _mean([m.test for m in models])
            )
    return every


def _mean(logits: list[Logits]) -> Logits:
    """Log of the mean of the probabilities."""
    probs = np.mean([tc.Predictions.from_logits(z, np.zeros(len(z), int)).probs for z in logits], axis=0)
    return np.log(np.maximum(probs, np.finfo(np.float64).tiny)).astype(np.float32)


# ----------------------------------------------------------------------------------------------------
# How strong each intervention is made: the strength with the lowest usual error on validation rows that keeps the accuracy

TRADITIONAL = tc.GeneralizedECE(lens=tc.TopLabel(), binning=tc.estimators.EqualWidth(15), level=None)
_MAKERS: Mapping[str, Any] = {
    "temperature": lambda _: tc.recalibration.TemperatureScaling(input="logits"),
    "bias-corrected-temperature": lambda _: tc.recalibration.BiasCorrectedTemperature(input="logits"),
    "histogram": lambda bins: tc.recalibration.HistogramBinning(bins, input="logits"),
    "histogram-width": lambda bins: tc.recalibration.HistogramBinning(bins, scheme="width", input="logits"),
}


@dataclass(frozen=True)
class Tried:
    """One strength on the validation rows of one seed."""

    intervention: str
    strength: Strength
    seed: int
    error: float
    accuracy: float


@dataclass(frozen=True)
class StrengthChoice:
    """The chosen strength of every intervention, all strengths tried, and notes."""

    strengths: Mapping[str, Strength]
    tried: tuple[Tried, ...]
    notes: tuple[str, ...]


def choose(plan: Plan, data: InterventionData, outputs: Mapping[Training, Outputs]) -> StrengthChoice:
    """Try every strength on the validation rows."""
    tried = []
    for job, logits in outputs.items():
        tried.append(_try(job, of_logits(logits.validation, data.validation, data.classes)))
    notes: list[str] = []
    for kind in AFTERWARDS:
        for strength in plan.interventions.get(kind, ()):
            for seed in plan.seeds:
                base = outputs[Training(BASELINE, None, seed)].validation
                probs, warned = _cross_fitted(kind, strength, base, data.validation.labels)
                notes += [note for note in warned if note not in notes]
                preds = of_probs(probs, data.validation, data.classes)
                tried.append(_try(Training(kind, strength, seed), preds))
    means = _means(tried)
    floor = means[BASELINE, None][1] - plan.accuracy_loss
    strengths: dict[str, Strength] = {BASELINE: None}
    for kind, candidates in plan.interventions.items():
        accurate = [s for s in candidates if means[kind, s][1] >= floor]
        if accurate:
            strengths[kind] = min(accurate, key=lambda s: means[kind, s][0])
        else:
            strengths[kind] = max(candidates, key=lambda s: means[kind, s][1])
            notes.append(
                f"no strength of {kind} keeps the accuracy within {plan.accuracy_loss:g} of the base model's on the "
                f"validation rows; {strengths[kind]} loses least and was taken"
            )
    return StrengthChoice(strengths, tuple(tried), tuple(notes))


def recalibrated(kind: str, strength: Strength, learn: Logits, labels: NDArray[np.int64], apply: Logits) -> Any:
    """Probabilities for `apply` by a recalibrator fitted to `learn`, and its warnings in words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruecalWarning)
        fitted = _MAKERS[kind](strength).fit(learn, labels)
    return fitted.predict_proba(apply), [f"{kind}: {w.message}" for w in caught]


def of_logits(logits: Logits, part: DataPart, classes: tuple[object, ...]) -> tc.Predictions:
    """Make predictions of logits (n, classes) for the rows of a data part."""
    return tc.Predictions.from_logits(logits.astype(np.float64), _names(part, classes), classes=classes)


def of_probs(probs: Any, part: DataPart, classes: tuple[object, ...]) -> tc.Predictions:
    """Make predictions of probabilities (n, classes) for the rows of a data part."""
    return tc.Predictions.from_probs(probs, _names(part, classes), classes=classes)


def _names(part: DataPart, classes: tuple[object, ...]) -> NDArray[Any]:
    """Return the labels of a data part by their class names."""
    return np.array(classes)[part.labels]


def _cross_fitted(kind: str, strength: Strength, logits: Logits, labels: NDArray[np.int64]) -> Any:
    """Halves are cut, not drawn: versions of one original are neighbours and stay on one side."""
    middle = len(labels) // 2
    first, second = slice(0, middle), slice(middle, None)
    later, warned = recalibrated(kind, strength, logits[first], labels[first], logits[second])
    sooner, also = recalibrated(kind, strength, logits[second], labels[second], logits[first])
    return np.concatenate((sooner, later)), warned + also


def _try(job: Training, preds: tc.Predictions) -> Tried:
    """Measure the error and accuracy of one strength on validation rows."""
    return Tried(job.kind, job.strength, job.seed, float(TRADITIONAL(preds)), tc.scores.accuracy(preds))


def _means(tried: list[Tried]) -> dict[tuple[str, Strength], tuple[float, float]]:
    """Error and accuracy of each strength, averaged over the seeds."""
    together: dict[tuple[str, Strength], list[Tried]] = {}
    for one in tried:
        together.setdefault((one.intervention, one.strength), []).append(one)
    return {
        key: (float(np.mean([t.error for t in group])), float(np.mean([t.accuracy for t in group])))
        for key, group in together.items()
    }
