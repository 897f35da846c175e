"""Control over groups: which of them are called, so that false calls stay rare however many groups there are.

Every group has a share of the evidence, all shares together at most 1. The k groups with the largest share x e-value are called if
the k-th product reaches 1 / (alpha k): the e-BH procedure (Wang and Ramdas 2022) with weights. Under any dependence the expected
share of false calls among the calls is at most alpha, at any time one stops to look; and where no group is off, the chance of ever
calling one is at most alpha, because the weighted mean of all e-values is then at least 1 / alpha.
"""

from collections.abc import Mapping

import numpy as np

from truecal.types import Float64s

_KNOWN, _NEW = 0.75, 0.25  # shares of the groups of the first batch, and of all that turn up later


def share(position: int, first: int) -> float:
    """Of a group: one of the `first` of the first batch (position 0), or the position-th of those that turned up later.

    >>> share(0, 4), share(1, 4), round(4 * share(0, 4) + sum(share(k, 4) for k in range(1, 10_000)), 3)
    (0.1875, 0.125, 1.0)
    """
    return _KNOWN / first if position == 0 else _NEW / (position * (position + 1))


def called(logs: Mapping[tuple[str, ...], float], limit: float) -> set[tuple[str, ...]]:
    """The groups to call, from the logs of share x evidence and the log of the limit for a single call.

    >>> sorted(called({("a",): 3.5, ("b",): 2.5, ("c",): 0.0}, 3.0))
    [('a',), ('b',)]
    """
    groups = sorted(logs, key=lambda group: -logs[group])
    values: Float64s = np.array([logs[group] for group in groups])
    passing = np.flatnonzero(values >= limit - np.log(np.arange(1, len(groups) + 1)))
    return set(groups[: int(passing[-1]) + 1]) if len(passing) else set()
