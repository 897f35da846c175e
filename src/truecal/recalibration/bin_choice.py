"""The number of bins of a scaling-binning calibrator: a lower squared error against a smaller bound on the calibration error.

More bins give a lower mean squared error, and a calibration error that is harder to bound (Kumar et al. 2019, Figure 17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.inference.exact_limit import squared_errors
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.recalibration.binning_maps import ScalingBinning
from truecal.recalibration.score_maps import ScoreRecalibrator
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices


@dataclass(frozen=True)
class BinCandidate:
    """One number of bins on held-out rows: the mean squared error, and root-mean-square errors with upper bounds."""

    bins: int
    mean_squared_error: float
    debiased: float
    debiased_upper: float
    plugin: float
    plugin_upper: float


@dataclass(frozen=True, repr=False)
class BinChoice(Tabular):
    """Numbers of bins side by side, and the one with the least mean squared error whose bound is below the threshold.

    Attributes
    ----------
    candidates : tuple
        One record per number of bins, with `bins`, `mean_squared_error`, `debiased`, `debiased_upper`, `plugin` and
        `plugin_upper`.
    threshold : float
        Largest calibration error to accept.
    level : float
        Level of the upper bounds.
    recommended : int or None
        Number of bins by the debiased estimate; None when none meets the threshold.
    recommended_by_plugin : int or None
        Number of bins that the plug-in estimate would allow.

    See Also
    --------
    choose_bins : The function that returns it.
    """

    candidates: tuple[BinCandidate, ...]
    threshold: float
    level: float
    recommended: int | None
    recommended_by_plugin: int | None

    def frame(self) -> Frame:
        """Return a table with one row per number of bins."""
        return Frame.from_records(map(vars, self.candidates))

    def __str__(self) -> str:
        number = "no number of bins" if self.recommended is None else f"{self.recommended} bins"
        return f"{number} recommended for an error below {self.threshold:g} at {self.level:.0%}, of {len(self.candidates)} tried"


@takes_arrays
def choose_bins(
    preds: tc.Predictions,
    threshold: float,
    *,
    bins: Sequence[int] = tuple(range(10, 101, 5)),
    scaling: ScoreRecalibrator | None = None,
    fit_share: float = 0.6,
    resamples: int = 100,
    level: float = 0.9,
    rng: int = 0,
) -> BinChoice:
    """Recommend a number of bins for `ScalingBinning` that keeps the calibration error below a threshold.

    A share of the rows fits the calibrators, one per class (for two classes, of the second). On the other rows the marginal
    calibration error, the root of the mean squared error over classes, is estimated with and without debiasing.

    Parameters
    ----------
    preds : Predictions
        Rows the model was not trained on, unweighted; or ``y_true, y_prob``.
    threshold : float
        Largest root-mean-square calibration error to accept.
    bins : sequence of int, default 10, 15, ..., 100
        The numbers to try.
    scaling : recalibrator of one score, default None
        The curve to bin; see `ScalingBinning`.
    fit_share : float, default 0.6
        Share of rows to fit on.
    resamples : int, default 100
        Number of bootstrap resamples.
    level : float, default 0.9
        Level of the upper bounds.
    rng : int, default 0
        Seed of split and resamples.

    Returns
    -------
    choice : BinChoice
        The recommended number and the candidates.

    Raises
    ------
    InputError
        The rows have weights or clusters, or are too few to split.

    Notes
    -----
    The upper bounds add a normal quantile times the standard deviation over bootstrap resamples of the rows (Kumar et al.,
    appendix G.2).

    References
    ----------
    Kumar, Liang, Ma. Verified uncertainty calibration. NeurIPS 2019. https://doi.org/10.48550/arXiv.1909.10155

    See Also
    --------
    ScalingBinning : The calibrator.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.predictions import Predictions
    >>> from truecal.recalibration import choose_bins
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> choice = choose_bins(Predictions.from_probs(p, rng.random(4000) < p**2), 0.035, bins=[2, 5, 10, 20, 50])
    >>> choice.recommended, choice.recommended_by_plugin
    (10, 5)
    """
    check_predictions(preds)
    if preds.weights is not None or preds.clusters is not None:
        raise InputError("choose_bins takes plain rows, without weights or clusters")
    options.between(fit_share, "fit_share", 0, 1)
    options.between(level, "level", 0.5, 1)
    options.between(threshold, "threshold", 0, 1)
    options.resamples(resamples, "resamples", 2)
    random = options.generator(rng)
    order = random.permutation(len(preds))
    cut = round(fit_share * len(preds))
    if not 0 < cut < len(preds):
        raise InputError(f"{len(preds)} rows are too few for a share of {fit_share:g} to fit on and others to test on")
    fit_preds, test_preds = preds.take(order[:cut]), preds.take(order[cut:])
    draws = random.multinomial(len(test_preds), np.full(len(test_preds), 1 / len(test_preds)), resamples)
    candidates = []
    for count in bins:
        calibrator = ScalingBinning(bins=count, scaling=scaling, normalize=False).fit(fit_preds.probs, fit_preds.labels)
        candidates.append(_test_candidate(count, calibrator.recalibrate(test_preds), draws, level))

    def recommend(bound: str) -> int | None:
        allowed = [(c.mean_squared_error, c.bins) for c in candidates if getattr(c, bound) <= threshold]
        return min(allowed)[1] if allowed else None

    return BinChoice(tuple(candidates), threshold, level, recommend("debiased_upper"), recommend("plugin_upper"))


def _test_candidate(count: int, preds: tc.Predictions, draws: Indices, level: float) -> BinCandidate:
    """Estimate the marginal calibration error of recalibrated rows, plain and debiased, with upper limits by resamples `draws`."""
    from scipy.special import ndtri

    columns = [preds.probs] if preds.binary else list(preds.probs.T)
    outcomes = [preds.labels == k for k in ([1] if preds.class_count == 2 else range(preds.class_count))]
    columns = columns[-1:] if preds.class_count == 2 else columns
    parts = list(zip([c.astype(np.float64) for c in columns], [y.astype(np.float64) for y in outcomes], strict=True))
    plugin, debiased = (float(v[0]) for v in _marginal_errors(parts, np.ones((1, len(preds)), np.intp)))
    spreads = [float(v.std(ddof=1)) for v in _marginal_errors(parts, draws)]
    quantile = float(ndtri(level))
    plugin_upper, debiased_upper = (
        sqrt(max(value + quantile * spread, 0.0)) for value, spread in zip((plugin, debiased), spreads, strict=True)
    )
    mean_squared_error = float(np.mean([((p - y) ** 2).mean() for p, y in parts]))
    return BinCandidate(count, mean_squared_error, sqrt(max(debiased, 0.0)), debiased_upper, sqrt(plugin), plugin_upper)


def _marginal_errors(parts: Sequence[tuple[Float64s, Float64s]], draws: Indices) -> tuple[Float64s, Float64s]:
    """Average plug-in and debiased squared errors over classes (outputs, outcomes), for each row of weights in `draws`."""
    plugin, debiased = np.zeros(len(draws)), np.zeros(len(draws))
    for column, outcomes in parts:
        outputs, position = np.unique(column, return_inverse=True)
        counts = np.stack([np.bincount(position, w, len(outputs)) for w in draws]).astype(np.float64)
        ones = np.stack([np.bincount(position, w * outcomes, len(outputs)) for w in draws]).astype(np.float64)
        errors = squared_errors(outputs, counts, ones)
        plugin += errors[0] / len(parts)
        debiased += errors[1] / len(parts)
    return plugin, debiased
