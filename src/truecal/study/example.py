"""The data of the example study: two sets bundled with scikit-learn and two generated ones, each with shifts of growing severity.

The rows that are judged are the same for every model, seed and severity; a seed chooses the rows a model learns from. Severity 0
is clean. Digits are shifted in three ways, which share their clean images; columns of numbers are shifted by noise. All numbers
are scaled to mean 0 and standard deviation 1, digits as a whole, the others column by column.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import parallel
from truecal.errors import FileError, InputError, extra
from truecal.names import load_object
from truecal.special import softmax
from truecal.study.document import load_schema
from truecal.writing import write_whole

# ----------------------------------------------------------------------------------------------------
# The data of the example study: two sets bundled with scikit-learn and two generated ones, each with shifts of growing severity

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
_TRAINING_SHARE = 0.8  # by choice: share of the training rows that the models of one seed are fitted on


@dataclass(frozen=True)
class ExampleData:
    """Training and test rows: inputs (n, columns) and class labels (n,) of each."""

    train_x: Array
    train_y: Labels
    test_x: Array
    test_y: Labels

    def training_rows(self, seed: int) -> tuple[Array, Labels]:
        """Draw 80 % of the training rows, without replacement, for the models of one seed; return their inputs and labels."""
        order = np.random.default_rng([seed, 1]).permutation(len(self.train_y))
        rows = order[: round(_TRAINING_SHARE * len(self.train_y))]
        return self.train_x[rows], self.train_y[rows]


def noise(x: Array, severity: int, rng: np.random.Generator) -> Array:
    """Add normal noise of standard deviation 0.2 * severity to inputs of any shape.

    >>> noise(np.zeros(2), 0, np.random.default_rng(0))
    array([0., 0.])
    """
    return x + 0.2 * severity * rng.normal(size=x.shape)


def blur(x: Array, severity: int, rng: np.random.Generator) -> Array:
    """Blur 8 x 8 images (rows of 64 pixels) by a Gaussian of standard deviation 0.2 * severity pixels; `rng` is not used.

    >>> image = np.zeros((1, 64))
    >>> image[0, 27] = 1
    >>> blurred = blur(image, 2, np.random.default_rng(0))
    >>> round(float(blurred.sum()), 3), float(blurred.max()) < 1
    (1.0, True)
    """
    from scipy.ndimage import gaussian_filter

    images = x.reshape(-1, 8, 8)
    return gaussian_filter(images, sigma=(0, 0.2 * severity, 0.2 * severity)).reshape(x.shape)


def dropout(x: Array, severity: int, rng: np.random.Generator) -> Array:
    """Set each pixel to the smallest value of all with probability 0.08 * severity.

    >>> dropout(np.array([[3.0, 1.0]]), 13, np.random.default_rng(0))
    array([[1., 1.]])
    """
    return np.where(rng.random(x.shape) < 0.08 * severity, x.min(), x)


Shift = Callable[[Array, int, np.random.Generator], Array]

# Data -> {name of the dataset in the study: how it is shifted}
SHIFTS: dict[str, dict[str, Shift]] = {
    "digits": {"digits-noise": noise, "digits-blur": blur, "digits-dropout": dropout},
    "cancer": {"cancer": noise},
    "clusters": {"clusters": noise},
    "spheres": {"spheres": noise},
}


def load(name: str) -> ExampleData:
    """Load a dataset by name: digits, cancer (bundled), clusters (five classes, 5 % of labels random) or spheres (two classes).

    Rows are shuffled; 900 (digits), 300 (cancer) or 3000 are for the test. Inputs are standardised by mean and standard deviation
    of the training rows: of each column, for digits of all pixels.
    """
    datasets = extra("sklearn.datasets")
    bundled = {"digits": datasets.load_digits, "cancer": datasets.load_breast_cancer}
    test_rows = {"digits": 900, "cancer": 300}.get(name, 3000)
    if name in bundled:
        x, y = bundled[name](return_X_y=True)
    elif name == "clusters":
        options = {"n_informative": 10, "n_classes": 5, "flip_y": 0.05, "class_sep": 1.2, "random_state": 1}
        x, y = datasets.make_classification(4500, 20, **options)
    else:
        x, y = datasets.make_hastie_10_2(4500, random_state=2)
        y = y > 0
    order = np.random.default_rng(0).permutation(len(y))
    x, y = np.asarray(x, np.float64)[order], np.asarray(y, np.int64)[order]
    train, axis = x[test_rows:], None if name == "digits" else 0  # pixels have one scale, columns of numbers one each
    x = (x - train.mean(axis)) / train.std(axis)
    return ExampleData(x[test_rows:], y[test_rows:], x[:test_rows], y[:test_rows])


def shifted(data: ExampleData, dataset: str, shift: Shift, severity: int, seed: int) -> Array:
    """Apply a shift to the test inputs; severity 0 returns them unchanged. The same arguments give the same noise."""
    if severity == 0:
        return data.test_x
    rng = np.random.default_rng([seed, severity, *dataset.encode()])
    return shift(data.test_x, severity, rng)


# ----------------------------------------------------------------------------------------------------
# The models of the example study: scikit-learn classifiers of seven families and several sizes

_FLOOR = 1e-3  # by choice: share of the uniform distribution in a prediction, as trees and neighbours often predict exactly 0


@dataclass(frozen=True, eq=False)
class ExampleModel:
    """A model of the example study."""

    name: str
    family: str
    size: int
    path: str  # of its class: "module:name"
    arguments: dict[str, Any]  # of the class
    seeded: bool = False  # whether the class takes random_state

    def make(self, seed: int) -> Any:
        """Make the unfitted model; `seed` is its random_state if it is `seeded`, else ignored."""
        return load_object(self.path)(**self.arguments, **({"random_state": seed} if self.seeded else {}))


def models() -> list[ExampleModel]:
    """Return the models of the example, as listed in example.json.

    >>> models()[0].name
    'logistic-strong'
    """
    return [ExampleModel(**model) for model in load_schema("example.json")["models"]]


def log_probabilities(model: ExampleModel, x: Array, y: Labels, sets: list[Array], seed: int) -> list[Any]:
    """Fit to x and y, and return the float32 logarithms of its class probabilities on every set.

    Margins of support vector machines are read as logits, as is common; a thousandth of every prediction is spread over all
    classes, because the log loss of an outcome of probability 0 is infinite. Each result has shape (n, classes).
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    logits = []
    # small networks stop before they have converged, as they are meant to
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        fitted = model.make(seed).fit(x, y)
        for rows in sets:
            if hasattr(fitted, "predict_proba"):
                probs = np.asarray(fitted.predict_proba(rows), np.float64)
            else:
                margins = np.asarray(fitted.decision_function(rows), np.float64)
                probs = softmax(np.stack([0 * margins, margins], axis=1) if margins.ndim == 1 else margins)
            logits.append(np.log((1 - _FLOOR) * probs + _FLOOR / probs.shape[1]).astype(np.float32))
    return logits


