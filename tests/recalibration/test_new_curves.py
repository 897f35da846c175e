"""Centred isotonic, spline, shared binning, shared maps, guaranteed bins, top-versus-all and prior shift."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import binomtest

from truecal.errors import InputError, TruecalWarning
from truecal.recalibration import (
    BetaCalibration,
    CenteredIsotonic,
    HistogramBinning,
    IsotonicCalibration,
    PriorShift,
    SharedBinning,
    SplineCalibration,
    TemperatureScaling,
    TopVersusAll,
)
from truecal.recalibration.binning_maps import cut_by_entropy

Array = NDArray[np.float64]


def binary(n: int = 500, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return s, (rng.random(n) < s**2).astype(int)


def many(n: int = 600, classes: int = 8) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    logits = 4 * rng.normal(size=(n, classes))
    return logits, (0.5 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def test_centred_isotonic_rises_strictly_and_keeps_block_means() -> None:
    s, y = binary()
    fitted = CenteredIsotonic().fit(s, y)
    after = fitted.predict_proba(np.sort(s))[:, 1]
    assert (np.diff(after) > 0).all()
    assert 0 < after.min() < after.max() < 1
    plain = IsotonicCalibration().fit(s, y).predict_proba(s)[:, 1]
    assert np.abs(fitted.predict_proba(s)[:, 1] - plain).mean() < 0.03
    with pytest.warns(TruecalWarning, match="do not rise"):
        flat = CenteredIsotonic().fit([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])
    assert_allclose(flat.predict_proba([0.1, 0.9])[:, 1], 0.5)


def test_ends_without_surprises_cost_little_and_say_neither_0_nor_1() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [40, 20, 10])
    probs = np.eye(3)[labels] + rng.uniform(0.05, 0.4, (70, 3))  # separable in every class
    probs /= probs.sum(axis=1, keepdims=True)
    fitted = CenteredIsotonic().fit(probs, labels).predict_proba(probs)[np.arange(70), labels]
    assert fitted.max() < 1
    # 0.0004 by its rule; straight lines between knots of a convex curve add a little
    assert 0.0003 < -np.log(fitted).mean() < 0.0006
    # zeros up to the last one, as in the paper, not drawn to their centre
    s, y = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]), np.array([0, 0, 0, 1, 0, 1, 1])
    map_ = CenteredIsotonic().fit(s, y).maps_[0]
    assert_allclose(map_.x, [0.1, 0.2, 0.3, 0.45, 0.6, 0.7])
    assert_allclose(map_.y, [0, 0, 0, 0.5, 1, 1], atol=0.002)
    assert (np.diff(map_.y) > 0).all()
    # a weight of 2 is a row twice
    twice = CenteredIsotonic().fit(s, y, sample_weight=np.full(7, 2.0)).predict_proba(s)
    assert_allclose(twice, CenteredIsotonic().fit(np.repeat(s, 2), np.repeat(y, 2)).predict_proba(s))


def test_the_spline_contains_a_logistic_curve_and_bends_where_rows_ask() -> None:
    rng = np.random.default_rng(0)
    s = rng.uniform(0.01, 0.99, 4000)
    straight = rng.random(4000) < s
    beta, spline = (m.fit(s, straight).predict_proba(s)[:, 1] for m in (BetaCalibration(), SplineCalibration()))
    assert np.abs(beta - spline).max() < 0.05
    step = rng.random(4000) < np.where(s < 0.5, 0.1, 0.9)
    grid = np.linspace(0.01, 0.99, 200)
    bent = SplineCalibration().fit(s, step).predict_proba(grid)[:, 1]
    assert (np.diff(bent) >= 0).all()
    assert bent[grid < 0.4].max() < 0.25
    assert bent[grid > 0.6].min() > 0.75
    saturated = SplineCalibration().fit(np.r_[s, 0.0, 1.0, 1.0], np.r_[straight, 0, 1, 0])
    assert 0 < saturated.predict_proba([0.0])[0, 1] < 0.05
    assert 0.9 < saturated.predict_proba([1.0])[0, 1] < 1


def test_cuts_are_the_best_of_all() -> None:
    rng = np.random.default_rng(0)
    mass, share = rng.integers(1, 9, 8).astype(float), np.sort(rng.random(8))
    positive = np.round(mass * share)

    def entropy(cuts: tuple[int, ...]) -> float:
        total = 0.0
        for low, high in itertools.pairwise((0, *cuts, 8)):
            n, k = mass[low:high].sum(), positive[low:high].sum()
            total -= sum(part * np.log(part / n) for part in (k, n - k) if part)
        return total

    lowest = min(entropy(cuts) for cuts in itertools.combinations(range(1, 8), 2))
    assert_allclose(entropy(tuple(cut_by_entropy(mass, positive, 3)[1:].tolist())), lowest)


@pytest.mark.parametrize(
    "fixed",
    [
        SharedBinning(bins=6, input="logits"),
        IsotonicCalibration(input="logits", multiclass="shared"),
        CenteredIsotonic(input="logits", multiclass="shared"),
        HistogramBinning(bins=6, input="logits", multiclass="shared"),
        TopVersusAll(),
        BetaCalibration(input="logits", multiclass="top-label"),
    ],
    ids=repr,
)
def test_the_predicted_class_stays(fixed) -> None:
    logits, labels = many()
    probs = fixed.fit(logits[:400], labels[:400]).predict_proba(logits)
    assert (probs.argmax(axis=1) == logits.argmax(axis=1)).all()
    own_values = probs[np.arange(400, 600), labels[400:]]
    before = softmax(logits, axis=1)[np.arange(400, 600), labels[400:]]
    assert -np.log(np.maximum(own_values, 1e-9)).mean() < -np.log(before).mean()


def test_a_certain_and_wrong_prediction_has_no_temperature() -> None:
    probs, labels = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]]), np.array([0, 2, 2])
    with pytest.raises(InputError, match="row 1 gives its leading class a probability of exactly 1 and is wrong"):
        TopVersusAll(input="probs").fit(probs, labels)
    fixed = IsotonicCalibration(multiclass="top-label").fit(probs, labels)
    assert fixed.predict_proba(probs)[1, 1] < 1


def test_top_versus_all_minimises_the_binary_loss() -> None:
    logits, labels = many(2000)
    right = labels == logits.argmax(axis=1)

    def loss(temperature: float) -> float:
        p = softmax(logits / temperature, axis=1).max(axis=1)
        return float(-np.log(np.where(right, p, 1 - p)).mean())

    best = TopVersusAll().fit(logits, labels).temperature_
    assert loss(best) <= min(loss(best * 1.05), loss(best / 1.05))


@pytest.mark.parametrize("rounded", [False, True])
def test_the_guarantee_holds_over_500_datasets(rounded: bool) -> None:
    """All bins at once hold the true frequency in at least 90 % of datasets; with ties too. Truth: E[y | s] = s^2."""
    rng = np.random.default_rng(0)
    covered = 0
    # bins of about 20 rows: what a grid of 20,000 leaves out of their frequencies is below 1e-4
    fine = (np.arange(20_000) + 0.5) / 20_000
    fine, share = np.unique(np.round(fine, 1) if rounded else fine, return_counts=True)
    for _ in range(500):
        s = rng.random(120)
        s = np.round(s, 1) if rounded else s
        y = (rng.random(120) < s**2).astype(int)
        fitted = HistogramBinning(bins=6, scheme="guaranteed").fit(s, y)
        steps = fitted.maps_[0]
        bin_of = np.searchsorted(steps.edges, fine, side="right")
        mass = np.bincount(bin_of, share, len(steps.values))
        truth = np.bincount(bin_of, share * fine**2, len(steps.values)) / np.maximum(mass, 1)
        low, high = steps.interval(fine, 0.1 / len(steps.values))
        first = np.unique(bin_of, return_index=True)[1]
        mask = mass > 0
        covered += bool(((low[first] <= truth[mask]) & (truth[mask] <= high[first])).all())
    assert binomtest(covered, 500, 0.9, alternative="less").pvalue > 0.01


def test_guaranteed_bins_refuse_what_breaks_the_guarantee() -> None:
    s, y = binary(100)
    with pytest.raises(InputError, match="takes no weights"):
        HistogramBinning(bins=5, scheme="guaranteed").fit(s, y, np.full(100, 2.0))
    with pytest.raises(InputError, match="100 rows cannot fill 60 bins with a guarantee; use at most bins=50"):
        HistogramBinning(bins=60, scheme="guaranteed").fit(s, y)
    with pytest.raises(InputError, match='an interval needs scheme="guaranteed"'):
        HistogramBinning(bins=5).fit(s, y).predict_interval(s)
    low, high = HistogramBinning(bins=5, scheme="width").fit(s, y).predict_interval(s, level=0.5)
    wide = HistogramBinning(bins=5, scheme="width").fit(s, y).predict_interval(s, level=0.99)
    assert (high - low < wide[1] - wide[0]).all()


def test_prior_shift_by_bayes_and_by_em() -> None:
    rng = np.random.default_rng(0)

    def rows(n: int, share: Array) -> tuple[Array, NDArray[np.int64]]:
        labels = rng.choice(3, n, p=share)
        return 2 * rng.normal(size=(n, 3)) + 3 * np.eye(3)[labels], labels

    logits, labels = rows(4000, np.full(3, 1 / 3))
    fitted = PriorShift(TemperatureScaling(), input="logits").fit(logits, labels)
    target = np.array([0.7, 0.2, 0.1])
    new, truth = rows(4000, target)
    before = fitted.predict_proba(new)
    fitted.adapt(new)
    assert_allclose(fitted.prevalence_, target, atol=0.03)
    after = fitted.predict_proba(new)
    assert -np.log(after[np.arange(4000), truth]).mean() < -np.log(before[np.arange(4000), truth]).mean() - 0.05
    known = PriorShift(TemperatureScaling(), input="logits", prevalence=target).fit(logits, labels)
    weighted = before * target / known.source_
    assert_allclose(known.predict_proba(new), weighted / weighted.sum(axis=1, keepdims=True))
    with pytest.raises(InputError, match="must be 3 class frequencies that sum to 1"):
        PriorShift(TemperatureScaling(), input="logits", prevalence=[0.5, 0.2, 0.1]).fit(logits, labels)
    with pytest.raises(InputError, match='declare input="probs"'):
        PriorShift(input="logits").fit(logits, labels)
    with pytest.warns(TruecalWarning, match="class 2 never occurs"):
        PriorShift().fit(softmax(logits, axis=1)[labels < 2], labels[labels < 2])
