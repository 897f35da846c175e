"""What is refused at the border, and in which words."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import truecal as tc

GOOD = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
BINARY = np.array([0.2, 0.9, 0.5])


def changed(at, value, base=GOOD):
    array = np.array(base)
    array[at] = value
    return array


REFUSED = {
    "nan": (changed((1, 0), np.nan), [0, 1, 2], {}, r"row 1, column 0 is nan"),
    "infinite": (changed((2, 1), np.inf), [0, 1, 2], {}, r"row 2, column 1 is inf"),
    "logits": (np.array([[4.2, -1.0], [0.3, 0.1]]), [0, 1], {}, r"row 0, column 0 is 4.2.*from_logits"),
    "percent": (np.array([88.0, 42.0]), [0, 1], {}, r"percentages; divide by 100"),
    "does not sum": (changed((1, 1), 0.5), [0, 1, 2], {}, r"row 1 sum to 0.7, not 1.*tolerance 0.001"),
    "one column": (np.ones((3, 1)), [0, 0, 0], {}, "one column"),
    "three dimensions": (np.ones((2, 2, 2)), [0, 1], {}, "one- or two-dimensional"),
    "ragged": ([[0.5, 0.5], [1.0]], [0, 1], {}, "different lengths"),
    "text": (["a", "b"], [0, 1], {}, "must be numbers.*'a'"),
    "a sparse matrix": (csr_array([[0.9, 0.0]]), [1], {}, "sparse matrix; give"),
    "text alone": ("0.9", [1], {}, "must be numbers"),
    "nan as text": (["0.9", "nan"], [1, 0], {}, "must be numbers: row 1 is 'nan'"),
    "numbers as text": (["0.9", "0.2"], [1, 0], {}, "not text; read the column as numbers"),
    "empty": (np.empty((0, 3)), [], {}, "empty"),
    "label too large": (GOOD, [0, 1, 3], {}, r"row 2 is 3, but there are 3 classes"),
    "label negative": (GOOD, [0, -2, 1], {}, r"row 1 is -2"),
    "labels from one": (GOOD, [1, 2, 3], {}, r"labels 1..3 need classes=range\(1, 4\)"),
    "labels -1/1": (BINARY, [-1, 1, 1], {}, r"classes=\[-1, 1\]"),
    "label fraction": (GOOD, [0, 1.5, 2], {}, r"row 1 is 1.5"),
    "label nan": (GOOD, [0, np.nan, 2], {}, r"row 1 is nan"),
    "label names without classes": (GOOD, ["a", "b", "c"], {}, r"classes=\[...\]"),
    "label not a class": (GOOD, ["a", "b", "x"], {"classes": ["a", "b", "c"]}, r"row 2 is 'x'"),
    "indices with names": (
        GOOD,
        [0, 1, 2],
        {"classes": ["a", "b", "c"]},
        r"'a', 'b', 'c'.*class indices need no classes=",
    ),
    "one-hot": (GOOD, np.eye(3), {}, "one-hot"),
    "too few labels": (GOOD, [0, 1], {}, "3 rows of probabilities but 2 labels"),
    "class count": (GOOD, [0, 1, 2], {"classes": ["a", "b"]}, "2 class names were given for 3"),
    "class twice": (GOOD, ["a", "b", "a"], {"classes": ["a", "b", "a"]}, "'a' is given twice"),
    "swapped": ([0, 1, 1], BINARY, {}, "swapped"),
    "swapped two-dimensional": ([0, 1, 2], GOOD, {}, "swapped"),
    "weight negative": (BINARY, [0, 1, 1], {"weights": [1, -1, 1]}, "row 1 is -1"),
    "weight nan": (BINARY, [0, 1, 1], {"weights": [1, np.nan, 1]}, "row 1 is nan"),
    "weights all zero": (BINARY, [0, 1, 1], {"weights": [0, 0, 0]}, "all weights are zero"),
    "weights length": (BINARY, [0, 1, 1], {"weights": [1, 1]}, "one weight per row"),
    "clusters length": (BINARY, [0, 1, 1], {"clusters": [1, 1]}, "one cluster label per row"),
    "column length": (BINARY, [0, 1, 1], {"columns": {"age": [3]}}, "'age' has 1 values"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_refused_with_row_value_and_remedy(case):
    probs, labels, options, message = REFUSED[case]
    with pytest.raises(tc.InputError, match=message):
        tc.Predictions.from_probs(probs, labels, **options)


def test_errors_are_value_errors_too():
    with pytest.raises(ValueError, match="swapped"):
        tc.calibration_error(BINARY, [0, 1, 1])


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([[1.0, np.nan]], "row 0, column 1 is nan"),
        ([[np.inf, 0.0]], "row 0, column 0 is inf"),
        ([[0.0, 1.0], [-np.inf, -np.inf]], "every class of row 1 is -inf"),
        ([[1.0], [2.0]], "one column per class"),
        ([], "empty"),
    ],
)
def test_bad_logits(logits, message):
    with pytest.raises(tc.InputError, match=message):
        tc.Predictions.from_logits(logits, [0] * len(logits))


@pytest.mark.parametrize(
    ("scores", "outcomes", "message"),
    [
        ([0.5, 1.2], [0, 1], "row 1 is 1.2"),
        ([0.5, 0.2], [0, 2], "row 1 is 2"),
        ([0, 1], [0.5, 0.2], "swapped"),
        ([0.5], [0, 1], "must match"),
        ([], [], "empty"),
        ([0.5, 0.1], ["a", "b"], "0 or 1"),
    ],
)
def test_bad_profiles(scores, outcomes, message):
    with pytest.raises(tc.InputError, match=message):
        tc.Profile.from_arrays(scores, outcomes)


def test_masked_arrays_are_not_unmasked_silently():
    masked = np.ma.masked_array([0.2, 0.9, 0.5], [False, True, False])
    with pytest.raises(tc.InputError, match="masked"):
        tc.Predictions.from_probs(masked, [0, 1, 1])


def test_nothing_is_modified_copied_or_repaired():
    probs = np.array(GOOD, np.float32)
    labels, weights = np.array([0, 1, 2]), np.array([1.0, 2.0, 0.5])
    before = probs.copy(), labels.copy(), weights.copy()
    preds = tc.Predictions.from_probs(probs, labels, weights=weights)
    for lens in (tc.TopLabel(), tc.OneClass(1), tc.ClassWise()):
        tc.measure(preds, lens=lens)
    assert preds.probs is probs
    for now, then in zip((probs, labels, weights), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_a_confidence_of_exactly_one_or_zero_is_legal():
    est = tc.calibration_error([1, 1, 0, 0], [1.0, 1.0, 0.0, 0.0], estimator=tc.BinnedECE())
    assert est.value == 0


def test_the_sum_tolerance_is_where_it_says():
    near = np.array([[0.5, 0.5009], [0.5, 0.4991]])
    assert len(tc.Predictions.from_probs(near, [0, 1])) == 2
    with pytest.raises(tc.InputError, match="sum to"):
        tc.Predictions.from_probs(np.array([[0.5, 0.5011]]), [0])
