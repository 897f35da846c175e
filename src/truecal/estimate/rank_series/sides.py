"""What a comparison of two models needs of each: the rank series with the noise of every unit in every coefficient."""

import numpy as np

from truecal.estimate.rank_series.basis import MOST_CELLS, rank_basis, rank_cells
from truecal.estimate.rank_series.clustered import ClusteredSeries, terms_of
from truecal.estimate.rank_series.fit import fit_series, fits, pivot_of
from truecal.estimate.rank_series.paired import Noise, Side
from truecal.estimate.resampling.units import Units, incidence
from truecal.lens import Sample
from truecal.profile import Profile

_COMPARED_TERMS = (
    6  # of clusters, where that many pay for them: what both models share cancels, so bias costs more than noise
)
_CLUSTERS_A_TERM = 6  # that a covariance of the terms over clusters is estimated from


def side_of(data: Sample | Profile, units: Units | None) -> Side:
    """Of rows that belong together as `units` say; without them of rows that are paired with none, as the cells of a sketch."""
    if units is None:
        fit = next(fits(data.profile if isinstance(data, Sample) else data))
        return Side(float(fit.value[0]), pivot_of(fit))
    assert isinstance(data, Sample)
    return _of_rows(data, units)


def _of_rows(sample: Sample, units: Units) -> Side:
    units.refuse_one()
    grouped = sample if sample.units is units.of_row else sample.with_units(units.of_row)
    unit = units.of_row[grouped.order]
    cells, matrix = incidence(grouped.profile, unit, units.count, MOST_CELLS)
    zeros, ones = matrix[: cells.rows], matrix[cells.rows :]
    rows = zeros + ones
    n, score = float(matrix.sum()), cells.scores[0].astype(np.float64)
    clusters = units.count if units.kind == "clusters" else None
    if clusters is not None:
        terms = max(terms_of(clusters), min(_COMPARED_TERMS, clusters // _CLUSTERS_A_TERM))
        value = ClusteredSeries.of_places(grouped.profile, unit, clusters).value
        series = ClusteredSeries.of_places(grouped.profile, unit, clusters, terms)
        pivot, beta, kept = series.pivot, series.sums.sum(axis=0), series.chosen + 1
        ranks = rank_cells(cells)
        phi = rank_basis(ranks).functions(ranks)[0, :terms]
    else:
        whole = next(fits(sample.profile))
        value, pivot = float(whole.value[0]), pivot_of(whole)
        fit = fit_series(cells)
        beta, kept, phi = fit.beta[0], int(fit.chosen[0].sum()), fit.basis.functions(fit.cells)[0]
    gap = beta[:kept] @ phi[:kept]
    noise = (phi * (1 - score)) @ ones - (phi * score) @ zeros - (phi * gap) @ rows
    squares = gap**2 @ rows
    squares = squares - np.asarray(rows.sum(axis=0)) * (squares.sum() / n)
    return Side(value, pivot, clusters, Noise(beta, noise.T / n, squares / n))
