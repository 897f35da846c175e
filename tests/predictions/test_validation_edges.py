"""Validation at its edges: the last value that is accepted, the first that is refused, and what the refusal says."""

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from truecal.errors import InputError
from truecal.predictions import validation


def refusal(check, *arguments, **options):
    """The words of the refusal, in full."""
    with pytest.raises(InputError) as caught:
        check(*arguments, **options)
    return str(caught.value)


def test_the_unit_interval_is_closed():
    validation.refuse_outside_unit(np.array([0.0, 0.5, 1.0]), "scores")
    validation.refuse_outside_unit(np.array([1.0]), "scores")
    validation.refuse_outside_unit(np.array([]), "scores")
    for value in (np.nextafter(1, 2), -5e-324, np.nan, np.inf, -np.inf):
        assert "row 1 is" in refusal(validation.refuse_outside_unit, np.array([0.5, value]), "scores")


def test_wrong_values_are_counted_and_explained():
    outside = validation.refuse_outside_unit
    logits = "repair such rows; if these are logits use Predictions.from_logits (logits=, --logits)"
    percent = "these look like percentages; divide by 100, or read the file with percent=True (--percent)"
    assert refusal(outside, np.array([0.5, 2.0]), "scores") == f"scores must lie in [0, 1]: row 1 is 2.0; {logits}"
    assert "row 0 is 2.0 (and 1 more)" in refusal(outside, np.array([2.0, 3.0]), "scores")
    assert "(and" not in refusal(outside, np.array([2.0, 1.0, 0.0]), "scores")
    for high, hint in ((20.0, logits), (20.5, percent), (100.0, percent), (100.5, logits)):
        assert refusal(outside, np.array([0.0, high]), "scores").endswith(hint)
    assert refusal(outside, np.array([-1.0, 90.0]), "scores").endswith(logits)
    assert "scores: row 1 is nan (and 1 more); remove" in refusal(outside, np.array([0.5, np.nan, 7.0]), "scores")
    assert "row 0, column 1 is 2.0" in refusal(outside, np.array([[0.5, 2.0]]), "scores")


def test_scores_have_one_or_two_dimensions():
    assert validation.check_scores([0.5]).shape == (1,)
    assert validation.check_scores([[0.5, 0.25]]).shape == (1, 2)
    assert "shape ()" in refusal(validation.check_scores, 0.5)
    assert "shape (1, 1, 1)" in refusal(validation.check_scores, [[[0.5]]])
    assert "scores are empty" in refusal(validation.check_scores, [])


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "i8", "u4", "f4", "f8"])
def test_outcomes_of_any_type_become_bytes(dtype):
    inputs = np.array([0, 1, 1, 0], dtype)
    result = validation.check_outcomes(inputs, (4,))
    assert result.dtype == np.uint8
    assert_array_equal(result, [0, 1, 1, 0])
    assert (np.shares_memory(result, inputs)) == (inputs.dtype.itemsize == 1)


def test_outcomes_that_are_none():
    check = validation.check_outcomes
    for wrong in (np.array([0, 2]), np.array([1, -1]), np.array([0, 255], np.uint8), np.array([0, -1], np.int8)):
        assert "outcomes must be 0 or 1: row 1 is" in refusal(check, wrong, (2,))
        assert "swapped" not in refusal(check, wrong, (2,))
    for wrong in (np.array([0.0, 0.5]), np.array([1.0, 0.25])):
        assert refusal(check, wrong, (2,)).endswith("; were the arguments swapped?")
    for wrong in (np.array([0.0, 1.5]), np.array([0.0, -0.5]), np.array([0.5, np.nan]), np.array([0.5, 2.0])):
        assert "swapped" not in refusal(check, wrong, (2,))
    assert "not text" in refusal(check, ["a", "b"], (2,))
    assert "shape (3,) but outcomes (2,)" in refusal(check, [0, 1], (3,))


