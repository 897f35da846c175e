"""What longer runs of `make hostile` found: damaged files of every kind of damage, and arguments no one expects."""

import io
import json
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import truecal as tc
from truecal.cli.main import main
from truecal.errors import TruecalError

Y, P = np.arange(40) % 2, np.linspace(0.1, 0.9, 40)


TABLE = tc.Predictions.from_probs(
    P,
    Y,
    columns={
        "wide": np.zeros((40, 3)),
        "mixed": np.array([1, "1"] * 20, object),
        "lists": pd.Series([[1], [2, 3]] * 20),
        "truth": np.array([True, 1] * 20, object),
        "gone": pd.Series([pd.NA, pd.NA, "a", "a", "b", "b", "a", "a"] * 5, dtype="string"),
        "zero": np.array([0.0, -0.0] * 20),
        "blank": np.array(["", "b"] * 20),
        "comma": np.array(["x, y", "x, y", "x", "x"] * 10),
        "more": np.array(["z", "z", "y, z", "y, z"] * 10),
        "day": np.array(["2020-01-01", "2020-01-02"] * 20, "M8[ns]"),
    },
)


FEW = tc.Predictions.from_probs(np.repeat([0.2, 0.8], 200), np.arange(400) % 5 < np.repeat([1, 4], 200))
MASKED = np.ma.masked_array(P, np.arange(40) == 0)


class Unreadable:
    """Something that fails when it is asked for its values."""

    def __array__(self, *_: object) -> None:
        raise KeyError


def test_zip_archives_damaged_in_ways_of_their_own_are_refused(tmp_path):
    """Bytes of the packed data, the version needed and the flags of a password: each ends in another error of Python's."""
    good = io.BytesIO()
    np.savez_compressed(good, **{name: np.random.default_rng(0).random(400) for name in ("probs", "labels")})
    raw = good.getvalue()
    directory = raw.index(b"PK\x01\x02")
    changes = {
        60: b"\xff\xff\xff",
        300: b"\x00\x11\x22",
        directory + 6: b"\x99",
        directory + 8: b"\x41",
        directory + 10: b"\x63",
    }
    for place, other in changes.items():
        damaged = bytearray(raw)
        damaged[place : place + len(other)] = other
        path = tmp_path / "p.npz"
        path.write_bytes(damaged)
        for read in (tc.read, tc.Sketch.load, tc.Profile.load):
            with pytest.raises(TruecalError):
                read(path)
    assert zipfile.is_zipfile(io.BytesIO(raw))


