"""The generalized error against the size of the bins, which shows how much of it depends on the binning.

Too few bins average errors away; too many turn chance into error. Between the two lies, if anywhere, the value to quote.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.generalized.binning import KDTree, grow
from truecal.estimators.generalized.distances import Distance, TotalVariation
from truecal.estimators.generalized.estimator import GeneralizedECE
from truecal.lenses.lens import Lens
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.predictions.selection import Selection
from truecal.table import Frame
from truecal.types import Float64s, Indices

# by choice: halves, from coarse to fine
FRACTIONS = tuple(2.0**-i for i in range(1, 11))
_WINDOW = 3  # derived: neighbouring fractions of a stable region span a factor of 4 in size
_MIN_BINS = 4  # derived: a coarser tree cannot tell high from low outputs in two probabilities
_MIN_MEDIAN = 10  # rows of the median bin; derived: their mean outcome has a standard error of up to 0.16


@dataclass(frozen=True, eq=False)
class GranularitySweep:
    """The error for each fraction of a k-d tree, coarse to fine (Kirchenbauer, Oaks & Heim 2022, Figures 7 and 8).

    Attributes
    ----------
    fraction : array of shape (m,)
        Fraction (gamma) of each tree.
    value : array of shape (m,)
        Error in its bins.
    spread : array of shape (m,)
        Standard error of the value.
    chance : array of shape (m,)
        Mean error that a calibrated model would show.
    bins : array of shape (m,)
        Number of bins.
    smallest : array of shape (m,)
        Predictions in the smallest bin.
    median : array of shape (m,)
        Predictions in the median bin.
    largest : array of shape (m,)
        Predictions in the largest bin.
    stable : pair of int
        First and last position of the stable region: that run of three fractions over which the value changes least, among runs
        with at least 4 bins at the coarse end and 10 predictions in the median bin at the fine end (among all runs if none
        has). Fractions that give the same bins as the one before count once.

    See Also
    --------
    sweep_granularity : Computes it.
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
        """Fraction in the middle of the stable region."""
        return float(self.fraction[(self.stable[0] + self.stable[1]) // 2])

    def frame(self) -> Frame:
        """Return one row per fraction: fraction, value, spread, chance, bins, smallest, median, largest, stable."""
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
    """Measure the generalized error for k-d trees of every fraction, from one grown tree.

    Parameters
    ----------
    preds : Predictions, or ``y_true, y_prob``
        Rows that the model was not fitted on.
    lens : Lens, default None
        What is judged; None for all classes together.
    select : Selection, default None
        Which rows are judged.
    distance : Distance, default None
        Between the mean output and the mean outcome of a bin; None for total variation.
    fractions : sequence of float, default (1/2, 1/4, ..., 1/1024)
        Fractions of the trees.
    norm : float, default 1
        1 for the mean over bins, infinity for the maximum.
    replicates : int, default 200
        Redraws of the labels for the chance level.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.

    Returns
    -------
    GranularitySweep
        One row per fraction, coarse to fine, and the region in which the value is stable.

    Raises
    ------
    InputError
        Without a fraction, and for a class-wise lens, which has one set of bins per class.

    Notes
    -----
    Few bins average errors away; many turn chance into error. Between the two lies, if anywhere, the value to quote.

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? Evaluating classifier calibration under
    context-specific definitions of reliability. arXiv:2205.11454, figures 7 and 8.

    See Also
    --------
    GeneralizedECE : The error in one set of bins.

    Examples
    --------
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
        binned = estimator.binned(sample, partition)
        chance = binned.calibrated_errors(options.generator(rng))[0].mean()
        filled = binned.bins.count[binned.bins.weight > 0]
        sizes = filled.min(), np.median(filled), filled.max()
        table.append((binned.value, binned.deviation(), chance, binned.bins.filled, *sizes))
    value, spread, chance, count, smallest, median, largest = np.array(table, np.float64).T
    fraction = np.array([tree.fraction for tree in trees])
    stable = _stable_region(value, count, median)
    return GranularitySweep(fraction, value, spread, chance, count.astype(np.intp), smallest, median, largest, stable)


def _stable_region(value: Float64s, bins: Float64s, median: Float64s) -> tuple[int, int]:
    """Find the three consecutive fractions over which the value varies least; return the first and last of their indices.

    Variation is the largest minus the smallest value. Fractions with the same number of bins as the one before count once.
    Windows with fewer than 4 bins at the start or fewer than 10 rows in the median bin at the end are used only if there is no
    other. All arguments have shape (fractions,).

    >>> value, bins = np.array([0.1, 0.2, 0.21, 0.2, 0.4]), np.array([2.0, 4.0, 8.0, 16.0, 32.0])
    >>> _stable_region(value, bins, np.full(5, 100.0))
    (1, 3)
    """
    changes = np.flatnonzero(np.diff(bins, prepend=0))  # where the bins differ from those before
    length = min(_WINDOW, len(changes))
    windows = [changes[i : i + length] for i in range(len(changes) - length + 1)]
    eligible = [w for w in windows if bins[w[0]] >= _MIN_BINS and median[w[-1]] >= _MIN_MEDIAN]
    best = min(eligible or windows, key=lambda w: float(np.ptp(value[w])))
    return int(best[0]), int(best[-1])
