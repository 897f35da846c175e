"""Which rows share a bin. Rows of equal score form a group; a bin holds groups, or parts of groups."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from conformance.exact.numbers import rounded


@dataclass(frozen=True)
class Group:
    """All rows of one score: their weight, and the weight of those whose outcome is 1."""

    score: Fraction
    weight: Fraction
    ones: Fraction

    def part(self, share: Fraction) -> "Group":
        """A share of the group; rows of equal score have no order, so it takes the same share of the ones."""
        return Group(self.score, self.weight * share, self.ones * share)


Bin = list[Group]


@dataclass(frozen=True)
class Rows:
    """Scores in [0, 1], outcomes 0 or 1, and weights; all exact."""

    scores: Sequence[Fraction]
    outcomes: Sequence[int]
    weights: Sequence[Fraction] | None = None
    precision: str = "float64"

    @property
    def groups(self) -> list[Group]:
        """Distinct scores in ascending order; rows of weight 0 are absent."""
        w = self.weights or [Fraction(1)] * len(self.scores)
        rows = [(c, y, wi) for c, y, wi in zip(self.scores, self.outcomes, w, strict=True) if wi > 0]
        return [
            Group(
                s, sum(wi for c, _, wi in rows if c == s), sum((wi for c, y, wi in rows if c == s and y), Fraction(0))
            )
            for s in sorted({c for c, _, _ in rows})
        ]

    @property
    def total(self) -> Fraction:
        return sum((g.weight for g in self.groups), Fraction(0))

    @property
    def counted(self) -> bool:
        """Whole-number weights count repetitions; others are importance weights, of which only ratios matter."""
        return self.weights is None or all(w.denominator == 1 for w in self.weights)

    @property
    def size(self) -> Fraction:
        """Rows, the sum of counts, or Kish's effective size of importance weights."""
        if self.counted or self.weights is None:
            return self.total
        return sum(self.weights, Fraction(0)) ** 2 / sum((w * w for w in self.weights), Fraction(0))


def width_bins(rows: Rows, bins: int, closed: str) -> list[Bin]:
    """Edges j/b rounded to the precision of the scores. "left": [a, b), the last bin closed. "right": (a, b], the first closed."""
    inner = [rounded(Fraction(j, bins), rows.precision) for j in range(1, bins)]
    result: list[Bin] = [[] for _ in range(bins)]
    for group in rows.groups:
        passed = sum(edge <= group.score if closed == "left" else edge < group.score for edge in inner)
        result[passed].append(group)
    return result


def mass_bins(rows: Rows, bins: int, ties: str) -> list[Bin]:
    """Bin k holds sorted places ceil(k n / b) to ceil((k+1) n / b); with importance weights k/b to (k+1)/b of the total.

    "split": a cut inside a group shares it in proportion. "keep": the group goes whole to the side that holds more of it, up
    when halved.
    """
    groups, total = rows.groups, rows.total
    cuts = [Fraction(ceil(k * total / bins)) if rows.counted else k * total / bins for k in range(bins + 1)]
    if ties == "keep":
        cuts = [_moved(cut, groups) for cut in cuts]
    result = []
    for low, high in itertools.pairwise(cuts):
        below, members = Fraction(0), []
        for group in groups:
            begin, end = max(low, below), min(high, below + group.weight)
            if end > begin:
                members.append(group.part((end - begin) / group.weight))
            below += group.weight
        result.append(members)
    return result


def _moved(cut: Fraction, groups: list[Group]) -> Fraction:
    """The nearer end of the group that the cut falls into."""
    below = Fraction(0)
    for group in groups:
        if below < cut < below + group.weight:
            return below + (group.weight if (cut - below) * 2 >= group.weight else 0)
        below += group.weight
    return cut


def make_bins(rows: Rows, bins: int, scheme: str, ties: str = "keep", closed: str = "left") -> list[Bin]:
    """The bins of a scheme, those without rows left out."""
    bins_of_rows = width_bins(rows, bins, closed) if scheme == "width" else mass_bins(rows, bins, ties)
    return [members for members in bins_of_rows if members]