@pytest.mark.parametrize("column", [[[0.2, 0.8], 0.5], [{"a": 0.2, "b": 0.8}, 0.5]])
def test_rows_that_are_no_lists_or_mappings_are_named(column):
    with pytest.raises(TruecalError, match=r"row 1 is 0\.5"):
        tc.Predictions.from_frame(pd.DataFrame({"y": [0, 1], "p": column}), label="y", probs="p")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tc.read("a" * 1000), "there is no file"),
        (lambda: tc.scan((), label="y"), "no file is named"),
        (lambda: tc.scan("a" * 1000, label="y"), "there is no file aaa"),
        (lambda: tc.uncertainty.hosmer_lemeshow(tc.Profile.from_arrays(P, Y), bins=10**30), "bins must be at most"),
        (lambda: tc.DirichletCalibration(intercept=None).fit(np.c_[1 - P, P], Y), "intercept must be a number"),
        (lambda: tc.censoring_weights(P, Y, horizon=10**30), "nobody was followed"),
        (lambda: tc.AdaptiveECE(bins=10**30), "bins must be at most"),
        (lambda: tc.net_benefit(tc.Predictions.from_probs(P, Y), np.array(3)), "strictly between 0 and 1"),
        (
            lambda: tc.lab.power(tc.BinnedECE(), tc.lab.World(tc.lab.Uniform(), tc.lab.Power(2)), m=10**30),
            "m must be at most",
        ),
        (lambda: tc.train.Mixup(classes=3, seed=10**30), "seed must be at most"),
        (lambda: tc.by_column("site", np.nan), "selected by a number or text, not nan; for missing values say where="),
        (lambda: tc.by_column("site", [0.2, 0.5]), r"selected by a number or text, not \[0.2, 0.5\]"),
        (lambda: tc.by_column("site", P), r"selected by a number or text, not array"),
        (lambda: tc.GeneralizedECE(rng=np.nan), "rng must be a whole number"),
        (
            lambda: tc.MatrixScaling(off_diagonal=1e308).fit(np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0]),
            "from 0 to 1e[+]100, not 1e[+]308",
        ),
        (lambda: tc.train.CalibrationLog(level=1.5), "level"),
        (lambda: tc.by_column("site", tc), r"selected by a number or text, not <module"),
        (lambda: tc.by_column("site", len), r"selected by a number or text, not <built-in"),
        (lambda: tc.lab.World(tc.lab.Uniform()).draw(5, rng=[1, -2]), "rng must be a whole number of at least 0"),
        (
            lambda: tc.sample_size_by_simulation(P * 1e-200, widths={"oe": 0.2}),
            "fewer than 20 events in 10,000,000 rows",
        ),
        (
            lambda: tc.lab.TopLabelWorld(tc.lab.World(tc.lab.Uniform(0.6, 1.0)), classes=float("nan")),
            "classes must be a whole number of at least 2, not nan",
        ),
        (
            lambda: tc.lab.TopLabelWorld(tc.lab.World(tc.lab.Uniform(0.6, 1.0)), classes=10**30),
            "classes must be at most 1,000,000",
        ),
        (lambda: tc.lab.World(tc.lab.Uniform(), int), "the curve must turn an array of scores"),
        (lambda: tc.study.covariate_trend(P, "size"), "ndarray is not a data frame"),
        (lambda: tc.Accumulator(classes=tc), "classes must be a list"),
        (lambda: tc.Accumulator(classes=["a", len]), "class name 1 is <built-in function len>"),
        (lambda: tc.sample_size(P, thresholds=np.full((2, 2, 2), 3)), "a threshold must lie strictly between 0 and 1"),
        (lambda: tc.sample_size_by_simulation(P, widths={"oe": 1.5}, cohorts=10**30), "cohorts must be at most"),
        (lambda: tc.calibration_error(Y, P.astype("m8[s]")), "probabilities must be numbers: row 0"),
        (lambda: tc.BetaCalibration().fit(P, Y, sample_weight=P.astype("m8[s]")), "must be numbers: row 0"),
        (lambda: tc.calibration_error(Y, Unreadable()), "y_prob do not form an array: KeyError"),
        (lambda: tc.Predictions.from_probs(np.c_[1 - P, P], Y, classes=[1, 1.0]), "class name 1.0 reads like 1"),
        (lambda: tc.Predictions.from_probs(np.c_[1 - P, P], Y, classes=[0, False]), "class name False reads like 0"),
        (lambda: tc.measure(TABLE, select=tc.by_column("wide", 1)), r"shape \(40, 3\); one value per row is needed"),
        (lambda: tc.clinical(TABLE, by="wide"), r"shape \(40, 3\); one value per row is needed"),
        (lambda: tc.Watch(by="wide").update(TABLE, at=1), r"shape \(40, 3\); one value per row is needed"),
        (lambda: tc.Watch(by="mixed").update(TABLE, at=1), "two values of column 'mixed' read '1'"),
        (lambda: tc.Watch(by="a").update({1: tc.Sketch(), "1": tc.Sketch()}, at=1), r"two groups read \('1',\)"),
        (lambda: tc.Watch(by="lists").update(TABLE, at=1), r"column 'lists': row 0 is \[1\]; give numbers or text"),
        (lambda: tc.subgroups(TABLE, by="truth"), "column 'truth' mix True or False with numbers"),
        (
            lambda: tc.plot.BeforeAfterDisplay.from_predictions(Y, {"a": P}, lens=tc.ClassWise()),
            "one curve is drawn per name",
        ),
        (lambda: tc.net_benefit(PREDS, pd.Series([None, 0.5], dtype="Float64")), "thresholds must lie strictly"),
        (lambda: tc.net_benefit(PREDS, ["0.1", "0.2"]), "thresholds must be numbers, not text"),
        (lambda: tc.verify(FEW, outputs=MASKED), "outputs are masked in places"),
        (lambda: tc.censoring_weights(MASKED, Y, 0.5), "time are masked in places"),
        (lambda: tc.censoring_weights(P, Y, 0.5, by=[None, *Y[1:]]), "by: row 0 is None; every row needs a group"),
        (lambda: tc.Lp(2)([["0.5", "0.5"]], [[1, 0]]), "outputs must be numbers, not text"),
        (lambda: tc.selective.risk_coverage(PREDS).at(["0.5"]), "coverage must be numbers, not text"),
        (lambda: tc.compare(TABLE, TABLE, key="gone"), "'gone' of a: row 0 is <NA>; every row needs a key"),
        (lambda: tc.lab.Mixture([tc.lab.Uniform()] * 2, [np.nan, 0.5]), "must be >= 0 and sum to 1"),
        (lambda: tc.BinnedECE().at_level(1.5), "level must lie strictly between 0 and 1, not 1.5"),
        (lambda: tc.choose_bins(PREDS, threshold=-0.5), "threshold must lie strictly between 0 and 1"),
        (lambda: tc.plot.ClassWiseDisplay.from_predictions(Y, P, level=-0.5), "level must lie strictly"),
        (lambda: tc.plot.ClassWiseDisplay.from_predictions(Y, P, most=-1), "most must be a whole number of at least 1"),
        (lambda: tc.study.error_against_calibration(pd.DataFrame(), level=-0.5), "level must lie strictly"),
        (lambda: tc.study.log_fits(pd.DataFrame(), level=2), "level must lie strictly between 0 and 1"),
        (lambda: tc.train.Mixup(classes=1e308), "classes must be a whole number of at least 2"),
        (lambda: tc.ClassWise(weights=MASKED), "class weights are masked in places"),
        (lambda: tc.lab.World(tc.lab.Uniform()).true_error(norm="2"), "norm must be a finite number of at least 1"),
        (lambda: tc.lab.World(tc.lab.Uniform()).draw("x"), "a draw needs n >= 1 rows"),
        (lambda: PREDS.class_probs("no"), "there is no class 'no' among the 2 classes"),
        (lambda: tc.lab.GLM("logit", "logit", 0.1, 1e308), "b1 must be a finite number from -1e[+]100 to 1e[+]100"),
        (lambda: tc.TopK(np.uint64(2**64 - 1)).parts(TABLE), "k is 18446744073709551615, but there are only 2 classes"),
        (lambda: tc.plot.AbstentionDisplay.from_curves({}), "there is nothing to draw"),
        (
            lambda: tc.plot.FlexibleDisplay.from_curves({"a": tc.flexible_curve(PREDS)}, scores=[0.2, 7.0]),
            r"scores must lie in \[0, 1\]: row 1 is 7.0",
        ),
    ],
)
def test_arguments_no_one_expects_are_refused(call, words):
    with pytest.raises(TruecalError, match=words):
        call()


