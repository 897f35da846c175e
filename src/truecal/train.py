"""Training losses for calibrated networks, and a log of calibration by epoch.

This module needs torch (`pip install 'truecal[torch]'`), which is imported on the first use of `tc.train`. Binary logits have shape
(n,) and belong to the positive class, others (n, classes); targets are class indices, or soft labels with one probability per class
(per row for binary logits). Each loss at strength 0 is torch's cross-entropy, bit for bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from truecal import options
from truecal.engines.accumulate import Accumulator
from truecal.errors import InputError, MissingExtraError
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Estimate
from truecal.lenses.lens import Lens
from truecal.table import Frame

# ----------------------------------------------------------------------------------------------------
# Logits and targets: shapes checked, half precision widened

try:
    import torch as torch
except ImportError as error:
    raise MissingExtraError.of("torch", "torch") from error

Tensor: TypeAlias = torch.Tensor
Module: TypeAlias = torch.nn.Module
functional = torch.nn.functional
Reduction: TypeAlias = Literal["mean", "sum", "none"]
__all__ = [
    "CalibrationLog",
    "FocalLoss",
    "LabelSmoothing",
    "Mixup",
    "PenalizedCrossEntropy",
    "cross_entropy",
    "focal_loss",
    "mixup",
    "mmce",
    "smoothed_cross_entropy",
    "soft_binned_error",
]
IGNORED = -100  # by choice: a hard target that leaves its row out, as in torch


def widen(logits: Tensor) -> Tensor:
    """Convert half precision to float32 (float16 cannot represent the loss of a logit of 1e5); return others unchanged.

    >>> widen(torch.zeros(1, dtype=torch.float16)).dtype
    torch.float32
    """
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def is_hard(targets: Tensor) -> bool:
    """Return whether targets are class indices (whole numbers or booleans) rather than probabilities.

    >>> is_hard(torch.tensor([0, 1])), is_hard(torch.tensor([0.5]))
    (True, False)
    """
    options.instance(targets, torch.Tensor, "targets", "a tensor", "write torch.as_tensor(targets)")
    return not targets.is_floating_point()


def check_batch(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Check shapes and types; return widened logits, and targets as int64 indices or in the precision of the logits.

    Values are not checked: that would cost a pass over the batch in every step.

    >>> check_batch(torch.tensor([0.5]), torch.tensor([1]))
    (tensor([0.5000]), tensor([1.]))
    """
    options.instance(logits, torch.Tensor, "logits", "a tensor", "write torch.as_tensor(logits)")
    logits = widen(logits)
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
        expected = "one class index per row" if hard else "one probability per logit"
        raise InputError(
            f"targets have shape {tuple(targets.shape)} and logits {tuple(logits.shape)}; give {expected} "
            "(whole numbers mean classes, floating point means soft labels)"
        )
    if hard and logits.ndim == 2:
        return logits, targets.long()
    return logits, targets.to(logits.dtype)


def to_two_columns(logits: Tensor, targets: Tensor, *, hard: bool) -> tuple[Tensor, Tensor]:
    """Convert binary logits z (n,) to (0, z) of shape (n, 2), with targets as indices, or as probabilities (n, 2).

    >>> to_two_columns(torch.tensor([2.0]), torch.tensor([1]), hard=True)
    (tensor([[0., 2.]]), tensor([1]))
    """
    columns = torch.stack((torch.zeros_like(logits), logits), dim=1)
    return columns, targets.long() if hard else torch.stack((1 - targets, targets), dim=1)


def reduce_losses(losses: Tensor, reduction: Reduction, total: Tensor | None = None) -> Tensor:
    """Combine the losses of rows (n,) into a scalar; "none" returns them. A mean divides by `total`, a sum of weights, if
    given.

    >>> reduce_losses(torch.tensor([1.0, 3.0]), "mean"), reduce_losses(torch.tensor([1.0, 3.0]), "mean", torch.tensor(8.0))
    (tensor(2.), tensor(0.5000))
    """
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if total is None else losses.sum() / total


def reduce_counted(losses: Tensor, counted: Tensor, reduction: Reduction, weight: Tensor | None = None) -> Tensor:
    """Combine the losses (n,) of the rows marked in `counted`; the others are 0 and do not enter the mean.

    A mean divides by the number of counted rows, or by the sum of their weights `weight` (n,); NaN where no row counts.

    >>> reduce_counted(torch.tensor([1.0, 3.0, 9.0]), torch.tensor([True, True, False]), "mean")
    tensor(2.)
    """
    losses = torch.where(counted, losses, 0.0)
    return reduce_losses(losses, reduction, (counted if weight is None else torch.where(counted, weight, 0.0)).sum())


