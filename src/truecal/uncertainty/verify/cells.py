"""What a model with few outputs showed: for every output its rows, its ones, and its share in the error.

A class-wise lens puts the outputs of all classes side by side. Labels of one row then tie them together; `spread` says how much
more a sum of squares over all outputs varies than if they were independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truecal.lens import Sample
from truecal.profile import Profile
from truecal.types import Float64s, Indices
from truecal.uncertainty.verify.binned_error import BinnedError

_MOST_PAIRS = 60  # classes up to which the covariance of labels is computed; beyond, its bound is taken


@dataclass(frozen=True, eq=False)
class OutputCells:
    """Distinct outputs s with N rows, K of them ones; `weight` the share of the output's class in the squared error."""

    outputs: Float64s
    counts: Float64s
    ones: Float64s
    weight: Float64s
    rows: float  # n: each row counts once in every class
    spread: float = 1.0  # variance of sum_k of squared gaps over that of independent outputs

    @classmethod
    def of(cls, profile: Profile) -> "OutputCells":
        """From one dataset whose weights, if any, are counts."""
        found = BinnedError.of(profile)
        return cls(found.outputs, found.counts, found.ones, np.ones(len(found.outputs)), found.n)

    @classmethod
    def class_wise(cls, samples: Sequence[Sample], shares: Float64s) -> "OutputCells":
        """From the samples of a class-wise lens, which see the same rows."""
        weights = samples[0].weights
        w = np.ones(len(samples[0])) if weights is None else weights
        outputs, counts, ones, weight, codes, first = [], [], [], [], [], 0
        for sample, share in zip(samples, shares, strict=True):
            values, at = np.unique(sample.scores.astype(np.float64), return_inverse=True)
            outputs.append(values)
            counts.append(np.bincount(at, w, len(values)))
            ones.append(np.bincount(at, w * sample.outcomes, len(values)))
            weight.append(np.full(len(values), share))
            codes.append(at + first)
            first += len(values)
        s, n, k, a = (np.concatenate(parts) for parts in (outputs, counts, ones, weight))
        seen = n > 0
        spread = 2.0 if len(samples) > _MOST_PAIRS else _spread(np.stack(codes), s, n, k, a, w)
        return cls(s[seen], n[seen], k[seen], a[seen], float(w.sum()), spread)

    def with_outputs(self, possible: Float64s) -> "OutputCells":
        """With the outputs that are possible but were not seen, as outputs of no rows."""
        missing = np.setdiff1d(possible, self.outputs)
        none, one = np.zeros(len(missing)), np.ones(len(missing))
        return OutputCells(
            np.concatenate([self.outputs, missing]),
            np.concatenate([self.counts, none]),
            np.concatenate([self.ones, none]),
            np.concatenate([self.weight, one * self.weight[0]]),
            self.rows,
            self.spread,
        )


def _spread(codes: Indices, s: Float64s, n: Float64s, k: Float64s, a: Float64s, w: Float64s) -> float:
    """Variance of T = sum_k a_k N_k (gap_k)^2 over what it would be if the labels of different classes were independent.

    One label per row: Cov(y_c, y_d) = -q_c q_d, with q the outputs scaled to sum to 1. The quadratic part of T has the covariances
    squared, the linear part (where gaps are real) the form sum q g^2 - (sum q g)^2 per row. The ratio lies between 1 and 2: the
    covariance matrix diag(q) - qq' has trace of its square at most twice that of its diagonal (exactly twice for two classes).
    """
    probs = s[codes]
    q = probs / np.maximum(probs.sum(axis=0), 1e-12)
    root = a / np.maximum(n, 1)
    own = np.bincount(codes.ravel(), (w * q * (1 - q)).ravel(), len(s))
    together = 0.0
    for c in range(len(codes)):
        for d in range(c):
            pair = np.bincount(codes[c] * len(s) + codes[d], w * q[c] * q[d])
            at = np.flatnonzero(pair)
            together += 2 * float((root[at // len(s)] * root[at % len(s)] * pair[at] ** 2).sum())
    quadratic = 1 + together / max(float(((root * own) ** 2).sum()), 1e-300)
    gap = ((k / np.maximum(n, 1) - s) * a)[codes]
    linear = ((q * gap**2).sum(axis=0) - (q * gap).sum(axis=0) ** 2) @ w
    alone = (q * (1 - q) * gap**2).sum(axis=0) @ w
    return max(quadratic, float(linear) / max(float(alone), 1e-300))
