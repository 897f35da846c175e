"""Simulated trials: datasets drawn from worlds, estimators computed on them, results stored in a cache.

Random streams depend on names, not on content, whose last bits may differ between machines.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
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
from truecal.estimators.base import ErrorFunction, Estimator, as_estimator, with_level
from truecal.lab.distributions import Array
from truecal.lab.worlds import Seed, World
from truecal.table import Frame
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# The content of worlds and measures as a digest, the key of the cache


def digest(value: object) -> str | None:
    """Compute the SHA-256 of a (nested) dataclass of numbers, strings, arrays and functions of modules; None for others.

    >>> from truecal.lab import Power, Uniform, World
    >>> digest(World(Uniform(), Power(2))) == digest(World(Uniform(), Power(2.0)))
    True
    >>> digest(World(Uniform(), lambda c: c**2)) is None
    True
    """
    try:
        return sha256(json.dumps(value, sort_keys=True, default=_to_json_value).encode()).hexdigest()
    except TypeError:
        return None


def _to_json_value(value: object) -> object:
    """Convert a value that JSON lacks to one it has, for `digest`; raise TypeError for others.

    Arrays become dtype, shape and hash; dataclasses module, name and fields; functions of modules module and name.

    >>> _to_json_value(np.float64(0.5)), _to_json_value(np.array([1.0]))[:2]
    (0.5, ['float64', (1,)])
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    record = is_dataclass(value) and not isinstance(value, type)
    named = type(value) if record else value
    module, name = getattr(named, "__module__", ""), getattr(named, "__qualname__", "")
    if record:
        contents = {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]
        return [module, name, _module_digest(module), {key: _as_float(item) for key, item in contents.items()}]
    if getattr(sys.modules.get(module), name, None) is not value:
        raise TypeError(f"{value!r} is no function of a module")
    return [module, name, _module_digest(module)]


def _as_float(value: object) -> object:
    """Convert whole numbers, not booleans, to float, so that 1 and 1.0 have one digest; return all else unchanged.

    >>> _as_float(1), _as_float(True), _as_float("1")
    (1.0, True, '1')
    """
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def name_words(name: str) -> tuple[int, ...]:
    """Compute four 32-bit whole numbers, big-endian, from the first bytes of the SHA-256 of a name, the key of its streams.

    >>> name_words("a")
    (3398926610, 3390815690, 4207030707, 2586041421)
    """
    words = sha256(name.encode()).digest()
    return tuple(int.from_bytes(words[4 * i : 4 * i + 4], "big") for i in range(4))


_UPPER_LAYERS = ("cli", "integrations", "pages", "plot", "study")  # folders on which no simulation depends


@cache
def code_digest() -> str:
    """Compute the SHA-256 digest of the source code that turns a seed into numbers.

    Returns
    -------
    str
        Hexadecimal digest of all modules of truecal that a simulation depends on: all outside of _UPPER_LAYERS, ascending by
        path, with a zero byte between two.

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
    sources = sorted(path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in _UPPER_LAYERS)
    return sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


@cache
def _module_digest(module: str) -> str:
    """Compute the SHA-256 of the file of a module outside truecal; "" for truecal, whose code_digest is part of every key.

    "" also for modules without a file.

    >>> _module_digest("truecal.lab.trials")
    ''
    """
    file = getattr(sys.modules.get(module), "__file__", None)
    return "" if module.partition(".")[0] == "truecal" or file is None else sha256(Path(file).read_bytes()).hexdigest()


# ----------------------------------------------------------------------------------------------------
# Results on disk, one file per batch: an interrupted run loses at most the batch under way


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
        """Create the folder where it does not exist; raise FileError if that fails."""
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise FileError(f"cannot store simulations in {str(self.folder)[:100]}: {error}") from error

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
        """Return the file of a key: <folder>/<its first two characters>/<key>.npz.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     BatchCache(folder)._path("abcd").relative_to(folder).as_posix()
        'ab/abcd.npz'
        """
        return self.folder / key[:2] / f"{key}.npz"


# ----------------------------------------------------------------------------------------------------
# Measures: the value of an estimator, its interval, or the p-value of its test


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
    of shape (values, batch): for example one row of estimates, or three rows of estimate, lower and upper limit.
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
    >>> ((means,),) = tc.lab.simulate([cell])
    >>> means.shape, bool(abs(means.mean() - 0.5) < 0.1)
    ((1, 20), True)
    """

    @property
    def name(self) -> str:
        """Name of the statistic, for messages."""
        ...

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array: ...


