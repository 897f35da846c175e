"""Scale: a folder of Parquet against a bare group-by of the same engine, and a stream against torchmetrics.

TRUECAL_BENCH_ROWS sets the number of rows on disk (default 1e8, about 0.6 GB, written to a temporary folder and deleted).
Every pass runs in a process of its own, so that its peak resident memory is its own too.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.speed.harness import Row, seconds_together

ROWS = int(float(os.environ.get("TRUECAL_BENCH_ROWS", "1e8")))
FILE = 5_000_000  # rows per file
GIB = 2**30

_PASS = """
import json, re, sys, time
from pathlib import Path
what, pattern = sys.argv[1:]
def bare_polars():
    import polars as pl
    c, y = pl.col("p").cast(pl.Float64), pl.col("y").cast(pl.Int64)
    cell = (c * 4096).cast(pl.Int32).clip(0, 4095).alias("cell")
    sums = [pl.len(), c.sum().alias("c"), y.sum().alias("s"), (c * c).sum().alias("cc"), (c * y).sum().alias("cy")]
    return pl.scan_parquet(pattern).group_by(cell).agg(sums).collect(engine="streaming")
def bare_duckdb():
    import duckdb
    c = "p::double"
    return duckdb.sql(
        f"select least(floor({c} * 4096)::int, 4095) cell, count(*), sum({c}), sum(y), sum({c} * {c}), sum({c} * y) "
        f"from '{pattern}' group by 1"
    ).fetchall()
def scan(engine):
    from truecal.engines import scan
    return scan(pattern, label="y", score="p", engine=engine).sketch
kind, engine = what.split()
work = {"bare polars": bare_polars, "bare duckdb": bare_duckdb}.get(what, lambda: scan(engine))
times = []
for _ in range(2):
    start = time.perf_counter()
    work()
    times.append(time.perf_counter() - start)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1)) * 1024  # not inherited, unlike ru_maxrss
print(json.dumps([min(times), peak]))
"""


def write(folder: Path, rows: int) -> str:
    """Scores in float32, half of them near 0 as in fraud, labels in int8."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    for i, start in enumerate(range(0, rows, FILE)):
        n = min(FILE, rows - start)
        p = rng.random(n, np.float32)
        low = rng.random(n, np.float32) < 0.5
        p[low] = p[low] ** 8
        y = (rng.random(n, np.float32) < p**1.1).astype(np.int8)
        pq.write_table(pa.table({"p": p, "y": y}), folder / f"part-{i:04}.parquet")
    return f"{folder}/*.parquet"


def passed(what: str, pattern: str) -> tuple[float, float]:
    """Best wall seconds and peak resident bytes of a pass in a process of its own."""
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PASS, what, pattern], check=True, capture_output=True, text=True
    )
    best, peak = json.loads(out.stdout.splitlines()[-1])
    return best, peak


def passed_together(names: list[str], pattern: str, rounds: int = 3) -> dict[str, tuple[float, float]]:
    """The same for several passes taken in turns, so that a busy machine slows all of them alike."""
    best = {name: (float("inf"), 0.0) for name in names}
    for _ in range(rounds):
        for name in names:
            time, peak = passed(name, pattern)
            best[name] = min(best[name][0], time), max(best[name][1], peak)
    return best


def files() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="truecal-bench-") as name:
        small, large = Path(name) / "small", Path(name) / "large"
        small.mkdir()
        large.mkdir()
        few, many = write(small, max(ROWS // 10, 1000)), write(large, ROWS)
        each = passed_together(
            [f"{kind} {engine}" for engine in ("polars", "duckdb") for kind in ("bare", "scan")], many
        )
        bare = {engine: each[f"bare {engine}"][0] for engine in ("polars", "duckdb")}
        for engine, time in bare.items():
            rows.append(Row(f"bare {engine} group-by of {ROWS:.0e} rows, 4096 cells", time, 1.0, "itself"))
        for engine, bound in (("polars", 2.0), ("duckdb", None)):
            time, peak = each[f"scan {engine}"]
            rows.append(Row(f"scan by {engine}, {ROWS:.0e} rows", time, time / bare[engine], f"bare {engine}", bound))
            rows.append(
                Row("  its peak resident memory", time, peak / GIB, "1 GiB", 1.5 if engine == "polars" else None)
            )
            tenth, less = passed(f"scan {engine}", few)
            rows.append(
                Row(
                    "  the same with a tenth of the rows",
                    tenth,
                    time / tenth,
                    "a tenth of the rows",
                    13.0 if bound else None,
                )
            )
            rows.append(Row("  its peak resident memory", tenth, peak / less, "that of a tenth of the rows"))
    return rows


def streams() -> list[Row]:
    """1e7 rows in batches of 1024, and the state that is left."""
    from truecal.engines import Accumulator

    rng = np.random.default_rng(0)
    count, batch = 10_000_000, 1024
    scores = rng.random(count, np.float32)
    labels = (rng.random(count, np.float32) < scores).astype(np.int64)
    acc = Accumulator()

    def ours() -> None:
        acc.reset()
        for start in range(0, count, batch):
            acc.update(labels[start : start + batch], scores[start : start + batch])

    try:
        import torch
        from torchmetrics.classification import BinaryCalibrationError
    except ImportError:
        print("torchmetrics is not installed: row left out", file=sys.stderr)
        return []
    torch_scores, torch_labels = torch.from_numpy(scores), torch.from_numpy(labels)

    def from_tensors() -> None:
        acc.reset()
        for start in range(0, count, batch):
            acc.update(torch_labels[start : start + batch], torch_scores[start : start + batch])

    def theirs() -> None:
        metric = BinaryCalibrationError(n_bins=15, validate_args=False)
        for start in range(0, count, batch):
            metric.update(torch_scores[start : start + batch], torch_labels[start : start + batch])

    mine, tensors, other = seconds_together(ours, from_tensors, theirs, repeat=3, clock=process_time)
    return [
        Row("torchmetrics update, 1e7 rows in batches of 1024, no validation", other, 1.0, "itself"),
        Row("Accumulator.update of the same arrays, validated", mine, mine / other, "torchmetrics", 3.0),
        Row("Accumulator.update of the same tensors, validated", tensors, tensors / other, "torchmetrics", 3.0),
        Row("  its state", mine, acc.nbytes / 2**21, "2 MiB", 1.0),
    ]


def rows() -> list[Row]:
    return [*files(), *streams()]
