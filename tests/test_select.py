"""Selections choose what they say, combine like sets, and refuse to choose nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.groups.data import simulated
from truecal.errors import InputError
from truecal.estimators import GeneralizedECE, TotalVariation
from truecal.lenses import TopK
from truecal.predictions import Predictions, by_column, by_label, by_output

SITES = np.array(["north", "south", "east"])


def test_by_label_takes_names_and_several_of_them():
    preds = simulated(300, 4)
    preds = Predictions.from_probs(
        preds.probs, np.array(["car", "ped", "bike", "dog"])[preds.labels], classes=["car", "ped", "bike", "dog"]
    )
    assert (by_label("ped")(preds).labels == 1).all()
    assert set(by_label("ped", "dog")(preds).labels) == {1, 3}
    assert len(by_label("ped")(preds)) + len((~by_label("ped"))(preds)) == 300


@pytest.mark.parametrize(
    ("closed", "kept"), [("both", [0.25, 0.5, 0.75]), ("left", [0.25, 0.5]), ("right", [0.5, 0.75]), ("neither", [0.5])]
)
def test_by_output_closes_the_ends_it_says(closed, kept):
    preds = Predictions.from_probs([0.0, 0.25, 0.5, 0.75, 1.0], [0, 0, 1, 1, 1])
    assert by_output(1, 0.25, 0.75, closed=closed)(preds).probs.tolist() == kept
    mirrored = by_output(0, 0.25, 0.75, closed=closed)(preds).probs
    assert sorted((1 - mirrored).tolist()) == kept


def test_by_output_without_a_class_looks_at_the_predicted_one():
    preds = simulated(200, 4)
    rows = by_output(low=0.6)(preds)
    assert len(rows) == np.count_nonzero(preds.probs.max(axis=1) >= 0.6)
    assert 0 < len(rows) < 200


def test_by_column_by_value_range_and_test():
    columns = {"site": SITES[np.arange(300) % 3], "age": np.arange(300) % 90}
    preds = simulated(300, 4, columns=columns)
    assert set(by_column("site", "north", "east")(preds).columns["site"]) == {"north", "east"}
    assert by_column("age", low=18, high=65, closed="left").mask(preds).tolist() == [
        18 <= a < 65 for a in columns["age"]
    ]
    assert by_column("age", where=lambda a: a % 2 == 0).mask(preds).sum() == np.count_nonzero(columns["age"] % 2 == 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=4), st.data())
def test_combinations_are_set_operations(limits, data):
    preds = simulated(120, 4, seed=3)
    parts = [by_output(c, low) for c, low in limits]
    masks = [preds.probs[:, c] >= low for c, low in limits]
    chosen, mask = parts[0], masks[0]
    for part, other in zip(parts[1:], masks[1:], strict=True):
        kind = data.draw(st.sampled_from(["and", "or", "and not"]))
        if kind == "and":
            chosen, mask = chosen & part, mask & other
        elif kind == "or":
            chosen, mask = chosen | part, mask | other
        else:
            chosen, mask = chosen & ~part, mask & ~other
    assert (chosen.mask(preds) == mask).all()


def test_a_selection_says_what_it_chose_and_how_many():
    preds = simulated(1000, 4, columns={"site": SITES[np.arange(1000) % 3]})
    select = by_label(2) & ~by_column("site", "south")
    estimate = GeneralizedECE(lens=TopK(2), select=select)(preds)
    mask = int(((preds.labels == 2) & (preds.columns["site"] != "south")).sum())
    assert estimate.selection == f"label is 2 and not (site is south) ({mask} of 1000 rows)"
    assert estimate.n == mask
    assert "label is 2" in str(estimate)
    by_hand = GeneralizedECE(lens=TopK(2))(preds.take((preds.labels == 2) & (preds.columns["site"] != "south")))
    assert estimate.value == by_hand.value


def test_a_small_selection_earns_a_warning_and_a_large_one_none():
    preds = simulated(2000, 4, columns={"row": np.arange(2000)})
    few = GeneralizedECE(select=by_column("row", low=0, high=50), level=None)(preds)
    assert "only 51 of 2000 rows were selected, so the interval is wide" in few.warnings
    many = GeneralizedECE(select=by_column("row", low=0, high=1500), level=None)(preds)
    assert not many.warnings


BAD = [
    (lambda: by_output(0, 0.7, 0.3), r"the output interval \[0.7, 0.3\] has low above high"),
    (lambda: by_output(0, float("nan"), 0.3), "must be an interval of two numbers"),
    (lambda: by_output(0, 0.1, 0.3, closed="yes"), "closed must be"),
    (lambda: by_label(), "at least one class"),
    (lambda: by_column("site"), "one of the three"),
    (lambda: by_column("site", "a", low=3), "one of the three"),
    (lambda: by_label(7)(simulated(20, 4)), "there is no class 7 among the 4 classes"),
    (lambda: by_label("cat")(simulated(20, 4)), "there is no class 'cat'"),
    (lambda: by_column("site", "x")(simulated(20, 4)), "there is no column 'site'"),
    (lambda: by_output(0, 2, 3)(simulated(20, 4)), "no row is left of 20 where probability of 0 in"),
    (lambda: by_column("s", low=1)(simulated(3, 4, columns={"s": ["a", "b", "c"]})), "has no range"),
    (lambda: by_column("s", where=lambda a: 1)(simulated(3, 4, columns={"s": [1, 2, 3]})), "each of the 3 rows"),
    (lambda: by_label(1) & TotalVariation(), "only selections combine"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_selections_are_refused_in_one_sentence(wrong, message):
    with pytest.raises(InputError, match=message) as refused:
        wrong()
    assert "\n" not in str(refused.value)
