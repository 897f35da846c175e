"""What `tc.clinical` answers: the numbers of one cohort, and of its sites."""

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from truecal.clinical.cohort import Cohort
from truecal.clinical.curve.band import FlexibleCurve, grid_of, spline_band
from truecal.clinical.curve.spline import SplineCurve
from truecal.clinical.quantity import Quantity
from truecal.errors import InputError
from truecal.frame import Frame

# What is reported: field, name, the value of a calibrated model (None where there is none), and how to read it.
QUANTITIES = (
    ("oe", "O/E ratio", 1.0, "below 1: risks too high on the whole"),
    ("intercept", "calibration intercept", 0.0, "below 0: risks too high on the whole (slope held at 1)"),
    ("slope", "calibration slope", 1.0, "below 1: risks too extreme, high ones too high and low ones too low"),
    ("ici", "ICI", 0.0, "mean distance between curve and diagonal"),
    ("e50", "E50", 0.0, "median distance"),
    ("e90", "E90", 0.0, "90th percentile of the distance"),
    ("emax", "Emax", 0.0, "largest distance"),
    ("c_statistic", "c-statistic", None, "how often an event has the higher risk of a pair"),
    ("brier", "Brier score", None, "mean squared error of the risks"),
    ("scaled_brier", "scaled Brier score", None, "1: perfect; 0: no better than the prevalence for everyone"),
)


