"""Calibration in trackers of experiments: metrics, figure and page, in local stores of the real packages."""

import numpy as np
import pytest

import truecal as tc


@pytest.fixture
def preds():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    return tc.Predictions.from_probs(p, rng.random(400) < p**1.5)


def test_a_run_of_mlflow_gets_metrics_a_figure_and_a_page(preds, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    from truecal.integrations.mlflow import log

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    with mlflow.start_run() as run:
        estimate = log(preds, step=3)
        log(preds, name="again", page=False)
    client = mlflow.MlflowClient()
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics["calibration_error"] == float(estimate) == float(tc.measure(preds))
    assert metrics["calibration_low"] < metrics["calibration_error"] < metrics["calibration_high"]
    assert client.get_metric_history(run.info.run_id, "calibration_error")[0].step == 3
    files = {file.path: file.file_size for file in client.list_artifacts(run.info.run_id, "calibration")}
    assert set(files) == {"calibration/reliability.png", "calibration/report.html"}
    assert files["calibration/report.html"] > 100_000
    assert [f.path for f in client.list_artifacts(run.info.run_id, "again")] == ["again/reliability.png"]


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_a_run_of_wandb_gets_numbers_a_figure_and_a_page(preds, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    from truecal.integrations.wandb import log

    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(project="test", mode="offline", dir=str(tmp_path)) as run:
        estimate = log(run, preds)
        summary = {key: run.summary[key] for key in ("calibration/error", "calibration/low", "calibration/high")}
    assert summary["calibration/error"] == float(estimate) == float(tc.measure(preds))
    assert summary["calibration/low"] < summary["calibration/error"] < summary["calibration/high"]
    files = [path.name for path in tmp_path.rglob("*") if path.suffix in (".png", ".html")]
    assert len(files) == 2


@pytest.mark.filterwarnings("ignore")  # skore's own
def test_a_report_of_skore_takes_the_scorer():
    skore = pytest.importorskip("skore")
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB

    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X[:300], y[:300])
    report = skore.EstimatorReport(model, X_test=X[300:], y_test=y[300:])
    report.metrics.add(tc.scorer(), name="calibration_error")
    table = report.metrics.summarize(metric="calibration_error").frame()
    assert tc.scorer()(model, X[300:], y[300:]) in table.to_numpy().ravel().tolist()
