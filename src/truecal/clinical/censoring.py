"""Weights for cohorts whose outcomes are censored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.special import positive
from truecal.types import Float64s, Indices


@dataclass(frozen=True, eq=False)
class ObservedOutcomes:
    """Outcomes of the rows that have one, with weights for those that do not.

    Attributes
    ----------
    observed : ndarray of shape (n,), bool
        Whether a row's outcome is observed.
    outcome : ndarray of shape (n,)
        0 or 1, and 0 where unobserved.
    weights : ndarray of shape (n,)
        Weight of a row, 0 where unobserved.
    unknown : int
        Number of rows without an outcome.
    method : str
        How the weights were computed.
    """

    observed: NDArray[np.bool_]
    outcome: Indices
    weights: Float64s
    unknown: int
    method: str

    def predictions(
        self, probs: ArrayLike, *, clusters: ArrayLike | None = None, columns: Mapping[str, ArrayLike] | None = None
    ) -> tc.Predictions:
        """Return the rows with an observed outcome as weighted Predictions; `probs`, `clusters` and `columns` are of all rows.

        >>> seen = ObservedOutcomes(np.array([True, False]), np.array([1, 0]), np.array([2.0, 0.0]), 1, "weights")
        >>> preds = seen.predictions([0.7, 0.4])
        >>> preds.probs, preds.labels, preds.weights
        (array([0.7]), array([1]), array([2.]))
        """
        weights = None if (self.weights == 1).all() else self.weights
        rows = tc.Predictions.from_probs(probs, self.outcome, weights=weights, clusters=clusters, columns=columns)
        return rows.take(np.flatnonzero(self.observed))


def censoring_weights(
    time: ArrayLike, event: ArrayLike, horizon: float, *, by: ArrayLike | None = None
) -> ObservedOutcomes:
    r"""Compute outcomes at a time horizon from censored follow-up, with inverse-probability-of-censoring weights.

    Parameters
    ----------
    time : array-like of shape (n,)
        End of follow-up of each row, above 0.
    event : array-like of shape (n,)
        Whether follow-up ended with the event (1) or was censored (0).
    horizon : float
        The time at which outcomes are needed.
    by : array-like of shape (n,), default None
        A group of each row (a site), within which censoring is estimated.

    Returns
    -------
    outcomes : ObservedOutcomes
        The outcome is 1 where the event happened by the horizon, 0 where a row was followed to it without, and unobserved where
        follow-up ended before.

    Raises
    ------
    InputError
        Times or events are invalid, nobody was followed to the horizon, or all of a group are censored before.

    Notes
    -----
    With G(t) the Kaplan-Meier estimate of the probability of not being censored by t, an event at t has the weight 1 / G(t-) and
    a row without event 1 / G(horizon-). Events precede censoring at the same time. Assumes that censoring does not depend on
    risk or outcome (within the groups `by`). Intervals treat the weights as fixed.

    References
    ----------
    Graf, Schmoor, Sauerbrei, Schumacher. Assessment and comparison of prognostic classification schemes for survival data.
    Statistics in Medicine 18, 1999.
    Gerds, Schumacher. Consistent estimation of the expected Brier score in general survival models with right-censored event
    times. Biometrical Journal 48, 2006. https://doi.org/10.1002/bimj.200610301

    See Also
    --------
    summary : Takes the weighted predictions.

    Examples
    --------
    >>> outcomes = censoring_weights([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0], horizon=3.5)
    >>> outcomes.unknown, outcomes.outcome.tolist(), outcomes.weights.round(9).tolist()
    (1, [1, 0, 1, 0], [1.0, 0.0, 1.5, 1.5])
    """
    times, happened = _follow_up(time, event)
    if not (options.is_number(horizon) and 0 < horizon < np.inf):
        raise InputError(f"horizon must be a time above 0, not {horizon!r}")
    if times.max() < horizon:
        raise InputError(
            f"nobody was followed to the horizon {horizon:g}; the longest follow-up is {times.max():g}: choose an earlier horizon"
        )
    is_known = (happened & (times <= horizon)) | (times >= horizon)
    outcome = (happened & (times <= horizon)).astype(np.intp)
    weights = np.zeros(len(times))
    for name, rows in _groups(by, len(times)):
        steps, survival = _uncensored(times[rows], happened[rows])
        until = np.minimum(times[rows], horizon)
        last_step = np.searchsorted(steps, until, "left") - 1  # the last censoring strictly before
        uncensored = np.concatenate([[1.0], survival])[last_step + 1]  # G(t-) of the notes
        without_weight = np.flatnonzero(is_known[rows] & (uncensored <= 0))
        if len(without_weight):
            raise InputError(
                f"all rows {name}are censored before some observed outcomes (first at row {rows[without_weight[0]]}); "
                "choose an earlier horizon or larger groups"
            )
        weights[rows] = np.where(is_known[rows], 1 / positive(uncensored), 0.0)
    unknown = int(np.count_nonzero(~is_known))
    return ObservedOutcomes(is_known, outcome, weights, unknown, "inverse probability of censoring, Kaplan-Meier")


def _follow_up(time: ArrayLike, event: ArrayLike) -> tuple[Float64s, NDArray[np.bool_]]:
    """Return times and events, shape (rows,); refuse times that are not above 0 and events other than 0 and 1.

    >>> _follow_up([2.0, 1.5], [0, 1])
    (array([2. , 1.5]), array([False,  True]))
    """
    times = validation.as_floats(time, "time").astype(np.float64)
    happened = validation.as_array(event, "event")
    if times.ndim != 1 or not len(times) or happened.shape != times.shape:
        raise InputError(f"time has shape {times.shape} and event {happened.shape}; give one of each per row")
    wrong = np.flatnonzero(~(np.isfinite(times) & (times > 0)))
    if len(wrong):
        others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            f"time must be finite and above 0: row {wrong[0]} is {times[wrong[0]]}{others}; leave out rows "
            "without follow-up"
        )
    if happened.dtype.kind not in "biuf" or not np.isin(happened, (0, 1)).all():
        row = next((i for i, v in enumerate(happened.tolist()) if v not in (0, 1)), 0)
        raise InputError(f"event must be 0 (censored) or 1 (happened): row {row} is {happened[row]}")
    return times, happened.astype(bool)


def _groups(by: ArrayLike | None, count: int) -> list[tuple[str, Indices]]:
    """Return ("of group NAME ", row indices) of every distinct value of `by`; without `by` one pair ("", all rows).

    >>> _groups(["b", "a", "b"], 3)
    [('of group a ', array([1])), ('of group b ', array([0, 2]))]
    """
    if by is None:
        return [("", np.arange(count))]
    labels = validation.as_array(by, "by")
    if labels.shape != (count,):
        raise InputError(f"by has shape {labels.shape} but there are {count} rows; give one group per row")
    validation.refuse_missing(labels, "by", "group")
    names, index = validation.distinct(labels, "by")
    return [(f"of group {name} ", np.flatnonzero(index == i)) for i, name in enumerate(names)]


def _uncensored(times: Float64s, happened: NDArray[np.bool_]) -> tuple[Float64s, Float64s]:
    """Compute the Kaplan-Meier estimate of P(not censored by t), for the times (n,) and events (n,) of one group.

    Returns the distinct times of censoring, ascending, and the estimate just after each: the product of 1 - censored / at risk.
    Both are empty where no row is censored.

    >>> _uncensored(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, False]))  # 1 of 3, then 1 of 1 censored
    (array([2., 4.]), array([0.66666667, 0.        ]))
    """
    steps, censored = np.unique(times[~happened], return_counts=True)
    # at risk of censoring at t: followed to t, and without an event at t itself
    followed_longer = len(times) - np.searchsorted(np.sort(times), steps, "right")
    at_risk = followed_longer + censored
    return steps, np.cumprod(1 - censored / at_risk).astype(np.float64)
