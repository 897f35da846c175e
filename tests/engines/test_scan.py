"""tc.scan: every engine gives the cells that numpy gives, for every lens, filter, group and defect."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import truecal as tc
from tests.engines.engines import ENGINES, need
from tests.engines.worlds import KINDS, draw
from tests.profile.test_sketch import same
from truecal.engines import scan
from truecal.predictions import by_column, by_label, by_output
from truecal.profile import Sketch

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
every_engine = pytest.mark.parametrize("engine", ENGINES)


def table(seed=0, n=3000):
    """Binary scores of every kind together, a label, whole and fractional weights, and columns to group by."""
    parts = [draw(kind, n // len(KINDS), seed) for kind in KINDS]
    c = np.concatenate([part[0].astype(np.float64) for part in parts] + [[0.0, -0.0, 1.0, 0.5]])
    y = np.concatenate([part[1] for part in parts] + [[0, 1, 1, 0]])
    rng = np.random.default_rng(seed)
    return {
        "p": c,
        "y": y.astype(np.int64),
        "w": rng.random(len(c)) + 0.1,
        "k": rng.integers(0, 3, len(c)),
        "site": rng.choice(["north", "south"], len(c)),
        "day": np.arange(len(c)) % 3,
    }


def wide(seed=0, n=2000, classes=4):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (n, classes)).round(1)  # rounded, so that some probabilities tie
    probs = np.exp(logits)
    probs = np.round(probs / probs.sum(axis=1, keepdims=True), 12)
    return probs, rng.integers(0, classes, n)


@every_engine
def test_binary_cells_are_those_of_numpy(engine):
    rows = table()
    counted = scan(ENGINES[engine](pa.table(rows)), label="y", score="p")
    same(counted.sketch, Sketch.from_arrays(rows["p"], rows["y"]))
    assert counted.engine == engine
    assert counted.rows == len(rows["p"])


@every_engine
def test_float32_columns_are_widened_before_any_arithmetic(engine):
    rows = table()
    c = rows["p"].astype(np.float32)
    counted = scan(ENGINES[engine](pa.table({"p": c, "y": rows["y"]})), label="y", score="p")
    same(counted.sketch, Sketch.from_arrays(c, rows["y"]))
    np.testing.assert_array_equal(counted.sketch.sums["r"], Sketch.from_arrays(c, rows["y"]).sums["r"])


@every_engine
@pytest.mark.parametrize("weight", ["w", "k"])
def test_weights(engine, weight):
    rows = table()
    counted = scan(ENGINES[engine](pa.table(rows)), label="y", score="p", weights=weight).sketch
    expected = Sketch.from_arrays(rows["p"], rows["y"], rows[weight])
    np.testing.assert_allclose(counted.fraction, expected.fraction, atol=1e-15)
    counted.fraction = expected.fraction
    same(counted, expected)


@every_engine
def test_groups_are_those_of_separate_scans(engine):
    held = table()
    counted = scan(ENGINES[engine](pa.table(held)), label="y", score="p", by=["site", "day"])
    assert len(counted.sketches) == 6
    for (site, day), (sketch,) in counted.sketches.items():
        rows = (held["site"] == site) & (held["day"] == day)
        same(sketch, Sketch.from_arrays(held["p"][rows], held["y"][rows]))
    estimates = counted.groups(estimator=tc.BinnedECE())
    assert list(estimates) == sorted(estimates)
    assert sum(e.n for e in estimates.values()) == counted.measure(estimator=tc.BinnedECE()).n == len(held["p"])


@every_engine
@pytest.mark.parametrize("name", ["top label", "binary top label", "one class", "first of two", "names"])
def test_lenses_are_pushed_down(engine, name):
    probs, labels = wide()
    columns = {f"p_{i}": probs[:, i] for i in range(4)}
    names = np.array(["cat", "dog", "fox", "owl"])
    lens, expected = tc.TopLabel(), tc.Predictions.from_probs(probs, labels)
    source, options = pa.table({**columns, "y": labels}), {"probs": "p_*"}
    if name == "one class":
        lens = tc.OneClass(2)
    elif name == "names":
        renamed = {f"p_{n}": probs[:, i] for i, n in enumerate(names)}
        source, lens = pa.table({**renamed, "y": names[labels]}), tc.OneClass("fox")
        expected = tc.Predictions.from_probs(probs, names[labels], classes=names.tolist())
    elif name in ("binary top label", "first of two"):
        rows = table()
        lens = tc.TopLabel() if name == "binary top label" else tc.OneClass(0)
        source, options = pa.table(rows), {"score": "p"}
        expected = tc.Predictions.from_probs(rows["p"], rows["y"])
    counted = scan(ENGINES[engine](source), label="y", lens=lens, **options)
    profile = lens(expected)
    same(counted.sketch, Sketch.from_arrays(profile.scores[0], profile.outcomes[0]))
    assert counted.measure(estimator=tc.BinnedECE()).lens == lens.describe(expected)


@every_engine
@pytest.mark.parametrize("estimator", [tc.BinnedECE(bins=16), tc.DebiasedECE()])
def test_class_wise_in_one_pass(engine, estimator):
    probs, labels = wide()
    source = ENGINES[engine](pa.table({**{f"p_{i}": probs[:, i] for i in range(4)}, "y": labels}))
    lens = tc.ClassWise(weights=(1.0, 2.0, 3.0, 4.0))
    counted = scan(source, label="y", probs="p_*", lens=lens)
    for k, sketch in enumerate(counted.sketches[()]):
        same(sketch, Sketch.from_arrays(probs[:, k], labels == k))
    estimate = counted.measure(estimator=estimator)
    exact = tc.measure(tc.Predictions.from_probs(probs, labels), estimator=estimator, lens=lens)
    assert abs(estimate.value - exact.value) <= estimate.sketch_error
    assert estimate.n == exact.n == 2000


def test_class_wise_bound_of_a_sweep_is_proved():
    rng = np.random.default_rng(2)
    p = 0.3 + 2.0**-10 * rng.random(400)
    columns = {"p_0": p, "p_1": 1 - p, "y": rng.integers(0, 2, 400)}
    est = scan(pa.table(columns), label="y", probs="p_*", lens=tc.ClassWise()).measure(estimator=tc.SweepECE())
    assert est.sketch_bound == "proved"


@pytest.mark.parametrize("engine", ["polars", "duckdb", "pyarrow"])
def test_list_columns(engine):
    probs, labels = wide()
    source = ENGINES[engine](pa.table({"probs": probs.tolist(), "y": labels}))
    counted = scan(source, label="y", probs="probs")
    profile = tc.TopLabel()(tc.Predictions.from_probs(probs, labels))
    same(counted.sketch, Sketch.from_arrays(profile.scores[0], profile.outcomes[0]))


@every_engine
@pytest.mark.parametrize(
    "selection",
    [
        by_label(1),
        by_output(low=0.25, high=0.75, closed="left"),
        by_column("site", "north") & ~by_column("day", low=1, high=1),
        by_column("day", low=1, closed="right") | by_output(0, low=0.9),
    ],
    ids=str,
)
def test_selections_are_pushed_down(engine, selection):
    rows = table()
    columns = {name: rows[name] for name in ("site", "day")}
    covered = selection(tc.Predictions.from_probs(rows["p"], rows["y"], columns=columns))
    counted = scan(ENGINES[engine](pa.table(rows)), label="y", score="p", select=selection)
    same(counted.sketch, Sketch.from_arrays(covered.probs, covered.labels))
    assert counted.measure(estimator=tc.BinnedECE()).selection == str(selection)


@every_engine
def test_nulls_are_counted_and_dropped_only_when_asked(engine):
    rows = table()
    c, y = rows["p"].tolist(), rows["y"].tolist()
    for row in (3, 50, 51):
        c[row] = None
    for row in (51, 700):
        y[row] = None
    source = ENGINES[engine](pa.table({"p": pa.array(c, pa.float64()), "y": pa.array(y, pa.int64())}))
    with pytest.raises(tc.InputError, match="4 rows with missing values in p or y"):
        scan(source, label="y", score="p")
    counted = scan(source, label="y", score="p", drop_null=True)
    selected = np.delete(np.arange(len(c)), [3, 50, 51, 700])
    same(counted.sketch, Sketch.from_arrays(rows["p"][selected], rows["y"][selected]))
    assert counted.dropped == 4
    assert "4 rows with missing values were left out" in counted.measure(estimator=tc.BinnedECE()).warnings


@every_engine
def test_what_cannot_be_judged_is_refused_with_its_number(engine):
    def held(**columns):
        return ENGINES[engine](pa.table(columns))

    y = [0, 1, 1, 0]
    with pytest.raises(tc.InputError, match=r"2 rows of p not in \[0, 1\]"):
        scan(held(p=[0.5, 1.5, -0.25, 1.0], y=y), label="y", score="p")
    with pytest.raises(tc.InputError, match="1 label in 'y' not an index from 0 to 1"):
        scan(held(p=[0.5, 0.5, 0.5, 1.0], y=[0, 1, 2, 0]), label="y", score="p")
    with pytest.raises(tc.InputError, match="1 weight in 'w' negative"):
        scan(held(p=[0.5] * 4, y=y, w=[1.0, 1.0, -1.0, 0.0]), label="y", score="p", weights="w")
    with pytest.raises(tc.InputError, match=r"1 row of a \.\.\. b with a sum other than 1"):
        scan(held(a=[0.5, 0.5, 0.25, 1.0], b=[0.5, 0.5, 0.5, 0.0], y=y), label="y", probs=["a", "b"])
    with pytest.raises(tc.InputError, match="no row is left"):
        scan(held(p=[0.5] * 4, y=y), label="y", score="p", select=by_output(low=0.9))


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_refusal_names_the_extremes_of_scores_out_of_range(engine, tmp_path):
    # engines read files together or apart: the lowest score of all rows is in a file without an error
    pytest.importorskip(engine)
    for name, scores in {"a": [0.125, 0.25], "b": [1.5, 0.5], "c": [None, 0.75]}.items():
        pq.write_table(pa.table({"p": pa.array(scores, pa.float64()), "y": [0, 1]}), tmp_path / f"{name}.parquet")
    with pytest.raises(tc.InputError, match=r"1 row of p not in \[0, 1\] \(values from 1.5 to 1.5\)"):
        scan(tmp_path, label="y", score="p", engine=engine, drop_null=True)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_an_infinite_logit_is_refused_alike(engine, tmp_path):
    pytest.importorskip(engine)
    (tmp_path / "a.csv").write_text("y,z\n1,0.5\n0,inf\n1,-2\n")
    with pytest.raises(tc.InputError, match="1 row of z with a number that is not finite"):
        scan(tmp_path / "a.csv", label="y", logits="z", engine=engine)


def test_refusals_before_any_data_are_read():
    frame = pa.table({"p": [0.5], "q": [0.5], "y": [1], "t": ["a"]})
    refused = {
        "one of the three": {"label": "y"},
        "no column 'x'": {"label": "x", "score": "p"},
        "labels have 1 value": {"label": "t", "score": "p"},
        "column 't' holds String, not numbers": {"label": "y", "score": "t"},
        "column 't' holds String": {"label": "y", "score": "p", "weights": "t"},
        "is for files": {"label": "y", "score": "p", "engine": "duckdb"},
        "lens must be one of truecal's": {"label": "y", "score": "p", "lens": "TopLabel"},
        "an engine cannot": {"label": "y", "score": "p", "select": by_column("q", where=lambda q: q > 0)},
        "no class 'z'": {"label": "y", "score": "p", "lens": tc.OneClass("z")},
    }
    for words, options in refused.items():
        with pytest.raises(tc.InputError, match=words):
            scan(frame, **options)
    with pytest.raises(tc.InputError, match="neither a path nor a data frame"):
        scan(object(), label="y", score="p")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows as three files of every format."""
    import polars as pl

    where = tmp_path_factory.mktemp("logs")
    frame = pl.DataFrame(table())
    step = len(frame) // 3 + 1
    for i in range(3):
        part = frame.slice(i * step, step)
        pq.write_table(part.to_arrow(), where / f"part-{i}.parquet", row_group_size=100)
        part.write_csv(where / f"part-{i}.csv", float_precision=None)
        part.write_ndjson(where / f"part-{i}.jsonl")
    return where


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_files_of_every_format(folder, engine, ending):
    need(engine)
    rows = table()
    counted = scan(f"{folder}/*.{ending}", label="y", score="p", by="site", engine=engine)
    assert counted.engine == engine
    total = sum((parts[0] for parts in counted.sketches.values()), Sketch())
    expected = Sketch.from_arrays(rows["p"], rows["y"])
    np.testing.assert_array_equal(total.sums["n"].sum(), expected.sums["n"].sum())
    same(total, expected)


