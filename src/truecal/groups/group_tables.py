"""`tc.subgroups`: groups of rows by the values of columns, and their errors measured together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator, VectorEstimator, with_level
from truecal.estimators.estimate import Interval
from truecal.estimators.functions import as_estimator
from truecal.estimators.rank_series.tests import Family, narrowed
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.predictions.selection import categories, column
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# Groups of rows by the values of columns, and their errors measured together

_MOST = 1000  # distinct values of a column beyond which it is taken for a measurement, not a grouping
_MANY = 100  # groups; beyond, those of equal size are measured in one pass, without their curves
_FEW = 200  # groups up to which redraws are 999
_LEAST_COUNTED = 1 << 16  # combinations of values that are counted however few the rows


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
        size = prod(len(names) for names, _ in parts)
        if size <= max(len(code), _LEAST_COUNTED):  # counting is quicker than sorting
            totals = np.bincount(code, minlength=size)
            distinct = np.flatnonzero(totals)
            counts, member = totals[distinct], (np.cumsum(totals > 0) - 1)[code]
        else:
            distinct, member, counts = np.unique(code, return_inverse=True, return_counts=True)
        titles = tuple(_title(int(c), [names for names, _ in parts]) for c in distinct)
        return cls(titles, counts, member, counts >= smallest)

    def rows(self) -> list[Indices]:
        """The rows of every group."""
        order = np.argsort(narrowed(self.member), kind="stable")
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
    if isinstance(estimator, VectorEstimator):
        lens = estimator.own_lens(lens)
    lens = default_lens(preds) if lens is None else lens
    if not groups.judged.any():
        return [None] * len(groups.counts)
    several = lens.several or isinstance(estimator, VectorEstimator)
    family = None
    if not several:
        family = Family(redraws(setting.level, int(groups.judged.sum())), setting.rng)
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
    adjusted[~np.isnan(own)] = tc.inference.holm(own[~np.isnan(own)])
    return adjusted


def _batched(
    preds: tc.Predictions, groups: Groups, lens: Lens, setting: Setting, family: Family
) -> list[tc.Estimate] | None:
    """Many groups of independent rows, those of equal size in one pass; None where groups are measured one by one."""
    if int(groups.judged.sum()) <= _MANY or lens.shares(preds) is not None or preds.weights is not None:
        return None
    sample = lens.sample(preds)
    if not sample.independent:
        return None
    estimator = with_level(setting.estimator or tc.RankSeries(), setting.level, setting.rng)
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


def _profile(sample: tc.lenses.Sample, rows: Indices) -> tc.profile.Profile:
    return tc.profile.Profile.from_arrays(sample.scores[rows], sample.outcomes[rows])


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
    edges = validation.as_floats(list(cuts), "cuts")
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


# ----------------------------------------------------------------------------------------------------
# Subgroups: where does the model fail?

SMALL = 30  # rows below which a subgroup is listed but not judged, unless told otherwise


@dataclass(frozen=True, eq=False, repr=False)
class Subgroups(Tabular):
    """One row per subgroup, largest error first among the judged, then those too small to judge.

    Attributes
    ----------
    by : the columns asked for. names, counts : the subgroups and their rows.
    estimates : one Estimate each, None where a subgroup is too small to judge. The interval of one that is not flagged starts
        at 0: of many subgroups some lie above 0 by chance.
    adjusted : family-wise p-values over the judged subgroups, NaN where not judged.
    level : a subgroup is flagged when its adjusted p-value is at most 1 - level.
    overall : the error of all rows together.
    """

    by: tuple[str, ...]
    names: tuple[str, ...]
    counts: Indices
    estimates: tuple[tc.Estimate | None, ...]
    adjusted: Float64s
    level: float
    overall: tc.Estimate

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Subgroups whose error is not chance, at this level for all of them together."""
        return self.adjusted <= 1 - self.level

    def beyond(self, tolerance: float) -> NDArray[np.bool_]:
        """Subgroups whose error is larger than a tolerance, at this level for all of them together.

        Flagged, and with a lower limit above the tolerance: that of the interval, its distance from the value stretched by the
        ratio of normal quantiles from two-sided `level` to one-sided 1 - (1 - level) / (number judged), Bonferroni's correction.
        """
        from scipy.special import ndtri

        options.between(tolerance, "tolerance", 0, 1)
        judged = max(1, int((~np.isnan(self.adjusted)).sum()))
        stretch = float(ndtri(1 - (1 - self.level) / judged) / ndtri(0.5 + self.level / 2))
        lows = [
            -np.inf
            if e is None or e.interval is None
            else float(e.value) - (float(e.value) - float(e.interval.low)) * stretch
            for e in self.estimates
        ]
        return self.flagged & (np.array(lows) > tolerance)

    def frame(self) -> Frame:
        """One row per subgroup; None where a subgroup is too small to judge."""

        def each(read: Any) -> list[Any]:
            return [None if e is None else read(e) for e in self.estimates]

        return Frame(
            {
                "group": list(self.names),
                "n": self.counts.tolist(),
                "error": each(lambda e: float(e.value)),
                "low": each(lambda e: None if e.interval is None else float(e.interval.low)),
                "high": each(lambda e: None if e.interval is None else float(e.interval.high)),
                "direction": each(lambda e: float(e.direction)),
                "p_value": each(lambda e: None if e.p_value is None else float(e.p_value)),
                "adjusted": [None if np.isnan(p) else float(p) for p in self.adjusted],
                "flagged": self.flagged.tolist(),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Groups, their numbers and the error of all rows, as plain values."""
        return {
            "by": list(self.by),
            "level": float(self.level),
            "groups": list(self.frame()),
            "overall": self.overall.to_dict(),
        }

    def _headline(self) -> str:
        return f"{len(self.names)} groups by {' x '.join(self.by)}, {int(self.flagged.sum())} miscalibrated at {self.level:.0%}"

    def __str__(self) -> str:
        lines = [f"{' x '.join(self.by):<24}{'n':>8}  {'error':<26}{'adjusted p':>11}"]
        for name, count, estimate, p in zip(self.names, self.counts, self.estimates, self.adjusted, strict=True):
            if estimate is None:
                lines.append(f"{name:<24}{count:>8}  too few rows to judge")
                continue
            reach = estimate.interval
            shown = f"{float(estimate.value):.4f}"
            if reach is not None:
                shown += f" [{float(reach.low):.4f}, {float(reach.high):.4f}]"
            lines.append(
                f"{name:<24}{count:>8}  {shown:<26}{p:>11.3g}{'  miscalibrated' if p <= 1 - self.level else ''}"
            )
        return "\n".join(lines)


@takes_arrays
def subgroups(
    preds: tc.Predictions | Grouped,
    by: str | Sequence[str] | None = None,
    *,
    cuts: Sequence[float] | None = None,
    estimator: Estimator | None = None,
    lens: Lens | None = None,
    smallest: int = SMALL,
    level: float = 0.95,
    rng: int = 0,
) -> Subgroups:
    """The calibration error of every value of a column, or of every combination of values of several.

    Adjusted p-values come from one joint null over all subgroups (:class:`truecal.estimators.Family`): outcomes redrawn from the
    scores, or signs of whole clusters turned, for all of them together. So they can be small however many subgroups there are.

    Parameters
    ----------
    preds : Predictions with columns, or a Scan that was grouped.
    by : name of a column of the predictions, or several names. A Scan is grouped already.
    cuts : for one numeric column, where to cut it: [40, 65] gives below 40, 40 to below 65, 65 and above.
    estimator, lens, level, rng : as in :func:`calibration_error`.
    smallest : subgroups of fewer rows are listed, not judged, and do not count in the adjustment.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.random(3000), np.repeat(["A", "B", "C"], 1000)
    >>> truth = np.where(site == "B", p**2, p)  # overconfident at site B only
    >>> table = tc.subgroups(tc.Predictions.from_probs(p, rng.random(3000) < truth, columns={"site": site}), "site")
    >>> table.names, table.flagged.tolist()
    (('B', 'A', 'C'), [True, False, False])
    """
    level = options.level(level)
    options.whole(smallest, "smallest")
    check_lens(lens)
    if estimator is not None:
        estimator = as_estimator(estimator)
    if not isinstance(preds, tc.Predictions):
        if not hasattr(preds, "sketches"):
            check_predictions(preds)
        if by is not None or cuts is not None or lens is not None:
            raise InputError("a Scan is grouped and judged already; give by= and lens= to tc.scan")
        return _of_groups(preds, estimator, smallest, level, rng)
    columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if not columns:
        raise InputError("say which column to group by, such as by='site'")
    if cuts is not None and len(columns) > 1:
        raise InputError(f"cuts apply to one column, but {len(columns)} were given; add a column of categories instead")
    groups = Groups.of(preds, columns, cuts, smallest)
    estimates = group_estimates(preds, groups, Setting(estimator, lens, level, rng))
    overall = tc.measure(preds, estimator=estimator, lens=lens, level=level, rng=rng)
    return ranked(columns, groups.titles, groups.counts, estimates, level=level, overall=overall)


def _of_groups(groups: Grouped, estimator: Estimator | None, smallest: int, level: float, rng: int) -> Subgroups:
    """The groups of a scan, from their sketches."""
    measured = groups.groups(estimator=estimator, level=level, rng=rng)
    counts = np.array([estimate.n for estimate in measured.values()])
    titles = [", ".join("missing" if value is None else str(value) for value in key) for key in measured]
    family, judged = Family(redraws(level, len(counts)), rng), counts >= smallest
    for place, key in enumerate(key for key, kept in zip(measured, judged, strict=True) if kept):
        for sketch in groups.sketches[key]:
            family.add_profile(sketch.to_profile(), place)
    adjusted = iter(family.adjusted() if judged.any() else ())
    estimates = [
        (estimate, float(next(adjusted))) if kept else None
        for estimate, kept in zip(measured.values(), judged, strict=True)
    ]
    overall = groups.measure(estimator=estimator, level=level, rng=rng)
    return ranked(groups.by, titles, counts, estimates, level=level, overall=overall)


def ranked(
    columns: tuple[str, ...],
    titles: Sequence[str],
    counts: Indices,
    estimates: Sequence[tuple[tc.Estimate, float] | None],
    *,
    level: float,
    overall: tc.Estimate,
) -> Subgroups:
    """Estimates of subgroups with their adjusted p-values in the order of their errors; None is listed last."""
    order = sorted(
        range(len(titles)), key=lambda i: -np.inf if (e := estimates[i]) is None else float(e[0].value), reverse=True
    )
    return Subgroups(
        columns,
        tuple(titles[i] for i in order),
        counts[order],
        tuple(None if (e := estimates[i]) is None else _among_others(*e, level) for i in order),
        np.array([np.nan if (e := estimates[i]) is None else e[1] for i in order]),
        level,
        overall,
    )


def _among_others(estimate: tc.Estimate, adjusted: float, level: float) -> tc.Estimate:
    """The estimate as one of many: what all of them together do not tell from a calibrated subgroup may be one."""
    reach = estimate.interval
    if reach is None or adjusted <= 1 - level or np.isnan(adjusted) or float(reach.low) == 0:
        return estimate
    return estimate.but(interval=replace(reach, low=0.0, method=f"{reach.method}, from 0 among many groups"))
