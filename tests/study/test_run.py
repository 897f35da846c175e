"""Running a study: the numbers are those of direct calls, done work is skipped, and one bad file does not stop the others."""

import json
import os

import numpy as np
import polars as pl
import pytest

import truecal as tc
from tests.study.studies import STUDY, write_files, write_study
from truecal.special import root
from truecal.study.metrics import parse_metric
from truecal.study.rows import held_out

METRICS = (
    "metrics: [ece-width-15-l1, ece-mass-10-max, debiased-15-l2, sweep-mass-l1, rank-series-l2, nll, brier, error]\n"
)
SMALL = "metrics: [ece-width-15-l1, error]\n"


def run(folder, more=SMALL, text=STUDY, **options):
    return tc.study.Study.read(write_study(folder, more, text)).run(folder / "store", **{"workers": 1, **options})


def value_of(frame, **where):
    for column, value in where.items():
        frame = frame.filter(pl.col(column) == value)
    assert len(frame) == 1
    return frame.row(0, named=True)


def direct_value(preds, lens, metric):
    scores = {
        "nll": tc.scores.log_loss,
        "brier": tc.scores.brier,
        "error": lambda p: 1 - tc.scores.accuracy(p),
        "confidence": tc.scores.mean_confidence,
    }
    if metric in scores:
        return scores[metric](preds)
    estimator = parse_metric(metric).estimator()
    if isinstance(lens, tc.ClassWise):
        powers = estimator(lens(preds)).power
        return root(np.array([powers.max() if estimator.norm == np.inf else powers.mean()]), estimator.norm)[0]
    return estimator(lens(preds)).value


def test_numbers_equal_direct_calls(tmp_path):
    """Two severities, a recalibrator learnt on the clean rows, four lenses: every number again by hand."""
    write_files(tmp_path, severities=(0, 2), rows=200)
    more = METRICS + (
        "lenses: [top-label, all-label, class-wise, 'class:1']\n"
        "recalibrators: [temperature]\nsplit: {fraction: 0.25, seed: 3}\n"
    )
    frame = run(tmp_path, more).frame()
    assert len(frame) == 4 * 2 * (3 + 4 * 5)
    lenses = {
        "": None,
        "top-label": tc.TopLabel(),
        "all-label": tc.AllLabels(),
        "class-wise": tc.ClassWise(),
        "class:1": tc.OneClass(1),
    }
    checked = 0
    for model in ("mlp", "tree"):
        arrays = {}
        for severity in (0, 2):
            with np.load(tmp_path / f"runs/digits/{model}-{severity}-0.npz") as held:
                arrays[severity] = held["logits"], held["labels"]
        labels = arrays[0][1]
        learnt = held_out(labels, 0.25, 3)
        scaling = tc.recalibration.TemperatureScaling(input="logits").fit(arrays[0][0][learnt], labels[learnt])
        for severity in (0, 2):
            logits = arrays[severity][0][~learnt]
            variants = {
                "none": tc.Predictions.from_logits(logits, labels[~learnt]),
                "temperature": tc.Predictions.from_probs(scaling.predict_proba(logits), labels[~learnt]),
            }
            for recalibrator, preds in variants.items():
                where = (pl.col("model") == model) & (pl.col("severity") == severity)
                where &= (pl.col("recalibrator") == recalibrator) & (pl.col("selection") == "all")
                for row in frame.filter(where).iter_rows(named=True):
                    expected = direct_value(preds, lenses[row["lens"]], row["metric"])
                    assert row["value"] == pytest.approx(expected, abs=1e-12)
                    pooled = 3 if row["lens"] == "all-label" else 1
                    assert row["n"] == len(preds) * pooled
                    checked += 1
    assert checked == len(frame)


