"""The Likert report: what each category holds, and whether it keeps its word."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

import truecal as tc
from tests.groups.data import simulated
from truecal.errors import InputError
from truecal.estimators import BinnedECE, EqualWidth, GeneralizedECE, InterInterval, KDTree, TotalVariation
from truecal.groups import likert
from truecal.inference import measure
from truecal.lenses import OneClass, TopLabel
from truecal.predictions import Predictions, by_column, by_output


def units(seed):
    """200 units of 10 rows that share their output and a normal variable (correlation 0.5); calibrated."""
    rng = np.random.default_rng([seed, 11])
    p = np.repeat(rng.random(200), 10)
    unit = np.repeat(np.arange(200), 10)
    z = np.sqrt(0.5) * (rng.normal(size=200)[unit] + rng.normal(size=2000))
    return Predictions.from_probs(p, (ndtr(z) < p).astype(int), clusters=unit)


def two_levels(low_rate, high_rate, n=1000):
    """n outputs of 0.2 and n of 0.8, with exactly the given rates of ones."""
    labels = np.concatenate([np.arange(n) < low_rate * n, np.arange(n) < high_rate * n]).astype(int)
    return Predictions.from_probs(np.repeat([0.2, 0.8], n), labels)


def test_the_papers_worked_case():
    scale_report = likert(two_levels(0.30, 0.9)).frame()
    assert scale_report["inter_interval"][0] == 0
    assert scale_report["within"][0] == pytest.approx(0.10)
    broken = likert(two_levels(0.40, 0.9)).frame()
    assert broken["inter_interval"][0] == pytest.approx(0.07)
    assert broken["within"][0] == pytest.approx(0.20)
    assert broken["mean_outcome"][0] == pytest.approx(0.40)


def test_a_category_is_kept_broken_or_unsure_by_its_interval():
    assert likert(two_levels(0.2, 0.9)).frame()["holds"].tolist() == [True, None, True]
    assert likert(two_levels(0.45, 0.9)).frame()["holds"].tolist() == [False, None, True]
    assert likert(two_levels(0.32, 0.9, n=100)).frame()["holds"][0] is None


def test_an_empty_category_is_listed_without_numbers():
    report = likert(two_levels(0.2, 0.9))
    assert report.categories[1].count == 0
    assert report.frame()["mean_outcome"][1] is None
    assert "medium" in str(report)
    assert report.outside == 0


def test_counts_shares_and_the_interval_of_the_outcome():
    report = likert(two_levels(0.25, 0.9, n=400))
    first = report.categories[0]
    assert (first.count, first.share, first.mean_output) == (400, 0.5, pytest.approx(0.2))
    exact = binomtest(100, 400).proportion_ci(0.95)
    assert (first.outcome_low, first.outcome_high) == (pytest.approx(exact.low), pytest.approx(exact.high))


def test_a_shared_end_belongs_to_the_upper_category_and_a_free_end_to_its_own():
    preds = Predictions.from_probs([0.0, 0.33, 0.66, 1.0, 0.2], [0, 0, 1, 1, 0])
    assert likert(preds).frame()["count"].tolist() == [2, 1, 2]
    apart = likert(
        Predictions.from_probs([0.8, 0.85, 0.9, 1.0], [0, 1, 1, 1]), {"not very high": (0, 0.8), "very high": (0.9, 1)}
    )
    assert apart.frame()["count"].tolist() == [1, 2]
    assert apart.outside == 1


def test_errors_are_those_of_the_selected_outputs():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    preds = Predictions.from_probs(p, (rng.random(2000) < p**2).astype(int))
    frame = likert(preds, binning=EqualWidth(30)).frame()
    for i, (low, high, closed) in enumerate([(0, 0.33, "left"), (0.33, 0.66, "left"), (0.66, 1, "both")]):
        for name, distance in (("inter_interval", InterInterval(low, high)), ("within", TotalVariation())):
            direct = GeneralizedECE(
                lens=OneClass(1),
                select=by_output(1, low, high, closed=closed),
                distance=distance,
                binning=EqualWidth(30),
            )(preds)
            assert frame[name][i] == direct.value
            assert frame[f"{name}_low"][i] <= frame[name][i] <= frame[f"{name}_high"][i]
    assert frame["within"][1] > 0.2 > frame["inter_interval"][1] > 0.05


def test_many_classes_show_the_predicted_one_or_the_one_asked_for():
    preds = simulated(1000, 4, columns={"site": np.arange(1000) % 2})
    top = likert(preds)
    assert [c.count for c in top.categories] == [
        int(((preds.probs.max(axis=1) >= a) & (preds.probs.max(axis=1) < b)).sum())
        for a, b in [(0, 0.33), (0.33, 0.66), (0.66, 2)]
    ]
    assert top.categories[2].mean_outcome == pytest.approx(
        (preds.probs.argmax(axis=1) == preds.labels)[preds.probs.max(axis=1) >= 0.66].mean()
    )
    direct = GeneralizedECE(lens=TopLabel(), select=by_output(low=0.66), binning=KDTree(0.1))(preds)
    assert top.categories[2].within.value == direct.value
    one = likert(preds, class_name=2, select=by_column("site", 1))
    assert sum(c.count for c in one.categories) == 500
    assert one.categories[0].count == int((preds.probs[1::2, 2] < 0.33).sum())


def test_frequencies_of_clustered_rows_are_covered():
    """60 datasets x 3 categories: at 90 % at most what chance allows is missed; without clusters far more."""
    missed = without = 0
    for seed in range(60):
        preds = units(seed)
        plain = Predictions.from_probs(preds.probs, preds.labels)
        for category in likert(preds, level=0.9, replicates=20).categories:
            rows = (preds.probs >= category.low) & (preds.probs < category.high)
            truth = preds.probs[rows].mean()
            missed += not category.outcome_low <= truth <= category.outcome_high
            exact = binomtest(int(plain.labels[rows].sum()), int(rows.sum())).proportion_ci(0.9)
            without += not exact.low <= truth <= exact.high
    assert binomtest(missed, 180, 0.1, alternative="greater").pvalue > 0.001
    assert without > 40


def test_frequencies_have_the_interval_of_a_bin():
    """The interval of a word is that of one bin that holds the same rows, clusters included."""
    report = likert(units(0)).categories[0]
    covered = by_output(1, 0, 0.33, closed="left")(units(0))
    low, high = measure(covered, estimator=BinnedECE(bins=1)).bins.interval(0.95)
    assert (report.outcome_low, report.outcome_high) == (pytest.approx(low[0]), pytest.approx(high[0]))


def test_the_table_reads_as_text():
    text = str(likert(two_levels(0.45, 0.9)))
    assert "low" in text
    assert "0 to 0.33" in text
    assert "0.450" in text
    assert text.splitlines()[1].endswith("no")


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ({"low": (0.5, 0.2)}, "has low above high"),
        ({"low": (0, 33), "high": (66, 100)}, "must lie in"),
        ({"low": (0, 0.5), "high": (0.4, 1)}, "'low' and 'high' overlap between 0.4 and 0.5"),
        ({"low": 0.5}, "must be an interval"),
        ({"low": (0.5, 0.5)}, "single point"),
        ({}, "scale must name intervals"),
        ([(0, 1)], "scale must name intervals"),
        ({"low": (float("nan"), 1)}, "interval of two numbers"),
    ],
)
def test_bad_scales_are_refused_in_one_sentence(scale, message):
    with pytest.raises(InputError, match=message):
        likert(two_levels(0.2, 0.9, n=10), scale)


def test_the_interval_of_a_broken_category_is_about_its_frequency():
    """A frequency of 0.5 shown as [0, 0.33] exceeds it by 0.17, give or take the noise of the frequency."""
    estimate = likert(two_levels(0.5, 0.9), binning=EqualWidth(1)).categories[0].inter_interval
    expected = np.sqrt(0.25 / 1000 / (2 * np.pi))
    assert estimate.chance == pytest.approx(expected, rel=0.15)
    assert 0.17 - 3 * 0.0158 < estimate.interval.low < 0.17 - 0.0158


def test_gate_says_what_is_open_and_never_passes_nan():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    report = tc.likert(rng.random(60) < p, p)
    assert report.passed
    assert report.gate.startswith("PASS: at 95% no word is shown to be wrong; ")
    assert report.gate.endswith("are not certain, and more rows would decide")
    nan = replace(report.categories[0], outcome_low=float("nan"), outcome_high=float("nan"))
    broken = replace(report, categories=(nan, *report.categories[1:]))
    assert not broken.passed
    assert broken.gate.startswith("FAIL: ")
