"""What every recalibrator keeps: scikit-learn's contract, distributions, invariances, refusals."""

import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import truecal.recalibration
from truecal.errors import InputError, TruecalWarning
from truecal.predictions import Predictions
from truecal.recalibration import (
    BetaCalibration,
    BiasCorrectedTemperature,
    CenteredIsotonic,
    DirichletCalibration,
    EnsembleTemperature,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PriorShift,
    RecalibratedClassifier,
    Recalibrator,
    ScalingBinning,
    SharedBinning,
    SplineCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    TopVersusAll,
    VectorScaling,
    VennAbers,
)

Array = NDArray[np.float64]
Maker = Callable[..., Recalibrator]
SCALINGS: list[Maker] = [
    TemperatureScaling,
    BiasCorrectedTemperature,
    VectorScaling,
    StructuredMatrixScaling,
    lambda **options: StructuredMatrixScaling(off_diagonal=None, **options),
    MatrixScaling,
    DirichletCalibration,
    EnsembleTemperature,
    TopVersusAll,
]
MAPPINGS: list[Maker] = [
    PlattScaling,
    BetaCalibration,
    lambda **options: BetaCalibration(parameters=2, **options),
    IsotonicCalibration,
    lambda **options: HistogramBinning(bins=5, **options),
    lambda **options: HistogramBinning(bins=5, scheme="width", **options),
    lambda **options: ScalingBinning(bins=5, **options),
    CenteredIsotonic,
    lambda **options: SplineCalibration(knots=5, **options),
    VennAbers,
]
POOLED: list[Maker] = [
    lambda **options: SharedBinning(bins=5, **options),
    lambda **options: IsotonicCalibration(multiclass="shared", **options),
    lambda **options: IsotonicCalibration(multiclass="top-label", **options),
]
WRAPPED: list[Maker] = [
    lambda **options: PriorShift(BetaCalibration(input=options.get("input", "probs")), **options),
]
MAKERS = SCALINGS + MAPPINGS + POOLED + WRAPPED
every = pytest.mark.parametrize("maker", MAKERS)


def draw(n: int = 300, classes: int = 3, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, classes))
    return logits, (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def probabilities(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_no_recalibrator_is_missing_from_the_table() -> None:
    names = {type(maker()).__name__ for maker in MAKERS}
    public = {n for n in truecal.recalibration.__all__ if isinstance(getattr(truecal.recalibration, n), type)}
    public = {n for n in public if issubclass(getattr(truecal.recalibration, n), Recalibrator)}
    # segment offsets read columns of Predictions; tests/groups/test_audit.py holds them to the contract
    assert names == public - {"Recalibrator", "SegmentOffsets"}


@every
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_outputs_are_distributions(maker: Maker, classes: int, kind: str) -> None:
    logits, labels = draw(400, classes)
    X = logits if kind == "logits" else probabilities(logits)
    fixed = maker(input=kind).fit(X[:300], labels[:300])
    probs = fixed.predict_proba(X)
    assert probs.shape == (400, classes)
    assert probs.dtype == np.float64
    assert (probs >= 0).all()
    assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    assert_array_equal(fixed.predict(X), probs.argmax(axis=1))


@every
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_one_column_is_the_positive_class(maker: Maker, kind: str) -> None:
    logits, labels = draw(300, 2)
    X = logits if kind == "logits" else probabilities(logits)
    one = X[:, 1] - X[:, 0] if kind == "logits" else X[:, 1]
    if maker is VectorScaling:  # depends on the level of each row's logits; see test_softmax_scaling
        X = np.column_stack([np.zeros(300), one]) if kind == "logits" else X
    two = maker(input=kind).fit(X, labels).predict_proba(X)
    assert_allclose(maker(input=kind).fit(one, labels).predict_proba(one), two, atol=1e-7)
    assert_allclose(maker(input=kind).fit(one[:, None], labels).predict_proba(one[:, None]), two, atol=1e-7)


@every
@given(seed=st.integers(0, 10_000))
@settings(max_examples=12, deadline=None)
def test_the_order_of_rows_does_not_matter(maker: Maker, seed: int) -> None:
    logits, labels = draw(80, 3, seed)
    logits = np.round(logits, 1)  # with ties
    order = np.random.default_rng(seed).permutation(80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruecalWarning)
        fixed = maker(input="logits").fit(logits, labels)
        again = maker(input="logits").fit(logits[order], labels[order])
    assert_allclose(again.predict_proba(logits), fixed.predict_proba(logits), atol=1e-6)


@every
@given(seed=st.integers(0, 10_000))
@settings(max_examples=12, deadline=None)
def test_a_weight_is_a_repetition(maker: Maker, seed: int) -> None:
    logits, labels = draw(60, 3, seed)
    counts = np.random.default_rng(seed).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruecalWarning)
        weighted = maker(input="logits").fit(logits, labels, sample_weight=counts)
        repeated = maker(input="logits").fit(logits[rows], labels[rows])
    assert_allclose(weighted.predict_proba(logits), repeated.predict_proba(logits), atol=1e-6)


@pytest.mark.parametrize("maker", [TemperatureScaling, PlattScaling, *MAPPINGS[1:4], *MAPPINGS[6:10]])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_two_scores_never_change_their_order(maker: Maker, seed: int) -> None:
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.02, 0.98, 60)
    y = np.r_[0, 1, (rng.random(58) < rng.random() * s[2:]).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruecalWarning)
        fixed = maker(input="probs").fit(s, y)
    after = fixed.predict_proba(np.sort(np.r_[rng.random(300), s]))[:, 1]
    assert (np.diff(after) >= -1e-15).all()


