"""The data of the example study: two sets bundled with scikit-learn and two generated ones, each with shifts of growing severity.

The rows that are judged are the same for every model, seed and severity; a seed chooses the rows a model learns from. Severity 0 is
clean. Digits are shifted in three ways, which share their clean images; columns of numbers are shifted by noise. All numbers are
scaled to mean 0 and standard deviation 1, digits as a whole, the others column by column.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import parallel
from truecal.errors import FileError, InputError, extra
from truecal.predictions import files
from truecal.special import softmax
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# The data of the example study: two sets bundled with scikit-learn and two generated ones, each with shifts of growing severity

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
SEVERITIES = (0, 1, 2, 3, 4, 5)
_LEARNT = 0.8  # share of the rows set aside for learning that one seed learns from


@dataclass(frozen=True)
class Data:
    """Rows to learn from and rows to judge."""

    train_x: Array
    train_y: Labels
    test_x: Array
    test_y: Labels

    def learnt_from(self, seed: int) -> tuple[Array, Labels]:
        """The rows that models of this seed learn from."""
        rows = np.random.default_rng([seed, 1]).permutation(len(self.train_y))[: round(_LEARNT * len(self.train_y))]
        return self.train_x[rows], self.train_y[rows]


def noise(x: Array, severity: int, rng: np.random.Generator) -> Array:
    """Normal noise of 0.2, 0.4, ... standard deviations."""
    return x + 0.2 * severity * rng.normal(size=x.shape)


def blur(x: Array, severity: int, rng: np.random.Generator) -> Array:
    """8 x 8 images seen through a Gaussian of 0.2, 0.4, ... pixels."""
    from scipy.ndimage import gaussian_filter

    images = x.reshape(-1, 8, 8)
    return gaussian_filter(images, sigma=(0, 0.2 * severity, 0.2 * severity)).reshape(x.shape)


def dropout(x: Array, severity: int, rng: np.random.Generator) -> Array:
    """8, 16, ... percent of the pixels are black."""
    return np.where(rng.random(x.shape) < 0.08 * severity, x.min(), x)


Shift = Callable[[Array, int, np.random.Generator], Array]

# Data -> {name of the dataset in the study: how it is shifted}
SHIFTS: dict[str, dict[str, Shift]] = {
    "digits": {"digits-noise": noise, "digits-blur": blur, "digits-dropout": dropout},
    "cancer": {"cancer": noise},
    "clusters": {"clusters": noise},
    "spheres": {"spheres": noise},
}


def load(name: str) -> Data:
    """One of the four: digits, cancer (bundled), clusters (five classes, 5 % of the labels wrong), spheres (two, not linear)."""
    datasets = extra("sklearn.datasets")
    x: Any
    y: Any
    if name == "digits":
        x, y = datasets.load_digits(return_X_y=True)
        judged = 900
    elif name == "cancer":
        x, y = datasets.load_breast_cancer(return_X_y=True)
        judged = 300
    elif name == "clusters":
        x, y = datasets.make_classification(
            4500, 20, n_informative=10, n_classes=5, flip_y=0.05, class_sep=1.2, random_state=1
        )
        judged = 3000
    else:
        x, y = datasets.make_hastie_10_2(4500, random_state=2)
        y = y > 0
        judged = 3000
    order = np.random.default_rng(0).permutation(len(y))
    x, y = np.asarray(x, np.float64)[order], np.asarray(y, np.int64)[order]
    learnt, axis = x[judged:], None if name == "digits" else 0  # pixels have one scale, columns of numbers one each
    x = (x - learnt.mean(axis)) / learnt.std(axis)
    return Data(x[judged:], y[judged:], x[:judged], y[:judged])


def shifted(data: Data, dataset: str, shift: Shift, severity: int, seed: int) -> Array:
    """The judged rows at a severity. Noise of one seed is the same for all models."""
    if severity == 0:
        return data.test_x
    rng = np.random.default_rng([seed, severity, *dataset.encode()])
    return shift(data.test_x, severity, rng)


# ----------------------------------------------------------------------------------------------------
# A small network with two hidden layers, with scikit-learn's verbs; trained long enough to become overconfident

_EPOCHS, _BATCH = 40, 64


class Network:
    """Two hidden layers of equal width, rectified, trained by Adam on the log loss."""

    def __init__(self, hidden: int, seed: int) -> None:
        self.hidden, self.seed = hidden, seed

    def fit(self, X: NDArray[np.float64], y: NDArray[np.int64]) -> "Network":
        import torch
        from torch import nn

        torch.set_num_threads(1)
        self.classes_ = np.unique(y)
        rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            wide, count = X.shape[1], len(self.classes_)
            self.layers_: Any = nn.Sequential(
                nn.Linear(wide, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, self.hidden),
                nn.ReLU(),
                nn.Linear(self.hidden, count),
            )
            steps = torch.optim.Adam(self.layers_.parameters(), lr=2e-3)
            loss = nn.CrossEntropyLoss()
            for _ in range(_EPOCHS):
                for batch in torch.randperm(len(rows)).split(_BATCH):
                    steps.zero_grad()
                    loss(self.layers_(rows[batch]), labels[batch]).backward()
                    steps.step()
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        import torch

        with torch.no_grad():
            outputs = self.layers_(torch.tensor(X, dtype=torch.float32))
            return torch.softmax(outputs.double(), dim=1).numpy()


# ----------------------------------------------------------------------------------------------------
# The models of the example study: scikit-learn classifiers of seven families and several sizes, and networks where torch is there

_FLOOR = 1e-3  # share of the uniform distribution in every prediction: trees and neighbours often predict exactly 0


@dataclass(frozen=True)
class Model:
    """A name, a family, a size, and how to make it from a seed."""

    name: str
    family: str
    size: int
    make: Callable[[int], Any]


def models() -> list[Model]:
    """All of them; those of torch only where it is installed."""
    return _SKLEARN + (_TORCH if find_spec("torch") else [])


def log_probabilities(model: Model, x: Array, y: Labels, sets: list[Array], seed: int) -> list[Any]:
    """Fit to x and y, and the float32 logarithms of its class probabilities on every set.

    Margins of support vector machines are read as logits, as people do; a thousandth of every prediction is spread over all
    classes, because the log loss of something held to be impossible is infinite.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    logits = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small networks stop before they have converged, as they are meant to
        fitted = model.make(seed).fit(x, y)
        for rows in sets:
            probs = _probabilities(fitted, rows)
            logits.append(np.log((1 - _FLOOR) * probs + _FLOOR / probs.shape[1]).astype(np.float32))
    return logits


