"""The front door: labels and probabilities in, an honest Estimate out."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from truecal.errors import InputError
from truecal.estimate import Estimate, Estimator, Interval, RankSeries
from truecal.lens import Lens, VectorLens
from truecal.predictions import Predictions
from truecal.profile import Profile
from truecal.uncertainty.bootstrap.bootstrap import bootstrap
from truecal.uncertainty.bootstrap.fixed_bins import bins_only
from truecal.uncertainty.bootstrap.rows import Units, default_lens, rows_of
from truecal.uncertainty.clustered import ClusteredSeries
from truecal.uncertainty.tests.rank_series import rank_series_test

_RESAMPLES = 200
_RESAMPLES_OF_BINS = 1000  # where a resample costs next to nothing
_JOINT_WORK = 20_000  # resamples x datasets of a lens with many
_FEW_CLUSTERS = 20


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    estimator: Estimator | None = None,
    lens: Lens | VectorLens | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    classes: list[object] | tuple[object, ...] | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Estimate:
    """How far confidence is from the truth, with interval, test and warnings.

    Parameters
    ----------
    y_true : labels: class indices, or names listed in `classes`. Never "was correct".
    y_prob : 1-D: P(positive). 2-D: one column per class.
    estimator : default :class:`RankSeries` (root-mean-square error, norm 2).
    lens : what is judged; default the positive class for 1-D, the top label for 2-D probabilities.
    sample_weight : whole numbers count repetitions, other weights are importance weights.
    clusters : marks rows that are not independent (one patient, one question).
    level : of the confidence interval.
    rng : seed of the test of calibration.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> est = tc.calibration_error(rng.random(1000) < p, p)
    >>> print(est)
    root-mean-square calibration error 0.0000 [0.0000, 0.0582] at 95% (RankSeries, positive class, n=1000, p=0.814)
    """
    preds = Predictions.from_probs(y_prob, y_true, weights=sample_weight, clusters=clusters, classes=classes)
    return measure(preds, estimator=estimator, lens=lens, level=level, rng=rng)


def measure(
    preds: Predictions,
    *,
    estimator: Estimator | None = None,
    lens: Lens | VectorLens | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Estimate:
    """:func:`calibration_error` for Predictions that are already built.

    A lens on several probabilities (TopK, Grouping, Canonical) is measured by :class:`GeneralizedECE` with its defaults.
    """
    if isinstance(lens, VectorLens):
        return _by_vectors(preds, estimator, lens, level, rng)
    if estimator is None:
        estimator = RankSeries()
    if isinstance(estimator, RankSeries):
        estimator = replace(estimator, level=level)
    if not isinstance(estimator, Estimator):
        raise InputError(f"estimator must be one of truecal's, such as tc.SweepECE(), not {estimator!r}")
    lens = default_lens(preds) if lens is None else lens
    generator = np.random.default_rng(rng)
    shares = lens.shares(preds)
    if shares is not None:
        estimate = _combined(preds, estimator, lens, shares)
        estimate = _with_joint_interval(estimate, preds, estimator, lens, level, len(shares), generator)
    elif preds.clusters is not None:
        estimate = _clustered(preds, estimator, lens, level, generator)
    else:
        estimate = measure_profile(lens(preds), estimator, level, generator)
    notes = (*_notes(preds), *estimate.warnings)
    return estimate.but(lens=lens.describe(preds), warnings=notes)


def _by_vectors(
    preds: Predictions, estimator: object, lens: VectorLens, level: float, rng: int | np.random.Generator
) -> Estimate:
    from truecal.estimate.generalized.estimator import GeneralizedECE

    if estimator is not None:
        raise InputError(f"{estimator!r} judges one probability; for several use tc.GeneralizedECE(lens=...)(preds)")
    return GeneralizedECE(lens=lens, level=level, rng=rng)(preds)


def measure_profile(profile: Profile, estimator: Estimator, level: float, rng: np.random.Generator) -> Estimate:
    """One dataset of independent rows (or the cells of a sketch of them): value, interval and test."""
    estimate = estimator(profile)
    p = float(rank_series_test(profile, rng=rng).p_value)
    if estimate.interval is None:
        resamples = _RESAMPLES_OF_BINS if bins_only(estimator) else _RESAMPLES
        found = bootstrap(estimator, profile, resamples=resamples, level=level, rng=rng)
        estimate = estimate.but(interval=found.interval())
    return estimate.but(p_value=p)


def _clustered(
    preds: Predictions, estimator: Estimator, lens: Lens, level: float, rng: np.random.Generator
) -> Estimate:
    """One dataset whose rows come in clusters: the rank series leaves out whole clusters, other estimators resample them."""
    units = Units.of(preds, blocks=None, rng=rng)
    if units.count < 2:
        return _unknowable(
            estimator(lens(preds)), level, "all rows belong to one cluster: nothing tells how much another would differ"
        )
    (rows,) = rows_of(lens, preds)
    estimate = estimator(rows.profile)
    series = ClusteredSeries.of(rows, units)
    if units.count < _FEW_CLUSTERS:
        note = f"only {units.count} clusters: the interval is wide and may cover less than stated"
        estimate = estimate.but(warnings=(*estimate.warnings, note))
    if isinstance(estimator, RankSeries):
        value, power = series.estimate(estimator.norm)
        estimate = estimate.but(value=value, power=power, interval=series.interval(level, estimator.norm))
    else:
        found = bootstrap(estimator, preds, lens=lens, resamples=_RESAMPLES, level=level, rng=rng)
        estimate = estimate.but(interval=found.interval())
    return estimate.but(p_value=float(series.test(rng=rng).p_value))


def _with_joint_interval(
    estimate: Estimate,
    preds: Predictions,
    estimator: Estimator,
    lens: Lens,
    level: float,
    datasets: int,
    rng: np.random.Generator,
) -> Estimate:
    """Many datasets on the same rows: rows (or clusters) are drawn for all of them together."""
    if Units.of(preds, blocks=None, rng=rng).count < 2:
        return _unknowable(estimate, level, "one row, or one cluster: nothing tells how much another would differ")
    resamples = int(np.clip(_JOINT_WORK // datasets, 50, _RESAMPLES))
    found = bootstrap(estimator, preds, lens=lens, resamples=resamples, level=level, rng=rng)
    assert found.parts is not None
    parts = estimator.root(found.parts)
    return estimate.but(value=found.value, power=found.power, interval=found.interval(), parts=parts)


def _unknowable(estimate: Estimate, level: float, why: str) -> Estimate:
    """An honest answer where nothing can be said: any error is possible."""
    return estimate.but(interval=Interval(0.0, 1.0, level, "none"), p_value=1.0, warnings=(*estimate.warnings, why))


def _combined(preds: Predictions, estimator: Estimator, lens: Lens, shares: np.ndarray) -> Estimate:
    """One error over all datasets of a lens: the weighted p-mean of theirs, in parts of bounded memory."""
    norm = estimator.power_norm
    powers, warnings = [], []
    n, size, direction = 0, 0.0, []
    for profile in lens.profiles(preds):
        part = estimator.report(profile, estimator.find(profile))
        powers.append(np.atleast_1d(part.power))
        direction.append(np.atleast_1d(part.direction))
        warnings += [w for w in part.warnings if w not in warnings]
        n, size = part.n, float(np.max(part.effective_n))
    power = np.concatenate(powers)
    overall = float(power[shares > 0].max()) if norm == np.inf else float((shares * power).sum())
    return Estimate(
        value=float(estimator.root(np.array([overall]))[0]),
        power=overall,
        n=n,
        effective_n=size,
        estimator=estimator,
        norm=norm,
        direction=float((shares * np.concatenate(direction)).sum()),
        warnings=tuple(warnings),
        parts=estimator.root(power),
    )


def _notes(preds: Predictions) -> list[str]:
    """What the predictions themselves make doubtful."""
    notes = []
    if preds.class_count > 2 and len(preds) >= 50 and int(preds.labels.max()) <= 1:
        notes.append(
            f"labels are only ever 0 and 1 of {preds.class_count} classes; if they mark whether the prediction was correct, "
            "pass class labels instead"
        )
    if preds.weights is not None:
        whole = bool((preds.weights == np.rint(preds.weights)).all())
        if whole and preds.weights.max() > 1:
            notes.append(
                f"weights are whole numbers and count as repetitions: {len(preds)} rows stand for {preds.weights.sum():g}"
            )
    return notes
