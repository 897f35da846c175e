"""Run a study: fit recalibrators, evaluate every prediction file that the store lacks, in several processes."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import truecal as tc
from truecal import names, parallel
from truecal.errors import InputError, TruecalWarning
from truecal.lenses.lens import Lens
from truecal.study.metrics import Measurement, as_rows, diagram, measure_lens, measure_scores, metrics_of
from truecal.study.read_spec import read_spec
from truecal.study.rows import Mask, Rows, class_named, held_out, labels_digest, load_rows
from truecal.study.spec import FIELDS, Options, PredictionFile, Spec
from truecal.study.store import VERSION, Store, read_json
from truecal.types import Indices
from truecal.writing import write_whole

_JOB_OPTIONS = ("lenses", "metrics", "groupings", "intervals", "level")  # beside those of the protocol


@dataclass(frozen=True)
class Study:
    """Evaluate many prediction files in the same way. Made by :meth:`read`.

    Parameters
    ----------
    spec : Spec
        The study file as values.

    See Also
    --------
    Store : Holds the results.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.savez(folder / "mlp.npz", p=np.array([0.25, 0.75, 0.75, 0.25]), y=np.array([0, 1, 0, 0]))
    >>> text = '''
    ... name: one model
    ... predictions: [{files: "{model}.npz", dataset: d}]
    ... columns: {label: y, score: p}
    ... metrics: [error, ece-width-2-l1]
    ... '''
    >>> _ = (folder / "study.yaml").write_text(text)
    >>> study = Study.read(folder / "study.yaml")
    >>> study.models, len(study)
    (('mlp',), 1)
    >>> study.run(folder / "store", workers=1).frame().select("model", "metric", "value").rows()
    [('mlp', 'error', 0.25), ('mlp', 'ece-width-2-l1', 0.0)]
    """

    spec: Spec

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Study":
        """Read a study file and look at the labels and shapes of all prediction files.

        Parameters
        ----------
        path : path
            The YAML file.

        Returns
        -------
        Study
            A study that can be run.

        Raises
        ------
        InputError
            With every problem and its line; nothing is evaluated before.
        """
        return cls(read_spec(path))

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.spec.name

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order of the file."""
        return tuple(dict.fromkeys(source.model for source in self.spec.sources))

    def __len__(self) -> int:
        """Return the number of prediction files."""
        return len(self.spec.sources)

    def run(
        self,
        store: str | os.PathLike[str] | Store,
        *,
        workers: int | None = None,
        progress: parallel.Progress = parallel.ignore_progress,
    ) -> Store:
        """Evaluate every file that the store lacks.

        Parameters
        ----------
        store : path or Store
            Folder of the results; made if it is not there.
        workers : int, default None
            Processes; None: those of the study file, else all cores. One: no further process is started.
        progress : callable, default no report
            Called with a :class:`truecal.parallel.Step`: how many of all files are done.

        Returns
        -------
        Store
            The store with all results.

        Raises
        ------
        InputError
            If files could not be evaluated, with the reasons; all others are in the store.

        Notes
        -----
        A run can be stopped, or killed, at any moment and started again: finished files are skipped, nothing is counted twice.
        Several runs may write to one store.
        """
        store = store if isinstance(store, Store) else Store(store)
        spec, jobs = self.spec, make_jobs(self.spec)
        store.begin(_study_content(spec, jobs))
        missing = [job for job in jobs if not store.has(job.name)]
        missing.sort(key=lambda job: job.fit_source != job.source)  # first those that recalibrators are fitted on
        done = len(jobs) - len(missing)
        progress(parallel.Step(spec.name, done, len(jobs)))
        workers = workers or spec.workers or parallel.cores()
        failed: list[str] = []
        with parallel.Pool(min(workers, max(len(missing), 1))) as pool:
            tasks = [(job, store.folder) for job in missing]
            for number, (position, refusal) in enumerate(pool.each(_evaluate_into_store, tasks), done + 1):
                if refusal is not None:
                    failed.append(f"{missing[position].source.path}: {refusal}")
                progress(parallel.Step(spec.name, number, len(jobs)))
        if failed:
            first = f"{len(failed)} of {len(jobs)} prediction files could not be judged (the results of all others are saved)"
            raise InputError("\n".join([first, *failed]))
        return store


