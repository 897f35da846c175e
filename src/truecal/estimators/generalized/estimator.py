"""The generalized calibration error: lens, selection, distance and binning chosen for the context in which outputs are used."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import VectorEstimator, mean_direction
from truecal.estimators.bins import combined, power_mean
from truecal.estimators.estimate import Estimate, Interval
from truecal.estimators.generalized.binning import KDTree, Partition, VectorBinning, VectorBins
from truecal.estimators.generalized.distances import Distance, TotalVariation
from truecal.estimators.generalized.inference import Binned, Inference
from truecal.estimators.generalized.resample import Resampled, resample
from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.several_probabilities import Canonical
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.predictions.selection import Selection, check_selection, small_selection
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.special import kish, root
from truecal.types import Float64s, Indices

_MOST_DRAWS = 4_000_000_000  # rows times classes times replicates that a class-wise interval may cost
_FEW = 10  # predictions in the median bin below which the plug-in is mostly noise


@dataclass(frozen=True)
class GeneralizedECE(VectorEstimator):
    r"""GECE = (sum_B |B|/n d(mean output of B, mean outcome of B)^p)^(1/p) over bins B of what a lens sees; p = inf: the maximum.

    Kirchenbauer, Oaks & Heim (2022), eq. 3, after Vaicenavicius et al. (2019). With `lens=TopK(1)`, `binning=EqualWidth(15)` and
    the other defaults this is the usual ECE.

    The interval is for the error of the bins at hand: mean outputs against mean true rates. A plug-in error is biased upwards, most
    of all with many events. The lower end is free of that bias: it is the error along the direction in which labels and outputs
    differ (over- or underconfidence, events too frequent or too rare), minus its deviation; truth 0 is in the interval unless the
    test rejects it. The upper end has credit for the bias that any such error has, but holds the value. What bins average away no
    interval shows: see :func:`sweep_granularity`.

    The p-value is of labels redrawn from the outputs (of clusters: of random signs), two-sided: errors larger than chance, and
    models that are over- or underconfident; an underconfident one may show less than chance.

    Parameters
    ----------
    lens : what is judged: Canonical() (the default), TopK(k), Grouping({...}), or a lens on one probability, seen as the pair
        (p, 1 - p).
    select : which rows are judged: by_label, by_output, by_column, combined with & | ~. Taken before the lens.
    distance : between the mean output and the mean outcome of a bin.
    binning : KDTree(fraction), EqualWidth(bins), EqualMass(bins).
    norm : 1 for the expectation over bins, inf for the maximum.
    level : of the interval; None for no interval.
    replicates, rng : of the bootstrap that class-wise errors, comparisons and :class:`InterInterval` use.
    debiased : whether the value is freed of its upward bias: the error along the fitted direction. With 2 to 100 classes and 150 to
        1000 rows, over- and underconfident, the plug-in was 0.00 to 0.62 too high, this within 0.02 of the truth on average. Its
        interval need not reach up to the plug-in value.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1, 1], size=2000)
    >>> labels = (rng.random((2000, 1)) > probs.cumsum(axis=1)).sum(axis=1)  # drawn from the probabilities: calibrated
    >>> est = tc.GeneralizedECE(lens=tc.TopK(2))(tc.Predictions.from_probs(probs, labels))
    >>> 0 in est.interval, est.value in est.interval
    (True, True)
    """

    lens: Lens | None = None
    select: Selection | None = None
    distance: Distance = field(default_factory=TotalVariation)
    binning: VectorBinning = field(default_factory=KDTree)
    norm: float = 1
    level: float | None = 0.95
    replicates: int = 500
    rng: int | np.random.Generator = 0
    debiased: bool = False

    def __post_init__(self) -> None:
        options.norm(self.norm)
        check_lens(self.lens)
        check_selection(self.select)
        options.instance(
            self.distance, Distance, "distance", "one of truecal's, such as tc.estimators.TotalVariation()"
        )
        options.instance(self.binning, VectorBinning, "binning", "one of truecal's, such as tc.estimators.KDTree(0.1)")
        if self.level is not None:
            options.level(self.level)
        options.resamples(self.replicates, "replicates", 20)
        options.generator(self.rng)

    @property
    def name(self) -> str:
        averages = {1: "mean", 2: "root-mean-square", np.inf: "largest"}
        average = averages.get(self.norm, f"{self.norm:g}-mean")
        return f"{average} calibration error by {self.distance}"

    def own_lens(self, lens: Lens | None) -> Lens:
        if lens is not None and self.lens is not None and lens != self.lens:
            raise InputError(f"two lenses were given: lens={lens!r} and {self.lens!r} of the estimator; say one")
        return lens or self.lens or Canonical()

    def chosen(self, preds: Predictions, select: Selection | None) -> tuple[Predictions, Selection | None]:
        """The rows that are judged: selected, and of positive weight."""
        if select is not None and self.select is not None and select != self.select:
            raise InputError("two selections were given: select= and that of the estimator; combine them with &")
        select = self.select if select is None else select
        rows = preds if select is None else select(preds)
        if rows.weights is not None and not rows.weights.all():
            if not rows.weights.any():
                raise InputError("all selected rows have weight zero; nothing is left to measure")
            rows = rows.take(rows.weights > 0)
        return rows, select

    def __call__(self, data: Predictions | Profile | Sketch | Sample) -> Estimate:
        """The error of these predictions, or of a sample of them."""
        if isinstance(data, Sample):
            return self.measure_sample(data.weighing(), options.generator(self.rng))
        check_predictions(data, name="data")
        assert isinstance(data, Predictions)
        rows, select = self.chosen(data, None)
        lens = self.own_lens(None)
        estimate = self.of_samples(lens.samples(rows), lens.shares(rows), options.generator(self.rng))
        small = small_selection(len(rows), len(data)) if select is not None else None
        notes = estimate.warnings if small is None else (small, *estimate.warnings)
        selection = "" if select is None else f"{select} ({len(rows)} of {len(data)} rows)"
        return replace(estimate, lens=lens.describe(rows), selection=selection, warnings=notes)

    def of_samples(self, samples: Iterable[Sample], shares: Float64s | None, rng: np.random.Generator) -> Estimate:
        if shares is not None:
            return self._class_wise(samples, shares, rng)
        (sample,) = samples
        sample.refuse_pooled()
        return self.measure_sample(sample, rng)

    def measure_sample(
        self,
        sample: Sample,
        rng: np.random.Generator,
        partition: Partition | None = None,
        bins: VectorBins | None = None,
    ) -> Estimate:
        """Measure one sample, in the given bins or those of the binning."""
        self.distance.check(sample.dimension)
        partition = self.binning.partition(sample) if partition is None else partition
        bins = VectorBins.of(sample, partition) if bins is None else bins
        value = self._value(bins, sample.event)
        if self.distance.at_outputs:
            binned = Binned(sample, partition, bins, self.distance, self.norm, value)
            estimate = self._inferred(self._estimate(sample, value, None), binned, rng)
        else:
            needed = self.level is not None or self.debiased
            resampled = self.resample(sample, partition, bins, rng) if needed else None
            estimate = self._freed(self._estimate(sample, value, resampled), resampled)
        middle = float(np.median(bins.count[bins.weight > 0]))
        if middle < _FEW:
            note = f"half of the {bins.filled} bins hold at most {middle:g} predictions, so chance alone makes most of the value"
            estimate = replace(estimate, warnings=(note, *estimate.warnings))
        of_event = bins.of_event(sample.event) if sample.dimension == 2 else None
        return replace(estimate, vector_bins=bins, bins=of_event)

    def _inferred(self, estimate: Estimate, binned: Binned, rng: np.random.Generator) -> Estimate:
        """With interval, p-value and chance level, and with a value freed of bias where that is asked for."""
        if self.level is None:
            freed = binned.debiased() if self.debiased else binned.value
            return replace(estimate, value=freed, power=self._power(freed))
        inference = Inference.of(binned, self.level, rng, debiased=self.debiased)
        return replace(
            estimate,
            value=inference.value,
            power=self._power(inference.value),
            interval=Interval(inference.low, inference.high, self.level, "in fixed bins, along the fitted direction"),
            p_value=inference.p_value,
            chance=inference.chance,
        )

    def compared(
        self,
        samples: Iterable[Sample],
        shares: Float64s | None,
        units: Indices,
        resamples: int,
        rng: np.random.Generator,
    ) -> tuple[float, Float64s, float]:
        """Compute the value, where the true error may be in each resample of whole `units`, and the p-value of calibration.

        The same state of the generator draws the same units, so that what two models have in common cancels. Of the family of
        truths of :class:`Resampled` the one whose estimates have the mean seen is taken, which frees both models of the upward
        bias of a plug-in error.
        """
        if shares is not None:
            raise InputError(
                "a comparison by GeneralizedECE judges one dataset; for a class-wise error leave out the estimator"
            )
        if self.select is not None:
            raise InputError("select rows of both models before they are compared: select(preds_a), select(preds_b)")
        (sample,) = samples
        sample.refuse_pooled()
        self.distance.check(sample.dimension)
        sample = sample.with_units(units).weighing()
        partition = self.binning.partition(sample)
        bins = VectorBins.of(sample, partition)
        value = self._value(bins, sample.event)
        resampled = replace(self, replicates=resamples).resample(sample, partition, bins, rng)
        reached = float(np.count_nonzero(resampled.chance >= value * (1 - 1e-12)))
        return value, resampled.truths(value), (1 + reached) / (1 + resamples)

    def _value(self, bins: VectorBins, event: int) -> float:
        far = self.distance.between(bins.gap, bins.mean_outcome, event)
        return float(root(power_mean(far, bins.share, self.norm), self.norm))

    def resample(self, sample: Sample, partition: Partition, bins: VectorBins, rng: np.random.Generator) -> Resampled:
        """Resample the units of a sample in the given bins."""
        distance, norm = self.distance, self.norm
        return resample(sample, partition, bins, distance=distance, norm=norm, replicates=self.replicates, rng=rng)

    def _class_wise(self, samples: Iterable[Sample], shares: Float64s, rng: np.random.Generator) -> Estimate:
        """The power mean of one error per class; all classes see the same resampled rows."""
        self.distance.check(2)
        seed = int(rng.integers(2**63))  # the same rows for every class
        values, directions, draws = [], [], []
        notes: tuple[str, ...] = ()
        for vector in samples:
            partition = self.binning.partition(vector)
            bins = VectorBins.of(vector, partition)
            values.append(self._value(bins, vector.event))
            directions.append(mean_direction(vector))
            if self.level is not None and len(vector) * len(shares) * self.replicates > _MOST_DRAWS:
                notes = (
                    f"no interval: {len(vector)} rows x {len(shares)} classes are too many to resample; use OneClass",
                )
            elif self.level is not None or self.debiased:
                draws.append(self.resample(vector, partition, bins, np.random.default_rng(seed)))

        def overall(each: Float64s) -> Float64s:
            return root(combined(each**self.norm if self.norm < np.inf else each, shares, self.norm), self.norm)

        resampled = None
        if draws:
            truth = overall(np.stack([draw.truth for draw in draws]))
            resampled = Resampled(truth, overall(np.stack([draw.drawn for draw in draws])))
        parts = np.array(values)
        estimate = self._estimate(vector, float(overall(parts)), resampled)
        estimate = replace(estimate, parts=parts, direction=float(shares @ np.array(directions)), warnings=notes)
        return self._freed(estimate, resampled)

    def _freed(self, estimate: Estimate, resampled: Resampled | None) -> Estimate:
        """With a value freed of bias, where that is asked for; the interval holds it."""
        if not self.debiased or resampled is None:
            return estimate
        value = resampled.debiased(float(estimate.value))
        interval = estimate.interval
        if interval is not None:
            interval = replace(interval, low=min(float(interval.low), value), high=max(float(interval.high), value))
        return replace(estimate, value=value, power=self._power(value), interval=interval)

    def _power(self, value: float) -> float:
        return value if self.norm in (1, np.inf) else value**self.norm

    def _estimate(self, vector: Sample, value: float, resampled: Resampled | None) -> Estimate:
        w = vector.weights
        counted = w is None or bool((w == np.rint(w)).all())
        total = float(len(vector) if w is None else w.sum())
        size = total if counted or w is None else float(kish(w))
        interval = None
        if resampled is not None and self.level is not None:
            low, high = resampled.interval(value, self.level)
            high = min(high, self.distance.largest(vector.dimension))
            interval = Interval(low, high, self.level, "bootstrap in fixed bins, freed of bias")
        return Estimate(
            value=value,
            power=self._power(value),
            n=round(total) if counted else len(vector),
            effective_n=size,
            estimator=self,
            norm=self.norm,
            direction=mean_direction(vector),
            interval=interval,
            chance=None if resampled is None else float(resampled.chance.mean()),
        )
