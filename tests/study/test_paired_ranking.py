"""Rankings by paired resamples: equal models are rarely told apart, different ones are; costs of abstaining as metrics."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import truecal as tc
from tests.study.studies import write_files, write_study
from truecal.study.analyses.rankings import compare_pairs
from truecal.study.metrics import SharedDraws, parse_metric, row_scores

MODELS, ROWS, WORLDS = 4, 400, 60


def equal_models(seed, power=1.6):
    """Models that see the truth through noise of the same size, each its own, and are overconfident alike."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 2, ROWS)
    outcome = rng.random(ROWS) < truth
    noise = rng.normal(0, 0.4, (MODELS, ROWS))
    drawn = 1 / (1 + np.exp(-power * (np.log(truth / (1 - truth)) + noise)))
    return {f"m{i}": tc.Predictions.from_probs(p, outcome) for i, p in enumerate(drawn)}


def pairs_of(models, name):
    metric = parse_metric(name)
    lens = tc.OneClass()
    draws, values = {}, {}
    for model, preds in models.items():
        sample = lens.sample(preds)
        if metric.kind == "score":
            (drawn,) = SharedDraws.of(sample).resample_means({metric: row_scores(metric, preds, sample)}, None).values()
            values[model] = tc.scores.brier(preds)
        else:
            drawn, _ = SharedDraws.of(sample).resample_error(metric, sample, 0.95)
            values[model] = float(metric.estimator(0.95)(sample.profile))
        draws[model] = drawn
    return compare_pairs(values, draws)


@pytest.mark.parametrize("name", ["brier", "rank-series-l2", "ece-width-15-l1"])
def test_equal_models_are_told_apart_at_most_as_often_as_promised(name):
    """Any of six pairs, corrected, at 5 %: at most what a binomial of that rate exceeds once in a thousand."""
    wrong = sum(pairs_of(equal_models(seed), name)["adjusted_p"].min() <= 0.05 for seed in range(WORLDS))
    assert wrong <= binom.ppf(0.999, WORLDS, 0.05), wrong / WORLDS


def test_a_worse_model_is_told_apart():
    result = 0
    for seed in range(20):
        models = equal_models(seed)
        models["bad"] = equal_models(seed, power=4.0)["m0"]
        pairs = pairs_of(models, "rank-series-l2").filter(pl.col("adjusted_p") <= 0.05)
        apart = {frozenset(pair) for pair in pairs.select("a", "b").rows()}
        result += all(frozenset(("bad", f"m{i}")) in apart for i in range(1, MODELS))
    assert result >= 15


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("abstaining")
    write_files(folder, models=[f"m{i}" for i in range(4)], rows=150)
    more = "metrics: [error, rank-series-l2]\nrecalibrators: [temperature]\n"
    return tc.study.Study.read(write_study(folder, more)).run(folder / "store", workers=1)