@dataclass(frozen=True)
class _EstimatorMeasure:
    """Base of the measures of one estimator."""

    estimator: Estimator

    @property
    def name(self) -> str:
        """Kind of the measure and repr of the estimator, such as "Value of SweepECE(scheme='mass', norm=2, ties='keep')".

        >>> Value(tc.RankSeries()).name
        'Value of RankSeries(norm=2, level=0.95)'
        """
        return f"{type(self).__name__} of {self.estimator!r}"


@dataclass(frozen=True)
class Value(_EstimatorMeasure):
    """Compute the estimate alone."""

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        """Return the estimates of a batch, shape (1, batch).

        >>> profile = tc.profile.Profile.from_arrays([[0.25, 0.75]], [[0, 1]])
        >>> Value(tc.BinnedECE(bins=1))(profile, np.random.SeedSequence(0))
        array([[0.]])
        """
        return np.asarray(self.estimator.values(profile), dtype=np.float64)[None, :]


@dataclass(frozen=True)
class Bounds(_EstimatorMeasure):
    """Compute estimate, lower and upper limit: the closed form of the estimator where it has one, else by resampling."""

    level: float

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        """Return estimates, lower and upper limits of a batch, shape (3, batch).

        Limits are those that the estimator has in closed form at `level`; else each dataset is resampled, with a generator of its
        own that is spawned from `seed`.
        """
        estimate = with_level(self.estimator, self.level)(profile)
        if estimate.interval is not None:
            numbers = (estimate.value, estimate.interval.low, estimate.interval.high)
            return np.stack([np.broadcast_to(number, profile.batch) for number in numbers]).astype(np.float64)
        limits = np.empty((2, profile.batch))
        for i, child in enumerate(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(profile.batch)):
            generator = np.random.default_rng(child)
            interval = self.estimator.interval(profile.take([i]), level=self.level, rng=generator)
            limits[:, i] = np.ravel(interval.low)[0], np.ravel(interval.high)[0]
        return np.stack([self.estimator.values(profile), *limits])


def has_interval(estimator: Estimator) -> bool:
    """Return whether the estimator gives an interval in closed form: when it is called with one dataset, of 40 rows.

    >>> has_interval(tc.RankSeries()), has_interval(tc.BinnedECE())
    (True, False)
    """
    profile = tc.profile.Profile.from_arrays(np.linspace(0.05, 0.95, 40), np.arange(40) % 2)
    return estimator(profile).interval is not None


@dataclass(frozen=True)
class PValue(_EstimatorMeasure):
    """Compute the p-value of the estimator's test of calibration."""

    resamples: int = 199

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        """Return the p-values of a batch, shape (1, batch): those of the estimator's test by `resamples`, with a generator of
        `seed`.
        """
        return self.estimator.test(profile, resamples=self.resamples, rng=np.random.default_rng(seed)).p_value[None, :]


# ----------------------------------------------------------------------------------------------------
# How simulations are run: processes, cache and progress


