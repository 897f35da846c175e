"""Compare recalibration methods, and numbers of bins, on rows they were not fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

import truecal as tc
from truecal import digits, options
from truecal.errors import InputError
from truecal.estimators.estimate import Curve, Interval
from truecal.inference.exact_limit import squared_errors
from truecal.lenses.lens import Lens, check_lens
from truecal.lenses.one_probability import TopLabel, default_lens
from truecal.predictions.arrays import takes_arrays, takes_arrays_second
from truecal.predictions.predictions import check_predictions
from truecal.recalibration.binning_maps import ScalingBinning
from truecal.recalibration.contract import (
    ImpossibleRowError,
    Recalibrator,
    count_shared_rows,
    fingerprint_rows,
    read_outputs,
)
from truecal.recalibration.score_maps import ScoreRecalibrator
from truecal.special import kish
from truecal.table import Frame, Tabular
from truecal.types import Float64s, Indices

BEFORE = "uncalibrated"
Score = Literal["log loss", "brier"]


@dataclass(frozen=True)
class ScoreParts:
    """A proper score as the sum of a calibration part, which recalibration removes, and a refinement part.

    Attributes
    ----------
    calibration : float
        Mean score less the refinement.
    calibration_interval : Interval
        Of the paired differences over rows (or clusters).
    refinement : float
        Lowest mean cross-fitted score of all maps compared.

    See Also
    --------
    truecal.evaluate : Computes it.
    """

    calibration: float
    calibration_interval: Interval
    refinement: float


@dataclass(frozen=True)
class EvaluationRow:
    """Scores, accuracy and calibration error of one recalibrator on held-out rows.

    Changes are against the uncalibrated predictions; of scores, below 0 is better.

    Attributes
    ----------
    name : str
        Name of the recalibrator.
    log_loss : float
        Mean log loss.
    log_loss_change : Interval
        Change of the log loss.
    log_loss_split : ScoreParts
        Calibration and refinement part of the log loss.
    brier : float
        Mean Brier score.
    brier_change : Interval
        Change of the Brier score.
    brier_split : ScoreParts
        Calibration and refinement part of the Brier score.
    accuracy : float
        Share of rows whose most probable class is the label.
    accuracy_change : Interval
        Change of the accuracy; above 0 is better.
    error : Estimate
        Calibration error.
    overconfidence : float or None
        Mean distance of the score above the fitted calibration curve; None for a lens of several datasets.
    underconfidence : float or None
        Mean distance of the score below the fitted calibration curve.
    parameters : int
        Number of learned numbers.

    See Also
    --------
    truecal.evaluate : Computes it.
    """

    name: str
    log_loss: float
    log_loss_change: Interval
    log_loss_split: ScoreParts
    brier: float
    brier_change: Interval
    brier_split: ScoreParts
    accuracy: float
    accuracy_change: Interval
    error: tc.Estimate
    overconfidence: float | None
    underconfidence: float | None
    parameters: int

    def __str__(self) -> str:
        """Write name, log loss, Brier score and accuracy with four decimals, number of parameters, and the calibration error."""
        return (
            f"{self.name}: log loss {self.log_loss:.4f}, Brier score {self.brier:.4f}, accuracy {self.accuracy:.4f}, "
            f"{self.parameters} parameters; {self.error}"
        )

    def record(self) -> dict[str, Any]:
        """Return recalibrator, accuracy, error, overconfidence, underconfidence, parameters, and the numbers of both scores.

        Those are log_loss and brier, and their parts <score>_calibration and <score>_refinement, which sum to the score. Limits
        are <name>_low and <name>_high of <score>_change, <score>_calibration, accuracy_change and error.
        """
        record: dict[str, Any] = {"recalibrator": self.name}
        for score, split in (("log_loss", self.log_loss_split), ("brier", self.brier_split)):
            record[score] = getattr(self, score)
            record |= _name_limits(f"{score}_change", getattr(self, f"{score}_change"))
            record[f"{score}_calibration"] = split.calibration
            record |= _name_limits(f"{score}_calibration", split.calibration_interval)
            record[f"{score}_refinement"] = split.refinement
        record["accuracy"] = self.accuracy
        record |= _name_limits("accuracy_change", self.accuracy_change)
        record["error"] = self.error.value
        record |= _name_limits("error", self.error.interval)
        names = ("overconfidence", "underconfidence", "parameters")
        return record | {name: getattr(self, name) for name in names}


def _name_limits(name: str, interval: Interval | None) -> dict[str, Any]:
    """Return {<name>_low: ..., <name>_high: ...} with the limits of an interval; None for both without an interval.

    >>> _name_limits("error", Interval(0.1, 0.2, 0.95, "")), _name_limits("error", None)
    ({'error_low': 0.1, 'error_high': 0.2}, {'error_low': None, 'error_high': None})
    """
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return {f"{name}_low": low, f"{name}_high": high}


@dataclass(frozen=True, repr=False)
class Evaluation(Tabular):
    """Recalibrators side by side, the uncalibrated predictions first.

    Attributes
    ----------
    rows : tuple
        One record per recalibrator: log loss, Brier score and accuracy with intervals of their changes, the calibration
        error, and the number of parameters. ``evaluation[name]`` is the record of a name.
    score : {"log loss", "brier"}
        The proper score that decides.
    level : float
        Level of all intervals.
    winner : str
        The name with the lowest mean score.
    tied : tuple of str
        The names, winner first, whose score is not significantly worse than the winner's at `level` (paired over rows).
    folds : int or None
        Number of folds; None for recalibrators that were fitted already.
    refused : tuple
        Pairs of a name and the reason why that recalibrator could not be fitted; the others were compared.

    See Also
    --------
    truecal.evaluate : The function that returns it.
    """

    rows: tuple[EvaluationRow, ...]
    score: Score
    level: float
    winner: str
    tied: tuple[str, ...]
    folds: int | None
    refused: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, name: str) -> EvaluationRow:
        """Return the record of the recalibrator of this name; KeyError for another."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def recommended(self) -> str:
        """The recalibrator to use.

        Of those tied, without the ones that lose accuracy, the one with the fewest parameters; "uncalibrated" where no map is
        significantly better than none.
        """
        return self._recommendation()[0]

    @property
    def reason(self) -> str:
        """Why `recommended` was chosen, in words."""
        return self._recommendation()[1]

    def _recommendation(self) -> tuple[str, str]:
        """Choose the map with the fewest parameters of those tied for the best score; return its name and the reason in words.

        Maps whose accuracy is significantly lower are left out, unless all are. "uncalibrated" where it is tied for the best.
        """
        if BEFORE in self.tied:
            return BEFORE, f"no map lowers the {self._score_name()} significantly at {self.level:.0%}"
        accurate = [name for name in self.tied if self[name].accuracy_change.high >= 0]
        inaccurate = [name for name in self.tied if name not in accurate]
        candidates = accurate or list(self.tied)
        best = min(candidates, key=lambda name: self[name].parameters)
        count = self[best].parameters
        losing = f"; {', '.join(inaccurate)} would lose accuracy" if inaccurate and accurate else ""
        if len(candidates) == 1:
            return best, f"lowest {self._score_name()}, and significantly so{losing}"
        tied = ", ".join(name for name in candidates if name != best)
        parameters = f"{count} parameter{'s' if count != 1 else ''}"
        return best, f"{parameters}, the fewest of those tied at the lowest {self._score_name()} (with {tied}){losing}"

    def frame(self) -> Frame:
        """Return one row per recalibrator: recalibrator, log_loss, brier, accuracy, error and the other keys of
        `EvaluationRow.record`.
        """
        return Frame.from_records([row.record() for row in self.rows])

    def __str__(self) -> str:
        """Write a line per recalibrator, those tied for the best, the recommendation with its reason, and the parts of the score.

        Lines have log loss, Brier score, accuracy, number of parameters, and the calibration error with its interval. Last are
        the recalibrators that could not be fitted.
        """
        width = max(len(row.name) for row in self.rows) + 2
        heads = f"{'log loss':>10}{'brier':>10}{'accuracy':>10}{'parameters':>12}{'error (rms)':>13}  {self.level:.0%} interval"
        lines = [f"{'on held-out folds' if self.folds else '':{width}}{heads}"]
        for row in self.rows:
            limits = row.error.interval
            low, high = (None, None) if limits is None else (float(limits.low), float(limits.high))
            spec = f".{digits.decimals(low, high)}f"
            span = "" if low is None or high is None else f"{low:{spec}} to {high:{spec}}"
            numbers = f"{row.log_loss:10.4f}{row.brier:10.4f}{row.accuracy:10.4f}{row.parameters:12}"
            lines.append(f"{row.name:{width}}{numbers}{f'{float(row.error.value):{spec}}':>13}  {span}".rstrip())
        if all(np.isinf(row.log_loss) for row in self.rows):
            lines.append("every log loss is infinite (a label was given probability 0), so the Brier score decides")
        close = f"; not significantly worse: {', '.join(self.tied[1:])}" if len(self.tied) > 1 else ""
        lines.append(f"lowest {self._score_name()}: {self.winner}{close}")
        lines.append(f"recommended: {self.recommended} ({self.reason})")
        lines.append(self._describe_decomposition())
        lines.extend(f"{name} could not be fitted: {reason}" for name, reason in self.refused)
        return "\n".join(lines)

    def _score_name(self) -> str:
        """Return the name of the score by which maps are ranked, as it is printed: "Brier score" or "log loss"."""
        return "Brier score" if self.score == "brier" else self.score

    def _describe_decomposition(self) -> str:
        """Write the score of the uncalibrated predictions as its two parts.

        Such as "log loss 0.5000 = 0.1000 [0.0800, 0.1200] removed by recalibration + 0.4000 that remains".
        """
        before = self[BEFORE]
        is_log_loss = self.score == "log loss"
        total, split = (before.log_loss, before.log_loss_split) if is_log_loss else (before.brier, before.brier_split)
        span = split.calibration_interval
        return (
            f"{self._score_name()} {total:.4f} = {split.calibration:.4f} [{span.low:.4f}, {span.high:.4f}] removed by "
            f"recalibration + {split.refinement:.4f} that remains"
        )


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

    With `folds`, each row's new probabilities come from a fit to the other folds. Folds keep the class frequencies; rows of
    one cluster stay together. A recalibrator that cannot take the rows is listed in `refused` with the reason; the others are
    compared.

    Parameters
    ----------
    recalibrators : dict of str to Recalibrator, or sequence of Recalibrator
        By name, or a sequence (named by class). They are cloned, not changed.
    preds : Predictions
        Predictions with labels, weights and clusters; or ``y_true, y_prob``.
    logits : array-like of shape (n,) or (n, K), default None
        The model's logits, for recalibrators of input="logits"; others read the probabilities of `preds`.
    folds : int, default 5
        Number of folds; None for recalibrators that are fitted already.
    score : {"log loss", "brier"}, default "log loss"
        The proper score that decides; the Brier score where every log loss is infinite. Calibration errors do not decide: a
        constant can have error 0.
    lens : Lens, default None
        What the calibration errors judge; None is the positive class or the top label.
    level : float, default 0.95
        Level of all intervals. Those of score changes are normal, paired over rows (or clusters).
    in_sample : {"refuse", "label"}, default "refuse"
        With ``folds=None``: whether rows a recalibrator was fitted on are refused, or named in the warnings of its error.
    rng : int, default 0
        Seed of the folds.

    Returns
    -------
    evaluation : Evaluation
        One record per recalibrator, the winner, those tied with it, and a recommendation with its reason.

    Raises
    ------
    InputError
        No recalibrator can take the rows, logits are needed and not given, or rows of the fit are evaluated.

    See Also
    --------
    truecal.measure : The calibration error of one set of predictions.
    truecal.compare : Test the difference between two models.

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
    preds.refuse_multilabel("a comparison of recalibrators")
    check_lens(lens)
    named = _name_recalibrators(recalibrators)
    outputs = _select_outputs(named, preds, logits)
    fold_of = None
    if folds is not None:
        options.whole(folds, "folds", 2)
        fold_of = assign_folds(preds, folds, rng)
    results = {BEFORE: _Recalibrated(preds)}
    refused: dict[str, InputError] = {}
    for name, recalibrator in named.items():
        X = outputs[name]
        notes = () if folds is not None else _check_held_out(name, recalibrator, X, preds.labels, in_sample)
        try:
            if fold_of is None:
                results[name] = _Recalibrated(recalibrator.recalibrate(preds, X), recalibrator.parameter_count, notes)
            else:
                results[name] = cross_fit(recalibrator, preds, X, fold_of)
        except InputError as error:
            refused[name] = error
    if len(refused) == len(named):
        raise next(iter(refused.values()))
    reasons = tuple((name, str(error)) for name, error in refused.items())
    return _Scoring(results, score, lens, level).evaluation(folds, reasons)


