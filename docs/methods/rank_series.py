"""The rank series written out equation by equation, and the simulations behind its constants.

The numbers in brackets are those of docs/methods/rank-series.md. Plain numpy, row by row, sharing nothing with the package:
tests/tools/test_derivation.py compares the two. `python docs/methods/rank_series.py --simulate` prints the table of the page.
"""

import argparse
from dataclasses import dataclass, replace
from math import comb
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """Every constant of the method. The defaults are the package's; the simulations change one at a time."""

    penalty: float = 2.0  # of the noise in the risk (9)
    terms_per_root: float = 0.5  # K = floor(terms_per_root * sqrt(n)), between ...
    least_terms: int = 3
    most_terms: int = 64
    largest_leverage: float = 0.95 + 1e-9
    gate: float = 1.645  # Jensen's correction applies beyond so many standard deviations of noise (14)
    most_jensen: float = 0.25
    floor: str = "both"  # variance under calibration: of the scores, of the shrunk fit, or the larger one (16)
    interval_terms: str = "all"  # or "chosen"
    enlarged: tuple[float, ...] = (
        1.0,
        1.5,
        2.0,
        3.0,
        5.0,
    )  # times the fitted curve, for the noise at the upper end (16a)
    runs: tuple[tuple[int, float], ...] = (
        (2, 0.0),
        (4, 0.0),
        (8, 1.5),
        (16, 1.5),
    )  # for every term, and the standard errors by which they must stand out to speak for the upper end (16d) ...
    short_stands_out: float = 1.5  # ... if they have fewer than 16 rows
    any_shape: float = 0.5  # of what an error of unknown shape would vary more (16a)
    certain: float = 4.0  # standard errors from which on the lower end believes them (16e)
    few_misses: float = 5.0  # expected of the scores, below which unseen ones count (16f)
    level: float = 0.95


@dataclass(frozen=True)
class Answer:
    """Value, interval and number of terms."""

    value: float
    low: float
    high: float
    terms: int


