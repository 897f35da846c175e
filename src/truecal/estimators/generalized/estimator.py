"""The generalized calibration error: lens, selection, distance and binning chosen for the context in which outputs are used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from truecal import options
from truecal.errors import InputError
from truecal.estimators.base import Findings, VectorEstimator, sample_estimate
from truecal.estimators.bins import combine_powers
from truecal.estimators.estimate import Estimate
from truecal.estimators.generalized.binning import KDTree, Partition, VectorBinning, VectorBins, write_out
from truecal.estimators.generalized.distances import Distance, TotalVariation
from truecal.estimators.generalized.inference import BinnedSample
from truecal.lenses.lens import Lens, Sample, check_lens
from truecal.lenses.several_probabilities import Canonical
from truecal.predictions.predictions import Predictions, check_predictions
from truecal.predictions.selection import Selection, check_selection, small_selection
from truecal.profile.profile import Profile
from truecal.profile.sketch import Sketch
from truecal.special import root
from truecal.types import Float64s, Indices

_FEW_ROWS = 10  # derived: a mean of so many outcomes has a standard error of up to 0.16


@dataclass(frozen=True)
class GeneralizedECE(VectorEstimator):
    r"""Estimate the distance between mean outputs and mean outcomes in bins of what a lens sees.

    Parameters
    ----------
    lens : Lens, default None
        What is judged: Canonical() (the default), TopK(k), Grouping({...}), or a lens on one probability, seen as the pair
        (p, 1 - p).
    select : Selection, default None
        Which rows are judged: by_label, by_output, by_column, combined with & | ~. Taken before the lens.
    distance : Distance, default TotalVariation()
        Between the mean output and the mean outcome of a bin.
    binning : KDTree, EqualWidth or EqualMass, default KDTree()
        Bins of the outputs.
    norm : float, default 1
        1 for the mean over bins, infinity for the maximum.
    level : float or None, default 0.95
        Level of the interval; None for no interval.
    replicates : int, default 500
        Redraws of the labels for the test, as far as 20 million labels go; at least 99 are drawn.
    rng : int or numpy.random.Generator, default 0
        Seed or generator of the redraws.
    debiased : bool, default False
        Whether the value is the error along the fitted direction, without the upward bias of a plug-in. With 2 to 100 classes
        and 150 to 1000 rows, over- and underconfident, the plug-in was 0.00 to 0.62 too high, this within 0.02 of the truth on
        average. Its interval need not reach up to the plug-in value.

    Raises
    ------
    InputError
        For a distance or binning that is not made for the events of the lens, and for pooled pairs of a row.

    Notes
    -----
    Over bins B of n rows,

    .. math:: \mathrm{GECE} = \Bigl(\sum_B \tfrac{|B|}{n} \, d(\bar g_B, \bar y_B)^p\Bigr)^{1/p},

    the maximum for p = inf. With `lens=TopK(1)`, `binning=EqualWidth(15)` and the other defaults this is the usual ECE.

    The estimand of the interval is the error of the bins at hand: mean outputs against mean true rates. A plug-in error is
    biased upwards, most of all with many events. The lower limit is free of that bias: it is the error along the direction in
    which labels and outputs differ (over- or underconfidence, events too frequent or too rare), minus its deviation; 0 unless
    the test rejects. The upper limit is lowered by the bias that any such error has, but holds the value. What bins average
    away no interval shows: see :func:`sweep_granularity`. A class-wise lens has the mean over its classes, without interval
    and test.

    The p-value is of labels redrawn from the outputs (of clusters: of random signs), two-sided: errors larger than
    chance, and models that are over- or underconfident; an underconfident one may show less than chance. The interval distance
    of an answer scale has none.

    References
    ----------
    Kirchenbauer, J., Oaks, J. and Heim, E. (2022). What is your metric telling you? Evaluating classifier calibration under
    context-specific definitions of reliability. arXiv:2205.11454, equation 3.

    Vaicenavicius, J. et al. (2019). Evaluating model calibration in classification. AISTATS. arXiv:1902.06977

    See Also
    --------
    sweep_granularity : The error against the size of the bins.
    truecal.RankSeries : One probability, without bins.

    Examples
    --------
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
        """Raise InputError for an invalid norm, lens, selection, distance, binning, level or seed, and under 20 replicates."""
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
        """ "mean calibration error by total variation", with the distance; "root-mean-square" for norm 2, "largest" for inf.

        >>> GeneralizedECE().name, GeneralizedECE(norm=2).name
        ('mean calibration error by total variation', 'root-mean-square calibration error by total variation')
        """
        averages = {1: "mean", 2: "root-mean-square", np.inf: "largest"}
        average = averages.get(self.norm, f"{self.norm:g}-mean")
        return f"{average} calibration error by {self.distance}"

    def own_lens(self, lens: Lens | None) -> Lens:
        """Return the lens asked for, else that of the estimator, else Canonical(); raise InputError for two different ones.

        >>> GeneralizedECE().own_lens(None)
        Canonical()
        """
        if lens is not None and self.lens is not None and lens != self.lens:
            raise InputError(f"two lenses were given: lens={lens!r} and {self.lens!r} of the estimator; give one")
        return lens or self.lens or Canonical()

    def chosen(self, preds: Predictions, select: Selection | None) -> tuple[Predictions, Selection | None]:
        """Select by `select`, else by the selection of the estimator, and drop rows of weight 0.

        Raises InputError for two different selections, and where all selected rows have weight 0.
        """
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
        """Measure predictions, or a sample of them.

        Of predictions the estimator's own `select` and `lens` are taken; a selection of few rows is warned of. Of a sample the
        rows of positive weight are measured as one dataset. Random draws are seeded by `rng`.
        """
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
        """Measure the one sample; with `shares` every class, without interval, combined by its share.

        Refuses pooled pairs of a row.
        """
        if shares is not None:
            return self._class_wise(samples, shares)
        (sample,) = samples
        sample.refuse_pooled()
        return self.measure_sample(sample, rng)

    def binned(self, sample: Sample, partition: Partition | None = None) -> BinnedSample:
        """Bin a sample.

        Parameters
        ----------
        sample : Sample
            Rows of one dataset.
        partition : Partition or None, default None
            The bin of each row; None for that of `binning`.

        Returns
        -------
        BinnedSample
            Whole-number weights are written out as rows; see `write_out`.
        """
        self.distance.check(sample.dimension)
        partition = self.binning.partition(sample) if partition is None else partition
        bins = VectorBins.of(sample, partition)
        sample, partition = write_out(sample, partition)
        return BinnedSample(sample, partition, bins, self.distance, self.norm, self.replicates)

    def measure_sample(self, sample: Sample, rng: np.random.Generator) -> Estimate:
        """Measure one sample.

        Parameters
        ----------
        sample : Sample
            Rows of one dataset.
        rng : numpy.random.Generator
            Draws the labels of the test.

        Returns
        -------
        Estimate
            Without interval and p-value where `level` is None; with a warning where the median bin has fewer than 10 rows.
        """
        binned = self.binned(sample)
        bins = binned.bins
        interval, p_value, chance = None, None, None
        if self.level is None:
            value = binned.debiased() if self.debiased else binned.value
        else:
            value, interval, p_value, chance = binned.infer(self.level, rng, debiased=self.debiased)
        middle = float(np.median(bins.count[bins.weight > 0]))
        note = f"half of the {bins.filled} bins hold at most {middle:g} predictions, so chance alone makes most of the value"
        power = value if self.norm in (1, np.inf) else value**self.norm
        of_event = bins.of_event(sample.event) if sample.dimension == 2 else None
        warnings = (note,) if middle < _FEW_ROWS else ()
        estimate = sample_estimate(self, sample, Findings(np.array([power]), of_event, warnings, interval=interval))
        return replace(estimate, p_value=p_value, chance=chance, vector_bins=bins)

    def compared(
        self,
        samples: Iterable[Sample],
        shares: Float64s | None,
        units: Indices,
        resamples: int,
        rng: np.random.Generator,
    ) -> tuple[float, Float64s, float]:
        """Measure one model of a comparison on resampled units.

        Parameters
        ----------
        samples : iterable of Sample
            The one dataset of the lens.
        shares : array or None
            Shares of classes, which are refused.
        units : array of shape (n,)
            What is drawn as a whole: the unit of every row.
        resamples : int
            Number of resamples.
        rng : numpy.random.Generator
            The same state draws the same units, so that what two models have in common cancels.

        Returns
        -------
        tuple of float, array of shape (resamples,), float
            The value, the error along the fitted direction in every resample (`BinnedSample.resample`), and the p-value of
            calibration (`BinnedSample.calibrated_errors`).

        Raises
        ------
        InputError
            For a class-wise lens, and where the estimator selects rows by itself.
        """
        if shares is not None:
            raise InputError(
                "a comparison by GeneralizedECE judges one dataset; for a class-wise error leave out the estimator"
            )
        if self.select is not None:
            raise InputError("select rows of both models before they are compared: select(preds_a), select(preds_b)")
        (sample,) = samples
        sample.refuse_pooled()
        binned = self.binned(sample.with_units(units).weighing())
        drawn = binned.resample(resamples, rng)
        return binned.value, drawn, binned.calibrated_errors(rng)[1]

    def _class_wise(self, samples: Iterable[Sample], shares: Float64s) -> Estimate:
        """Combine the errors of all classes by their shares to their power mean, without an interval; `parts` are the errors."""
        estimator = replace(self, level=None)
        estimates = [estimator.measure_sample(sample, np.random.default_rng(0)) for sample in samples]
        parts = np.array([float(estimate.value) for estimate in estimates])
        powers = np.array([estimate.power for estimate in estimates])
        power = float(combine_powers(powers, shares, self.norm))
        return estimates[0].replace(
            value=float(root(power, self.norm)),
            power=power,
            direction=float(shares @ np.array([estimate.direction for estimate in estimates])),
            estimator=self,
            bins=None,
            vector_bins=None,
            parts=parts,
            warnings=("no interval for all classes together; one class has one: lens=tc.OneClass(name)",),
        )