def test_progress_and_lists_of_files(folder):
    results = []
    files = sorted(folder.glob("*.parquet"))
    counted = scan(files, label="y", score="p", progress=lambda done, total: results.append((done, total)))
    assert results == [(0, 3), (1, 3), (2, 3), (3, 3)]
    same(counted.sketch, scan(f"{folder}/*.parquet", label="y", score="p").sketch)


def test_files_that_are_not_there_or_not_alike(folder):
    with pytest.raises(tc.errors.FileError, match=r"no file matches nowhere/\*\.parquet"):
        scan("nowhere/*.parquet", label="y", score="p")
    with pytest.raises(tc.errors.FileError, match="there is no file nowhere"):
        scan("nowhere", label="y", score="p")
    with pytest.raises(tc.errors.FileError, match="must all be of one kind"):
        scan([folder / "part-0.csv", folder / "part-1.parquet"], label="y", score="p")
    with pytest.raises(tc.InputError, match="engine must be one of"):
        scan(folder / "part-0.csv", label="y", score="p", engine="excel")


@pytest.mark.parametrize("estimator", [tc.RankSeries(), tc.SweepECE(), tc.BinnedECE(scheme="mass")])
def test_answer_equals_calibration_error(folder, estimator):
    rows = table()
    counted = scan(f"{folder}/*.parquet", label="y", score="p").measure(estimator=estimator)
    exact = tc.calibration_error(rows["y"], rows["p"], estimator=estimator)
    assert abs(counted.value - exact.value) <= counted.sketch_error
    assert counted.n == exact.n
    assert counted.lens == exact.lens
    assert counted.p_value == pytest.approx(exact.p_value, abs=0.05)