def test_weights_at_their_limits():
    check = validation.check_weights
    assert_array_equal(check([0, 1, 2], (3,)), [0.0, 1.0, 2.0])
    assert check([2.0**53], (1,)).dtype == np.float64
    assert "weights sum to" in refusal(check, [2.0**53, 2.0], (2,))
    assert_array_equal(check([1e-100, 1e-100], (2,)), [1e-100] * 2)
    assert "row 1 weighs 9e-101" in refusal(check, [1e-100, 9e-101], (2,))
    assert_array_equal(check([1.0, 1e-12, 0.0], (3,)), [1.0, 1e-12, 0.0])
    assert "row 1 weighs 9e-13 beside a largest of 1" in refusal(check, [1.0, 9e-13], (2,))
    assert "row 1 is inf" in refusal(check, [1.0, np.inf], (2,))
    assert "row 0 is -1.0" in refusal(check, [-1.0, 2.0], (2,))
    assert "all weights are zero" in refusal(check, [[0.0, 0.0], [1.0, 2.0]], (2, 2))
    assert "there are 2 rows" in refusal(check, [1.0], (2,))
    with np.errstate(all="raise"):
        assert "weights sum to inf" in refusal(check, [1e308, 1e308], (2,))


def test_clusters_of_every_kind():
    assert_array_equal(validation.check_clusters([3, 1, 3], 3), [1, 0, 1])
    assert_array_equal(validation.check_clusters(["b", 1, "b"], 3), [1, 0, 1])
    assert_array_equal(validation.check_clusters(np.array(["2020-01-02", "2020-01-01"], "M8[D]"), 2), [1, 0])
    assert validation.check_clusters([1, 2], 2).dtype == np.intp
    assert "row 1 is nan" in refusal(validation.check_clusters, [1.0, np.nan], 2)
    assert "shape (2, 1) but there are 2 rows" in refusal(validation.check_clusters, [[1], [2]], 2)


def test_values_of_different_types_have_an_order():
    values, rows = validation.distinct(np.array(["b", None, "a", float("nan"), None], object), "groups")
    assert values == ["a", "b", None]
    assert rows.tolist() == [1, 2, 0, 2, 2]
    numbers = np.array([7, -3, 7, 0, -3])
    values, rows = validation.distinct(numbers, "groups")
    assert values == [-3, 0, 7]
    assert rows.tolist() == [2, 0, 2, 1, 0]
    values, rows = validation.distinct(np.array([2, "a", 1.5, "b", 2], object), "groups")
    assert values == [1.5, 2, "a", "b"]
    assert_array_equal(rows, [1, 2, 0, 3, 1])
    assert "groups: row 1 is [1]" in refusal(validation.distinct, np.array([0, [1], [2]], object), "groups")


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_distinct_whole_numbers_at_the_ends_of_their_type(kind):
    ends = np.iinfo(kind)
    for numbers in ([ends.max, ends.max - 1] * 2, [ends.min, ends.min + 1] * 2, [ends.min, ends.min + 200] * 200):
        if max(numbers) > ends.max:
            continue
        values, rows = validation.distinct(np.array(numbers, kind), "groups")
        assert values == sorted(set(numbers))
        assert [values[row] for row in rows] == numbers


def test_class_names():
    check = validation.check_classes
    assert check(None, 2) is None
    names = check(np.array([1, 2]), 2)
    assert names == (1, 2)
    assert type(names[0]) is int
    assert type(check([np.str_("a"), "b"], 2)[0]) is str
    assert check(range(3), 3) == (0, 1, 2)
    assert "'a' is given twice" in refusal(check, ["a", "a"], 2)
    assert "'1' reads like 1" in refusal(check, [1, "1"], 2)
    assert "class name 1 is nan" in refusal(check, ["a", np.nan], 2)
    assert "1 class names were given for 2" in refusal(check, ["a"], 2)
    for name in ("a", 3, None):
        validation.check_name(name)
    for name in ([1], np.nan):
        assert "named by a number or text" in refusal(validation.check_name, name)


def test_further_columns():
    assert validation.check_columns(None, 2) == {}
    selected = validation.check_columns({"a": [1, 2], "b": [[1, 2, 3], [4, 5, 6]]}, 2)
    assert selected["b"].shape == (2, 3)
    assert "has 3 values but there are 2 rows" in refusal(validation.check_columns, {"a": [1, 2, 3]}, 2)
    assert "has 1 values but there are 2 rows" in refusal(validation.check_columns, {"a": 5}, 2)
    assert "has 1 values but there are 2 rows" in refusal(validation.check_columns, {"a": [[1, 2]]}, 2)


