"""Errors met in other libraries, each with data on which they show."""

import numpy as np
import pytest

import truecal as tc


def test_float16_sums_do_not_saturate():
    n = 66_000
    p = np.full(n, 0.9, np.float16)
    est = tc.calibration_error(np.arange(n) % 2, p, estimator=tc.BinnedECE())
    assert est.value == pytest.approx(float(np.float16(0.9)) - 0.5, abs=1e-12)


@pytest.mark.full
def test_forty_million_float32_rows_do_not_drift():
    n = 40_000_000
    profile = tc.profile.Profile.from_arrays(np.full(n, 0.9, np.float32), np.arange(n) % 2 == 0)
    for estimator in (tc.BinnedECE(), tc.BinnedECE(scheme="mass"), tc.RankSeries(norm=1)):
        assert estimator(profile).value == pytest.approx(0.4, abs=1e-6)


def test_a_confidence_of_one_has_no_bin_of_its_own():
    est = tc.BinnedECE(bins=10)(tc.profile.Profile.from_arrays([0.95, 1.0], [1, 0]))
    np.testing.assert_array_equal(est.bins.counts, [2])


def test_the_number_of_bins_is_the_number_asked_for():
    est = tc.BinnedECE(bins=10)(tc.profile.Profile.from_arrays(np.linspace(0, 1, 1000), np.ones(1000)))
    assert len(est.bins.counts) == 10


def test_equal_mass_bins_survive_ties():
    c = np.repeat([0.5, 0.9], [990, 10])
    est = tc.BinnedECE(bins=15, scheme="mass")(tc.profile.Profile.from_arrays(c, np.ones(1000)))
    assert est.value == pytest.approx(0.99 * 0.5 + 0.01 * 0.1)


def test_classes_that_never_occur_still_count():
    p = np.array([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]])
    est = tc.calibration_error([0, 0], p, lens=tc.ClassWise(), estimator=tc.BinnedECE(bins=1))
    np.testing.assert_allclose(est.parts, [0.45, 0.25, 0.2])


def test_shards_are_merged_not_averaged():
    rng = np.random.default_rng(0)
    c = rng.random(400)
    y = rng.random(400) < c
    estimator = tc.BinnedECE(norm=1)
    shards = [tc.Sketch.from_arrays(c[i::8], y[i::8]) for i in range(8)]
    whole = estimator(tc.profile.Profile.from_arrays(c, y)).value
    merged = estimator(sum(shards[1:], shards[0]))
    assert merged.value == pytest.approx(whole, abs=merged.sketch_error + 1e-9)
    assert np.mean([estimator(s).value for s in shards]) > 2 * whole
