"""The bootstrap: against naive resampling of rows, on degenerate data, and its promises about levels and the estimate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import truecal as tc
from tests.datasets import named
from tests.simulations import datasets
from truecal.errors import InputError
from truecal.estimators.base import FixedBinsEstimator, resample_rows
from truecal.inference import bootstrap
from truecal.lenses import default_lens
from truecal.resampling.cells import CELLS
from truecal.resampling.draws import multinomial
from truecal.resampling.units import Units, incidence

DATA = named()
ESTIMATORS = [
    tc.BinnedECE(),
    tc.BinnedECE(scheme="mass", norm=2),
    tc.BinnedECE(norm=np.inf),
    tc.DebiasedECE(),
    tc.DebiasedECE(correction="exact"),
    tc.estimators.LabelBinnedECE(),
    tc.SweepECE(),
    tc.NearestECE(norm=1),
    tc.estimators.KernelDensityECE(),
    tc.SmoothECE(),
    tc.estimators.IsotonicError(),
    tc.RankSeries(),
    tc.RankSeries(norm=1),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def profile_of(name):
    return tc.profile.Profile.from_arrays(*DATA[name])


def naive(estimator, c, y, resamples, seed):
    """Rows drawn with replacement and sorted again, one resample at a time."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(c), size=(resamples, len(c)))
    return estimator.estimate(tc.profile.Profile.from_arrays(c[rows], y[rows])).power


@pytest.mark.parametrize("n", [200, 3000])
@pytest.mark.parametrize(
    "estimator",
    [
        tc.BinnedECE(norm=2),
        tc.BinnedECE(scheme="mass", norm=1),
        tc.DebiasedECE(bins=10),
        tc.SweepECE(),
        tc.RankSeries(),
    ],
    ids=repr,
)
def test_resamples_scatter_like_those_of_rows_drawn_and_sorted_again(estimator, n):
    rng = np.random.default_rng(n)
    c = rng.random(n)
    y = rng.random(n) < c**2
    ours = bootstrap(estimator, tc.profile.Profile.from_arrays(c, y), resamples=1000)
    theirs = naive(estimator, c, y, 1000, 1)
    assert ours.powers.std() == pytest.approx(theirs.std(), rel=0.12)  # 5 standard errors of a ratio of two spreads
    assert abs(np.median(ours.powers) - np.median(theirs)) < 0.3 * theirs.std()
    assert ours.power == pytest.approx(float(estimator.estimate(tc.profile.Profile.from_arrays(c, y)).power[0]))


def test_draws_over_cells_have_the_moments_of_a_multinomial():
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    for n in (20, 1000):  # row by row, and cell by cell
        drawn = multinomial(chances, n, 20_000, np.random.default_rng(0))
        np.testing.assert_allclose(drawn.sum(axis=1), n, rtol=1e-12)
        np.testing.assert_allclose(drawn.mean(axis=0), n * chances, rtol=0.02)
        np.testing.assert_allclose(np.cov(drawn.T), n * (np.diag(chances) - np.outer(chances, chances)), atol=0.012 * n)


def test_the_row_numbers_of_a_lens_lead_back_to_the_predictions():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 50)
    labels = rng.integers(4, size=50)
    preds = tc.Predictions.from_probs(probs, labels)
    top = tc.TopLabel().sample(preds)
    np.testing.assert_array_equal(top.profile.scores[0], probs.max(axis=1)[top.order])
    np.testing.assert_array_equal(top.profile.outcomes[0], (probs.argmax(axis=1) == labels)[top.order])
    for k, rows in enumerate(tc.ClassWise().samples(preds)):
        np.testing.assert_array_equal(rows.profile.scores[0], probs[rows.order, k])


def test_incidence_counts_every_row_once_in_its_cell_and_cluster():
    rng = np.random.default_rng(0)
    c = np.round(rng.random(200), 1)
    y = (rng.random(200) < c).astype(int)
    g = rng.integers(7, size=200)
    preds = tc.Predictions.from_probs(c, y, clusters=g, weights=rng.integers(0, 3, 200))
    sample = default_lens(preds).sample(preds)
    units = Units.of(sample, rng)
    cells, matrix = incidence(sample.profile, units.of_row[sample.order], units.count, CELLS)
    table = matrix.toarray()
    for j, score in enumerate(cells.scores[0]):
        for outcome in (0, 1):
            for cluster in range(7):
                mask = (c == score) & (y == outcome) & (g == cluster)
                assert table[outcome * cells.rows + j, cluster] == preds.weights[mask].sum()


PAIRS = [
    *((e, name, 120) for e in ESTIMATORS[:8] for name in DATA),
    *((e, name, 20) for e in ESTIMATORS[8:] for name in ("tied", "all correct")),
]