# ---------------------------------------------------------------------- logits


@pytest.mark.parametrize(
    ("engine", "lens"),
    [
        *((engine, tc.TopLabel()) for engine in ENGINES),
        *((engine, lens) for engine in ("polars", "duckdb") for lens in (tc.OneClass(1), tc.ClassWise())),
    ],
    ids=str,
)
def test_logits_become_probabilities_where_the_data_are(engine, lens):
    """exp may differ in the last bit between engines, so a row may change its cell; sums may not."""
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(0, 200, (900, 3)), rng.integers(0, 3, 900)
    logits[:400] = np.round(logits[:400] / 200, 1)  # some of them tie
    source = ENGINES[engine](pa.table({**{f"z_{i}": logits[:, i] for i in range(3)}, "y": labels}))
    counted = scan(source, label="y", logits="z_*", lens=lens)
    preds = tc.Predictions.from_logits(logits, labels)
    exact = tc.measure(preds, estimator=tc.BinnedECE(), lens=lens)
    assert counted.measure(estimator=tc.BinnedECE()).value == pytest.approx(exact.value, abs=1e-9)
    chosen = by_output(0, low=0.5)
    estimate = tc.measure(chosen(preds), estimator=tc.BinnedECE(), lens=lens)
    counted = scan(source, label="y", logits="z_*", lens=lens, select=chosen)
    assert counted.measure(estimator=tc.BinnedECE()).value == pytest.approx(estimate.value, abs=1e-9)


