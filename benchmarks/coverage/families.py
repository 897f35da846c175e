"""How often statements about clusters, groups and classes are false: `python -m benchmarks.coverage.families clusters groups`.

clusters : calibrated scores in 200 clusters of 10 with correlated outcomes: tests at 5 %, band and words for confidence at 90 %.
groups   : 60 calibrated groups: is any flagged at 5 %?
wrong    : 60 groups with errors up to 0.38, a tenth of the datasets: is flagged whose interval exceeds 0.05?
null     : the tests of 60 calibrated groups alone.
alone    : 60 calibrated groups of 150 rows: in how many tables the interval of some group, by itself, lies above 0.05.
classes  : calibrated probabilities of 3 and 10 classes: the joint test of the class-wise error at 5 %.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr, softmax

import truecal as tc
from truecal.estimators.rank_series.tests import Family
from truecal.inference import tests

REDRAWS = 199
SCORES = {  # of all rows, whatever their group
    "even": lambda n, rng: rng.random(n),
    "confident": lambda n, rng: rng.beta(6, 0.6, n),
    "rare": lambda n, rng: rng.beta(0.4, 12, n),
}
TESTS: dict[str, Callable[..., Any]] = {
    "rank series": tests.rank_series_test,
    "Hosmer-Lemeshow": tests.hosmer_lemeshow,
    "Kuiper": tests.kuiper,
    "Kolmogorov-Smirnov": lambda profile, **options: tests.kuiper(profile, statistic="ks", **options),
    "Spiegelhalter": tests.spiegelhalter,
    "consistency, equal mass": lambda profile, **options: tests.consistency_test(
        profile, tc.BinnedECE(scheme="mass"), **options
    ),
}
GRID = np.linspace(0.01, 0.99, 99)


def in_clusters(kind: str, rng: np.random.Generator) -> tc.Predictions:
    """200 clusters of 10 calibrated rows; half of the variance of the latent outcome is the cluster's."""
    cluster = np.repeat(np.arange(200), 10)
    score = np.clip(SCORES[kind](2000, rng), 1e-6, 1 - 1e-6)
    latent = np.sqrt(0.5) * rng.standard_normal(200)[cluster] + np.sqrt(0.5) * rng.standard_normal(2000)
    return tc.Predictions.from_probs(score, (ndtr(latent) < score).astype(int), clusters=cluster)


def clusters(datasets: int, seed: int) -> None:
    for kind in ("even", "confident"):
        rejected, covered = dict.fromkeys((*TESTS, "measure", "band misses"), 0), []
        for i in range(datasets):
            rng = np.random.default_rng([seed, i])
            preds = in_clusters(kind, rng)
            profile = tc.OneClass()(preds)
            for name, test in TESTS.items():
                rejected[name] += bool(test(profile, resamples=REDRAWS, rng=i).p_value <= 0.05)
            rejected["measure"] += _rejects(tc.measure(preds, rng=i))
            rejected["band misses"] += not tc.inference.band(profile, level=0.9).contains(GRID, GRID)
            covered.extend(_words(preds))
        shares = ", ".join(f"{name} {count / datasets:.3f}" for name, count in rejected.items())
        print(
            f"clusters, {kind}, {datasets} datasets: {shares}; words held {np.mean(covered):.3f} of {len(covered)}",
            flush=True,
        )


def _rejects(estimate: tc.Estimate) -> bool:
    return estimate.p_value is not None and bool(estimate.p_value <= 0.05)


def _words(preds: tc.Predictions) -> list[bool]:
    """Whether the interval of every word with 50 rows holds its mean score, which is its outcome rate."""
    score, covered = np.asarray(preds.probs).ravel(), []
    for word in tc.likert(preds, level=0.9).categories:
        inside = (score >= word.low) & ((score < word.high) | (word.high >= 1))
        if word.count >= 50 and word.outcome_low is not None and word.outcome_high is not None:
            covered.append(bool(word.outcome_low <= score[inside].mean() <= word.outcome_high))
    return covered


