"""The numbers of a comparison of interventions, seed by seed and over the seeds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from truecal.study.interventions.choice import Choice
from truecal.study.interventions.config import BASELINE, Plan
from truecal.study.interventions.lenses import Number

_KEYS = ("lens", "selection", "metric")


@dataclass(frozen=True)
class Finding:
    """One number of one intervention and seed."""

    intervention: str
    strength: str
    seed: int
    number: Number

    def record(self) -> dict[str, Any]:
        head = {"intervention": self.intervention, "strength": self.strength, "seed": self.seed}
        return head | asdict(self.number)


@dataclass(frozen=True)
class Summed:
    """One number over all seeds: mean, standard deviation, and the mean difference to the base model of the same seed.

    The interval of the difference is Student's, at 95 %, over the seeds: it says what another training would give, not what other
    test rows would. None where fewer than two seeds gave a number.
    """

    intervention: str
    strength: str
    lens: str
    selection: str
    metric: str
    mean: float
    sd: float | None
    seeds: int
    if_calibrated: float | None
    difference: float | None
    difference_sd: float | None
    difference_low: float | None
    difference_high: float | None

    @property
    def verdict(self) -> str:
        """Whether the intervention changed the number: "lower", "higher" or "" (it cannot be told)."""
        if self.difference_low is None or self.difference_high is None or self.intervention == BASELINE:
            return ""
        return "lower" if self.difference_high < 0 else "higher" if self.difference_low > 0 else ""


class Compared(Protocol):
    """What tables and words are made from: a comparison without its single findings."""

    @property
    def plan(self) -> Plan: ...
    @property
    def choice(self) -> Choice: ...
    @property
    def summary(self) -> tuple[Summed, ...]: ...
    @property
    def rows(self) -> Mapping[str, int]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...


def summed(findings: tuple[Finding, ...]) -> tuple[Summed, ...]:
    """Means, standard deviations and differences to the base model, over seeds."""
    from scipy.special import stdtrit

    groups: dict[tuple[str, ...], dict[int, Finding]] = {}
    for finding in findings:
        key = (finding.intervention, *(getattr(finding.number, name) for name in _KEYS))
        groups.setdefault(key, {})[finding.seed] = finding
    summaries = []
    for (kind, lens, selection, metric), by_seed in groups.items():
        values = np.array([f.number.value for f in by_seed.values()])
        base = groups.get((BASELINE, lens, selection, metric), {})
        with np.errstate(invalid="ignore"):
            gaps = np.array([f.number.value - base[s].number.value for s, f in by_seed.items() if s in base])
        low = high = gap_sd = None
        gaps = gaps[np.isfinite(gaps)]  # a log loss may be infinite
        if len(gaps) > 1:
            gap_sd = float(gaps.std(ddof=1))
            reach = float(stdtrit(len(gaps) - 1, 0.975)) * gap_sd / len(gaps) ** 0.5
            low, high = float(gaps.mean()) - reach, float(gaps.mean()) + reach
        calibrated = [f.number.if_calibrated for f in by_seed.values() if f.number.if_calibrated is not None]
        summaries.append(
            Summed(
                kind,
                next(iter(by_seed.values())).strength,
                *(lens, selection, metric),
                mean=float(values.mean()),
                sd=float(values.std(ddof=1)) if len(values) > 1 and np.isfinite(values).all() else None,
                seeds=len(values),
                if_calibrated=float(np.mean(calibrated)) if calibrated else None,
                difference=float(gaps.mean()) if len(gaps) else None,
                difference_sd=gap_sd,
                difference_low=low,
                difference_high=high,
            )
        )
    return tuple(summaries)