def test_labels_as_positions():
    check = validation.check_labels
    assert_array_equal(check([[0], [2], [1]], 3, None, 3), [0, 2, 1])
    assert_array_equal(check([0.0, 2.0], 2, None, 3), [0, 2])
    assert_array_equal(check([False, True], 2, None, 2), [0, 1])
    assert check([0.0, 1.0], 2, None, 2).dtype == np.intp
    assert "one-hot" in refusal(check, np.eye(2), 2, None, 2)
    assert "not of shape (2, 3)" in refusal(check, np.zeros((2, 3), int), 2, None, 2)
    assert "not of shape (2, 1, 1)" in refusal(check, np.zeros((2, 1, 1), int), 2, None, 2)
    assert "not of shape ()" in refusal(check, 1, 1, None, 2)
    assert "2 rows of probabilities but 3 labels" in refusal(check, [0, 1, 0], 2, None, 2)
    assert "(first 'a')" in refusal(check, np.array(["a", "b"]), 2, None, 2)
    for wrong in (0.5, np.inf, np.nan):
        assert "row 1 is" in refusal(check, [0.0, wrong], 2, None, 2)
    assert "row 1 is 2, but there are 2 classes" in refusal(check, [0, 2], 2, None, 2)
    assert "row 0 is -1" in refusal(check, [-1, 0], 2, None, 3)


@pytest.mark.parametrize(
    ("labels", "count", "hint"),
    [
        ([-1, 1], 2, "need classes=[-1, 1]"),
        ([-1, 0], 3, "0..2, or names"),
        ([-2, 1], 2, "0..1, or names"),
        ([1, 2, 3], 3, "need classes=range(1, 4) (--classes 1,2,3)"),
        ([1, 10], 10, "need classes=range(1, 11) (--classes 1,2,3,4,5,6,7,8,9,10)"),
        ([1, 11], 11, "need classes=range(1, 12) (--classes 1,...,11)"),
        ([0, 2], 2, "(--classes); more than two classes need a column of probabilities each"),
        ([1, 2, 4], 3, "0..2, or names"),
        ([0, 1, 3], 3, "0..2, or names"),
        ([2, 3], 3, "0..2, or names"),
    ],
)
def test_hints_about_labels(labels, count, hint):
    words = refusal(validation.check_labels, labels, len(labels), None, count)
    assert hint in words
    assert ("more than two classes" in words) == (count == 2 and labels != [-1, 1])


def test_a_refusal_lists_at_most_eight_of_the_labels():
    words = refusal(validation.name_two_classes, list("abcdefgh"))
    assert "labels have 8 values ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h') for two classes" in words
    words = refusal(validation.name_two_classes, list("ihgfedcba"))
    assert "labels have 9 values ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', ...) for two classes" in words
    assert "labels have 1 value (3) for two classes" in refusal(validation.name_two_classes, [3])


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_labels_are_lent_as_signed_integers_of_their_size(dtype):
    inputs = np.array([0, 1, 1], dtype)
    result = validation.check_labels(inputs, 3, None, 2)
    assert result.dtype == np.dtype(f"i{inputs.dtype.itemsize}")
    assert np.shares_memory(result, inputs)
    assert_array_equal(result, [0, 1, 1])


def test_labels_too_large_for_the_signed_type_are_widened():
    for last in (127, 128, 200):
        result = validation.check_labels(np.array([0, last], np.uint8), 2, None, 300)
        assert_array_equal(result, [0, last])
        assert result.dtype == (np.int8 if last == 127 else np.intp)


def test_labels_by_name():
    check = validation.check_labels
    assert_array_equal(check(["b", "a", "b"], 3, ("a", "b"), 2), [1, 0, 1])
    numbered = "; labels given as class indices need no classes=, or use classes[label]"
    assert refusal(check, [0, 1], 2, ("a", "b"), 2).endswith(f"('a', 'b'){numbered}")
    assert not refusal(check, [0, 1], 2, ("a", 7), 2).endswith(numbered)
    assert not refusal(check, ["x", "a"], 2, ("a", "b"), 2).endswith(numbered)
    eight, nine = tuple("abcdefgh"), tuple("abcdefghi")
    assert "'h')" in refusal(check, ["a", "x"], 2, eight, 8)
    assert "row 1 is 'x', which is not among the 9 classes ('a'" in refusal(check, ["a", "x"], 2, nine, 9)
    assert "'h', ...)" in refusal(check, ["a", "x"], 2, nine, 9)


