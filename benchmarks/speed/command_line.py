"""What the command line costs from the start of the interpreter to the answer, and the report's time and size."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import truecal as tc
from benchmarks.speed.harness import Row, seconds, seconds_together

ROWS = 1_000_000
_FLOOR = """
import numpy as np, polars as pl
np.sort(pl.read_parquet({path!r})["p"].to_numpy())
"""


def _process(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def _data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.beta(2.0, 0.5, n)
    return p, (rng.random(n) < p**1.1).astype(np.int8)


def command_line(folder: Path) -> list[Row]:
    """Whole processes: Python, imports, reading, answering."""
    import polars as pl

    path = folder / "preds.parquet"
    p, y = _data(ROWS)
    pl.DataFrame({"y": y, "p": p}).write_parquet(path)
    truecal = ("-m", "truecal.cli.main")
    floor, measure = seconds_together(
        lambda: _process("-c", _FLOOR.format(path=str(path))),
        lambda: _process(*truecal, "measure", str(path)),
        repeat=7,
    )
    helped = seconds(lambda: _process(*truecal, "--help"), repeat=7)
    return [
        Row("process: polars.read_parquet of 1e6 rows + np.sort", floor, 1.0, "itself"),
        Row("process: truecal measure of the same file", measure, measure / floor, "that process", 2.5),
        Row("process: truecal --help", helped, helped / 0.4, "0.4 s", 1.0),
    ]


def reports(folder: Path) -> list[Row]:
    """Pages of a few sizes; the ratio is the size of the file to its bound of 2 MB."""
    rows = []
    rng = np.random.default_rng(0)
    k = 1000
    logits = rng.normal(size=(20_000, k)).astype(np.float32)
    logits[np.arange(20_000), rng.integers(0, k, 20_000)] += 6
    cases = {
        "50 rows": tc.Predictions.from_probs(*_data(50)),
        "1e7 rows": tc.Predictions.from_probs(*_data(10_000_000)),
        "20,000 rows of 1000 classes": tc.Predictions.from_logits(logits, logits.argmax(axis=1)),
    }
    for name, preds in cases.items():
        path = folder / "report.html"
        duration = seconds(lambda preds=preds, path=path: tc.report(preds, path, fast=True), repeat=2)
        size = path.stat().st_size
        rows.append(Row(f"report of {name} ({size / 1e6:.2f} MB)", duration, size / 2e6, "2 MB", 1.0))
    return rows


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [*command_line(Path(folder)), *reports(Path(folder))]
