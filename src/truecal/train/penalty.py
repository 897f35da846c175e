"""Calibration errors of a batch that have a gradient, to be added to a loss.

Both judge the predicted class: c is its probability, y whether it is the label (with soft labels: the label's probability of it).
y is a constant for the gradient; which class is predicted, too.
"""

from collections.abc import Callable
from typing import TypeAlias

from truecal import options
from truecal.errors import InputError
from truecal.train.smoothing import cross_entropy
from truecal.train.tensors import IGNORED, Module, Tensor, checked, is_hard, torch

Penalty: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def soft_binned_error(logits: Tensor, targets: Tensor, *, bins: int = 15, temperature: float = 0.01) -> Tensor:
    r"""Soft-binned ECE (Karandikar et al. 2021), norm 2.

    .. math:: E^2 = \sum_j \frac{s_j}{n} (C_j - Y_j)^2

    Every row belongs to each of the bins a little: its shares are the softmax over j of -(c - (j - 1/2) / bins)^2 / temperature.
    s_j is the sum of the shares in bin j, and C_j and Y_j are the means of c and y weighted by them.

    Parameters
    ----------
    logits, targets : as for :func:`cross_entropy`.
    bins : number of bins.
    temperature : the smaller, the harder the edges between bins.

    >>> import torch
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0]], requires_grad=True)
    >>> error = soft_binned_error(logits, torch.tensor([0, 1]))  # 95 % sure, right half of the time
    >>> round(error.item(), 2)
    0.45
    >>> error.backward(); bool(logits.grad[0, 0] > 0)  # going down means being less sure
    True
    """
    temperature = float(temperature)  # torch divides by no whole number beyond 64 bits
    options.bins(bins)
    if not temperature > 0:
        raise InputError(f"temperature must be above 0, not {temperature!r}")
    confidence, right = _judged(logits, targets)
    centres = (torch.arange(bins, dtype=confidence.dtype, device=confidence.device) + 0.5) / bins
    member = torch.softmax(-((confidence[:, None] - centres) ** 2) / temperature, dim=1)
    mass = member.sum(dim=0)
    gap = member.T @ (confidence - right)
    filled = mass.clamp_min(torch.finfo(mass.dtype).tiny)
    return _root((gap * gap / filled).sum() / len(confidence))


def mmce(logits: Tensor, targets: Tensor, *, width: float = 0.4) -> Tensor:
    r"""Maximum mean calibration error (Kumar, Sarawagi & Jain 2018) with their Laplace kernel.

    .. math:: E^2 = \frac{1}{n^2} \sum_{ij} (c_i - y_i) (c_j - y_j) \exp(-|c_i - c_j| / w)

    Takes memory and time of n x n for a batch of n rows.

    Parameters
    ----------
    logits, targets : as for :func:`cross_entropy`.
    width : w, how far apart confidences may be to be judged together.

    >>> import torch
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0]])
    >>> round(mmce(logits, torch.tensor([0, 1])).item(), 4)  # all outputs are equal: the gap itself
    0.4526
    """
    if not width > 0:
        raise InputError(f"width must be above 0, not {width!r}")
    confidence, right = _judged(logits, targets)
    gap = confidence - right
    kernel = torch.exp(-(confidence[:, None] - confidence).abs() / width)
    return _root(gap @ kernel @ gap) / len(confidence)


def _judged(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Probability of the predicted class, and whether it was right."""
    hard = is_hard(targets)
    logits, targets = checked(logits, targets)
    if hard:
        kept = targets != IGNORED
        logits, targets = logits[kept], targets[kept]
    if len(logits) == 0:
        raise InputError("an empty batch has no calibration error")
    if logits.ndim == 1:
        positive = logits >= 0
        return torch.sigmoid(logits.abs()), torch.where(positive, targets, 1 - targets)
    confidence, predicted = torch.softmax(logits, dim=1).max(dim=1)
    right = (predicted == targets).to(confidence.dtype) if hard else targets.gather(1, predicted[:, None]).squeeze(1)
    return confidence, right


def _root(square: Tensor) -> Tensor:
    """Square root whose gradient at 0 is 0."""
    return square.clamp_min(torch.finfo(square.dtype).tiny).sqrt()


class PenalizedCrossEntropy(Module):  # type: ignore[misc]
    """Cross-entropy plus `strength` times a calibration error of the batch; strength 0 is cross-entropy bit for bit.

    >>> import torch
    >>> loss = PenalizedCrossEntropy(0.5, mmce)
    >>> loss
    PenalizedCrossEntropy(strength=0.5, penalty=mmce)
    >>> round(loss(torch.tensor([[3.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 1])).item(), 4)
    1.7749
    """

    def __init__(self, strength: float, penalty: Penalty = soft_binned_error) -> None:
        super().__init__()
        if not 0 <= strength < float("inf"):
            raise InputError(f"strength must be a number of at least 0, not {strength!r}")
        self.strength, self.penalty = strength, penalty

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        loss = cross_entropy(logits, targets)
        return loss if self.strength == 0 else loss + self.strength * self.penalty(logits, targets)

    def extra_repr(self) -> str:
        return f"strength={self.strength:g}, penalty={getattr(self.penalty, '__name__', self.penalty)}"
