"""One job: one prediction file through all recalibrators, selections, lenses and metrics.

A job is named by a hash of everything its numbers depend on: the file's size and time of change, the options, the release.
Only one model is in memory at a time.
"""

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from truecal.errors import InputError, TruecalWarning
from truecal.lens import AllLabels, ClassWise, Lens, OneClass, TopLabel
from truecal.predictions import Predictions
from truecal.select import small_selection
from truecal.study.metrics.measured import Found, diagram, measure_lens
from truecal.study.metrics.names import metrics_of
from truecal.study.metrics.scores import measure_scores
from truecal.study.spec.files import Source
from truecal.study.spec.rows import Rows, class_named, load_rows, make_selection
from truecal.study.spec.spec import RECALIBRATORS, Options, Spec
from truecal.study.spec.split import held_out
from truecal.study.store import VERSION

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """A file to judge and, where recalibrators learn from another one, that file."""

    name: str
    source: Source
    learnt_from: Source
    options: Options

    @property
    def subset(self) -> tuple[object, ...] | None:
        return dict(self.options.class_subsets).get(self.source.dataset)


def plan(spec: Spec) -> list[Job]:
    """The jobs of a study, in its order."""
    known = {source.who: source for source in spec.sources}
    jobs = []
    for source in spec.sources:
        learnt_from = spec.options.split.teacher(source, known) if spec.options.recalibrators else source
        jobs.append(Job(_name(source, learnt_from, spec.options), source, learnt_from, spec.options))
    return jobs


def _name(source: Source, learnt_from: Source, options: Options) -> str:
    plain = options.plain()
    plain["class_subsets"] = dict(options.class_subsets).get(source.dataset)
    facts = {
        "store": VERSION,
        "truecal": _release(),
        "who": [*source.who, source.family, source.size],
        "files": [_fingerprint(source), _fingerprint(learnt_from)],
        "options": plain,
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@cache
def _release() -> str:
    return version("truecal")


def _fingerprint(source: Source) -> tuple[int, int]:
    try:
        found = source.path.stat()
    except OSError as error:
        raise InputError(f"cannot read {source.path}: {error.strerror}") from error
    return found.st_size, found.st_mtime_ns


def evaluate(job: Job) -> tuple[Records, Records]:
    """The rows of the store for a job: results, and the bins of its diagrams."""
    options = job.options
    rows = load_rows(job.source.path, options.columns, job.subset)
    results: Records = []
    diagrams: Records = []
    who = {name: getattr(job.source, name) for name in ("model", "family", "size", "dataset", "severity", "seed")}
    for recalibrator, preds, notes in _variants(job, rows):
        for selection, chosen, warned in _selected(preds, options):
            base = {"job": job.name, "recalibrator": recalibrator, "selection": selection}
            for lens, found, bins in _measured(chosen, options):
                diagrams += [{**base, "lens": lens, **row} for row in bins]
                results += [{**who, **base, "lens": lens, **_record(one, options, (*notes, *warned))} for one in found]
    return results, diagrams


def _record(found: Found, options: Options, notes: tuple[str, ...]) -> dict[str, Any]:
    metric = found.metric
    return {
        "metric": metric.name,
        "scheme": metric.scheme,
        "bins": metric.bins,
        "norm": metric.norm,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "level": None if found.low is None else options.level,
        "n": found.n,
        "warnings": "; ".join(dict.fromkeys((*notes, *found.warnings))),
    }


# ------------------------------------------------------------------ recalibrators


def _variants(job: Job, rows: Rows) -> Iterator[tuple[str, Predictions | None, tuple[str, ...]]]:
    """The predictions as they are, then recalibrated; all on rows no recalibrator has seen. None: it could not be fitted."""
    options = job.options
    if not options.recalibrators:
        yield "none", rows.preds, ()
        return
    teacher = rows if job.learnt_from == job.source else load_rows(job.learnt_from.path, options.columns, job.subset)
    learnt = held_out(teacher.preds.labels, options.split.fraction, options.split.seed)
    judged = np.ones(len(rows.preds), bool)
    if job.learnt_from.dataset == job.source.dataset:
        if not np.array_equal(teacher.preds.labels, rows.preds.labels):
            raise InputError(f"{job.learnt_from.path} has other labels than {job.source.path}; it has changed")
        judged = ~learnt
    preds, outputs = rows.preds.take(judged), rows.outputs[judged]
    yield "none", preds, ()
    shifted = job.source.severity > 0 and job.learnt_from == job.source and options.split.fit == "clean"
    own = ("there is no file of severity 0, so this was learnt on the shifted one",) if shifted else ()
    for name in options.recalibrators:
        fitted, notes = _fit(name, options.columns.kind, teacher, learnt)
        yield name, None if fitted is None else fitted.recalibrate(preds, outputs), (*own, *notes)


def _fit(name: str, kind: str, rows: Rows, learnt: Any) -> tuple[Any, tuple[str, ...]]:
    from truecal import recalibrate

    recalibrator = getattr(recalibrate, RECALIBRATORS[name])(input=kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruecalWarning)
        try:
            recalibrator.fit(rows.outputs[learnt], rows.preds.labels[learnt])
        except InputError as error:
            return None, (f"{name} could not be fitted: {error}",)
    return recalibrator, tuple(str(one.message) for one in caught if issubclass(one.category, TruecalWarning))


# ------------------------------------------------------------------ selections, lenses


def _selected(preds: Predictions | None, options: Options) -> Iterator[tuple[str, Predictions | None, tuple[str, ...]]]:
    yield "all", preds, ()
    for selected in options.selections:
        if preds is None:
            yield selected.name, None, ()
            continue
        try:
            chosen = make_selection(selected, preds)(preds)
        except InputError as error:
            yield selected.name, None, (str(error),)
            continue
        warned = small_selection(len(chosen), len(preds))
        yield selected.name, chosen, () if warned is None else (warned,)


def _measured(preds: Predictions | None, options: Options) -> Iterator[tuple[str, Sequence[Found], Records]]:
    """Every lens with its numbers and diagrams; nan where there is nothing to judge."""
    scores = metrics_of(options.metrics, "")
    if preds is None:
        for name, metrics in (("", scores), *((name, metrics_of(options.metrics, name)) for name in options.lenses)):
            yield name, [Found(metric, float("nan"), 0) for metric in metrics], []
        return
    top = TopLabel().sample(preds)
    if scores:
        yield "", measure_scores(preds, top.profile, scores, intervals=bool(options.intervals), level=options.level), []
    for name in options.lenses:
        lens = make_lens(name, preds)
        sample = top if name == "top-label" else lens.sample(preds) if lens.shares(preds) is None else None
        metrics = metrics_of(options.metrics, name)
        numbers = measure_lens(preds, lens, metrics, sample=sample, intervals=options.intervals, level=options.level)
        yield name, numbers, [] if sample is None else diagram(sample.profile)


def make_lens(name: str, preds: Predictions) -> Lens:
    """The lens of a name in a study file."""
    if name == "top-label":
        return TopLabel()
    if name == "all-label":
        return AllLabels()
    if name == "class-wise":
        return ClassWise()
    return OneClass(class_named(name.removeprefix("class:"), preds))
