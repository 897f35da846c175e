"""The generalized calibration error: lens, selection, distance and binning chosen for the context in which outputs are used."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from truecal.errors import InputError
from truecal.estimate.estimate import Estimate, Interval
from truecal.estimate.estimator import check_norm, power_mean
from truecal.estimate.generalized.bins import Partition, VectorBinning, VectorBins
from truecal.estimate.generalized.distances import Distance, TotalVariation
from truecal.estimate.generalized.kd_tree import KDTree
from truecal.estimate.generalized.resample import Resampled, resample
from truecal.lens import AnyLens, Canonical, Vector
from truecal.lens.vector import vectors
from truecal.predictions import Predictions
from truecal.select import Selection, small_selection
from truecal.types import Float64s

_MOST_DRAWS = 4_000_000_000  # rows times classes times replicates that a class-wise interval may cost
_FEW = 10  # predictions in the median bin below which the plug-in is mostly noise


@dataclass(frozen=True)
class GeneralizedECE:
    r"""GECE = (sum_B |B|/n d(mean output of B, mean outcome of B)^p)^(1/p) over bins B of what a lens sees; p = inf: the maximum.

    Kirchenbauer, Oaks & Heim (2022), eq. 3, after Vaicenavicius et al. (2019). With `lens=TopK(1)`, `binning=EqualWidth(15)` and
    the other defaults this is the usual ECE.

    The interval is a bootstrap with fixed bins. A plug-in error is biased upwards, most of all for a calibrated model. So the low
    end is the smallest error of the bins that could well have shown a value this high, bias and all; the high end gives no credit
    for bias. The interval therefore holds the value, and it holds the error of the bins' means about as often as `level` says, or
    more often. What bins average away no interval shows: see :func:`sweep_granularity`.

    Parameters
    ----------
    lens : what is judged: Canonical(), TopK(k), Grouping({...}), or a lens on one probability, seen as the pair (p, 1 - p).
    select : which rows are judged: by_label, by_output, by_column, combined with & | ~. Taken before the lens.
    distance : between the mean output and the mean outcome of a bin.
    binning : KDTree(fraction), EqualWidth(bins), EqualMass(bins).
    norm : 1 for the expectation over bins, inf for the maximum.
    level : of the interval; None for no interval.
    replicates, rng : of the bootstrap.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([1, 1, 1, 1], size=2000)
    >>> labels = (rng.random((2000, 1)) > probs.cumsum(axis=1)).sum(axis=1)  # drawn from the probabilities: calibrated
    >>> est = tc.GeneralizedECE(lens=tc.TopK(2))(tc.Predictions.from_probs(probs, labels))
    >>> 0 in est.interval, est.value in est.interval
    (True, True)
    """

    lens: AnyLens = field(default_factory=Canonical)
    select: Selection | None = None
    distance: Distance = field(default_factory=TotalVariation)
    binning: VectorBinning = field(default_factory=KDTree)
    norm: float = 1
    level: float | None = 0.95
    replicates: int = 500
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        check_norm(self.norm)
        for value, kind, example in (
            (self.distance, Distance, "tc.TotalVariation()"),
            (self.binning, VectorBinning, "tc.KDTree(0.1)"),
        ):
            if not isinstance(value, kind):
                raise InputError(f"{kind.__name__} must be one of truecal's, such as {example}, not {value!r}")
        if self.select is not None and not isinstance(self.select, Selection):
            raise InputError(f"select must be a selection such as tc.by_label('pedestrian'), not {self.select!r}")
        if self.level is not None and not 0 < self.level < 1:
            raise InputError(
                f"level must be between 0 and 1, such as 0.95, or None for no interval, not {self.level!r}"
            )
        if not isinstance(self.replicates, (int, np.integer)) or self.replicates < 20:
            raise InputError(f"replicates must be a whole number of at least 20, not {self.replicates!r}")

    def __call__(self, preds: Predictions) -> Estimate:
        """The error of these predictions."""
        chosen = self.chosen(preds)
        found, shares = vectors(self.lens, chosen)
        estimate = self.of_vector(next(found)) if len(shares) == 1 else self._class_wise(found, shares)
        kept, notes = len(chosen), []
        if self.select is not None:
            note = small_selection(kept, len(preds))
            notes = [] if note is None else [note]
        selection = "" if self.select is None else f"{self.select} ({kept} of {len(preds)} rows)"
        return estimate.but(lens=self.lens.describe(chosen), selection=selection, warnings=(*notes, *estimate.warnings))

    def chosen(self, preds: Predictions) -> Predictions:
        """The rows that are judged: selected, and of positive weight."""
        if not isinstance(preds, Predictions):
            raise InputError(
                f"GeneralizedECE measures Predictions, not {type(preds).__name__}; "
                "build them with tc.Predictions.from_probs(probs, labels)"
            )
        chosen = preds if self.select is None else self.select(preds)
        if chosen.weights is not None and not chosen.weights.all():
            if not chosen.weights.any():
                raise InputError("all selected rows have weight zero; nothing is left to measure")
            chosen = chosen.take(chosen.weights > 0)
        return chosen

    def of_vector(self, vector: Vector, partition: Partition | None = None) -> Estimate:
        """The error of what a lens saw, in bins of one's own where they are given."""
        self.distance.check(vector.dimension)
        partition = self.binning.partition(vector) if partition is None else partition
        bins = VectorBins.of(vector, partition)
        value = self._value(bins, vector.judged)
        resampled = self._resampled(vector, partition, bins, by_rows=False)
        estimate = self._estimate(vector, value, resampled)
        middle = float(np.median(bins.count[bins.weight > 0]))
        if middle < _FEW:
            note = f"half of the {bins.filled} bins hold at most {middle:g} predictions, so chance alone makes most of the value"
            estimate = estimate.but(warnings=(note, *estimate.warnings))
        return estimate.but(vector_bins=bins, bins=bins.judged(vector.judged) if vector.dimension == 2 else None)

    def _value(self, bins: VectorBins, judged: int) -> float:
        far = self.distance.between(bins.gap, bins.mean_outcome, judged)
        power = power_mean(far[None], bins.share[None], self.norm)[0]
        return float(power if self.norm in (1, np.inf) else power ** (1 / self.norm))

    def _resampled(self, vector: Vector, partition: Partition, bins: VectorBins, *, by_rows: bool) -> Resampled | None:
        if self.level is None:
            return None
        return resample(
            vector,
            partition,
            bins,
            distance=self.distance,
            norm=self.norm,
            replicates=self.replicates,
            rng=np.random.default_rng(self.rng),
            by_rows=by_rows,
        )

    def _class_wise(self, found: Iterator[Vector], shares: Float64s) -> Estimate:
        """The power mean of one error per class; all classes see the same resampled rows."""
        self.distance.check(2)
        seeded = replace(self, rng=int(np.random.default_rng(self.rng).integers(2**63)))
        values, directions, draws = [], [], []
        notes: tuple[str, ...] = ()
        for vector in found:
            partition = self.binning.partition(vector)
            bins = VectorBins.of(vector, partition)
            values.append(self._value(bins, vector.judged))
            directions.append(vector.direction)
            if self.level is not None and len(vector) * len(shares) * self.replicates > _MOST_DRAWS:
                notes = (
                    f"no interval: {len(vector)} rows x {len(shares)} classes are too many to resample; use OneClass",
                )
            else:
                draws.append(seeded._resampled(vector, partition, bins, by_rows=True))

        def overall(each: Float64s) -> Float64s:
            if self.norm == np.inf:
                return np.where(shares > 0, each, 0.0).max(axis=-1)
            return (each**self.norm @ shares) ** (1 / self.norm)

        kept = [draw for draw in draws if draw is not None]
        resampled = None
        if kept:
            truth = overall(np.stack([draw.truth for draw in kept], axis=-1))
            resampled = Resampled(truth, overall(np.stack([draw.drawn for draw in kept], axis=-1)))
        parts = np.array(values)
        estimate = self._estimate(vector, float(overall(parts)), resampled)
        return estimate.but(parts=parts, direction=float(shares @ np.array(directions)), warnings=notes)

    def _estimate(self, vector: Vector, value: float, resampled: Resampled | None) -> Estimate:
        w = vector.weights
        counted = w is None or bool((w == np.rint(w)).all())
        total = float(len(vector) if w is None else w.sum())
        size = total if counted or w is None else total**2 / float((w * w).sum())
        interval = None
        if resampled is not None and self.level is not None:
            interval = Interval(
                *resampled.interval(value, self.level), self.level, "bootstrap in fixed bins, freed of bias"
            )
        return Estimate(
            value=value,
            power=value if self.norm in (1, np.inf) else value**self.norm,
            n=round(total) if counted else len(vector),
            effective_n=size,
            estimator=self,
            norm=self.norm,
            direction=vector.direction,
            interval=interval,
            details={} if resampled is None else {"resampled": resampled},
        )
