"""The reliability diagrams that the explorer of a study can open, packed as whole numbers.

One diagram per model and place, of the first seed. Those of clean data and equal-mass bins come first; what does not fit into the
room given is left out, a severity of a lens and scheme at a time.
"""

import json
from typing import Any

from truecal.report.study.record import Diagrams, Drawn, Kind, Numbers

_UNIT = Diagrams().unit
_LENSES = ("top-label", "class-wise", "all-label")
_SCHEMES = ("mass", "width")


def explorer_diagrams(frame: Any, diagrams: Any, numbers: Numbers, *, room: int) -> Diagrams:
    """As many kinds of diagrams as fit into `room` bytes."""
    import polars as pl

    jobs = frame.group_by("job").agg(
        *(pl.col(name).first() for name in ("model", "dataset", "severity", "seed")),
    )
    first = jobs.filter(pl.col("seed") == pl.col("seed").min().over("model", "dataset", "severity"))
    known = (
        diagrams.filter((pl.col("count") > 0) & ~pl.col("lens").str.starts_with("class:"))
        .join(first, on="job")
        .sort("lens", "scheme", "severity", "bin")
    )
    model_of = {model.name: i for i, model in enumerate(numbers.models)}
    place_of = {(p.dataset, p.severity, p.recalibrator, p.selection): i for i, p in enumerate(numbers.places)}
    groups = known.partition_by("lens", "scheme", "severity", as_dict=True)
    kinds: list[Kind] = []
    drawn: list[Drawn] = []
    used, complete = 0, True
    for lens, scheme, severity in sorted(groups, key=_priority):
        packed = _packed(groups[lens, scheme, severity], model_of, place_of)
        size = len(json.dumps(packed, separators=(",", ":")))
        if used + size > room:
            complete = False
            break
        used += size
        kind = Kind(lens, scheme)
        if kind not in kinds:
            kinds.append(kind)
            drawn.append({})
        drawn[kinds.index(kind)].update(packed)
    return Diagrams(kinds, drawn, complete=complete)


def _priority(group: tuple[str, str, float]) -> tuple[int, int, float, str]:
    lens, scheme, severity = group
    lens_rank = _LENSES.index(lens) if lens in _LENSES else len(_LENSES)
    scheme_rank = _SCHEMES.index(scheme) if scheme in _SCHEMES else len(_SCHEMES)
    return (lens_rank, scheme_rank, severity, lens)


def _packed(rows: Any, model_of: dict[str, int], place_of: dict[tuple[Any, ...], int]) -> Drawn:
    names = ("dataset", "severity", "recalibrator", "selection", "model", "confidence", "outcome", "count")
    drawn: Drawn = {}
    for *place, model, confidence, outcome, count in rows.select(names).rows():
        if tuple(place) not in place_of:  # nothing was judged there
            continue
        key = f"{place_of[tuple(place)]}/{model_of[model]}"
        lists = drawn.setdefault(key, [[], [], []])
        whole = (round(confidence * _UNIT), round(outcome * _UNIT), round(count, 2))
        for values, number in zip(lists, whole, strict=True):
            values.append(int(number) if float(number).is_integer() else number)
    for lists in drawn.values():  # bins of equal mass mostly hold equal counts: one number says it
        if len(set(lists[2])) == 1:
            del lists[2][1:]
    return drawn
