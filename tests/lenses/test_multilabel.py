"""Several yes-or-no labels per row: class-wise, one label, pooled; rows as units; refusals with their remedy."""

import numpy as np
import pytest

import truecal as tc


def draw(rows, columns, seed=0, power=1.5):
    """Labels of one row are correlated: all of them share half of their chance."""
    rng = np.random.default_rng(seed)
    from scipy.special import ndtri

    p = rng.random((rows, columns))
    latent = np.sqrt(0.6) * rng.normal(size=(rows, 1)) + np.sqrt(0.4) * rng.normal(size=(rows, columns))
    return p, (latent < ndtri(p**power)).astype(int)


def naive_ece(p, y, bins):
    total = 0.0
    for b in range(bins):
        rows = [i for i in range(len(p)) if b / bins <= p[i] < (b + 1) / bins or (b == bins - 1 and p[i] == 1)]
        if rows:
            total += abs(sum(p[i] - y[i] for i in rows)) / len(p)
    return total


def test_class_wise_one_label_and_pooled_match_naive_loops():
    p, y = draw(200, 4)
    preds = tc.Predictions.from_multilabel(p, y, classes=list("abcd"))
    estimator = tc.BinnedECE(bins=7, scheme="width", norm=1)
    each = [naive_ece(p[:, k], y[:, k], 7) for k in range(4)]
    estimate = tc.measure(preds, estimator=estimator)
    assert estimate.value == pytest.approx(np.mean(each), abs=1e-12)
    np.testing.assert_allclose(estimate.parts, each, atol=1e-12)
    assert estimate.lens == "4 classes"
    assert float(tc.measure(preds, estimator=estimator, lens=tc.OneClass("c"))) == pytest.approx(each[2], abs=1e-12)
    pooled = tc.measure(preds, estimator=estimator, lens=tc.AllLabels())
    assert float(pooled) == pytest.approx(naive_ece(p.ravel(), y.ravel(), 7), abs=1e-12)


def test_one_label_equals_its_column_alone():
    p, y = draw(500, 3)
    preds = tc.Predictions.from_multilabel(p, y)
    alone = tc.calibration_error(y[:, 1], p[:, 1])
    assert float(tc.measure(preds, lens=tc.OneClass(1))) == float(alone)
    assert float(tc.measure(preds.one_label(1))) == float(alone)


def test_rows_are_the_units_of_pooled_intervals():
    p, y = draw(300, 1)
    p, y = np.repeat(p, 10, axis=1), np.repeat(y, 10, axis=1)  # ten copies of one label add nothing
    many = tc.measure(tc.Predictions.from_multilabel(p, y), lens=tc.AllLabels())
    alone = tc.calibration_error(y[:, 0], p[:, 0])
    width, single = (e.interval.high - e.interval.low for e in (many, alone))
    assert 0.7 < width / single < 1.5


def test_groups_selections_and_comparisons_take_several_labels():
    p, y = draw(400, 3)
    site = np.repeat(["x", "y"], 200)
    preds = tc.Predictions.from_multilabel(p, y, columns={"site": site})
    assert len(tc.subgroups(preds, "site").frame()) >= 2
    assert tc.measure(preds, select=tc.by_column("site", "x")).n == 200
    better = tc.Predictions.from_multilabel(p**1.5, y)
    assert tc.compare(preds, better).interval.low > 0


def test_models_with_labels_in_another_order_are_compared_by_name():
    p, y = draw(300, 3)
    sharp, names = p**1.5, ["a", "b", "c"]
    first = tc.Predictions.from_multilabel(p, y, names)
    same, turned = (
        tc.compare(first, tc.Predictions.from_multilabel(sharp[:, order], y[:, order], [names[k] for k in order]))
        for order in ([0, 1, 2], [2, 0, 1])
    )
    assert turned.value_b == pytest.approx(same.value_b, abs=1e-12)
    assert turned.interval.low == pytest.approx(same.interval.low, abs=1e-9)


def test_per_label_recalibration_mends_each_column():
    p, y = draw(6000, 3)
    after = tc.recalibration.PerLabel().fit(p[:3000], y[:3000]).predict_proba(p[3000:])
    before = float(tc.measure(tc.Predictions.from_multilabel(p[3000:], y[3000:])))
    assert float(tc.measure(tc.Predictions.from_multilabel(after, y[3000:]))) < before / 2