@dataclass(frozen=True)
class _Recalibrated:
    """Predictions after a recalibrator, on rows it was not fitted on; `parameters` is the number of its largest fit.

    `notes` are warnings about the rows.
    """

    preds: tc.Predictions
    parameters: int = 0
    notes: tuple[str, ...] = ()


def assign_folds(preds: tc.Predictions, folds: int, rng: int) -> Indices:
    """Assign a fold (0 to folds - 1) to each row (n,): in turn over shuffled rows, class by class, or over shuffled clusters.

    Refuse fewer clusters than folds, and fewer than two rows per fold.

    >>> preds = tc.Predictions.from_probs([0.1, 0.2, 0.3, 0.4, 0.6, 0.7], [0, 0, 0, 1, 1, 1])
    >>> np.bincount(assign_folds(preds, 3, 0)), np.bincount(assign_folds(preds, 3, 0)[:3])  # a row of either class in each
    (array([2, 2, 2]), array([1, 1, 1]))
    """
    random = options.generator(rng)
    if preds.clusters is not None:
        count = int(preds.clusters.max()) + 1
        if count < folds:
            raise InputError(f"{count} clusters cannot fill {folds} folds; use at most folds={count}")
        fold_of: Indices = (random.permutation(count) % folds)[preds.clusters]
        return fold_of
    if len(preds) < 2 * folds:
        raise InputError(f"{len(preds)} rows are too few for {folds} folds; use at most folds={len(preds) // 2}")
    shuffled = random.permutation(len(preds))
    order = shuffled[np.argsort(preds.labels[shuffled], kind="stable")]
    fold_of = np.empty(len(preds), np.intp)
    fold_of[order] = np.arange(len(preds)) % folds
    return fold_of