@dataclass(frozen=True)
class Run:
    """Set worker processes, cache folder and progress reports of simulations.

    Parameters
    ----------
    workers : int, default 1
        Worker processes. More than one needs picklable worlds and estimators, and ``if __name__ == "__main__":`` in a script.
    cache : str or path-like, default None
        Folder of finished batches, which are read instead of simulated again; an interrupted run continues there.
    progress : callable, default None
        Called with a `Step` after every batch; None draws a bar on a terminal.
    pool : Pool, default None
        Running worker processes, set within :meth:`with_pool`.

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
        """Refuse a number of workers that is no whole number of at least 1.

        >>> Run(workers=0)
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: workers must be a whole number of at least 1, not 0
        """
        options.whole(self.workers, "workers")

    @contextmanager
    def with_pool(self) -> Iterator[Run]:
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
        """Pool of worker processes, within :meth:`with_pool`.

        >>> with Run().with_pool() as run:
        ...     run.processes.workers
        1
        """
        assert self.pool is not None, "processes exist only within run.with_pool()"
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
# Batches of simulated datasets, drawn and measured in worker processes

_ROWS_PER_BATCH = 2**18  # derived: 2 MB of scores: a worker and its prefix sums stay within tens of MB


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
    simulate : Run the simulation of several cells.

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
    """`size` datasets of a cell that are drawn together, and `missing`, the positions of the measures to compute.

    `number` counts the batches of the cell from 0; `entropy` is the seed.
    """

    cell: Cell
    number: int
    size: int
    entropy: int
    missing: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows of all datasets together.

        >>> _Batch(Cell("uniform", tc.lab.World(tc.lab.Uniform()), 100, 20, ()), 0, 8, 0, ()).rows
        800
        """
        return self.cell.n * self.size

    @property
    def stream(self) -> np.random.SeedSequence:
        """Seed sequence of the batch: `entropy`, and as key four words of the hash of the world's name, n, and its number.

        >>> _Batch(Cell("uniform", tc.lab.World(tc.lab.Uniform()), 100, 20, ()), 3, 8, 7, ()).stream.spawn_key[-2:]
        (100, 3)
        """
        return np.random.SeedSequence(self.entropy, spawn_key=(*name_words(self.cell.name), self.cell.n, self.number))

    @property
    def key(self) -> str:
        """Name of the batch in the cache: a SHA-256 of code, numpy version, world, n, seed, number and size of the batch."""
        facts = (code_digest(), np.__version__, self.cell.name, digest(self.cell.world), self.cell.n, self.entropy)
        return sha256("|".join(map(str, (*facts, self.number, self.size))).encode()).hexdigest()


def simulate(cells: Sequence[Cell], *, rng: Seed = 0, run: Run | None = None) -> list[list[Array]]:
    """Draw the datasets of every cell and compute its measures on them.

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
        ``result[cell][measure]`` of shape (values, m).

    Raises
    ------
    InputError
        If n < 1 or m < 2, or if a world or measure cannot be cached or pickled as `run` requires.
    TruecalError
        If a measure fails, or gives no finite number for each dataset.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> def rows(profile, seed):
    ...     return np.asarray(profile.size, dtype=float)[None, :]
    >>> rows.name = "rows"
    >>> cell = tc.lab.Cell("uniform", tc.lab.World(tc.lab.Uniform()), n=50, m=3, measures=(rows,))
    >>> tc.lab.simulate([cell])[0][0]
    array([[50., 50., 50.]])
    """
    run = run or Run()
    _refuse_bad_cells(cells, run)
    entropy = seed_number(rng)
    store = None if run.cache is None else BatchCache(run.cache)
    measured: dict[tuple[int, int], dict[int, Array]] = {}
    missing: dict[tuple[int, int], _Batch] = {}
    for c, cell in enumerate(cells):
        for number, size in enumerate(batch_sizes(cell.n, cell.m)):
            batch = _Batch(cell, number, size, entropy, tuple(range(len(cell.measures))))
            stored = {} if store is None else store.read(batch.key)
            cached = {k: stored[name] for k in batch.missing if (name := digest(cell.measures[k])) in stored}
            measured[c, number] = cached
            if len(cached) < len(cell.measures):
                missing[c, number] = replace(batch, missing=tuple(k for k in batch.missing if k not in cached))
    total = sum(cell.n * cell.m for cell in cells)
    done = total - sum(batch.rows for batch in missing.values())
    # long batches first, so that none is still running alone at the end
    order = sorted(missing, key=lambda position: -missing[position].rows)
    with run.with_pool() as running, running.reporting("simulating") as progress:
        progress(parallel.Step("simulating", done, total))
        for i, computed in running.processes.each(_measure_batch, [missing[position] for position in order]):
            batch = missing[order[i]]
            if store is not None:
                store.add(batch.key, {str(digest(batch.cell.measures[k])): part for k, part in computed.items()})
            measured[order[i]] |= computed
            done += batch.rows
            progress(parallel.Step("simulating", done, total))
    return [
        [
            np.concatenate([measured[c, i][k] for i in range(len(batch_sizes(cell.n, cell.m)))], axis=1)
            for k in range(len(cell.measures))
        ]
        for c, cell in enumerate(cells)
    ]


