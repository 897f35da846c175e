"""Resampling where rows keep their identity: many datasets on the same rows, rows in clusters, rows in blocks of time.

Units (rows, clusters, blocks) are drawn as whole and for all datasets of a lens together, so what they have in common stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truecal.estimators.base import Estimator
from truecal.estimators.bins import Bins, combined
from truecal.estimators.rank_series.clusters import ClusteredSeries, JointSigns
from truecal.estimators.resampling.cells import CELLS, in_parts, profile_of
from truecal.estimators.resampling.folded import Folded, mean_square
from truecal.estimators.resampling.redraw import REDRAWS, redrawn
from truecal.estimators.resampling.units import Units, softened_incidence
from truecal.estimators.signs import SignBounds
from truecal.lenses.sample import Sample
from truecal.types import Float64s

_GROUPS = 2048  # independent rows are turned in so many random groups at most: their sums are all but symmetric
_FEW_DATASETS = 20
_TOGETHER = np.sqrt(2.0)  # see `_p_of_redraws`


@dataclass(frozen=True, eq=False)
class Joint:
    """Estimates over all datasets of a lens together, as powers; see `Bootstrap` in `resampling/bootstrap.py`."""

    power: float
    powers: Float64s  # of the resamples
    deviations: Float64s  # what estimation added to the truth in each
    unselected: (
        Float64s  # powers of the resamples before anything was chosen from the data: what two models have in common
    )
    p_value: float  # of calibration in all datasets; 0 where an unbiased estimate needs no help near zero
    parts: Float64s  # of every dataset
    signs: SignBounds | None  # what limits a mean absolute gap, where that is estimated
    test: float | None  # p of calibration in all datasets, by turning the signs of whole units in all of them at once


@dataclass(frozen=True, eq=False)
class _One:
    """The same for one dataset, with what a test needs."""

    power: float
    powers: Float64s
    unselected: Float64s
    centre: float  # what the resamples scatter about: the power of the world they are drawn from
    on_cells: float  # power on the cells, beside which the redraws are put
    calibrated: Float64s  # powers of redraws from the scores
    bins: list[Bins]  # of the estimate, then of parts of the resamples; empty where an estimator has none


def resampled_jointly(
    estimator: Estimator,
    samples: Iterable[Sample],
    shares: Float64s | None,
    units: Units,
    counts: NDArray[np.uint16],
    rng: np.random.Generator,
    *,
    always_test: bool = False,
    sign_test: bool = False,
) -> Joint:
    """The estimate and its resamples; `counts` say how often each unit is drawn in each of them (:meth:`Units.draws`).

    Calibration is tested where the interval needs it near zero, or always; of independent rows by turning signs if `sign_test`.
    """
    many = [1.0] if shares is None else shares.tolist()
    by_rows = units.kind == "rows"
    signs = None if by_rows else JointSigns(units, REDRAWS, rng)
    if by_rows and sign_test:
        signs = JointSigns(units.grouped(_GROUPS), _sign_draws(len(many)), rng.spawn(1)[0])
    null = rng if by_rows and (always_test or not estimator.unbiased) else None
    folded = Folded(counts.shape[1]) if estimator.folds else None
    parts: list[_One] = []
    for share, sample in zip(many, samples, strict=True):
        drawn = sample if sample.units is units.of_row else sample.with_units(units.of_row)
        one = _one_dataset(estimator, drawn, units, counts, null)
        if signs is not None:
            series = ClusteredSeries.of(drawn, signs.units)
            signs.add(series.sums, share)
            counted = estimator.of_clusters(series, 0.5) if units.kind == "clusters" else None
            if counted is not None:
                one = replace(one, power=counted[1])
        if folded is not None:
            whole, *resampled = one.bins
            squares = np.concatenate([mean_square(part) for part in resampled])
            folded.add(share, whole, squares, () if units.kind == "rows" else resampled)
        parts.append(replace(one, bins=[]))

    def together(values: Iterable[Float64s | float]) -> Float64s:
        return combined(np.array(list(values)), np.array(many), estimator.power_norm)

    power, powers = float(together(one.power for one in parts)), together(one.powers for one in parts)
    centre = together(one.centre for one in parts)
    deviations = powers - centre if folded is None else folded.deviations(powers)
    if signs is not None and not by_rows:
        p = signs.p_value()
    elif null is not None:
        p = _p_of_redraws(float(together(one.on_cells for one in parts)), together(one.calibrated for one in parts))
    else:
        p = 0.0
    test = None if signs is None else signs.p_value()
    unselected = together(one.unselected for one in parts)
    said = None if folded is None else folded.signs()
    return Joint(power, powers, deviations, unselected, p, np.array([one.power for one in parts]), said, test)


def _sign_draws(datasets: int) -> int:
    """Turned signs: enough for a fine p-value of a few datasets, fewer where there are many to go through."""
    return 999 if datasets <= _FEW_DATASETS else REDRAWS


def _p_of_redraws(power: float, calibrated: Float64s) -> float:
    """How often calibrated datasets reach the estimate.

    Outcomes of each dataset are redrawn by themselves, those of one row belong together. With one label per row their
    covariance is diag(p) - pp', at most twice its diagonal (exactly twice for two classes), so a sum of squares over the datasets
    scatters by at most sqrt(2) more than redraws do; they are spread about their mean by as much.
    """
    spread = calibrated.mean() + _TOGETHER * (calibrated - calibrated.mean())
    return float(1 + np.count_nonzero(spread >= power * (1 - 1e-12))) / (1 + len(calibrated))


def _one_dataset(
    estimator: Estimator,
    sample: Sample,
    units: Units,
    counts: NDArray[np.uint16],
    null: np.random.Generator | None,
) -> _One:
    cells, incidence = softened_incidence(sample, units, CELLS)
    each, start = [], 0
    for some in in_parts(counts.shape[1], cells.rows):
        both = (incidence @ counts[:, start : start + some].astype(np.float64)).T
        each.append(estimator.find(profile_of(cells, both[:, : cells.rows], both[:, cells.rows :])))
        start += some
    powers = np.concatenate([part.power for part in each])
    unselected = np.concatenate([part.power if part.unselected is None else part.unselected for part in each])
    whole = np.asarray(incidence.sum(axis=1))[None]
    centre = float(estimator.find(profile_of(cells, whole[:, : cells.rows], whole[:, cells.rows :])).power[0])
    as_found = estimator.find(sample.profile)
    power = float(as_found.power[0])
    if estimator.corrected:
        centre = float(powers.mean())
    calibrated, on_cells = np.zeros(0), power
    if null is not None:
        calibrated = np.concatenate([estimator.find(part).power for part in redrawn(cells, REDRAWS, null)])
        on_cells = float(estimator.find(cells).power[0])
    bins = [part.bins for part in (as_found, *each) if part.bins is not None]
    return _One(power, powers, unselected, centre, on_cells, calibrated, bins)
