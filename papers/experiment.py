"""What an experiment is given (simulations, seed, outputs of networks) and what it makes: a table and a figure."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import truecal as tc
from papers.drawing import STYLE, Figure, finish
from papers.grading import Quantities
from truecal.estimators import Estimator

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]
Seed = int | np.random.Generator | np.random.SeedSequence | None
Field = str | int | float | None
Estimators = Mapping[str, Estimator]
Data = Literal["", "simulated", "worlds", "network", "networks"]


_PREFIXES = {"test": ("test_", ""), "validation": ("val_", "validation_")}


@dataclass(frozen=True)
class Outputs:
    """Predictions of one split, and the logits behind them where the file has logits."""

    preds: tc.Predictions
    logits: Floats | None = None

    def logits_or_logs(self) -> Floats:
        """Logits, or log probabilities, which are logits up to a constant per row."""
        if self.logits is not None:
            return self.logits
        probs = self.preds.probs
        both = np.stack([1.0 - probs, probs], axis=1) if self.preds.binary else probs
        return np.asarray(np.log(np.maximum(both, np.finfo(np.float64).tiny)), dtype=np.float64)

    def top(self) -> tuple[Array, Array]:
        """Highest probability of every row, and whether it came true."""
        probs = self.preds.probs
        both = np.stack([1.0 - probs, probs], axis=1) if self.preds.binary else probs
        return both.max(axis=1).astype(np.float64), (both.argmax(axis=1) == self.preds.labels).astype(np.float64)


@dataclass(frozen=True)
class Network:
    """A trained network on its test split and, for recalibration, on its validation split."""

    test: Outputs
    validation: Outputs | None = None

    def held_out(self, experiment: str) -> Outputs:
        """The validation split; refused by name where the file has none."""
        if self.validation is None:
            raise tc.InputError(
                f"{experiment} recalibrates on a validation split: give an .npz file with val_logits and val_labels beside "
                "test_logits and test_labels"
            )
        return self.validation


def read_network(path: str | PathLike[str]) -> Network:
    """From an .npz file of logits (or probs) and labels, or of test_logits, test_labels, val_logits and val_labels."""
    file = Path(path)
    if not file.is_file():
        raise tc.errors.FileError(f"no file {path}; --data takes NAME=FILE")
    with np.load(file, allow_pickle=False) as stored:
        arrays = dict(stored)
    splits = {split: _outputs(arrays, prefixes) for split, prefixes in _PREFIXES.items()}
    if splits["test"] is None:
        raise tc.errors.FileError(
            f"{path} holds {', '.join(arrays)}; it needs logits (or probs) and labels, or test_logits and test_labels"
        )
    return Network(splits["test"], splits["validation"])


def _outputs(arrays: Mapping[str, Floats], prefixes: tuple[str, ...]) -> Outputs | None:
    for prefix in prefixes:
        labels = arrays.get(f"{prefix}labels")
        if labels is not None and f"{prefix}logits" in arrays:
            logits = arrays[f"{prefix}logits"]
            return Outputs(tc.Predictions.from_logits(logits, labels), logits)
        if labels is not None and f"{prefix}probs" in arrays:
            return Outputs(tc.Predictions.from_probs(arrays[f"{prefix}probs"], labels))
    return None


def the_network(data: Mapping[str, Network], experiment: str) -> Network:
    """The one network of an experiment that is about one."""
    if len(data) != 1:
        raise tc.InputError(
            f"{experiment} is about one network: give --data NAME=FILE once (.npz of logits or probs, and labels)"
        )
    return next(iter(data.values()))


def tidy(columns: Sequence[str], rows: Iterable[Sequence[Field]]) -> tc.lab.Frame:
    """A table from the names of its columns and its rows.

    >>> tidy(("n", "bias"), [(200, 0.5), (400, 0.25)])["bias"].tolist()
    [0.5, 0.25]
    """
    return tc.lab.Frame.from_records([dict(zip(columns, row, strict=True)) for row in rows], columns)


def load(words: str) -> Any:
    """What `module:name` stands for."""
    module, between, name = words.partition(":")
    if not between:
        raise tc.InputError(f"{words!r} must be module:name, e.g. my_estimators:my_error")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise tc.InputError(f"cannot load {words!r}: {error}") from error


def load_world(words: str) -> tc.lab.World:
    """A world, or what a function without arguments answers."""
    thing = load(words)
    world = thing() if callable(thing) else thing
    if not isinstance(world, tc.lab.World):
        raise tc.InputError(f"{words!r} must be a tc.lab.World or a function that returns one, not {world!r}")
    return world


@dataclass(frozen=True)
class OwnFunction:
    """A function of scores and outcomes (arrays of one dataset) as an estimator: its answers are compared with the true error.

    The true error has norm 2, or that of the function's attribute `norm`. `source` is part of the place in the cache.
    """

    words: str
    source: str = ""

    @property
    def name(self) -> str:
        return self.words

    @property
    def norm(self) -> float:
        return float(getattr(self.function(), "norm", 2))

    def function(self) -> Any:
        """The function itself, of the scores and outcomes of one dataset."""
        return _load_callable(self.words)

    def __call__(self, profile: tc.profile.Profile, seed: np.random.SeedSequence) -> Array:
        function = self.function()
        values = [float(function(c, y)) for c, y in zip(profile.scores, profile.outcomes, strict=True)]
        return np.array([values])


def _load_callable(words: str) -> Any:
    """A function, an object that is called like one, or, for a class, the object made without arguments."""
    thing = load(words)
    return thing() if isinstance(thing, type) else thing


def load_estimator(words: str) -> "Estimator | OwnFunction":
    """An estimator of truecal, or a function or object called with scores and outcomes."""
    thing = _load_callable(words)
    if isinstance(thing, Estimator):
        return thing
    if not callable(thing):
        raise tc.InputError(f"{words!r} must be an estimator or a function of (scores, outcomes), not {thing!r}")
    source = inspect.getsource(thing if inspect.isfunction(thing) else type(thing))
    return OwnFunction(words, sha256(source.encode()).hexdigest())


@dataclass(frozen=True)
class Setting:
    """Number of simulated datasets (or resamples), seed, run, and what a user gives: networks, worlds and estimators by name."""

    m: int
    rng: Seed = 0
    run: tc.lab.Run = field(default_factory=tc.lab.Run)
    data: Mapping[str, Network] = field(default_factory=dict)
    worlds: Mapping[str, tc.lab.World] = field(default_factory=dict)
    own: Mapping[str, "Estimator | OwnFunction"] = field(default_factory=dict)

    def worlds_or(self, printed: Mapping[str, tc.lab.World]) -> dict[str, tc.lab.World]:
        """The worlds of the user, or else those of the paper."""
        return dict(self.worlds or printed)

    def world_or(self, name: str) -> tuple[str, tc.lab.World]:
        """The one world of the user, or else a printed one."""
        if len(self.worlds) > 1:
            raise tc.InputError(f"this figure is about one world, not {', '.join(self.worlds)}")
        return next(iter(self.worlds.items())) if self.worlds else (name, tc.lab.PAPER_WORLDS[name])

    @property
    def seed(self) -> int:
        """The number that all random streams of this setting grow from."""
        if isinstance(self.rng, int | np.integer):
            return int(self.rng)
        return int(np.random.default_rng(self.rng).integers(2**63))

    def trials(
        self,
        estimators: Estimators | Callable[[str], Estimators],
        worlds: Mapping[str, tc.lab.World],
        *,
        n: Sequence[int],
    ) -> list[tc.lab.Trial]:
        """`tc.lab.trials` with this number of datasets and this seed, and the user's estimators on the same datasets."""
        plain = {name: e for name, e in self.own.items() if isinstance(e, Estimator)}
        functions = {name: f for name, f in self.own.items() if isinstance(f, OwnFunction)}

        def named(world: str) -> Estimators:
            return {**(estimators(world) if callable(estimators) else estimators), **plain}

        results = tc.lab.trials(named, worlds, n=n, m=self.m, rng=self.rng, run=self.run)
        if functions:
            measures = tuple(functions.values())
            cells = [tc.lab.Cell(name, world, size, self.m, measures) for name, world in worlds.items() for size in n]
            for cell, answers in zip(cells, self.answers(cells), strict=True):
                for (name, function), values in zip(functions.items(), answers, strict=True):
                    truth = cell.world.true_error(function.norm)
                    results.append(tc.lab.Trial(name, cell.name, cell.n, truth, values[0]))
        return results

    def answers(self, cells: Sequence[tc.lab.Cell]) -> list[list[Array]]:
        """`tc.lab.simulate` with this seed."""
        return tc.lab.simulate(cells, rng=self.rng, run=self.run)

    def repeated(self, words: str, one: Callable[[int], Sequence[float]]) -> Array:
        """one(k) for k = 0, ..., m - 1, shape (m, answers): repetitions on given outputs, read from the cache where stored.

        `words` name the experiment and the cell; one(k) may depend on them, k, the seed and the data alone.
        """
        cache = None if self.run.cache is None else tc.lab.BatchCache(self.run.cache)
        parts = (
            tc.lab.code_digest(),
            _source_digest(one),
            np.__version__,
            words,
            self.m,
            self.seed,
            self._data_digest(),
        )
        key = sha256("|".join(map(str, parts)).encode()).hexdigest()
        stored = cache.read(key) if cache is not None else {}
        if "answers" not in stored:
            answers = []
            with self.run.reporting(words) as progress:
                for k in range(self.m):
                    answers.append(one(k))
                    progress(tc.lab.Step(words, k + 1, self.m))
            stored = {"answers": np.array(answers, dtype=np.float64)}
            if cache is not None:
                cache.add(key, stored)
        return stored["answers"]

    def stream(self, *key: int) -> np.random.Generator:
        """Random numbers of one cell, whatever was or was not done before it."""
        return np.random.default_rng((self.seed, *key))

    def _data_digest(self) -> str:
        digest = sha256()
        for name, network in self.data.items():
            for array in (network.test.preds.probs, network.test.preds.labels):
                digest.update(f"{name} {array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def _source_digest(function: Callable[..., object]) -> str:
    """Digest of the module that defines a function: no stored repetition outlives the code that made it."""
    inner = getattr(function, "func", function)
    module = inspect.getmodule(inner)
    file = None if module is None else module.__file__
    return "" if file is None else sha256(Path(file).read_bytes()).hexdigest()


@dataclass(frozen=True)
class Experiment:
    """The result of an experiment. `draw` fills an empty matplotlib figure from the table."""

    name: str
    title: str
    table: tc.lab.Frame
    draw: Callable[[Figure], None]
    read: Callable[[tc.lab.Frame], Quantities] | None = None

    @property
    def quantities(self) -> Quantities:
        """The numbers that the tests of items name, with their standard errors."""
        return {} if self.read is None else self.read(self.table)

    def figure(self) -> Figure:
        """The figure, at the size and in the style of a printed page; needs matplotlib."""
        from matplotlib.figure import Figure as Empty
        from matplotlib.style import context

        with context(STYLE):
            figure = Empty(layout="constrained")
            self.draw(figure)
            finish(figure, self.title)
        return figure

    def write(
        self, folder: str | PathLike[str], *, table_format: str = "csv", figure_format: str = "png"
    ) -> list[Path]:
        """Write `<name>.csv` (or .parquet) and `<name>.png` (or .pdf, .svg); returns their paths."""
        from matplotlib.style import context

        if table_format not in ("csv", "parquet"):
            raise tc.InputError(f"table_format must be csv or parquet, not {table_format!r}")
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / f"{self.name}.{table_format}", target / f"{self.name}.{figure_format}"]
        self.table.write(paths[0])
        with context(STYLE):
            self.figure().savefig(paths[1], format=figure_format)
        return paths


@dataclass(frozen=True)
class Paper:
    """An experiment, its number of simulated datasets or resamples in a quick and in a full run, and the data it takes.

    In full it is as many as in the paper; only `kirchenbauer-gamma` takes 200 resamples of all and of half of the rows where the
    paper has 1000, which would take a third of the time of all experiments together. Experiments without simulations have 1, and
    `minderer-example` its number of models.

    data: "" none; "simulated": worlds of the user, or worlds fitted to outputs, in place of the printed ones;
    "worlds": the same, and outputs of networks named like the papers' worlds; "network": optional outputs of one network;
    "networks": needed ones, of any name. own: whether estimators of the user stand beside the paper's.
    """

    make: Callable[[Setting], Experiment]
    quick: int
    full: int
    data: Data = ""
    read: Callable[[tc.lab.Frame], Quantities] | None = None
    own: bool = False