def check_reduction(reduction: Reduction) -> None:
    """Refuse a reduction other than "mean", "sum" and "none".

    >>> check_reduction("max")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: reduction must be 'mean', 'sum' or 'none', not 'max'
    """
    if reduction not in ("mean", "sum", "none"):
        raise InputError(f"reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


# ----------------------------------------------------------------------------------------------------
# Cross-entropy, plain and with smoothed labels


def cross_entropy(
    logits: Tensor, targets: Tensor, *, weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r"""Compute the cross-entropy of logits, two classes or more, hard or soft targets.

    .. math:: L = -\sum_k t_k \log p_k

    This is torch's loss, with half precision computed in float32 and one function for (n,) and (n, classes).

    Parameters
    ----------
    logits : Tensor of shape (n,) or (n, classes)
        Logits of the positive class, or of every class.
    targets : Tensor of shape (n,) or (n, classes)
        Class indices (whole numbers or booleans; -100 leaves a row out, as in torch), or probabilities of the shape of the
        logits.
    weight : Tensor, default None
        One weight per class (two for binary logits); a mean over hard targets then divides by the weights, as in torch.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the losses of rows are combined.

    Returns
    -------
    loss : Tensor
        A scalar, or one loss per row for reduction="none".

    Raises
    ------
    InputError
        Shapes or types of logits and targets do not fit.

    See Also
    --------
    smoothed_cross_entropy : With smoothed labels.
    focal_loss : With less weight on easy rows.

    Examples
    --------
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
    r"""Compute the cross-entropy with a share of every label spread over all classes (label smoothing).

    .. math:: L = -\sum_k ((1 - \alpha) t_k + \alpha / K) \log p_k

    for K classes. With `smoothing` 0 it is :func:`cross_entropy` bit for bit.

    Parameters
    ----------
    logits : Tensor of shape (n,) or (n, classes)
        Logits of the positive class, or of every class.
    targets : Tensor of shape (n,) or (n, classes)
        Class indices (whole numbers or booleans; -100 leaves a row out, as in torch), or probabilities of the shape of the
        logits.
    smoothing : float
        alpha, at least 0 and below 1.
    weight : Tensor, default None
        One weight per class (two for binary logits); a mean over hard targets then divides by the weights, as in torch.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the losses of rows are combined.

    Returns
    -------
    loss : Tensor
        A scalar, or one loss per row for reduction="none".

    Raises
    ------
    InputError
        `smoothing` is not in [0, 1), `reduction` unknown, or logits and targets do not fit together.

    References
    ----------
    Szegedy, Vanhoucke, Ioffe, Shlens, Wojna. Rethinking the Inception architecture for computer vision. CVPR 2016.
    https://doi.org/10.1109/CVPR.2016.308

    See Also
    --------
    LabelSmoothing : The same as a module.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[20.0, 0.0]])
    >>> smoothed_cross_entropy(logits, torch.tensor([0]), smoothing=0.1).item()  # overconfidence is penalised
    1.0
    """
    check_reduction(reduction)
    _check_smoothing(smoothing)
    hard = is_hard(targets)
    logits, targets = check_batch(logits, targets)
    if logits.ndim == 1 and weight is None:
        counted = targets != IGNORED
        labels = torch.where(counted, targets, 0.0) if hard else targets
        soft = labels if smoothing == 0 else labels * (1 - smoothing) + smoothing / 2
        if not hard:
            return functional.binary_cross_entropy_with_logits(logits, soft, reduction=reduction)
        return reduce_counted(
            functional.binary_cross_entropy_with_logits(logits, soft, reduction="none"), counted, reduction
        )
    if logits.ndim == 1:
        logits, targets = to_two_columns(logits, targets, hard=hard)
    weight = None if weight is None else weight.to(logits)
    return functional.cross_entropy(logits, targets, weight=weight, reduction=reduction, label_smoothing=smoothing)


def _check_smoothing(smoothing: float) -> None:
    """Refuse a smoothing that is not at least 0 and below 1.

    >>> _check_smoothing(1.0)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: smoothing must be at least 0 and below 1, such as 0.1, not 1.0
    """
    if not 0 <= smoothing < 1:
        raise InputError(f"smoothing must be at least 0 and below 1, such as 0.1, not {smoothing!r}")


class LabelSmoothing(Module):  # type: ignore[misc]
    """Compute :func:`smoothed_cross_entropy` as a module.

    Parameters
    ----------
    smoothing : float, default 0.1
        Share of every label that is spread over all classes, at least 0 and below 1.
    weight : Tensor, default None
        One weight per class (two for binary logits); a mean over hard targets then divides by the weights, as in torch.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the losses of rows are combined.

    See Also
    --------
    smoothed_cross_entropy : The function.

    Examples
    --------
    >>> import torch
    >>> loss = LabelSmoothing(0.05)
    >>> loss
    LabelSmoothing(smoothing=0.05)
    >>> round(loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])).item(), 4)  # log 3
    1.0986
    """

    weight: Tensor | None

    def __init__(self, smoothing: float = 0.1, *, weight: Tensor | None = None, reduction: Reduction = "mean") -> None:
        """Check and store the settings; `weight` is a buffer, so that it moves between devices with the module."""
        super().__init__()
        check_reduction(reduction)
        _check_smoothing(smoothing)
        self.smoothing, self.reduction = smoothing, reduction
        self.register_buffer("weight", weight)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        logits : Tensor of shape (n,) or (n, classes)
            Logits of the positive class, or of every class.
        targets : Tensor of shape (n,) or (n, classes)
            Class indices or probabilities.

        Returns
        -------
        loss : Tensor
            A scalar, or one loss per row for reduction="none".
        """
        return smoothed_cross_entropy(
            logits, targets, smoothing=self.smoothing, weight=self.weight, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        """Return the settings shown by `repr`, such as "smoothing=0.1".

        >>> LabelSmoothing(0.2)
        LabelSmoothing(smoothing=0.2)
        """
        return f"smoothing={self.smoothing:g}"


# ----------------------------------------------------------------------------------------------------
# Focal loss

Gamma: TypeAlias = float | Literal["flsd-53"]


def focal_loss(
    logits: Tensor,
    targets: Tensor,
    *,
    gamma: Gamma,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Compute the focal loss of logits, two classes or more, hard or soft targets.

    .. math:: L = -\sum_k t_k (1 - p_k)^\gamma \log p_k

    Cross-entropy with less weight on rows that are already predicted well. With gamma 0 it is :func:`cross_entropy` bit for bit.

    Parameters
    ----------
    logits : Tensor of shape (n,) or (n, classes)
        Logits of the positive class, or of every class.
    targets : Tensor of shape (n,) or (n, classes)
        Class indices (whole numbers or booleans; -100 leaves a row out, as in torch), or probabilities of the shape of the
        logits.
    gamma : float or "flsd-53"
        Exponent, from 0 to 10,000; "flsd-53" is the sample-dependent schedule of Mukhoti et al.: 5 where the probability of
        the target is below 0.2, else 3.
    weight : Tensor, default None
        One weight per class (two for binary logits); a mean over hard targets then divides by the weights, as in torch.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the losses of rows are combined.

    Returns
    -------
    loss : Tensor
        A scalar, or one loss per row for reduction="none".

    Raises
    ------
    InputError
        `gamma` is neither from 0 to 10,000 nor "flsd-53", or logits and targets do not fit together.

    References
    ----------
    Lin, Goyal, Girshick, He, Dollár. Focal loss for dense object detection. ICCV 2017.
    https://doi.org/10.1109/ICCV.2017.324
    Mukhoti et al. Calibrating deep neural networks using focal loss. NeurIPS 2020. https://doi.org/10.48550/arXiv.2002.09437

    See Also
    --------
    FocalLoss : The same as a module.

    Examples
    --------
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
    logits, targets = check_batch(logits, targets)
    if logits.ndim == 1:
        logits, targets = to_two_columns(logits, targets, hard=hard)
    log_p = functional.log_softmax(logits, dim=1)
    weight = None if weight is None else weight.to(logits)
    if not hard:
        losses = -targets * _focal_terms(log_p, gamma)
        return reduce_losses((losses if weight is None else losses * weight).sum(dim=1), reduction)
    counted = targets != IGNORED
    labels = torch.where(counted, targets, 0)
    losses = -_focal_terms(log_p.gather(1, labels[:, None]).squeeze(1), gamma)
    if weight is None:
        return reduce_counted(losses, counted, reduction)
    return reduce_counted(losses * weight[labels], counted, reduction, weight[labels])


def _focal_terms(log_p: Tensor, gamma: Gamma) -> Tensor:
    """Compute (1 - p)^gamma log p from log probabilities of any shape, gamma a number or the schedule "flsd-53".

    1 - p is at least the smallest normal number of its type: for p = 1 and gamma < 1 the gradient is then 0, not NaN.

    >>> _focal_terms(torch.tensor([0.5]).log(), 1.0)  # 0.5 ln 0.5
    tensor([-0.3466])
    """
    rest = -torch.expm1(log_p)
    power = float(gamma) if not isinstance(gamma, str) else _flsd_53(log_p)
    return rest.clamp_min(torch.finfo(rest.dtype).tiny) ** power * log_p


def _flsd_53(log_p: Tensor) -> Tensor:
    """Return the exponent of each probability: 5 where p < 0.2, else 3; without a gradient.

    >>> _flsd_53(torch.tensor([0.1, 0.5]).log())
    tensor([5., 3.])
    """
    return torch.where(log_p.detach().exp() < 0.2, 5.0, 3.0).to(log_p.dtype)


def _check_gamma(gamma: Gamma) -> None:
    """Refuse a gamma that is neither a number from 0 to 10,000 nor "flsd-53".

    >>> _check_gamma("flsd")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: gamma must be a number from 0 to 10,000, such as 3, or 'flsd-53', not 'flsd'
    """
    refused = gamma != "flsd-53" if isinstance(gamma, str) else not 0 <= gamma <= 1e4
    if refused:
        raise InputError(f"gamma must be a number from 0 to 10,000, such as 3, or 'flsd-53', not {gamma!r}")


class FocalLoss(Module):  # type: ignore[misc]
    """Compute :func:`focal_loss` as a module.

    Parameters
    ----------
    gamma : float or "flsd-53", default 3.0
        Exponent, at least 0, or the sample-dependent schedule.
    weight : Tensor, default None
        One weight per class (two for binary logits); a mean over hard targets then divides by the weights, as in torch.
    reduction : {"mean", "sum", "none"}, default "mean"
        How the losses of rows are combined.

    See Also
    --------
    focal_loss : The function.

    Examples
    --------
    >>> FocalLoss(gamma="flsd-53")
    FocalLoss(gamma=flsd-53)
    """

    weight: Tensor | None

    def __init__(self, gamma: Gamma = 3.0, *, weight: Tensor | None = None, reduction: Reduction = "mean") -> None:
        """Check and store the settings; `weight` is a buffer, so that it moves between devices with the module."""
        super().__init__()
        check_reduction(reduction)
        _check_gamma(gamma)
        self.gamma, self.reduction = gamma, reduction
        self.register_buffer("weight", weight)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        logits : Tensor of shape (n,) or (n, classes)
            Logits of the positive class, or of every class.
        targets : Tensor of shape (n,) or (n, classes)
            Class indices or probabilities.

        Returns
        -------
        loss : Tensor
            A scalar, or one loss per row for reduction="none".
        """
        return focal_loss(logits, targets, gamma=self.gamma, weight=self.weight, reduction=self.reduction)

    def extra_repr(self) -> str:
        """Return the settings shown by `repr`, such as "gamma=3.0".

        >>> FocalLoss(2.0)
        FocalLoss(gamma=2.0)
        """
        return f"gamma={self.gamma}"


# ----------------------------------------------------------------------------------------------------
# Calibration by epoch, from a sketch of fixed size


class CalibrationLog:
    """Record the calibration error of a network by epoch, from its batches.

    Pass each batch to `update` and close the epoch with `end_epoch`; `rows` holds one record per epoch. Logits are converted to
    probabilities in float64 and counted by a :class:`truecal.Accumulator`, whose state stays below 2 MiB for any number of rows.

    Parameters
    ----------
    estimator : Estimator, default None
        As in :func:`truecal.calibration_error`.
    lens : Lens, default None
        What is judged: TopLabel() or OneClass(c); None is the positive class of binary logits, else the predicted class.
    level : float, default 0.95
        Level of the interval.

    See Also
    --------
    truecal.Accumulator : The same for probabilities.

    Examples
    --------
    >>> import torch
    >>> rng = torch.Generator().manual_seed(0)
    >>> log = CalibrationLog()
    >>> for epoch in range(2):
    ...     for _ in range(4):
    ...         logits = torch.randn(500, 3, generator=rng)
    ...         labels = torch.multinomial(logits.softmax(1), 1, generator=rng).squeeze(1)
    ...         log.update(logits * (1 + 2 * epoch), labels)  # overconfident in the second epoch
    ...     estimate = log.end_epoch()
    >>> [(row["epoch"], row["n"], round(row["error"], 1)) for row in log.rows]
    [(1, 2000, 0.0), (2, 2000, 0.2)]
    """

    def __init__(self, *, estimator: Estimator | None = None, lens: Lens | None = None, level: float = 0.95) -> None:
        """Start without records and without rows."""
        options.level(level)
        self.estimator, self.level = estimator, level
        self.rows: list[dict[str, Any]] = []
        self._accumulator = Accumulator(lens=lens)
        self._correct = 0

    def update(self, logits: Tensor, targets: Tensor) -> None:
        """Add a batch to the running epoch.

        Parameters
        ----------
        logits : Tensor of shape (n,) or (n, classes)
            On any device.
        targets : Tensor of shape (n,)
            Class indices; rows whose target is -100 are left out.

        Raises
        ------
        InputError
            Logits or targets are no tensors, do not fit together, or targets are soft.
        """
        if not (isinstance(logits, torch.Tensor) and isinstance(targets, torch.Tensor)):
            raise InputError(
                f"logits and targets must be torch tensors, not {type(logits).__name__}, {type(targets).__name__}"
            )
        if not is_hard(targets):
            raise InputError("a calibration error needs observed labels: give class indices, not soft labels")
        with torch.no_grad():
            logits, targets = check_batch(logits.detach().cpu(), targets.detach().cpu())
            counted = targets != IGNORED
            logits, targets = logits[counted].double(), targets[counted]
            if not len(targets):
                return
            probs = torch.sigmoid(logits) if logits.ndim == 1 else torch.softmax(logits, dim=1)
            predicted = (logits >= 0).long() if logits.ndim == 1 else probs.argmax(dim=1)
            self._accumulator.update(targets.long().numpy(), probs.numpy())
            self._correct += int((predicted == targets.long()).sum())

    def end_epoch(self) -> Estimate:
        """Return the calibration error of the batches since the last epoch, and record it in `rows`.

        Returns
        -------
        Estimate
            The error of the epoch. Its record has epoch (from 1), n, error, low and high (None without an interval), accuracy.

        Raises
        ------
        InputError
            If there was no batch since the last epoch.
        """
        if self._accumulator.rows == 0:
            raise InputError("there was no batch since the last epoch; call update(logits, targets) first")
        estimate = self._accumulator.compute(estimator=self.estimator, level=self.level)
        low, high = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
        accuracy = self._correct / self._accumulator.rows
        record = {
            "epoch": len(self.rows) + 1,
            "n": self._accumulator.rows,
            "error": estimate.value,
            "low": low,
            "high": high,
        }
        self.rows.append({**record, "accuracy": accuracy})
        self._accumulator.reset()
        self._correct = 0
        return estimate

    def frame(self) -> Frame:
        """Return a table with one row per epoch: epoch, n, error, low, high, accuracy."""
        return Frame.from_records(self.rows, columns=("epoch", "n", "error", "low", "high", "accuracy"))


# ----------------------------------------------------------------------------------------------------
# Mixup


def mixup(
    inputs: Tensor, targets: Tensor, *, alpha: float, classes: int | None, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    r"""Mix a batch with a permutation of itself: inputs and soft labels.

    .. math:: x = \lambda x_i + (1 - \lambda) x_j, \quad t = \lambda t_i + (1 - \lambda) t_j

    with lambda drawn from Beta(alpha, alpha), one for the batch. The labels are soft; every loss of this module takes them.

    Parameters
    ----------
    inputs : Tensor of shape (n, ...)
        Floating point.
    targets : Tensor of shape (n,) or (n, classes)
        Class indices, or soft labels ((n,) probabilities for binary logits).
    alpha : float
        0 returns the batch as it is; 1 draws lambda uniformly.
    classes : int or None
        Number of columns of the logits, and so of the soft labels; None for binary logits of shape (n,).
    generator : torch.Generator, default None
        Seeded, makes the mixtures reproducible.

    Returns
    -------
    inputs : Tensor of shape (n, ...)
        Mixed inputs.
    targets : Tensor of shape (n, classes) or (n,)
        Soft labels.

    Raises
    ------
    InputError
        Inputs are not floating point, a row has no label, or a label is not below `classes`.

    References
    ----------
    Zhang, Cisse, Dauphin, Lopez-Paz. mixup: beyond empirical risk minimization. ICLR 2018.
    https://doi.org/10.48550/arXiv.1710.09412

    See Also
    --------
    Mixup : The same as a module.

    Examples
    --------
    >>> import torch
    >>> x, t = torch.eye(3), torch.tensor([0, 1, 2])
    >>> mixed, soft = mixup(x, t, alpha=1.0, classes=3, generator=torch.Generator().manual_seed(5))
    >>> bool(torch.equal(mixed, soft)), soft.sum(dim=1).tolist()
    (True, [1.0, 1.0, 1.0])
    """
    _check_mixup(alpha, classes)
    if not inputs.is_floating_point():
        raise InputError(f"mixup needs floating-point inputs, not {inputs.dtype}; convert them first")
    if len(inputs) != len(targets):
        raise InputError(f"there are {len(inputs)} inputs and {len(targets)} targets; mixup needs as many of both")
    if alpha == 0:
        return inputs, targets
    device = None if generator is None else generator.device
    seed = int(torch.randint(2**62, (), generator=generator, device=device))
    share = random.Random(seed).betavariate(alpha, alpha)  # lambda
    order = torch.randperm(len(inputs), generator=generator, device=device).to(inputs.device)
    if is_hard(targets):
        if bool((targets < 0).any()):
            raise InputError("mixup cannot mix rows without a label (a target below 0, such as -100); drop them first")
        count = 2 if classes is None else classes
        if bool((targets >= count).any()):
            setting = f"classes={classes}" + (" (binary labels)" if classes is None else "")
            raise InputError(
                f"a target is {int(targets.max())}, which is not below {count}; {setting} must fit the logits"
            )
        targets = (targets if classes is None else functional.one_hot(targets.long(), classes)).to(torch.float32)
    return torch.lerp(inputs[order], inputs, share), torch.lerp(targets[order], targets, share)


def _check_mixup(alpha: float, classes: int | None) -> None:
    """Refuse a negative or infinite alpha, and fewer than two classes.

    >>> _check_mixup(-1.0, 3)
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: alpha must be a number of at least 0, such as 0.2, not -1.0
    """
    if not 0 <= alpha < float("inf"):
        raise InputError(f"alpha must be a number of at least 0, such as 0.2, not {alpha!r}")
    if classes is not None:  # None: binary logits
        options.whole(classes, "classes", 2, 2**31)


class Mixup(Module):  # type: ignore[misc]
    """Mix batches by :func:`mixup` as a module with a random stream; in evaluation mode it returns the batch as it is.

    Parameters
    ----------
    alpha : float, default 0.2
        Parameter of the Beta distribution; 0 leaves batches as they are.
    classes : int or None
        Number of columns of the logits; None for binary logits.
    seed : int, default 0
        Seed of the random stream.

    See Also
    --------
    mixup : The function.

    Examples
    --------
    >>> import torch
    >>> mix = Mixup(0.2, classes=10, seed=0)
    >>> mix
    Mixup(alpha=0.2, classes=10)
    >>> x, t = torch.rand(4, 8), torch.tensor([3, 1, 4, 1])
    >>> mix(x, t)[1].shape, mix.eval()(x, t)[1].shape
    (torch.Size([4, 10]), torch.Size([4]))
    """

    def __init__(self, alpha: float = 0.2, *, classes: int | None, seed: int = 0) -> None:
        """Check and store the settings; start the random stream at `seed`."""
        super().__init__()
        _check_mixup(alpha, classes)
        self.alpha, self.classes = alpha, classes
        options.whole(seed, "seed", 0, 2**63 - 1)
        self.generator = torch.Generator().manual_seed(int(seed))

    def forward(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Mix a batch.

        Parameters
        ----------
        inputs : Tensor of shape (n, ...)
            Floating point.
        targets : Tensor of shape (n,) or (n, classes)
            Class indices or soft labels.

        Returns
        -------
        inputs : Tensor of shape (n, ...)
            Mixed inputs.
        targets : Tensor
            Soft labels.

        Raises
        ------
        InputError
            Inputs or targets are no tensors, or :func:`mixup` refuses them.
        """
        if not (isinstance(inputs, torch.Tensor) and isinstance(targets, torch.Tensor)):
            raise InputError(
                f"inputs and targets must be tensors, not {type(inputs).__name__}, {type(targets).__name__}"
            )
        if not self.training:
            return inputs, targets
        return mixup(inputs, targets, alpha=self.alpha, classes=self.classes, generator=self.generator)

    def get_extra_state(self) -> Tensor:
        """Return the state of the random stream, which state_dict() includes so that a resumed run continues it."""
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Restore the state of the random stream.

        Parameters
        ----------
        state : Tensor
            As returned by `get_extra_state`.
        """
        self.generator.set_state(state)

    def extra_repr(self) -> str:
        """Return the settings shown by `repr`, such as "alpha=0.2, classes=10".

        >>> Mixup(0.4, classes=10)
        Mixup(alpha=0.4, classes=10)
        """
        return f"alpha={self.alpha:g}, classes={self.classes}"


# ----------------------------------------------------------------------------------------------------
# Differentiable calibration errors of a batch, as penalties

PenaltyFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def soft_binned_error(logits: Tensor, targets: Tensor, *, bins: int = 15, temperature: float = 0.01) -> Tensor:
    r"""Compute the soft-binned calibration error of a batch, norm 2, which has a gradient.

    .. math:: E^2 = \sum_j \frac{s_j}{n} (C_j - Y_j)^2

    Every row is shared among all bins: its shares are the softmax over j of -(c - (j - 1/2) / bins)^2 / temperature, with c its
    confidence. s_j is the sum of the shares in bin j, and C_j and Y_j are the means of confidence and correctness weighted by
    them.

    Parameters
    ----------
    logits : Tensor of shape (n,) or (n, classes)
        Logits of the positive class, or of every class.
    targets : Tensor of shape (n,) or (n, classes)
        Class indices (whole numbers or booleans; -100 leaves a row out, as in torch), or probabilities of the shape of the
        logits.
    bins : int, default 15
        Number of bins.
    temperature : float, default 0.01
        Width of the transition between bins; near 0 the bins are hard.

    Returns
    -------
    error : Tensor
        A scalar.

    Raises
    ------
    InputError
        The batch is empty, `temperature` not above 0, or `bins` no whole number of at least 1.

    References
    ----------
    Karandikar et al. Soft calibration objectives for neural networks. NeurIPS 2021.
    https://doi.org/10.48550/arXiv.2108.00106

    See Also
    --------
    PenalizedCrossEntropy : Cross-entropy with this penalty.
    mmce : A kernel estimate.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0]], requires_grad=True)
    >>> error = soft_binned_error(logits, torch.tensor([0, 1]))  # 95 % confident, right half of the time
    >>> round(error.item(), 2)
    0.45
    >>> error.backward(); bool(logits.grad[0, 0] > 0)  # descent lowers the confidence
    True
    """
    temperature = float(temperature)  # torch divides by no whole number beyond 64 bits
    options.bins(bins)
    if not temperature > 0:
        raise InputError(f"temperature must be above 0, not {temperature!r}")
    confidence, right = _confidence_and_correctness(logits, targets)
    centres = (torch.arange(bins, dtype=confidence.dtype, device=confidence.device) + 0.5) / bins
    shares = torch.softmax(-((confidence[:, None] - centres) ** 2) / temperature, dim=1)  # (n, bins)
    mass = shares.sum(dim=0)
    gap_sums = shares.T @ (confidence - right)
    safe_mass = mass.clamp_min(torch.finfo(mass.dtype).tiny)  # an empty bin adds 0, not NaN
    return _safe_root((gap_sums * gap_sums / safe_mass).sum() / len(confidence))


def mmce(logits: Tensor, targets: Tensor, *, width: float = 0.4) -> Tensor:
    r"""Compute the maximum mean calibration error of a batch with a Laplace kernel, which has a gradient.

    .. math:: E^2 = \frac{1}{n^2} \sum_{ij} (c_i - y_i) (c_j - y_j) \exp(-|c_i - c_j| / w)

    with confidences c and correctness y. Memory and time grow with n x n for a batch of n rows.

    Parameters
    ----------
    logits : Tensor of shape (n,) or (n, classes)
        Logits of the positive class, or of every class.
    targets : Tensor of shape (n,) or (n, classes)
        Class indices (whole numbers or booleans; -100 leaves a row out, as in torch), or probabilities of the shape of the
        logits.
    width : float, default 0.4
        Width w of the kernel.

    Returns
    -------
    error : Tensor
        A scalar.

    Raises
    ------
    InputError
        The batch is empty, or `width` not above 0.

    References
    ----------
    Kumar, Sarawagi, Jain. Trainable calibration measures for neural networks from kernel mean embeddings. ICML 2018.
    https://proceedings.mlr.press/v80/kumar18a.html

    See Also
    --------
    PenalizedCrossEntropy : Cross-entropy with a penalty.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0]])
    >>> round(mmce(logits, torch.tensor([0, 1])).item(), 4)  # all outputs are equal: the gap itself
    0.4526
    """
    if not width > 0:
        raise InputError(f"width must be above 0, not {width!r}")
    confidence, right = _confidence_and_correctness(logits, targets)
    gap = confidence - right
    kernel = torch.exp(-(confidence[:, None] - confidence).abs() / width)
    return _safe_root(gap @ kernel @ gap) / len(confidence)


def _confidence_and_correctness(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each counted row the probability of the predicted class, and its target: 1 if right, else 0, or its soft
    label.

    Both have shape (counted rows,). Rows with a hard target of -100 are left out; a batch without any other row is refused.

    >>> _confidence_and_correctness(torch.tensor([0.0, -1.0]), torch.tensor([1, 0]))
    (tensor([0.5000, 0.7311]), tensor([1., 1.]))
    """
    hard = is_hard(targets)
    logits, targets = check_batch(logits, targets)
    if hard:
        counted = targets != IGNORED
        logits, targets = logits[counted], targets[counted]
    if len(logits) == 0:
        raise InputError("an empty batch has no calibration error")
    if logits.ndim == 1:
        positive = logits >= 0
        return torch.sigmoid(logits.abs()), torch.where(positive, targets, 1 - targets)
    confidence, predicted = torch.softmax(logits, dim=1).max(dim=1)
    right = (predicted == targets).to(confidence.dtype) if hard else targets.gather(1, predicted[:, None]).squeeze(1)
    return confidence, right


