"""The cohort: one risk and one outcome per row, with weights and with the patients behind the rows.

Every interval of this folder is built from influence functions. If an estimate reacts to a small change of row i's weight by
w_i psi_i / W (W the total weight), its variance is that of the sum of these reactions over independent units: patients where
clusters are given, rows otherwise.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.errors import InputError
from truecal.lens import Lens, check_lens, default_lens
from truecal.predictions import check_predictions
from truecal.types import Float64s, Indices


@dataclass(frozen=True, eq=False)
class Cohort:
    """What the clinical summaries read.

    Attributes
    ----------
    scores, outcomes, weights : (n,) predicted risk, 0/1 outcome, and weight of each row.
    units : (n,) number of the patient (cluster) of each row 0..patients-1, or None where rows are independent.
    counted : weights are repetitions of a row (all whole numbers), else importance weights.
    stratified : the weights restore a known prevalence, so the share of events is not a source of error.
    lens : what is judged, in words.
    """

    scores: Float64s
    outcomes: Float64s
    weights: Float64s
    units: Indices | None
    counted: bool
    stratified: bool
    lens: str

    @classmethod
    def of(cls, preds: tc.Predictions, lens: Lens | None = None, *, prevalence: float | None = None) -> "Cohort":
        """The rows that a lens judges; with `prevalence`, events and non-events are weighted to that share of events."""
        check_predictions(preds)
        check_lens(lens)
        lens = default_lens(preds) if lens is None else lens
        if lens.several or lens.shares(preds) is not None:
            raise InputError("a clinical summary judges one risk per row; give a lens such as OneClass('malignant')")
        sample = lens.sample(preds)
        if sample.pooled:
            raise InputError("a clinical summary judges one risk per row; give a lens such as OneClass('malignant')")
        weights = np.ones(len(sample)) if sample.weights is None else sample.weights
        units = None if sample.units is None else np.unique(sample.units, return_inverse=True)[1].astype(np.intp)
        made = cls(
            sample.scores.astype(np.float64),
            sample.outcomes.astype(np.float64),
            weights,
            units,
            bool((weights == np.floor(weights)).all()),
            False,
            lens.describe(preds),
        )
        if made.patients < 2:
            raise InputError(
                "all rows belong to one cluster: it cannot tell how much another would differ; give at least two"
            )
        made.refuse_one_class("the cohort")
        return made if prevalence is None else made.at_prevalence(prevalence)

    def refuse_one_class(self, name: str) -> None:
        """Raise where nothing can be said about calibration: no events, or nothing but events."""
        share = self.prevalence
        if 0 < share < 1:
            return
        kind, other = ("no events", "event") if share == 0 else ("nothing but events", "non-event")
        raise InputError(
            f"{name} has {kind} among its {self.rows:,} rows of positive weight; O/E, slope and c-statistic need at least one "
            f"{other}: merge it with other data or leave it out"
        )

    def at_prevalence(self, prevalence: float) -> "Cohort":
        """The same rows weighted so that events have the share they have in the target population."""
        options.between(prevalence, "prevalence", 0, 1)
        share = self.prevalence
        factor = np.where(self.outcomes == 1, prevalence / share, (1 - prevalence) / (1 - share))
        return replace(self, weights=self.weights * factor, counted=False, stratified=True)

    @property
    def prevalence(self) -> float:
        """Weighted share of events."""
        return float(self.weights @ self.outcomes / self.weights.sum())

    @property
    def rows(self) -> int:
        """Rows of positive weight; repetitions are counted."""
        return int(self.weights.sum()) if self.counted else int(np.count_nonzero(self.weights))

    @property
    def events(self) -> int:
        """Rows with the outcome, as :attr:`rows` counts them."""
        event = self.outcomes == 1
        return int(self.weights[event].sum()) if self.counted else int(np.count_nonzero(self.weights[event]))

    @property
    def patients(self) -> int:
        """Independent units of positive weight: clusters where they are given, else rows."""
        if self.units is None:
            return self.rows
        return len(np.unique(self.units[self.weights > 0]))

    @property
    def df(self) -> float:
        """Degrees of freedom of a standard error: independent units minus one."""
        return float(max(self.patients - 1, 1))

    def take(self, rows: NDArray[np.bool_] | Indices) -> "Cohort":
        """Some of the rows."""
        units = None if self.units is None else np.unique(self.units[rows], return_inverse=True)[1].astype(np.intp)
        return Cohort(
            self.scores[rows],
            self.outcomes[rows],
            self.weights[rows],
            units,
            self.counted,
            self.stratified,
            self.lens,
        )

    def mean(self, values: Float64s) -> float:
        return float(self.weights @ values / self.weights.sum())

    def reactions(self, influence: Float64s) -> Float64s:
        """(units, k) how the estimate reacts to each independent unit, from (n,) or (n, k) influence values of the rows."""
        psi = influence[:, None] if influence.ndim == 1 else influence
        # The share of events is known: only what varies within events and within non-events is error
        if self.stratified:
            psi = psi.copy()
            for rows in (self.outcomes == 1, self.outcomes == 0):
                psi[rows] -= self.weights[rows] @ psi[rows] / self.weights[rows].sum()
        total = self.weights.sum()
        if self.units is not None:
            sums = [np.bincount(self.units, self.weights * column, self.units.max() + 1) for column in psi.T]
            return np.stack(sums, axis=1) / total
        factor = np.sqrt(self.weights) if self.counted else self.weights
        return psi * factor[:, None] / total

    def covariance(self, influence: Float64s, fitted: int = 1) -> Float64s:
        """Covariance matrix of k estimates with these influence values: the sum of reaction' reaction over J units, times
        J / (J - fitted), `fitted` the number of parameters that took their part of the scatter."""
        each = self.reactions(influence)
        return np.asarray(each.T @ each) * (self.patients / max(self.patients - fitted, 1))

    def degrees(self, influence: Float64s) -> float:
        """Degrees of freedom of the covariance of k estimates with these influence values, by Satterthwaite's rule.

        The squared length of what a unit adds, measured by the covariance of all, is d; d sums to k. Where what they add is normal,
        the mean of d^2 over J units is k (k + 2) / J^2 and the rule gives J; a few events that decide alone give about two each.
        """
        each = self.reactions(influence)
        lengths = np.einsum("ij,jk,ik->i", each, np.linalg.pinv(each.T @ each, hermitian=True), each)
        k = round(float(lengths.sum()))
        often = self.weights if self.units is None and self.counted else np.ones(len(lengths))
        noise = float((lengths[often > 0] ** 2 / often[often > 0]).sum()) - k**2 / self.patients
        return _satterthwaite(float(k), noise, self.df)

    def spread(self, influence: Float64s, fitted: int = 1) -> "Spread":
        """Standard error of one estimate with these influence values (n,), how well it is known, and the skewness."""
        each = self.reactions(influence)[:, 0]
        second = float(each @ each)
        if second == 0:
            return Spread(0.0, self.df, 0.0, self.df)
        often = self.weights if self.units is None and self.counted else np.ones(len(each))
        skewness = float((each[often > 0] ** 3 / np.sqrt(often[often > 0])).sum()) / second**1.5
        df = self.degrees(influence)
        beyond = _satterthwaite(1.0, 2 / df - skewness**2, self.df) if df < self.df else self.df
        return Spread((second * self.patients / max(self.patients - fitted, 1)) ** 0.5, df, skewness, beyond)


def _satterthwaite(mean: float, noise: float, most: float) -> float:
    """Degrees of freedom, 1 to `most`, of a variance whose square has this mean (in units of its expectation) and noise."""
    return min(max(2 * mean / noise, 1.0), most) if noise > 0 else most


@dataclass(frozen=True)
class Spread:
    """How an estimate scatters.

    Attributes
    ----------
    se : its standard error. df : how well that is known (:meth:`Cohort.degrees`).
    skewness : of the estimate. df_beyond : as `df`, of what the standard error varies by apart from the estimate, for intervals
        that allow for the skewness.
    """

    se: float
    df: float
    skewness: float
    df_beyond: float