# ----------------------------------------------------------------------------------------------------
# Recalibrators, fitted once for every model, clean dataset and seed, on the clean split


@dataclass(frozen=True)
class Fit:
    """A recalibrator fitted on the clean split of one model."""

    model: str
    dataset: str
    seed: int
    recalibrator: str
    rows: int  # number of rows fitted on
    of: int  # number of rows of the file
    labels: str  # digest of the labels of all rows
    map: str | None  # JSON of the recalibrator; None where it could not be fitted
    temperature: float | None  # above 1: the model was overconfident; None for other recalibrators
    notes: Sequence[str] = ()  # warnings of the fit, or the reason why there is none
    indices: Sequence[int] = ()  # rows of the file (from 0) fitted on

    @classmethod
    def read(cls, path: Path) -> "Fit":
        """Read a fit from its file."""
        return cls(**read_json(path))

    def apply(self, rows: Rows, mask: Mask) -> tc.Predictions | None:
        """Recalibrate the rows in a mask (n,); None where the recalibrator could not be fitted (`map` is None)."""
        if self.map is None:
            return None
        probs = _recalibration().Recalibrator.from_json(self.map).predict_proba(rows.select(mask))
        return rows.predictions(mask, probs)


def fit_recalibrator(path: Path, source: PredictionFile, name: str, options: Options, rows: Rows | None = None) -> Fit:
    """Fit the recalibrator `name` on the clean split of the file `source`, and write it to `path` as JSON.

    `rows` are those of the file; None: they are read. A fit that is refused has map None, and the reason among its notes.
    """
    rows = load_rows(source.path, options.columns) if rows is None else rows
    mask = _fitted_rows(rows.labels, options)
    weights = None if rows.weights is None else rows.weights[mask]
    recalibrator = names.recalibrator_named(name).of(_recalibration(), input=options.columns.kind)
    facts: dict[str, Any] = {"map": None, "temperature": None}
    with warnings.catch_warnings(record=True, action="always", category=TruecalWarning) as caught:
        try:
            recalibrator.fit(rows.outputs[mask], rows.labels[mask], weights)
            facts = {"map": recalibrator.to_json(), "temperature": getattr(recalibrator, "temperature_", None)}
            notes = tuple(str(one.message) for one in caught if issubclass(one.category, TruecalWarning))
        except InputError as error:
            notes = (f"{name} could not be fitted: {error}",)
    fit = Fit(
        source.model,
        source.dataset,
        source.seed,
        name,
        rows=int(mask.sum()),
        of=len(rows),
        labels=labels_digest(rows.labels),
        notes=notes,
        indices=np.flatnonzero(mask).tolist(),
        **facts,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(fit), indent=1))
    return fit


def _fitted_rows(labels: Indices, options: Options) -> Mask:
    """Draw the mask (n,) of the rows that recalibrators are fitted on, `held_out` with fraction and seed of the study's split."""
    return held_out(labels, options.split.fraction, options.split.seed)


def _recalibration() -> Any:
    """Import truecal.recalibration on use, because it needs scikit-learn."""
    return import_module("truecal.recalibration")


# ----------------------------------------------------------------------------------------------------
# Jobs: one prediction file through all recalibrators, lenses and metrics


@dataclass(frozen=True)
class Job:
    """A file to evaluate, and the file its recalibrators are fitted on."""

    name: str  # a hash of all that its numbers depend on
    source: PredictionFile
    fit_source: PredictionFile  # `source` itself without recalibrators
    options: Options
    fingerprint: tuple[int, ...]  # of the file `source`
    fits: Mapping[str, str]  # by recalibrator, the name of its fit in the store: fits/NAME.json
    is_split: bool  # whether the rows that recalibrators were fitted on are left out

    def judged_rows(self, labels: Indices) -> Mask:
        """Return the mask (n,) of the rows that no recalibrator was fitted on."""
        return ~_fitted_rows(labels, self.options) if self.is_split else np.ones(len(labels), bool)


