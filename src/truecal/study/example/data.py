"""The data of the example study: two sets bundled with scikit-learn and two generated ones, each with shifts of growing severity.

The rows that are judged are the same for every model, seed and severity; a seed chooses the rows a model learns from. Severity 0 is
clean. Digits are shifted in three ways, which share their clean images; columns of numbers are shifted by noise. All numbers are
scaled to mean 0 and standard deviation 1, digits as a whole, the others column by column.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.errors import extra

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
