"""Logits and targets as every loss takes them: shapes checked, half precision widened. The one place that imports torch."""

from typing import Literal, TypeAlias

from truecal import options
from truecal.errors import InputError, MissingExtraError

try:
    import torch as torch
except ImportError as error:
    raise MissingExtraError.of("torch", "torch") from error

Tensor: TypeAlias = torch.Tensor
Module = torch.nn.Module
functional = torch.nn.functional
Reduction: TypeAlias = Literal["mean", "sum", "none"]
IGNORED = -100  # a hard target that says: leave this row out, as in torch


def widened(logits: Tensor) -> Tensor:
    """Half precision as float32 (float16 cannot even hold the loss of a logit of 1e5); float32 and float64 as they are."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def is_hard(targets: Tensor) -> bool:
    """Whether targets are class indices (whole numbers or booleans) rather than probabilities."""
    options.instance(targets, torch.Tensor, "targets", "a tensor", "write torch.as_tensor(targets)")
    return not targets.is_floating_point()


def checked(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Widened logits, and targets as torch wants them: int64 indices, or probabilities in the logits' precision.

    Only shapes and types are looked at: values would cost a pass over the batch in every step.
    """
    options.instance(logits, torch.Tensor, "logits", "a tensor", "write torch.as_tensor(logits)")
    logits = widened(logits)
    if logits.ndim not in (1, 2) or not logits.is_floating_point() or logits.shape[-1] == 0:
        raise InputError(
            f"logits must have shape (n,) for two classes or (n, classes), not {tuple(logits.shape)} of {logits.dtype}"
        )
    if logits.ndim == 2 and logits.shape[1] == 1:
        raise InputError(
            "logits of shape (n, 1) have one class, whose probability is always 1; give (n,) for two classes: logits.squeeze(1)"
        )
    hard = is_hard(targets)
    if targets.shape != (logits.shape[:1] if hard else logits.shape):
        wanted = "one class index per row" if hard else "one probability per logit"
        raise InputError(
            f"targets have shape {tuple(targets.shape)} and logits {tuple(logits.shape)}; give {wanted} "
            "(whole numbers mean classes, floating point means soft labels)"
        )
    if hard and logits.ndim == 2:
        return logits, targets.long()
    return logits, targets.to(logits.dtype)


def in_two_columns(logits: Tensor, targets: Tensor, *, hard: bool) -> tuple[Tensor, Tensor]:
    """Binary logits as the logits (0, z) of two classes, with their targets."""
    both = torch.stack((torch.zeros_like(logits), logits), dim=1)
    return both, targets.long() if hard else torch.stack((1 - targets, targets), dim=1)


def reduced(losses: Tensor, reduction: Reduction, total: Tensor | None = None) -> Tensor:
    """Losses of the rows as asked for; a mean divides by `total` (a sum of weights) where one is given."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if total is None else losses.sum() / total


def kept_only(losses: Tensor, kept: Tensor, reduction: Reduction, weight: Tensor | None = None) -> Tensor:
    """Losses of the rows as asked for, where those not `kept` are 0 and do not count in the mean."""
    losses = torch.where(kept, losses, 0.0)
    return reduced(losses, reduction, (kept if weight is None else torch.where(kept, weight, 0.0)).sum())


def check_reduction(reduction: Reduction) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise InputError(f"reduction must be 'mean', 'sum' or 'none', not {reduction!r}")
