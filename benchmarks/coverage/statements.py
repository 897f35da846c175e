"""What truecal states about one dataset, and how each statement is judged against the known truth.

A judge draws datasets from a world and compares what truecal states about each with the truth. Intervals come first, then
comparisons, tests and promises; `STATEMENTS` lists them all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import truecal as tc
from benchmarks.coverage.worlds import Array, ClassWorld, FewOutputs, atlas_worlds, class_worlds, few_outputs
from truecal.estimators import Estimator, Interval
from truecal.inference.exact_limit import OutputCells, rejects
from truecal.lab import Identity, World
from truecal.lenses import Lens

Kind = Literal["interval", "test", "promise"]
LEVEL = 0.9  # of every interval
ALPHA = 0.05  # of every test; promises are made at 1 - ALPHA
ROUNDING = 1e-9  # error of a truth found by quadrature
JUST_BELOW = 0.995  # times the true error: the threshold that must not be promised
LEAST_ERROR = 0.002  # promises are judged in worlds with a true error of at least this
ROWS_AT_ONCE = 1 << 18  # rows of datasets that are drawn together
POPULATION = 400_000  # rows that stand for a population of one score: binned errors are known to about 1e-4
CLASS_POPULATION = 200_000  # rows that stand for a population of many classes
CURVE_BINS = 400  # bins of CLASS_POPULATION in which the mean gap is taken for the gap
CLUSTER_ROWS = 10
CLUSTERS = 40  # of the two models that are compared
SHARED = 0.5  # probability that a row's outcome comes from the uniform number of its cluster
RESAMPLES = 300
REDRAWS = 199
EVENTS = 5  # of the lenses of several probabilities


@dataclass(frozen=True)
class Trials:
    """Outcomes of a statement about m datasets, beside the truth.

    Parameters
    ----------
    above : (m,) bool
        The whole interval lies above the truth; for tests and promises, the statement is false.
    below : (m,) bool
        The whole interval lies below the truth.
    length : (m,) float
        Length of the interval, 0 for tests and promises.
    truth : float
        The true error, or its mean over the datasets.
    """

    above: npt.NDArray[np.bool_]
    below: npt.NDArray[np.bool_]
    length: Array
    truth: float

    @classmethod
    def of_limits(cls, low: Array, high: Array, truth: Array | float) -> "Trials":
        """Trials of intervals given by their limits."""
        above, below = low > np.asarray(truth) + ROUNDING, high < np.asarray(truth) - ROUNDING
        return cls(above, below, high - low, float(np.mean(truth)))

    @classmethod
    def of_intervals(cls, intervals: Iterable[Interval | None], truth: Array | float) -> "Trials":
        """Trials of intervals of single datasets or batches; None (no interval) is left out."""
        stated = [interval for interval in intervals if interval is not None]
        low = np.concatenate([np.atleast_1d(interval.low) for interval in stated])
        high = np.concatenate([np.atleast_1d(interval.high) for interval in stated])
        return cls.of_limits(low, high, truth)

    @classmethod
    def of_tests(cls, p_values: Iterable[Any], truth: float = 0.0) -> "Trials":
        """Trials of tests of a true hypothesis: false where p is at most ALPHA."""
        p = np.concatenate([np.atleast_1d(value) for value in p_values])
        return cls.of_verdicts(p <= ALPHA, truth)

    @classmethod
    def of_verdicts(cls, false: npt.ArrayLike, truth: float = 0.0) -> "Trials":
        """Trials of statements that are false or not."""
        is_false = np.asarray(false, dtype=bool)
        return cls(is_false, np.zeros(len(is_false), bool), np.zeros(len(is_false)), truth)


# (world, rows of a dataset, number of datasets, generator) -> trials, or None where nothing is stated in such a world.
Judge = Callable[[Any, int, int, np.random.Generator], Trials | None]


@dataclass(frozen=True)
class Statement:
    """A statement: its kind, the level it states, and where it is judged.

    Parameters
    ----------
    stated : float
        Coverage of an interval, or the largest rate at which a test or promise may be false.
    share : float
        Share of the datasets asked for, where a dataset is slow.
    most_rows, least_rows : int
        Sizes of datasets that are judged.
    worlds : callable
        The worlds by group and name.
    counted : bool
        Whether datasets are drawn as counts, so that large ones cost no more.
    promised : float, optional
        What the documentation states for the worst world, where that is not `stated`.
    """

    name: str
    kind: Kind
    stated: float
    judge: Judge
    share: float = 1.0
    most_rows: int = 1_000_000
    least_rows: int = 2
    worlds: Callable[[], Mapping[str, Mapping[str, Any]]] = atlas_worlds
    counted: bool = False
    promised: float | None = None

    @property
    def least(self) -> float:
        """What the worst world must reach: coverage at least this, or a rate of false statements at most this."""
        return self.stated if self.promised is None else self.promised


# ------------------------------------------------------------------------------------------------ datasets


def batch_sizes(n: int, m: int) -> list[int]:
    """Split m datasets of n rows into batches that fit in memory."""
    step = max(1, ROWS_AT_ONCE // n)
    return [min(step, m - start) for start in range(0, m, step)]


def draw_profiles(world: World, n: int, m: int, rng: np.random.Generator) -> Iterator[tc.profile.Profile]:
    """Draw m datasets in batches."""
    for size in batch_sizes(n, m):
        yield tc.profile.Profile.from_arrays(*world.draw(n, size, rng=rng))


def draw_dataset(world: World, n: int, rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.int64]]:
    """Draw scores and outcomes of one dataset."""
    scores, outcomes = world.draw(n, 1, rng=rng)
    return scores[0], outcomes[0].astype(np.int64)


def draw_clusters(world: World, n: int, rng: np.random.Generator) -> tc.Predictions:
    """Draw one dataset in clusters of ten rows of neighbouring scores with correlated outcomes.

    A row's outcome compares its rate with a uniform number, which with probability SHARED is that of its cluster. P(y = 1 | score)
    is the world's, because the shared number is uniform as well.
    """
    scores, rates = (part[0] for part in world.draw_rates(n, 1, rng=rng))
    order = np.argsort(np.argsort(scores) + 0.2 * n * rng.random(n))
    cluster = np.empty(n, np.intp)
    cluster[order] = np.arange(n) // CLUSTER_ROWS
    uniform = np.where(rng.random(n) < SHARED, rng.random(n)[cluster], rng.random(n))
    return tc.Predictions.from_probs(scores, (uniform < rates).astype(np.int64), clusters=cluster)


# ------------------------------------------------------------------------------------------------ intervals of one score


def _measured(estimator: Estimator, world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Intervals as `tc.calibration_error` gives them, in agreement with the test of calibration."""
    datasets = (draw_dataset(world, n, rng) for _ in range(m))
    intervals = (tc.calibration_error(y, c, estimator=estimator, level=LEVEL).interval for c, y in datasets)
    return Trials.of_intervals(intervals, world.true_error(estimator.norm))


