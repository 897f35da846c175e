"""Several labels per row in a table: which columns are read, in which order, and which are kept."""

import polars as pl
import pytest

import truecal as tc

TABLE = pl.DataFrame(
    {"y_b": [0, 1, 1], "y_a": [1, 0, 1], "p_a": [0.9, 0.2, 0.6], "p_b": [0.1, 0.7, 0.8], "site": ["n", "s", "n"]}
)


def read(tmp_path, frame, **options):
    frame.write_csv(tmp_path / "a.csv")
    return tc.read(tmp_path / "a.csv", multilabel=True, **options)


def test_labels_are_in_the_order_of_the_probabilities_and_other_columns_are_kept(tmp_path):
    preds = read(tmp_path, TABLE)
    assert preds.classes == ("a", "b")
    assert preds.labels.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert preds.probs.tolist() == [[0.9, 0.1], [0.2, 0.7], [0.6, 0.8]]
    assert list(preds.columns) == ["site"]


def test_patterns_of_columns_may_be_given_and_grouped_columns_are_kept(tmp_path):
    renamed = TABLE.rename({name: name.replace("p_", "q_").replace("y_", "t_") for name in TABLE.columns})
    preds = read(tmp_path, renamed, probs="q_*", label="t_*", classes=["one", "two"])
    assert preds.classes == ("one", "two")
    assert preds.labels.tolist() == [[1, 0], [0, 1], [1, 1]]


def test_labels_without_probabilities_are_refused_by_name(tmp_path):
    with pytest.raises(tc.InputError, match="name different labels: 'b' is in one of them only"):
        read(tmp_path, TABLE.drop("p_b"))


def test_columns_of_several_labels_are_recognised_in_the_refusal_of_one(tmp_path):
    TABLE.write_csv(tmp_path / "a.csv")
    with pytest.raises(tc.InputError, match=r"y_b, y_a are labels .* \(--multilabel\)"):
        tc.read(tmp_path / "a.csv")
