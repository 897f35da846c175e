"""Hostile command lines: `python -m tools.hostile.commands [--calls N] [--minutes M] [--seed S]`.

Verbs and options are taken from the commands themselves, so new ones take part. A command ends with 0, 1 or 2; it never shows an
unexpected error, control characters of the data or a bare NaN, and what it prints with --json is JSON.
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.hostile.judge import SECONDS, Outcome, limit_memory, renew_limit

# Verbs that train or simulate for minutes.
LEFT_OUT = (
    "demo",
    "lab coverage",
    "lab leaderboard",
    "lab bias",
    "lab power",
    "study example",
    "study interventions",
)
FILES = ("a.csv", "a.csv", "abc.csv", "a.parquet", "a.npz", "z.npz", "a.jsonl", "esc.csv", "one.csv", "same.csv", "empty.csv",
         "head.csv", "binary.bin", "sketch.npz", "map.json", "watch.json", "store", "study/study.yaml", "day", "missing.csv", "",
         ".", "/dev/null", "*.csv", "nul.csv")  # fmt: skip
VALUES: dict[str, tuple[str, ...]] = {
    "lens": ("auto", "top-label", "positive", "class-wise", "canonical", "top-2", "class=cat", "class=1", "all-label"),
    "by": ("site", "age", "y"), "label": ("y",), "score": ("p",), "probs": ("p_*", "probs"), "logits": ("logits", "p_*"),
    "weight": ("w",), "cluster": ("g", "site"), "select": ("label=1", "output=0.2:0.9", "site=a", "age=20:50"),
    "class_names": ("cat,dog,fox", "no,yes", "@a.csv"), "words": ("likely=0.8",), "norm": ("1", "2", "inf"), "model": ("map.json",),
    "distance": ("total-variation", "l2"), "binning": ("kd-tree=0.1", "width=5", "mass=5"), "like": ("torchmetrics", "netcal"),
    "split": ("site",), "key": ("g", "age"), "reference": ("a",), "at": ("2026-05-01", "3"), "since": ("2026-01-01",),
    "bands": ("low=0:0.5,high=0.5:1",), "cuts": ("age=40,60",), "estimator": ("binned", "sweep"), "store": ("store",),
    "metric": ("ece-width-15-l1", "error"), "sort": ("error",), "dataset": ("d",), "recalibrator": ("none",), "selection": ("all",),
    "of": ("1",), "title": ("a",), "name": ("a",),
}  # fmt: skip
# What a verb usually writes, and what it usually reads.
WRITES = {"sketch": "out.npz", "recalibrate fit": "out.json", "recalibrate apply": "out.csv", "recalibrate export": "out.onnx",
          "study export": "out.csv", "study import": "new"}  # fmt: skip
READS = {
    "sketch merge": "sketch.npz",
    "sketch show": "sketch.npz",
    "study": "store",
    "study run": "study/study.yaml",
    "study import": "a.csv",
}
OUTPUTS = (
    "out.html",
    "out.csv",
    "out.json",
    "out.npz",
    "out.parquet",
    "out.onnx",
    "out",
    "no/such/folder/out.html",
    "/dev/null",
    "day",
)
ODD = ("", "x", "-1", "0", "1", "0.5", "nan", "inf", "1e308", "99999999999999999999", "\x1b[31mred", "p", "site", "a=b", "=", ",",
       ":", "a=0:1", "[", "*", "é\u202e", "x" * 500, "None", "@missing", "2026-99-99", "1:2:3")  # fmt: skip


def make_files(folder: Path) -> None:
    """Good files of every kind that the verbs read, and some bad ones."""
    import polars as pl

    import truecal as tc
    from tools.hostile.kills import make_study

    rng, n = np.random.default_rng(0), 60
    p, Z = rng.random(n), rng.normal(size=(n, 3))
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    y, Y = (rng.random(n) < p).astype(int), rng.integers(0, 3, n)
    more = {
        "site": np.array(["a", "b"])[rng.integers(0, 2, n)],
        "age": rng.integers(20, 90, n),
        "w": rng.integers(1, 4, n),
        "g": np.arange(n) // 2,
    }
    frame = pl.DataFrame({"y": y, "p": p, **more})
    frame.write_csv(folder / "a.csv")
    frame.write_parquet(folder / "a.parquet")
    frame.write_ndjson(folder / "a.jsonl")
    frame.with_columns(site=pl.lit("\x1b[31mred"), age=pl.lit("=1+1")).write_csv(folder / "esc.csv")
    frame.with_columns(p=pl.lit(0.5), y=pl.lit(1)).write_csv(folder / "same.csv")
    frame.head(1).write_csv(folder / "one.csv")
    frame.head(0).write_csv(folder / "head.csv")
    frame.with_columns(p=pl.when(pl.col("age") > 60).then(None).otherwise("p")).write_csv(folder / "nul.csv")
    names = np.array(["cat", "dog", "fox"])
    pl.DataFrame({"y": names[Y], **{f"p_{name}": P[:, k] for k, name in enumerate(names)}, **more}).write_csv(
        folder / "abc.csv"
    )
    np.savez(folder / "a.npz", probs=p, labels=y)
    np.savez(folder / "z.npz", logits=Z, labels=Y)
    (folder / "empty.csv").write_bytes(b"")
    (folder / "binary.bin").write_bytes(rng.bytes(400))
    tc.Sketch.from_arrays(p, y).save(folder / "sketch.npz")
    (folder / "map.json").write_text(tc.recalibration.PlattScaling().fit(np.column_stack([1 - p, p]), y).to_json())
    watch = tc.Watch(tolerance=0.05)
    watch.update(tc.Predictions.from_probs(p, y), at="2026-01-01")
    watch.save(folder / "watch.json")
    (folder / "day").mkdir()
    for day in (1, 2):
        frame.write_csv(folder / "day" / f"2026-05-0{day}.csv")
    (folder / "study").mkdir()
    tc.study.Study.read(make_study(folder / "study", 3)).run(folder / "store", workers=1)


def commands() -> list[tuple[tuple[str, ...], Any]]:
    """Every verb that ends soon, with its command."""
    import click

    from truecal.cli.main import VERBS, _group

    def walk(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        if " ".join(path) in LEFT_OUT:
            return
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                yield from walk((*path, name), command.get_command(context, name))
        else:
            yield path, command

    group = _group()
    context = click.Context(group, resilient_parsing=True)
    return [found for verb in VERBS for found in walk((verb,), group.get_command(context, verb))]


def make(path: tuple[str, ...], command: Any, rng: random.Random) -> list[str]:
    """A command line: every second one with files and values that fit their options, the others with up to four odd ones."""
    import click

    words, odd = [*path], rng.choice((0.0, 0.3))
    options = [p for p in command.params if isinstance(p, click.Option)]
    chosen = [o for o in options if o.required] + rng.sample(
        options, min(len(options), rng.choice((0, 1, 1, 2, 2, 3, 4)))
    )
    for option in dict.fromkeys(chosen):
        words.append(rng.choice(option.opts))
        if not option.is_flag:
            writes = option.name in ("out", "report") and rng.random() >= odd
            words.append(_usual(WRITES, path, "out.html") if writes else _value(option, odd, rng))
    for argument in (p for p in command.params if isinstance(p, click.Argument)):
        count = rng.choice((1, 1, 1, 2)) if argument.nargs == -1 else 1
        usual = "watch.json" if argument.name == "state" else _usual(READS, path, rng.choice(FILES[:6]))
        words += [rng.choice(FILES) if rng.random() < odd else usual for _ in range(count)]
    return words


def _usual(known: dict[str, str], path: tuple[str, ...], other: str) -> str:
    return known.get(" ".join(path), known.get(path[0], other))


def _value(option: Any, odd: float, rng: random.Random) -> str:
    import click

    if rng.random() < odd:
        return rng.choice(ODD)
    if isinstance(option.type, click.Choice):
        return str(rng.choice(list(option.type.choices)))
    if option.name in VALUES:
        return rng.choice(VALUES[option.name])
    if option.name in ("out", "report"):
        return rng.choice(OUTPUTS)
    return rng.choice(("1", "2", "5", "20") if "int" in str(option.type).lower() else ("0.5", "0.02", "0.9"))


def judge(words: list[str]) -> Outcome:
    """Run a command line in this process and say how it ended."""
    from truecal.cli.main import main

    def stop(*_: object) -> None:
        raise TimeoutError

    out, err = io.StringIO(), io.StringIO()
    renew_limit()
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except BaseException as error:  # noqa: BLE001 (nothing may leave `main`)
        return Outcome("foreign", f"{type(error).__name__}: {str(error)[:200]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    said, told = out.getvalue(), err.getvalue()
    if "unexpected" in told and "mistake in truecal" in told:
        return Outcome("foreign", told[-300:].strip())
    if code not in (0, 1, 2) or (code == 2 and not told.strip()):
        return Outcome("foreign", f"exit {code}: {told[-200:]!r}")
    if "\x1b" in said + told or "\u202e" in said + told:
        return Outcome("foreign", f"steers the terminal: {(said + told)[-200:]!r}")
    return _readable(words, said) if code < 2 else Outcome("refused", told[-300:].strip())


def _readable(words: list[str], said: str) -> Outcome:
    """Whether what was printed is what the options ask for."""
    if "--json" in words and "--out" not in words and "--format" not in words:
        try:
            json.loads(said, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
        except ValueError as error:
            return Outcome("foreign", f"no JSON ({error}): {said[:200]!r}")
    return Outcome("answer")


def run(calls: int, minutes: float, seed: int) -> tuple[Counter[str], list[str]]:
    """Run that many command lines in a folder of their own; kinds of outcome, and every failure."""
    rng, counts, failures = random.Random(seed), Counter[str](), dict[str, str]()
    before = os.getcwd()
    every = commands()
    with tempfile.TemporaryDirectory() as name:
        good, end = Path(name, "good"), time.monotonic() + 60 * minutes
        good.mkdir()
        make_files(good)
        try:
            while sum(counts.values()) < calls and time.monotonic() < end:
                if sum(counts.values()) % 50 == 0:  # what commands wrote is put away from time to time
                    os.chdir(name)
                    shutil.rmtree(Path(name, "now"), ignore_errors=True)
                    shutil.copytree(good, Path(name, "now"))
                    os.chdir(Path(name, "now"))
                words = make(*rng.choice(every), rng)
                outcome = judge(words)
                counts[outcome.kind] += 1
                key = f"{' '.join(words[:2])} {outcome.detail[:60]}"
                if outcome.failed and key not in failures:
                    failures[key] = f"{outcome.kind}: {outcome.detail}\n    truecal {' '.join(map(repr, words))}"
                    print(failures[key], flush=True)
        finally:
            os.chdir(before)
    return counts, list(failures.values())


def main() -> int:
    """The command line; ends with 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    limit_memory()
    counts, failures = run(asked.calls, asked.minutes, asked.seed)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"{sum(counts.values())} command lines: {kinds}; {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
