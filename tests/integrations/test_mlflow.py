"""Calibration in a local store of MLflow: metrics, figure and page."""

import numpy as np
import pytest

import truecal as tc


def test_a_run_gets_metrics_a_figure_and_a_page(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    from truecal.integrations.mlflow import log

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    rng = np.random.default_rng(0)
    p = rng.random(400)
    preds = tc.Predictions.from_probs(p, rng.random(400) < p**1.5)
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
