"""Subgroups: where does the model fail?

One calibration error per value of a column, each with interval and test. Many tests find something by chance, so the p-values are
adjusted together, and a subgroup is flagged only when its adjusted p-value is small.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.breakdown.groups import Grouped, Groups, Setting, group_estimates, redraws
from truecal.errors import InputError
from truecal.estimate import Estimator, check_estimator, rank_series
from truecal.frame import Frame, Tabular
from truecal.lens import Lens, check_lens
from truecal.predictions import check_predictions
from truecal.types import Float64s, Indices

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

    Adjusted p-values come from one joint null over all subgroups (:class:`truecal.estimate.Family`): outcomes redrawn from the
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
        check_estimator(estimator)
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
    family, judged = rank_series.Family(redraws(level, len(counts)), rng), counts >= smallest
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
