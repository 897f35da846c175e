"""An experiment of a paper, done again: a tidy table, a figure drawn from it, and how the run was made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from truecal.errors import InputError, MissingExtraError
from truecal.lab.table import Table
from truecal.lab.trials.batches import Cell, run
from truecal.lab.trials.trials import Estimators, Trial, trials
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import Seed, World

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Run:
    """Seed, number of processes, cache folder and progress bar of a run; only the seed changes the numbers."""

    rng: Seed = 0
    workers: int = 1
    cache: str | PathLike[str] | None = None
    progress: bool = True

    def trials(
        self,
        estimators: Estimators | Callable[[str], Estimators],
        worlds: Mapping[str, World],
        *,
        n: Sequence[int],
        m: int,
    ) -> list[Trial]:
        """:func:`trials`, run this way."""
        return trials(
            *(estimators, worlds),
            n=n,
            m=m,
            rng=self.rng,
            workers=self.workers,
            cache=self.cache,
            progress=self.progress,
        )

    def answers(self, cells: Sequence[Cell]) -> list[list[Array]]:
        """:func:`run`, run this way."""
        return run(cells, rng=self.rng, workers=self.workers, cache=self.cache, progress=self.progress)


@dataclass(frozen=True)
class Experiment:
    """What an experiment found. `draw` fills an empty matplotlib figure from the table."""

    name: str
    title: str
    table: Table
    draw: Callable[["Figure"], None]

    def figure(self) -> "Figure":
        """The figure; needs matplotlib."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError.of("matplotlib", "plot") from error
        figure = Figure(figsize=(9, 5), layout="constrained")
        self.draw(figure)
        figure.suptitle(self.title)
        return figure

    def write(self, folder: str | PathLike[str], *, table_format: str = "csv") -> list[Path]:
        """Write `<name>.csv` (or .parquet) and `<name>.png`; returns their paths."""
        if table_format not in ("csv", "parquet"):
            raise InputError(f"table_format must be csv or parquet, not {table_format!r}")
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / f"{self.name}.{table_format}", target / f"{self.name}.png"]
        self.table.write(paths[0])
        self.figure().savefig(paths[1], dpi=120)
        return paths
