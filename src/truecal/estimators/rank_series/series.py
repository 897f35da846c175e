"""The rank-series estimator: truecal's default."""

from dataclasses import dataclass, replace

import numpy as np

from truecal import options
from truecal.estimators.base import Estimator, Findings, SketchRange
from truecal.estimators.estimate import Curve, Estimate, Interval
from truecal.estimators.pivot import Pivot
from truecal.estimators.rank_series.absolute import absolute_interval
from truecal.estimators.rank_series.basis import largest_sum
from truecal.estimators.rank_series.clustered import ClusteredSeries
from truecal.estimators.rank_series.fit import Fit, fits, pivot_of, safe, shape_of, value_of
from truecal.estimators.rank_series.grouped import deviations_in_groups
from truecal.estimators.rank_series.null import Null
from truecal.estimators.rank_series.paired import Side
from truecal.estimators.rank_series.sides import side_of
from truecal.estimators.rank_series.sketched import largest_move
from truecal.estimators.resampling.bootstrap import Bootstrap
from truecal.estimators.resampling.grouped import GroupDraws
from truecal.estimators.resampling.redraw import Redrawn
from truecal.estimators.resampling.units import Units
from truecal.lenses.sample import Sample
from truecal.profile.cell_profile import CellProfile
from truecal.profile.profile import Profile
from truecal.types import Float64s

_GRID_ROUNDING = 1e-8  # of sums taken in another order
_LEAST_PROBED = 2e-5  # a probed bound is never less than this


