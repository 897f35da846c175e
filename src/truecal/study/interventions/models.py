"""Every model a comparison needs, trained once: logits are kept by content, so that a run that was stopped goes on where it was."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import parallel
from truecal.study.interventions.config import BASELINE, WHILE_TRAINING, Plan, Strength
from truecal.study.interventions.data import Data
from truecal.train import recipe as recipes

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Job:
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


def jobs(plan: Plan) -> list[Job]:
    """The base model and every strength of every intervention made while training, for each seed."""
    kinds = [(BASELINE, None)] + [(kind, s) for kind in WHILE_TRAINING for s in plan.interventions.get(kind, ())]
    return [Job(kind, strength, seed) for seed in plan.seeds for kind, strength in kinds]


def outputs_of_all(
    plan: Plan,
    data: Data,
    folder: str | PathLike[str],
    *,
    workers: int = 1,
    progress: parallel.Progress = parallel.unheard,
) -> dict[Job, Outputs]:
    """Logits of every model, from the cache in `folder` or trained now; neither workers nor interruptions change a bit of them."""
    kept = tc.lab.BatchCache(folder)
    asked = jobs(plan)
    setting = _setting(plan.training, data)
    keys = {job: _key(setting, job) for job in asked}
    judged: dict[Job, Outputs] = {}
    for job in asked:
        arrays = kept.read(keys[job])
        if arrays.keys() >= {"validation", "test"}:
            judged[job] = Outputs(arrays["validation"], arrays["test"])  # type: ignore[arg-type]
    progress(parallel.Step("taken from earlier runs" if judged else "starting", len(judged), len(asked)))
    missing = [job for job in asked if job not in judged]
    for job, outputs in _trained(missing, plan.training, data, workers):
        kept.add(keys[job], {"validation": outputs.validation, "test": outputs.test})  # type: ignore[dict-item]
        judged[job] = outputs
        progress(parallel.Step(str(job), len(judged), len(asked)))
    return {job: judged[job] for job in asked}


def _trained(missing: list[Job], recipe: recipes.Recipe, data: Data, workers: int) -> Iterator[tuple[Job, Outputs]]:
    if workers == 1 or len(missing) < 2:
        for job in missing:
            yield job, train(job, recipe, data)
        return
    with parallel.Pool(min(workers, len(missing)), prepare=partial(_remember, recipe, data)) as pool:
        for place, outputs in pool.each(_train_remembered, missing):
            yield missing[place], outputs


def train(job: Job, recipe: recipes.Recipe, data: Data) -> Outputs:
    """Train one model, in this process."""
    from truecal.train import fit as training

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


_HELD: dict[str, Any] = {}  # of a worker process: the recipe and the data, sent once


def _remember(recipe: recipes.Recipe, data: Data) -> None:
    _HELD.update(recipe=recipe, data=data)


def _train_remembered(job: Job) -> Outputs:
    return train(job, _HELD["recipe"], _HELD["data"])


def _setting(recipe: recipes.Recipe, data: Data) -> Mapping[str, Any]:
    """All that determines the numbers besides the job: data, recipe, code, torch."""
    sources = sorted((Path(__file__).parents[2] / "train").glob("*.py"))
    code = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    arrays = hashlib.sha256()
    for part in (data.train, data.validation, data.test):
        for array in (part.inputs, part.labels):
            arrays.update(f"{array.dtype}{array.shape}".encode())
            arrays.update(np.ascontiguousarray(array).tobytes())
    return {"recipe": asdict(recipe), "data": arrays.hexdigest(), "code": code, "torch": version("torch")}


def _key(setting: Mapping[str, Any], job: Job) -> str:
    return hashlib.sha256(json.dumps({**setting, "job": asdict(job)}, sort_keys=True).encode()).hexdigest()
