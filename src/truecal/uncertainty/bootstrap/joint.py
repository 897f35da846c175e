"""Resampling where rows keep their identity: many datasets on the same rows, rows in clusters, rows in blocks of time.

Units (rows, clusters, blocks) are drawn as whole and for all datasets of a lens together, so what they have in common stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truecal.errors import InputError
from truecal.estimate import BinnedECE, DebiasedECE, Estimator, RankSeries
from truecal.estimate.bins import Bins
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.types import Float64s
from truecal.uncertainty.bootstrap.cells import CELLS, in_parts, profile_of
from truecal.uncertainty.bootstrap.draws import unit_counts
from truecal.uncertainty.bootstrap.fixed_bins import REDRAWS, is_unbiased
from truecal.uncertainty.bootstrap.folded import Folded
from truecal.uncertainty.bootstrap.rows import Rows, Units, rows_of
from truecal.uncertainty.clustered import ClusteredSeries, JointSigns
from truecal.uncertainty.tests.verdict import redrawn

_TOGETHER = np.sqrt(2.0)  # see `_p_of_redraws`


@dataclass(frozen=True)
class Joint:
    """Estimates over all datasets of a lens together, as powers; see :class:`truecal.uncertainty.bootstrap.bootstrap.Bootstrap`."""

    power: float
    powers: Float64s  # of the resamples
    deviations: Float64s  # what estimation added to the truth in each
    p_value: float  # of calibration in all datasets; 0 where an unbiased estimate needs no help near zero
    parts: Float64s  # of every dataset


@dataclass(frozen=True)
class _One:
    """The same for one dataset, with what a test needs."""

    power: float
    powers: Float64s
    centre: float  # what the resamples scatter about: the power of the world they are drawn from
    on_cells: float  # power on the cells, beside which the redraws are put
    calibrated: Float64s  # powers of redraws from the scores
    bins: list[Bins]  # of the estimate, then of parts of the resamples; empty where an estimator has none


def drawn_units(units: Units, resamples: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Draws of whole units; a single unit cannot show how much units differ."""
    if units.count < 2:
        what = "cluster" if units.kind == "clusters" else "row"
        raise InputError(
            f"all rows belong to one {what}: it cannot tell how much another would differ; give at least two"
        )
    return unit_counts(units.count + 2, resamples, rng, block=units.block)


def resampled_jointly(
    estimator: Estimator,
    lens: Lens,
    preds: Predictions,
    units: Units,
    counts: NDArray[np.uint16],
    rng: np.random.Generator,
    *,
    always_test: bool = False,
) -> Joint:
    """The estimate and its resamples; `counts` say how often each unit is drawn in each of them (:func:`drawn_units`).

    Calibration is tested where the interval needs it near zero, or always.
    """
    shares = lens.shares(preds)
    many = [1.0] if shares is None else shares.tolist()
    by_clusters = units.kind == "clusters" and isinstance(estimator, RankSeries)  # shared luck is not an error
    signs = None if units.kind == "rows" else JointSigns(units, REDRAWS, rng)
    null = rng if units.kind == "rows" and (always_test or not is_unbiased(estimator)) else None
    folded = Folded(counts.shape[1]) if isinstance(estimator, BinnedECE) and estimator.norm == 1 else None
    found: list[tuple[float, _One]] = []
    for share, rows in zip(many, rows_of(lens, preds), strict=True):
        one = _one_dataset(estimator, rows, units, counts, null)
        if signs is not None:
            series = ClusteredSeries.of(rows, signs.units)
            signs.add(series, share)
            if by_clusters:
                one = replace(one, power=series.estimate(estimator.power_norm)[1])
        if folded is not None:
            folded.add(share, one.bins[0], one.bins[1:], together=units.kind != "rows")
        found.append((share, replace(one, bins=[])))

    def together(values: Iterator[Float64s | float]) -> Float64s:
        each = [(share, np.asarray(value)) for (share, _), value in zip(found, values, strict=True) if share > 0]
        if estimator.power_norm == np.inf:
            return np.asarray(np.max([value for _, value in each], axis=0))
        return np.asarray(sum(share * value for share, value in each))

    power, powers = float(together(one.power for _, one in found)), together(one.powers for _, one in found)
    centre = together(one.centre for _, one in found)
    deviations = powers - centre if folded is None else folded.deviations(powers)
    if signs is not None:
        p = signs.p_value()
    elif null is not None:
        p = _p_of_redraws(
            float(together(one.on_cells for _, one in found)), together(one.calibrated for _, one in found)
        )
    else:
        p = 0.0
    return Joint(power, powers, deviations, p, np.array([one.power for _, one in found]))


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
    rows: Rows,
    units: Units,
    counts: NDArray[np.uint16],
    null: np.random.Generator | None,
) -> _One:
    cells, incidence = rows.softened_incidence(units, CELLS)
    each, start = [], 0
    for some in in_parts(counts.shape[1], cells.rows):
        both = (incidence @ counts[:, start : start + some].astype(np.float64)).T
        each.append(estimator.find(profile_of(cells, both[:, : cells.rows], both[:, cells.rows :])))
        start += some
    powers = np.concatenate([part.power for part in each])
    whole = np.asarray(incidence.sum(axis=1))[None]
    centre = float(estimator.find(profile_of(cells, whole[:, : cells.rows], whole[:, cells.rows :])).power[0])
    as_found = estimator.find(rows.profile)
    power = float(as_found.power[0])
    if isinstance(estimator, (DebiasedECE, RankSeries)):
        centre = float(powers.mean())
    calibrated, on_cells = np.zeros(0), power
    if null is not None:
        calibrated = np.concatenate([estimator.find(part).power for part in redrawn(cells, REDRAWS, null)])
        on_cells = float(estimator.find(cells).power[0])
    bins = [part.bins for part in (as_found, *each) if part.bins is not None]
    return _One(power, powers, centre, on_cells, calibrated, bins)
