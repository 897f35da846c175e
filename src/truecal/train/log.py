"""Calibration epoch by epoch, from a sketch of fixed size: no prediction is kept."""

from typing import Any

from truecal import options
from truecal.errors import InputError
from truecal.estimate import Estimate, Estimator
from truecal.frame import Frame
from truecal.lens import Lens
from truecal.scan import Accumulator
from truecal.train.tensors import IGNORED, Tensor, checked, is_hard, torch


class CalibrationLog:
    """Hand over each batch with `update`, close the epoch with `end_epoch`; `rows` holds one record per epoch.

    Logits are turned into probabilities in float64 and counted into an :class:`truecal.Accumulator`, whose state stays below
    2 MiB for any number of rows. Binary logits are judged by P(positive), others by the predicted class.

    Parameters
    ----------
    estimator : default as in :func:`truecal.calibration_error`.
    lens : what is judged: TopLabel() or OneClass(c); by default the positive class of binary logits, else the predicted class.
    level : of the interval.

    >>> import torch
    >>> rng = torch.Generator().manual_seed(0)
    >>> log = CalibrationLog()
    >>> for epoch in range(2):
    ...     for _ in range(4):
    ...         logits = torch.randn(500, 3, generator=rng)
    ...         labels = torch.multinomial(logits.softmax(1), 1, generator=rng).squeeze(1)
    ...         log.update(logits * (1 + 2 * epoch), labels)  # three times too sure in the second epoch
    ...     found = log.end_epoch()
    >>> [(row["epoch"], row["n"], round(row["error"], 1)) for row in log.rows]
    [(1, 2000, 0.0), (2, 2000, 0.2)]
    """

    def __init__(self, *, estimator: Estimator | None = None, lens: Lens | None = None, level: float = 0.95) -> None:
        options.level(level)
        self.estimator, self.level = estimator, level
        self.rows: list[dict[str, Any]] = []
        self._seen = Accumulator(lens=lens)
        self._right = 0

    def update(self, logits: Tensor, targets: Tensor) -> None:
        """Count in a batch of logits and hard targets, on any device; rows whose target is -100 are left out."""
        if not (isinstance(logits, torch.Tensor) and isinstance(targets, torch.Tensor)):
            raise InputError(
                f"logits and targets must be torch tensors, not {type(logits).__name__}, {type(targets).__name__}"
            )
        if not is_hard(targets):
            raise InputError("the log judges what happened: give class indices, not soft labels")
        with torch.no_grad():
            logits, targets = checked(logits.detach().cpu(), targets.detach().cpu())
            kept = targets != IGNORED
            wide, targets = logits[kept].double(), targets[kept]
            if not len(targets):
                return
            probs = torch.sigmoid(wide) if wide.ndim == 1 else torch.softmax(wide, dim=1)
            predicted = (wide >= 0).long() if wide.ndim == 1 else probs.argmax(dim=1)
            self._seen.update(targets.long().numpy(), probs.numpy())
            self._right += int((predicted == targets.long()).sum())

    def end_epoch(self) -> Estimate:
        """The calibration error of the batches since the last epoch; adds a record to `rows` and starts anew."""
        if self._seen.rows == 0:
            raise InputError("no batch was handed over since the last epoch; call update(logits, targets) first")
        estimate = self._seen.compute(estimator=self.estimator, level=self.level)
        low, high = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
        accuracy = self._right / self._seen.rows
        record = {"epoch": len(self.rows) + 1, "n": self._seen.rows, "error": estimate.value, "low": low, "high": high}
        self.rows.append({**record, "accuracy": accuracy})
        self._seen.reset()
        self._right = 0
        return estimate

    def frame(self) -> Frame:
        """One row per epoch."""
        return Frame.from_records(self.rows, columns=("epoch", "n", "error", "low", "high", "accuracy"))
