"""Subgroups: each is measured on its own rows, and many tests do not find what is not there."""

import numpy as np
import pytest
from scipy.stats import binomtest

from truecal.breakdown import subgroups
from truecal.errors import InputError
from truecal.estimate import BinnedECE
from truecal.lens import ClassWise, OneClass
from truecal.predictions import Predictions
from truecal.uncertainty.measurement import measure
from truecal.uncertainty.multiplicity import holm


def patients(n=3000, seed=0, *, bad=()):
    """Three sites of equal size; at the bad ones the model is overconfident."""
    rng = np.random.default_rng(seed)
    p, site, sex = rng.random(n), np.array(["A", "B", "C"])[np.arange(n) % 3], np.array(["f", "m"])[np.arange(n) % 2]
    truth = np.where(np.isin(site, bad), p**2, p)
    columns = {"site": site, "sex": sex, "age": rng.integers(20, 90, n)}
    return Predictions.from_probs(p, (rng.random(n) < truth).astype(int), columns=columns)


def test_every_subgroup_is_measured_on_its_own_rows():
    held = patients(bad="B")
    table = subgroups(held, "site")
    for name, count, estimate in zip(table.names, table.counts, table.estimates, strict=True):
        part = held.take(held.columns["site"] == name)
        direct = measure(part)
        assert count == len(part) == 1000
        assert (estimate.value, estimate.p_value, estimate.interval) == (direct.value, direct.p_value, direct.interval)
    assert table.names[0] == "B"
    assert table.flagged.tolist() == [True, False, False]
    assert table.overall.value == measure(held).value


def test_several_columns_are_crossed():
    held = patients()
    table = subgroups(held, ["site", "sex"])
    assert sorted(table.names) == ["A, f", "A, m", "B, f", "B, m", "C, f", "C, m"]
    for name, count in zip(table.names, table.counts, strict=True):
        site, sex = name.split(", ")
        assert count == ((held.columns["site"] == site) & (held.columns["sex"] == sex)).sum()


def test_a_number_is_cut_into_ranges():
    held = patients()
    table = subgroups(held, "age", cuts=[40, 65])
    age = held.columns["age"]
    found = dict(zip(table.names, table.counts.tolist(), strict=True))
    assert found == {
        "below 40": (age < 40).sum(),
        "40 to below 65": ((age >= 40) & (age < 65)).sum(),
        "from 65": (age >= 65).sum(),
    }


def test_small_subgroups_are_listed_and_not_judged():
    held = patients(300)
    site = held.columns["site"].astype("U8")
    site[:5] = "tiny"
    held = Predictions.from_probs(held.probs, held.labels, columns={"site": site})
    table = subgroups(held, "site")
    frame = table.frame()
    assert frame["group"][-1] == "tiny"
    assert (frame["n"][-1], frame["error"][-1], frame["adjusted"][-1], frame["flagged"][-1]) == (5, None, None, False)
    judged = np.array([e.p_value for e in table.estimates if e is not None])
    np.testing.assert_allclose(table.adjusted[:3], holm(judged))  # three tests, not four
    assert "too few rows to judge" in str(table)


def test_missing_values_are_a_group_of_their_own():
    held = patients(300)
    words = np.array(["x"] * 150 + [None] * 150, dtype=object)
    numbers = np.where(np.arange(300) < 100, np.nan, 1.0)
    held = Predictions.from_probs(held.probs, held.labels, columns={"words": words, "numbers": numbers})
    assert sorted(subgroups(held, "words").names) == ["missing", "x"]
    assert dict(zip(subgroups(held, "numbers").names, subgroups(held, "numbers").counts, strict=True)) == {
        "1.0": 200,
        "missing": 100,
    }
    assert sorted(subgroups(held, "numbers", cuts=[0.5]).names) == ["from 0.5", "missing"]


def test_the_frame_and_the_text_say_the_same():
    table = subgroups(patients(bad="C"), "site")
    frame = table.frame()
    assert {len(column) for column in frame.values()} == {3}
    assert frame["low"][0] <= frame["error"][0] <= frame["high"][0]
    assert frame["direction"][0] > 0.1
    assert str(table).splitlines()[1].endswith("miscalibrated")


def test_another_estimator_or_lens_may_be_asked_for():
    held = patients()
    table = subgroups(held, "site", estimator=BinnedECE(10))
    assert table.estimates[0].value == max(
        BinnedECE(10)(OneClass()(held.take(held.columns["site"] == name))).value for name in "ABC"
    )
    rng = np.random.default_rng(0)
    many = Predictions.from_probs(
        rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300), columns={"s": np.arange(300) % 2}
    )
    class_wise = subgroups(many, "s", estimator=BinnedECE(10), lens=ClassWise())
    assert class_wise.frame()["p_value"] == [None, None]
    assert not class_wise.flagged.any()


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
def test_a_calibrated_model_is_rarely_flagged_anywhere():
    """Five calibrated subgroups, 40 datasets: any false alarm in at most 5 % of them, within chance."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 3])
        p = rng.random(500)
        held = Predictions.from_probs(p, (rng.random(500) < p).astype(int), columns={"g": np.arange(500) % 5})
        alarms += bool(subgroups(held, "g", rng=seed).flagged.any())
    assert binomtest(alarms, 40, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: subgroups(patients(30), "ward"), "there is no column 'ward'; the columns are site, sex, age"),
        (lambda: subgroups(patients(30), []), "say which column"),
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
