"""Rankings of models: paired comparisons on the same rows, agreement of estimators, the effect of recalibration.

A store keeps metrics on resamples of the rows that are the same for all models (`Store.draws`). The standard error of a difference
is that of the difference of these values, in which what the models have in common cancels; p-values are Student's, corrected by
Holm (1979) for the number of pairs compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.special import positive
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, METRIC, Analysis, numbers, where
from truecal.study.store import pl
from truecal.types import Float64s

ALPHA = 0.05
_DEFAULT = ("rank-series-l2", "ece-mass-100-l1", "ece-width-15-l1", "error", "nll", "brier")
_LISTED_PAIRS, _LISTED_MODELS = 4, 6  # in notes


@dataclass(frozen=True)
class PairedDifference:
    """Metric of `a` minus that of `b` on the same rows; `adjusted_p` is corrected for all pairs compared with it."""

    a: str
    b: str
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p: float


def read_draws(source: Any) -> Any:
    """Read the resamples of a store with model, condition and seed of each; None for a frame and for a store without them."""
    if not hasattr(source, "draws"):
        return None
    draws = source.draws()
    jobs = source.frame().select("job", "model", *CONDITION, "seed").unique("job")
    return None if draws.is_empty() else draws.join(jobs, on="job", how="inner").sort("model", "seed")


def values_drawn(draws: Any, lens: str, **choice: Any) -> dict[str, Float64s]:
    """Return a metric of every model on every resample, shape (resamples,), as mean over seeds."""
    if draws is None:
        return {}
    by_seed: dict[str, list[NDArray[Any]]] = {}
    part = draws.filter(pl.col("lens").is_in([lens, ""]), **choice)
    for model, values in part.select("model", "values").iter_rows():
        by_seed.setdefault(model, []).append(np.asarray(values, np.float64))
    return {model: np.mean(values, axis=0) for model, values in by_seed.items()}


def compare_pairs(
    values: dict[str, float], draws: dict[str, Float64s], *, level: float = 0.95
) -> list[PairedDifference]:
    """Test the difference of every pair of models that have a value and resamples, in the order of `values`.

    Student's t with the standard error of paired resamples and one degree of freedom less than there are resamples; p-values
    are adjusted by Holm.
    """
    from scipy.special import stdtrit

    models = [model for model in values if model in draws and np.isfinite(values[model])]
    if len(models) < 2:
        return []
    value = np.array([values[model] for model in models])
    covariance = np.cov(np.array([draws[model] for model in models]))
    first, second = np.triu_indices(len(models), 1)
    difference = value[first] - value[second]
    both = covariance[first, first] + covariance[second, second]
    variance = both - 2 * covariance[first, second]
    error = np.sqrt(np.where(variance > 1e-12 * both, variance, 0.0))  # equal models differ by rounding
    free = len(next(iter(draws.values()))) - 1
    half_width = float(stdtrit(free, (1 + level) / 2)) * error
    p = _student_p(difference, error, free)
    columns = (difference, difference - half_width, difference + half_width, p, tc.inference.holm(p))
    rows = zip(first, second, *(column.tolist() for column in columns), strict=True)
    return [PairedDifference(models[a], models[b], *row) for a, b, *row in rows]


def _student_p(difference: Float64s, error: Float64s, free: int) -> Float64s:
    """Compute two-sided p-values of Student's t; for a standard error of 0, 1 if the difference is 0 and else 0."""
    from scipy.special import stdtr

    p = 2 * stdtr(free, -np.abs(difference) / positive(error))
    return np.where(error > 0, p, np.where(difference == 0, 1.0, 0.0))


