"""Tables of measured numbers: the public format of Minderer et al., and what is refused."""

import json
import zipfile

import polars as pl
import pytest

import truecal as tc
from tests.study.public_table import CLEAN, NATURAL, about_models, model_name, public_diagrams, public_table

PRESET = "revisiting-calibration"
DATASETS = ("imagenet", "imagenet_v2", "imagenet_r", "imagenet_a")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("public") / "df_main.zip"
    frame = public_table(models=18)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("df_main.csv", frame.write_csv())
    return path, frame


@pytest.fixture(scope="module")
def store(table):
    path, _ = table
    bins, sizes = path.with_name("bins.csv"), path.with_name("sizes.csv")
    public_diagrams(models=6).write_csv(bins)
    about_models(18).with_columns(year=2020.0).write_csv(sizes)
    return tc.study.import_table(path, path.with_name("store"), preset=PRESET, diagrams=bins, about=sizes)


def one(frame, **where):
    for column, value in where.items():
        frame = frame.filter(pl.col(column) == value)
    assert frame.height == 1
    return frame.row(0, named=True)


def test_every_number_of_the_public_table_is_in_the_store(table, store):
    frame, raw = store.frame(), table[1]
    assert frame["model"].n_unique() == 18
    assert sorted(set(frame["dataset"])) == sorted({*DATASETS, *(f"imagenet_c corruption_{k}" for k in range(15))})
    measured = frame.filter(pl.col("metric") != "best-temperature")
    assert measured.height == raw.height
    for row in raw.sample(200, seed=1).iter_rows(named=True):
        name = {"accuracy": "error", "nll": "nll", "brier": "brier"}.get(row["MetricKey"])
        lens = "" if name else "top-label"
        if name is None:
            scheme = "mass" if "adaptive" in row["Metric"] else "width"
            norm = "l1" if "'l1'" in row["Metric"] else "l2"
            name = f"ece-{scheme}-{row['Metric'].split('num_bins=')[1].split(',')[0]}-{norm}"
            if "max_prob=False" in row["Metric"]:
                lens = "class-wise" if "class_conditional=True" in row["Metric"] else "all-label"
        dataset = dict(zip(NATURAL, DATASETS, strict=True)).get(row["DatasetName"])
        result = one(
            measured,
            model=row["ModelName"],
            dataset=dataset or f"imagenet_c {row['corruption_type']}",
            severity=row["severity"] or 0.0,
            metric=name,
            lens=lens,
            recalibrator="none" if row["rescaling_method"] == "none" else "temperature",
            selection="all classes" if dataset in DATASETS[2:] and row["use_dataset_labelset"] is None else "all",
        )
        value = 1 - row["MetricValue"] if name == "error" else row["MetricValue"]
        assert result["value"] == pytest.approx(value, abs=1e-12)
        assert result["corruption"] == row["corruption_type"]
        assert (result["n"], result["low"]) == (None, None)


def test_covariates_of_the_sweep_over_pretraining_data(store):
    about = store.frame().unique("model").filter(pl.col("family") == "bit").sort("pretraining_size")
    assert about.select("pretraining", "pretraining_size", "pretraining_steps").rows() == [
        ("imagenet21k", 1.3e6, 112e3),
        ("jft", 2.6e6, 112e3),
    ]
    assert store.frame()["year"].unique().to_list() == [2020.0]
    assert store.frame()["size"].null_count() == 0


def test_diagrams_have_upper_edges_and_the_rescaling_of_their_model(table, store):
    frame, bins = store.frame(), store.diagrams()
    jobs = frame.select("job", "model", "dataset", "severity").unique("job")
    raw = pl.read_csv(table[0].with_name("bins.csv"))
    for rescaling, recalibrator in (("none()", "none"), ("temperature_scaling(beta=0.82088172)", "temperature")):
        row = one(raw, RawModelName=f"{model_name(3)}+{rescaling}", DatasetName=CLEAN, adaptive=True)
        job = one(jobs, model=model_name(3), dataset="imagenet", severity=0.0)["job"]
        part = bins.filter((pl.col("job") == job) & (pl.col("recalibrator") == recalibrator)).sort("bin")
        mass, width = (part.filter(pl.col("scheme") == scheme) for scheme in ("mass", "width"))
        assert mass["high"].to_list() == pytest.approx([row[f"edge_{k}"] for k in range(10)])
        assert mass["low"].to_list() == pytest.approx([0.0, *(row[f"edge_{k}"] for k in range(9))])
        assert mass["confidence"].to_list() == pytest.approx([row[f"conf_{k}"] for k in range(10)])
        assert width["bin"].to_list() == list(range(1, 10))  # the first is empty
        assert width["low"].to_list() == pytest.approx([k / 10 for k in range(1, 10)])


