"""How often the intervals hold the truth; `python -m tests.clinical.coverage 500` prints the table (20 minutes on one core), of all
worlds or of those named."""

import sys

import numpy as np

import truecal as tc
from tests.clinical.worlds import NAMES, WORLDS, World


def numbers_coverage(world: World, cohorts: int, rows: int, size: int) -> dict[str, float]:
    """Share of cohorts in which each interval of tc.clinical holds the true number; Emax is that over the scores of the cohort."""
    truth = world.numbers()
    hits = dict.fromkeys(NAMES, 0)
    for r in range(cohorts):
        rng = np.random.default_rng([r, size, rows])
        preds = world.preds(rng, rows, size)
        found = tc.clinical(preds, rng=r)
        truth["emax"] = float(np.abs(world.truth(preds.probs) - preds.probs).max())
        for name in NAMES:
            number = getattr(found, name)
            hits[name] += number.low - 1e-9 <= truth[name] <= number.high + 1e-9
    return {name: count / cohorts for name, count in hits.items()}


def band_coverage(world: World, cohorts: int, rows: int, size: int, kind: str) -> float:
    """Share of cohorts in which the simultaneous band holds the whole curve."""
    hits = 0
    for r in range(cohorts):
        curve = tc.flexible_curve(world.preds(np.random.default_rng([r, size, rows]), rows, size), kind)
        truth = world.truth(curve.score)
        hits += bool(((curve.lowest <= truth) & (truth <= curve.highest)).all())
    return hits / cohorts


def benefit_coverage(world: World, cohorts: int, rows: int, size: int, threshold: float) -> float:
    """Share of cohorts in which the interval of net benefit holds the true one."""
    p = world.draw(np.random.default_rng(0), 2_000_000)[0]
    q = world.truth(p)
    true = float(((p >= threshold) * (q - (1 - q) * threshold / (1 - threshold))).mean())
    hits = 0
    for r in range(cohorts):
        preds = world.preds(np.random.default_rng([r, size, rows]), rows, size)
        hits += true in tc.net_benefit(preds, [threshold]).at(threshold)
    return hits / cohorts


def main() -> None:
    cohorts = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    for world in [world for world in WORLDS if world.name in sys.argv[2:] or len(sys.argv) < 3]:
        for size in (1, 8):
            shares = numbers_coverage(world, cohorts, 800, size)
            print(world.name, f"clusters of {size}:", ", ".join(f"{n} {s:.3f}" for n, s in shares.items()), flush=True)
            bands = {kind: band_coverage(world, cohorts, 800, size, kind) for kind in ("spline", "loess")}
            benefit = benefit_coverage(world, cohorts, 800, size, 0.2)
            print(f"    bands {bands}, net benefit at 0.2 {benefit:.3f}", flush=True)


if __name__ == "__main__":
    main()