def calibrated_groups(kind: str, rng: np.random.Generator) -> tc.Predictions:
    score, site = SCORES[kind](6000, rng), np.arange(6000) % 60
    return tc.Predictions.from_probs(score, (rng.random(6000) < score).astype(int), columns={"site": site})


def null(datasets: int, seed: int) -> None:
    """The tests of `groups` by themselves, without intervals: many datasets in little time."""
    for kind in SCORES:
        rejected = 0
        for i in range(datasets):
            preds = calibrated_groups(kind, np.random.default_rng([seed, i]))
            family = Family(REDRAWS, i)
            family.add(tc.OneClass().sample(preds), np.arange(6000) % 60)
            rejected += bool((family.adjusted() <= 0.05).any())
        print(f"tests of 60 calibrated groups of 100 rows, {kind}: any rejects in {rejected} of {datasets}", flush=True)


def groups(datasets: int, seed: int) -> None:
    for kind in SCORES:
        flagged = 0
        for i in range(datasets):
            preds = calibrated_groups(kind, np.random.default_rng([seed, i]))
            flagged += bool(tc.subgroups(preds, "site", rng=i).flagged.any())
        print(f"60 calibrated groups of 100 rows, {kind}: any flagged in {flagged} of {datasets}", flush=True)


def with_errors(datasets: int, seed: int) -> None:
    above = flagged_above = beyond = wrong = 0
    fewer = max(1, datasets // 10)
    for i in range(fewer):
        rng = np.random.default_rng([seed, i])
        site = np.sort(rng.integers(0, 60, 9000))
        score, power = rng.random(9000), 1 + 3 * np.arange(60) / 59
        outcome = rng.random(9000) < score ** power[site]
        table = tc.subgroups(
            tc.Predictions.from_probs(score, outcome.astype(int), columns={"site": site}), "site", rng=i
        )
        low = np.array([-1.0 if e is None or e.interval is None else float(e.interval.low) for e in table.estimates])
        p = power[np.array([int(name) for name in table.names])]
        error = np.sqrt(1 / (2 * p + 1) - 2 / (p + 2) + 1 / 3)
        above += int((low > 0.05).sum())
        flagged_above += int((table.flagged & (low > 0.05)).sum())
        beyond += int(table.beyond(0.05).sum())
        wrong += int((table.beyond(0.05) & (error <= 0.05)).sum())
    print(
        f"60 groups with errors up to 0.38, {fewer} datasets: {above} intervals above 0.05, {flagged_above} of them flagged; "
        f"{beyond} groups beyond 0.05, {wrong} of them wrongly",
        flush=True,
    )


def alone(datasets: int, seed: int) -> None:
    tables = 0
    for i in range(datasets):
        rng = np.random.default_rng([seed, i])
        score = rng.random((60, 150))
        profile = tc.profile.Profile.from_arrays(score, (rng.random((60, 150)) < score).astype(int))
        interval = tc.RankSeries()(profile).interval
        tables += interval is not None and bool((np.asarray(interval.low) > 0.05).any())
    print(f"60 calibrated groups of 150 rows: some interval above 0.05 in {tables} of {datasets} tables", flush=True)


def classes(datasets: int, seed: int) -> None:
    for count, n in ((3, 300), (10, 1000)):
        rejected = 0
        for i in range(datasets):
            rng = np.random.default_rng([seed, i])
            probs = softmax(1.5 * rng.normal(size=(n, count)), axis=1)
            labels = (rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, count - 1)
            estimate = tc.measure(tc.Predictions.from_probs(probs, labels), lens=tc.ClassWise(), rng=i)
            rejected += _rejects(estimate)
        print(f"class-wise, {count} calibrated classes, n = {n}: rejected {rejected} of {datasets}", flush=True)


PARTS = {"clusters": clusters, "null": null, "alone": alone, "groups": groups, "wrong": with_errors, "classes": classes}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options.datasets, options.seed)


if __name__ == "__main__":
    main()
