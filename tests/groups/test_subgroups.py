"""Subgroups: each is measured on its own rows, and many tests do not find what is not there."""

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.simulations import datasets
from truecal.engines import scan
from truecal.errors import InputError
from truecal.estimators import BinnedECE, RankSeries
from truecal.estimators.rank_series.tests import Family
from truecal.groups import subgroups
from truecal.inference import holm, measure
from truecal.lenses import ClassWise, OneClass
from truecal.predictions import Predictions


def patients(n=3000, seed=0, *, bad=()):
    """Three sites of equal size; at the bad ones the model is overconfident."""
    rng = np.random.default_rng(seed)
    p, site, sex = rng.random(n), np.array(["A", "B", "C"])[np.arange(n) % 3], np.array(["f", "m"])[np.arange(n) % 2]
    truth = np.where(np.isin(site, bad), p**2, p)
    columns = {"site": site, "sex": sex, "age": rng.integers(20, 90, n)}
    return Predictions.from_probs(p, (rng.random(n) < truth).astype(int), columns=columns)


def assert_same_numbers(estimate, other):
    """Two estimates agree but for the rounding of sums."""
    assert estimate.p_value == other.p_value
    assert (estimate.n, estimate.lens, estimate.warnings) == (other.n, other.lens, other.warnings)
    for name in ("value", "power", "direction", "effective_n"):
        assert getattr(estimate, name) == pytest.approx(getattr(other, name), abs=1e-9)
    assert estimate.interval.high == pytest.approx(other.interval.high, abs=1e-9)
    np.testing.assert_allclose(estimate.curve.outcome, other.curve.outcome, atol=1e-9)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("weights", [None, "counts", "importance"])
@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_groups_of_unequal_sizes_agree_with_one_at_a_time(norm, weights, decimals):
    rng = np.random.default_rng(decimals)
    sizes = [40, 1500, 31, 700, 1024, 90]
    c = np.round(rng.beta(0.4, 0.6, sum(sizes)), decimals)
    group = rng.permutation(np.repeat(list("abcdef"), sizes))
    w = {"counts": rng.integers(1, 4, len(c)), "importance": rng.random(len(c)) + 0.1}.get(weights)
    preds = Predictions.from_probs(c, rng.random(len(c)) < c**1.2, weights=w, columns={"group": group})
    estimator = RankSeries(norm=norm)
    table = subgroups(preds, "group", estimator=estimator)
    for name, estimate in zip(table.names, table.estimates, strict=True):
        assert_same_numbers(estimate, measure(preds.take(group == name), estimator=estimator))


def test_every_subgroup_is_measured_on_its_own_rows():
    preds = patients(bad="B")
    table = subgroups(preds, "site")
    for name, count, estimate in zip(table.names, table.counts, table.estimates, strict=True):
        part = preds.take(preds.columns["site"] == name)
        direct = measure(part)
        assert count == len(part) == 1000
        assert_same_numbers(estimate, direct)
    assert table.names[0] == "B"
    assert table.flagged.tolist() == [True, False, False]
    assert table.overall.value == measure(preds).value


def test_several_columns_are_crossed():
    preds = patients()
    table = subgroups(preds, ["site", "sex"])
    assert sorted(table.names) == ["A, f", "A, m", "B, f", "B, m", "C, f", "C, m"]
    for name, count in zip(table.names, table.counts, strict=True):
        site, sex = name.split(", ")
        assert count == ((preds.columns["site"] == site) & (preds.columns["sex"] == sex)).sum()


def test_a_number_is_cut_into_ranges():
    preds = patients()
    table = subgroups(preds, "age", cuts=[40, 65])
    age = preds.columns["age"]
    result = dict(zip(table.names, table.counts.tolist(), strict=True))
    assert result == {
        "below 40": (age < 40).sum(),
        "40 to below 65": ((age >= 40) & (age < 65)).sum(),
        "from 65": (age >= 65).sum(),
    }


def test_small_subgroups_are_listed_and_not_judged():
    preds = patients(300)
    site = preds.columns["site"].astype("U8")
    site[:5] = "tiny"
    preds = Predictions.from_probs(preds.probs, preds.labels, columns={"site": site})
    table = subgroups(preds, "site")
    frame = table.frame()
    assert frame["group"][-1] == "tiny"
    assert (frame["n"][-1], frame["error"][-1], frame["adjusted"][-1], frame["flagged"][-1]) == (5, None, None, False)
    assert np.isnan(table.adjusted).tolist() == [False, False, False, True]
    rest = Predictions.from_probs(preds.probs[5:], preds.labels[5:], columns={"site": site[5:]})
    np.testing.assert_allclose(table.adjusted[:3], subgroups(rest, "site").adjusted)  # three tests, not four
    assert "too few rows to test" in str(table)