@every_engine
def test_log_odds(engine):
    z = np.concatenate([np.linspace(-800, 800, 301), np.linspace(-3, 3, 200)])
    y = np.arange(len(z)) % 2
    counted = scan(ENGINES[engine](pa.table({"z": z, "y": y})), label="y", logits="z")
    exact = tc.measure(tc.Predictions.from_logits(z, y), estimator=tc.BinnedECE())
    assert counted.measure(estimator=tc.BinnedECE()).value == pytest.approx(exact.value, abs=1e-9)
    assert counted.sketch.low[0] == 0
    assert counted.sketch.high[-1] == 1


@every_engine
def test_logits_that_are_missing_or_not_finite(engine):
    z = pa.array([1.0, None, np.inf, 0.5], pa.float64())
    data = pa.table({"z_0": z, "z_1": pa.array([0.0, 0.0, 0.0, -np.inf]), "y": [0, 1, 1, 0]})
    with pytest.raises(tc.InputError, match=r"1 row with missing values in z_0 \.\.\. z_1 or y"):
        scan(ENGINES[engine](data), label="y", logits="z_*")
    with pytest.raises(
        tc.InputError, match=r"1 row of z_0 \.\.\. z_1 with a number that is not finite"
    ):  # -inf is a logit
        scan(ENGINES[engine](data), label="y", logits="z_*", drop_null=True)


