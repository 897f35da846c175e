"""Everything a page says, as one record: computed here, drawn elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np

from truecal.errors import InputError
from truecal.estimate import (
    BinnedECE,
    DebiasedECE,
    Estimate,
    Estimator,
    IsotonicError,
    KernelDensityECE,
    LabelBinnedECE,
    NearestECE,
    RankSeries,
    SmoothECE,
    SweepECE,
)
from truecal.lens import ClassWise, Lens, OneClass, TopLabel
from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.profile.sketch.profile import CellProfile
from truecal.profile.sketch.sketch import Sketch
from truecal.report.model.bias import bias
from truecal.report.model.breakdown import likert_rows, per_class, per_group, per_scanned_group
from truecal.report.model.cells import MOST_BINS, cells_of
from truecal.report.model.curves import thinned
from truecal.report.model.recalibration import recalibration
from truecal.report.model.verdict import judge
from truecal.report.provenance import fingerprint, now, versions
from truecal.report.records import document, estimate_record
from truecal.scan import Scan
from truecal.uncertainty import band, bootstrap
from truecal.uncertainty.measurement import measure

_RESAMPLES = 200
OTHERS: tuple[Estimator, ...] = (
    DebiasedECE(),
    SweepECE(),
    NearestECE(),
    KernelDensityECE(),
    BinnedECE(scheme="width"),
    BinnedECE(scheme="mass"),
    BinnedECE(scheme="width", norm=np.inf),
    LabelBinnedECE(),
    SmoothECE(),
    IsotonicError(),
)


def gather(
    data: Predictions | Profile | Sketch | Scan,
    *,
    lens: Lens | None,
    by: str | None,
    tolerance: float,
    level: float,
    title: str,
    source: str | None,
    command: str | None,
    rng: int,
    fast: bool = False,
    progress: Callable[[str], object] = str,
) -> dict[str, Any]:
    """All numbers and words of the page. `progress` is told what is being computed."""
    progress("measuring")
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance must lie strictly between 0 and 1, not {tolerance!r}")
    scan = data if isinstance(data, Scan) else None
    if isinstance(data, Scan | Sketch):
        _refuse_rows(lens, by)
        if scan is not None and isinstance(scan.lens, ClassWise):
            raise InputError(
                "the report judges one quantity; scan with TopLabel() or OneClass(name) instead of ClassWise()"
            )
        data = (data.sketch if isinstance(data, Scan) else data).to_profile()
        lens = None if scan is None else scan.lens
    if isinstance(data, Predictions):
        lens = (OneClass() if data.binary else TopLabel()) if lens is None else lens
        if lens.shares(data) is not None:
            raise InputError(
                "the report judges one quantity; its per-class table is always there, so leave out ClassWise()"
            )
        profile, judged = lens(data), lens.describe(data)
        head = measure(data, lens=lens, level=level, rng=rng)
        absolute = (
            RankSeries(norm=1, level=level)(profile).but(p_value=head.p_value)
            if data.clusters is None
            else measure(data, estimator=RankSeries(norm=1), lens=lens, level=level, rng=rng)
        )
    elif isinstance(data, Profile) and data.batch == 1:
        profile = data if isinstance(data, CellProfile) else Profile(*_parts(data), single=True)
        judged = "scores" if scan is None else scan.judged
        head, absolute = (_of_profile(profile, norm, level, rng) for norm in (2, 1))
        if scan is not None:
            head = scan.noted(head)
    else:
        raise InputError(
            f"a report is made from Predictions, the Profile of one dataset, a Sketch or a Scan, not {type(data).__name__}"
        )
    progress("asking every estimator")
    found = [head, absolute, *_others(profile, None if fast else data, lens, level, rng)]
    whole = profile.at_count(np.array([[profile.rows]]))
    confidence, rate = (float(profile.sums(name, whole)[0, 0] / profile.total[0]) for name in ("c", "y"))
    cells = cells_of(profile)
    groups, likert, remedies, biases = None, None, None, None
    if by is not None:
        if not isinstance(data, Predictions) or lens is None:
            raise InputError("a Profile has no columns to group by; pass Predictions")
        groups = per_group(data, by, lens=lens, level=level, rng=rng)
    if scan is not None and scan.by:
        by = ", ".join(scan.by)
        groups = per_scanned_group(scan, head, level=level, rng=rng)
    progress("going through classes")
    classes = per_class(data, level=level) if isinstance(data, Predictions) and data.class_count > 2 else None
    if isinstance(data, Predictions) and lens is not None:
        progress("judging low, medium and high confidence")
        likert = likert_rows(data, level=level, rng=rng) if data.binary or isinstance(lens, TopLabel) else None
        if not fast:
            progress("recalibrating on held-out folds")
            remedies = recalibration(data, lens=lens, level=level, rng=rng)
    if not fast:
        progress("simulating data like these")
        biases = bias(profile, rng=rng)
    isotonic = next(e for e in found if isinstance(e.estimator, IsotonicError))
    verdict = judge(head, tolerance=tolerance)
    return document(
        "report",
        title=title,
        source=source,
        judged=judged,
        top_label=isinstance(lens, TopLabel),
        n=head.n,
        class_count=data.class_count if isinstance(data, Predictions) else None if scan is None else scan.classes,
        sketch=_sketch(profile, found, scan),
        level=level,
        tolerance=tolerance,
        verdict={
            "kind": verdict.kind,
            "badge": verdict.badge,
            "sentence": verdict.sentence,
            "reading": verdict.reading,
        },
        head=estimate_record(head, level=level),
        absolute=estimate_record(absolute, level=level),
        mean_score=confidence,
        mean_outcome=rate,
        estimates=[estimate_record(e, level=level) for e in found],
        classes=None if classes is None else {"rows": classes.rows, "left_out": classes.left_out},
        groups=None if groups is None else {"by": by, "rows": groups.rows, "left_out": groups.left_out},
        likert=likert,
        recalibration=remedies,
        bias=biases,
        cells=cells.record(),
        cell_count=len(cells.low),
        cells_of_one=cells.alone,
        most_bins=MOST_BINS,
        curves={
            "smooth": _with_band(thinned(head.curve), profile, level),
            "isotonic": thinned(isotonic.curve, steps=True),
        },
        reproduce={
            "made": now(),
            "versions": versions(),
            "fingerprint": fingerprint(data),
            "command": command,
            "options": {"level": level, "tolerance": tolerance, "lens": judged, "by": by, "rng": rng},
        },
    )


def _parts(profile: Profile) -> tuple[Any, ...]:
    return profile.scores, profile.outcomes, profile.weights, profile.squares, profile.products


def _refuse_rows(lens: Lens | None, by: str | None) -> None:
    """What a sketch cannot be asked any more."""
    if lens is not None or by is not None:
        raise InputError("a sketch holds no rows; say lens= and by= where it is made: tc.scan(..., lens=..., by=...)")


def _sketch(profile: Profile, found: list[Estimate], scan: Scan | None) -> dict[str, Any] | None:
    """How far the page is from one made of all rows; None where it is that one."""
    if not isinstance(profile, CellProfile):
        return None
    bound = found[0].sketch_bound
    return {
        "cells": profile.rows,
        "error": found[0].sketch_error,
        "bound": bound,
        "engine": None if scan is None else scan.engine,
    }


def _of_profile(profile: Profile, norm: float, level: float, rng: int) -> Estimate:
    estimator = RankSeries(norm=norm, level=level)
    return estimator(profile).but(p_value=float(estimator.test(profile, rng=rng).p_value[0]))


def _others(
    profile: Profile, resampled: Predictions | Profile | None, lens: Lens | None, level: float, rng: int
) -> list[Estimate]:
    """The other estimators on the same data, with bootstrap intervals where there is something to resample."""
    found = []
    for estimator in OTHERS:
        estimate = estimator(profile)
        if resampled is not None and profile.rows > 1:
            whole = resampled if isinstance(resampled, Predictions) and resampled.clusters is not None else profile
            judged = lens if isinstance(whole, Predictions) else None
            drawn = bootstrap(estimator, whole, lens=judged, resamples=_RESAMPLES, level=level, rng=rng)
            estimate = estimate.but(interval=drawn.interval())
        found.append(estimate)
    return found


def _with_band(curve: dict[str, list[float]] | None, profile: Profile, level: float) -> dict[str, list[float]] | None:
    """The curve with the ends of the simultaneous band at its points."""
    if curve is None:
        return None
    low, high = band(profile, level=level).at(curve["score"])
    return {**curve, "low": low.tolist(), "high": high.tolist()}
