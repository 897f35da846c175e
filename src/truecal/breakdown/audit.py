"""Audit: where is the model wrong, searched for in all intersections of columns and judged for the search.

References: Westfall, Young. Resampling-based multiple testing. 1993. Liu. Bootstrap procedures under some non-i.i.d. models. 1988.
"""

from collections.abc import Sequence

import truecal as tc
from truecal import options, parallel
from truecal.breakdown.findings import Audit
from truecal.breakdown.groups import Grouped
from truecal.breakdown.segments.records import Records, records_of, records_of_groups
from truecal.breakdown.segments.search import Search, affordable, columns_of
from truecal.breakdown.segments.tables import Tables
from truecal.errors import InputError
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import check_predictions

_LEAST_ROWS = 50  # of a segment, unless there are more than 50,000 rows in all ...
_LEAST_SHARE = 1000  # ... or told otherwise: then a thousandth of them


def audit(
    preds: tc.Predictions | Grouped,
    by: str | Sequence[str] | None = None,
    depth: int = 3,
    lens: Lens | None = None,
    level: float = 0.95,
    min_rows: int | None = None,
    tolerance: float | None = None,
    progress: parallel.Progress = parallel.unheard,
) -> Audit:
    """Which segments of the rows are miscalibrated? All intersections of up to `depth` columns, with one family-wise p-value.

    Every segment is tested as a whole and in halves and quarters of the scores and along them, so that errors that cancel are
    seen. One joint null (outcomes redrawn from the scores; whole clusters multiplied at random where there are some) judges all of
    them together: the chance that any calibrated segment is listed is at most 1 - `level`, however many were looked at. One row is
    listed per cause, not its overlapping intersections. Limits hold for all segments at once, hence for the worst one too.

    Parameters
    ----------
    preds : Predictions with columns, or a Scan that was grouped by the columns to audit.
    by : the columns to search; by default all. Numbers are cut at quintiles, missing values are a level of their own.
    depth : how many columns a segment may combine.
    lens : what is judged; by default the positive class, or the top label. A class-wise lens adds the class as a column.
    level : of the search and of the intervals.
    min_rows : segments of fewer rows are not judged; by default 50, or a thousandth of the rows.
    tolerance : a difference up to which a segment is not worth a failure; see `Segment.beyond`.
    progress : told how many redraws are done.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> columns = {"country": rng.choice(["BR", "DE", "US"], 20000), "device": rng.choice(["mobile", "desktop"], 20000)}
    >>> p = rng.beta(2, 2, 20000)
    >>> bad = (columns["country"] == "BR") & (columns["device"] == "mobile")
    >>> found = tc.audit(tc.Predictions.from_probs(p, rng.random(20000) < p - 0.1 * bad * (p > 0.1), columns=columns))
    >>> [(segment.name, round(segment.difference, 2)) for segment in found.segments]
    [('country is BR, device is mobile', 0.1)]
    """
    level = options.level(level)
    options.whole(depth, "depth")
    check_lens(lens)
    if tolerance is not None:
        options.between(tolerance, "tolerance", 0, 1)
    records = _judged(preds, lens)
    smallest = _smallest(records, min_rows)
    columns, notes = columns_of(records, by, smallest)
    tables = Tables(records, columns, affordable(len(columns), depth, notes), smallest)
    return Search(records, tables, level, progress).audit(_overall(preds, lens, level), tolerance, notes)


def _smallest(records: Records, min_rows: int | None) -> int:
    """Rows from which a segment is judged."""
    total = float(records.counts.sum())
    if min_rows is not None:
        options.whole(min_rows, "min_rows", 2)
    smallest = max(_LEAST_ROWS, int(total // _LEAST_SHARE)) if min_rows is None else int(min_rows)
    if total < smallest:
        raise InputError(f"no segment has {smallest} rows ({total:,.0f} in all); lower min_rows or give more rows")
    return smallest


def _judged(preds: tc.Predictions | Grouped, lens: Lens | None) -> Records:
    """The rows, or the cells of a scan."""
    if isinstance(preds, tc.Predictions):
        return records_of(preds, default_lens(preds) if lens is None else lens)
    if not hasattr(preds, "sketches"):
        check_predictions(preds)
    if lens is not None:
        raise InputError("a Scan was made with its lens; give the lens to tc.scan")
    return records_of_groups(preds)


def _overall(preds: tc.Predictions | Grouped, lens: Lens | None, level: float) -> tc.Estimate:
    """The error of all rows together."""
    return (
        tc.measure(preds, lens=lens, level=level) if isinstance(preds, tc.Predictions) else preds.measure(level=level)
    )