def groups(models: Sequence[str], pairs: Sequence[PairedDifference], *, level: float = 0.95) -> list[tuple[str, ...]]:
    """Return the longest runs of the ranking within which no two models differ significantly, best first.

    >>> apart = PairedDifference("a", "c", -0.2, -0.3, -0.1, 0.001, 0.003)
    >>> close = [PairedDifference(a, b, -0.1, -0.3, 0.1, 0.3, 0.6) for a, b in ("ab", "bc")]
    >>> groups(["a", "b", "c"], [apart, *close])
    [('a', 'b'), ('b', 'c')]
    """
    apart = {frozenset((pair.a, pair.b)) for pair in pairs if pair.adjusted_p <= 1 - level}
    runs: list[tuple[str, ...]] = []
    end = 0
    for start in range(len(models)):
        stop = max(end, start + 1)
        while stop < len(models) and all(frozenset((models[stop], other)) not in apart for other in models[start:stop]):
            stop += 1
        if stop > end:
            runs.append(tuple(models[start:stop]))
            end = stop
    return runs


# ----------------------------------------------------------------------------------------------------
# Whether two estimators rank the models in the same order


@dataclass(frozen=True, eq=False)
class RankAgreement(Analysis):
    """Hold the agreement of every pair of metrics in ranking the models, under every condition.

    `frame()` has one row per condition and pair of metrics. Columns: dataset, severity, metric_a, metric_b, models, tau, low,
    high, pairs, flips, supported_flips. tau is Kendall's tau-b with an analytic interval. A flip is a pair of models that the two
    metrics order in opposite ways (ties are no flips); it is supported if under both metrics the intervals of the two do not
    overlap, and supported_flips is null where a metric has no intervals.

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.

    See Also
    --------
    rank_agreement : Return this result.
    """

    _points: Any

    def flips(self, metric_a: str | None = None, metric_b: str | None = None) -> Any:
        """List the pairs of models that flip.

        Parameters
        ----------
        metric_a : str, default None
            Metric that a listed pair must include; None: any.
        metric_b : str, default None
            Second metric that a listed pair must include; None: any.

        Returns
        -------
        polars.DataFrame
            Columns dataset, severity, metric_a, metric_b (in the order of their names), better (by a), worse,
            gap_a, gap_b (value of `worse` minus `better`: the first is positive, the second negative),
            supported_a, supported_b, supported.

        Raises
        ------
        InputError
            If a metric was not ranked.
        """
        names = {name for name in (metric_a, metric_b) if name is not None}
        ranked = set(self._points["name"].unique())
        if names - ranked:
            raise InputError(f"{min(names - ranked)!r} was not ranked; ranked were {', '.join(sorted(ranked))}")
        rows: list[dict[str, Any]] = []
        for condition, part in base.by_condition(self._points):
            orders = _Orders(part)
            for a, b in combinations(range(len(orders.names)), 2):
                if names <= {orders.names[a], orders.names[b]}:
                    rows += [{**condition, **row} for row in orders.flips(a, b)]
        texts = dict.fromkeys(("metric_a", "metric_b", "better", "worse"), pl.String)
        flags = dict.fromkeys(("supported_a", "supported_b", "supported"), pl.Boolean)
        schema = {"dataset": pl.String, "severity": pl.Float64, **texts, "gap_a": pl.Float64, "gap_b": pl.Float64}
        return pl.DataFrame(rows, schema=schema | flags)


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
    """Compute Kendall's tau between estimators over models, and the pairs of models that they order in opposite ways.

    Parameters
    ----------
    frame : data frame
        Results of a store (`store.frame()`), or any frame with its columns.
    metrics : sequence of str, default None
        Names of metrics; None: all of the lens.
    lens : str or sequence of str, default "top-label"
        What is judged. With several lenses, a metric is named "metric [lens]".
    selection : str, default "all"
        Which rows are judged.
    recalibrator : str, default "none"
        Recalibration method.
    dataset : str, default None
        One dataset; None: all.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    RankAgreement
        Agreement of every pair of metrics, and notes.

    Raises
    ------
    InputError
        If there are fewer than two metrics, or no condition has two models with all of them.

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "severity": 0.0, "family": None, "size": None}
    >>> numbers = {"error": [0.1, 0.2, 0.3], "nll": [0.4, 0.7, 1.3]}
    >>> rows = [
    ...     {"model": model, "metric": metric, "value": value, **same}
    ...     for metric, values in numbers.items()
    ...     for model, value in zip("abc", values)
    ... ]
    >>> agreement = tc.study.rank_agreement(pl.DataFrame(rows), metrics=["nll", "error"])
    >>> agreement.frame().select("metric_a", "metric_b", "tau", "flips").rows()
    [('error', 'nll', 1.0, 0)]
    """
    options.level(level)
    lenses = base.lens_words(lens)
    if metrics is None:
        metrics = base.read_results(frame).filter(pl.col("lens").is_in(lenses))["metric"].unique().sort().to_list()
    if isinstance(metrics, str) or len(set(metrics)) * len(set(lenses)) < 2:
        raise InputError(f"agreement needs at least two metrics (or lenses), not {metrics!r} of the lens {lens!r}")
    choice = {"lens": lens, "selection": selection, "recalibrator": recalibrator, "dataset": dataset}
    values, notes = base.points(frame, metrics, **choice)  # type: ignore[arg-type]
    name = pl.col("metric")
    if len(lenses) > 1:
        name = pl.when(pl.col("lens") == "").then(name).otherwise(pl.format("{} [{}]", name, pl.col("lens")))
    values = values.with_columns(name.alias("name"))
    rows: list[dict[str, Any]] = []
    remarks = []
    for condition, part in base.by_condition(values):
        orders = _Orders(part)
        if orders.incomplete:
            remarks.append(
                (f"models without all of the metrics are left out: {', '.join(orders.incomplete)}", where(condition))
            )
        if len(orders.names) < 2 or len(orders.models) < 2:
            remarks.append(("a comparison needs two models and two metrics", where(condition)))
            continue
        rows += [{**condition, **row} for row in orders.agreements(level)]
    notes += [*base.few_models(values), *base.gather(remarks)]
    if not rows:
        raise InputError("no condition has two models with all of the metrics")
    table = pl.DataFrame(rows, schema_overrides={"supported_flips": pl.Int64})
    bare = values.filter(pl.col("low").is_null() | pl.col("high").is_null())["name"].unique().sort().to_list()
    if bare:
        notes.append(f"there are no intervals of {', '.join(bare)}: which flips with them are chance is unknown")
    tested = table.filter(pl.col("supported_flips").is_not_null())
    flips, supported = int(tested["flips"].sum()), int(tested["supported_flips"].sum())
    if flips and not supported:
        notes.append(f"none of the {flips} flips of two models is supported by the intervals: they are within chance")
    elif flips:
        notes.append(f"{supported} of {flips} flips of two models are supported by the intervals of both metrics")
    return RankAgreement(tuple(notes), table, values)