def cross_fit(recalibrator: Recalibrator, preds: tc.Predictions, X: Any, fold_of: Indices) -> _Recalibrated:
    """Recalibrate each fold by a clone fitted to the other folds; return all rows, and the parameters of the largest fit.

    `X` (n or n, K) holds the outputs that the recalibrator reads, `fold_of` (n,) the fold of each row, from 0. A row that makes a
    fit impossible is refused by its number among all rows.
    """
    probs = np.empty(preds.probs.shape, np.float64)
    parameters = 0
    for fold in range(int(fold_of.max()) + 1):
        test = fold_of == fold
        fitted: Recalibrator = clone(recalibrator).set_params(classes=None)
        try:
            fitted.fit_rows(preds.take(~test), X[~test])
        except ImpossibleRowError as refusal:
            raise refusal.renumber(np.flatnonzero(~test)) from None
        parameters = max(parameters, fitted.parameter_count)
        probs[test] = fitted.recalibrate(preds.take(test), X[test]).probs
    return _Recalibrated(replace(preds, probs=probs), parameters)


def _name_recalibrators(recalibrators: Mapping[str, Recalibrator] | Sequence[Recalibrator]) -> dict[str, Recalibrator]:
    """Return recalibrators by name, those of a list by their class; refuse duplicates and other objects.

    >>> list(_name_recalibrators([tc.recalibration.PlattScaling(), tc.recalibration.IsotonicCalibration()]))
    ['PlattScaling', 'IsotonicCalibration']
    """
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


