"""Mixup: train on blends of two rows, with labels blended alike."""

import random

from truecal import options
from truecal.errors import InputError
from truecal.train.tensors import Module, Tensor, functional, is_hard, torch


def mixup(
    inputs: Tensor, targets: Tensor, *, alpha: float, classes: int | None, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    r"""A batch blended with itself in another order: inputs, and the soft labels that belong to them.

    .. math:: x = \lambda x_i + (1 - \lambda) x_j, \quad t = \lambda t_i + (1 - \lambda) t_j

    with lambda drawn from Beta(alpha, alpha), one for the batch, as in Zhang et al. (2018). The labels are soft: hand them to any
    loss of this module. :func:`cross_entropy` then is lambda times the loss of one label plus 1 - lambda times that of the other.

    Parameters
    ----------
    inputs : (n, ...) floating point.
    targets : (n,) class indices, or soft labels: (n, classes), or (n,) probabilities for binary logits.
    alpha : 0 returns the batch as it is; 1 draws lambda uniformly.
    classes : columns of the logits, and so of the soft labels; None for binary logits of shape (n,). Soft targets keep their shape.
    generator : a seeded torch.Generator makes the blends reproducible.

    >>> import torch
    >>> x, t = torch.eye(3), torch.tensor([0, 1, 2])
    >>> blended, soft = mixup(x, t, alpha=1.0, classes=3, generator=torch.Generator().manual_seed(5))
    >>> bool(torch.equal(blended, soft)), soft.sum(dim=1).tolist()
    (True, [1.0, 1.0, 1.0])
    """
    _check(alpha, classes)
    if not inputs.is_floating_point():
        raise InputError(f"mixup blends floating-point inputs, not {inputs.dtype}; scale them first")
    if len(inputs) != len(targets):
        raise InputError(f"there are {len(inputs)} inputs and {len(targets)} targets; mixup needs as many of both")
    if alpha == 0:
        return inputs, targets
    where = None if generator is None else generator.device
    seed = int(torch.randint(2**62, (), generator=generator, device=where))
    share = random.Random(seed).betavariate(alpha, alpha)
    order = torch.randperm(len(inputs), generator=generator, device=where).to(inputs.device)
    if is_hard(targets):
        if bool((targets < 0).any()):
            raise InputError(
                "mixup cannot blend rows without a label (a target below 0, such as -100); drop them first"
            )
        count = 2 if classes is None else classes
        if bool((targets >= count).any()):
            given = f"classes={classes}" + (" (binary labels)" if classes is None else "")
            raise InputError(
                f"a target is {int(targets.max())}, which is not below {count}; {given} must fit the logits"
            )
        targets = (targets if classes is None else functional.one_hot(targets.long(), classes)).to(torch.float32)
    return torch.lerp(inputs[order], inputs, share), torch.lerp(targets[order], targets, share)


def _check(alpha: float, classes: int | None) -> None:
    if not 0 <= alpha < float("inf"):
        raise InputError(f"alpha must be a number of at least 0, such as 0.2, not {alpha!r}")
    if classes is not None:  # None: binary logits
        options.whole(classes, "classes", 2, 2**31)


class Mixup(Module):  # type: ignore[misc]
    """:func:`mixup` as a module with a stream of its own; in evaluation mode it returns the batch as it is.

    >>> import torch
    >>> mix = Mixup(0.2, classes=10, seed=0)
    >>> mix
    Mixup(alpha=0.2, classes=10)
    >>> x, t = torch.rand(4, 8), torch.tensor([3, 1, 4, 1])
    >>> mix(x, t)[1].shape, mix.eval()(x, t)[1].shape
    (torch.Size([4, 10]), torch.Size([4]))
    """

    def __init__(self, alpha: float = 0.2, *, classes: int | None, seed: int = 0) -> None:
        super().__init__()
        _check(alpha, classes)
        self.alpha, self.classes = alpha, classes
        options.whole(seed, "seed", 0, 2**63 - 1)
        self.generator = torch.Generator().manual_seed(int(seed))

    def forward(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        if not (isinstance(inputs, torch.Tensor) and isinstance(targets, torch.Tensor)):
            raise InputError(
                f"inputs and targets must be tensors, not {type(inputs).__name__}, {type(targets).__name__}"
            )
        if not self.training:
            return inputs, targets
        return mixup(inputs, targets, alpha=self.alpha, classes=self.classes, generator=self.generator)

    def get_extra_state(self) -> Tensor:
        """Where the stream of blends is, so that state_dict() takes it along and a resumed run goes on with the same blends."""
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        self.generator.set_state(state)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha:g}, classes={self.classes}"
