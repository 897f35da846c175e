"""Step functions of the score: the form of every map that puts scores into bins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import truecal as tc
from truecal.errors import InputError
from truecal.recalibrate.export import fields
from truecal.recalibrate.export.graph import Value
from truecal.types import Float64s


@dataclass(frozen=True, eq=False)
class StepMap:
    """One value per bin; bin j holds scores in [edges[j - 1], edges[j])."""

    edges: Float64s
    values: Float64s

    def __call__(self, scores: Float64s) -> Float64s:
        return self.values[np.searchsorted(self.edges, scores, side="right")]

    def trace(self, scores: Value) -> Value:
        return scores.count_reached(self.edges).look_up(self.values)

    def state(self) -> dict[str, Any]:
        return {"edges": self.edges.tolist(), "values": self.values.tolist()}


def read_steps(state: Mapping[str, Any], within: tuple[float, float] = (0.0, 1.0)) -> StepMap:
    """The steps of a state written by `StepMap.state`, with edges in the range of the scores."""
    edges = fields.numbers(state, "edges", low=within[0], high=within[1], rising=True)
    return StepMap(edges, fields.numbers(state, "values", len(edges) + 1, low=0.0, high=1.0))


def mass_edges(profile: tc.Profile, bins: int) -> Float64s:
    """Edges of bins that hold equal numbers of rows; equal scores stay in one bin, so there may be fewer than `bins`.

    An edge lies halfway between the scores on its two sides.
    """
    if profile.rows < bins:
        raise InputError(f"{profile.rows} rows cannot fill {bins} bins; use at most bins={profile.rows}")
    scores = profile.scores[0].astype(np.float64)
    at = np.unique(profile.mass_cut(bins).below[0])
    at = at[(at > 0) & (at < len(scores))]
    low, high = scores[at - 1], scores[at]
    middle = low + (high - low) / 2
    edges: Float64s = np.where(middle > low, middle, high)
    return edges
