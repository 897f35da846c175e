"""Groups of rows by the values of columns, and their errors measured together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import InputError
from truecal.estimate import Estimator, Interval, rank_series
from truecal.lens import Lens, default_lens
from truecal.predictions import border
from truecal.select import categories, column
from truecal.types import Float64s, Indices

_MOST = 1000  # distinct values of a column beyond which it is taken for a measurement, not a grouping
_MANY = 100  # groups; beyond, those of equal size are measured in one pass, without their curves
_FEW = 200  # groups up to which redraws are 999


class Grouped(Protocol):
    """What is left of a scan: sketches for every combination of values of the columns grouped by."""

    @property
    def sketches(self) -> Mapping[Any, Sequence[tc.Sketch]]: ...

    @property
    def by(self) -> tuple[str, ...]: ...

    def measure(self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0) -> tc.Estimate: ...

    def groups(
        self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0
    ) -> Mapping[Any, tc.Estimate]: ...


@dataclass(frozen=True)
class Setting:
    """How groups are measured; as in :func:`truecal.measure`."""

    estimator: Estimator | None
    lens: Lens | None
    level: float
    rng: int


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each row belongs to; `judged` are those with enough rows."""

    titles: tuple[str, ...]
    counts: Indices
    member: Indices
    judged: NDArray[np.bool_]

    @classmethod
    def of(cls, preds: tc.Predictions, columns: Sequence[str], cuts: Sequence[float] | None, smallest: int) -> "Groups":
        """One group for every combination of values that occurs."""
        parts = [_categories(preds, name, cuts) for name in columns]
        code = np.zeros(len(preds), np.intp)
        for names, index in parts:
            code = code * len(names) + index
        distinct, member, counts = np.unique(code, return_inverse=True, return_counts=True)
        titles = tuple(_title(int(c), [names for names, _ in parts]) for c in distinct)
        return cls(titles, counts, member, counts >= smallest)

    def rows(self) -> list[Indices]:
        """The rows of every group."""
        order = np.argsort(self.member, kind="stable")
        return np.split(order, np.cumsum(self.counts)[:-1])

    def place(self) -> Indices:
        """For every row the place of its group among the judged ones, -1 where it is not judged."""
        place = np.where(self.judged, np.cumsum(self.judged) - 1, -1)
        return place[self.member]


def redraws(level: float, groups: int) -> int:
    """Enough for a family-wise p-value to resolve the level; more where groups are few."""
    return max(999 if groups <= _FEW else 199, int(np.ceil(10 / (1 - level) - 1e-9)) - 1)


def group_estimates(preds: tc.Predictions, groups: Groups, setting: Setting) -> list[tuple[tc.Estimate, float] | None]:
    """The Estimate of every judged group and its family-wise p-value, None for the others."""
    estimator, lens = setting.estimator, setting.lens
    if estimator is not None:
        lens = estimator.own_lens(lens)
    lens = default_lens(preds) if lens is None else lens
    if not groups.judged.any():
        return [None] * len(groups.counts)
    several = lens.several or (estimator is not None and estimator.several)
    family = None
    if not several:
        family = rank_series.Family(redraws(setting.level, int(groups.judged.sum())), setting.rng)
        for sample in lens.samples(preds):
            family.add(sample, np.repeat(groups.place(), len(sample) // len(preds)))
    estimates = None if family is None else _batched(preds, groups, lens, setting, family)
    if estimates is None:
        estimates = [
            tc.measure(preds.take(rows), estimator=estimator, lens=setting.lens, level=setting.level, rng=setting.rng)
            for rows, judged in zip(groups.rows(), groups.judged, strict=True)
            if judged
        ]
    adjusted = family.adjusted() if family is not None else _holm(estimates)
    pairs = iter(zip(estimates, adjusted.tolist(), strict=True))
    return [next(pairs) if judged else None for judged in groups.judged]


def _holm(estimates: Sequence[tc.Estimate]) -> Float64s:
    """Of the groups' own p-values, where they have some."""
    own = np.array([np.nan if e.p_value is None else float(e.p_value) for e in estimates])
    adjusted = np.full(len(own), np.nan)
    adjusted[~np.isnan(own)] = tc.uncertainty.holm(own[~np.isnan(own)])
    return adjusted


def _batched(
    preds: tc.Predictions, groups: Groups, lens: Lens, setting: Setting, family: rank_series.Family
) -> list[tc.Estimate] | None:
    """Many groups of independent rows, those of equal size in one pass; None where groups are measured one by one."""
    if int(groups.judged.sum()) <= _MANY or lens.shares(preds) is not None or preds.weights is not None:
        return None
    sample = lens.sample(preds)
    if not sample.independent:
        return None
    estimator = (tc.RankSeries() if setting.estimator is None else setting.estimator).at_level(
        setting.level, setting.rng
    )
    rows = [r for r, judged in zip(groups.rows(), groups.judged, strict=True) if judged]
    sizes = np.array([len(r) for r in rows])
    p = family.p_values()
    estimates: list[tc.Estimate | None] = [None] * len(rows)
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size)
        batch = estimator(_profile(sample, np.stack([rows[i] for i in places])))
        if batch.interval is None:
            return None
        words = batch.but(lens=lens.describe(preds), bins=None, curve=None)
        for i, place in enumerate(places):
            estimates[place] = _single(words, i).but(p_value=float(p[place]))
    return [estimate for estimate in estimates if estimate is not None]


def _profile(sample: tc.Sample, rows: Indices) -> tc.Profile:
    return tc.Profile.from_arrays(sample.scores[rows], sample.outcomes[rows])


def _single(batch: tc.Estimate, i: int) -> tc.Estimate:
    """One dataset of an Estimate of many."""
    numbers = {
        name: float(np.asarray(getattr(batch, name))[i]) for name in ("value", "power", "effective_n", "direction")
    }
    reach = batch.interval
    assert reach is not None
    low, high = (float(np.asarray(end)[i]) for end in (reach.low, reach.high))
    return batch.but(**numbers, interval=Interval(low, high, reach.level, reach.method))


def _categories(preds: tc.Predictions, name: str, cuts: Sequence[float] | None) -> tuple[list[str], Indices]:
    """Names of the distinct values, and which one each row has; missing values form a group of their own."""
    if cuts is not None:
        return _ranges(column(preds, name), name, cuts)
    words, index = categories(preds, name)
    if len(words) > _MOST:
        raise InputError(
            f"column {name!r} has {len(words)} distinct values; group it with cuts=[...] or choose another"
        )
    return words, index


def _ranges(values: NDArray[Any], name: str, cuts: Sequence[float]) -> tuple[list[str], Indices]:
    edges = border.as_floats(list(cuts), "cuts")
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise InputError(f"column {name!r} holds {values.dtype.name}, which cannot be cut; leave cuts out")
    if edges.ndim != 1 or len(edges) == 0 or not (np.diff(edges) > 0).all() or not np.isfinite(edges).all():
        raise InputError(f"cuts must be rising numbers, such as [40, 65], not {list(cuts)!r}")
    names = [
        f"below {edges[0]:g}",
        *(f"{a:g} to below {b:g}" for a, b in pairwise(edges)),
        f"from {edges[-1]:g}",
    ]
    index = np.searchsorted(edges, values, "right").astype(np.intp)
    gone = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    index[gone] = len(names)
    return [*names, "missing"], index


def _title(code: int, names: list[list[str]]) -> str:
    parts = []
    for level in reversed(names):
        code, position = divmod(code, len(level))
        parts.append(level[position])
    return ", ".join(reversed(parts))