def test_missing_values_are_a_group_of_their_own():
    preds = patients(300)
    words = np.array(["x"] * 150 + [None] * 150, dtype=object)
    numbers = np.where(np.arange(300) < 100, np.nan, 1.0)
    preds = Predictions.from_probs(preds.probs, preds.labels, columns={"words": words, "numbers": numbers})
    assert sorted(subgroups(preds, "words").names) == ["missing", "x"]
    assert dict(zip(subgroups(preds, "numbers").names, subgroups(preds, "numbers").counts, strict=True)) == {
        "1": 200,
        "missing": 100,
    }
    assert sorted(subgroups(preds, "numbers", cuts=[0.5]).names) == ["from 0.5", "missing"]


def test_the_frame_and_the_text_say_the_same():
    table = subgroups(patients(bad="C"), "site")
    frame = table.frame()
    assert len(frame) == 3
    assert frame["low"][0] <= frame["error"][0] <= frame["high"][0]
    assert frame["direction"][0] > 0.1
    assert str(table).splitlines()[1].endswith("miscalibrated")


def test_another_estimator_or_lens_may_be_asked_for():
    preds = patients()
    table = subgroups(preds, "site", estimator=BinnedECE(10))
    assert table.estimates[0].value == max(
        BinnedECE(10)(OneClass()(preds.take(preds.columns["site"] == name))).value for name in "ABC"
    )
    rng = np.random.default_rng(0)
    many = Predictions.from_probs(
        rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300), columns={"s": np.arange(300) % 2}
    )
    class_wise = subgroups(many, "s", estimator=BinnedECE(10), lens=ClassWise())
    assert (class_wise.frame()["p_value"] <= 0.01).all()
    assert class_wise.flagged.all()  # labels that have nothing to do with the scores, in every class


