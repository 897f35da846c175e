"""Models of a store side by side: ranked by a metric, with what the intervals say about that ranking."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from truecal.errors import InputError
from truecal.study.analyses.points import results
from truecal.study.analyses.rankings.paired import Pair, PairedDraws, compare_pairs, groups

if TYPE_CHECKING:
    import polars as pl

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


def _ranked(part: "pl.DataFrame", names: tuple[str, ...], dataset: str) -> list[Ranked]:
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
