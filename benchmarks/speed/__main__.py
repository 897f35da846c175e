"""Run the benchmarks that compare with other packages (or the modules named, or all), print one table, keep it, and write it into
docs/speed.md. The exit code is 0 where all promises hold; a broken one shows in the table and on the last lines, and makes it 1.
"""

import json
import os
import platform
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.speed.harness import Row

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "speed.md"
MARK = "<!-- made by make bench -->"
NOT_BENCHMARKS = {"__init__", "__main__", "harness"}
USUAL = ["peers", "before", "pages", "study", "scale"]  # what `make bench` runs by itself
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
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "rows": os.environ.get("TRUECAL_BENCH_ARRAY", "1e7"),
        "on_disk": os.environ.get("TRUECAL_BENCH_ROWS", "1e8"),
    }


def said(rows: list[Row]) -> str:
    """How many promises hold."""
    promised = [row.holds for row in rows if row.holds is not None]
    return f"{sum(promised)} of {len(promised)} promises hold"


def table(rows: list[Row]) -> str:
    lines = [f"{'what':<72}{'seconds':>10}{'ratio':>9}  {'to':<34}{'promise':>10}  holds", "-" * 145]
    for row in rows:
        promise = "" if row.bound is None else f"{'>=' if row.at_least else '<='} {row.bound:g}"
        verdict = {None: "", True: "yes", False: "NO"}[row.holds]
        lines.append(f"{row.what:<72}{row.seconds:>10.4f}{row.ratio:>9.2f}  {row.ratio_to:<34}{promise:>10}  {verdict}")
    return "\n".join(lines)


def markdown(rows: list[Row], about: dict[str, object]) -> str:
    """The table as it stands in the documentation."""
    versions = ", ".join(f"{name} {number}" for name, number in dict(about["versions"]).items())  # type: ignore[call-overload]
    lines = [
        f"{about['processor']}, {about['cores']} cores, Python {about['python']}; {versions}.",
        f"{about['rows']} rows in memory, {about['on_disk']} on disk. {said(rows)}.",
        "",
        "| what | seconds | ratio | to | promise | holds |",
        "|---|---:|---:|---|---|---|",
    ]
    for row in rows:
        promise = "" if row.bound is None else f"{'>=' if row.at_least else '<='} {row.bound:g}"
        time = f"{row.seconds:.4g}" if row.seconds else ""
        holds = {None: "", True: "yes", False: "**no**"}[row.holds]
        lines.append(f"| {row.what.strip()} | {time} | {row.ratio:.3g} | {row.ratio_to} | {promise} | {holds} |")
    return "\n".join(lines)


def write_page(rows: list[Row], about: dict[str, object]) -> None:
    """Put the table between the marks of the page."""
    before, _, after = PAGE.read_text().split(MARK)
    PAGE.write_text(f"{before}{MARK}\n\n{markdown(rows, about)}\n\n{MARK}{after}")


def main(names: list[str]) -> int:
    if names == ["all"]:
        names = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in NOT_BENCHMARKS)
    usual = not names
    names = names or USUAL
    rows: list[Row] = []
    start = time.perf_counter()
    for name in names:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        rows += import_module(f"benchmarks.speed.{name}").rows()
    minutes = (time.perf_counter() - start) / 60
    if usual:
        rows.append(Row("all of this", 60 * minutes, minutes, "minutes", 15.0))
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
    if usual:
        write_page(rows, machine())
    broken = [row for row in rows if row.holds is False]
    print(said(rows))
    if broken:
        print("broken:", table(broken), sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
