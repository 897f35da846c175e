"""After a scan: estimates of its groups, and pages, in seconds of the processor."""

import tempfile
import time
from pathlib import Path

import numpy as np

import truecal as tc
from benchmarks.speed.harness import Row, seconds
from benchmarks.speed.peers import N

GROUPS = 40


def scanned(groups: int, rows: int) -> tc.engines.Scan:
    """What a scan of so many groups of so many rows leaves."""
    sketches = {}
    for group in range(groups):
        rng = np.random.default_rng(group)
        scores = rng.beta(0.6, 0.6 + group % 3, rows).astype(np.float32)
        sketches[(group,)] = (tc.Sketch.from_arrays(scores, rng.random(rows) < scores**1.1),)
    return tc.engines.Scan(sketches, ("group",), tc.OneClass(), "positive class", 2, None, 0, "polars")


def _page(data: object) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return seconds(lambda: tc.report(data, Path(folder) / "page.html"), repeat=1, clock=time.process_time)


def rows() -> list[Row]:
    each = N // 10
    scan, ten, few = scanned(GROUPS, each), scanned(10, 4 * each), scanned(GROUPS, 10_000)
    tc.measure(scan.sketches[0,][0])  # what loads on first use is not counted
    took = seconds(scan.groups, repeat=3, clock=time.process_time)
    table = [Row(f"{GROUPS} groups of a scan of {GROUPS * each:.0e} rows, after it", took, took / 2, "2 s", 1.0)]
    rng = np.random.default_rng(0)
    scores = rng.random(N, np.float32)
    preds = tc.Predictions.from_probs(scores, (rng.random(N, np.float32) < scores**1.1).astype(np.int8))
    pages: list[tuple[str, object, float]] = [
        (f"page of a scan of {GROUPS * each:.0e} rows by 10 groups, after it", ten, 10.0),
        (f"page of a scan of {GROUPS * each:.0e} rows by {GROUPS} groups, after it", scan, 10.0),
        (f"page of a scan of {GROUPS * 10_000:.0e} rows by {GROUPS} groups, after it", few, 10.0),
        (f"page of {N:.0e} rows in memory", preds, 10.0),
    ]
    for what, data, goal in pages:
        took = _page(data)
        table.append(Row(what, took, took / goal, f"{goal:g} s", 1.0))
    return table
