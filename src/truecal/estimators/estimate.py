"""The Estimate: a calibration error with its interval, bins, curve and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from truecal import digits, names
from truecal.estimators.bins import Bins
from truecal.estimators.generalized.binning import VectorBins
from truecal.table import Frame, Tabular, plain
from truecal.types import Float64s

Number = float | Float64s  # a number, or one per dataset of a batch


class Measuring(Protocol):
    """The properties of its estimator that an Estimate uses."""

    @property
    def norm(self) -> float:
        """The p of the error (E |gap|^p)^(1/p)."""

    @property
    def name(self) -> str:
        """Name of the error in words; empty where it follows from the norm."""


@dataclass(frozen=True)
class Interval:
    """Hold a confidence interval and how it was computed.

    Parameters
    ----------
    low : float or ndarray of shape (batch,)
        Lower limit.
    high : float or ndarray of shape (batch,)
        Upper limit.
    level : float
        Probability with which the interval contains the true error.
    method : str
        How the limits were computed.

    See Also
    --------
    Estimate : The result that has an interval.

    Examples
    --------
    >>> import truecal as tc
    >>> interval = tc.estimators.Interval(0.01, 0.04, 0.95, "rank series")
    >>> 0.02 in interval, 0.05 in interval
    (True, False)
    """

    low: Number
    high: Number
    level: float
    method: str

    def __contains__(self, value: object) -> bool:
        """Return whether low <= value <= high, for every dataset of a batch.

        >>> 0.1 in Interval(0.0, 0.2, 0.95, ""), np.array([0.1, 0.5]) in Interval(np.zeros(2), np.full(2, 0.2), 0.95, "")
        (True, False)
        """
        return bool(np.all((np.asarray(self.low) <= np.asarray(value)) & (np.asarray(self.high) >= np.asarray(value))))


@dataclass(frozen=True)
class Curve:
    """A fitted calibration curve at ascending points, shape (points,): at `score` the outcome happens at the rate `outcome`."""

    score: Float64s
    outcome: Float64s
    weight: Float64s  # share of the data at each point


@dataclass(frozen=True, repr=False)
class Estimate(Tabular):
    """Hold a calibration error with all that is needed to judge the number.

    Attributes
    ----------
    value : float or ndarray of shape (batch,)
        The error on the scale of probabilities, in [0, 1].
    power : float or ndarray of shape (batch,)
        The signed estimate of the error to the power `norm`; a debiased one may be negative, which `value` shows as 0.
    n : int
        Number of predictions judged (sum of counts where weights are counts).
    effective_n : float or ndarray of shape (batch,)
        Sample size in the statistics; below `n` only under importance weights.
    estimator : Estimator
        The estimator with its options.
    norm : float
        The p of the error (E |gap|^p)^(1/p).
    direction : float or ndarray of shape (batch,)
        Mean score minus frequency; positive: predicted too high, or overconfident for the top label.
    lens : str
        What was judged, in words.
    interval : Interval or None
        Confidence interval of the true error, or None where the estimator has none.
    p_value : float, ndarray of shape (batch,) or None
        Probability of data this far off if the model were perfectly calibrated, or None when not tested.
    bins : Bins or None
        The bins behind the estimate (counts, means, per-bin intervals), or None for an estimator without bins.
    curve : Curve or None
        The fitted calibration curve.
    warnings : tuple of str
        What to know before quoting the number.
    parts : ndarray or None
        Values per class under a class-wise lens.
    vector_bins : VectorBins or None
        The bins behind an error of several probabilities at once.
    selection : str
        Which rows were judged, in words; empty for all.
    sketch_error : float or None
        For an estimate from a sketch, how far its value can be from that of all rows; None where all rows were seen.
    sketch_bound : {"proved", "probed"} or None
        Whether that distance is proved, or probed by trying orders of the rows inside cells.
    chance : float or None
        For a plug-in error of several probabilities, the mean value that a calibrated model would show.
    settings : mapping of str to ndarray
        What the estimator chose by itself for every dataset: number of bins, neighbours, bandwidth.

    See Also
    --------
    calibration_error : The function that returns it, from labels and probabilities.
    measure : The same from Predictions or a Sketch.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> est = tc.calibration_error(rng.random(1000) < p**1.5, p)
    >>> round(est.value, 3), est.n, est.value in est.interval
    (0.089, 1000, True)
    """

    value: Number
    power: Number
    n: int
    effective_n: Number
    estimator: Measuring
    norm: float
    direction: Number
    lens: str = "scores"
    interval: Interval | None = None
    p_value: Number | None = None
    bins: Bins | None = None
    curve: Curve | None = None
    warnings: tuple[str, ...] = ()
    parts: Float64s | None = None
    vector_bins: VectorBins | None = None
    selection: str = ""
    sketch_error: float | None = None
    sketch_bound: Literal["proved", "probed"] | None = None
    chance: float | None = None
    settings: Mapping[str, Float64s] = field(default_factory=dict)

    def __float__(self) -> float:
        """Return the value; of a batch of datasets TypeError."""
        return float(self.value)

    def frame(self) -> Frame:
        """Tabulate the estimate: one row, or one per dataset of a batch.

        Returns
        -------
        Frame
            Metric, value, interval, p-value, direction, number of rows, estimator and lens.
        """
        values = np.atleast_1d(self.value)
        interval = self.interval

        def per_dataset(numbers: Number | None) -> list[float | None]:
            """Repeat a number for every dataset, None for None."""
            return [None] * len(values) if numbers is None else np.broadcast_to(numbers, values.shape).tolist()

        return Frame(
            {
                "metric": [self.metric] * len(values),
                "value": values,
                "low": per_dataset(None if interval is None else interval.low),
                "high": per_dataset(None if interval is None else interval.high),
                "level": per_dataset(None if interval is None else interval.level),
                "p_value": per_dataset(self.p_value),
                "direction": per_dataset(self.direction),
                "n": [self.n] * len(values),
                "estimator": [type(self.estimator).__name__] * len(values),
                "lens": [self.lens] * len(values),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as `truecal measure --json` has it.

        Keys are "metric", the fields, "estimator" as {"name", "options"}, and "bins" as a list of rows of the table of bins, or
        None.
        """
        options = plain(self.estimator)
        return {
            "metric": self.metric,
            **super().to_dict(),
            "estimator": {"name": type(self.estimator).__name__, "options": options},
            "bins": None if self.bins is None else list(self.bins.frame()),
        }

    def _headline(self) -> str:
        """Return the text of the estimate without its warnings, which tables show below."""
        return str(self.replace(warnings=()))

    def replace(self, **changes: Any) -> Estimate:
        """Copy the estimate with other values of its fields.

        Parameters
        ----------
        **changes : object
            New values of fields by name.

        Returns
        -------
        Estimate
            The copy.
        """
        return replace(self, **changes)

    @property
    def metric(self) -> str:
        """What kind of average the value is, in words.

        >>> import truecal as tc
        >>> tc.calibration_error([0, 1], [0.25, 0.75], estimator=tc.BinnedECE(2)).metric
        'mean absolute calibration error'
        """
        return self.estimator.name or norm_name(self.norm)

    def __str__(self) -> str:
        """Write metric, value, interval, estimator, lens, n and p-value in one line; of a batch the number of datasets and their
        mean.
        """
        name = type(self.estimator).__name__
        if np.ndim(self.value):
            values = np.asarray(self.value)
            return f"{self.metric}, {len(values)} datasets: mean {values.mean():.4f} ({name}, n={self.n} each)"
        value, direction = float(self.value), float(self.direction)
        low, high = (None, None) if self.interval is None else (float(self.interval.low), float(self.interval.high))
        line = f"{self.metric} {digits.with_interval(value, low, high)}"
        if self.interval is not None:
            line += f" at {self.interval.level:.0%}"
        facts = [name, self.lens, f"n={self.n}"]
        if self.selection:
            facts.append(f"where {self.selection}")
        bins = self.bins if self.vector_bins is None else self.vector_bins
        if bins is not None:
            facts.append(f"{bins.filled} bins")
        if self.p_value is not None:
            facts.append(digits.p_equation(float(self.p_value)))
        line += f" ({', '.join(facts)})"
        if value > 0 and abs(direction) >= 0.0005:
            size = f"{abs(direction):.{digits.decimals(low, high)}f}"
            line += f"; {names.tendency(self.lens, direction)} by {size} on average"
        return line + "".join(f"; warning: {w}" for w in self.warnings)


