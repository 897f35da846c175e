"""Two models on the same rows: how sure is their difference?

A store keeps metrics on resamples of the rows that are the same for all models (`Store.draws`). The standard error of a difference
is that of the difference of these values, in which what the models have in common cancels; p-values are Student's, corrected by
Holm (1979) for the number of pairs compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.special import positive
from truecal.study.analyses.points import (
    Analysed,
    by_condition,
    correlation_bounds,
    few_models,
    gathered,
    lens_words,
    numbers,
    points,
    require_name,
    results,
    where,
)
from truecal.study.store import pl
from truecal.types import Float64s

if TYPE_CHECKING:
    import polars


# ----------------------------------------------------------------------------------------------------
# Two models on the same rows: how sure is their difference?

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
    ratio = np.abs(difference) / positive(error)
    p = np.where(error > 0, 2 * stdtr(free, -ratio), np.where(difference == 0, 1.0, 0.0))
    columns = (difference, difference - reach, difference + reach, p, tc.inference.holm(p))
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


# ----------------------------------------------------------------------------------------------------
# Do two estimators rank the models alike? Kendall's tau between them, and which pairs of models flip beyond doubt


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
        wanted = {name for name in (metric_a, metric_b) if name is not None}
        known = set(self._points["name"].unique())
        if wanted - known:
            raise InputError(f"{min(wanted - known)!r} was not ranked; ranked were {', '.join(sorted(known))}")
        rows: list[dict[str, Any]] = []
        for condition, part in by_condition(self._points):
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
    lenses = lens_words(lens)
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
    for condition, part in by_condition(values):
        ranks = _Ranks.of(part)
        if ranks.left_out:
            remarks.append((f"left out for want of some metric: {', '.join(ranks.left_out)}", where(condition)))
        if len(ranks.names) < 2 or len(ranks.models) < 2:
            remarks.append(("fewer than two models or metrics leave nothing to compare", where(condition)))
            continue
        remarks += few_models(len(ranks.models), where(condition))
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
        held = part.filter(pl.col("model").is_in(models)).sort("name", "model")
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

    def agreements(self, condition: dict[str, Any], level: float) -> list[dict[str, Any]]:
        s, known = self.signs(), self.known()
        sized = np.abs(s).sum(axis=1)
        scale = np.sqrt(np.outer(sized, sized))
        tau = np.where(scale > 0, s @ s.T / positive(scale), np.nan).clip(-1.0, 1.0)
        low, high = correlation_bounds(tau, len(self.models), "kendall", level)
        judged = np.asarray(np.isfinite(self.low + self.high).all(axis=1))
        rows = []
        for a, b in self.pairs():
            flip = s[a] * s[b] < 0
            rows.append(
                {
                    **condition,
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

    def flipped(self, a: int, b: int, condition: dict[str, Any]) -> list[dict[str, Any]]:
        s, known = self.signs(), self.known()
        i, j = self._model_pairs()
        rows = []
        for k in np.flatnonzero(s[a] * s[b] < 0):
            better, worse = (i[k], j[k]) if s[a, k] < 0 else (j[k], i[k])
            rows.append(
                {
                    **condition,
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


# ----------------------------------------------------------------------------------------------------
# Models of a store side by side: ranked by a metric, with what the intervals say about that ranking

Cell = tuple[float | None, float | None, float | None]  # value, low, high
_DEFAULT = ("rank-series-l2", "ece-mass-100-l1", "ece-width-15-l1", "error", "nll", "brier")
_SHOWN_PAIRS, _SHOWN = 4, 6
_NONE: Cell = (None, None, None)


@dataclass(frozen=True)
class Ranked:
    """A model on a dataset: the cell of every metric it has."""

    model: str
    dataset: str
    seeds: int
    values: dict[str, Cell]
    groups: tuple[int, ...] = ()  # numbers of the groups it belongs to: two models that share none are told apart


@dataclass(frozen=True)
class Ranking:
    """Models by dataset, best first within each; and what to know about them."""

    metrics: tuple[str, ...]
    rows: tuple[Ranked, ...]
    notes: tuple[str, ...]
    pairs: tuple[tuple[str, Pair], ...] = ()  # dataset, comparison of two models on the same rows

    def records(self) -> list[dict[str, Any]]:
        """The table as plain records, for JSON; what is not a finite number is None."""
        return [
            {
                "model": row.model,
                "dataset": row.dataset,
                "seeds": row.seeds,
                "groups": list(row.groups),
                **{name: dict(zip(("value", "low", "high"), cell, strict=True)) for name, cell in row.values.items()},
            }
            for row in self.rows
        ]


def rank(
    source: Any,
    *,
    metrics: Sequence[str] = (),
    datasets: Sequence[str] = (),
    severity: float = 0.0,
    recalibrator: str = "none",
    lens: str = "top-label",
    selection: str = "all",
) -> Ranking:
    """Rank models by the first metric, dataset by dataset. Scores of whole predictions are there under every lens.

    `source` is a store, or its frame. Values are averages over seeds; an interval is shown where there is one seed. From a store,
    every pair of models is compared on the same rows (see `paired`), with Holm's correction over the pairs of a dataset, and
    models that cannot be told apart form groups. From a frame alone, two neighbours are told apart only if their intervals are
    apart, in the same order, with every seed they share.
    """
    frame = source.frame() if hasattr(source, "draws") else source
    results(frame)  # refuses what is no frame of a store
    draws = PairedDraws.of(source) if selection == "all" else None
    part = _part(
        frame, datasets, {"severity": float(severity), "recalibrator": recalibrator, "selection": selection}, lens
    )
    there = part["metric"].unique().to_list()
    for name in metrics:
        if name not in there:
            raise InputError(f"there is no metric {name!r} among the results; there are {_listed(sorted(there))}")
    names = tuple(metrics) or tuple(name for name in _DEFAULT if name in there) or (sorted(there)[0],)
    rows: list[Ranked] = []
    notes: list[str] = []
    pairs: list[tuple[str, Pair]] = []
    for dataset in part["dataset"].unique(maintain_order=True).to_list():
        of_dataset = part.filter((part["dataset"] == dataset) & part["metric"].is_in(names))
        ranked = _ranked(of_dataset, names, dataset)
        drawn = {}
        if draws is not None:
            at = {"dataset": dataset, "severity": severity, "recalibrator": recalibrator, "lens": lens}
            drawn = draws.values(names[0], **at)
        if len(drawn) < 2:
            notes += _unsupported(of_dataset, names[0], dataset, [row.model for row in ranked])
        else:
            values = {row.model: value for row in ranked if (value := row.values.get(names[0], _NONE)[0]) is not None}
            compared = compare_pairs(values, drawn)
            pairs += [(dataset, pair) for pair in compared]
            ranked, text = _grouped(ranked, compared, names[0], dataset)
            notes += text
        rows += ranked
    return Ranking(names, tuple(rows), tuple(notes), tuple(pairs))


def _part(frame: Any, datasets: Sequence[str], choice: dict[str, object], lens: str) -> Any:
    """The rows of a choice; what is not there is refused by name."""
    if not len(frame):
        raise InputError("no file of this study is evaluated yet")
    wanted: list[tuple[str, tuple[object, ...]]] = [(name, (value,)) for name, value in choice.items()]
    wanted += [("lens", (lens, ""))] + ([("dataset", tuple(datasets))] if len(datasets) else [])
    part = frame
    for column, values in wanted:
        there = sorted(part[column].unique().to_list())
        for value in values:
            if column != "severity":
                require_name(value, column)
            if value not in there and not (column == "lens" and value == ""):
                raise InputError(f"there is no {column} {value!r} among the results; there are {_listed(there)}")
        part = part.filter(part[column].is_in(values))
    return part


def _grouped(ranked: list[Ranked], pairs: list[Pair], metric: str, dataset: str) -> tuple[list[Ranked], list[str]]:
    """The ranking with its groups, and what they say."""
    compared = {model for pair in pairs for model in (pair.a, pair.b)}
    models = [row.model for row in ranked if row.model in compared]
    grouped = groups(models, pairs)
    place = {model: tuple(i for i, group in enumerate(grouped, 1) if model in group) for model in models}
    together = [group for group in grouped if len(group) > 1]
    apart = sum(pair.adjusted_p <= 0.05 for pair in pairs)
    head = (
        f"{apart} of {len(pairs)} pairs of models differ by {metric} on {dataset} (paired on the same rows, Holm, 5 %)"
    )
    shown = "; ".join(", ".join(group[:_SHOWN]) + (", ..." if len(group) > _SHOWN else "") for group in together[:3])
    more = f"; and {len(together) - 3} more groups" if len(together) > 3 else ""
    tail = f"; cannot be told apart: {shown}{more}" if together else ""
    return [replace(row, groups=place.get(row.model, ())) for row in ranked], [head + tail]


def _listed(names: Sequence[object], most: int = 12) -> str:
    words = [str(name) for name in names if name != ""]
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def _ranked(part: "polars.DataFrame", names: tuple[str, ...], dataset: str) -> list[Ranked]:
    rows = []
    for (model,), of_model in part.partition_by("model", as_dict=True, maintain_order=True).items():
        cells: dict[str, Cell] = {}
        for (name,), values in of_model.partition_by("metric", as_dict=True).items():
            alone = len(values) == 1
            low, high = (values["low"][0], values["high"][0]) if alone else (None, None)
            cells[name] = (_finite(values["value"].mean()), _finite(low), _finite(high))
        ordered = {name: cells[name] for name in names if name in cells}
        rows.append(Ranked(model, dataset, of_model["seed"].n_unique(), ordered))

    def key(row: Ranked) -> tuple[bool, float]:
        value = row.values.get(names[0], (None,))[0]
        return value is None, value or 0.0

    return sorted(rows, key=key)


def _finite(value: Any) -> float | None:
    return None if value is None or value != value or value in (float("inf"), float("-inf")) else float(value)


def _unsupported(part: "polars.DataFrame", metric: str, dataset: str, models: Sequence[str]) -> list[str]:
    """What the intervals say about neighbours in the ranking."""
    spans: dict[str, dict[int, tuple[float, float]]] = {}
    for row in part.filter(part["metric"] == metric).iter_rows(named=True):
        if row["low"] is not None:
            spans.setdefault(row["model"], {})[row["seed"]] = (row["low"], row["high"])
    if not spans:
        return [
            f"{metric} has no intervals on {dataset}, so the ranking by it is not tested; sort by one that has, such as "
            "rank-series-l2 under top-label"
        ]
    pairs = [(a, b) for a, b in pairwise(models) if a in spans and b in spans]
    close = [(a, b) for a, b in pairs if not _apart(spans[a], spans[b])]
    if not close:
        return []
    shown = "; ".join(f"{a} and {b}" for a, b in close[:_SHOWN_PAIRS]) + ("; ..." if len(close) > _SHOWN_PAIRS else "")
    return [
        f"the ranking by {metric} on {dataset} is not supported for {len(close)} of {len(pairs)} neighbours, whose intervals "
        f"overlap: {shown}"
    ]


def _apart(better: dict[int, tuple[float, float]], worse: dict[int, tuple[float, float]]) -> bool:
    """Whether the better one's interval ends below the other's with every seed that both have."""
    shared = better.keys() & worse.keys()
    return bool(shared) and all(better[seed][1] < worse[seed][0] for seed in shared)
