"""`tc.clinical`: the numbers that a clinical reviewer asks for, each with an interval that counts patients."""

from collections.abc import Sequence

import numpy as np

import truecal as tc
from truecal import options
from truecal.clinical.cohort import Cohort
from truecal.clinical.result import Clinical
from truecal.clinical.sites import sites_of
from truecal.clinical.summarise import summarise
from truecal.lens import Lens
from truecal.select import Selection, check_selection


def clinical(
    preds: tc.Predictions,
    *,
    level: float = 0.95,
    lens: Lens | None = None,
    select: Selection | None = None,
    by: str | Sequence[str] | None = None,
    prevalence: float | None = None,
    rng: int | np.random.Generator = 0,
) -> Clinical:
    r"""Calibration in the large, slope, curve, discrimination and overall error, as TRIPOD+AI asks for, with intervals.

    O/E = sum y / sum p. Intercept and slope: logit P(y) = a + logit p, and logit P(y) = a' + b logit p, by maximum likelihood
    (Cox 1958). ICI, E50, E90, Emax: mean, median, 90th percentile and maximum of abs(curve - p) over the rows, the curve being a
    logistic regression on a restricted cubic spline of logit p (Austin and Steyerberg 2019). c-statistic: P(risk of an event >
    risk of a non-event), ties one half. Scaled Brier: 1 - Brier / (q (1 - q)), q the prevalence.

    Every interval is built from what each patient contributes (weights and clusters included), not from rows.

    Parameters
    ----------
    preds : with `clusters=` where patients have several rows, `weights=` where rows stand for different numbers of people.
    level : of the intervals.
    lens : what is judged; default the positive class, `OneClass("malignant")` for one diagnosis of several.
    select : which rows.
    by : a column (site, sex), or several: the same numbers for each value, with heterogeneity between them.
    prevalence : the share of events in the population, where the sample was drawn by outcome (case-control).
    rng : seed of the draws behind the intervals of ICI, E50, E90 and Emax.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(-1, 1, 2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))  # risks are too extreme
    >>> found = tc.clinical(tc.Predictions.from_probs(1 / (1 + np.exp(-z)), y))
    >>> round(found.slope.value, 2), 0.7 in found.slope, 1.0 in found.slope
    (0.7, True, False)
    """
    level = options.level(level)
    check_selection(select)
    generator = options.generator(rng)
    chosen = preds if select is None else select(preds)
    cohort = Cohort.of(chosen, lens, prevalence=prevalence)
    sites = None if by is None else sites_of(chosen, cohort, by, level, generator)
    return summarise(cohort, level, generator, sites)