class _Orders:
    """The order of every pair of models under every metric, for the models that have all metrics, under one condition."""

    def __init__(self, part: Any) -> None:
        self.names = part["name"].unique().sort().to_list()
        counts = dict(part.group_by("model").len().sort("model").iter_rows())
        self.models = [model for model, count in counts.items() if count == len(self.names)]
        self.incomplete = [model for model in counts if model not in self.models]
        complete = part.filter(pl.col("model").is_in(self.models)).sort("name", "model")
        shape = len(self.names), len(self.models)
        self.value, low, high = (column.reshape(shape) for column in numbers(complete, "value", "low", "high"))
        self.first, self.second = i, j = np.triu_indices(len(self.models), 1)
        self.signs = np.sign(self.value[:, i] - self.value[:, j])  # (metrics, pairs of models)
        self.apart = (low[:, i] > high[:, j]) | (high[:, i] < low[:, j])  # intervals do not overlap
        self.has_intervals = np.isfinite(low + high).all(axis=1)

    def agreements(self, level: float) -> list[dict[str, Any]]:
        """Tau and flips of every pair of metrics, from one product of the matrix of signs."""
        untied = np.abs(self.signs).sum(axis=1)
        scale = np.sqrt(np.outer(untied, untied))
        tau = np.where(scale > 0, self.signs @ self.signs.T / positive(scale), np.nan).clip(-1.0, 1.0)
        low, high = base.correlation_bounds(tau, len(self.models), "kendall", level)
        rows = []
        for a, b in combinations(range(len(self.names)), 2):
            flip = self.signs[a] * self.signs[b] < 0
            row = {"metric_a": self.names[a], "metric_b": self.names[b], "models": len(self.models)}
            row |= {"tau": float(tau[a, b]), "low": float(low[a, b]), "high": float(high[a, b])}
            row |= {"pairs": len(flip), "flips": int(flip.sum()), "supported_flips": None}
            if self.has_intervals[a] and self.has_intervals[b]:
                row["supported_flips"] = int((flip & self.apart[a] & self.apart[b]).sum())
            rows.append(row)
        return rows

    def flips(self, a: int, b: int) -> list[dict[str, Any]]:
        """Pairs of models that two metrics order in opposite ways."""
        rows = []
        for k in np.flatnonzero(self.signs[a] * self.signs[b] < 0):
            better, worse = self.first[k], self.second[k]
            if self.signs[a, k] > 0:
                better, worse = worse, better
            gaps = self.value[:, worse] - self.value[:, better]
            supported = self.apart[:, k]
            row = {"metric_a": self.names[a], "metric_b": self.names[b]}
            row |= {"better": self.models[better], "worse": self.models[worse]}
            row |= {"gap_a": float(gaps[a]), "gap_b": float(gaps[b])}
            row |= {"supported_a": bool(supported[a]), "supported_b": bool(supported[b])}
            rows.append({**row, "supported": bool(supported[a] and supported[b])})
        return rows


