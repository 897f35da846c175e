r"""What is bet on: a fixed mixture of experts, each of which wins if calibration is off in a way of its own.

Null hypothesis of a batch: given the past and the scores of the batch, the outcome of a row with score c is 1 with a probability
within tau of c. An expert has a tilt t for every cell of scores and plays a row with the factor

    exp(t y) / (1 + e (exp(t) - 1)),    e = min(c + tau, 1) for t > 0,  max(c - tau, 0) for t < 0.

For an outcome probability p the mean of the factor is (1 + p (exp(t) - 1)) / (1 + e (exp(t) - 1)), which is at most 1 for every p
within tau of c, because p <= e where exp(t) - 1 is positive and p >= e where it is negative. Products over independent rows and
over batches are therefore supermartingales that start at 1. log(1 + e(c) (exp(t) - 1)) is concave in c, so n rows of a cell played
at their mean score win at most what the rows would have won one by one (Jensen): a cell may stand for its rows.

A tilt is where the expert expects the outcome to be, as a difference of log odds to the edge of the band: shifts in probability,
offsets in log odds, slopes around the mean log odds, and shifts (on the arcsine scale, where every row carries the same
information) in one of eight regions of the scores or in runs of them. Two more experts learn a whole curve from past batches: in
every region a mixture over tilts whose weights follow what won before, forgetting at two rates.

Opposite experts. No outcome probability is at both edges of its band, so an expert and its mirror image (every tilt in the other
direction) cannot both break even. Let K = exp(t) - 1 of a row. At the wrong edge w of its band instead of the right one r an expert
loses l = log(1 + r K) - log(1 + w K). Mean winnings of both are multilinear in the probabilities, hence largest where every row is
at an edge: with m the smaller l of the two experts and A the rows at the edge that suits the first, they are together at most

    exp(-sum of m outside A) + exp(-sum of m in A) <= 1 + exp(-M),    M = sum of m over all rows,

the sum of two exponentials being convex in how M is divided. So on a batch with which a product begins, each of the two may enter
with its share times 2 / (1 + exp(-M)); both together still win at most their two shares on average. M is 0 at tolerance 0. A row
of a cell is played at the mean score; Jensen's inequality above holds for the right edges, and l at the row's own score is at least
its smaller value at the ends of the cell (l rises, then falls in c). For units with the mean of their rows' factors the same holds
with 1 - exp(-m), averaged over the rows of a unit, in place of m, because 1 - x <= exp(-x).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal.types import Float64s, Indices
from truecal.watch.cells import Batch, UnitRows, edges

_REGIONS = 8
_BINS = 16  # of the diagrams: two per region
_LARGEST_TILT = 7.0  # log odds; larger bets ruin themselves on one row
_LEAST = 1e-6  # of a probability whose log odds are taken
_ROWS = 4096  # rows of units worked on together


def _both(values: list[float]) -> Float64s:
    held = np.array(values)
    return np.concatenate([-held[::-1], held])


SHIFTS = _both([0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
OFFSETS = _both([0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0])
SLOPES = _both([0.05, 0.1, 0.2, 0.4])
LOCAL = _both([0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64])
MEMORY = np.array([0.8, 0.97])  # share of the learned weights that a batch leaves
_LARGE_SHIFT, _LARGE_OFFSET = (
    0.1,
    0.5,
)  # 300 uniform scores show such a change at once: it carries 9 of evidence (log 1000 is 7)
_GLOBAL = len(SHIFTS) + len(OFFSETS) + len(SLOPES)
_SIZES = [len(tilts) for tilts in (SHIFTS, OFFSETS, SLOPES, LOCAL)]
_MIRROR = np.concatenate([sum(_SIZES[:i]) + np.arange(size)[::-1] for i, size in enumerate(_SIZES)])


class Played(NamedTuple):
    """A batch as the experts played it, logs: what each won, the weights of the learning ones after it, and the share with which
    each enters a product that begins with this batch."""

    won: Float64s
    learned: Float64s
    entry: Float64s


@dataclass(frozen=True)
class Experts:
    """The experts of one stream of batches. `cuts` part the scores into bins, `centre` is the log odds that slopes turn around.

    Both are set from the scores of the first batch alone, so every bet is made before its outcome is known.
    """

    tolerance: float
    cuts: tuple[float, ...]
    centre: float

    SHARES: ClassVar[dict[str, float]] = {"shift": 0.4, "offset": 0.25, "slope": 0.1, "local": 0.15, "full": 0.1}

    @classmethod
    def of(cls, tolerance: float, n: Float64s, mean: Float64s) -> "Experts":
        """For a stream whose first batch has n rows at these mean scores."""
        order = np.argsort(mean)
        total = np.cumsum(n[order])
        wanted = total[-1] * np.arange(1, _BINS) / _BINS
        # at edges of cells, so that no rounding of a mean score moves a cell into another bin
        place = np.searchsorted(edges(), mean[order][np.searchsorted(total, wanted)], side="right") - 1
        cuts = np.unique(edges()[place[place > 0]])
        centre = float((n * log_odds(mean)).sum() / n.sum())
        return cls(tolerance, tuple(cuts.tolist()), centre)

    # ------------------------------------------------------------------ regions

    @cached_property
    def region_cuts(self) -> Float64s:
        cuts = np.array(self.cuts)
        return cuts if len(cuts) < _REGIONS else cuts[1::2]

    @property
    def regions(self) -> int:
        return len(self.region_cuts) + 1

    @cached_property
    def spans(self) -> Float64s:
        """Single regions and runs of two and four of them, one row each: 1 where a region belongs to the run."""
        last = self.regions
        runs = {(i, i + 1) for i in range(last)}
        runs |= {(i, min(i + width, last)) for width in (2, 4) if width < last for i in range(0, last, width)}
        held = np.zeros((len(runs - {(0, last)}), last))
        for row, (first, end) in enumerate(sorted(runs - {(0, last)})):
            held[row, first:end] = 1
        return held

    def bin_of(self, scores: Float64s) -> Indices:
        return np.searchsorted(np.array(self.cuts), scores, side="right")

    # ------------------------------------------------------------------ the mixture

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """Kind of every expert, in the order of the increments."""
        sizes = {"shift": len(SHIFTS), "offset": len(OFFSETS), "slope": len(SLOPES)}
        sizes |= {"local": len(self.spans) * len(LOCAL), "full": len(MEMORY)}
        return np.repeat(list(sizes), list(sizes.values()))

    @cached_property
    def prior(self) -> Float64s:
        """Log share of every expert in the mixture; kinds that cannot play (one region) leave their share unused. Of shifts and
        offsets the large ones have less: what they look for shows within a batch or two whatever their share."""
        weights = np.ones(len(self.kinds))
        weights[self.kinds == "shift"] = np.minimum(_LARGE_SHIFT / np.abs(SHIFTS), 1.0)
        weights[self.kinds == "offset"] = np.minimum(_LARGE_OFFSET / np.abs(OFFSETS), 1.0)
        for kind in np.unique(self.kinds):
            weights[self.kinds == kind] *= self.SHARES[kind] / weights[self.kinds == kind].sum()
        return np.log(weights)

    @cached_property
    def flat(self) -> Float64s:
        """Log weights of a region's tilts before anything was learned: half of it on no tilt at all."""
        return np.log(np.concatenate([[0.5], np.full(len(LOCAL), 0.5 / len(LOCAL))]))

    def unlearned(self) -> Float64s:
        """Weights of the two learning experts at the start, shape (memories, regions, tilts)."""
        return np.tile(self.flat, (len(MEMORY), self.regions, 1))

    # ------------------------------------------------------------------ playing

    def play(self, batch: Batch, learned: Float64s) -> Played:
        """A batch of one stream."""
        if batch.units is not None:
            return self._play_units(batch.units, learned)
        played = self.play_cells(batch.n[None], batch.ones[None], batch.mean, learned[None])
        return Played(*(part[0] for part in played))

    def play_cells(self, n: Float64s, ones: Float64s, mean: Float64s, learned: Float64s) -> Played:
        """The same for several streams with the same experts and mean scores: n and ones of shape (streams, cells)."""
        tilt, cost = self._bets(mean)
        place = np.searchsorted(edges(), mean, side="right") - 1
        apart = self._apart(tilt, edges()[place], np.append(edges(), 1.0)[place + 1])
        where = np.searchsorted(self.region_cuts, mean, side="right")
        cells = [where == region for region in range(self.regions)]
        everywhere = ones @ tilt[:, :_GLOBAL] - n @ cost[:, :_GLOBAL]
        by_region = np.stack([ones[:, k] @ tilt[k, _GLOBAL:] - n[:, k] @ cost[k, _GLOBAL:] for k in cells], axis=1)
        local = (self.spans @ by_region).reshape(len(n), -1)
        gains, learned = self._learn(by_region, learned)
        apart_by_region = np.stack([n[:, k] @ apart[k, _GLOBAL:] for k in cells], axis=1)
        entry = self._entry(n @ apart[:, :_GLOBAL], apart_by_region)
        return Played(np.concatenate([everywhere, local, gains.sum(axis=-1)], axis=1), learned, entry)

    def _apart(self, tilt: Float64s, low: Float64s, high: Float64s) -> Float64s:
        """m of the module's opening for every expert and a row whose score is between low and high."""
        if self.tolerance == 0:
            return np.zeros_like(tilt)
        losses = []
        for score in (low, high):
            up, down = (
                np.minimum(score + self.tolerance, 1.0)[:, None],
                np.maximum(score - self.tolerance, 0.0)[:, None],
            )
            right, wrong = np.where(tilt > 0, up, down), np.where(tilt > 0, down, up)
            losses.append(np.log1p(right * np.expm1(tilt)) - np.log1p(wrong * np.expm1(tilt)))
        loss = np.minimum(*losses)
        return np.minimum(loss, loss[:, _MIRROR])

    def _entry(self, everywhere: Float64s, by_region: Float64s) -> Float64s:
        """Log shares from M of the global experts (streams, experts) and of the tilts in every region (streams, regions, tilts)."""
        local = (self.spans @ by_region).reshape(len(everywhere), -1)
        alone = np.zeros((len(everywhere), len(MEMORY)))  # the learning experts have no mirror image
        apart = np.concatenate([everywhere, local, alone], axis=1)
        return np.asarray(self.prior + np.log(2.0) - np.log1p(np.exp(-apart)))

    def _learn(self, by_region: Float64s, learned: Float64s) -> tuple[Float64s, Float64s]:
        """What the learning experts won in every region, shape (streams, memories, regions), and their new weights."""
        joint = learned + np.concatenate([np.zeros((*by_region.shape[:-1], 1)), by_region], axis=-1)[:, None]
        gain = log_sum(joint)
        memory = MEMORY[:, None, None]
        fresh = memory * (joint - gain[..., None]) + (1 - memory) * self.flat
        return gain, fresh - log_sum(fresh)[..., None]

    def _play_units(self, rows: UnitRows, learned: Float64s) -> Played:
        """One bet per unit, the mean of its rows' factors: at most 1 on average however its outcomes depend on each other.

        A row outside an expert's region counts as 1. The learning experts would meet a unit in several regions, so they take the
        mean over regions instead of the product.
        """
        everywhere, local = np.zeros(_GLOBAL), np.zeros((len(self.spans), len(LOCAL)))
        by_region = np.zeros((self.regions, len(LOCAL)))
        apart_everywhere, apart_by_region = np.zeros(_GLOBAL), np.zeros((self.regions, len(LOCAL)))
        for part in rows.parts(_ROWS):
            tilt, cost = self._bets(part.scores)
            size = np.diff(np.append(part.starts, len(part.scores)))[:, None]
            gained = np.expm1(part.outcomes[:, None] * tilt - cost)
            everywhere += np.log1p(np.add.reduceat(gained[:, :_GLOBAL], part.starts) / size).sum(axis=0)
            where = np.searchsorted(self.region_cuts, part.scores, side="right")
            inside = where[:, None] == np.arange(self.regions)
            each = inside[:, :, None] * gained[:, None, _GLOBAL:]
            units = np.add.reduceat(each, part.starts) / size[:, :, None]
            by_region += np.log1p(units).sum(axis=0)
            local += np.log1p(self.spans @ units).sum(axis=0)
            apart = -np.expm1(-self._apart(tilt, part.scores, part.scores)) / np.repeat(size, size[:, 0], axis=0)
            apart_everywhere += apart[:, :_GLOBAL].sum(axis=0)
            apart_by_region += inside.T.astype(np.float64) @ apart[:, _GLOBAL:]
        gains, learned = self._learn(by_region[None], learned[None])
        full = log_sum(gains[0]) - np.log(self.regions)
        entry = self._entry(apart_everywhere[None], apart_by_region[None])
        return Played(np.concatenate([everywhere, local.ravel(), full]), learned[0], entry[0])

    def _bets(self, mean: Float64s) -> tuple[Float64s, Float64s]:
        """Tilt of every expert at every score, and log(1 + e (exp(t) - 1)), what a row costs; both 0 where nothing can be won."""
        up, down = np.minimum(mean + self.tolerance, 1.0)[..., None], np.maximum(mean - self.tolerance, 0.0)[..., None]

        def edge(tilts: Float64s) -> Float64s:
            return np.where(tilts > 0, up, down)

        shift = log_odds(np.clip(edge(SHIFTS) + SHIFTS, 0, 1)) - log_odds(edge(SHIFTS))
        offset = np.broadcast_to(OFFSETS, (*mean.shape, len(OFFSETS)))
        slope = (log_odds(mean) - self.centre)[..., None] * SLOPES
        angle = np.clip(np.arcsin(np.sqrt(edge(LOCAL))) + LOCAL, 0, np.pi / 2)
        local = log_odds(np.sin(angle) ** 2) - log_odds(edge(LOCAL))
        tilt = np.clip(np.concatenate([shift, offset, slope, local], axis=-1), -_LARGEST_TILT, _LARGEST_TILT)
        limit = edge(tilt)
        idle = (tilt == 0) | np.where(tilt > 0, limit >= 1, limit <= 0)
        tilt = np.where(idle, 0.0, tilt)
        return tilt, np.log1p(limit * np.expm1(tilt))


def log_sum(values: Float64s) -> Float64s:
    """log of the sum of exp over the last axis; -inf where every term is 0."""
    top = np.maximum(values.max(axis=-1, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - top).sum(axis=-1)) + top[..., 0])


def log_odds(p: Float64s) -> Float64s:
    """Log odds, of at most about 14 on either side."""
    return np.asarray(np.log(np.maximum(p, _LEAST)) - np.log(np.maximum(1 - p, _LEAST)))
