"""`python -m tools.hostile [--minutes M] [--seed S] [--only scans|damage|processes] [--spark]`: every failure, then counts."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from tools.hostile import damage, processes, scans
from tools.hostile.judge import Outcome

Check = tuple[str, Callable[[], Outcome]]


def scan_checks(folder: Path, seed: int, count: int, *, spark: bool = False) -> Iterator[Check]:
    """Cases of files x options for the engines that are installed; which cases, the seed alone decides."""
    packages = {"memory": "numpy", "spark": "pyspark" if spark else "no such package"}
    engines = tuple(name for name in scans.ENGINES if find_spec(packages.get(name, name)) is not None)
    for i, case in enumerate(scans.draw(seed, count)):
        yield str(case), lambda i=i, case=case: scans.check(case, folder / str(i), engines)  # type: ignore[misc]


def damage_checks(folder: Path, seed: int, count: int) -> Iterator[Check]:
    """Damaged files of every kind in turn."""
    rng, names = random.Random(seed), sorted(damage.good_files())
    good = {name: damage.make_content(name, folder) for name in names}
    for i in range(count):
        name = names[i % len(names)]
        content = damage.damage(good[name], rng) if i >= len(names) else good[name]
        yield f"{name}, change {i}", lambda n=name, c=content: damage.check(n, c, folder)  # type: ignore[misc]


def process_checks(folder: Path, seed: int, count: int) -> Iterator[Check]:
    """Kills, full disks and races of every writing verb in turn."""
    prepared = folder / "prepared"
    prepared.mkdir()
    processes.prepare(prepared)
    for i in range(count):
        yield f"harm {i}", lambda i=i: processes.check(i, prepared, folder / "scratch", seed)  # type: ignore[misc]


PARTS: dict[str, Callable[..., Iterator[Check]]] = {
    "scans": scan_checks,
    "damage": damage_checks,
    "processes": process_checks,
}


def run(part: str, seed: int, count: int, minutes: float = 60, **options: bool) -> tuple[Counter[str], list[str]]:
    """Run checks until their number or the time is reached: kinds of outcomes, and failures."""
    kinds, failures, end = Counter[str](), list[str](), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        for name, check in PARTS[part](Path(folder), seed, count, **options):
            outcome = check()
            kinds[outcome.kind] += 1
            if outcome.failed:
                failures.append(f"{part}, seed {seed}: {name}\n    {outcome.kind}: {outcome.detail}")
                print(failures[-1], flush=True)
            if time.monotonic() > end:
                break
    return kinds, failures


def main() -> int:
    """The command line; ends with 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all parts together")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--spark", action="store_true")
    options = parser.parse_args()
    failed = False
    parts = tuple(PARTS) if options.only is None else (options.only,)
    for part in parts:
        further = {"spark": True} if options.spark and part == "scans" else {}
        kinds, failures = run(part, options.seed, 10**6, options.minutes / len(parts), **further)
        failed |= bool(failures)
        print(f"{part}, seed {options.seed}: {dict(kinds)}; {len(failures)} failures", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
