"""Claims: which run is at work on a job, so that several runs on one host share a store without a lock service.

A claim is a file made if there is none (an atomic operation), with the number of its process in it. It is dead when that process is
gone; then any run may take it. Two runs that take a dead claim at the same moment do the same work twice and write the same part:
numbers do not depend on claims.
"""

import hashlib
import json
import os
import secrets
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import names, options, parallel
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.lenses.lens import Lens
from truecal.predictions.selection import small_selection
from truecal.study.analyses.points import only
from truecal.study.metrics import (
    Drawn,
    Draws,
    Found,
    Metric,
    as_rows,
    can_be_paired,
    diagram,
    measure_lens,
    measure_scores,
    metrics_of,
    parse_metric,
    row_scores,
)
from truecal.study.rows import Rows, class_named, held_out, labels_digest, load_rows, make_selection
from truecal.study.spec import Columns, Options, Source, Spec
from truecal.study.store import VERSION, Store, Wanted, polars
from truecal.types import Float64s
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# Claims: which run is at work on a job, so that several runs on one host share a store without a lock service


class Claims:
    """The claims of one run, in a folder that all runs on a store share."""

    def __init__(self, folder: Path, process: int | None = None) -> None:
        self.folder = folder
        self.process = os.getpid() if process is None else process

    def take(self, job: str) -> bool:
        """Claim a job; False if another run that lives has it."""
        path = self.folder / job
        for _ in range(2):
            try:
                self._create(path)
            except FileExistsError:
                if not self._dead(path):
                    return False
                path.unlink(missing_ok=True)
                continue
            return True
        return False

    def _create(self, path: Path) -> None:
        """Write a claim whole or not at all: a run that is killed in between must not leave one of nobody."""
        written = self.folder / f".{secrets.token_hex(8)}.part"
        written.write_text(str(self.process), encoding="utf-8")
        try:
            os.link(written, path)
        finally:
            written.unlink(missing_ok=True)

    def release(self, job: str) -> None:
        """Give up a claim."""
        (self.folder / job).unlink(missing_ok=True)

    def _dead(self, path: Path) -> bool:
        try:
            owner = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return True
        # A claim of this run's own number is left from an earlier process that had it: no job is taken twice in a run.
        return not owner.isdigit() or int(owner) == self.process or not _alive(int(owner))


def _alive(process: int) -> bool:
    if os.name == "nt":  # there, signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# ----------------------------------------------------------------------------------------------------
# What recalibrators learn: once for every model, clean dataset and seed, on all classes of the clean split, and kept


@dataclass(frozen=True)
class Fit:
    """A recalibrator fitted on the clean split of one model.

    `map` is its JSON, None where it could not be fitted (`notes` say why). Above 1, `temperature` says that the model was
    overconfident; `confidence` and `accuracy` are those of the rows it learnt from.
    """

    model: str
    dataset: str
    seed: int
    recalibrator: str
    rows: int  # learnt from
    of: int
    labels: str  # digest of the labels of all rows
    map: str | None
    temperature: float | None
    nll_before: float | None
    nll_after: float | None
    confidence: float
    accuracy: float
    notes: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()  # rows of the file that were learnt from

    def apply(self, outputs: NDArray[Any]) -> NDArray[np.float64] | None:
        """Recalibrated probabilities of all classes, or None where there is no map."""
        return None if self.map is None else _maps().Recalibrator.from_json(self.map).predict_proba(outputs)


def fit_name(fingerprint: tuple[object, ...], source: Source, recalibrator: str, options: Options) -> str:
    """The name of a fit in the store: a hash of all it depends on."""
    facts = [list(fingerprint), source.who, recalibrator, asdict(options.columns), asdict(options.split)]
    return hashlib.blake2b(json.dumps(facts, default=str).encode(), digest_size=12).hexdigest()


