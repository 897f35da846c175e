"""Damaged files: good ones of every kind that truecal reads, changed at random; inputs that reach new lines of a reader are kept.

A reader answers with numbers that can be, or refuses by an error of truecal; nothing else. `python -m tools.hostile.files`.
"""

import argparse
import gzip
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from tools.hostile.judge import Outcome, judge, limit_memory

TOKENS = (b"\0", b"nan", b"-1", b"1e999", b"inf", b"null", b"{}", b"[]", b"[" * 3000, b'"', b"\xff\xfe", b"9" * 5000, b",", b";",
          b"\n", b"\r", b"true", b"'", b"2", b"\x1b[31m", b"=1+1", b"1e-320", b"\xe2\x80\xae", b"!!python/object", b"&a *a", b": ",
          b"- ", b"2020-99-99")  # fmt: skip
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    2,
    1e308,
    "x",
    "",
    [],
    {},
    [[]],
    "nan",
    10**20,
    [None],
    {"a": 1},
    "\x1b[31m",
    0.5,
    [0.5, 0.5],
)
_PARSERS = ("predictions/readers", "profile/file", "sketch/file", "recalibrate/export", "recalibrate/contract", "study/spec",
            "study/store", "watch/")  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of file: how a good one is made, and the line that reads it."""

    name: str
    make: Callable[[Path], object]
    line: str


def _table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = rng.random(30).round(3)
    return {"y": (rng.random(30) < p).astype(int).tolist(), "p": p.tolist(), "site": list("ab" * 15)}


def _rows() -> list[dict[str, Any]]:
    table = _table()
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _csv(separator: str) -> bytes:
    return "\n".join([separator.join(_table()), *(separator.join(map(str, r.values())) for r in _rows())]).encode()


def _lm_eval() -> bytes:
    lines = [
        {"doc_id": i, "target": str(i % 2), "doc": {"q": "?"}, "arguments": [["a", "b"], ["a", "c"]], "acc": float(i % 2),
         "resps": [[[-0.2, True]], [[-1.5, False]]], "filtered_resps": [[-0.2, True], [-1.5, False]], "doc_hash": "x"}
        for i in range(12)
    ]  # fmt: skip
    return b"\n".join(json.dumps(line).encode() for line in lines)


def _npz(path: Path) -> None:
    table = _table()
    np.savez(path, probs=np.array(table["p"]), labels=np.array(table["y"]))


def _fitted() -> Any:
    import truecal as tc

    p = np.array(_table()["p"])
    return tc.recalibration.PlattScaling().fit(np.column_stack([1 - p, p]), _table()["y"])


def _watch(path: Path) -> None:
    import truecal as tc

    watch = tc.Watch(tolerance=0.05)
    watch.update(tc.Predictions.from_probs(_table()["p"], _table()["y"]), at="2026-01-01")
    watch.save(path)


def _store(path: Path) -> None:
    import truecal as tc

    store = tc.study.Store(path)
    store.begin({"name": "s", "study": {}, "jobs": ["a"], "wanted": [["top-label", "nll"]]})
    store.add(
        "a", [{"job": "a", "model": "m", "lens": "top-label", "metric": "nll", "value": 0.25}], [{"job": "a", "bin": 1}]
    )


def _polars(path: Path) -> None:
    import polars as pl

    pl.DataFrame(_table()).write_parquet(path)


def _saved(thing: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        import truecal as tc

        table = _table()
        made: Any = tc.profile.Profile if thing == "profile" else tc.Sketch
        made.from_arrays(table["p"], table["y"]).save(path)

    return make


_READ = "tc.measure(tc.read(path), estimator=tc.BinnedECE())"
_SCAN = "tc.scan(path, label='y', score='p').measure(estimator=tc.BinnedECE())"
KINDS = (
    Kind("a.csv", lambda path: path.write_bytes(_csv(",")), _READ),
    Kind("a.tsv", lambda path: path.write_bytes(_csv("\t")), _READ),
    Kind("b.csv", lambda path: path.write_bytes(_csv(";")), _SCAN),
    Kind("a.csv.gz", lambda path: path.write_bytes(gzip.compress(_csv(","))), _READ),
    Kind("a.json", lambda path: path.write_text(json.dumps(_rows())), _READ),
    Kind("b.json", lambda path: path.write_text(json.dumps(_table())), _READ),
    Kind("a.jsonl", lambda path: path.write_text("\n".join(map(json.dumps, _rows()))), _READ),
    Kind("samples.jsonl", lambda path: path.write_bytes(_lm_eval()), _READ),
    Kind("a.parquet", _polars, _READ),
    Kind("a.npz", _npz, _READ),
    Kind("nosuffix", lambda path: path.write_bytes(_csv(",")), _READ),
    Kind("profile.npz", _saved("profile"), "tc.BinnedECE()(tc.profile.Profile.load(path)).value"),
    Kind("sketch.npz", _saved("sketch"), "tc.BinnedECE()(tc.Sketch.load(path)).value"),
    Kind("map.json", lambda path: path.write_text(_fitted().to_json()),
         "tc.recalibration.PlattScaling.from_json(text(path)).predict_proba([[0.2, 0.8]])"),
    Kind("watch.json", _watch, "tc.Watch.load(path).step()"),
    Kind("store", _store, "tc.study.Store(path).frame().height + tc.study.Store(path).diagrams().height"),
    Kind("study.yaml", lambda path: path.write_text(
        "name: s\nmodels:\n  - name: m\n    files: 'a.npz'\nmetrics: [nll]\nlevel: 0.9\n"), "tc.study.Study.read(path)"),
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few changes: bytes, slices and tokens; where the bytes are JSON, every second time a value in it."""
    if rng.random() < 0.5:
        try:
            return json.dumps(_changed(json.loads(data), rng)).encode()
        except (ValueError, RecursionError):
            pass
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(changed) + 1)
        to = min(len(changed), at + rng.choice((1, 2, 8, 64)))
        how = rng.randrange(5)
        if how == 0 and changed:
            changed[min(at, len(changed) - 1)] ^= 1 << rng.randrange(8)
        elif how == 1:
            del changed[at:to]
        elif how == 2:
            changed[at:at] = changed[at:to]
        elif how == 3:
            changed[at:to] = rng.choice(TOKENS)
        else:
            del changed[at if rng.random() < 0.3 else to :]
    return bytes(changed)


