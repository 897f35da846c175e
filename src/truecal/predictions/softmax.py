"""The one softmax (and its binary case, the one sigmoid)."""

import numpy as np

from truecal.types import Float64s, Floats

_BLOCK = 1 << 18  # elements converted to float64 at a time
_FEW = 32  # up to so many classes, sums over classes are quicker class by class than row by row
_SMALL_BLOCK = 1 << 15


def softmax(logits: Floats) -> Float64s:
    """Row-wise softmax in float64, stable for logits of any size.

    >>> softmax(np.array([[1000.0, 999.0], [0.0, -np.inf]]))
    array([[0.73105858, 0.26894142],
           [1.        , 0.        ]])
    """
    rows, count = logits.shape
    probs = np.empty((rows, count), np.float64)
    if count <= _FEW:
        step = _SMALL_BLOCK // max(count, 1)
        for start in range(0, rows, step):
            turned = logits[start : start + step].T.astype(np.float64, order="C")
            turned -= turned.max(axis=0)
            np.exp(turned, out=turned)
            turned /= turned.sum(axis=0)
            probs[start : start + step] = turned.T
        return probs
    step = max(1, _BLOCK // count)
    for start in range(0, rows, step):
        block = probs[start : start + step]
        block[...] = logits[start : start + step]
        block -= block.max(axis=1, keepdims=True)
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)
    return probs


def sigmoid(logits: Floats) -> Float64s:
    """1 / (1 + exp(-z)) in float64 without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    z = np.asarray(logits, np.float64)
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)
