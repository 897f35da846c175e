"""The softmax by classes (few) and by rows (many), against the definition in exact enough arithmetic."""

import math

import numpy as np
import pytest

from truecal.special import softmax


@pytest.mark.parametrize("classes", [2, 3, 10, 32, 33, 100])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_against_the_definition(classes, dtype):
    rng = np.random.default_rng(classes)
    logits = (rng.normal(size=(40_000 // classes, classes)) * 5).astype(dtype)
    logits[0, 0] = -np.inf
    before = logits.copy()
    probs = softmax(logits)
    np.testing.assert_array_equal(logits, before)
    for row in (0, 1, len(logits) // 2, len(logits) - 1):
        top = max(map(float, logits[row]))
        parts = [math.exp(float(z) - top) for z in logits[row]]
        np.testing.assert_allclose(probs[row], [part / math.fsum(parts) for part in parts], rtol=1e-14)
    assert probs.flags.c_contiguous
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-14)


def test_a_row_does_not_depend_on_its_neighbours():
    logits = np.random.default_rng(0).normal(size=(9000, 10))
    np.testing.assert_array_equal(softmax(logits)[5000:5003], softmax(logits[5000:5003]))
