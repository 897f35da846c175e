"""Recalibrators as JSON: exact, readable, and suspicious of edits."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from truecal.errors import FileError, InputError
from truecal.recalibration import (
    BetaCalibration,
    BiasCorrectedTemperature,
    CenteredIsotonic,
    DirichletCalibration,
    EnsembleTemperature,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PriorShift,
    Recalibrator,
    ScalingBinning,
    SharedBinning,
    SplineCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    TopVersusAll,
    VectorScaling,
    VennAbers,
)

RECALIBRATORS = [
    TemperatureScaling(input="probs"),
    BiasCorrectedTemperature(input="probs", classes=["a", "b", "c"]),
    VectorScaling(input="probs", classes=(7, 8, 9)),
    PlattScaling(normalize=False),
    BetaCalibration(parameters=2, clip=1e-6),
    BetaCalibration(multiclass="top-label"),
    IsotonicCalibration(classes=np.array([2, 3, 5])),
    HistogramBinning(bins=7),
    HistogramBinning(bins=7, scheme="width"),
    ScalingBinning(bins=7),
    ScalingBinning(bins=7, scaling=IsotonicCalibration()),
    HistogramBinning(bins=5, scheme="guaranteed"),
    BetaCalibration(multiclass="shared"),
    StructuredMatrixScaling(input="probs", classes=np.array([5, 2, 9])),
    StructuredMatrixScaling(input="probs", off_diagonal=None),
    MatrixScaling(input="probs"),
    DirichletCalibration(),
    EnsembleTemperature(input="probs"),
    CenteredIsotonic(),
    SplineCalibration(knots=4),
    VennAbers(classes=["c", "a", "b"]),
    TopVersusAll(input="probs"),
    BetaCalibration(multiclass="top-label"),
    SharedBinning(bins=5),
    PriorShift(prevalence=[0.2, 0.3, 0.5]),
    PriorShift(TemperatureScaling(input="probs"), classes=[np.int64(3), np.int64(1), np.int64(2)]),
]


def fitted(recalibrator: Recalibrator, seed: int = 0) -> tuple[Recalibrator, Any]:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(3), 120)
    labels = (rng.random((120, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    if recalibrator.classes is not None:
        labels = np.asarray(recalibrator.classes)[labels]
    return recalibrator.fit(probs, labels), rng.dirichlet(np.ones(3), 200)


@pytest.mark.parametrize("recalibrator", RECALIBRATORS, ids=repr)
def test_what_is_read_equals_what_was_written_bit_for_bit(recalibrator: Recalibrator) -> None:
    fixed, X = fitted(recalibrator)
    again = Recalibrator.from_json(fixed.to_json())
    assert type(again) is type(fixed)
    assert_array_equal(again.predict_proba(X), fixed.predict_proba(X))
    assert_array_equal(again.predict(X), fixed.predict(X))
    assert again.to_json() == fixed.to_json()
    assert_array_equal(type(fixed).from_json(fixed.to_json()).predict_proba(X), fixed.predict_proba(X))


@given(st.floats(1e-300, 1e300))
@settings(max_examples=50, deadline=None)
def test_every_float_survives(temperature: float) -> None:
    fixed, _ = fitted(TemperatureScaling(input="probs"))
    fixed.temperature_ = temperature
    assert TemperatureScaling.from_json(fixed.to_json()).temperature_ == temperature


def test_the_text_is_for_people() -> None:
    text = fitted(TemperatureScaling(input="probs"))[0].to_json()
    content = json.loads(text)
    assert content["format"] == "truecal recalibrator"
    assert content["version"] == 1
    assert content["kind"] == "TemperatureScaling"
    assert content["params"] == {"classes": None, "input": "probs", "zeros": "keep"}
    assert list(content["learned"]) == ["temperature"]


def test_a_binary_one_column_fit_reads_one_column_again() -> None:
    fixed = PlattScaling().fit([0.1, 0.4, 0.3, 0.9], [0, 1, 0, 1])
    again = PlattScaling.from_json(fixed.to_json())
    assert_array_equal(again.predict_proba([0.2, 0.7]), fixed.predict_proba([0.2, 0.7]))
    with pytest.raises(ValueError, match="expecting 1 feature"):
        again.predict_proba([[0.2, 0.8]])


Edit = Callable[[dict[str, Any]], object]
EDITS: list[tuple[Recalibrator, Edit, str]] = [
    (TemperatureScaling(input="probs"), lambda c: c.pop("format"), "no recalibrator"),
    (TemperatureScaling(input="probs"), lambda c: c.update(version=2), "this release reads version 1"),
    (TemperatureScaling(input="probs"), lambda c: c.pop("learned"), '"learned" is missing'),
    (TemperatureScaling(input="probs"), lambda c: c.update(learned=3), '"learned" must be an object'),
    (TemperatureScaling(input="probs"), lambda c: c.update(kind="os"), "no recalibrator of this release"),
    (TemperatureScaling(input="probs"), lambda c: c.update(kind="Recalibrator"), "no recalibrator of this release"),
    (
        TemperatureScaling(input="probs"),
        lambda c: c.update(kind="k" * 5000),
        r"^.{0,200}k{50}\.\.\., which is no recalibrator",
    ),
    (TemperatureScaling(input="probs"), lambda c: c.update(kind="RecalibratedClassifier"), "no recalibrator"),
    (
        TemperatureScaling(input="probs"),
        lambda c: c["params"].update(input="odds"),
        "input must be 'logits' or 'probs'",
    ),
    (TemperatureScaling(input="probs"), lambda c: c["params"].update(colour=1), '"params" do not fit'),
    (TemperatureScaling(input="probs"), lambda c: c.update(params=[]), '"params" must be an object'),
    (TemperatureScaling(input="probs"), lambda c: c["learned"].update(temperature=0), '"temperature" is 0'),
    (TemperatureScaling(input="probs"), lambda c: c["learned"].update(temperature="2"), "must be a finite number"),
    (TemperatureScaling(input="probs"), lambda c: c["learned"].update(temperature=True), "must be a finite number"),
    (TemperatureScaling(input="probs"), lambda c: c.update(classes=[0, 0, 1]), "two different names"),
    (TemperatureScaling(input="probs"), lambda c: c.update(classes=[0, 1]), '"columns" is 3'),
    (TemperatureScaling(input="probs"), lambda c: c.update(columns=0), '"columns" is 0'),
    (VectorScaling(input="probs"), lambda c: c["learned"]["bias"].pop(), '"bias" has 2 numbers; 3 are needed'),
    (VectorScaling(input="probs"), lambda c: c["learned"].update(scale=1.0), '"scale" must be a list'),
    (PlattScaling(), lambda c: c["learned"]["maps"].pop(), "a list of 3 objects"),
    (PlattScaling(), lambda c: c["learned"]["maps"][1].update(slope=-1.0), r"finite number in \[0, inf\]"),
    (IsotonicCalibration(), lambda c: c["learned"]["maps"][0]["x"].reverse(), '"x" must increase'),
    (IsotonicCalibration(), lambda c: c["learned"]["maps"][0]["y"].reverse(), "never decrease"),
    (IsotonicCalibration(), lambda c: c["learned"]["maps"].__setitem__(0, {"x": [], "y": []}), "at least one"),
    (HistogramBinning(bins=7), lambda c: c["learned"]["maps"][0]["values"].pop(), '"values" has 6 numbers'),
    (HistogramBinning(bins=7), lambda c: c["params"].update(bins=3), '"values" has 7 bins, but "bins" is 3'),
    (HistogramBinning(bins=7), lambda c: c["learned"]["maps"][0]["values"].__setitem__(0, 1.5), "is 1.5"),
    (ScalingBinning(bins=7), lambda c: c["learned"]["maps"][0].update(curve=1), '"curve" must be an object'),
    (
        ScalingBinning(bins=7),
        lambda c: c["params"].update(scaling={"kind": "TemperatureScaling"}),
        '"params" is missing',
    ),
    (ScalingBinning(bins=7), lambda c: c["params"].update(bins=6), '"bins" is 6'),
    (MatrixScaling(input="probs"), lambda c: c["learned"]["change"].pop(), "a list of 3 lists"),
    (EnsembleTemperature(input="probs"), lambda c: c["learned"].update(weights=[1.0, 1.0, 0.0]), "must sum to 1"),
    (SplineCalibration(), lambda c: c["learned"]["maps"][0].update(knots=[1.0], slopes=[1.0]), "at least two"),
    (SplineCalibration(), lambda c: c["learned"]["maps"][0]["slopes"].__setitem__(0, -1.0), "is -1.0"),
    (VennAbers(), lambda c: c["learned"]["maps"][0].update(p0=3), '"p0" must be an object'),
    (VennAbers(), lambda c: c["learned"]["maps"][0]["p1"]["values"].pop(), "are needed"),
    (SharedBinning(bins=5), lambda c: c["params"].update(bins=2), '"bins" is 2'),
    (
        PriorShift(TemperatureScaling(input="probs")),
        lambda c: c["learned"]["map"].pop("learned"),
        '"learned" is missing',
    ),
    (
        HistogramBinning(bins=5, scheme="guaranteed"),
        lambda c: c["learned"]["maps"][0]["positive"].__setitem__(0, 1e6),
        '"positive" must not exceed',
    ),
]


@pytest.mark.parametrize(("recalibrator", "edit", "message"), EDITS)
def test_an_edit_into_nonsense_is_refused(recalibrator: Recalibrator, edit: Edit, message: str) -> None:
    content = json.loads(fitted(recalibrator)[0].to_json())
    Recalibrator.from_json(json.dumps(content))  # fine before the edit
    edit(content)
    with pytest.raises(FileError, match=message):
        Recalibrator.from_json(json.dumps(content))


def test_damaged_text_and_the_wrong_class() -> None:
    text = fitted(TemperatureScaling(input="probs"))[0].to_json()
    with pytest.raises(FileError, match="not JSON"):
        Recalibrator.from_json(text[:-2])
    with pytest.raises(FileError, match="no recalibrator"):
        Recalibrator.from_json("[1, 2]")
    with pytest.raises(FileError, match="must be a finite number"):
        Recalibrator.from_json(text.replace('"temperature": ', '"temperature": -Infinity, "was": '))
    with pytest.raises(InputError, match="this is a TemperatureScaling, not a PlattScaling"):
        PlattScaling.from_json(text)
    with pytest.raises(ValueError, match="not fitted yet"):
        TemperatureScaling().to_json()
