"""Worlds: the truth of the paper's ten, draws that obey it, and push-forwards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from truecal.errors import InputError
from truecal.lab import GLM, PAPER_WORLDS, Beta, Discrete, Identity, Mixture, Power, Steps, Uniform, World, dataset_of

# True errors in percent (norm 2, norm 1), from an independent computation with the printed parameters.
TRUE_ERRORS = {
    "resnet110_c10": (10.71, 5.84),
    "resnet110_SD_c10": (9.53, 4.89),
    "resnet_wide32_c10": (10.13, 5.62),
    "densenet40_c10": (10.37, 5.90),
    "resnet110_c100": (20.37, 15.31),
    "resnet110_SD_c100": (18.52, 13.07),
    "resnet_wide32_c100": (21.26, 14.75),
    "densenet40_c100": (23.36, 16.44),
    "resnet152_imgnet": (8.61, 6.74),
    "densenet161_imgnet": (5.47, 4.93),
}


def test_the_ten_worlds_have_their_known_true_errors():
    assert list(PAPER_WORLDS) == list(TRUE_ERRORS)
    for name, (l2, l1) in TRUE_ERRORS.items():
        assert 100 * PAPER_WORLDS[name].true_error(2) == pytest.approx(l2, abs=0.01)
        assert 100 * PAPER_WORLDS[name].true_error(1) == pytest.approx(l1, abs=0.01)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3])
def test_true_error_agrees_with_a_naive_integral_where_one_works(norm):
    scores, curve = Beta(2.0, 1.5), Power(1.7)
    naive, _ = integrate.quad(lambda c: stats.beta.pdf(c, 2.0, 1.5) * abs(c - c**1.7) ** norm, 0, 1, epsabs=1e-13)
    assert World(scores, curve).true_error(norm) == pytest.approx(naive ** (1 / norm), abs=1e-9)


def test_true_error_survives_the_worst_skew_against_simulation():
    world = PAPER_WORLDS["resnet_wide32_c10"]
    c, rest = world.scores.draw(np.random.default_rng(0), (2_000_000,))
    squares = (c - world.curve.at(c, rest)) ** 2
    error = squares.std() / np.sqrt(squares.size)
    assert abs(squares.mean() - world.true_error(2) ** 2) < 4 * error


@given(st.floats(0.5, 4.0), st.floats(0.05, 2.0), st.floats(1.0, 3.0), st.floats(1.0, 2.0))
def test_true_error_grows_with_the_norm(alpha, beta, d, extra):
    world = World(Beta(alpha, beta), Power(d))
    assert world.true_error(1) <= world.true_error(1 + extra) + 1e-9


@pytest.mark.parametrize("name", ["resnet110_c10", "densenet40_c100", "densenet161_imgnet"])
def test_outcomes_follow_the_curve(name):
    world = PAPER_WORLDS[name]
    scores, outcomes = world.draw(n=50_000, m=4, rng=1)
    assert outcomes.dtype == bool
    assert abs(outcomes.mean() - world.accuracy()) < 4 * outcomes.std() / np.sqrt(outcomes.size)
    for low, high in ((0.2, 0.6), (0.6, 0.9), (0.9, 0.99), (0.99, 1.0)):
        mask = (scores >= low) & (scores < high)
        gap = outcomes[mask] - world.curve(scores[mask])
        assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(mask.sum())


def test_the_seed_decides_the_draw():
    world = PAPER_WORLDS["resnet110_c10"]
    first, again, other = (world.draw(100, 2, rng=seed) for seed in (7, np.random.default_rng(7), 8))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("name", PAPER_WORLDS)
def test_recalibration_moves_the_scores_and_not_the_outcomes(name):
    raw = PAPER_WORLDS[name]
    fixed = raw.perfectly_recalibrated()
    assert fixed.true_error() == 0.0
    drawn, outcomes = fixed.draw(2000, 2, rng=3)
    before, same = raw.draw(2000, 2, rng=3)
    np.testing.assert_array_equal(outcomes, same)
    clear = before < 1 - 1e-9  # closer to 1, c alone has lost what the truth still depends on
    np.testing.assert_allclose(drawn[clear], raw.curve(before[clear]), atol=1e-6)
    assert raw.partly_recalibrated(0.02).true_error() == pytest.approx(0.02, abs=1e-9)


@pytest.mark.parametrize("name", ["resnet110_c10", "resnet110_c100", "densenet161_imgnet"])
def test_platt_scaling_leaves_no_residual(name):
    world = PAPER_WORLDS[name].platt_scaled()
    for power in (0, 1):
        residual = world.scores.expectation(
            lambda c, rest, k=power: (
                (world.recalibration.at(c, rest) - world.curve.at(c, rest))
                * np.log(np.maximum(c, 1e-300) / np.maximum(rest, 1e-300)) ** k
            )
        )
        assert abs(residual) < 1e-8


def test_platt_scaling_of_a_logit_world_is_its_truth():
    world = PAPER_WORLDS["resnet110_SD_c100"].platt_scaled()
    assert world.recalibration.b0 == pytest.approx(-0.88, abs=1e-8)
    assert world.recalibration.b1 == pytest.approx(0.49, abs=1e-8)


def test_the_null_of_a_world_keeps_its_shown_scores():
    world = PAPER_WORLDS["resnet110_c100"].partly_recalibrated(0.05)
    null = world.with_calibrated_outcomes()
    assert null.true_error() == 0.0
    np.testing.assert_array_equal(world.draw(500, rng=5)[0], null.draw(500, rng=5)[0])


@given(st.floats(0.0, 0.1))
def test_with_error_reaches_the_error_asked_for(error):
    assert PAPER_WORLDS["resnet110_c10"].with_error(error).true_error() == pytest.approx(error, abs=1e-9)
    assert World(Uniform(), Power(2)).with_error(error, norm=1).true_error(1) == pytest.approx(error, abs=1e-9)


def test_any_function_will_do_as_a_curve():
    step = World(Uniform(), lambda c: np.where(c < 0.5, 0.25, 0.75))
    assert step.true_error(2) == pytest.approx(np.sqrt(1 / 48), abs=1e-9)
    tied = World(Discrete([0.2, 0.7, 1.0], [0.5, 0.3, 0.2]), lambda c: 0.9 * c)
    expected = np.sqrt(0.5 * 0.02**2 + 0.3 * 0.07**2 + 0.2 * 0.1**2)
    assert tied.true_error(2) == pytest.approx(expected, abs=1e-12)


def test_a_spike_of_certain_scores_is_legal():
    world = World(Mixture((Beta(2, 0.5), Discrete([1.0, 0.0])), (0.7, 0.3)), GLM("logit", "logit", 0.0, 0.5))
    scores, _ = world.draw(1000, 2, rng=0)
    assert np.mean(np.isin(scores, (0.0, 1.0))) > 0.25
    assert 0 < world.true_error() < 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: World(Uniform(), lambda c: 1.5 * c), "leaves \\[0, 1\\]: it is 1"),
        (lambda: World(Uniform(), lambda c: c - 0.1), "the curve leaves \\[0, 1\\]: it is -0"),
        (lambda: World(Uniform(), lambda c: c * np.nan), "the curve leaves"),
        (lambda: World(Uniform(), GLM("log", "log", 0.2, 1.0)), "leaves \\[0, 1\\]"),
        (lambda: World(Uniform(), lambda c: 0.5), "into shape \\(\\)"),
        (lambda: World(Uniform(), 0.5), "must be a ScoreCurve or a function"),
        (lambda: World([0.1, 0.2]), "scores must be a distribution"),
        (lambda: World(Uniform(), Identity(), lambda c: np.round(c, 1)), "not strictly increasing"),
        (lambda: World(Uniform()).draw(0), "n >= 1"),
        (lambda: World(Uniform()).draw(10, 0), "m >= 1"),
        (lambda: World(Uniform()).true_error(0.5), "norm must be"),
        (lambda: World(Uniform()).true_error(float("inf")), "norm must be"),
        (lambda: World(Uniform()).with_error(0.1), "give it a miscalibrated curve"),
        (lambda: World(Uniform(), Power(2)).with_error(0.9), "leaves \\[0, 1\\]"),
        (lambda: PAPER_WORLDS["resnet110_c10"].partly_recalibrated(0.5), "remaining_error must be in"),
        (lambda: PAPER_WORLDS["resnet_c10"], "unknown world 'resnet_c10': use one of resnet110_c10"),
    ],
)
def test_impossible_worlds_are_refused_by_name(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_every_paper_world_knows_its_dataset():
    assert {dataset_of(name) for name in PAPER_WORLDS} == {"CIFAR-10", "CIFAR-100", "ImageNet"}


class TestMapsThatMergeScores:
    """Steps: the truth of a merged output is the mean of the curve over all scores shown as it."""

    world = World(Uniform(), Power(2)).recalibrated(Steps((0.5, 0.8), (0.2, 0.5, 0.9)))

    def test_the_true_error_by_hand(self):
        # E[c^2 | low <= c < high] = (high^3 - low^3) / (3 (high - low))
        ends = np.array([0.0, 0.5, 0.8, 1.0])
        means = np.diff(ends**3) / 3 / np.diff(ends)
        for norm in (1, 2):
            by_hand = np.sum(np.diff(ends) * np.abs(np.array([0.2, 0.5, 0.9]) - means) ** norm) ** (1 / norm)
            assert self.world.true_error(norm) == pytest.approx(by_hand, abs=1e-9)

    def test_the_true_error_by_simulation(self):
        drawn, outcomes = self.world.draw(400_000, rng=0)
        gaps = [(np.mean(drawn == v), v - outcomes[drawn == v].mean()) for v in (0.2, 0.5, 0.9)]
        simulated = np.sqrt(sum(share * gap**2 for share, gap in gaps))
        assert simulated == pytest.approx(self.world.true_error(), abs=0.003)

    def test_equal_values_are_one_output(self):
        merged = World(Uniform(), Power(2)).recalibrated(Steps((0.25, 0.75), (0.4, 0.7, 0.4)))
        outer = (0.25**3 + 1 - 0.75**3) / 3 / 0.5
        inner = (0.75**3 - 0.25**3) / 3 / 0.5
        assert merged.true_error(1) == pytest.approx(0.5 * abs(0.4 - outer) + 0.5 * abs(0.7 - inner), abs=1e-9)

    def test_calibrated_outcomes_and_scaled_errors(self):
        assert self.world.with_calibrated_outcomes().true_error() == pytest.approx(0.0, abs=1e-9)
        assert self.world.with_error(0.01).true_error() == pytest.approx(0.01, abs=1e-9)

    def test_a_map_that_does_not_say_what_it_merges_is_refused(self):
        with pytest.raises(InputError, match="must be given as Steps"):
            World(Uniform(), recalibration=lambda c: np.where(c < 0.5, 0.2, 0.7))
        with pytest.raises(InputError, match="one value more than edges"):
            Steps((0.5,), (0.1,))
        with pytest.raises(InputError, match="must rise"):
            Steps((0.5, 0.5), (0.1, 0.2, 0.3))


def test_drawn_rates_belong_to_the_drawn_scores():
    world = PAPER_WORLDS["resnet110_c100"].partly_recalibrated(0.02)
    drawn, rates = world.draw_rates(2000, 3, rng=5)
    scores, _ = world.draw(2000, 3, rng=5)
    np.testing.assert_array_equal(drawn, scores)
    assert np.sqrt(np.mean((drawn - rates) ** 2)) == pytest.approx(0.02, rel=0.1)
