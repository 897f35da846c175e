"""Arguments that no one expects are refused in a sentence that names them: one case of each kind that `make hostile` found."""

import numpy as np
import pandas as pd
import pytest

import truecal as tc
from truecal.errors import TruecalError

Y, P = np.arange(40) % 2, np.linspace(0.1, 0.9, 40)
PREDS = tc.Predictions.from_probs(
    P,
    Y,
    columns={
        "wide": np.zeros((40, 3)),
        "mixed": np.array([1, "1"] * 20, object),
        "lists": pd.Series([[1], [2, 3]] * 20),
        "gone": pd.Series([pd.NA, "a"] * 20, dtype="string"),
    },
)
MASKED = np.ma.masked_array(P, np.arange(40) == 0)
BOTH = np.c_[1 - P, P]


class Unreadable:
    """Something that fails when it is asked for its values."""

    def __array__(self, *_: object) -> None:
        raise KeyError


CASES = {
    # names of files
    "a name longer than any": (lambda: tc.read("a" * 1000), "there is no file"),
    "no file at all": (lambda: tc.scan((), label="y", score="p"), "no file is named"),
    "a path of None": (lambda: tc.Sketch.load(None), "path must be text or a Path, not None"),
    # arrays that are none
    "an unreadable array": (
        lambda: tc.calibration_error(Y, Unreadable()),
        "probabilities do not form an array: KeyError",
    ),
    "times for probabilities": (lambda: tc.calibration_error(Y, P.astype("m8[s]")), "must be numbers: row 0"),
    "masked values": (lambda: tc.clinical.censoring_weights(MASKED, Y, 0.5), "time are masked in places"),
    "numbers as text": (lambda: tc.clinical.net_benefit(PREDS, ["0.1", "0.2"]), "thresholds must be numbers, not text"),
    "complex scores": (
        lambda: tc.inference.band(tc.profile.Profile.from_arrays(P, Y)).at(1j * P),
        "scores must be numbers",
    ),
    "one row of none": (lambda: tc.Sketch().update(0.5, 1), "one- or two-dimensional"),
    "arrays of other lengths": (lambda: tc.clinical.censoring_weights(P, Y, 0.5).predictions([0.5]), "40 labels"),
    # columns
    "a column of three values a row": (lambda: tc.measure(PREDS, select=tc.by_column("wide", 1)), r"shape \(40, 3\)"),
    "values that read alike": (lambda: tc.Watch(by="mixed").update(PREDS, at=1), "two values of column 'mixed' read"),
    "lists in a column": (
        lambda: tc.Watch(by="lists").update(PREDS, at=1),
        r"row 0 is \[1\] \(list\); give numbers or text",
    ),
    "a missing key": (lambda: tc.compare(PREDS, PREDS, key="gone"), "row 0 is <NA>; every row needs a key"),
    "a value of NaN": (lambda: tc.by_column("site", np.nan), "for missing values say where="),
    # classes
    "classes that read alike": (lambda: tc.Predictions.from_probs(BOTH, Y, classes=[1, 1.0]), "1.0 reads like 1"),
    "a function for a class": (lambda: tc.by_label(len), "a class is named by a number or text"),
    "more classes than there are": (lambda: tc.TopK(2**63).parts(PREDS), "there are only 2 classes"),
    # settings
    "a level of None": (lambda: tc.calibration_error(Y, P, level=None), "level must lie strictly between 0 and 1"),
    "a span of time for a number": (lambda: tc.verify(PREDS, threshold=np.timedelta64(0)), r"must lie in \[0, 1\]"),
    "a negative seed": (lambda: tc.calibration_error(Y, P, rng=-1), "rng must be a whole number of at least 0"),
    "a seed of NaN": (lambda: tc.GeneralizedECE(rng=np.nan), "rng must be a whole number"),
    "bins beyond all memory": (lambda: tc.estimators.AdaptiveECE(bins=10**30), "bins must be at most"),
    "a norm as text": (lambda: tc.lab.World(tc.lab.Uniform()).true_error(norm="2"), "norm must be a finite number"),
    "a horizon beyond all rows": (lambda: tc.clinical.censoring_weights(P, Y, horizon=10**30), "nobody was followed"),
    "no names": (lambda: tc.inference.compare(Y, P, P, names=np.full(2, np.nan)), "names must be two different texts"),
    "a class for a lens": (lambda: tc.calibration_error(Y, P, lens=tc.TopLabel), "lens must be one of truecal's"),
    "arrays for predictions": (lambda: tc.measure(P), "preds must be Predictions or a Sketch, not ndarray"),
    "a list for a mapping": (lambda: tc.inference.compare_many(Y, [P, P]), "probs must be a mapping"),
    "an array for a frame": (lambda: tc.study.covariate_trend(P, "size"), "ndarray is not a data frame"),
    "nothing to draw": (lambda: tc.plot.AbstentionDisplay.from_curves({}), "there is nothing to draw"),
    "no axes": (lambda: tc.plot.ReliabilityDisplay.from_predictions(Y, BOTH, ax=0), "ax must be axes of matplotlib"),
    "an event in ten million rows": (
        lambda: tc.clinical.sample_size_by_simulation(P * 1e-200, widths={"oe": 0.2}),
        "fewer than 20 events in 10,000,000 rows",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_by_name(name):
    call, words = CASES[name]
    with pytest.raises(TruecalError, match=words):
        call()
