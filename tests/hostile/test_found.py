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
from tests.watch.test_watch import content_of, write_content
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
    for position, other in changes.items():
        damaged = bytearray(raw)
        damaged[position : position + len(other)] = other
        path = tmp_path / "p.npz"
        path.write_bytes(damaged)
        for read in (tc.read, tc.Sketch.load):
            with pytest.raises(TruecalError):
                read(path)
    assert zipfile.is_zipfile(io.BytesIO(raw))


@pytest.mark.parametrize("column", [[[0.2, 0.8], 0.5], [{"a": 0.2, "b": 0.8}, 0.5]])
def test_rows_that_are_no_lists_or_mappings_are_named(column):
    with pytest.raises(TruecalError, match=r"row 1 is 0\.5"):
        tc.Predictions.from_frame(pd.DataFrame({"y": [0, 1], "p": column}), label="y", probs="p")


def test_missing_values_of_pandas_are_missing_everywhere():
    assert tc.by_column("gone", "a").mask(TABLE).sum() == 20
    assert "missing" in tc.clinical.summary(TABLE, by="gone").sites.names
    assert "missing" in str(tc.subgroups(TABLE, by="gone"))
    assert [*tc.Watch(by="gone").update(TABLE, at=1).groups] == [("(missing)",), ("a",), ("b",)]
    # all rows, two sites and those without one
    assert "4 segments of at least 5 rows" in str(tc.audit(TABLE, by=["gone"], min_rows=5))


def test_groups_are_what_the_values_are():
    """Zero has one group, an empty text a name, times of nanoseconds are no numbers, and a comma joins no two sites."""
    assert [*tc.Watch(by="zero").update(TABLE, at=1).groups] == [("0",)]
    assert "all rows" not in str(tc.Watch(by="blank").update(TABLE, at=np.int64(1)))
    assert "2020-01-01 00:00:00" in str(tc.subgroups(TABLE, by="day"))
    assert len(tc.clinical.summary(TABLE, by=["comma", "more"]).sites.names) == 2


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


def test_one_row_has_no_acceleration():
    resampled = tc.inference.bootstrap(
        tc.estimators.IsotonicError(), tc.profile.Profile.from_arrays([0.3], [1]), method="bca"
    )
    assert resampled.acceleration == 0
    assert 0 <= resampled.interval().low <= resampled.value <= resampled.interval().high <= 1


def test_a_clinical_curve_without_a_standard_error_says_nothing_about_its_distance():
    """Two rows in the wrong order: truths were tried up to a distance of 1e9."""
    summary = tc.clinical.summary(tc.Predictions.from_probs([0.6, 0.7], [1, 0], weights=[2.0, 3.0]))
    assert (summary.ici.low, summary.ici.high) == (0, 1)
    assert "no interval" in summary.ici.method


@pytest.mark.parametrize("name", [tc, len, int])
def test_programs_name_no_class(name):
    for select in (tc.by_label, tc.by_output):
        with pytest.raises(TruecalError, match="a class is named by a number or text"):
            select(name)


def test_segments_that_are_not_fitted_have_no_parameters():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        _ = tc.recalibration.SegmentOffsets().parameter_count


@pytest.mark.parametrize("parts", [[1, 2], [tc.lab.Uniform(), "x"], [tc.lab.Uniform, tc.lab.Uniform]])
def test_parts_of_a_mixture_are_distributions(parts):
    with pytest.raises(TruecalError, match="a part of a Mixture must be a distribution"):
        tc.lab.Mixture(parts, (0.5, 0.5))


PREDS = tc.Predictions.from_probs(P, Y, columns={"site": np.array(["a", "b"])[Y]})