@dataclass(frozen=True, repr=False)
class Estimates(Tabular):
    """Hold the answers of several estimators about the same rows.

    Attributes
    ----------
    each : tuple of Estimate
        The estimates, in the order of the estimators.

    See Also
    --------
    measure : Returns it for a list of estimators.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> p = np.random.default_rng(0).random(500)
    >>> both = tc.measure(tc.Predictions.from_probs(p, p > 0.5), estimator=[tc.BinnedECE(), tc.SweepECE()])
    >>> len(both), [round(est.value, 3) for est in both]
    (2, [0.219, 0.289])
    """

    each: tuple[Estimate, ...]

    def __iter__(self) -> Iterator[Estimate]:
        """Iterate over the estimates in their order."""
        return iter(self.each)

    def __len__(self) -> int:
        """Return the number of estimates."""
        return len(self.each)

    def __getitem__(self, position: int) -> Estimate:
        """Return the estimate at a position, from 0."""
        return self.each[position]

    def frame(self) -> Frame:
        """Tabulate the estimates: one row per estimator, with its options."""
        rows = [row for estimate in self.each for row in estimate.frame()]
        options = [
            ", ".join(f"{k}={v}" for k, v in estimate.to_dict()["estimator"]["options"].items()) for estimate in self
        ]
        return Frame.from_records(rows).with_columns(options=options)

    def to_dict(self) -> dict[str, Any]:
        """Return all estimates as plain values: {"estimates": [`Estimate.to_dict` of each]}."""
        return {"estimates": [estimate.to_dict() for estimate in self.each]}

    def __str__(self) -> str:
        """Write a table with a line per estimator: estimator, metric, value, low, high, p_value, n."""
        return self.frame().select("estimator", "metric", "value", "low", "high", "p_value", "n").to_text()

    def _headline(self) -> str:
        """Return "2 estimators, positive class, n=500", with the lens and n of the first estimate.

        >>> import truecal as tc
        >>> preds = tc.Predictions.from_probs([0.25, 0.75], [0, 1])
        >>> tc.measure(preds, estimator=[tc.BinnedECE(2), tc.SweepECE()])._headline()
        '2 estimators, positive class, n=2'
        """
        return f"{len(self)} estimators, {self[0].lens}, n={self[0].n}"


def norm_name(norm: float) -> str:
    """Return the name of the error of a norm, such as "mean absolute calibration error" for 1; "l3 calibration error" for 3.

    >>> norm_name(2), norm_name(3)
    ('root-mean-square calibration error', 'l3 calibration error')
    """
    if norm == 1:
        return "mean absolute calibration error"
    if norm == 2:
        return "root-mean-square calibration error"
    if norm == np.inf:
        return "maximum calibration error"
    return f"l{norm:g} calibration error"
