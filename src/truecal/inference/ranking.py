"""The conclusion of a comparison: one verdict about several models, from which text, JSON and the page are rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truecal.inference.comparison import Comparison
from truecal.table import Frame, Tabular


@dataclass(frozen=True, repr=False)
class RankingConclusion(Tabular):
    """Which model has the smallest calibration error, and which are significantly worse.

    Attributes
    ----------
    ranking : tuple of str
        Models by their error, the smallest first.
    worse : tuple of str
        Models whose error is larger than that of the first by more than chance, adjusted for all pairs (Holm).
    comparisons : tuple of Comparison
        The pairs.
    level : float
        1 minus the level at which adjusted p-values count.

    See Also
    --------
    conclude_ranking : The function that returns it.
    """

    ranking: tuple[str, ...]
    worse: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    level: float

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        return "Significant differences" if self.worse else "No significant difference from the best"

    @property
    def sentence(self) -> str:
        """The verdict in one or two sentences."""
        best = f"{self.ranking[0]} has the smallest calibration error"
        if not self.worse:
            return f"{best}, but no other model is significantly worse ({self.level:.0%})."
        return f"{best}. Significantly worse ({self.level:.0%}, adjusted for all pairs): {', '.join(self.worse)}."

    def finding(self, comparison: Comparison) -> str:
        """Return which model of a pair is better calibrated, where the adjusted p-value shows it."""
        if comparison.adjusted_p > 1 - self.level:
            return "not distinguishable"
        return f"{comparison.a if comparison.difference < 0 else comparison.b} is better calibrated"

    def frame(self) -> Frame:
        """Return a table with one row per pair."""
        return Frame.from_records({**pair.row(), "finding": self.finding(pair)} for pair in self.comparisons)

    def __str__(self) -> str:
        return f"{self.headline}. {self.sentence}"


def conclude_ranking(comparisons: Sequence[Comparison], level: float = 0.95) -> RankingConclusion:
    """Reach the one verdict about several models.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Pairs of models, with adjusted p-values.
    level : float, default 0.95
        Level of the statement.

    Returns
    -------
    conclusion : RankingConclusion
        The ranking and the models that are significantly worse than the first.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> print(conclude_ranking(tc.inference.compare_many(y, {"squared": p**2, "plain": p})).sentence)
    plain has the smallest calibration error. Significantly worse (95%, adjusted for all pairs): squared.
    """
    values = {name: value for c in comparisons for name, value in ((c.a, c.value_a), (c.b, c.value_b))}
    ranking = tuple(sorted(values, key=lambda name: values[name]))
    pairs = [{c.a, c.b} for c in comparisons if c.adjusted_p <= 1 - level]
    worse = tuple(name for name in ranking[1:] if {ranking[0], name} in pairs)
    return RankingConclusion(ranking, worse, tuple(comparisons), level)