def test_missing_values_of_pandas_are_missing_everywhere():
    assert tc.by_column("gone", "a").mask(TABLE).sum() == 20
    assert "missing" in tc.clinical(TABLE, by="gone").sites.names
    assert "missing" in str(tc.subgroups(TABLE, by="gone"))
    assert [*tc.Watch(by="gone").update(TABLE, at=1).groups] == [("(missing)",), ("a",), ("b",)]
    assert "of 4 segments" in str(tc.audit(TABLE, by=["gone"], min_rows=5))  # all rows, two sites and those without one


def test_groups_are_what_the_values_are():
    """Zero has one group, an empty text a name, times of nanoseconds are no numbers, and a comma joins no two sites."""
    assert [*tc.Watch(by="zero").update(TABLE, at=1).groups] == [("0.0",)]
    assert "all rows" not in str(tc.Watch(by="blank").update(TABLE, at=np.int64(1)))
    assert "2020-01-01T00:00:00" in str(tc.subgroups(TABLE, by="day"))
    assert len(tc.clinical(TABLE, by=["comma", "more"]).sites.names) == 2


@pytest.mark.parametrize("show", [str, repr])
def test_names_from_data_cannot_steer_a_terminal(show):
    red = np.array(["\x1b[31mred", "\u202ereversed"] * 20)
    preds = tc.Predictions.from_probs(
        np.c_[1 - P, P], red, classes=["\x1b[31mred", "\u202ereversed"], columns={"s": red[::-1]}
    )
    results = [
        tc.measure(preds, lens=tc.OneClass("\x1b[31mred"), select=tc.by_column("s", "\x1b[31mred")),
        tc.subgroups(preds, by="s", smallest=5),
        tc.subgroups(preds, by="s", smallest=5).frame(),
        tc.Watch(by="s").update(preds, at=1),
        tc.by_label("\x1b[31mred"),
        tc.by_output("\x1b[31mred", 0.2),
        tc.by_column("\x1b", low=0),
    ]
    for result in results:
        assert show(result).replace("\n", "").isprintable()
    with pytest.raises(TruecalError) as refused:
        tc.measure(preds, select=tc.by_column("x\x1b", 1))
    assert show(refused.value).isprintable()