@every
def test_clone_and_params(maker: Maker) -> None:
    logits, labels = draw()
    fixed = maker(input="logits").fit(logits, labels)
    copy = clone(fixed)
    assert repr(copy.get_params()) == repr(fixed.get_params())
    assert not hasattr(copy, "classes_")
    assert_array_equal(copy.fit(logits, labels).predict_proba(logits), fixed.predict_proba(logits))
    assert_array_equal(pickle.loads(pickle.dumps(fixed)).predict_proba(logits), fixed.predict_proba(logits))
    assert maker().set_params(input="logits").input == "logits"


@every
def test_the_callers_arrays_are_left_alone(maker: Maker) -> None:
    logits, labels = draw()
    for array in (logits, labels):
        array.setflags(write=False)
    weights = np.ones(300)
    weights.setflags(write=False)
    maker(input="logits").fit(logits, labels, weights).predict_proba(logits)


@every
def test_class_names(maker: Maker) -> None:
    logits, labels = draw()
    names = ["cat", "dog", "fox"]
    plain = maker(input="logits").fit(logits, labels)
    named = maker(input="logits", classes=names).fit(logits, np.array(names)[labels])
    assert named.classes_.tolist() == names
    assert_array_equal(named.predict_proba(logits), plain.predict_proba(logits))
    assert_array_equal(named.predict(logits), np.array(names)[plain.predict(logits)])


@every
def test_float32_input_gives_the_same_answer(maker: Maker) -> None:
    logits, labels = draw()
    single = logits.astype(np.float32)
    double = single.astype(np.float64)
    fixed = maker(input="logits").fit(single, labels).predict_proba(single)
    assert_allclose(fixed, maker(input="logits").fit(double, labels).predict_proba(double), atol=1e-5)


