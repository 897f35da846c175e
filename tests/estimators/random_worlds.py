"""Coverage in worlds drawn by seed: `python -m tests.estimators.random_worlds --seed 101 --rows 300 1000 --datasets 200`.

Scores that are even, skewed, rare, tied, rounded, saturated, spiked or of two kinds; curves that are calibrated, smooth, kinked,
stepped, waving, toothed, wrong in one place, falling or drawn to the middle. Rules are chosen in worlds of one seed and judged in
those of another, in those that were written down by hand (--written), or in smooth ones alone (--smooth). One line for every
size and norm: mean over the worlds, the worst of them, mean length of the 90 % interval.
"""

import argparse
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import truecal as tc

LEVEL = 0.9
_GRID = (np.arange(400_000) + 0.5) / 400_000
_AT_ONCE = 1 << 18  # rows
Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class RandomWorld:
    """Scores as quantiles of a uniform variable, and the curve of their outcomes."""

    name: str
    scores: Function
    curve: Function

    def true_error(self, norm):
        c = self.scores(_GRID)
        return float(np.mean(np.abs(self.curve(c) - c) ** norm) ** (1 / norm))

    def profiles(self, n, m, rng):
        step = max(1, _AT_ONCE // n)
        for start in range(0, m, step):
            c = self.scores(rng.random((min(step, m - start), n)))
            yield tc.profile.Profile.from_arrays(c, rng.random(c.shape) < self.curve(c))


def beta_quantiles(a, b):
    """Scores of a Beta distribution, as quantiles of a uniform variable."""
    from scipy.stats import beta

    ends = np.logspace(-9, -2, 400)
    u = np.concatenate([ends, np.linspace(0.01, 0.99, 4000)[1:-1], 1 - ends[::-1]])
    values = beta.ppf(u, a, b)
    return lambda at: np.interp(at, u, values)


def _tied(r):
    values = np.sort(r.uniform(0.02, 0.98, r.integers(3, 15)))
    below = np.cumsum(r.dirichlet(np.full(len(values), 2.0)))
    return lambda u: values[np.minimum(np.searchsorted(below, u), len(values) - 1)]


def _rounded(r):
    fine = beta_quantiles(r.uniform(0.7, 4), r.uniform(0.5, 2))
    return lambda u: np.round(fine(u), 2)


def _spiked(r):
    middle, share, ones = beta_quantiles(r.uniform(1, 4), r.uniform(1, 4)), r.uniform(0.2, 0.8), r.uniform(0.3, 1)
    zeros, top = share * (1 - ones), 1 - share * ones
    return lambda u: np.where(u < zeros, 0.0, np.where(u > top, 1.0, middle((u - zeros) / (1 - share))))


def _of_two(r):
    up, share = beta_quantiles(r.uniform(3, 10), 2), r.uniform(0.3, 0.7)
    return lambda u: np.where(u < share, 1 - up(1 - u / share), up((u - share) / (1 - share)))


def _even(r):
    low, high = r.uniform(0, 0.2), r.uniform(0.8, 1)
    return lambda u: low + (high - low) * u


def _saturated(r):
    decades = r.uniform(3, 8)
    return lambda u: 1 - 10.0 ** (-decades * u)


SCORES = {
    "even": _even,
    "skewed": lambda r: beta_quantiles(r.uniform(1.5, 8), r.uniform(0.1, 0.8)),
    "rare": lambda r: beta_quantiles(r.uniform(0.3, 1), r.uniform(8, 40)),
    "tied": _tied,
    "rounded": _rounded,
    "saturated": _saturated,
    "spiked": _spiked,
    "of two kinds": _of_two,
}


def logistic(intercept, slope):
    """A straight line of the log odds."""

    def curve(c):
        inside = np.clip(c, 1e-12, 1 - 1e-12)
        return 1 / (1 + np.exp(-intercept - slope * np.log(inside / (1 - inside))))

    return curve


def _kink(r, q):
    mask, slope, right = q(r.uniform(0.2, 0.8)), r.uniform(0.3, 0.9), r.random() < 0.5
    return lambda c: np.where((c >= mask) == right, mask + slope * (c - mask), c)


def _off(c, by):
    """A gap that is smaller near 0 and 1."""
    return c + by * np.minimum(1, 6 * np.minimum(c, 1 - c))


def _step(r, q):
    points, below, above = q(r.uniform(0.1, 0.9)), *r.uniform(-0.2, 0.2, 2)
    return lambda c: _off(c, np.where(c < points, below, above))


def _stairs(r, q):
    edges = np.unique(q(np.linspace(0.001, 0.999, r.integers(4, 10))))
    if len(edges) < 2:
        return lambda c: c
    levels = (edges[1:] + edges[:-1]) / 2
    return lambda c: levels[np.clip(np.searchsorted(edges, c, side="right") - 1, 0, len(levels) - 1)]


def _wave(r, q):
    low, waves, size, phase = q(0.02), r.uniform(1, 10), r.uniform(0.03, 0.15), r.uniform(0, 2 * np.pi)
    span = max(q(0.98) - low, 1e-3)
    return lambda c: _off(c, size * np.sin(2 * np.pi * waves * (c - low) / span + phase))


def _teeth(r, q):
    low, teeth, size = q(0.02), r.integers(2, 7), r.uniform(0.05, 0.2)
    span = max(q(0.98) - low, 1e-3)
    return lambda c: _off(c, size * (2 * ((c - low) / span * teeth % 1) - 1))


def _one_place(r, q):
    start = r.uniform(0, 0.85)
    low, high = q(start), q(start + r.uniform(0.05, 0.15))
    by = r.choice([-1, 1]) * r.uniform(0.1, 0.4)
    return lambda c: np.where((c >= low) & (c <= high), c + by, c)


def _falls(r, q):
    slope = r.uniform(0.3, 1)
    return lambda c: np.clip(0.5 + slope * (0.5 - c), 0.02, 0.98)


def _to_the_middle(r, q):
    slope = r.uniform(0.7, 0.98)
    start = r.uniform(0, 1 - slope)
    return lambda c: slope * c + start


CURVES = {
    "calibrated": lambda r, q: lambda c: c,
    "smooth": lambda r, q: logistic(r.normal(0, 0.5), np.exp(r.normal(0, 0.4))),
    "mild": lambda r, q: logistic(r.normal(0, 0.12), np.exp(r.normal(0, 0.12))),
    "kink": _kink,
    "step": _step,
    "stairs": _stairs,
    "wave": _wave,
    "teeth": _teeth,
    "one place": _one_place,
    "falls": _falls,
    "to the middle": _to_the_middle,
}


def random_worlds(seed, count):
    """Kinds of scores and of curves in turn, their numbers by the seed."""
    r, kinds, shapes = np.random.default_rng(seed), list(SCORES), list(CURVES)
    worlds = []
    for i in range(count):
        kind, shape = kinds[i % len(kinds)], shapes[(5 * i + 3 * (i // len(kinds))) % len(shapes)]
        scores = SCORES[kind](r)
        raw = CURVES[shape](r, scores)
        worlds.append(RandomWorld(f"{kind}, {shape}", scores, lambda c, raw=raw: np.clip(raw(c), 0, 1)))
    return worlds


def smooth_worlds(seed, count):
    """Scores without ties, and curves whose log odds are a line and a wave."""
    r, kinds = np.random.default_rng(seed), [kind for kind in SCORES if kind not in ("tied", "rounded")]
    worlds = []
    for i in range(count):
        scores = SCORES[kinds[i % len(kinds)]](r)
        line, size = logistic(r.normal(0, 0.5), np.exp(r.normal(0, 0.3))), r.normal(0, 0.3)
        cycles, phase = r.uniform(0.5, 2), r.uniform(0, 2 * np.pi)

        def curve(c, line=line, size=size, cycles=cycles, phase=phase):
            inside = np.clip(c, 1e-12, 1 - 1e-12)
            rate, wave = line(c), size * np.sin(cycles * np.log(inside / (1 - inside)) + phase)
            return rate / (rate + (1 - rate) * np.exp(-wave))

        worlds.append(RandomWorld(f"{kinds[i % len(kinds)]} {i}", scores, curve))
    return worlds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--worlds", type=int, default=60)
    parser.add_argument("--written", action="store_true", help="the worlds of written_worlds.py instead")
    parser.add_argument("--smooth", action="store_true", help="worlds of smooth curves instead")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000, 5000])
    parser.add_argument("--datasets", type=int, default=200)
    options = parser.parse_args()
    if options.written:
        from tests.estimators.written_worlds import written_worlds

        worlds = written_worlds()
    else:
        worlds = (smooth_worlds if options.smooth else random_worlds)(options.seed, options.worlds)
    print("| n | norm | mean | worst worlds | mean length |")
    print("|---|---|---|---|---|")
    for n in options.rows:
        for norm in (2, 1):
            rates, lengths = {}, []
            for i, world in enumerate(worlds):
                rng = np.random.default_rng([options.seed, n, i, zlib.crc32(world.name.encode())])
                truth, ends = world.true_error(norm), []
                for profile in world.profiles(n, options.datasets, rng):
                    result = tc.RankSeries(norm=norm, level=LEVEL)(profile).interval
                    ends.append(np.stack([np.atleast_1d(result.low), np.atleast_1d(result.high)]))
                low, high = np.concatenate(ends, axis=1)
                rates[f"{i} {world.name}"] = float(np.mean((low <= truth + 1e-9) & (truth - 1e-9 <= high)))
                lengths.append(np.mean(high - low))
            worst = "; ".join(f"{name} {rates[name]:.3f}" for name in sorted(rates, key=rates.__getitem__)[:5])
            print(
                f"| {n} | {norm} | {np.mean(list(rates.values())):.3f} | {worst} | {np.mean(lengths):.4f} |", flush=True
            )


if __name__ == "__main__":
    main()
