"""Functions of Predictions called with labels and probabilities, and the words of scikit-learn."""

import inspect

import numpy as np
import pytest

import truecal as tc
from truecal.errors import InputError

RNG = np.random.default_rng(0)
P = RNG.random(240)
Y = (RNG.random(240) < P**1.3).astype(int)
SITE = np.repeat(["a", "b"], 120)
CLUSTERS = np.arange(240) // 4
PREDS = tc.Predictions.from_probs(P, Y, clusters=CLUSTERS, columns={"site": SITE})
MAPS = {"platt": tc.recalibration.PlattScaling()}

# Public function -> how it is called after its data, and what is compared.
CALLS = {
    "verify": (lambda f, *x, **o: f(*x, threshold=0.1, **o), lambda r: (r.verdict, r.value, r.high)),
    "subgroups": (lambda f, *x, **o: f(*x, by="site", **o), lambda r: r.frame()["error"].tolist()),
    "audit": (lambda f, *x, **o: f(*x, by="site", **o), str),
    "likert": (lambda f, *x, **o: f(*x, replicates=20, **o), str),
    "evaluate": (lambda f, *x, **o: f(MAPS, *x, folds=3, **o), str),
    "clinical.summary": (lambda f, *x, **o: f(*x, **o), str),
    "clinical.net_benefit": (lambda f, *x, **o: f(*x, thresholds=[0.2, 0.4], **o), str),
    "clinical.flexible_curve": (lambda f, *x, **o: f(*x, **o), lambda r: r.frame()),
    "scores.brier": (lambda f, *x, **o: f(*x, **o), float),
    "scores.log_loss": (lambda f, *x, **o: f(*x, **o), float),
    "scores.accuracy": (lambda f, *x, **o: f(*x, **o), float),
    "scores.mean_confidence": (lambda f, *x, **o: f(*x, **o), float),
    "scores.summary": (lambda f, *x, **o: f(*x, **o), str),
    "scores.briers": (lambda f, *x, **o: f(*x, **o), list),
    "scores.log_losses": (lambda f, *x, **o: f(*x, **o), list),
    "selective.risk_coverage": (lambda f, *x, **o: f(*x, **o), lambda r: r.frame()),
    "selective.aurc": (lambda f, *x, **o: f(*x, **o), lambda r: r.value),
    "selective.abstention_cost": (lambda f, *x, **o: f(*x, rate=0.3, cost_ratio=0.2, **o), str),
    "inference.below": (lambda f, *x, **o: f(*x, 0.2, **o), lambda r: r.p_value),
    "inference.bootstrap": (lambda f, *x, **o: f(tc.BinnedECE(), *x, resamples=50, **o), lambda r: r.interval()),
    "inference.rank_series_test": (lambda f, *x, **o: f(*x, **o), lambda r: r.p_value),
    "decision_loss": (lambda f, *x, **o: f(*x, thresholds=[0.2, 0.4], **o), str),
    "scores.decompose_score": (lambda f, *x, **o: f(*x, **o), str),
    "lab.how_biased": (lambda f, *x, **o: f(*x, m=5, **o), str),
}
OTHERS = {
    "measure": "its array form is calibration_error",
    "recalibration.choose_bins": "takes plain rows: test_choose_bins_takes_labels_and_probabilities",
    "report": "writes a page: test_a_page_of_labels_and_probabilities",
    "lenses.default_lens": "chooses a lens for Predictions",
    "lenses.check_lens": "checks a lens",
    "groups.beyond_top": "takes several named Predictions",
    "estimators.sweep_granularity": "judges several probabilities of a row",
    "compare": "takes y_true first by itself",
    "inference.compare_many": "takes y_true first by itself",
}


def public_functions():
    for name in tc.__all__:
        home = getattr(tc, name)
        if inspect.isfunction(home):
            yield name, home
        elif inspect.ismodule(home) and name not in ("integrations", "train"):
            for inner in getattr(home, "__all__", [n for n in vars(home) if not n.startswith("_")]):
                function = getattr(home, inner)
                if (
                    inspect.isfunction(function)
                    and function.__module__.startswith("truecal")
                    and inner not in tc.__all__
                ):
                    yield f"{name}.{inner}", function


def takes_predictions(function):
    parameters = inspect.signature(function).parameters.values()
    return any("Predictions" in str(p.annotation) for p in parameters)


def test_no_function_of_predictions_is_missing():
    pytest.importorskip("torch")  # a loss of truecal.train is a public name
    named = {name for name, function in public_functions() if takes_predictions(function)}
    assert named - {"plot.reliability_numbers"} <= CALLS.keys() | OTHERS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_array_call_equals_predictions_call(name):
    call, facts = CALLS[name]
    home, _, inner = name.rpartition(".")
    function = getattr(getattr(tc, home) if home else tc, inner)
    with_words = call(function, Y, P, clusters=CLUSTERS, columns={"site": SITE})
    assert facts(with_words) == facts(call(function, PREDS))


