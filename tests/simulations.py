"""How many datasets a simulation draws, and bounds that fit the number.

`make test` draws a fifth of the datasets, `make test-all` (TRUECAL_FULL=1) all of them. Every bound states its false alarm rate:
how often a method that keeps what it promises would fail the test, were the seeds not fixed.
"""

import os

from scipy.special import bdtr, bdtrc

FULL = os.environ.get("TRUECAL_FULL") == "1"
FEWEST = 25  # fewer would let nearly everything pass
ALARM = 1e-3


def datasets(full: int) -> int:
    """Number of datasets to draw of the `full` number: all of them, or a fifth and at least 25."""
    return full if FULL else min(full, max(full // 5, FEWEST))


def at_least(hits: int, n: int, rate: float, alarm: float = ALARM) -> bool:
    """Whether `hits` of `n` do not contradict a true rate of at least `rate` (one-sided binomial test)."""
    return bool(bdtr(int(hits), n, rate) > alarm)


def at_most(hits: int, n: int, rate: float, alarm: float = ALARM) -> bool:
    """Whether `hits` of `n` do not contradict a true rate of at most `rate` (one-sided binomial test)."""
    return hits == 0 or bool(bdtrc(int(hits) - 1, n, rate) > alarm)


def within(hits: int, n: int, low: float, high: float) -> bool:
    """Whether the share of `hits` lies in [low, high]; of a fifth of the datasets, whether the true rate may lie there."""
    return low <= hits / n <= high if FULL else at_least(hits, n, low) and at_most(hits, n, high)
