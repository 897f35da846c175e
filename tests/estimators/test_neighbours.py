"""The settings of the neighbourhood estimators: alpha, the own score, and label-binned errors of any norm."""

import numpy as np
import pytest

import truecal as tc

RNG = np.random.default_rng(0)
SCORES = RNG.beta(2, 0.5, 400)
OUTCOMES = (RNG.random(400) < SCORES**1.3).astype(int)


def windows(c, k):
    """The k nearest scores of every score, the lower of two equally far first."""
    for value in c:
        yield np.lexsort((c, np.abs(c - value).round(15)))[:k]


@pytest.mark.parametrize("norm", [1, 2, 3])
def test_own_scores_against_their_neighbours_by_hand(norm):
    c, y = np.sort(SCORES[:60]), OUTCOMES[:60][np.argsort(SCORES[:60])]
    gaps = [abs(value - y[near].mean()) for value, near in zip(c, windows(c, 9), strict=True)]
    by_hand = np.mean(np.array(gaps) ** norm) ** (1 / norm)
    profile = tc.profile.Profile.from_arrays(c, y)
    assert tc.NearestECE(neighbors=9, norm=norm, score="own")(profile).value == pytest.approx(by_hand, abs=1e-12)
    weighted = tc.profile.Profile.from_arrays(c, y, weights=np.full(60, 2.0))
    assert tc.NearestECE(neighbors=9, norm=norm, score="own")(weighted).value == pytest.approx(by_hand, abs=0.03)


def test_alpha_sets_the_number_of_neighbours():
    profile = tc.profile.Profile.from_arrays(SCORES, OUTCOMES)
    inside = np.mean(SCORES >= 0.9)
    for alpha in (10, 100, 400):
        estimate = tc.NearestECE(alpha=alpha, region=(0.9, 1.0))(profile)
        assert estimate.settings["neighbors"][0] == round(400 * (1 - inside) / (1 + np.log(400 / alpha)))
    many = tc.NearestECE(alpha=5000, region=(0.9, 1.0))(profile).settings["neighbors"][0]
    assert many == round(400 * (1 - inside))  # the divisor stays at 1 where n < alpha


def test_a_window_of_hardly_any_rows_is_said_to_be_one():
    crowded = tc.profile.Profile.from_arrays(np.r_[np.full(397, 0.9991), 0.2, 0.4, 0.6], np.ones(400))
    (warning,) = tc.NearestECE(region=(0.99, 1.0))(crowded).warnings
    assert "only 1 neighbours are left" in warning
    assert tc.NearestECE()(tc.profile.Profile.from_arrays(SCORES, OUTCOMES)).warnings == ()
    with pytest.raises(tc.InputError, match="alpha must lie"):
        tc.NearestECE(alpha=0)
    with pytest.raises(tc.InputError, match="score must be 'mean' or 'own'"):
        tc.NearestECE(score="median")


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_label_binned_errors_of_any_norm_by_hand(scheme):
    c = np.sort(SCORES)
    y = OUTCOMES[np.argsort(SCORES)]
    bin_of = np.minimum((c * 8).astype(int), 7) if scheme == "width" else np.arange(400) // 50
    rate = np.array([y[bin_of == k].mean() if np.any(bin_of == k) else 0.0 for k in range(8)])
    profile = tc.profile.Profile.from_arrays(c, y)
    for norm in (1, 1.5, 2, 3, 7):
        by_hand = np.mean(np.abs(c - rate[bin_of]) ** norm) ** (1 / norm)
        ours = tc.estimators.LabelBinnedECE(bins=8, scheme=scheme, norm=norm)(profile).value
        assert ours == pytest.approx(by_hand, abs=1e-12)
