"""One model of a comparison: its error, and where its true error may be, resample by resample."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from truecal.estimate import Estimator, jointly, resampling
from truecal.lens import Lens
from truecal.predictions import Predictions
from truecal.profile import Sketch
from truecal.types import Float64s
from truecal.uncertainty.measurement import measure


class _Resampled(Protocol):
    """An estimate and its resamples, as powers."""

    @property
    def power(self) -> float: ...
    @property
    def deviations(self) -> Float64s: ...
    @property
    def p_value(self) -> float: ...


@dataclass(frozen=True)
class Model:
    """What a comparison needs of one model."""

    value: float
    drawn: Float64s  # where its true error may be, resample by resample
    calibrated: bool  # whether it may be perfectly calibrated
    unseen: float = 0.0  # how far a sketch may be from the value of all rows

    @classmethod
    def of(cls, joint: _Resampled, estimator: Estimator, level: float) -> "Model":
        """From resamples of rows or of whole units."""
        return cls(
            float(estimator.root(np.array([joint.power]))[0]),
            np.minimum(estimator.root(joint.power - joint.deviations), 1.0),
            joint.p_value > 1 - level,
        )

    @classmethod
    def of_sketch(
        cls, sketch: Sketch, estimator: Estimator, resamples: int, level: float, rng: np.random.Generator
    ) -> "Model":
        """From the cells of a sketch, which are drawn like the rows in them."""
        estimate = measure(sketch, estimator=estimator, level=level, rng=rng)
        found = estimator.resampled(sketch.to_profile(), resamples=resamples, level=level, rng=rng)
        drawn = np.minimum(estimator.root(found.power - found.deviations), 1.0)
        p = 0.0 if estimate.p_value is None else float(estimate.p_value)
        return cls(float(estimate), drawn, p > 1 - level, estimate.sketch_error or 0.0)


@dataclass(frozen=True)
class Drawing:
    """How resamples are drawn: which units, how many, and whether the same for all models."""

    units: Mapping[str, resampling.Units]
    resamples: int
    paired: bool
    level: float
    rng: np.random.Generator


def by_counts(
    estimator: Estimator, all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], drawing: Drawing
) -> dict[str, Model]:
    """Errors of one probability: resamples are counts of units, which serve all models."""
    units, rng = drawing.units, drawing.rng
    counts = next(iter(units.values())).draws(drawing.resamples, rng)
    models = {}
    for name, preds in all_preds.items():
        own = counts if drawing.paired else units[name].draws(drawing.resamples, rng)
        samples, shares = lenses[name].samples(preds), lenses[name].shares(preds)
        joint = jointly.resampled_jointly(estimator, samples, shares, units[name], own, rng, always_test=True)
        models[name] = Model.of(joint, estimator, drawing.level)
    return models


def in_context(
    estimator: Estimator, all_preds: Mapping[str, Predictions], lenses: Mapping[str, Lens], drawing: Drawing
) -> dict[str, Model]:
    """Errors of several probabilities: paired models draw their units by the same seed."""
    seed = int(drawing.rng.integers(2**63))
    models = {}
    for i, (name, preds) in enumerate(all_preds.items()):
        units = drawing.units[name]
        units.refuse_one()
        rng = np.random.default_rng(seed if drawing.paired else [seed, i])
        samples, shares = lenses[name].samples(preds), lenses[name].shares(preds)
        found = estimator.compared(samples, shares, units.of_row, drawing.resamples, rng)
        models[name] = Model(found.value, found.drawn, found.p_value > 1 - drawing.level)
    return models