def _safe_root(square: Tensor) -> Tensor:
    """Compute the square root of a square of at least 0; of 0 it is about 1e-19 in float32, with gradient 0 instead of
    infinity.

    >>> _safe_root(torch.tensor([4.0]))
    tensor([2.])
    """
    return square.clamp_min(torch.finfo(square.dtype).tiny).sqrt()


class PenalizedCrossEntropy(Module):  # type: ignore[misc]
    """Add a calibration error of the batch to the cross-entropy, as a module.

    Parameters
    ----------
    strength : float
        Factor of the penalty, at least 0; 0 is cross-entropy bit for bit.
    penalty : callable, default soft_binned_error
        Function of logits and targets that returns a scalar Tensor, such as `mmce`.

    See Also
    --------
    soft_binned_error : The default penalty.

    Examples
    --------
    >>> import torch
    >>> loss = PenalizedCrossEntropy(0.5, mmce)
    >>> loss
    PenalizedCrossEntropy(strength=0.5, penalty=mmce)
    >>> round(loss(torch.tensor([[3.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 1])).item(), 4)
    1.7749
    """

    def __init__(self, strength: float, penalty: PenaltyFunction = soft_binned_error) -> None:
        """Store the settings; refuse a negative or infinite strength."""
        super().__init__()
        if not 0 <= strength < float("inf"):
            raise InputError(f"strength must be a number of at least 0, not {strength!r}")
        self.strength, self.penalty = strength, penalty

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        logits : Tensor of shape (n,) or (n, classes)
            Logits of the positive class, or of every class.
        targets : Tensor of shape (n,) or (n, classes)
            Class indices or probabilities.

        Returns
        -------
        loss : Tensor
            A scalar, or one loss per row for reduction="none".
        """
        loss = cross_entropy(logits, targets)
        return loss if self.strength == 0 else loss + self.strength * self.penalty(logits, targets)

    def extra_repr(self) -> str:
        """Return the settings shown by `repr`, such as "strength=0.5, penalty=mmce".

        >>> PenalizedCrossEntropy(0.5)
        PenalizedCrossEntropy(strength=0.5, penalty=soft_binned_error)
        """
        return f"strength={self.strength:g}, penalty={getattr(self.penalty, '__name__', self.penalty)}"
