"""The cells a page carries give every offered binned error exactly."""

import numpy as np
import pytest

import truecal as tc
from tests.pages.examples import binary
from truecal.pages.sources import MAX_BINS, cells_of


def error(cells, places, norm):
    """What the page computes, written in Python."""
    weight, score, outcome = (np.diff(prefix[places]) for prefix in (cells.weight, cells.score, cells.outcome))
    filled = weight > 0
    gap = np.abs(outcome[filled] - score[filled]) / weight[filled]
    share = weight[filled] / weight.sum()
    return gap.max() if norm == np.inf else (share * gap**norm).sum() ** (1 / norm)


def profiles():
    rng = np.random.default_rng(5)
    yield "tied", tc.OneClass()(binary(3000))
    yield "float32", tc.OneClass()(binary(3000, dtype=np.float32))
    yield "float16", tc.OneClass()(binary(3000, dtype=np.float16))
    yield "fewer rows than bins", tc.OneClass()(binary(50))
    yield "one score", tc.profile.Profile.from_arrays([0.7] * 20, [1, 0] * 10)
    c = rng.random(500)
    yield "weighted", tc.profile.Profile.from_arrays(c, rng.random(500) < c**2, rng.exponential(size=500))
    yield "counted", tc.profile.Profile.from_arrays(c, rng.random(500) < c**2, rng.integers(1, 4, 500))


@pytest.mark.parametrize(("profile"), [pytest.param(p, id=name) for name, p in profiles()])
@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_every_offered_number_of_bins_gives_the_binned_error(profile, scheme):
    cells = cells_of(profile)
    for bins in range(1, MAX_BINS + 1):
        positions = getattr(cells, scheme)[bins - 1]
        for norm in (1, 2, np.inf):
            expected = tc.BinnedECE(bins=bins, scheme=scheme, norm=norm)(profile).value
            assert error(cells, positions, norm) == pytest.approx(expected, abs=1e-12)


def test_the_sweep_is_the_sweep():
    profile = tc.OneClass()(binary(3000))
    cells = cells_of(profile)
    assert error(cells, cells.sweep, 2) == pytest.approx(tc.SweepECE(norm=2)(profile).value, abs=1e-12)


def test_the_number_of_cells_is_bounded():
    rng = np.random.default_rng(0)
    c = rng.beta(3, 0.05, 300_000)
    cells = cells_of(tc.profile.Profile.from_arrays(c, rng.random(300_000) < c))
    assert len(cells.low) <= 2 * 3045 + 1000
    assert cells.weight[-1] == 300_000
    assert (cells.low <= cells.high).all()


def test_a_sweep_of_too_many_bins_is_left_out():
    c = np.linspace(0.001, 0.999, 4000)
    assert cells_of(tc.profile.Profile.from_arrays(c, c > 0.5)).sweep is None


def test_cells_of_one_row_are_counted():
    assert cells_of(tc.profile.Profile.from_arrays([0.1, 0.2, 0.9, 0.9], [0, 1, 1, 1])).single_rows == 2
