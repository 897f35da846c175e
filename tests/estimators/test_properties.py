"""What must hold of every estimator, whatever its formula: one table of estimators times properties."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truecal as tc
from tests.datasets import small
from truecal.estimators import Estimator

ESTIMATORS = [
    tc.BinnedECE(bins=10, norm=2),
    tc.BinnedECE(bins=7, scheme="mass"),
    tc.BinnedECE(bins=7, scheme="mass", ties="split", norm=math.inf),
    tc.estimators.LabelBinnedECE(bins=10, norm=1),
    tc.estimators.LabelBinnedECE(bins=6, scheme="mass", norm=2),
    tc.estimators.LabelBinnedECE(bins=6, scheme="mass", norm=3, ties="split"),
    tc.DebiasedECE(bins=6),
    tc.DebiasedECE(bins=6, correction="exact"),
    tc.DebiasedECE(bins=6, norm=1),
    tc.SweepECE(),
    tc.SweepECE(scheme="width", norm=1),
    tc.NearestECE(),
    tc.NearestECE(neighbors=3, norm=1),
    tc.NearestECE(alpha=20, score="own"),
    tc.estimators.KernelDensityECE(),
    tc.SmoothECE(),
    tc.estimators.IsotonicError(),
    tc.RankSeries(),
    tc.RankSeries(norm=1),
    tc.estimators.AdaptiveECE(bins=6),
    tc.estimators.AdaptiveECE(bins=4, threshold=0.3, norm=2),
    tc.estimators.KSError(),
    tc.like("torchmetrics").estimator,
]
EVERY = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)


def test_no_estimator_is_missing_from_the_table():
    public = {getattr(tc.estimators, name) for name in tc.estimators.__all__}
    estimators = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, Estimator)} - {Estimator}
    on_rows = {
        tc.GeneralizedECE,
        tc.estimators.KernelError,
        tc.estimators.DirichletECE,
    }  # these judge rows, not profiles
    assert estimators - on_rows == {type(e) for e in ESTIMATORS}


def numbers(estimate):
    """Everything about an estimate that a property constrains."""
    values = [estimate.value, estimate.power, estimate.direction]
    if estimate.interval is not None:
        values += [estimate.interval.low, estimate.interval.high]
    return np.array(values, float)


def assert_same(estimator, one, other, tolerance=1e-7):
    # 1e-7: a root near zero turns a difference of 1e-14 in the squared error into 1e-7
    np.testing.assert_allclose(numbers(estimator(one)), numbers(estimator(other)), rtol=1e-7, atol=tolerance)


@EVERY
@given(data=small(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(estimator, data, seed):
    c, y = data
    order = np.random.default_rng(seed).permutation(len(c))
    assert_same(estimator, tc.profile.Profile.from_arrays(c, y), tc.profile.Profile.from_arrays(c[order], y[order]))


@EVERY
@given(data=small(25), seed=st.integers(0, 99))
def test_whole_weights_are_repetitions(estimator, data, seed):
    c, y = data
    w = np.random.default_rng(seed).integers(1, 4, len(c))
    repeated = tc.profile.Profile.from_arrays(np.repeat(c, w), np.repeat(y, w))
    assert_same(estimator, tc.profile.Profile.from_arrays(c, y, w), repeated)


@EVERY
@given(data=small(), seed=st.integers(0, 99), whole=st.booleans())
def test_a_row_of_weight_zero_is_absent(estimator, data, seed, whole):
    c, y = data
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 3, len(c)) * (1.0 if whole else 0.37)
    w[0] = 1.0 if whole else 0.37
    mask = w > 0
    assert_same(
        estimator, tc.profile.Profile.from_arrays(c, y, w), tc.profile.Profile.from_arrays(c[mask], y[mask], w[mask])
    )


@EVERY
@given(data=small(), seed=st.integers(0, 99))
def test_the_scale_of_importance_weights_does_not_matter(estimator, data, seed):
    c, y = data
    w = np.random.default_rng(seed).random(len(c)) + 0.01
    one, other = tc.profile.Profile.from_arrays(c, y, w), tc.profile.Profile.from_arrays(c, y, 64.0 * w)
    assert_same(estimator, one, other)


@EVERY
@given(seed=st.integers(0, 99), n=st.integers(1, 60), ties=st.booleans())
def test_a_batch_is_a_loop(estimator, seed, n, ties):
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 9, (4, n)) / 8 if ties else rng.random((4, n))
    y = rng.random((4, n)) < c**1.5
    batch = tc.profile.Profile.from_arrays(c, y)
    together = estimator(batch)
    np.testing.assert_allclose(together.value, estimator.values(batch), rtol=1e-12)
    for i in range(4):
        alone = estimator(tc.profile.Profile.from_arrays(c[i], y[i]))
        assert together.value[i] == pytest.approx(alone.value, rel=1e-7, abs=1e-7)
        assert together.power[i] == pytest.approx(alone.power, rel=1e-7, abs=1e-9)
        if alone.interval is not None:
            assert together.interval.high[i] == pytest.approx(alone.interval.high, rel=1e-7)


@EVERY
@given(seed=st.integers(0, 99), n=st.integers(1, 60))
def test_precision_of_the_input_does_not_matter(estimator, seed, n):
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 65, n) / 64  # exact in every precision
    y = rng.random(n) < c
    double = tc.profile.Profile.from_arrays(c, y)
    for dtype in (np.float32, np.float16):
        assert_same(estimator, tc.profile.Profile.from_arrays(c.astype(dtype), y), double)


@EVERY
@given(data=small())
def test_values_lie_between_zero_and_one_and_in_their_interval(estimator, data):
    est = estimator(tc.profile.Profile.from_arrays(*data))
    assert 0 <= est.value <= 1
    assert math.isfinite(est.power)
    if est.interval is not None:
        assert 0 <= est.interval.low <= est.value <= est.interval.high <= 1


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("scheme", ["width", "mass"])
@given(data=small(), bins=st.integers(1, 20))
def test_binning_labels_only_never_gives_less(norm, scheme, data, bins):
    profile = tc.profile.Profile.from_arrays(*data)
    plain = tc.BinnedECE(bins=bins, scheme=scheme, norm=norm)(profile).value
    assert tc.estimators.LabelBinnedECE(bins=bins, scheme=scheme, norm=norm)(profile).value >= plain - 1e-7


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@given(data=small(), bins=st.integers(1, 12), times=st.integers(2, 4))
def test_finer_bins_never_lower_the_plug_in(norm, data, bins, times):
    profile = tc.profile.Profile.from_arrays(*data)
    fine = tc.BinnedECE(bins=bins * times, norm=norm)(profile).value
    assert fine >= tc.BinnedECE(bins=bins, norm=norm)(profile).value - 1e-9


@EVERY
def test_class_names_do_not_matter(estimator):
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(5, 0.4), 200)
    y = np.array([rng.choice(5, p=row) for row in p])
    order = rng.permutation(5)
    shifted = np.argsort(order)[y]
    one, other = tc.Predictions.from_probs(p, y), tc.Predictions.from_probs(p[:, order], shifted)
    for lens in (tc.TopLabel(), tc.ClassWise()):
        ours, theirs = (np.sort(estimator.values(lens(preds))) for preds in (one, other))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_the_table_can_fail():
    """An estimator that looks at the order of rows, at n, or at the first dataset only is caught."""

    class Careless(tc.BinnedECE):
        def estimate(self, profile):
            result = super().estimate(profile)
            return type(result)(result.power + 1e-3 / profile.rows, result.bins)

    careless = Careless()
    c, y = np.array([0.1, 0.4, 0.8]), np.array([0, 1, 1])
    whole = tc.profile.Profile.from_arrays(c, y, [1, 2, 1])
    with pytest.raises(AssertionError):
        assert_same(careless, whole, tc.profile.Profile.from_arrays(c.repeat([1, 2, 1]), y.repeat([1, 2, 1])))
