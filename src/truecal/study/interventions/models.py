"""Every model a comparison needs, trained once: logits are stored by content, so that a stopped run goes on where it was."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import parallel
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.predictions import files
from truecal.study.interventions.plan import (
    AFTERWARDS,
    BASELINE,
    TOGETHER,
    WHILE_TRAINING,
    DataPart,
    DataPlan,
    InterventionData,
    Plan,
    Recipe,
    Strength,
    load_data,
)
from truecal.study.store import pl

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Training:
    """One model to train: the intervention (or "none"), its strength (None for the base model) and the seed."""

    kind: str
    strength: Strength
    seed: int

    def __str__(self) -> str:
        """Write kind, strength (unless None) and seed, such as "mixup 0.2, seed 0".

        >>> str(Training("mixup", 0.2, 0)), str(Training("base", None, 1))
        ('mixup 0.2, seed 0', 'base, seed 1')
        """
        return f"{self.kind}{'' if self.strength is None else f' {self.strength}'}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Outputs:
    """Logits (n, classes) of the validation rows, by which strengths are chosen, and of the test rows, which are judged."""

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
    progress: parallel.Progress = parallel.ignore_progress,
) -> dict[Training, Outputs]:
    """Return the logits of every model in the order of `jobs`, from the cache in `folder` or trained now and added to it."""
    cache = tc.lab.BatchCache(folder)
    trainings = jobs(plan)
    keys = _cache_keys(plan.training, data, trainings)
    arrays_by_job = {job: cache.read(keys[job]) for job in trainings}
    outputs = {
        job: Outputs(arrays["validation"], arrays["test"])  # type: ignore[arg-type]
        for job, arrays in arrays_by_job.items()
        if arrays.keys() >= {"validation", "test"}
    }
    progress(parallel.Step("taken from earlier runs" if outputs else "starting", len(outputs), len(trainings)))
    missing = [job for job in trainings if job not in outputs]
    with parallel.Pool(max(min(workers, len(missing)), 1)) as pool:
        for position, trained in pool.each(_train_task, [(job, plan.training, plan.data) for job in missing]):
            job = missing[position]
            cache.add(keys[job], vars(trained))
            outputs[job] = trained
            progress(parallel.Step(str(job), len(outputs), len(trainings)))
    return {job: outputs[job] for job in trainings}


def _train_task(task: tuple[Training, Recipe, DataPlan]) -> Outputs:
    """Train the model (job, recipe, data plan) in `task`; each process loads the data once."""
    job, recipe, data = task
    return train(job, recipe, load_data(data))


def train(job: Training, recipe: Recipe, data: InterventionData) -> Outputs:
    """Train one model in this process; return its logits, which with dropout are logs of averaged probabilities.

    It is trained by `training.fit` on the training part, with strength 0 where the job has none; logits are those of validation
    and test inputs, by `averaged_logits` for "mc-dropout", else by `logits_of`.
    """
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


def _cache_keys(recipe: Recipe, data: InterventionData, trainings: Sequence[Training]) -> dict[Training, str]:
    """Return for each training the SHA-256 of all its outputs depend on: job, recipe, data, code and version of torch."""
    digest = hashlib.sha256(f"{version('torch')} {asdict(recipe)}".encode())
    for path in (Path(__file__).with_name("training.py"), Path(__file__).parents[2] / "train.py"):
        digest.update(path.read_bytes())
    for part in (data.train, data.validation, data.test):
        for array in (part.inputs, part.labels):
            digest.update(f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return {job: hashlib.sha256(f"{digest.hexdigest()} {asdict(job)}".encode()).hexdigest() for job in trainings}


# ----------------------------------------------------------------------------------------------------
# Models that need no training here: ready logits of several methods and seeds, and ensembles of the base model's seeds

_ARRAYS = ("validation_logits", "validation_labels", "test_logits", "test_labels")


def ready_logits(plan: Plan, folder: Path) -> tuple[Plan, InterventionData, dict[Training, Outputs]]:
    """Read the logits of METHOD/SEED.npz for every method and seed; the method "none" is the base model.

    Every file holds validation_logits, validation_labels, test_logits and test_labels of the same rows. In the returned plan the
    methods replace the interventions while training, and the number of files the seeds; recalibration and ensembles stay as
    planned. The returned data have labels and no inputs.
    """
    paths = {path.name: sorted(path.glob("*.npz")) for path in sorted(folder.iterdir()) if path.is_dir()}
    seeds = {method: [path.stem for path in files_] for method, files_ in paths.items() if files_}
    if BASELINE not in seeds:
        raise InputError(
            f"{folder} has no folder {BASELINE!r} with the logits of the base model, one .npz file per seed"
        )
    outputs: dict[Training, Outputs] = {}
    first: dict[str, np.ndarray] = {}
    for method, names in seeds.items():
        if method in (*AFTERWARDS, TOGETHER):
            raise InputError(f"{method} is made from the base model here; give its logits under another name")
        if names != seeds[BASELINE]:
            listed = ", ".join(seeds[BASELINE])
            raise InputError(f"{method} has the seeds {', '.join(names)} and the base model {listed}")
        for seed, path in enumerate(paths[method]):
            arrays = _read_logits(path)
            for side in ("validation_labels", "test_labels"):
                if not np.array_equal(first.setdefault(side, arrays[side]), arrays[side]):
                    raise FileError(f"{path}: {side} are not those of the other files")
            outputs[Training(method, None, seed)] = Outputs(arrays["validation_logits"], arrays["test_logits"])
    labels = (np.empty(0, np.int64), first["validation_labels"], first["test_labels"])
    parts = [DataPart(np.empty((len(y), 0), np.float32), y.astype(np.int64), np.arange(len(y))) for y in labels]
    count = next(iter(outputs.values())).test.shape[1]
    methods: dict[str, tuple[Strength, ...]] = {name: (None,) for name in seeds if name != BASELINE}
    after = {name: s for name, s in plan.interventions.items() if name in (*AFTERWARDS, TOGETHER)}
    plan = replace(plan, seeds=tuple(range(len(seeds[BASELINE]))), interventions={**methods, **after})
    return plan, InterventionData(parts[0], parts[1], parts[2], tuple(range(count))), outputs


def _read_logits(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays validation_logits, validation_labels, test_logits and test_labels of an .npz file, by name.

    Logits are (n, classes), labels (n,) integers. Raises FileError for missing arrays and other shapes, and InputError
    for logits that are not finite or labels that are no classes.
    """
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


