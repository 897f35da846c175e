"""What recalibration does to every model: the same rows before and after (Minderer et al. 2021, Figure 2)."""

from dataclasses import dataclass
from typing import Any

from truecal.errors import InputError
from truecal.study.analyses.correlation import correlate
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import CONDITION, gathered, named, numbers, with_error
from truecal.study.store import polars

_WHO = ("metric", "lens", *CONDITION, "model", "family", "size")


@dataclass(frozen=True, eq=False)
class RecalibrationEffect:
    """Every model before and after recalibration.

    `frame()` columns: metric, lens, dataset, severity, model, family, size, error, error_after, before, before_low, before_high,
    after, after_low, after_high, change (after - before; negative is better), supported (the two intervals do not overlap).
    """

    metric: str
    before: str
    after: str
    notes: tuple[str, ...]
    _frame: Any

    def frame(self) -> Any:
        """One row per model and condition."""
        return self._frame

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
                    "improved_supported": int(better["supported"].sum()),
                    "tau": tau.value,
                    "tau_low": tau.low,
                    "tau_high": tau.high,
                }
            )
        return pl.DataFrame(rows)


def effect_of_recalibration(
    frame: Any,
    *,
    metric: str = METRIC,
    before: str = "none",
    after: str = "temperature",
    lens: str = "top-label",
    selection: str = "all",
    dataset: str | None = None,
) -> RecalibrationEffect:
    """A metric of every model under two recalibrators, on the same rows.

    Fit on some rows, judge on others: a store keeps the numbers of the rows that the recalibrator has not seen. Where numbers of
    rows differ before and after, a note says so, because then the difference is not that of recalibration alone.
    """
    pl = polars()
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
    table = both.select(*_WHO, *names, "change", "supported").sort(*_WHO[:5])
    return RecalibrationEffect(metric, before, after, tuple(dict.fromkeys([*notes, *more])), table)
