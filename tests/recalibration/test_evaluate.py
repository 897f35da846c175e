"""Cross-fitted comparison: no row is judged by a fit that saw it, and the winner is picked by a proper score."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.inference import measure
from truecal.lenses import ClassWise
from truecal.predictions import Predictions
from truecal.recalibration import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    evaluate,
)
from truecal.recalibration.contract import count_shared_rows, fingerprint_rows
from truecal.scores import accuracy, brier, log_loss

Array = NDArray[np.float64]


def binary(n: int = 1500, seed: int = 0) -> Predictions:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 0.99, n)
    return Predictions.from_probs(p, rng.random(n) < p**2)


def multiclass(n: int = 1200, seed: int = 0) -> tuple[Predictions, Array]:
    rng = np.random.default_rng(seed)
    logits = 4 * rng.normal(size=(n, 4))
    labels = (0.4 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return Predictions.from_logits(logits, labels), logits


def test_every_row_is_judged_by_a_fit_that_never_saw_it() -> None:
    """One bin per row memorises its labels: in sample it is perfect, cross-fitted it is the worst."""
    preds = binary(400)
    memory = HistogramBinning(bins=320)
    result = evaluate({"memory": memory, "beta": BetaCalibration()}, preds, score="brier")
    assert result["memory"].brier > result["uncalibrated"].brier
    assert result.winner == "beta"
    assert_allclose(HistogramBinning(bins=400).fit(preds.probs, preds.labels).recalibrate(preds).probs, preds.labels)
    assert not hasattr(memory, "maps_")  # the caller's object is left alone


def test_accuracy_counts_a_probability_of_one_half_as_positive() -> None:
    preds = Predictions.from_probs(np.tile([0.5, 0.2, 0.9], 60), np.tile([1, 0, 1, 1, 0, 1, 0, 0, 1], 20))
    before = evaluate([PlattScaling()], preds)["uncalibrated"]
    assert before.accuracy == accuracy(preds) == pytest.approx(8 / 9)


def test_scores_are_those_of_the_out_of_fold_predictions() -> None:
    preds = binary(300)
    result = evaluate([PlattScaling()], preds, folds=3, rng=7)
    rng = np.random.default_rng(7)
    shuffled = rng.permutation(300)
    order = shuffled[np.argsort(preds.labels[shuffled], kind="stable")]
    fold = np.empty(300, int)
    fold[order] = np.arange(300) % 3
    probs = np.empty(300)
    for k in range(3):
        fitted = PlattScaling().fit(preds.probs[fold != k], preds.labels[fold != k])
        probs[fold == k] = fitted.predict_proba(preds.probs[fold == k])[:, 1]
    after = Predictions.from_probs(probs, preds.labels)
    row, before = result["PlattScaling"], result["uncalibrated"]
    assert_allclose([row.log_loss, row.brier], [log_loss(after), brier(after)])
    assert_allclose([before.log_loss, before.brier], [log_loss(preds), brier(preds)])
    gap = (probs - preds.labels) ** 2 - (preds.probs - preds.labels) ** 2
    half = 1.959964 * gap.std(ddof=1) / np.sqrt(300)
    assert_allclose([row.brier_change.low, row.brier_change.high], [gap.mean() - half, gap.mean() + half], rtol=1e-5)
    assert row.error.interval is not None
    assert before.brier_change.low == before.brier_change.high == 0


def test_logits_are_used_where_declared_and_required() -> None:
    preds, logits = multiclass()
    makers = {"T": TemperatureScaling(), "T of probs": TemperatureScaling(input="probs"), "vector": VectorScaling()}
    with pytest.raises(InputError, match='T declares input="logits"; pass logits'):
        evaluate(makers, preds)
    result = evaluate(makers, preds, logits=logits)
    assert_allclose(result["T"].log_loss, result["T of probs"].log_loss, rtol=1e-7)
    assert result["T"].log_loss_change.high < 0
    assert "T" in result.tied
    assert "uncalibrated" not in result.tied
    assert result["T"].accuracy == result["uncalibrated"].accuracy
    with pytest.raises(InputError, match="1200 predictions but 1199 rows of logits"):
        evaluate(makers, preds, logits=logits[1:])


def test_an_infinite_log_loss_loses_and_is_not_hidden() -> None:
    preds = binary(400)
    result = evaluate([HistogramBinning(bins=200), BetaCalibration()], preds)
    row = result["HistogramBinning"]
    assert row.log_loss == np.inf
    assert row.log_loss_change.low == row.log_loss_change.high == np.inf
    assert result.winner == "BetaCalibration"
    assert "HistogramBinning" not in result.tied
    assert np.isfinite(row.brier)


def test_an_infinite_log_loss_before_can_be_repaired() -> None:
    rng = np.random.default_rng(0)
    p = rng.choice([0.0, 0.3, 0.7, 1.0], 300)
    preds = Predictions.from_probs(p, rng.random(300) < 0.1 + 0.8 * p)
    result = evaluate([PlattScaling()], preds)
    assert result["PlattScaling"].log_loss_change.high == -np.inf
    assert result.tied == ("PlattScaling",)


def test_clusters_stay_together_and_widen_intervals() -> None:
    once = binary(300)
    rows = np.repeat(np.arange(300), 4)
    many = Predictions.from_probs(once.probs[rows], once.labels[rows])
    clustered = Predictions.from_probs(once.probs[rows], once.labels[rows], clusters=rows)

    def width(preds: Predictions) -> float:
        change = evaluate([BetaCalibration()], preds)["BetaCalibration"].log_loss_change
        return float(change.high - change.low)

    assert_allclose(width(clustered) / width(many), 2.0, rtol=0.1)
    memory = evaluate([HistogramBinning(bins=200)], clustered, score="brier")
    assert memory.winner == "uncalibrated"  # with a cluster in two folds, memorising would win
    with pytest.raises(InputError, match="3 clusters cannot fill 5 folds"):
        evaluate([BetaCalibration()], Predictions.from_probs(once.probs, once.labels, clusters=np.arange(300) % 3))


def test_whole_weights_are_repetitions() -> None:
    preds = binary(400)
    doubled = Predictions.from_probs(preds.probs, preds.labels, weights=np.full(400, 2))
    a = evaluate([BetaCalibration()], preds)["BetaCalibration"].brier_change
    b = evaluate([BetaCalibration()], doubled)["BetaCalibration"].brier_change
    assert_allclose((a.high - a.low) / (b.high - b.low), np.sqrt(2 * 799 / 800 * 400 / 399 / 1), rtol=0.01)
    uneven = Predictions.from_probs(preds.probs, preds.labels, weights=np.random.default_rng(0).random(400))
    c = evaluate([BetaCalibration()], uneven)["BetaCalibration"].brier_change
    assert c.high - c.low > a.high - a.low


def test_rows_used_to_fit_are_refused_or_labelled() -> None:
    preds = binary()
    fitted = BetaCalibration().fit(preds.probs[:700], preds.labels[:700])
    clean = evaluate([fitted], preds.take(np.arange(700, 1500)), folds=None)
    assert clean.folds is None
    assert not any("in sample" in w for w in clean["BetaCalibration"].error.warnings)
    with pytest.raises(InputError, match="700 of 1500 rows were used to fit BetaCalibration"):
        evaluate([fitted], preds, folds=None)
    with pytest.raises(InputError, match="700 of 700 rows"):
        evaluate([fitted], preds.take(np.random.default_rng(0).permutation(700)), folds=None)
    labelled = evaluate([fitted], preds, folds=None, in_sample="label")
    assert labelled["BetaCalibration"].error.warnings[0] == "measured in sample: 700 of 1500 rows were used to fit"
    read_back = BetaCalibration.from_json(fitted.to_json())
    evaluate([read_back], preds, folds=None)  # a file does not carry the rows it was fitted on


def test_rows_are_recognised_by_outputs_and_label() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((1000, 40)), rng.integers(0, 40, 1000)
    observed = fingerprint_rows(X, y)
    assert count_shared_rows(observed, fingerprint_rows(X[::-1], y[::-1])) == 1000
    assert count_shared_rows(observed, fingerprint_rows(X[300:700], y[300:700])) == 400
    assert count_shared_rows(observed, fingerprint_rows(rng.random((1000, 40)), y)) == 0
    assert count_shared_rows(observed, fingerprint_rows(X, (y + 1) % 40)) == 0
    ruled_out = np.where(np.arange(40) == 0, -1e30, X)
    assert (
        count_shared_rows(fingerprint_rows(ruled_out[:500], y[:500]), fingerprint_rows(ruled_out[400:], y[400:])) == 100
    )
    coarse, labels = rng.integers(0, 10, (500, 1)) / 10, rng.integers(0, 2, 500)
    few = fingerprint_rows(coarse, labels)  # scores on a coarse scale repeat by chance
    assert count_shared_rows(few, fingerprint_rows(coarse[:200], labels[:200])) == 0
    assert count_shared_rows(few, fingerprint_rows(coarse[::-1], labels[::-1])) == 500


def test_a_class_wise_lens() -> None:
    preds, _ = multiclass(600)
    result = evaluate([TemperatureScaling(input="probs")], preds, lens=ClassWise())
    assert result["uncalibrated"].error.value == measure(preds, lens=ClassWise()).value
    assert "4 classes" in result["uncalibrated"].error.lens


def test_the_table() -> None:
    preds = binary(400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate([BetaCalibration()], preds)
    frame = result.frame()
    assert [record["recalibrator"] for record in frame] == ["uncalibrated", "BetaCalibration"]
    assert frame[1]["log_loss"] == result["BetaCalibration"].log_loss
    assert "lowest log loss: BetaCalibration" in str(result)
    with pytest.raises(KeyError):
        result["Platt"]
    assert_array_equal(
        [r.log_loss for r in evaluate([BetaCalibration()], preds, rng=0).rows], [r.log_loss for r in result.rows]
    )


def test_bad_calls() -> None:
    preds = binary(100)
    with pytest.raises(InputError, match="same class; pass a dict"):
        evaluate([BetaCalibration(), BetaCalibration(parameters=2)], preds)
    with pytest.raises(InputError, match="at least one recalibrator"):
        evaluate([], preds)
    with pytest.raises(InputError, match="folds must be a whole number of at least 2"):
        evaluate([BetaCalibration()], preds, folds=1)
    with pytest.raises(InputError, match="8 rows are too few for 5 folds"):
        evaluate([BetaCalibration()], preds.take(np.arange(8)))
    with pytest.raises(InputError, match="score must be 'log loss' or 'brier'"):
        evaluate([BetaCalibration()], preds, score="ece")
    with pytest.raises(ValueError, match="not fitted"):
        evaluate([BetaCalibration()], preds, folds=None)


def test_one_impossible_row_is_named_and_the_others_go_on() -> None:
    preds = binary(400)
    probs = preds.probs.copy()
    probs[145], labels = 1.0, preds.labels.copy()
    labels[145] = 0
    wrong = Predictions.from_probs(probs, labels)
    result = evaluate([BetaCalibration(), IsotonicCalibration(), PlattScaling()], wrong)
    assert [row.name for row in result.rows] == ["uncalibrated", "IsotonicCalibration", "PlattScaling"]
    assert [name for name, _ in result.refused] == ["BetaCalibration"]
    assert "row 145 has a probability of exactly 1" in result.refused[0][1]
    assert "BetaCalibration could not be fitted: row 145" in str(result)
    with pytest.raises(InputError, match="row 145"):
        evaluate([BetaCalibration()], wrong)


def test_scores_split_into_calibration_and_refinement() -> None:
    preds = binary(1500)
    result = evaluate([BetaCalibration(), PlattScaling()], preds)
    before, best = result["uncalibrated"], result[result.winner]
    assert_allclose(before.log_loss_split.calibration + before.log_loss_split.refinement, before.log_loss)
    assert_allclose(before.log_loss_split.refinement, best.log_loss)
    assert best.log_loss_split.calibration == 0
    assert 0 < before.log_loss_split.calibration_interval.low < before.log_loss_split.calibration
    assert_allclose(before.brier_split.calibration + before.brier_split.refinement, before.brier)
    assert before.overconfidence > 0.1 > before.underconfidence
    assert before.parameters == 0
    assert result["BetaCalibration"].parameters == 3


def test_the_recommendation_is_the_smallest_of_those_tied() -> None:
    preds = binary(1500)
    result = evaluate([BetaCalibration(), BiggerBeta(), HistogramBinning(bins=2)], preds)
    assert set(result.tied) >= {"BetaCalibration", "BiggerBeta"}
    assert result.recommended == "BetaCalibration"
    assert "3 parameters, the fewest of those tied" in result.reason
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 800)
    fine = evaluate([HistogramBinning(bins=20)], Predictions.from_probs(p, rng.random(800) < p))
    assert fine.recommended == "uncalibrated"
    assert "no map lowers the log loss significantly" in fine.reason


class BiggerBeta(BetaCalibration):
    """The same curve at a higher price."""

    @property
    def parameter_count(self) -> int:
        return 100
