"""Binned errors with the bins of other tools, edge by edge as they compute them.

A rule maps ascending scores to ascending bin numbers; everything else (weights, batches, resampling) is that of any binned error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecal.checks import check_choice, check_norm, check_whole
from truecal.estimate import Bins, Estimator, power_mean
from truecal.estimate.estimator import Findings
from truecal.profile import Cut, Profile
from truecal.types import Float64s, Indices

Scores = NDArray[Any]


def _torch_linspace(bins: int, kind: type[np.floating[Any]]) -> Scores:
    """torch.linspace(0, 1, bins + 1): counted up from 0 in the lower half, down from 1 in the upper."""
    step = kind(1) / kind(bins)
    place = np.arange(bins + 1)
    return np.where(place < (bins + 1) // 2, step * place.astype(kind), kind(1) - step * (bins - place).astype(kind))


def _torch_bucketize(c: Scores, bins: int) -> Indices:
    """[a, b) on torch.linspace edges of the scores' precision; 1.0 has a bin of its own."""
    return np.searchsorted(_torch_linspace(bins, c.dtype.type), c, "right")


def _torch_bucketize_single(c: Scores, bins: int) -> Indices:
    """The same after rounding to single precision."""
    return _torch_bucketize(c.astype(np.float32), bins)


def _torch_open_left(c: Scores, bins: int) -> Indices:
    """(a, b] on torch.linspace edges in single precision."""
    return np.searchsorted(_torch_linspace(bins, np.float32), c.astype(np.float32), "left")


def _numpy_histogram(c: Scores, bins: int) -> Indices:
    """[a, b) on numpy.linspace edges, the last bin closed."""
    return np.minimum(np.searchsorted(np.linspace(0, 1, bins + 1), c, "right"), bins)


def _numpy_open_left(c: Scores, bins: int) -> Indices:
    """(a, b] on numpy.linspace edges, the first bin closed."""
    return np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], c, "left")


def _fractions_open_left(c: Scores, bins: int) -> Indices:
    """(a, b] on edges i * 1.0 / bins, the first bin closed."""
    return np.searchsorted(np.arange(1, bins + 1) * 1.0 / bins, c, "left")


def _floor_of_quotient(c: Scores, bins: int) -> Indices:
    """int(c / (1 / bins)); 1.0 has a bin of its own."""
    return (c.astype(np.float64) / (1.0 / bins)).astype(np.intp)


def _floor_of_product(c: Scores, bins: int) -> Indices:
    """int(c * bins) in single precision, the last bin closed."""
    return np.minimum((c.astype(np.float32) * np.float32(bins)).astype(np.intp), bins - 1)


def _array_split(c: Scores, bins: int) -> Indices:
    """numpy.array_split of the sorted scores into parts of nearly equal size, cut halfway between neighbours; ties go to the lower part."""
    parts = min(bins, len(c))
    size, longer = divmod(len(c), parts)
    ends = np.cumsum([size + 1] * longer + [size] * (parts - longer))[:-1]
    middles = np.unique((c[ends - 1].astype(np.float64) + c[ends]) / 2)
    return np.searchsorted(middles, c, "left")


def _percentiles(c: Scores, bins: int) -> Indices:
    """(a, b] on numpy.percentile edges, the first bin closed."""
    return np.searchsorted(np.percentile(c, np.linspace(0, 1, bins + 1) * 100)[1:-1], c, "left")


RULES: dict[str, Callable[[Scores, int], Indices]] = {
    "array_split": _array_split,
    "floor(c / width)": _floor_of_quotient,
    "floor(c * bins)": _floor_of_product,
    "fractions (a, b]": _fractions_open_left,
    "linspace (a, b]": _numpy_open_left,
    "linspace [a, b)": _numpy_histogram,
    "percentiles (a, b]": _percentiles,
    "torch (a, b]": _torch_open_left,
    "torch [a, b) and {1}": _torch_bucketize,
    "torch single [a, b) and {1}": _torch_bucketize_single,
}


@dataclass(frozen=True)
class ForeignECE(Estimator):
    r"""ECE_BIN on the bins of another tool, for numbers that must match; made by :func:`like`.

    (sum_k s_k |mean c_k - mean y_k|^p)^(1/p), where s_k is the share of rows in the bin (average="rows") or one over the number of
    bins that hold rows (average="bins"). With debias=True (p = 2) a bin loses Y_k (1 - Y_k) / (n_k - 1) from its square, and one of
    fewer than two rows counts 0.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.5, 1.0], [1, 1])
    >>> tc.like("torchmetrics", bins=1).estimator(profile).value, tc.BinnedECE(bins=1)(profile).value
    (0.25, 0.25)
    """

    rule: str
    bins: int = 15
    norm: float = 1
    average: Literal["rows", "bins"] = "rows"
    debias: bool = False

    def __post_init__(self) -> None:
        check_choice(self.rule, tuple(RULES), "rule")
        check_whole(self.bins, "bins")
        check_choice(self.average, ("rows", "bins"), "average")
        check_norm(self.norm, (2,) if self.debias else None)

    @property
    def power_norm(self) -> float:
        return self.norm

    @property
    def unbiased(self) -> bool:
        return self.debias

    @property
    def folds(self) -> bool:
        return self.norm == 1 and self.average == "rows"

    def fixed_cut(self, profile: Profile) -> Cut:
        ends = np.full((len(profile.scores), self.bins + 2), profile.rows)
        ends[:, 0] = 0
        for own, scores in zip(ends, profile.scores, strict=True):
            number = RULES[self.rule](scores, self.bins)
            starts = np.flatnonzero(np.diff(number)) + 1
            own[1 : len(starts) + 1] = starts
        return Cut(ends, ends)

    def of_bins(self, bins: Bins) -> Float64s:
        if self.debias:
            several = np.where(bins.count >= 2, bins.count, 2.0)
            square = bins.gap**2 - bins.rate * (1 - bins.rate) / (several - 1)
            return (bins.share * np.where(bins.count >= 2, square, 0.0)).sum(axis=1)
        share = bins.share
        if self.average == "bins":
            share = (bins.weight > 0) / np.count_nonzero(bins.weight, axis=1)[:, None]
        return power_mean(bins.gap, share, self.norm)

    def find(self, profile: Profile) -> Findings:
        bins = Bins.of(profile, self.fixed_cut(profile))
        return Findings(self.of_bins(bins), bins)
