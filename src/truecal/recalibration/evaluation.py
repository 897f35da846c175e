"""`tc.evaluate`: compare recalibration methods on rows they were not fitted on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Estimator
from truecal.estimators.estimate import Curve, Interval
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import default_lens
from truecal.predictions.arrays import takes_arrays_second
from truecal.predictions.predictions import check_predictions
from truecal.recalibration.contract import ImpossibleRowError, Recalibrator, RowsSeen, read_outputs
from truecal.special import kish
from truecal.table import Frame
from truecal.types import Float64s, Indices

# ----------------------------------------------------------------------------------------------------
# Cross-fitting: every row's new probabilities come from a fit that never saw the row


def assign_folds(preds: tc.Predictions, folds: int, rng: int) -> Indices:
    """A fold for each row: dealt out in turn over shuffled rows of each class, or over shuffled clusters."""
    random = options.generator(rng)
    if preds.clusters is not None:
        count = int(preds.clusters.max()) + 1
        if count < folds:
            raise InputError(f"{count} clusters cannot fill {folds} folds; use at most folds={count}")
        of_clusters: Indices = (random.permutation(count) % folds)[preds.clusters]
        return of_clusters
    if len(preds) < 2 * folds:
        raise InputError(f"{len(preds)} rows are too few for {folds} folds; use at most folds={len(preds) // 2}")
    shuffled = random.permutation(len(preds))
    order = shuffled[np.argsort(preds.labels[shuffled], kind="stable")]
    fold_of = np.empty(len(preds), np.intp)
    fold_of[order] = np.arange(len(preds)) % folds
    return fold_of


def cross_fit(
    recalibrator: Recalibrator, preds: tc.Predictions, X: Any, fold_of: Indices
) -> tuple[tc.Predictions, int]:
    """The predictions of all rows, each recalibrated by a fit to the other folds, and the most parameters of a fit."""
    probs = np.empty(preds.probs.shape, np.float64)
    parameters = 0
    for fold in range(int(fold_of.max()) + 1):
        held_out = fold_of == fold
        fitted: Recalibrator = clone(recalibrator).set_params(classes=None)
        try:
            fitted.fit_rows(preds.take(~held_out), X[~held_out])
        except ImpossibleRowError as refusal:
            raise refusal.among(np.flatnonzero(~held_out)) from None
        parameters = max(parameters, fitted.parameter_count)
        part = fitted.recalibrate(preds.take(held_out), X[held_out])
        probs[held_out] = part.probs
    after = tc.Predictions(probs, preds.labels, preds.weights, preds.clusters, preds.classes, preds.columns)
    return after, parameters


# ----------------------------------------------------------------------------------------------------
# What an evaluation of recalibrators says: one row each, what is lost where, the winner, and a recommendation

BEFORE = "uncalibrated"
Score = Literal["log loss", "brier"]


@dataclass(frozen=True)
class Split:
    """A proper score in two parts: what the best of the compared maps still removes, and what no map removes.

    score = calibration + refinement. Refinement is the lowest cross-fitted score of all maps compared; calibration is the
    distance to it, with the interval of paired differences over rows (or clusters).
    """

    calibration: float
    calibration_interval: Interval
    refinement: float
    refinement_interval: Interval


@dataclass(frozen=True)
class Row:
    """One recalibrator on held-out rows. Changes are against the uncalibrated predictions; below 0 is better.

    `overconfidence` and `underconfidence` are the mean distances of the score above and below the fitted calibration
    curve (None for a lens of several datasets); `accuracy_change` above 0 is better; `parameters` is the number of
    learned numbers.
    """

    name: str
    log_loss: float
    log_loss_change: Interval
    log_loss_split: Split
    brier: float
    brier_change: Interval
    brier_split: Split
    accuracy: float
    accuracy_change: Interval
    error: tc.Estimate
    overconfidence: float | None
    underconfidence: float | None
    equal_width: float
    sweep: float
    parameters: int

    def record(self) -> dict[str, Any]:
        """The row as plain numbers."""
        interval = self.error.interval
        return {
            "recalibrator": self.name,
            "log_loss": self.log_loss,
            "log_loss_change_low": self.log_loss_change.low,
            "log_loss_change_high": self.log_loss_change.high,
            "log_loss_calibration": self.log_loss_split.calibration,
            "log_loss_calibration_low": self.log_loss_split.calibration_interval.low,
            "log_loss_calibration_high": self.log_loss_split.calibration_interval.high,
            "log_loss_refinement": self.log_loss_split.refinement,
            "brier": self.brier,
            "brier_change_low": self.brier_change.low,
            "brier_change_high": self.brier_change.high,
            "brier_calibration": self.brier_split.calibration,
            "brier_calibration_low": self.brier_split.calibration_interval.low,
            "brier_calibration_high": self.brier_split.calibration_interval.high,
            "brier_refinement": self.brier_split.refinement,
            "accuracy": self.accuracy,
            "accuracy_change_low": self.accuracy_change.low,
            "accuracy_change_high": self.accuracy_change.high,
            "error": self.error.value,
            "error_low": None if interval is None else interval.low,
            "error_high": None if interval is None else interval.high,
            "overconfidence": self.overconfidence,
            "underconfidence": self.underconfidence,
            "equal_width": self.equal_width,
            "sweep": self.sweep,
            "parameters": self.parameters,
        }


@dataclass(frozen=True)
class Evaluation:
    """Recalibrators side by side, the uncalibrated predictions first.

    Attributes
    ----------
    rows : one per recalibrator.
    score : the proper score that decides.
    winner : the name with the lowest mean score.
    tied : the names, winner first, whose score is not significantly worse than the winner's at `level` (paired over
        rows).
    recommended : of those tied, without the ones that lose accuracy, the one with the fewest parameters; "uncalibrated"
        where no map is significantly better than none.
    reason : why, in words.
    refused : pairs of a name and the reason why that recalibrator could not be fitted; the others were compared.
    disagreements : pairs of names that the equal-width and the sweep calibration error put in opposite order.
    """

    rows: tuple[Row, ...]
    score: Score
    level: float
    winner: str
    tied: tuple[str, ...]
    disagreements: tuple[tuple[str, str], ...]
    folds: int | None
    refused: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def recommended(self) -> str:
        return self._recommendation()[0]

    @property
    def reason(self) -> str:
        return self._recommendation()[1]

    def _recommendation(self) -> tuple[str, str]:
        if BEFORE in self.tied:
            return BEFORE, f"no map lowers the {self.score} significantly at {self.level:.0%}"
        keep = [name for name in self.tied if self[name].accuracy_change.high >= 0]
        lost = [name for name in self.tied if name not in keep]
        candidates = keep or list(self.tied)
        best = min(candidates, key=lambda name: self[name].parameters)
        count = self[best].parameters
        dropped = f"; {', '.join(lost)} would lose accuracy" if lost and keep else ""
        if len(candidates) == 1:
            return best, f"lowest {self.score}, and significantly so{dropped}"
        others = ", ".join(name for name in candidates if name != best)
        plural = "s" if count != 1 else ""
        return (
            best,
            f"{count} parameter{plural}, the fewest of those tied at the lowest {self.score} (with {others}){dropped}",
        )

    def frame(self) -> Frame:
        """The table, one row per recalibrator."""
        return Frame.from_records([row.record() for row in self.rows])

    def __str__(self) -> str:
        lines = [f"{'':24}{'log loss':>10}{'brier':>10}{'error':>10}  {'interval':18}{'EW15 l1':>9}{'sweep l1':>9}"]
        for row in self.rows:
            span = (
                "" if row.error.interval is None else f"[{row.error.interval.low:.4f}, {row.error.interval.high:.4f}]"
            )
            lines.append(
                f"{row.name:24}{row.log_loss:10.4f}{row.brier:10.4f}{float(row.error.value):10.4f}  {span:18}"
                f"{row.equal_width:9.4f}{row.sweep:9.4f}"
            )
        lines.append(f"lowest {self.score}: {self.winner}")
        if len(self.tied) > 1:
            lines.append(f"not significantly worse at {self.level:.0%}: {', '.join(self.tied[1:])}")
        lines.append(f"recommended: {self.recommended} ({self.reason})")
        lines.extend(self._parts())
        lines.extend(f"{name} could not be fitted: {why}" for name, why in self.refused)
        if self.disagreements:
            pairs = "; ".join(f"{a} / {b}" for a, b in self.disagreements)
            lines.append(f"equal-width bins and the sweep disagree on the order of: {pairs}")
        return "\n".join(lines)

    def _parts(self) -> list[str]:
        """What recalibration would gain, in a sentence."""
        before = self[BEFORE]
        split = before.log_loss_split if self.score == "log loss" else before.brier_split
        total = before.log_loss if self.score == "log loss" else before.brier
        span = split.calibration_interval
        return [
            f"{self.score} {total:.4f} = {split.calibration:.4f} that recalibration removes "
            f"[{span.low:.4f}, {span.high:.4f}] + {split.refinement:.4f} that it does not"
        ]


# ----------------------------------------------------------------------------------------------------
# Which recalibrator helps, measured on rows it was not fitted on


@takes_arrays_second
def evaluate(
    recalibrators: Mapping[str, Recalibrator] | Sequence[Recalibrator],
    preds: tc.Predictions,
    *,
    logits: ArrayLike | None = None,
    folds: int | None = 5,
    score: Score = "log loss",
    lens: Lens | None = None,
    level: float = 0.95,
    in_sample: Literal["refuse", "label"] = "refuse",
    rng: int = 0,
) -> Evaluation:
    """Compare recalibrators on rows they were not fitted on, and recommend one.

    With `folds`, each row's new probabilities come from a fit to the other folds. Folds keep the class frequencies;
    rows of one cluster stay together. With `folds=None` the recalibrators are already fitted: rows one has seen are
    refused, or, with in_sample="label", named in the warnings of the Estimate. A recalibrator that cannot take the rows
    is listed in `refused` with the reason; the others go on.

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
    >>> from truecal.recalibration import BetaCalibration, IsotonicCalibration, evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> result = evaluate([BetaCalibration(), IsotonicCalibration()], Predictions.from_probs(p, rng.random(2000) < p**2))
    >>> result.winner, result.recommended, bool(result["BetaCalibration"].log_loss_change.high < 0)
    ('BetaCalibration', 'BetaCalibration', True)
    """
    options.choice(score, ("log loss", "brier"), "score")
    options.choice(in_sample, ("refuse", "label"), "in_sample")
    options.level(level)
    check_predictions(preds)
    check_lens(lens)
    named = _by_name(recalibrators)
    outputs = _outputs(named, preds, logits)
    fold_of = None
    if folds is not None:
        options.whole(folds, "folds", 2)
        fold_of = assign_folds(preds, folds, rng)
    after = {BEFORE: _After(preds)}
    refused: dict[str, InputError] = {}
    for name, recalibrator in named.items():
        X = outputs[name]
        notes = () if folds is not None else _seen_rows(name, recalibrator, X, preds.labels, in_sample)
        try:
            after[name] = _recalibrated(recalibrator, preds, X, fold_of, notes)
        except InputError as error:
            refused[name] = error
    if len(refused) == len(named):
        raise next(iter(refused.values()))
    reasons = tuple((name, str(error)) for name, error in refused.items())
    return _Judge(after, score, lens, level).evaluation(folds, reasons)


@dataclass(frozen=True)
class _After:
    """Predictions after a recalibrator, on rows it was not fitted on."""

    preds: tc.Predictions
    parameters: int = 0
    notes: tuple[str, ...] = ()


def _recalibrated(
    recalibrator: Recalibrator, preds: tc.Predictions, X: Any, fold_of: Indices | None, notes: tuple[str, ...]
) -> _After:
    if fold_of is None:
        return _After(recalibrator.recalibrate(preds, X), recalibrator.parameter_count, notes)
    return _After(*cross_fit(recalibrator, preds, X, fold_of))


def _by_name(recalibrators: Mapping[str, Recalibrator] | Sequence[Recalibrator]) -> dict[str, Recalibrator]:
    if isinstance(recalibrators, Mapping):
        named = dict(recalibrators)
    else:
        kinds, example = (list, tuple), "write [tc.recalibration.BetaCalibration()]"
        options.instance(recalibrators, kinds, "recalibrators", "a list, or a mapping by name", example)
        named = {type(r).__name__: r for r in recalibrators}
        if len(named) < len(recalibrators):
            raise InputError("two recalibrators are of the same class; pass a dict that names them")
    if not named or BEFORE in named:
        raise InputError(f'pass at least one recalibrator, and none named "{BEFORE}"')
    for recalibrator in named.values():
        options.instance(
            recalibrator, Recalibrator, "a recalibrator", "one of truecal's, such as tc.recalibration.BetaCalibration()"
        )
    return named


def _outputs(named: Mapping[str, Recalibrator], preds: tc.Predictions, logits: ArrayLike | None) -> dict[str, Any]:
    """What each recalibrator reads: the probabilities, or the logits given beside them."""
    z = None if logits is None else read_outputs(logits, "logits")
    if z is not None and len(z) != len(preds):
        raise InputError(f"there are {len(preds)} predictions but {len(z)} rows of logits; they must match row by row")
    outputs: dict[str, Any] = {}
    for name, recalibrator in named.items():
        if recalibrator.input == "probs":
            outputs[name] = preds.probs
        elif z is None:
            raise InputError(f'{name} declares input="logits"; pass logits=..., or declare input="probs"')
        else:
            outputs[name] = z[:, 1] - z[:, 0] if preds.binary else z
    return outputs


def _seen_rows(name: str, recalibrator: Recalibrator, X: Any, labels: Indices, in_sample: str) -> tuple[str, ...]:
    seen: RowsSeen | None = getattr(recalibrator, "rows_seen_", None)
    shared = 0 if seen is None else seen.shared_with(RowsSeen.of(read_outputs(X, recalibrator.input), labels))
    if shared and in_sample == "refuse":
        raise InputError(
            f"{shared} of {len(labels)} rows were used to fit {name}: its error on them is too good to be true; pass other "
            'rows, or folds=5 to cross-fit, or in_sample="label" to measure anyway and be warned'
        )
    return (f"measured in sample: {shared} of {len(labels)} rows were used to fit",) if shared else ()


@dataclass(frozen=True)
class _Judge:
    """Scores of all recalibrated predictions, and their paired differences."""

    after: Mapping[str, _After]
    score: Score
    lens: Lens | None
    level: float

    def evaluation(self, folds: int | None, refused: tuple[tuple[str, str], ...]) -> Evaluation:
        losses = {name: (tc.scores.log_losses(a.preds), tc.scores.briers(a.preds)) for name, a in self.after.items()}
        means = [{name: self._mean(both[i]) for name, both in losses.items()} for i in (0, 1)]
        lowest = [min(mean, key=lambda name: mean[name]) for mean in means]
        reference = [losses[lowest[i]][i] for i in (0, 1)]
        rows = [self._row(name, losses[name], losses[BEFORE], reference) for name in self.after]
        which = 0 if self.score == "log loss" else 1
        ranked = sorted(rows, key=lambda row: row.brier if which else row.log_loss)
        best = ranked[0].name
        close = [r.name for r in ranked[1:] if self._change(losses[r.name][which], losses[best][which]).low <= 0]
        opposed = [
            (a.name, b.name)
            for a, b in combinations(rows, 2)
            if (a.equal_width - b.equal_width) * (a.sweep - b.sweep) < 0
        ]
        return Evaluation(tuple(rows), self.score, self.level, best, (best, *close), tuple(opposed), folds, refused)

    def _row(
        self,
        name: str,
        losses: tuple[Float64s, Float64s],
        before: tuple[Float64s, Float64s],
        reference: Sequence[Float64s],
    ) -> Row:
        preds, notes = self.after[name].preds, self.after[name].notes
        lens = self.lens or default_lens(preds)
        error = tc.measure(preds, lens=lens, level=self.level)
        width, sweep = (_binned(preds, lens, e) for e in (tc.BinnedECE(bins=15, norm=1), tc.SweepECE(norm=1)))
        right, right_before = _right(preds), _right(self.after[BEFORE].preds)
        over, under = _one_sided(error.curve)
        return Row(
            name=name,
            log_loss=self._mean(losses[0]),
            log_loss_change=self._change(losses[0], before[0]),
            log_loss_split=self._split(losses[0], reference[0]),
            brier=self._mean(losses[1]),
            brier_change=self._change(losses[1], before[1]),
            brier_split=self._split(losses[1], reference[1]),
            accuracy=self._mean(right),
            accuracy_change=self._change(right, right_before),
            error=error.but(warnings=(*notes, *error.warnings)),
            overconfidence=over,
            underconfidence=under,
            equal_width=width,
            sweep=sweep,
            parameters=self.after[name].parameters,
        )

    def _split(self, loss: Float64s, reference: Float64s) -> Split:
        calibration = self._change(loss, reference)
        refinement = self._mean(reference)
        total = self._mean(loss)
        part = total - refinement if np.isfinite(refinement) else 0.0
        return Split(part, calibration, refinement, self._change(reference, np.zeros(len(reference))))

    def _mean(self, values: Float64s) -> float:
        return float(np.average(values, weights=self.after[BEFORE].preds.weights))

    def _change(self, new: Float64s, old: Float64s) -> Interval:
        """Normal interval of the weighted mean of new - old over independent rows or clusters."""
        from scipy.special import ndtri

        preds, z = self.after[BEFORE].preds, float(ndtri((1 + self.level) / 2))
        # a label was given probability 0
        infinite = (bool(np.isinf(new).any()), bool(np.isinf(old).any()))
        if any(infinite):
            low, high = {(True, False): (inf, inf), (False, True): (-inf, -inf), (True, True): (-inf, inf)}[infinite]
            return Interval(low, high, self.level, "infinite: a label was given probability 0")
        gap = new - old
        w = np.ones(len(gap)) if preds.weights is None else preds.weights
        total = float(w.sum())
        mean = float(w @ gap) / total
        if preds.clusters is not None:
            sums = np.bincount(preds.clusters, w * (gap - mean)).astype(np.float64)
            squares, count = float(sums @ sums), float(len(sums))
        elif bool((w == np.rint(w)).all()):  # a whole weight is that many independent rows
            squares, count = float(w @ (gap - mean) ** 2), total
        else:
            squares, count = float(w**2 @ (gap - mean) ** 2), float(kish(w))
        error = z * sqrt(squares * count / max(count - 1, 1.0)) / total
        how = "normal, paired" + (" over clusters" if preds.clusters is not None else "")
        return Interval(mean - error, mean + error, self.level, how)


def _right(preds: tc.Predictions) -> Float64s:
    """1 where the most probable class is the label."""
    top = preds.probs > 0.5 if preds.binary else preds.probs.argmax(axis=1)
    return (top == preds.labels).astype(np.float64)


def _one_sided(curve: Curve | None) -> tuple[float | None, float | None]:
    """Mean distance of the scores above the calibration curve, and below it."""
    if curve is None:
        return None, None
    gap, weight = curve.score - curve.outcome, curve.weight / curve.weight.sum()
    return float(weight @ np.maximum(gap, 0.0)), float(weight @ np.maximum(-gap, 0.0))


def _binned(preds: tc.Predictions, lens: Lens, estimator: Estimator) -> float:
    """The plain l1 error of an estimator, averaged over the datasets of a lens."""
    shares = lens.shares(preds)
    if shares is None:
        return float(estimator(lens(preds)).value)
    return float(shares @ np.concatenate([np.atleast_1d(estimator(p).value) for p in lens.profiles(preds)]))
