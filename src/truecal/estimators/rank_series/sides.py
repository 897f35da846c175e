"""What a comparison of two models needs of each: the rank series with the noise of every unit in every coefficient."""

from dataclasses import replace

import numpy as np

from truecal.estimators.rank_series.basis import MOST_CELLS, rank_basis, rank_cells
from truecal.estimators.rank_series.clustered import ClusteredSeries, terms_of
from truecal.estimators.rank_series.fit import Fit, enlarged, fit_series, fits, pivot_of
from truecal.estimators.rank_series.paired import Noise, Side
from truecal.estimators.resampling.units import Units, incidence
from truecal.lenses.sample import Sample
from truecal.profile.profile import Profile

_COMPARED_TERMS = (
    6  # of clusters, where that many pay for them: what both models share cancels, so bias costs more than noise
)
_CLUSTERS_A_TERM = 6  # that a covariance of the terms over clusters is estimated from


def side_of(data: Sample | Profile, units: Units | None) -> Side:
    """Of rows that belong together as `units` say; without them of rows that are paired with none, as the cells of a sketch."""
    if units is None:
        return _of_cells(next(fits(data.profile if isinstance(data, Sample) else data)))
    assert isinstance(data, Sample)
    return _of_rows(data, units)


def _of_cells(fit: Fit) -> Side:
    """Noise as of units that are cells: its covariance is that of the fit, and there is nothing to pair."""
    rate = np.clip(fit.cells.score + fit.gap, 0.0, 1.0)
    sums = (fit.basis.by_dataset()[0] * np.sqrt(rate * (1 - rate) / fit.cells.n[0])).T
    return Side(float(fit.value[0]), pivot_of(fit), Noise(fit.beta[0], sums, np.zeros(len(sums))))


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
        beta, kept = series.sums.sum(axis=0), series.chosen + 1
        ranks = rank_cells(cells)
        phi = rank_basis(ranks).functions(ranks)[0, :terms]
        fitted, noise_of = enlarged(ranks, (beta[:kept] @ phi[:kept])[None], np.array([series.noise]))
        pivot = replace(series.pivot, fitted=fitted, enlarged=noise_of)
    else:
        whole = next(fits(sample.profile))
        value, pivot = float(whole.value[0]), pivot_of(whole)
        fit = fit_series(cells)
        beta, kept, phi = fit.beta[0], int(fit.chosen[0].sum()), fit.basis.functions(fit.cells)[0]
    gap = beta[:kept] @ phi[:kept]
    noise = (phi * (1 - score)) @ ones - (phi * score) @ zeros - (phi * gap) @ rows
    if clusters is not None:  # residuals of a fit are shorter than what it was fitted to
        noise *= np.sqrt(clusters / max(clusters - kept, 1))
    squares = gap**2 @ rows
    squares = squares - np.asarray(rows.sum(axis=0)) * (squares.sum() / n)
    return Side(value, pivot, Noise(beta, noise.T / n, squares / n, kept if value > 0 else 0), clusters)
