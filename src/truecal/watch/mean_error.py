"""A confidence sequence for the mean signed error: an interval that may be looked at after every batch.

With x = score - outcome in [-1, 1] and mu its conditional mean, E exp(lambda (x - mu) - psi(lambda) x^2) <= 1 for 0 <= lambda < 1,
psi(lambda) = -log(1 - lambda) - lambda (Howard et al. 2021, lemma 4.1 of Fan et al. 2015, with the predictable centre 0, and
|x| <= 1). A mixture over lambda of the products over rows is a supermartingale for the running mean of mu; so is the one for -x.
By Ville's inequality the interval where both mixtures stay below 2 / alpha holds the running mean at all times together with
probability 1 - alpha. Only the number of rows and the sums of x and x^2 are needed.
"""

from dataclasses import dataclass

import numpy as np

_LAMBDAS = 0.9 * 2.0 ** -np.arange(0.0, 15, 0.5)
_PSI = -np.log1p(-_LAMBDAS) - _LAMBDAS
_HALVINGS = 60


@dataclass(frozen=True)
class MeanError:
    """Rows (or units) so far, and the sums of their residuals x = score - outcome and of x * x."""

    size: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, size: float, total: float, squares: float) -> "MeanError":
        return MeanError(self.size + size, self.total + total, self.squares + squares)

    @property
    def mean(self) -> float:
        """0 before the first row."""
        return self.total / self.size if self.size else 0.0

    def interval(self, alpha: float) -> tuple[float, float]:
        """Ends of the interval, at every time valid together with probability 1 - alpha.

        >>> [round(end, 4) for end in MeanError(3000, 60.0, 500.0).interval(0.05)]
        [-0.0079, 0.0479]
        """
        cost = _PSI * self.squares
        limit = np.log(2 / alpha) + np.log(len(_LAMBDAS))
        low, high = 0.0, 2.0
        for _ in range(_HALVINGS):  # the smallest distance from the mean that is ruled out
            distance = (low + high) / 2
            if np.logaddexp.reduce(_LAMBDAS * self.size * distance - cost) >= limit:
                high = distance
            else:
                low = distance
        return max(-1.0, self.mean - high), min(1.0, self.mean + high)
