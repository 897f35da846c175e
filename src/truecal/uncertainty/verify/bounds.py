"""The explicit bounds of Kumar, Liang and Ma (2019), appendix F, on the squared calibration error of a binned model.

With outputs s_1..s_B of probabilities p_i, true squared error E2 and an evaluation set of n rows, if every
p_i > 12/n log(2B/delta), then

    F.6, plug-in,  with probability 1 - 3 delta:  |estimate - E2| <= c E2 + sqrt(2 (1 + c) E2 / n log(2/delta)) + B/(2n)
    log(2B/delta) F.9, debiased, with probability 1 - 4 delta:  |estimate - E2| <= c E2 + sqrt(2 (1 + c) E2 / n
    log(2/delta))
                                                                     + 3 sqrt(B)/n log(n/delta) + delta/n

where c = sqrt(3 / (n min p) log(2B/delta)). They hold for every n and distribution, and are wide.
"""

from math import inf, log, sqrt
from typing import Literal

from truecal import options

_MOST_ROWS = 1e18


def upper_bound(
    squared: float, *, n: float, bins: int, smallest: float, level: float, estimator: Literal["plugin", "debiased"]
) -> float:
    """The largest true squared error that the bound allows beside the estimate `squared`; infinite where it does not
    apply.

    `smallest` is the probability of the rarest output.

    >>> round(upper_bound(1e-4, n=100_000, bins=10, smallest=0.1, level=0.9, estimator="debiased"), 5)
    0.00207
    >>> upper_bound(1e-4, n=1000, bins=10, smallest=0.05, level=0.9, estimator="debiased")
    inf
    """
    delta = (1 - level) / (4 if estimator == "debiased" else 3)
    if smallest <= 12 / n * log(2 * bins / delta):
        return inf
    c = sqrt(3 / (n * smallest) * log(2 * bins / delta))
    root = sqrt(2 * (1 + c) / n * log(2 / delta))
    last = {
        "debiased": 3 * sqrt(bins) / n * log(n / delta) + delta / n,
        "plugin": bins / (2 * n) * log(2 * bins / delta),
    }[estimator]
    # E2 - squared <= c E2 + root sqrt(E2) + last is a quadratic inequality in sqrt(E2)
    constant = max(squared + last, 0.0)
    largest = (root + sqrt(root**2 + 4 * (1 - c) * constant)) / (2 * (1 - c))
    return largest**2


def rows_needed(
    threshold: float = 0.02,
    *,
    bins: int,
    error: float = 0.0,
    smallest: float | None = None,
    level: float = 0.95,
    estimator: Literal["plugin", "debiased"] = "debiased",
) -> float:
    """How many rows the explicit bound needs to promise that the root-mean-square error of a binned model is below `threshold`.

    F.6 (plug-in) and F.9 (debiased) of Kumar, Liang & Ma (2019): no approximation, and wide; :func:`verify` promises with far fewer
    rows. It grows with the number of bins B for the plug-in and with sqrt(B) for the debiased estimator. Infinite where no number
    is enough.

    Parameters
    ----------
    threshold, error : the error to be promised, and the one that will be estimated; on the scale of probabilities.
    bins : number of distinct outputs. smallest : probability of the rarest one; default 1 / bins.
    level : how sure the promise is to be.

    >>> import truecal as tc
    >>> tc.rows_needed(0.02, bins=10), tc.rows_needed(0.02, bins=10, estimator="plugin")
    (547374.0, 156780.0)
    """
    options.between(threshold, "threshold", 0, 1)
    options.between(level, "level", 0, 1)
    options.bins(bins)
    if error != 0:
        options.between(error, "error", 0, 1)
    if smallest is not None:
        options.between(smallest, "smallest", 0, 1)
    rarest = 1 / bins if smallest is None else smallest
    return rows_for(error**2, threshold**2, bins=bins, smallest=rarest, level=level, estimator=estimator)


def rows_for(
    squared: float, target: float, *, bins: int, smallest: float, level: float, estimator: Literal["plugin", "debiased"]
) -> float:
    """The number of rows with which the bound would fall to `target` (a squared error); infinite if it never does.

    >>> rows_for(0.0, 1e-4, bins=10, smallest=0.1, level=0.9, estimator="debiased")
    2197487.0
    """

    def enough(n: float) -> bool:
        return upper_bound(squared, n=n, bins=bins, smallest=smallest, level=level, estimator=estimator) <= target

    low, high = 0.0, _MOST_ROWS
    if not enough(high):
        return inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