def with_ensembles(plan: Plan, outputs: Mapping[Training, Outputs]) -> dict[Training, Outputs]:
    """Add to the outputs, for each seed, the mean probabilities of the base models of this and the next seeds.

    Deep ensembles (Lakshminarayanan et al. 2017). Those of neighbouring seeds share members, so that their variance is smaller
    than that of independent ensembles.
    """
    combined = dict(outputs)
    for members in plan.interventions.get(TOGETHER, ()):
        size = int(members or 0)
        if size > len(plan.seeds):
            raise InputError(f"an ensemble of {size} needs as many seeds, and there are {len(plan.seeds)}")
        for i, seed in enumerate(plan.seeds):
            chosen = [plan.seeds[(i + k) % len(plan.seeds)] for k in range(size)]
            models = [vars(outputs[Training(BASELINE, None, member_seed)]) for member_seed in chosen]
            means = {side: _average_probs([model[side] for model in models]) for side in ("validation", "test")}
            combined[Training(TOGETHER, members, seed)] = Outputs(**means)
    return combined


def _average_probs(logits: list[Logits]) -> Logits:
    """Return the log of the mean softmax of several models' logits, each (n, classes); probabilities of 0 become 2e-308.

    >>> _average_probs([np.log([[0.2, 0.8]]), np.log([[0.4, 0.6]])])
    array([[-1.2039728 , -0.35667494]], dtype=float32)
    """
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


_TRIED = ["intervention", "strength", "seed", "error", "accuracy", "chosen"]


@dataclass(frozen=True)
class StrengthChoice:
    """The chosen strength of every intervention, what was tried, and notes."""

    strengths: Mapping[str, Strength]  # by intervention, the base model first with None
    tried: Mapping[Training, tuple[float, float]]  # usual error and accuracy on the validation rows
    notes: tuple[str, ...]

    def frame(self) -> Any:
        """Return `tried` as a polars frame: intervention, strength (text), seed, error, accuracy and chosen (Boolean)."""
        rows = [
            (job.kind, write_strength(job.strength), job.seed, *measured, self.strengths[job.kind] == job.strength)
            for job, measured in self.tried.items()
        ]
        return pl.DataFrame(rows, schema=_TRIED, orient="row", infer_schema_length=None)


def write_strength(strength: Strength) -> str:
    """Write a strength as text: a number as short as possible ("0.1", "2"), a name unchanged, "" for None.

    >>> write_strength(0.1), write_strength(2.0), write_strength("temperature"), write_strength(None)
    ('0.1', '2', 'temperature', '')
    """
    return "" if strength is None else f"{strength:g}" if isinstance(strength, int | float) else strength


