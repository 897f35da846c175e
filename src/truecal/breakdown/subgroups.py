"""Subgroups: where does the model fail?

One calibration error per value of a column, each with interval and test. Many tests find something by chance, so the p-values are
adjusted together (Holm), and a subgroup is flagged only when its adjusted p-value is small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.checks import check_level, check_whole
from truecal.errors import InputError
from truecal.estimate import Estimate, Estimator
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.select import column
from truecal.types import Float64s, Indices
from truecal.uncertainty.measurement import measure
from truecal.uncertainty.multiplicity import holm

_MOST = 1000  # distinct values of a column beyond which it is taken for a measurement, not a grouping
SMALL = 30  # rows below which a subgroup is listed but not judged, unless told otherwise


@dataclass(frozen=True, eq=False)
class Subgroups:
    """One row per subgroup, largest error first among the judged, then those too small to judge.

    Attributes
    ----------
    by : the columns asked for. names, counts : the subgroups and their rows.
    estimates : one Estimate each, None where a subgroup is too small to judge.
    adjusted : Holm-adjusted p-values over the judged subgroups, NaN where not judged.
    level : a subgroup is flagged when its adjusted p-value is at most 1 - level.
    overall : the error of all rows together.
    """

    by: tuple[str, ...]
    names: tuple[str, ...]
    counts: Indices
    estimates: tuple[Estimate | None, ...]
    adjusted: Float64s
    level: float
    overall: Estimate

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Subgroups whose error is not chance, at this level for all of them together."""
        return self.adjusted <= 1 - self.level

    def frame(self) -> dict[str, list[Any]]:
        """One row per subgroup, as columns; None where a subgroup is too small to judge."""

        def each(read: Any) -> list[Any]:
            return [None if e is None else read(e) for e in self.estimates]

        return {
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


def subgroups(
    preds: Predictions,
    by: str | Sequence[str],
    *,
    cuts: Sequence[float] | None = None,
    estimator: Estimator | None = None,
    lens: Lens | None = None,
    smallest: int = SMALL,
    level: float = 0.95,
    rng: int = 0,
) -> Subgroups:
    """The calibration error of every value of a column, or of every combination of values of several.

    Parameters
    ----------
    by : name of a column of the predictions, or several names.
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
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns:
        raise InputError("say which column to group by, such as by='site'")
    check_level(level)
    check_whole(smallest, "smallest")
    if cuts is not None and len(columns) > 1:
        raise InputError(f"cuts apply to one column, but {len(columns)} were given; add a column of categories instead")
    parts = [_categories(column(preds, name), name, cuts) for name in columns]
    code = np.zeros(len(preds), np.intp)
    for names, index in parts:
        code = code * len(names) + index
    distinct, member, counts = np.unique(code, return_inverse=True, return_counts=True)
    titles = [_title(int(c), [names for names, _ in parts]) for c in distinct]
    order = np.argsort(member, kind="stable")
    rows = np.split(order, np.cumsum(counts)[:-1])
    estimates = [
        measure(preds.take(r), estimator=estimator, lens=lens, level=level, rng=rng) if len(r) >= smallest else None
        for r in rows
    ]
    overall = measure(preds, estimator=estimator, lens=lens, level=level, rng=rng)
    return worst_first(columns, titles, counts, estimates, level=level, overall=overall)


def worst_first(
    columns: tuple[str, ...],
    titles: Sequence[str],
    counts: Indices,
    estimates: Sequence[Estimate | None],
    *,
    level: float,
    overall: Estimate,
) -> Subgroups:
    """Estimates of subgroups in the order of their errors, with p-values adjusted together."""
    raw = np.array([np.nan if e is None or e.p_value is None else float(e.p_value) for e in estimates])
    adjusted = np.full(len(raw), np.nan)
    adjusted[~np.isnan(raw)] = holm(raw[~np.isnan(raw)])
    order = sorted(
        range(len(titles)), key=lambda i: -np.inf if (e := estimates[i]) is None else float(e.value), reverse=True
    )
    return Subgroups(
        columns,
        tuple(titles[i] for i in order),
        counts[order],
        tuple(estimates[i] for i in order),
        adjusted[order],
        level,
        overall,
    )


def _categories(values: NDArray[Any], name: str, cuts: Sequence[float] | None) -> tuple[list[str], Indices]:
    """Names of the distinct values, and which one each row has; missing values form a group of their own."""
    if values.ndim != 1:
        raise InputError(f"column {name!r} has shape {values.shape}; one value per row is needed")
    if cuts is not None:
        return _ranges(values, name, cuts)
    if values.dtype == object:
        values = np.array(["missing" if v is None or v != v else str(v) for v in values])
    distinct, index = np.unique(values, return_inverse=True)
    if len(distinct) > _MOST:
        raise InputError(
            f"column {name!r} has {len(distinct)} distinct values; group it with cuts=[...] or choose another"
        )
    missing = [values.dtype.kind == "f" and bool(np.isnan(v)) for v in distinct]
    return ["missing" if gone else str(v) for v, gone in zip(distinct, missing, strict=True)], index.astype(np.intp)


def _ranges(values: NDArray[Any], name: str, cuts: Sequence[float]) -> tuple[list[str], Indices]:
    edges = np.asarray(cuts, np.float64)
    if values.dtype.kind not in "iuf":
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
