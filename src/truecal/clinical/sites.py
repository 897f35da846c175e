"""The clinical numbers site by site (or subgroup by subgroup), and how much sites differ beyond chance."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np

import truecal as tc
from truecal.clinical.cohort import Cohort
from truecal.clinical.quantity import Quantity, Scale, back, onto, student
from truecal.clinical.result import Heterogeneity, Sites
from truecal.clinical.summarise import summarise
from truecal.errors import InputError
from truecal.select import categories
from truecal.types import Float64s

_MOST = 200  # values of a column beyond which it is not a list of sites
# The numbers that are pooled, and the scale on which their estimates are nearly normal.
_POOLED: dict[str, Scale] = {"oe": "log", "intercept": "plain", "slope": "plain", "c_statistic": "logit"}


def sites_of(
    preds: tc.Predictions, cohort: Cohort, by: str | Sequence[str], level: float, rng: np.random.Generator
) -> Sites:
    """Split a cohort by the values of columns; a site without events, or with nothing but events, is refused by name."""
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns:
        raise InputError("say which column to group by, such as by='site'")
    parts = [categories(preds, name) for name in columns]
    held, place = np.unique(np.stack([index for _, index in parts]), axis=1, return_inverse=True)
    names = [", ".join(words[i] for (words, _), i in zip(parts, site, strict=True)) for site in held.T]
    if len(names) > _MOST:
        raise InputError(f"{' x '.join(columns)} has {len(names)} values; group it into at most {_MOST} first")
    results = []
    for i, name in enumerate(names):
        part = cohort.take(place == i)
        if part.units is not None and part.patients == 1:  # the site is the cluster: within it, rows are independent
            part = replace(part, units=None)
        part.refuse_one_class(f"{' x '.join(columns)} {name}")
        # the same draws for every site, and for the whole after them: no number depends on what else was asked
        results.append(summarise(part, level, deepcopy(rng)))
    spread = {
        name: heterogeneity
        for name, scale in _POOLED.items()
        if (heterogeneity := pooled([getattr(r, name) for r in results], scale, level)) is not None
    }
    return Sites(columns, tuple(names), tuple(results), spread)


def pooled(numbers: Sequence[Quantity], scale: Scale, level: float) -> Heterogeneity | None:
    """Random-effects meta-analysis of one number over sites; None where fewer than two have a standard error.

    tau^2 solves sum (x - mean)^2 / (se^2 + tau^2) = k - 1 (Paule and Mandel 1982); the mean's interval is that of Hartung and Knapp
    (2001) with k - 1 degrees of freedom, not narrower than without differences; the prediction interval is
    mean -+ t_(k-2) sqrt(tau^2 + se^2) (Higgins, Thompson and Spiegelhalter 2009; with two sites t_1).
    """
    from scipy.special import chdtrc

    kept = [n for n in numbers if n.se is not None and n.se > 0 and np.isfinite(n.value)]
    if len(kept) < 2:
        return None
    x, slope = np.array([onto(n.value, scale) for n in kept]).T
    variance = np.array([float(n.se or 0.0) for n in kept]) ** 2 * slope**2
    k = len(kept)
    tau2 = _between(x, variance)
    weight = 1 / (variance + tau2)
    mean = float(weight @ x / weight.sum())
    scatter = float(weight @ (x - mean) ** 2 / (k - 1))
    se = float(np.sqrt(max(scatter, 1.0) / weight.sum()))
    fixed = 1 / variance
    q = float(fixed @ (x - fixed @ x / fixed.sum()) ** 2)
    reach, far = student(k - 1, level) * se, student(max(k - 2, 1), level) * float(np.sqrt(tau2 + se**2))
    low, value, high = (back(v, scale) for v in (mean - reach, mean, mean + reach))
    pool = Quantity(value, low, high, level, None, "random effects, Hartung-Knapp")
    i2 = max(0.0, (q - (k - 1)) / q) if q > 0 else 0.0
    p_value = float(chdtrc(k - 1, q))
    return Heterogeneity(pool, back(mean - far, scale), back(mean + far, scale), float(np.sqrt(tau2)), i2, p_value)


def _between(x: Float64s, variance: Float64s) -> float:
    """Paule and Mandel's variance between sites, by bisection: the generalised Q falls as tau^2 grows."""

    def excess(tau2: float) -> float:
        weight = 1 / (variance + tau2)
        return float(weight @ (x - weight @ x / weight.sum()) ** 2) - (len(x) - 1)

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, float((x.max() - x.min()) ** 2) + 1e-12
    while excess(high) > 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2
