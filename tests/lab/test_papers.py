"""Every experiment runs, writes its table and figure, and Kumar's numbers come out."""

import csv

import numpy as np
import pytest

from truecal.errors import InputError
from truecal.lab import PAPER_WORLDS
from truecal.lab.papers import leaderboard
from truecal.lab.papers.experiment import Setting
from truecal.lab.papers.kumar import synthetic as kumar
from truecal.lab.papers.kumar.synthetic import SquaredError, ratios
from truecal.lab.papers.papers import PAPERS, paper
from truecal.lab.papers.peng import benchmark as peng
from truecal.lab.papers.roelofs import bias as roelofs
from truecal.lab.papers.roelofs import fits as roelofs_fits
from truecal.lab.papers.roelofs import power as roelofs_power
from truecal.lab.table import Table
from truecal.lab.trials.estimators import all_estimators
from truecal.predictions import Predictions
from truecal.profile import Profile

SMALL = {
    "roelofs-fig1": lambda: roelofs.figure_1(Setting(50)),
    "roelofs-fig8": lambda: roelofs_power.figure_8(Setting(4), n=(300,), errors=(0.02, 0.1)),
    "leaderboard": lambda: leaderboard.leaderboard(Setting(2), n=(60,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_experiment_writes_a_table_and_a_figure(name, tmp_path, monkeypatch):
    for module, name_there in ((peng, "SIZES"), (roelofs, "LONG_SIZES")):
        monkeypatch.setattr(module, name_there, (100, 200))
    monkeypatch.setattr(roelofs_fits, "evaluation_size", lambda world_name: 1000)
    make = SMALL.get(name) or (lambda: PAPERS[name].make(Setting(2)))
    found = make()
    assert found.name == name
    table, figure = found.write(tmp_path)
    assert figure.read_bytes().startswith(b"\x89PNG")
    with table.open() as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == found.table.columns
    assert len(rows) == len(found.table.rows) + 1
    assert any("se" in column.split("_") or "share" in column for column in found.table.columns)


def test_names_are_checked_before_work():
    with pytest.raises(InputError, match="unknown experiment 'roelofs-fig99': use one of roelofs-fig1"):
        paper("roelofs-fig99")


def test_parquet_holds_the_same_table(tmp_path):
    import polars

    found = roelofs.figure_1(Setting(10))
    path, _ = found.write(tmp_path, table_format="parquet")
    assert polars.read_parquet(path)["share"].to_list() == found.table.column("share")
    with pytest.raises(InputError, match="csv or parquet"):
        found.write(tmp_path, table_format="xlsx")


def test_a_table_refuses_ragged_rows_and_unknown_endings(tmp_path):
    with pytest.raises(InputError, match="a row of 1 fields in a table of 2"):
        Table(("a", "b"), ((1,),))
    with pytest.raises(InputError, match=r"\.csv or \.parquet"):
        Table(("a",), ((1,),)).write(tmp_path / "t.txt")
    assert Table(("a", "b"), ((1, 0.5),)).markdown().splitlines()[1] == "| --- | --- |"


def test_given_data_takes_the_place_of_simulated(monkeypatch):
    monkeypatch.setattr(roelofs_fits, "evaluation_size", lambda world_name: 500)
    scores, outcomes = PAPER_WORLDS["resnet110_c100"].draw(2000, rng=0)
    # Two classes, of which the one at `scores` is the top: scores below 0.5 would not be.
    top = np.maximum(scores[0], 0.5)
    given = {"resnet110_c100": Predictions.from_probs(np.stack([1 - top, top], axis=1), outcomes[0].astype(int))}
    rows = {r["world"]: r for r in roelofs_fits.table_1(Setting(1, data=given)).table.records()}
    assert rows["resnet110_c100"]["data"] == "given data"
    assert rows["resnet110_c10"]["data"] == "simulated"


@pytest.mark.slow
def test_roelofs_table_3_simulated_column():
    # With the printed, rounded parameters the simulated ECEs come within 2.2 points of those printed.
    table = roelofs_fits.table_3(Setting(20)).table
    ours, printed = (np.array(table.column(name), dtype=float) for name in ("simulated_percent", "paper_simulated"))
    assert np.abs(ours - printed).max() < 2.2
    assert np.corrcoef(ours, printed)[0, 1] > 0.98


def test_the_true_error_of_a_recalibrator_against_brute_force():
    # Outputs of histogram binning on a large fresh sample: the squared gap to the mean outcome of each output.
    world = kumar.World(kumar.Uniform(), kumar.TRUTH)
    scores, outcomes = world.draw(500, 1, rng=0)
    measure = SquaredError("histogram binning", 5)
    exact = measure(Profile.from_arrays(scores, outcomes), np.random.SeedSequence(0))[0, 0]
    fitted = measure.recalibrator().fit(scores[0], outcomes[0].astype(int))
    fresh, happened = world.draw(400_000, 1, rng=1)
    output = fitted.predict_proba(fresh[0])[:, 1]
    values, group = np.unique(output, return_inverse=True)
    gap = np.bincount(group, weights=happened[0] - output) / np.bincount(group)
    brute = np.sum(np.bincount(group) / fresh.size * gap**2) - values.size / fresh.size * 0.2
    assert exact == pytest.approx(brute, abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "change", "low", "high"),
    [
        ("histogram binning", ((1000, 10), (2000, 10)), 1.8, 2.2),  # the paper: 2.00 +- 0.06
        ("scaling-binning", ((1000, 10), (2000, 10)), 1.8, 2.2),  # 1.98 +- 0.09
        ("histogram binning", ((2000, 20), (2000, 5)), 3.3, 4.1),  # 3.71 +- 0.15
        ("scaling-binning", ((2000, 20), (2000, 5)), 0.9, 1.1),  # 0.98 +- 0.07
    ],
)
def test_kumar_appendix_e_a(kind, change, low, high):
    # By what factor the squared error changes; the bounds are widened by three standard errors of 200 repeats.
    world = kumar.World(kumar.Uniform(), kumar.TRUTH)
    cells = [kumar.Cell("a", world, n, 200, (SquaredError(kind, bins),)) for n, bins in change]
    errors = [answer[0][0] for answer in Setting(200).answers(cells)]
    ratio = errors[0].mean() / errors[1].mean()
    slack = 3 * ratio * np.sqrt(sum(e.var() / e.size / e.mean() ** 2 for e in errors))
    assert low - slack < ratio < high + slack
    assert slack < 1.0


def test_ratios_read_the_table_of_appendix_e():
    rows = (("histogram binning", 1000, 10, 4.0), ("histogram binning", 2000, 10, 2.0))
    rows += (("histogram binning", 2000, 5, 1.0), ("histogram binning", 2000, 20, 3.5))
    rows += tuple(("scaling-binning", *row[1:]) for row in rows)
    found = ratios(Table(("calibrator", "n", "bins", "squared_error"), rows))
    assert found["histogram binning", "n 1000 to 2000"] == 2.0
    assert found["scaling-binning", "bins 5 to 20"] == 3.5


@pytest.mark.slow
def test_kumar_figure_2_more_bins_show_more_error():
    records = kumar.figure_2(Setting(20)).table.records()
    part = [r for r in records if (r["world"], r["estimator"]) == ("resnet_wide32_c100", "debiased")]
    means = [r["mean_percent"] for r in part if r["bins"] <= 32]
    assert means == sorted(means)
    assert means[0] < 0.7 * part[0]["truth_percent"]


def test_no_estimator_is_missing_from_the_leaderboard():
    from truecal import estimate

    known = {
        kind
        for kind in vars(estimate).values()
        if isinstance(kind, type) and issubclass(kind, estimate.Estimator) and kind is not estimate.Estimator
    }
    judges_several = {kind for kind in known if kind().several}  # worlds have one probability a row
    assert {type(e) for e in all_estimators().values()} == known - judges_several