def _probabilities(fitted: Any, x: Array) -> Array:
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(x), np.float64)
    margins = np.asarray(fitted.decision_function(x), np.float64)
    return softmax(np.stack([np.zeros(len(x)), margins], axis=1) if margins.ndim == 1 else margins)


def _logistic(c: float) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=c, max_iter=300)

    return make


def _forest(kind: str, trees: int) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from sklearn import ensemble

        return getattr(ensemble, kind)(trees, random_state=seed, n_jobs=1)

    return make


def _tree(leaves: int | None) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=seed)

    return make


def _boosting(rounds: int) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=rounds, max_leaf_nodes=8, max_bins=32, early_stopping=False, random_state=seed
        )

    return make


def _neighbours(k: int) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(k, n_jobs=1)

    return make


def _naive(seed: int) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB(var_smoothing=1e-2)


def _discriminant(seed: int) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)


def _svm(kernel: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from sklearn.svm import SVC

        return SVC(kernel=kernel, decision_function_shape="ovr")

    return make


def _mlp(hidden: int) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((hidden,), max_iter=60, batch_size=64, random_state=seed)

    return make


def _torch(hidden: int) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        return Network(hidden, seed)

    return make


_SKLEARN = [
    Model("logistic-strong", "linear", 650, _logistic(0.01)),
    Model("logistic", "linear", 650, _logistic(1.0)),
    Model("tree-16", "trees", 200, _tree(16)),
    Model("tree", "trees", 1_300, _tree(None)),
    Model("forest-10", "trees", 15_000, _forest("RandomForestClassifier", 10)),
    Model("forest-100", "trees", 150_000, _forest("RandomForestClassifier", 100)),
    Model("extra-trees-100", "trees", 300_000, _forest("ExtraTreesClassifier", 100)),
    Model("boosting-10", "boosting", 3_000, _boosting(10)),
    Model("boosting-50", "boosting", 15_000, _boosting(50)),
    Model("neighbours-3", "neighbours", 46_000, _neighbours(3)),
    Model("neighbours-20", "neighbours", 46_000, _neighbours(20)),
    Model("naive-bayes", "bayes", 1_300, _naive),
    Model("linear-discriminant", "bayes", 650, _discriminant),
    Model("svm-linear", "svm", 22_000, _svm("linear")),
    Model("svm-rbf", "svm", 31_000, _svm("rbf")),
    Model("mlp-16", "mlp", 1_210, _mlp(16)),
    Model("mlp-64", "mlp", 4_810, _mlp(64)),
    Model("mlp-256", "mlp", 19_210, _mlp(256)),
]
_TORCH = [
    Model("torch-64", "torch", 8_970, _torch(64)),
    Model("torch-256", "torch", 85_002, _torch(256)),
]


# ----------------------------------------------------------------------------------------------------
# A real study to look at: real models on real and generated data, under shift, several times over

_SEEDS = (0, 1, 2)
_QUICK_MODELS = ("logistic", "tree-16", "boosting-10", "naive-bayes", "svm-linear")
_QUICK_DATA = ("digits", "cancer")
_STUDY = """\
# Classifiers on data that get worse: noise, blur and missing pixels on handwritten digits, noise on tables.
# Evaluate:  truecal study run study.yaml --store store
# Look:      truecal study page store --out page.html
name: Classifiers under shift
predictions:
  - files: "predictions/{{dataset}}/{{model}}/severity-{{severity}}-seed-{{seed}}.npz"
models:
{models}
columns: {{label: labels, logits: logits}}
lenses: [{lenses}]
metrics: [{metrics}]
recalibrators: [temperature]
split: {{fraction: 0.2, seed: 0, fit: clean}}   # temperatures are learnt on a fifth of the clean rows
"""


@dataclass(frozen=True)
class Plan:
    """Which part of the example is made: all of it, or a small part whose files are the same."""

    models: tuple[Model, ...]
    data: tuple[str, ...]
    severities: tuple[int, ...]
    seeds: tuple[int, ...]
    lenses: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def trainings(self) -> list[tuple[Model, str, int]]:
        return [(model, name, seed) for name in self.data for model in self.models for seed in self.seeds]


def plan(*, quick: bool = False) -> Plan:
    """The whole example, or five models on two sets at two severities with one seed.

    >>> len(plan(quick=True).models), plan(quick=True).severities
    (5, (0, 3))
    """
    every = models()
    if quick:
        few = tuple(model for model in every if model.name in _QUICK_MODELS)
        metrics = ("error", "nll", "brier", "rank-series-l2", "debiased-15-l2", "ece-width-15-l1", "ece-mass-100-l1")
        return Plan(few, _QUICK_DATA, (0, 3), (0,), ("top-label",), metrics)
    return Plan(tuple(every), tuple(SHIFTS), SEVERITIES, _SEEDS, ("top-label", "class-wise"), ("paper-grid",))


def make_example(
    folder: str | os.PathLike[str],
    *,
    quick: bool = False,
    workers: int = 2,
    progress: parallel.Progress = parallel.unheard,
) -> Path:
    """Train, predict, write predictions/ and study.yaml into the folder, and return the path of the study file.

    `progress` is called with a Step: how many of all trainings are done.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    extra("sklearn")
    wanted = plan(quick=quick)
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {root}: {error.strerror}") from error
    parts = {task: _paths(root, wanted.severities, *task) for task in wanted.trainings}
    strange = set(root.glob("predictions/*/*/*.npz")) - {path for paths in parts.values() for path in paths}
    if strange:
        raise InputError(
            f"{root} holds predictions that are no part of this example, such as {min(strange)}; choose another folder"
        )
    missing = [task for task, paths in parts.items() if not all(map(_whole, paths))]
    total = len(parts)
    progress(parallel.Step("training", total - len(missing), total))
    for done, _ in enumerate(_all(root, wanted, missing, workers), total - len(missing) + 1):
        progress(parallel.Step("training", done, total))
    return write_whole(root / "study.yaml", _study(wanted))


def _path(root: Path, dataset: str, model: str, severity: int, seed: int) -> Path:
    return root / "predictions" / dataset / model / f"severity-{severity}-seed-{seed}.npz"


def _paths(root: Path, severities: Sequence[int], model: Model, name: str, seed: int) -> list[Path]:
    """The files of one training."""
    return [_path(root, dataset, model.name, severity, seed) for dataset in SHIFTS[name] for severity in severities]


def _whole(path: Path) -> bool:
    """Whether a file is there and holds predictions; damaged ones are made again."""
    if not path.is_file():
        return False
    try:
        held = files.read_arrays(path)
    except FileError:
        return False
    return set(held) == {"logits", "labels"} and len(held["logits"]) == len(held["labels"])


def _all(root: Path, wanted: Plan, tasks: Sequence[tuple[Model, str, int]], workers: int) -> Iterator[None]:
    """Do every training, yielding after each."""
    arguments = [(root, wanted.severities, model.name, name, seed) for model, name, seed in tasks]
    with parallel.Pool(workers) as pool:
        for _ in pool.each(_train_given, arguments):
            yield


def _train_given(given: tuple[Path, Sequence[int], str, str, int]) -> None:  # runs in a worker
    _train(*given)


def _train(root: Path, severities: Sequence[int], model_name: str, name: str, seed: int) -> None:
    """One model on one set with one seed: learn once, predict at every severity, write every file whole."""
    model = next(model for model in models() if model.name == model_name)
    data = load(name)
    places = [(dataset, shift, severity) for dataset, shift in SHIFTS[name].items() for severity in severities]
    sets = [shifted(data, dataset, shift, severity, seed) for dataset, shift, severity in places]
    answers = log_probabilities(model, *data.learnt_from(seed), sets, seed)
    labels = data.test_y.astype(np.int16)
    for (dataset, _, severity), logits in zip(places, answers, strict=True):
        path = _path(root, dataset, model.name, severity, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, partial(np.savez_compressed, logits=logits, labels=labels))


def _study(wanted: Plan) -> str:
    described = "\n".join(f"  {m.name}: {{family: {m.family}, size: {m.size}}}" for m in wanted.models)
    return _STUDY.format(models=described, lenses=", ".join(wanted.lenses), metrics=", ".join(wanted.metrics))
