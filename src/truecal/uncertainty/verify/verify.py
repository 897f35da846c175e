"""Can we promise that the calibration error is below a threshold?"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, isfinite, sqrt
from typing import Literal

import numpy as np

from truecal.errors import InputError
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import Predictions
from truecal.uncertainty.measurement import measure
from truecal.uncertainty.verify.binned_error import BinnedError
from truecal.uncertainty.verify.bounds import upper_bound

Verdict = Literal["promised", "exceeded", "not enough data"]
_ROWS_PER_OUTPUT = 10  # with at least so many rows per distinct output the model counts as binned
_MOST_ROWS = 1e12


@dataclass(frozen=True)
class Verification:
    """Whether the root-mean-square calibration error can be promised to lie below a threshold.

    Attributes
    ----------
    verdict : "promised": below the threshold, wrong with probability at most 1 - level. "exceeded": above it, wrong
        with probability near 1 - level (for binned models at 95 %, 5.2 to 7.0 % in simulation, most with few outputs
        and rows). Else "not enough data".
    value, low, high : the estimated error and its one-sided limits, each at `level`.
    explicit : Kumar et al.'s bound F.9 on the error, which needs no approximation; infinite where its condition on the
        rarest output fails, None for a model that is not binned.
    further : a rough forecast of how many more rows would settle the question if the estimate is right; None when it is
        settled, or when the estimate is too close to the threshold for any number.
    outputs : number of distinct outputs (the largest one, over classes), None for a model that is not binned.
    balance : the smallest alpha for which outputs are alpha-well-balanced, 1/(alpha B) <= P(output) <= alpha/B, in this
        data.
    """

    verdict: Verdict
    threshold: float
    level: float
    n: int
    lens: str
    value: float
    low: float
    high: float
    explicit: float | None = None
    further: int | None = None
    outputs: int | None = None
    balance: float | None = None
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.verdict == "promised"

    @property
    def well_balanced(self) -> bool | None:
        """Whether the outputs are 2-well-balanced, as the theory of the debiased estimator asks."""
        return None if self.balance is None else self.balance <= 2

    def __str__(self) -> str:
        what = {
            "promised": f"promised: the calibration error is below {self.threshold:g}",
            "exceeded": f"exceeded: the calibration error is above {self.threshold:g}",
            "not enough data": f"not enough data to tell whether the calibration error is below {self.threshold:g}",
        }[self.verdict]
        lines = [
            f"{what} (at {self.level:.0%}; {self.lens}, n={self.n})",
            f"  estimate {self.value:.4f}, at most {self.high:.4f}, at least {self.low:.4f}",
        ]
        if self.explicit is not None:
            bound = f"{self.explicit:.4f}" if isfinite(self.explicit) else "none: the rarest output is too rare"
            lines.append(f"  explicit bound without approximation: {bound}")
        if self.outputs is not None and self.balance is not None:
            verdict = "well balanced" if self.well_balanced else "not well balanced (alpha above 2)"
            lines.append(f"  {self.outputs} distinct outputs, alpha = {self.balance:.2f}: {verdict}")
        if self.further is not None:
            lines.append(f"  about {self.further:,} further rows would settle it")
        return "\n".join(lines + [f"  warning: {w}" for w in self.warnings])


def verify(
    preds: Predictions, threshold: float = 0.02, level: float = 0.95, *, lens: Lens | None = None
) -> Verification:
    """Answer whether the root-mean-square calibration error is below `threshold`.

    A model with few distinct outputs (at least ten rows for each on average, such as one recalibrated by
    `ScalingBinning` or `HistogramBinning`) has a calibration error that can be measured: it is estimated without bias,
    with limits that account for the skewness of the estimate, beside the explicit bound F.9 of Kumar et al. (2019). A
    class-wise lens combines classes by a union bound. A model with continuous outputs is measured by truecal's
    recommended estimator, and a warning says that no data can exclude errors finer than it resolves.

    Parameters
    ----------
    preds : predictions on rows that neither the model nor a recalibrator was fitted on. Whole-number weights count
        repetitions.
    threshold : in [0, 1], on the scale of probabilities.
    level : a true error above the threshold is promised to be below it with probability at most 1 - level.
    lens : default the positive class or the top label.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.predictions import Predictions
    >>> from truecal.uncertainty.verify.verify import verify
    >>> rng = np.random.default_rng(0)
    >>> p = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], 20_000)
    >>> print(verify(Predictions.from_probs(p, rng.random(20_000) < p), threshold=0.02))
    promised: the calibration error is below 0.02 (at 95%; positive class, n=20000)
      estimate 0.0000, at most 0.0116, at least 0.0000
      explicit bound without approximation: 0.0855
      5 distinct outputs, alpha = 1.02: well balanced
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold must lie in [0, 1], not {threshold!r}; it is on the scale of probabilities")
    if not 0.5 < level < 1:
        raise InputError(f"level must lie between 0.5 and 1, not {level!r}")
    if preds.clusters is not None:
        raise InputError("verify takes rows as independent; keep one row per cluster")
    if preds.weights is not None and not bool((preds.weights == np.rint(preds.weights)).all()):
        raise InputError("verify needs rows or counts; importance weights are not supported")
    check_lens(lens)
    lens = default_lens(preds) if lens is None else lens
    shares = lens.shares(preds)
    samples = list(lens.samples(preds))
    for sample in samples:
        sample.refuse_pooled()
    parts = [sample.profile for sample in samples]
    if all(int(p.distinct[0]) * _ROWS_PER_OUTPUT <= float(p.total[0]) for p in parts):
        weights = np.ones(1) if shares is None else shares
        return _binned([BinnedError.of(p) for p in parts], weights.tolist(), threshold, level, lens.describe(preds))
    if shares is not None:
        raise InputError(
            "outputs are continuous: a class-wise error can be verified for binned models only; recalibrate with "
            "ScalingBinning(normalize=False)"
        )
    return _continuous(preds, lens, threshold, level)