def sites(groups, rows, power, seed=0):
    """Groups of equal size; in group g the event has probability p ** power(g)."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rows)
    p = rng.random(len(group))
    labels = (rng.random(len(group)) < p ** np.vectorize(power)(group)).astype(int)
    return Predictions.from_probs(p, labels, columns={"site": group})


def test_sixty_groups_with_large_errors_are_flagged():
    table = subgroups(sites(60, 100, lambda g: 1 + 3 * (g >= 30)), "site")
    wrong = np.array([int(name) >= 30 for name in table.names])
    assert min(e.interval.low for e, bad in zip(table.estimates, wrong, strict=True) if bad) > 0.05
    assert table.flagged.tolist() == wrong.tolist()


def test_an_interval_above_zero_is_one_of_a_flagged_group():
    """Sixty groups of rising errors: what is not flagged may be 0, what is flagged has the interval that it has alone."""
    preds = sites(60, 150, lambda g: 1 + 3 * g / 59)
    table = subgroups(preds, "site")
    low = np.array([e.interval.low for e in table.estimates])
    assert 20 < table.flagged.sum() < 60
    assert (low[~table.flagged] == 0).all()
    alone = [measure(preds.take(preds.columns["site"] == int(name))).interval for name in table.names]
    np.testing.assert_allclose(low[table.flagged], np.array([i.low for i in alone])[table.flagged], atol=1e-12)
    assert any(i.low > 0 for i, flagged in zip(alone, table.flagged, strict=True) if not flagged)
    for estimate, interval in zip(table.estimates, alone, strict=True):
        assert estimate.interval.high == pytest.approx(interval.high, abs=1e-12)


def test_many_groups_are_measured_in_one_pass_with_the_numbers_of_measure():
    preds = sites(120, 60, lambda g: 1 + 3 * (g == 7))
    table = subgroups(preds, "site")
    assert table.names[0] == "7"
    assert table.flagged[0]
    for name, estimate in list(zip(table.names, table.estimates, strict=True))[:5]:
        direct = measure(preds.take(preds.columns["site"] == int(name)))
        assert estimate.value == pytest.approx(direct.value, abs=1e-12)
        assert estimate.interval.high == pytest.approx(direct.interval.high, abs=1e-12)
        assert estimate.p_value == pytest.approx(direct.p_value, abs=0.05)


def test_a_group_is_beyond_a_tolerance_only_when_its_limit_is():
    table = subgroups(sites(60, 400, lambda g: 1.4 if g < 3 else 4 if g < 6 else 1), "site")
    assert sorted(np.array(table.names)[table.beyond(0.15)].astype(int)) == [3, 4, 5]
    assert table.beyond(0.5).sum() == 0
    assert set(np.array(table.names)[table.flagged].astype(int)) >= {3, 4, 5}
    with pytest.raises(InputError, match="tolerance must lie strictly between 0 and 1"):
        table.beyond(2)


def test_clusters_are_turned_as_wholes():
    """Twenty rows of a unit have one outcome: without clusters most groups are flagged, with them none."""
    rng = np.random.default_rng(3)
    unit = np.repeat(np.arange(300), 20)
    p = np.repeat(rng.uniform(0.3, 0.7, 300), 20)
    labels = np.repeat(rng.random(300) < p[::20], 20).astype(int)
    columns = {"g": np.repeat(np.arange(6), 1000)}
    assert subgroups(Predictions.from_probs(p, labels, columns=columns), "g").flagged.sum() >= 3
    preds = Predictions.from_probs(p, labels, clusters=unit, columns=columns)
    assert not subgroups(preds, "g").flagged.any()


def test_groups_of_a_scan_are_judged_from_their_sketches():
    import polars as pl

    preds = sites(40, 300, lambda g: 1 + 2 * (g == 5))
    frame = pl.LazyFrame({"p": preds.probs, "y": preds.labels, "site": preds.columns["site"]})
    table = subgroups(scan(frame, label="y", score="p", by="site"))
    assert np.array(table.names)[table.flagged].tolist() == ["5"]
    assert table.counts.tolist() == [300] * 40
    with pytest.raises(InputError, match="grouped and judged already"):
        subgroups(scan(frame, label="y", score="p", by="site"), "site")


def test_holm_by_hand_and_against_its_definition():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])
    assert len(holm(np.array([]))) == 0
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.random(6) ** 3
        adjusted = holm(p)
        for alpha in (0.01, 0.05, 0.2):
            rejected, remaining = set(), 6
            for i in np.argsort(
                p
            ):  # step down: compare the smallest with alpha / m, the next with alpha / (m - 1), ...
                if p[i] > alpha / remaining:
                    break
                rejected.add(i)
                remaining -= 1
            assert set(np.flatnonzero(adjusted <= alpha)) == rejected


@pytest.mark.slow
@pytest.mark.parametrize("power", [1, 4])
def test_a_calibrated_model_is_rarely_flagged_anywhere(power):
    """Sixty calibrated subgroups of 50 to 150 rows, 60 datasets: any false alarm in at most 5 % of them, within chance."""
    alarms, trials = 0, datasets(60)
    for seed in range(trials):
        rng = np.random.default_rng([seed, 3])
        group = np.repeat(np.arange(60), rng.integers(50, 150, 60))
        p = rng.random(len(group)) ** power
        sample = OneClass().sample(Predictions.from_probs(p, (rng.random(len(p)) < p).astype(int)))
        family = Family(199, rng=seed)
        family.add(sample, group)
        alarms += bool((family.adjusted() <= 0.05).any())
    assert binomtest(alarms, trials, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: subgroups(patients(30), "ward"), "there is no column 'ward'; the columns are site, sex, age"),
        (lambda: subgroups(patients(30), []), "name the column"),
        (lambda: subgroups(patients(30), "site", cuts=[3]), "cannot be cut"),
        (lambda: subgroups(patients(30), "age", cuts=[60, 40]), "rising numbers"),
        (lambda: subgroups(patients(30), ["age", "site"], cuts=[40]), "cuts apply to one column"),
        (lambda: subgroups(patients(30), "site", level=95), "level must lie strictly between 0 and 1"),
        (
            lambda: subgroups(
                Predictions.from_probs(np.full(2000, 0.5), np.ones(2000, int), columns={"x": np.arange(2000)}), "x"
            ),
            "2000 distinct values; group it with cuts",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


def test_groups_of_weight_zero_are_listed_and_not_tested():
    preds = patients(300)
    columns = {"site": np.array(["a", "b"] * 150)}
    preds = Predictions.from_probs(preds.probs, preds.labels, weights=[1.0, 0.0] * 150, columns=columns)
    table = subgroups(preds, "site")
    assert table.counts.tolist() == [150, 150]
    assert table.estimates[1] is None


def test_an_adjusted_p_value_is_at_least_the_unadjusted_one():
    rng = np.random.default_rng(11)
    p, site = rng.random(4000), rng.integers(0, 8, 4000)
    table = subgroups(Predictions.from_probs(p, rng.random(4000) < p, columns={"site": site}), "site")
    assert all(adjusted >= e.p_value for e, adjusted in zip(table.estimates, table.adjusted, strict=True))
