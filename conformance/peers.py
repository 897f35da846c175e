"""Which public tools agree with which definitions: `python -m conformance.peers` runs those that are installed and prints a table.

A tool is asked for its own number with its own options; what it cannot be asked (weights, other norms) is left out of its count.
"""

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from conformance.run import Case, cases

Tool = Callable[[Case, np.ndarray, np.ndarray], float | None]  # None: the tool has no such number
NORMS = {1: "l1", 2: "l2", "inf": "max"}


def _binned(case: Case, scheme: str, norms: tuple[Any, ...] = (1,)) -> int | None:
    """The number of bins of a plain binned case of that scheme and norm."""
    definition = case["definition"]
    plain = definition["name"] == "binned" and definition["scheme"] == scheme and definition["norm"] in norms
    return definition["bins"] if plain else None


def torchmetrics(case: Case, c: np.ndarray, y: np.ndarray) -> float | None:
    torch = import_module("torch")
    functional = import_module("torchmetrics.functional.classification")
    bins = _binned(case, "width", (1, 2, "inf"))
    if bins is None:
        return None
    scores = torch.tensor(c.astype(np.float32) if c.dtype == np.float16 else c)
    norm = NORMS[case["definition"]["norm"]]
    return float(functional.binary_calibration_error(scores, torch.tensor(y), n_bins=bins, norm=norm))


def netcal(case: Case, c: np.ndarray, y: np.ndarray) -> float | None:
    metrics = import_module("netcal.metrics")
    bins = _binned(case, "width", (1, "inf"))
    kind = metrics.ECE if case["definition"].get("norm") == 1 else metrics.MCE
    equal_mass = _binned(case, "mass")
    if equal_mass is not None:
        return float(metrics.ECE(equal_mass, equal_intervals=False).measure(c.astype(np.float64), y))
    return None if bins is None else float(kind(bins).measure(c.astype(np.float64), y))


def scikit_learn(case: Case, c: np.ndarray, y: np.ndarray) -> float | None:
    """calibration_curve gives no counts: its largest gap is compared."""
    curve = import_module("sklearn.calibration").calibration_curve
    for scheme, strategy in (("width", "uniform"), ("mass", "quantile")):
        bins = _binned(case, scheme, ("inf",))
        if bins is not None:
            rates, scores = curve(y, c, n_bins=bins, strategy=strategy)
            return float(np.abs(rates - scores).max())
    return None


def uncertainty_calibration(case: Case, c: np.ndarray, y: np.ndarray) -> float | None:
    package = import_module("calibration")
    width, mass = _binned(case, "width"), _binned(case, "mass")
    if width is not None:
        return float(package.get_ece(c.astype(np.float64), y, num_bins=width))
    return None if mass is None else float(package.get_ece_em(c.astype(np.float64), y, num_bins=mass))


def relplot(case: Case, c: np.ndarray, y: np.ndarray) -> float | None:
    metrics = import_module("relplot.metrics")
    if case["definition"]["name"] == "smooth":
        return float(metrics.smECE(c, y))
    bins = _binned(case, "width")
    return None if bins is None else float(metrics.binnedECE(c, y, nbins=bins))


TOOLS: dict[str, Tool] = {
    "torchmetrics": torchmetrics,
    "netcal": netcal,
    "scikit-learn": scikit_learn,
    "uncertainty-calibration": uncertainty_calibration,
    "relplot": relplot,
}
COLUMNS = ("[a, b)", "(a, b]", "equal mass, ties kept", "equal mass, ties split", "smooth")


def column(definition: dict[str, Any]) -> str:
    """The column of the table that a definition belongs to."""
    if definition["name"] == "smooth":
        return "smooth"
    if definition["scheme"] == "width":
        return "[a, b)" if definition["closed"] == "left" else "(a, b]"
    return f"equal mass, ties {'kept' if definition['ties'] == 'keep' else 'split'}"


def agreement(tool: Tool) -> dict[str, tuple[int, int, int]]:
    """Cases that agree, that raise, and all, by column. Tools in single precision are given 1e-5, smooth errors 3e-3."""
    counts = {name: [0, 0, 0] for name in COLUMNS}
    for case, data in cases():
        if (
            data["kind"] != "scores"
            or "lens" in case
            or "weights" in data
            or case["definition"]["name"] not in ("binned", "smooth")
        ):
            continue
        tally = counts[column(case["definition"])]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                value = tool(case, np.array(data["scores"], data["precision"]), np.array(data["outcomes"]))
        except ImportError:
            raise
        except Exception:  # noqa: BLE001 (whatever the tool raises is its answer)
            tally[1] += 1
            tally[2] += 1
            continue
        if value is not None:
            tolerance = 3e-3 if case["definition"]["name"] == "smooth" else 1e-5
            tally[0] += abs(value - float(case["expected"]["value"])) <= tolerance
            tally[2] += 1
    return {name: (a, b, c) for name, (a, b, c) in counts.items()}


def table() -> list[str]:
    """Markdown: one row per tool, "agreeing / asked (errors)" per definition."""
    lines = ["| tool | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
    for name, tool in TOOLS.items():
        try:
            agreements, release = agreement(tool), version(name)
        except (ImportError, PackageNotFoundError):
            lines.append(f"| {name} (not installed) |" + " |" * len(COLUMNS))
            continue
        cells = [f"{a} / {c}" + (f" ({b} errors)" if b else "") if c else "" for a, b, c in agreements.values()]
        lines.append(f"| {name} {release} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    if "--json" in sys.argv:
        print(json.dumps({name: agreement(tool) for name, tool in TOOLS.items()}))
    else:
        print("\n".join(table()))
