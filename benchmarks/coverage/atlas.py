"""The atlas: every statement in every world at every size, with a cache from which an interrupted run goes on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import truecal as tc
from benchmarks.coverage.statements import STATEMENTS, Kind, Statement
from truecal.lab import code_digest
from truecal.lab.trials import name_words
from truecal.parallel import Step
from truecal.writing import write_whole

SIZES = (50, 100, 300, 1000, 5000, 20_000, 100_000, 1_000_000)
MOST_ROWS = 20_000_000  # rows of all datasets of one cell: 200 of 100,000, so that the worst of 50 worlds is not chance
Worlds = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class AtlasCell:
    """One statement in one world at one n.

    `rate` is the coverage of an interval, or the rate of false statements of a test or promise; `above` and `below` are the shares
    of intervals that lie above and below the truth.
    """

    statement: str
    kind: Kind
    stated: float
    group: str
    world: str
    n: int
    m: int
    truth: float
    rate: float
    above: float
    below: float
    length: float

    @property
    def standard_error(self) -> float:
        """Monte-Carlo standard error of the rate, with one success and one failure added so that it is never 0."""
        p = (self.rate * self.m + 1) / (self.m + 2)
        return float(np.sqrt(p * (1 - p) / self.m))


def coverage_atlas(
    *,
    n: Sequence[int] = SIZES,
    m: int = 200,
    statements: Sequence[Statement] = STATEMENTS,
    worlds: Worlds | None = None,
    rng: int = 0,
    run: tc.lab.Run | None = None,
) -> list[AtlasCell]:
    """Judge every statement in every world at every size.

    Every cell has a random stream of its own: neither the other cells nor the number of workers change its numbers.

    Parameters
    ----------
    n : sequence of int
        Rows of a dataset; a statement skips sizes outside its range.
    m : int
        Datasets per cell. Slow statements have a share of them, and a cell has at most twenty million rows.
    statements : sequence of Statement
        The statements to judge.
    worlds : mapping of group -> name -> world, optional
        Worlds of your own instead of the statement's; they need workers=1 and no cache.
    rng : int
        Seed.
    run : tc.lab.Run, optional
        Workers, cache folder and progress. Cells in the cache are read back; it takes only those of `STATEMENTS`.

    Returns
    -------
    list of AtlasCell
        Cells in which something was stated.

    Raises
    ------
    tc.InputError
        No size or statement, fewer than 2 rows or 1 dataset, or a run that cannot be used with these statements and worlds.

    Examples
    --------
    >>> from truecal.lab import Uniform, World
    >>> cells = coverage_atlas(n=[200], m=40, statements=STATEMENTS[:2], worlds={"mine": {"uniform": World(Uniform())}})
    >>> [(cell.statement, cell.m, cell.rate > 0.8) for cell in cells]
    [('default', 40, True), ('mean absolute error', 40, True)]
    """
    run = run or tc.lab.Run()
    if len(n) == 0 or min(n) < 2 or len(statements) == 0:
        raise tc.InputError("an atlas needs sizes of 2 rows or more and a statement")
    if m < 1 or rng < 0:
        raise tc.InputError(f"m must be at least 1 and rng at least 0, not {m!r} and {rng!r}")
    if worlds is not None and (run.workers > 1 or run.cache is not None):
        raise tc.InputError("worlds of your own run with workers=1 and without a cache")
    if run.cache is not None and not all(statement in STATEMENTS for statement in statements):
        raise tc.InputError(
            "statements of your own run without a cache, which would not notice that their code changed"
        )
    jobs = [job for statement in statements for job in _jobs(statement, worlds, n, m, rng)]
    store = None if run.cache is None else _Store(Path(run.cache))
    cells: dict[int, AtlasCell | None] = {}
    if store is not None:
        cells = {i: store.read(job.key) for i, job in enumerate(jobs) if job.key in store}
    missing = [i for i in range(len(jobs)) if i not in cells]
    with run.with_pool() as running, running.reporting("coverage") as progress:
        progress(Step("cells of the atlas", len(cells), len(jobs)))
        for position, cell in running.processes.each(partial(judge_cell, worlds), [jobs[i] for i in missing]):
            i = missing[position]
            cells[i] = cell
            if store is not None:
                store.write(jobs[i].key, cell)
            progress(Step("cells of the atlas", len(cells), len(jobs)))
    return [cell for i in range(len(jobs)) if (cell := cells[i]) is not None]


@dataclass(frozen=True)
class _Job:
    """One cell to judge. The world is a name, because worlds may hold functions that cannot be sent to a process."""

    statement: Statement
    group: str
    world: str
    n: int
    m: int
    rng: int

    @property
    def key(self) -> str:
        """Name in the cache, which changes with the code."""
        words = (_code(), np.__version__, self.statement.name, self.group, self.world, self.n, self.m, self.rng)
        return sha256(json.dumps(words).encode()).hexdigest()


@cache
def _code() -> str:
    """Digest of the source of truecal and of this folder."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"\0".join([code_digest().encode(), *(path.read_bytes() for path in sources)])).hexdigest()


def _jobs(statement: Statement, worlds: Worlds | None, n: Sequence[int], m: int, rng: int) -> list[_Job]:
    share = round(m * statement.share)
    return [
        _Job(statement, group, world, size, max(2, share if statement.counted else min(share, MOST_ROWS // size)), rng)
        for group, named in (statement.worlds() if worlds is None else worlds).items()
        for world in named
        for size in n
        if statement.least_rows <= size <= statement.most_rows
    ]


def judge_cell(worlds: Worlds | None, job: _Job) -> AtlasCell | None:
    """Judge one cell; None where nothing is stated in such a world."""
    statement = job.statement
    world = (statement.worlds() if worlds is None else worlds)[job.group][job.world]
    stream = np.random.SeedSequence(job.rng, spawn_key=(*name_words(f"{job.group}/{job.world}"), job.n))
    trials = statement.judge(world, job.n, job.m, np.random.default_rng(stream))
    if trials is None:
        return None
    above, below = float(trials.above.mean()), float(trials.below.mean())
    return AtlasCell(
        statement=statement.name,
        kind=statement.kind,
        stated=statement.stated,
        group=job.group,
        world=job.world,
        n=job.n,
        m=len(trials.above),
        truth=trials.truth,
        rate=1 - above - below if statement.kind == "interval" else above,
        above=above,
        below=below,
        length=float(trials.length.mean()),
    )


class _Store:
    """A folder with one file per cell, null where nothing was stated; a file that is no JSON counts as absent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, key: str) -> bool:
        try:
            self.read(key)
        except (FileNotFoundError, ValueError):
            return False
        return True

    def read(self, key: str) -> AtlasCell | None:
        content = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        return None if content is None else AtlasCell(**content)

    def write(self, key: str, cell: AtlasCell | None) -> None:
        write_whole(self.folder / f"{key}.json", json.dumps(None if cell is None else asdict(cell)))
