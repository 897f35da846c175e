"""Simulated trials: datasets drawn from worlds, judged by estimators, kept in a cache.

Random streams are not taken from content, whose last bits may differ between machines, but from names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from math import sqrt
from os import PathLike
from pathlib import Path
from typing import Protocol

import numpy as np

import truecal as tc
from truecal import options, parallel
from truecal.errors import FileError, InputError, TruecalError
from truecal.estimators.base import ErrorFunction, Estimator, as_estimator
from truecal.lab.distributions import Array
from truecal.lab.worlds import Seed, World
from truecal.table import Frame
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# What a world, an estimator or a measure is, as a digest: equal content has the same place in the cache


class _NamelessError(Exception):
    """Something whose content cannot be written down, such as a lambda."""


def digest(thing: object) -> str | None:
    """SHA-256 of the content of a (nested) dataclass of numbers, strings, arrays and functions of modules; else None.

    >>> from truecal.lab import Power, Uniform, World
    >>> digest(World(Uniform(), Power(2))) == digest(World(Uniform(), Power(2.0)))
    True
    >>> digest(World(Uniform(), lambda c: c**2)) is None
    True
    """
    try:
        text = json.dumps(_plain(thing), sort_keys=True)
    except _NamelessError:
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def name_words(name: str) -> tuple[int, ...]:
    """Four 32-bit words from a name, to give it random streams of its own."""
    words = hashlib.sha256(name.encode()).digest()
    return tuple(int.from_bytes(words[4 * i : 4 * i + 4], "big") for i in range(4))


# Layers above the lab make no numbers for it.
_ABOVE = ("cli", "integrations", "pages", "plot", "study")


@cache
def code_digest() -> str:
    """Compute the SHA-256 digest of the source code that turns a seed into numbers.

    Returns
    -------
    str
        Hexadecimal digest of all modules of truecal that a simulation depends on.

    Notes
    -----
    The digest is part of every key of the cache, so cached numbers are not read after the code has changed.

    Examples
    --------
    >>> import truecal as tc
    >>> len(tc.lab.code_digest())
    64
    """
    package = Path(__file__).parents[1]
    sources = sorted(path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in _ABOVE)
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


@cache
def _module_digest(module: str) -> str:
    """Digest of the source of a module outside truecal; empty for truecal, whose code_digest is part of every key."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if module.partition(".")[0] == "truecal" or file is None:
        return ""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _plain(thing: object) -> object:
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, int | float | np.integer | np.floating):
        return float(thing).hex()
    if isinstance(thing, np.ndarray):
        array = np.ascontiguousarray(thing)
        return ["array", str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(thing, tuple | list):
        return [_plain(item) for item in thing]
    if isinstance(thing, dict):
        return {str(key): _plain(value) for key, value in thing.items()}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        module = type(thing).__module__
        kind = f"{module}.{type(thing).__qualname__}"
        return [
            kind,
            _module_digest(module),
            {field.name: _plain(getattr(thing, field.name)) for field in dataclasses.fields(thing)},
        ]
    module, name = getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")
    if name and getattr(sys.modules.get(module), name, None) is thing:  # a function that a module defines
        return [f"{module}.{name}", _module_digest(module)]
    raise _NamelessError


# ----------------------------------------------------------------------------------------------------
# Results on disk, one file per batch, found by content: an interrupted run loses at most the batch under way


class BatchCache:
    """Store simulated results in a folder, one file per batch of datasets.

    Parameters
    ----------
    folder : str or path-like
        Folder of the files, created where it does not exist.

    Raises
    ------
    FileError
        If the folder cannot be created.

    Notes
    -----
    A file `<key>.npz` has plain arrays (no pickle), one per measure, and is written completely or not at all. Results
    of a further measure are added to the file.

    Examples
    --------
    >>> import tempfile, numpy as np, truecal as tc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = tc.lab.BatchCache(folder)
    ...     cache.add("ab12", {"values": np.array([0.1, 0.2])})
    ...     cache.read("ab12")["values"], cache.read("cd34")
    (array([0.1, 0.2]), {})
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise FileError(f"cannot keep simulations in {str(self.folder)[:100]}: {error}") from error

    def read(self, key: str) -> dict[str, Array]:
        """Read the arrays stored under a key.

        Parameters
        ----------
        key : str
            Name of the batch.

        Returns
        -------
        dict of str to ndarray
            The arrays by the digest of their measure; empty where there is no readable file.
        """
        try:
            with self._path(key).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (FileNotFoundError, zipfile.BadZipFile, ValueError, EOFError, OSError):
            return {}

    def add(self, key: str, arrays: dict[str, Array]) -> None:
        """Store arrays under a key, beside those already there.

        Parameters
        ----------
        key : str
            Name of the batch.
        arrays : dict of str to ndarray
            Arrays by name; an array of the same name is replaced.
        """
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        together = {**self.read(key), **arrays}
        write_whole(path, lambda file: np.savez(file, **together))  # type: ignore[arg-type]

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"


# ----------------------------------------------------------------------------------------------------
# What is asked of every simulated dataset: the value of an estimator, its interval, or the p-value of its test


class Measure(Protocol):
    """Protocol of a statistic that is computed for every dataset of a batch.

    Parameters
    ----------
    *args : object
        Not used: a protocol is not instantiated.
    **kwargs : object
        Not used: a protocol is not instantiated.

    Notes
    -----
    A measure has a `name` and is called with a profile (a batch of datasets) and a SeedSequence. It returns an array
    of shape (answers, batch): for example one row of estimates, or three rows of estimate, lower and upper limit.
    Simulations with worker processes need a picklable measure, those with a cache a dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, truecal as tc
    >>> @dataclass(frozen=True)
    ... class MeanOutcome:
    ...     name: str = "mean outcome"
    ...     def __call__(self, profile, seed):
    ...         return np.mean(profile.outcomes, axis=1)[None, :]
    >>> cell = tc.lab.Cell("uniform", tc.lab.World(tc.lab.Uniform()), n=100, m=20, measures=(MeanOutcome(),))
    >>> ((means,),) = tc.lab.answers_of([cell])
    >>> means.shape, bool(abs(means.mean() - 0.5) < 0.1)
    ((1, 20), True)
    """

    @property
    def name(self) -> str:
        """Name of the statistic, for messages."""
        ...

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array: ...


@dataclass(frozen=True)
class Value:
    """The estimate alone: the cheapest question."""

    estimator: Estimator

    @property
    def name(self) -> str:
        return repr(self.estimator)

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        return np.asarray(self.estimator.values(profile), dtype=np.float64)[None, :]


@dataclass(frozen=True)
class Bounds:
    """Value, low and high end of the interval that the estimator itself offers."""

    estimator: Estimator

    @property
    def name(self) -> str:
        return f"the interval of {self.estimator!r}"

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        estimate = self.estimator(profile)
        if estimate.interval is None:
            raise InputError(f"{type(self.estimator).__name__} offers no interval, so it has no coverage")
        return np.stack([np.broadcast_to(part, profile.batch) for part in _parts(estimate)]).astype(np.float64)


@dataclass(frozen=True)
class ResampledBounds:
    """Value, low and high end of the interval by resampling, one dataset of the batch after the other."""

    estimator: Estimator
    level: float

    @property
    def name(self) -> str:
        return f"the resampled interval of {self.estimator!r}"

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        limits = np.empty((2, profile.batch))
        for i, child in enumerate(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(profile.batch)):
            dataset = profile.take([i])
            interval = self.estimator.interval(dataset, level=self.level, rng=np.random.default_rng(child))
            limits[:, i] = np.ravel(interval.low)[0], np.ravel(interval.high)[0]
        return np.stack([self.estimator.values(profile), *limits])


def has_interval(estimator: Estimator) -> bool:
    """Whether the estimator has an interval by formula, which simulations can afford."""
    few = tc.profile.Profile.from_arrays(np.linspace(0.05, 0.95, 40), np.arange(40) % 2)
    return estimator(few).interval is not None


@dataclass(frozen=True)
class PValue:
    """The p-value of the estimator's own test of calibration."""

    estimator: Estimator
    resamples: int = 199

    @property
    def name(self) -> str:
        return f"the test of {self.estimator!r}"

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        tested = self.estimator.test(profile, resamples=self.resamples, rng=np.random.default_rng(seed))
        return tested.p_value[None, :]


def _parts(estimate: tc.Estimate) -> tuple[float | Array, float | Array, float | Array]:
    assert estimate.interval is not None
    return estimate.value, estimate.interval.low, estimate.interval.high


# ----------------------------------------------------------------------------------------------------
# How simulations are run: on how many processes, with which cache, and who hears of progress. None of it changes a number


@dataclass(frozen=True)
class Run:
    """Set worker processes, cache folder and progress reports of simulations.

    Parameters
    ----------
    workers : int, default 1
        Worker processes. More than one needs picklable worlds and estimators, and ``if __name__ == "__main__":`` in a
        script.
    cache : str or path-like, default None
        Folder of finished batches, which are read instead of simulated again; an interrupted run continues there.
    progress : callable, default None
        Called with a `Step` after every batch; None draws a bar on a terminal.
    pool : Pool, default None
        Running worker processes, set within :meth:`kept`.

    Raises
    ------
    InputError
        If `workers` is no whole number of at least 1.

    Notes
    -----
    None of the settings changes a number.

    Examples
    --------
    >>> import truecal as tc
    >>> run = tc.lab.Run(workers=1)
    >>> tc.lab.bias(tc.BinnedECE(norm=2), tc.lab.World(tc.lab.Uniform()), n=100, m=20, run=run).m
    20
    """

    workers: int = 1
    cache: str | PathLike[str] | None = None
    progress: parallel.Progress | None = None
    pool: parallel.Pool | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        options.whole(self.workers, "workers")

    @contextmanager
    def kept(self) -> Iterator[Run]:
        """Keep the worker processes running within a ``with`` block.

        Yields
        ------
        Run
            The same run with its pool.
        """
        if self.pool is not None:
            yield self
            return
        with parallel.Pool(self.workers) as pool:
            yield replace(self, pool=pool)

    @property
    def processes(self) -> parallel.Pool:
        """Pool of worker processes, within :meth:`kept`."""
        assert self.pool is not None, "processes exist only within run.kept()"
        return self.pool

    def reporting(self, words: str) -> AbstractContextManager[parallel.Progress]:
        """Return the progress function as a context manager: the given one, or a bar.

        Parameters
        ----------
        words : str
            Name of the work, shown by the bar.

        Returns
        -------
        context manager
            Gives a function of a `Step`.
        """
        return parallel.progress_bar(words) if self.progress is None else nullcontext(self.progress)


# ----------------------------------------------------------------------------------------------------
# Many simulated datasets, in batches: drawn and judged on as many cores as asked, with the same numbers on every machine

_ROWS_PER_BATCH = 2**18  # 2 MB of scores: a worker and its prefix sums stay within tens of MB
_PILOT_DATASETS = 8


@dataclass(frozen=True)
class Cell:
    """Specify a simulation: one world, the size and number of datasets, and the measures.

    Parameters
    ----------
    name : str
        Name of the world; random streams depend on it, on `n` and on the seed.
    world : World
        The world that datasets are drawn from.
    n : int
        Rows of each dataset.
    m : int
        Number of datasets, at least 2.
    measures : tuple of Measure
        Statistics computed for every dataset.

    See Also
    --------
    answers_of : Run the simulation of several cells.

    Examples
    --------
    >>> import truecal as tc
    >>> cell = tc.lab.Cell("uniform", tc.lab.World(tc.lab.Uniform()), n=100, m=20, measures=())
    >>> cell.n * cell.m
    2000
    """

    name: str
    world: World
    n: int
    m: int
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class _Batch:
    cell: int
    number: int
    size: int


def answers_of(cells: Sequence[Cell], *, rng: Seed = 0, run: Run | None = None) -> list[list[Array]]:
    """Compute every measure of every cell of a simulation.

    Parameters
    ----------
    cells : sequence of Cell
        Worlds, sizes and measures.
    rng : int, Generator, SeedSequence or None, default 0
        Seed; the same seed gives the same numbers for any number of workers.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    list of list of ndarray
        ``result[cell][measure]`` of shape (answers, m).

    Raises
    ------
    InputError
        If n < 1 or m < 2, if a world or measure cannot be cached or pickled as `run` requires, or if a measure fails
        on a first few datasets.
    TruecalError
        If a measure fails later, or gives no finite number for each dataset.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> def rows(profile, seed):
    ...     return np.asarray(profile.size, dtype=float)[None, :]
    >>> rows.name = "rows"
    >>> cell = tc.lab.Cell("uniform", tc.lab.World(tc.lab.Uniform()), n=50, m=3, measures=(rows,))
    >>> tc.lab.answers_of([cell])[0][0]
    array([[50., 50., 50.]])
    """
    run = run or Run()
    _refuse_bad_cells(cells, run)
    entropy = seed_number(rng)
    _pilot(cells, entropy)
    plan = [
        _Batch(c, number, size)
        for c, cell in enumerate(cells)
        for number, size in enumerate(batch_sizes(cell.n, cell.m))
    ]
    rows = [cells[batch.cell].n * batch.size for batch in plan]
    parts: dict[tuple[int, int], dict[int, Array]] = {}
    done = 0
    with run.kept() as running, running.reporting("simulating") as progress:
        for batch, answers in _all_answers(cells, plan, entropy, running):
            parts[batch.cell, batch.number] = answers
            done += cells[batch.cell].n * batch.size
            progress(parallel.Step("simulating", done, sum(rows)))
    return [
        [
            np.concatenate([parts[c, number][k] for number in range(len(batch_sizes(cell.n, cell.m)))], axis=1)
            for k in range(len(cell.measures))
        ]
        for c, cell in enumerate(cells)
    ]


def seed_number(rng: Seed) -> int:
    """The one number all streams of a run grow from."""
    if isinstance(rng, int | np.integer):
        options.whole(rng, "rng", 0)
        return int(rng)
    return int(np.random.default_rng(rng).integers(2**63))


def batch_sizes(n: int, m: int) -> list[int]:
    """How m datasets of n rows are split: a rule of n alone, except for the last batch."""
    options.whole(n, "n", 1, 100_000_000)
    n, m = int(n), int(m)
    full = max(1, _ROWS_PER_BATCH // n)
    return [full] * (m // full) + ([m % full] if m % full else [])


def _stream(cell: Cell, entropy: int, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(entropy, spawn_key=(*name_words(cell.name), cell.n, number))


@dataclass(frozen=True)
class _Job:
    """One batch to be drawn, and the measures to be put to it; done in a worker."""

    cell: Cell
    number: int
    size: int
    entropy: int
    missing: tuple[int, ...]


def _answers(job: _Job) -> dict[int, Array]:
    """Draw one batch and put the wanted measures to it."""
    cell = job.cell
    draw, ask = _stream(cell, job.entropy, job.number).spawn(2)
    scores, outcomes = cell.world.draw(cell.n, job.size, rng=np.random.default_rng(draw))
    profile = tc.profile.Profile.from_arrays(scores, outcomes)
    answers: dict[int, Array] = {}
    for k in job.missing:
        measure = cell.measures[k]
        where = f"{measure.name} on world {cell.name!r}, n={cell.n}, batch {job.number} of seed {job.entropy}"
        try:
            answer = measure(profile, ask)
        except Exception as error:
            raise TruecalError(f"{where} failed: {error}") from error
        if answer.ndim != 2 or answer.shape[1] != job.size or not np.all(np.isfinite(answer)):
            raise TruecalError(f"{where} gave no finite number for each of {job.size} datasets (shape {answer.shape})")
        answers[k] = answer
    return answers


def _all_answers(
    cells: Sequence[Cell], plan: Sequence[_Batch], entropy: int, run: Run
) -> Iterator[tuple[_Batch, dict[int, Array]]]:
    """Cached answers first, then the rest, stored as they come."""
    store = None if run.cache is None else BatchCache(run.cache)
    todo: list[tuple[_Batch, _Job, dict[int, Array]]] = []
    for batch in plan:
        cell = cells[batch.cell]
        cached: dict[int, Array] = {}
        if store is not None:
            stored = store.read(_key(cell, batch, entropy))
            cached = {k: stored[name] for k, m in enumerate(cell.measures) if (name := digest(m)) in stored}
        missing = tuple(k for k in range(len(cell.measures)) if k not in cached)
        if missing:
            todo.append((batch, _Job(cell, batch.number, batch.size, entropy, missing), cached))
        else:
            yield batch, cached
    # Long batches first, so that none is still running alone at the end.
    todo.sort(key=lambda item: -item[1].cell.n * item[1].size)
    for position, answers in run.processes.each(_answers, [job for _, job, _ in todo]):
        batch, job, cached = todo[position]
        if store is not None:
            names = {str(digest(job.cell.measures[k])): answer for k, answer in answers.items()}
            store.add(_key(job.cell, batch, entropy), names)
        yield batch, {**cached, **answers}


def _key(cell: Cell, batch: _Batch, entropy: int) -> str:
    words = (code_digest(), np.__version__, cell.name, digest(cell.world), cell.n, entropy, batch.number, batch.size)
    return sha256("|".join(map(str, words)).encode()).hexdigest()


def _refuse_bad_cells(cells: Sequence[Cell], run: Run) -> None:
    for cell in cells:
        if cell.n < 1 or cell.m < 2:
            raise InputError(f"a trial needs n >= 1 rows and m >= 2 datasets, not n={cell.n}, m={cell.m}")
        options.resamples(cell.m, "m", 2)
        parts = (cell.world, *cell.measures)
        if run.cache is not None and any(digest(part) is None for part in parts):
            raise InputError(
                f"world {cell.name!r} or a measure on it holds a plain function, which has no content to be cached by; "
                "use a Curve dataclass, or cache=None"
            )
    if run.workers > 1:
        try:
            pickle.dumps(list(cells))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"with workers > 1 worlds and estimators must be picklable ({error}); use workers=1"
            ) from error


def _pilot(cells: Sequence[Cell], entropy: int) -> None:
    """Put every measure to a few datasets of every world: what cannot work must fail before long work starts."""
    smallest: dict[tuple[int, int], Cell] = {}
    for cell in cells:
        key = (id(cell.world), hash(tuple(m.name for m in cell.measures)))
        if key not in smallest or cell.n < smallest[key].n:
            smallest[key] = cell
    for cell in smallest.values():
        size = min(_PILOT_DATASETS, batch_sizes(cell.n, cell.m)[0])
        try:
            _answers(_Job(cell, 2**32 - 1, size, entropy, tuple(range(len(cell.measures)))))
        except TruecalError as error:
            raise InputError(f"a first try did not work, nothing was run: {error}") from error


# ----------------------------------------------------------------------------------------------------
# The estimators that trials compare by default. All in norm 2 where there is a choice


def all_estimators() -> dict[str, Estimator]:
    """Every estimator of truecal, as a user would call it."""
    return {
        "RankSeries": tc.RankSeries(norm=2),
        "DebiasedECE": tc.DebiasedECE(bins=15, norm=2),
        "SweepECE": tc.SweepECE(norm=2),
        "NearestECE": tc.NearestECE(norm=2),
        "BinnedECE equal mass": tc.BinnedECE(bins=15, scheme="mass", norm=2),
        "BinnedECE equal width": tc.BinnedECE(bins=15, scheme="width", norm=2),
        "LabelBinnedECE": tc.estimators.LabelBinnedECE(bins=15, norm=2),
        "KernelDensityECE": tc.estimators.KernelDensityECE(norm=2),
        "IsotonicError": tc.estimators.IsotonicError(),
        "SmoothECE": tc.SmoothECE(),
    }


# ----------------------------------------------------------------------------------------------------
# Trials: how far an estimator is from the known truth, on average and in spread, over many simulated datasets

Estimators = Mapping[str, Estimator | ErrorFunction]
Field = str | int | float | None


def tidy(columns: Sequence[str], rows: Iterable[Sequence[Field]]) -> Frame:
    """A frame from its columns' names and its rows.

    >>> tidy(("n", "bias"), [(200, 0.5), (400, 0.25)])["bias"].tolist()
    [0.5, 0.25]
    """
    return Frame.from_records([dict(zip(columns, row, strict=True)) for row in rows], columns)


@dataclass(frozen=True)
class Trial:
    """Hold the m estimates of one estimator at one n in one world, beside the true error.

    Parameters
    ----------
    estimator_name : str
        Name of the estimator.
    world_name : str
        Name of the world.
    n : int
        Rows of each dataset.
    truth : float
        True calibration error in the norm of the estimator.
    values : ndarray of shape (m,)
        The estimates.

    Notes
    -----
    bias = mean - truth and rmse = sqrt(mean (value - truth)^2). Each summary has its Monte-Carlo standard error,
    which is due to finite m.

    See Also
    --------
    bias, trials : Simulate trials.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> trial = tc.lab.Trial("ECE", "uniform", n=100, truth=0.1, values=np.array([0.1, 0.12, 0.14]))
    >>> round(trial.bias, 6), round(trial.std, 6), round(trial.rmse, 6)
    (0.02, 0.02, 0.02582)
    """

    estimator_name: str
    world_name: str
    n: int
    truth: float
    values: Array

    @property
    def m(self) -> int:
        """Number of simulated datasets."""
        return int(self.values.size)

    @property
    def mean(self) -> float:
        """Mean of the estimates."""
        return float(self.values.mean())

    @property
    def bias(self) -> float:
        """Mean of the estimates less the true error."""
        return self.mean - self.truth

    @property
    def variance(self) -> float:
        """Variance of the estimates, with divisor m - 1."""
        return float(self.values.var(ddof=1))

    @property
    def std(self) -> float:
        """Standard deviation of the estimates, with divisor m - 1."""
        return sqrt(self.variance)

    @property
    def rmse(self) -> float:
        """Root mean squared difference of the estimates from the true error."""
        return sqrt(float(np.mean((self.values - self.truth) ** 2)))

    @property
    def standard_error(self) -> float:
        """Monte-Carlo standard error of the bias, and of the mean."""
        return self.std / sqrt(self.m)

    @property
    def variance_standard_error(self) -> float:
        """Monte-Carlo standard error of the variance, from the fourth central moment."""
        centred = self.values - self.mean
        fourth = float(np.mean(centred**4))
        return sqrt(max(fourth - float(np.mean(centred**2)) ** 2, 0.0) / self.m)

    @property
    def std_standard_error(self) -> float:
        """Monte-Carlo standard error of the standard deviation, by the delta method."""
        return self.variance_standard_error / (2 * self.std) if self.std else 0.0

    @property
    def rmse_standard_error(self) -> float:
        """Monte-Carlo standard error of the RMSE, by the delta method."""
        squares = (self.values - self.truth) ** 2
        return float(squares.std(ddof=1)) / sqrt(self.m) / (2 * self.rmse) if self.rmse else 0.0


def bias(
    estimator: Estimator | ErrorFunction,
    world: World,
    *,
    n: int = 1000,
    m: int = 300,
    rng: Seed = 0,
    run: Run | None = None,
) -> Trial:
    """Simulate bias, standard deviation and RMSE of one estimator in one world.

    Parameters
    ----------
    estimator : Estimator or callable
        An estimator, or a function of scores and outcomes.
    world : World
        The world that datasets are drawn from.
    n : int, default 1000
        Rows of each dataset.
    m : int, default 300
        Number of datasets.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    Trial
        The estimates beside the true error in the norm of the estimator.

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, equation 7.

    Examples
    --------
    >>> import truecal as tc
    >>> trial = tc.lab.bias(tc.BinnedECE(norm=2), tc.lab.PAPER_WORLDS["resnet110_c10"], n=400, m=200)
    >>> -0.01 < trial.bias < 0.0, trial.standard_error < 0.003
    (True, True)
    """
    name = repr(estimator) if isinstance(estimator, Estimator) else as_estimator(estimator).name
    (trial,) = trials({name: estimator}, {"world": world}, n=[n], m=m, rng=rng, run=run)
    return trial


def trials(
    estimators: Estimators | Callable[[str], Estimators],
    worlds: Mapping[str, World],
    *,
    n: Sequence[int],
    m: int = 300,
    rng: Seed = 0,
    run: Run | None = None,
) -> list[Trial]:
    """Simulate several estimators in several worlds at several sizes.

    Parameters
    ----------
    estimators : mapping of str to Estimator or callable, or callable
        Estimators by name; or a function from the name of a world to such a mapping.
    worlds : mapping of str to World
        Worlds by name.
    n : sequence of int
        Rows of each dataset.
    m : int, default 300
        Datasets per world and size.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    list of Trial
        One per world, size and estimator, in this order.

    Raises
    ------
    InputError
        If there is no world or no n, or an entry is no estimator or no world.

    Notes
    -----
    All estimators of a world and size are computed on the same datasets. Estimates are compared with the true error
    in the norm of the estimator.

    Examples
    --------
    >>> import truecal as tc
    >>> grid = {"EW": tc.BinnedECE(norm=2), "EM": tc.BinnedECE(scheme="mass", norm=2)}
    >>> results = tc.lab.trials(grid, {"uniform": tc.lab.World(tc.lab.Uniform())}, n=[100, 200], m=50)
    >>> [(t.estimator_name, t.n) for t in results]
    [('EW', 100), ('EM', 100), ('EW', 200), ('EM', 200)]
    """
    if not worlds or not n:
        raise InputError("trials need at least one world and one n")
    cells: list[Cell] = []
    named: list[dict[str, Estimator]] = []
    for name, world in worlds.items():
        chosen_estimators = estimators if isinstance(estimators, Mapping) else estimators(name)
        for estimator_name, estimator in chosen_estimators.items():
            if not isinstance(estimator, Estimator) and not callable(estimator):
                raise InputError(f"{estimator_name!r} is {estimator!r}, not an estimator such as tc.RankSeries()")
        chosen = {estimator_name: as_estimator(estimator) for estimator_name, estimator in chosen_estimators.items()}
        if not isinstance(world, World):
            raise InputError(f"{name!r} is {world!r}, not a World")
        for size in n:
            cells.append(Cell(name, world, size, m, tuple(Value(e) for e in chosen.values())))
            named.append(chosen)
    answers = answers_of(cells, rng=rng, run=run)
    truth: dict[tuple[int, float], float] = {}
    result: list[Trial] = []
    for cell, chosen, values in zip(cells, named, answers, strict=True):
        for (estimator_name, estimator), value in zip(chosen.items(), values, strict=True):
            key = (id(cell.world), estimator.norm)
            if key not in truth:
                truth[key] = cell.world.true_error(estimator.norm)
            result.append(Trial(estimator_name, cell.name, cell.n, truth[key], value[0]))
    return result


def table_of(results: Sequence[Trial]) -> Frame:
    """Tabulate trials, one row each, with Monte-Carlo standard errors.

    Parameters
    ----------
    results : sequence of Trial
        Trials of any estimators and worlds.

    Returns
    -------
    Frame
        Columns world, estimator, n, m, truth, mean, bias, bias_se, std, std_se, rmse and rmse_se.

    Examples
    --------
    >>> import truecal as tc
    >>> trial = tc.lab.bias(tc.BinnedECE(norm=2), tc.lab.World(tc.lab.Uniform()), n=100, m=20)
    >>> tc.lab.table_of([trial])["m"].tolist()
    [20]
    """
    columns = ("world", "estimator", "n", "m", "truth", "mean", "bias", "bias_se", "std", "std_se", "rmse", "rmse_se")
    return tidy(
        columns,
        [
            (
                *(t.world_name, t.estimator_name, t.n, t.m, t.truth, t.mean),
                *(t.bias, t.standard_error, t.std, t.std_standard_error, t.rmse, t.rmse_standard_error),
            )
            for t in results
        ],
    )
