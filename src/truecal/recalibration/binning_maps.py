"""Maps that put scores into bins: histogram binning, shared binning, scaling-binning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.recalibration import documents
from truecal.recalibration.contract import Input
from truecal.recalibration.export import Value, traced_probs
from truecal.recalibration.monotone_maps import pooled
from truecal.recalibration.score_maps import BetaCalibration, Multiclass, ScoreMap, ScoreMapping
from truecal.special import clopper_pearson, positive, softmax
from truecal.types import Float64s, Floats, Indices

# ----------------------------------------------------------------------------------------------------
# Step functions of the score: the form of every map that puts scores into bins


@dataclass(frozen=True, eq=False)
class StepMap:
    """One value per bin; bin j holds scores in [edges[j - 1], edges[j])."""

    edges: Float64s
    values: Float64s

    def __call__(self, scores: Float64s) -> Float64s:
        return self.values[np.searchsorted(self.edges, scores, side="right")]

    def trace(self, scores: Value) -> Value:
        return scores.count_reached(self.edges).look_up(self.values)

    def state(self) -> dict[str, Any]:
        return {"edges": self.edges.tolist(), "values": self.values.tolist()}


def read_steps(state: Mapping[str, Any], within: tuple[float, float] = (0.0, 1.0)) -> StepMap:
    """The steps of a state written by `StepMap.state`, with edges in the range of the scores."""
    edges = documents.numbers(state, "edges", low=within[0], high=within[1], rising=True)
    return StepMap(edges, documents.numbers(state, "values", len(edges) + 1, low=0.0, high=1.0))


def mass_edges(profile: tc.profile.Profile, bins: int) -> Float64s:
    """Edges of bins that hold equal numbers of rows; equal scores stay in one bin, so there may be fewer than `bins`.

    An edge lies halfway between the scores on its two sides.
    """
    if profile.rows < bins:
        raise InputError(f"{profile.rows} rows cannot fill {bins} bins; use at most bins={profile.rows}")
    scores = profile.scores[0].astype(np.float64)
    at = np.unique(profile.mass_cut(bins).below[0])
    at = at[(at > 0) & (at < len(scores))]
    low, high = scores[at - 1], scores[at]
    middle = low + (high - low) / 2
    edges: Float64s = np.where(middle > low, middle, high)
    return edges


# ----------------------------------------------------------------------------------------------------
# Bins whose true frequency has a confidence interval that holds for every distribution and every sample size


@dataclass(frozen=True, eq=False)
class CountedSteps(StepMap):
    """Steps that know how many rows, and how many positive ones, each bin's value rests on."""

    rows: Float64s
    positive: Float64s

    def interval(self, scores: Float64s, alpha: float) -> tuple[Float64s, Float64s]:
        """The interval of the bin of each score, at 1 - alpha for a single bin."""
        low, high = clopper_pearson(self.positive, self.rows, alpha / 2)
        at = np.searchsorted(self.edges, scores, side="right")
        return low[at], high[at]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "rows": self.rows.tolist(), "positive": self.positive.tolist()}


def fit_between_order_statistics(scores: Float64s, outcomes: Float64s, weights: Float64s, bins: int) -> CountedSteps:
    """At least `bins` bins of nearly equal numbers of rows (atoms on an edge are further bins)."""
    if (weights != 1).any():
        raise InputError(
            'scheme="guaranteed" counts independent rows and takes no weights; use scheme="mass" or plain rows'
        )
    n = len(scores)
    if n < 2 * bins:
        raise InputError(f"{n} rows cannot fill {bins} bins with a guarantee; use at most bins={max(n // 2, 1)}")
    ordered = np.sort(scores)
    rank = np.rint(np.arange(1, bins) * (n + 1) / bins).astype(np.intp)
    at = np.unique(ordered[rank - 1])
    copies = np.searchsorted(ordered, at, side="right") - np.searchsorted(ordered, at, side="left")
    atoms = at[copies > 1]
    edges = np.unique(np.r_[at, np.nextafter(atoms, np.inf)])
    # nothing lies above the largest score
    edges = edges[edges <= ordered[-1]]
    kept = ~np.isin(scores, at[copies == 1])
    return counted(edges, scores[kept], outcomes[kept])