@every
def test_bad_input_is_refused_by_name(maker: Maker) -> None:
    logits, labels = draw()
    probs = probabilities(logits)
    fixed = maker(input="logits").fit(logits, labels)
    broken = logits.copy()
    broken[5, 1] = np.nan
    for array in (broken, np.where(np.isnan(broken), np.inf, broken)):
        with pytest.raises(InputError, match=r"row 5, column 1 is (nan|inf)"):
            maker(input="logits").fit(array, labels)
        with pytest.raises(InputError, match=r"row 5, column 1 is (nan|inf)"):
            fixed.predict_proba(array)
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]: row 0"):
        maker(input="probs").fit(logits, labels)
    with pytest.raises(InputError, match="row 0 sum to 2"):
        maker(input="probs").fit(np.full((3, 4), 0.5), [0, 1, 2])
    with pytest.raises(InputError, match="y holds only one class"):
        maker(input="logits").fit(logits, np.ones(300, int))
    with pytest.raises(InputError, match="y holds only one class"):
        maker(input="logits").fit(logits, labels, sample_weight=(labels == 1).astype(float))
    with pytest.raises(InputError, match="row 0 is 3, but there are 3 classes"):
        maker(input="logits").fit(logits, np.r_[3, labels[1:]])
    with pytest.raises(InputError, match="299 labels"):
        maker(input="logits").fit(logits, labels[1:])
    with pytest.raises(InputError, match="weights must be finite and not negative: row 2 is -1"):
        maker(input="logits").fit(logits, labels, np.r_[1, 1, -1, np.ones(297)])
    with pytest.raises(InputError, match="empty"):
        maker(input="logits").fit(np.empty((0, 3)), [])
    with pytest.raises(InputError, match="input must be 'logits' or 'probs', not 'scores'"):
        maker(input="scores").fit(probs, labels)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        fixed.predict_proba(logits[:, :2])
    with pytest.raises(InputError, match="y to be passed"):
        maker(input="logits").fit(logits, None)
    with pytest.raises(ValueError, match="not fitted yet"):
        maker().predict_proba(probs)


@pytest.mark.parametrize("maker", MAPPINGS)
def test_a_class_never_seen_is_warned_of_and_gets_little(maker: Maker) -> None:
    logits, labels = draw(400, 4)
    observed = labels != 2
    with pytest.warns(TruecalWarning, match="class 2 never occurs in y"):
        fixed = maker(input="logits").fit(logits[observed], labels[observed])
    assert fixed.predict_proba(logits)[:, 2].mean() < 0.05


def test_temperature_does_not_mind_a_class_never_seen() -> None:
    logits, labels = draw(400, 4)
    TemperatureScaling().fit(logits[labels != 2], labels[labels != 2])


def test_recalibrated_predictions_keep_everything_else() -> None:
    logits, labels = draw()
    preds = Predictions.from_probs(
        probabilities(logits), labels, weights=np.ones(300), clusters=np.arange(300) // 3, columns={"site": labels}
    )
    fixed = TemperatureScaling(input="probs").fit(preds.probs, labels)
    after = fixed.recalibrate(preds)
    assert_array_equal(after.probs, fixed.predict_proba(preds.probs))
    assert after.weights is preds.weights
    assert after.clusters is preds.clusters
    binary = Predictions.from_probs(preds.probs[:, 0], labels == 0)
    assert PlattScaling().fit(binary.probs, binary.labels).recalibrate(binary).binary
    through_logits = TemperatureScaling().fit(logits, labels)
    assert_allclose(through_logits.recalibrate(preds, logits).probs, after.probs, atol=1e-8)
    assert_allclose(through_logits.recalibrate(preds).probs, after.probs, atol=1e-8)  # one temperature needs no logits
    with pytest.raises(InputError, match="pass the logits as X"):
        VectorScaling().fit(logits, labels).recalibrate(preds)


def test_a_frozen_classifier_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6))
    X[:, 3:] = X[:, :3] + 0.1 * rng.normal(size=(900, 3))  # redundant features make naive Bayes overconfident
    y = np.array(["no", "yes"])[(X[:, 0] + rng.normal(size=900) > 0).astype(int)]
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(X[:300], y[:300])
    fixed = RecalibratedClassifier(FrozenEstimator(model), BetaCalibration())
    whole = make_pipeline(FrozenEstimator(StandardScaler(with_mean=False, with_std=False).fit(X)), fixed)
    whole.fit(X[300:600], y[300:600])
    assert whole.classes_.tolist() == ["no", "yes"]
    held_out = y[600:] == "yes"

    def log_loss(probs: Array) -> float:
        return float(-np.log(np.where(held_out, probs[:, 1], probs[:, 0])).mean())

    assert log_loss(whole.predict_proba(X[600:])) < log_loss(model.predict_proba(X[600:])) - 0.02
    assert set(whole.predict(X[600:])) == {"no", "yes"}
    assert_array_equal(clone(whole).fit(X[300:600], y[300:600]).predict_proba(X), whole.predict_proba(X))
    scores = cross_val_score(fixed, X[300:], y[300:], scoring="neg_log_loss", cv=3)
    assert (scores > -0.7).all()


