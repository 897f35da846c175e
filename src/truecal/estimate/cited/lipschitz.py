"""The smooth calibration error smCE: how far the scores are from any calibrated predictor, up to a factor."""

from bisect import insort
from dataclasses import dataclass

import numpy as np

from truecal.estimate.estimate import Estimate
from truecal.estimate.estimator import Estimator, Findings, SketchRange
from truecal.profile import CellProfile, Cut, Profile
from truecal.types import Float64s

_MOST_CELLS = 2048  # more distinct scores than this are joined into cells of equal mass


@dataclass(frozen=True)
class LipschitzError(Estimator):
    r"""smCE = max over w with |w| <= 1 and |w(a) - w(b)| <= |a - b| of 1/n sum w(c_i) (y_i - c_i).

    The smooth calibration error of Kakade and Foster (2004) and Blasiok, Gopalan, Hu and Nakkiran (2023), who show that the lower
    distance to calibration (how far scores must move to become calibrated, in the mean) lies between smCE / 2 and 2 smCE. A small
    change of the scores changes it by a small amount, which no binned error can say. It is small when residuals of opposite sign
    lie close together.

    The maximum is a linear program along a line; its dual, the cheapest way to carry surplus from score to score or to leave it, is
    found exactly by dynamic programming over convex piecewise linear functions in O(G log G) for G distinct scores. More than
    2048 of them are joined into cells of equal mass, which moves the value by at most the widest cell.

    Biased upwards for calibrated models, by about 1/sqrt(n); the interval resamples rows.

    >>> import truecal as tc
    >>> round(tc.LipschitzError()(tc.Profile.from_arrays([0.4, 0.4, 0.6, 0.6], [1, 0, 0, 1])).value, 6)
    0.01
    """

    @property
    def power_norm(self) -> float:
        return 1.0

    @property
    def metric(self) -> str:
        return "smooth calibration error (smCE)"

    def find(self, profile: Profile) -> Findings:
        power = np.empty(profile.batch)
        for i in range(profile.batch):
            one = profile if profile.batch == 1 else profile.take(np.array([i]))
            power[i] = _largest(*_residuals(one.coarsen(_MOST_CELLS, moments=False)))
        return Findings(np.clip(power, 0.0, 1.0))

    def sketch_range(self, cells: CellProfile, estimate: Estimate) -> SketchRange:
        # Rows lie within their cell, and w changes by at most its width over it.
        scores = np.concatenate([[0.0], cells.scores[0].astype(float), [1.0]])
        widest, value = 2 * float(np.diff(scores).max()), float(estimate.value)
        return SketchRange(max(value - widest, 0.0), min(value + widest, 1.0))


def _residuals(profile: Profile) -> tuple[Float64s, Float64s]:
    """Distinct scores, and the sum of y - c of each over n."""
    scores = profile.scores[0].astype(np.float64)
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, profile.rows)
    cut = Cut(np.append(0, ends)[None], np.append(0, ends)[None])
    surplus = np.diff(profile.sums("y", cut) - profile.sums("c", cut), axis=1)[0] / profile.total[0]
    return scores[ends - 1], surplus


def _largest(scores: Float64s, surplus: Float64s) -> float:
    """max sum w_g r_g = min over flows F of sum |r_g - F_g + F_{g-1}| + sum (c_{g+1} - c_g) |F_g|, with F_0 = F_G = 0.

    The cost of a flow F out of score g is a convex function with slopes from -1 to 1: `knots` holds the places where its slope
    changes and by how much, shifted by `moved`; far to the left it is -F + `start`.
    """
    knots: list[tuple[float, float]] = [(0.0, 2.0)]
    moved, start = 0.0, 0.0
    for residual, distance in zip(surplus.tolist(), np.append(np.diff(scores), 0.0).tolist(), strict=True):
        moved += residual
        start += residual
        if distance > 0:
            # Carrying F over the distance costs distance * |F|; slopes beyond -1 and 1 are then worth no more than leaving it.
            insort(knots, (-moved, 2 * distance))
            start -= _dropped(knots, distance, 0, moved)
            _dropped(knots, distance, -1, moved)
    return start + sum(weight * -(place + moved) for place, weight in knots if place + moved < 0)


def _dropped(knots: list[tuple[float, float]], amount: float, end: int, moved: float) -> float:
    """Take so much change of slope from one end; the sum of what is taken times its place."""
    total = 0.0
    while amount > 0 and knots:
        place, weight = knots[end]
        taken = min(weight, amount)
        total += taken * (place + moved)
        amount -= taken
        if taken == weight:
            knots.pop(end)
        else:
            knots[end] = (place, weight - taken)
    return total
