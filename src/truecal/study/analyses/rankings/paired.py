"""Two models on the same rows: how sure is their difference?

A store keeps metrics on resamples of the rows that are the same for all models (`Store.draws`). The standard error of a difference
is that of the difference of these values, in which what the models have in common cancels; p-values are Student's, corrected by
Holm (1979) for the number of pairs compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.study.store import polars
from truecal.types import Float64s

_WHO = ("model", "dataset", "severity", "seed")


@dataclass(frozen=True)
class Pair:
    """Metric of `a` minus that of `b` on the same rows; `adjusted_p` is corrected for all pairs compared with it."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float


class PairedDraws:
    """The resamples of a store, by model and condition."""

    def __init__(self, frame: Any, draws: Any) -> None:
        jobs = frame.select("job", *_WHO).unique("job")
        self._table = draws.join(jobs, on="job", how="inner")

    @classmethod
    def of(cls, source: Any) -> "PairedDraws | None":
        """Those of a store; None for a bare frame, and where nothing was resampled."""
        if not hasattr(source, "draws"):
            return None
        draws = source.draws()
        return None if draws.is_empty() else cls(source.frame(), draws)

    def values(
        self, metric: str, *, dataset: str, severity: float, recalibrator: str = "none", lens: str = "top-label"
    ) -> dict[str, Float64s]:
        """The metric of every model on every resample, mean over seeds."""
        pl = polars()
        part = self._table.filter(
            (pl.col("metric") == metric)
            & pl.col("lens").is_in([lens, ""])
            & (pl.col("dataset") == dataset)
            & (pl.col("severity") == severity)
            & (pl.col("recalibrator") == recalibrator)
        ).sort("model", "seed")
        differences: dict[str, list[NDArray[Any]]] = {}
        for model, values in part.select("model", "values").iter_rows():
            differences.setdefault(model, []).append(np.asarray(values, np.float64))
        return {model: np.mean(values, axis=0) for model, values in differences.items()}


def compare_pairs(values: dict[str, float], draws: dict[str, Float64s], *, level: float = 0.95) -> list[Pair]:
    """Every pair of models that have both a value and resamples, in the order of `values`."""
    from scipy.special import stdtr, stdtrit

    models = [model for model in values if model in draws and np.isfinite(values[model])]
    if len(models) < 2:
        return []
    value = np.array([values[model] for model in models])
    covariance = np.cov(np.array([draws[model] for model in models]))
    first, second = np.triu_indices(len(models), 1)
    difference = value[first] - value[second]
    square = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
    # What rounding leaves of two models that are alike
    tiny = 1e-12 * (covariance[first, first] + covariance[second, second])
    error = np.sqrt(np.where(square > tiny, square, 0.0))
    free = len(next(iter(draws.values()))) - 1
    reach = float(stdtrit(free, (1 + level) / 2)) * error
    ratio = np.abs(difference) / np.where(error > 0, error, 1.0)
    p = np.where(error > 0, 2 * stdtr(free, -ratio), np.where(difference == 0, 1.0, 0.0))
    columns = (difference, difference - reach, difference + reach, p, tc.uncertainty.holm(p))
    rows = zip(first, second, *(column.tolist() for column in columns), strict=True)
    return [Pair(models[a], models[b], *numbers) for a, b, *numbers in rows]


def groups(models: Sequence[str], pairs: Sequence[Pair], *, level: float = 0.95) -> list[tuple[str, ...]]:
    """Runs of the ranking within which no two models can be told apart, as long as possible; best first.

    >>> apart = Pair("a", "c", -0.2, -0.3, -0.1, 0.001, 0.003)
    >>> alike = [Pair(a, b, -0.1, -0.3, 0.1, 0.3, 0.6) for a, b in ("ab", "bc")]
    >>> groups(["a", "b", "c"], [apart, *alike])
    [('a', 'b'), ('b', 'c')]
    """
    apart = {frozenset((pair.a, pair.b)) for pair in pairs if pair.adjusted_p <= 1 - level}
    together: list[tuple[str, ...]] = []
    end = 0
    for start in range(len(models)):
        stop = max(end, start + 1)
        while stop < len(models) and all(frozenset((models[stop], other)) not in apart for other in models[start:stop]):
            stop += 1
        if stop > end:
            together.append(tuple(models[start:stop]))
            end = stop
    return together
