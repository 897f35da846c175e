"""Tables of measured numbers: the public format of Minderer et al., mappings for others, and what is refused."""

import json
import zipfile

import polars as pl
import pytest

import truecal as tc
from tests.study.public_table import NATURAL, public_diagrams, public_table

PRESET = "revisiting-calibration"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("public") / "calibration.zip"
    frame = public_table(models=14, metrics=3)
    with zipfile.ZipFile(path, "w") as held:
        held.writestr("calibration.csv", frame.write_csv())
    return path, frame


@pytest.fixture(scope="module")
def store(table):
    path, _ = table
    bins = path.with_name("bins.csv")
    public_diagrams().write_csv(bins)
    sizes = path.with_name("sizes.csv")
    names = sorted({(row[1]) for row in table[1].select("ModelFamily", "ModelName").iter_rows()})
    pl.DataFrame(
        {"model": names, "size": [1e6 * (i + 1) for i in range(len(names))], "pretraining": ["jft"] * 14}
    ).write_csv(sizes)
    return tc.study.import_table(path, path.with_name("store"), preset=PRESET, diagrams=bins, about=sizes)


def one(frame, **where):
    for column, value in where.items():
        frame = frame.filter(pl.col(column) == value)
    assert frame.height == 1
    return frame.row(0, named=True)


def test_every_number_of_the_public_table_is_in_the_store(table, store):
    frame, raw = store.frame(), table[1]
    assert frame["model"].n_unique() == 14
    assert sorted(set(frame["dataset"])) == sorted({*NATURAL, *(f"imagenet_c corruption_{k}" for k in range(15))})
    measured = frame.filter(pl.col("metric") != "best-temperature")
    assert measured.height == raw.height
    for row in raw.sample(200, seed=1).iter_rows(named=True):
        name = {"accuracy": "error", "nll": "nll", "brier": "brier"}.get(row["Metric"])
        if name is None:
            scheme = "mass" if "adaptive" in row["Metric"] else "width"
            norm, bins = ("l1" if "'l1'" in row["Metric"] else "l2"), (100 if "=100" in row["Metric"] else 15)
            name = f"ece-{scheme}-{bins}-{norm}"
        dataset = row["DatasetName"] if row["corruption_type"] is None else f"imagenet_c {row['corruption_type']}"
        found = one(
            measured,
            model=row["ModelName"],
            dataset=dataset,
            severity=row["severity"] or 0.0,
            metric=name,
            recalibrator="temperature" if row["rescaling_method"] else "none",
            selection="all classes" if row["use_dataset_labelset"] is False else "all",
        )
        wanted = 1 - row["MetricValue"] if name == "error" else row["MetricValue"]
        assert found["value"] == pytest.approx(wanted, abs=1e-12)
        assert found["corruption"] == row["corruption_type"]
        assert found["lens"] == (
            "" if name in ("error", "nll", "brier") else "all-label" if "False,class" in row["Metric"] else "top-label"
        )
        assert found["n"] is None
        assert found["low"] is None


def test_sizes_covariates_and_diagrams(store):
    frame, bins = store.frame(), store.diagrams()
    assert frame["size"].null_count() == 0
    assert frame["pretraining"].unique().to_list() == ["jft"]
    assert bins.height == 6 * 2 * 15
    job = one(frame.filter(pl.col("metric") == "best-temperature"), model="vit-0", dataset="imagenet")["job"]
    assert set(bins.filter(pl.col("job") == job)["scheme"]) == {"mass", "width"}


def test_analyses_work_on_numbers_alone(store):
    effect = tc.study.effect_of_recalibration(store, metric="ece-mass-100-l1")
    assert effect.summary()["improved_supported"].unique().to_list() == [None]  # unknown, never 0
    assert tc.study.pareto(store.frame(), metrics=["ece-mass-100-l1"]).always
    ranking = tc.study.rank(store, metrics=["ece-mass-100-l1"], datasets=["imagenet"])
    assert "has no intervals" in ranking.notes[0]