def counted(edges: Float64s, scores: Float64s, outcomes: Float64s) -> CountedSteps:
    """Mean outcomes and counts of the bins between edges; a bin without rows takes the mean of all."""
    bin_of = np.searchsorted(edges, scores, side="right")
    rows = np.bincount(bin_of, minlength=len(edges) + 1).astype(np.float64)
    positive = np.bincount(bin_of, outcomes, len(edges) + 1).astype(np.float64)
    mean = float(outcomes.mean()) if len(outcomes) else 0.5
    return CountedSteps(edges, np.where(rows > 0, positive / np.maximum(rows, 1), mean), rows, positive)


# ----------------------------------------------------------------------------------------------------
# Histogram binning: in every bin of the score, the frequency that was seen there


class HistogramBinning(ScoreMapping):
    r"""Replace the probability by the mean outcome of its bin.

    .. math:: p(s) = \frac{\sum_{i \in \beta(s)} w_i y_i}{\sum_{i \in \beta(s)} w_i}

    where \beta(s) are the rows fitted in the bin of s. With scheme="guaranteed" (and "width"), `predict_interval` bounds the
    true frequency of every bin at once, for any distribution and any number of rows.

    Parameters
    ----------
    bins : number of bins.
    scheme : "mass" (equal numbers of rows; equal scores are never split, so there may be fewer bins), "width" (edges
        j / bins; a bin without rows keeps its centre) or "guaranteed" (edges are order statistics, and the rows on them
        are left out, so that the counts of a bin are binomial; unweighted rows only).
    input : "probs" or "logits" (turned into probabilities).
    multiclass, normalize, classes : as in `PlattScaling`. Renormalised rows in which every map gives 0 become uniform.

    Attributes
    ----------
    maps_ : the steps, with inner `edges` and `values`.

    References
    ----------
    Zadrozny, Elkan. Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers. ICML
    2001. Gupta, Ramdas. Distribution-free calibration guarantees for histogram binning without sample splitting. ICML
    2021.

    Examples
    --------
    >>> from truecal.recalibration import HistogramBinning
    >>> fixed = HistogramBinning(bins=2).fit([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 1, 0, 1])
    >>> fixed.predict_proba([0.2, 0.6])[:, 1].round(3)
    array([0.333, 0.667])
    >>> import numpy as np
    >>> s = (np.arange(2000) + 0.5) / 2000
    >>> sure = HistogramBinning(bins=2, scheme="guaranteed").fit(s, np.arange(2000) % 4 == 0)
    >>> low, high = sure.predict_interval([0.2], level=0.9)  # a true frequency of 1 in 4
    >>> low.round(2), high.round(2)
    (array([0.22]), array([0.28]))
    """

    def __init__(
        self,
        bins: int = 15,
        *,
        scheme: Literal["mass", "width", "guaranteed"] = "mass",
        input: Input = "probs",  # noqa: A002
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        super().__init__(input=input, multiclass=multiclass, normalize=normalize, classes=classes)
        self.bins = bins
        self.scheme = scheme

    def check_params(self) -> None:
        super().check_params()
        options.bins(self.bins)
        options.choice(self.scheme, ("mass", "width", "guaranteed"), "scheme")

    def scores(self, outputs: Floats) -> Float64s:
        scores = outputs.astype(np.float64) if self.input == "probs" else softmax(outputs)
        # edges on scores must not see the last bits of a softmax, which differ between machines
        return scores.astype(np.float32).astype(np.float64) if self._rounds else scores

    def traced_scores(self, outputs: Value, count: int) -> Value:
        probs = traced_probs(outputs, self.input)
        return probs.single() if self._rounds else probs

    @property
    def _rounds(self) -> bool:
        return self.scheme == "guaranteed" and self.input == "logits"

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> StepMap:
        if self.scheme == "guaranteed":
            return fit_between_order_statistics(scores, outcomes, weights, self.bins)
        if self.scheme == "mass":
            edges = mass_edges(tc.profile.Profile.from_arrays(scores, outcomes, weights), self.bins)
        else:
            edges = np.arange(1, self.bins) / self.bins
        bin_of = np.searchsorted(edges, scores, side="right")
        count = len(edges) + 1
        mass = np.bincount(bin_of, weights, count)
        ones = np.bincount(bin_of, weights * outcomes, count)
        centre = (np.arange(count) + 0.5) / count
        values = np.where(mass > 0, ones / positive(mass), centre)
        if self.scheme == "width" and (weights == 1).all():
            return CountedSteps(edges, values, mass.astype(np.float64), ones.astype(np.float64))
        return StepMap(edges, values)

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Float64s, Float64s]:
        """Low and high ends of intervals that hold the true frequencies of all bins at once with probability `level`.

        For two classes of the second of `classes_`, shape (n,), else for every class, shape (n, K). They are about the
        frequency of a class given the bin of its own score, before rows are renormalised.
        """
        options.level(level)
        scores = self.scores(self._checked(X))
        maps = [g for g in self.maps_ if isinstance(g, CountedSteps)]
        if len(maps) < len(self.maps_) or (self.multiclass != "one-vs-rest" and len(self.classes_) > 2):
            raise InputError(
                'an interval needs scheme="guaranteed" (or "width") fitted without weights, one map per class'
            )
        alpha = (1 - level) / sum(len(g.values) for g in maps)
        if len(self.classes_) == 2:
            low, high = maps[0].interval(scores[:, 1], alpha)
            return (low, high) if self.order_.is_sorted else (1 - high, 1 - low)
        ends = [g.interval(scores[:, k], alpha) for k, g in enumerate(maps)]
        low, high = (np.column_stack([pair[end] for pair in ends]) for end in (0, 1))
        return self.order_.sorted_columns(low), self.order_.sorted_columns(high)

    def read_map(self, state: Mapping[str, Any]) -> StepMap:
        steps = read_steps(state)
        # atoms on an edge are bins of their own
        most = 2 * self.bins - 1 if self.scheme == "guaranteed" else self.bins
        if len(steps.values) > most:
            raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {self.bins}')
        if "rows" not in state:
            return steps
        rows = documents.numbers(state, "rows", len(steps.values), low=0.0)
        positive = documents.numbers(state, "positive", len(steps.values), low=0.0)
        if (positive > rows).any():
            raise FileError('"positive" must not exceed "rows"')
        return CountedSteps(steps.edges, steps.values, rows, positive)