def test_recalibrators_learnt_on_another_dataset(tmp_path):
    write_files(tmp_path, models=("mlp",), datasets=("digits", "faces"), severities=(0, 1))
    more = "metrics: [nll]\nrecalibrators: [temperature]\ndatasets: {faces: {by: digits}}\n"
    frame = run(tmp_path, more).frame()
    arrays = {}
    for dataset in ("digits", "faces"):
        with np.load(tmp_path / f"runs/{dataset}/mlp-0-0.npz") as held:
            arrays[dataset] = held["logits"], held["labels"]
    logits, labels = arrays["digits"]
    learnt = held_out(labels, 0.2, 0)
    scaling = tc.recalibration.TemperatureScaling(input="logits").fit(logits[learnt], labels[learnt])
    preds = tc.Predictions.from_probs(scaling.predict_proba(arrays["faces"][0]), arrays["faces"][1])
    row = value_of(frame, dataset="faces", severity=0.0, recalibrator="temperature")
    assert (row["value"], row["n"]) == (pytest.approx(tc.scores.log_loss(preds), abs=1e-12), 120)
    assert value_of(frame, dataset="digits", severity=1.0, recalibrator="none")["n"] == 96
    (tmp_path / "runs/digits/mlp-0-0.npz").unlink()
    with pytest.raises(tc.InputError, match="'mlp' has no file of dataset 'digits', severity 0, seed 0 to fit on"):
        run(
            tmp_path,
            "metrics: [nll]\nrecalibrators: [temperature]\ndatasets: {faces: {by: digits}}\n",
        )


def test_a_shifted_file_without_a_clean_one_is_refused(tmp_path):
    write_files(tmp_path, models=("mlp",), severities=(2,))
    more = "metrics: [nll]\nrecalibrators: [temperature]\n"
    with pytest.raises(tc.InputError, match="'mlp' has no file of dataset 'digits', severity 0, seed 0 to fit on"):
        run(tmp_path, more)


def test_without_recalibrators_all_rows_are_judged(tmp_path):
    write_files(tmp_path)
    frame = run(tmp_path).frame()
    assert frame["n"].unique().to_list() == [120]
    assert frame["recalibrator"].unique().to_list() == ["none"]


def test_tables_with_named_classes(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 80)
    names = np.array(["cat", "dog", "fox"])
    labels = names[[rng.choice(3, p=p) for p in probs]]
    columns = {f"p_{name}": probs[:, k] for k, name in enumerate(names)}
    pl.DataFrame({"y": labels, **columns}).write_csv(tmp_path / "m.csv")
    text = (
        "name: t\npredictions:\n  - {file: m.csv, model: m, dataset: d}\ncolumns: {label: y, probs: 'p_*'}\n"
        "lenses: ['class:dog']\nrecalibrators: [temperature, histogram]\n"
    )
    frame = run(tmp_path, "metrics: [ece-mass-5-l1]\n", text).frame()
    preds = tc.read(tmp_path / "m.csv", label="y", probs="p_*")
    judged = preds.take(~held_out(preds.labels, 0.2, 0))
    row = value_of(frame, recalibrator="none")
    expected = tc.BinnedECE(bins=5, scheme="mass")(tc.OneClass("dog")(judged))
    assert row["value"] == pytest.approx(expected.value, abs=1e-12)
    assert set(frame["recalibrator"]) == {"none", "temperature", "histogram"}


def test_positions_as_labels_of_named_classes_and_binary_scores(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    np.savez(tmp_path / "m.npz", p=p, y=(rng.random(60) < p).astype(int))
    text = (
        "name: t\npredictions:\n  - {file: m.npz, model: m, dataset: d}\n"
        "columns: {label: y, score: p, classes: ['no', 'yes']}\nlenses: ['class:yes']\n"
    )
    frame = run(tmp_path, "metrics: [ece-width-5-l1]\n", text).frame()
    with np.load(tmp_path / "m.npz") as arrays:
        expected = tc.calibration_error(arrays["y"], arrays["p"], estimator=tc.BinnedECE(5)).value
    assert frame["value"].to_list() == pytest.approx([expected], abs=1e-12)


def test_done_work_is_skipped_and_changed_work_is_not(tmp_path):
    write_files(tmp_path, models=("a", "b", "c"))
    store = run(tmp_path)
    times = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "store/results").iterdir()}
    assert len(times) == 3
    steps = []
    run(tmp_path, progress=lambda step: steps.append((step.done, step.total)))
    assert steps == [(3, 3)]
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "store/results").iterdir()} == times
    before = store.frame()
    path = tmp_path / "runs/digits/b-0-0.npz"
    with np.load(path) as arrays:
        np.savez(path, logits=2 * arrays["logits"], labels=arrays["labels"])
    os.utime(path, ns=(1, 1))
    steps.clear()
    after = run(tmp_path, progress=lambda step: steps.append((step.done, step.total))).frame()
    assert steps == [(2, 3), (3, 3)]
    assert len(after) == len(before)  # the stale part of b is not read
    changed = before["value"] != after["value"]
    assert set(after.filter(changed)["model"]) == {"b"}
    assert len(list((tmp_path / "store/results").iterdir())) == 4


