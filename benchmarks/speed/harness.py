"""How a benchmark is timed and reported: best of several runs, peak memory of one more, ratios to a floor of the same run."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One line of the table. `bound` is the ratio the project promises (None: shown for comparison only)."""

    what: str
    seconds: float
    ratio: float
    ratio_to: str
    bound: float | None = None
    at_least: bool = False  # the promise is ratio >= bound (we are that much faster), not ratio <= bound

    @property
    def holds(self) -> bool | None:
        if self.bound is None:
            return None
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound


def seconds(work: Callable[[], object], repeat: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Best time of `repeat` runs by a clock: of the wall, or of the processor (time.process_time)."""
    best = float("inf")
    for _ in range(repeat):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def seconds_together(
    *works: Callable[[], object], repeat: int = 5, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Best time of each work, the runs interleaved so that a busy machine slows all of them alike."""
    best = [float("inf")] * len(works)
    for _ in range(repeat):
        for i, work in enumerate(works):
            best[i] = min(best[i], seconds(work, repeat=1, clock=clock))
    return best


def peak_bytes(make: str, work: str) -> int:
    """High-water mark of resident memory of a fresh process while it runs `work`, above what `make` left; both are code.

    ru_maxrss of a child begins with what its parent held at the fork; VmHWM is the process's own, and can be set back.
    """
    code = f"""
import re
from pathlib import Path
def status(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1)) * 1024
{make}
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
{work}
print(status("VmHWM") - before)
"""
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True)
    return int(out.stdout.split()[-1])


def peak_extra_bytes(work: Callable[[], object]) -> int:
    """Highest resident memory while `work` runs, above what was resident before (sampled every 2 ms)."""
    page = 4096
    statm = Path("/proc/self/statm")

    def resident() -> int:
        return int(statm.read_text().split()[1]) * page

    done = threading.Event()
    before = peak = resident()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = work()
    peak = max(peak, resident())
    done.set()
    watcher.join()
    del result
    return peak - before
