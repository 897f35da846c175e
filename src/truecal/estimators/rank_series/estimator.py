"""The rank-series estimator: truecal's default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truecal import options
from truecal.estimators.base import Bias, Estimator, Findings, SketchBound, report
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.estimators.rank_series.basis import MAX_CELLS, RankCells, cell_parts, rank_cells
from truecal.estimators.rank_series.fit import SeriesFit, distinct_score_estimate, fit_cells, fit_series
from truecal.estimators.rank_series.interval import absolute_interval, one_score_limits, series_pivot
from truecal.estimators.rank_series.tests import test_calibration
from truecal.estimators.sketch_bounds import split_mixed_cells
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.resampling.draws import RedrawTest
from truecal.types import Float64s

_FEW_ROWS = 50  # by choice: rows below which the interval gets a warning
_SUM_ROUNDING = 1e-8  # derived: rounding of sums taken in another order
_MIN_PROBED = 2e-5  # by choice: smallest probed bound of a sketch
_PROBE_MARGIN = 4.0  # multiple of the largest probed change that is stated; tuned on tests/estimators/test_sketched.py
_RISK_ROUNDING = 1e-9  # derived: risks this close may be ordered either way


@dataclass(frozen=True)
class RankSeries(Estimator):
    r"""Calibration error from a smooth fit in the rank of the score, bias-corrected by leaving one out.

    Parameters
    ----------
    norm : {1, 2}, default 2
        2 for the root-mean-square error, 1 for the mean absolute error.
    level : float, default 0.95
        Level of the confidence interval.

    Notes
    -----
    Estimand: :math:`\theta^{1/2}` with :math:`\theta = E[m(c)^2]` and :math:`m(c) = E[y \mid c] - c`; for norm 1
    :math:`E|m(c)|`. The residual r = y - c is regressed on polynomials in the rank of c, orthonormal over the rows, so
    that scores that pile up at one end need no tuning:

    .. math:: \hat\theta_k = \frac1n \sum_i r_i \, \hat m_{-i}(c_i)

    with the fit of k terms without row i, in which the noise of the outcome cancels. The number of terms minimises an
    estimate of the risk of the fit. Polynomials in the rank on each side of 1/2 take the place of those in the rank of
    all rows where their risk is lower by more than one standard error, as for scores that pile up at both ends. Norm 1
    scales the value by mean|m| / rms(m) of the fitted curve. Where there are no more distinct scores than terms, the
    series has a term for each: the debiased error over the distinct scores.

    The interval of norm 2 contains all theta with :math:`(X - \theta)^2 \le z^2 (a + b\,\theta + e\,\theta^2)`, X the
    estimate with all terms; it holds for calibrated models too, where only a is left. The lower limit of norm 1 comes
    from leave-one-out signs. The fitted curve c + m(c) is the `curve` of the estimate. docs/methods/rank-series.md derives all
    of this and lists the constants.

    Assumptions: rows are independent (`tc.measure` handles clusters), and m is smooth in the rank. Steps and waves need
    more terms than a small n allows: the value is biased by up to -0.05 at n = 200, and a jump is smoothed by the limit
    of 64 terms at n >= 50,000. The interval accounts for curves of up to four windows per term.

    References
    ----------
    Neyman, J. (1937). "Smooth test" for goodness of fit. Skandinavisk Aktuarietidskrift 20, 149-199.

    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case of the
    binomial. Biometrika 26, 404-413. doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> est = tc.RankSeries()(tc.profile.Profile.from_arrays(c, rng.random(2000) < c**1.5))  # true error 0.109
    >>> round(est.value, 3), round(est.interval.low, 3), round(est.interval.high, 3)
    (0.112, 0.094, 0.136)
    """

    norm: float = 2
    level: float = 0.95

    def __post_init__(self) -> None:
        options.norm(self.norm, (1, 2))
        options.level(self.level)

    def estimate(self, profile: Profile) -> Findings:
        """Compute the power of the error of every dataset, shape (batch,), see `SeriesFit.signed_power`.

        `unselected` is the estimate of the squared error with all terms, of any norm.
        """
        parts = []
        for cells in cell_parts(profile):
            if self.norm == 2 and profile.batch > 1 and cells.few_scores.all():  # resamples of few cells need no fit
                theta = distinct_score_estimate(cells)
                parts.append((np.minimum(theta, 1.0), theta))
            else:
                fit = fit_cells(cells) if profile.batch > 1 else next(fit_series(profile))
                parts.append((fit.signed_power(self.norm), fit.theta[:, -1]))
        powers, estimates = map(np.concatenate, zip(*parts, strict=True))
        return Findings(powers, unselected=estimates)

    def _complete(self, profile: Profile) -> Estimate:
        """Estimate every dataset with its interval, and the fitted curve of a single one."""
        if profile.single:
            return next(self._of_fit(next(fit_series(profile)), [profile]))
        fits = list(fit_series(profile))
        powers = np.concatenate([fit.signed_power(self.norm) for fit in fits])
        low, high = (np.concatenate(limits) for limits in zip(*map(self._limits, fits), strict=True))
        one_score = any((fit.cells.distinct == 1).any() for fit in fits)
        interval = Interval(low, high, self.level, "rank series")
        return report(self, profile, Findings(powers, None, _warnings(profile, one_score=one_score), None, interval))

    def measure_cells(self, profiles: Sequence[Profile], cells: RankCells) -> Iterator[Estimate]:
        """Estimate single datasets, given their rank cells in one batch, with intervals and fitted curves.

        Parameters
        ----------
        profiles : sequence of Profile
            Single datasets of independent rows.
        cells : RankCells
            Their rank cells.

        Returns
        -------
        iterator of Estimate
            One for every profile.
        """
        return self._of_fit(fit_cells(cells), profiles)

    def _of_fit(self, fit: SeriesFit, profiles: Sequence[Profile]) -> Iterator[Estimate]:
        """Estimate single datasets, in order, from the fit of their batch."""
        cells, powers, (low, high) = fit.cells, fit.signed_power(self.norm), self._limits(fit)
        for i, profile in enumerate(profiles):
            filled = cells.counts[i] > 0
            curve = Curve(cells.scores[i, filled], fit.rate[i, filled], cells.shares[i, filled])
            interval = Interval(float(low[i]), float(high[i]), self.level, "rank series")
            warnings = _warnings(profile, one_score=bool(cells.distinct[i] == 1))
            yield report(self, profile, Findings(powers[i : i + 1], None, warnings, curve, interval))

    def _limits(self, fit: SeriesFit) -> tuple[Float64s, Float64s]:
        """Compute the lower and upper limit of the error of every dataset in [0, 1], widened to contain the value, (m,) each.

        Where all scores are equal they are those of `one_score_limits`.
        """
        value = fit.error(self.norm)
        if self.norm == 1:
            lower, upper = absolute_interval(fit, self.level)
        else:
            lower, upper = series_pivot(fit).interval(self.level)
        one_score = fit.cells.distinct == 1
        if one_score.any():
            exact_lower, exact_upper = one_score_limits(fit.cells, self.level)
            lower, upper = np.where(one_score, exact_lower, lower), np.where(one_score, exact_upper, upper)
        return np.minimum(lower, value), np.minimum(np.maximum(upper, value), 1.0)

    @property
    def bias(self) -> Bias:
        """ "none" for norm 2, else "reduced"."""
        return "none" if self.norm == 2 else "reduced"

    def test(self, profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> RedrawTest:
        """Test every dataset for calibration, by the statistic (18) and outcomes redrawn from the scores.

        Parameters
        ----------
        profile : Profile
            Independent rows of one dataset or of a batch.
        resamples : int, default 999
            Largest number of redraws.
        rng : int or numpy.random.Generator, default 0
            Seed or generator of the redraws.

        Returns
        -------
        RedrawTest
            Statistics and p-values, shape (batch,).
        """
        options.resamples(resamples)
        return test_calibration(profile, resamples, options.generator(rng))

    def sketch_bound(self, cells: CellProfile, estimate: Estimate) -> SketchBound:
        """Bound the power of all rows by rounding (proved) where every cell has one score, else by `sketch_error` (probed)."""
        range_ = super().sketch_bound(cells, estimate)
        if not (cells.low < cells.high).any():
            return range_
        value = float(estimate.value)
        error = _SUM_ROUNDING + cells.rounding + sketch_error(self.norm, cells, estimate) + _MIN_PROBED
        lower, upper = max(value - error, 0.0), min(value + error, 1.0)
        return SketchBound(lower**self.norm, upper**self.norm, "probed")


def _warnings(profile: Profile, *, one_score: bool) -> tuple[str, ...]:
    """Return warnings for fewer than 50 rows, and for a single distinct score if `one_score`.

    >>> _warnings(Profile.from_arrays([0.5] * 60, [0, 1] * 30), one_score=True)
    ('all scores are equal, so only the mean score is judged, against the mean outcome',)
    """
    notes = []
    if profile.size.min() < _FEW_ROWS:
        notes.append(f"only {profile.size.min():g} rows: the interval is wide and may cover less than stated")
    if one_score:
        notes.append("all scores are equal, so only the mean score is judged, against the mean outcome")
    return tuple(notes)


# ---------------------------------------------------------------------- sketches


def sketch_error(norm: float, profile: CellProfile, estimate: Estimate) -> float:
    """Estimate how far the value of all rows may be from that of the cells of a sketch; 1 with importance weights.

    The bound is probed, not proved, because the number of terms can change with any row. Rows inside the cells are put into
    orders that change the value much, and four times the largest change is returned, or, if larger, the distance to the value
    with any other number of terms whose risk may then be the smallest.
    """
    if not profile.counted:
        return 1.0  # the spread of importance weights inside cells is not stored
    fit, probes = next(fit_series(profile)), _probes(profile, estimate)
    value = float(estimate.value)
    change = max(float(np.abs(probe.error(norm) - value).max()) for probe in probes)
    terms = min(series.risk.shape[1] for series in (fit, *probes))
    risk = fit.risk[0, :terms]
    risk_changes = [np.abs(probe.risk[:, :terms] - risk).max(axis=0) for probe in probes]
    risk_bound = _PROBE_MARGIN * np.max(risk_changes, axis=0) + _RISK_ROUNDING
    possible = risk - risk_bound <= (risk + risk_bound).min()
    possible[fit.order[0] - 1 :][:1] = False  # the chosen number, whose value is probed itself
    errors = fit.errors_by_order(norm)[:, :terms]
    changes = [np.abs(probe.errors_by_order(norm)[:, :terms] - errors).max(axis=0) for probe in probes]
    bounds = _PROBE_MARGIN * np.max(changes, axis=0)
    distances = np.abs(errors[0] - value) + bounds
    return max(_PROBE_MARGIN * change, float(bounds.max()), float(distances[possible].max(initial=0.0)))


def _probes(profile: CellProfile, estimate: Estimate) -> list[SeriesFit]:
    """Fit the series to the rows of a sketch in three ways: cells as ties (one dataset), then in the four `_probed_orders`.

    In these orders each cell is one score of zeros and one of ones, or up to 1024 pieces (batches of four).
    """
    orders = _probed_orders(profile, estimate)
    profiles = profile.tied(), split_mixed_cells(profile, orders), profile.ordered(MAX_CELLS, orders)
    return [fit_cells(rank_cells(rows)) for rows in profiles]


def _probed_orders(profile: CellProfile, estimate: Estimate) -> NDArray[np.bool_]:
    """Return four orders of the rows in cells, bool (4, cells): whether the zeros of a cell come before its ones.

    They do where the fitted gap rises with the score, where it does not, in all cells, in none. Without a fitted curve the first
    two are all and none.
    """
    everywhere = np.ones(profile.rows, bool)
    rises = everywhere
    if estimate.curve is not None and profile.rows > 1:
        gap = np.interp(profile.scores[0], estimate.curve.score, estimate.curve.outcome - estimate.curve.score)
        rises = np.gradient(gap) > 0
    return np.stack([rises, ~rises, everywhere, ~everywhere])
