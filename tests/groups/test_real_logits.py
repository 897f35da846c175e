"""Real logits: the printed errors of a ResNet-110 on CIFAR-10, and what temperature scaling does beyond the top class."""

import numpy as np
import pytest

from truecal.estimators import EqualWidth, GeneralizedECE, sweep_granularity
from truecal.groups import beyond_top, likert
from truecal.lenses import Grouping, TopK, TopLabel
from truecal.predictions import Predictions

ANIMALS = [2, 3, 4, 5, 6, 7]


@pytest.fixture(scope="module")
def methods(resnet110):
    logits, labels = resnet110["test_logits"], resnet110["test_labels"].ravel()
    return {
        "raw": Predictions.from_logits(logits, labels),
        "temperature": Predictions.from_logits(logits / 2.395, labels),  # fitted on the validation split
    }


def test_the_traditional_error_is_the_printed_one(methods):
    traditional = GeneralizedECE(lens=TopK(1), binning=EqualWidth(15))
    assert round(100 * traditional(methods["raw"]).value, 2) == 4.75
    assert round(100 * traditional(methods["temperature"]).value, 2) == 1.13


def test_temperature_moves_confidence_from_the_top_class_to_the_others(methods):
    table = beyond_top(methods, ks=[1, 2, 3, 5]).frame()
    change = dict(zip(zip(table["method"], table["k"], strict=True), table["difference"], strict=True))
    assert change["temperature", 1] < -0.03
    assert all(change["temperature", k] > 0 for k in (2, 3, 5))


def test_an_error_between_animals_is_no_error_between_animals_and_vehicles(methods):
    grouping = Grouping({"animal": ANIMALS, "vehicle": [0, 1, 8, 9]})
    groups = GeneralizedECE(lens=grouping.then(TopLabel()), binning=EqualWidth(15))(methods["raw"])
    classes = GeneralizedECE(lens=TopLabel(), binning=EqualWidth(15))(methods["raw"])
    assert groups.interval.high < classes.interval.low / 3


def test_temperature_shows_medium_confidence_more_often_and_every_category_keeps_its_word(methods):
    raw, scaled = (likert(preds) for preds in methods.values())
    assert scaled.categories[1].count > 2 * raw.categories[1].count
    for report in (raw, scaled):
        assert [c.holds for c in report.categories[1:]] == [True, True]
    assert scaled.categories[2].inter_interval.value == 0


def test_the_full_error_grows_with_the_number_of_bins(methods):
    sweep = sweep_granularity(methods["raw"], fractions=[0.25, 0.05, 0.01], replicates=50)
    assert (np.diff(sweep.value) > 0).all()
    assert (sweep.value > sweep.chance).all()
