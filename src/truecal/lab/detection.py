"""Coverage of intervals, type I error and power of tests, and the number of rows that detect an error."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import ErrorFunction, Estimator, as_estimator
from truecal.lab.curves import Power
from truecal.lab.distributions import Array, Uniform
from truecal.lab.trials import Bounds, Cell, PValue, Run, Value, simulate
from truecal.lab.worlds import Seed, World

MAX_ROWS = 1_000_000  # by choice: of a dataset simulated for its power
REDRAWN_CURVES = 1000  # by choice: for the interval of the n that reaches a power; its limits are stable to about 1 %
NULL_PER_REAL = (
    4  # calibrated datasets per real one; derived: the critical value then adds little to the noise of the power
)


@dataclass(frozen=True)
class Rate:
    """Share of m simulated datasets, `hits` in number, with its Monte-Carlo standard error."""

    hits: int
    m: int

    @property
    def rate(self) -> float:
        """Share of the simulated datasets, hits / m.

        >>> Rate(5, 100).rate
        0.05
        """
        return self.hits / self.m

    @property
    def standard_error(self) -> float:
        """Monte-Carlo standard error sqrt(p (1 - p) / m), with p = (hits + 1) / (m + 2), which is not 0 for 0 or m hits.

        >>> round(Rate(0, 98).standard_error, 5)  # sqrt(0.01 x 0.99 / 98)
        0.01005
        """
        p = (self.hits + 1) / (self.m + 2)
        return sqrt(p * (1 - p) / self.m)

    def __float__(self) -> float:
        """Return the rate.

        >>> float(Rate(5, 100))
        0.05
        """
        return self.rate


@dataclass(frozen=True)
class Coverage(Rate):
    """Hold the share of simulated intervals that contain the true error.

    Parameters
    ----------
    hits : int
        Intervals that contain the true error.
    m : int
        Simulated datasets.
    level : float
        Level of the intervals.
    truth : float
        True calibration error.
    width : float
        Mean width of the intervals.

    See Also
    --------
    coverage : Simulate the coverage.

    Examples
    --------
    >>> import truecal as tc
    >>> result = tc.lab.Coverage(hits=90, m=100, level=0.9, truth=0.05, width=0.02)
    >>> result.rate, round(result.standard_error, 3)
    (0.9, 0.031)
    """

    level: float
    truth: float
    width: float


@dataclass(frozen=True)
class Detection(Rate):
    """Hold the share of simulated datasets in which miscalibration was detected.

    Parameters
    ----------
    hits : int
        Datasets with a detection.
    m : int
        Simulated datasets.
    alpha : float
        Type I error of the test.
    critical : float, default None
        Critical value of the estimate; None where p-values decide.
    critical_share : float, default 0.0
        Standard error of the rate due to the simulated critical value.

    See Also
    --------
    power, power_of_test, type_one : Simulate the share.

    Examples
    --------
    >>> import truecal as tc
    >>> result = tc.lab.Detection(hits=80, m=100, alpha=0.05)
    >>> result.rate, round(result.standard_error, 3)
    (0.8, 0.04)
    """

    alpha: float
    critical: float | None = None
    critical_share: float = 0.0

    @property
    def standard_error(self) -> float:
        """Monte-Carlo standard error of the rate: the root of the sum of squares of the binomial one and `critical_share`.

        >>> Detection(0, 98, 0.05, critical_share=1.0).standard_error == (Rate(0, 98).standard_error ** 2 + 1) ** 0.5
        True
        """
        return sqrt(super().standard_error ** 2 + self.critical_share**2)


def detect(calibrated: Array, real: Array, alpha: float) -> Detection:
    """Count the estimates `real` (m,) above the critical value, the (1 - alpha) quantile of those `calibrated` (any number).

    The quantile is the next larger of the values around it. `critical_share` of the result is half the difference of the rates at
    the quantiles one standard error of their level below and above.

    >>> detect(np.arange(100.0), np.arange(50.0, 150.0), 0.05).rate
    0.54
    """
    slack = sqrt(alpha * (1 - alpha) / calibrated.size)
    levels = np.clip([1 - alpha - slack, 1 - alpha, 1 - alpha + slack], 0.0, 1.0)
    low, critical, high = np.quantile(calibrated, levels, method="higher")
    uncertain = float(np.mean(real > low) - np.mean(real > high)) / 2
    return Detection(int(np.sum(real > critical)), real.size, alpha, float(critical), uncertain)


def coverage(
    estimator: Estimator | ErrorFunction,
    world: World,
    *,
    n: int = 1000,
    m: int = 1000,
    level: float = 0.9,
    rng: Seed = 0,
    run: Run | None = None,
) -> Coverage:
    """Simulate how often the interval of an estimator contains the true error.

    Parameters
    ----------
    estimator : Estimator or callable
        An estimator, or a function of scores and outcomes.
    world : World
        The world that datasets are drawn from.
    n : int, default 1000
        Rows of each dataset.
    m : int, default 1000
        Number of datasets.
    level : float, default 0.9
        Level of the interval.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    Coverage
        Share of intervals that contain the true error, and their mean width.

    Raises
    ------
    InputError
        If the level lies outside (0, 1), or `world` is no World.

    Notes
    -----
    The interval is the closed form of the estimator where it has one, else it is by resampling. The true error is
    that of the world in the norm of the estimator, also for estimators whose interval is for the error of their bins.

    Examples
    --------
    >>> import truecal as tc
    >>> result = tc.lab.coverage(tc.RankSeries(), tc.lab.PAPER_WORLDS["resnet110_c100"], n=1000, m=100)
    >>> 0.8 < result.rate <= 1.0
    True
    """
    options.level(level)
    estimator = as_estimator(estimator)
    options.instance(world, World, "world", "a World, such as tc.lab.PAPER_WORLDS['resnet110_c10']")
    ((bounds,),) = simulate([Cell("world", world, n, m, (Bounds(estimator, level),))], rng=rng, run=run)
    truth = world.true_error(estimator.norm)
    return Coverage(int(contains(bounds, truth).sum()), m, level, truth, float(np.mean(bounds[2] - bounds[1])))


def contains(bounds: Array, truth: float) -> npt.NDArray[np.bool_]:
    """Decide which intervals contain the true error, to within 1e-9, shape (m,).

    `bounds`, shape (3, m), has rows of estimates, lower limits and upper limits.

    >>> contains(np.array([[0.1, 0.2], [0.05, 0.15], [0.15, 0.25]]), 0.1)
    array([ True, False])
    """
    return np.asarray((bounds[1] <= truth + 1e-9) & (truth - 1e-9 <= bounds[2]))


def type_one(
    estimator: Estimator | ErrorFunction,
    world: World,
    *,
    n: int = 1000,
    m: int = 1000,
    alpha: float = 0.05,
    resamples: int = 199,
    rng: Seed = 0,
    run: Run | None = None,
) -> Detection:
    """Simulate the type I error of an estimator's test of calibration.

    Parameters
    ----------
    estimator : Estimator or callable
        An estimator with a test, or a function of scores and outcomes.
    world : World
        Its shown scores are used, with outcomes redrawn from them.
    n : int, default 1000
        Rows of each dataset.
    m : int, default 1000
        Number of datasets.
    alpha : float, default 0.05
        Nominal type I error.
    resamples : int, default 199
        Resamples of a test by simulation.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    Detection
        Share of calibrated datasets with p <= alpha.

    Raises
    ------
    InputError
        If alpha lies outside (0, 1), or p-values of so many resamples cannot be as small as alpha.

    Examples
    --------
    >>> import truecal as tc
    >>> result = tc.lab.type_one(tc.RankSeries(), tc.lab.World(tc.lab.Uniform()), n=200, m=200)
    >>> result.rate < 0.05 + 3 * result.standard_error
    True
    """
    null = world.with_calibrated_outcomes()
    return power_of_test(estimator, null, n=n, m=m, alpha=alpha, resamples=resamples, rng=rng, run=run)


def power_of_test(
    estimator: Estimator | ErrorFunction,
    world: World,
    *,
    n: int = 1000,
    m: int = 1000,
    alpha: float = 0.05,
    resamples: int = 199,
    rng: Seed = 0,
    run: Run | None = None,
) -> Detection:
    """Simulate the power of an estimator's own test of calibration.

    Parameters
    ----------
    estimator : Estimator or callable
        An estimator with a test, or a function of scores and outcomes.
    world : World
        The world that datasets are drawn from.
    n : int, default 1000
        Rows of each dataset.
    m : int, default 1000
        Number of datasets.
    alpha : float, default 0.05
        Type I error.
    resamples : int, default 199
        Resamples of a test by simulation.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    Detection
        Share of datasets with p <= alpha.

    Raises
    ------
    InputError
        If alpha lies outside (0, 1), or p-values of so many resamples cannot be as small as alpha.

    Notes
    -----
    The test has only the data, unlike `power`, whose critical value comes from the world.

    Examples
    --------
    >>> import truecal as tc
    >>> world = tc.lab.World(tc.lab.Uniform(), tc.lab.Power(1.2))
    >>> tc.lab.power_of_test(tc.RankSeries(), world, n=1000, m=100).rate > 0.8
    True
    """
    options.between(alpha, "alpha", 0, 1)
    if (resamples + 1) * alpha < 1:
        raise InputError(f"a p-value from {resamples} resamples cannot fall below alpha={alpha}; use more")
    cell = Cell("world", world, n, m, (PValue(as_estimator(estimator), resamples),))
    ((p_values,),) = simulate([cell], rng=rng, run=run)
    return Detection(int(np.sum(p_values[0] <= alpha)), m, alpha)


def power(
    estimator: Estimator | ErrorFunction,
    world: World,
    *,
    n: int = 1000,
    m: int = 1000,
    alpha: float = 0.05,
    rng: Seed = 0,
    run: Run | None = None,
) -> Detection:
    """Simulate the power of a test with the estimate as its statistic.

    Parameters
    ----------
    estimator : Estimator or callable
        An estimator, or a function of scores and outcomes.
    world : World
        The world that datasets are drawn from.
    n : int, default 1000
        Rows of each dataset.
    m : int, default 1000
        Number of datasets.
    alpha : float, default 0.05
        Type I error.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    Detection
        Share of datasets whose estimate exceeds the critical value.

    Raises
    ------
    InputError
        If alpha lies outside (0, 1).

    Notes
    -----
    The critical value is the (1 - alpha) quantile of the estimates over 4 m datasets with the same scores and
    calibrated outcomes [1]_. `power_of_test` uses the estimator's own test instead.

    References
    ----------
    .. [1] R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating Bias in Calibration Error Estimation.
           AISTATS, section 5.4.

    Examples
    --------
    >>> import truecal as tc
    >>> world = tc.lab.World(tc.lab.Uniform(), tc.lab.Power(1.2))
    >>> tc.lab.power(tc.RankSeries(), world, n=1000, m=200).rate > 0.7
    True
    """
    options.between(alpha, "alpha", 0, 1)
    question = (Value(as_estimator(estimator)),)
    null = world.with_calibrated_outcomes()
    cells = [Cell("calibrated", null, n, NULL_PER_REAL * m, question), Cell("world", world, n, m, question)]
    (calibrated,), (real,) = simulate(cells, rng=rng, run=run)
    return detect(calibrated[0], real[0], alpha)


@dataclass(frozen=True)
class SamplesNeeded:
    """Hold the number of rows that reach a given power, with an interval for the Monte-Carlo error.

    Parameters
    ----------
    n : int
        Rows at which the curve of powers reaches the target.
    low : int
        Lower limit of n at level 95 %.
    high : int
        Upper limit of n at level 95 %.
    target : float
        The power to reach.
    error : float
        The true calibration error to detect.
    tried : dict of int to Detection
        Simulated powers by n.
    curve : dict of int to float
        Non-decreasing curve through them, by n.

    Notes
    -----
    For the interval, powers are redrawn with their standard errors, and each redrawn curve is solved for n.

    See Also
    --------
    samples_needed : Simulate the number of rows.

    Examples
    --------
    >>> import truecal as tc
    >>> power = tc.lab.Detection(hits=80, m=100, alpha=0.05)
    >>> needed = tc.lab.SamplesNeeded(200, 170, 230, target=0.8, error=0.1, tried={200: power}, curve={200: 0.8})
    >>> needed.low <= needed.n <= needed.high
    True
    """

    n: int
    low: int
    high: int
    target: float
    error: float
    tried: dict[int, Detection]
    curve: dict[int, float]

    def __str__(self) -> str:
        """Write n, the error, the target, and the limits of n.

        >>> print(SamplesNeeded(1200, 1100, 1300, 0.9, 0.05, {}, {}))
        about n = 1,200 rows detect an error of 0.05 with probability 0.9; simulation error: 1,100 to 1,300 rows (95%)
        """
        return (
            f"about n = {self.n:,} rows detect an error of {self.error:g} with probability {self.target:g}; simulation error: "
            f"{self.low:,} to {self.high:,} rows (95%)"
        )


def samples_needed(
    estimator: Estimator | ErrorFunction,
    *,
    error: float = 0.02,
    world: World | None = None,
    target: float = 0.8,
    alpha: float = 0.05,
    m: int = 400,
    rng: Seed = 0,
    run: Run | None = None,
) -> SamplesNeeded:
    """Simulate how many rows detect a calibration error of a given size with a given power.

    Parameters
    ----------
    estimator : Estimator or callable
        An estimator, or a function of scores and outcomes.
    error : float, default 0.02
        True calibration error to detect, in the norm of the estimator.
    world : World, default None
        Gives the scores and the shape of the miscalibration, scaled to `error`; None is uniform scores with the curve c^d.
    target : float, default 0.8
        Power to reach.
    alpha : float, default 0.05
        Type I error.
    m : int, default 400
        Datasets per simulated power.
    rng : int, Generator, SeedSequence or None, default 0
        Seed.
    run : Run, default None
        Worker processes, cache and progress; None is ``Run()``.

    Returns
    -------
    SamplesNeeded
        The number of rows with an interval, and the simulated powers.

    Raises
    ------
    InputError
        If the power is not reached with about a million rows, or the error cannot be had in this world.

    Notes
    -----
    n doubles from 64 until `power` reaches the target and is narrowed to a factor of 1.1. Powers are then made
    non-decreasing in n by isotonic regression, and n is read from that curve, linear in log n.

    Examples
    --------
    >>> import truecal as tc
    >>> needed = tc.lab.samples_needed(tc.RankSeries(), error=0.1, m=100)
    >>> 100 < needed.low <= needed.n <= needed.high < 500
    True
    """
    options.between(error, "error", 0, 1)
    options.between(target, "target", 0, 1)
    estimator = as_estimator(estimator)
    if world is None:
        world = World(Uniform(), power_curve(error, norm=estimator.norm))
    else:
        world = world.with_error(error, norm=estimator.norm)
    tried: dict[int, Detection] = {}

    with (run or Run()).with_pool() as running:

        def reached(n: int) -> bool:
            """Simulate the power at n rows, add it to `tried`, and return whether it is at least the target."""
            tried[n] = power(estimator, world, n=n, m=m, alpha=alpha, rng=rng, run=running)
            return tried[n].rate >= target

        low, high = 0, 64
        while not reached(high):
            if high >= MAX_ROWS:
                raise InputError(
                    f"an error of {error:g} needs more than {high:,} rows for power {target:g}; "
                    "choose a larger error or a lower power"
                )
            low, high = high, 2 * high
        while low and high > 1.1 * low:
            middle = round(sqrt(low * high))
            if reached(middle):
                high = middle
            else:
                low = middle
    powers = dict(sorted(tried.items()))
    sizes, rates, errors = np.array([(n, d.rate, d.standard_error) for n, d in powers.items()]).T
    curve = _fit_monotone(rates, errors)
    draws = np.random.default_rng(0).normal(rates, errors, (REDRAWN_CURVES, len(rates)))
    needed = np.array([_solve_size(sizes, _fit_monotone(drawn, errors), target) for drawn in draws])
    low_n, high_n = np.quantile(needed, [0.025, 0.975])
    n = _solve_size(sizes, curve, target)
    bounds = (round(min(low_n, n)), round(max(high_n, n)))
    return SamplesNeeded(round(n), *bounds, target, error, powers, dict(zip(powers, curve.tolist(), strict=True)))


def _fit_monotone(rates: Array, errors: Array) -> Array:
    """Fit non-decreasing powers to rates (k,), clipped to [0, 1], by least squares with weights 1 / error^2; shape (k,).

    >>> _fit_monotone(np.array([0.2, 0.6, 0.4]), np.array([0.1, 0.1, 0.1]))
    array([0.2, 0.5, 0.5])
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(np.clip(rates, 0.0, 1.0), weights=errors**-2.0).x)