def rank_series(c: Array, y: Array, k: Constants = Constants()) -> Answer:  # noqa: B008
    """The estimate and its interval, norm 2."""
    order = np.argsort(c, kind="stable")
    c, y = c[order].astype(float), y[order].astype(float)
    n = len(c)
    r = y - c  # (1)
    _, group, size = np.unique(c, return_inverse=True, return_counts=True)
    u = (np.cumsum(size) - size / 2)[group] / n  # (3) equal scores share the middle of their ranks
    most = int(np.clip(np.floor(k.terms_per_root * np.sqrt(n)), k.least_terms, k.most_terms))
    most = min(most, len(size))
    phi = _orthonormal(u, most)  # (4), shape (K, n)
    beta = phi @ r / n  # (5)
    m = np.cumsum(beta[:, None] * phi, axis=0)  # row k: the fit with k + 1 terms
    h = np.cumsum(phi**2, axis=0) / n  # (6)
    usable = 1 - h >= 1 - k.largest_leverage
    inverse = np.where(usable, 1 / np.where(usable, 1 - h, 1.0), 0.0)
    left_out = (m - h * r) * inverse  # (7)
    theta = (r * left_out).mean(axis=1)  # (8)
    length = (left_out**2).mean(axis=1)
    risk = -theta + k.penalty * np.maximum(length - theta, 0.0)  # (9)
    best = int((risk <= risk.min() + 1e-12).argmax())
    x, gap = theta[best], m[best]

    rate = np.clip(c + gap, 0, 1)
    second = np.mean(gap**2)
    b = (
        4 * np.mean(gap**2 * rate * (1 - rate)) / second / n if second > 0 else 4 * np.mean(rate * (1 - rate)) / n
    )  # (11)
    e = (np.mean(gap**4) / second**2 - 1) / n if second > 0 else 0.0  # (12)
    noise = np.sqrt(2 * _square_of_covariance(phi[: best + 1], c * (1 - c)))
    value = np.sqrt(max(x, 0.0))
    if x > k.gate * noise:  # (14)
        value *= 1 + min((b / x + e) / 8, k.most_jensen)
    value = min(float(value), 1.0)

    shrunk = (rate + h[best] / 2) / (1 + h[best])  # (15)
    kept = phi if k.interval_terms == "all" else phi[: best + 1]
    floors = {
        "scores": _square_of_covariance(kept, c * (1 - c)),
        "fit": _square_of_covariance(kept, shrunk * (1 - shrunk)),
    }
    a = 2 * (max(floors.values()) if k.floor == "both" else floors[k.floor])  # (16)
    centre = theta[len(kept) - 1]
    most, least, least_a = _beyond(u, r, np.maximum(c * (1 - c), shrunk * (1 - shrunk)), (centre, a), k)
    z = NormalDist().inv_cdf(0.5 + k.level / 2)
    low, high = _invert(least, least_a, b, e, z)[0], _invert(most, least_a, b, e, z)[1]
    rates = [np.clip(c + t * gap, 0, 1) for t in k.enlarged]
    noise_of = np.maximum.accumulate([4 * np.mean(gap**2 * p * (1 - p)) / second / n if second else b for p in rates])
    unknown = 4 * np.mean((c * (1 - c)) ** 2) / max(np.mean(c * (1 - c)), 1e-300) / n
    for _ in range(50):  # (16a)
        seen = min(second / high**2, 1.0) if high > 0 else 1.0
        larger = float(np.interp(1 / np.sqrt(seen) if seen > 0 else 1.0, k.enlarged, noise_of))
        more = max(seen * b + (1 - seen) * unknown - larger, 0.0)
        high = _invert(most, least_a, larger + k.any_shape * more, e, z)[1]
    missed, expected = int(np.sum(y != (c > 0.5))), float(np.minimum(c, 1 - c).sum())
    if expected < k.few_misses:
        high = max(high, _most_misses(missed, n, (1 - k.level) / 2) - expected / n)  # (16f)
    return Answer(value, min(low, value), min(max(high, value), 1.0), best + 1)


def _orthonormal(u: Array, terms: int) -> Array:
    """Legendre polynomials of the rank, made orthonormal over these ranks."""
    powers = np.polynomial.legendre.legvander(2 * (u - u.mean()), terms - 1)
    q, triangle = np.linalg.qr(powers)
    return (q * np.sign(np.diagonal(triangle))).T * np.sqrt(len(u))


def _square_of_covariance(phi: Array, variance: Array) -> float:
    """||V||_F^2 with V_jl = (1/n^2) sum_i s_i^2 phi_j phi_l  (10)."""
    v = (phi * variance) @ phi.T / phi.shape[1] ** 2
    return float((v**2).sum())


def _beyond(u: Array, r: Array, spread: Array, series: tuple[float, float], k: Constants) -> tuple[float, float, float]:
    """X for the upper end, X and a for the lower end: the series' own, or what runs of neighbours show, (16b) to (16e)."""
    n = len(u)
    terms = int(np.clip(np.floor(k.terms_per_root * np.sqrt(n)), k.least_terms, k.most_terms))
    most, least, least_a = series[0], *series
    for times, gate in k.runs:
        runs = min(times * terms, 1024)
        if runs * 8 > n or 2 * terms * 16 > n:
            break
        gate = gate if runs * 16 <= n else k.short_stands_out
        found, variance = 0.0, 0.0
        for shift in (0.0, 0.5):
            run = np.floor(u * runs + shift)
            for j in np.unique(run):
                inside = run == j
                rows = inside.sum()
                if rows > 1:
                    found += (r[inside].sum() ** 2 - (r[inside] ** 2).sum()) / (rows - 1) / n / 2  # (16b)
                    variance += 0.75 * spread[inside].sum() ** 2 / (rows * (rows - 1)) / n**2  # (16c)
        beyond, error = found - series[0], np.sqrt(variance)
        if beyond > gate * error:
            most = max(most, found)  # (16d)
        if beyond > k.certain * error and least == series[0]:
            least, least_a = found, max(series[1], variance)  # (16e)
    return most, least, least_a