def seed_number(rng: Seed) -> int:
    """Return a whole number of at least 0 as it is; else draw one below 2^63 (None: from fresh entropy).

    >>> seed_number(7)
    7
    """
    if isinstance(rng, int | np.integer):
        options.whole(rng, "rng", 0)
        return int(rng)
    return int(np.random.default_rng(rng).integers(2**63))


def batch_sizes(n: int, m: int) -> list[int]:
    """Return the numbers of datasets of the batches of m datasets of n rows: max(1, 2^18 // n) each, the last one fewer.

    >>> batch_sizes(100_000, 5)
    [2, 2, 1]
    """
    options.whole(n, "n", 1, 100_000_000)
    n, m = int(n), int(m)
    full = max(1, _ROWS_PER_BATCH // n)
    return [full] * (m // full) + ([m % full] if m % full else [])


def _measure_batch(batch: _Batch) -> dict[int, Array]:
    """Draw the datasets of a batch; return its missing measures by position, each of shape (values, size).

    Refuse a measure that fails, has another shape, or gives a number that is not finite.
    """
    cell = batch.cell
    draw_stream, measure_stream = batch.stream.spawn(2)
    scores, outcomes = cell.world.draw(cell.n, batch.size, rng=np.random.default_rng(draw_stream))
    profile = tc.profile.Profile.from_arrays(scores, outcomes)
    measured: dict[int, Array] = {}
    for k in batch.missing:
        measure = cell.measures[k]
        where = f"{measure.name} on world {cell.name!r}, n={cell.n}, batch {batch.number} of seed {batch.entropy}"
        try:
            values = measure(profile, measure_stream)
        except Exception as error:
            raise TruecalError(f"{where} failed: {error}") from error
        if values.ndim != 2 or values.shape[1] != batch.size or not np.all(np.isfinite(values)):
            raise TruecalError(
                f"{where} gave no finite number for each of {batch.size} datasets (shape {values.shape})"
            )
        measured[k] = values
    return measured


def _refuse_bad_cells(cells: Sequence[Cell], run: Run) -> None:
    """Raise InputError for n < 1, m < 2, and worlds or measures without a `digest` where `run` has a cache.

    >>> _refuse_bad_cells([Cell("uniform", tc.lab.World(tc.lab.Uniform()), 100, 1, ())], Run())
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: a trial needs n >= 1 rows and m >= 2 datasets, not n=100, m=1
    """
    for cell in cells:
        if cell.n < 1 or cell.m < 2:
            raise InputError(f"a trial needs n >= 1 rows and m >= 2 datasets, not n={cell.n}, m={cell.m}")
        options.resamples(cell.m, "m", 2)
        parts = (cell.world, *cell.measures)
        if run.cache is not None and any(digest(part) is None for part in parts):
            raise InputError(
                f"world {cell.name!r} or a measure on it holds a plain function, which has no content to be cached by; "
                "use a ScoreCurve dataclass, or cache=None"
            )


# ----------------------------------------------------------------------------------------------------
# The estimators that trials compare by default, in norm 2 where there is a choice


def all_estimators() -> dict[str, Estimator]:
    """Return the ten estimators that trials compare by default, by name: of norm 2 and with 15 bins where there is a choice.

    >>> list(all_estimators())[:3], len(all_estimators())
    (['RankSeries', 'DebiasedECE', 'SweepECE'], 10)
    """
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
# Trials: bias and spread of an estimator over many simulated datasets

Estimators = Mapping[str, Estimator | ErrorFunction]


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
        """Number of simulated datasets.

        >>> Trial("RankSeries", "uniform", 100, 0.0, np.array([1.0, 2.0, 3.0])).m
        3
        """
        return int(self.values.size)

    @property
    def mean(self) -> float:
        """Mean of the estimates.

        >>> Trial("RankSeries", "uniform", 100, 0.0, np.array([1.0, 2.0, 3.0])).mean
        2.0
        """
        return float(self.values.mean())

    @property
    def bias(self) -> float:
        """Mean of the estimates less the true error.

        >>> Trial("RankSeries", "uniform", 100, 0.5, np.array([1.0, 2.0, 3.0])).bias
        1.5
        """
        return self.mean - self.truth

    @property
    def variance(self) -> float:
        """Variance of the estimates, with divisor m - 1.

        >>> Trial("RankSeries", "uniform", 100, 0.5, np.array([1.0, 2.0, 3.0])).variance
        1.0
        """
        return float(self.values.var(ddof=1))

    @property
    def std(self) -> float:
        """Standard deviation of the estimates, with divisor m - 1.

        >>> Trial("RankSeries", "uniform", 100, 0.5, np.array([1.0, 2.0, 3.0])).std
        1.0
        """
        return sqrt(self.variance)

    @property
    def rmse(self) -> float:
        """Root mean squared difference of the estimates from the true error.

        >>> Trial("RankSeries", "uniform", 100, 1.0, np.array([1.0, 1.0, 4.0, 4.0])).rmse == 4.5**0.5
        True
        """
        return sqrt(float(np.mean((self.values - self.truth) ** 2)))

    @property
    def standard_error(self) -> float:
        """Monte-Carlo standard error of the bias, and of the mean.

        >>> Trial("RankSeries", "uniform", 100, 0.5, np.array([1.0, 2.0, 3.0, 2.0])).standard_error == (2 / 3) ** 0.5 / 2
        True
        """
        return self.std / sqrt(self.m)

    @property
    def variance_standard_error(self) -> float:
        """Monte-Carlo standard error of the variance, sqrt((m4 - m2^2) / m), m2 and m4 the central moments of the estimates.

        >>> trial = Trial("RankSeries", "uniform", 100, 0.5, np.array([0.0, 0.0, 0.0, 4.0]))
        >>> round(trial.variance_standard_error, 4)  # sqrt((21 - 9) / 4)
        1.7321
        """
        centred = self.values - self.mean
        fourth = float(np.mean(centred**4))
        return sqrt(max(fourth - float(np.mean(centred**2)) ** 2, 0.0) / self.m)

    @property
    def std_standard_error(self) -> float:
        """Monte-Carlo standard error of the standard deviation, that of the variance over 2 `std`; 0 without variation.

        >>> trial = Trial("RankSeries", "uniform", 100, 0.5, np.array([0.0, 0.0, 0.0, 4.0]))
        >>> round(trial.std_standard_error, 4)  # sqrt(3) / (2 x 2)
        0.433
        """
        return self.variance_standard_error / (2 * self.std) if self.std else 0.0

    @property
    def rmse_standard_error(self) -> float:
        """Monte-Carlo standard error of the RMSE: sd((value - truth)^2) / (2 rmse sqrt(m)); 0 where the RMSE is 0.

        >>> Trial("RankSeries", "uniform", 100, 1.0, np.array([1.0, 1.0])).rmse_standard_error
        0.0
        """
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
    ranked: list[dict[str, Estimator]] = []
    for name, world in worlds.items():
        if not isinstance(world, World):
            raise InputError(f"{name!r} is {world!r}, not a World")
        chosen = {}
        for label, estimator in (estimators if isinstance(estimators, Mapping) else estimators(name)).items():
            if not isinstance(estimator, Estimator) and not callable(estimator):
                raise InputError(f"{label!r} is {estimator!r}, not an estimator such as tc.RankSeries()")
            chosen[label] = as_estimator(estimator)
        cells += [Cell(name, world, size, m, tuple(Value(e) for e in chosen.values())) for size in n]
        ranked += [chosen] * len(n)
    norms = {estimator.norm for chosen in ranked for estimator in chosen.values()}
    truth = {(name, norm): world.true_error(norm) for name, world in worlds.items() for norm in norms}
    return [
        Trial(label, cell.name, cell.n, truth[cell.name, estimator.norm], values[0])
        for cell, chosen, measured in zip(cells, ranked, simulate(cells, rng=rng, run=run), strict=True)
        for (label, estimator), values in zip(chosen.items(), measured, strict=True)
    ]


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
    return Frame.from_records(
        {
            "world": t.world_name,
            "estimator": t.estimator_name,
            "n": t.n,
            "m": t.m,
            "truth": t.truth,
            "mean": t.mean,
            "bias": t.bias,
            "bias_se": t.standard_error,
            "std": t.std,
            "std_se": t.std_standard_error,
            "rmse": t.rmse,
            "rmse_se": t.rmse_standard_error,
        }
        for t in results
    )
