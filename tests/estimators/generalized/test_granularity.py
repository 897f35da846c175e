"""The sweep of granularities: one tree for all fractions, honest spreads, and a stable region by its stated rule."""

import numpy as np
import pytest

from tests.groups.data import simulated
from truecal.errors import InputError
from truecal.estimators import GeneralizedECE, KDTree, sweep_granularity
from truecal.estimators.generalized.granularity import FRACTIONS, _stable_region
from truecal.lenses import Canonical, ClassWise, TopK
from truecal.predictions import by_label


def test_every_row_of_the_sweep_is_the_error_of_its_own_tree():
    preds = simulated(600, 5)
    for lens in (Canonical(), TopK(2)):
        sweep = sweep_granularity(preds, lens=lens, fractions=FRACTIONS[::2], replicates=20)
        for i, fraction in enumerate(sweep.fraction):
            estimate = GeneralizedECE(lens=lens, binning=KDTree(fraction), level=None)(preds)
            counts = estimate.vector_bins.count
            assert sweep.value[i] == pytest.approx(estimate.value, abs=1e-12)
            assert sweep.bins[i] == estimate.vector_bins.filled
            assert (sweep.smallest[i], sweep.median[i], sweep.largest[i]) == (
                counts.min(),
                np.median(counts),
                counts.max(),
            )


def test_the_sweep_runs_from_coarse_to_fine_and_chance_grows_with_the_bins():
    sweep = sweep_granularity(simulated(3000, 5, calibrated=True), fractions=[0.01, 0.5, 0.1])
    assert sweep.fraction.tolist() == [0.5, 0.1, 0.01]
    assert (np.diff(sweep.bins) > 0).all()
    assert (np.diff(sweep.value) > 0).all()
    assert (np.diff(sweep.chance) > 0).all()
    np.testing.assert_allclose(sweep.value, sweep.chance, rtol=0.25)  # a calibrated model shows nothing but chance


def test_the_stable_region_is_where_the_value_changes_least():
    value = np.array([0.01, 0.05, 0.10, 0.11, 0.12, 0.20, 0.40])
    bins = np.array([2, 4, 8, 16, 32, 64, 128])
    points = np.array([500, 250, 125, 60, 30, 15, 7])
    assert _stable_region(value, bins, points) == (2, 4)
    assert _stable_region(value, bins, np.full(7, 3)) == (2, 4)  # no run is sound: the flattest of all
    flat_where_it_averages_away = np.array([0.01, 0.01, 0.01, 0.05, 0.06, 0.07, 0.2])
    assert _stable_region(flat_where_it_averages_away, np.array([1, 2, 3, 16, 32, 64, 128]), points) == (3, 5)
    same_bins_count_once = np.array([0.01, 0.05, 0.05, 0.05, 0.09, 0.10, 0.11])
    assert _stable_region(same_bins_count_once, np.array([4, 8, 8, 8, 16, 32, 64]), np.full(7, 50)) == (4, 6)
    assert _stable_region(np.array([0.3]), np.array([1]), np.array([9])) == (0, 0)


def test_the_frame_holds_one_row_per_fraction():
    sweep = sweep_granularity(simulated(1000, 4), replicates=20)
    frame = sweep.frame()
    assert frame["fraction"].tolist() == list(FRACTIONS)
    assert sum(frame["stable"]) == 3
    (recommended,) = (row for row in frame if row["fraction"] == sweep.recommended)
    assert recommended["stable"]


def test_a_selection_narrows_the_sweep():
    preds = simulated(1000, 4)
    chosen = sweep_granularity(preds, select=by_label(1), fractions=[0.2])
    assert chosen.value[0] == sweep_granularity(preds.take(preds.labels == 1), fractions=[0.2]).value[0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: sweep_granularity(simulated(50, 3), fractions=[]), "at least one fraction"),
        (
            lambda: sweep_granularity(simulated(50, 3), fractions=[0.5, 2]),
            "fraction must be a number above 0 and at most 1",
        ),
        (lambda: sweep_granularity(simulated(50, 3), lens=ClassWise()), "one class at a time with OneClass"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()
