"""Focal loss: cross-entropy that cares less about rows the network already has right."""

import sys
from typing import Literal, TypeAlias

from truecal.errors import InputError
from truecal.train.smoothing import cross_entropy
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
    reduced,
    torch,
)

Gamma: TypeAlias = float | Literal["flsd-53"]


def focal_loss(
    logits: Tensor,
    targets: Tensor,
    *,
    gamma: Gamma,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Focal loss of logits, two classes or many, hard or soft targets.

    .. math:: L = -\sum_k t_k (1 - p_k)^\gamma \log p_k

    Lin et al. (2017). A `gamma` of "flsd-53" is the sample-dependent schedule of Mukhoti et al. (2020): 5 where the probability of
    the target is below 0.2, else 3. With gamma 0 it is :func:`cross_entropy` bit for bit.

    Parameters
    ----------
    gamma : at least 0, or "flsd-53".
    logits, targets, weight, reduction : as for :func:`cross_entropy`.

    >>> import torch
    >>> logits = torch.tensor([[4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> easy, hard = focal_loss(logits, torch.tensor([0, 1]), gamma=2, reduction="none").tolist()
    >>> easy < 0.0001, round(hard, 4)
    (True, 0.4883)
    """
    check_reduction(reduction)
    _check_gamma(gamma)
    if gamma == 0:
        return cross_entropy(logits, targets, weight=weight, reduction=reduction)
    hard = is_hard(targets)
    logits, targets = checked(logits, targets)
    if logits.ndim == 1 and weight is None:
        # With two classes 1 - p of one is the p of the other, so that powers are exponentials of logarithms at hand.
        right, wrong = functional.logsigmoid(logits), functional.logsigmoid(-logits)
        losses = -targets * _binary(right, wrong, gamma) - (1 - targets) * _binary(wrong, right, gamma)
        return kept_only(losses, targets != IGNORED, reduction) if hard else reduced(losses, reduction)
    if logits.ndim == 1:
        logits, targets = in_two_columns(logits, targets, hard=hard)
    log_p = functional.log_softmax(logits, dim=1)
    weight = None if weight is None else weight.to(logits)
    if not hard:
        losses = -targets * _focused(log_p, gamma)
        return reduced((losses if weight is None else losses * weight).sum(dim=1), reduction)
    kept = targets != IGNORED
    own = torch.where(kept, targets, 0)
    losses = -_focused(log_p.gather(1, own[:, None]).squeeze(1), gamma)
    if weight is None:
        return kept_only(losses, kept, reduction)
    return kept_only(losses * weight[own], kept, reduction, weight[own])


def _focused(log_p: Tensor, gamma: Gamma) -> Tensor:
    """(1 - p)^gamma log p. Below the clamp the gradient of the power (infinite for gamma < 1) meets a factor of 0, not NaN."""
    rest = -torch.expm1(log_p)
    power = float(gamma) if not isinstance(gamma, str) else _flsd_53(log_p)
    return rest.clamp_min(torch.finfo(rest.dtype).tiny) ** power * log_p


def _binary(log_p: Tensor, log_rest: Tensor, gamma: Gamma) -> Tensor:
    power = float(gamma) if not isinstance(gamma, str) else _flsd_53(log_p)
    return torch.exp(power * log_rest) * log_p


def _flsd_53(log_p: Tensor) -> Tensor:
    """The exponent of each row; a constant for the gradient."""
    return torch.where(log_p.detach().exp() < 0.2, 5.0, 3.0).to(log_p.dtype)


def _check_gamma(gamma: Gamma) -> None:
    if isinstance(gamma, str):
        wrong = gamma != "flsd-53"
    else:  # numbers of fewer bits cannot be compared with the largest, and not every whole number is a float
        wrong = not 0 <= (gamma if isinstance(gamma, int) else float(gamma)) <= sys.float_info.max
    if wrong:
        raise InputError(f"gamma must be a number of at least 0, such as 3, or 'flsd-53', not {gamma!r}")


class FocalLoss(Module):  # type: ignore[misc]
    """:func:`focal_loss` as a module.

    >>> FocalLoss(gamma="flsd-53")
    FocalLoss(gamma=flsd-53)
    """

    weight: Tensor | None

    def __init__(self, gamma: Gamma = 3.0, *, weight: Tensor | None = None, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        _check_gamma(gamma)
        self.gamma, self.reduction = gamma, reduction
        self.register_buffer("weight", weight)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return focal_loss(logits, targets, gamma=self.gamma, weight=self.weight, reduction=self.reduction)

    def extra_repr(self) -> str:
        return f"gamma={self.gamma}"
