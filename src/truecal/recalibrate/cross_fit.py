"""Cross-fitting: every row's new probabilities come from a fit that never saw the row."""

from typing import Any

import numpy as np
from sklearn.base import clone

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.recalibrate.contract import Recalibrator
from truecal.recalibrate.impossible import ImpossibleRowError
from truecal.types import Indices


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
