"""Binned errors with the bins of other tools, edge by edge as they compute them.

A rule maps ascending scores to ascending bin numbers; everything else (weights, batches, resampling) is that of any binned error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.estimate.bins import Bins
from truecal.estimate.combine import power_mean
from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator, Findings, SketchRange
from truecal.profile import CellProfile, Cut, Profile
from truecal.types import Float64s, Indices

Scores = NDArray[Any]


@cache
def _torch_linspace(bins: int, kind: type[np.floating[Any]]) -> Scores:
    """torch.linspace(0, 1, bins + 1): up from 0 in the lower half, down from 1 in the upper, each product and sum rounded once."""
    step = kind(1) / kind(bins)
    lower = step * np.arange((bins + 1) // 2).astype(kind)
    upper = [kind(float(1 - Fraction(float(step)) * (bins - k))) for k in range((bins + 1) // 2, bins + 1)]
    return np.append(lower, np.array(upper, kind))


def _torch_bucketize(c: Scores, bins: int) -> Indices:
    """[a, b) on torch.linspace edges of the scores' precision; 1.0 has a bin of its own."""
    return np.searchsorted(_torch_linspace(bins, np.float32 if c.dtype == np.float32 else np.float64), c, "right")


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
    """numpy.array_split of the sorted scores, cut halfway between neighbours; equal scores go to the lower part."""
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
_BY_ROWS = ("array_split", "percentiles (a, b]")  # rules that count rows


@dataclass(frozen=True)
class ForeignECE(Estimator):
    r"""ECE_BIN on the bins of another tool, for numbers that must match; made by :func:`like`.

    (sum_k s_k |mean c_k - mean y_k|^p)^(1/p), where s_k is the share of rows in the bin (average="rows") or one over the number of
    bins that hold rows (average="bins"). With debias=True (p = 2) a bin loses Y_k (1 - Y_k) / (n_k - 1) from its square, and one of
    fewer than two rows counts 0; a negative sum is 0.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.9, 1.0], [1, 0])
    >>> estimator, _ = tc.like("torchmetrics", bins=2)  # which has a bin for 1.0 alone
    >>> round(estimator(profile).value, 6), round(tc.BinnedECE(bins=2)(profile).value, 6)
    (0.55, 0.45)
    """

    rule: str
    bins: int = 15
    norm: float = 1
    average: Literal["rows", "bins"] = "rows"
    debias: bool = False

    def __post_init__(self) -> None:
        options.choice(self.rule, tuple(RULES), "rule")
        options.bins(self.bins)
        options.choice(self.average, ("rows", "bins"), "average")
        options.norm(self.norm, (2,) if self.debias else None)

    @property
    def power_norm(self) -> float:
        return self.norm

    @property
    def folds(self) -> bool:
        return self.norm == 1 and self.average == "rows"

    def fixed_cut(self, profile: Profile) -> Cut:
        by_rows = self.rule in _BY_ROWS and profile.weights is not None
        if by_rows and not profile.counted:
            raise InputError(
                f"bins by {self.rule} have no form for importance weights; use whole numbers, or tc.BinnedECE"
            )
        ends = np.full((profile.batch if by_rows else len(profile.scores), self.bins + 2), profile.rows)
        ends[:, 0] = 0
        for i, own in enumerate(ends):
            scores = profile.scores[i % len(profile.scores)]
            number = self._repeated(scores, profile, i) if by_rows else RULES[self.rule](scores, self.bins)
            starts = np.flatnonzero(np.diff(number)) + 1
            own[1 : len(starts) + 1] = starts
        return Cut(ends, ends)

    def _repeated(self, scores: Scores, profile: Profile, dataset: int) -> Indices:
        """Bin numbers where rows count as often as their weight says."""
        assert profile.weights is not None
        counts = profile.weights[dataset % len(profile.weights)].astype(np.intp)
        number = RULES[self.rule](np.repeat(scores, counts), self.bins)
        return number[np.minimum(np.cumsum(counts) - counts, len(number) - 1)]

    def of_bins(self, bins: Bins) -> Float64s:
        if self.debias:
            several = np.where(bins.count >= 2, bins.count, 2.0)
            square = bins.gap**2 - bins.rate * (1 - bins.rate) / (several - 1)
            return np.maximum((bins.share * np.where(bins.count >= 2, square, 0.0)).sum(axis=1), 0.0)
        share = bins.share
        if self.average == "bins":
            share = (bins.weight > 0) / np.count_nonzero(bins.weight, axis=1)[:, None]
        return power_mean(bins.gap, share, self.norm)

    def find(self, profile: Profile) -> Findings:
        bins = Bins.of(profile, self.fixed_cut(profile))
        return Findings(self.of_bins(bins), bins)

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        raise InputError("another tool's bins need rows, not a sketch; use tc.BinnedECE")