def test_a_local_regression_reaches_rows_that_are_all_equally_far():
    """Every score 0 or 1: between them the rows within reach lie at its very end, where the kernel vanishes."""
    p = np.repeat([0.0, 1.0], [15, 5])
    y = np.arange(20) % 5 == 0
    curve = tc.flexible_curve(tc.Predictions.from_probs(p, y), kind="loess", at=[0.0, 0.2, 0.5])
    assert curve.outcome[:2].tolist() == pytest.approx([3 / 15, 3 / 15])
    assert np.isfinite(curve.outcome).all()


def test_one_row_has_no_acceleration():
    found = tc.uncertainty.bootstrap(tc.IsotonicError(), tc.Profile.from_arrays([0.3], [1]), method="bca")
    assert found.acceleration == 0
    assert 0 <= found.interval().low <= found.value <= found.interval().high <= 1


def test_a_clinical_curve_without_a_standard_error_says_nothing_about_its_distance():
    """Two rows in the wrong order: truths were tried up to a distance of 1e9."""
    found = tc.clinical(tc.Predictions.from_probs([0.6, 0.7], [1, 0], weights=[2.0, 3.0]))
    assert (found.ici.low, found.ici.high) == (0, 1)
    assert "no standard error" in found.ici.method


@pytest.mark.parametrize("name", [tc, len, int])
def test_programs_name_no_class(name):
    for select in (tc.by_label, tc.by_output):
        with pytest.raises(TruecalError, match="a class is named by a number or text"):
            select(name)


def test_segments_that_are_not_fitted_have_no_parameters():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        _ = tc.SegmentOffsets().parameter_count


@pytest.mark.parametrize("parts", [[1, 2], [tc.lab.Uniform(), "x"], [tc.lab.Uniform, tc.lab.Uniform]])
def test_parts_of_a_mixture_are_distributions(parts):
    with pytest.raises(TruecalError, match="a part of a Mixture must be a distribution"):
        tc.lab.Mixture(parts, (0.5, 0.5))


PREDS = tc.Predictions.from_probs(P, Y, columns={"site": np.array(["a", "b"])[Y]})
WATCH = tc.Watch(tolerance=0.02)
WATCH.update(PREDS, at="2026-01-01")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PREDS.take(P), "rows must be True or False for each of the 40 rows"),
        (lambda: PREDS.take([40]), "rows must be True or False for each of the 40 rows"),
        (lambda: PREDS.take(0), "rows must be True or False for each of the 40 rows"),
        (lambda: PREDS.class_probs(-1), "there is no class -1"),
        (lambda: tc.by_label(1).mask(P), "preds must be Predictions"),
        (lambda: (tc.by_label(1) & tc.by_column("site", "a"))(0), "preds must be Predictions"),
        (lambda: tc.band(tc.Profile.from_arrays(P, Y)).at([np.nan]), "scores must be finite numbers, not nan"),
        (lambda: tc.band(tc.Profile.from_arrays(P, Y)).contains(P, [0.5]), "they must match one by one"),
        (lambda: tc.flexible_curve(PREDS).contains(P, "x"), "rates must be numbers"),
        (lambda: tc.calibration_belt(PREDS).deviations("x"), "level must lie strictly"),
        (lambda: tc.selective.risk_coverage(PREDS).at(np.eye(3)), "one number or a list of them"),
        (lambda: tc.selective.risk_coverage(PREDS).at("aa"), "coverage must be numbers"),
        (lambda: tc.censoring_weights(P, Y, 0.5).predictions(2.5), "there are 1 probabilities but 40 outcomes"),
        (lambda: tc.censoring_weights(P, Y, 0.5).predictions(P, clusters=3), "there are 1 clusters but 40 outcomes"),
        (lambda: tc.Profile.from_arrays(P, Y).take(1), "datasets must be True or False for each of the 1 datasets"),
        (lambda: tc.Profile.from_arrays(P, Y).take([1]), "datasets must be True or False for each of the 1 datasets"),
        (lambda: tc.missing_outcomes(Y, "inverse-probability", covariates=3), "one row per outcome"),
        (
            lambda: tc.calibration_error(Y, P / 3, estimator=tc.AdaptiveECE(threshold=0.5)),
            "nothing is judged; lower its threshold",
        ),
        (lambda: tc.lab.DirichletWorld((1.0, 2.0), 0.5).draw(20, rng=-1), "rng must be a whole number of at least 0"),
        (lambda: tc.lab.World(tc.lab.Uniform()).draw(20, rng=-1), "rng must be a whole number of at least 0"),
        (lambda: tc.PlattScaling().fit_rows(3, P), "preds must be Predictions"),
        (lambda: tc.Lp(1.5).largest(events=0), "events must be a whole number of at least 1"),
        (lambda: tc.Profile.from_arrays(P, Y).coarsen(0), "cells must be a whole number of at least 1"),
        (lambda: tc.likert(PREDS).frame().select(3), "columns are named by text, not 3"),
        (lambda: tc.lab.DirichletWorld((1.0, 2.0), 0.5).true_class_wise_error(0), "norm must be a number of at least"),
        (lambda: tc.scorer().metric(Y, P, labels=[[1], [2, 3]]), "labels"),
        (lambda: tc.plot.LikertDisplay.from_report(tc.likert(PREDS), ax=0), "ax must be axes of matplotlib, not 0"),
        (lambda: tc.plot.ClassWiseDisplay.from_predictions(Y, np.c_[1 - P, P], ax=0), "ax must be axes of matplotlib"),
        (lambda: WATCH.step(groups=P), r"there is no group np.float64\(0.1\); the watch has seen"),
    ],
)
def test_methods_refuse_what_functions_do(call, words):
    with pytest.raises(TruecalError, match=words):
        call()