def test_rows_of_probabilities_sum_to_one():
    check = validation.check_probabilities
    check(np.array([[1.0, 0.0], [0.5, 0.5]]))
    exact = np.array([[0.5, 0.5 + 2.0**-10]])  # 0.00098
    check(exact)
    assert "row 0 sum to 1.00195" in refusal(check, np.array([[0.5, 0.5 + 2.0**-9]]))
    half = np.array([[0.5, 0.5 + 2.0**-7]], np.float16)  # 0.0078
    check(half)
    assert "tolerance 0.01" in refusal(check, np.array([[0.5, 0.5 + 2.0**-6]], np.float16))
    assert "row 1, column 0 is 1.0005" in refusal(check, np.array([[0.5, 0.5], [1.0005, 0.0]]))
    assert "row 0, column 1 is -0.25" in refusal(check, np.array([[1.0, -0.25, 0.25]]))
    assert "one column" in refusal(check, np.array([[0.5]]))
    check(np.array([[0.9, 0.9]]), sums=False)
    assert "row 0, column 0 is 1.5" in refusal(check, np.array([[1.5, 0.0]]), sums=False)


def test_every_block_of_rows_is_looked_at(monkeypatch):
    monkeypatch.setattr(validation, "_BLOCK_BYTES", 64)  # two rows of four
    good = np.full((7, 4), 0.25)
    validation.check_probabilities(good)
    for row in range(7):
        for dtype in (np.float32, np.float64):
            wrong = good.astype(dtype)
            wrong[row, 3] = 0.5
            assert f"probabilities of row {row} sum to 1.25" in refusal(validation.check_probabilities, wrong)
    monkeypatch.setattr(validation, "_BLOCK_BYTES", 1)  # less than a row
    validation.check_probabilities(good)


def test_logits_may_rule_classes_out_but_not_all():
    check = validation.check_finite
    check(np.array([[0.0, -np.inf], [1e300, 1e300]]))
    check(np.array([-np.inf, 1.0]))
    check(np.array([]))
    check(np.array([[1e308, 1e308]]))
    assert "row 1, column 0 is nan" in refusal(check, np.array([[0.0, -np.inf], [np.nan, 0.0]]))
    assert "row 0, column 1 is inf" in refusal(check, np.array([[0.0, np.inf]]))
    assert "every class of row 1 is -inf" in refusal(check, np.array([[0.0, 0.0], [-np.inf, -np.inf]]))


@pytest.mark.parametrize(
    ("first", "second", "swapped"),
    [
        ([0.2, 0.7], [0, 1], True),
        ([0.2, 0.7], [0.0, 1.0], True),
        ([0.2, 1.0], [0, 1], True),
        ([[0.2, 0.8], [0.6, 0.4]], [0, 1], True),
        ([[0.2, 0.8], [0.6, 0.4]], [0.5, 0.5], True),
        ([[0.2], [0.6]], [0.5, 0.5], False),
        ([[0.2], [0.6]], [0, 1], False),
        ([0.2, 0.7], [0.5, 1.0], False),
        ([0.2, 0.7], [[0.2, 0.8], [0.6, 0.4]], False),
        ([[0.2, 0.8], [0.6, 0.4]], [[0, 1], [1, 0]], False),
        ([0.0, 1.0], [0, 1], False),
        ([-0.5, 1.5], [0, 1], False),
        ([0, 1], [0, 1], False),
        (["a", "b"], [0, 1], False),
        ([0.2, 0.7], ["a", "b"], False),
        ([], [0, 1], False),
        ([0.2], [], False),
    ],
)
def test_arguments_the_wrong_way_round(first, second, swapped):
    if swapped:
        assert "swapped" in refusal(validation.refuse_swapped, first, second, "labels come first")
    else:
        validation.refuse_swapped(first, second, "labels come first")


# ------------------------------------------------------------------ containers


def test_numbers_keep_their_precision():
    for dtype in (np.float16, np.float32, np.float64):
        inputs = np.array([0.5], dtype)
        assert validation.as_floats(inputs, "scores") is inputs
    assert validation.as_floats(np.array([0.5], np.longdouble), "scores").dtype == np.float64
    assert validation.as_floats([True, False], "scores").dtype == np.float64
    mixed = validation.as_floats(np.array([Decimal("0.5"), 1, True, np.float32(0.25)], object), "scores")
    assert_array_equal(mixed, [0.5, 1.0, 1.0, 0.25])


def test_what_is_no_number_is_named_by_its_place():
    assert "row 1, column 0 is None" in refusal(validation.as_floats, np.array([[1, 2], [None, 3]], object), "scores")
    assert "row 1 is 'x'" in refusal(validation.as_floats, ["0.5", "x"], "scores")
    assert "row 1 is 'inf'" in refusal(validation.as_floats, ["0.5", "inf"], "scores")
    assert "not text; read the column" in refusal(validation.as_floats, ["0.5", "1e-3"], "scores")
    assert "the value is 'x'" in refusal(validation.as_floats, "x", "scores")
    assert "row 0 is (1+0j)" in refusal(validation.as_floats, [1 + 0j], "scores")


