"""How many bins a scaling-binning calibrator should have: sharper predictions against a smaller promise.

More bins give a lower mean squared error, and a calibration error that is harder to bound. Kumar et al. (2019, Figure
17) draw one against the other, on held-out rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.inference.exact_limit import squared_errors
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.recalibration.binning_maps import ScalingBinning
from truecal.recalibration.score_maps import ScoreMapping
from truecal.table import Frame
from truecal.types import Float64s, Indices


@dataclass(frozen=True)
class Candidate:
    """One number of bins on held-out rows: the mean squared error, and root-mean-square errors with upper bounds."""

    bins: int
    mean_squared_error: float
    debiased: float
    debiased_upper: float
    plugin: float
    plugin_upper: float


@dataclass(frozen=True)
class BinChoice:
    """The curve over numbers of bins, and the number with the least mean squared error whose bound is below the
    threshold.

    `recommended` relies on the debiased estimate; `recommended_by_plugin` shows what the plug-in estimate would allow.
    Either is None when no number of bins meets the threshold.
    """

    candidates: tuple[Candidate, ...]
    threshold: float
    level: float
    recommended: int | None
    recommended_by_plugin: int | None

    def frame(self) -> Frame:
        """One row per number of bins."""
        return Frame.from_records(map(vars, self.candidates))


@takes_arrays
def choose_bins(
    preds: tc.Predictions,
    threshold: float,
    *,
    bins: Sequence[int] = tuple(range(10, 101, 5)),
    scaling: ScoreMapping | None = None,
    fit_share: float = 0.6,
    resamples: int = 100,
    level: float = 0.9,
    rng: int = 0,
) -> BinChoice:
    """Try numbers of bins for `ScalingBinning` and recommend one that keeps the calibration error below `threshold`.

    A share of the rows fits the calibrators, one per class (for two classes, of the second). On the other rows the
    marginal calibration error, the root of the mean squared error over classes, is estimated with and without
    debiasing; the upper bounds add a normal quantile times the standard deviation over bootstrap resamples of the rows,
    as in Kumar et al. (2019, G.2).

    Parameters
    ----------
    preds : predictions on rows the model was not trained on, unweighted.
    threshold : the largest root-mean-square calibration error to accept.
    bins : the numbers to try.
    scaling : the curve to bin; see `ScalingBinning`.
    fit_share : share of rows to fit on.
    resamples, level, rng : number of bootstrap resamples, level of the upper bounds, seed of split and resamples.

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
        raise InputError(f"{len(preds)} rows leave none to fit on or none to judge; give more, or another fit_share")
    fit, held_out = preds.take(order[:cut]), preds.take(order[cut:])
    draws = random.multinomial(len(held_out), np.full(len(held_out), 1 / len(held_out)), resamples)
    candidates = []
    for count in bins:
        fixed = ScalingBinning(bins=count, scaling=scaling, normalize=False).fit(fit.probs, fit.labels)
        after = fixed.recalibrate(held_out)
        candidates.append(_candidate(count, after, draws, level))
    return BinChoice(
        tuple(candidates),
        threshold,
        level,
        _best([(c.mean_squared_error, c.bins) for c in candidates if c.debiased_upper <= threshold]),
        _best([(c.mean_squared_error, c.bins) for c in candidates if c.plugin_upper <= threshold]),
    )


def _best(allowed: list[tuple[float, int]]) -> int | None:
    return min(allowed)[1] if allowed else None


def marginals(preds: tc.Predictions) -> list[tuple[Float64s, Indices, Float64s]]:
    """For each class (of two, the second only): distinct outputs, the output of each row, and 0/1 outcomes."""
    classes = [1] if preds.class_count == 2 else range(preds.class_count)
    by_class = []
    for k in classes:
        column = preds.probs if preds.binary else preds.probs[:, k]
        outputs, of = np.unique(column.astype(np.float64), return_inverse=True)
        by_class.append((outputs, of, (preds.labels == k).astype(np.float64)))
    return by_class


def marginal_errors(classes: Sequence[tuple[Float64s, Indices, Float64s]], draws: Any) -> tuple[Float64s, Float64s]:
    """Plug-in and debiased squared errors averaged over classes, for each row of weights in `draws`."""
    plugin, debiased = np.zeros(len(draws)), np.zeros(len(draws))
    for outputs, of, outcomes in classes:
        counts = np.stack([np.bincount(of, w, len(outputs)) for w in draws]).astype(np.float64)
        ones = np.stack([np.bincount(of, w * outcomes, len(outputs)) for w in draws]).astype(np.float64)
        both = squared_errors(outputs, counts, ones)
        plugin += both[0] / len(classes)
        debiased += both[1] / len(classes)
    return plugin, debiased


def _candidate(count: int, after: tc.Predictions, draws: Any, level: float) -> Candidate:
    from scipy.special import ndtri

    classes = marginals(after)
    squares = [float(((outputs[of] - outcomes) ** 2).mean()) for outputs, of, outcomes in classes]
    values = [float(v[0]) for v in marginal_errors(classes, np.ones((1, len(after))))]
    spreads = [float(v.std(ddof=1)) for v in marginal_errors(classes, draws)]
    plugin, debiased = values
    upper = [max(value + float(ndtri(level)) * spread, 0.0) for value, spread in zip(values, spreads, strict=True)]
    return Candidate(
        count, float(np.mean(squares)), sqrt(max(debiased, 0.0)), sqrt(upper[1]), sqrt(plugin), sqrt(upper[0])
    )
