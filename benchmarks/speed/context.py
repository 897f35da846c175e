"""Speed of the generalized error: the k-d tree against sorting, the top-k lens against one partition."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed.harness import Row, peak_extra_bytes, seconds_together
from truecal.estimators import GeneralizedECE, KDTree
from truecal.lenses import Canonical, TopK
from truecal.predictions import Predictions


def _drawn(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    labels = (rng.random((len(probs), 1)) > probs.cumsum(axis=1)).sum(axis=1)
    return np.minimum(labels, probs.shape[1] - 1)


def _tree_rows() -> list[Row]:
    """1e6 rows of 10 classes, gamma = 0.01: the promise is ten sorts of one column for each level of the tree."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(10, 0.3), 1_000_000)
    preds = Predictions.from_probs(probs, _drawn(probs, rng))
    column = np.ascontiguousarray(probs[:, 0])
    tree = KDTree(0.01)
    levels = tree.tree(Canonical().sample(preds)).depth + 1

    def work(level: float | None) -> Callable[[], Any]:
        return lambda: GeneralizedECE(lens=Canonical(), binning=tree, level=level)(preds)

    sort, partition, plain, full = seconds_together(
        lambda: np.sort(column), lambda: tree.partition(Canonical().sample(preds)), work(None), work(0.95), repeat=3
    )
    floor = f"{levels} sorts of a column"
    return [
        Row("k-d tree, 1e6 x 10, gamma 0.01", partition, partition / (sort * levels), floor, 10),
        Row("generalized error on it", plain, plain / (sort * levels), floor, 10),
        Row("generalized error on it with interval", full, full / (sort * levels), floor, 10),
        _memory(
            "memory of the k-d tree, beside its data",
            lambda: tree.partition(Canonical().sample(preds)),
            probs.nbytes,
            3,
        ),
    ]


def _top_k_rows() -> list[Row]:
    """50,000 rows of 1000 classes in single precision: the promise is four passes of np.partition."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(1000, 0.1), 50_000).astype(np.float32)
    preds = Predictions.from_probs(probs, _drawn(probs, rng))
    partition, lens, full = seconds_together(
        lambda: np.partition(probs, 995, axis=1),
        lambda: TopK(5).sample(preds),
        lambda: GeneralizedECE(lens=TopK(5))(preds),
        repeat=3,
    )
    floor = "np.partition of the matrix"
    return [
        Row("top-5 lens, 50,000 x 1000", lens, lens / partition, floor, 4),
        Row("top-5 generalized error with interval", full, full / partition, floor, 4),
        _memory("memory of the top-5 lens, beside its data", lambda: TopK(5).sample(preds), probs.nbytes, 0.5),
    ]


def _memory(what: str, work: Callable[[], Any], data: int, bound: float) -> Row:
    return Row(what, 0.0, peak_extra_bytes(work) / data, "bytes of the matrix", bound)


def rows() -> list[Row]:
    return [*_tree_rows(), *_top_k_rows()]


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.what:<45}{row.seconds:8.3f} s {row.ratio:6.2f} x {row.ratio_to} (promised {row.bound}: {row.holds})"
        )