def _invert(x: float, a: float, b: float, e: float, z: float) -> tuple[float, float]:
    """Roots of the ends of {t >= 0: (x - t)^2 <= z^2 (a + b t + e t^2)}  (17)."""
    lead = max(1 - z * z * e, 0.05)
    x = max(x, 0.0)
    half = x + z * z * b / 2
    root = np.sqrt(max(half**2 - lead * (x * x - z * z * a), 0.0))
    return float(np.sqrt(max(half - root, 0.0) / lead)), float(np.sqrt((half + root) / lead))


def _most_misses(seen: int, n: int, chance: float) -> float:
    """The rate of misses at which no more than `seen` of n rows have that chance, by halving."""
    low, high = 0.0, 1.0
    while high - low > 1e-13:
        rate = (low + high) / 2
        likely = sum(comb(n, j) * rate**j * (1 - rate) ** (n - j) for j in range(seen + 1)) > chance
        low, high = (rate, high) if likely and seen < n else (low, rate)
    return high if seen < n else 1.0


VARIANTS = {
    "as it is": {},
    "penalty 1 (leave-one-out cross-validation)": {"penalty": 1.0},
    "penalty 3": {"penalty": 3.0},
    "K = sqrt(n) / 4": {"terms_per_root": 0.25},
    "K = sqrt(n)": {"terms_per_root": 1.0},
    "no Jensen correction": {"most_jensen": 0.0},
    "Jensen correction without a gate": {"gate": 0.0},
    "no limit to the Jensen correction": {"most_jensen": 10.0},
    "floor from the scores alone": {"floor": "scores"},
    "floor from the fit alone": {"floor": "fit"},
    "interval of the chosen terms": {"interval_terms": "chosen"},
    "noise of the fitted curve at both ends": {"enlarged": (1.0,), "any_shape": 0.0},
    "noise of the fitted curve enlarged, of no other": {"any_shape": 0.0},
    "noise of any shape in full": {"any_shape": 1.0},
    "the series alone, no runs of neighbours": {"runs": ()},
}


def simulate(datasets: int, sizes: tuple[int, ...], seed: int = 0) -> list[str]:
    """Mean |bias| over worlds in percent and mean coverage (worst world) of the 90 % interval, for every variant, as Markdown."""
    import truecal as tc

    raw = list(tc.lab.PAPER_WORLDS.values())
    families = {
        "raw": raw,
        "calibrated": [world.perfectly_recalibrated() for world in raw],
        "near": [world.partly_recalibrated(0.02) for world in raw],
    }
    lines = ["| variant | n | " + " | ".join(f"{f} bias | {f} coverage" for f in families) + " |"]
    lines.append("|---|---:|" + "---:|---:|" * len(families))
    drawn = {
        (n, family, i): (world.draw(n, datasets, rng=[seed, n, i]), world.true_error(2))
        for n in sizes
        for family, worlds in families.items()
        for i, world in enumerate(worlds)
    }
    for name, change in VARIANTS.items():
        constants = replace(Constants(level=0.90), **change)
        for n in sizes:
            cells = []
            for family, worlds in families.items():
                biases, coverages = [], []
                for i in range(len(worlds)):
                    (scores, outcomes), truth = drawn[n, family, i]
                    answers = [rank_series(c, y, constants) for c, y in zip(scores, outcomes, strict=True)]
                    biases.append(abs(np.mean([a.value for a in answers]) - truth))
                    coverages.append(np.mean([a.low <= truth + 1e-12 and truth <= a.high for a in answers]))
                cells.append(f"{100 * np.mean(biases):.2f} | {np.mean(coverages):.2f} ({min(coverages):.2f})")
            lines.append(f"| {name} | {n} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1600])
    options = parser.parse_args()
    if options.simulate:
        print("\n".join(simulate(options.datasets, tuple(options.sizes))))
