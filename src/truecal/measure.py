"""The front door: labels and probabilities in, an honest Estimate out."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from truecal.errors import InputError
from truecal.estimate import Estimate, Estimator, RankSeries
from truecal.lens import Lens, OneClass, TopLabel
from truecal.predictions import Predictions


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    estimator: Estimator | None = None,
    lens: Lens | None = None,
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
    lens: Lens | None = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Estimate:
    """:func:`calibration_error` for Predictions that are already built."""
    if estimator is None:
        estimator = RankSeries()
    if isinstance(estimator, RankSeries):
        estimator = replace(estimator, level=level)
    if not isinstance(estimator, Estimator):
        raise InputError(f"estimator must be one of truecal's, such as tc.SweepECE(), not {estimator!r}")
    if lens is None:
        lens = OneClass() if preds.binary else TopLabel()
    shares = lens.shares(preds)
    if shares is None:
        profile = lens(preds)
        estimate = estimator(profile)
        tester = estimator if isinstance(estimator, RankSeries) else RankSeries()
        estimate = estimate.but(p_value=float(tester.test(profile, rng=rng)[0]))
    else:
        estimate = _combined(preds, estimator, lens, shares)
    notes = (*_notes(preds), *estimate.warnings)
    return estimate.but(lens=lens.describe(preds), warnings=notes)


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
    if preds.clusters is not None:
        notes.append("interval and test take rows as independent; with clusters they are too narrow")
    return notes
