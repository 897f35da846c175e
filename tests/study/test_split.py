"""The rows recalibrators learn from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from truecal.study.rows import held_out


@given(
    labels=st.lists(st.integers(0, 4), min_size=20, max_size=300),
    fraction=st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.9]),
    seed=st.integers(0, 5),
)
def test_every_class_gives_its_share(labels, fraction, seed):
    labels = np.array(labels)
    chosen = held_out(labels, fraction, seed)
    assert chosen.sum() == np.floor(len(labels) * fraction + 1e-9)
    for name in np.unique(labels):
        of_class = labels == name
        assert abs((chosen & of_class).sum() - fraction * of_class.sum()) < 1
    np.testing.assert_array_equal(chosen, held_out(labels, fraction, seed))


def test_seeds_differ_and_rows_are_drawn_at_random():
    labels = np.zeros(200, int)
    often = sum(held_out(labels, 0.2, seed).astype(int) for seed in range(400))
    assert often.min() > 40
    assert often.max() < 130


def test_nothing_left():
    with pytest.raises(tc.InputError, match="nothing to fit on"):
        held_out(np.zeros(3, int), 0.2, 0)
