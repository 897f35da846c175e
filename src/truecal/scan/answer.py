"""From sketches to an Estimate: the front door's answer, for data of which only cells were seen."""

from collections.abc import Sequence

import numpy as np

import truecal as tc
from truecal import estimate as estimators
from truecal.estimate import Estimator, check_estimator, combined
from truecal.types import Float64s


def measure_classes(
    sketches: Sequence[tc.Sketch],
    shares: Float64s,
    *,
    estimator: Estimator | None = None,
    lens: str,
    level: float = 0.95,
) -> tc.Estimate:
    """One error over all classes: the weighted p-mean of theirs, as :class:`ClassWise` has it for rows in memory."""
    chosen = _estimator(estimator, level)
    norm = chosen.power_norm
    parts = [chosen(sketch) for sketch in sketches]
    ranges = [chosen.sketch_range(s.to_profile(), part) for s, part in zip(sketches, parts, strict=True)]
    power = np.array([[float(part.power), r.low, r.high] for part, r in zip(parts, ranges, strict=True)])
    overall = combined(power, shares, norm)
    value, low, high = chosen.root(overall).tolist()
    return tc.Estimate(
        value=value,
        power=float(overall[0]),
        n=max(part.n for part in parts),
        effective_n=max(float(part.effective_n) for part in parts),
        estimator=chosen,
        norm=norm,
        direction=float(shares @ np.array([float(part.direction) for part in parts])),
        lens=lens,
        warnings=_warnings(parts, ranges),
        parts=chosen.root(power[:, 0]),
        sketch_error=min(max(high - value, value - low, 0.0) + 1e-12, 1.0),
        sketch_bound="probed" if any(r.bound == "probed" for r in ranges) else "proved",
    )


def _warnings(parts: Sequence[tc.Estimate], ranges: Sequence[estimators.SketchRange]) -> tuple[str, ...]:
    """Those of the classes, once each; where their sweeps may stop is said for all together."""
    notes: dict[str, None] = {}
    unsure = 0
    for part, range_ in zip(parts, ranges, strict=True):
        unsure += bool(range_.warnings)
        notes |= dict.fromkeys(note for note in part.warnings if note not in range_.warnings)
    if unsure:
        notes[f"the sweeps of {unsure} of {len(parts)} classes may stop at other numbers of bins for all rows"] = None
    return tuple(notes)


def _estimator(estimator: Estimator | None, level: float) -> Estimator:
    chosen = tc.RankSeries() if estimator is None else estimator
    check_estimator(chosen)
    return chosen.at_level(level)
