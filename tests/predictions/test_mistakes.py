"""Mistakes that gave a number: a column named twice, logits that are none, codes in another order, rows in another order."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import truecal as tc
from truecal.engines import scan

RNG = np.random.default_rng(0)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)


@pytest.fixture
def animals(tmp_path):
    """Class-named columns that are not in alphabetical order, with labels as codes in the order of the columns."""
    probs = RNG.dirichlet(np.ones(3), 300)
    labels = (probs.cumsum(axis=1) < RNG.random((300, 1))).sum(axis=1)
    columns = {f"p_{name}": probs[:, k] for k, name in enumerate(("dog", "fox", "cat"))}
    path = tmp_path / "animals.parquet"
    pl.DataFrame({"y": labels, **columns}).write_parquet(path)
    return path, probs, labels


@pytest.mark.parametrize("probs", [Y.astype(float), np.eye(2)[Y]], ids=["one column", "two columns"])
def test_labels_given_as_scores_are_warned_of(probs):
    assert "labels were given as scores" in " ".join(tc.calibration_error(Y, probs).warnings)
    wrong = Y.copy()
    wrong[150] = 1 - wrong[150]
    assert "labels were given" not in " ".join(tc.calibration_error(wrong, probs).warnings)


def test_one_column_as_label_and_score_is_refused(tmp_path):
    frame = pl.DataFrame({"y": Y, "p": P})
    frame.write_csv(tmp_path / "a.csv")
    np.savez(tmp_path / "a.npz", y=Y, p=P)
    for call in (
        lambda: tc.Predictions.from_frame(frame, label="y", probs="y"),
        lambda: tc.Predictions.from_frame(frame, label="y", probs="p", weights="p"),
        lambda: tc.Predictions.from_frame(frame, label="y", probs="p", weights="y"),
        lambda: tc.read(tmp_path / "a.csv", label="y", score="y"),
        lambda: tc.read(tmp_path / "a.npz", label="y", probs="y"),
        lambda: scan(frame, label="y", score="y"),
        lambda: scan(tmp_path / "a.csv", label="y", score="p", weights="y"),
    ):
        with pytest.raises(tc.InputError, match=r"is named as the (label|weights) and as the"):
            call()


def test_probabilities_declared_as_logits_or_percent_warn(tmp_path):
    both = np.stack([1 - P, P], axis=1)
    frame = pl.DataFrame({"y": Y, "p": P, "q_0": both[:, 0], "q_1": both[:, 1]})
    frame.write_csv(tmp_path / "a.csv")
    for call in (
        lambda: tc.Predictions.from_logits(P, Y),
        lambda: tc.Predictions.from_logits(both, Y),
        lambda: tc.read(tmp_path / "a.csv", label="y", logits="p"),
        lambda: scan(frame, label="y", logits="p"),
        lambda: scan(frame, label="y", logits="q_*"),
    ):
        with pytest.warns(tc.TruecalWarning, match="look like probabilities"):
            call()
    with pytest.warns(tc.TruecalWarning, match="declared percent and has no value above 1"):
        tc.read(tmp_path / "a.csv", label="y", score="p", percent=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.Predictions.from_logits(RNG.normal(size=200), Y)
        tc.Predictions.from_logits(RNG.random((200, 3)), Y)
        scan(pl.DataFrame({"y": Y, "z": RNG.normal(size=200)}), label="y", logits="z")


def test_codes_of_named_columns_out_of_order_are_refused_and_mapped_when_told(animals):
    path, probs, labels = animals
    for call in (lambda: tc.read(path), lambda: scan(path, label="y", probs="p_*")):
        with pytest.raises(tc.InputError, match=r"label 0 may mean 'dog' .*or 'cat'.*dog,fox,cat, or cat,dog,fox"):
            call()
    options = []
    preds = tc.read(path, classes=["dog", "fox", "cat"], progress=options.append)
    np.testing.assert_array_equal(preds.probs, probs)
    assert "labels 0 = 'p_dog', 1 = 'p_fox', 2 = 'p_cat'" in options[0]
    alphabetical = tc.read(path, classes=["cat", "dog", "fox"])
    np.testing.assert_array_equal(alphabetical.probs, probs[:, [2, 0, 1]])
    np.testing.assert_array_equal(alphabetical.labels, labels)


def test_pandas_index_in_another_order_is_refused():
    y = pd.Series(Y)
    p = pd.Series(P).sample(frac=1, random_state=0)
    for call in (
        lambda: tc.calibration_error(y, p),
        lambda: tc.Predictions.from_probs(p, y),
        lambda: tc.Predictions.from_logits(p, y),
        lambda: tc.calibration_error(y, p.sort_index(), sample_weight=p),
        lambda: tc.compare(y, p, p),
    ):
        with pytest.raises(tc.InputError, match="same index in another order, and rows are paired by position"):
            call()
    assert float(tc.calibration_error(y, p.loc[y.index])) == float(tc.calibration_error(Y, P))
    assert float(tc.calibration_error(y, pd.Series(P, index=range(200, 400)))) == float(tc.calibration_error(Y, P))


def test_comparison_of_rows_in_another_order_is_refused():
    order = RNG.permutation(200)
    one, other = tc.Predictions.from_probs(P, Y), tc.Predictions.from_probs(P[order], Y[order])
    with pytest.raises(tc.InputError, match="same labels in another order"):
        tc.compare(one, other)
    assert tc.compare(one, other, paired=False).difference == pytest.approx(0, abs=1e-12)
    tc.compare(tc.Predictions.from_answers(P, Y), tc.Predictions.from_answers(P[order], Y[order]))


@pytest.mark.parametrize("value", [1 + 1e-9, -1e-17])
def test_rounding_is_named_as_such(value):
    with pytest.raises(tc.InputError, match=r"row 1 is .*this is rounding: clip"):
        tc.Predictions.from_probs([0.5, value], [0, 1])
    with pytest.raises(tc.InputError, match="this is rounding: clip"):
        scan(pl.DataFrame({"p": [0.5, value], "y": [0, 1]}), label="y", score="p")


def test_softmax_in_bfloat16_is_accepted():
    torch = pytest.importorskip("torch")
    logits = torch.randn(500, 10, generator=torch.Generator().manual_seed(0))
    probs = torch.softmax(logits.to(torch.bfloat16), dim=1)
    assert len(tc.Predictions.from_probs(probs, torch.zeros(500, dtype=torch.int64))) == 500
    with pytest.raises(tc.InputError, match="sum to"):
        tc.Predictions.from_probs(probs.float() * 1.0037, torch.zeros(500, dtype=torch.int64))


def test_object_labels():
    np.testing.assert_array_equal(tc.Predictions.from_probs(P, Y.astype(object)).labels, Y)
    for missing in (None, float("nan")):
        labels = Y.astype(object)
        labels[3] = missing
        with pytest.raises(tc.InputError, match=r"labels: row 3 is .*every row needs a label"):
            tc.Predictions.from_probs(P, labels)
    with pytest.raises(tc.InputError, match="labels: row 0 is nan; every row needs a label"):
        tc.Predictions.from_probs(P, np.where(np.arange(200) == 0, np.nan, Y))


def test_frame_with_two_columns_of_one_name_is_refused():
    frame = pd.DataFrame(np.stack([Y, P, P], axis=1), columns=["y", "p", "p"])
    with pytest.raises(tc.InputError, match="two columns of the frame have the same name"):
        tc.Predictions.from_frame(frame, label="y", probs="p")


def test_answers_scored_by_words_are_refused_with_the_comparison_to_write():
    words = np.where(Y, "C", "I")  # in alphabetical order "I" would count as correct
    with pytest.raises(tc.InputError, match=r"correct must be 0 or 1, not text; .*such as correct == '[CI]'"):
        tc.Predictions.from_answers(P, words)
    assert tc.Predictions.from_answers(P, words == "C").labels.sum() == Y.sum()


def test_two_labels_as_words_give_the_same_everywhere(tmp_path):
    words = np.where(Y, "yes", "no")
    frame = pl.DataFrame({"y": words, "p": P})
    expected = tc.calibration_error(Y, P, estimator=tc.BinnedECE()).value
    for i, part in enumerate((frame.filter(pl.col("y") == "no"), frame.filter(pl.col("y") == "yes"))):
        part.write_parquet(tmp_path / f"{i}.parquet")
        part.write_csv(tmp_path / f"{i}.csv")
    for source in (frame, frame.lazy(), tmp_path / "*.parquet", tmp_path / "*.csv"):
        counted = scan(source, label="y", score="p")
        assert counted.lens_name == "class yes"
        assert counted.measure(estimator=tc.BinnedECE()).value == pytest.approx(expected, abs=1e-12)
    three = pl.DataFrame({"y": [*words[:-1], "maybe"], "p": P})
    for call in (
        lambda: scan(three, label="y", score="p"),
        lambda: tc.Predictions.from_frame(three, label="y", probs="p"),
    ):
        with pytest.raises(tc.InputError, match="labels have 3 values"):
            call()


def test_labels_that_are_no_whole_numbers_are_counted_by_scans():
    for wrong in (0.5, 2.0, -1.0, np.inf):
        frame = pl.DataFrame({"y": [*Y[:-1].astype(float), wrong], "p": P})
        with pytest.raises(tc.InputError, match="1 label in 'y' not an index from 0 to 1"):
            scan(frame, label="y", score="p")


def test_the_remedy_is_that_of_the_call():
    accumulator = tc.Accumulator()
    for call, remedy in (
        (lambda: accumulator.update(P, Y), "y_true comes first"),
        (lambda: tc.Predictions.from_answers(Y, P), "the confidence comes first in from_answers"),
        (lambda: tc.Predictions.from_probs(Y, P), "probabilities come first in from_probs"),
        (lambda: tc.Predictions.from_probs({"a": P}, Y), "probabilities are a dict"),
        (lambda: tc.by_output(0.5, 0.9), "the limits of the output are low= and high="),
        (lambda: tc.by_column("site", ["a", "b"]), r"one after the other \(by_column\('site', 1, 2\)\)"),
        (lambda: tc.read(pd.DataFrame({"y": Y})), "read by tc.Predictions.from_frame"),
        (lambda: tc.Predictions.from_frame(pd.DataFrame({"y": Y, "p": P}), label=0, probs="p"), "there is no column 0"),
        (lambda: scan(pl.DataFrame({"y": Y, "p": P}), label=0, score="p"), "columns must be named by text, not by 0"),
        (lambda: scan(pl.DataFrame({"y": Y, "p": P}), label="y", score="p", by=3), "named by text, not by 3"),
        (lambda: scan("no such file", label="y"), "say where the predictions are"),
        (lambda: tc.Predictions.from_multilabel([[0.5, 0.5]], [[0, 2]]), "labels must be 0 or 1: row 0, column 1 is 2"),
        (lambda: tc.calibration_error(["a", "b"], [[0.5, 0.25, 0.25]] * 2), r"labels are text \(first 'a'\)"),
    ):
        with pytest.raises(tc.InputError, match=remedy):
            call()


def test_models_whose_classes_are_in_another_order_are_compared(animals):
    _, probs, labels = animals
    names = np.array(["dog", "fox", "cat"])
    first = tc.Predictions.from_probs(probs, names[labels], classes=list(names))
    turned = tc.Predictions.from_probs(probs[:, ::-1], names[labels], classes=list(names[::-1]))
    assert tc.compare(first, turned, resamples=20).difference == pytest.approx(0.0, abs=1e-12)
    other = tc.Predictions.from_probs(probs[:, ::-1], names[(labels + 1) % 3], classes=list(names[::-1]))
    with pytest.raises(tc.InputError, match="do not hold the same rows"):
        tc.compare(first, other)


def test_long_names_of_columns_are_shortened_in_refusals():
    frame = pl.DataFrame({"y": Y, "9" * 5000: P})
    for call in (
        lambda: scan(frame, label="y", score="p"),
        lambda: tc.Predictions.from_frame(frame, label="y", probs="p"),
    ):
        with pytest.raises(tc.InputError, match=r"there is no column 'p'; the columns are y, 9{57}\.\.\.$"):
            call()
    with pytest.raises(tc.InputError, match=r"the columns are y, a\\nb$"):
        scan(pl.DataFrame({"y": Y, "a\nb": P}), label="y", score="p")
