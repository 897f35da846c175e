"""Measure calibration: labels and probabilities in, an Estimate with interval, test and warnings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import nan, sqrt
from statistics import NormalDist
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from truecal import options
from truecal.errors import InputError
from truecal.estimators import estimate
from truecal.estimators.base import (
    FEW_RESAMPLES,
    Bootstrap,
    ErrorFunction,
    Estimator,
    VectorEstimator,
    as_estimator,
    report,
    with_level,
)
from truecal.estimators.binned import BinnedECE
from truecal.estimators.bins import Binning, combine_powers, effective_rows
from truecal.estimators.bootstrap import DatasetSums, all_label_sums, class_sums, resample_units, sign_flips
from truecal.estimators.estimate import Estimate, Estimates, Interval
from truecal.estimators.generalized.estimator import GeneralizedECE
from truecal.estimators.rank_series import clusters
from truecal.estimators.rank_series.basis import stacked_cells
from truecal.estimators.rank_series.estimator import RankSeries
from truecal.estimators.rank_series.tests import label_test, smooth_tests
from truecal.inference.intervals import resample_samples
from truecal.judged import JudgedSeries, measure_judged, refuse_options
from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.one_probability import AllLabels, ClassWise, default_lens
from truecal.predictions.predictions import Predictions, as_predictions, check_predictions
from truecal.predictions.selection import Selection, check_selection, small_selection
from truecal.profile.binning import one_pass
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.resampling import columns
from truecal.resampling.units import Units
from truecal.special import draw_labels, root
from truecal.types import Float64s, Indices

_SERIES_CELLS = 32  # by choice: of every class where there are very many
_JOINT_WORK = 20_000  # by choice: resamples x datasets of a lens with many
_MAX_LABELS = 5_000_000  # by choice: rows x classes up to which labels are redrawn; beyond, signs of rows are flipped
_LABEL_WORK = 2_000_000  # by choice: redrawn labels
_FEW_CLUSTERS = 20  # by choice: clusters below which the interval gets a warning
_TEST_REDRAWS = 999  # derived: the smallest p-value is 0.001
_REFERENCE_WORK = 4_000_000  # by choice: outputs from which labels are redrawn for the error of a calibrated model
_REFERENCES = 20  # by choice: times at most
_ONE_UNIT = "one row, or one cluster, gives no variance, so that every error is possible"


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    estimator: Estimator | ErrorFunction | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    classes: Sequence[object] | None = None,
    pos_label: object = None,
    judge: ArrayLike | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Estimate:
    r"""Estimate how far a classifier's confidence is from the truth, with interval, test and warnings.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels: class indices, or names listed in `classes`; never whether the prediction was correct.
    y_prob : array-like of shape (n,) or (n, classes)
        One column is P(positive), several are one probability per class.
    estimator : Estimator or callable, default None
        None means :class:`RankSeries`, the root-mean-square error without bins. A plain function of scores and outcomes that
        returns an error is an estimator too.
    lens : Lens, default None
        What is judged. None means the positive class of two classes (one column or two), the top label of more.
    sample_weight : array-like of shape (n,), default None
        Whole numbers count repetitions, other weights are importance weights.
    clusters : array-like of shape (n,), default None
        Marks rows that are not independent (one patient, one question) by equal values.
    classes : sequence, default None
        Names of the classes in the order of the columns.
    pos_label : object, default None
        The positive one of two classes; None means the second.
    judge : array-like of shape (n,) or (n, judges), default None
        Verdicts (0 or 1, or probabilities of 1) of one judge for every row, or of several as columns. `y_true` may then be
        missing (NaN or None) where nobody checked; rows with a label must be a random sample, or `sample_weight` is one over
        their probability of being labelled.
    level : float, default 0.95
        Level of the confidence interval.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the test of calibration and of resamples.

    Returns
    -------
    Estimate
        Value, interval, p-value, direction and warnings; with `judge` a :class:`truecal.inference.JudgedEstimate`.

    Raises
    ------
    InputError
        Labels or probabilities are invalid or swapped, or an option is; the message names the row, the value and the remedy.

    Notes
    -----
    The estimand of the default is :math:`(E[(E[y \mid c] - c)^2])^{1/2}`, the root-mean-square distance between the score
    c and the probability of the outcome at that score. Its estimate is free of the bias of bins, its interval holds for
    calibrated models too, and the p-value is that of perfect calibration, with outcomes redrawn from the scores. The
    interval starts at 0 unless that test rejects calibration at 1 - level. Rows are independent unless `clusters` says
    otherwise. docs/methods/rank-series.md derives all of this.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. Advances in Neural Information Processing Systems 32.
    https://arxiv.org/abs/1909.10155

    See Also
    --------
    measure : The same for Predictions that are already built, or a Sketch.
    compare : The difference of two models' errors.
    verify : Whether the error is below a tolerance.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> est = tc.calibration_error(rng.random(1000) < p, p)
    >>> print(est)
    root-mean-square calibration error 0.000 [0.000, 0.065] at 95% (RankSeries, positive class, n=1000, p = 0.870)
    """
    preds = as_predictions(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        clusters=clusters,
        classes=classes,
        pos_label=pos_label,
        judge=judge,
    )
    return measure(preds, estimator=estimator, lens=lens, level=level, rng=rng)


@overload
def measure(
    preds: Predictions | Sketch,
    *,
    estimator: Estimator | ErrorFunction | None = None,
    lens: Lens | None = None,
    select: Selection | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Estimate: ...
@overload
def measure(
    preds: Predictions | Sketch,
    *,
    estimator: list[Estimator | ErrorFunction] | tuple[Estimator | ErrorFunction, ...],
    lens: Lens | None = None,
    select: Selection | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> estimate.Estimates: ...
def measure(
    preds: Predictions | Sketch,
    *,
    estimator: Estimator
    | ErrorFunction
    | list[Estimator | ErrorFunction]
    | tuple[Estimator | ErrorFunction, ...]
    | None = None,
    lens: Lens | None = None,
    select: Selection | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Estimate | estimate.Estimates:
    r"""Estimate the calibration error of Predictions that are already built, or of a Sketch of scores and outcomes.

    Parameters
    ----------
    preds : Predictions or Sketch
        What is measured.
    estimator : Estimator, callable or list of them, default None
        As in :func:`calibration_error`. A lens on several probabilities (TopK, Grouping, Canonical) is measured by
        :class:`GeneralizedECE` unless an estimator is given. Several estimators give a table, one row each.
    lens : Lens, default None
        What is judged, as in :func:`calibration_error`.
    select : Selection, default None
        Which rows are judged: by_label, by_output, by_column, combined with & | ~. Taken before the lens.
    level : float, default 0.95
        Level of the confidence interval.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the test of calibration and of resamples.

    Returns
    -------
    Estimate or Estimates
        One estimate, or one for each of several estimators.

    Raises
    ------
    InputError
        An option is invalid, or an estimator cannot judge what the lens looks at.

    Notes
    -----
    Value, interval and p-value are those of :func:`calibration_error`. A lens that judges class by class gives one error,
    :math:`(\sum_k s_k e_k^p)^{1/p}` with the errors e of the classes, their shares s and the norm p of the estimator. Of a
    Sketch, `sketch_error` bounds how far the value may be from that of the rows.

    See Also
    --------
    calibration_error : The same from labels and probabilities.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> table = tc.measure(tc.Predictions.from_probs(p, rng.random(1000) < p), estimator=[tc.BinnedECE(), tc.SweepECE()])
    >>> print(table.frame().select("estimator", "value", "n"))
    estimator  value    n
    BinnedECE  0.03737  1000
    SweepECE   0.02507  1000
    """
    if isinstance(estimator, (list, tuple)):
        if not estimator:
            raise InputError("estimator is an empty list; name at least one, such as [tc.SweepECE()]")
        return Estimates(
            tuple(measure(preds, estimator=item, lens=lens, select=select, level=level, rng=rng) for item in estimator)
        )
    options.level(level)
    chosen = None if estimator is None else as_estimator(estimator)
    if isinstance(preds, Sketch):
        if lens is not None or select is not None:
            raise InputError("a Sketch was made with its lens and selection; give them to tc.scan")
        return next(measure_profiles([preds.to_profile()], with_level(chosen or RankSeries(), level), level, rng))
    check_predictions(preds, Sketch)
    if lens is not None:
        check_lens(lens)
    if select is not None:
        check_selection(select)
    generator = options.generator(rng)
    if preds.judge is not None:
        refuse_options(chosen, lens)
        rows = preds if select is None else select(preds)
        if rows.judge is not None:
            series = JudgedSeries.of(rows)
            trusted = measure(rows.take(series.rows.trusted), level=level, rng=generator)
            return measure_judged(series, trusted, level, generator)
    if chosen is None:
        chosen = GeneralizedECE() if lens is not None and lens.several else RankSeries()
    chosen = with_level(chosen, level, generator)
    if isinstance(chosen, VectorEstimator):
        rows, select = chosen.chosen(preds, select)
        lens = chosen.own_lens(lens)
    else:
        rows = preds if select is None else select(preds)
    if rows.weights is not None and not rows.weights.any():
        raise InputError("all weights are zero; nothing is left to measure")
    lens = lens or default_lens(rows)
    measured = _measure_lens(rows, chosen, lens, level, generator)
    measured = replace(measured, lens=lens.describe(rows))
    if select is None:
        return replace(measured, warnings=(*_notes(rows), *measured.warnings))
    return _state_selection(measured, preds, rows, lens, select, generator)


def _state_selection(
    measured: Estimate, preds: Predictions, rows: Predictions, lens: Lens, select: Selection, rng: np.random.Generator
) -> Estimate:
    """Add to an estimate of selected `rows` of `preds` what was selected, and warnings of few rows and of rows chosen by label.

    Rows chosen by their label are not calibrated even if the model is: they have no p-value, and `chance` is the error that a
    calibrated model would show.
    """
    notes = (*([] if select.uses_labels else _notes(rows)), *measured.warnings)
    if select.uses_labels:
        assert isinstance(measured.estimator, Estimator)
        expected = _expected_if_calibrated(preds, measured.estimator, lens, select, rng)
        stated = "an error of its own" if expected is None else f"{expected:.4f}"
        note = f"rows were selected by their label, so a calibrated model with these outputs would show {stated}, not 0"
        notes, measured = (note, *notes), replace(measured, chance=expected, p_value=None)
    small = small_selection(len(rows), len(preds))
    notes = notes if small is None else (small, *notes)
    return replace(measured, selection=f"{select} ({len(rows)} of {len(preds)} rows)", warnings=notes)


def _measure_lens(
    preds: Predictions, estimator: Estimator, lens: Lens, level: float, rng: np.random.Generator
) -> Estimate:
    """Measure value, interval and test of what a lens judges, by the engine that fits its datasets and units.

    In this order: errors of several probabilities by the estimator itself; many classes by counts (`_measure_matrix`); one
    dataset of rows by `measure_profiles`, of clusters by `_measure_clusters`; all else by `_measure_jointly`. A sample of several
    probabilities refuses an estimator of one.
    """
    shares = lens.shares(preds)
    if isinstance(estimator, VectorEstimator):
        return estimator.of_samples(lens.samples(preds), shares, rng)
    if isinstance(lens, (AllLabels, ClassWise)) and columns.groups_suffice(preds):
        counted = _measure_matrix(preds, estimator, lens, level, rng)
        if counted is not None:
            return counted
    if shares is None:
        sample = next(lens.samples(preds))
        if sample.units is None:
            return next(measure_profiles([sample.profile], estimator, level, rng))
        if sample.unit == "clusters":
            return _measure_clusters(sample, estimator, level, rng)
    return _measure_jointly(preds, estimator, lens, shares, level, rng)


def _expected_if_calibrated(
    preds: Predictions, estimator: Estimator, lens: Lens, select: Selection, rng: np.random.Generator
) -> float | None:
    """Compute the mean error of a calibrated model with these outputs among rows selected by their label.

    1 to 20 times labels are drawn from the outputs, rows are selected by them, and the error is measured; draws without a
    selected row are left out, and None if all are.
    """
    values = []
    draw = rng.spawn(1)[0]
    plain = with_level(estimator, None) if isinstance(estimator, GeneralizedECE) else estimator
    for _ in range(int(np.clip(_REFERENCE_WORK // (len(preds) * preds.class_count), 1, _REFERENCES))):
        redrawn = replace(preds, labels=draw_labels(preds.probs, draw))
        rows = select.mask(redrawn)
        if rows.any():
            chosen, shares = redrawn.take(rows), lens.shares(redrawn.take(rows))
            if isinstance(plain, VectorEstimator):
                values.append(float(plain.of_samples(lens.samples(chosen), shares, draw).value))
            else:
                values.append(float(_point_estimate(chosen, plain, lens, shares).value))
    return float(np.mean(values)) if values else None


def measure_profiles(
    profiles: Iterable[Profile], estimator: Estimator, level: float, seed: int | np.random.Generator
) -> Iterator[Estimate]:
    """Measure single datasets of independent rows, in batches where the estimator is the rank series.

    Yields an Estimate with interval and p-value per dataset, in order. Redraws of every dataset begin with the seed. An interval
    by formula starts at 0 unless the test rejects calibration at 1 - level, else not below the limit (17a) of
    docs/methods/rank-series.md.
    """
    for batch, cells in stacked_cells(profiles):
        estimates: Iterable[Estimate] = map(estimator, batch)
        if isinstance(estimator, RankSeries) and len(batch) > 1:
            estimates = estimator.measure_cells(batch, cells)
        for profile, untested, (statistic, null) in zip(batch, estimates, smooth_tests(cells), strict=True):
            rng, interval = options.generator(seed), untested.interval
            p = null.p_value(statistic, _TEST_REDRAWS, rng)
            if interval is None:
                interval = estimator._resampled_interval(profile, level, rng, p)
            elif is_rejected(p, level):
                mean_limit = min(_mean_limit(profile, level), float(untested.value))
                interval = replace(interval, low=max(float(interval.low), mean_limit))
            else:
                interval = replace(interval, low=0.0)
            yield replace(untested, p_value=p, interval=interval)


def measure_groups(
    preds: Predictions,
    groups: Iterable[Indices],
    *,
    estimator: Estimator | None,
    lens: Lens | None,
    level: float,
    rng: int | np.random.Generator,
) -> list[Estimate]:
    """Measure groups of rows, each given by its row numbers, as :func:`measure` measures `preds.take(rows)`.

    Under a lens with one dataset of independent rows, groups are fitted together.
    """
    series = RankSeries() if estimator is None else estimator
    group_lens = lens or default_lens(preds)
    several = group_lens.several or isinstance(series, VectorEstimator) or group_lens.shares(preds) is not None
    if several or isinstance(group_lens, AllLabels) or preds.clusters is not None or preds.judge is not None:
        parts = map(preds.take, groups)
        return [measure(part, estimator=estimator, lens=lens, level=level, rng=rng) for part in parts]
    sample, positions = next(group_lens.samples(preds)), list(groups)
    profiles = (sample.take(rows).profile for rows in positions)
    estimates = measure_profiles(profiles, with_level(series, level), level, rng)
    return [
        replace(measured, lens=group_lens.describe(preds), warnings=(*_notes(preds.take(rows)), *measured.warnings))
        for rows, measured in zip(positions, estimates, strict=True)
    ]


def is_rejected(p: float, level: float) -> bool:
    """Decide whether a test rejects at 1 - level: p is at most that, or 1 / 1000, the smallest p-value of 999 redraws.

    >>> is_rejected(0.05, 0.95), is_rejected(0.001, 0.9999), is_rejected(0.06, 0.95)
    (True, True, False)
    """
    return p <= max(1 - level, 1 / (1 + _TEST_REDRAWS))


def _mean_limit(profile: Profile, level: float) -> float:
    """Compute the lower limit max(|mean(y - c)| - z sqrt(Var(y - c) / n), 0) (17a), z the two-sided normal quantile.

    No calibration error of norm 1 or more is below |mean outcome - mean score|.

    >>> round(_mean_limit(Profile.from_arrays([0.75] * 100, [1, 0] * 50), 0.95), 4)  # 0.25 - 1.96 x 0.05
    0.152
    """
    whole = profile.whole()
    c, y, cc, cy = (float(profile.sums(name, whole)[0, 0] / profile.total[0]) for name in ("c", "y", "cc", "cy"))
    variance = max(y - 2 * cy + cc - (y - c) ** 2, 0.0) / float(profile.size[0])
    return max(abs(y - c) - NormalDist().inv_cdf(0.5 + level / 2) * sqrt(variance), 0.0)


def _measure_clusters(sample: Sample, estimator: Estimator, level: float, rng: np.random.Generator) -> Estimate:
    """Measure one clustered dataset: the rank series leaves out whole clusters, other estimators resample them.

    The p-value is that of `ClusteredSeries.test` for all. The interval of the rank series reaches 0 unless that test rejects
    calibration at 1 - level. A single cluster gives the interval [0, 1] and the p-value 1; fewer than 20 a warning.
    """
    estimate = estimator(sample.profile)
    units = Units.of(sample, rng)
    if units.count < 2:
        return _widest_estimate(
            estimate, level, "all rows belong to one cluster, which gives no between-cluster variance"
        )
    series = clusters.ClusteredSeries.of(sample, units)
    if units.count < _FEW_CLUSTERS:
        note = f"only {units.count} clusters: the interval is wide and may cover less than stated"
        estimate = replace(estimate, warnings=(*estimate.warnings, note))
    if isinstance(estimator, RankSeries):
        value, power, interval = series.lower_risk.estimate(level, estimator.norm)
        p = series.test(rng=rng)[1]
        interval = interval if is_rejected(p, level) else replace(interval, low=0.0)
        return replace(estimate, value=value, power=power, interval=interval, p_value=p)
    counts = units.draws(FEW_RESAMPLES, rng)
    resampled = resample_samples(estimator, [sample], None, units, counts, level, rng)
    return replace(estimate, interval=resampled.interval(), p_value=series.test(rng=rng)[1])


def _measure_matrix(
    preds: Predictions, estimator: Estimator, lens: AllLabels | ClassWise, level: float, rng: np.random.Generator
) -> Estimate | None:
    """Measure all pairs of a row and a class as one dataset, or very many classes, counted without a sort by groups of rows.

    Random groups are resampled in place of rows, counted in the bins of the estimator, else in cells (32 of equal mass for each
    class under the rank series of norm 2). None for several labels per row pooled, and where bins need a sort.
    """
    binning, units, shares = _counted_bins(preds, estimator), columns.row_groups(len(preds)), lens.shares(preds)
    resamples, n = FEW_RESAMPLES, len(preds)
    if isinstance(lens, AllLabels) and not preds.multilabel:
        outcomes = np.zeros(preds.probs.shape, np.uint8)
        outcomes[np.arange(n), preds.labels] = 1
        profile = Profile.of_rows(preds.probs.ravel(), outcomes.ravel())
        estimate = report(estimator, profile, estimator.estimate(profile))
        if estimate.bins is not None and binning is None:
            return None
        sums = all_label_sums(estimator, preds, profile, binning, units)
        parts: Iterable[DatasetSums] = [sums]
        if estimate.bins is not None:
            estimate = replace(estimate, bins=replace(estimate.bins, effective=effective_rows(sums.sums)))
    elif shares is not None and (binning is not None or (isinstance(estimator, RankSeries) and estimator.norm == 2)):
        results, powers = [], None
        if binning is None:
            binning, resamples = Binning(_SERIES_CELLS, "mass"), _resamples(len(shares))
            results = [estimator.estimate(profile) for profile in lens.profiles(preds)]
            powers = np.concatenate([result.power for result in results])
        ones = preds.labels.sum(axis=0) if preds.multilabel else np.bincount(preds.labels, minlength=preds.class_count)
        direction = float(shares @ (preds.probs.mean(axis=0, dtype=np.float64) - ones / n))
        warnings = tuple(dict.fromkeys(note for result in results for note in result.warnings))
        estimate = Estimate(nan, nan, n, float(n), estimator, estimator.norm, direction, warnings=warnings)
        parts = class_sums(estimator, preds, binning, units, powers)
    else:
        return None
    counts, flips = units.draws(resamples, rng), sign_flips(units, 1 if shares is None else len(shares), rng, rows=True)
    resampled = resample_units(estimator, parts, shares, units, counts, level, rng, flips=flips)
    return _with_resamples(estimate, resampled, resampled.joint_p_value)


def _counted_bins(preds: Predictions, estimator: Estimator) -> Binning | None:
    """Return the binning of a BinnedECE if rows can be counted into it without a sort, else None; None for other estimators.

    >>> from truecal.estimators.binned import BinnedECE
    >>> preds = Predictions.from_probs([0.2, 0.8], [0, 1])
    >>> _counted_bins(preds, BinnedECE(10)), _counted_bins(preds, RankSeries())
    (Binning(bins=10, scheme='width', ties='keep', closed='left'), None)
    """
    if not isinstance(estimator, BinnedECE):
        return None
    binning = estimator.binning
    counted = binning.ties == "keep" if binning.scheme == "mass" else one_pass(binning.bins, preds.probs.dtype)
    return binning if counted else None


def _measure_jointly(
    preds: Predictions,
    estimator: Estimator,
    lens: Lens,
    shares: Float64s | None,
    level: float,
    rng: np.random.Generator,
) -> Estimate:
    """Measure all datasets of a lens on the same rows, or one with several pairs per row, by drawing rows (or clusters).

    One draw is used for all datasets. The p-value redraws labels where every row has one label and there are at most 5 million
    pairs, else flips the signs of whole rows. A single unit gives the interval [0, 1] and the p-value 1.
    """
    estimate = _point_estimate(preds, estimator, lens, shares)
    units = Units.of(next(lens.samples(preds)), rng)
    if units.count < 2:
        return _widest_estimate(estimate, level, _ONE_UNIT)
    # Labels of one row are correlated in an unknown way where there are several: signs of whole rows are flipped instead.
    datasets, one_label = 1 if shares is None else len(shares), units.kind == "rows" and not preds.multilabel
    redraw = shares is not None and one_label and len(preds) * datasets <= _MAX_LABELS
    counts, samples = units.draws(_resamples(datasets), rng), lens.samples(preds)
    resampled = resample_samples(estimator, samples, shares, units, counts, level, rng, flip_rows=not redraw)
    p = resampled.joint_p_value
    if shares is not None and redraw:
        redraws = int(np.clip(_LABEL_WORK // len(preds), 199, 999))
        p = label_test(list(lens.samples(preds)), shares, redraws, rng.spawn(1)[0])
    return _with_resamples(estimate, resampled, p)


def _with_resamples(estimate: Estimate, resampled: Bootstrap, p_value: float | None) -> Estimate:
    """Replace value, power, `parts` (errors of the datasets) and interval by those of a bootstrap, and the p-value."""
    assert resampled.parts is not None
    return replace(
        estimate,
        value=resampled.value,
        power=resampled.power,
        interval=resampled.interval(),
        p_value=p_value,
        parts=root(resampled.parts, estimate.norm),
    )


def _resamples(datasets: int) -> int:
    """Return the number of resamples for a number of datasets: 20,000 // datasets, between 50 and 200.

    >>> _resamples(10), _resamples(200), _resamples(1000)
    (200, 100, 50)
    """
    return int(np.clip(_JOINT_WORK // datasets, 50, FEW_RESAMPLES))


def _widest_estimate(estimate: Estimate, level: float, reason: str) -> Estimate:
    """Return the estimate with the interval [0, 1], a p-value of 1 and the reason as a warning.

    >>> estimate = measure(Predictions.from_probs([0.2, 0.8], [0, 1]))
    >>> widest = _widest_estimate(estimate, 0.9, "one row")
    >>> widest.interval, widest.p_value, widest.warnings[-1]
    (Interval(low=0.0, high=1.0, level=0.9, method='none'), 1.0, 'one row')
    """
    return replace(
        estimate, interval=Interval(0.0, 1.0, level, "none"), p_value=1.0, warnings=(*estimate.warnings, reason)
    )


def _point_estimate(preds: Predictions, estimator: Estimator, lens: Lens, shares: Float64s | None) -> Estimate:
    """Estimate without interval and test; several datasets by the weighted p-mean of their errors, in bounded memory.

    `shares`, shape (datasets,), are the weights; None: a single dataset.
    """
    parts = [report(estimator, profile, estimator.estimate(profile)) for profile in lens.profiles(preds)]
    if shares is None:
        return parts[0]
    powers = np.concatenate([np.atleast_1d(part.power) for part in parts])
    power = combine_powers(powers, shares, estimator.norm)
    return replace(
        parts[-1],
        value=float(root(power, estimator.norm)),
        power=float(power),
        effective_n=float(np.max(parts[-1].effective_n)),
        direction=float(shares @ np.concatenate([np.atleast_1d(part.direction) for part in parts])),
        bins=None,
        curve=None,
        warnings=tuple(dict.fromkeys(note for part in parts for note in part.warnings)),
        parts=root(powers, estimator.norm),
        settings={},
    )


def _notes(preds: Predictions) -> list[str]:
    """Return warnings of three kinds of doubtful input.

    Every label has probability 1; at least 50 labels that are only 0 and 1 of more than two classes; weights that are whole
    numbers and not all at most 1.
    """
    notes = []
    for rows in (100, len(preds.labels)):  # where one of a few labels is not certain, the others need not be read
        probs, labels = preds.probs[:rows], preds.labels[:rows]
        certain = probs == labels if preds.multilabel or probs.ndim == 1 else probs[np.arange(len(labels)), labels] == 1
        if not certain.all():
            break
    else:
        notes.append("every label has probability 1; if labels were given as scores, pass the predicted probabilities")
    if not preds.multilabel and preds.class_count > 2 and len(preds) >= 50 and int(preds.labels.max()) <= 1:
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
