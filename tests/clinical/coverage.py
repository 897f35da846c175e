"""How often the intervals hold the truth; `python -m tests.clinical.coverage 500` prints the tables (20 minutes on one core), all
or those named (numbers, spline, loess, benefit, prevalence, censoring), in all worlds or those named; `rows=300` for other cohorts
than of 800 rows."""

import sys

import numpy as np
from scipy.special import betaincinv

import truecal as tc
from tests.clinical.worlds import NAMES, WORLDS, World
from truecal.clinical.cohort import Cohort
from truecal.clinical.line import calibration_line
from truecal.clinical.quantity import Quantity
from truecal.clinical.summaries import brier_score, c_statistic, observed_expected, scaled_brier


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


def benefit_coverage(
    world: World, cohorts: int, rows: int, size: int, thresholds: tuple[float, ...] = (0.1, 0.2)
) -> dict[str, float]:
    """Share of cohorts in which the interval of net benefit holds the true one, at each threshold."""
    p = world.draw(np.random.default_rng(0), 2_000_000)[0]
    q = world.truth(p)
    true = {t: float(((p >= t) * (q - (1 - q) * t / (1 - t))).mean()) for t in thresholds}
    hits = dict.fromkeys(thresholds, 0)
    for r in range(cohorts):
        curve = tc.net_benefit(world.preds(np.random.default_rng([r, size, rows]), rows, size), thresholds)
        for t in thresholds:
            hits[t] += true[t] in curve.at(t)
    return {f"{t:g}": count / cohorts for t, count in hits.items()}


def prevalence_coverage(world: World, cohorts: int, cases: int) -> dict[str, float]:
    """Share of case-control samples, as many events as non-events, in which intervals at the known prevalence hold the truth."""
    truth = world.numbers()
    p, y, _ = world.draw(np.random.default_rng(0), 1_000_000)
    events, others = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    hits = dict.fromkeys(("oe", "intercept", "slope", "c_statistic", "brier", "scaled_brier"), 0)
    for r in range(cohorts):
        rng = np.random.default_rng([r, cases])
        rows = np.concatenate([rng.choice(events, cases), rng.choice(others, cases)])
        cohort = Cohort.of(tc.Predictions.from_probs(p[rows], y[rows]), prevalence=float(y.mean()))
        for name in hits:
            hits[name] += truth[name] in _one(cohort, name)
    return {name: count / cohorts for name, count in hits.items()}


def censoring_coverage(cohorts: int, rows: int = 1000) -> dict[str, float]:
    """Share of cohorts with about 30 % censored before the horizon in which intervals hold the uncensored truth, and that share."""
    risks = betaincinv(1.5, 3.5, (np.arange(200_000) + 0.5) / 200_000)
    below = np.cumsum(1 - risks) - (1 - risks) / 2
    brier = float((risks * (1 - risks)).mean())
    truth = {
        "oe": 1.0,
        "intercept": 0.0,
        "slope": 1.0,
        "c_statistic": float((risks * below).sum() / (risks.sum() * (1 - risks).sum())),
        "brier": brier,
        "scaled_brier": 1 - brier / (risks.mean() * (1 - risks.mean())),
    }
    hits, unknown = dict.fromkeys(truth, 0), 0
    for r in range(cohorts):
        risk, time, event = censored_cohort(np.random.default_rng(r), rows)
        known = tc.censoring_weights(time, event, 1.0)
        unknown += known.unknown
        cohort = Cohort.of(known.predictions(risk))
        for name in hits:
            hits[name] += truth[name] in _one(cohort, name)
    return {name: count / cohorts for name, count in hits.items()} | {"censored": unknown / cohorts / rows}


def _one(cohort: Cohort, name: str) -> Quantity:
    """One number alone, without the slow ones."""
    if name in ("intercept", "slope"):
        return getattr(calibration_line(cohort, 0.95), name)
    found = {"oe": observed_expected, "c_statistic": c_statistic, "brier": brier_score, "scaled_brier": scaled_brier}
    return found[name](cohort, 0.95)


def censored_cohort(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exponential times with hazards by risk; the risk is that of an event by time 1; about 30 % are censored before."""
    risk = rng.beta(1.5, 3.5, rows)
    event_time = rng.exponential(1 / -np.log1p(-risk))
    censored = rng.exponential(2.0, rows)
    return risk, np.minimum(event_time, censored), event_time <= censored


def main() -> None:
    cohorts = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    asked = sys.argv[2:]
    rows = next((int(word.removeprefix("rows=")) for word in asked if word.startswith("rows=")), 800)
    worlds = [world for world in WORLDS if world.name in asked] or WORLDS
    tables = ("numbers", "spline", "loess", "benefit", "prevalence", "censoring")
    for what in [table for table in tables if table in asked] or tables:
        if what == "censoring":
            print(what, _text(censoring_coverage(cohorts)), flush=True)
            continue
        for world in worlds:
            if what == "prevalence":
                print(what, world.name, _text(prevalence_coverage(world, cohorts, 300)), flush=True)
                continue
            for size in (1, 8):
                if what == "numbers":
                    found = numbers_coverage(world, cohorts, rows, size)
                elif what == "benefit":
                    found = benefit_coverage(world, cohorts, rows, size)
                else:
                    found = {"band": band_coverage(world, cohorts, rows, size, what)}
                print(what, world.name, f"clusters of {size}:", _text(found), flush=True)


def _text(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.3f}" for name, share in shares.items())


if __name__ == "__main__":
    main()