def test_per_label_maps_are_chosen_by_name_and_survive_json():
    p, y = draw(600, 3)
    names, beta = ["a", "b", "c"], tc.recalibration.BetaCalibration()
    maps = {"a": None, "b": beta, "c": tc.recalibration.IsotonicCalibration(input="probs")}
    fitted = tc.recalibration.PerLabel(maps, names).fit(p, y)
    after = fitted.predict_proba(p)
    np.testing.assert_array_equal(after[:, 0], p[:, 0])
    np.testing.assert_array_equal(after[:, 1], beta.fit(p[:, 1], y[:, 1]).predict_proba(p[:, 1])[:, 1])
    np.testing.assert_array_equal(fitted.predict_named(p[:, ::-1], names[::-1]), after[:, ::-1])
    text = fitted.to_json()
    np.testing.assert_array_equal(tc.recalibration.PerLabel.from_json(text).predict_proba(p), after)
    for before, then, reason in (('"b"', '"a"', "different names"), ('"columns": 1', '"columns": 0', "whole number")):
        with pytest.raises(tc.errors.FileError, match=reason):
            tc.recalibration.PerLabel.from_json(text.replace(before, then))
    with pytest.raises(tc.errors.FileError, match='"maps" is missing'):
        tc.recalibration.PerLabel.from_json(beta.to_json())
    with pytest.raises(tc.InputError, match="no recalibrator of the label 'c'"):
        tc.recalibration.PerLabel({"a": None, "b": beta}, names).fit(p, y)


def test_refusals_name_the_remedy():
    p, y = draw(50, 2)
    with pytest.raises(tc.InputError, match=r"judge one: lens=tc.OneClass\(name\) \(--lens class=NAME\)"):
        tc.decision_loss(tc.Predictions.from_multilabel(p, y))
    p, y = draw(30, 3)
    y[0] = 1
    q = p / p.sum(axis=1, keepdims=True)
    for matrix in (q, p):  # also where rows do not sum to 1
        with pytest.raises(tc.InputError, match="from_multilabel"):
            tc.Predictions.from_probs(matrix, y)
    with pytest.raises(tc.InputError, match="from_multilabel"):
        tc.calibration_error(y, p)
    preds = tc.Predictions.from_multilabel(p, y)
    with pytest.raises(tc.InputError, match="one_label"):
        tc.measure(preds, lens=tc.TopLabel())
    with pytest.raises(tc.InputError, match="class by class"):
        tc.measure(preds, lens=tc.TopK(2))
    with pytest.raises(tc.InputError, match="one_label"):
        tc.measure(preds, select=tc.by_label(1))
    with pytest.raises(tc.InputError, match="one_label"):
        tc.scores.log_loss(preds)
    with pytest.raises(tc.InputError, match="for every probability"):
        tc.Predictions.from_multilabel(p, y[:, 0])
    with pytest.raises(tc.InputError, match="labels must be 0 or 1: row 0, column 0 is 2"):
        tc.Predictions.from_multilabel(p, y * 2)


def simulate_coverage(datasets, rows, columns):
    true = np.sqrt(np.mean([(c**1.5 - c) ** 2 for c in (np.arange(10**5) + 0.5) / 10**5]))
    inside = 0
    for seed in range(datasets):
        p, y = draw(rows, columns, seed)
        interval = tc.measure(tc.Predictions.from_multilabel(p, y), level=0.9).interval
        inside += interval.low <= true <= interval.high
    return inside / datasets


def test_intervals_cover_with_correlated_labels_in_a_few_datasets():
    assert simulate_coverage(20, 300, 5) >= 0.75


@pytest.mark.full
def test_intervals_cover_with_correlated_labels():
    assert 0.86 <= simulate_coverage(200, 500, 5) <= 0.97


def test_torch_metric_takes_pictures_and_ignores():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchmetrics")
    from truecal.engines.torch_metric import CalibrationMetric

    rng = np.random.default_rng(0)
    p, y = rng.random((4, 3, 8, 8)), rng.integers(0, 2, (4, 3, 8, 8))
    y[0, 1, :2] = 255
    metric = CalibrationMetric(multilabel=True, lens=tc.OneClass(1), ignore_index=255)
    metric.update(torch.tensor(p), torch.tensor(y))
    rows = y[:, 1].ravel() != 255
    assert metric.estimate().n == rows.sum()
    assert float(metric.compute()) == pytest.approx(
        float(tc.calibration_error(y[:, 1].ravel()[rows], p[:, 1].ravel()[rows])), abs=5e-3
    )
    classes = rng.integers(0, 3, (4, 8, 8))
    classes[0, 0] = -100
    q = p / p.sum(axis=1, keepdims=True)
    metric = CalibrationMetric(ignore_index=-100)
    metric.update(torch.tensor(q), torch.tensor(classes))
    assert metric.estimate().n == (classes != -100).sum()


@pytest.mark.parametrize("estimator", [tc.RankSeries(), tc.BinnedECE(bins=12)])
def test_very_many_labels_from_one_pass_are_those_of_label_by_label(monkeypatch, estimator):
    preds = tc.Predictions.from_multilabel(*draw(5000, 6))
    one_by_one = tc.measure(preds, estimator=estimator)
    monkeypatch.setattr("truecal.resampling.columns._MIN_PROBABILITIES", 0)
    together = tc.measure(preds, estimator=estimator)
    assert together.value == pytest.approx(one_by_one.value, rel=1e-9)
    assert together.direction == pytest.approx(one_by_one.direction, abs=1e-9)
    widths = [e.interval.high - e.interval.low for e in (together, one_by_one)]
    assert 0.7 < widths[0] / widths[1] < 1.4