def _select_outputs(
    named: Mapping[str, Recalibrator], preds: tc.Predictions, logits: ArrayLike | None
) -> dict[str, Any]:
    """Select by name what each recalibrator reads: the probabilities of `preds`, or the logits.

    For binary predictions the logits become log odds z_1 - z_0, shape (n,). Refuse a recalibrator of missing logits.

    >>> preds = tc.Predictions.from_probs([0.2, 0.8], [0, 1])
    >>> _select_outputs({"temperature": tc.recalibration.TemperatureScaling()}, preds, [[0.0, 1.0], [1.0, 3.0]])
    {'temperature': array([1., 2.])}
    """
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


def _check_held_out(name: str, recalibrator: Recalibrator, X: Any, labels: Indices, in_sample: str) -> tuple[str, ...]:
    """Refuse rows that a recalibrator was fitted on; with in_sample "label" return a warning that counts them, () for none.

    `X` are the outputs of the rows, `labels` (n,) their classes. Recalibrators read from JSON, which know no rows, pass.
    """
    if not hasattr(recalibrator, "fingerprints_"):
        return ()
    fingerprints = fingerprint_rows(read_outputs(X, recalibrator.input), labels)
    shared = count_shared_rows(recalibrator.fingerprints_, fingerprints)
    if shared and in_sample == "refuse":
        raise InputError(
            f"{shared} of {len(labels)} rows were used to fit {name}: its error on them is too small; pass other "
            'rows, or folds=5 to cross-fit, or in_sample="label" to measure anyway and be warned'
        )
    return (f"measured in sample: {shared} of {len(labels)} rows were used to fit",) if shared else ()


