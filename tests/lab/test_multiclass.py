"""Worlds of many classes: their exact errors against estimates from large draws."""

import numpy as np
import pytest

from truecal.errors import InputError
from truecal.estimators import DebiasedECE
from truecal.estimators.bins import combine_powers
from truecal.lab import Beta, DirichletWorld, Power, TopLabelWorld, Uniform, World
from truecal.lenses import ClassWise, TopLabel
from truecal.predictions import Predictions
from truecal.special import root

WORLDS = {
    "top label": TopLabelWorld(World(Uniform(0.3, 1.0), Power(1.6)), classes=4),
    "two classes": TopLabelWorld(World(Uniform(0.5001, 1.0), Power(1.4)), classes=2),
    "dirichlet": DirichletWorld((0.5, 0.5, 0.5, 0.5), overconfidence=0.3),
    "uneven dirichlet": DirichletWorld((0.4, 1.0, 2.0), overconfidence=0.25),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_known_errors_are_what_large_draws_show(name):
    world = WORLDS[name]
    probs, labels = world.draw(60_000, rng=0)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-12)
    preds = Predictions.from_probs(probs, labels)
    fine = DebiasedECE(bins=100, norm=2, correction="exact")
    # 100 bins of 60,000 rows: the debiased error is within 4 % of the truth here (binning hides less than 1 %).
    assert fine(TopLabel()(preds)).value == pytest.approx(world.true_top_label_error(), rel=0.04)
    # what `measure` gives, without its test and its interval
    lens = ClassWise()
    power = combine_powers(fine.estimate(lens(preds)).power, lens.shares(preds), fine.norm)
    assert root(power, fine.norm) == pytest.approx(world.true_class_wise_error(), rel=0.04)


def test_two_classes_have_one_error():
    world = WORLDS["two classes"]
    for norm in (1, 2):
        assert world.true_class_wise_error(norm) == pytest.approx(world.true_top_label_error(norm))


def test_the_dirichlet_error_in_closed_form():
    # symmetric: Var(z_k) = (K-1) / (K^2 (K a + 1))
    k, a, s = 4, 0.5, 0.3
    expected = s * np.sqrt((k - 1) / (k**2 * (k * a + 1)))
    assert WORLDS["dirichlet"].true_class_wise_error() == pytest.approx(expected, abs=1e-9)
    assert DirichletWorld((0.5, 1.0), overconfidence=0.0).true_top_label_error() == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopLabelWorld(World(Uniform(0.3, 1.0)), classes=1), "at least 2"),
        (lambda: TopLabelWorld(World(Beta(2, 1)), classes=4), "not above 1/4"),
        (lambda: DirichletWorld((1.0,), 0.1), "at least two alphas"),
        (lambda: DirichletWorld((1.0, 0.0), 0.1), "all > 0"),
        (lambda: DirichletWorld((1.0, 1.0), 1.1), "overconfidence"),
        (lambda: DirichletWorld((1.0, 1.0), 0.1).draw(0), "n >= 1"),
        (lambda: DirichletWorld((1.0, 2.0, 1.0), 0.5).draw(2**31), "too large for memory"),
        (lambda: TopLabelWorld(World(Uniform(0.3, 1.0), Power(2)), 4).draw(2**31), "too large for memory"),
        (lambda: World(Uniform(), Power(2)).draw(2**31), "too large for memory"),
    ],
)
def test_impossible_worlds_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