def test_lists_that_numpy_would_misread():
    mixed = validation.as_array(["a", 1, None], "labels")
    assert mixed.dtype == object
    assert mixed.tolist() == ["a", 1, None]
    assert validation.as_array(["a\0", "b"], "labels").tolist() == ["a\0", "b"]
    assert validation.as_array([b"a\0", b"b"], "labels").tolist() == [b"a\0", b"b"]
    assert validation.as_array(("a", "b"), "labels").dtype.kind == "U"
    assert "the rows have different lengths" in refusal(validation.as_array, [[1], [2, 3]], "labels")
    assert "a set, which has no rows in order" in refusal(validation.as_array, {1, 2}, "labels")
    assert "masked in places" in refusal(validation.as_array, np.ma.masked_array([1, 2], [0, 1]), "labels")
    assert validation.as_array(np.ma.masked_array([1, 2], [0, 0]), "labels").tolist() == [1, 2]
    swapped = validation.as_array(np.array([1, 2], ">i4"), "labels")
    assert swapped.dtype.isnative
    assert swapped.tolist() == [1, 2]


def test_missing_values():
    for value in (None, np.nan, np.datetime64("NaT"), np.array([1, 2])):
        assert validation.is_missing(value)
    for value in (0, "", "nan", False, np.inf):
        assert not validation.is_missing(value)


def test_values_in_messages_are_short():
    assert validation.shown("a" * 58) == repr("a" * 58)  # 60 letters with the quotes
    long = validation.shown("a" * 59)
    assert len(long) == 60
    assert long.endswith("a...")
    assert validation.shown(np.float64(0.5)) == "0.5"
    assert validation.where(()) == "the value"
    assert validation.where((3,)) == "row 3"
    assert validation.where((3, 1, 2)) == "row 3, column 1, column 2"


def test_rows_are_a_mask_or_numbers():
    for rows in ([True, False, True], [0, 2], [-3, 2], [], np.array([], int)):
        if len(rows):
            assert_array_equal(validation.check_rows(rows, 3), rows)
    assert validation.check_rows(np.array([], int), 3).shape == (0,)
    wrong = ([True, False], [True] * 4, [3], [-4], [0.0], [[0]], [[True, False, True]], "x", 1, True, [])
    for rows in wrong:
        assert "rows" in refusal(validation.check_rows, rows, 3)
    assert refusal(validation.check_rows, [3], 3).endswith("for each of the 3 rows, or numbers of rows from 0 to 2")


def test_points_of_a_curve_are_finite_and_match():
    assert_array_equal(validation.check_points([0, 1], "scores"), [0.0, 1.0])
    assert_array_equal(validation.check_points([0, 1], "rates", (2,)), [0.0, 1.0])
    assert validation.check_points(0.5, "rates", (2,)) == 0.5
    assert "not inf" in refusal(validation.check_points, [0, np.inf], "scores")
    assert "rates have shape (1,), but the scores (2,)" in refusal(validation.check_points, [0], "rates", (2,))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_numbers_outside_the_unit_interval_are_seen_by_their_bits(dtype):
    one, none = dtype(1), dtype(0)
    inside = [none, -none, one, np.nextafter(none, one), np.nextafter(one, none), dtype(0.5)]
    outside = [
        np.nextafter(one, dtype(2)),
        np.nextafter(none, -one),
        -one,
        dtype(np.nan),
        -dtype(np.nan),
        dtype(np.inf),
    ]
    for position, value in product(range(3), inside + outside):
        values = np.array([0.25, 0.5, 0.75], dtype)
        values[position] = value
        for array in (values, np.repeat(values, 2)[::2]):  # the second is not contiguous
            if value in inside:
                validation.refuse_outside_unit(array, "scores")
            else:
                assert f"row {position} is" in refusal(validation.refuse_outside_unit, array, "scores")


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 3000])
def test_columns_become_rows_whatever_their_length(rows):
    matrix = np.random.default_rng(0).random((rows, 7)).astype(np.float32)
    for part in (matrix, matrix[:, 2:5], matrix[::-1], np.asfortranarray(matrix)):
        columns = validation.transpose(part)
        assert_array_equal(columns, part.T)
        assert columns.flags.c_contiguous
        assert columns.dtype == part.dtype