@dataclass(frozen=True)
class _Scoring:
    """Recalibrated predictions by name, "uncalibrated" among them, and what they are scored by.

    `score` decides the ranking, `lens` the calibration error (None: the default one), `level` the intervals.
    """

    results: Mapping[str, _Recalibrated]
    score: Score
    lens: Lens | None
    level: float

    def evaluation(self, folds: int | None, refused: tuple[tuple[str, str], ...]) -> Evaluation:
        """Rank the maps by their weighted mean score; tied with the best are those whose paired difference is not significant.

        If every mean log loss is infinite, the Brier score decides. `folds` and `refused` are passed on.
        """
        by_score = {
            "log loss": {name: tc.scores.log_losses(r.preds) for name, r in self.results.items()},
            "brier": {name: tc.scores.briers(r.preds) for name, r in self.results.items()},
        }
        rows = [self._row(name, by_score) for name in self.results]
        # every map gave a label probability 0: log losses do not rank them
        infinite = all(np.isinf(self._mean(values)) for values in by_score["log loss"].values())
        score: Score = "brier" if infinite else self.score
        losses = by_score[score]
        ranked = sorted(losses, key=lambda name: self._mean(losses[name]))
        best = ranked[0]
        tied = [name for name in ranked[1:] if self._change(losses[name], losses[best]).low <= 0]
        return Evaluation(tuple(rows), score, self.level, best, (best, *tied), folds, refused)

    def _row(self, name: str, by_score: Mapping[str, Mapping[str, Float64s]]) -> EvaluationRow:
        """Compute scores, changes, calibration error and accuracy of one map; `by_score[score][map]` are losses of rows, (n,).

        Changes are from the predictions before recalibration; the error is that of :func:`truecal.measure` by the lens, with
        the notes of the map before its own warnings.
        """
        preds, notes = self.results[name].preds, self.results[name].notes
        log_losses, briers = by_score["log loss"], by_score["brier"]
        lens = self.lens or default_lens(preds)
        error = tc.measure(preds, lens=lens, level=self.level)
        correct, correct_before = (
            TopLabel().scores_and_outcomes(p)[1].astype(np.float64) for p in (preds, self.results[BEFORE].preds)
        )
        over, under = _one_sided_gaps(error.curve)
        return EvaluationRow(
            name=name,
            log_loss=self._mean(log_losses[name]),
            log_loss_change=self._change(log_losses[name], log_losses[BEFORE]),
            log_loss_split=self._decompose(log_losses, name),
            brier=self._mean(briers[name]),
            brier_change=self._change(briers[name], briers[BEFORE]),
            brier_split=self._decompose(briers, name),
            accuracy=self._mean(correct),
            accuracy_change=self._change(correct, correct_before),
            error=replace(error, warnings=(*notes, *error.warnings)),
            overconfidence=over,
            underconfidence=under,
            parameters=self.results[name].parameters,
        )

    def _decompose(self, losses: Mapping[str, Float64s], name: str) -> ScoreParts:
        """Split the mean loss of a map into refinement, the least mean loss of all maps, and calibration, the rest.

        `losses` (n,) are those of the rows by map. Where every mean loss is infinite, calibration is 0.
        """
        reference = losses[min(losses, key=lambda candidate: self._mean(losses[candidate]))]
        refinement = self._mean(reference)
        calibration = self._mean(losses[name]) - refinement if np.isfinite(refinement) else 0.0
        return ScoreParts(calibration, self._change(losses[name], reference), refinement)

    def _mean(self, values: Float64s) -> float:
        """Compute the mean of values (n,) over rows, by their weights."""
        return float(np.average(values, weights=self.results[BEFORE].preds.weights))

    def _change(self, new: Float64s, old: Float64s) -> Interval:
        """Compute the normal interval of the weighted mean of new - old, both (n,), paired over rows or clusters.

        Where a loss is infinite so are limits: (inf, inf) for a new one, (-inf, -inf) for an old one, (-inf, inf) for both.
        """
        from scipy.special import ndtri

        preds, z = self.results[BEFORE].preds, float(ndtri((1 + self.level) / 2))
        # a label was given probability 0
        infinite = (bool(np.isinf(new).any()), bool(np.isinf(old).any()))
        if any(infinite):
            low, high = {(True, False): (inf, inf), (False, True): (-inf, -inf), (True, True): (-inf, inf)}[infinite]
            return Interval(low, high, self.level, "infinite: a label had probability 0")
        gap = new - old
        w = np.ones(len(gap)) if preds.weights is None else preds.weights
        total = float(w.sum())
        mean = float(w @ gap) / total
        if preds.clusters is not None:
            sums = np.bincount(preds.clusters, w * (gap - mean)).astype(np.float64)
            square_sum, units = float(sums @ sums), float(len(sums))
        elif bool((w == np.rint(w)).all()):  # a whole weight is that many independent rows
            square_sum, units = float(w @ (gap - mean) ** 2), total
        else:
            square_sum, units = float(w**2 @ (gap - mean) ** 2), float(kish(w))
        error = z * sqrt(square_sum * units / max(units - 1, 1.0)) / total
        how = "normal, paired" + (" over clusters" if preds.clusters is not None else "")
        return Interval(mean - error, mean + error, self.level, how)