@pytest.mark.parametrize(("estimator", "data", "resamples"), PAIRS, ids=str)
def test_intervals_contain_the_estimate_and_higher_levels_contain_lower_ones(estimator, data, resamples):
    resampled = bootstrap(estimator, profile_of(data), resamples=resamples)
    for method in ("percentile", "basic", "bca"):
        previous = None
        for level in (0.5, 0.8, 0.95, 0.99):
            interval = resampled.interval(level, method)
            assert 0 <= interval.low <= resampled.value <= interval.high <= 1
            assert interval.level == level
            if previous is not None:
                assert interval.low <= previous.low
                assert previous.high <= interval.high
            previous = interval


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=40),
    st.sampled_from(ESTIMATORS[:8]),
    st.sampled_from(["percentile", "basic", "bca"]),
)
def test_any_data_give_an_interval_around_the_estimate(rows, estimator, method):
    c = np.array([r[0] for r in rows]) / 20
    y = np.array([r[1] for r in rows])
    resampled = bootstrap(estimator, tc.profile.Profile.from_arrays(c, y), resamples=20, method=method)
    interval = resampled.interval()
    assert np.isfinite(resampled.powers).all()
    assert 0 <= interval.low <= resampled.value <= interval.high <= 1


@every_estimator
def test_a_model_that_is_always_right_does_not_look_certain(estimator):
    interval = bootstrap(
        estimator, tc.profile.Profile.from_arrays(np.full(30, 0.3), np.ones(30, int)), resamples=200
    ).interval()
    assert interval.high - interval.low > 0.05  # the true rate may well be 0.9


def test_acceleration_is_the_jackknife_of_rows():
    c, y = DATA["tied"]
    estimator = tc.BinnedECE(norm=2)
    without = [
        estimator.estimate(tc.profile.Profile.from_arrays(np.delete(c, i), np.delete(y, i))).power[0]
        for i in range(len(c))
    ]
    d = np.mean(without) - np.array(without)
    expected = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    resampled = resample_rows(
        estimator,
        tc.profile.Profile.from_arrays(c, y),
        resamples=10,
        level=0.9,
        method="bca",
        rng=np.random.default_rng(0),
    )
    assert resampled.acceleration == pytest.approx(expected)


def test_weights_that_repeat_rows_equal_repeated_rows():
    c, y = DATA["uniform"]
    w = np.random.default_rng(0).integers(1, 4, len(c))
    for estimator in (tc.BinnedECE(), tc.SweepECE()):
        a = bootstrap(estimator, tc.profile.Profile.from_arrays(c, y, w))
        b = bootstrap(estimator, tc.profile.Profile.from_arrays(np.repeat(c, w), np.repeat(y, w)))
        np.testing.assert_allclose(a.powers, b.powers)


def test_the_same_seed_gives_the_same_resamples():
    profile = profile_of("uniform")
    first, again, other = (bootstrap(tc.SweepECE(), profile, resamples=50, rng=seed).powers for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_only_estimators_of_fixed_bins_resample_bins_alone():
    profile = profile_of("uniform")
    in_bins = [isinstance(e, FixedBinsEstimator) and e.fixed_cut(profile) is not None for e in ESTIMATORS[:6]]
    assert in_bins == [True, True, True, True, False, False]


def test_bad_arguments_are_refused():
    profile = profile_of("uniform")
    preds = tc.Predictions.from_probs(*DATA["uniform"], clusters=np.zeros(150, int))
    with pytest.raises(InputError, match="one cluster"):
        bootstrap(tc.SweepECE(), preds)
    with pytest.raises(InputError, match="needs Predictions"):
        bootstrap(tc.SweepECE(), profile, lens=tc.TopLabel())
    with pytest.raises(InputError, match="method"):
        bootstrap(tc.SweepECE(), profile, method="studentized")
    with pytest.raises(InputError, match="level"):
        bootstrap(tc.SweepECE(), profile, level=1.0)
    with pytest.raises(InputError, match="batch of 2"):
        bootstrap(tc.BinnedECE(), tc.profile.Profile.from_arrays(np.full((2, 3), 0.5), np.ones((2, 3))))
    with pytest.raises(InputError, match="estimator"):
        bootstrap("sweep", profile)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [tc.BinnedECE(), tc.DebiasedECE(), tc.BinnedECE(scheme="mass", norm=2)], ids=repr)
@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_default_bootstrap_intervals_cover(estimator, exponent):
    """300 datasets of 500 rows, 200 resamples each, 90 %: compatible with at least 86 % coverage, zero error included."""
    from truecal.lab import Power, Uniform, World

    world = World(Uniform(), Power(exponent))
    truth = world.true_error(estimator.norm)
    trials = datasets(300)
    c, y = world.draw(500, trials, rng=11)
    covered = 0
    for i in range(trials):
        interval = bootstrap(
            estimator, tc.profile.Profile.from_arrays(c[i], y[i]), resamples=200, level=0.9, rng=i
        ).interval()
        covered += interval.low - 1e-9 <= truth <= interval.high
    assert binomtest(covered, trials, 0.86, alternative="less").pvalue > 0.01, covered / trials
