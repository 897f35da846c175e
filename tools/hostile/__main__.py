"""`python -m tools.hostile [--calls N] [--minutes M] [--seed S] [--only PATH] [--call LINE]`: prints counts and every failure."""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tools.hostile.calls import Call, make, shorter, targets
from tools.hostile.judge import Outcome, judge, limit_memory
from tools.hostile.values import dataset

_DATASETS = 40  # calls share a dataset in runs of this length
_QUICK = 0.008  # seconds: functions that take longer are called less often
_TOLD = 5_000  # calls between two lines about how far a run is


@dataclass
class Run:
    """What happened so far."""

    calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    count: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    failures: dict[tuple[str, str], str] = field(default_factory=dict)


def run(calls: int, minutes: float, seed: int, only: str | None = None) -> Run:
    """Make and judge calls until their number or the time is reached; slow functions are called less often."""
    rng, done = random.Random(seed), Run()
    every = [target for target in targets() if only is None or target.path.startswith(only)]
    end = time.monotonic() + 60 * minutes
    names, number = dataset(seed), seed
    while done.calls < calls and time.monotonic() < end:
        if done.calls % _DATASETS == 0:
            number = seed * 1_000_003 + done.calls
            names = dataset(number)
        pick = [_QUICK / (_QUICK + done.seconds[target.path] / max(1, done.count[target.path])) for target in every]
        target = rng.choices(every, pick)[0]
        call = make(target, rng)
        start = time.process_time()
        outcome = judge(call.line, names, must_refuse=call.must_refuse, odd=call.odd)
        done.seconds[target.path] += time.process_time() - start
        done.count[target.path] += 1
        done.calls += 1
        done.kinds[outcome.kind] += 1
        if done.calls % _TOLD == 0:
            print(f"{done.calls} calls, {len(done.failures)} kinds of failure", flush=True)
        if outcome.failed:
            _keep(done, call, outcome, names, number)
    return done


def _keep(done: Run, call: Call, outcome: Outcome, names: dict[str, object], number: int) -> None:
    """One line per kind of failure and function, as short as it can be made."""
    key = (call.path, outcome.kind + outcome.detail.partition(":")[0])
    if key in done.failures:
        return
    shrinking = True
    while shrinking:
        shrinking = False
        for fewer in shorter(call):
            again = judge(fewer.line, names, must_refuse=fewer.must_refuse, odd=fewer.odd)
            if again.kind == outcome.kind and again.detail.partition(":")[0] == outcome.detail.partition(":")[0]:
                call, outcome, shrinking = fewer, again, True
                break
    done.failures[key] = (
        f"{outcome.kind}: {outcome.detail}\n    python -m tools.hostile --seed {number} --call {call.line!r}"
    )
    print(done.failures[key], flush=True)


def main() -> int:
    """The command line; ends with 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--only")
    parser.add_argument("--call")
    asked = parser.parse_args()
    dataset(asked.seed)  # loads libraries, whose memory is not that of a call
    limit_memory()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if asked.call is not None:
            print(judge(asked.call, dataset(asked.seed)))
            return 0
        print(f"seed {asked.seed}", flush=True)
        done = run(asked.calls, asked.minutes, asked.seed, asked.only)
    kinds = ", ".join(f"{count} {kind}" for kind, count in done.kinds.most_common())
    print(
        f"{done.calls} calls of {len(done.count)} functions and classes: {kinds}; {len(done.failures)} kinds of failure"
    )
    return 1 if done.failures else 0


if __name__ == "__main__":
    sys.exit(main())
