"""What an evaluation of recalibrators says: one row each, what is lost where, the winner, and a recommendation."""

from dataclasses import dataclass
from typing import Any, Literal

import truecal as tc
from truecal.estimate import Interval
from truecal.frame import Frame

BEFORE = "uncalibrated"
Score = Literal["log loss", "brier"]


@dataclass(frozen=True)
class Split:
    """A proper score in two parts: what the best of the compared maps still removes, and what no map removes.

    score = calibration + refinement. Refinement is the lowest cross-fitted score of all maps compared; calibration is the
    distance to it, with the interval of paired differences over rows (or clusters).
    """

    calibration: float
    calibration_interval: Interval
    refinement: float
    refinement_interval: Interval


@dataclass(frozen=True)
class Row:
    """One recalibrator on held-out rows. Changes are against the uncalibrated predictions; below 0 is better.

    `overconfidence` and `underconfidence` are the mean distances of the score above and below the fitted calibration
    curve (None for a lens of several datasets); `accuracy_change` above 0 is better; `parameters` is the number of
    learned numbers.
    """

    name: str
    log_loss: float
    log_loss_change: Interval
    log_loss_split: Split
    brier: float
    brier_change: Interval
    brier_split: Split
    accuracy: float
    accuracy_change: Interval
    error: tc.Estimate
    overconfidence: float | None
    underconfidence: float | None
    equal_width: float
    sweep: float
    parameters: int

    def record(self) -> dict[str, Any]:
        """The row as plain numbers."""
        interval = self.error.interval
        return {
            "recalibrator": self.name,
            "log_loss": self.log_loss,
            "log_loss_change_low": self.log_loss_change.low,
            "log_loss_change_high": self.log_loss_change.high,
            "log_loss_calibration": self.log_loss_split.calibration,
            "log_loss_calibration_low": self.log_loss_split.calibration_interval.low,
            "log_loss_calibration_high": self.log_loss_split.calibration_interval.high,
            "log_loss_refinement": self.log_loss_split.refinement,
            "brier": self.brier,
            "brier_change_low": self.brier_change.low,
            "brier_change_high": self.brier_change.high,
            "brier_calibration": self.brier_split.calibration,
            "brier_calibration_low": self.brier_split.calibration_interval.low,
            "brier_calibration_high": self.brier_split.calibration_interval.high,
            "brier_refinement": self.brier_split.refinement,
            "accuracy": self.accuracy,
            "accuracy_change_low": self.accuracy_change.low,
            "accuracy_change_high": self.accuracy_change.high,
            "error": self.error.value,
            "error_low": None if interval is None else interval.low,
            "error_high": None if interval is None else interval.high,
            "overconfidence": self.overconfidence,
            "underconfidence": self.underconfidence,
            "equal_width": self.equal_width,
            "sweep": self.sweep,
            "parameters": self.parameters,
        }


@dataclass(frozen=True)
class Evaluation:
    """Recalibrators side by side, the uncalibrated predictions first.

    Attributes
    ----------
    rows : one per recalibrator.
    score : the proper score that decides.
    winner : the name with the lowest mean score.
    tied : the names, winner first, whose score is not significantly worse than the winner's at `level` (paired over
        rows).
    recommended : of those tied, without the ones that lose accuracy, the one with the fewest parameters; "uncalibrated"
        where no map is significantly better than none.
    reason : why, in words.
    refused : pairs of a name and the reason why that recalibrator could not be fitted; the others were compared.
    disagreements : pairs of names that the equal-width and the sweep calibration error put in opposite order.
    """

    rows: tuple[Row, ...]
    score: Score
    level: float
    winner: str
    tied: tuple[str, ...]
    disagreements: tuple[tuple[str, str], ...]
    folds: int | None
    refused: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def recommended(self) -> str:
        return self._recommendation()[0]

    @property
    def reason(self) -> str:
        return self._recommendation()[1]

    def _recommendation(self) -> tuple[str, str]:
        if BEFORE in self.tied:
            return BEFORE, f"no map lowers the {self.score} significantly at {self.level:.0%}"
        keep = [name for name in self.tied if self[name].accuracy_change.high >= 0]
        lost = [name for name in self.tied if name not in keep]
        candidates = keep or list(self.tied)
        best = min(candidates, key=lambda name: self[name].parameters)
        count = self[best].parameters
        dropped = f"; {', '.join(lost)} would lose accuracy" if lost and keep else ""
        if len(candidates) == 1:
            return best, f"lowest {self.score}, and significantly so{dropped}"
        others = ", ".join(name for name in candidates if name != best)
        plural = "s" if count != 1 else ""
        return (
            best,
            f"{count} parameter{plural}, the fewest of those tied at the lowest {self.score} (with {others}){dropped}",
        )

    def frame(self) -> Frame:
        """The table, one row per recalibrator."""
        return Frame.from_records([row.record() for row in self.rows])

    def __str__(self) -> str:
        lines = [f"{'':24}{'log loss':>10}{'brier':>10}{'error':>10}  {'interval':18}{'EW15 l1':>9}{'sweep l1':>9}"]
        for row in self.rows:
            span = (
                "" if row.error.interval is None else f"[{row.error.interval.low:.4f}, {row.error.interval.high:.4f}]"
            )
            lines.append(
                f"{row.name:24}{row.log_loss:10.4f}{row.brier:10.4f}{float(row.error.value):10.4f}  {span:18}"
                f"{row.equal_width:9.4f}{row.sweep:9.4f}"
            )
        lines.append(f"lowest {self.score}: {self.winner}")
        if len(self.tied) > 1:
            lines.append(f"not significantly worse at {self.level:.0%}: {', '.join(self.tied[1:])}")
        lines.append(f"recommended: {self.recommended} ({self.reason})")
        lines.extend(self._parts())
        lines.extend(f"{name} could not be fitted: {why}" for name, why in self.refused)
        if self.disagreements:
            pairs = "; ".join(f"{a} / {b}" for a, b in self.disagreements)
            lines.append(f"equal-width bins and the sweep disagree on the order of: {pairs}")
        return "\n".join(lines)

    def _parts(self) -> list[str]:
        """What recalibration would gain, in a sentence."""
        before = self[BEFORE]
        split = before.log_loss_split if self.score == "log loss" else before.brier_split
        total = before.log_loss if self.score == "log loss" else before.brier
        span = split.calibration_interval
        return [
            f"{self.score} {total:.4f} = {split.calibration:.4f} that recalibration removes "
            f"[{span.low:.4f}, {span.high:.4f}] + {split.refinement:.4f} that it does not"
        ]
