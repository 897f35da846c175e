"""Every door in every world at every size: run, cached, taken up again where it stopped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from truecal import options, parallel
from truecal.errors import InputError
from truecal.lab.atlas.comparisons import COMPARISON_DOORS
from truecal.lab.atlas.door import AtlasCell, Door
from truecal.lab.atlas.events import EVENT_DOORS
from truecal.lab.atlas.one_score import ONE_SCORE_DOORS
from truecal.lab.atlas.promises import PROMISE_DOORS
from truecal.lab.atlas.verdicts import VERDICT_DOORS
from truecal.lab.trials.content import code_digest, name_words
from truecal.lab.trials.run import Run
from truecal.writing import write_whole

DOORS: tuple[Door, ...] = (*ONE_SCORE_DOORS, *EVENT_DOORS, *COMPARISON_DOORS, *VERDICT_DOORS, *PROMISE_DOORS)
SIZES = (50, 100, 300, 1000, 5000, 20_000, 100_000, 1_000_000)
_MOST_ROWS = 20_000_000  # of all datasets of one cell together: 200 of 100,000 rows, so that the worst of 50 worlds is not chance
Worlds = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Place:
    """One cell to be tried, by name: worlds and doors that hold plain functions are found again in every process."""

    door: str
    group: str
    world: str
    n: int
    m: int
    rng: int

    @property
    def key(self) -> str:
        """Where it lies in a cache: results do not outlive the code that made them."""
        return sha256(json.dumps([code_digest(), np.__version__, *asdict(self).values()]).encode()).hexdigest()


def coverage_atlas(
    *,
    n: Sequence[int] = SIZES,
    m: int = 200,
    doors: Sequence[Door] = DOORS,
    worlds: Worlds | None = None,
    rng: int = 0,
    run: Run | None = None,
) -> list[AtlasCell]:
    """How often every statement held, door by door, world by world and size by size.

    m datasets are drawn for each cell, or the door's share of them; fewer where together they would have more than twenty million
    rows. Every cell has a random stream of its own, so neither the other cells nor the number of workers change its numbers.
    With `run.cache` a cell that was tried once is read back, and an interrupted run goes on where it was. Doors and worlds of
    your own run with workers=1 and without a cache.

    >>> from truecal.lab import Uniform, World
    >>> cells = coverage_atlas(n=[200], m=40, doors=DOORS[:2], worlds={"mine": {"uniform": World(Uniform())}})
    >>> [(cell.door, cell.m, cell.rate > 0.8) for cell in cells]
    [('default', 40, True), ('mean absolute error', 40, True)]
    """
    run = run or Run()
    options.whole(m, "m")
    options.whole(rng, "rng", 0)
    if len(n) == 0 or min(n) < 2 or len(doors) == 0:
        raise InputError("an atlas needs sizes of 2 rows or more and a door")
    known = worlds is None and all(door in DOORS for door in doors)
    if not known and (run.workers > 1 or run.cache is not None):
        raise InputError("doors and worlds of your own run with workers=1 and without a cache")
    places = [place for door in doors for place in _places(door, worlds, n, m, rng)]
    store = None if run.cache is None else _Store(Path(run.cache))
    cells: dict[int, AtlasCell | None] = {}
    waiting = []
    for i, place in enumerate(places):
        stored = None if store is None else store.read(place.key)
        if stored is None:
            waiting.append(i)
        else:
            cells[i] = stored.cell
    work = try_known if known else partial(_try_given, {door.name: door for door in doors}, worlds)
    with run.kept() as kept, kept.reporting("coverage") as progress:
        progress(parallel.Step("cells of the atlas", len(cells), len(places)))
        for at, cell in kept.processes.each(work, [places[i] for i in waiting]):
            cells[waiting[at]] = cell
            if store is not None:
                store.write(places[waiting[at]].key, cell)
            progress(parallel.Step("cells of the atlas", len(cells), len(places)))
    return [cell for i in range(len(places)) if (cell := cells[i]) is not None]


def _places(door: Door, worlds: Worlds | None, n: Sequence[int], m: int, rng: int) -> list[Place]:
    given = door.worlds() if worlds is None else worlds
    asked = round(m * door.share)
    return [
        Place(door.name, group, world, size, max(2, asked if door.counted else min(asked, _MOST_ROWS // size)), rng)
        for group, named in given.items()
        for world in named
        for size in n
        if door.least_rows <= size <= door.most_rows
    ]


def try_known(place: Place) -> AtlasCell | None:
    """One cell of the atlas; None where the door says nothing in such a world."""
    door = next(door for door in DOORS if door.name == place.door)
    return _try(door, door.worlds()[place.group][place.world], place)


def _try_given(doors: Mapping[str, Door], worlds: Worlds | None, place: Place) -> AtlasCell | None:
    door = doors[place.door]
    given = door.worlds() if worlds is None else worlds
    return _try(door, given[place.group][place.world], place)


def _try(door: Door, world: Any, place: Place) -> AtlasCell | None:
    stream = np.random.SeedSequence(place.rng, spawn_key=(*name_words(f"{place.group}/{place.world}"), place.n))
    trials = door.judge(world, place.n, place.m, np.random.default_rng(stream))
    if trials is None:
        return None
    above, below = float(trials.above.mean()), float(trials.below.mean())
    rate = 1 - above - below if door.kind == "interval" else above
    return AtlasCell(
        door.name,
        door.kind,
        door.stated,
        place.group,
        place.world,
        place.n,
        len(trials.above),
        trials.truth,
        rate,
        above,
        below,
        float(trials.length.mean()),
    )


@dataclass(frozen=True)
class _Kept:
    """A cell that was tried, which may have said nothing."""

    cell: AtlasCell | None


class _Store:
    """A folder of one small file per cell, each written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str) -> _Kept | None:
        try:
            content = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return _Kept(None if content is None else AtlasCell(**content))

    def write(self, key: str, cell: AtlasCell | None) -> None:
        write_whole(self.folder / f"{key}.json", json.dumps(None if cell is None else asdict(cell)))