def test_a_page_of_labels_and_probabilities(tmp_path):
    page = tc.report(Y, P, path=tmp_path / "r.html", clusters=CLUSTERS, fast=True)
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_choose_bins_takes_labels_and_probabilities():
    plain = tc.Predictions.from_probs(P, Y)
    answers = [tc.recalibration.choose_bins(*data, 0.3, resamples=5) for data in ((Y, P), (plain,))]
    assert answers[0].recommended == answers[1].recommended


def test_labels_without_probabilities_are_refused():
    with pytest.raises(InputError, match="must be Predictions"):
        tc.verify(Y, threshold=0.1)


def test_pos_label_names_the_positive_class():
    words = np.where(Y == 1, "Yes", "No")
    plain = tc.calibration_error(Y, P)
    assert tc.calibration_error(words, P).value == plain.value
    assert tc.calibration_error(words, P, pos_label="Yes").value == plain.value
    assert tc.calibration_error(words, 1 - P, pos_label="No").value == pytest.approx(plain.value, abs=1e-12)
    two = tc.Predictions.from_probs(np.c_[1 - P, P], words, pos_label="No")
    assert two.classes == ("Yes", "No")
    assert tc.measure(two, lens=tc.OneClass()).value == pytest.approx(plain.value, abs=1e-12)
    assert tc.calibration_error(Y, P, pos_label=1).value == plain.value
    assert tc.calibration_error(1 - Y, P, pos_label=0).value == plain.value


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pos_label": "Maybe"}, "pos_label='Maybe' is not among the classes 'No' and 'Yes'"),
        ({"classes": ["No", "Yes"], "pos_label": "x"}, "is not among the classes"),
    ],
)
def test_a_wrong_pos_label_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        tc.calibration_error(np.where(Y == 1, "Yes", "No"), P, **options)


def test_three_words_for_two_classes_are_refused():
    labels = np.array(["a", "b", "c"] * 80)
    with pytest.raises(InputError, match=r"labels have 3 values \('a', 'b', 'c'\) for two classes"):
        tc.calibration_error(labels, P)


def test_swapped_arguments_name_the_order_of_this_call():
    with pytest.raises(InputError, match="y_true comes first"):
        tc.calibration_error(P, Y)
    with pytest.raises(InputError, match="probabilities come first in from_probs"):
        tc.Predictions.from_probs(Y, P)


def test_several_labels_per_row_are_not_called_one_hot():
    probs = np.full((3, 3), 1 / 3)
    with pytest.raises(InputError, match="from_multilabel"):
        tc.Predictions.from_probs(probs, np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]]))
    with pytest.raises(InputError, match="argmax"):
        tc.Predictions.from_probs(probs, np.eye(3, dtype=int))


def test_n_bins_is_a_second_spelling_of_bins():
    for kind in (tc.BinnedECE, tc.estimators.LabelBinnedECE, tc.DebiasedECE, tc.estimators.AdaptiveECE):
        assert kind(n_bins=7) == kind(bins=7)
    with pytest.raises(InputError, match="bins and n_bins"):
        tc.BinnedECE(bins=5, n_bins=7)


def test_labels_and_probabilities_may_be_named():
    by_name = tc.verify(y_true=Y, y_prob=P, threshold=0.1)
    assert by_name.value == tc.verify(Y, P, threshold=0.1).value
    with pytest.raises(TypeError, match="preds"):
        tc.verify(threshold=0.1)


def test_numbers_as_classes_have_the_positive_one_that_is_named():
    expected = tc.calibration_error(Y, P).value
    assert tc.calibration_error(Y + 1, P, pos_label=2).value == expected
    with pytest.raises(InputError, match=r"classes=range\(1, 3\)"):
        tc.calibration_error(2 - Y, P, pos_label=1)


def test_labels_of_the_positive_class_alone_are_enough_for_one_column():
    estimate = tc.calibration_error(np.full(240, "Yes"), P, pos_label="Yes")
    assert estimate.value == tc.calibration_error(np.ones(240, int), P).value
    with pytest.raises(InputError, match="Yes"):
        tc.calibration_error(np.full(240, "Yes"), np.stack([1 - P, P], axis=1), pos_label="Yes")


@pytest.mark.parametrize(
    ("logits", "warned"), [(np.arange(10) / 9, True), (np.arange(9) / 9, False), (np.arange(10) / 8, False)]
)
def test_ten_logits_from_0_to_1_are_suspected_to_be_probabilities(logits, warned):
    labels = np.arange(len(logits)) % 2
    if warned:
        with pytest.warns(tc.TruecalWarning, match="probabilities"):
            tc.Predictions.from_logits(logits, labels)
    else:
        tc.Predictions.from_logits(logits, labels)