def test_another_model_costs_only_itself_and_another_metric_all_models(tmp_path):
    write_files(tmp_path, models=("a", "b"))
    run(tmp_path)
    steps = []
    write_files(tmp_path, models=("z",))
    before = run(tmp_path, progress=lambda step: steps.append((step.done, step.total))).frame()
    assert steps == [(2, 3), (3, 3)]
    frame = run(tmp_path, "metrics: [ece-width-15-l1, error, nll]\n").frame()
    again = frame.filter(pl.col("metric").is_in(["ece-width-15-l1", "error"])).sort("model", "metric")
    assert again["value"].to_list() == before.sort("model", "metric")["value"].to_list()
    steps.clear()
    fewer = run(tmp_path, progress=lambda step: steps.append((step.done, step.total))).frame()
    assert steps == [(3, 3)]  # what an earlier run computed is still there
    assert fewer.equals(before)


def test_parts_of_changed_files_are_ignored(tmp_path):
    write_files(tmp_path, models=("a", "b"))
    store = run(tmp_path)
    before = store.frame()
    path = tmp_path / "runs/digits/b-0-0.npz"
    with np.load(path) as arrays:
        np.savez(path, logits=2 * arrays["logits"], labels=arrays["labels"])
    os.utime(path, ns=(1, 1))
    store = run(tmp_path)
    (store.folder / "results" / ".x.parquet.y.part").write_bytes(b"half")
    frame = store.frame()
    assert not frame.equals(before)
    assert frame.filter(model="a").equals(before.filter(model="a"))
    assert len(list((store.folder / "results").glob("*.parquet"))) == 3


def test_a_file_that_changes_while_it_is_judged_is_refused(tmp_path, monkeypatch):
    from truecal.study import rows
    from truecal.study import run as run_module

    write_files(tmp_path, models=("a",))
    load = rows.load_rows

    def slow(path, columns):
        rows = load(path, columns)
        os.utime(path, ns=(5, 5))
        return rows

    monkeypatch.setattr(run_module, "load_rows", slow)
    with pytest.raises(tc.InputError, match="it was changed while the study was running"):
        run(tmp_path)


def test_a_file_with_other_labels_is_named_beside_the_first(tmp_path):
    write_files(tmp_path, models=("a", "b", "c"))
    with np.load(tmp_path / "runs/digits/b-0-0.npz") as arrays:
        np.savez(tmp_path / "runs/digits/b-0-0.npz", logits=arrays["logits"], labels=(arrays["labels"] + 1) % 3)
    with pytest.raises(
        tc.InputError, match=r"has 1 problem\n.*b-0-0.npz and .*a-0-0.npz have different labels in 120 of 120 rows"
    ):
        run(tmp_path)


