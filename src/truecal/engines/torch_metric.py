"""A metric for torchmetrics loops whose state is a sketch: fixed size, summed across processes, right in every precision."""

from typing import Any

import numpy as np

import truecal as tc
from truecal.engines.accumulate import judged_rows, refuse_many
from truecal.errors import InputError, MissingExtraError
from truecal.estimators.base import Estimator
from truecal.lenses.lens import Lens
from truecal.lenses.one_probability import default_lens
from truecal.profile.cells import CELLS, Tally

try:
    import torch
    from torchmetrics import Metric
except ImportError as error:
    raise MissingExtraError.of("torch and torchmetrics", "torchmetrics") from error

_STATE = ("sums", "low", "high")


class CalibrationMetric(Metric):
    """`update(preds, target)` with probabilities, `compute()` for the error as a tensor, `estimate()` for the whole Estimate.

    The arguments are in torchmetrics' order: predictions first. Predictions are probabilities, 1-D for P(positive), 2-D with
    one column per class; logits are refused, never guessed. float16 and bfloat16 are read as they are and summed in
    float64. The state is summed (and its extremes taken) across processes by torchmetrics.

    Shapes (N, C, ...), as of pictures, become rows; positions whose target is `ignore_index` are left out. With `multilabel`,
    targets are 0 or 1 in the shape of the predictions, and `lens=tc.OneClass(k)` says which label is judged. Positions of one
    picture count as independent, so that intervals of `estimate` are too short there.

    >>> import torch
    >>> metric = CalibrationMetric()
    >>> metric.update(torch.tensor([0.9, 0.2, 0.6]).half(), torch.tensor([1, 0, 0]))
    >>> metric.estimate().n
    3
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    precision: torch.Tensor

    def __init__(
        self,
        *,
        lens: Lens | None = None,
        estimator: Estimator | None = None,
        ignore_index: int | None = None,
        multilabel: bool = False,
        **options: Any,
    ) -> None:
        """Start without rows; refuse several labels per row without a lens that names one, and unknown options as
        torchmetrics does.
        """
        super().__init__(**options)
        if multilabel and not isinstance(lens, tc.OneClass):
            raise InputError("say which label is judged: CalibrationMetric(multilabel=True, lens=tc.OneClass(0))")
        refuse_many(lens)
        self.ignore_index, self.multilabel = ignore_index, multilabel
        self.lens, self.estimator = lens, estimator
        self.add_state("sums", torch.zeros((5, CELLS), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("low", torch.full((CELLS,), np.inf, dtype=torch.float64), dist_reduce_fx="min")
        self.add_state("high", torch.full((CELLS,), -np.inf, dtype=torch.float64), dist_reduce_fx="max")
        self.add_state("precision", torch.tensor(8), dist_reduce_fx="min")

    def update(self, preds: Any, target: Any) -> None:
        """Count a batch of probabilities, (N,), (N, C) or (N, C, ...), and labels; an empty one changes nothing."""
        if len(target) == 0 and len(preds) == 0:
            return
        preds, target = self._flatten(preds, target)
        if len(target) == 0:
            return
        build = tc.Predictions.from_multilabel if self.multilabel else tc.Predictions.from_probs
        rows = build(preds, target)
        lens = default_lens(rows) if self.lens is None else self.lens
        tally = Tally(*(getattr(self, name).cpu().numpy() for name in _STATE))
        scores, outcomes, _ = judged_rows(rows, lens)
        tally.add(scores, outcomes)
        for name in _STATE:  # on the processor the arrays are the state itself, elsewhere a copy of it
            state = getattr(self, name)
            if state.device.type != "cpu":
                setattr(self, name, torch.from_numpy(getattr(tally, name)).to(state.device))
        self.precision = self.precision.clamp(max=rows.probs.dtype.itemsize)

    def _flatten(self, preds: Any, target: Any) -> tuple[Any, Any]:
        """Turn (N, C, ...) into rows of C probabilities and their labels, without positions whose label is `ignore_index`.

        Labels are (rows,), with `multilabel` (rows, C). Then positions are left out if the judged label is `ignore_index`; such
        values of other labels become 0.
        """
        if preds.ndim > 2:
            preds = preds.movedim(1, -1).reshape(-1, preds.shape[1])
            target = (target.movedim(1, -1) if self.multilabel else target).reshape(
                -1, *preds.shape[1:][: self.multilabel]
            )
        if self.ignore_index is None:
            return preds, target
        ignored = target == self.ignore_index
        if self.multilabel:
            ignored = ignored[:, self.lens.name]  # type: ignore[union-attr]
            target = target.masked_fill(target == self.ignore_index, 0)
        return preds[~ignored], target[~ignored]

    @property
    def sketch(self) -> tc.Sketch:
        """Sketch of all rows counted so far; of all processes after `sync`."""
        arrays = (getattr(self, name).cpu().numpy().copy() for name in _STATE)
        return tc.Sketch.from_tally(Tally(*arrays), int(self.precision))

    def estimate(self, *, level: float = 0.95, rng: int = 0) -> tc.Estimate:
        """Measure all rows counted so far: an Estimate with interval, test, warnings and sketch_error."""
        return tc.measure(self.sketch, estimator=self.estimator, level=level, rng=rng)

    def compute(self) -> Any:
        """Compute the calibration error, without interval and test, as a float64 tensor of no dimension."""
        chosen = tc.RankSeries() if self.estimator is None else self.estimator
        return torch.tensor(float(chosen.values(self.sketch.to_profile())[0]), dtype=torch.float64)
