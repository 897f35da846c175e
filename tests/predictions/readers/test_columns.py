"""Which columns are read when the user does not say."""

import pytest

from truecal.errors import InputError
from truecal.predictions.frames import choose


@pytest.mark.parametrize(
    ("columns", "label", "probs", "logits"),
    [
        (["y", "p"], "y", "p", None),
        (["Label", "Score"], "Label", "Score", None),
        (["id", "target", "p_a", "p_b"], "target", "p_*", None),
        (["y", "p0", "p1", "p2"], "y", "p*", None),
        (["y", "logit_0", "logit_1"], "y", None, "logit_*"),
        (["y", "prob_x", "prob_y", "z_x", "z_y"], "y", "prob_*", None),  # both: probabilities, and it says so
        (["labels", "logits"], "labels", None, "logits"),
    ],
)
def test_detected(columns, label, probs, logits):
    choice = choose(columns, label=None, probs=None, logits=None)
    assert (choice.label, choice.probs, choice.logits) == (label, probs, logits)
    assert choice.describe(columns).count("[detected]") == 2


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["y", "label", "p"], "several columns could be the label"),
        (["outcomes", "p"], "no column is named like a label"),
        (["y", "p", "score"], "several columns could be the prediction"),
        (["y", "sureness"], "no column is named like a prediction"),
        (["y", "p0", "p1", "patient"], "no column is named like a prediction"),
        (["y", "patient", "place"], "no column is named like a prediction"),
    ],
)
def test_undecidable_is_asked(columns, words):
    with pytest.raises(InputError, match=words):
        choose(columns, label=None, probs=None, logits=None)


def test_names_in_a_list_are_no_patterns():
    """The column "y*" matched the label, so that none was left."""
    assert choose(["y", "y*", "q"], label=None, probs=["y*", "q"], logits=None).label == "y"
    assert choose(["y", "target", "q"], label=None, probs="t*", logits=None).label == "y"


def test_what_is_named_is_not_detected():
    choice = choose(["y", "label", "p", "score"], label="y", probs="score", logits=None)
    assert choice.describe(["y", "label", "p", "score"]) == "label 'y', probabilities 'score'"


def test_weights_and_clusters_are_not_taken_for_predictions():
    assert choose(["y", "p", "score"], label=None, probs=None, logits=None, other=["score"]).probs == "p"
