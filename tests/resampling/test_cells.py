"""Cells of sorted rows: what they sum, which datasets share them, and batches made from counts in them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from truecal.profile import Profile
from truecal.resampling.cells import collapse, profile_of, share_scores


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(n), rng.integers(0, 2, n), rng.random(n) + 0.1


def test_importance_weights_of_cells_sum_to_their_effective_number_of_rows():
    scores, outcomes, weights = rows()
    cells = collapse(Profile.from_arrays(scores, outcomes, 7 * weights), 10)
    assert cells.weights.sum() == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    means = [(cells.weights * part).sum() / cells.weights.sum() for part in (cells.scores, cells.outcomes)]
    assert_allclose(means, np.average([scores, outcomes], axis=1, weights=weights))


def test_whole_weights_of_cells_are_numbers_of_rows():
    scores, outcomes, _ = rows()
    repetitions = np.arange(200) % 3
    assert collapse(Profile.from_arrays(scores, outcomes, repetitions), 10).weights.sum() == repetitions.sum()


def test_datasets_on_the_same_scores_are_one_part_and_others_are_apart():
    scores, outcomes, weights = rows()
    shared = Profile.from_arrays(scores, outcomes)
    batch = Profile.from_arrays(np.stack([scores, scores[::-1] ** 2]), np.stack([outcomes, 1 - outcomes]))
    weighted = Profile.from_arrays(np.stack([scores] * 2), np.stack([outcomes] * 2), np.stack([weights, weights**2]))
    assert [(part, profile is shared) for part, profile in share_scores(shared)] == [(slice(0, 1), True)]
    for several in (batch, weighted):
        parts = list(share_scores(several))
        assert [part for part, _ in parts] == [slice(0, 1), slice(1, 2)]
        assert [profile.batch for _, profile in parts] == [1, 1]
    assert_allclose([profile.scores.mean() for _, profile in share_scores(batch)], [scores.mean(), (scores**2).mean()])
    redrawn = Profile(shared.scores, np.ones((3, 200)), np.ones((1, 200)))
    assert [(part, profile.batch) for part, profile in share_scores(redrawn)] == [(slice(0, 3), 3)]


def test_counts_in_cells_become_rates_and_weights():
    cells = Profile.from_arrays([0.2, 0.5, 0.9], [0, 1, 1])
    batch = profile_of(cells, np.array([[3.0, 0, 1], [0, 0, 2]]), np.array([[1.0, 0, 3], [5, 2, 0]]))
    assert_allclose(batch.outcomes, [[0.25, 0, 0.75], [1, 1, 0]])
    assert_allclose(batch.weights, [[4, 0, 4], [5, 2, 2]])
