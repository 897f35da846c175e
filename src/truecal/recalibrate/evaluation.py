"""What an evaluation of recalibrators says: one row each, the winner, and who is not significantly worse."""

from dataclasses import dataclass
from typing import Any, Literal

from truecal.estimate import Estimate, Interval

BEFORE = "uncalibrated"
Score = Literal["log loss", "brier"]


@dataclass(frozen=True)
class Row:
    """One recalibrator on held-out rows. Changes are against the uncalibrated predictions; below 0 is better."""

    name: str
    log_loss: float
    log_loss_change: Interval
    brier: float
    brier_change: Interval
    accuracy: float
    error: Estimate
    equal_width: float
    sweep: float


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
    disagreements : pairs of names that the equal-width and the sweep calibration error put in opposite order.
    """

    rows: tuple[Row, ...]
    score: Score
    level: float
    winner: str
    tied: tuple[str, ...]
    disagreements: tuple[tuple[str, str], ...]
    folds: int | None

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def frame(self) -> list[dict[str, Any]]:
        """The table as plain records."""
        return [
            {
                "recalibrator": row.name,
                "log_loss": row.log_loss,
                "log_loss_change_low": row.log_loss_change.low,
                "log_loss_change_high": row.log_loss_change.high,
                "brier": row.brier,
                "brier_change_low": row.brier_change.low,
                "brier_change_high": row.brier_change.high,
                "accuracy": row.accuracy,
                "error": row.error.value,
                "error_low": None if row.error.interval is None else row.error.interval.low,
                "error_high": None if row.error.interval is None else row.error.interval.high,
                "equal_width": row.equal_width,
                "sweep": row.sweep,
            }
            for row in self.rows
        ]

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
        if self.disagreements:
            pairs = "; ".join(f"{a} / {b}" for a, b in self.disagreements)
            lines.append(f"equal-width bins and the sweep disagree on the order of: {pairs}")
        return "\n".join(lines)
