"""The answer does not depend on the container of the arrays: that of naive code, or a refusal."""

import random
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal as tc


class Subclass(np.ndarray):
    """An array of another class, as units and images have."""


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def tensor(a):
    torch = pytest.importorskip("torch")
    return torch.tensor(a, requires_grad=a.dtype.kind == "f")


def by_column(a):
    return {str(k): a[:, k] for k in range(a.shape[1])}


CONTAINERS = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()),
    "list of numbers": list,
    "deque": deque,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "read-only": read_only,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "fortran": np.asfortranarray,
    "objects": lambda a: a.astype(object),
    "masked": np.ma.masked_array,
    "view": lambda a: memoryview(a.data),
    "subclass": lambda a: a.view(Subclass),
    "extended": lambda a: a.astype(np.longdouble if a.dtype.kind == "f" else np.int16),
    "tensor": tensor,
    "pandas": lambda a: pd.DataFrame(a) if a.ndim > 1 else pd.Series(a, index=range(len(a), 0, -1)),
    "nullable": lambda a: (pd.DataFrame(a) if a.ndim > 1 else pd.Series(a)).convert_dtypes(),
    "polars": lambda a: pl.DataFrame(a) if a.ndim > 1 else pl.Series(a),
    "arrow": lambda a: pa.table(by_column(a)) if a.ndim > 1 else pa.array(a),
    "chunked": lambda a: pa.record_batch(by_column(a)) if a.ndim > 1 else pa.chunked_array([a[:1], a[1:]]),
}


def naive(scores, outcomes, weights, bins, norm):
    """The binned error, bin by bin."""
    cell = [min(int(np.floor(c * bins + 1e-12)), bins - 1) for c in scores]
    total, gaps = 0.0, []
    for k in range(bins):
        rows = [i for i in range(len(scores)) if cell[i] == k]
        weight = sum(weights[i] for i in rows)
        if weight > 0:
            gap = abs(sum(weights[i] * (scores[i] - outcomes[i]) for i in rows)) / weight
            gaps.append(gap)
            total += weight / sum(weights) * gap**norm
    return max(gaps) if norm == np.inf else total ** (1 / norm)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", CONTAINERS)
def test_answers_are_those_of_naive_code(name, several):
    seed = list(CONTAINERS).index(name)
    rng, choice = np.random.default_rng(seed), random.Random(seed)
    n = choice.choice((1, 5, 60))
    weights = rng.integers(1, 4, n).astype(float) if choice.random() < 0.5 else np.ones(n)
    bins, norm = choice.choice((2, 4, 8)), choice.choice((1, 2, np.inf))
    probs = rng.dirichlet(np.ones(3), n) if several else rng.random(n)
    labels = rng.integers(0, 3 if several else 2, n)
    top_label = several and probs.shape[1] > 2
    scores = probs.max(axis=1) if top_label else probs[:, 1] if several else probs
    outcomes = (probs.argmax(axis=1) == labels).astype(int) if top_label else labels
    container = CONTAINERS[name]
    try:
        estimate = tc.calibration_error(
            container(labels),
            container(probs),
            sample_weight=weights,
            estimator=tc.BinnedECE(bins=bins, norm=norm),
        )
    except tc.InputError:
        assert name in ("pandas", "view", "deque"), "refused"
        return
    assert estimate.value == pytest.approx(naive(scores, outcomes, weights, bins, norm), abs=1e-9)