def read_fit(path: Path) -> Fit | None:
    """A fit that is there."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is damaged; delete it and run the study again") from error
    return Fit(**{**held, "notes": tuple(held["notes"]), "indices": tuple(held.get("indices", ()))})


def learn(path: Path, source: Source, recalibrator: str, options: Options, rows: Rows | None = None) -> Fit:
    """Fit on the clean split of a file, and keep the result; `rows` are those of the file where they are there already."""
    held = load_rows(source.path, options.columns) if rows is None else rows
    learnt = held_out(held.labels, options.split.fraction, options.split.seed)
    preds = held.predictions(learnt, None)
    top = preds.probs if preds.probs.ndim == 1 else preds.probs.max(axis=1)
    confidence = np.maximum(top, 1 - top) if preds.probs.ndim == 1 else top
    fitted, notes = _fitted(recalibrator, options.columns.kind, held, learnt)
    after = None if fitted is None else fitted.recalibrate(preds, held.judged(learnt))
    fit = Fit(
        source.model,
        source.dataset,
        source.seed,
        recalibrator,
        rows=int(learnt.sum()),
        of=len(held),
        labels=labels_digest(held.labels),
        map=None if fitted is None else fitted.to_json(),
        temperature=None if fitted is None else getattr(fitted, "temperature_", None),
        nll_before=_finite(tc.scores.log_loss(preds)),
        nll_after=None if after is None else _finite(tc.scores.log_loss(after)),
        confidence=float(np.average(confidence, weights=preds.weights)),
        accuracy=float(np.average(_correct(preds), weights=preds.weights)),
        notes=notes,
        indices=tuple(np.flatnonzero(learnt).tolist()),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(fit), indent=1))
    return fit


def _maps() -> Any:
    """The recalibrators, loaded on use: they need scikit-learn."""
    return import_module("truecal.recalibration")


def _correct(preds: Any) -> NDArray[np.bool_]:
    top = preds.probs > 0.5 if preds.probs.ndim == 1 else preds.probs.argmax(axis=1)
    return np.asarray(top == preds.labels)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _fitted(name: str, kind: str, rows: Rows, learnt: NDArray[np.bool_]) -> tuple[Any, tuple[str, ...]]:
    recalibrator = names.recalibrator_named(name).of(_maps(), input=kind)
    weights = None if rows.weights is None else rows.weights[learnt]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruecalWarning)
        try:
            recalibrator.fit(rows.outputs[learnt], rows.labels[learnt], weights)
        except InputError as error:
            return None, (f"{name} could not be fitted: {error}",)
    return recalibrator, tuple(str(one.message) for one in caught if issubclass(one.category, TruecalWarning))


# ----------------------------------------------------------------------------------------------------
# The predictions behind the numbers of a store: the same file, rows, classes and recalibration again


def predictions_of(
    store: Store,
    model: str,
    dataset: str,
    recalibrator: str = "none",
    *,
    severity: float = 0.0,
    seed: int | None = None,
) -> tc.Predictions:
    """What a model said on the rows of a dataset that were judged; the prediction file must still be where it was."""
    if seed is not None:
        options.whole(seed, "seed", 0)
    pl = polars()
    meta, frame = store.meta(), store.frame()
    if not meta.get("files"):
        raise InputError("this store was imported: it holds numbers, and no predictions to go back to")
    results = only(only(frame, "model", model), "dataset", dataset).filter(pl.col("severity") == severity).sort("seed")
    results = results if seed is None else results.filter(pl.col("seed") == seed)
    if not results.height:
        raise InputError(f"{model!r} has no results on {dataset!r} at severity {severity:g}")
    job = results["job"][0]
    how = meta["protocol"][job]
    rows = load_rows(Path(meta["files"][job]), Columns.of(meta["columns"]))
    kept = np.ones(len(rows), bool)
    if how["fraction"] is not None:
        kept = ~held_out(rows.labels, how["fraction"], how["split_seed"])
    subset = None if how["subset"] is None else tuple(how["subset"])
    if recalibrator == "none":
        return rows.predictions(kept, subset)
    if recalibrator not in how["fits"]:
        raise InputError(f"there is no recalibrator {recalibrator!r} in this study; there is {', '.join(how['fits'])}")
    fit = read_fit(store.folder / "fits" / f"{how['fits'][recalibrator]}.json")
    probs = None if fit is None else fit.apply(rows.judged(kept))
    if probs is None:
        raise InputError(f"{recalibrator} could not be fitted for {model!r}")
    return rows.predictions(kept, subset, probs)


# ----------------------------------------------------------------------------------------------------
# One job: one prediction file through all recalibrators, selections, lenses and metrics

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
        "groupings": options.groupings,
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
        lens = make_lens(name, preds, options)
        one_dataset = not lens.several and lens.shares(preds) is None
        sample = top if name == "top-label" else as_rows(lens.sample(preds)) if one_dataset else None
        numbers = measure_lens(preds, lens, metrics, sample=sample, intervals=options.intervals, level=options.level)
        errors = [metric for metric in metrics if can_be_paired(metric)] if paired and options.intervals else []
        drawn = [] if sample is None or sample.pooled else _drawn(sample, errors, options.level)
        yield name, _with_ends(numbers, drawn), [] if sample is None else diagram(sample.profile), drawn


def _drawn_means(top: tc.lenses.Sample, means: dict[Metric, Float64s], level: float) -> list[Drawn]:
    """Means of whole predictions on the resamples that all models share."""
    try:
        return Draws.of(top).of_means(means, top.weights, level) if means else []
    except InputError:
        return []  # a single unit cannot be resampled


def _drawn(sample: tc.lenses.Sample, metrics: Sequence[Metric], level: float) -> list[Drawn]:
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


def make_lens(name: str, preds: tc.Predictions, options: Options) -> Lens:
    """The lens of a name in a study file."""
    if name.startswith("class:"):
        return tc.OneClass(class_named(name.removeprefix("class:"), preds))
    if name.startswith("grouping:"):
        groups = dict(options.groupings)[name.removeprefix("grouping:")]
        return tc.Grouping({group: [class_named(one, preds) for one in classes] for group, classes in groups})
    lens: Lens = names.lens_named(name).of(tc)
    return lens


# ----------------------------------------------------------------------------------------------------
# Running a study: jobs that are not done yet, in several processes, each with one model in memory

Answer = Evaluated | str | None  # the rows of the store, why there are none, or None: another run is at work on it
_POLL = 0.5  # seconds between looks at jobs that other runs work on


def run_study(
    spec: Spec,
    store: Store,
    *,
    workers: int | None = None,
    skip_broken: bool = False,
    progress: parallel.Progress = parallel.unheard,
) -> Store:
    """Evaluate what the store lacks. A file that cannot be judged does not stop the others; all such are listed at the end."""
    jobs = plan(spec)
    wanted = wanted_of(spec.options)
    store.begin(_meta(spec, jobs, wanted))
    missing = store.missing([job.name for job in jobs], wanted)
    todo = [replace(job, wanted=tuple(missing[job.name])) for job in jobs if job.name in missing]
    progress(parallel.Step(spec.name, len(jobs) - len(todo), len(jobs)))
    asked = workers if workers is not None else spec.workers
    count = min(asked if asked is not None else parallel.cores(), max(len(todo), 1))
    failed = []
    for number, refusal in enumerate(_work(todo, store, count), start=len(jobs) - len(todo) + 1):
        if refusal is not None:
            failed.append(refusal)
        progress(parallel.Step(spec.name, number, len(jobs)))
    if failed and skip_broken:
        skipped = dict(refusal.split(": ", 1) for refusal in failed)
        store.begin(_meta(spec, jobs, wanted) | {"broken": {**dict(spec.broken), **skipped}})
    elif failed:
        raise InputError(
            "\n".join(
                [f"{len(failed)} of {len(jobs)} prediction files could not be judged (all others are kept)", *failed]
            )
        )
    return store


def _meta(spec: Spec, jobs: Sequence[Job], wanted: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What study.json says."""
    covariates = {job.name: list(spec.covariates_of(job.source).values()) for job in jobs} if spec.covariates else {}
    names = dict.fromkeys(job.source.dataset for job in jobs)
    return {
        "name": spec.name,
        "study": spec.written,
        "jobs": [job.name for job in jobs],
        "wanted": list(wanted),
        "files": {job.name: str(job.source.path) for job in jobs},
        "columns": asdict(spec.options.columns),
        "protocol": {job.name: _protocol(job) for job in jobs},
        "fits": sorted({fit for job in jobs for _, fit in job.fits}),
        "clean": {name: clean for name in names if (clean := spec.options.clean_of(name)) != name},
        "covariates": {"names": list(spec.covariates), "of": covariates},
        "broken": dict(spec.broken),
    }