def make_jobs(spec: Spec) -> list[Job]:
    """Make a job per prediction file, in the order of the study; refuse a file that cannot be read.

    A job, and a fit, is named by a hash (`_digest`) of what its numbers depend on: `fingerprint` of its file and of that of the
    fit, columns, split, options in _JOB_OPTIONS, versions of store and truecal. Rows are split where recalibrators are fitted and
    the dataset shares the rows of its clean one.
    """
    options = spec.options
    by_key = {source.key: source for source in spec.sources}
    fingerprints = {source.path: fingerprint(source.path) for source in spec.sources}
    columns, split = asdict(options.columns), asdict(options.split)
    common = {"store": VERSION, "truecal": tc.__version__, "columns": columns}
    common |= {name: getattr(options, name) for name in _JOB_OPTIONS}
    jobs = []
    for source in spec.sources:
        fit_source = by_key[options.fit_source(source)] if options.recalibrators else source
        fit_facts = [fingerprints[fit_source.path], fit_source.key, columns, split]
        fits = {name: _digest([name, *fit_facts]) for name in options.recalibrators}
        is_split = bool(options.recalibrators) and options.shares_rows(source.dataset)
        file = fingerprints[source.path]
        facts = {**common, "source": [*source.key, source.family, source.size], "file": file}
        name = _digest({**facts, "fits": fits, "split": split if is_split else None})
        jobs.append(Job(name, source, fit_source, options, file, fits, is_split))
    return jobs


