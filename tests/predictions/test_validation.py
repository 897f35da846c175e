"""What validation refuses, and in which words."""

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import truecal as tc

GOOD = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
BINARY = np.array([0.2, 0.9, 0.5])


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


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
    "a sparse matrix": (csr_array([[0.9, 0.0]]), [1], {}, "sparse matrix; convert them by .toarray"),
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
    "classes a set": (GOOD, ["a", "b", "c"], {"classes": {"a", "b", "c"}}, "set, which lists no names in order"),
    "classes one text": (GOOD, ["a", "b", "c"], {"classes": "abc"}, "str, which lists no names"),
    "classes a number": (GOOD, [0, 1, 2], {"classes": 3}, "must be a list of names, not 3"),
    "classes alike as text": (BINARY, [1, "1", 1], {"classes": [1, "1"]}, "'1' reads like 1"),
    "class without a name": (BINARY, ["a", "b", "a"], {"classes": ["a", None]}, "class name 1 is None"),
    "class a list": (BINARY, [0, 1, 1], {"classes": [[1], [2]]}, r"class name 0 is \[1\]"),
    "cluster None": (BINARY, [0, 1, 1], {"clusters": ["a", None, "a"]}, "clusters: row 1 is None"),
    "cluster nan among text": (BINARY, [0, 1, 1], {"clusters": ["a", "b", float("nan")]}, "row 2 is nan"),
    "cluster NaT": (
        BINARY,
        [0, 1, 1],
        {"clusters": np.array(["NaT", "2020-01-01", "NaT"], "M8[D]")},
        "row 0 is None",
    ),
    "cluster NA": (BINARY, [0, 1, 1], {"clusters": pd.array(["a", pd.NA, "b"])}, "row 1 is <NA>"),
    "cluster a list": (
        BINARY,
        [0, 1, 1],
        {"clusters": objects([1], 2, 3)},
        r"row 0 is \[1\] \(list\); give numbers or text",
    ),
    "numbers as text objects": (objects("0.9", "0.2"), [1, 0], {}, "not text; read the column as numbers"),
    "weights as text objects": (BINARY, [1, 0, 1], {"weights": objects("1", "2", "1")}, "weights must be numbers, not"),
    "None among numbers": (objects(0.9, None), [1, 0], {}, "must be numbers: row 1 is None"),
    "too large for a float": ([0.5, 10**400], [1, 0], {}, "must be numbers: row 1 is 1000"),
    "complex": ([0.5 + 0j, 0.2], [1, 0], {}, "must be numbers"),
    "weights beyond counting": (BINARY, [0, 1, 1], {"weights": [1e160, 1e160, 1e160]}, "exact only up to"),
    "weights too small": (BINARY, [0, 1, 1], {"weights": [1e-300] * 3}, "row 0 weighs 1e-300"),
    "weights too far apart": (
        BINARY,
        [0, 1, 1],
        {"weights": [1, 1e-13, 1]},
        "row 1 weighs 1e-13 beside a largest of 1",
    ),
    "column a number": (BINARY, [0, 1, 1], {"columns": {"age": 5}}, "'age' has 1 values"),
    "columns a list": (BINARY, [0, 1, 1], {"columns": [1, 2]}, "columns must map names to values"),
    "column name a number": (BINARY, [0, 1, 1], {"columns": {1: [1, 2, 3]}}, "named by text, not 1"),
    "probabilities a set": ({0.2, 0.9, 0.5}, [0, 1, 1], {}, "set, which has no rows in order"),
    "an Arrow column with nulls": (pa.array([0.5, None, 0.2]), [0, 1, 1], {}, "row 1 is None"),
    "an Arrow column of nulls": (BINARY, pa.array([None] * 3), {}, "every row needs a label"),
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
        tc.profile.Profile.from_arrays(scores, outcomes)


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


@pytest.mark.parametrize("precision", [">f2", ">f4", ">f8"])
def test_the_order_of_bytes_does_not_matter(precision):
    labels = np.array([0, 1, 2], ">i4")
    estimate = tc.calibration_error(labels, GOOD.astype(precision), estimator=tc.BinnedECE())
    plain = tc.calibration_error([0, 1, 2], GOOD.astype(precision.replace(">", "<")), estimator=tc.BinnedECE())
    assert estimate.value == plain.value