def _protocol(job: Job) -> dict[str, Any]:
    """How the rows of a job were chosen and recalibrated, for whoever goes back to its predictions."""
    options = job.options
    shares = bool(options.recalibrators) and options.shares_rows(job.source.dataset)
    return {
        "fraction": options.split.fraction if shares else None,
        "split_seed": options.split.seed,
        "subset": job.subset,
        "fits": dict(job.fits),
    }


def _work(todo: Sequence[Job], store: Store, workers: int) -> Iterator[str | None]:
    """Do every job, or see another run do it; yields, as they are kept, None, or why a file was refused."""
    left = {job.name: job for job in sorted(todo, key=lambda job: job.teacher != job.source)}
    claims = Claims(store.folder / "claims")
    with parallel.Pool(workers) as pool:
        while left:
            before = len(left)
            for job, refusal in _once(list(left.values()), store, claims, pool):
                del left[job.name]
                yield refusal
            for job in [job for job in left.values() if store.has(job.name, job.wanted)]:  # other runs did these
                del left[job.name]
                yield None
            if len(left) == before:
                time.sleep(_POLL)


def _once(jobs: Sequence[Job], store: Store, claims: Claims, pool: parallel.Pool) -> Iterator[tuple[Job, str | None]]:
    """Do the jobs that no other run is at work on; their claims are given up when their parts are written."""
    writing: deque[tuple[Job, Future[None]]] = deque()

    def written() -> tuple[Job, str | None]:
        job, future = writing.popleft()
        future.result()
        claims.release(job.name)
        return job, None

    tasks = [_Task(job, store.folder, claims.process) for job in jobs]
    with ThreadPoolExecutor(1) as writer:
        for place, answer in pool.each(_judge, tasks):
            job = jobs[place]
            if isinstance(answer, str):
                claims.release(job.name)
                yield job, f"{job.source.path}: {answer}"
            elif answer is not None:
                writing.append((job, writer.submit(store.add, job.name, answer.results, answer.diagrams, answer.draws)))
            if len(writing) > 1:
                yield written()
        while writing:
            yield written()


@dataclass(frozen=True)
class _Task:
    """A job, the store it is for, and the run that claims it."""

    job: Job
    folder: Path
    process: int


def _judge(task: _Task) -> Answer:
    """Claim a job and do it, in a worker process."""
    job, store = task.job, Store(task.folder)
    claims = Claims(task.folder / "claims", task.process)
    if store.has(job.name, job.wanted) or not claims.take(job.name):
        return None
    if store.has(job.name, job.wanted):  # done, and given up, between the two looks
        claims.release(job.name)
        return None
    try:
        return evaluate(job, task.folder / "fits")
    except InputError as error:
        return str(error)
    except BaseException:
        claims.release(job.name)
        raise
