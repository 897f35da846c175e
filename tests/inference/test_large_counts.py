"""Weights that count thousands of millions of repetitions cost no more than others."""

import numpy as np
import pytest

import truecal as tc

P = np.random.default_rng(0).random(200)
Y = (np.random.default_rng(1).random(200) < P).astype(int)


def test_simulations_of_too_many_rows_are_refused():
    preds = tc.Predictions.from_probs(P, Y, weights=np.full(200, 1e9))
    with pytest.raises(tc.InputError, match="give n of at most 10,000,000"):
        tc.lab.how_biased(preds, m=2)
