"""One dataset watched over time: a group, or one class of it."""

from dataclasses import dataclass, replace

import numpy as np

from truecal.watch.blocks import Blocks
from truecal.watch.cells import Batch
from truecal.watch.evidence import Evidence
from truecal.watch.experts import Experts
from truecal.watch.mean_error import MeanError


@dataclass(frozen=True)
class Stream:
    """Experts, the evidence they gathered since the last restart, and sums for what is shown. Never changed, only replaced."""

    experts: Experts
    evidence: Evidence
    errors: MeanError
    blocks: Blocks
    batches: int = 0  # in all, restarts included
    rows: int = 0

    @classmethod
    def beginning(cls, tolerance: float, batch: Batch) -> "Stream":
        """With experts for the scores of a first batch, none of whose outcomes is used."""
        experts = Experts.of(tolerance, batch.n, batch.mean)
        return cls(experts, Evidence.none(experts), MeanError(), Blocks.none(experts))

    def after(self, batch: Batch) -> "Stream":
        """With one more batch."""
        number = self.batches + 1
        return replace(
            self,
            evidence=self.evidence.after(self.experts.play(batch)),
            errors=self.errors.plus(batch.size, batch.total, batch.squares),
            blocks=self.blocks.plus(number, batch, self.experts),
            batches=number,
            rows=self.rows + batch.rows,
        )

    def restarted(self) -> "Stream":
        """With all evidence forgotten (a repair was made); what was seen before is still shown."""
        return replace(self, evidence=Evidence.none(self.experts), errors=MeanError())

    @property
    def start(self) -> int:
        """The batch (of all, from 1) with which a change most likely began."""
        return self.batches - self.evidence.batches + self.evidence.start


def mixed(logs: list[float], shares: list[float], idle: float = 0.0) -> float:
    """Log of a weighted mean of evidence; `idle` is weight on nothing, whose evidence is 1."""
    terms = [value + np.log(share) for value, share in zip(logs, shares, strict=True) if share > 0]
    return float(np.logaddexp.reduce([*terms, np.log(idle)] if idle > 0 else terms))