def _one_sided_gaps(curve: Curve | None) -> tuple[float | None, float | None]:
    """Average max(score - outcome, 0) and max(outcome - score, 0) along a fitted curve, by weight; (None, None) without one.

    >>> from types import SimpleNamespace
    >>> curve = SimpleNamespace(score=np.array([0.2, 0.8]), outcome=np.array([0.4, 0.7]), weight=np.array([3.0, 1.0]))
    >>> over, under = _one_sided_gaps(curve)
    >>> round(over, 6), round(under, 6)  # 0.1 x 1/4 and 0.2 x 3/4
    (0.025, 0.15)
    """
    if curve is None:
        return None, None
    gap, weight = curve.score - curve.outcome, curve.weight / curve.weight.sum()
    return float(weight @ np.maximum(gap, 0.0)), float(weight @ np.maximum(-gap, 0.0))


# ----------------------------------------------------------------------------------------------------
# The number of bins of a scaling-binning calibrator: more bins give a lower mean squared error, and a calibration error that is
# harder to bound (Kumar et al. 2019, Figure 17)


@dataclass(frozen=True)
class BinCandidate:
    """One number of bins on held-out rows.

    Attributes
    ----------
    bins : int
        Number of bins.
    mean_squared_error : float
        Of probabilities and outcomes.
    debiased : float
        Debiased root-mean-square calibration error.
    debiased_upper : float
        Upper bound by the debiased error.
    plugin : float
        Plug-in root-mean-square calibration error.
    plugin_upper : float
        Upper bound by the plug-in error.

    See Also
    --------
    choose_bins : Computes it.
    """

    bins: int
    mean_squared_error: float
    debiased: float
    debiased_upper: float
    plugin: float
    plugin_upper: float