# ----------------------------------------------------------------------------------------------------
# Shared binning: one set of bins for all classes, cut where they say most about the labels

_CELLS = 512  # cuts are looked for between so many cells of positive and as many of negative pairs


class SharedBinning(ScoreMapping):
    r"""Bins of the class probability that maximise the mutual information of bin and label, shared by all classes.

    .. math:: \max_{\text{cuts}} \; I(\text{bin}; y) \;=\; \max \; H(y) - \sum_b \frac{n_b}{n} H\!\left(\frac{y_b}{n_b}\right)

    All pairs of a row and a class are pooled, so that a thousand classes share one map instead of having a handful of
    positives each. A bin's value is the frequency of its pairs. Values of a row are divided by their sum; where two
    classes fall into one bin the model's own probability decides between them (it enters with a weight of 1e-6), so the
    predicted class, and accuracy, stay.

    Parameters
    ----------
    bins : the number of bins; fewer where neighbouring bins would have equal frequencies.
    input : "probs" or "logits" (their log odds, which tell apart what rounds to 0 or 1).
    normalize : whether the values of a row are divided by their sum; without it they take at most `bins` values.
    classes : names of the classes in the order of the columns; without names, labels are 0..K-1.

    Attributes
    ----------
    maps_ : the one map, with inner `edges` and `values`.

    Notes
    -----
    The cuts are the exact optimum over cells that hold equal shares of the positive or of the negative pairs (dynamic
    programming), where I-Max iterates from a random start. Two classes have one map, of the second class.

    References
    ----------
    Patel, Beluch, Yang, Pfeiffer, Zhang. Multi-class uncertainty calibration via mutual information maximization-based
    binning. ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import SharedBinning
    >>> rng = np.random.default_rng(0)
    >>> logits = 6 * rng.normal(size=(3000, 20))
    >>> labels = (logits / 3 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    >>> fixed = SharedBinning(bins=8, input="logits").fit(logits, labels)
    >>> bool((fixed.predict(logits) == logits.argmax(axis=1)).all())
    True
    """

    multiclass: Multiclass = "shared"

    def __init__(
        self,
        bins: int = 15,
        *,
        input: Input = "probs",  # noqa: A002
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        self.bins = bins
        self.input = input
        self.normalize = normalize
        self.classes = classes

    def check_params(self) -> None:
        super().check_params()
        options.whole(self.bins, "bins", 1, 2 * _CELLS)

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> StepMap:
        x, w, ones = pooled(scores, outcomes, weights)
        start = _cells(w, ones)
        mass, positive = np.add.reduceat(w, start), np.add.reduceat(ones, start)
        cut = start[best_cuts(mass, positive, self.bins)]
        # an edge halfway between the scores on its sides
        low, high = x[cut[1:] - 1], x[cut[1:]]
        middle = low + (high - low) / 2
        edges = np.where(middle > low, middle, high)
        return StepMap(edges, np.add.reduceat(ones, cut) / np.add.reduceat(w, cut))

    def read_map(self, state: Mapping[str, Any]) -> StepMap:
        steps = read_steps(state, within=(-np.inf, np.inf))
        if len(steps.values) > self.bins:
            raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {self.bins}')
        return steps


def _cells(w: Float64s, ones: Float64s) -> Indices:
    """Where cells start: at even steps of the weight of positive pairs and at even steps of the weight of negative ones.

    Of a thousand classes one pair in a thousand is positive; cells of equal total weight would put all of them into one.
    """
    if len(w) <= 2 * _CELLS:
        return np.arange(len(w))
    starts = [np.zeros(1, np.intp)]
    for part in (ones, w - ones):
        reached = np.cumsum(part)
        if reached[-1] > 0:
            starts.append(np.searchsorted(reached, np.arange(1, _CELLS) / _CELLS * reached[-1]) + 1)
    cells = np.unique(np.concatenate(starts))
    return cells[cells < len(w)]


def best_cuts(mass: Float64s, positive: Float64s, bins: int) -> Indices:
    """First cells of at most `bins` runs of cells whose weighted entropy of outcomes is least.

    best[b][j], the least entropy of the first j cells in b bins, is min over i of best[b - 1][i] + H(cells i to j).
    """
    reached, ones = np.r_[0.0, np.cumsum(mass)], np.r_[0.0, np.cumsum(positive)]
    count = len(mass)
    whole = reached[None, :] - reached[:, None]
    part = ones[None, :] - ones[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(part / whole, 0.0, 1.0)
        entropy = -whole * (_xlogx(share) + _xlogx(1 - share))
    entropy[np.tril_indices(count + 1)] = np.inf
    best = entropy[0].copy()
    came_from: list[Indices] = []
    for _ in range(min(bins, count) - 1):
        total = best[:, None] + entropy
        before = total.argmin(axis=0)
        after = total[before, np.arange(count + 1)]
        # a further bin that saves nothing is no bin
        if not after[count] < best[count] - 1e-12 * reached[-1]:
            break
        came_from.append(before)
        best = after
    cuts, end = [], count
    for before in reversed(came_from):
        end = int(before[end])
        cuts.append(end)
    return np.array([0, *reversed(cuts)], np.intp)


def _xlogx(share: Float64s) -> Float64s:
    return np.where(share > 0, share * np.log(positive(share)), 0.0)


# ----------------------------------------------------------------------------------------------------
# The scaling-binning calibrator: a smooth curve, cut into bins, so that the error of the result can be measured


@dataclass(frozen=True, eq=False)
class BinnedCurve:
    """The mean value of a curve in the bin its value falls into."""

    curve: ScoreMap
    steps: StepMap

    def __call__(self, scores: Float64s) -> Float64s:
        return self.steps(self.curve(scores))

    def trace(self, scores: Value) -> Value:
        return self.steps.trace(self.curve.trace(scores))

    def state(self) -> dict[str, Any]:
        return {"curve": self.curve.state(), **self.steps.state()}


class ScalingBinning(ScoreMapping):
    r"""Fit a curve g, bin its values into equal masses, and output the mean of g in each bin.

    .. math:: \hat g_B(s) = \hat\mu[\beta(g(s))], \qquad
        \hat\mu[j] = \mathrm{mean}\{g(s_i) : g(s_i) \in I_j\}

    The outputs take at most `bins` values, so their calibration error can be measured, unlike that of g itself. They
    are means of curve values, not of outcomes as in histogram binning, so they vary less: the error needs of the order
    of 1/eps^2 + B samples to fall to eps, not B/eps^2.

    Parameters
    ----------
    bins : number of bins B.
    scaling : the recalibrator that fits g; None means `BetaCalibration(parameters=2)`, a logistic curve in the log
        odds.
    loss : "likelihood" (that of `scaling`), or "squared": the curve of least squares, as in the paper's algorithm and
        theory; for the default curve only.
    split : "none" uses all rows for all three steps, which the authors found better in practice; "thirds" uses one
        third each for the curve, the bins and the means, as the theory does. A bin that the last third misses takes its
        mean from the second.
    rng : seed of the split.
    input, multiclass, normalize, classes : as in `PlattScaling`.

    Attributes
    ----------
    maps_ : the binned curves, with `curve` and `steps`.

    References
    ----------
    Kumar, Liang, Ma. Verified uncertainty calibration. NeurIPS 2019, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from truecal.recalibration import ScalingBinning
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(3000)
    >>> y = rng.random(3000) < s**2
    >>> fixed = ScalingBinning(bins=4).fit(s, y).predict_proba(s)[:, 1]
    >>> np.unique(fixed).round(2)
    array([0.03, 0.14, 0.36, 0.78])
    """

    def __init__(
        self,
        bins: int = 15,
        *,
        scaling: ScoreMapping | None = None,
        loss: Literal["likelihood", "squared"] = "likelihood",
        split: Literal["none", "thirds"] = "none",
        rng: int = 0,
        input: Input = "probs",  # noqa: A002
        multiclass: Multiclass = "one-vs-rest",
        normalize: bool = True,
        classes: Sequence[object] | None = None,
    ) -> None:
        super().__init__(input=input, multiclass=multiclass, normalize=normalize, classes=classes)
        self.bins = bins
        self.scaling = scaling
        self.loss = loss
        self.split = split
        self.rng = rng

    def check_params(self) -> None:
        super().check_params()
        options.bins(self.bins)
        options.whole(self.rng, "rng", 0)
        options.choice(self.split, ("none", "thirds"), "split")
        options.choice(self.loss, ("likelihood", "squared"), "loss")
        if self.loss == "squared" and self.scaling is not None:
            raise InputError("loss='squared' fits the default curve; leave out scaling=, which has a loss of its own")
        if self.scaling is not None:
            if not isinstance(self.scaling, ScoreMapping):
                raise InputError(
                    f"scaling must be a recalibrator of one score, such as PlattScaling(), not {self.scaling!r}"
                )
            self.scaling.check_params()
            if self.scaling.input != self.input:
                raise InputError(
                    f'scaling reads input="{self.scaling.input}" but bins input="{self.input}"; declare the same'
                )

    def _curve(self) -> ScoreMapping:
        if self.scaling is not None:
            return self.scaling
        return BetaCalibration(parameters=2, loss=self.loss, input=self.input)

    def scores(self, outputs: Floats) -> Float64s:
        return self._curve().scores(outputs)

    def traced_scores(self, outputs: Value, count: int) -> Value:
        return self._curve().traced_scores(outputs, count)

    def fit_map(self, scores: Float64s, outcomes: Float64s, weights: Float64s) -> BinnedCurve:
        first = second = third = np.arange(len(scores))
        if self.split == "thirds":
            first, second, third = np.array_split(options.generator(self.rng).permutation(len(scores)), 3)
        curve = self._curve().fit_map(scores[first], outcomes[first], weights[first])
        values = curve(scores)
        edges = mass_edges(tc.profile.Profile.from_arrays(values[second], outcomes[second], weights[second]), self.bins)
        bin_of, count = np.searchsorted(edges, values, side="right"), len(edges) + 1

        def means(rows: Indices) -> tuple[Float64s, Float64s]:
            mass = np.bincount(bin_of[rows], weights[rows], count).astype(np.float64)
            total = np.bincount(bin_of[rows], (weights * values)[rows], count)
            return mass, total / positive(mass)

        mass, mean = means(third)
        if not mass.all():
            mean = np.where(mass > 0, mean, means(second)[1])
        return BinnedCurve(curve, StepMap(edges, np.clip(mean, 0.0, 1.0)))  # a mean may round past its terms

    def read_map(self, state: Mapping[str, Any]) -> BinnedCurve:
        curve, steps = documents.field(state, "curve"), read_steps(state)
        if not isinstance(curve, dict):
            raise FileError('"curve" must be an object')
        if len(steps.values) > self.bins:
            raise FileError(f'"values" has {len(steps.values)} bins, but "bins" is {self.bins}')
        return BinnedCurve(self._curve().read_map(curve), steps)