# ---------------------------------------------------------------------- files that are not alike


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_names_of_folders_are_columns_to_group_by(engine, ending, tmp_path):
    need(engine)
    values = {name: np.asarray(column) for name, column in table(n=900).items()}
    groups = {}
    for day, site in (
        ("2026-05-01", "north%20pole"),
        ("2026-05-02", "south"),
        ("2026-05-02", "__HIVE_DEFAULT_PARTITION__"),
    ):
        where = tmp_path / f"day={day}" / f"site={site}"
        where.mkdir(parents=True)
        rows = np.random.default_rng(len(groups)).permutation(len(values["p"]))[:200]
        part = pa.table({name: values[name][rows] for name in ("p", "y")})
        for i, half in enumerate((part[:90], part[90:])):
            if ending == "csv":
                pacsv.write_csv(half, where / f"part-{i}.csv")
            else:
                pq.write_table(half, where / f"part-{i}.parquet")
        name = {"north%20pole": "north pole", "south": "south"}.get(site)
        groups[(day, name)] = Sketch.from_arrays(values["p"][rows], values["y"][rows])
    request = {"label": "y", "score": "p", "engine": engine}
    counted = scan(tmp_path, by=("day", "site"), **request)
    assert set(counted.sketches) == set(groups)
    for group, (sketch,) in counted.sketches.items():
        same(sketch, groups[group])
    same(scan(tmp_path, **request).sketch, sum(list(groups.values())[1:], groups["2026-05-01", "north pole"]))
    (alone,) = scan(tmp_path / "day=2026-05-01", by="day", **request).sketches
    assert alone == ("2026-05-01",)


@every_engine
def test_rows_without_a_group_are_a_group_of_their_own(engine):
    rows = table(n=300)
    for missing in (
        pa.array([None if day == 1 else float(day) for day in rows["day"]]),
        pa.array(rows["site"], mask=rows["day"] == 1),
    ):
        counted = scan(ENGINES[engine](pa.table({**rows, "group": missing})), label="y", score="p", by="group")
        (sketch,) = counted.sketches[(None,)]
        same(sketch, Sketch.from_arrays(rows["p"][rows["day"] == 1], rows["y"][rows["day"] == 1]))
        assert len(counted.sketches) == 3


def test_a_column_of_the_file_goes_before_the_name_of_a_folder(tmp_path):
    rows = table(n=300)
    (tmp_path / "day=never").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "day=never" / "part.parquet")
    assert set(scan(tmp_path, label="y", score="p", by="day").sketches) == {(0,), (1,), (2,)}
    with pytest.raises(tc.errors.FileError, match=r"part\.parquet: there is no column 'hour'"):
        scan(tmp_path, label="y", score="p", by="hour")


