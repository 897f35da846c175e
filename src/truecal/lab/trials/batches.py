"""Many simulated datasets, in batches: drawn and judged on as many cores as asked, with the same numbers on every machine.

Every batch has its own random stream, made from the seed, the name of the world, n and the number of the batch: from what
the user chose, never from fitted numbers, whose last bits differ between machines. The size of a batch depends on n alone.
So neither the number of workers nor the order in which batches finish can change an answer. Worlds of the same name are drawn
from the same uniform numbers, which makes their difference sharper than either.
"""

import contextlib
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import get_context
from typing import Any

import numpy as np

from truecal.errors import InputError, TruecalError
from truecal.lab.trials.cache import BatchCache
from truecal.lab.trials.content import code_digest, digest, name_words
from truecal.lab.trials.measures import Measure
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import Seed, World
from truecal.profile import Profile

_ROWS_PER_BATCH = 2**18  # 2 MB of scores: a worker and its prefix sums stay within tens of MB
_PILOT_DATASETS = 8


@dataclass(frozen=True)
class Cell:
    """m datasets of n rows from one world, and what is asked of each."""

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


def run(
    cells: Sequence[Cell],
    *,
    rng: Seed = 0,
    workers: int = 1,
    cache: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> list[list[Array]]:
    """Answers to every measure of every cell: result[cell][measure] has shape (answers, m).

    workers > 1 uses processes (a script that asks for them needs the usual `if __name__ == "__main__":`); worlds and
    estimators must then be picklable. `cache` is a folder. A bar is shown on a terminal's stderr while work goes on.
    """
    _refuse_bad_cells(cells, workers, cache)
    entropy = seed_number(rng)
    _pilot(cells, entropy)
    plan = [
        _Batch(c, number, size)
        for c, cell in enumerate(cells)
        for number, size in enumerate(batch_sizes(cell.n, cell.m))
    ]
    store = None if cache is None else BatchCache(cache)
    parts: dict[tuple[int, int], dict[int, Array]] = {}
    with _bar(sum(cells[b.cell].n * b.size for b in plan), progress) as advance:
        for batch, answers in _all_answers(cells, plan, entropy, workers, store):
            parts[batch.cell, batch.number] = answers
            advance(cells[batch.cell].n * batch.size)
    return [
        [
            np.concatenate([parts[c, number][k] for number in range(len(batch_sizes(cell.n, cell.m)))], axis=1)
            for k in range(len(cell.measures))
        ]
        for c, cell in enumerate(cells)
    ]


def seed_number(rng: Seed) -> int:
    """The one number all streams of a run grow from."""
    if isinstance(rng, int | np.integer) and rng >= 0:
        return int(rng)
    if isinstance(rng, int | np.integer):
        raise InputError(f"rng must be a number >= 0, a numpy Generator or None, not {rng!r}")
    return int(np.random.default_rng(rng).integers(2**63))


def batch_sizes(n: int, m: int) -> list[int]:
    """How m datasets of n rows are split: a rule of n alone, except for the last batch."""
    full = max(1, _ROWS_PER_BATCH // n)
    return [full] * (m // full) + ([m % full] if m % full else [])


def _stream(cell: Cell, entropy: int, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(entropy, spawn_key=(*name_words(cell.name), cell.n, number))


def _answers(
    cell: Cell, number: int, size: int, entropy: int, wanted: Sequence[int]
) -> dict[int, Array]:  # runs in a worker
    """Draw one batch and put the wanted measures to it."""
    draw, ask = _stream(cell, entropy, number).spawn(2)
    scores, outcomes = cell.world.draw(cell.n, size, rng=np.random.default_rng(draw))
    profile = Profile.from_arrays(scores, outcomes)
    found: dict[int, Array] = {}
    for k in wanted:
        measure = cell.measures[k]
        where = f"{measure.name} on world {cell.name!r}, n={cell.n}, batch {number} of seed {entropy}"
        try:
            answer = measure(profile, ask)
        except Exception as error:
            raise TruecalError(f"{where} failed: {error}") from error
        if answer.ndim != 2 or answer.shape[1] != size or not np.all(np.isfinite(answer)):
            raise TruecalError(f"{where} gave no finite number for each of {size} datasets (shape {answer.shape})")
        found[k] = answer
    return found


def _all_answers(
    cells: Sequence[Cell], plan: Sequence[_Batch], entropy: int, workers: int, store: BatchCache | None
) -> Iterator[tuple[_Batch, dict[int, Array]]]:
    """Cached answers first, then the rest, stored as they come."""
    todo: list[tuple[_Batch, list[int], dict[int, Array]]] = []
    for batch in plan:
        measures = cells[batch.cell].measures
        known: dict[int, Array] = {}
        if store is not None:
            stored = store.read(_key(cells, batch, entropy))
            known = {k: stored[name] for k, m in enumerate(measures) if (name := digest(m)) in stored}
        wanted = [k for k in range(len(measures)) if k not in known]
        if wanted:
            todo.append((batch, wanted, known))
        else:
            yield batch, known
    # Long batches first, so that no worker is left alone with one at the end.
    todo.sort(key=lambda item: -cells[item[0].cell].n * item[0].size)
    for place, found in _compute(cells, [(b, w) for b, w, _ in todo], entropy, workers):
        batch, _, known = todo[place]
        if store is not None:
            names = {str(digest(cells[batch.cell].measures[k])): answer for k, answer in found.items()}
            store.add(_key(cells, batch, entropy), names)
        yield batch, {**known, **found}


def _compute(
    cells: Sequence[Cell], work: Sequence[tuple[_Batch, list[int]]], entropy: int, workers: int
) -> Iterator[tuple[int, dict[int, Array]]]:
    def arguments(place: int) -> tuple[Cell, int, int, int, list[int]]:
        batch, wanted = work[place]
        return cells[batch.cell], batch.number, batch.size, entropy, wanted

    workers = min(workers, len(work))
    if workers <= 1:
        for place in range(len(work)):
            yield place, _answers(*arguments(place))
        return
    with one_thread_each(), ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[dict[int, Array]], int] = {}
        upcoming = iter(range(len(work)))
        try:
            for place in upcoming:
                waiting[pool.submit(_answers, *arguments(place))] = place
                if len(waiting) < 2 * workers:  # a short queue: little to lose when interrupted
                    continue
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes started within use one thread for linear algebra: the cores are already taken by their siblings."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _key(cells: Sequence[Cell], batch: _Batch, entropy: int) -> str:
    cell = cells[batch.cell]
    words = (code_digest(), np.__version__, cell.name, digest(cell.world), cell.n, entropy, batch.number, batch.size)
    return sha256("|".join(map(str, words)).encode()).hexdigest()


def _refuse_bad_cells(cells: Sequence[Cell], workers: int, cache: object) -> None:
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    for cell in cells:
        if cell.n < 1 or cell.m < 2:
            raise InputError(f"a trial needs n >= 1 rows and m >= 2 datasets, not n={cell.n}, m={cell.m}")
        parts = (cell.world, *cell.measures)
        if cache is not None and any(digest(part) is None for part in parts):
            raise InputError(
                f"world {cell.name!r} or a measure on it holds a plain function, which has no content to be cached by; "
                "use a Curve dataclass, or cache=None"
            )
    if workers > 1:
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
        try:
            _answers(
                cell,
                2**32 - 1,
                min(_PILOT_DATASETS, batch_sizes(cell.n, cell.m)[0]),
                entropy,
                range(len(cell.measures)),
            )
        except TruecalError as error:
            raise InputError(f"a first try did not work, nothing was run: {error}") from error


@contextlib.contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Any]:
    """A progress bar on stderr, if that is a terminal and rich is installed; otherwise silence."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda rows: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield lambda rows: None
        return
    columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("simulating", total=total)
        yield lambda rows: progress.advance(task, rows)
