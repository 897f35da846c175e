"""Rankings of models: paired comparisons on the same rows, agreement of estimators, the effect of recalibration.

A store keeps metrics on resamples of the rows that are the same for all models (`Store.draws`). The standard error of a
difference is that of the difference of these values, in which what the models have in common cancels; p-values are Student's,
corrected by Holm (1979) for the number of pairs compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Unpack

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.special import positive
from truecal.study.analyses import base
from truecal.study.analyses.base import CONDITION, KEY, METRIC, Analysis, Choice, numbers
from truecal.study.store import Store, pl
from truecal.types import Float64s

ALPHA = 0.05  # by choice: level of adjusted p-values below which models differ significantly
_DEFAULT = ("rank-series-l2", "ece-mass-100-l1", "ece-width-15-l1", "error", "nll", "brier")
_LISTED = 6  # by choice: models of a group in a note
_PAIRS = dict.fromkeys(("a", "b"), pl.String)  # columns of compared pairs
_PAIRS |= dict.fromkeys(("difference", "low", "high", "p_value", "adjusted_p"), pl.Float64)


def read_draws(source: Any, **choice: Any) -> Any:
    """Read the resamples of a store as a table with a row per job and metric, sorted by model and seed.

    Its columns are job, recalibrator, lens, metric, values (a list, the metric on each resample), model, dataset, severity and
    seed. `choice` are values of columns, such as metric="nll"; the default lens is "top-label", and scores are there under any.
    None for a frame instead of a store, for another selection than "all", and where the store has no resamples.
    """
    draws = source.draws() if isinstance(source, Store) and choice.pop("selection", "all") == "all" else pl.DataFrame()
    if draws.is_empty():
        return None
    jobs = source.frame().select("job", "model", *CONDITION, "seed").unique("job")
    lens = choice.pop("lens", "top-label")
    return draws.filter(pl.col("lens").is_in([lens, ""]), **choice).join(jobs, on="job").sort("model", "seed")


def average_draws(draws: Any, **choice: Any) -> dict[str, Float64s]:
    """Return by model the mean over seeds of the column `values` of `read_draws`, shape (resamples,); {} where `draws` is None.

    `choice` are values of columns that select rows, such as dataset="digits".
    """
    if draws is None:
        return {}
    parts = draws.filter(**choice).partition_by("model", as_dict=True, maintain_order=True)
    return {model: np.mean(part["values"].to_list(), axis=0) for (model,), part in parts.items()}


def compare_pairs(values: dict[str, float], draws: dict[str, Float64s], *, level: float = 0.95) -> Any:
    """Test the difference of every pair of models that have a value and resamples, in the order of `values`.

    `values` and `draws`, shape (resamples,), are by model. Student's t with the standard deviation of the difference over paired
    resamples as standard error and one degree of freedom less than there are resamples; p-values are adjusted by Holm. Returns
    a table with a row per pair, and columns a, b, difference (a minus b), low, high, p_value, adjusted_p; empty below two models.

    >>> rng = np.random.default_rng(0)
    >>> draws = {"a": rng.normal(0.2, 0.01, 200), "b": rng.normal(0.1, 0.01, 200)}
    >>> row = compare_pairs({"a": 0.2, "b": 0.1}, draws).row(0, named=True)
    >>> round(row["difference"], 6), row["low"] > 0, row["adjusted_p"] < 0.001
    (0.1, True, True)
    """
    from scipy.special import stdtrit

    models = np.array([model for model in values if model in draws], dtype=object)
    if len(models) < 2:
        return pl.DataFrame(schema=_PAIRS)
    value = np.array([values[model] for model in models])
    covariance = np.cov(np.array([draws[model] for model in models]))
    first, second = np.triu_indices(len(models), 1)
    difference = value[first] - value[second]
    variance_sum = covariance[first, first] + covariance[second, second]
    variance = variance_sum - 2 * covariance[first, second]
    error = np.sqrt(np.where(variance > 1e-12 * variance_sum, variance, 0.0))  # equal models differ by rounding
    degrees_of_freedom = len(next(iter(draws.values()))) - 1
    half_width = float(stdtrit(degrees_of_freedom, (1 + level) / 2)) * error
    p = _student_p(difference, error, degrees_of_freedom)
    limits = difference - half_width, difference + half_width
    columns = (models[first], models[second], difference, *limits, p, tc.inference.holm(p))
    return pl.DataFrame(dict(zip(_PAIRS, columns, strict=True)), schema=_PAIRS)


def _student_p(difference: Float64s, error: Float64s, degrees_of_freedom: int) -> Float64s:
    """Compute two-sided p-values of Student's t; for a standard error of 0, 1 if the difference is 0 and else 0.

    >>> _student_p(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]), 10)
    array([1., 1., 0.])
    """
    from scipy.special import stdtr

    p = 2 * stdtr(degrees_of_freedom, -np.abs(difference) / positive(error))
    return np.where(error > 0, p, np.where(difference == 0, 1.0, 0.0))


def group_models(models: Sequence[str], pairs: Any) -> list[tuple[str, ...]]:
    """Return the longest runs of the ranking within which no two models differ (adjusted p of at most 0.05), best first.

    `models` are in the order of the ranking, `pairs` as returned by `compare_pairs`. Groups may overlap.

    >>> import polars as pl
    >>> pairs = pl.DataFrame({"a": ["a", "a", "b"], "b": ["b", "c", "c"], "adjusted_p": [0.6, 0.003, 0.6]})
    >>> group_models(["a", "b", "c"], pairs)
    [('a', 'b'), ('b', 'c')]
    """
    different = {frozenset(pair) for pair in pairs.filter(pl.col("adjusted_p") <= ALPHA).select("a", "b").iter_rows()}
    runs: list[tuple[str, ...]] = []
    end = 0
    for start in range(len(models)):
        stop = max(end, start + 1)
        while stop < len(models) and all(frozenset((models[stop], m)) not in different for m in models[start:stop]):
            stop += 1
        if stop > end:
            runs.append(tuple(models[start:stop]))
            end = stop
    return runs


# ----------------------------------------------------------------------------------------------------
# Models of a store ranked by a metric, with the groups of models that do not differ significantly


def rank(
    source: Any,
    *,
    metrics: str | Sequence[str] = (),
    datasets: Sequence[str] = (),
    severity: float = 0.0,
    **choice: Unpack[Choice],
) -> Analysis:
    """Rank models by the first metric, dataset by dataset.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metrics : str or sequence of str, default ()
        Names of metrics; default the usual ones that are there.
    datasets : sequence of str, default ()
        Names of datasets; default all.
    severity : float, default 0.0
        Severity of the shift.
    **choice : str
        Which results: lens, selection, recalibrator, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables:
        "models": one row per dataset, model and metric, models best first by the first metric: dataset, model, metric, value,
        low, high, seeds, groups (numbers of the groups the model belongs to: two models that share none differ significantly).
        "pairs": one row per dataset and pair of models: dataset, a, b, difference (of a minus b), low, high, p_value, adjusted_p.

    Raises
    ------
    InputError
        If a name is not in the results.

    Notes
    -----
    Values and intervals are averages over seeds. From a store, every pair of models is compared on the same rows, with Holm's
    correction over the pairs of a dataset, and models that do not differ significantly form groups. From a frame alone,
    neighbours in the ranking are compared by their intervals.

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
    >>> ranking = tc.study.rank(pl.DataFrame(rows), metrics="nll", lens="")
    >>> ranking.frame().select("model", "value").rows()
    [('a', 0.4), ('b', 0.7), ('c', 1.3)]
    """
    results = base.read_results(source)
    if not results.height:
        raise InputError("no file of this study is evaluated yet")
    results = base.only(results, "severity", float(severity))
    results = base.only(results, "dataset", *datasets) if datasets else results
    lens = choice.get("lens", "top-label")
    base.only(results, "lens", lens)
    present = results.filter(pl.col("lens").is_in([lens, ""]))["metric"].unique().sort().to_list()
    names = base.as_names(metrics) or [name for name in _DEFAULT if name in present] or present[:1]
    points = base.points(results, names, **choice)
    table = points.frame()
    first = table.filter(pl.col("metric") == names[0]).sort("dataset", "value", "model")
    draws = read_draws(source, metric=names[0], **{"recalibrator": "none", **choice})
    group_lists, pairs, notes = [], [], list(points.notes)
    for (dataset,), part in first.partition_by("dataset", as_dict=True, maintain_order=True).items():
        drawn = average_draws(draws, dataset=dataset, severity=float(severity))
        compared = compare_pairs(dict(part.select("model", "value").iter_rows()), drawn)
        groups = group_models([model for model in part["model"] if model in drawn], compared) if len(drawn) > 1 else []
        notes += [_describe_groups(groups, compared, names[0], dataset)] if groups else []
        pairs.append(compared.select(pl.lit(dataset).alias("dataset"), pl.all()))
        group_lists += [[i for i, group in enumerate(groups, 1) if model in group] for model in part["model"]]
    if all(compared.is_empty() for compared in pairs):
        notes += base.note_overlaps(first, names[0])
    ranks = first.select("dataset", "model", pl.Series("groups", group_lists, pl.List(pl.Int64))).with_row_index("rank")
    order = pl.col("metric").replace_strict({name: i for i, name in enumerate(names)}, return_dtype=pl.Int64)
    table = table.join(ranks, on=["dataset", "model"], how="left")
    table = table.sort("dataset", "rank", "model", order, nulls_last=True)
    columns = ("dataset", "model", "metric", "value", "low", "high", "seeds", "groups")
    return Analysis({"models": table.select(columns), "pairs": pl.concat(pairs)}, tuple(notes), names[0])


def _describe_groups(groups: Sequence[tuple[str, ...]], pairs: Any, metric: str, dataset: str) -> str:
    """Write a note on how many of `pairs` have an adjusted p of at most 5 %, and on up to three groups of two or more models.

    `groups` are from `group_models`; `metric` and `dataset` are named in the text.
    """
    different = pairs.filter(pl.col("adjusted_p") <= ALPHA).height
    text = f"{different} of {pairs.height} pairs of models differ by {metric} on {dataset} (paired on the same rows, Holm, 5 %)"
    several = [group for group in groups if len(group) > 1]
    listed = "; ".join(", ".join(run[:_LISTED]) + (", ..." if len(run) > _LISTED else "") for run in several[:3])
    text += f"; not significantly different: {listed}" if several else ""
    return text + (f"; and {len(several) - 3} more groups" if len(several) > 3 else "")


# ----------------------------------------------------------------------------------------------------
# Whether two estimators rank the models in the same order


def rank_agreement(
    source: Any, *, metrics: Sequence[str] | None = None, level: float = 0.95, **choice: Unpack[Choice]
) -> Analysis:
    """Compute Kendall's tau between estimators over models, and count the pairs of models that they order in opposite ways.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metrics : sequence of str, default None
        Names of metrics; None: all of the lens.
    level : float, default 0.95
        Level of the intervals.
    **choice : str
        Which results: lens, selection, recalibrator, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Table "metrics" with one row per condition and pair of metrics: dataset, severity, metric_a, metric_b, models, tau
        (Kendall's tau-b), low, high, pairs (of models), flips (pairs that the two metrics order in opposite ways; ties are none)
        and supported_flips (the intervals of the two models do not overlap under both metrics; null where one has no intervals).

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
    results, lens = base.read_results(source), choice.get("lens", "top-label")
    if metrics is None:
        metrics = results.filter(pl.col("lens") == lens)["metric"].unique().sort().to_list()
    if isinstance(metrics, str) or len(set(metrics)) < 2:
        raise InputError(f"agreement needs at least two metrics, not {metrics!r}")
    points = base.points(results, metrics, **choice)
    table = points.frame()
    is_complete = pl.len().over(*CONDITION, "model") == pl.col("metric").n_unique().over(*CONDITION)
    complete = table.filter(is_complete)
    lacking = table.filter(~is_complete).group_by(CONDITION).agg(pl.col("model").unique().sort().str.join(", "))
    lacking = lacking.rename({"model": "models"}).sort(CONDITION)
    rows = [
        row for part in complete.partition_by(CONDITION, maintain_order=True) for row in _compare_metrics(part, level)
    ]
    if not rows:
        raise InputError("no condition has two models with all of the metrics")
    agreement = pl.DataFrame(rows, infer_schema_length=None).cast({"supported_flips": pl.Int64})
    notes = [*points.notes, *base.note_few_models(table)]
    notes += base.write_notes(lacking, "models without all of the metrics are left out: {models}")
    bare = table.filter(pl.col("low").is_null() | pl.col("high").is_null())["metric"].unique().sort().to_list()
    if bare:
        notes.append(f"there are no intervals of {', '.join(bare)}: which flips with them are chance is unknown")
    tested = agreement.filter(pl.col("supported_flips").is_not_null())
    flips, supported = int(tested["flips"].sum()), int(tested["supported_flips"].sum())
    if flips:
        notes.append(f"{supported} of {flips} flips of two models are supported by the intervals of both metrics")
    return Analysis({"metrics": agreement}, tuple(notes))


def _compare_metrics(part: Any, level: float) -> list[dict[str, Any]]:
    """Compute tau and flips of every pair of metrics on one dataset at one severity, a record per pair.

    `part` has one row per model and metric, none missing, with columns value, low and high. Fields are dataset, severity,
    metric_a, metric_b, models, tau, low, high, pairs, flips and supported_flips (see `rank_agreement`). [] for fewer than two
    metrics or models.
    """
    condition, names = part.select(CONDITION).row(0, named=True), part["metric"].unique().sort().to_list()
    models = part["model"].n_unique()
    if len(names) < 2 or models < 2:
        return []
    columns = numbers(part.sort("metric", "model"), "value", "low", "high")
    value, low, high = (column.reshape(len(names), models) for column in columns)
    i, j = np.triu_indices(models, 1)
    signs = np.sign(value[:, i] - value[:, j])  # (metrics, pairs of models)
    apart = (low[:, i] > high[:, j]) | (high[:, i] < low[:, j])  # intervals do not overlap
    has_intervals = np.isfinite(low + high).all(axis=1)
    untied = np.abs(signs).sum(axis=1)
    scale = np.sqrt(np.outer(untied, untied))
    tau = np.where(scale > 0, signs @ signs.T / positive(scale), np.nan).clip(-1.0, 1.0)
    tau_low, tau_high = base.tau_bounds(tau, models, level)
    rows = []
    for a, b in combinations(range(len(names)), 2):
        flip = signs[a] * signs[b] < 0
        supported = int((flip & apart[a] & apart[b]).sum()) if has_intervals[a] and has_intervals[b] else None
        row = {"metric_a": names[a], "metric_b": names[b], "models": models, "tau": tau[a, b]}
        row |= {"low": tau_low[a, b], "high": tau_high[a, b], "pairs": len(flip), "flips": int(flip.sum())}
        rows.append({**condition, **row, "supported_flips": supported})
    return rows


# ----------------------------------------------------------------------------------------------------
# What recalibration does to every model: the same rows before and after


def effect_of_recalibration(
    source: Any, *, metric: str = METRIC, before: str = "none", after: str = "temperature", **choice: Unpack[Choice]
) -> Analysis:
    """Compare a metric of every model under two recalibrators, on the same rows.

    Parameters
    ----------
    source : Store or polars.DataFrame
        A store, its results (`store.frame()`), or a polars frame with their columns.
    metric : str, default "rank-series-l2"
        Name of the metric.
    before : str, default "none"
        Recalibration method to compare with.
    after : str, default "temperature"
        Recalibration method.
    **choice : str
        Which results: lens, selection, dataset, as in :func:`points`.

    Returns
    -------
    Analysis
        Tables: "models": one row per model and condition: error, error_after, before, after (the metric) with limits, change
        (after - before; negative is better), supported (from a store: the change is not 0 by a paired comparison on the same
        rows, with Holm's correction over the models of a condition; from a frame: the two intervals do not overlap; null where
        that is unknown), n. "summary": one row per condition: models, mean before, mean after, how many improved, how many
        significantly, n, and Kendall's tau of the two rankings with limits (1: recalibration left the ranking as it was).

    Raises
    ------
    InputError
        If a name is not in the results, or no model has the metric with both recalibrators.

    Notes
    -----
    A store holds the numbers of rows that no recalibrator was fitted on. Where numbers of rows differ before and after, a note
    says so, because then the difference is not that of recalibration alone.

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
    results = base.read_results(source)
    choices: tuple[Choice, Choice] = {**choice, "recalibrator": before}, {**choice, "recalibrator": after}
    (first, notes), (second, second_notes) = (
        base.points_with_error(results, metric, **selected) for selected in choices
    )
    shared = [note for note in notes if note in second_notes]
    notes = shared + [
        f"{note} ({name!r})"
        for name, each in ((before, notes), (after, second_notes))
        for note in each
        if note not in shared
    ]
    first = first.rename({"value": "before", "low": "before_low", "high": "before_high"})
    names = {"value": "after", "low": "after_low", "high": "after_high", "error": "error_after", "n": "n_after"}
    paired = first.join(second.rename(names).select(*KEY, *names.values()), on=KEY).sort(KEY)
    if paired.is_empty():
        raise InputError(f"no model has {metric} both with {before!r} and with {after!r}")
    apart = (pl.col("after_high") < pl.col("before_low")) | (pl.col("after_low") > pl.col("before_high"))
    paired = paired.with_columns(change=pl.col("after") - pl.col("before"), supported=apart)
    rows_of = {name: choice[name] for name in ("lens", "selection") if name in choice}
    draws = read_draws(source, metric=metric, **rows_of)
    if draws is not None:
        parts = paired.partition_by(CONDITION, maintain_order=True)
        paired = pl.concat([part.with_columns(_test_changes(part, draws, before, after)) for part in parts])
    better, worse, supported = pl.col("change") < 0, pl.col("change") > 0, pl.col("supported")
    summary = paired.group_by(CONDITION, maintain_order=True).agg(
        models=pl.len(),
        before=pl.col("before").mean(),
        after=pl.col("after").mean(),
        improved=better.sum(),
        improved_supported=pl.when(supported.null_count() == 0).then((better & supported).sum()),
        n=pl.col("n").max(),
    )
    taus = base.fit_groups(paired, CONDITION, "before", "after", correlated=True).select("tau", "tau_low", "tau_high")
    other_rows = paired.filter(pl.col("n").ne_missing(pl.col("n_after"))).unique(CONDITION, maintain_order=True)
    text = f"{before!r} and {after!r} were judged on different rows: not the effect alone"
    notes += base.write_notes(other_rows.drop("model"), text)
    changed = paired.filter((pl.col("error") - pl.col("error_after")).abs() > 1e-12)
    notes += base.write_notes(changed, f"{after!r} changed the classification error")
    notes += base.write_notes(paired.filter(worse & supported), f"{after!r} made {metric} worse beyond the intervals")
    columns = ("error", "error_after", "before", "before_low", "before_high", "after", "after_low", "after_high")
    table = paired.select(*KEY, "family", "size", *columns, "change", "supported", "n")
    tables = {"models": table, "summary": pl.concat([summary, taus], how="horizontal")}
    return Analysis(tables, tuple(dict.fromkeys(notes)), metric)


def _test_changes(part: Any, draws: Any, before: str, after: str) -> Any:
    """Return a Boolean series `supported`: whether each model's change differs from 0 (t-test over resamples, Holm, 5 %).

    `part` has a row per model on one dataset at one severity, with a column change; `draws` is the table of `read_draws`,
    `before` and `after` name recalibrators in it. Null for a model without resamples of both.
    """
    condition = part.select(CONDITION).row(0, named=True)
    drawn_before, drawn_after = (average_draws(draws, recalibrator=name, **condition) for name in (before, after))
    changes = dict(part.select("model", "change").iter_rows())
    models = [model for model in changes if model in drawn_before and model in drawn_after]
    if not models:
        return pl.Series("supported", [None] * part.height, pl.Boolean)
    drawn = np.array([drawn_after[model] - drawn_before[model] for model in models])
    p = _student_p(np.array([changes[m] for m in models]), np.std(drawn, axis=1, ddof=1), drawn.shape[1] - 1)
    supported = dict(zip(models, (tc.inference.holm(p) <= ALPHA).tolist(), strict=True))
    return pl.Series("supported", [supported.get(model) for model in part["model"]], pl.Boolean)
