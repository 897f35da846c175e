"""Which recalibrator helps, measured on rows it was not fitted on."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import inf, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal.checks import check_choice, check_whole
from truecal.errors import InputError
from truecal.estimate import BinnedECE, Estimator, Interval, SweepECE
from truecal.lens import Lens, default_lens
from truecal.predictions import Predictions
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.cross_fit import assign_folds, cross_fit
from truecal.recalibrate.evaluation import BEFORE, Evaluation, Row, Score
from truecal.recalibrate.leakage import RowsSeen
from truecal.recalibrate.outputs import read_outputs
from truecal.scores import briers, log_losses
from truecal.types import Float64s, Indices
from truecal.uncertainty.measurement import measure


def evaluate(
    recalibrators: Mapping[str, Recalibrator] | Sequence[Recalibrator],
    preds: Predictions,
    *,
    logits: ArrayLike | None = None,
    folds: int | None = 5,
    score: Score = "log loss",
    lens: Lens | None = None,
    level: float = 0.95,
    in_sample: Literal["refuse", "label"] = "refuse",
    rng: int = 0,
) -> Evaluation:
    """Compare recalibrators on rows they were not fitted on.

    With `folds`, each row's new probabilities come from a fit to the other folds. Folds keep the class frequencies;
    rows of one cluster stay together. With `folds=None` the recalibrators are already fitted: rows one has seen are
    refused, or, with in_sample="label", named in the warnings of the Estimate.

    Parameters
    ----------
    recalibrators : by name, or a sequence (named by class). They are cloned, not changed.
    preds : predictions with labels, weights and clusters.
    logits : the model's logits, for recalibrators of input="logits"; others read `preds.probs`.
    score : the proper score that picks the winner. Calibration errors do not: a constant can have error 0.
    lens : of the calibration errors; default the positive class or the top label.
    level : of all intervals. Those of score changes are normal, paired over rows (or clusters).
    rng : seed of the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.predictions import Predictions
    >>> from truecal.recalibrate import BetaCalibration, IsotonicCalibration, evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> preds = Predictions.from_probs(p, rng.random(2000) < p**2)
    >>> result = evaluate([BetaCalibration(), IsotonicCalibration()], preds)
    >>> result.winner
    'BetaCalibration'
    >>> bool(result["BetaCalibration"].log_loss_change.high < 0)
    True
    """
    check_choice(score, ("log loss", "brier"), "score")
    check_choice(in_sample, ("refuse", "label"), "in_sample")
    named = _by_name(recalibrators)
    z = None if logits is None else read_outputs(logits, "logits")
    if z is not None and len(z) != len(preds):
        raise InputError(f"there are {len(preds)} predictions but {len(z)} rows of logits; they must match row by row")
    fold_of = None
    if folds is not None:
        check_whole(folds, "folds", 2)
        fold_of = assign_folds(preds, folds, rng)
    after: dict[str, tuple[Predictions, tuple[str, ...]]] = {BEFORE: (preds, ())}
    for name, recalibrator in named.items():
        X = _outputs_for(name, recalibrator, preds, z)
        if fold_of is None:
            notes = _seen_rows(name, recalibrator, X, preds.labels, in_sample)
            after[name] = (recalibrator.recalibrate(preds, X), notes)
        else:
            after[name] = (cross_fit(recalibrator, preds, X, fold_of), ())
    return _compare(after, score, lens, level, folds)


def _by_name(recalibrators: Mapping[str, Recalibrator] | Sequence[Recalibrator]) -> dict[str, Recalibrator]:
    if isinstance(recalibrators, Mapping):
        named = dict(recalibrators)
    else:
        named = {type(r).__name__: r for r in recalibrators}
        if len(named) < len(recalibrators):
            raise InputError("two recalibrators are of the same class; pass a dict that names them")
    if not named or BEFORE in named:
        raise InputError(f'pass at least one recalibrator, and none named "{BEFORE}"')
    return named


def _outputs_for(name: str, recalibrator: Recalibrator, preds: Predictions, logits: Any) -> Any:
    if recalibrator.input == "probs":
        return preds.probs
    if logits is None:
        raise InputError(f'{name} declares input="logits"; pass logits=..., or declare input="probs"')
    return logits[:, 1] - logits[:, 0] if preds.binary else logits


def _seen_rows(name: str, recalibrator: Recalibrator, X: Any, labels: Indices, in_sample: str) -> tuple[str, ...]:
    seen: RowsSeen | None = getattr(recalibrator, "rows_seen_", None)
    shared = 0 if seen is None else seen.shared_with(RowsSeen.of(read_outputs(X, recalibrator.input), labels))
    if shared and in_sample == "refuse":
        raise InputError(
            f"{shared} of {len(labels)} rows were used to fit {name}: its error on them is too good to be true; pass other "
            'rows, or folds=5 to cross-fit, or in_sample="label" to measure anyway and be warned'
        )
    return (f"measured in sample: {shared} of {len(labels)} rows were used to fit",) if shared else ()


def _compare(
    after: Mapping[str, tuple[Predictions, tuple[str, ...]]],
    score: Score,
    lens: Lens | None,
    level: float,
    folds: int | None,
) -> Evaluation:
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    losses = {name: (log_losses(p), briers(p)) for name, (p, _) in after.items()}
    reference, weights, clusters = losses[BEFORE], after[BEFORE][0].weights, after[BEFORE][0].clusters

    def change(new: Float64s, old: Float64s) -> Interval:
        return _mean_interval(new, old, weights, clusters, z, level)

    rows = []
    for name, (preds, notes) in after.items():
        judged = lens or default_lens(preds)
        error = measure(preds, lens=judged, level=level)
        width, sweep = (_binned(preds, judged, e) for e in (BinnedECE(bins=15, norm=1), SweepECE(norm=1)))
        right = (
            (preds.probs > 0.5) == (preds.labels == 1) if preds.binary else preds.probs.argmax(axis=1) == preds.labels
        )
        log_loss, brier = losses[name]
        rows.append(
            Row(
                name,
                float(np.average(log_loss, weights=weights)),
                change(log_loss, reference[0]),
                float(np.average(brier, weights=weights)),
                change(brier, reference[1]),
                float(np.average(right, weights=weights)),
                error.but(warnings=(*notes, *error.warnings)),
                width,
                sweep,
            )
        )
    which = 0 if score == "log loss" else 1
    ranked = sorted(rows, key=lambda row: row.brier if which else row.log_loss)
    best = ranked[0].name
    close = [r.name for r in ranked[1:] if change(losses[r.name][which], losses[best][which]).low <= 0]
    opposed = [
        (a.name, b.name) for a, b in combinations(rows, 2) if (a.equal_width - b.equal_width) * (a.sweep - b.sweep) < 0
    ]
    return Evaluation(tuple(rows), score, level, best, (best, *close), tuple(opposed), folds)


def _binned(preds: Predictions, lens: Lens, estimator: Estimator) -> float:
    """The plain l1 error of an estimator, averaged over the datasets of a lens."""
    shares = lens.shares(preds)
    if shares is None:
        return float(estimator(lens(preds)).value)
    return float(shares @ np.concatenate([np.atleast_1d(estimator(p).value) for p in lens.profiles(preds)]))


def _mean_interval(
    new: Float64s, old: Float64s, weights: Float64s | None, clusters: NDArray[np.intp] | None, z: float, level: float
) -> Interval:
    """Normal interval of the weighted mean of new - old over independent rows or clusters."""
    for_ever = (bool(np.isinf(new).any()), bool(np.isinf(old).any()))  # a label was given probability 0
    if any(for_ever):
        low, high = {(True, False): (inf, inf), (False, True): (-inf, -inf), (True, True): (-inf, inf)}[for_ever]
        return Interval(low, high, level, "infinite: a label was given probability 0")
    gap = new - old
    w = np.ones(len(gap)) if weights is None else weights
    total = float(w.sum())
    mean = float(w @ gap) / total
    if clusters is not None:
        sums = np.bincount(clusters, w * (gap - mean)).astype(np.float64)
        squares, count = float(sums @ sums), float(len(sums))
    elif bool((w == np.rint(w)).all()):  # a whole weight is that many independent rows
        squares, count = float(w @ (gap - mean) ** 2), total
    else:
        squares, count = float(w**2 @ (gap - mean) ** 2), total**2 / float(w @ w)
    error = z * sqrt(squares * count / max(count - 1, 1.0)) / total
    return Interval(
        mean - error, mean + error, level, "normal, paired" + (" over clusters" if clusters is not None else "")
    )