def _binned(errors: list[BinnedError], shares: list[float], threshold: float, level: float, lens: str) -> Verification:
    each = 1 - (1 - level) / len(errors)  # a union bound over the classes

    def lower(factor: float = 1.0) -> float:
        return sum(w * error.lower(each, factor) for w, error in zip(shares, errors, strict=True))

    def upper(factor: float = 1.0) -> float:
        return sum(w * error.upper(each, factor) for w, error in zip(shares, errors, strict=True))

    squared = sum(w * error.squared for w, error in zip(shares, errors, strict=True))
    low, high = lower(), upper()
    n = errors[0].n
    verdict = _verdict(low, high, threshold**2)
    further = None
    if verdict == "not enough data":
        if squared < threshold**2:
            further = _further(lambda factor: upper(factor) <= threshold**2, n)
        else:
            further = _further(lambda factor: lower(factor) > threshold**2, n)
    explicit = sum(
        w
        * upper_bound(
            error.squared,
            n=error.n,
            bins=len(error.outputs),
            smallest=float(error.shares.min()),
            level=each,
            estimator="debiased",
        )
        for w, error in zip(shares, errors, strict=True)
    )
    balance = max(error.balance for error in errors)
    notes = () if balance <= 2 else ("bins are not well balanced, so the error of the rare ones is hard to see",)
    return Verification(
        verdict,
        threshold,
        level,
        int(n),
        lens,
        sqrt(max(squared, 0.0)),
        sqrt(low),
        sqrt(high),
        min(sqrt(explicit), 1.0) if isfinite(explicit) else inf,
        further,
        max(len(error.outputs) for error in errors),
        balance,
        notes,
    )


def _continuous(preds: Predictions, lens: Lens, threshold: float, level: float) -> Verification:
    found = measure(preds, lens=lens, level=2 * level - 1)
    assert found.interval is not None  # the recommended estimator has one for a single dataset
    value, low, high = float(found.value), float(found.interval.low), float(found.interval.high)
    verdict = _verdict(low, high, threshold)
    further = None
    if verdict == "not enough data":
        edge, room = (high - value, threshold - value) if value < threshold else (value - low, value - threshold)
        further = _rows(found.n * (edge / room) ** 2 - found.n) if room > 0 else None
    note = "outputs are continuous: errors finer than the estimate resolves cannot be excluded; "
    note += "ScalingBinning(normalize=False) makes the outputs few"
    return Verification(
        verdict,
        threshold,
        level,
        found.n,
        found.lens,
        value,
        low,
        high,
        further=further,
        warnings=(note, *found.warnings),
    )


def _verdict(low: float, high: float, threshold: float) -> Verdict:
    return "promised" if high <= threshold else "exceeded" if low > threshold else "not enough data"


def _rows(number: float) -> int | None:
    return ceil(number) if number < _MOST_ROWS else None


def _further(settled: Callable[[float], bool], n: float) -> int | None:
    """How many more rows of the same kind would settle the question."""
    high = 2.0
    while not settled(high):
        high *= 2
        if high * n > _MOST_ROWS:
            return None
    low = high / 2
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return _rows((high - 1) * n)
