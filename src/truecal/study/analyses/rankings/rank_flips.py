"""Do two estimators rank the models alike? Kendall's tau between them, and which pairs of models flip beyond doubt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.errors import InputError
from truecal.study.analyses.correlation import correlation_bounds, few_models
from truecal.study.analyses.points import CONDITION, Analysed, gathered, named, numbers, points, results
from truecal.study.store import polars
from truecal.types import Float64s


@dataclass(frozen=True, eq=False)
class RankAgreement(Analysed):
    """Agreement of every pair of metrics in ranking the models, under every condition.

    `frame()` has one row per condition and pair of metrics. Columns: dataset, severity, metric_a, metric_b, models, tau, low,
    high, pairs, flips, supported_flips. tau is Kendall's tau-b, with the analytic interval of the `correlation` file beside. A
    flip is a pair of models that the two metrics order in opposite ways (ties are no flips); it is supported if under both metrics
    the intervals of the two do not overlap, and supported_flips is null where a metric has no intervals.
    """

    _points: Any

    def flips(self, metric_a: str | None = None, metric_b: str | None = None) -> Any:
        """The pairs of models that flip, for the metrics named (default: all pairs of metrics).

        Columns: dataset, severity, metric_a, metric_b, better (by a), worse, gap_a, gap_b (value of `worse` minus `better`: the
        first is positive, the second negative), supported_a, supported_b, supported.
        """
        pl = polars()
        wanted = {name for name in (metric_a, metric_b) if name is not None}
        known = set(self._points["name"].unique())
        if wanted - known:
            raise InputError(f"{min(wanted - known)!r} was not ranked; ranked were {', '.join(sorted(known))}")
        rows: list[dict[str, Any]] = []
        for condition, part in self._points.partition_by(list(CONDITION), as_dict=True, maintain_order=True).items():
            ranks = _Ranks.of(part)
            for a, b in ranks.pairs():
                if wanted <= {ranks.names[a], ranks.names[b]}:
                    rows += ranks.flipped(a, b, condition)
        text, yes = dict.fromkeys(("metric_a", "metric_b", "better", "worse"), pl.String), pl.Boolean
        schema = {"dataset": pl.String, "severity": pl.Float64, **text, "gap_a": pl.Float64, "gap_b": pl.Float64}
        return pl.DataFrame(rows, schema={**schema, "supported_a": yes, "supported_b": yes, "supported": yes})


def rank_agreement(
    frame: Any,
    *,
    metrics: Sequence[str] | None = None,
    lens: str | Sequence[str] = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
    level: float = 0.95,
) -> RankAgreement:
    """Kendall's tau between estimators over models; default: all estimators of the lens.

    With several lenses, a metric is named "metric [lens]".
    All pairs of metrics come from one product of the matrix of signs of differences, so 40 metrics cost little more than two.
    """
    options.level(level)
    pl = polars()
    lenses = [lens] if isinstance(lens, str) else list(lens)
    if metrics is None:
        metrics = results(frame).filter(pl.col("lens").is_in(lenses))["metric"].unique().sort().to_list()
    if isinstance(metrics, str) or len(set(metrics)) * len(set(lenses)) < 2:
        raise InputError(f"agreement needs at least two metrics (or lenses), not {metrics!r} of the lens {lens!r}")
    values, notes = points(frame, metrics, lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset)
    label = pl.col("metric")
    if len(lenses) > 1:
        bracket = pl.format("{} [{}]", pl.col("metric"), pl.col("lens"))
        label = pl.when(pl.col("lens") == "").then(pl.col("metric")).otherwise(bracket)
    values = values.with_columns(label.alias("name"))
    rows: list[dict[str, Any]] = []
    remarks = []
    for condition, part in values.partition_by(list(CONDITION), as_dict=True, maintain_order=True).items():
        ranks = _Ranks.of(part)
        if ranks.left_out:
            remarks.append((f"left out for want of some metric: {', '.join(ranks.left_out)}", named(*condition)))
        if len(ranks.names) < 2 or len(ranks.models) < 2:
            remarks.append(("fewer than two models or metrics leave nothing to compare", named(*condition)))
            continue
        remarks += few_models(len(ranks.models), named(*condition))
        rows += ranks.agreements(condition, level)
    notes += gathered(remarks)
    if not rows:
        raise InputError("no condition has two models with all of the metrics")
    table = pl.DataFrame(rows, schema_overrides={"supported_flips": pl.Int64})
    bare = values.filter(pl.col("low").is_null() | pl.col("high").is_null())["name"].unique().sort().to_list()
    if bare:
        notes.append(f"there are no intervals of {', '.join(bare)}: which flips with them are chance is unknown")
    judged = table.filter(pl.col("supported_flips").is_not_null())
    flips, supported = int(judged["flips"].sum()), int(judged["supported_flips"].sum())
    if flips and not supported:
        notes.append(f"none of the {flips} flips of two models is supported by the intervals: they are within chance")
    elif flips:
        notes.append(f"{supported} of {flips} flips of two models are supported by the intervals of both metrics")
    return RankAgreement(tuple(notes), table, values)


@dataclass(frozen=True, eq=False)
class _Ranks:
    """The values of every metric for the models that have all of them, under one condition."""

    names: list[str]
    models: list[str]
    left_out: list[str]
    value: Float64s  # (metrics, models)
    low: Float64s
    high: Float64s

    @classmethod
    def of(cls, part: Any) -> "_Ranks":
        names = part["name"].unique(maintain_order=True).to_list()
        everyone = part["model"].unique().sort().to_list()
        counted = dict(part.group_by("model").len().iter_rows())
        models = [model for model in everyone if counted[model] == len(names)]
        held = part.filter(polars().col("model").is_in(models)).sort("name", "model")
        names = sorted(names)
        grids = [column.reshape(len(names), len(models)) for column in numbers(held, "value", "low", "high")]
        return cls(names, models, [m for m in everyone if counted[m] < len(names)], *grids)

    def pairs(self) -> list[tuple[int, int]]:
        return [(a, b) for a in range(len(self.names)) for b in range(a + 1, len(self.names))]

    def _model_pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first, second = np.triu_indices(len(self.models), 1)
        return first, second

    def signs(self) -> Float64s:
        """Sign of the difference of every pair of models under every metric, (metrics, pairs)."""
        i, j = self._model_pairs()
        return np.sign(self.value[:, i] - self.value[:, j])

    def known(self) -> NDArray[np.bool_]:
        """Whether the intervals of the two models do not overlap (False where there is none)."""
        i, j = self._model_pairs()
        return (self.low[:, i] > self.high[:, j]) | (self.high[:, i] < self.low[:, j])

    def agreements(self, condition: tuple[Any, ...], level: float) -> list[dict[str, Any]]:
        s, known = self.signs(), self.known()
        sized = np.abs(s).sum(axis=1)
        scale = np.sqrt(np.outer(sized, sized))
        tau = np.where(scale > 0, s @ s.T / np.where(scale > 0, scale, 1.0), np.nan).clip(-1.0, 1.0)
        low, high = correlation_bounds(tau, len(self.models), "kendall", level)
        judged = np.asarray(np.isfinite(self.low + self.high).all(axis=1))
        rows = []
        for a, b in self.pairs():
            flip = s[a] * s[b] < 0
            rows.append(
                {
                    **dict(zip(CONDITION, condition, strict=True)),
                    "metric_a": self.names[a],
                    "metric_b": self.names[b],
                    "models": len(self.models),
                    "tau": float(tau[a, b]),
                    "low": float(low[a, b]),
                    "high": float(high[a, b]),
                    "pairs": s.shape[1],
                    "flips": int(flip.sum()),
                    "supported_flips": int((flip & known[a] & known[b]).sum()) if judged[a] and judged[b] else None,
                }
            )
        return rows

    def flipped(self, a: int, b: int, condition: tuple[Any, ...]) -> list[dict[str, Any]]:
        s, known = self.signs(), self.known()
        i, j = self._model_pairs()
        rows = []
        for k in np.flatnonzero(s[a] * s[b] < 0):
            better, worse = (i[k], j[k]) if s[a, k] < 0 else (j[k], i[k])
            rows.append(
                {
                    **dict(zip(CONDITION, condition, strict=True)),
                    "metric_a": self.names[a],
                    "metric_b": self.names[b],
                    "better": self.models[better],
                    "worse": self.models[worse],
                    "gap_a": float(self.value[a, worse] - self.value[a, better]),
                    "gap_b": float(self.value[b, worse] - self.value[b, better]),
                    "supported_a": bool(known[a, k]),
                    "supported_b": bool(known[b, k]),
                    "supported": bool(known[a, k] and known[b, k]),
                }
            )
        return rows
