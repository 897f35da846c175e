"""Kuiper and Kolmogorov-Smirnov tests on cumulative differences: calibration without bins."""

from typing import Literal

import numpy as np

from truecal import options
from truecal.estimate import resampling
from truecal.profile import Profile
from truecal.types import Float64s
from truecal.uncertainty.tests.verdict import Verdict, redraw_test


def kuiper(
    profile: Profile,
    *,
    statistic: Literal["kuiper", "ks"] = "kuiper",
    resamples: int = 999,
    rng: int | np.random.Generator = 0,
) -> Verdict:
    r"""How far outcomes run ahead of, or fall behind, the scores when added up in order of the score.

    With F_k = sum over the k lowest scores of (y - c), F_0 = 0, and sigma^2 = sum c (1 - c): Kuiper's statistic is
    (max F - min F) / sigma, Kolmogorov and Smirnov's max |F| / sigma (Arrieta-Ibarra et al. 2022). Tied scores are added
    together, so their order cannot matter. p-values by redrawing outcomes from the scores.

    >>> import truecal as tc
    >>> profile = tc.Profile.from_arrays([0.2, 0.5, 0.5, 0.9], [0, 1, 0, 1])
    >>> verdict = kuiper(profile)  # F = 0, -0.2, -0.2, -0.1; sigma^2 = 0.16 + 0.25 + 0.25 + 0.09
    >>> round(verdict.statistic, 4)
    0.2309
    """
    options.choice(statistic, ("kuiper", "ks"), "statistic")
    name = "Kuiper" if statistic == "kuiper" else "Kolmogorov-Smirnov"
    method = f"{name} test on cumulative differences"
    return redraw_test(profile, _range(statistic == "kuiper"), method=method, resamples=resamples, rng=rng)


def _range(both: bool) -> resampling.Statistic:
    def measure(cells: Profile) -> Float64s:
        assert cells.weights is not None
        walk = np.cumsum((cells.outcomes - cells.scores) * cells.weights, axis=1)
        score = cells.scores[0].astype(np.float64)
        sigma = float(np.sqrt((cells.weights[0] * score * (1 - score)).sum()))
        high, low = np.maximum(walk.max(axis=1), 0.0), np.minimum(walk.min(axis=1), 0.0)
        far: Float64s = high - low if both else np.maximum(high, -low)
        if sigma > 0:
            return far / sigma
        return np.where(far > 1e-12, np.inf, 0.0)  # scores of 0 and 1 only: any miss refutes them

    return measure