def _solve_size(sizes: Array, curve: Array, target: float) -> float:
    """Solve for the n at which a curve of powers, linear in log n, reaches the target; at most the last n, at least the first.

    `sizes` (k,) ascend, `curve` (k,) are their powers, which do not decrease.

    >>> round(_solve_size(np.array([100.0, 400.0]), np.array([0.2, 0.8]), 0.5), 6)  # halfway between the logarithms
    200.0
    """
    k = int(np.searchsorted(curve, target))
    if k == 0 or k == len(curve):
        return float(sizes[min(k, len(curve) - 1)])
    part = (target - curve[k - 1]) / (curve[k] - curve[k - 1])
    return float(np.exp(np.interp(part, [0.0, 1.0], np.log(sizes[k - 1 : k + 1]))))


def power_curve(error: float, *, norm: float = 2) -> Power:
    """Solve for the curve c^d, d >= 1, with a given true error on uniform scores.

    Parameters
    ----------
    error : float
        True calibration error, at least 0.
    norm : float, default 2
        The exponent of the error.

    Returns
    -------
    Power
        The curve.

    Raises
    ------
    InputError
        If the error is negative or larger than that of d = 1000.

    Examples
    --------
    >>> import truecal as tc
    >>> curve = tc.lab.power_curve(0.02)
    >>> round(tc.lab.World(tc.lab.Uniform(), curve).true_error(), 6)
    0.02
    """
    from scipy.optimize import brentq

    options.between(error, "error", -1, 1)
    worst = World(Uniform(), Power(1000.0)).true_error(norm)
    if not 0 <= error < worst:
        raise InputError(
            f"error must be from 0 to {worst:.3f}, the largest of curves c^d on uniform scores, not {error!r}; "
            "other worlds have larger errors"
        )
    if error == 0:
        return Power(1.0)
    d = brentq(lambda d: World(Uniform(), Power(d)).true_error(norm) - error, 1.0, 1000.0, xtol=1e-10)
    return Power(float(d))