def test_the_whole_public_table_is_one_part(tmp_path):
    frame = public_table(models=182, metrics=1)
    assert frame.height > 49_000
    frame.write_csv(tmp_path / "all.csv")
    store = tc.study.import_table(tmp_path / "all.csv", tmp_path / "store", preset=PRESET)
    assert store.frame()["model"].n_unique() == 182
    assert len(list((tmp_path / "store/results").iterdir())) == 1


def test_a_mapping_of_a_wide_table(tmp_path):
    text = "Name,params.arch,metrics.ece,metrics.acc,lr\nrun1,resnet,0.05,0.9,0.1\nrun2,vit,,0.8,0.2\n"
    (tmp_path / "mlflow.csv").write_text(text)
    mapping = tmp_path / "map.yaml"
    mapping.write_text(
        "columns: {model: Name, family: params.arch}\nconstants: {dataset: cifar10}\n"
        "metrics: {metrics.ece: ece-width-15-l1, metrics.acc: accuracy}\ncovariates: [lr]\n"
    )
    store = tc.study.import_table(tmp_path / "mlflow.csv", tmp_path / "store", mapping=mapping)
    frame = store.frame()
    assert one(frame, model="run1", metric="error")["value"] == pytest.approx(0.1)
    row = one(frame, metric="ece-width-15-l1")
    assert (row["lens"], row["bins"], row["scheme"], row["norm"], row["lr"]) == ("top-label", 15, "width", 1.0, 0.1)
    assert store.meta()["study"]["notes"] == ["1 numbers of the table are missing"]


@pytest.mark.parametrize(
    ("mapping", "words"),
    {
        "nothing": ("columns: {family: a}\nmetrics: {b: nll}\n", "a mapping needs 'model'"),
        "typo": ("columns: {modle: a, dataset: a}\nmetrics: {b: nll}\n", "did you mean 'model'"),
        "column": ("columns: {model: x, dataset: a}\nmetrics: {b: nll}\n", "the table has no column 'x'"),
        "kind": ("columns: {model: a, dataset: a}\n", "give metrics .* or metric and value"),
    }.values(),
)
def test_mappings_that_cannot_be_meant(tmp_path, mapping, words):
    (tmp_path / "t.csv").write_text("a,b\nm,1\n")
    (tmp_path / "map.yaml").write_text(mapping)
    with pytest.raises(tc.InputError, match=words):
        tc.study.import_table(tmp_path / "t.csv", tmp_path / "store", mapping=tmp_path / "map.yaml")


def test_tables_that_cannot_be_read(tmp_path):
    (tmp_path / "t.csv").write_text("ModelFamily,ModelName\na,b\n")
    with pytest.raises(tc.InputError, match="has no column 'DatasetName'"):
        tc.study.import_table(tmp_path / "t.csv", tmp_path / "s", preset=PRESET)
    with pytest.raises(tc.InputError, match="one of the two"):
        tc.study.import_table(tmp_path / "t.csv", tmp_path / "s")
    (tmp_path / "t.zip").write_bytes(b"no zip")
    with pytest.raises(tc.InputError, match="cannot read"):
        tc.study.import_table(tmp_path / "t.zip", tmp_path / "s", preset=PRESET)
    with pytest.raises(tc.InputError, match="is not of a known kind"):
        tc.study.import_table(tmp_path / "t.xlsx", tmp_path / "s", preset=PRESET)
    frame = public_table(models=2)
    pl.concat([frame, frame[:1]]).write_parquet(tmp_path / "twice.parquet")
    with pytest.raises(tc.InputError, match="is there twice in the table"):
        tc.study.import_table(tmp_path / "twice.parquet", tmp_path / "s", preset=PRESET)


def test_the_command(truecal, table, tmp_path):
    path, _ = table
    ran = truecal("study", "import", path, "--preset", PRESET, "--out", tmp_path / "s", "--json")
    assert ran.code == 0
    said = json.loads(ran.out)
    assert (said["models"], said["datasets"]) == (14, 19)
    shown = truecal("study", "show", tmp_path / "s", "--metric", "ece-mass-100-l1", "--dataset", "imagenet")
    assert shown.code == 0
    assert truecal("study", "page", tmp_path / "s", "--out", tmp_path / "page.html").code == 0