# ----------------------------------------------------------------------------------------------------
# Models of a store side by side: ranked by a metric, with what the intervals say about that ranking

Cell = tuple[float | None, float | None, float | None]  # value, low, high
_EMPTY: Cell = (None, None, None)


@dataclass(frozen=True)
class Ranked:
    """A model on a dataset: the cell of every metric it has."""

    model: str
    dataset: str
    seeds: int
    values: dict[str, Cell]
    groups: tuple[int, ...] = ()  # numbers of the groups it belongs to: two models that share none differ significantly


@dataclass(frozen=True)
class Ranking:
    """Hold models by dataset, best first within each, and notes on them.

    Attributes
    ----------
    metrics : tuple of str
        Names of the metrics; models are ranked by the first.
    rows : tuple of Ranked
        Models with their values.
    notes : tuple of str
        What to know before reading the ranking.
    pairs : tuple of (str, PairedDifference), default ()
        Dataset, and comparison of two models on the same rows.

    See Also
    --------
    rank : Return this result.
    """

    metrics: tuple[str, ...]
    rows: tuple[Ranked, ...]
    notes: tuple[str, ...]
    pairs: tuple[tuple[str, PairedDifference], ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """Return the table as plain records, for JSON.

        Returns
        -------
        list of dict
            One record per model and dataset; what is not a finite number is None.
        """
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
    """Rank models by the first metric, dataset by dataset.

    Parameters
    ----------
    source : Store or data frame
        A store, or its results.
    metrics : sequence of str, default ()
        Names of metrics; default the usual ones that are there.
    datasets : sequence of str, default ()
        Names of datasets; default all.
    severity : float, default 0.0
        Severity of the shift.
    recalibrator : str, default "none"
        Recalibration method.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.

    Returns
    -------
    Ranking
        Models by dataset, best first, and notes.

    Raises
    ------
    InputError
        If a name is not in the results.

    Notes
    -----
    Values are averages over seeds; an interval is given where there is one seed. From a store, every pair of models is compared on
    the same rows, with Holm's correction over the pairs of a dataset, and models that do not differ significantly form groups.
    From a frame alone, neighbours in the ranking are compared by their intervals.

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "severity": 0.0, "family": None, "size": None}
    >>> numbers = {"error": [0.1, 0.2, 0.3], "nll": [0.4, 0.7, 1.3]}
    >>> rows = [
    ...     {"model": model, "metric": metric, "value": value, **same}
    ...     for metric, values in numbers.items()
    ...     for model, value in zip("abc", values)
    ... ]
    >>> ranking = tc.study.rank(pl.DataFrame(rows), metrics=["nll", "error"], lens="")
    >>> [(row.model, row.values["nll"][0]) for row in ranking.rows]
    [('a', 0.4), ('b', 0.7), ('c', 1.3)]
    """
    frame = source.frame() if hasattr(source, "draws") else source
    draws = read_draws(source) if selection == "all" else None
    part = base.read_results(frame)
    if not part.height:
        raise InputError("no file of this study is evaluated yet")
    part = base.only(part, "severity", float(severity))
    for column, names_in in (("recalibrator", (recalibrator,)), ("selection", (selection,)), ("dataset", datasets)):
        part = base.only(part, column, *names_in) if names_in else part
    base.only(part, "lens", lens)
    part = part.filter(pl.col("lens").is_in([lens, ""]))
    present = part["metric"].unique().sort().to_list()
    names = tuple(metrics) or tuple(name for name in _DEFAULT if name in present) or (present[0],)
    part = base.only(part, "metric", *names)
    rows, notes, pairs = [], [], []
    for dataset in part["dataset"].unique(maintain_order=True).to_list():
        of_dataset = part.filter(part["dataset"] == dataset)
        ranked = _rank_models(of_dataset, names, dataset)
        condition = {"dataset": dataset, "severity": severity, "recalibrator": recalibrator}
        drawn = values_drawn(draws, lens, metric=names[0], **condition)
        if len(drawn) < 2:
            notes += _overlaps(ranked, names[0], dataset)
        else:
            values = {row.model: value for row in ranked if (value := row.values.get(names[0], _EMPTY)[0]) is not None}
            compared = compare_pairs(values, drawn)
            pairs += [(dataset, pair) for pair in compared]
            ranked, note = _group_models(ranked, compared, names[0], dataset)
            notes.append(note)
        rows += ranked
    return Ranking(names, tuple(rows), tuple(notes), tuple(pairs))


def _rank_models(part: Any, names: tuple[str, ...], dataset: str) -> list[Ranked]:
    """Average every metric over seeds and sort the models by the first; intervals are those of single seeds."""
    rows = []
    for (model,), of_model in part.partition_by("model", as_dict=True, maintain_order=True).items():
        cells: dict[str, Cell] = {}
        for (name,), values in of_model.partition_by("metric", as_dict=True).items():
            ends = (values["low"][0], values["high"][0]) if len(values) == 1 else (None, None)
            value, low, high = (
                float(x) if x is not None and np.isfinite(x) else None for x in (values["value"].mean(), *ends)
            )
            cells[name] = (value, low, high)
        ordered = {name: cells[name] for name in names if name in cells}
        rows.append(Ranked(model, dataset, of_model["seed"].n_unique(), ordered))

    def first_value(row: Ranked) -> float:
        value = row.values.get(names[0], _EMPTY)[0]
        return float("inf") if value is None else value

    return sorted(rows, key=first_value)


def _group_models(
    ranked: list[Ranked], pairs: list[PairedDifference], metric: str, dataset: str
) -> tuple[list[Ranked], str]:
    """Add to a ranking the groups of models that do not differ significantly, and write a note on them."""
    compared = {model for pair in pairs for model in (pair.a, pair.b)}
    runs = groups([row.model for row in ranked if row.model in compared], pairs)
    together = [run for run in runs if len(run) > 1]
    apart = sum(pair.adjusted_p <= ALPHA for pair in pairs)
    note = (
        f"{apart} of {len(pairs)} pairs of models differ by {metric} on {dataset} (paired on the same rows, Holm, 5 %)"
    )
    if together:
        limit = _LISTED_MODELS
        listed = "; ".join(", ".join(run[:limit]) + (", ..." if len(run) > limit else "") for run in together[:3])
        note += f"; cannot be told apart: {listed}"
        note += f"; and {len(together) - 3} more groups" if len(together) > 3 else ""
    members = {row.model: tuple(i for i, run in enumerate(runs, 1) if row.model in run) for row in ranked}
    return [replace(row, groups=members[row.model]) for row in ranked], note


def _overlaps(ranked: Sequence[Ranked], metric: str, dataset: str) -> list[str]:
    """Write a note on neighbours in the ranking whose intervals overlap, or on missing intervals."""
    cells = [(row.model, row.values.get(metric, _EMPTY)) for row in ranked]
    spans = [(model, low, high) for model, (_, low, high) in cells if low is not None and high is not None]
    if not spans:
        return [
            f"{metric} has no intervals on {dataset}, so the ranking by it is not tested; sort by one that has, such as "
            "rank-series-l2 under top-label"
        ]
    close = [f"{a} and {b}" for (a, _, high), (b, low, _) in pairwise(spans) if high >= low]
    if not close:
        return []
    listed = "; ".join(close[:_LISTED_PAIRS]) + ("; ..." if len(close) > _LISTED_PAIRS else "")
    return [
        f"the ranking by {metric} on {dataset} is not supported for {len(close)} of {len(spans) - 1} neighbours, whose "
        f"intervals overlap: {listed}"
    ]


# ----------------------------------------------------------------------------------------------------
# What recalibration does to every model: the same rows before and after


@dataclass(frozen=True, eq=False)
class RecalibrationEffect(Analysis):
    """Hold every model before and after recalibration.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, error,
    error_after, before, before_low, before_high, after, after_low, after_high, change (after - before; negative is better),
    supported (from a store: the change is not 0 by a paired comparison on the same rows, with Holm's correction over the models of
    a condition; from a frame: the two intervals do not overlap; null where that is unknown), n.

    Attributes
    ----------
    notes : tuple of str
        What to know before reading the table, such as values that are missing or numbers of rows that differ.
    metric : str
        Name of the metric.
    before : str
        Recalibration method compared with.
    after : str
        Recalibration method whose effect is measured.

    See Also
    --------
    effect_of_recalibration : Return this result.
    """

    metric: str
    before: str
    after: str

    def summary(self) -> Any:
        """Summarise the effect under every condition.

        Returns
        -------
        polars.DataFrame
            Models, mean before, mean after, how many improved, how many significantly, and Kendall's tau of the two rankings
            (1: recalibration left the ranking as it was).
        """
        rows = []
        for condition, part in base.by_condition(self._frame):
            better = part.filter(pl.col("change") < 0)
            supported = None if part["supported"].null_count() else int(better["supported"].sum())
            row = {**condition, "models": part.height, "before": part["before"].mean(), "after": part["after"].mean()}
            row |= {"improved": better.height, "improved_supported": supported, "n": part["n"].max()}
            before, after = numbers(part, "before", "after")
            tau, low, high = base.correlate(before, after)
            rows.append(row | {"tau": tau, "tau_low": low, "tau_high": high})
        return pl.DataFrame(rows, schema_overrides={"improved_supported": pl.Int64})


def effect_of_recalibration(
    source: Any,
    *,
    metric: str = METRIC,
    before: str = "none",
    after: str = "temperature",
    lens: str = "top-label",
    selection: str = "all",
    dataset: str | None = None,
) -> RecalibrationEffect:
    """Compare a metric of every model under two recalibrators, on the same rows.

    Parameters
    ----------
    source : Store or data frame
        A store, or its results.
    metric : str, default "rank-series-l2"
        Name of the metric.
    before : str, default "none"
        Recalibration method to compare with.
    after : str, default "temperature"
        Recalibration method.
    lens : str, default "top-label"
        What is judged.
    selection : str, default "all"
        Which rows are judged.
    dataset : str, default None
        One dataset; None: all.

    Returns
    -------
    RecalibrationEffect
        Every model before and after, and notes.

    Raises
    ------
    InputError
        If a name is not in the results, or no model has the metric with both recalibrators.

    Notes
    -----
    A store holds the numbers of rows that no recalibrator was fitted on. Where numbers of rows differ before and after, a note says
    so, because then the difference is not that of recalibration alone.

    References
    ----------
    Minderer et al. (2021), Figure 2, https://arxiv.org/abs/2106.07998

    Examples
    --------
    >>> import polars as pl
    >>> import truecal as tc
    >>> same = {"seed": 0, "recalibrator": "none", "lens": "", "selection": "all", "low": None, "high": None, "n": 500}
    >>> same |= {"dataset": "digits", "severity": 0.0, "family": None, "size": None}
    >>> numbers = {("error", "none"): 0.1, ("error", "temperature"): 0.1, ("nll", "none"): 0.5, ("nll", "temperature"): 0.4}
    >>> rows = [
    ...     {**same, "model": "a", "metric": metric, "recalibrator": recalibrator, "value": value}
    ...     for (metric, recalibrator), value in numbers.items()
    ... ]
    >>> effect = tc.study.effect_of_recalibration(pl.DataFrame(rows), metric="nll")
    >>> effect.frame().select("model", "before", "after", pl.col("change").round(3)).rows()
    [('a', 0.5, 0.4, -0.1)]
    """
    frame = source.frame() if hasattr(source, "draws") else source
    choice: dict[str, Any] = {"lens": lens, "selection": selection, "dataset": dataset}
    first, notes = base.with_error(frame, [metric], recalibrator=before, **choice)
    second, more = base.with_error(frame, [metric], recalibrator=after, **choice)
    keys = ["metric", "lens", *CONDITION, "model"]
    names = {"value": "after", "low": "after_low", "high": "after_high", "error": "error_after", "n": "n_after"}
    both = first.join(second.rename(names).select(*keys, *names.values()), on=keys, how="inner")
    if both.is_empty():
        raise InputError(f"no model has {metric} both with {before!r} and with {after!r}")
    both = both.rename({"value": "before", "low": "before_low", "high": "before_high"})
    apart = (pl.col("after_high") < pl.col("before_low")) | (pl.col("after_low") > pl.col("before_high"))
    both = both.with_columns((pl.col("after") - pl.col("before")).alias("change"), apart.alias("supported"))
    draws = read_draws(source) if selection == "all" else None
    remarks, parts = [], []
    for condition, part in base.by_condition(both):
        words = where(condition)
        if draws is not None:
            of_before, of_after = (
                values_drawn(draws, lens, metric=metric, recalibrator=name, **condition) for name in (before, after)
            )
            part = part.with_columns(_test_changes(part, of_before, of_after))
        if not part["n"].equals(part["n_after"], check_names=False):
            remarks.append((f"{before!r} and {after!r} were judged on different rows: not the effect alone", words))
        changed = part.filter((pl.col("error") - pl.col("error_after")).abs() > 1e-12)["model"]
        remarks += [(f"{after!r} changed the classification error", f"{model} {words}") for model in changed]
        worse = part.filter((pl.col("change") > 0) & pl.col("supported"))["model"]
        remarks += [(f"{after!r} made {metric} worse beyond the intervals", f"{model} {words}") for model in worse]
        parts.append(part)
    columns = ("error", "error_after", "before", "before_low", "before_high", "after", "after_low", "after_high")
    table = pl.concat(parts).select(*keys, "family", "size", *columns, "change", "supported", "n").sort(*keys)
    notes = list(dict.fromkeys([*notes, *base.gather(remarks), *more]))
    return RecalibrationEffect(tuple(notes), table, metric, before, after)


def _test_changes(part: Any, before: dict[str, Float64s], after: dict[str, Float64s]) -> Any:
    """Test every change by paired resamples (Holm, 5 %): the column `supported`, null for models without resamples."""
    changes = dict(part.select("model", "change").iter_rows())
    models = [model for model in changes if model in before and model in after]
    if not models:
        return pl.Series("supported", [None] * part.height, pl.Boolean)
    drawn = np.array([after[model] - before[model] for model in models])
    p = _student_p(np.array([changes[m] for m in models]), np.std(drawn, axis=1, ddof=1), drawn.shape[1] - 1)
    supported = dict(zip(models, (tc.inference.holm(p) <= ALPHA).tolist(), strict=True))
    return pl.Series("supported", [supported.get(model) for model in part["model"]], pl.Boolean)
