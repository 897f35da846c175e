"""The models of the example study: scikit-learn classifiers of seven families and several sizes, and networks where torch is there.

`size` is about how many numbers a model keeps after learning the digits, so that sizes can be compared across families.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from truecal.predictions import softmax
from truecal.study.example.data import Array, Labels
from truecal.study.example.network import Network

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
