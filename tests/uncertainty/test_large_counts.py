"""Weights that count thousands of millions of repetitions cost no more than others."""

import numpy as np
import pytest

import truecal as tc
from truecal.uncertainty.tests.tcal import scales

P = np.random.default_rng(0).random(200)
Y = (np.random.default_rng(1).random(200) < P).astype(int)


def test_the_multi_scale_test_has_no_more_bins_than_cells():
    assert scales(1e15)[-1] == 4096
    assert scales(100) == [1, 2, 4, 8]
    verdict = tc.uncertainty.tcal_test(tc.Profile.from_arrays(P, Y, np.full(200, 1e13)), resamples=19)
    assert verdict.p_value == 0.05


def test_simulations_of_too_many_rows_are_refused():
    preds = tc.Predictions.from_probs(P, Y, weights=np.full(200, 1e9))
    with pytest.raises(tc.InputError, match="give n= of at most 10,000,000"):
        tc.lab.how_biased(preds, m=2)
