"""What recalibration does to every model: the same rows before and after (Minderer et al. 2021, Figure 2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.study.analyses.correlation import correlate
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import CONDITION, Analysed, gathered, named, numbers, with_error
from truecal.study.analyses.rankings.paired import PairedDraws
from truecal.study.store import polars
from truecal.types import Float64s

_ALPHA = 0.05
_WHO = ("metric", "lens", *CONDITION, "model", "family", "size")


@dataclass(frozen=True, eq=False)
class RecalibrationEffect(Analysed):
    """Every model before and after recalibration.

    `frame()` has one row per model and condition. Columns: metric, lens, dataset, severity, model, family, size, error,
    error_after, before, before_low, before_high, after, after_low, after_high, change (after - before; negative is better),
    supported (from a store: the change is not 0 by a paired comparison on the same rows, with Holm's correction over the models of
    a condition; from a frame: the two intervals do not overlap; null where that is unknown), n.
    """

    metric: str
    before: str
    after: str

    def summary(self) -> Any:
        """Per condition: models, mean before, mean after, how many improved, how many beyond their intervals, and Kendall's
        tau of the two rankings (1: recalibration left the ranking as it was)."""
        pl = polars()
        rows = []
        for condition, part in self._frame.partition_by(list(CONDITION), as_dict=True, maintain_order=True).items():
            better = part.filter(pl.col("change") < 0)
            first, second = numbers(part, "before", "after")
            tau = correlate(first, second)
            rows.append(
                {
                    **dict(zip(CONDITION, condition, strict=True)),
                    "models": part.height,
                    "before": part["before"].mean(),
                    "after": part["after"].mean(),
                    "improved": better.height,
                    "improved_supported": _counted(better["supported"], part["supported"]),
                    "n": part["n"].max(),
                    "tau": tau.value,
                    "tau_low": tau.low,
                    "tau_high": tau.high,
                }
            )
        return pl.DataFrame(rows, schema_overrides={"improved_supported": pl.Int64})


def _counted(supported: Any, of_all: Any) -> int | None:
    """How many are supported; None where for some model that is unknown."""
    return None if of_all.null_count() else int(supported.sum())


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
    """A metric of every model under two recalibrators, on the same rows; `source` is a store, or its frame.

    Fit on some rows, judge on others: a store keeps the numbers of the rows that the recalibrator has not seen. Where numbers of
    rows differ before and after, a note says so, because then the difference is not that of recalibration alone.
    """
    pl = polars()
    frame = source.frame() if hasattr(source, "draws") else source
    choice: dict[str, Any] = {"lens": lens, "selection": selection, "dataset": dataset}
    first, notes = with_error(frame, [metric], recalibrator=before, **choice)
    second, more = with_error(frame, [metric], recalibrator=after, **choice)
    second = second.select(
        *_WHO[:5],
        pl.col("value").alias("after"),
        pl.col("low").alias("after_low"),
        pl.col("high").alias("after_high"),
        pl.col("error").alias("error_after"),
        pl.col("n").alias("n_after"),
    )
    both = first.join(second, on=list(_WHO[:5]), how="inner")
    if both.is_empty():
        raise InputError(f"no model has {metric} both with {before!r} and with {after!r}")
    apart = (pl.col("after_high") < pl.col("low")) | (pl.col("after_low") > pl.col("high"))
    both = both.with_columns((pl.col("after") - pl.col("value")).alias("change"), apart.alias("supported"))
    both = _paired(both, source, metric, (before, after), lens) if selection == "all" else both
    remarks = []
    for condition, part in both.partition_by(list(CONDITION), as_dict=True, maintain_order=True).items():
        place = named(*condition)
        if not part["n"].equals(part["n_after"], check_names=False):
            remarks.append((f"{before!r} and {after!r} were judged on different rows: not the effect alone", place))
        moved = part.filter((pl.col("error") - pl.col("error_after")).abs() > 1e-12)["model"].to_list()
        remarks += [(f"{after!r} changed the classification error", f"{model} {place}") for model in moved]
        worse = part.filter((pl.col("change") > 0) & pl.col("supported"))["model"].to_list()
        remarks += [(f"{after!r} made {metric} worse beyond the intervals", f"{model} {place}") for model in worse]
    notes += gathered(remarks)
    both = both.rename({"value": "before", "low": "before_low", "high": "before_high"})
    names = ("error", "error_after", "before", "before_low", "before_high", "after", "after_low", "after_high")
    table = both.select(*_WHO, *names, "change", "supported", "n").sort(*_WHO[:5])
    return RecalibrationEffect(tuple(dict.fromkeys([*notes, *more])), table, metric, before, after)


def _paired(both: Any, source: Any, metric: str, recalibrators: tuple[str, str], lens: str) -> Any:
    """The table with `supported` from the resamples of a store, where it has them."""
    pl = polars()
    draws = PairedDraws.of(source)
    if draws is None:
        return both
    parts = []
    for (dataset, severity), part in both.partition_by(list(CONDITION), as_dict=True, maintain_order=True).items():
        first, second = (
            draws.values(metric, dataset=dataset, severity=severity, recalibrator=name, lens=lens)
            for name in recalibrators
        )
        models = [model for model in part["model"] if model in first and model in second]
        change = dict(part.select("model", "change").iter_rows())
        p = tc.uncertainty.holm(np.array([_p_value(change[model], second[model] - first[model]) for model in models]))
        known = {model: bool(value <= _ALPHA) for model, value in zip(models, p, strict=True)}
        parts.append(part.with_columns(pl.Series("supported", [known.get(m) for m in part["model"]], pl.Boolean)))
    return pl.concat(parts)


def _p_value(change: float, drawn: Float64s) -> float:
    """Student's, for a change whose resamples are these."""
    from scipy.special import stdtr

    error = float(np.std(drawn, ddof=1))
    return 2 * float(stdtr(len(drawn) - 1, -abs(change) / error)) if error > 0 else float(change == 0)
