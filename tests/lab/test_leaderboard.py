"""The leaderboard: complete, ranked and written."""

import csv

import numpy as np
import pytest

from tests.study.own_metrics import mean_gap
from truecal.errors import InputError
from truecal.lab import Leaderboard, Power, Uniform, World, leaderboard, ranking
from truecal.lab.trials import all_estimators
from truecal.table import Frame


def test_ranking_is_written_as_table_and_figure(tmp_path, monkeypatch):
    few = {name: {"world": World(Uniform(), Power(d))} for name, d in (("calibrated", 1), ("miscalibrated", 2))}
    monkeypatch.setattr(ranking, "world_groups", lambda: few)
    leaderboard(m=2).write(tmp_path)
    assert (tmp_path / "leaderboard.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "leaderboard.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2 * len(all_estimators())


def test_estimators_are_in_the_order_of_their_mean_absolute_bias():
    table = leaderboard(n=(200,), m=4).table
    overall = {
        name: np.mean([r["mean_abs_bias"] for r in table if r["estimator"] == name]) for name in all_estimators()
    }
    for group in set(table["worlds"]):
        assert [r["estimator"] for r in table if r["worlds"] == group] == sorted(overall, key=overall.get)
    intervals = {r["estimator"] for r in table if r["coverage_90"] == r["coverage_90"]}
    assert "RankSeries" in intervals


def test_an_unknown_table_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="csv or parquet"):
        Leaderboard("", Frame({"worlds": []})).write(tmp_path, table_format="xlsx")


def test_no_estimator_is_missing_from_the_leaderboard():
    import truecal as tc
    from truecal.estimators import Estimator

    public = [getattr(tc.estimators, name) for name in tc.estimators.__all__]
    known_names = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Estimator)} - {Estimator}
    # Worlds have one probability a row, and what literature.py measures is not the error whose truth they know.
    cited = {kind for kind in known_names if kind.__module__ == "truecal.estimators.literature"}
    others = {tc.GeneralizedECE, *cited}
    assert {type(e) for e in all_estimators().values()} == known_names - others


def test_a_function_is_ranked_beside_the_estimators(monkeypatch):
    monkeypatch.setattr(ranking, "world_groups", lambda: {"calibrated": {"world": World(Uniform())}})
    table = leaderboard(n=(200,), m=4, estimators={"mean gap": mean_gap}).table
    assert set(table["estimator"]) == {*all_estimators(), "mean gap"}
    assert np.isnan(
        next(row["coverage_90"] for row in table if row["estimator"] == "mean gap")
    )  # no interval by formula