@dataclass(frozen=True, eq=False)
class Clinical:
    """A clinical validation: every number is a :class:`Quantity` with `.value`, `.low` and `.high`.

    Attributes
    ----------
    oe : observed over expected events. intercept, slope : of the logistic recalibration, the intercept with the slope held at 1.
    ici, e50, e90, emax : mean, median, 90th percentile and maximum of the distance between spline curve and diagonal.
    c_statistic, brier, scaled_brier : discrimination and overall error.
    rows, events, patients : how much data; patients are the clusters, or the rows where there are none.
    prevalence : weighted share of events. left_out : rows without a log odds (scores of exactly 0 or 1), which intercept and
        slope leave out. impossible : those among them whose outcome contradicts the score.
    sites : the same per value of a column, with heterogeneity, or None.
    curve : the flexible curve with its bands.
    """

    oe: Quantity
    intercept: Quantity
    slope: Quantity
    ici: Quantity
    e50: Quantity
    e90: Quantity
    emax: Quantity
    c_statistic: Quantity
    brier: Quantity
    scaled_brier: Quantity
    rows: int
    events: int
    patients: int
    prevalence: float
    left_out: int
    impossible: int
    level: float
    lens: str
    warnings: tuple[str, ...]
    sites: "Sites | None" = None
    cohort: Cohort = field(repr=False, kw_only=True)
    fit: SplineCurve = field(repr=False, kw_only=True)

    @cached_property
    def curve(self) -> FlexibleCurve:
        """The restricted cubic spline behind ICI, with pointwise and simultaneous bands."""
        return spline_band(self.fit, grid_of(self.cohort), self.level, np.random.default_rng(0))

    def frame(self) -> Frame:
        """One row per number: value, interval, the value of a calibrated model, and how to read it."""
        records = []
        for name, title, ideal, reading in QUANTITIES:
            quantity: Quantity = getattr(self, name)
            records.append(
                {
                    "name": name,
                    "title": title,
                    "value": quantity.value,
                    "low": quantity.low,
                    "high": quantity.high,
                    "calibrated": ideal,
                    "reading": reading,
                    "method": quantity.method,
                }
            )
        return Frame.from_records(records)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; infinite ends are None."""

        def plain(x: float) -> float | None:
            return float(x) if np.isfinite(x) else None

        numbers = {}
        for name, *_ in QUANTITIES:
            quantity: Quantity = getattr(self, name)
            numbers[name] = {"value": plain(quantity.value), "low": plain(quantity.low), "high": plain(quantity.high)}
        counts = {name: getattr(self, name) for name in ("rows", "events", "patients", "left_out", "impossible")}
        content: dict[str, Any] = {
            "level": float(self.level),
            "lens": self.lens,
            "prevalence": self.prevalence,
            **counts,
            **numbers,
        }
        content["warnings"] = list(self.warnings)
        if self.sites is not None:
            content["sites"] = self.sites.to_dict()
        return content

    def __str__(self) -> str:
        head = (
            f"{self.lens}: {self.rows:,} rows, {self.events:,} events ({self.prevalence:.1%})"
            + (f", {self.patients:,} patients" if self.cohort.units is not None else "")
            + f"; intervals at {self.level:.0%}"
        )
        lines = [f"{title:<22}{getattr(self, name)!s:<26}{reading}" for name, title, _, reading in QUANTITIES]
        notes = [f"warning: {note}" for note in self.warnings]
        more = [] if self.sites is None else ["", str(self.sites)]
        return "\n".join([head, *lines, *notes, *more])

    def _repr_html_(self) -> str:
        table = self.frame().select("title", "value", "low", "high", "reading").to_html()
        notes = "".join(f"<p>warning: {escape(note)}</p>" for note in self.warnings)
        return f"<p>{escape(str(self).splitlines()[0])}</p>{table}{notes}"


@dataclass(frozen=True)
class Heterogeneity:
    """How much a number differs between sites.

    Attributes
    ----------
    pooled : the mean over sites (random effects), with a confidence interval.
    low, high : prediction interval: where the number of a new site would lie with probability `pooled.level`.
    tau : standard deviation between sites beyond chance, on the scale of the pooling (log, logit or plain).
    i2 : share of the variation that is not chance. p_value : of Cochran's Q, for no differences at all.
    """

    pooled: Quantity
    low: float
    high: float
    tau: float
    i2: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Sites:
    """One :class:`Clinical` per value of the columns `by`, in the order of their names, and the heterogeneity of O/E, intercept,
    slope and c-statistic between them (empty where fewer than two sites have an estimate)."""

    by: tuple[str, ...]
    names: tuple[str, ...]
    results: tuple[Clinical, ...]
    heterogeneity: dict[str, Heterogeneity]

    def __getitem__(self, name: str) -> Clinical:
        if name not in self.names:
            raise InputError(f"there is no {' x '.join(self.by)} {name!r}; there are {', '.join(self.names)}")
        return self.results[self.names.index(name)]

    def frame(self) -> Frame:
        """One row per site: rows, events, patients, and every number with its interval."""
        records = []
        for name, site in zip(self.names, self.results, strict=True):
            record: dict[str, Any] = {
                "site": name,
                "rows": site.rows,
                "events": site.events,
                "patients": site.patients,
            }
            for short, *_ in QUANTITIES:
                number: Quantity = getattr(site, short)
                record |= {short: number.value, f"{short}_low": number.low, f"{short}_high": number.high}
            records.append(record)
        return Frame.from_records(records)

    def curves(self) -> Frame:
        """The flexible curve of every site, one below the other."""
        frames = [(name, site.curve.frame()) for name, site in zip(self.names, self.results, strict=True)]
        return Frame.from_records([{"site": name, **row} for name, frame in frames for row in frame])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        spread = {
            name: {
                "pooled": h.pooled.value,
                "low": h.pooled.low,
                "high": h.pooled.high,
                "prediction_low": h.low,
                "prediction_high": h.high,
                "tau": h.tau,
                "i2": h.i2,
                "p_value": h.p_value,
            }
            for name, h in self.heterogeneity.items()
        }
        each = {name: site.to_dict() for name, site in zip(self.names, self.results, strict=True)}
        return {"by": list(self.by), "each": each, "heterogeneity": spread}

    def __str__(self) -> str:
        shown = ("oe", "slope", "ici", "c_statistic")
        titles = {name: title for name, title, *_ in QUANTITIES}
        wide = max(20, *(len(name) + 1 for name in self.names))
        head = f"{' x '.join(self.by):<{wide}}{'events/rows':>14}  " + "".join(f"{titles[s]:<24}" for s in shown)
        lines = [head.rstrip()]
        for name, site in zip(self.names, self.results, strict=True):
            numbers = "".join(f"{getattr(site, s)!s:<24}" for s in shown)
            lines.append(f"{name:<{wide}}{f'{site.events}/{site.rows}':>14}  {numbers}".rstrip())
        for name, h in self.heterogeneity.items():
            lines.append(
                f"{titles[name]}: mean over sites {h.pooled}, a new site {h.low:.3f} to {h.high:.3f}, "
                f"I2 {h.i2:.0%}, p={h.p_value:.3g} for no differences"
            )
        return "\n".join(lines)
