"""How often the intervals hold the truth. `python -m tests.clinical.coverage 500` prints the tables of docs/clinical.md (20 minutes
on one core): all, or those named (numbers, spline, steps, benefit, prevalence, censoring), in the worlds that were
looked at while methods were chosen (WORLDS), in those kept apart (`kept`), or in those named; `rows=300` for other cohorts than
of 800 rows, `first=1000` for other seeds."""

import sys
from collections.abc import Iterable, Mapping

import numpy as np
from scipy.special import betaincinv

import truecal as tc
from tests.clinical.worlds import FLAT, KEPT, NAMES, WORLDS, World
from truecal.clinical.cohort import Cohort, Quantity, calibration_line
from truecal.clinical.summaries import brier_score, c_statistic, observed_expected, scaled_brier

Shares = dict[str, float]


def numbers_coverage(world: World, cohorts: Iterable[tc.Predictions]) -> Shares:
    """Share of cohorts in which each interval of tc.clinical holds the true number; Emax is that over the scores of the cohort."""
    truth, results = world.numbers(), []
    for preds in cohorts:
        numbers = tc.clinical.summary(preds)
        truth["emax"] = float(np.abs(world.truth(preds.probs) - preds.probs).max())
        ends = {name: getattr(numbers, name) for name in NAMES}
        results.append({name: end.low - 1e-9 <= truth[name] <= end.high + 1e-9 for name, end in ends.items()})
    return _shares(results)


def band_coverage(world: World, cohorts: Iterable[tc.Predictions], kind: str) -> Shares:
    """Share of cohorts in which a simultaneous band holds the whole curve between the 1st and the 99th percentile of the scores."""
    return _shares([{kind: _holds(world, preds, kind)} for preds in cohorts])


def _holds(world: World, preds: tc.Predictions, kind: str) -> bool:
    if kind == "steps":
        score = np.linspace(*np.quantile(preds.probs, [0.01, 0.99]), 101)
        low, high = tc.inference.band(tc.OneClass(1)(preds)).at(score)
    else:
        curve = tc.clinical.flexible_curve(preds)
        score, low, high = curve.score, curve.lowest, curve.highest
    truth = world.truth(score)
    return bool(((low <= truth) & (truth <= high)).all())


def benefit_coverage(
    world: World, cohorts: Iterable[tc.Predictions], thresholds: tuple[float, ...] = (0.1, 0.2)
) -> Shares:
    """Share of cohorts in which the intervals of net benefit, of its gain over treating everyone or no one, and of its
    difference from another model's hold the true ones, at each threshold."""
    p = world.draw(np.random.default_rng(0), 2_000_000)[0]
    q, truth, results = world.truth(p), {}, []
    for t in thresholds:
        worth = q - (1 - q) * t / (1 - t)
        net, other = (float(((risk >= t) * worth).mean()) for risk in (p, p**1.3))
        truth[t] = net, net - max(float(worth.mean()), 0.0), net - other
    for preds in cohorts:
        other_risks = tc.Predictions.from_probs(preds.probs**1.3, preds.labels, clusters=preds.clusters)
        models = tc.clinical.net_benefit({"a": preds, "b": other_risks}, thresholds)
        curve, difference, covered = models["a"], models.difference("a", "b"), {}
        for i, t in enumerate(thresholds):
            covered[f"net benefit at {t:g}"] = curve.low[i] <= truth[t][0] <= curve.high[i]
            covered[f"gain over treating all or none at {t:g}"] = curve.gain_low[i] <= truth[t][1] <= curve.gain_high[i]
            covered[f"difference from another model at {t:g}"] = (
                difference["low"][i] <= truth[t][2] <= difference["high"][i]
            )
        results.append(covered)
    return _shares(results)


