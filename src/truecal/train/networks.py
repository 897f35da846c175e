"""Two small networks for images or rows of numbers, made the same by the same seed."""

from importlib import import_module

from truecal.errors import InputError
from truecal.train.recipe import Kind
from truecal.train.tensors import Module, torch


def network(kind: Kind, shape: tuple[int, ...], classes: int, *, width: int, seed: int) -> Module:
    """A network from inputs of `shape` (without the batch) to (n, classes) logits; `seed` fixes its first weights.

    "mlp": two hidden layers of `width`. "cnn": two 3 x 3 convolutions of `width` and 2 `width` channels, halved by pooling, and one
    hidden layer, for images of shape (height, width) or (channels, height, width).

    >>> import torch
    >>> network("cnn", (8, 8), 10, width=4, seed=0)(torch.zeros(5, 8, 8)).shape
    torch.Size([5, 10])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        if kind == "mlp":
            size = 1
            for side in shape:
                size *= side
            return _mlp(size, classes, width)
        if len(shape) not in (2, 3) or min(shape[-2:]) < 2:
            raise InputError(f"a cnn needs images of shape (height, width) or (channels, height, width), not {shape}")
        return _cnn((1, *shape)[-3:], classes, width)


def own_network(path: str, shape: tuple[int, ...], classes: int, *, seed: int) -> Module:
    """The network that the function at "module:function" makes of (shape, classes); `seed` fixes its first weights."""
    module, colon, name = path.partition(":")
    try:
        make = getattr(import_module(module), name) if colon else None
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"cannot import {path!r}: {error}; give module:function, with the module on PYTHONPATH"
        ) from error
    if not callable(make):
        raise InputError(
            f"{path!r} names no function; give module:function, called with the input shape and the classes"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        made = make(shape, classes)
    if not isinstance(made, Module):
        raise InputError(f"{path!r} made {type(made).__name__}, not a torch.nn.Module")
    with torch.no_grad():
        shape_out = tuple(made.eval()(torch.zeros(2, *shape)).shape)
    if shape_out != (2, classes):
        raise InputError(f"the network of {path!r} gives outputs of shape {shape_out} for two rows, not (2, {classes})")
    return made.train()


def set_dropout(model: Module, share: float) -> int:
    """Give every dropout layer this share; how many there are."""
    layers = [layer for layer in model.modules() if isinstance(layer, torch.nn.modules.dropout._DropoutNd)]
    for layer in layers:
        layer.p = share
    return len(layers)


def _mlp(size: int, classes: int, width: int) -> Module:
    nn = torch.nn
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(size, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(0.0),
        nn.Linear(width, classes),
    )


def _cnn(shape: tuple[int, ...], classes: int, width: int) -> Module:
    nn = torch.nn
    channels, rows, columns = shape
    return nn.Sequential(
        nn.Flatten(1),
        nn.Unflatten(1, shape),
        nn.Conv2d(channels, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * (rows // 2) * (columns // 2), 4 * width),
        nn.ReLU(),
        nn.Dropout(0.0),
        nn.Linear(4 * width, classes),
    )
