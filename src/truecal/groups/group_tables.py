"""`tc.subgroups`: the calibration error of every value of a column, tested together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator, VectorEstimator, as_estimator
from truecal.estimators.rank_series.tests import Family
from truecal.inference.measurement import measure_groups
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions import validation
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.predictions.selection import RowGroups, categories, column
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

SMALL = 30  # by choice: rows below which a group is listed and not tested, unless `smallest` differs
_MAX_VALUES = 1000  # by choice: distinct values of a column beyond which it is a measurement, not a grouping
_FEW_GROUPS = 200  # by choice: groups up to which there are 999 redraws


class GroupedSketches(Protocol):
    """The part of a Scan used here: sketches of every combination of values of the columns `by`, and their errors."""

    @property
    def sketches(self) -> Mapping[Any, Sequence[tc.Sketch]]:
        """Sketches of every group, one per class that is judged, by the tuple of its values."""
        ...

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that define the groups."""
        ...

    @property
    def names(self) -> Mapping[Any, str]:
        """Name of every group, in the order of `groups`."""
        ...

    def measure(self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0) -> tc.Estimate:
        """Estimate the error of all rows together."""
        ...

    def groups(
        self, *, estimator: Estimator | None = None, level: float = 0.95, rng: int = 0
    ) -> Mapping[Any, tc.Estimate]:
        """Estimate the error of every group, by the tuple of its values."""
        ...


def _redraw_count(level: float, groups: int) -> int:
    """Return the number of redraws: 999 for up to 200 groups, else 199, and at least ceil(10 / (1 - level)) - 1.

    >>> _redraw_count(0.95, 10), _redraw_count(0.95, 500), _redraw_count(0.999, 10)
    (999, 199, 9999)
    """
    return max(999 if groups <= _FEW_GROUPS else 199, int(np.ceil(10 / (1 - level) - 1e-9)) - 1)