@pytest.mark.parametrize(
    "judge", [tc.likert, partial(tc.subgroups, by="site"), partial(tc.audit, min_rows=5), tc.clinical]
)
def test_a_level_of_32_bits_is_recorded(judge):
    assert json.loads(json.dumps(judge(PREDS, level=np.float32(0.5)).to_dict()))["level"] == 0.5


def test_a_page_by_an_array_of_columns(tmp_path):
    tc.report(PREDS, tmp_path / "page.html", by=np.array(["site"]), fast=True)
    assert "site" in (tmp_path / "page.html").read_text()


def test_the_largest_gap_of_a_dirichlet_world():
    """Infinite powers of gaps below 1 vanish: the answer was 0.5 for the share alone."""
    world = tc.lab.DirichletWorld((1.0, 2.0, 1.0), 0.5)
    assert world.true_class_wise_error(np.inf) == world.true_top_label_error(np.inf) == 0.5 * (1 - 1 / 3)
    assert world.true_class_wise_error(20) < world.true_class_wise_error(np.inf)


@pytest.mark.parametrize("megabytes", [float("nan"), 1e308])
def test_pages_of_no_size_are_refused(megabytes, tmp_path):
    from tools.hostile.kills import make_study

    store = tc.study.Study.read(make_study(tmp_path, 1)).run(tmp_path / "store", workers=1)
    with pytest.raises(TruecalError, match="megabytes must lie strictly between 0 and 10000"):
        tc.report_study(store, tmp_path / "page.html", megabytes=megabytes)


@pytest.mark.parametrize("classes", [None, 2])
def test_labels_of_more_classes_than_said_are_not_blended(classes):
    """Without classes, labels 0, 1 and 2 became targets such as 1.99."""
    torch = pytest.importorskip("torch")
    with pytest.raises(TruecalError, match="a target is 2, which is not below 2"):
        tc.train.mixup(torch.zeros((3, 4)), torch.tensor([0, 1, 2]), alpha=0.2, classes=classes)