def prevalence_coverage(world: World, cohorts: Iterable[int], cases: int) -> Shares:
    """Share of case-control samples, as many events as non-events, in which intervals at the known prevalence hold the truth."""
    truth = world.numbers()
    p, y, _ = world.draw(np.random.default_rng(0), 1_000_000)
    events, others = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    results = []
    for r in cohorts:
        rng = np.random.default_rng([r, cases])
        rows = np.concatenate([rng.choice(events, cases), rng.choice(others, cases)])
        cohort = Cohort.of(tc.Predictions.from_probs(p[rows], y[rows]), prevalence=float(y.mean()))
        results.append({name: truth[name] in _one(cohort, name) for name in _QUICK})
    return _shares(results)


def censoring_coverage(cohorts: Iterable[int], rows: int = 1000) -> Shares:
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
    results = []
    for r in cohorts:
        risk, time, event = censored_cohort(np.random.default_rng(r), rows)
        weighted = tc.clinical.censoring_weights(time, event, 1.0)
        cohort = Cohort.of(weighted.predictions(risk))
        results.append(
            {name: truth[name] in _one(cohort, name) for name in _QUICK} | {"censored": weighted.unknown / rows}
        )
    return _shares(results)


def censored_cohort(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exponential times with hazards by risk; the risk is that of an event by time 1; about 30 % are censored before."""
    risk = rng.beta(1.5, 3.5, rows)
    event_time = rng.exponential(1 / -np.log1p(-risk))
    censored = rng.exponential(2.0, rows)
    return risk, np.minimum(event_time, censored), event_time <= censored


_QUICK = ("oe", "intercept", "slope", "c_statistic", "brier", "scaled_brier")


def _one(cohort: Cohort, name: str) -> Quantity:
    """One number alone, without the slow ones."""
    if name in ("intercept", "slope"):
        return getattr(calibration_line(cohort, 0.95), name)
    values = {"oe": observed_expected, "c_statistic": c_statistic, "brier": brier_score, "scaled_brier": scaled_brier}
    return values[name](cohort, 0.95)


def _shares(found: list[dict[str, bool]]) -> Shares:
    return {name: float(np.mean([data[name] for data in found])) for name in found[0]}


TITLES = {
    "oe": "O/E",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "c_statistic": "c-statistic",
    "brier": "Brier",
    "scaled_brier": "scaled Brier",
    "spline": "band of the spline, all scores at once",
    "steps": "`tc.inference.band`, for any rising curve",
}
TABLES = {
    "numbers": numbers_coverage,
    "spline": lambda world, cohorts: band_coverage(world, cohorts, "spline"),
    "steps": lambda world, cohorts: band_coverage(world, cohorts, "steps"),
    "benefit": benefit_coverage,
}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    asked = sys.argv[2:]
    options = {"rows": 800, "first": 0} | {k: int(v) for k, _, v in (word.partition("=") for word in asked) if v}
    seeds = range(options["first"], options["first"] + count)
    worlds = KEPT if "kept" in asked else [w for w in (*WORLDS, *KEPT, FLAT) if w.name in asked] or WORLDS
    tables = (*TABLES, "prevalence", "censoring")
    expected = [name for name in tables if name in asked] or tables
    print("| number |" + "".join(f" {world.name} |" for world in worlds) + "\n|---|" + "---|" * len(worlds))
    for name in expected:
        if name == "censoring":
            print(_text(censoring_coverage(seeds)), flush=True)
        elif name == "prevalence":
            for world in worlds:
                print(name, world.name, _text(prevalence_coverage(world, seeds, 300)), flush=True)
        else:
            cells = []
            for world in worlds:
                cells.append([TABLES[name](world, world.cohorts(seeds, options["rows"], size)) for size in (1, 8)])
                for size, result in zip((1, 8), cells[-1], strict=True):
                    print(name, world.name, f"clusters of {size}:", _text(result), file=sys.stderr, flush=True)
            for row in cells[0][0]:
                texts = [" / ".join(f"{result[row]:.3f}".removeprefix("0") for result in pair) for pair in cells]
                print(f"| {TITLES.get(row, row)} | " + " | ".join(texts) + " |", flush=True)


def _text(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.3f}" for name, share in shares.items())


if __name__ == "__main__":
    main()
