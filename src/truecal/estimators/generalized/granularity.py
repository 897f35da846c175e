"""How much of a generalized error is its binning: the error against the size of the bins, and against the size of the sample.

Too few bins average errors away; too many turn chance into error. Between the two lies, if anywhere, the value to quote.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.generalized.binning import KDTree, grow
from truecal.estimators.generalized.distances import Distance
from truecal.estimators.generalized.estimator import GeneralizedECE
from truecal.estimators.generalized.resample import resample
from truecal.lenses.lens import Lens, Sample
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
    bins, fewest, median, most : how many bins there are, and how many predictions they hold.
    stable : first and last position of the stable region. The region is that run of three fractions over which the value changes
        least, among runs with at least 4 bins at the coarse end and 10 predictions in the median bin at the fine end (among all
        runs if none has). Fractions that give the same bins as the one before count once.
    """

    fraction: Float64s
    value: Float64s
    spread: Float64s
    chance: Float64s
    bins: Indices
    fewest: Float64s
    median: Float64s
    most: Float64s
    stable: tuple[int, int]

    @property
    def recommended(self) -> float:
        """The fraction in the middle of the stable region."""
        return float(self.fraction[(self.stable[0] + self.stable[1]) // 2])

    def frame(self) -> Frame:
        """One row per fraction."""
        names = ("fraction", "value", "spread", "chance", "bins", "fewest", "median", "most")
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
    asked = _decreasing(fractions)
    judge = _judge(lens, select, distance, norm, replicates, rng)
    vector = _one_vector(judge, preds)
    trees = [KDTree(f) for f in asked]
    grown = grow(vector.columns, vector.weights, trees[-1].minimum(vector))
    rows = []
    for tree in trees:
        partition = grown.pruned(tree.minimum(vector))
        judged = judge.judged(vector, options.generator(rng), partition)
        bins, estimate = judged.bins, judged.estimate
        points = bins.count[bins.weight > 0]
        drawn = resample(
            vector,
            partition,
            bins,
            distance=judge.distance,
            norm=norm,
            replicates=replicates,
            rng=options.generator(rng),
        )
        spread = drawn.values.std(ddof=1)
        rows.append(
            (estimate.value, spread, estimate.chance, bins.filled, points.min(), np.median(points), points.max())
        )
    value, spread, chance, bins_, fewest, median, most = (np.array(column) for column in zip(*rows, strict=True))
    stable = _stable(value, bins_, median)
    return GranularitySweep(np.array(asked), value, spread, chance, bins_.astype(np.intp), fewest, median, most, stable)


def _stable(value: Float64s, bins: Float64s, median: Float64s) -> tuple[int, int]:
    """First and last position of the run of fractions over which the value changes least."""
    fresh = np.flatnonzero(np.diff(bins, prepend=0))  # where the bins differ from those before
    length = min(_WINDOW, len(fresh))
    runs = [fresh[i : i + length] for i in range(len(fresh) - length + 1)]
    sound = [r for r in runs if bins[r[0]] >= _FEWEST_BINS and median[r[-1]] >= _FEWEST_POINTS]
    best = min(sound or runs, key=lambda r: float(np.ptp(value[r])))
    return int(best[0]), int(best[-1])


def _judge(
    lens: Lens | None,
    select: Selection | None,
    distance: Distance | None,
    norm: float,
    replicates: int,
    rng: int | np.random.Generator,
) -> GeneralizedECE:
    given = {"lens": lens, "select": select, "distance": distance}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return GeneralizedECE(**chosen, norm=norm, replicates=replicates, rng=rng)


def _one_vector(judge: GeneralizedECE, preds: Predictions) -> Sample:
    check_predictions(preds)
    rows, _ = judge.chosen(preds, None)
    lens = judge.own_lens(None)
    if lens.shares(rows) is not None:
        raise InputError(
            "a class-wise lens has one set of bins per class; sweep one class at a time with OneClass(name)"
        )
    sample = lens.sample(rows)
    sample.refuse_pooled()
    return sample


def _decreasing(fractions: Sequence[float]) -> list[float]:
    """Coarse to fine, each once."""
    if len(fractions) == 0:
        raise InputError("give at least one fraction, such as fractions=[0.5, 0.1, 0.02]")
    return sorted({KDTree(f).fraction for f in fractions}, reverse=True)
