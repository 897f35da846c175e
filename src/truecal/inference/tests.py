"""Tests of calibration, their verdict, and adjustment for multiplicity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators import sweep
from truecal.estimators.base import ErrorFunction, Estimator, as_estimator
from truecal.estimators.bins import Binning
from truecal.estimators.rank_series.clusters import ClusteredSeries
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.estimators.rank_series.fit import fit_series
from truecal.estimators.rank_series.interval import series_pivot
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.profile.profile import Profile, check_profile
from truecal.resampling import cells, draws, units
from truecal.table import Frame, Tabular
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# Verdict: the result of a test; and the rows that are tested

CALIBRATED = "perfectly calibrated"


@dataclass(frozen=True, repr=False)
class Verdict(Tabular):
    """Result of a test of a hypothesis: statistic and p-value.

    Attributes
    ----------
    statistic : float or ndarray of shape (batch,)
        The test statistic.
    p_value : float or ndarray of shape (batch,)
        The p-value, never 0.
    hypothesis : str
        What a small p-value is evidence against.
    method : str
        The test, in words.

    See Also
    --------
    rank_series_test : The default test of calibration.
    below : The test that an error is at least a threshold.
    """

    statistic: float | Float64s
    p_value: float | Float64s
    hypothesis: str
    method: str

    def frame(self) -> Frame:
        """Tabulate the test: one row per dataset.

        >>> Verdict(1.5, 0.2, "calibration", "test").frame()[0]
        {'method': 'test', 'hypothesis': 'calibration', 'statistic': 1.5, 'p_value': 0.2}
        """
        p = np.atleast_1d(self.p_value)
        texts = {"method": [self.method] * len(p), "hypothesis": [self.hypothesis] * len(p)}
        return Frame({**texts, "statistic": np.atleast_1d(self.statistic), "p_value": p})

    def __str__(self) -> str:
        """Write method, statistic, p-value and hypothesis; of a batch the method and the number of datasets."""
        if np.ndim(self.p_value):
            return f"{self.method}: {np.size(self.p_value)} datasets"
        p = digits.p_equation(float(self.p_value))
        return f"{self.method}: statistic {float(self.statistic):.4g}, {p} (hypothesis: {self.hypothesis})"


def verdict_of(
    profile: Profile, statistic: Float64s, p: Float64s, method: str, hypothesis: str = CALIBRATED
) -> Verdict:
    """Make the verdict of a test, with plain numbers for a single dataset and arrays for a batch.

    >>> verdict_of(Profile.from_arrays([0.5], [1]), np.array([1.5]), np.array([0.2]), "test").p_value
    0.2
    """
    if profile.single:
        return Verdict(float(statistic[0]), float(p[0]), hypothesis, method)
    return Verdict(statistic, p, hypothesis, method)


def redraw_test(
    profile: Profile, statistic: draws.Statistic, *, method: str, resamples: int, rng: int | np.random.Generator
) -> Verdict:
    """Test calibration by a statistic: redraw outcomes from the scores, or flip residuals of whole units if rows have units.

    `statistic` is a function from a profile of cells with redrawn outcomes (batch, cells) to (batch,); large values reject.
    """
    check_profile(profile)
    if profile.units is None:
        profile.refuse_dependent("test one class at a time, with tc.OneClass(name)")
        redrawn = draws.redraw_test(profile, statistic, resamples=resamples, rng=rng)
    else:
        redrawn = units.sign_flip_test(profile, statistic, resamples=resamples, rng=rng)
    return verdict_of(profile, redrawn.statistic, redrawn.p_value, method)


# ----------------------------------------------------------------------------------------------------
# The two classical tests of calibration: Spiegelhalter's z and Hosmer and Lemeshow's chi-square


def spiegelhalter(profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> Verdict:
    r"""Test calibration by Spiegelhalter's z: whether the Brier score is that of a calibrated model.

    Parameters
    ----------
    profile : Profile
        Sorted scores and outcomes of one dataset or of a batch; rows may belong to units.
    resamples : int, default 999
        Largest number of redraws.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.

    Returns
    -------
    Verdict
        Statistic and p-value of perfect calibration.

    Notes
    -----
    .. math:: z = \frac{\sum_i (y_i - c_i)(1 - 2 c_i)}{\sqrt{\sum_i (1 - 2 c_i)^2 \, c_i (1 - c_i)}}

    two-sided. Positive: the Brier score is larger than that of a calibrated model. Errors at scores near 1/2, and errors that
    cancel in the sum, are not detected. Outcomes redrawn from the scores give p-values that are right for the skewed scores of a
    good classifier as well; the textbook distribution is normal.

    References
    ----------
    Spiegelhalter, D. J. (1986). Probabilistic prediction in patient management and clinical trials. Statistics in Medicine 5,
    421-433. doi:10.1002/sim.4780050506

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.9] * 50, [1] * 35 + [0] * 15)  # 15 zeros where 5 are expected
    >>> verdict = tc.inference.spiegelhalter(profile)
    >>> round(verdict.statistic, 3), verdict.p_value
    (4.714, 0.001)
    """
    method = "Spiegelhalter's test"
    verdict = redraw_test(profile, lambda cells: np.abs(_z(cells)), method=method, resamples=resamples, rng=rng)
    z = np.concatenate([_z(cells.collapse(part)) for _, part in cells.share_scores(profile)])
    return replace(verdict, statistic=float(z[0]) if profile.single else z)


def hosmer_lemeshow(
    profile: Profile, *, bins: int = 10, resamples: int = 999, rng: int | np.random.Generator = 0
) -> Verdict:
    r"""Test calibration by Hosmer and Lemeshow's chi-square on bins of equal mass.

    Parameters
    ----------
    profile : Profile
        Sorted scores and outcomes of one dataset or of a batch; rows may belong to units.
    bins : int, default 10
        Number of bins.
    resamples : int, default 999
        Largest number of redraws.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.

    Returns
    -------
    Verdict
        Statistic and p-value of perfect calibration.

    Notes
    -----
    With O_k ones and E_k = sum of scores among n_k rows of bin k,

    .. math:: H = \sum_k \frac{(O_k - E_k)^2}{E_k (1 - E_k / n_k)}

    The scores were not fitted to these outcomes, so under calibration H is close to chi-square with as many degrees of freedom
    as there are bins (not bins - 2, which is right only for a logistic regression judged on its own training rows). The p-value
    is that of redrawn outcomes, which holds for small bins too.

    References
    ----------
    Hosmer, D. W. and Lemeshow, S. (1980). Goodness of fit tests for the multiple logistic regression model. Communications in
    Statistics: Theory and Methods 9, 1043-1069. doi:10.1080/03610928008827941

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.2] * 20 + [0.7] * 20, [1] * 8 + [0] * 12 + [1] * 14 + [0] * 6)
    >>> verdict = tc.inference.hosmer_lemeshow(profile, bins=2)  # (8 - 4)^2 / 3.2 + 0
    >>> round(verdict.statistic, 6)
    5.0
    """
    Binning(bins, "mass").check()
    method = f"Hosmer-Lemeshow test, {bins} bins"
    return redraw_test(profile, partial(_chi_square, bins=bins), method=method, resamples=resamples, rng=rng)


def _z(cells: Profile) -> Float64s:
    """Compute Spiegelhalter's z for each dataset of cells, shape (batch,).

    sum n (y - c) (1 - 2 c) / sqrt(sum n (1 - 2 c)^2 c (1 - c)) over cells of n rows with mean outcome y. Scores of 0, 1/2 and 1
    only give no variance: z is then 0, or infinite if an outcome contradicts a score of 0 or 1.

    >>> cells = Profile(np.array([[0.25]]), np.array([[0.5]]), np.array([[16.0]]))
    >>> _z(cells).round(4)  # 4 x 0.5 / sqrt(16 x 0.25 x 0.1875)
    array([2.3094])
    """
    assert cells.weights is not None
    count, score = cells.weights[0], cells.scores[0].astype(np.float64)
    slope = 1 - 2 * score
    deviation = float(np.sqrt((count * slope**2 * score * (1 - score)).sum()))
    sums = ((cells.outcomes - score) * count * slope).sum(axis=1)
    if deviation > 0:
        return sums / deviation
    # scores of 0, 1/2 and 1 only: the statistic has no variance, and an unexpected outcome at 0 or 1 rejects
    return np.where(np.abs(sums) > 1e-12, np.inf, 0.0)


def _chi_square(cells: Profile, bins: int) -> Float64s:
    """Compute the Hosmer-Lemeshow statistic on `bins` bins of equal mass for each dataset of cells, shape (batch,).

    Infinite if an outcome is unexpected in a bin whose scores are all 0 or all 1.

    >>> cells = Profile(np.array([[0.5]]), np.array([[1.0]]), np.array([[4.0]]))
    >>> _chi_square(cells, 1)  # (4 - 2)^2 / (4 x 0.25)
    array([4.])
    """
    assert cells.weights is not None
    one_dataset = Profile(cells.scores, cells.outcomes[:1], cells.weights)
    start = np.unique(one_dataset.mass_cut(bins).below[0])[:-1]  # the first cell of every bin that holds data
    count = np.add.reduceat(cells.weights[0], start)
    expected = np.add.reduceat(cells.weights[0] * cells.scores[0], start)
    residual = np.add.reduceat((cells.outcomes - cells.scores) * cells.weights, start, axis=1)
    variance = expected * (1 - expected / count)
    certain = variance <= 1e-12 * count
    terms = residual**2 / np.where(certain, 1.0, variance)
    # an unexpected outcome in a bin of scores 0 or 1 rejects
    return np.where(certain, np.where(np.abs(residual) > 1e-9, np.inf, 0.0), terms).sum(axis=1)


# ----------------------------------------------------------------------------------------------------
# Tests of calibration whose statistic is an estimate of the calibration error


def consistency_test(
    profile: Profile,
    estimator: Estimator | ErrorFunction | None = None,
    *,
    resamples: int = 999,
    rng: int | np.random.Generator = 0,
) -> Verdict:
    """Test calibration by any estimate: whether it is larger than that of a calibrated model with these scores.

    Parameters
    ----------
    profile : Profile
        Sorted scores and outcomes of one dataset or of a batch; rows may belong to units.
    estimator : Estimator or callable, default None
        The statistic; None means :class:`SweepECE`.
    resamples : int, default 999
        Largest number of redraws.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.

    Returns
    -------
    Verdict
        Statistic and p-value of perfect calibration.

    Notes
    -----
    Consistency resampling: the bias of the estimator does not matter, because redrawn outcomes have it too.

    References
    ----------
    Bröcker, J. and Smith, L. A. (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting 22, 651-661.
    doi:10.1175/WAF993.1

    Vaicenavicius, J. et al. (2019). Evaluating model calibration in classification. AISTATS 2019. arXiv:1902.06977

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> c = np.random.default_rng(0).random(500)
    >>> sharp = tc.profile.Profile.from_arrays(c, c > 0.5)  # outcomes far surer than the scores
    >>> tc.inference.consistency_test(sharp, tc.BinnedECE(bins=10)).p_value
    0.001
    """
    chosen = sweep.SweepECE() if estimator is None else as_estimator(estimator)
    method = f"consistency resampling of {type(chosen).__name__}"
    return redraw_test(profile, chosen.values, method=method, resamples=resamples, rng=rng)


# ----------------------------------------------------------------------------------------------------
# Kuiper and Kolmogorov-Smirnov tests on cumulative differences: calibration without bins


def kuiper(
    profile: Profile,
    *,
    statistic: Literal["kuiper", "ks"] = "kuiper",
    resamples: int = 999,
    rng: int | np.random.Generator = 0,
) -> Verdict:
    r"""Test calibration by cumulative differences of outcomes and scores, without bins.

    Parameters
    ----------
    profile : Profile
        Sorted scores and outcomes of one dataset or of a batch; rows may belong to units.
    statistic : {"kuiper", "ks"}, default "kuiper"
        Kuiper's statistic, or that of Kolmogorov and Smirnov.
    resamples : int, default 999
        Largest number of redraws.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.

    Returns
    -------
    Verdict
        Statistic and p-value of perfect calibration.

    Notes
    -----
    With F_k the sum of (y - c) over the k lowest scores, F_0 = 0, and :math:`\sigma^2 = \sum c (1 - c)`, Kuiper's statistic is
    (max F - min F) / sigma, that of Kolmogorov and Smirnov max |F| / sigma. Tied scores are added together, so their order
    cannot matter.

    References
    ----------
    Arrieta-Ibarra, I., Gujral, P., Tannen, J., Tygert, M. and Xu, C. (2022). Metrics of calibration for probabilistic
    predictions. Journal of Machine Learning Research 23, 1-54. arXiv:2205.09680

    Examples
    --------
    >>> import truecal as tc
    >>> profile = tc.profile.Profile.from_arrays([0.2, 0.5, 0.5, 0.9], [0, 1, 0, 1])
    >>> verdict = tc.inference.kuiper(profile)  # F = 0, -0.2, -0.2, -0.1; sigma^2 = 0.16 + 0.25 + 0.25 + 0.09
    >>> round(verdict.statistic, 4)
    0.2309
    """
    options.choice(statistic, ("kuiper", "ks"), "statistic")
    name = "Kuiper" if statistic == "kuiper" else "Kolmogorov-Smirnov"
    method, cumulative = f"{name} test on cumulative differences", partial(_cumulative_statistic, name=statistic)
    return redraw_test(profile, cumulative, method=method, resamples=resamples, rng=rng)


def _cumulative_statistic(cells: Profile, name: Literal["kuiper", "ks"]) -> Float64s:
    """Compute the cumulative statistic of each dataset of cells, shape (batch,).

    With F the cumulative sums of y - c over rows, 0 first, and sigma^2 = sum c (1 - c): (max F - min F) / sigma for "kuiper", max
    |F| / sigma for "ks"; infinite if all scores are 0 or 1 and an outcome contradicts one.

    >>> cells = Profile(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]]), np.ones((1, 2)))
    >>> _cumulative_statistic(cells, "ks").round(4), _cumulative_statistic(cells, "kuiper").round(4)  # 0.5 / sqrt(0.5)
    (array([0.7071]), array([0.7071]))
    """
    assert cells.weights is not None
    cumulative = np.cumsum((cells.outcomes - cells.scores) * cells.weights, axis=1)
    score = cells.scores[0].astype(np.float64)
    sigma = float(np.sqrt((cells.weights[0] * score * (1 - score)).sum()))
    high, low = np.maximum(cumulative.max(axis=1), 0.0), np.minimum(cumulative.min(axis=1), 0.0)
    distance: Float64s = high - low if name == "kuiper" else np.maximum(high, -low)
    return distance / sigma if sigma > 0 else np.where(distance > 1e-12, np.inf, 0.0)


# ----------------------------------------------------------------------------------------------------
# Tests by the rank series, of independent or clustered rows: of calibration, and whether an error is below a threshold


@takes_arrays
def rank_series_test(
    data: Profile | Predictions,
    *,
    lens: Lens | None = None,
    resamples: int = 999,
    rng: int | np.random.Generator = 0,
) -> Verdict:
    r"""Test perfect calibration by the rank series: a smooth test that adapts to how rough the miscalibration is.

    Parameters
    ----------
    data : Profile or Predictions
        What is tested; also labels and probabilities, `rank_series_test(y_true, y_prob)`.
    lens : Lens, default None
        What of Predictions is judged, as in :func:`calibration_error`.
    resamples : int, default 999
        Largest number of redraws.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.

    Returns
    -------
    Verdict
        Statistic and p-value of perfect calibration.

    Raises
    ------
    InputError
        A lens is given with a Profile, or several classes with clusters.

    Notes
    -----
    .. math:: S = \max_k \frac{\sum_{j \le k} (\beta_j^2 - V_{jj})}{\sqrt{2 \, \lVert V_{1..k} \rVert_F^2}}

    with the coefficients beta of :class:`RankSeries` and V their covariance under calibration. The p-value redraws outcomes
    from the scores, and flips the signs of whole clusters where rows belong to clusters.

    References
    ----------
    Neyman, J. (1937). "Smooth test" for goodness of fit. Skandinavisk Aktuarietidskrift 20, 149-199.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> tc.inference.rank_series_test(tc.profile.Profile.from_arrays(c, rng.random(1000) < c**1.3)).p_value
    0.001
    """
    profile = tested_profile(data, lens)
    if profile.units is not None:
        tested = ClusteredSeries.of(profile).test(resamples=resamples, rng=rng)
        return Verdict(*tested, CALIBRATED, "rank-series test, clustered")
    redrawn = RankSeries().test(profile, resamples=resamples, rng=rng)
    return verdict_of(profile, redrawn.statistic, redrawn.p_value, "rank-series test")


@takes_arrays
def below(data: Profile | Predictions, threshold: float, *, lens: Lens | None = None) -> Verdict:
    r"""Test whether the root-mean-square calibration error is at least a threshold.

    Parameters
    ----------
    data : Profile or Predictions
        What is tested; also labels and probabilities, `below(y_true, y_prob, threshold=0.05)`. Clusters of Predictions are
        taken into account.
    threshold : float
        The error that the hypothesis states, strictly between 0 and 1.
    lens : Lens, default None
        What of Predictions is judged, as in :func:`calibration_error`.

    Returns
    -------
    Verdict
        A small p-value is evidence that the error is below the threshold.

    Raises
    ------
    InputError
        The threshold is out of range, a lens is given with a Profile, or several classes with clusters.

    Notes
    -----
    A test that finds no miscalibration proves nothing; this one does (an equivalence test). With X the rank-series estimate
    of the squared error with all its terms, and Var(X) = a + b t + e t^2 at a true t,

    .. math:: p = \Phi\big( (X - t) / \sqrt{Var(X)} \big), \quad t = \mathrm{threshold}^2.

    p <= alpha exactly when the one-sided upper limit at 1 - alpha is below the threshold. The statistic is the standardised
    difference.

    See Also
    --------
    verify : A verdict about a tolerance, with exact limits where rows are few.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(20_000)
    >>> profile = tc.profile.Profile.from_arrays(c, rng.random(20_000) < c)
    >>> tc.inference.below(profile, 0.05).p_value < 0.001, tc.inference.below(profile, 0.002).p_value > 0.05
    (True, True)
    """
    options.between(threshold, "threshold", 0, 1)
    threshold = float(threshold)  # a longdouble has 80 bits, which special functions do not accept
    profile = tested_profile(data, lens)
    pivot = series_pivot(next(fit_series(profile))) if profile.units is None else ClusteredSeries.of(profile).pivot
    p, z = pivot.p_value(threshold), pivot.z_score(threshold)
    hypothesis = f"the error is at least {threshold:g}"
    return verdict_of(profile, z, p, "rank-series test of equivalence", hypothesis)


def tested_profile(data: Profile | Predictions, lens: Lens | None) -> Profile:
    """Return the sorted rows to test: a profile as it is, or the scores and outcomes that a lens takes from Predictions.

    A batch of profiles for a lens of several classes. Raises InputError for a lens with a profile, several classes with clusters,
    and a lens with several pairs per row.
    """
    check_predictions(data, Profile, name="data")
    if isinstance(data, Profile):
        if lens is not None:
            raise InputError("a lens needs Predictions: a Profile holds the scores that a lens selected")
        return data
    check_lens(lens)
    lens = default_lens(data) if lens is None else lens
    if lens.shares(data) is not None:
        if data.clusters is not None:
            raise InputError("with clusters, test one class at a time: tc.OneClass(name)")
        return lens(data)
    sample = lens.sample(data)
    sample.refuse_pooled()
    return sample.profile


# ----------------------------------------------------------------------------------------------------
# Many statements at once: p-values that keep the chance of any false one below alpha


def holm(p: Float64s) -> Float64s:
    """Adjust p-values of several tests by Holm's method.

    Parameters
    ----------
    p : array-like of shape (k,)
        The p-values.

    Returns
    -------
    ndarray of shape (k,)
        Adjusted p-values: sorted upwards, the i-th of k is multiplied by k - i + 1 and is not below its precursor.

    Raises
    ------
    InputError
        A value is not in [0, 1].

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> tc.inference.holm(np.array([0.04, 0.01, 0.03]))
    array([0.06, 0.03, 0.06])
    """
    p = validation.as_floats(p, "p-values").astype(np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError("p-values must be a list of numbers in [0, 1]")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
