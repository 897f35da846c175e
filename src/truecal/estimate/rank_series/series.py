"""The rank-series estimator: truecal's default."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truecal.errors import InputError
from truecal.estimate.estimate import Curve, Estimate, Interval
from truecal.estimate.estimator import Estimator, Findings, check_norm
from truecal.estimate.pivot import Pivot
from truecal.estimate.rank_series.basis import Basis, Cells, most_cells, rank_basis, rank_cells
from truecal.estimate.redraw import redraw
from truecal.profile import Profile
from truecal.types import Float64s, Indices

_PART = 1 << 15  # cells worked on together: what is touched again and again stays in cache
_LARGEST_LEVERAGE = 0.95
_FEW = 16  # terms: most datasets keep fewer
_EVEN = 1e-12  # risks this close are equal
_GATE = 1.645  # the Jensen correction applies only to an error that stands out of the noise


@dataclass(frozen=True)
class Fit:
    """The selected series of every dataset of a part of a batch."""

    cells: Cells
    basis: Basis
    beta: Float64s  # (m, K) coefficients
    chosen: Float64s  # (m, K) 1 for the terms kept
    theta: Float64s  # (K, m) the estimate of the squared error with every number of terms ...
    risk: Float64s  # (K, m) ... and what choosing that number is estimated to cost
    power: Float64s  # (m,) theta at the chosen number of terms
    gap: Float64s  # (m, G) fitted outcome rate minus score
    noise: Float64s  # (m,) b: the variance of theta grows by b * theta ...
    spread: Float64s  # (m,) e: ... + e * theta^2
    value: Float64s  # (m,) root, Jensen-corrected

    def leverage(self) -> Float64s:
        """How much every row of a cell weighs in its own fit with the chosen terms, shape (m, G)."""
        return (self.chosen[:, None, :] @ self.basis.by_dataset() ** 2)[:, 0] / _safe(self.cells.count)


@dataclass(frozen=True)
class RankSeries(Estimator):
    r"""Root-mean-square calibration error from a series in the rank of the score, chosen and debiased by leaving one out.

    With r = y - c and m(c) = E[y|c] - c, the squared error is E[m^2]. Regress r on polynomials orthonormal in the *rank* of c, so
    that skewed scores need no tuning, and estimate E[m^2] by mean(r_i m_{-i}(c_i)): the fit at i without row i, in which the
    noise of the label cancels. The number of terms minimises an estimate of the risk -theta_k + 2 (L_k - theta_k)_+, where L_k is
    mean(m_{-i}^2). This is a Neyman smooth test turned into an estimator.

    norm=1 scales the value by mean|m| / rms(m) of the fitted curve. The interval inverts (X - t)^2 <= z^2 (a + b t + e t^2): `a`
    is the variance under calibration, so that it covers the truth of a calibrated model as well. The curve is c + m(c).

    Weak spots: steps and wiggles need more terms than small n can pay for (bias to -0.05 at n = 200), a discontinuous curve at
    n >= 100,000 is smoothed by the cap of 64 terms, and strongly miscalibrated models at n = 100 are covered 82 % of the time at
    nominal 90 %.

    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> est = tc.RankSeries()(tc.Profile.from_arrays(c, rng.random(2000) < c**1.5))  # true error 0.109
    >>> round(est.value, 3), round(est.interval.low, 3), round(est.interval.high, 3)
    (0.112, 0.094, 0.133)
    """

    norm: float = 2
    level: float = 0.95

    def __post_init__(self) -> None:
        check_norm(self.norm, (1, 2))
        if not 0 < self.level < 1:
            raise InputError(f"level must lie strictly between 0 and 1, not {self.level!r}")

    @property
    def power_norm(self) -> float:
        return self.norm

    def find(self, profile: Profile) -> Findings:
        power = np.concatenate([self._power(fit) for fit in _fits(profile)])
        return Findings(power)

    def value_of(self, fit: Fit) -> Float64s:
        """The error of every dataset of a fit."""
        return fit.value * _shape(fit, self.norm)

    def _power(self, fit: Fit) -> Float64s:
        value = self.value_of(fit)
        return np.where(fit.value > 0, value**self.norm, np.minimum(fit.power, 0.0))

    def complete(self, profile: Profile) -> Estimate:
        power, low, high = [], [], []
        curve = None
        for fit in _fits(profile):
            shape = _shape(fit, self.norm)
            value = fit.value * shape
            bottom, top = _pivot(fit).interval(self.level)
            power.append(self._power(fit))
            low.append(np.minimum(bottom * shape, value))
            high.append(np.minimum(np.maximum(top * shape, value), 1.0))
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
        extra = {"interval": interval, "curve": curve}
        return self.report(profile, Findings(np.concatenate(power), None, _warnings(profile), extra))

    def test(self, profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0) -> Float64s:
        """p-value of every dataset for the hypothesis that the scores are perfectly calibrated, shape (batch,).

        S = max_k sum_{j<=k} (beta_j^2 - V_jj) / sqrt(2 ||V_{1..k}||_F^2), V the covariance of beta under calibration, compared with
        its distribution when outcomes are redrawn from the scores.
        """
        return self.tested(profile, resamples=resamples, rng=rng)[1]

    def tested(
        self, profile: Profile, *, resamples: int = 999, rng: int | np.random.Generator = 0
    ) -> tuple[Float64s, Float64s]:
        """The statistic S of :meth:`test` and its p-value, of every dataset."""
        generator = np.random.default_rng(rng)
        parts = [_test(fit, resamples, generator) for fit in _fits(profile)]
        return np.concatenate([s for s, _ in parts]), np.concatenate([p for _, p in parts])

    def pivot(self, profile: Profile) -> Pivot:
        """What the interval is made of: the estimate with all terms and its variance at any truth (norm 2)."""
        parts = [_pivot(fit) for fit in _fits(profile)]
        columns = zip(*((p.centre, p.floor, p.noise, p.spread) for p in parts), strict=True)
        return Pivot(*map(np.concatenate, columns))


def _warnings(profile: Profile) -> tuple[str, ...]:
    notes = []
    if profile.size.min() < 50:
        notes.append(f"only {profile.size.min():g} rows: the interval is wide and may cover less than stated")
    if (profile.distinct == 1).any():
        notes.append("all scores are equal, so this is |mean score - mean outcome|")
    return tuple(notes)


def _fits(profile: Profile) -> Iterator[Fit]:
    """The fits of a batch, in parts that bound the memory."""
    step = max(1, _PART // most_cells(profile))
    if step >= profile.batch:
        yield fit_series(profile)
        return
    for start in range(0, profile.batch, step):
        yield fit_series(profile.take(slice(start, start + step)))


def fit_series(profile: Profile) -> Fit:
    """All in units in which a cell counts by the root of its rows: residuals r, fits and waves are plain vectors then.

    With e = r - fit, v the spread of residuals within a cell and h the leverage, the rows of a cell contribute
    (e r + v) / (1 - h) to the sum of r_i (r_i - m_{-i}), and (e^2 + v) / (1 - h)^2 to that of (r_i - m_{-i})^2.
    """
    cells = rank_cells(profile)
    basis = rank_basis(cells)
    waves, n = basis.waves, cells.n
    mass = _safe(cells.count)
    r = cells.residual / np.sqrt(mass)
    within = cells.square - r * r
    squares = cells.square.sum(axis=1)
    beta = np.vecdot(waves, r)  # (K, m)
    theta, risk = np.empty_like(beta), np.empty_like(beta)
    left, scratch = r.copy(), np.empty_like(r)
    own, inverse, least = np.zeros_like(mass), np.empty_like(mass), (1 - _LARGEST_LEVERAGE) * mass
    for k, wave in enumerate(waves):
        left -= np.multiply(wave, beta[k, :, None], out=scratch)
        own += np.multiply(wave, wave, out=inverse)
        np.subtract(mass, own, out=inverse)
        total = squares
        if (heavy := inverse < least).any():
            inverse[heavy] = np.inf  # cells that all but fit themselves say nothing
            total = np.vecdot(cells.square, ~heavy)
        np.divide(mass, inverse, out=inverse)
        np.multiply(left, r, out=scratch)
        scratch += within
        theta[k] = (total - np.vecdot(scratch, inverse)) / n  # mean of r_i m_{-i}
        np.multiply(left, left, out=scratch)
        scratch += within
        inverse *= inverse
        length = (np.vecdot(scratch, inverse) - total) / n + 2 * theta[k]  # mean of m_{-i}^2
        risk[k] = -theta[k] + 2 * np.maximum(length - theta[k], 0.0)
    best = (risk <= risk.min(axis=0) + _EVEN).argmax(axis=0)  # of equally good series the shortest, however sums round
    chosen = (np.arange(len(waves)) <= best[:, None]).astype(float)
    gap = ((beta.T * chosen)[:, None, :] @ basis.by_dataset())[:, 0] / np.sqrt(mass)
    power = theta[best, np.arange(len(best))]

    share = cells.share
    rate = np.clip(cells.score + gap, 0.0, 1.0)
    variance = rate * (1 - rate)
    square = gap * gap
    second, fourth = np.vecdot(share, square), np.vecdot(share, square * square)
    flat = second <= 0
    safe = np.where(flat, 1.0, second)
    noise = np.where(flat, 4 * np.vecdot(share, variance), 4 * np.vecdot(share, square * variance) / safe) / n
    spread = np.where(flat, 0.0, (fourth / safe**2 - 1) / n)

    stands_out = power > _GATE * np.sqrt(2 * _least_span(cells, basis, best, power))
    jensen = 1 + np.minimum((noise / np.where(stands_out, power, 1.0) + spread) / 8, 0.25)
    value = np.sqrt(np.maximum(power, 0.0))
    value = np.minimum(np.where(stands_out, value * jensen, value), 1.0)
    return Fit(cells, basis, beta.T / np.sqrt(n)[:, None], chosen, theta, risk, power, gap, noise, spread, value)


def _safe(count: Float64s) -> Float64s:
    """Counts to divide by."""
    return np.where(count > 0, count, 1.0)


def _least_span(cells: Cells, basis: Basis, best: Indices, power: Float64s) -> Float64s:
    """||V||_F^2 of the chosen terms under calibration, shape (m,): exact where it decides whether the error stands out.

    The waves have unit length, so ||V||_F is at most the largest chance of a cell times the root of their number, over n; an error
    beyond the gate at that bound needs no more, nor does one that is not positive.
    """
    span = (cells.chance.max(axis=1) / cells.n) ** 2 * (best + 1)
    open_ = (power > 0) & (power <= _GATE * np.sqrt(2 * span))
    for some in (open_ & (best < _FEW), open_ & (best >= _FEW)):  # two groups: one long series would make all as long
        if some.any():
            at = np.flatnonzero(some)
            most = int(best[at].max()) + 1
            kept = (np.arange(most) <= best[at, None])[:, :, None]
            waves = basis.by_dataset(at)[:, :most] * kept
            span[at] = (_covariance(waves, cells.chance[at], cells.n[at]) ** 2).sum(axis=(1, 2))
    return span


def _covariance(waves: Float64s, variance: Float64s, n: Float64s) -> Float64s:
    """Covariance of beta when the outcomes of a row of each cell have the given variance, shape (m, K, K)."""
    total = np.zeros((len(variance), waves.shape[1], waves.shape[1]))
    for start in range(0, waves.shape[2], 128):  # small products stay on one thread: waking another costs more
        part = waves[:, :, start : start + 128]
        total += (part * variance[:, None, start : start + 128]) @ part.transpose(0, 2, 1)
    return total / n[:, None, None]


def _shape(fit: Fit, norm: float) -> Float64s:
    """mean|m| / rms(m) for norm 1."""
    if norm == 2:
        return np.ones(len(fit.value))
    rms = np.sqrt((fit.cells.share * fit.gap**2).sum(axis=1))
    return np.where(rms > 0, (fit.cells.share * np.abs(fit.gap)).sum(axis=1) / np.where(rms > 0, rms, 1.0), 1.0)


def _pivot(fit: Fit) -> Pivot:
    """The estimate with all terms, without selection, and its variance at any truth."""
    rate = np.clip(fit.cells.score + fit.gap, 0.0, 1.0)
    leverage = fit.leverage()
    shrunk = (rate + leverage / 2) / (1 + leverage)
    spans = [
        (_covariance(fit.basis.by_dataset(), variance, fit.cells.n) ** 2).sum(axis=(1, 2))
        for variance in (fit.cells.chance, shrunk * (1 - shrunk))
    ]
    return Pivot(fit.theta[-1], 2 * np.maximum(*spans), fit.noise, fit.spread)


def _test(fit: Fit, resamples: int, generator: np.random.Generator) -> tuple[Float64s, Float64s]:
    """Statistic and p-value of every dataset."""
    cells = fit.cells
    found, p = np.zeros(len(cells.n)), np.empty(len(cells.n))
    reference = np.empty(0)
    counts = np.broadcast_to(cells.count, cells.score.shape)
    covariance = _covariance(fit.basis.by_dataset(), cells.chance, cells.n)
    for i in range(len(p)):
        if not (covariance[i].diagonal() > 0).any():
            impossible = bool(
                (np.abs(cells.residual[i]) > 1e-12).any()
            )  # scores of 0 and 1 only: any miss refutes them
            found[i], p[i] = (np.inf, 1 / (resamples + 1)) if impossible else (0.0, 1.0)
            continue
        count, score = counts[i], cells.score[i]
        repeated = i > 0 and np.array_equal(count, counts[i - 1]) and np.array_equal(score, cells.score[i - 1])
        if not repeated:  # datasets that share their scores share the redraws
            surplus = redraw(count, score, count * cells.chance[i], resamples, generator)
            surplus /= np.sqrt(_safe(count) * cells.n[i])
            reference = np.sort(largest_sum(surplus @ fit.basis.of(i).T, covariance[i]))
        found[i] = largest_sum(fit.beta[i], covariance[i])
        p[i] = (1 + resamples - np.searchsorted(reference, found[i] - 1e-12 * abs(found[i]))) / (1 + resamples)
    return found, p


def largest_sum(beta: Float64s, covariance: Float64s) -> Float64s:
    """max_k sum_{j<=k} (beta_j^2 - V_jj) / sqrt(2 ||V_{1..k}||_F^2), V the covariance of beta under calibration."""
    scale = np.sqrt(2 * np.cumsum(np.cumsum(covariance**2, axis=0), axis=1).diagonal())
    usable = scale > 0
    sums = np.cumsum(beta**2 - covariance.diagonal(), axis=-1)
    return np.asarray((sums[..., usable] / scale[usable]).max(axis=-1))