# ----------------------------------------------------------------------------------------------------
# The example study: its plan, and the training of its models on every dataset with every seed


@dataclass(frozen=True)
class ExamplePlan:
    """Which part of the example is made: all of it, or a small part whose files are the same."""

    models: Sequence[ExampleModel]
    data: Sequence[str]  # names for `load`
    severities: Sequence[int]  # 0: unshifted
    seeds: Sequence[int]
    lenses: Sequence[str]
    metrics: Sequence[str]


def plan(*, quick: bool = False) -> ExamplePlan:
    """Return the plan of the whole example or, if quick, of five models on two datasets at two severities with one seed.

    >>> len(plan(quick=True).models), plan(quick=True).severities
    (5, (0, 3))
    """
    part = {name: tuple(values) for name, values in load_schema("example.json")["quick" if quick else "whole"].items()}
    return ExamplePlan(**{**part, "models": tuple(model for model in models() if model.name in part["models"])})


def make_example(
    folder: str | os.PathLike[str],
    *,
    quick: bool = False,
    workers: int = 2,
    progress: parallel.Progress = parallel.ignore_progress,
) -> Path:
    """Train the models of the example study, write their predictions and the study file.

    Parameters
    ----------
    folder : path
        Where predictions/ and study.yaml are written; what is there already is not trained again.
    quick : bool, default False
        Train five models on two datasets only.
    workers : int, default 2
        Processes.
    progress : callable, default no report
        Called with a :class:`truecal.parallel.Step`: how many of all trainings are done.

    Returns
    -------
    Path
        Path of the study file.

    Raises
    ------
    InputError
        If the folder holds other predictions, or workers is below 1.

    Examples
    --------
    >>> import tempfile
    >>> import truecal as tc
    >>> path = tc.study.make_example(tempfile.mkdtemp(), quick=True, workers=1)
    >>> study = tc.study.Study.read(path)
    >>> len(study.models), len(study)
    (5, 40)
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    extra("sklearn")
    example = plan(quick=quick)
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {root}: {error.strerror}") from error
    trainings = [(model, name, seed) for name in example.data for model in example.models for seed in example.seeds]
    tasks = [(root, example.severities, model.name, name, seed) for model, name, seed in trainings]
    paths = [list(_prediction_files(*task)) for task in tasks]
    foreign = set(root.glob("predictions/*/*/*.npz")) - {path for group in paths for path in group}
    if foreign:
        raise InputError(
            f"{root} holds predictions that are no part of this example, such as {min(foreign)}; choose another folder"
        )
    missing = [task for task, group in zip(tasks, paths, strict=True) if not all(path.is_file() for path in group)]
    finished = len(tasks) - len(missing)
    progress(parallel.Step("training", finished, len(tasks)))
    with parallel.Pool(workers) as pool:
        for done, _ in enumerate(pool.each(_train_model, missing), finished + 1):
            progress(parallel.Step("training", done, len(tasks)))
    described = "\n".join(f"  {m.name}: {{family: {m.family}, size: {m.size}}}" for m in example.models)
    lists = {"lenses": ", ".join(example.lenses), "metrics": ", ".join(example.metrics)}
    text = (resources.files("truecal.study") / "example.yaml").read_text(encoding="utf-8")
    return write_whole(root / "study.yaml", text.format(models=described, **lists))


def _prediction_files(
    root: Path, severities: Sequence[int], model: str, name: str, seed: int
) -> dict[Path, tuple[str, Shift, int]]:
    """Return (dataset, shift, severity) by the path of each prediction file that one training of a model on data `name` makes.

    A path is ROOT/predictions/DATASET/MODEL/severity-S-seed-N.npz; the datasets and their shifts are those of SHIFTS[name].

    >>> len(_prediction_files(Path("study"), [0, 1], "svm", "digits", 0)) == 2 * len(SHIFTS["digits"])
    True
    """
    return {
        root / "predictions" / dataset / model / f"severity-{severity}-seed-{seed}.npz": (dataset, shift, severity)
        for dataset, shift in SHIFTS[name].items()
        for severity in severities
    }


def _train_model(task: tuple[Path, Sequence[int], str, str, int]) -> None:
    """Fit one model on one dataset with one seed, in a worker, and write its predictions at every severity.

    `task` is the arguments of `_prediction_files`. A file holds `logits`, logs of probabilities, and `labels` (int16).
    """
    _, _, model_name, name, seed = task
    model = next(model for model in models() if model.name == model_name)
    data, conditions = load(name), _prediction_files(*task)
    sets = [shifted(data, *condition, seed) for condition in conditions.values()]
    logits = log_probabilities(model, *data.training_rows(seed), sets, seed)
    labels = data.test_y.astype(np.int16)
    for path, values in zip(conditions, logits, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, partial(np.savez_compressed, logits=values, labels=labels))