def choose(plan: Plan, data: InterventionData, outputs: Mapping[Training, Outputs]) -> StrengthChoice:
    """Choose, by intervention, the strength with the lowest usual error on the validation rows that keeps the accuracy.

    Error and accuracy are means over seeds; the accuracy may be lower than the base model's by `accuracy_loss`. Where no strength
    keeps it, the most accurate one is chosen, with a note. Maps fitted afterwards are cross-fitted on halves.
    """
    rows, classes = data.validation, data.classes
    tried = {job: _measure_validation(of_logits(logits.validation, rows, classes)) for job, logits in outputs.items()}
    notes: list[str] = []
    after = [(kind, strength) for kind in AFTERWARDS for strength in plan.interventions.get(kind, ())]
    for (kind, strength), seed in product(after, plan.seeds):
        base = outputs[Training(BASELINE, None, seed)].validation
        probs, warned = _cross_fit(kind, strength, base, rows.labels)
        notes += warned
        tried[Training(kind, strength, seed)] = _measure_validation(of_probs(probs, rows, classes))

    def average(kind: str, strength: Strength) -> Any:
        """Average error and accuracy over the seeds, shape (2,)."""
        return np.mean([tried[Training(kind, strength, seed)] for seed in plan.seeds], axis=0)

    lowest = average(BASELINE, None)[1] - plan.accuracy_loss
    strengths: dict[str, Strength] = {BASELINE: None}
    for kind, candidates in plan.interventions.items():
        means = {strength: average(kind, strength) for strength in candidates}
        accurate = [strength for strength in candidates if means[strength][1] >= lowest]
        if accurate:
            strengths[kind] = min(accurate, key=lambda strength: means[strength][0])
        else:
            strengths[kind] = max(candidates, key=lambda strength: means[strength][1])
            notes.append(
                f"no strength of {kind} keeps the accuracy within {plan.accuracy_loss:g} of the base model's on the "
                f"validation rows; {strengths[kind]} loses least and was chosen"
            )
    return StrengthChoice(strengths, tried, tuple(dict.fromkeys(notes)))


def recalibrate(kind: str, strength: Strength, learn: Logits, labels: NDArray[np.int64], apply: Logits) -> Any:
    """Fit a recalibrator to logits `learn` (m, classes) and labels (m,), and apply it to the logits `apply` (n, classes).

    `kind` is temperature, bias-corrected-temperature, histogram or histogram-width; `strength` is the number of bins of the last
    two. Returns probabilities (n, classes), and the warnings of the fit as a list of "kind: text".
    """
    with warnings.catch_warnings(record=True, action="always", category=TruecalWarning) as caught:
        fitted = _MAKERS[kind](strength).fit(learn, labels)
    return fitted.predict_proba(apply), [f"{kind}: {w.message}" for w in caught]


def of_logits(logits: Logits, part: DataPart, classes: tuple[object, ...]) -> tc.Predictions:
    """Make predictions of logits (n, classes) with the labels of the n rows of a data part."""
    return tc.Predictions.from_logits(logits.astype(np.float64), np.array(classes)[part.labels], classes=classes)


def of_probs(probs: Any, part: DataPart, classes: tuple[object, ...]) -> tc.Predictions:
    """Make predictions of probabilities (n, classes) with the labels of the n rows of a data part."""
    return tc.Predictions.from_probs(probs, np.array(classes)[part.labels], classes=classes)


def _cross_fit(kind: str, strength: Strength, logits: Logits, labels: NDArray[np.int64]) -> Any:
    """Recalibrate each half of the rows by a map fitted to the other; return probabilities (n, classes) and warnings.

    The halves are the first and the last rows, because warped versions of one image are neighbours and must stay together.
    """
    middle = len(labels) // 2
    first, second = slice(0, middle), slice(middle, None)
    second_probs, second_warnings = recalibrate(kind, strength, logits[first], labels[first], logits[second])
    first_probs, first_warnings = recalibrate(kind, strength, logits[second], labels[second], logits[first])
    return np.concatenate((first_probs, second_probs)), second_warnings + first_warnings


def _measure_validation(preds: tc.Predictions) -> tuple[float, float]:
    """Compute the usual error (top label, 15 bins of equal width) and the accuracy of predictions.

    >>> _measure_validation(tc.Predictions.from_probs([[0.2, 0.8], [0.6, 0.4]], [1, 1]))
    (0.4, 0.5)
    """
    return float(TRADITIONAL(preds)), tc.scores.accuracy(preds)
