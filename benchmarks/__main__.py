"""Run every benchmark module (or those named on the command line), print one table, and keep it with machine and versions."""

import json
import os
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.harness import Row

HERE = Path(__file__).parent
NOT_BENCHMARKS = {"__init__", "__main__", "harness"}
SHOWN = (
    "numpy",
    "scipy",
    "scikit-learn",
    "torch",
    "model-diagnostics",
    "calzone",
    "uncertainty-calibration",
    "netcal",
    "relplot",
)


def machine() -> dict[str, object]:
    versions = {}
    for package in ("truecal", *SHOWN):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    processor = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {"processor": processor, "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions}


def table(rows: list[Row]) -> str:
    lines = [f"{'what':<72}{'seconds':>10}{'ratio':>9}  {'to':<34}{'promise':>10}  holds", "-" * 145]
    for row in rows:
        promise = "" if row.bound is None else f"{'>=' if row.at_least else '<='} {row.bound:g}"
        verdict = {None: "", True: "yes", False: "NO"}[row.holds]
        lines.append(f"{row.what:<72}{row.seconds:>10.4f}{row.ratio:>9.2f}  {row.ratio_to:<34}{promise:>10}  {verdict}")
    return "\n".join(lines)


def main(names: list[str]) -> int:
    names = names or sorted(p.stem for p in HERE.glob("*.py") if p.stem not in NOT_BENCHMARKS)
    rows: list[Row] = []
    for name in names:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        rows += import_module(f"benchmarks.{name}").rows()
    text = table(rows)
    print(text)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y-%m-%d")
    label = stamp if len(names) > 1 else f"{stamp}-{names[0]}"
    (results / f"{label}.txt").write_text(text + "\n")
    (results / f"{label}.json").write_text(
        json.dumps({"machine": machine(), "rows": [asdict(r) for r in rows]}, indent=1) + "\n"
    )
    return 0 if all(row.holds is not False for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