def _measure_groups(
    preds: tc.Predictions,
    groups: RowGroups,
    tested: NDArray[np.bool_],
    estimator: Estimator | None,
    lens: Lens | None,
    level: float,
    rng: int,
) -> tuple[Sequence[tc.Estimate], Float64s]:
    """Measure the tested groups; return their Estimates, in order, and family-wise p-values, (tested groups,).

    `tested` (groups,) is a mask. p-values come from joint redraws of all groups; for several probabilities they are those of the
    estimates, adjusted by Holm, NaN where there is none. Without tested groups both are empty.
    """
    if not tested.any():
        return [], np.empty(0)
    chosen = estimator.own_lens(lens) if isinstance(estimator, VectorEstimator) else lens
    chosen = default_lens(preds) if chosen is None else chosen
    rows = compress(groups.rows(), tested)
    estimates = measure_groups(preds, rows, estimator=estimator, lens=lens, level=level, rng=rng)
    if chosen.several or isinstance(estimator, VectorEstimator):
        p_values = np.array([np.nan if e.p_value is None else float(e.p_value) for e in estimates])
        has_test = ~np.isnan(p_values)
        p_values[has_test] = tc.inference.holm(p_values[has_test])
        return estimates, p_values
    family = Family(_redraw_count(level, len(estimates)), rng)
    position = np.where(tested, np.cumsum(tested) - 1, -1)[groups.member]
    for sample in chosen.samples(preds):
        family.add(sample, np.repeat(position, len(sample) // len(preds)))
    return estimates, family.adjusted()


def _categories(preds: tc.Predictions, name: str, cuts: Sequence[float] | None) -> tuple[list[str], Indices]:
    """Return the distinct values of a column, or its ranges between cuts, as text, and the index of every row among them, (n,).

    Missing values are the last, "missing". Refuses more than 1,000 values.
    """
    if cuts is not None:
        return _ranges(column(preds, name), name, cuts)
    names, index = categories(preds, name)
    if len(names) > _MAX_VALUES:
        raise InputError(
            f"column {name!r} has {len(names)} distinct values; group it with cuts=[...] or choose another"
        )
    return names, index


def _ranges(values: NDArray[Any], name: str, cuts: Sequence[float]) -> tuple[list[str], Indices]:
    """Return the names of the ranges between increasing cuts, "missing" last, and the index of the range of every value.

    A value on a cut belongs to the range above it, NaN to "missing". Refuses columns that are not numbers, and cuts that do not
    increase.

    >>> _ranges(np.array([39.0, 40.0, np.nan]), "age", [40, 65])
    (['below 40', '40 to below 65', 'from 65', 'missing'], array([0, 1, 3]))
    """
    edges = validation.as_floats(list(cuts), "cuts")
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise InputError(f"column {name!r} holds {values.dtype.name}, which cannot be cut; leave cuts out")
    if edges.ndim != 1 or len(edges) == 0 or not (np.diff(edges) > 0).all() or not np.isfinite(edges).all():
        raise InputError(f"cuts must be rising numbers, such as [40, 65], not {list(cuts)!r}")
    between = [f"{a:g} to below {b:g}" for a, b in pairwise(edges)]
    names = [f"below {edges[0]:g}", *between, f"from {edges[-1]:g}", "missing"]
    index = np.searchsorted(edges, values, "right").astype(np.intp)
    return names, np.where(np.isnan(values), len(names) - 1, index)


@dataclass(frozen=True, eq=False, repr=False)
class Subgroups(Tabular):
    """Calibration errors of groups of rows, the largest first; groups too small to test come last.

    Attributes
    ----------
    by : tuple of str
        The columns that define the groups.
    names : tuple of str
        The groups, by the values of the columns.
    counts : array of shape (groups,)
        Rows of each group.
    estimates : tuple of Estimate or None
        One Estimate per group, None where a group is too small to test. The interval of a group that is not flagged starts at
        0: of many calibrated groups some lie above 0 by chance.
    adjusted : array of shape (groups,)
        Family-wise p-values over the tested groups, NaN where a group is not tested.
    level : float
        A group is flagged when its adjusted p-value is at most 1 - level.
    overall : Estimate
        The error of all rows together.

    See Also
    --------
    truecal.subgroups : The function that returns it.
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
        """Which groups are miscalibrated at `level` for all of them together: adjusted p-value at most 1 - level, shape
        (groups,).

        False where it is NaN, as for groups too small to test.
        """
        return self.adjusted <= 1 - self.level

    def beyond(self, tolerance: float) -> NDArray[np.bool_]:
        """Find the groups whose error exceeds a tolerance, at `level` for all of them together.

        Parameters
        ----------
        tolerance : float
            Largest acceptable calibration error, from 0 to 1.

        Returns
        -------
        array of bool, shape (groups,)
            True where a group is flagged and its simultaneous lower limit lies above the tolerance.

        Raises
        ------
        InputError
            A tolerance outside [0, 1].

        Notes
        -----
        The lower limit is that of the interval, its distance from the value stretched by the ratio of normal quantiles from
        two-sided `level` to one-sided 1 - (1 - level) / m for m tested groups (Bonferroni's correction).
        """
        from scipy.special import ndtri

        options.between(tolerance, "tolerance", 0, 1)
        tested = max(1, int((~np.isnan(self.adjusted)).sum()))
        stretch = float(ndtri(1 - (1 - self.level) / tested) / ndtri(0.5 + self.level / 2))
        lows = [
            -np.inf
            if e is None or e.interval is None
            else float(e.value) - (float(e.value) - float(e.interval.low)) * stretch
            for e in self.estimates
        ]
        return self.flagged & (np.array(lows) > tolerance)

    def frame(self) -> Frame:
        """Return one row per group: group, n, error, low, high, direction, p_value, adjusted, flagged.

        For a group too small to test all are None but group, n and flagged, which is False.
        """

        def by_group(value: Any) -> list[Any]:
            """Apply a function to the estimate of every group; None where there is no estimate."""
            return [None if e is None else value(e) for e in self.estimates]

        return Frame(
            {
                "group": list(self.names),
                "n": self.counts.tolist(),
                "error": by_group(lambda e: float(e.value)),
                "low": by_group(lambda e: None if e.interval is None else float(e.interval.low)),
                "high": by_group(lambda e: None if e.interval is None else float(e.interval.high)),
                "direction": by_group(lambda e: float(e.direction)),
                "p_value": by_group(lambda e: None if e.p_value is None else float(e.p_value)),
                "adjusted": [None if np.isnan(p) else float(p) for p in self.adjusted],
                "flagged": self.flagged.tolist(),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: "by", "level", "groups" (the rows of :meth:`frame`) and "overall" (error of all rows,
        by `Estimate.to_dict`).
        """
        return {
            "by": list(self.by),
            "level": float(self.level),
            "groups": list(self.frame()),
            "overall": self.overall.to_dict(),
        }

    def _headline(self) -> str:
        """Write what was tested, such as "3 groups by site, 1 miscalibrated at 95%"; columns are joined by " x "."""
        return f"{len(self.names)} groups by {' x '.join(self.by)}, {int(self.flagged.sum())} miscalibrated at {self.level:.0%}"

    def __str__(self) -> str:
        """Write a table with a line per group: rows, error with its interval, adjusted p-value, and "miscalibrated" where it is
        flagged.

        A group too small to test has "too few rows to test" in place of these.
        """
        lines = [f"{' x '.join(self.by):<24}{'n':>8}  {'error':<26}{'adjusted p':>11}"]
        for name, count, estimate, p in zip(self.names, self.counts, self.estimates, self.adjusted, strict=True):
            if estimate is None:
                lines.append(f"{name:<24}{count:>8}  too few rows to test")
                continue
            error = f"{float(estimate.value):.4f}"
            if (interval := estimate.interval) is not None:
                error += f" [{float(interval.low):.4f}, {float(interval.high):.4f}]"
            lines.append(
                f"{name:<24}{count:>8}  {error:<26}{p:>11.3g}{'  miscalibrated' if p <= 1 - self.level else ''}"
            )
        return "\n".join(lines)


@takes_arrays
def subgroups(
    preds: tc.Predictions | GroupedSketches,
    by: str | Sequence[str] | None = None,
    *,
    cuts: Sequence[float] | None = None,
    estimator: Estimator | None = None,
    lens: Lens | None = None,
    smallest: int = SMALL,
    level: float = 0.95,
    rng: int = 0,
) -> Subgroups:
    """Measure the calibration error of every value of a column, or of every combination of values of several.

    Parameters
    ----------
    preds : Predictions or Scan
        Predictions with columns, or a Scan that was grouped; or `y_true, y_prob` with `columns=`.
    by : str or sequence of str, default None
        One column of the predictions, or several. A Scan is grouped already.
    cuts : sequence of float, default None
        Where to cut one numeric column: [40, 65] gives below 40, 40 to below 65, 65 and above.
    estimator : Estimator, default None
        None is :class:`truecal.RankSeries`.
    lens : Lens, default None
        What is judged; None is the positive class of two, the top label of more.
    smallest : int, default 30
        Groups of fewer rows are listed, not tested, and do not count in the adjustment.
    level : float, default 0.95
        Level of intervals, and of the family-wise test.
    rng : int, default 0
        Seed of the redraws.

    Returns
    -------
    Subgroups
        One row per group, the largest error first.

    Raises
    ------
    InputError
        Unknown columns, columns of more than 1,000 values, cuts that do not rise.

    Notes
    -----
    Adjusted p-values come from one joint null distribution over all groups: outcomes redrawn from the scores, or signs of whole
    clusters flipped, for all groups together (step-down maximum statistics). They can be small however many groups there are.

    See Also
    --------
    audit : Search all intersections of columns and regions of scores.
    truecal.measure : Measure one set of rows.

    Examples
    --------
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
        return _measure_scan(preds, estimator, smallest, level, rng)
    columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if not columns:
        raise InputError("name the column to group by, such as by='site'")
    if cuts is not None and len(columns) > 1:
        raise InputError(f"cuts apply to one column, but {len(columns)} were given; add a column of categories instead")
    groups = RowGroups.from_categories([_categories(preds, name, cuts) for name in columns])
    weights = np.bincount(groups.member, preds.weights, len(groups.names))
    tested = (groups.counts >= smallest) & (weights > 0)
    estimates, adjusted = _measure_groups(preds, groups, tested, estimator, lens, level, rng)
    overall = tc.measure(preds, estimator=estimator, lens=lens, level=level, rng=rng)
    return _order_groups(columns, groups.names, groups.counts, tested, estimates, adjusted, level, overall)


def _measure_scan(
    scan: GroupedSketches, estimator: Estimator | None, smallest: int, level: float, rng: int
) -> Subgroups:
    """Measure the groups of a scan from their sketches, the largest error first.

    Groups of fewer than `smallest` rows are not tested and come last. The sketches of all classes of a group are tested together.
    """
    estimates = scan.groups(estimator=estimator, level=level, rng=rng)
    counts = np.array([estimate.n for estimate in estimates.values()])
    names = list(scan.names.values())
    family, tested = Family(_redraw_count(level, len(counts)), rng), counts >= smallest
    sketches = [(i, sketch) for i, key in enumerate(compress(estimates, tested)) for sketch in scan.sketches[key]]
    family.add_profiles((sketch.to_profile() for _, sketch in sketches), (i for i, _ in sketches))
    adjusted = family.adjusted() if tested.any() else np.empty(0)
    overall = scan.measure(estimator=estimator, level=level, rng=rng)
    return _order_groups(
        scan.by, names, counts, tested, list(compress(estimates.values(), tested)), adjusted, level, overall
    )


def _order_groups(
    columns: tuple[str, ...],
    names: Sequence[str],
    counts: Indices,
    tested: NDArray[np.bool_],
    estimates: Sequence[tc.Estimate],
    adjusted: Float64s,
    level: float,
    overall: tc.Estimate,
) -> Subgroups:
    """Build the table of groups, the largest error first and untested groups last, in their given order where errors are equal.

    `names`, `counts` and `tested` (a mask) are of all groups; `estimates` and `adjusted` p-values of the tested ones. Intervals of
    groups that are not significant are lowered to 0.
    """
    values, p_values = np.full(len(names), -np.inf), np.full(len(names), np.nan)
    unadjusted = [0.0 if e.p_value is None else float(e.p_value) for e in estimates]
    # Both are counted in redraws of their own, so that an adjusted p-value may fall below the unadjusted one by chance.
    values[tested], p_values[tested] = [float(e.value) for e in estimates], np.maximum(adjusted, unadjusted)
    by_group = dict(zip(np.flatnonzero(tested).tolist(), estimates, strict=True))
    order = np.argsort(-values, kind="stable")
    ranked = [by_group.get(i) for i in order.tolist()]
    adjusted = p_values[order]
    reported = [
        None if e is None else _lower_to_zero(e, p, level) for e, p in zip(ranked, adjusted.tolist(), strict=True)
    ]
    return Subgroups(columns, tuple(names[i] for i in order), counts[order], tuple(reported), adjusted, level, overall)


def _lower_to_zero(estimate: tc.Estimate, adjusted: float, level: float) -> tc.Estimate:
    """Return the estimate of a group with its interval from 0 unless the adjusted p-value is at most 1 - level.

    Unchanged without an interval, and where the p-value is NaN.

    >>> estimate = tc.measure(tc.Predictions.from_probs([0.2, 0.8] * 50, [1, 0] * 50))
    >>> float(_lower_to_zero(estimate, 0.2, 0.95).interval.low), _lower_to_zero(estimate, 0.01, 0.95) is estimate
    (0.0, True)
    """
    interval = estimate.interval
    if interval is None or adjusted <= 1 - level or np.isnan(adjusted) or float(interval.low) == 0:
        return estimate
    return estimate.replace(interval=replace(interval, low=0.0, method=f"{interval.method}, from 0 among many groups"))
