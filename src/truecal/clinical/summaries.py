"""O/E ratio, Brier score and c-statistic of a cohort, each with an interval."""

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.clinical.quantity import Quantity, quantity, skewed
from truecal.types import Float64s


def observed_expected(cohort: Cohort, level: float) -> Quantity:
    """O/E = sum of w y / sum of w p: observed over expected number of events; below 1, risks are too high.

    The influence of a row is (y - p O/E) / mean(p); the interval is built for log O/E.
    """
    expected = cohort.mean(cohort.scores)
    if expected == 0:
        return Quantity(np.inf, 0.0, np.inf, level, None, "every risk is 0: no finite ratio")
    ratio = cohort.prevalence / expected
    spread = cohort.spread((cohort.outcomes - ratio * cohort.scores) / expected)
    return quantity(ratio, spread.se, spread.df, level=level, scale="log", method="log, influence function")


def brier_score(cohort: Cohort, level: float) -> Quantity:
    """Mean of (p - y)^2, with an interval on the logit scale.

    A score of exactly 0 (every risk was 0 or 1, and right) has no spread to build on: its upper end is the mean u for which
    so many rows without any error have probability (1 - level) / 2, (1 - u)^J, J the number of patients.
    """
    squares = (cohort.scores - cohort.outcomes) ** 2
    value = cohort.mean(squares)
    if 0 < value < 1:
        spread = cohort.spread(squares - value)
        return quantity(value, spread.se, spread.df, level=level, scale="logit", method="logit, influence function")
    reach = 1 - ((1 - level) / 2) ** (1 / cohort.patients)
    low, high = (0.0, reach) if value == 0 else (1 - reach, 1.0)
    return Quantity(value, low, high, level, None, "binomial bound")


def scaled_brier(cohort: Cohort, level: float) -> Quantity:
    """1 - Brier / (prevalence (1 - prevalence)): 1 is perfect, 0 no better than the prevalence for everyone.

    A few high risks decide it, so its interval allows for the skewness of what each patient adds (Hall 1992).
    """
    squares = (cohort.scores - cohort.outcomes) ** 2
    brier, share = cohort.mean(squares), cohort.prevalence
    spread = share * (1 - share)
    ratio = brier / spread
    if ratio == 0:
        bound = brier_score(cohort, level)
        return Quantity(1.0, 1 - bound.high / spread, 1.0, level, None, "binomial bound")
    change = ratio * (cohort.outcomes - share) ** 2 / spread - squares / spread
    noise = cohort.spread(change)
    return skewed(
        1 - ratio, noise.se, noise.df_beyond, noise.skewness, level=level, method="influence function, skewness"
    )


def c_statistic(cohort: Cohort, level: float) -> Quantity:
    """Probability that an event has a higher risk than a non-event, ties counting one half; the area under the ROC curve.

    The influence of an event is how often it outranks the non-events, that of a non-event how often events outrank it, about
    their mean and divided by their share (DeLong, DeLong and Clarke-Pearson 1988; summed over clusters: Obuchowski 1997), each
    group's variance divided by its number less one. The interval is built on the logit scale. Where the risks separate all
    events from all non-events there is no spread: the lower end is the binomial bound for the smaller of the two groups, all of
    whose members were ranked right.
    """
    share = cohort.prevalence
    placement = _placements(cohort)
    event = cohort.outcomes == 1
    value = float(cohort.weights[event] @ placement[event] / cohort.weights[event].sum())
    if 0 < value < 1:
        groups = [max(cohort.take(rows).patients, 2) for rows in (event, ~event)]
        ones, zeros = (np.sqrt(m / (m - 1)) for m in groups)
        influence = (placement - value) * np.where(event, ones / share, zeros / (1 - share))
        spread = cohort.spread(influence, 0)
        return quantity(value, spread.se, spread.df, level=level, scale="logit", method="logit, DeLong")
    fewest = min(cohort.take(event).patients, cohort.take(~event).patients)
    reach = 1 - ((1 - level) / 2) ** (1 / fewest)
    low, high = (0.0, reach) if value == 0 else (1 - reach, 1.0)
    return Quantity(value, low, high, level, None, "binomial bound")


def _placements(cohort: Cohort) -> Float64s:
    """For an event the weighted share of non-events below it, for a non-event that of events above it; ties count one half."""
    scores, place = np.unique(cohort.scores, return_inverse=True)
    event = cohort.outcomes == 1
    ones = np.bincount(place[event], cohort.weights[event], len(scores))
    zeros = np.bincount(place[~event], cohort.weights[~event], len(scores))
    below = (np.cumsum(zeros) - zeros / 2) / zeros.sum()
    above = 1 - (np.cumsum(ones) - ones / 2) / ones.sum()
    return np.where(event, below[place], above[place])