@dataclass(frozen=True, repr=False)
class BinChoice(Tabular):
    """Numbers of bins side by side, and the one with the least mean squared error whose bound is below the threshold.

    Attributes
    ----------
    candidates : tuple
        One BinCandidate per number of bins.
    threshold : float
        Largest calibration error to accept.
    level : float
        Level of the upper bounds.
    recommended : int or None
        Number of bins by the debiased estimate; None when none meets the threshold.
    recommended_by_plugin : int or None
        Number of bins that the plug-in estimate would allow.

    See Also
    --------
    choose_bins : The function that returns it.
    """

    candidates: tuple[BinCandidate, ...]
    threshold: float
    level: float
    recommended: int | None
    recommended_by_plugin: int | None

    def frame(self) -> Frame:
        """Return one row per number of bins: bins, mean_squared_error, debiased, debiased_upper, plugin, plugin_upper.

        >>> BinChoice((BinCandidate(10, 0.2, 0.01, 0.02, 0.03, 0.04),), 0.05, 0.9, 10, 10).frame()[0]
        {'bins': 10, 'mean_squared_error': 0.2, 'debiased': 0.01, 'debiased_upper': 0.02, 'plugin': 0.03, 'plugin_upper': 0.04}
        """
        return Frame.from_records(map(vars, self.candidates))

    def __str__(self) -> str:
        """Write the recommended number, the threshold, the level, and how many were tried.

        >>> print(BinChoice((BinCandidate(10, 0.2, 0.01, 0.02, 0.03, 0.04),), 0.05, 0.9, None, 10))
        no number of bins recommended for an error below 0.05 at 90%, of 1 tried
        """
        number = "no number of bins" if self.recommended is None else f"{self.recommended} bins"
        return f"{number} recommended for an error below {self.threshold:g} at {self.level:.0%}, of {len(self.candidates)} tried"


@takes_arrays
def choose_bins(
    preds: tc.Predictions,
    threshold: float,
    *,
    bins: Sequence[int] = tuple(range(10, 101, 5)),
    scaling: ScoreRecalibrator | None = None,
    fit_share: float = 0.6,
    resamples: int = 100,
    level: float = 0.9,
    rng: int = 0,
) -> BinChoice:
    """Recommend a number of bins for `ScalingBinning` that keeps the calibration error below a threshold.

    A share of the rows fits the calibrators, one per class (for two classes, of the second). On the other rows the marginal
    calibration error, the root of the mean squared error over classes, is estimated with and without debiasing.

    Parameters
    ----------
    preds : Predictions
        Rows the model was not trained on, unweighted; or ``y_true, y_prob``.
    threshold : float
        Largest root-mean-square calibration error to accept.
    bins : sequence of int, default 10, 15, ..., 100
        The numbers to try.
    scaling : recalibrator of one score, default None
        The curve to bin; see `ScalingBinning`.
    fit_share : float, default 0.6
        Share of rows to fit on.
    resamples : int, default 100
        Number of bootstrap resamples.
    level : float, default 0.9
        Level of the upper bounds.
    rng : int, default 0
        Seed of split and resamples.

    Returns
    -------
    choice : BinChoice
        The recommended number and the candidates.

    Raises
    ------
    InputError
        The rows have weights or clusters, or are too few to split.

    Notes
    -----
    The upper bounds add a normal quantile times the standard deviation over bootstrap resamples of the rows (Kumar et al.,
    appendix G.2).

    References
    ----------
    Kumar, Liang, Ma. Verified uncertainty calibration. NeurIPS 2019. https://doi.org/10.48550/arXiv.1909.10155

    See Also
    --------
    ScalingBinning : The calibrator.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.predictions import Predictions
    >>> from truecal.recalibration import choose_bins
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> choice = choose_bins(Predictions.from_probs(p, rng.random(4000) < p**2), 0.035, bins=[2, 5, 10, 20, 50])
    >>> choice.recommended, choice.recommended_by_plugin
    (10, 5)
    """
    check_predictions(preds)
    if preds.weights is not None or preds.clusters is not None:
        raise InputError("choose_bins takes plain rows, without weights or clusters")
    options.between(fit_share, "fit_share", 0, 1)
    options.between(level, "level", 0.5, 1)
    options.between(threshold, "threshold", 0, 1)
    options.resamples(resamples, "resamples", 2)
    random = options.generator(rng)
    order = random.permutation(len(preds))
    cut = round(fit_share * len(preds))
    if not 0 < cut < len(preds):
        raise InputError(f"{len(preds)} rows are too few for a share of {fit_share:g} to fit on and others to test on")
    fit_preds, test_preds = preds.take(order[:cut]), preds.take(order[cut:])
    draws = random.multinomial(len(test_preds), np.full(len(test_preds), 1 / len(test_preds)), resamples)
    candidates = []
    for count in bins:
        calibrator = ScalingBinning(bins=count, scaling=scaling, normalize=False).fit(fit_preds.probs, fit_preds.labels)
        candidates.append(_test_candidate(count, calibrator.recalibrate(test_preds), draws, level))

    def recommend(bound: str) -> int | None:
        """Choose the number of bins of least squared error of those whose `bound` (an attribute) is at most the threshold.

        None if there is none.
        """
        allowed = [(c.mean_squared_error, c.bins) for c in candidates if getattr(c, bound) <= threshold]
        return min(allowed)[1] if allowed else None

    return BinChoice(tuple(candidates), threshold, level, recommend("debiased_upper"), recommend("plugin_upper"))


