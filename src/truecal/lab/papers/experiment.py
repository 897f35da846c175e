"""An experiment of a paper, done again: what it is given, and the table and figure it makes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path

import numpy as np

from truecal import parallel
from truecal.errors import InputError, extra
from truecal.frame import Frame
from truecal.lab.papers.data import Network
from truecal.lab.papers.drawing import Figure
from truecal.lab.trials.batches import Cell, answers_of, seed_number
from truecal.lab.trials.cache import BatchCache
from truecal.lab.trials.content import code_digest, digest
from truecal.lab.trials.run import Run
from truecal.lab.trials.trials import Estimators, Trial, trials
from truecal.lab.worlds.quadrature import Array
from truecal.lab.worlds.world import Seed, World
from truecal.writing import write_whole


@dataclass(frozen=True)
class Setting:
    """How many simulated datasets (or resamples), the seed, the run, and given networks by name."""

    m: int
    rng: Seed = 0
    run: Run = field(default_factory=Run)
    data: Mapping[str, Network] = field(default_factory=dict)

    def trials(
        self, estimators: Estimators | Callable[[str], Estimators], worlds: Mapping[str, World], *, n: Sequence[int]
    ) -> list[Trial]:
        """`trials` with this number of datasets and this seed."""
        return trials(estimators, worlds, n=n, m=self.m, rng=self.rng, run=self.run)

    def answers(self, cells: Sequence[Cell]) -> list[list[Array]]:
        """`answers_of` with this seed."""
        return answers_of(cells, rng=self.rng, run=self.run)

    def repeated(self, words: str, one: Callable[[int], Sequence[float]]) -> Array:
        """one(k) for k = 0, ..., m - 1, shape (m, answers): what is done with given outputs, from the cache where it is known.

        `words` name the experiment and the cell; one(k) may depend on them, k, the seed and the data alone.
        """
        store = None if self.run.cache is None else BatchCache(self.run.cache)
        content = {name: (n.test.preds.probs, n.test.preds.labels) for name, n in self.data.items()}
        parts = (code_digest(), np.__version__, words, self.m, seed_number(self.rng), digest(content))
        key = sha256("|".join(map(str, parts)).encode()).hexdigest()
        kept = store.read(key) if store is not None else {}
        if "answers" not in kept:
            answers = []
            with self.run.reporting(words) as progress:
                for k in range(self.m):
                    answers.append(one(k))
                    progress(parallel.Step(words, k + 1, self.m))
            kept = {"answers": np.array(answers, dtype=np.float64)}
            if store is not None:
                store.add(key, kept)
        return kept["answers"]

    def stream(self, *place: int) -> np.random.Generator:
        """Random numbers of one cell, whatever was or was not done before it."""
        return np.random.default_rng((seed_number(self.rng), *place))


@dataclass(frozen=True)
class Experiment:
    """The result of an experiment. `draw` fills an empty matplotlib figure from the table."""

    name: str
    title: str
    table: Frame
    draw: Callable[[Figure], None]

    def figure(self) -> Figure:
        """The figure; needs matplotlib."""
        figure = extra("matplotlib.figure").Figure(figsize=(9, 5), layout="constrained")
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
        figure = self.figure()
        write_whole(paths[1], lambda file: figure.savefig(file, dpi=120, format="png"))
        return paths