def test_weights_and_clusters(tmp_path):
    write_files(tmp_path, models=("a", "b"), severities=(0,))
    rng = np.random.default_rng(0)
    weights, clusters = rng.uniform(0.5, 2, 120), np.repeat(np.arange(30), 4)
    for model in "ab":
        path = tmp_path / f"runs/digits/{model}-0-0.npz"
        with np.load(path) as arrays:
            np.savez(path, **arrays, w=weights, c=clusters)
    text = STUDY.replace("logits: logits}", "logits: logits, weight: w, cluster: c}")
    frame = run(tmp_path, METRICS + "recalibrators: [temperature]\n", text).frame()
    with np.load(tmp_path / "runs/digits/a-0-0.npz") as arrays:
        logits, labels = arrays["logits"], arrays["labels"]
    learnt = held_out(labels, 0.2, 0)
    scaling = tc.recalibration.TemperatureScaling().fit(logits[learnt], labels[learnt], weights[learnt])
    preds = tc.Predictions.from_probs(
        scaling.predict_proba(logits[~learnt]), labels[~learnt], weights=weights[~learnt], clusters=clusters[~learnt]
    )
    of_a = frame.filter((pl.col("model") == "a") & (pl.col("recalibrator") == "temperature"))
    direct = tc.measure(preds)
    row = value_of(of_a, metric="rank-series-l2")
    assert row["value"] == pytest.approx(direct.value, abs=1e-12)
    assert (row["low"], row["high"]) == pytest.approx((direct.interval.low, direct.interval.high), abs=1e-12)
    assert value_of(of_a, metric="nll")["value"] == pytest.approx(tc.scores.log_loss(preds), abs=1e-12)
    assert value_of(of_a, metric="error")["value"] == pytest.approx(1 - tc.scores.accuracy(preds), abs=1e-12)
    with pytest.raises(tc.InputError, match="there is no array 'weight'"):
        run(tmp_path, SMALL, STUDY.replace("logits: logits}", "logits: logits, weight: weight}"))


def test_a_bad_file_does_not_stop_the_others(tmp_path):
    write_files(tmp_path, models=("a", "b", "c"))
    path = tmp_path / "runs/digits/b-0-0.npz"
    with np.load(path) as arrays:
        logits, labels = arrays["logits"], arrays["labels"]
    logits[17, 1] = np.nan
    np.savez(path, logits=logits, labels=labels)
    with pytest.raises(
        tc.InputError, match=r"1 of 3 prediction files .*\n.*b-0-0.npz: logits: row 17, column 1 is nan"
    ):
        run(tmp_path)
    assert set(tc.study.Store(tmp_path / "store").frame()["model"]) == {"a", "c"}


def test_a_recalibrator_that_cannot_be_fitted_is_nan_with_the_reason(tmp_path):
    (tmp_path / "runs/d").mkdir(parents=True)
    np.savez(
        tmp_path / "runs/d/m-0-0.npz", logits=np.random.default_rng(0).normal(size=(30, 3)), labels=np.zeros(30, int)
    )
    frame = run(tmp_path, SMALL + "recalibrators: [temperature]\n").frame()
    assert np.isfinite(value_of(frame, recalibrator="none", metric="error")["value"])
    row = value_of(frame, recalibrator="temperature", metric="error")
    assert np.isnan(row["value"])
    assert "temperature could not be fitted" in row["warnings"]


def test_several_processes_give_the_same_store(tmp_path):
    write_files(tmp_path, models=("a", "b", "c"), severities=(0, 1))
    path = write_study(tmp_path, SMALL)
    one = tc.study.Study.read(path).run(tmp_path / "one", workers=1)
    two = tc.study.Study.read(path).run(tmp_path / "two", workers=2)
    assert one.frame().equals(two.frame())
    assert one.diagrams().equals(two.diagrams())
    meta = json.loads((tmp_path / "two/study.json").read_text())
    assert meta["name"] == "a small study"
    assert meta["study"]["metrics"] == ["ece-width-15-l1", "error"]


def test_values_json_does_not_know_are_kept_as_text(tmp_path):
    write_files(tmp_path, models=("mlp",))
    days = "[2024-01-01, 2024-01-02, 2024-01-03]"
    text = STUDY.replace("logits: logits}", f"logits: logits, classes: {days}}}")
    store = run(tmp_path, SMALL, text)
    assert store.meta()["study"]["columns"]["classes"][0] == "2024-01-01"
