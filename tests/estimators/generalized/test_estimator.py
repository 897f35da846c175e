"""The generalized error equals its definition for every lens, distance and binning, and has the old error as a special case."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.estimators.generalized import naive
from tests.groups.data import simulated
from truecal.errors import InputError
from truecal.estimators import (
    BinnedECE,
    ClassWeighted,
    EqualMass,
    EqualWidth,
    GeneralizedECE,
    InterInterval,
    KDTree,
    Lp,
    Mahalanobis,
    TotalVariation,
)
from truecal.inference import measure
from truecal.lenses import Canonical, ClassWise, Grouping, OneClass, TopK, TopLabel
from truecal.predictions import Predictions


def halves(classes):
    """Three uneven groups of classes."""
    return [list(range(1)), list(range(1, classes - 1)), [classes - 1]]


LENSES = {
    "top 1": (lambda k: TopK(1), lambda p, y: naive.top_k(p, y, 1), 0),
    "top 2": (lambda k: TopK(2), lambda p, y: naive.top_k(p, y, 2), 0),
    "all but one": (lambda k: TopK(k - 1), lambda p, y: naive.top_k(p, y, p.shape[1] - 1), 0),
    "top label": (lambda k: TopLabel(), lambda p, y: naive.top_k(p, y, 1), 0),
    "one class": (lambda k: OneClass(1), lambda p, y: naive.one_class(p, y, 1), 0),
    "grouping": (
        lambda k: Grouping(dict(zip("abc", halves(k), strict=True))),
        lambda p, y: naive.grouped(p, y, halves(p.shape[1])),
        1,
    ),
    "two groups": (
        lambda k: Grouping({"a": [0], "b": list(range(1, k))}),
        lambda p, y: naive.grouped(p, y, [[0], list(range(1, p.shape[1]))]),
        1,
    ),
    "canonical": (lambda k: Canonical(), naive.canonical, 1),
}
BINNINGS = {
    "tree 0.1": (KDTree(0.1), lambda g, judged: naive.kd_tree(g, 0.1)),
    "tree 0.02": (KDTree(0.02), lambda g, judged: naive.kd_tree(g, 0.02)),
    "width 15": (EqualWidth(15), lambda g, judged: naive.width(g, 15, judged)),
    "width 4": (EqualWidth(4), lambda g, judged: naive.width(g, 4, judged)),
    "mass 7": (EqualMass(7), lambda g, judged: naive.mass(g, 7, judged)),
}


def distances(d, judged):
    rng = np.random.default_rng(d)
    w, half = rng.random(d) + 0.1, rng.normal(size=(d, d))
    values = [
        (TotalVariation(), naive.total_variation),
        (Lp(1), naive.lp(1)),
        (Lp(3), naive.lp(3)),
        (Lp(math.inf), naive.lp(math.inf)),
        (ClassWeighted(w), naive.weighted(w)),
        (Mahalanobis(half @ half.T), naive.mahalanobis(half @ half.T)),
    ]
    if d == 2:
        values.append((InterInterval(0.3, 0.6), naive.inter_interval(0.3, 0.6, judged)))
    return values


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("classes", [3, 7, 20])
def test_every_combination_equals_the_definition(lens, classes):
    ours, definition, selected = LENSES[lens]
    preds = simulated(127, classes, seed=classes)
    outputs, outcomes = definition(preds.probs, preds.labels)
    for binning, bins_of in BINNINGS.values():
        if isinstance(binning, EqualMass) and outputs.shape[1] > 2:
            continue
        bins = bins_of(outputs, selected)
        for distance, by_hand in distances(outputs.shape[1], selected):
            for norm in (1, 2, math.inf) if isinstance(distance, TotalVariation) else (1,):
                estimate = GeneralizedECE(
                    lens=ours(classes), distance=distance, binning=binning, norm=norm, level=None
                )(preds)
                expected = naive.generalized(outputs, outcomes, bins, by_hand, norm)
                assert estimate.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_the_top_label_in_bins_of_one_probability_is_the_binned_ece_exactly(dtype, norm):
    preds = simulated(3000, 6)
    preds = Predictions.from_probs(preds.probs.astype(dtype), preds.labels)
    for lens in (TopK(1), TopLabel()):
        width = GeneralizedECE(lens=lens, binning=EqualWidth(15), norm=norm)(preds)
        assert width.value == BinnedECE(15, "width", norm)(TopLabel()(preds)).value
        mass = GeneralizedECE(lens=lens, binning=EqualMass(15), norm=norm)(preds)
        assert mass.value == BinnedECE(15, "mass", norm)(TopLabel()(preds)).value


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60), st.sampled_from(["left", "right"])
)
def test_scores_on_the_edges_fall_where_the_binned_ece_puts_them(rows, closed):
    p, y = np.array([r[0] / 20 for r in rows]), np.array([r[1] for r in rows])
    preds = Predictions.from_probs(p, y.astype(int))
    for bins in (1, 4, 10, 15):
        ours = GeneralizedECE(lens=OneClass(), binning=EqualWidth(bins, closed), level=None)(preds)
        assert ours.value == BinnedECE(bins, "width", 1, closed=closed)(OneClass()(preds)).value
        mass = GeneralizedECE(lens=OneClass(), binning=EqualMass(bins), level=None)(preds)
        assert mass.value == BinnedECE(bins, "mass", 1)(OneClass()(preds)).value
        np.testing.assert_allclose(mass.bins.counts, BinnedECE(bins, "mass", 1)(OneClass()(preds)).bins.counts)


def test_binary_predictions_are_judged_alike_through_every_lens():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    held = Predictions.from_probs(p, (rng.random(2000) < p**1.5).astype(int))
    pair = Predictions.from_probs(np.stack([1 - p, p], axis=1), held.labels)
    expected = BinnedECE(15)(OneClass()(held)).value
    for preds in (held, pair):
        for lens in (OneClass(1), Canonical(), ClassWise(), Grouping({"no": [0], "yes": [1]})):
            ours = GeneralizedECE(lens=lens, binning=EqualWidth(15), level=None)(preds)
            assert ours.value == pytest.approx(expected, abs=1e-12)


def test_class_wise_is_the_mean_over_classes():
    preds = simulated(1000, 5)
    ours = GeneralizedECE(lens=ClassWise(), binning=EqualWidth(10))(preds)
    assert ours.value == pytest.approx(measure(preds, estimator=BinnedECE(10), lens=ClassWise()).value, abs=1e-12)
    singles = [GeneralizedECE(lens=OneClass(c), binning=EqualWidth(10), level=None)(preds).value for c in range(5)]
    np.testing.assert_allclose(ours.parts, singles, atol=1e-12)
    assert ours.interval is None
    assert "OneClass" in ours.warnings[0]
    weighted = GeneralizedECE(lens=ClassWise((1, 0, 0, 0, 3)), binning=EqualWidth(10), level=None)(preds)
    assert weighted.value == pytest.approx((singles[0] + 3 * singles[4]) / 4, abs=1e-12)
    largest = GeneralizedECE(lens=ClassWise(), binning=EqualWidth(10), norm=math.inf, level=None)(preds)
    each = [BinnedECE(10, norm=math.inf)(OneClass(c)(preds)).value for c in range(5)]
    assert largest.value == pytest.approx(max(each), abs=1e-12)


def test_grouping_into_singletons_is_canonical():
    preds = simulated(1000, 5)
    single = Grouping({str(i): [i] for i in range(5)})
    for binning in (KDTree(0.1), EqualWidth(3)):
        ours = GeneralizedECE(lens=single, binning=binning)(preds)
        full = GeneralizedECE(lens=Canonical(), binning=binning)(preds)
        assert ours.value == pytest.approx(full.value, abs=1e-15)


ANY = [
    (TopK(3), KDTree(0.1)),
    (Canonical(), KDTree(0.05)),
    (Canonical(), EqualWidth(3)),
    (OneClass(2), EqualMass(9)),
    (TopLabel(), EqualWidth(15)),
]


@pytest.mark.parametrize(("lens", "binning"), ANY)
def test_rows_in_another_order_give_the_same_answer(lens, binning):
    preds = simulated(700, 5)
    rows = np.random.default_rng(5).permutation(700)
    estimator = GeneralizedECE(lens=lens, binning=binning, level=None)
    assert estimator(preds.take(rows)).value == pytest.approx(estimator(preds).value, abs=1e-12)


@pytest.mark.parametrize(("lens", "binning"), ANY)
def test_whole_weights_are_repetitions_and_zero_weights_are_absence(lens, binning):
    preds = simulated(500, 5)
    weights = np.random.default_rng(3).integers(0, 4, 500)
    estimator = GeneralizedECE(lens=lens, binning=binning)
    weighted = estimator(replace(preds, weights=weights.astype(float)))
    repeated = estimator(preds.take(np.repeat(np.arange(500), weights)))
    assert weighted.value == pytest.approx(repeated.value, abs=1e-12)
    assert weighted.n == repeated.n == weights.sum()
    assert weighted.direction == pytest.approx(repeated.direction, abs=1e-12)


@pytest.mark.parametrize(("lens", "binning"), ANY)
def test_importance_weights_matter_only_in_ratio(lens, binning):
    preds = simulated(500, 5)
    weights = np.random.default_rng(3).random(500) + 0.01
    estimator = GeneralizedECE(lens=lens, binning=binning, replicates=50)
    first, second = (estimator(replace(preds, weights=w)) for w in (weights, weights * 13))
    assert first.value == pytest.approx(second.value, abs=1e-12)
    assert first.interval.high == pytest.approx(second.interval.high, abs=1e-12)
    assert first.effective_n == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert first.n == 500


def test_bins_are_kept_whole():
    preds = simulated(1000, 4)
    bins = GeneralizedECE(lens=TopK(2), level=None)(preds).vector_bins
    assert bins.count.sum() == 1000
    assert bins.names == ("top 1", "top 2", "rest")
    np.testing.assert_allclose(bins.mean_output.sum(axis=1), 1)
    np.testing.assert_allclose(bins.mean_outcome.sum(axis=1), 1)
    np.testing.assert_allclose(bins.gap, bins.mean_outcome - bins.mean_output, atol=1e-12)
    ordered = np.sort(preds.probs, axis=1)[:, ::-1]
    assert (bins.mean_output * bins.weight[:, None]).sum(axis=0)[:2] == pytest.approx(ordered[:, :2].sum(axis=0))


def test_empty_cells_of_a_grid_contribute_nothing():
    preds = Predictions.from_probs([0.05, 0.95, 0.96], [0, 1, 1])
    estimate = GeneralizedECE(lens=OneClass(), binning=EqualWidth(20), level=None)(preds)
    assert estimate.vector_bins.filled == 2
    assert estimate.value == pytest.approx((0.05 + 0.09) / 3)


def test_a_grid_with_more_cells_than_numbers():
    preds = simulated(60, 30)
    estimate = GeneralizedECE(lens=Canonical(), binning=EqualWidth(1000), level=None)(preds)
    assert estimate.vector_bins.filled == 60
    assert "half of the 60 bins hold at most 1 predictions" in estimate.warnings[0]


def test_the_direction_is_that_of_the_top_classes():
    preds = simulated(1000, 4)
    top = GeneralizedECE(lens=TopK(2), level=None)(preds)
    order = np.argsort(preds.probs, axis=1)[:, ::-1][:, :2]
    hit = (order == preds.labels[:, None]).any(axis=1).mean()
    assert top.direction == pytest.approx(np.sort(preds.probs, axis=1)[:, -2:].sum(axis=1).mean() - hit)
    full = GeneralizedECE(level=None)(preds)
    assert full.direction == pytest.approx(
        preds.probs.max(axis=1).mean() - (preds.probs.argmax(axis=1) == preds.labels).mean()
    )


BAD = [
    (lambda: GeneralizedECE(distance="tv"), "distance must be one of truecal's"),
    (lambda: GeneralizedECE(binning=15), "binning must be one of truecal's"),
    (lambda: GeneralizedECE(select="ped"), "select must be a selection"),
    (lambda: GeneralizedECE(level=95), "level must lie strictly between 0 and 1"),
    (lambda: GeneralizedECE(replicates=1), "replicates must be a whole number of at least 20"),
    (lambda: GeneralizedECE(norm=0), "norm must be"),
    (lambda: GeneralizedECE()([0.5]), "data must be Predictions"),
    (lambda: GeneralizedECE(binning=EqualMass(5))(simulated(50, 3)), "the lens has 3 events; use KDTree"),
    (lambda: GeneralizedECE(distance=InterInterval(0, 1))(simulated(50, 3)), "judges one probability"),
    (lambda: GeneralizedECE(distance=ClassWeighted([1, 2]))(simulated(50, 3)), "2 class weights"),
    (lambda: EqualWidth(0), "bins must be a whole number"),
    (lambda: EqualMass(2.5), "bins must be a whole number"),
    (lambda: EqualWidth(5, "up"), "closed must be"),
    (
        lambda: GeneralizedECE()(simulated(3, 3, weights=[0, 0, 1]).take(np.array([True, True, False]))),
        "all selected rows have weight zero",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_input_is_refused_in_one_sentence(wrong, message):
    with pytest.raises(InputError, match=message) as refused:
        wrong()
    assert "\n" not in str(refused.value)
