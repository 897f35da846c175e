"""What the experiments of Kumar et al. on real models share: splits, Platt-scaled confidences, and errors of grouped outputs.

Definitions 5.1, 5.2 and G.3 take the rows with the same output s together; p_s is their share, y_s their mean outcome and n_s
their number:

    plug-in, squared    sum_s p_s (s - y_s)^2
    debiased, squared   the same less sum_s p_s y_s (1 - y_s) / (n_s - 1)
    plug-in, l1         sum_s p_s |s - y_s|
    debiased, l1        2 |s - y_s| - E|s - R_s|, R_s ~ Normal(y_s, y_s (1 - y_s) / n_s): a folded normal, in closed form
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import truecal as tc
from truecal.errors import InputError
from truecal.lab.papers.data import the_network
from truecal.lab.papers.experiment import Setting
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS
from truecal.lab.worlds.quadrature import Array

Groups = npt.NDArray[np.intp]
TAIL = 0.05  # of a 90 % interval
NORMAL = 1.6449  # its normal quantile
STAND_IN = "resnet152_imgnet"
_STAND_IN_ROWS = 50_000


def top_rows(setting: Setting, experiment: str) -> tuple[Array, Array]:
    """Confidences and outcomes of the given network, or of 50,000 rows of the ImageNet world of Roelofs et al."""
    if setting.data:
        return the_network(setting.data, experiment).test.top()
    scores, outcomes = PAPER_WORLDS[STAND_IN].draw(_STAND_IN_ROWS, 1, rng=setting.rng)
    return scores[0], outcomes[0].astype(np.float64)


def class_rows(setting: Setting, experiment: str) -> tc.Predictions:
    """The predictions of the given network; these figures are about all of its classes."""
    if not setting.data:
        raise InputError(
            f"{experiment} recalibrates every class of a real network: give it with --data NAME=FILE (.npz)"
        )
    return the_network(setting.data, experiment).test.preds


def shuffled_parts(n: int, shares: Sequence[float], rng: np.random.Generator) -> list[Groups]:
    """Disjoint random parts of n rows with these shares."""
    ends = np.cumsum([round(share * n) for share in shares])
    return list(np.split(rng.permutation(n), ends[:-1]))


def platt(c: Array, y: Array, fit: Groups) -> Array:
    """All confidences after a sigmoid in their log odds, fitted on some rows."""
    scaling = tc.BetaCalibration(parameters=2, input="probs", clip=1e-7).fit(c[fit], y[fit].astype(np.int64))
    return np.asarray(scaling.predict_proba(c)[:, 1], dtype=np.float64)


def mass_edges(c: Array, bins: int) -> Array:
    """Inner edges of bins of equal mass, each halfway between its neighbours."""
    ordered = np.sort(c)
    cuts = np.unique([round(k * c.size / bins) for k in range(1, bins)])
    return np.unique((ordered[cuts - 1] + ordered[cuts]) / 2)


@dataclass(frozen=True)
class Grouped:
    """Share, mean score, mean outcome and size of every group, for every resample: shape (resamples, groups)."""

    share: Array
    score: Array
    rate: Array
    size: Array

    @classmethod
    def of(cls, group: Groups, c: Array, y: Array, weights: Array) -> "Grouped":
        """For each row of `weights` over the rows."""
        count = int(group.max()) + 1
        size, scores, ones = (
            np.stack([np.bincount(group, w * values, count) for w in weights]).astype(np.float64)
            for values in (np.ones(c.size), c, y)
        )
        safe = np.maximum(size, 1e-300)
        return cls(size / size.sum(axis=1, keepdims=True), scores / safe, ones / safe, size)

    def squared(self) -> tuple[Array, Array]:
        """Plug-in and debiased squared error of every resample."""
        gaps = (self.score - self.rate) ** 2
        noise = np.where(self.size > 1, self.rate * (1 - self.rate) / np.maximum(self.size - 1, 1.0), 0.0)
        return (self.share * gaps).sum(axis=1), (self.share * (gaps - noise)).sum(axis=1)

    def absolute(self) -> tuple[Array, Array]:
        """Plug-in and debiased l1 error of every resample."""
        from scipy.special import ndtr

        gap = np.abs(self.score - self.rate)
        spread = np.sqrt(self.rate * (1 - self.rate) / np.maximum(self.size, 1.0))
        z = np.divide(gap, spread, out=np.full(gap.shape, 40.0), where=spread > 0)
        folded = spread * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * (1 - 2 * ndtr(-z))
        return (self.share * gap).sum(axis=1), (self.share * (2 * gap - folded)).sum(axis=1)


def marginals(preds: tc.Predictions) -> list[tuple[Groups, Array, Array]]:
    """For every class: which rows share an output, the output of each row, and its outcome."""
    classes = []
    for k in range(preds.class_count):
        column = np.asarray(preds.probs[:, k], dtype=np.float64)
        group = np.unique(column, return_inverse=True)[1]
        classes.append((group, column, (preds.labels == k).astype(np.float64)))
    return classes


def marginal_squared(classes: Sequence[tuple[Groups, Array, Array]], rows: Groups | None = None) -> tuple[float, float]:
    """Plug-in and debiased squared error, averaged over the classes (definition 2.4), of all or some rows."""
    both = []
    for group, c, y in classes:
        part = (group, c, y) if rows is None else (group[rows], c[rows], y[rows])
        both.append([float(v[0]) for v in Grouped.of(*part, np.ones((1, part[1].size))).squared()])
    plugin, debiased = np.mean(both, axis=0)
    return float(plugin), float(debiased)


def mean_interval(values: Array) -> tuple[float, float, float]:
    """Mean and 90 % normal interval of the mean."""
    mean = float(values.mean())
    error = NORMAL * float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, mean - error, mean + error
