"""Train small networks under one intervention, reproducibly."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.study.interventions.plan import Kind, Recipe
from truecal.train import Module, Tensor, cross_entropy, focal_loss, mixup, smoothed_cross_entropy, torch

# ----------------------------------------------------------------------------------------------------
# Two small networks for images or rows of numbers, made the same by the same seed


def network(kind: Kind, shape: tuple[int, ...], classes: int, *, width: int, seed: int) -> Module:
    """Make a network from inputs of `shape` (without the batch) to (n, classes) logits; `seed` fixes its initial weights.

    "mlp": two hidden layers of `width`. "cnn": two 3 x 3 convolutions of `width` and 2 `width` channels, halved by pooling, and
    one hidden layer, for images of shape (height, width) or (channels, height, width). Dropout before the last layer is off at
    first.

    >>> import torch
    >>> network("cnn", (8, 8), 10, width=4, seed=0)(torch.zeros(5, 8, 8)).shape
    torch.Size([5, 10])
    """
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        if kind == "mlp":
            last = width
            hidden = [nn.Linear(math.prod(shape), width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        else:
            channels, rows, columns = (1, *shape)[-3:]
            last = 4 * width
            hidden = [nn.Unflatten(1, (channels, rows, columns))]
            hidden += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            hidden += [nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
            hidden += [nn.Linear(2 * width * (rows // 2) * (columns // 2), last), nn.ReLU()]
        return nn.Sequential(nn.Flatten(), *hidden, nn.Dropout(0.0), nn.Linear(last, classes))


# ----------------------------------------------------------------------------------------------------
# Training a network under one intervention, the same numbers every time on one machine

While: TypeAlias = Literal["none", "label-smoothing", "mixup", "focal", "mc-dropout"]
_PASSES = 20  # by choice: passes with dropout left on, whose probabilities are averaged
Strength: TypeAlias = float | Literal["flsd-53"]


@contextmanager
def repeatable() -> Iterator[None]:
    """Use one thread and deterministic algorithms of torch within the block; restore the settings at its end."""
    threads, strict = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(strict)


def make_optimizer(model: Module, recipe: Recipe, steps: int) -> tuple[Any, Any]:
    """Make torch's stochastic gradient descent, and the schedule whose rate falls to 0 along a half cosine of `steps` steps.

    Rate, momentum and weight decay are those of the recipe; at step t the rate is multiplied by (1 + cos(pi t / steps)) / 2.
    """
    options = {"lr": recipe.learning_rate, "momentum": recipe.momentum, "weight_decay": recipe.weight_decay}
    optimizer = torch.optim.SGD(model.parameters(), **options)
    half_cosine = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: (1 + math.cos(math.pi * t / steps)) / 2)
    return optimizer, half_cosine


def objective(
    kind: While, strength: Strength, classes: int, generator: torch.Generator
) -> Callable[[Module, Tensor, Tensor], Tensor]:
    """Return the loss of an intervention: a function (network, inputs, class indices) of a batch that returns a scalar.

    `strength` is the smoothing of label-smoothing, the alpha of mixup (blended by `generator`) or the gamma of focal, which alone
    takes "flsd-53". With "none" and "mc-dropout", whose strength is the rate of dropout, it is the cross-entropy.
    """
    if kind in ("none", "mc-dropout"):
        return lambda model, x, y: cross_entropy(model(x), y)
    if kind == "focal":
        return lambda model, x, y: focal_loss(model(x), y, gamma=strength)
    if isinstance(strength, str):
        raise InputError(f"{kind} takes a number as its strength, not {strength!r}")
    if kind == "label-smoothing":
        return lambda model, x, y: smoothed_cross_entropy(model(x), y, smoothing=strength)

    def blended(model: Module, x: Tensor, y: Tensor) -> Tensor:
        """Compute the cross-entropy of a batch mixed with a permutation of itself."""
        x, soft = mixup(x, y, alpha=strength, classes=classes, generator=generator)
        return cross_entropy(model(x), soft)

    return blended


def fit(
    inputs: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    classes: int,
    recipe: Recipe,
    kind: While = "none",
    strength: Strength = 0.0,
    seed: int = 0,
) -> Module:
    """Train a network on inputs (n, ...) and class indices (n,); return it in evaluation mode.

    Equal seeds give equal initial weights and equal batches under every intervention. `strength` is as in `objective`.

    >>> import numpy as np
    >>> x = np.eye(3, dtype=np.float32).repeat(20, axis=0)
    >>> y = np.arange(3).repeat(20)
    >>> model = fit(x, y, classes=3, recipe=Recipe("mlp", width=8, epochs=20, batch=16, learning_rate=0.1))
    >>> logits_of(model, x).argmax(axis=1)[::20]
    array([0, 1, 2])
    """
    with repeatable(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))  # of dropout
        shape = inputs.shape[1:]
        model = network(recipe.network, shape, classes, width=recipe.width, seed=seed)
        if kind == "mc-dropout":
            model[-2].p = float(strength)
        order, blends = torch.Generator().manual_seed(int(seed)), torch.Generator().manual_seed(int(seed) + 2**32)
        loss = objective(kind, strength, classes, blends)
        x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
        steps = recipe.epochs * -(-len(x) // recipe.batch)
        optimizer, schedule = make_optimizer(model, recipe, steps)
        for _ in range(recipe.epochs):
            for rows in torch.randperm(len(x), generator=order).split(recipe.batch):
                optimizer.zero_grad()
                loss(model, x[rows], y[rows]).backward()
                optimizer.step()
                schedule.step()
    return model.eval()


def averaged_logits(model: Module, inputs: NDArray[np.float32], *, seed: int = 0) -> NDArray[np.float32]:
    """Compute the log of the mean probability over 20 passes with dropout on (Gal & Ghahramani 2016), shape (n, classes)."""
    with repeatable(), torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        model[-2].train()
        parts = []
        for part in torch.from_numpy(inputs).split(1024):
            passes = torch.stack([torch.log_softmax(model(part).double(), dim=1) for _ in range(_PASSES)])
            parts.append(torch.logsumexp(passes, dim=0) - math.log(_PASSES))
        model.eval()
    logits: NDArray[np.float32] = torch.cat(parts).float().numpy()
    return logits


def logits_of(model: Module, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the logits (n, classes) of a network in evaluation mode for inputs (n, ...), 1024 rows at a time."""
    with repeatable(), torch.no_grad():
        parts = [model(part) for part in torch.from_numpy(inputs).split(1024)]
    logits: NDArray[np.float32] = torch.cat(parts).numpy()
    return logits