@pytest.mark.parametrize(
    "judge", [tc.likert, partial(tc.subgroups, by="site"), partial(tc.audit, min_rows=5), tc.clinical.summary]
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
    by_rows = tc.recalibration.BiasCorrectedTemperature(input="probs").fit(rows, labels).predict_proba(rows)
    by_columns = (
        tc.recalibration.BiasCorrectedTemperature(input="probs")
        .fit(np.asfortranarray(rows), labels)
        .predict_proba(rows)
    )
    np.testing.assert_array_equal(by_columns, by_rows)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
def test_scalars_of_numpy_as_options(kind):
    """A limit of 1e100 does not fit into 32 bits: numpy warned of an overflow."""
    scores = np.linspace(0, 1, 100_000)
    curve = tc.lab.GLM("logit", "logit", b0=kind(1), b1=kind(2))
    np.testing.assert_allclose(curve(scores), tc.lab.GLM("logit", "logit", 1, 2)(scores), rtol=1e-12)
    profile = tc.profile.Profile.from_arrays(scores, np.arange(100_000) % 2)
    for scheme in ("width", "mass"):
        result, plain = (tc.BinnedECE(bins=bins, scheme=scheme)(profile).value for bins in (np.int8(7), 7))
        assert result == plain


@pytest.mark.parametrize("bins", [0, 2.5, float("nan"), 10**9])
def test_bins_are_looked_at_where_the_sweep_chooses_them(bins):
    with pytest.raises(TruecalError, match="bins must be"):
        tc.plot.ReliabilityDisplay.from_profile(
            tc.profile.Profile.from_arrays([0.2, 0.7], [0, 1]), bins=bins, scheme="sweep"
        )


def test_a_map_whose_class_is_a_list_is_refused():
    """numpy could not make an array of such names."""
    record = json.loads(
        tc.recalibration.PlattScaling(classes=["no", "yes"]).fit(P, np.array(["no", "yes"])[Y]).to_json()
    )
    with pytest.raises(tc.errors.FileError, match=r'"classes": class name 0 is \[None\]; name every class'):
        tc.recalibration.PlattScaling.from_json(json.dumps({**record, "classes": [[None], "yes"]}))


# Where the value stands among the records of a state, another value, and what the refusal says.
NO_STATE = {
    "a share that is text": ((3, 0, 2), ["nan"], "'nan' is no float"),
    "a share of NaN": ((3, 0, 2), [float("nan")], "nan is no finite number"),
    "shares beyond 1": ((3, 0, 2), [2.0], "do not sum to 1"),
    "a peak beyond all numbers": ((2,), 10**400, "OverflowError"),
    "half a position": ((3, 0, 1), 0.5, "0.5 is no int"),
    "rows that are true": ((3, 0, 4, 0, 5), True, "True is no int"),
    "an infinite centre": ((3, 0, 4, 0, 0, 2), float("inf"), "inf is no finite number"),
    "an error of NaN": ((3, 0, 4, 0, 2, 1), float("nan"), "nan is no finite number"),
    "a length too few": ((3, 0, 4, 0, 3, 1), [], "the sums of the blocks are not counts"),
    "names that are no list": ((1, 3), {"a": 1}, "is no list"),
}


@pytest.mark.parametrize("name", NO_STATE)
def test_a_watch_does_not_take_up_a_state_that_cannot_be(name, tmp_path):
    """A share of NaN was taken up: the evidence was NaN from then on, so no alarm could be raised, and nothing said so."""
    position, value, words = NO_STATE[name]
    watch = tc.Watch(tolerance=0.05)
    watch.update(tc.Predictions.from_probs(P, Y), at="2026-01-01")
    path = watch.save(tmp_path / "state.json")
    content = part = content_of(path)
    for index in position[:-1]:
        part = part[index]
    part[position[-1]] = value
    write_content(path, content)
    with pytest.raises(tc.errors.FileError, match=f"state.json is damaged: .*{words}"):
        tc.Watch.load(path)


@pytest.mark.parametrize("verb", ["watch report", "report", "sketch save", "recalibrate fit"])
def test_the_name_of_a_file_that_was_written_does_not_steer_the_terminal(verb, tmp_path, monkeypatch, capsys):
    """`truecal watch report --out` said the name as it was given, with a mark that turns the direction of the text."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"y": Y, "p": P}).write_csv("a\u202e.csv")
    watch = tc.Watch(tolerance=0.05)
    watch.update(tc.Predictions.from_probs(P, Y))
    watch.save("watch.json")
    inputs = ["watch.json"] if verb == "watch report" else ["a\u202e.csv", "--label", "y"]
    assert main([*verb.split(), *inputs, "--out", "é\u202e.npz"]) == 0
    captured = capsys.readouterr()
    assert "é\\u202e.npz" in captured.out
    assert "\u202e" not in captured.out + captured.err


def test_rows_left_out_of_weighted_ones_do_not_have_less_than_no_weight():
    """The sums before and after a row of weight 0 differ by rounding; its root was taken, with a warning and NaN."""
    rng = np.random.default_rng(0)
    scores, weights = rng.random(60), rng.random(60) + 0.1
    profile = tc.profile.Profile.from_arrays(scores, rng.random(60) < scores, weights)
    resampled = tc.inference.bootstrap(tc.RankSeries(), profile, method="bca", resamples=50).interval(0.9)
    assert 0 <= resampled.low <= resampled.high <= 1