@dataclass(frozen=True)
class RankSeries(Estimator):
    r"""Root-mean-square calibration error from a series in the rank of the score, chosen and debiased by leaving one out.

    With r = y - c and m(c) = E[y|c] - c, the squared error is E[m^2]. Regress r on polynomials orthonormal in the *rank* of c, so
    that skewed scores need no tuning, and estimate E[m^2] by mean(r_i m_{-i}(c_i)): the fit at i without row i, in which the
    noise of the label cancels. The number of terms minimises an estimate of the risk -theta_k + 2 (L_k - theta_k)_+, where L_k is
    mean(m_{-i}^2). This is a Neyman smooth test turned into an estimator.

    norm=1 scales the value by mean|m| / rms(m) of the fitted curve; its interval comes from left-out signs (see `absolute.py`).
    That of norm=2 inverts (X - t)^2 <= z^2 (a + b t + e t^2): `a` is the variance under calibration, so that it covers the truth
    of a calibrated model as well. The curve is c + m(c).

    Weak spots: steps and wiggles need more terms than small n can pay for (bias to -0.05 at n = 200); at n >= 50,000 the value of
    a curve with a jump is smoothed by the cap of 64 terms, which the interval makes up for (see `runs.py`).

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> est = tc.RankSeries()(tc.profile.Profile.from_arrays(c, rng.random(2000) < c**1.5))  # true error 0.109
    >>> round(est.value, 3), round(est.interval.low, 3), round(est.interval.high, 3)
    (0.112, 0.094, 0.134)
    """

    norm: float = 2
    level: float = 0.95

    def __post_init__(self) -> None:
        options.norm(self.norm, (1, 2))
        options.level(self.level)

    @property
    def power_norm(self) -> float:
        return self.norm

    def find(self, profile: Profile) -> Findings:
        parts = [(self._power(fit), fit.theta[-1]) for fit in fits(profile)]
        return Findings(np.concatenate([p for p, _ in parts]), unselected=np.concatenate([whole for _, whole in parts]))

    def _power(self, fit: Fit) -> Float64s:
        value = value_of(fit, self.norm)
        return np.where(fit.value > 0, value**self.norm, np.minimum(fit.power, 0.0))

    def complete(self, profile: Profile) -> Estimate:
        power, low, high = [], [], []
        curve = None
        for fit in fits(profile):
            shape = shape_of(fit, self.norm)
            value = fit.value * shape
            bottom, top = absolute_interval(fit, self.level) if self.norm == 1 else pivot_of(fit).interval(self.level)
            power.append(self._power(fit))
            low.append(np.minimum(bottom, value))
            high.append(np.minimum(np.maximum(top, value), 1.0))
            if profile.single:
                filled = fit.cells.count[0] > 0
                score, gap, share = (a[0, filled] for a in (fit.cells.score, fit.gap, fit.cells.share))
                curve = Curve(score, np.clip(score + gap, 0.0, 1.0), share)
        lows, highs = np.concatenate(low), np.concatenate(high)
        interval = Interval(
            float(lows[0]) if profile.single else lows,
            float(highs[0]) if profile.single else highs,
            self.level,
            "rank series",
        )
        findings = Findings(np.concatenate(power), None, _warnings(profile), curve, interval)
        return self.report(profile, findings)

    @property
    def unbiased(self) -> bool:
        return self.norm == 2

    @property
    def by_rank(self) -> bool:
        return self.norm == 2

    @property
    def corrected(self) -> bool:
        return True

    def at_level(self, level: float, rng: int | np.random.Generator = 0) -> "RankSeries":
        return replace(self, level=level)

    def test(self, profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> Redrawn:
        """Statistic and p-value of every dataset for the hypothesis that the scores are perfectly calibrated.

        S = max_k sum_{j<=k} (beta_j^2 - V_jj) / sqrt(2 ||V_{1..k}||_F^2), V the covariance of beta under calibration, compared with
        its distribution when outcomes are redrawn from the scores.
        """
        options.resamples(resamples)
        generator = options.generator(rng)
        parts = [_test(fit, resamples, generator) for fit in fits(profile)]
        return Redrawn(np.concatenate([s for s, _ in parts]), np.concatenate([p for _, p in parts]))

    def of_clusters(self, series: ClusteredSeries, level: float) -> tuple[float, float, Interval]:
        return (*series.estimate(self.norm), series.interval(level, self.norm))

    def side(self, data: Sample | Profile, units: Units | None = None) -> Side | None:
        return side_of(data, units) if self.norm == 2 else None

    def in_groups(self, sample: Sample, draws: GroupDraws, level: float) -> Bootstrap | None:
        if self.norm != 2:
            return None
        power, moved = float(self.found(sample.profile).power[0]), deviations_in_groups(sample, draws)
        return Bootstrap(self, power, power + moved, moved, level, "percentile", "rows", 0.0)

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        range_ = super().sketch_range(cells, estimate)
        if not (cells.low < cells.high).any():
            return range_
        move = _GRID_ROUNDING + cells.rounding + largest_move(self.norm, cells, estimate) + _LEAST_PROBED
        low, high = max(float(estimate.value) - move, 0.0), min(float(estimate.value) + move, 1.0)
        return SketchRange(low**self.norm, high**self.norm, "probed")

    def pivot(self, profile: Profile) -> Pivot:
        """What the interval is made of: the estimate with all terms and its variance at any truth (norm 2)."""
        return Pivot.of_all([pivot_of(fit) for fit in fits(profile)])


def _warnings(profile: Profile) -> tuple[str, ...]:
    notes = []
    if profile.size.min() < 50:
        notes.append(f"only {profile.size.min():g} rows: the interval is wide and may cover less than stated")
    if profile.constant.any():
        notes.append("all scores are equal, so only the mean score is judged, against the mean outcome")
    return tuple(notes)


def _test(fit: Fit, resamples: int, generator: np.random.Generator) -> tuple[Float64s, Float64s]:
    """Statistic and p-value of every dataset."""
    cells = fit.cells
    found, p = np.zeros(len(cells.n)), np.empty(len(cells.n))
    counts = np.broadcast_to(cells.count, cells.score.shape)
    covariance = fit.covariance
    null = None
    for i in range(len(p)):
        if not (covariance[i].diagonal() > 0).any():
            # Scores of 0 and 1 only: any miss refutes them
            impossible = bool((np.abs(cells.residual[i]) > 1e-12).any())
            found[i], p[i] = (np.inf, 1 / (resamples + 1)) if impossible else (0.0, 1.0)
            continue
        count, score = counts[i], cells.score[i]
        repeated = i > 0 and np.array_equal(count, counts[i - 1]) and np.array_equal(score, cells.score[i - 1])
        if null is None or not repeated:  # datasets that share their scores share the redraws
            unit = np.sqrt(safe(count) * cells.n[i])
            null = Null(count, score, cells.chance[i], fit.basis.of(i) / unit, covariance[i])
        found[i] = largest_sum(fit.beta[i], covariance[i])
        p[i] = null.p_value(float(found[i]), resamples, generator)
    return found, p
