"""Damaged files: good ones of every kind that truecal reads, changed at random.

A reader answers with finite numbers, or refuses by an error of truecal in one line.
"""

import gzip
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tools.hostile import scans
from tools.hostile.judge import Outcome, run
from tools.hostile.processes import STUDY

TOKENS = (b"\0", b"nan", b"-1", b"1e999", b"inf", b"null", b"{}", b"[]", b"[" * 3000, b'"', b"\xff\xfe", b"9" * 5000, b",", b";",
          b"\n", b"\r", b"true", b"'", b"2", b"\x1b[31m", b"=1+1", b"1e-320", b"\xe2\x80\xae", b"!!python/object", b"&a *a", b": ",
          b"- ", b"2020-99-99")  # fmt: skip
VALUES: tuple[Any, ...] = (None, True, -1, 2, 1e308, "x", "", [], {}, [[]], "nan", 10**20, [None], {"a": 1}, "\x1b[31m", 0.5,
                           [0.5, 0.5])  # fmt: skip
Content = dict[str, bytes]  # the bytes of the files of a folder by name; of a lone file, by the empty name


def good_files() -> dict[str, tuple[Callable[[Path], object], Callable[[Path], Any]]]:
    """By name: how a good file is made, and how it is read into numbers."""
    import truecal as tc

    rows = {name: column for name, column in scans.table().items() if name in ("y", "p", "site")}
    y, p = rows["y"], rows["p"]
    records = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    answers = [
        {"doc_id": i, "target": str(i % 2), "doc": {"q": "?"}, "arguments": [["a", "b"], ["a", "c"]], "acc": float(i % 2),
         "resps": [[[-0.2, True]], [[-1.5, False]]], "filtered_resps": [[-0.2, True], [-1.5, False]], "doc_hash": "x"}
        for i in range(12)
    ]  # fmt: skip
    platt = tc.recalibration.PlattScaling().fit(np.column_stack([1 - np.array(p), p]), y)
    watch = tc.Watch(tolerance=0.05)
    watch.update(tc.Predictions.from_probs(p, y), at="2026-01-01")

    def read(path: Path) -> float:
        return float(tc.measure(tc.read(path), estimator=tc.BinnedECE()))

    def scan(engine: str) -> Callable[[Path], float]:
        return lambda path: float(tc.scan(path, label="y", score="p", engine=engine).measure(estimator=tc.BinnedECE()))

    def write(data: bytes) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(data)

    def fill_store(path: Path) -> None:
        store = tc.study.Store(path)
        store.begin({"name": "s", "study": {}, "jobs": ["a"]})
        value = {"job": "a", "model": "m", "lens": "top-label", "metric": "nll", "value": 0.25}
        store.add("a", [value], [{"job": "a", "bin": 1}])

    text, parquet = scans.as_csv(rows), scans.as_parquet(rows)
    return {
        "a.csv": (write(text), read),
        "a.tsv": (write(scans.as_csv(rows, "\t")), scan("polars")),
        "b.csv": (write(scans.as_csv(rows, ";")), scan("duckdb")),
        "a.csv.gz": (write(gzip.compress(text)), read),
        "a.csv.zst": (write(scans.as_zst(text)), scan("polars")),
        "a.json": (write(json.dumps(records).encode()), read),
        "b.json": (write(json.dumps(rows).encode()), read),
        "a.jsonl": (write(scans.as_jsonl(rows)), read),
        "samples.jsonl": (write("\n".join(map(json.dumps, answers)).encode()), read),
        "a.parquet": (write(parquet), read),
        "b.parquet": (write(parquet), scan("polars")),
        "c.parquet": (write(parquet), scan("duckdb")),
        "d.parquet": (write(parquet), scan("dask")),
        "a.npz": (lambda path: np.savez(path, probs=np.array(p), labels=np.array(y)), read),
        "nosuffix": (write(text), read),
        "sketch.npz": (tc.Sketch.from_arrays(p, y).save, lambda path: _error(tc.Sketch.load(path))),
        "map.json": (
            write(platt.to_json().encode()),
            lambda path: tc.recalibration.PlattScaling.from_json(
                path.read_bytes().decode("utf-8", "replace")
            ).predict_proba([[0.2, 0.8]]),
        ),
        "watch.json": (watch.save, lambda path: tc.Watch.load(path).step().rows),
        "store": (fill_store, lambda path: tc.study.Store(path).frame().height + tc.study.Store(path).diagrams().height),
        "study.yaml": (write(STUDY.encode()), lambda path: len(tc.study.Study.read(path).name)),
    }  # fmt: skip


def _error(sums: Any) -> float:
    import truecal as tc

    return float(tc.BinnedECE()(sums).value)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change bytes, slices and tokens; every second time, where the bytes are JSON, a value in it."""
    if rng.random() < 0.5:
        try:
            return json.dumps(_mutate_value(json.loads(data), rng)).encode()
        except (ValueError, RecursionError):
            pass
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(changed) + 1)
        end = min(len(changed), start + rng.choice((1, 2, 8, 64)))
        change = rng.randrange(5)
        if change == 0 and changed:
            changed[min(start, len(changed) - 1)] ^= 1 << rng.randrange(8)
        elif change == 1:
            del changed[start:end]
        elif change == 2:
            changed[start:start] = changed[start:end]
        elif change == 3:
            changed[start:end] = rng.choice(TOKENS)
        else:
            del changed[start if rng.random() < 0.3 else end :]
    return bytes(changed)


def _mutate_value(value: Any, rng: random.Random) -> Any:
    """Replace or delete one part of a JSON value."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _mutate_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        i = rng.randrange(len(value))
        return [*value[:i], _mutate_value(value[i], rng), *value[i + 1 :]]
    return rng.choice(VALUES)


def check(name: str, content: Content, folder: Path) -> Outcome:
    """Write the (damaged) content of the file of that name, and read it."""
    path = folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for part, data in content.items():
        target = path / part if part else path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return run(lambda: good_files()[name][1](path))


def make_content(name: str, folder: Path) -> Content:
    """The bytes of a good file, or of all files of a folder."""
    path = folder / f"good-{name}"
    good_files()[name][0](path)
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(part.relative_to(path)): part.read_bytes() for part in sorted(path.rglob("*")) if part.is_file()}


def damage(content: Content, rng: random.Random) -> Content:
    """The content with one of its files changed."""
    part = rng.choice(sorted(content))
    return {**content, part: mutate(content[part], rng)}