def test_a_page_about_all_labels_of_clustered_rows(tmp_path):
    """The pairs of a row and a class have the cluster of their row."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 30)
    preds = tc.Predictions.from_probs(probs, rng.integers(0, 3, 30), clusters=np.arange(30) // 3)
    tc.report(preds, tmp_path / "page.html", lens=tc.AllLabels(), fast=True)
    assert "all labels" in (tmp_path / "page.html").read_text().lower()


def test_a_map_fitted_to_columns_is_that_of_the_rows():
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.ones(4), 300)
    labels = rng.integers(0, 4, 300)
    by_rows = tc.BiasCorrectedTemperature(input="probs").fit(rows, labels).predict_proba(rows)
    by_columns = tc.BiasCorrectedTemperature(input="probs").fit(np.asfortranarray(rows), labels).predict_proba(rows)
    np.testing.assert_array_equal(by_columns, by_rows)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
def test_scalars_of_numpy_as_options(kind):
    """A limit of 1e100 does not fit into 32 bits: numpy warned of an overflow."""
    scores = np.linspace(0, 1, 100_000)
    curve = tc.lab.GLM("logit", "logit", b0=kind(1), b1=kind(2))
    np.testing.assert_allclose(curve(scores), tc.lab.GLM("logit", "logit", 1, 2)(scores), rtol=1e-12)
    profile = tc.Profile.from_arrays(scores, np.arange(100_000) % 2)
    for scheme in ("width", "mass"):
        found, plain = (tc.BinnedECE(bins=bins, scheme=scheme)(profile).value for bins in (np.int8(7), 7))
        assert found == plain


@pytest.mark.parametrize("bins", [0, 2.5, float("nan"), 10**9])
def test_bins_are_looked_at_where_the_sweep_chooses_them(bins):
    with pytest.raises(TruecalError, match="bins must be"):
        tc.plot.ReliabilityDisplay.from_profile(tc.Profile.from_arrays([0.2, 0.7], [0, 1]), bins=bins, scheme="sweep")


def test_a_map_whose_class_is_a_list_is_refused():
    """numpy could not make an array of such names."""
    record = json.loads(tc.PlattScaling(classes=["no", "yes"]).fit(P, np.array(["no", "yes"])[Y]).to_json())
    with pytest.raises(tc.FileError, match=r'"classes": class name 0 is \[None\]; name every class'):
        tc.PlattScaling.from_json(json.dumps({**record, "classes": [[None], "yes"]}))


NO_STATE = {
    "a share that is text": ("shares", ["nan"], "'nan' is no finite number"),
    "a share of NaN": ("shares", [float("nan")], "nan is no finite number"),
    "shares beyond 1": ("shares", [2.0], "not parts of 1"),
    "a peak beyond all numbers": ("peak", 10**400, "OverflowError"),
    "half a position": ("position", 0.5, "0.5 is no count"),
    "rows that are true": ("rows", True, "True is no count"),
    "an infinite centre": ("centre", float("inf"), "inf is no finite number"),
    "an error of NaN": ("errors", [30, float("nan"), 1.0], "nan is no finite number"),
    "a length too few": ("lengths", [], "the sums of the blocks are no counts"),
    "names that are no list": ("names", {"a": 1}, "the names are not those of the classes"),
}


@pytest.mark.parametrize("name", NO_STATE)
def test_a_watch_does_not_take_up_a_state_that_cannot_be(name, tmp_path):
    """A share of NaN was taken up: the evidence was NaN from then on, so no alarm could be raised, and nothing said so."""
    field, value, words = NO_STATE[name]
    watch = tc.Watch(tolerance=0.05)
    watch.update(tc.Predictions.from_probs(P, Y), at="2026-01-01")
    path = watch.save(tmp_path / "state.json")

    def damaged(part):
        if isinstance(part, dict):
            return {key: value if key == field else damaged(held) for key, held in part.items()}
        return [damaged(held) for held in part] if isinstance(part, list) else part

    path.write_text(json.dumps(damaged(json.loads(path.read_text()))))
    with pytest.raises(tc.FileError, match=f"state.json is damaged: .*{words}"):
        tc.Watch.load(path)


@pytest.mark.parametrize("verb", ["watch report", "report", "sketch save", "recalibrate fit"])
def test_the_name_of_a_file_that_was_written_does_not_steer_the_terminal(verb, tmp_path, monkeypatch, capsys):
    """`truecal watch report --out` said the name as it was given, with a mark that turns the direction of the text."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"y": Y, "p": P}).write_csv("a\u202e.csv")
    watch = tc.Watch(tolerance=0.05)
    watch.update(tc.Predictions.from_probs(P, Y))
    watch.save("watch.json")
    given = ["watch.json"] if verb == "watch report" else ["a\u202e.csv", "--label", "y"]
    assert main([*verb.split(), *given, "--out", "é\u202e.npz"]) == 0
    said = capsys.readouterr()
    assert "é\\u202e.npz" in said.out
    assert "\u202e" not in said.out + said.err


def test_rows_left_out_of_weighted_ones_do_not_have_less_than_no_weight():
    """The sums before and after a row of weight 0 differ by rounding; its root was taken, with a warning and NaN."""
    rng = np.random.default_rng(0)
    scores, weights = rng.random(60), rng.random(60) + 0.1
    profile = tc.Profile.from_arrays(scores, rng.random(60) < scores, weights)
    found = tc.uncertainty.bootstrap(tc.RankSeries(), profile, method="bca", resamples=50).interval(0.9)
    assert 0 <= found.low <= found.high <= 1
