"""The kernel-density calibration error."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimate.combine import power_mean
from truecal.estimate.estimator import Estimator, Findings
from truecal.estimate.smoothing.grid import cell_sums, midpoints, sampled_response, smooth
from truecal.profile import Profile
from truecal.types import Float64s

_CELLS = 4096
_AT_ONCE = 4  # datasets worked on together: their cells stay in cache


@dataclass(frozen=True)
class KernelDensityECE(Estimator):
    r"""ECE_KDE = (int |c - T(c)|^p f(c) dc)^(1/p), T(c) = sum_i K(c - c_i) y_i / sum_i K(c - c_i), f the density of the scores.

    Zhang, Kailkhura and Han (2020): triweight kernel, reflected at 0 and 1, with standard deviation
    h = std(c) (2n)^(-1/5) unless `bandwidth` is given. bandwidth="correct" takes the spread of the scores that came true alone, as
    the code behind Roelofs et al. does: smaller where wrong predictions have low scores, and so less smooth. Computed on 4096 cells
    of equal width; a bandwidth below two cells is raised to two cells (only scores that hardly vary ask for one).

    >>> import truecal as tc
    >>> scores = [i / 100 for i in range(100)]
    >>> round(tc.KernelDensityECE(norm=1)(tc.Profile.from_arrays(scores, [1] * 100)).value, 3)
    0.504
    """

    norm: float = 2
    bandwidth: float | Literal["correct"] | None = None

    def __post_init__(self) -> None:
        options.norm(self.norm)
        if isinstance(self.bandwidth, str):
            options.choice(self.bandwidth, ("correct",), "bandwidth")
        elif self.bandwidth is not None and not 0 < self.bandwidth <= 1:
            raise InputError(f"bandwidth must lie in (0, 1], not {self.bandwidth!r}")

    @property
    def power_norm(self) -> float:
        return self.norm

    def find(self, profile: Profile) -> Findings:
        h = self._bandwidths(profile)
        weight, _, outcome = cell_sums(profile, _CELLS)
        power = np.empty(profile.batch)
        for start in range(0, profile.batch, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            power[part] = self._power(weight[part], outcome[part], h[part])
        return Findings(power, settings={"bandwidth": h})

    def _power(self, weight: Float64s, outcome: Float64s, h: Float64s) -> Float64s:
        """The p-th power of the error of some datasets."""
        response = sampled_response(_triweight(3 * h))  # a support of 3h gives the standard deviation h
        density = np.maximum(smooth(weight, response), 0.0)
        positive = smooth(outcome, response)
        heard = density > 1e-12 / _CELLS  # below that only rounding is left of the density
        curve = np.clip(positive / np.where(heard, density, 1.0), 0.0, 1.0)
        share = np.where(heard, density, 0.0)
        share = share / share.sum(axis=1, keepdims=True)
        return power_mean(midpoints(_CELLS) - curve, share, self.norm)

    def _bandwidths(self, profile: Profile) -> Float64s:
        smallest = 2 / _CELLS
        if self.bandwidth == "correct":
            spread = np.array([_spread_of_true(profile, i) for i in range(profile.batch)])
            return np.maximum(spread * (2 * profile.size) ** -0.2, smallest)
        if self.bandwidth is not None:
            return np.full(profile.batch, max(self.bandwidth, smallest))
        whole = profile.at_count(np.array([[profile.rows]]))
        mean, square = (profile.sums(name, whole)[:, 0] / profile.total for name in ("c", "cc"))
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        return np.maximum(spread * (2 * profile.size) ** -0.2, smallest)


def _spread_of_true(profile: Profile, dataset: int) -> float:
    """Standard deviation of the scores of one dataset whose outcome is 1; 0 where there are none."""
    scores = profile.scores[dataset % len(profile.scores)]
    weight = profile.outcomes[dataset % len(profile.outcomes)].astype(np.float64)
    if profile.weights is not None:
        weight = weight * profile.weights[dataset % len(profile.weights)]
    if not weight.any():
        return 0.0
    mean = np.average(scores, weights=weight)
    return float(np.sqrt(np.average((scores - mean) ** 2, weights=weight)))


def _triweight(reach: Float64s) -> Float64s:
    """The kernel, with its mirror images, at the distances 0, 1, ... of cells; shape (batch, cells + 1)."""
    far = int(np.ceil(reach.max() / 2))  # the mirrored line repeats with period 2
    total = np.zeros((len(reach), _CELLS + 1))
    for image in range(-far, far + 1) if reach.max() > 1 else (0,):
        height = (np.arange(_CELLS + 1) / _CELLS + 2.0 * image) / reach[:, None]
        height *= height
        np.subtract(1.0, height, out=height)
        np.maximum(height, 0.0, out=height)
        total += height * height * height
    return total
