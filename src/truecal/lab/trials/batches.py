"""Many simulated datasets, in batches: drawn and judged on as many cores as asked, with the same numbers on every machine.

Every batch has its own random stream, made from the seed, the name of the world, n and the number of the batch: from what
the user chose, never from fitted numbers, whose last bits differ between machines. The size of a batch depends on n alone.
So neither the number of workers nor the order in which batches finish can change an answer. Worlds of the same name are drawn
from the same uniform numbers, which makes their difference sharper than either.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

import truecal as tc
from truecal import options, parallel
from truecal.errors import InputError, TruecalError
from truecal.lab.trials.cache import BatchCache
from truecal.lab.trials.content import code_digest, digest, name_words
from truecal.lab.trials.measures import Measure
from truecal.lab.trials.run import Run
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import Seed, World

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


def answers_of(cells: Sequence[Cell], *, rng: Seed = 0, run: Run | None = None) -> list[list[Array]]:
    """Answers to every measure of every cell: result[cell][measure] has shape (answers, m)."""
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
    with run.kept() as kept, kept.reporting("simulating") as progress:
        for batch, answers in _all_answers(cells, plan, entropy, kept):
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
    wanted: tuple[int, ...]


def _answers(job: _Job) -> dict[int, Array]:
    """Draw one batch and put the wanted measures to it."""
    cell = job.cell
    draw, ask = _stream(cell, job.entropy, job.number).spawn(2)
    scores, outcomes = cell.world.draw(cell.n, job.size, rng=np.random.default_rng(draw))
    profile = tc.Profile.from_arrays(scores, outcomes)
    answers: dict[int, Array] = {}
    for k in job.wanted:
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
        known: dict[int, Array] = {}
        if store is not None:
            stored = store.read(_key(cell, batch, entropy))
            known = {k: stored[name] for k, m in enumerate(cell.measures) if (name := digest(m)) in stored}
        wanted = tuple(k for k in range(len(cell.measures)) if k not in known)
        if wanted:
            todo.append((batch, _Job(cell, batch.number, batch.size, entropy, wanted), known))
        else:
            yield batch, known
    # Long batches first, so that none is still running alone at the end.
    todo.sort(key=lambda item: -item[1].cell.n * item[1].size)
    for place, answers in run.processes.each(_answers, [job for _, job, _ in todo]):
        batch, job, known = todo[place]
        if store is not None:
            names = {str(digest(job.cell.measures[k])): answer for k, answer in answers.items()}
            store.add(_key(job.cell, batch, entropy), names)
        yield batch, {**known, **answers}


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