def _resampled(estimator: Estimator, binned: bool, world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """The truth is the error of the population's bins where `binned`, else the true error."""
    datasets = (tc.profile.Profile.from_arrays(*(part[0] for part in world.draw(n, 1, rng=rng))) for _ in range(m))
    truth = _binned_error(estimator, world) if binned else world.true_error(estimator.norm)
    return Trials.of_intervals((estimator.interval(profile, level=LEVEL, rng=rng) for profile in datasets), truth)


def _binned_error(estimator: Estimator, world: World) -> float:
    """The error of the estimator's bins in the whole population."""
    return float(_error_of_rates(estimator, *world.draw_rates(POPULATION, 1, rng=0))[0])


def _error_of_rates(estimator: Estimator, scores: Array, rates: Array) -> Array:
    """The estimator's values with rates for outcomes: each row is a one and a zero, weighted by rate and 1 - rate."""
    weights = np.concatenate([rates, 1 - rates], axis=1)
    weights[weights < ROUNDING] = 0.0  # a row of weight 0 counts as absent
    outcomes = np.broadcast_to(np.repeat([1.0, 0.0], scores.shape[1]), weights.shape)
    return estimator.values(
        tc.profile.Profile.from_arrays(np.concatenate([scores, scores], axis=1), outcomes, weights=weights)
    )


def _clustered(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    datasets = (draw_clusters(world, n, rng) for _ in range(m))
    intervals = (tc.measure(preds, level=LEVEL).interval for preds in datasets)
    return Trials.of_intervals(intervals, world.true_error(2))


def _likert(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """Outcome rates of words for confidence, in clusters; words with fewer than five clusters' worth of rows are left out."""
    low, high, truth = [], [], []
    scores, rates = (part[0] for part in world.draw_rates(POPULATION, 1, rng=0))
    for _ in range(m):
        for word in tc.likert(draw_clusters(world, n, rng), level=LEVEL).categories:
            if word.count < 5 * CLUSTER_ROWS or word.outcome_low is None or word.outcome_high is None:
                continue
            inside = (scores >= word.low) & ((scores < word.high) | (word.high >= 1))
            low.append(word.outcome_low)
            high.append(word.outcome_high)
            truth.append(float(rates[inside].mean()))
    return Trials.of_limits(np.array(low), np.array(high), np.array(truth)) if low else None


def _subgroups(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """Intervals of four subgroups, each distributed like the world."""
    columns = {"group": (np.arange(n) % 4).astype(str)}
    intervals = []
    for _ in range(m):
        preds = tc.Predictions.from_probs(*draw_dataset(world, n, rng), columns=columns)
        estimates = tc.subgroups(preds, by="group", level=LEVEL).estimates
        intervals += [estimate.interval for estimate in estimates if estimate is not None]
    return Trials.of_intervals(intervals, world.true_error(2)) if any(intervals) else None


# ------------------------------------------------------------------------------------------------ many classes


def _lens(kind: str, classes: int) -> Lens | None:
    """The lens of several probabilities; None where there are too few classes for it."""
    if kind == "top-5":
        return tc.TopK(EVENTS) if classes > EVENTS else None
    if kind == "grouping":
        groups = np.array_split(np.arange(classes), min(EVENTS, classes))
        return tc.Grouping({f"g{i}": [int(c) for c in group] for i, group in enumerate(groups)})
    return tc.Canonical()


def _draw_classes(
    world: ClassWorld, n: int, m: int, rng: np.random.Generator
) -> Iterator[tuple[tc.Predictions, Array]]:
    """Predictions, and the true rates of all classes."""
    for _ in range(m):
        outputs, labels, rates = world.draw(n, rng)
        yield tc.Predictions.from_probs(outputs, labels), rates


def _generalized(kind: str, world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """The truth is the error of the dataset's own bins: mean outputs against mean true rates."""
    lens = _lens(kind, world.classes)
    if lens is None:
        return None
    intervals, truth = [], []
    for i, (preds, rates) in enumerate(_draw_classes(world, n, m, rng)):
        estimator = tc.GeneralizedECE(lens=lens, level=LEVEL, rng=i)
        intervals.append(estimator(preds).interval)
        truth.append(_generalized_error(estimator, lens, preds, rates))
    return Trials.of_intervals(intervals, np.array(truth))


def _generalized_error(estimator: tc.GeneralizedECE, lens: Lens, preds: tc.Predictions, rates: Array) -> float:
    """The distance of mean outputs and mean true rates over the estimator's bins.

    Rates of events are found one label at a time: over K copies of the data with label k, weighted by its rate, the mean outcome of
    an event is its mean rate.
    """
    (sample,) = lens.samples(preds)
    partition = estimator.binning.partition(sample)
    bin_counts = np.bincount(partition.bin_of, minlength=partition.count).astype(float)
    divisor = np.where(bin_counts > 0, bin_counts, 1.0)[:, None]
    events = sample.columns.shape[0]
    mean_rates = np.zeros((partition.count, events))
    for k in range(rates.shape[1]):
        (of_label,) = lens.samples(tc.Predictions.from_probs(np.asarray(preds.probs), np.full(len(preds), k)))
        for event in range(events):
            hit = of_label.labels == event
            mean_rates[:, event] += np.bincount(partition.bin_of[hit], rates[hit, k], partition.count)
    mean_rates /= divisor
    sums = [np.bincount(partition.bin_of, column, partition.count) for column in sample.columns]
    mean_outputs = np.stack(sums, axis=1) / divisor
    return float((bin_counts / bin_counts.sum()) @ np.abs(mean_rates - mean_outputs).sum(axis=1) / 2)


def _generalized_test(world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    if world.exponent != 1:
        return None
    datasets = enumerate(_draw_classes(world, n, m, rng))
    return Trials.of_tests(tc.GeneralizedECE(level=0.95, rng=i)(preds).p_value for i, (preds, _) in datasets)


def _class_wise_estimates(
    world: ClassWorld, n: int, m: int, rng: np.random.Generator, level: float
) -> Iterator[tc.Estimate]:
    for i, (preds, _) in enumerate(_draw_classes(world, n, m, rng)):
        yield tc.measure(preds, lens=tc.ClassWise(), level=level, rng=i)


def _class_wise(world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials:
    intervals = (estimate.interval for estimate in _class_wise_estimates(world, n, m, rng, LEVEL))
    return Trials.of_intervals(intervals, _class_wise_error(world))


def _class_wise_error(world: ClassWorld) -> float:
    """The error of one class, from mean gaps in narrow bins of its output; all classes of a ClassWorld have the same."""
    if world.exponent == 1:
        return 0.0
    outputs, _, rates = world.draw(CLASS_POPULATION, np.random.default_rng(0))
    order = np.argsort(outputs[:, 0])
    gaps = [part.mean() for part in np.array_split((rates - outputs)[order, 0], CURVE_BINS)]
    return float(np.sqrt(np.mean(np.square(gaps))))


def _class_wise_test(world: ClassWorld, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    if world.exponent != 1:
        return None
    return Trials.of_tests(estimate.p_value for estimate in _class_wise_estimates(world, n, m, rng, 0.95))


# ------------------------------------------------------------------------------------------------ comparisons


def _compared(design: str, world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    other = world if design == "own labels" else _other_model(world)
    if other is None:
        return None
    truth = world.true_error(2) - other.true_error(2)
    intervals = []
    for i in range(m):
        a, b, options = _draw_pair(design, world, other, n, rng)
        intervals.append(tc.compare(a, b, level=LEVEL, resamples=RESAMPLES, rng=i, **options).interval)
    return Trials.of_intervals(intervals, truth)


def _other_model(world: World) -> World | None:
    """The same scores half recalibrated; of a recalibrated world, as they were before."""
    try:
        if not isinstance(world.recalibration, Identity):
            return replace(world, recalibration=Identity())
        error = world.true_error(2)
        return world.partly_recalibrated(error / 2) if error > 0 else None
    except tc.InputError:  # the curve falls or is flat somewhere: recalibrated scores would merge
        return None


def _draw_pair(
    design: str, world: World, other: World, n: int, rng: np.random.Generator
) -> tuple[tc.Predictions, tc.Predictions, dict[str, Any]]:
    """Predictions of both models, and the options of `compare` that say how their rows are paired."""
    seed = int(rng.integers(2**62))
    scores, rates = (part[0] for part in world.draw_rates(n, 1, rng=seed))
    other_scores = other.draw_rates(n, 1, rng=seed)[0][0]  # the same raw scores through the other map
    first, second = rng.random(n), rng.random(n)
    if design == "clusters":
        cluster = np.arange(n) % CLUSTERS
        uniform = np.where(rng.random(n) < SHARED, rng.random(CLUSTERS)[cluster], first)
        outcomes = uniform < rates
        return _preds(scores, outcomes, clusters=cluster), _preds(other_scores, outcomes, clusters=cluster), {}
    if design == "own labels":
        return _preds(scores, first < rates), _preds(other_scores, second < rates), {}
    if design == "unpaired":
        new_scores, new_rates = (part[0] for part in other.draw_rates(n, 1, rng=rng))
        return _preds(scores, first < rates), _preds(new_scores, second < new_rates), {"paired": False}
    if design == "key":
        order = rng.permutation(n)
        key = np.arange(n).astype(str)
        a = _preds(scores, first < rates, columns={"id": key})
        return a, _preds(other_scores[order], (first < rates)[order], columns={"id": key[order]}), {"key": "id"}
    return _preds(scores, first < rates), _preds(other_scores, first < rates), {}


def _preds(scores: Array, outcomes: npt.NDArray[np.bool_], **options: Any) -> tc.Predictions:
    return tc.Predictions.from_probs(scores, outcomes.astype(int), **options)


# ------------------------------------------------------------------------------------------------ tests, where calibration holds


def _test(test: Callable[..., Any], world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    profiles = draw_profiles(world.with_calibrated_outcomes(), n, m, rng)
    return Trials.of_tests(test(profile, resamples=REDRAWS, rng=rng).p_value for profile in profiles)


def _clustered_test(test: Callable[..., Any], world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    calibrated = world.with_calibrated_outcomes()
    samples = (tc.OneClass(1)(draw_clusters(calibrated, n, rng)) for _ in range(m))
    return Trials.of_tests(test(sample, resamples=REDRAWS, rng=rng).p_value for sample in samples)


def _rank_series_test(profile: tc.profile.Profile, *, resamples: int, rng: np.random.Generator) -> Any:
    return tc.RankSeries().test(profile, resamples=resamples, rng=rng)


def _flagged_subgroups(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Whether any of twelve calibrated subgroups is flagged."""
    false = []
    for scores, outcomes in (draw_dataset(world.with_calibrated_outcomes(), n, rng) for _ in range(m)):
        columns = {"group": rng.integers(12, size=n).astype(str)}
        preds = tc.Predictions.from_probs(scores, outcomes, columns=columns)
        false.append(bool(tc.subgroups(preds, by="group").flagged.any()))
    return Trials.of_verdicts(false)


def _audited_segments(world: World, n: int, m: int, rng: np.random.Generator) -> Trials:
    """Whether any segment of three columns is listed though all are calibrated."""
    false = []
    for scores, outcomes in (draw_dataset(world.with_calibrated_outcomes(), n, rng) for _ in range(m)):
        columns = {name: rng.integers(k, size=n).astype(str) for name, k in (("a", 3), ("b", 4), ("c", 2))}
        preds = tc.Predictions.from_probs(scores, outcomes, columns=columns)
        false.append(len(tc.audit(preds).segments) > 0)
    return Trials.of_verdicts(false)


# ------------------------------------------------------------------------------------------------ promises, where they are false


def _below(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    truth = world.true_error(2)
    if truth < LEAST_ERROR:
        return None
    profiles = draw_profiles(world, n, m, rng)
    return Trials.of_tests((tc.inference.below(p, JUST_BELOW * truth).p_value for p in profiles), truth)


def _verify(world: World, n: int, m: int, rng: np.random.Generator) -> Trials | None:
    """Whether `verify` promises or supports a threshold just below the truth; None where it refuses the dataset."""
    truth = world.true_error(2)
    if truth < LEAST_ERROR:
        return None
    false = []
    for _ in range(m):
        preds = tc.Predictions.from_probs(*draw_dataset(world, n, rng))
        try:
            verdict = tc.verify(preds, threshold=JUST_BELOW * truth).verdict
        except tc.InputError:
            return None
        false.append(verdict in ("promised", "supported"))
    return Trials.of_verdicts(false, truth)


def _verify_counts(world: FewOutputs, n: int, m: int, rng: np.random.Generator) -> Trials:
    """The same for few outputs, from their counts alone; `verify` does not know which outputs may exist."""
    scores, shares, rates = world.at(n)
    truth = float(np.sqrt(shares @ (rates - scores) ** 2))
    counts = rng.multinomial(n, shares, size=m)
    ones = rng.binomial(counts, rates)
    distinct, index = np.unique(np.stack([counts, ones], axis=1).astype(np.float64), axis=0, return_inverse=True)
    false = [rejects(OutputCells.counted(scores, count, one), JUST_BELOW * truth, 1 - ALPHA) for count, one in distinct]
    return Trials.of_verdicts(np.array(false)[index.ravel()], truth)


# ------------------------------------------------------------------------------------------------ all statements


def _interval(name: str, judge: Judge, **settings: Any) -> Statement:
    return Statement(name, "interval", LEVEL, judge, **settings)


def _false_alarms(name: str, judge: Judge, **settings: Any) -> Statement:
    return Statement(name, "test", ALPHA, judge, **settings)


_BINNED: dict[str, Any] = {"share": 0.1, "most_rows": 20_000, "promised": 0.85}
_GENERALIZED: dict[str, Any] = {"share": 0.1, "most_rows": 10_000, "least_rows": 150, "worlds": class_worlds}
_CLASS_WISE: dict[str, Any] = {"share": 0.05, "most_rows": 5000, "least_rows": 150, "worlds": class_worlds}
_CLUSTERED: dict[str, Any] = {"share": 0.25, "most_rows": 5000, "least_rows": 200}
_FAMILY: dict[str, Any] = {"share": 0.05, "most_rows": 20_000, "least_rows": 1000}
_DESIGNS = {"paired": 0.1, "key": 0.05, "own labels": 0.05, "unpaired": 0.05, "clusters": 0.05}  # with their shares

STATEMENTS: tuple[Statement, ...] = (
    _interval("default", partial(_measured, tc.RankSeries()), promised=0.85),
    _interval("mean absolute error", partial(_measured, tc.RankSeries(norm=1)), promised=0.84),
    _interval("equal width", partial(_resampled, tc.BinnedECE(), True), **_BINNED),
    _interval("equal mass", partial(_resampled, tc.BinnedECE(scheme="mass"), True), **_BINNED),
    _interval("sweep", partial(_resampled, tc.SweepECE(), False), share=0.02, most_rows=100),
    _interval("clusters", _clustered, share=0.1, most_rows=20_000, least_rows=200, promised=0.85),
    _interval("words for confidence, clusters", _likert, share=0.05, most_rows=20_000, least_rows=300),
    _interval("subgroups", _subgroups, share=0.05, most_rows=20_000, least_rows=200, promised=0.85),
    _interval("class-wise", _class_wise, **_CLASS_WISE),
    *(
        _interval(f"generalized, {kind}", partial(_generalized, kind), promised=0.86, **_GENERALIZED)
        for kind in ("canonical", "grouping", "top-5")
    ),
    _false_alarms(
        "test of the generalized error",
        _generalized_test,
        share=0.25,
        most_rows=5000,
        least_rows=150,
        worlds=class_worlds,
        promised=0.07,
    ),
    _false_alarms("class-wise test", _class_wise_test, promised=0.07, **_CLASS_WISE),
    *(
        _interval(
            f"compare, {design}",
            partial(_compared, design),
            share=share,
            most_rows=10_000,
            least_rows=300,
            promised=0.84,
        )
        for design, share in _DESIGNS.items()
    ),
    _false_alarms("test of the rank series", partial(_test, _rank_series_test), share=0.5, most_rows=20_000),
    _false_alarms("Kuiper", partial(_test, tc.inference.kuiper), share=0.1, most_rows=5000),
    _false_alarms("Hosmer-Lemeshow", partial(_test, tc.inference.hosmer_lemeshow), share=0.1, most_rows=5000),
    _false_alarms("Spiegelhalter", partial(_test, tc.inference.spiegelhalter), share=0.1, most_rows=5000),
    _false_alarms(
        "test of the rank series, clusters", partial(_clustered_test, tc.inference.rank_series_test), **_CLUSTERED
    ),
    _false_alarms("Hosmer-Lemeshow, clusters", partial(_clustered_test, tc.inference.hosmer_lemeshow), **_CLUSTERED),
    _false_alarms("any of 12 subgroups", _flagged_subgroups, **_FAMILY),
    _false_alarms("any segment of an audit", _audited_segments, **_FAMILY),
    Statement("below", "promise", ALPHA, _below, promised=0.07),
    Statement("verify", "promise", ALPHA, _verify, share=0.1, most_rows=5000, promised=0.07),
    Statement(
        "verify, few outputs",
        "promise",
        ALPHA,
        _verify_counts,
        most_rows=20_000,
        least_rows=50,
        worlds=few_outputs,
        counted=True,
        promised=0.06,
    ),
)