def test_a_classifier_gives_the_output_its_recalibrator_declares() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    margin = LinearSVC().fit(X[:200], y[:200])
    fixed = RecalibratedClassifier(margin, PlattScaling(input="logits")).fit(X[200:], y[200:])
    by_hand = PlattScaling(input="logits").fit(margin.decision_function(X[200:]), y[200:])
    assert_array_equal(fixed.predict_proba(X), by_hand.predict_proba(margin.decision_function(X)))
    with pytest.raises(InputError, match="reads predict_proba, which LinearSVC does not have"):
        RecalibratedClassifier(margin, PlattScaling()).fit(X[200:], y[200:])
    with pytest.raises(ValueError, match="not fitted yet"):
        RecalibratedClassifier(LogisticRegression(), PlattScaling()).fit(X, y)


# scikit-learn's generic checks feed a classifier features and labels that have nothing to do with each other. Ours
# reads model outputs, one column per class: checks with more labels than columns cannot apply, nor those on wording.
MORE_LABELS = "the check has more labels than columns; here the columns are the classes"
ONE_COLUMN = "one-dimensional input is welcome here: it is the positive class"
WORDING = "refused, in other words than the check asks for"
NOT_APPLICABLE = {
    "check_estimators_overwrite_params": MORE_LABELS,
    "check_estimators_fit_returns_self": MORE_LABELS,
    "check_readonly_memmap_input": MORE_LABELS,
    "check_sample_weights_pandas_series": MORE_LABELS,
    "check_sample_weights_not_an_array": MORE_LABELS,
    "check_sample_weights_shape": MORE_LABELS,
    "check_sample_weights_not_overwritten": MORE_LABELS,
    "check_classifier_data_not_an_array": MORE_LABELS,
    "check_classifiers_train": MORE_LABELS,
    "check_classifiers_classes": "names of classes are declared with classes=, not inferred from the labels that occur",
    "check_fit2d_1feature": MORE_LABELS,
    "check_fit2d_predict1d": ONE_COLUMN,
    "check_complex_data": WORDING,
    "check_dtype_object": WORDING,
    "check_estimators_empty_data_messages": WORDING,
    "check_classifiers_regression_target": WORDING,
    "check_supervised_y_2d": "a column of labels is as good as a row, without a warning",
    "check_estimators_nan_inf": "minus infinity is a logit like others: it rules a class out",
    "check_sample_weight_equivalence_on_sparse_data": "scikit-learn 1.6 asks it of those that take no sparse matrix, too",
}


# One of each family, and in the full tier one of every other kind of fit.
CHECKED = {
    "temperature": lambda: TemperatureScaling(input="logits"),
    "Platt": lambda: PlattScaling(input="logits"),
    "vector": lambda: VectorScaling(input="logits"),
    "structured matrix": lambda: StructuredMatrixScaling(input="logits"),
    "isotonic": lambda: IsotonicCalibration(input="logits"),
    "Venn-Abers": lambda: VennAbers(input="logits"),
    "scaling-binning": lambda: ScalingBinning(bins=3, input="logits"),
}


@pytest.mark.parametrize(
    "name",
    [name if name in ("temperature", "Platt") else pytest.param(name, marks=pytest.mark.full) for name in CHECKED],
)
@pytest.mark.filterwarnings("ignore::truecal.errors.TruecalWarning")
def test_scikit_learn_estimator_checks(name: str) -> None:
    checks = check_estimator(CHECKED[name](), expected_failed_checks=NOT_APPLICABLE, on_skip=None)
    assert len(checks) > 40
    assert [c["check_name"] for c in checks if c["expected_to_fail"] and c["status"] == "passed"] == []