def test_a_folder_is_all_files_in_it_that_hold_rows(folder, tmp_path):
    rows = table()
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "day=1" / "part-0.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "README.txt").write_text("not data")
    same(scan(tmp_path, label="y", score="p").sketch, Sketch.from_arrays(rows["p"], rows["y"]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(tc.errors.FileError, match=r"empty holds no \.csv, \.jsonl or \.parquet file"):
        scan(tmp_path / "empty", label="y", score="p")
    with pytest.raises(tc.errors.FileError, match="must all be of one kind"):
        scan(folder, label="y", score="p")


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_files_may_differ_in_types_and_in_columns_that_are_not_asked_for(tmp_path, engine):
    need(engine)
    held = table()
    c, y = held["p"].astype(np.float32), held["y"]
    for i, rows in enumerate(np.array_split(np.arange(len(c)), 3)):
        columns = {
            "p": c[rows] if i else c[rows].astype(np.float64),
            "y": y[rows].astype(np.int8 if i == 2 else np.int64),
        }
        pq.write_table(pa.table({**({"extra": y[rows]} if i == 1 else {}), **columns}), tmp_path / f"{i}.parquet")
    counted = scan(f"{tmp_path}/*.parquet", label="y", score="p", engine=engine)
    same(counted.sketch, Sketch.from_arrays(c, y))


def test_files_with_other_columns_are_refused_before_any_row_is_read(tmp_path):
    probs, labels = wide()
    columns = {f"p_{i}": probs[:, i] for i in range(4)}
    pq.write_table(pa.table({**columns, "y": labels}), tmp_path / "a.parquet")
    wider = {**columns, "p_4": np.zeros(2000)}
    pq.write_table(pa.table({**wider, "y": labels}), tmp_path / "b.parquet")
    with pytest.raises(
        tc.errors.FileError, match=r"b\.parquet and a\.parquet have different columns .* \(5 and 4, e\.g\. 'p_4'\)"
    ):
        scan(f"{tmp_path}/*.parquet", label="y", probs="p_*")
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    with pytest.raises(tc.errors.FileError, match=r"b\.parquet: there is no column 'y'"):
        scan(f"{tmp_path}/*.parquet", label="y", probs="p_*")


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_a_damaged_file_is_an_error_in_one_line(folder, tmp_path, engine):
    need(engine)
    whole = (folder / "part-0.parquet").read_bytes()
    (tmp_path / "broken.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(tc.errors.FileError, match="parquet") as caught:
        scan(tmp_path / "broken.parquet", label="y", score="p", engine=engine)
    assert len(str(caught.value).splitlines()) == 1


def test_unfit_rows_are_counted_over_all_parts(tmp_path):
    for i in range(3):
        rows = pa.table({"p": pa.array([0.5, None, 0.25], pa.float64()), "y": [1, 0, 1]})
        pq.write_table(rows, tmp_path / f"{i}.parquet")
    for progress in (None, lambda done, total: None):
        with pytest.raises(tc.InputError, match="3 rows with missing values"):
            scan(f"{tmp_path}/*.parquet", label="y", score="p", progress=progress)
        assert scan(f"{tmp_path}/*.parquet", label="y", score="p", progress=progress, drop_null=True).dropped == 3


def test_files_without_rows_are_refused_as_such(tmp_path):
    (tmp_path / "head.csv").write_text("y,p\n")
    pq.write_table(pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())}), tmp_path / "no.parquet")
    for file, words in (("head.csv", "the source has no rows"), ("no.parquet", "no row is left to judge")):
        for engine in ("polars", "duckdb"):
            with pytest.raises(tc.InputError, match=words):
                scan(tmp_path / file, label="y", score="p", engine=engine)


def test_a_text_column_is_a_number_however_late_its_first_fraction(tmp_path):
    scores = ["1"] * 500 + ["0.25"] * 500
    (tmp_path / "late.csv").write_text("\n".join(["y,p", *(f"{i % 2},{p}" for i, p in enumerate(scores))]))
    for engine in ("polars", "duckdb"):
        counted = scan(tmp_path / "late.csv", label="y", score="p", engine=engine)
        assert (counted.rows, counted.sketch.cells) == (1000, 2)
