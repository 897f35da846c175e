"""Audits of many rows join rows of the same levels and neighbouring scores: the same findings in less time and memory."""

import numpy as np
import pytest

import truecal as tc
from truecal.groups import segments


def predictions(n, rng):
    columns = {"country": rng.choice(["BR", "DE", "US"], n), "device": rng.choice(["mobile", "desktop"], n)}
    p = np.where(rng.random(n) < 0.01, np.round(rng.random(n)), rng.beta(2, 2, n))
    bad = (columns["country"] == "BR") & (columns["device"] == "mobile")
    y = rng.random(n) < np.clip(p - 0.05 * bad * (p > 0.1) * (p < 1), 0, 1)
    return tc.Predictions.from_probs(p, y, columns=columns)


def test_joined_rows_give_the_findings_of_all_rows(monkeypatch):
    preds = predictions(60_000, np.random.default_rng(1))
    rows = tc.audit(preds)
    monkeypatch.setattr(segments, "_MIN_JOINED", 1000)
    joined = tc.audit(preds)
    assert [s.levels for s in joined.segments] == [s.levels for s in rows.segments]
    assert [s.region for s in joined.segments] == [s.region for s in rows.segments]
    for a, b in zip(joined.segments, rows.segments, strict=True):
        assert (a.rows, a.share) == (b.rows, pytest.approx(b.share, rel=1e-12))
        assert a.difference == pytest.approx(b.difference, abs=1e-12)
        assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=2e-3)
        assert a.mean_score == pytest.approx(b.mean_score, abs=1e-12)
    assert joined.notes == rows.notes
    assert (joined.n, joined.searched, joined.tests) == (rows.n, rows.searched, rows.tests)


def test_weights_and_clusters_are_not_joined(monkeypatch):
    monkeypatch.setattr(segments, "_MIN_JOINED", 10)
    preds = predictions(2000, np.random.default_rng(2))
    for further in ({"weights": np.linspace(0.3, 0.7, 2000)}, {"clusters": np.arange(2000) // 4}):
        again = tc.Predictions.from_probs(preds.probs, preds.labels, columns=dict(preds.columns), **further)
        records = segments.records_of(again, tc.OneClass(1))
        columns = [segments.read_column(name, values, records.count, 1) for name, values in records.columns.items()]
        assert segments.join_records(records, columns)[0] is records
