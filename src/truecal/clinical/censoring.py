"""Weights for cohorts that are not a plain sample: outcomes that are censored or missing.

Each function answers with the rows whose outcome is known, their weights, and how many were not known; nothing is dropped without
being counted, and what to do about missing outcomes has no default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import truecal as tc
from truecal import options, special
from truecal.errors import InputError
from truecal.predictions import validation
from truecal.special import positive
from truecal.types import Float64s, Indices


@dataclass(frozen=True, eq=False)
class KnownOutcomes:
    """Which rows have an outcome, what it is, and what each of them stands for.

    Attributes
    ----------
    known : (n,) whether a row's outcome is known. outcome : (n,) 0 or 1, and 0 where unknown.
    weights : (n,) what a row stands for, 0 where unknown. unknown : number of rows without an outcome.
    method : how the weights were made, in words.
    """

    known: NDArray[np.bool_]
    outcome: Indices
    weights: Float64s
    unknown: int
    method: str

    def predictions(
        self, probs: ArrayLike, *, clusters: ArrayLike | None = None, columns: Mapping[str, ArrayLike] | None = None
    ) -> tc.Predictions:
        """The rows with a known outcome as weighted Predictions; `probs`, `clusters` and `columns` are those of all rows."""
        kept = {name: values[self.known] for name, values in validation.check_columns(columns, len(self.known)).items()}
        groups = None if clusters is None else self._of_known(clusters, "clusters")
        weights = self.weights[self.known]
        weighted = None if (weights == 1).all() else weights
        return tc.Predictions.from_probs(
            self._of_known(probs, "probabilities"),
            self.outcome[self.known],
            weights=weighted,
            clusters=groups,
            columns=kept,
        )

    def _of_known(self, values: ArrayLike, what: str) -> NDArray[Any]:
        rows = validation.as_array(values, what)
        if rows.shape[:1] != self.known.shape:
            count = len(np.atleast_1d(rows))
            raise InputError(f"there are {count} {what} but {len(self.known)} outcomes; they must match row by row")
        return rows[self.known]


def censoring_weights(
    time: ArrayLike, event: ArrayLike, horizon: float, *, by: ArrayLike | None = None
) -> KnownOutcomes:
    r"""Outcomes at a time horizon from censored follow-up, by inverse-probability-of-censoring weights.

    The outcome is 1 where the event happened by the horizon, 0 where a row was followed beyond it (or to it) without, and unknown
    where follow-up ended before. With G(t) the Kaplan-Meier estimate of the probability of not being censored by t, an event at
    t stands for 1 / G(t-) rows and a row without event for 1 / G(horizon-) (Graf et al. 1999; Gerds and Schumacher 2006). Events
    precede censoring at the same time. Assumes that censoring does not depend on risk or outcome (within the groups `by`).
    The weights are taken as known.

    Parameters
    ----------
    time : end of follow-up of each row, above 0. event : whether it ended with the event. horizon : the time asked about.
    by : a group of each row (a site), within which censoring is estimated.

    >>> known = censoring_weights([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0], horizon=3.5)
    >>> known.unknown, known.outcome.tolist(), known.weights.round(9).tolist()
    (1, [1, 0, 1, 0], [1.0, 0.0, 1.5, 1.5])
    """
    times, happened = _follow_up(time, event)
    if not (options.is_number(horizon) and 0 < horizon < np.inf):
        raise InputError(f"horizon must be a time above 0, not {horizon!r}")
    if times.max() < horizon:
        raise InputError(
            f"nobody was followed to the horizon {horizon:g}; the longest follow-up is {times.max():g}: choose an earlier horizon"
        )
    known = (happened & (times <= horizon)) | (times >= horizon)
    outcome = (happened & (times <= horizon)).astype(np.intp)
    weights = np.zeros(len(times))
    for name, rows in _groups(by, len(times)):
        steps, kept = _uncensored(times[rows], happened[rows])
        until = np.minimum(times[rows], horizon)
        place = np.searchsorted(steps, until, "left") - 1  # the last censoring strictly before
        chance = np.concatenate([[1.0], kept])[place + 1]
        bad = known[rows] & (chance <= 0)
        if bad.any():
            raise InputError(
                f"everybody {name}is censored before some known outcomes (first at row {rows[np.flatnonzero(bad)[0]]}); choose an "
                "earlier horizon or larger groups"
            )
        weights[rows] = np.where(known[rows], 1 / positive(chance), 0.0)
    unknown = int(np.count_nonzero(~known))
    return KnownOutcomes(known, outcome, weights, unknown, "inverse probability of censoring, Kaplan-Meier")


def missing_outcomes(labels: ArrayLike, how: str, *, covariates: ArrayLike | None = None) -> KnownOutcomes:
    """Rows whose outcome (0 or 1) is missing (NaN or None), treated as said by `how`.

    "drop" keeps the known rows as they are: right if outcomes are missing at random altogether. "inverse-probability" gives
    each known row the weight 1 / P(known | covariates), by logistic regression on `covariates` (n,) or (n, k): right if
    missingness depends on nothing else. There is no default.

    >>> known = missing_outcomes([1, 0, np.nan, 1], "drop")
    >>> known.unknown, known.known.tolist()
    (1, [True, True, False, True])
    """
    options.choice(how, ("drop", "inverse-probability"), "how")
    given = np.asarray(validation.as_array(labels, "labels"), dtype=object)
    if given.ndim != 1:
        raise InputError(f"labels must be one-dimensional, not of shape {given.shape}")
    known = np.array([not (v is None or v != v) for v in given], bool)
    wrong = [i for i in np.flatnonzero(known) if given[i] not in (0, 1)]
    if wrong:
        raise InputError(f"outcomes must be 0, 1 or missing: row {wrong[0]} is {given[wrong[0]]}")
    if not known.any():
        raise InputError("every outcome is missing; there is nothing to judge")
    outcome = np.array([int(v) if k else 0 for v, k in zip(given, known, strict=True)], np.intp)
    unknown = int(np.count_nonzero(~known))
    if how == "drop":
        if covariates is not None:
            raise InputError("covariates are used by how='inverse-probability' only")
        return KnownOutcomes(known, outcome, known.astype(np.float64), unknown, "rows with a known outcome")
    if covariates is None:
        raise InputError("how='inverse-probability' needs covariates=, on which missingness may depend")
    x = validation.as_floats(covariates, "covariates").astype(np.float64)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != len(known) or not np.isfinite(x).all():
        raise InputError("covariates must be finite numbers, one row per outcome")
    fit = special.fit_logistic(np.column_stack([np.ones(len(x)), x]), known.astype(np.float64))
    if unknown and not fit.converged:
        raise InputError(
            "the covariates tell exactly which outcomes are missing; no weights can stand for the missing ones"
        )
    weights = np.where(known, 1 / np.where(known, fit.probs, 1.0) if unknown else 1.0, 0.0)
    return KnownOutcomes(known, outcome, weights, unknown, "inverse probability of a known outcome, logistic")


def _follow_up(time: ArrayLike, event: ArrayLike) -> tuple[Float64s, NDArray[np.bool_]]:
    times = validation.as_floats(time, "time").astype(np.float64)
    happened = validation.as_array(event, "event")
    if times.ndim != 1 or not len(times) or happened.shape != times.shape:
        raise InputError(f"time has shape {times.shape} and event {happened.shape}; give one of each per row")
    wrong = np.flatnonzero(~(np.isfinite(times) & (times > 0)))
    if len(wrong):
        others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            f"time must be finite and above 0: row {wrong[0]} is {times[wrong[0]]}{others}; a row without "
            "follow-up says nothing and must be left out"
        )
    if happened.dtype.kind not in "biuf" or not np.isin(happened, (0, 1)).all():
        row = next((i for i, v in enumerate(happened.tolist()) if v not in (0, 1)), 0)
        raise InputError(f"event must be 0 (censored) or 1 (happened): row {row} is {happened[row]}")
    return times, happened.astype(bool)


def _groups(by: ArrayLike | None, count: int) -> list[tuple[str, Indices]]:
    if by is None:
        return [("", np.arange(count))]
    labels = validation.as_array(by, "by")
    if labels.shape != (count,):
        raise InputError(f"by has shape {labels.shape} but there are {count} rows; give one group per row")
    validation.refuse_missing(labels, "by", "group")
    names, place = validation.distinct(labels, "by")
    return [(f"of group {name} ", np.flatnonzero(place == i)) for i, name in enumerate(names)]


def _uncensored(times: Float64s, happened: NDArray[np.bool_]) -> tuple[Float64s, Float64s]:
    """Kaplan-Meier of not being censored: the times of censoring, and the probability of staying beyond each."""
    steps = np.unique(times[~happened])
    order = np.sort(times)
    ended = np.sort(times[happened])
    # at risk of censoring at t: followed to t, and without an event at t itself
    at_risk = len(times) - np.searchsorted(order, steps, "left")
    at_risk = at_risk - (np.searchsorted(ended, steps, "right") - np.searchsorted(ended, steps, "left"))
    censored = np.sort(times[~happened])
    lost = np.searchsorted(censored, steps, "right") - np.searchsorted(censored, steps, "left")
    return steps, np.cumprod(1 - lost / at_risk).astype(np.float64)
