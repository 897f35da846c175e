"""One job: one prediction file through all recalibrators, selections, lenses and metrics.

A job is named by a hash of everything its numbers depend on: the file's size and time of change (or its content), the options apart
from the choice of metrics, the release. Only one model is in memory at a time.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import InputError
from truecal.lens import Lens
from truecal.select import small_selection
from truecal.study.metrics.measured import Found, as_rows, diagram, measure_lens
from truecal.study.metrics.names import Metric, metrics_of, parse_metric
from truecal.study.metrics.paired import Drawn, Draws, can_be_paired
from truecal.study.metrics.scores import measure_scores, row_scores
from truecal.study.run.fit import Fit, fit_name, learn, read_fit
from truecal.study.spec.files import Source
from truecal.study.spec.rows import Rows, class_named, load_rows, make_selection
from truecal.study.spec.spec import Options, Spec
from truecal.study.spec.split import held_out, labels_digest
from truecal.study.store import VERSION, Wanted
from truecal.types import Float64s

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """A file to judge, what is wanted of it, and who its recalibrators learn from."""

    name: str
    source: Source
    teacher: Source
    options: Options
    fingerprint: tuple[object, ...]
    fits: tuple[tuple[str, str], ...]  # recalibrator, name of its fit in the store
    by_content: bool = False
    wanted: tuple[Wanted, ...] = ()

    @property
    def subset(self) -> tuple[object, ...] | None:
        return dict(self.options.class_subsets).get(self.source.dataset)

    def metrics(self, lens: str) -> tuple[Metric, ...]:
        return tuple(parse_metric(metric) for at, metric in self.wanted if at == lens)


@dataclass
class Evaluated:
    """The rows of the store for a job."""

    results: Records = field(default_factory=list)
    diagrams: Records = field(default_factory=list)
    draws: Records = field(default_factory=list)


def wanted_of(options: Options) -> list[Wanted]:
    """Every lens and metric that the study asks for, scores of whole predictions (no lens) first."""
    return [(lens, metric.name) for lens in ("", *options.lenses) for metric in metrics_of(options.metrics, lens)]


def plan(spec: Spec) -> list[Job]:
    """The jobs of a study, in its order."""
    known = {source.who: source for source in spec.sources}
    prints: dict[Path, tuple[object, ...]] = {}

    def print_of(source: Source) -> tuple[object, ...]:
        if source.path not in prints:
            prints[source.path] = fingerprint(source.path, by_content=spec.by_content)
        return prints[source.path]

    jobs = []
    for source in spec.sources:
        options = spec.options
        teacher = known[options.teacher(source)] if options.recalibrators else source
        fits = tuple((name, fit_name(print_of(teacher), teacher, name, options)) for name in options.recalibrators)
        name = _name(source, options, print_of(source), fits)
        jobs.append(Job(name, source, teacher, options, print_of(source), fits, spec.by_content))
    return jobs


def _name(source: Source, options: Options, own: tuple[object, ...], fits: Sequence[tuple[str, str]]) -> str:
    facts = {
        "store": VERSION,
        "truecal": tc.__version__,
        "who": [*source.who, source.family, source.size],
        "file": own,
        "fits": fits,
        "columns": asdict(options.columns),
        "selections": [asdict(one) for one in options.selections],
        "subset": dict(options.class_subsets).get(source.dataset),
        "split": asdict(options.split) if options.recalibrators else None,
        "shares": options.shares_rows(source.dataset),
        "intervals": options.intervals,
        "level": options.level,
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def fingerprint(path: Path, *, by_content: bool) -> tuple[object, ...]:
    """What tells a file from one that was there before: its size and times (of the last write, and of the last change of
    any kind, which cannot be set back), or its content."""
    try:
        status = path.stat()
        if not by_content:
            return status.st_size, status.st_mtime_ns, status.st_ctime_ns
        with path.open("rb") as file:
            return status.st_size, hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


# ------------------------------------------------------------------ from file to numbers


def evaluate(job: Job, fits: Path) -> Evaluated:
    """All numbers wanted of a job; `fits` is the folder of what recalibrators learnt."""
    options = job.options
    rows = load_rows(job.source.path, options.columns)
    evaluated = Evaluated()
    who = {name: getattr(job.source, name) for name in ("model", "family", "size", "dataset", "severity", "seed")}
    for recalibrator, fit, preds in _variants(job, rows, fits):
        about = {"fit_on": None, "fit_rows": None} if fit is None else {"fit_on": fit.dataset, "fit_rows": fit.rows}
        notes = () if fit is None else fit.notes
        for selection, chosen, warned in _selected(preds, options):
            base = {"job": job.name, "recalibrator": recalibrator, "selection": selection}
            for lens, numbers, bins, drawn in _measured(chosen, job, paired=selection == "all"):
                evaluated.diagrams += [{**base, "lens": lens, **row} for row in bins]
                evaluated.draws += [{**base, "lens": lens, "metric": d.metric.name, "values": d.values} for d in drawn]
                records = (_record(one, options, (*notes, *warned)) for one in numbers)
                evaluated.results += [{**who, **base, **about, "lens": lens, **record} for record in records]
    if fingerprint(job.source.path, by_content=job.by_content) != job.fingerprint:
        raise InputError("it was changed while the study was running; run the study again")
    return evaluated


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


def _variants(job: Job, rows: Rows, fits: Path) -> Iterator[tuple[str, Fit | None, tc.Predictions | None]]:
    """The predictions as they are, then recalibrated; all on rows no recalibrator has seen. None: it could not be fitted."""
    options = job.options
    judged = np.ones(len(rows), bool)
    if options.recalibrators and options.shares_rows(job.source.dataset):
        judged = ~held_out(rows.labels, options.split.fraction, options.split.seed)
    yield "none", None, rows.predictions(judged, job.subset)
    for name, file in job.fits:
        path = fits / f"{file}.json"
        fit = read_fit(path) or learn(path, job.teacher, name, options, rows if job.teacher == job.source else None)
        if options.shares_rows(job.source.dataset) and fit.labels != labels_digest(rows.labels):
            raise InputError(f"{job.teacher.path} has other labels than {job.source.path}; it has changed")
        yield name, fit, _recalibrated(fit, rows, judged, job.subset)


def _recalibrated(
    fit: Fit, rows: Rows, judged: NDArray[np.bool_], subset: tuple[object, ...] | None
) -> tc.Predictions | None:
    probs = fit.apply(rows.judged(judged))
    return None if probs is None else rows.predictions(judged, subset, probs)


def _selected(
    preds: tc.Predictions | None, options: Options
) -> Iterator[tuple[str, tc.Predictions | None, tuple[str, ...]]]:
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


Measured = tuple[str, Sequence[Found], Records, Sequence[Drawn]]


def _measured(preds: tc.Predictions | None, job: Job, *, paired: bool) -> Iterator[Measured]:
    """Every lens with its numbers, diagrams and resamples; nan where there is nothing to judge."""
    options = job.options
    if preds is None:
        for name in ("", *options.lenses):
            yield name, [Found(metric, float("nan"), 0) for metric in job.metrics(name)], [], []
        return
    top = tc.TopLabel().sample(preds)
    scores = job.metrics("")
    if scores:
        rows = {metric: row_scores(metric, preds, top) for metric in scores if metric.kind == "score"}
        numbers = measure_scores(preds, rows, scores, intervals=bool(options.intervals), level=options.level)
        means = (
            {metric: rows[metric] for metric in scores if can_be_paired(metric)} if paired and options.intervals else {}
        )
        yield "", numbers, [], _drawn_means(top, means, options.level)
    for name in options.lenses:
        metrics = job.metrics(name)
        if not metrics:
            continue
        lens = make_lens(name, preds)
        sample = top if name == "top-label" else as_rows(lens.sample(preds)) if lens.shares(preds) is None else None
        numbers = measure_lens(preds, lens, metrics, sample=sample, intervals=options.intervals, level=options.level)
        errors = [metric for metric in metrics if can_be_paired(metric)] if paired and options.intervals else []
        drawn = [] if sample is None or sample.pooled else _drawn(sample, errors, options.level)
        yield name, _with_ends(numbers, drawn), [] if sample is None else diagram(sample.profile), drawn


def _drawn_means(top: tc.Sample, means: dict[Metric, Float64s], level: float) -> list[Drawn]:
    """Means of whole predictions on the resamples that all models share."""
    try:
        return Draws.of(top).of_means(means, top.weights, level) if means else []
    except InputError:
        return []  # a single unit cannot be resampled


def _drawn(sample: tc.Sample, metrics: Sequence[Metric], level: float) -> list[Drawn]:
    """Errors on the resamples that all models share; those that cannot be resampled are left out."""
    draws: list[Drawn] = []
    for metric in metrics:
        try:
            draws.append(Draws.of(sample).of_estimator(metric, sample, level))
        except InputError:
            continue
    return draws


def _with_ends(numbers: Sequence[Found], drawn: Sequence[Drawn]) -> list[Found]:
    """The same, with intervals from the resamples where there is none by formula."""
    ends = {one.metric: (one.low, one.high) for one in drawn}
    parts = []
    for one in numbers:
        if one.low is None and one.metric in ends and np.isfinite(one.value):
            one = Found(one.metric, one.value, one.n, *ends[one.metric], one.warnings)
        parts.append(one)
    return parts


def make_lens(name: str, preds: tc.Predictions) -> Lens:
    """The lens of a name in a study file."""
    if name == "top-label":
        return tc.TopLabel()
    if name == "all-label":
        return tc.AllLabels()
    if name == "class-wise":
        return tc.ClassWise()
    return tc.OneClass(class_named(name.removeprefix("class:"), preds))
