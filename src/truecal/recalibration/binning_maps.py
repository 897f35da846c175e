"""Maps that put scores into bins: histogram binning, shared binning, scaling-binning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibration.monotone_maps import StepMap, pool_equal_scores, read_steps
from truecal.recalibration.score_maps import (
    BetaCalibration,
    Multiclass,
    ScoreMap,
    ScoreRecalibrator,
    class_probabilities,
)
from truecal.recalibration.serialization import read_field, read_numbers
from truecal.special import clopper_pearson, positive
from truecal.types import Float64s, Indices

# by choice: cuts of shared bins are searched between so many cells of positive and as many of negative pairs
_MAX_CUT_CELLS = 512


def equal_mass_edges(scores: Float64s, outcomes: Float64s, weights: Float64s, bins: int) -> Float64s:
    """Return the inner edges, rising, of bins of equal weight; equal scores share a bin, so there may be fewer than `bins`
    - 1.

    `scores`, 0/1 `outcomes` and `weights` have shape (n,). Refuse fewer rows of positive weight than bins.

    >>> equal_mass_edges(np.array([0.1, 0.2, 0.5, 0.8]), np.zeros(4), np.ones(4), 2)
    array([0.35])
    """
    profile = tc.profile.Profile.from_arrays(scores, outcomes, weights)
    if profile.rows < bins:
        raise InputError(f"{profile.rows} rows cannot fill {bins} bins; use at most bins={profile.rows}")
    ordered = profile.scores[0].astype(np.float64)
    first = np.unique(profile.mass_cut(bins).below[0])
    first = first[(first > 0) & (first < len(ordered))]
    return edges_between(ordered[first - 1], ordered[first])


def edges_between(low: Float64s, high: Float64s) -> Float64s:
    """Return edges halfway between scores `low` < `high`, of their shape, above the lower one also after rounding.

    >>> edges_between(np.array([0.25]), np.array([0.75]))
    array([0.5])
    """
    middle = low + (high - low) / 2
    return np.where(middle > low, middle, high)


def refuse_too_many_bins(steps: StepMap, bins: int, limit: int) -> None:
    """Refuse a file with more than `limit` bins; `bins` is the setting that the message names.

    >>> refuse_too_many_bins(StepMap(np.array([0.5]), np.array([0.2, 0.7])), 1, 1)
    Traceback (most recent call last):
        ...
    truecal.errors.FileError: "values" has 2 bins, but "bins" is 1
    """
    if len(steps.values) > limit:
        raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {bins}')


# ----------------------------------------------------------------------------------------------------
# Histogram binning, with intervals that hold for every distribution and every sample size


@dataclass(frozen=True, eq=False)
class CountedStepMap(StepMap):
    """Steps with the number of rows, and of positive rows, that each value rests on, shape (bins,)."""

    rows: Float64s
    positive: Float64s

    def interval(self, scores: Float64s, alpha: float) -> tuple[Float64s, Float64s]:
        """Return the Clopper-Pearson limits of the bin of each score, of the shape of `scores`, at 1 - alpha for a single bin.

        >>> bins = CountedStepMap(np.array([0.5]), np.array([0.0, 1.0]), np.array([10.0, 10.0]), np.array([0.0, 10.0]))
        >>> low, high = bins.interval(np.array([0.2, 0.5]), 0.05)
        >>> low.round(4), high.round(4)
        (array([0.    , 0.6915]), array([0.3085, 1.    ]))
        """
        low, high = clopper_pearson(self.positive, self.rows, alpha / 2)
        bin_of = np.searchsorted(self.edges, scores, side="right")
        return low[bin_of], high[bin_of]


def fit_guaranteed_steps(scores: Float64s, outcomes: Float64s, weights: Float64s, bins: int) -> CountedStepMap:
    """Fit bins between bins - 1 order statistics; equal ones are one edge, and a repeated score on an edge is a separate bin.

    A row whose score is an edge and occurs once is excluded, so that the counts of a bin are binomial (Gupta and Ramdas 2021).
    Empty bins have the mean outcome. Refuse weights other than 1, and fewer than two rows per bin.

    >>> steps = fit_guaranteed_steps(np.arange(1.0, 8.0) / 10, np.array([0.0, 0, 1, 0, 1, 1, 1]), np.ones(7), 2)
    >>> steps.edges, steps.values  # the fourth row, whose score is the edge, is excluded
    (array([0.4]), array([0.33333333, 1.        ]))
    """
    if (weights != 1).any():
        raise InputError(
            'scheme="guaranteed" counts independent rows and takes no weights; use scheme="mass" or plain rows'
        )
    n = len(scores)
    if n < 2 * bins:
        raise InputError(f"{n} rows cannot fill {bins} bins with a guarantee; use at most bins={max(n // 2, 1)}")
    ordered = np.sort(scores)
    rank = np.rint(np.arange(1, bins) * (n + 1) / bins).astype(np.intp)
    order_statistics = np.unique(ordered[rank - 1])
    copies = np.searchsorted(ordered, order_statistics, "right") - np.searchsorted(ordered, order_statistics, "left")
    edges = np.unique(np.r_[order_statistics, np.nextafter(order_statistics[copies > 1], np.inf)])
    edges = edges[edges <= ordered[-1]]
    inside = ~np.isin(scores, order_statistics[copies == 1])
    outcomes = outcomes[inside]
    bin_of = np.searchsorted(edges, scores[inside], side="right")
    rows = np.bincount(bin_of, minlength=len(edges) + 1).astype(np.float64)
    positive = np.bincount(bin_of, outcomes, len(edges) + 1).astype(np.float64)
    mean = float(outcomes.mean()) if len(outcomes) else 0.5
    return CountedStepMap(edges, np.where(rows > 0, positive / np.maximum(rows, 1), mean), rows, positive)


@dataclass(eq=False, repr=False, kw_only=True)
class HistogramBinning(ScoreRecalibrator):
    r"""Replace the probability by the mean outcome of its bin.

    .. math:: p(s) = \frac{\sum_{i \in \beta(s)} w_i y_i}{\sum_{i \in \beta(s)} w_i}

    where \beta(s) are the rows fitted in the bin of s. With scheme="guaranteed" (and "width"), `predict_interval` bounds the
    true frequency of every bin at once, for any distribution and any number of rows.

    Parameters
    ----------
    bins : int, default 15
        Number of bins.
    scheme : {"mass", "width", "guaranteed"}, default "mass"
        Equal numbers of rows (equal scores are never split, so there may be fewer bins); edges j / bins (a bin without rows
        keeps its centre); or edges at order statistics, whose rows are left out, so that the counts of a bin are binomial
        (unweighted rows only).
    input : {"probs", "logits"}, default "probs"
        What X holds; logits are turned into probabilities.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        How more than two classes are reduced to one score; as in `PlattScaling`.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum; a row in which every map gives 0 becomes uniform.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The steps, with inner `edges` and `values`.

    References
    ----------
    Zadrozny, Elkan. Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers. ICML
    2001.
    Gupta, Ramdas. Distribution-free calibration guarantees for histogram binning without sample splitting. ICML 2021.
    https://doi.org/10.48550/arXiv.2105.04656

    See Also
    --------
    ScalingBinning : Bins a fitted curve, which varies less.

    Examples
    --------
    >>> from truecal.recalibration import HistogramBinning
    >>> fitted = HistogramBinning(bins=2).fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 1, 0, 1])
    >>> fitted.predict_proba([0.2, 0.6])[:, 1].round(3)
    array([0.333, 0.667])
    >>> import numpy as np
    >>> s = (np.arange(2000) + 0.5) / 2000
    >>> sure = HistogramBinning(bins=2, scheme="guaranteed").fit(s, np.arange(2000) % 4 == 0)
    >>> low, high = sure.predict_interval([0.2], level=0.9)  # a true frequency of 1 in 4
    >>> low.round(2), high.round(2)
    (array([0.22]), array([0.28]))
    """

    bins: int = field(default=15, kw_only=False)
    scheme: Literal["mass", "width", "guaranteed"] = "mass"

    def _check_params(self) -> None:
        """Refuse a number of bins that is no whole number of at least 1, and an unknown scheme.

        >>> HistogramBinning(0)._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: bins must be a whole number of at least 1, not 0
        """
        super()._check_params()
        options.bins(self.bins)
        options.choice(self.scheme, ("mass", "width", "guaranteed"), "scheme")

    def _scores(self, outputs: Float64s, classes: int) -> Float64s:
        """Return class probabilities (n, K); with scheme="guaranteed" and logits they are rounded to float32.

        >>> HistogramBinning(input="logits")._scores(np.array([[0.0, 0.0]]), 2)
        array([[0.5, 0.5]])
        """
        scores = class_probabilities(outputs, self.input)
        # the last bits of a softmax differ between machines; edges at scores must not depend on them
        is_rounded = self.scheme == "guaranteed" and self.input == "logits"
        return scores.astype(np.float32).astype(np.float64) if is_rounded else scores

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> StepMap:
        """Fit the weighted mean outcome of each bin of the scheme; of "width" a bin without rows has its centre.

        >>> bins = HistogramBinning(2, scheme="width")._fit_map(np.array([0.1, 0.2]), np.array([0.0, 1.0]), np.ones(2))
        >>> bins.edges, bins.values  # no row from 0.5 on: the centre 0.75
        (array([0.5]), array([0.5 , 0.75]))
        """
        if self.scheme == "guaranteed":
            return fit_guaranteed_steps(scores, outcomes, weights, self.bins)
        if self.scheme == "mass":
            edges = equal_mass_edges(scores, outcomes, weights, self.bins)
        else:
            edges = np.arange(1, self.bins) / self.bins
        bin_of = np.searchsorted(edges, scores, side="right")
        count = len(edges) + 1
        mass = np.bincount(bin_of, weights, count).astype(np.float64)
        ones = np.bincount(bin_of, weights * outcomes, count).astype(np.float64)
        centre = (np.arange(count) + 0.5) / count
        values = np.where(mass > 0, ones / positive(mass), centre)
        if self.scheme == "width" and (weights == 1).all():
            return CountedStepMap(edges, values, mass, ones)
        return StepMap(edges, values)

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Float64s, Float64s]:
        """Return simultaneous intervals for the true frequencies of the bins.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, K)
            Outputs of the declared `input`.
        level : float, default 0.9
            Probability that the intervals of all bins contain the true frequencies at once.

        Returns
        -------
        low : ndarray of shape (n,) or (n, K)
            Lower limits: of two classes for the second of `classes_`, else for every class. They are about the frequency of
            a class given the bin of its score, before rows are renormalised.
        high : ndarray of shape (n,) or (n, K)
            Upper limits.

        Raises
        ------
        InputError
            The scheme is "mass", the rows had weights, or the classes share a map.
        """
        options.level(level)
        check_is_fitted(self, "classes_")
        maps = [g for g in self.maps_ if isinstance(g, CountedStepMap)]
        if len(maps) < len(self.maps_) or (self.multiclass != "one-vs-rest" and len(self.classes_) > 2):
            raise InputError(
                'an interval needs scheme="guaranteed" (or "width") fitted without weights, one map per class'
            )
        alpha = (1 - level) / sum(len(g.values) for g in maps)
        return self._predict_limits(X, lambda g, scores: g.interval(scores, alpha))

    def _read_map(self, state: Mapping[str, Any]) -> StepMap:
        """Read "edges" and "values", and "rows" and "positive" if there are any; refuse more bins than the settings have.

        >>> HistogramBinning(2)._read_map({"edges": [0.5], "values": [0.2, 0.7]})(np.array([0.1, 0.9]))
        array([0.2, 0.7])
        """
        steps = read_steps(state, 0.0, 1.0)
        # repeated scores on an edge are bins of their own
        refuse_too_many_bins(steps, self.bins, 2 * self.bins - 1 if self.scheme == "guaranteed" else self.bins)
        if "rows" not in state:
            return steps
        rows = read_numbers(state, "rows", len(steps.values), low=0.0)
        positive = read_numbers(state, "positive", len(steps.values), low=0.0)
        if (positive > rows).any():
            raise FileError('"positive" must not exceed "rows"')
        return CountedStepMap(steps.edges, steps.values, rows, positive)


# ----------------------------------------------------------------------------------------------------
# Shared binning


@dataclass(eq=False, repr=False, kw_only=True)
class SharedBinning(ScoreRecalibrator):
    r"""Bin the class probability so that bin and label share the most information, with one set of bins for all classes.

    .. math:: \max_{\text{cuts}} \; I(\text{bin}; y) \;=\; \max \; H(y) - \sum_b \frac{n_b}{n} H\!\left(\frac{y_b}{n_b}\right)

    All pairs of a row and a class are pooled, so that a thousand classes share one map instead of having a handful of
    positives each. A bin's value is the frequency of its pairs. Values of a row are divided by their sum; where two
    classes fall into one bin the model's probability orders them (it enters with a weight of 1e-6), so the predicted class,
    and accuracy, stay.

    Parameters
    ----------
    bins : int, default 15
        Number of bins; fewer where neighbouring bins would have equal frequencies.
    input : {"probs", "logits"}, default "probs"
        What X holds; the log odds of logits differ where probabilities round to 0 or 1.
    normalize : bool, default True
        Whether the values of a row are divided by their sum; without it they take at most `bins` values.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The one map, with inner `edges` and `values`.

    Notes
    -----
    The cuts are the exact optimum over cells that hold equal shares of the positive or of the negative pairs (dynamic
    programming), where I-Max iterates from a random start. Two classes have one map, of the second class.

    References
    ----------
    Patel, Beluch, Yang, Pfeiffer, Zhang. Multi-class uncertainty calibration via mutual information maximization-based
    binning. ICLR 2021. https://doi.org/10.48550/arXiv.2006.13092

    See Also
    --------
    HistogramBinning : One set of bins per class.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import SharedBinning
    >>> rng = np.random.default_rng(0)
    >>> logits = 6 * rng.normal(size=(3000, 20))
    >>> labels = (logits / 3 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fitted = SharedBinning(bins=8, input="logits").fit(logits, labels)
    >>> bool((fitted.predict(logits) == logits.argmax(axis=1)).all())
    True
    """

    bins: int = field(default=15, kw_only=False)
    multiclass: Multiclass = field(default="shared", init=False)

    def _check_params(self) -> None:
        """Raise InputError for a number of bins that is no whole number from 1 to 1024, and what `Recalibrator` refuses."""
        super()._check_params()
        options.whole(self.bins, "bins", 1, 2 * _MAX_CUT_CELLS)

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> StepMap:
        """Cut the scores into at most `bins` bins of least weighted entropy; a bin's value is the weighted mean of its
        outcomes.

        >>> bins = SharedBinning()._fit_map(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4))
        >>> bins.edges, bins.values
        (array([0.5]), array([0., 1.]))
        """
        x, w, ones = pool_equal_scores(scores, outcomes, weights)
        start = _start_cells(w, ones)
        mass, positive = np.add.reduceat(w, start), np.add.reduceat(ones, start)
        cut = start[cut_by_entropy(mass, positive, self.bins)]
        edges = edges_between(x[cut[1:] - 1], x[cut[1:]])
        return StepMap(edges, np.add.reduceat(ones, cut) / np.add.reduceat(w, cut))

    def _read_map(self, state: Mapping[str, Any]) -> StepMap:
        """Read "edges" and "values" of the bins; refuse more bins than the settings have.

        >>> SharedBinning(1)._read_map({"edges": [0.5], "values": [0.2, 0.7]})
        Traceback (most recent call last):
            ...
        truecal.errors.FileError: "values" has 2 bins, but "bins" is 1
        """
        steps = read_steps(state)
        refuse_too_many_bins(steps, self.bins, self.bins)
        return steps


def _start_cells(w: Float64s, ones: Float64s) -> Indices:
    """Return the positions at which cells of rows start, 0 and those after a row that completes 1/512, 2/512, ... of a weight.

    The weights are that of positive and that of negative outcomes: `ones`, and `w` less `ones`, (n,) each in the order of
    rising scores. Up to 1024 rows are a cell each. Of a thousand classes one pair in a thousand is positive; cells of equal
    total weight would put all of them into one.

    >>> _start_cells(np.ones(3), np.array([0.0, 1.0, 1.0]))
    array([0, 1, 2])
    """
    if len(w) <= 2 * _MAX_CUT_CELLS:
        return np.arange(len(w))
    starts = [np.zeros(1, np.intp)]
    for part in (ones, w - ones):
        cumulative = np.cumsum(part)
        if cumulative[-1] > 0:
            quantiles = np.arange(1, _MAX_CUT_CELLS) / _MAX_CUT_CELLS * cumulative[-1]
            starts.append(np.searchsorted(cumulative, quantiles) + 1)
    cells = np.unique(np.concatenate(starts))
    return cells[cells < len(w)]


def cut_by_entropy(mass: Float64s, positive: Float64s, bins: int) -> Indices:
    """Return the first cells, 0 among them, of at most `bins` runs of cells with the least weighted entropy of outcomes.

    `mass` and `positive`, shape (cells,), are weights and weights of positive outcomes. There are fewer runs where more do not
    lower the entropy. Dynamic programming: best[b][j], the least entropy of the first j cells in b bins, is the minimum over i
    of best[b - 1][i] + H(cells i to j).

    >>> cut_by_entropy(np.ones(4), np.array([0.0, 0.0, 1.0, 1.0]), 3)  # the third run would not lower the entropy
    array([0, 2])
    """
    from scipy.special import entr

    cumulative, cumulative_ones = np.r_[0.0, np.cumsum(mass)], np.r_[0.0, np.cumsum(positive)]
    count = len(mass)
    total = cumulative[None, :] - cumulative[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((cumulative_ones[None, :] - cumulative_ones[:, None]) / total, 0.0, 1.0)
        entropy = total * (entr(share) + entr(1 - share))
    entropy[np.tril_indices(count + 1)] = np.inf
    best = entropy[0].copy()
    predecessors: list[Indices] = []
    for _ in range(min(bins, count) - 1):
        candidates = best[:, None] + entropy
        predecessor = candidates.argmin(axis=0)
        best_with_one_more = candidates[predecessor, np.arange(count + 1)]
        if not best_with_one_more[count] < best[count] - 1e-12 * cumulative[-1]:
            break
        predecessors.append(predecessor)
        best = best_with_one_more
    cuts, end = [], count
    for predecessor in reversed(predecessors):
        end = int(predecessor[end])
        cuts.append(end)
    return np.array([0, *reversed(cuts)], np.intp)


# ----------------------------------------------------------------------------------------------------
# Scaling-binning: a smooth curve, cut into bins, so that the error of the result can be measured


@dataclass(frozen=True, eq=False)
class BinnedCurveMap(ScoreMap):
    """The mean value of a curve in the bin its value falls into: `steps` of `curve`(score)."""

    curve: ScoreMap
    steps: StepMap

    def __call__(self, scores: Float64s) -> Float64s:
        """Return the value of the bin of curve(score), for each score.

        >>> from truecal.recalibration.score_maps import LogisticMap
        >>> halves = StepMap(np.array([0.5]), np.array([0.2, 0.7]))
        >>> BinnedCurveMap(LogisticMap(1.0, 0.0), halves)(np.array([-1.0, 1.0]))
        array([0.2, 0.7])
        """
        return self.steps(self.curve(scores))

    def state(self) -> dict[str, Any]:
        """Return {"curve": state of the curve, "edges": ..., "values": ...}.

        >>> from truecal.recalibration.score_maps import LogisticMap
        >>> BinnedCurveMap(LogisticMap(1.0, 0.0), StepMap(np.array([0.5]), np.array([0.2, 0.7]))).state()
        {'curve': {'slope': 1.0, 'intercept': 0.0}, 'edges': [0.5], 'values': [0.2, 0.7]}
        """
        return {"curve": self.curve.state(), **self.steps.state()}


@dataclass(eq=False, repr=False, kw_only=True)
class ScalingBinning(ScoreRecalibrator):
    r"""Fit a curve g, bin its values into equal masses, and output the mean of g in each bin.

    .. math:: \hat g_B(s) = \hat\mu[\beta(g(s))], \qquad
        \hat\mu[j] = \mathrm{mean}\{g(s_i) : g(s_i) \in I_j\}

    The outputs take at most `bins` values, so their calibration error can be measured, unlike that of g itself. They
    are means of curve values, not of outcomes as in histogram binning, so they vary less: the error needs of the order
    of 1/eps^2 + B samples to fall to eps, not B/eps^2.

    Parameters
    ----------
    bins : int, default 15
        Number of bins B.
    scaling : recalibrator of one score, default None
        The recalibrator that fits g; None means `BetaCalibration(parameters=2)`, a logistic curve in the log odds, and
        ``BetaCalibration(parameters=2, loss="squared")`` is the curve of the paper's algorithm and theory.
    input : {"probs", "logits"}, default "probs"
        What X holds.
    multiclass : {"one-vs-rest", "top-label", "shared"}, default "one-vs-rest"
        How more than two classes are reduced to one score; as in `PlattScaling`.
    normalize : bool, default True
        Whether one-vs-rest and shared results are divided by their sum.
    classes : sequence, default None
        Names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : list
        The binned curves, with `curve` and `steps`.

    Notes
    -----
    All rows serve all three steps, which the authors found better in practice than the thirds of their theory.

    References
    ----------
    Kumar, Liang, Ma. Verified uncertainty calibration. NeurIPS 2019, section 4.1.
    https://doi.org/10.48550/arXiv.1909.10155

    See Also
    --------
    choose_bins : Recommend a number of bins.
    truecal.verify : Test that the error of the result is below a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import ScalingBinning
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(3000)
    >>> y = rng.random(3000) < s**2
    >>> probs = ScalingBinning(bins=4).fit(s, y).predict_proba(s)[:, 1]
    >>> np.unique(probs).round(2)
    array([0.03, 0.14, 0.36, 0.78])
    """

    bins: int = field(default=15, kw_only=False)
    scaling: ScoreRecalibrator | None = None

    def _check_params(self) -> None:
        """Refuse a `scaling` that is no recalibrator of one score, or that reads another input.

        >>> ScalingBinning(scaling="platt")._check_params()
        Traceback (most recent call last):
            ...
        truecal.errors.InputError: scaling must be a recalibrator of one score, such as PlattScaling(), not 'platt'
        """
        super()._check_params()
        options.bins(self.bins)
        if self.scaling is not None:
            if not isinstance(self.scaling, ScoreRecalibrator):
                raise InputError(
                    f"scaling must be a recalibrator of one score, such as PlattScaling(), not {self.scaling!r}"
                )
            self.scaling._check_params()
            if self.scaling.input != self.input:
                raise InputError(
                    f'scaling reads input="{self.scaling.input}" but bins input="{self.input}"; declare the same'
                )

    def _curve(self) -> ScoreRecalibrator:
        """Return the map that is fitted before binning: `scaling`, or beta calibration with two parameters.

        >>> ScalingBinning()._curve().parameters
        2
        """
        if self.scaling is not None:
            return self.scaling
        return BetaCalibration(parameters=2, input=self.input)

    def _scores(self, outputs: Float64s, classes: int) -> Float64s:
        """Return the scores (n, K) that the curve reads."""
        return self._curve()._scores(outputs, classes)

    def _fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> BinnedCurveMap:
        """Fit the curve and cut its values into at most `bins` bins of equal weight, each with their weighted mean.

        >>> scores = np.linspace(-2, 2, 100)
        >>> fitted = ScalingBinning(4)._fit_map(scores, (np.arange(100) % 2).astype(float), np.ones(100))
        >>> len(fitted.steps.values), fitted.curve.a == fitted.curve.b
        (4, True)
        """
        curve = self._curve()._fit_map(scores, outcomes, weights)
        values = curve(scores)
        edges = equal_mass_edges(values, outcomes, weights, self.bins)
        bin_of, count = np.searchsorted(edges, values, side="right"), len(edges) + 1
        means = np.bincount(bin_of, weights * values, count) / np.bincount(bin_of, weights, count)
        return BinnedCurveMap(curve, StepMap(edges, np.clip(means, 0.0, 1.0)))  # a mean may round past its terms

    def _read_map(self, state: Mapping[str, Any]) -> BinnedCurveMap:
        """Read "curve", the state of the curve, and "edges" and "values" of the bins; refuse more bins than the settings have.

        >>> state = {"curve": {"a": 1.0, "b": 1.0, "c": 0.0}, "edges": [0.5], "values": [0.2, 0.7]}
        >>> ScalingBinning(2)._read_map(state)(np.array([-1.0, 1.0]))
        array([0.2, 0.7])
        """
        curve, steps = read_field(state, "curve", dict), read_steps(state, 0.0, 1.0)
        refuse_too_many_bins(steps, self.bins, self.bins)
        return BinnedCurveMap(self._curve()._read_map(curve), steps)
