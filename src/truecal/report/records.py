"""Results as plain records: what `--json` prints and the page embeds, so that both show the same numbers.

A record holds only dicts, lists, strings, finite numbers, booleans and None, and therefore is valid JSON.
"""

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np

from truecal.estimate import Estimate
from truecal.estimate.bins import Bins

SCHEMA_VERSION = 1


def document(kind: str, **content: Any) -> dict[str, Any]:
    """A record with its name and version in front: {"schema": "truecal.<kind>", "version": 1, ...}."""
    return {
        "schema": f"truecal.{kind}",
        "version": SCHEMA_VERSION,
        **{key: plain(value) for key, value in content.items()},
    }


def plain(value: Any) -> Any:
    """A value as JSON can hold it: arrays become lists, infinities the words "inf" and "-inf", NaN null."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None if value != value else ("inf" if value > 0 else "-inf")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def estimator_record(estimator: object) -> dict[str, Any]:
    """Name and options of an estimator.

    >>> import truecal as tc
    >>> estimator_record(tc.SweepECE(norm=1))
    {'name': 'SweepECE', 'options': {'scheme': 'mass', 'norm': 1, 'ties': 'keep'}}
    """
    options = {f.name: plain(getattr(estimator, f.name)) for f in fields(estimator)} if is_dataclass(estimator) else {}
    return {"name": type(estimator).__name__, "options": options}


def bins_record(bins: Bins, level: float) -> list[dict[str, float]]:
    """The filled bins of a single dataset, with the interval of each outcome rate."""
    low, high = bins.interval(level)
    columns = {
        "count": bins.counts,
        "mean_score": bins.mean_score,
        "mean_outcome": bins.mean_outcome,
        "low": low,
        "high": high,
    }
    return [dict(zip(columns, map(float, row), strict=True)) for row in zip(*columns.values(), strict=True)]


def estimate_record(estimate: Estimate, *, level: float = 0.95) -> dict[str, Any]:
    """Everything an Estimate of a single dataset says."""
    interval = estimate.interval
    record = {
        "metric": estimate.metric,
        "value": float(estimate.value),
        "norm": plain(float(estimate.norm)),
        "power": float(estimate.power),
        "interval": None
        if interval is None
        else {
            "low": float(interval.low),
            "high": float(interval.high),
            "level": interval.level,
            "method": interval.method,
        },
        "p_value": None if estimate.p_value is None else float(estimate.p_value),
        "n": estimate.n,
        "effective_n": float(np.max(estimate.effective_n)),
        "direction": float(estimate.direction),
        "estimator": estimator_record(estimate.estimator),
        "lens": estimate.lens,
        "bins": None if estimate.bins is None else bins_record(estimate.bins, level),
        "parts": plain(estimate.parts),
        "warnings": list(estimate.warnings),
    }
    if estimate.sketch_error is not None:
        record |= {"sketch_error": estimate.sketch_error, "sketch_bound": estimate.sketch_bound}
    return {key: plain(value) for key, value in record.items()}
