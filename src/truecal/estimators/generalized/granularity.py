"""How much of a generalized error is its binning: the error against the size of the bins, and against the size of the sample.

Too few bins average errors away; too many turn chance into error. Between the two lies, if anywhere, the value to quote.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.generalized.binning import KDTree, VectorBins, grow
from truecal.estimators.generalized.distances import Distance, TotalVariation
from truecal.estimators.generalized.estimator import GeneralizedECE
from truecal.lenses.lens import Lens
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.predictions.selection import Selection
from truecal.table import Frame
from truecal.types import Float64s, Indices

FRACTIONS = tuple(2.0**-i for i in range(1, 11))
_WINDOW = 3  # neighbouring fractions compared when looking for a stable region
_FEWEST_BINS = 4  # a coarser tree averages most errors away
_FEWEST_POINTS = 10  # a finer tree (in its median bin) measures chance


@dataclass(frozen=True, eq=False)
class GranularitySweep:
    """The error for each fraction of a k-d tree, coarse to fine (Kirchenbauer, Oaks & Heim 2022, Figures 7 and 8).

    Attributes
    ----------
    fraction, value : the tree's fraction (gamma) and the error in its bins.
    spread : standard deviation of the error over bootstrap resamples. chance : mean error that a calibrated model would show.
    bins, smallest, median, largest : how many bins there are, and how many predictions they hold.
    stable : first and last position of the stable region. The region is that run of three fractions over which the value changes
        least, among runs with at least 4 bins at the coarse end and 10 predictions in the median bin at the fine end (among all
        runs if none has). Fractions that give the same bins as the one before count once.
    """

    fraction: Float64s
    value: Float64s
    spread: Float64s
    chance: Float64s
    bins: Indices
    smallest: Float64s
    median: Float64s
    largest: Float64s
    stable: tuple[int, int]

    @property
    def recommended(self) -> float:
        """The fraction in the middle of the stable region."""
        return float(self.fraction[(self.stable[0] + self.stable[1]) // 2])

    def frame(self) -> Frame:
        """One row per fraction."""
        names = ("fraction", "value", "spread", "chance", "bins", "smallest", "median", "largest")
        stable = [self.stable[0] <= i <= self.stable[1] for i in range(len(self.fraction))]
        return Frame({**{name: getattr(self, name) for name in names}, "stable": stable})


@takes_arrays
def sweep_granularity(
    preds: Predictions,
    *,
    lens: Lens | None = None,
    select: Selection | None = None,
    distance: Distance | None = None,
    fractions: Sequence[float] = FRACTIONS,
    norm: float = 1,
    replicates: int = 200,
    rng: int | np.random.Generator = 0,
) -> GranularitySweep:
    """The generalized error for k-d trees of every fraction, from one grown tree.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1], size=1000)
    >>> labels = (rng.random((1000, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    >>> sweep = tc.estimators.sweep_granularity(tc.Predictions.from_probs(probs, labels), fractions=[0.5, 0.1, 0.02])
    >>> sweep.bins
    array([ 3, 15, 74])
    >>> bool((np.diff(sweep.value) > 0).all())  # nothing but chance: it grows with the bins
    True
    """
    if len(fractions) == 0:
        raise InputError("give at least one fraction, such as fractions=[0.5, 0.1, 0.02]")
    trees = [KDTree(f) for f in sorted({KDTree(f).fraction for f in fractions}, reverse=True)]  # coarse to fine
    estimator = GeneralizedECE(
        lens=lens, select=select, distance=distance or TotalVariation(), norm=norm, replicates=replicates, rng=rng
    )
    check_predictions(preds)
    rows, _ = estimator.chosen(preds, None)
    lens = estimator.own_lens(None)
    if lens.shares(rows) is not None:
        raise InputError(
            "a class-wise lens has one set of bins per class; sweep one class at a time with OneClass(name)"
        )
    sample = lens.sample(rows)
    sample.refuse_pooled()
    grown = grow(sample.columns, sample.weights, trees[-1].minimum(sample))
    table = []
    for tree in trees:
        partition = grown.pruned(tree.minimum(sample))
        bins = VectorBins.of(sample, partition)
        estimate = estimator.measure_sample(sample, options.generator(rng), partition, bins)
        points = bins.count[bins.weight > 0]
        spread = estimator.resample(sample, partition, bins, options.generator(rng)).values.std(ddof=1)
        numbers = estimate.value, spread, estimate.chance, bins.filled, points.min(), np.median(points), points.max()
        table.append(numbers)
    value, spread, chance, count, smallest, median, largest = np.array(table, np.float64).T
    fraction = np.array([tree.fraction for tree in trees])
    stable = _stable(value, count, median)
    return GranularitySweep(fraction, value, spread, chance, count.astype(np.intp), smallest, median, largest, stable)


def _stable(value: Float64s, bins: Float64s, median: Float64s) -> tuple[int, int]:
    """First and last position of the run of fractions over which the value changes least."""
    fresh = np.flatnonzero(np.diff(bins, prepend=0))  # where the bins differ from those before
    length = min(_WINDOW, len(fresh))
    runs = [fresh[i : i + length] for i in range(len(fresh) - length + 1)]
    sound = [r for r in runs if bins[r[0]] >= _FEWEST_BINS and median[r[-1]] >= _FEWEST_POINTS]
    best = min(sound or runs, key=lambda r: float(np.ptp(value[r])))
    return int(best[0]), int(best[-1])
