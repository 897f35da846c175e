"""The canonical kernel-density error (ECE-KDE): all classes at once, with Dirichlet kernels on the simplex."""

from dataclasses import dataclass

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimate.cited.rows import PairEstimator, blocks
from truecal.estimate.estimate import Estimate
from truecal.lens import Canonical, Lens, Sample
from truecal.types import Float64s

_BANDWIDTHS = np.logspace(-3, 0, 13)  # tried for the likelihood of the scores


@dataclass(frozen=True)
class DirichletECE(PairEstimator):
    r"""(1/n sum_j 1/2 sum_k |T_k(p_j) - p_jk|^p)^(1/p), T(p_j) = sum_{i != j} K(p_j; p_i) e_i / sum_{i != j} K(p_j; p_i).

    Popordanoska, Sayer and Blaschko (2022), "A consistent and differentiable Lp canonical calibration error estimator": K(.; p_i)
    is the Dirichlet density with parameters p_i / h + 1, so that no mass leaves the simplex, and h maximises the leave-one-out
    likelihood of the predictions unless given. Half the sum, so that two classes give the error of one probability (the paper's
    value for p = 1 is twice this).

    A plug-in without debiasing: for a calibrated model it falls only as slowly as kernel regression converges, and with ten classes
    and a thousand rows it is mostly noise. Use it to compare with that paper; to test canonical calibration use
    :class:`KernelError`. It has no interval: resampled rows repeat, and a repeated row is its own nearest neighbour. More than
    2000 rows are judged in blocks.

    >>> import truecal as tc
    >>> preds = tc.Predictions.from_probs([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.1, 0.2, 0.7]], [0, 0, 2, 1])
    >>> round(tc.measure(preds, estimator=tc.DirichletECE(bandwidth=0.01)).value, 4)
    0.425
    """

    norm: float = 1
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        options.norm(self.norm, (1, 2))
        if self.bandwidth is not None and not 0 < self.bandwidth < np.inf:
            raise InputError(f"bandwidth must be a positive number, not {self.bandwidth!r}")

    @property
    def power_norm(self) -> float:
        return self.norm

    def own_lens(self, lens: Lens | None) -> Lens:
        return lens or Canonical()

    def judge(self, sample: Sample, rng: np.random.Generator) -> Estimate:
        parts = list(blocks(sample, rng))
        bandwidth = self.bandwidth or _likeliest(parts[0][0])
        total = 0.0
        for probs, residual in parts:
            kernel = _weights(_log_kernel(probs, bandwidth))
            far = np.abs(kernel @ (residual + probs) - probs)
            total += float((far**self.norm).sum()) / 2
        estimate = self.estimate(sample, total / len(sample), None, bandwidth)
        return estimate.but(
            warnings=("no interval: resampling rows would make this estimate smaller, not more variable",)
        )


def _log_kernel(probs: Float64s, bandwidth: float) -> Float64s:
    """log K(p_j; p_i), rows j, columns i; -inf on the diagonal."""
    from scipy.special import gammaln, xlogy

    alpha = probs / bandwidth
    constant = gammaln(alpha.sum(axis=1) + probs.shape[1]) - gammaln(alpha + 1).sum(axis=1)
    powers = xlogy(alpha[None, :, :], probs[:, None, :]).sum(axis=2) if probs.size < 50_000 else _powers(alpha, probs)
    log: Float64s = powers + constant
    np.fill_diagonal(log, -np.inf)
    return log


def _powers(alpha: Float64s, probs: Float64s) -> Float64s:
    """sum_k alpha_ik log p_jk, one class at a time."""
    from scipy.special import xlogy

    total = np.zeros((len(probs), len(probs)))
    for k in range(probs.shape[1]):
        total += xlogy(alpha[None, :, k], probs[:, None, k])
    return total


def _weights(log: Float64s) -> Float64s:
    """Rows scaled to sum to 1; a row that no other reaches has equal weights."""
    highest = log.max(axis=1, keepdims=True)
    weights = np.exp(log - np.where(np.isfinite(highest), highest, 0.0))
    alone = ~np.isfinite(highest[:, 0])
    weights[alone] = 1.0
    np.fill_diagonal(weights, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _likeliest(probs: Float64s) -> float:
    """The bandwidth under which the predictions have the highest leave-one-out likelihood."""
    from scipy.special import logsumexp

    likelihoods = []
    for h in _BANDWIDTHS:
        own = logsumexp(_log_kernel(probs, float(h)), axis=1)
        likelihoods.append(float(np.maximum(own, -1e6).sum()))
    return float(_BANDWIDTHS[int(np.argmax(likelihoods))])
