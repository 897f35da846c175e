"""Cross-entropy, plain and with smoothed labels."""

from truecal.errors import InputError
from truecal.train.tensors import (
    IGNORED,
    Module,
    Reduction,
    Tensor,
    check_reduction,
    checked,
    functional,
    in_two_columns,
    is_hard,
    kept_only,
    torch,
)


def cross_entropy(
    logits: Tensor, targets: Tensor, *, weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r"""Cross-entropy of logits, two classes or many, hard or soft targets.

    .. math:: L = -\sum_k t_k \log p_k

    This is torch's own loss, with half precision computed in float32 and one door for (n,) and (n, classes).

    Parameters
    ----------
    logits : (n,) for the positive class, or (n, classes).
    targets : (n,) class indices (whole numbers or booleans; -100 leaves a row out, as in torch), or probabilities of the shape of
        the logits.
    weight : one weight per class (two for binary logits); a mean over hard targets then divides by the weights, as in torch.
    reduction : "mean", "sum" or "none".

    >>> import torch
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> round(cross_entropy(logits, torch.tensor([0, 1])).item(), 4)
    0.8955
    >>> round(cross_entropy(torch.tensor([2.0, -1.0]), torch.tensor([1, 0])).item(), 4)
    0.2201
    """
    return smoothed_cross_entropy(logits, targets, smoothing=0.0, weight=weight, reduction=reduction)


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, *, smoothing: float, weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r"""Cross-entropy with a share of every label spread over all classes.

    .. math:: L = -\sum_k ((1 - \alpha) t_k + \alpha / K) \log p_k

    for K classes (Szegedy et al. 2016). With `smoothing` 0 it is :func:`cross_entropy` bit for bit.

    Parameters
    ----------
    smoothing : alpha, at least 0 and below 1.
    logits, targets, weight, reduction : as for :func:`cross_entropy`.

    >>> import torch
    >>> logits = torch.tensor([[20.0, 0.0]])
    >>> smoothed_cross_entropy(logits, torch.tensor([0]), smoothing=0.1).item()  # so sure of itself is punished
    1.0
    """
    check_reduction(reduction)
    if not 0 <= smoothing < 1:
        raise InputError(f"smoothing must be at least 0 and below 1, such as 0.1, not {smoothing!r}")
    hard = is_hard(targets)
    logits, targets = checked(logits, targets)
    if logits.ndim == 1 and weight is None:
        kept = targets != IGNORED
        own = torch.where(kept, targets, 0.0) if hard else targets
        soft = own if smoothing == 0 else own * (1 - smoothing) + smoothing / 2
        if not hard:
            return functional.binary_cross_entropy_with_logits(logits, soft, reduction=reduction)
        return kept_only(functional.binary_cross_entropy_with_logits(logits, soft, reduction="none"), kept, reduction)
    if logits.ndim == 1:
        logits, targets = in_two_columns(logits, targets, hard=hard)
    weight = None if weight is None else weight.to(logits)
    return functional.cross_entropy(logits, targets, weight=weight, reduction=reduction, label_smoothing=smoothing)


class LabelSmoothing(Module):  # type: ignore[misc]
    """:func:`smoothed_cross_entropy` as a module.

    >>> import torch
    >>> loss = LabelSmoothing(0.05)
    >>> loss
    LabelSmoothing(smoothing=0.05)
    >>> round(loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])).item(), 4)  # log 3
    1.0986
    """

    weight: Tensor | None

    def __init__(self, smoothing: float = 0.1, *, weight: Tensor | None = None, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        if not 0 <= smoothing < 1:
            raise InputError(f"smoothing must be at least 0 and below 1, such as 0.1, not {smoothing!r}")
        self.smoothing, self.reduction = smoothing, reduction
        self.register_buffer("weight", weight)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return smoothed_cross_entropy(
            logits, targets, smoothing=self.smoothing, weight=self.weight, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        return f"smoothing={self.smoothing:g}"