def _test_candidate(count: int, preds: tc.Predictions, draws: Indices, level: float) -> BinCandidate:
    """Estimate plug-in and debiased error (root mean square) of recalibrated rows, over all classes; of two the second alone.

    An upper limit at `level` is sqrt(max(e + q s, 0)), e the squared error, q the normal quantile of `level`, s the standard
    deviation of e over the resamples, whose counts of rows are `draws` (resamples, n). `count` is the number of bins.
    """
    from scipy.special import ndtri

    columns = [preds.probs] if preds.binary else list(preds.probs.T)
    outcomes = [preds.labels == k for k in ([1] if preds.class_count == 2 else range(preds.class_count))]
    columns = columns[-1:] if preds.class_count == 2 else columns
    parts = list(zip([c.astype(np.float64) for c in columns], [y.astype(np.float64) for y in outcomes], strict=True))
    plugin, debiased = (float(v[0]) for v in _marginal_errors(parts, np.ones((1, len(preds)), np.intp)))
    spreads = [float(v.std(ddof=1)) for v in _marginal_errors(parts, draws)]
    quantile = float(ndtri(level))
    plugin_upper, debiased_upper = (
        sqrt(max(value + quantile * spread, 0.0)) for value, spread in zip((plugin, debiased), spreads, strict=True)
    )
    mean_squared_error = float(np.mean([((p - y) ** 2).mean() for p, y in parts]))
    return BinCandidate(count, mean_squared_error, sqrt(max(debiased, 0.0)), debiased_upper, sqrt(plugin), plugin_upper)


def _marginal_errors(parts: Sequence[tuple[Float64s, Float64s]], draws: Indices) -> tuple[Float64s, Float64s]:
    """Return plug-in and debiased squared calibration error of rows grouped by equal output, averaged over classes.

    Both are (resamples,). `parts` are (outputs, outcomes) of every class, (n,) each; `draws` (resamples, n) how often each row
    is drawn.

    >>> column = np.array([0.5, 0.5]), np.array([1.0, 1.0])
    >>> _marginal_errors([column], np.array([[1, 1]]))  # (1 - 1/2)^2
    (array([0.25]), array([0.25]))
    """
    plugin, debiased = np.zeros(len(draws)), np.zeros(len(draws))
    for column, outcomes in parts:
        outputs, position = np.unique(column, return_inverse=True)
        counts = np.stack([np.bincount(position, w, len(outputs)) for w in draws]).astype(np.float64)
        ones = np.stack([np.bincount(position, w * outcomes, len(outputs)) for w in draws]).astype(np.float64)
        errors = squared_errors(outputs, counts, ones)
        plugin += errors[0] / len(parts)
        debiased += errors[1] / len(parts)
    return plugin, debiased
