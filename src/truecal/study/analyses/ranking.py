"""Models of a store side by side: ranked by a metric, with what the intervals say about that ranking."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from truecal.errors import InputError
from truecal.study.store import polars

if TYPE_CHECKING:
    import polars as pl

Cell = tuple[float | None, float | None, float | None]  # value, low, high
_DEFAULT = ("rank-series-l2", "ece-mass-100-l1", "ece-width-15-l1", "error", "nll", "brier")
_SHOWN_PAIRS = 4


@dataclass(frozen=True)
class Ranked:
    """A model on a dataset: the cell of every metric it has."""

    model: str
    dataset: str
    seeds: int
    values: dict[str, Cell]


@dataclass(frozen=True)
class Ranking:
    """Models by dataset, best first within each; and what to know about them."""

    metrics: tuple[str, ...]
    rows: tuple[Ranked, ...]
    notes: tuple[str, ...]

    def records(self) -> list[dict[str, Any]]:
        """The table as plain records, for JSON; what is not a finite number is None."""
        return [
            {
                "model": row.model,
                "dataset": row.dataset,
                "seeds": row.seeds,
                **{name: dict(zip(("value", "low", "high"), cell, strict=True)) for name, cell in row.values.items()},
            }
            for row in self.rows
        ]


def rank(
    frame: "pl.DataFrame",
    *,
    metrics: Sequence[str] = (),
    datasets: Sequence[str] = (),
    severity: float = 0.0,
    recalibrator: str = "none",
    lens: str = "top-label",
    selection: str = "all",
) -> Ranking:
    """Rank models by the first metric, dataset by dataset. Scores of whole predictions are there under every lens.

    Values are averages over seeds; an interval is shown where there is one seed. Two neighbours are told apart only if their
    intervals are apart, in the same order, with every seed they share.
    """
    pl = polars()
    if not len(frame):
        raise InputError("no file of this study is evaluated yet")
    wanted: list[tuple[str, tuple[object, ...]]] = [
        ("severity", (severity,)),
        ("recalibrator", (recalibrator,)),
        ("selection", (selection,)),
        ("lens", (lens, "")),
        *([("dataset", tuple(datasets))] if datasets else []),
    ]
    part = frame
    for column, values in wanted:
        there = sorted(part[column].unique().to_list())
        for value in values:
            if value not in there and not (column == "lens" and value == ""):
                raise InputError(f"there is no {column} {value!r} among the results; there are {_listed(there)}")
        part = part.filter(pl.col(column).is_in(values))
    there = part["metric"].unique().to_list()
    for name in metrics:
        if name not in there:
            raise InputError(f"there is no metric {name!r} among the results; there are {_listed(sorted(there))}")
    names = tuple(metrics) or tuple(name for name in _DEFAULT if name in there) or (sorted(there)[0],)
    rows, notes = [], []
    for dataset in part["dataset"].unique(maintain_order=True).to_list():
        of_dataset = part.filter((pl.col("dataset") == dataset) & pl.col("metric").is_in(names))
        ranked = _ranked(of_dataset, names, dataset)
        rows += ranked
        notes += _unsupported(of_dataset, names[0], dataset, [row.model for row in ranked])
    return Ranking(names, tuple(rows), tuple(notes))


def _listed(names: Sequence[object], most: int = 12) -> str:
    words = [str(name) for name in names if name != ""]
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")


def _ranked(part: "pl.DataFrame", names: tuple[str, ...], dataset: str) -> list[Ranked]:
    rows = []
    for (model,), of_model in part.partition_by("model", as_dict=True, maintain_order=True).items():
        cells: dict[str, Cell] = {}
        for (name,), found in of_model.partition_by("metric", as_dict=True).items():
            alone = len(found) == 1
            low, high = (found["low"][0], found["high"][0]) if alone else (None, None)
            cells[name] = (_finite(found["value"].mean()), _finite(low), _finite(high))
        ordered = {name: cells[name] for name in names if name in cells}
        rows.append(Ranked(model, dataset, of_model["seed"].n_unique(), ordered))

    def key(row: Ranked) -> tuple[bool, float]:
        value = row.values.get(names[0], (None,))[0]
        return value is None, value or 0.0

    return sorted(rows, key=key)


def _finite(value: Any) -> float | None:
    return None if value is None or value != value or value in (float("inf"), float("-inf")) else float(value)


def _unsupported(part: "pl.DataFrame", metric: str, dataset: str, models: Sequence[str]) -> list[str]:
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
