"""The Estimate: a calibration error that does not travel alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from truecal import digits, names
from truecal.estimators.bins import Bins
from truecal.table import Frame, Tabular, plain
from truecal.types import Float64s

Number = float | Float64s  # a number, or one per dataset of a batch


class Measuring(Protocol):
    """What an Estimate asks of the estimator behind it."""

    @property
    def norm(self) -> float: ...
    @property
    def name(self) -> str: ...


class Filled(Protocol):
    """Bins of several probabilities, as an Estimate shows them."""

    @property
    def filled(self) -> int: ...


@dataclass(frozen=True)
class Interval:
    """A confidence interval: `low` to `high` holds the true error with probability `level`, by `method`."""

    low: Number
    high: Number
    level: float
    method: str

    def __contains__(self, value: object) -> bool:
        return bool(np.all((np.asarray(self.low) <= np.asarray(value)) & (np.asarray(self.high) >= np.asarray(value))))


@dataclass(frozen=True)
class Curve:
    """A fitted calibration curve: at confidence `score` the outcome happens with probability `outcome`."""

    score: Float64s
    outcome: Float64s
    weight: Float64s  # share of the data at each point


@dataclass(frozen=True, repr=False)
class Estimate(Tabular):
    """How far confidence is from the truth, with everything needed to judge that number.

    Attributes
    ----------
    value : the error on the scale of probabilities, in [0, 1] (an array for a batch).
    power : the signed estimate of the error to the power `norm`; a debiased one may be negative, which `value` shows as 0.
    interval : confidence interval, or None where the estimator has none.
    p_value : probability of data this far off if the model were perfectly calibrated, or None when not tested.
    n : number of predictions judged (sum of counts when weights are counts).
    effective_n : sample size in the statistics; below `n` only under importance weights.
    estimator, lens, norm : how it was measured.
    bins : the bins behind it (counts, means, per-bin intervals), or None for an estimator without bins.
    curve : the fitted calibration curve, or None.
    direction : mean score minus frequency; positive: predicted too high, or overconfident for the top label.
    warnings : what to know before quoting the number.
    parts : per-class values under a class-wise lens, else None.
    vector_bins : the bins behind an error of several probabilities at once, or None.
    selection : which rows were judged, in words; empty for all.
    sketch_error : for an estimate from a sketch, how far its value can be from that of all rows; None where all rows were seen.
    sketch_bound : whether that distance is "proved" or "probed" by trying orders of the rows inside cells.
    chance : for a plug-in error of several probabilities, the mean value that a calibrated model would show; else None.
    settings : what the estimator chose by itself for every dataset: number of bins, neighbours, bandwidth.
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
    vector_bins: Filled | None = None
    selection: str = ""
    sketch_error: float | None = None
    sketch_bound: Literal["proved", "probed"] | None = None
    chance: float | None = None
    settings: Mapping[str, Float64s] = field(default_factory=dict)

    def __float__(self) -> float:
        return float(self.value)

    def frame(self) -> Frame:
        """One row (one per dataset of a batch): what was measured, its value, interval and p-value, and on how many rows."""
        values = np.atleast_1d(self.value)
        reach = self.interval

        def each(numbers: Number | None) -> list[float | None]:
            return [None] * len(values) if numbers is None else np.broadcast_to(numbers, values.shape).tolist()

        return Frame(
            {
                "metric": [self.metric] * len(values),
                "value": values,
                "low": each(None if reach is None else reach.low),
                "high": each(None if reach is None else reach.high),
                "level": each(None if reach is None else reach.level),
                "p_value": each(self.p_value),
                "direction": each(self.direction),
                "n": [self.n] * len(values),
                "estimator": [type(self.estimator).__name__] * len(values),
                "lens": [self.lens] * len(values),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, as `truecal measure --json` has it."""
        options = plain(self.estimator)
        return {
            "metric": self.metric,
            **super().to_dict(),
            "estimator": {"name": type(self.estimator).__name__, "options": options},
            "bins": None if self.bins is None else list(self.bins.frame()),
        }

    def _headline(self) -> str:
        return str(self.but(warnings=()))

    def but(self, **changes: Any) -> "Estimate":
        """A copy with some fields changed."""
        return replace(self, **changes)

    @property
    def metric(self) -> str:
        """What kind of average the value is, in words."""
        return self.estimator.name or norm_name(self.norm)

    def __str__(self) -> str:
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
    """Several estimators' answers about the same rows: a table, one row each."""

    each: tuple[Estimate, ...]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, position: int) -> Estimate:
        return self.each[position]

    def frame(self) -> Frame:
        """One row per estimator, with its options."""
        rows = [row for estimate in self.each for row in estimate.frame()]
        options = [
            ", ".join(f"{k}={v}" for k, v in estimate.to_dict()["estimator"]["options"].items()) for estimate in self
        ]
        return Frame.from_records(rows).with_columns(options=options)

    def to_dict(self) -> dict[str, Any]:
        return {"estimates": [estimate.to_dict() for estimate in self.each]}

    def __str__(self) -> str:
        return self.frame().select("estimator", "metric", "value", "low", "high", "p_value", "n").to_text()

    def _headline(self) -> str:
        return f"{len(self)} estimators, {self[0].lens}, n={self[0].n}"


def norm_name(norm: float) -> str:
    """The words for an average of a given power."""
    if norm == 1:
        return "mean absolute calibration error"
    if norm == 2:
        return "root-mean-square calibration error"
    if norm == np.inf:
        return "maximum calibration error"
    return f"l{norm:g} calibration error"
