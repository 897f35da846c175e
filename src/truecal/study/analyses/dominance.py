"""Which family of models is beaten by which: "BiT always remains Pareto-dominated by ViT" (Minderer et al. 2021, section 4.2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.study.analyses.pareto_sets import METRIC
from truecal.study.analyses.points import CONDITION, Analysed, numbers, with_error
from truecal.study.store import polars


@dataclass(frozen=True, eq=False)
class Dominance(Analysed):
    """For every condition and ordered pair of families, how many models of one are beaten by some model of the other.

    A model is beaten by one that is at least as good in error and metric and better in one of them. `frame()` has one row per
    condition and ordered pair of families. Columns: dataset, severity, family, by, models (of the family), beaten, share,
    dominated (all are beaten, and no model of `by` is by the family).
    """

    metric: str
    recalibrator: str

    @property
    def always(self) -> tuple[tuple[str, str], ...]:
        """Pairs (family, by) of which the first is dominated under every condition in which both occur."""
        pl = polars()
        whole = self._frame.group_by("family", "by", maintain_order=True).agg(pl.col("dominated").all())
        return tuple((family, by) for family, by, dominated in whole.iter_rows() if dominated)


def dominance(
    frame: Any,
    *,
    metric: str = METRIC,
    lens: str = "top-label",
    selection: str = "all",
    recalibrator: str = "none",
    dataset: str | None = None,
) -> Dominance:
    """Family against family, under every condition of the results.

    >>> import polars as pl
    >>> names, families = ["a", "b", "c", "d"], ["old", "old", "new", "new"]
    >>> values = {"error": [0.3, 0.4, 0.1, 0.2], "nll": [0.6, 0.8, 0.2, 0.4]}
    >>> rows = [(*who, metric, value) for metric, all_ in values.items() for *who, value in zip(names, families, all_)]
    >>> frame = pl.DataFrame(rows, schema=["model", "family", "metric", "value"], orient="row").with_columns(
    ...     size=pl.lit(1.0), dataset=pl.lit("digits"), severity=0.0, seed=0, recalibrator=pl.lit("none"), lens=pl.lit(""),
    ...     selection=pl.lit("all"), low=None, high=None, n=500)
    >>> dominance(frame, metric="nll").always
    (('old', 'new'),)
    """
    pl = polars()
    points, notes = with_error(
        frame, [metric], lens=lens, selection=selection, recalibrator=recalibrator, dataset=dataset
    )
    points = points.filter(pl.col("family").is_not_null())
    rows = []
    for condition, part in points.partition_by(list(CONDITION), as_dict=True, maintain_order=True).items():
        error, value = numbers(part, "error", "value")
        worse = (error[None] <= error[:, None]) & (value[None] <= value[:, None])  # [i, j]: j is as good as i in both
        beaten = worse & ((error[None] < error[:, None]) | (value[None] < value[:, None]))
        families = part["family"].to_numpy()
        names = sorted(set(families))
        lost = {(a, b): int(beaten[families == a][:, families == b].any(axis=1).sum()) for a in names for b in names}
        for a in names:
            for b in names:
                if a == b:
                    continue
                count = int(np.count_nonzero(families == a))
                row = {**dict(zip(CONDITION, condition, strict=True)), "family": a, "by": b, "models": count}
                row |= {"beaten": lost[a, b], "share": lost[a, b] / count}
                rows.append({**row, "dominated": lost[a, b] == count and lost[b, a] == 0})
    if not rows:
        raise InputError("no condition has two families to compare")
    return Dominance(tuple(notes), pl.DataFrame(rows), metric, recalibrator)
