"""Verdict: the answer of a test; and the one way in which tests of calibration find their p-values."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truecal.errors import InputError
from truecal.estimate.redraw import redraw
from truecal.profile import Profile
from truecal.types import Float64s
from truecal.uncertainty.bootstrap.cells import alike, collapse, profile_of

_ROWS_AT_ONCE = 1 << 20  # resampled cells held at a time (a few arrays of 8 MiB)
_RELATIVE = 1e-12  # statistics that agree to rounding count as equal
Statistic = Callable[[Profile], Float64s]


@dataclass(frozen=True)
class Verdict:
    """A test of a hypothesis: `statistic`, `p_value` (never 0), what was tested and how. Arrays for a batch.

    `hypothesis` is what a small p-value speaks against.
    """

    statistic: float | Float64s
    p_value: float | Float64s
    hypothesis: str
    method: str

    def __str__(self) -> str:
        if np.ndim(self.p_value):
            return f"{self.method}: {np.size(self.p_value)} datasets"
        return f"{self.method}: statistic {float(self.statistic):.4g}, p = {float(self.p_value):.3g} (if {self.hypothesis})"


def against_redraws(
    profile: Profile,
    statistic: Statistic,
    *,
    method: str,
    resamples: int = 999,
    rng: int | np.random.Generator = 0,
) -> Verdict:
    """Compare a statistic with its distribution when outcomes are redrawn from the scores: y* ~ Bernoulli(c), scores kept.

    p = (1 + number of redraws that reach the statistic) / (1 + resamples): valid at any n, ties or not. Datasets of a batch that
    share their scores share the redraws. A statistic is a function of a Profile, large when calibration fails; it sees
    one row per distinct score (above 4096 of them: per cell of neighbouring scores).
    """
    check_resamples(resamples)
    generator = np.random.default_rng(rng)
    found, p = np.empty(profile.batch), np.empty(profile.batch)
    for place, part in alike(profile):
        cells = collapse(part)
        found[place] = statistic(cells)
        reference = np.concatenate([statistic(fake) for fake in redrawn(cells, resamples, generator)])
        reference.sort()
        least = found[place] - _RELATIVE * np.minimum(np.abs(found[place]), np.finfo(float).max)
        p[place] = (1 + resamples - np.searchsorted(reference, least)) / (1 + resamples)
    if profile.single:
        return Verdict(float(found[0]), float(p[0]), "perfectly calibrated", method)
    return Verdict(found, p, "perfectly calibrated", method)


def redrawn(cells: Profile, resamples: int, generator: np.random.Generator) -> list[Profile]:
    """Batches of datasets with the scores of `cells` and outcomes drawn from them."""
    assert cells.weights is not None
    count, score = cells.weights[0], cells.scores[0].astype(np.float64)
    step = max(1, _ROWS_AT_ONCE // len(count))
    parts = []
    for start in range(0, resamples, step):
        surplus = redraw(count, score, count * score * (1 - score), min(step, resamples - start), generator)
        ones = np.clip(
            surplus + count * score, 0.0, count
        )  # only the normal stand-in of large cells can leave the range
        parts.append(profile_of(cells, count - ones, ones))
    return parts


def check_resamples(resamples: object) -> None:
    if not isinstance(resamples, (int, np.integer)) or isinstance(resamples, bool) or resamples < 1:
        raise InputError(f"resamples must be a whole number of at least 1, not {resamples!r}")


def check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, not {level!r}")