@pytest.mark.parametrize(
    "kept",
    [
        pa.array([False, True, True]),
        pa.chunked_array([[0], [1, 1]]),
        pd.array([0, 1, 1], dtype="Int64"),
        memoryview(np.array([0, 1, 1])),
        objects(0, 1, 1) == 1,
    ],
)
def test_labels_of_any_container(kept):
    np.testing.assert_array_equal(tc.Predictions.from_probs(BINARY, kept).labels, [0, 1, 1])


def test_names_that_numpy_would_join_stay_apart():
    preds = tc.Predictions.from_probs(BINARY, ["a", "a\0", "a"], classes=["a", "a\0"])
    np.testing.assert_array_equal(preds.labels, [0, 1, 0])
    mixed = tc.Predictions.from_probs(BINARY, [1, "one", 1], classes=[1, "one"], clusters=[7, "7", 7])
    np.testing.assert_array_equal(mixed.labels, [0, 1, 0])
    np.testing.assert_array_equal(mixed.clusters, [0, 1, 0])


@pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))])
def test_predictions_travel(again):
    preds = tc.Predictions.from_probs(
        GOOD, list("abc"), weights=[1, 2, 1], clusters=[0, 1, 1], classes=list("abc"), columns={"site": ["x", "y", "x"]}
    )
    there = again(preds)
    assert there.classes == preds.classes
    assert str(tc.measure(there)) == str(tc.measure(preds))
    for name in ("probs", "labels", "weights", "clusters"):
        np.testing.assert_array_equal(getattr(there, name), getattr(preds, name))
    with pytest.raises(TypeError):
        there.columns["site"] = []


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.uint64, np.float32]
)
def test_labels_keep_their_size_and_mean_the_same(dtype):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    wide = (rng.random(300) < p).astype(np.int64)
    labels = wide.astype(dtype)
    preds, plain = tc.Predictions.from_probs(p, labels), tc.Predictions.from_probs(p, wide)
    assert preds.labels.dtype.kind == "i"
    if np.dtype(dtype).kind != "f":
        assert preds.labels.dtype.itemsize == labels.dtype.itemsize
        assert np.shares_memory(preds.labels, labels)
    np.testing.assert_array_equal(preds.labels, wide)
    for lens in (tc.OneClass(), tc.TopLabel(), tc.ClassWise(), tc.AllLabels()):
        assert str(tc.measure(preds, lens=lens, estimator=tc.BinnedECE())) == str(
            tc.measure(plain, lens=lens, estimator=tc.BinnedECE())
        )
    assert tc.TopK(1).sample(preds).labels.tolist() == tc.TopK(1).sample(plain).labels.tolist()
    assert tc.scores.brier(preds) == tc.scores.brier(plain)
    fitted, other = (tc.recalibration.PlattScaling().fit(p, x.labels).predict_proba(p) for x in (preds, plain))
    np.testing.assert_array_equal(fitted, other)


def test_many_classes_fit_into_bytes_or_are_widened():
    probs = np.full((200, 200), 1 / 200)
    labels = np.arange(200).astype(np.uint8)
    preds = tc.Predictions.from_probs(probs, labels)
    np.testing.assert_array_equal(preds.labels, np.arange(200))
    assert preds.labels.dtype.kind == "i"


def test_tensors():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(tc.Predictions.from_probs(BINARY, torch.tensor([0, 1, 1])).labels, [0, 1, 1])
    assert len(tc.Predictions.from_probs(torch.tensor(BINARY, requires_grad=True), [0, 1, 1])) == 3
    for tensor, message in (
        (torch.tensor(BINARY).to_sparse(), "sparse tensor; convert them by .to_dense"),
        (torch.empty(3, device="meta"), "meta device"),
        ([torch.tensor(0.5, requires_grad=True)] * 3, "do not form an array"),
    ):
        with pytest.raises(tc.InputError, match=message):
            tc.Predictions.from_probs(tensor, [0, 1, 1])
