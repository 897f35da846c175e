"""Apache Spark through the same path: in one process, and (in `make test-all`) on a real local cluster with two executors."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truecal as tc
from tests.engines.engines import need
from tests.engines.test_scan import table, wide
from tests.profile.test_sketch import same
from truecal.cli.main import main
from truecal.engines import scan
from truecal.predictions import by_column, by_output
from truecal.profile import Sketch

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Spark's Python side warns about its own dependencies
]


@pytest.fixture(scope="module", params=["local[2]", pytest.param("local-cluster[2,1,512]", marks=pytest.mark.full)])
def spark(request):
    need("pyspark")
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # A minute of small queries: most of the time of a virtual machine would go into compiling for a long life.
    short_lived = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    session = (
        SparkSession.builder.master(request.param)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", short_lived)
        .config("spark.executor.extraJavaOptions", short_lived)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("spark")
    held = table()
    held["p32"] = held["p"].astype(np.float32)
    probs, labels = wide(n=len(held["p"]))
    held |= {f"q_{i}": probs[:, i] for i in range(4)} | {"label": labels}
    rows = pa.table(held)
    step = len(rows) // 2
    for i in range(2):
        pq.write_table(rows.slice(i * step, step if i == 0 else None), where / f"part-{i}.parquet")
    broken = pa.table(
        {"p": pa.array([0.5, None, 0.75, 0.25], pa.float64()), "y": pa.array([1, 0, None, 0], pa.int64())}
    )
    pq.write_table(broken, where / "broken.parquet")
    return where


def check_cells_of_numpy_polars_and_duckdb(spark, folder):
    rows = table()
    counted = scan(f"{folder}/part-*.parquet", label="y", score="p", engine="spark")
    same(counted.sketch, Sketch.from_arrays(rows["p"], rows["y"]))
    for engine in ("polars", "duckdb"):
        same(counted.sketch, scan(f"{folder}/part-*.parquet", label="y", score="p", engine=engine).sketch)


def check_float32_weights_and_groups(spark, folder):
    held = table()
    frame = spark.read.parquet(f"{folder}/part-0.parquet", f"{folder}/part-1.parquet")
    counted = scan(frame, label="y", score="p32", weights="k", by="site", select=by_column("day", 0, 1))
    for (site,), (sketch,) in counted.sketches.items():
        rows = (held["site"] == site) & (held["day"] <= 1)
        same(sketch, Sketch.from_arrays(held["p"][rows].astype(np.float32), held["y"][rows], held["k"][rows]))
    assert len(counted.sketches) == 2


def check_lenses(spark, folder):
    frame = spark.read.parquet(f"{folder}/part-0.parquet", f"{folder}/part-1.parquet")
    probs, labels = wide(n=frame.count())
    preds = tc.Predictions.from_probs(probs, labels)
    profile = tc.TopLabel()(by_output(low=0.4)(preds))
    counted = scan(frame, label="label", probs="q_*", select=by_output(low=0.4))
    same(counted.sketch, Sketch.from_arrays(profile.scores[0], profile.outcomes[0]))
    classes = scan(frame, label="label", probs="q_*", lens=tc.ClassWise()).sketches[()]
    for k, sketch in enumerate(classes):
        same(sketch, Sketch.from_arrays(probs[:, k], labels == k))


def check_nulls(spark, folder):
    frame = spark.read.parquet(f"{folder}/broken.parquet")
    with pytest.raises(tc.InputError, match="2 rows with missing values in p or y"):
        scan(frame, label="y", score="p")
    counted = scan(frame, label="y", score="p", drop_null=True)
    assert counted.dropped == 2
    same(counted.sketch, Sketch.from_arrays([0.5, 0.25], [1, 0]))


def check_logits_and_lists(spark, folder):
    """exp may differ in its last bit, so values are compared, not cells."""
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(0, 3, (500, 3)), rng.integers(0, 3, 500)
    preds = tc.Predictions.from_logits(logits, labels)
    exact = tc.BinnedECE()(tc.TopLabel()(preds)).value
    columns = {f"z_{i}": logits[:, i].tolist() for i in range(3)}
    rows = pa.table({**columns, "z": logits.tolist(), "p": preds.probs.tolist(), "label": labels})
    pq.write_table(rows, folder / "logits.parquet")
    frame = spark.read.parquet(f"{folder}/logits.parquet")
    for where in ({"logits": "z_*"}, {"logits": "z"}, {"probs": "p"}):
        counted = scan(frame, label="label", **where).measure(estimator=tc.BinnedECE())
        assert counted.value == pytest.approx(exact, abs=1e-9)


def check_command_line(spark, folder, capsys):
    request = ["measure", f"{folder}/part-*.parquet", "--label", "y", "--score", "p", "--by", "site", "--json"]
    answers = []
    for engine in ("spark", "duckdb"):
        assert main([*request, "--engine", engine]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["scan"]["engine"] == "spark"
    for one, other in zip(*(answer["results"] for answer in answers), strict=True):
        assert one["value"] == pytest.approx(other["value"], abs=1e-12)
        assert (one["group"], one["n"]) == (other["group"], other["n"])


def test_spark_gives_what_the_other_engines_give(spark, folder, capsys):
    """One test, so that suites run in several processes start one session, not one each."""
    for check in (
        check_cells_of_numpy_polars_and_duckdb,
        check_float32_weights_and_groups,
        check_lenses,
        check_nulls,
        check_logits_and_lists,
    ):
        check(spark, folder)
    check_command_line(spark, folder, capsys)
