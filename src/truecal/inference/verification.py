"""`verify`: can the calibration error be promised to lie below a threshold? And the explicit bounds of Kumar et al. (2019).

With outputs s_1..s_B of probabilities p_i, true squared error E2 and an evaluation set of n rows, if every
p_i > 12/n log(2B/delta), then (appendix F)

    F.6, plug-in,  with probability 1 - 3 delta:  |estimate - E2| <= c E2 + sqrt(2 (1 + c) E2 / n log(2/delta))
                                                                     + B/(2n) log(2B/delta)
    F.9, debiased, with probability 1 - 4 delta:  |estimate - E2| <= c E2 + sqrt(2 (1 + c) E2 / n log(2/delta))
                                                                     + 3 sqrt(B)/n log(n/delta) + delta/n

where c = sqrt(3 / (n min p) log(2B/delta)). They hold for every n and distribution, and are wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import inf, isfinite, log, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.estimate import Estimate, norm_name
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.inference.conclusion import Conclusion, VerdictWord, limits, rows_to_settle
from truecal.inference.exact_limit import OutputCells, squared_errors, upper_limit
from truecal.inference.measurement import is_rejected, measure
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.table import Frame, Tabular
from truecal.types import Float64s

# ----------------------------------------------------------------------------------------------------
# The explicit bounds

BoundOf = Literal["plugin", "debiased"]
_MAX_ROWS = 1e18  # derived: beyond every dataset


def upper_bound(squared: float, *, n: float, bins: int, smallest: float, level: float, estimator: BoundOf) -> float:
    """Compute the upper confidence bound F.6 (plug-in) or F.9 (debiased) of the squared error (Kumar et al. 2019).

    `squared` is the estimate, `n` the number of rows and `smallest` the probability of the rarest of `bins` outputs. The bound is
    infinite if `n * smallest` is at most 12 log(2 bins / delta), delta = (1 - level) / 3 for the plug-in, (1 - level) / 4 else.

    >>> round(upper_bound(1e-4, n=100_000, bins=10, smallest=0.1, level=0.9, estimator="debiased"), 5)
    0.00207
    >>> upper_bound(1e-4, n=1000, bins=10, smallest=0.05, level=0.9, estimator="debiased")
    inf
    """
    delta = (1 - level) / (4 if estimator == "debiased" else 3)
    if smallest <= 12 / n * log(2 * bins / delta):
        return inf
    c = sqrt(3 / (n * smallest) * log(2 * bins / delta))
    root = sqrt(2 * (1 + c) / n * log(2 / delta))
    last = {
        "debiased": 3 * sqrt(bins) / n * log(n / delta) + delta / n,
        "plugin": bins / (2 * n) * log(2 * bins / delta),
    }[estimator]
    # E2 - squared <= c E2 + root sqrt(E2) + last is a quadratic inequality in sqrt(E2)
    constant = max(squared + last, 0.0)
    largest = (root + sqrt(root**2 + 4 * (1 - c) * constant)) / (2 * (1 - c))
    return largest**2


def _explicit_bound(error: OutputCells, *, level: float) -> float:
    """Return the smaller of the bounds F.6 and F.9, each at `level`, of the true squared error of one dataset."""
    plugin, debiased = squared_errors(error.outputs, error.counts, error.ones)
    bound = partial(upper_bound, n=error.rows, bins=len(error.outputs), smallest=float(error.shares.min()), level=level)
    return min(bound(float(plugin), estimator="plugin"), bound(float(debiased), estimator="debiased"))


def rows_needed(
    threshold: float = 0.02,
    *,
    bins: int,
    error: float = 0.0,
    smallest: float | None = None,
    level: float = 0.95,
    estimator: BoundOf = "debiased",
) -> float:
    """Compute how many rows the explicit bound needs to promise that the error of a binned model is below a threshold.

    Parameters
    ----------
    threshold : float, default 0.02
        The root-mean-square error to be promised, on the scale of probabilities.
    bins : int
        Number B of distinct outputs.
    error : float, default 0.0
        The error that will be estimated.
    smallest : float or None, default None
        Probability of the rarest output; None for 1 / bins.
    level : float, default 0.95
        Probability of a right promise.
    estimator : {"plugin", "debiased"}, default "debiased"
        Whose bound: F.6 or F.9.

    Returns
    -------
    float
        Number of rows; infinite where none is enough.

    Raises
    ------
    InputError
        For numbers outside of (0, 1).

    Notes
    -----
    The bounds use no approximation, and are wide: :func:`verify` promises with far fewer rows. The number grows with B for the
    plug-in and with sqrt(B) for the debiased estimator.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS 32. arXiv:1909.10155, appendix F.

    See Also
    --------
    verify : Promises from data.

    Examples
    --------
    >>> import truecal as tc
    >>> tc.inference.rows_needed(0.02, bins=10), tc.inference.rows_needed(0.02, bins=10, estimator="plugin")
    (547374.0, 156780.0)
    """
    options.between(threshold, "threshold", 0, 1)
    options.between(level, "level", 0, 1)
    options.bins(bins)
    if error != 0:
        options.between(error, "error", 0, 1)
    if smallest is not None:
        options.between(smallest, "smallest", 0, 1)
    rarest = 1 / bins if smallest is None else smallest
    bound = partial(upper_bound, error**2, bins=bins, smallest=rarest, level=level, estimator=estimator)
    low, high = 0.0, _MAX_ROWS
    if bound(n=high) > threshold**2:
        return inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(n=middle) <= threshold**2 else (middle, high)
    return high


# ----------------------------------------------------------------------------------------------------
# Whether the calibration error is below a threshold

Answer = Literal["promised", "supported", "exceeded", "not enough data"]
_ROWS_PER_OUTPUT = 10  # derived: the rate of so many rows has a standard error of up to 0.16
_SMOOTH = (
    "the calibration curve is smooth enough for the rank series to follow; errors finer than that are not excluded"
)
_ROWS = "rows are independent draws of the population that the statement is about"
_CLUSTERS = "clusters are independent, and many enough for a normal approximation of their means"


@dataclass(frozen=True, repr=False)
class Verification(Tabular):
    """Whether the root-mean-square calibration error can be said to lie below a threshold.

    Attributes
    ----------
    verdict : str
        "promised": below the threshold, wrong with probability at most 1 - level at any n (models of few outputs).
        "supported": below it if what `assumes` lists holds (continuous outputs, clusters or importance weights). "exceeded":
        above it, wrong with probability near 1 - level. Else "not enough data".
    threshold : float
        The error that is asked about.
    level : float
        Level of each limit.
    n : int
        Number of rows.
    lens : str
        What the scores are of, in words.
    value : float
        The estimated error.
    low : float
        One-sided lower limit of the error.
    high : float
        One-sided upper limit of the error.
    assumes : tuple of str
        What the verdict rests on.
    explicit : float or None
        The smaller of Kumar et al.'s bounds F.6 and F.9 on the error, which need no approximation; infinite where their
        condition on the rarest output fails, None for a model that is not binned.
    outputs : int or None
        Number of distinct outputs (over all classes), None for a model with continuous outputs.
    balance : float or None
        The smallest alpha for which outputs are alpha-well-balanced, 1/(alpha B) <= P(output) <= alpha/B, in this data.
    warnings : tuple of str
        What to know before quoting the numbers.

    See Also
    --------
    verify : Returns it.
    """

    verdict: Answer
    threshold: float
    level: float
    n: int
    lens: str
    value: float
    low: float
    high: float
    assumes: tuple[str, ...] = ()
    explicit: float | None = None
    outputs: int | None = None
    balance: float | None = None
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether the verdict is "promised"."""
        return self.verdict == "promised"

    @property
    def further(self) -> int | None:
        """A rough forecast of how many more rows would settle the question if the estimate is right.

        None when it is settled, or when the estimate is too close to the threshold for any number.
        """
        settled = self.verdict != "not enough data"
        return None if settled else rows_to_settle(self.value, self.low, self.high, self.threshold, self.n)

    @property
    def well_balanced(self) -> bool | None:
        """Whether the outputs are 2-well-balanced, as the theory of the debiased estimator asks."""
        return None if self.balance is None else self.balance <= 2

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, with `further`."""
        return {**super().to_dict(), "further": self.further}

    def frame(self) -> Frame:
        """Return one row: verdict, threshold, level, value (the error), low, high, n, lens, and `assumes` as one text."""
        names = ("verdict", "threshold", "level", "value", "low", "high", "n", "lens")
        return Frame.from_records([{n: getattr(self, n) for n in names} | {"assumes": "; ".join(self.assumes)}])

    def conclusion(self, *, assume_smooth: bool = False) -> Conclusion:
        """Return the verdict as a gate states it.

        Parameters
        ----------
        assume_smooth : bool, default False
            Whether a gate may rest on "supported": that the calibration curve is smooth.

        Returns
        -------
        Conclusion
            "within" for "promised" and "supported", "outside" for "exceeded", else "not enough data". With "supported" its
            `assumption` is "smooth", unless that may be assumed.
        """
        words: dict[str, VerdictWord] = {"promised": "within", "supported": "within", "exceeded": "outside"}
        return Conclusion(
            verdict=words.get(self.verdict, "not enough data"),
            tolerance=self.threshold,
            level=self.level,
            metric=norm_name(2),
            lens=self.lens,
            n=self.n,
            value=self.value,
            low=self.low,
            high=self.high,
            assumption="smooth" if self.verdict == "supported" and not assume_smooth else None,
            warnings=self.warnings,
        )

    def __str__(self) -> str:
        """Write the verdict, then estimate and limits, assumptions, explicit bound, number of outputs and further
        rows, a line each.
        """
        what = {
            "promised": f"promised: the calibration error is below {self.threshold:g}",
            "supported": f"supported under assumptions: the calibration error is below {self.threshold:g} if they hold",
            "exceeded": f"exceeded: the calibration error is above {self.threshold:g}",
            "not enough data": f"not enough data to tell whether the calibration error is below {self.threshold:g}",
        }[self.verdict]
        spec = f".{digits.decimals(self.low, self.high)}f"
        lines = [
            f"{what} (at {self.level:.0%}; {self.lens}, n={self.n})",
            f"  estimate {self.value:{spec}}, at most {self.high:{spec}}, at least {self.low:{spec}}",
            *(f"  assumes: {assumption}" for assumption in self.assumes),
        ]
        if self.explicit is not None:
            bound = f"{self.explicit:.4f}" if isfinite(self.explicit) else "none: the rarest output is too rare"
            lines.append(f"  explicit bound without approximation: {bound}")
        if self.outputs is not None:
            lines.append(f"  {self.outputs} distinct outputs{'' if self.well_balanced else ', not well balanced'}")
        if self.further is not None:
            lines.append(f"  about {digits.about(self.further)} further rows would settle it")
        return "\n".join(lines + [f"  warning: {w}" for w in self.warnings])


@takes_arrays
def verify(
    preds: Predictions | Sketch,
    threshold: float = 0.02,
    level: float = 0.95,
    *,
    lens: Lens | None = None,
    outputs: ArrayLike | None = None,
) -> Verification:
    """Answer whether the root-mean-square calibration error is below `threshold`.

    Parameters
    ----------
    preds : Predictions, Sketch, or ``y_true, y_prob``
        Rows that neither the model nor a recalibrator was fitted on. Whole-number weights count repetitions.
    threshold : float, default 0.02
        In [0, 1], on the scale of probabilities.
    level : float, default 0.95
        A true error above the threshold is promised to be below it with probability at most 1 - level.
    lens : Lens, default None
        None for the positive class or the top label. A class-wise lens takes the outputs of all classes together.
    outputs : array of float, default None
        All outputs the model can give, where they are known (a fitted binning map stores its own): then none can be missing.

    Returns
    -------
    Verification
        Verdict, limits, and what they rest on; true where the error is promised to lie below the threshold.

    Raises
    ------
    InputError
        For a threshold outside [0, 1], outputs that are not listed, and a class-wise lens of continuous outputs.

    Notes
    -----
    A model with few distinct outputs (at least ten rows for each on average, such as one recalibrated by `ScalingBinning` or
    `HistogramBinning`) has a calibration error that can be promised to lie below a limit, at any n, by inverting a test: outputs
    near 0 and 1, rare outputs and outputs never observed are accounted for. For continuous outputs no such promise exists
    (Kumar et al. 2019, section 3): the answer is "supported" at best, and `assumes` says by what. So it is with clusters and
    importance weights.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS 32. arXiv:1909.10155

    See Also
    --------
    truecal.measure : The error with a two-sided interval.
    truecal.inference.rows_needed : Rows that the explicit bounds need.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> levels = [0.1, 0.3, 0.5, 0.7, 0.9]
    >>> p = rng.choice(levels, 20_000)
    >>> print(tc.verify(tc.Predictions.from_probs(p, rng.random(20_000) < p), threshold=0.02, outputs=levels))
    promised: the calibration error is below 0.02 (at 95%; positive class, n=20000)
      estimate 0.0000, at most 0.0102, at least 0.0000
      assumes: rows are independent draws of the population that the statement is about
      explicit bound without approximation: 0.0473
      5 distinct outputs
    """
    if not options.is_number(threshold) or not 0 <= threshold <= 1:
        raise InputError(f"threshold must lie in [0, 1], not {threshold!r}; it is on the scale of probabilities")
    options.between(level, "level", 0.5, 1)
    threshold, shares, samples = float(threshold), None, []
    profiles: list[Profile] = []
    if isinstance(preds, Sketch):
        if lens is not None:
            raise InputError("a Sketch was made with its lens; give it to tc.scan")
        profile, lens_name, assumes = preds.to_profile(), "scores", (_SMOOTH, _ROWS)
        if profile.counted and bool((profile.low == profile.high).all()) and _is_few(profile):
            profiles = [profile]
    else:
        check_predictions(preds, Sketch)
        check_lens(lens)
        lens = default_lens(preds) if lens is None else lens
        shares, samples, lens_name = lens.shares(preds), list(lens.samples(preds)), lens.describe(preds)
        for sample in samples:
            sample.refuse_pooled()
        assumes = (_SMOOTH, _ROWS if preds.clusters is None else _CLUSTERS)
        weights = preds.weights
        if preds.clusters is None and (weights is None or bool((weights == np.rint(weights)).all())):
            few = list(takewhile(_is_few, (sample.profile for sample in samples)))
            profiles = few if len(few) == len(samples) else []
    if profiles:
        errors = [OutputCells.of(profile) for profile in profiles]
        cells = errors[0] if shares is None else OutputCells.class_wise(samples, shares)
        if outputs is not None:
            cells = cells.with_outputs(_check_outputs(outputs, cells))
        weights = np.ones(1) if shares is None else shares
        power = weights @ np.array([float(RankSeries().estimate(profile).power[0]) for profile in profiles])
        value, closed = sqrt(max(float(power), 0.0)), outputs is not None
        return _verify_cells(cells, errors, weights, value, threshold, level, lens_name, closed=closed)
    if outputs is not None:
        raise InputError("outputs= is for models of few outputs, with rows that are independent and weigh alike")
    if shares is not None:
        raise InputError(
            "outputs are continuous, clustered or importance weighted: a class-wise error can be verified for binned models of "
            "independent rows only; recalibrate with ScalingBinning(normalize=False)"
        )
    estimate = measure(preds, lens=lens, level=2 * level - 1)
    return _verify_smooth(estimate.replace(lens=lens_name), threshold, level, assumes)


def _is_few(profile: Profile) -> bool:
    """Decide whether distinct outputs have at least `_ROWS_PER_OUTPUT` rows each on average.

    >>> _is_few(Profile.from_arrays([0.5] * 100, [0, 1] * 50)), _is_few(Profile.from_arrays([0.25, 0.5], [0, 1]))
    (True, False)
    """
    return int(profile.distinct[0]) * _ROWS_PER_OUTPUT <= float(profile.total[0])


def _verify_cells(
    cells: OutputCells,
    errors: Sequence[OutputCells],
    shares: Float64s,
    value: float,
    threshold: float,
    level: float,
    lens_name: str,
    *,
    closed: bool,
) -> Verification:
    """Verify the estimated error `value` of counted outputs against a threshold.

    `cells` are the counts of all classes together, `errors` and `shares` those of each. `closed`: the model has no outputs but
    those listed.
    """
    below, high = upper_limit(cells, threshold, level, closed=closed)
    union = 1 - (1 - level) / len(errors)
    classes = list(zip(shares, errors, strict=True))
    low = min(sqrt(sum(w * error.lower(union) for w, error in classes)), value)
    # F.6 and F.9 both hold if each has half of the error probability, and so does the smaller of the two
    explicit = sum(w * _explicit_bound(error, level=1 - (1 - union) / 2) for w, error in classes)
    balance = max(error.balance for error in errors)
    return Verification(
        "promised" if below else "exceeded" if low > threshold else "not enough data",
        threshold,
        level,
        round(cells.rows),
        lens_name,
        value,
        low,
        max(high, value),
        assumes=(_ROWS,),
        explicit=min(sqrt(explicit), 1.0) if isfinite(explicit) else inf,
        outputs=len(cells.outputs),
        balance=balance,
        warnings=() if balance <= 2 else ("bins are not well balanced, so the error of the rare ones is hard to see",),
    )


def _check_outputs(outputs: ArrayLike, cells: OutputCells) -> Float64s:
    """Return the distinct outputs that a model can give, ascending; raise InputError if one that occurs is not listed.

    >>> cells = OutputCells.of(Profile.from_arrays([0.25, 0.75], [0, 1]))
    >>> _check_outputs([0.75, 0.25, 0.5], cells)
    array([0.25, 0.5 , 0.75])
    """
    values = validation.as_floats(outputs, "outputs").astype(np.float64)
    validation.refuse_outside_unit(values, "outputs")
    possible = np.unique(values)
    unlisted = np.setdiff1d(cells.outputs, possible)
    if len(unlisted):
        raise InputError(f"output {unlisted[0]:g} occurs but is not among the outputs given; list all that can occur")
    return possible


def _verify_smooth(estimate: Estimate, threshold: float, level: float, assumes: tuple[str, ...]) -> Verification:
    """Verify continuous outputs by the limits of an estimate of the rank series, which assumes a smooth curve.

    "supported" if the upper limit is at most the threshold, "exceeded" if the lower one is above it and the test rejects at 1 -
    level, else "not enough data". A warning names the remedy, few distinct outputs.
    """
    # the recommended estimator has a test for a single dataset
    assert estimate.p_value is not None
    low, high = limits(estimate)
    # the interval has two tails of 1 - level each, the claim that the threshold is exceeded one
    low = low if is_rejected(float(estimate.p_value), level) else 0.0
    note = (
        "outputs are continuous, so no upper limit of the error holds without assumptions; recalibrate to a few distinct outputs "
        "with ScalingBinning(normalize=False) (truecal recalibrate fit --method scaling-binning)"
    )
    verdict: Answer = "supported" if high <= threshold else "exceeded" if low > threshold else "not enough data"
    value, warnings = float(estimate.value), (note, *estimate.warnings)
    return Verification(
        verdict, threshold, level, estimate.n, estimate.lens, value, low, high, assumes, warnings=warnings
    )