def test_before_and_after_are_pairs_of_every_model(store):
    effect = tc.study.effect_of_recalibration(store, metric="ece-mass-100-l1", dataset="imagenet")
    assert effect.frame("summary")["models"].to_list() == [18]
    assert (effect.frame()["change"] < 0).all()


def test_analyses_work_on_numbers_alone(store):
    effect = tc.study.effect_of_recalibration(store, metric="ece-mass-100-l1")
    assert effect.frame("summary")["improved_supported"].unique().to_list() == [None]  # unknown, never 0
    assert "on every front" in tc.study.pareto(store, metrics="ece-mass-100-l1").notes[0]
    ranking = tc.study.rank(store, metrics=["ece-mass-100-l1"], datasets=["imagenet"])
    assert "there are no intervals of ece-mass-100-l1" in ranking.notes[-1]


def test_the_whole_public_table_is_one_part(tmp_path):
    frame = public_table(variants=1)
    assert (frame["ModelName"].n_unique(), frame["DatasetName"].n_unique()) == (185, 79)
    frame.write_csv(tmp_path / "all.csv")
    store = tc.study.import_table(tmp_path / "all.csv", tmp_path / "store", preset=PRESET)
    assert store.frame()["model"].n_unique() == 185
    assert len(list((tmp_path / "store/results").iterdir())) == 1
    assert set(store.references().values()) == {"imagenet"}
    assert public_table(models=1)["Metric"].n_unique() == 28


def test_the_reference_can_be_named(table, tmp_path):
    store = tc.study.import_table(table[0], tmp_path / "a", preset=PRESET, reference="imagenet_v2")
    assert set(store.references().values()) == {"imagenet_v2"}
    store = tc.study.import_table(table[0], tmp_path / "b", preset=PRESET, reference="cifar")
    assert store.references() == {}
    assert "'cifar' is not in the table" in store.meta()["study"]["notes"][0]


def test_tables_that_cannot_be_read(tmp_path):
    (tmp_path / "t.csv").write_text("ModelFamily,ModelName\na,b\n")
    with pytest.raises(tc.InputError, match="has no column 'DatasetName'"):
        tc.study.import_table(tmp_path / "t.csv", tmp_path / "s", preset=PRESET)
    with pytest.raises(tc.InputError, match="preset"):
        tc.study.import_table(tmp_path / "t.csv", tmp_path / "s", preset="mlflow")
    (tmp_path / "t.zip").write_bytes(b"no zip")
    with pytest.raises(tc.InputError, match="cannot read"):
        tc.study.import_table(tmp_path / "t.zip", tmp_path / "s", preset=PRESET)
    with pytest.raises(tc.InputError, match="is not of a known kind"):
        tc.study.import_table(tmp_path / "t.xlsx", tmp_path / "s", preset=PRESET)
    frame = public_table(models=2)
    pl.concat([frame, frame[:1]]).write_parquet(tmp_path / "twice.parquet")
    with pytest.raises(tc.InputError, match="is there twice in the table"):
        tc.study.import_table(tmp_path / "twice.parquet", tmp_path / "s", preset=PRESET)


def test_the_command(truecal, tmp_path):
    path = tmp_path / "few.parquet"
    frame = public_table(models=3, variants=2)
    frame.filter(pl.col("corruption_type").is_null() | (pl.col("corruption_type") == "corruption_0")).write_parquet(
        path
    )
    ran = truecal("study", "import", path, "--preset", PRESET, "--out", tmp_path / "s", "--json")
    assert ran.code == 0
    record = json.loads(ran.out)
    assert (record["models"], record["datasets"]) == (3, 5)
    drawn = truecal("study", "show", tmp_path / "s", "--metric", "ece-mass-100-l1", "--dataset", "imagenet")
    assert drawn.code == 0
    written = truecal("study", "page", tmp_path / "s", "--out", tmp_path / "page.html", "--json")
    assert written.code == 0
    assert json.loads(written.out)["bytes"] == (tmp_path / "page.html").stat().st_size