def _changed(value: Any, rng: random.Random) -> Any:
    """A JSON value of which one part is another."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    return rng.choice(VALUES)


class Lines:
    """The lines of the parsers that a call runs."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self.fresh = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if any(part in frame.f_code.co_filename for part in _PARSERS) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        place = (frame.f_code.co_filename, frame.f_lineno)
        if place not in self.seen:
            self.seen.add(place)
            self.fresh = True
        return self._line


def fuzz(files: int, minutes: float, seed: int) -> tuple[Counter[str], list[str]]:
    """Read that many damaged files; the kinds of outcome, and every failure."""
    rng, counts, failures, lines = random.Random(seed), Counter[str](), list[str](), Lines()
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        pools = {}
        for kind in KINDS:
            path = Path(folder, kind.name)
            kind.make(path)
            pools[kind.name] = [_held(path)]
            first = judge(kind.line, _names(path))
            if kind.name != "study.yaml" and first.failed:
                failures.append(f"{kind.name}: the good file: {first}")
        number = 0
        while number < files and time.monotonic() < end:
            kind = KINDS[number % len(KINDS)]
            number += 1
            path = Path(folder, kind.name)
            held = dict(rng.choice(pools[kind.name]))
            part = rng.choice(list(held))
            held[part] = mutated(held[part], rng)
            outcome = _read(kind, path, held, lines)
            counts[outcome.kind] += 1
            if lines.fresh:
                pools[kind.name].append(held)
                lines.fresh = False
            if outcome.failed:
                kept = Path(tempfile.gettempdir(), f"hostile-{seed}-{number}-{kind.name}")
                if len(failures) < 30:
                    _write(kept, held)
                failures.append(f"{kind.name}: {outcome.kind}: {outcome.detail}; {kept}")
                print(failures[-1], flush=True)
    return counts, failures


def _read(kind: Kind, path: Path, held: dict[str, bytes], lines: Lines) -> Outcome:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    _write(path, held)
    sys.settrace(lines)
    try:
        return judge(kind.line, _names(path))
    finally:
        sys.settrace(None)


def _names(path: Path) -> dict[str, Any]:
    import truecal as tc

    return {"tc": tc, "path": str(path), "text": lambda name: Path(name).read_bytes().decode("utf-8", "replace")}


def _held(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of all files of a folder by their place in it."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(part.relative_to(path)): part.read_bytes() for part in sorted(path.rglob("*")) if part.is_file()}


def _write(path: Path, held: dict[str, bytes]) -> None:
    for name, data in held.items():
        target = path / name if name else path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def main() -> int:
    """The command line; ends with 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    limit_memory()
    counts, failures = fuzz(asked.files, asked.minutes, asked.seed)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"{sum(counts.values())} damaged files: {kinds}; {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
