"""How sure a binned error of vectors is: test of calibration, chance level, interval, and a value without most of its bias.

What the interval is for: the error of the bins at hand, mean outputs against mean *true rates* of their rows.

Lower end. Truth 0 is in the interval unless the test of calibration rejects it. Otherwise the end is the larger of two limits:
the error along a fitted direction minus its deviation (`directed.py`), and the value minus the noise of labels (the triangle
inequality).

Upper end. The value has a mean of at least the true error, so value + deviation is a limit. For norm 1 credit is given for the
bias that every truth of this size has at least. With noise of standard deviation s_c in cell c, a gap of x s_c shows |x +
normal| s_c, with mean m(x) s_c, m(x) = sqrt(2/pi) exp(-x^2/2) + x (1 - 2 Phi(-x)), which is convex. So by Jensen's inequality
the mean of the value is at least S m(error / S), where S m(0) is the chance level: gaps in proportion to their noise show
least. The end is the error at which that is value + deviation; and it is at least the value told (with or without bias), which
an interval has to hold.

The value is biased upwards, most of all with many events, so the upper end misses less often than the lower one. Of the misses
that a level allows the lower end takes 7 in 10.
"""

from dataclasses import dataclass, replace

import numpy as np

from truecal.estimators.generalized.binning import Partition, VectorBins, write_out
from truecal.estimators.generalized.chance import Chance, noise_powers
from truecal.estimators.generalized.directed import Directed, deviation, slopes
from truecal.estimators.generalized.distances import Distance
from truecal.estimators.generalized.fitted import fitted_outputs
from truecal.lenses.lens import Sample
from truecal.special import root
from truecal.types import Float64s

_LOWER = 0.7  # of the misses allowed, those of the lower end
_GRID = np.linspace(0.0, 6.0, 601)  # beyond, m(x) is x to nine digits


@dataclass(frozen=True, eq=False)
class Binned:
    """A sample in bins with the value measured there."""

    sample: Sample
    partition: Partition
    bins: VectorBins
    distance: Distance
    norm: float
    value: float

    def written_out(self) -> "Binned":
        """Take one row for every row that a whole-number weight stands for."""
        sample, partition = write_out(self.sample, self.partition)
        return replace(self, sample=sample, partition=partition)

    def directed(self, fitted: Float64s) -> Directed:
        return Directed.of(self.sample, self.partition, self.bins, self.distance, self.norm, fitted)

    def debiased(self) -> float:
        """The error along the fitted direction: not above the value, not below 0."""
        full = self.written_out()
        return float(np.clip(full.directed(fitted_outputs(full.sample)).value, 0.0, self.value))


@dataclass(frozen=True)
class Inference:
    """The value told, ends of its interval, p-value of calibration, and mean error of a calibrated model."""

    value: float
    low: float
    high: float
    p_value: float
    chance: float

    @classmethod
    def of(cls, binned: Binned, level: float, rng: np.random.Generator, *, debiased: bool) -> "Inference":
        from scipy.special import ndtri

        binned = binned.written_out()
        arguments = (binned.sample, binned.partition, binned.bins, binned.distance, binned.norm)
        value, norm = binned.value, binned.norm
        chance = Chance.of(*arguments, rng)
        p = chance.p_value(value if norm in (1, np.inf) else value**norm)
        below, above = _LOWER * (1 - level), (1 - _LOWER) * (1 - level)
        fitted = fitted_outputs(binned.sample)
        along = binned.directed(fitted)
        expected = float(root(chance.powers, norm).mean())
        low, noise_level = 0.0, expected
        if p <= below:
            noise = root(noise_powers(arguments[0], fitted, *arguments[1:], rng), norm)
            low = max(
                along.value + float(ndtri(below)) * along.deviation, value - float(np.quantile(noise, 1 - below)), 0.0
            )
            noise_level = min(expected, float(noise.mean()))
        steep = slopes(binned.bins.gap, binned.bins, binned.distance, norm, binned.sample.event)
        high = value - float(ndtri(above)) * deviation(binned.sample, binned.partition, binned.bins, steep, fitted)
        if norm == 1:
            high = _most(high, noise_level)
        high = min(high, binned.distance.largest(binned.sample.dimension))
        low = min(low, value)
        stated = float(np.clip(along.value, low, value)) if debiased else value
        return cls(stated, low, max(high, stated), p, expected)


def _most(mean: float, chance: float) -> float:
    """The largest error whose values can have this mean, when chance alone shows `chance`."""
    from scipy.special import ndtr

    if chance <= 0:
        return mean
    size = chance * np.sqrt(np.pi / 2)
    means = np.sqrt(2 / np.pi) * np.exp(-(_GRID**2) / 2) + _GRID * (1 - 2 * ndtr(-_GRID))
    if mean >= size * means[-1]:
        return mean
    return float(size * np.interp(mean / size, means, _GRID))
