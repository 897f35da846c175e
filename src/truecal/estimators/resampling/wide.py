"""Errors in fixed bins over many classes, with interval and test, from one pass over the matrix of probabilities.

Rows are put in 256 groups at random. One pass leaves, for every group, the rows and the sum of residuals y - c in every bin of
every class. All else is a product of matrices: drawing groups with replacement gives resamples of all classes together (rows are
independent, so drawing groups leaves the distribution of sums as it is; 256 of them know its spread to 4 %), and turning the
signs of whole groups gives the test. Its statistic is the mean over classes of sum_b R_b^2 / (V_b + 1), with R_b the sum of
residuals in a bin and V_b = n_b c_b (1 - c_b) its variance under calibration; the 1 keeps bins in which next to nothing is
expected from outweighing all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np

from truecal.estimators.bins import Binning, Bins
from truecal.estimators.resampling.draws import unit_counts
from truecal.estimators.resampling.equal_mass import mass_bins
from truecal.estimators.resampling.folded import Folded, mean_square
from truecal.estimators.resampling.redraw import REDRAWS
from truecal.estimators.signs import SignBounds, SignCells
from truecal.predictions import validation
from truecal.predictions.predictions import Predictions
from truecal.profile import binning as binning_module
from truecal.profile.binning import Edges
from truecal.special import positive
from truecal.types import Float64s, Floats, Indices

_LEAST_ROWS = 4096  # fewer rows make groups too small for their sums to be symmetric
_LEAST_WORK = 5_000_000  # fewer probabilities are quickly judged class by class
_MOST_CELLS = 1 << 16  # bins of all classes, of which every group has its own
_SEED = 256
GROUPS = 256
_BLOCK = 1 << 17  # probabilities counted at a time
_CLASSES = 256  # classes counted at a time
_WRITTEN = 16  # classes whose sums are put in place together
_DRAWN = 1 << 16  # bins of resamples judged at a time
_COLUMNS = 1 << 20  # probabilities transposed at a time
RESAMPLES = 200


def pays(preds: Predictions) -> bool:
    """Whether there are so many independent rows and classes that groups of rows stand for them."""
    n, classes = preds.probs.shape
    plain = preds.weights is None and preds.clusters is None
    return plain and n >= _LEAST_ROWS and n * classes > _LEAST_WORK


def fits(preds: Predictions, binning: Binning) -> bool:
    """Whether bins of all classes can be counted side by side."""
    one_pass = (
        binning.ties == "keep" if binning.scheme == "mass" else binning_module.one_pass(binning.bins, preds.probs.dtype)
    )
    return one_pass and preds.class_count * binning.bins <= _MOST_CELLS


def group_of_row(n: int) -> Indices:
    """Groups of equal size, drawn at random: rows are often sorted by label, and then neighbours are not like any others."""
    return np.random.default_rng(_SEED).permutation(n) % GROUPS


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows, sums of scores and ones of every group in every bin of every class, shape (groups, classes * bins)."""

    count: Float64s
    score: Float64s
    ones: Float64s
    classes: int

    @classmethod
    def of(cls, probs: Floats, labels: Indices, binning: Binning) -> "Groups":
        """From a matrix of probabilities, shape (n, classes)."""
        held = cls._of_mass if binning.scheme == "mass" else cls._of_width
        return held(probs, labels, binning)

    @classmethod
    def _of_mass(cls, probs: Floats, labels: Indices, binning: Binning) -> "Groups":
        """Class by class: every one has its own cuts."""
        (n, classes), bins = probs.shape, binning.bins
        sums = np.empty((3, GROUPS, classes, bins))
        first, size = group_of_row(n) * bins, GROUPS * bins
        # Of several classes together: what one class holds of every group would lie far apart.
        held = np.empty((_WRITTEN, 3, GROUPS, bins))
        for k, column, rows in class_columns(probs, labels):
            place = mass_bins(column, bins) + first
            of_class = held[k % _WRITTEN].reshape(3, size)
            of_class[0] = np.bincount(place, None, size)
            of_class[1] = np.bincount(place, column, size)
            of_class[2] = np.bincount(place[rows], None, size)
            if k == classes - 1 or (k + 1) % _WRITTEN == 0:
                start = k - k % _WRITTEN
                sums[:, :, start : k + 1] = held[: k + 1 - start].transpose(1, 2, 0, 3)
        count, score, ones = sums.reshape(3, GROUPS, -1)
        return cls(count, score, ones, classes)

    @classmethod
    def _of_width(cls, probs: Floats, labels: Indices, binning: Binning) -> "Groups":
        """One pass over the rows, some classes at a time so that their tables stay in cache."""
        (n, classes), bins = probs.shape, binning.bins
        size = classes * bins
        group_of = group_of_row(n)
        members = np.split(np.argsort(group_of, kind="stable"), np.cumsum(np.bincount(group_of, minlength=GROUPS))[:-1])
        count, score = np.zeros((GROUPS, size)), np.zeros((GROUPS, size))
        edges = Edges(probs.dtype, bins, binning.closed, _BLOCK)
        first = np.arange(_CLASSES, dtype=np.int32) * np.int32(bins)
        step = _BLOCK // _CLASSES
        for group, low in product(range(GROUPS), range(0, classes, _CLASSES)):
            here = slice(low * bins, min(low + _CLASSES, classes) * bins)
            for start in range(0, len(members[group]), step):
                block = np.ascontiguousarray(probs[members[group][start : start + step], low : low + _CLASSES])
                code = edges.of(block.ravel()).reshape(block.shape)
                code += first[: block.shape[1]]
                place = code.astype(np.intp).ravel()
                count[group, here] += np.bincount(place, None, here.stop - here.start)
                score[group, here] += np.bincount(place, block.ravel(), here.stop - here.start)
        own = Edges(probs.dtype, bins, binning.closed, n).of(probs[np.arange(n), labels])
        hit = group_of * size + labels.astype(np.intp) * bins + own
        return cls(
            count, score, np.bincount(hit, None, GROUPS * size).reshape(GROUPS, size).astype(np.float64), classes
        )

    def bins(self, shares: Float64s) -> Bins:
        """The bins of all classes side by side, weighed by the shares of the classes."""
        weight = np.repeat(shares, self.count.shape[1] // self.classes)
        count, score, ones = (a.sum(axis=0)[None] for a in (self.count, self.score, self.ones))
        return Bins(count * weight, score * weight, ones * weight, count, single=True)

    def drawn(self, shares: Float64s, times: Float64s) -> Iterator[tuple[slice, Bins]]:
        """The same of groups taken so many times each, some resamples at a time: what is made of them stays in cache."""
        weight = np.repeat(shares, self.count.shape[1] // self.classes)
        count, score, ones = (times @ a for a in (self.count, self.score, self.ones))
        step = max(1, _DRAWN // len(weight))
        for start in range(0, len(times), step):
            some = slice(start, start + step)
            yield some, Bins(count[some] * weight, score[some] * weight, ones[some] * weight, count[some], single=False)


def class_columns(probs: Floats, labels: Indices) -> Iterator[tuple[int, Floats, Indices]]:
    """Every class with its scores and the rows that have its label."""
    classes = probs.shape[1]
    rows = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=classes))[:-1])
    step = max(1, _COLUMNS // len(probs))
    for start in range(0, classes, step):
        columns = validation.turned(probs[:, start : start + step])
        yield from zip(range(start, classes), columns, rows[start : start + step], strict=False)


class _Binned(Protocol):
    """What is asked of the estimator."""

    @property
    def folds(self) -> bool: ...
    def of_bins(self, bins: Bins) -> Float64s: ...


@dataclass(frozen=True, eq=False)
class Wide:
    """Resamples of all classes together: see :class:`truecal.estimators.jointly.Joint`, whose fields these are."""

    power: float
    powers: Float64s
    deviations: Float64s
    p_value: float
    parts: Float64s
    signs: SignBounds | None
    test: float
    direction: float
    warnings: tuple[str, ...] = ()


def resampled(estimator: _Binned, groups: Groups, shares: Float64s, rng: np.random.Generator) -> Wide:
    """Value, parts, resamples and test of an estimator on bins of equal width."""
    whole = groups.bins(shares)
    times = unit_counts(GROUPS, RESAMPLES, rng).T.astype(np.float64)
    power, powers, squares = float(estimator.of_bins(whole)[0]), np.empty(RESAMPLES), np.empty(RESAMPLES)
    for some, drawn in groups.drawn(shares, times):
        powers[some], squares[some] = estimator.of_bins(drawn), mean_square(drawn)
    by_class = [a[0].reshape(groups.classes, -1) for a in (whole.count, whole.score_sum, whole.outcome_sum)]
    scale = positive(shares)[:, None]
    each = Bins(by_class[0], by_class[1] / scale, by_class[2] / scale, by_class[0], single=False)
    signs = None
    if estimator.folds:
        folded = Folded(RESAMPLES)
        folded.add(1.0, whole, squares)
        deviations = folded.deviations(powers)
        signs = SignBounds.combine([SignCells.of_bins(each).bounds()], shares)
    else:
        deviations = powers - power
    parts = estimator.of_bins(each)
    direction = float((whole.score_sum - whole.outcome_sum).sum() / whole.weight.sum())
    chance = _chance(estimator, whole, power, rng)
    return Wide(power, powers, deviations, chance, parts, signs, _turned(groups, shares, rng), direction)


def _chance(estimator: _Binned, whole: Bins, power: float, rng: np.random.Generator) -> float:
    """How often calibrated outcomes give an error as large; drawn bin by bin, and spread by sqrt(2) as in `jointly`."""
    count = np.rint(whole.count[0]).astype(np.int64)
    score = np.clip(whole.score_sum[0] / whole.safe[0], 0.0, 1.0)
    share = whole.weight[0] / positive(count)
    powers = []
    for _ in range(REDRAWS):
        ones = rng.binomial(count, score)
        powers.append(
            float(
                estimator.of_bins(Bins(whole.weight, whole.score_sum, (ones * share)[None], whole.count, single=False))[
                    0
                ]
            )
        )
    calibrated = np.array(powers)
    spread = calibrated.mean() + np.sqrt(2.0) * (calibrated - calibrated.mean())
    return float(1 + np.count_nonzero(spread >= power * (1 - 1e-12))) / (1 + REDRAWS)


def _turned(groups: Groups, shares: Float64s, rng: np.random.Generator) -> float:
    """p of calibration in all classes, by turning the signs of whole groups in all of them at once."""
    residual = groups.ones - groups.score
    count, score = groups.count.sum(axis=0), groups.score.sum(axis=0)
    variance = score * (1 - score / positive(count))
    weight = np.repeat(shares, residual.shape[1] // groups.classes) / (variance + 1.0)
    turns = rng.integers(0, 2, (REDRAWS, len(residual))) * 2.0 - 1
    found = float(residual.sum(axis=0) ** 2 @ weight)
    turned = (turns @ residual) ** 2 @ weight
    return float(1 + np.count_nonzero(turned >= found * (1 - 1e-12))) / (1 + REDRAWS)