def _digest(facts: object) -> str:
    """Compute a hash (24 hexadecimal digits) of values as JSON, whatever the order of keys; others count by their text.

    >>> _digest({"a": 1, "b": 2}) == _digest({"b": 2, "a": 1}), len(_digest("a"))
    (True, 24)
    """
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def fingerprint(path: Path) -> tuple[int, ...]:
    """Return size, time of the last write and time of the last change of status (ns) of a file; the last cannot be set back.

    Raises InputError if the file cannot be read.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


Records = list[dict[str, Any]]


def evaluate(job: Job, fits: Path) -> tuple[Records, Records, Records]:
    """Evaluate a job; return its results, diagrams and resamples as records with the columns of a store.

    Recalibrators are read from the folder `fits`, or fitted and written there. Raise if the file changes during the evaluation.
    """
    options, source = job.options, job.source
    rows = load_rows(source.path, options.columns)
    results, diagrams, draws = [], [], []
    for recalibrator, fit, preds in _recalibrate(job, rows, fits):
        keys = {"job": job.name, "recalibrator": recalibrator}
        facts = {name: getattr(source, name) for name in FIELDS}
        facts |= {"fit_on": None, "fit_rows": None} if fit is None else {"fit_on": fit.dataset, "fit_rows": fit.rows}
        for lens, measured, bins in _measure_lenses(preds, job):
            base = {**keys, "lens": lens, "selection": "all"}
            diagrams += [{**base, **row} for row in bins]
            draws += [
                {**base, "metric": measurement.metric.name, "values": measurement.draws}
                for measurement in measured
                if measurement.draws is not None
            ]
            notes = () if fit is None else fit.notes
            results += [{**facts, **base, **_record(measurement, options, notes)} for measurement in measured]
    if fingerprint(source.path) != job.fingerprint:
        raise InputError("it was changed while the study was running; run the study again")
    return results, diagrams, draws


def _record(measurement: Measurement, options: Options, notes: Sequence[str]) -> dict[str, Any]:
    """Return a measurement as metric, scheme, bins, norm, value, low, high, n, level (None without limits) and warnings.

    The warnings are one text, distinct ones separated by "; ", with `notes` first.
    """
    metric = measurement.metric
    return {
        "metric": metric.name,
        **{name: getattr(metric, name) for name in ("scheme", "bins", "norm")},
        **{name: getattr(measurement, name) for name in ("value", "low", "high", "n")},
        "level": None if measurement.low is None else options.level,
        "warnings": "; ".join(dict.fromkeys((*notes, *measurement.warnings))),
    }


def _recalibrate(job: Job, rows: Rows, fits: Path) -> Iterator[tuple[str, Fit | None, tc.Predictions | None]]:
    """Yield (recalibrator, fit, predictions) of the judged rows: first ("none", None, ...), then by each recalibrator.

    Predictions are None where the recalibrator could not be fitted. Raise if the fit is to rows with other labels.
    """
    mask = job.judged_rows(rows.labels)
    yield "none", None, rows.predictions(mask)
    for name, file in job.fits.items():
        path = fits / f"{file}.json"
        read = rows if job.fit_source == job.source else None
        fit = Fit.read(path) if path.is_file() else fit_recalibrator(path, job.fit_source, name, job.options, read)
        if job.is_split and fit.labels != labels_digest(rows.labels):
            raise InputError(f"{job.fit_source.path} has other labels than {job.source.path}; it has changed")
        yield name, fit, fit.apply(rows, mask)


def _measure_lenses(preds: tc.Predictions | None, job: Job) -> Iterator[tuple[str, Sequence[Measurement], Records]]:
    """Yield (lens, measurements, bins of diagrams), first for scores (lens ""), then for every lens of the job.

    Without predictions (None) all values are NaN, of 0 rows. Only lenses with one dataset and one probability have diagrams.
    """
    intervals, level = job.options.intervals, job.options.level
    top = None if preds is None else tc.TopLabel().sample(preds)
    for name in ("", *job.options.lenses):
        metrics = metrics_of(job.options.metrics, name)
        bins: Records = []
        if preds is None or top is None:
            measured = [Measurement(metric, float("nan"), 0) for metric in metrics]
        elif name == "":
            measured = measure_scores(preds, top, metrics, intervals=bool(intervals), level=level)
        else:
            lens = make_lens(name, preds, job.options)
            alone = not lens.several and lens.shares(preds) is None
            sample = top if name == "top-label" else as_rows(lens.sample(preds)) if alone else None
            measured = measure_lens(preds, lens, metrics, sample=sample, intervals=intervals, level=level)
            bins = [] if sample is None or not metrics else diagram(sample.profile)
        yield name, measured, bins


def make_lens(name: str, preds: tc.Predictions, options: Options) -> Lens:
    """Make the lens of a name in a study file: "class:NAME", "grouping:NAME" of `options`, or a word of `names.lens_named`."""
    if name.startswith("class:"):
        return tc.OneClass(class_named(name.removeprefix("class:"), preds))
    if name.startswith("grouping:"):
        groups = options.groupings[name.removeprefix("grouping:")]
        return tc.Grouping({group: [class_named(one, preds) for one in classes] for group, classes in groups.items()})
    lens: Lens = names.lens_named(name).of(tc)
    return lens


# ----------------------------------------------------------------------------------------------------
# The content of study.json, and the evaluation of a job in a worker


def _study_content(spec: Spec, jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the content of study.json: name, study, jobs, fits, clean and covariates.

    `study` is the study file as written; jobs and fits are names; `clean` maps each shifted dataset to its clean one of another
    name; `covariates` are by job, {} if the study names none.
    """
    names = dict.fromkeys(job.source.dataset for job in jobs)
    return {
        "name": spec.name,
        "study": spec.written,
        "jobs": [job.name for job in jobs],
        "fits": sorted({fit for job in jobs for fit in job.fits.values()}),
        "clean": {name: clean for name in names if (clean := spec.options.clean_of(name)) != name},
        "covariates": {job.name: spec.covariates_of(job.source) for job in jobs} if spec.covariates else {},
    }


def _evaluate_into_store(task: tuple[Job, Path]) -> str | None:
    """Evaluate a job into the store in `task`, unless it is done; return None, or the reason why the file was refused.

    `task` is (job, folder); fits are written to the folder "fits" in it.
    """
    job, folder = task
    store = Store(folder)
    if not store.has(job.name):
        try:
            store.add(job.name, *evaluate(job, folder / "fits"))
        except InputError as error:
            return str(error)
    return None
