"""Beside other packages, on every CPU: equal width, equal mass, class-wise errors, groups and the default call.

Every setting of numpy's sorts is a process of its own (its CPU features cannot change later), started by a small parent, and every
peak of memory is the high-water mark of yet another process, after its data are made: nothing is inherited. All times are of the
processor, and stand as ratios to *reading the array once* in the same process and to the peers there.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed import harness
from benchmarks.speed.harness import Row, peak_bytes

# What numpy is told not to use: nothing; its widest vectors; all of them. Names other machines do not know are ignored.
SORTS = {"as it is": "", "AVX2": "X86_V4 AVX512_ICL AVX512_SPR", "scalar": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
N = int(float(os.environ.get("TRUECAL_BENCH_ARRAY", "1e7")))


def seconds_together(*works: Callable[[], object], repeat: int) -> list[float]:
    """Processor time of all threads: what other work on the machine, and the number of cores, change least."""
    return harness.seconds_together(*works, repeat=repeat, clock=time.process_time)


def rows() -> list[Row]:
    """One table of all settings."""
    table: list[Row] = []
    for name, off in SORTS.items():
        env = {**os.environ, "NPY_DISABLE_CPU_FEATURES": off, "OPENBLAS_NUM_THREADS": "1"}
        answer = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.peers", name],
            env=env,
            capture_output=True,
            text=True,
        )
        if answer.returncode:
            raise RuntimeError(answer.stderr)
        table += [Row(**row) for row in json.loads(answer.stdout.splitlines()[-1])]
    return table


def _width(c: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    import truecal as tc

    def plain() -> object:
        bin_index = np.minimum((c * 15).astype(np.int64), 14)
        return [np.bincount(bin_index, weights, 15) for weights in (None, c, y)]

    works: dict[str, Callable[[], object]] = {
        "truecal": lambda: tc.BinnedECE()(tc.profile.Profile.from_arrays(c, y)).value,
        "plain bincount": plain,
    }
    try:
        from relplot import metrics

        works["relplot"] = lambda: metrics.binnedECE(c, y, nbins=15)
    except (ImportError, AttributeError):
        print("relplot is not installed: rows left out", file=sys.stderr)
    return works


def equal_width(setting: str) -> list[Row]:
    table = []
    # A row takes as long in both types, but float32 is read twice as fast.
    for dtype, bound in ((np.float64, 15.0), (np.float32, 20.0)):
        c, y = _data(N, dtype)
        works = _width(c, y)
        read, mine, *others = seconds_together(lambda c=c: c.max(), *works.values(), repeat=6)
        what = f"equal width, {N:.0e} {np.dtype(dtype).name}, sorts {setting}"
        table.append(Row(what, mine, mine / read, "reading once", bound))
        for name, seconds in zip(list(works)[1:], others, strict=True):
            table.append(Row(f"  {name}", seconds, seconds / mine, "truecal", 1.5, at_least=True))
    return table


def equal_mass(setting: str) -> list[Row]:
    import truecal as tc
    from benchmarks.speed.core import peers_of_mass

    c, y = _data(N, np.float64)
    quick = [peer for peer in peers_of_mass(c, y.astype(np.int64)) if peer[2] <= 4]
    slow = [peer for peer in peers_of_mass(c, y.astype(np.int64)) if peer[2] > 4]

    def ours() -> object:
        return tc.BinnedECE(scheme="mass")(tc.profile.Profile.from_arrays(c, y)).value

    read, mine, *others = seconds_together(lambda: c.max(), ours, *(work for _, work, _ in quick), repeat=2)
    others += seconds_together(*(work for _, work, _ in slow), repeat=1) if slow else []
    table = [Row(f"equal mass, {N:.0e}, sorts {setting}", mine, mine / read, "reading once")]
    for (name, _, bound), seconds in zip([*quick, *slow], others, strict=True):
        table.append(Row(f"  {name}", seconds, seconds / mine, "truecal", bound, at_least=True))
    return table


def default_call(setting: str) -> list[Row]:
    import truecal as tc

    table, times = [], {}
    for n in (1000, 10_000, 100_000, 1_000_000, N):
        c, y = _data(n, np.float64)
        labels = y.astype(np.int8)
        read, mine = seconds_together(
            lambda c=c: c.max(), lambda c=c, y=labels: tc.calibration_error(y, c), repeat=9 if n <= 100_000 else 2
        )
        times[n] = mine
        table.append(Row(f"default call, n = {n:.0e}, sorts {setting}", mine, mine / read, "reading once"))
    sizes = sorted(times)
    slope = np.log(times[sizes[-1]] / times[sizes[-2]]) / np.log(sizes[-1] / sizes[-2])
    table.append(Row("  growth exponent of n, from 1e6", times[sizes[-1]], float(slope), "n ** exponent", 1.25))
    return table


def class_wise(setting: str) -> list[Row]:
    import truecal as tc

    table, times = [], {}
    estimator, lens = tc.BinnedECE(), tc.ClassWise()
    for classes in (250, 1000):
        probs, labels = _matrix(classes)
        preds = tc.Predictions.from_probs(probs, labels)
        one, blocks, value, full = seconds_together(
            lambda p=probs: p.max(axis=1),
            lambda p=probs, y=labels: _column_blocks(p, y),
            lambda p=preds: [estimator.values(profile) for profile in lens.profiles(p)],
            lambda p=preds: tc.measure(p, lens=lens, estimator=estimator),
            repeat=2,
        )
        times[classes] = full
        if classes == 1000:
            what = f"class-wise, 50,000 x 1000, sorts {setting}"
            table.append(Row(f"{what}: value", value, value / one, "one max pass", 40.0))
            table.append(Row("  the same", value, value / blocks, "numpy in column blocks", 1.2))
            table.append(Row(f"{what}: with interval and test", full, full / one, "one max pass", 150.0))
            columns = np.ascontiguousarray(probs.T)
            mass, series, sorts = seconds_together(
                lambda: tc.measure(preds, lens=lens, estimator=tc.BinnedECE(scheme="mass")),  # noqa: B023 (used at once)
                lambda: tc.measure(preds, lens=lens, estimator=tc.RankSeries()),  # noqa: B023
                lambda: np.sort(columns, axis=1),  # noqa: B023
                repeat=1,
            )
            table.append(Row(f"{what}: equal mass with interval and test", mass, mass / one, "one max pass", 150.0))
            # The series sorts every class. Without vector instructions the sorts alone take more than 300 max passes.
            floor = (
                (series / sorts, "sorting every class", 2.5)
                if setting == "scalar"
                else (series / one, "one max pass", 400.0)
            )
            table.append(Row(f"{what}: rank series with interval and test", series, *floor))
    slope = float(np.log(times[1000] / times[250]) / np.log(4))
    table.append(Row("  growth exponent of classes, from 250", times[1000], slope, "classes ** exponent", 1.25))
    return table


def _column_blocks(probs: np.ndarray, labels: np.ndarray, width: int = 25) -> list[list[np.ndarray]]:
    """Rows, sums of scores and ones in 15 bins of every class, as anyone would write it with numpy."""
    sums = []
    for start in range(0, probs.shape[1], width):
        block = np.ascontiguousarray(probs[:, start : start + width].T)
        bin_indices = np.minimum((block * 15).astype(np.intp), 14)
        for k, (bin_index, scores) in enumerate(zip(bin_indices, block, strict=True), start):
            sums.append(
                [np.bincount(bin_index, w, 15) for w in (None, scores)]
                + [np.bincount(bin_index[labels == k], None, 15)]
            )
    return sums


def groups(setting: str) -> list[Row]:
    import truecal as tc

    table, times = [], {}
    for count in (250, 1000):
        c, y = _data(1000 * count, np.float64)
        columns = {"group": np.arange(len(c)) % count}
        preds = tc.Predictions.from_probs(c, y, columns=columns)
        (times[count],) = seconds_together(lambda p=preds: tc.subgroups(p, "group"), repeat=1)
    what = f"1000 subgroups of 1000 rows, sorts {setting}"
    slope = float(np.log(times[1000] / times[250]) / np.log(4))
    table.append(Row(what, times[1000], times[1000] / 3.0, "3 s", 1.0))
    table.append(Row("  growth exponent of groups, from 250", times[1000], slope, "groups ** exponent", 1.25))
    return table


def many_bins(setting: str) -> list[Row]:
    import truecal as tc

    c, y = _data(N, np.float64)
    few, many = seconds_together(
        *(lambda b=b: tc.BinnedECE(bins=b)(tc.profile.Profile.from_arrays(c, y)).value for b in (10, 1000)), repeat=2
    )
    slope = float(np.log(many / few) / np.log(100))
    return [Row("growth exponent of bins of equal width, from 10 to 1000", many, slope, "bins ** exponent", 0.25)]


def memory(setting: str) -> list[Row]:
    table = []
    for what, n, work, bound in (
        ("default call", 10 * N, "tc.calibration_error(y, c)", 1.5),
        ("equal width", N, "tc.BinnedECE()(tc.profile.Profile.from_arrays(c, y))", 1.0),
        ("equal mass", N, "tc.BinnedECE(scheme='mass')(tc.profile.Profile.from_arrays(c, y))", 1.5),
    ):
        make = (
            "import numpy as np, truecal as tc; rng = np.random.default_rng(0); "
            f"c = rng.random({n}, np.float32); y = (rng.random({n}, np.float32) < c).astype(np.int8); "
            "tc.calibration_error(y[:1000], c[:1000])"  # parts of scipy load on first use, however many rows there are
        )
        extra = peak_bytes(make, work) / (5 * n)
        table.append(Row(f"peak memory of {what}, {n:.0e} float32", 0.0, extra, "bytes of scores and labels", bound))
    return table


def _matrix(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of 50,000 rows and labels that have nothing to do with them."""
    rng = np.random.default_rng(0)
    probs = rng.random((50_000, classes), np.float32) ** 8
    return probs / probs.sum(axis=1, keepdims=True), rng.integers(0, classes, 50_000)


def _data(n: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.random(n).astype(dtype)
    return scores, rng.random(n) < scores**1.1


def main(setting: str) -> None:
    parts: list[Callable[[str], list[Row]]] = [equal_width, equal_mass, default_call, class_wise, groups]
    if setting == next(iter(SORTS)):
        parts += [many_bins, memory]
    records: list[dict[str, Any]] = [vars(row) for part in parts for row in part(setting)]
    print(json.dumps(records))


if __name__ == "__main__":
    main(sys.argv[1])
