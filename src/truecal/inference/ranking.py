"""The conclusion of a comparison: one verdict about several models, from which text, JSON and the page are rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

from truecal import digits
from truecal.errors import InputError
from truecal.inference.comparison import Comparison
from truecal.inference.conclusion import rows_to_pass
from truecal.table import Frame, Tabular, plain


@dataclass(frozen=True, repr=False)
class RankingConclusion(Tabular):
    """Which model has the smallest calibration error, which are significantly worse, and whether a gate passes.

    Attributes
    ----------
    ranking : tuple of str
        Models by their error, the smallest first.
    worse : tuple of str
        Models whose error is larger than that of the first, or of the reference, by more than chance (adjusted by Holm for all
        pairs).
    better : tuple of str
        Models whose error is smaller than that of the reference by more than chance; empty without a reference.
    comparisons : tuple of Comparison
        The pairs; where there is a reference, it is the second of each.
    level : float
        1 minus the level at which adjusted p-values count.
    reference : str or None
        The model that the others are compared with; None where all pairs are compared.
    max_increase : float or None
        Largest acceptable increase of the error over the reference; None without a gate.

    See Also
    --------
    conclude_ranking : The function that returns it.
    """

    ranking: tuple[str, ...]
    worse: tuple[str, ...]
    better: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    level: float
    reference: str | None = None
    max_increase: float | None = None

    @property
    def headline(self) -> str:
        """The verdict in a few words.

        With a gate "No model is worse than REFERENCE by more than LIMIT" or "A is (may be) worse than ..."; without one
        "Significant differences" or "No significant difference from the best" (or from the reference).
        """
        if self.worst is not None and self.max_increase is not None:
            limit = f"{self.reference} by more than {self.max_increase:g}"
            if self.passed:
                return f"No model is worse than {limit}"
            return (
                f"{self.worst.a} {'is' if self.worst.interval.low > self.max_increase else 'may be'} worse than {limit}"
            )
        if self.worse or self.better:
            return "Significant differences"
        return f"No significant difference from {'the best' if self.reference is None else self.reference}"

    @property
    def sentence(self) -> str:
        """The verdict in one or two sentences."""
        best = f"{self.ranking[0]} has the smallest calibration error"
        if self.reference is None:
            if not self.worse:
                return f"{best}, but no other model is significantly worse ({self.level:.0%})."
            return f"{best}. Significantly worse ({self.level:.0%}, adjusted for all pairs): {', '.join(self.worse)}."
        groups = {"significantly worse": self.worse, "significantly better": self.better}
        findings = "; ".join(f"{finding}: {', '.join(models)}" for finding, models in groups.items() if models)
        findings = findings or "no model differs significantly"
        return f"{best}. Compared with {self.reference} ({self.level:.0%}, adjusted for all pairs), {findings}."

    @property
    def worst(self) -> Comparison | None:
        """The comparison with the reference that decides; None without a reference.

        That with the highest lower limit of the difference where one is above `max_increase`, else with the highest upper limit.
        """
        limit = inf if self.max_increase is None else self.max_increase
        above = [pair for pair in self.comparisons if pair.interval.low > limit]
        if above:
            return max(above, key=lambda pair: float(pair.interval.low))
        return max(self.comparisons, key=_largest_increase) if self.reference else None

    @property
    def passed(self) -> bool | None:
        """Whether no upper limit of a difference from the reference is above `max_increase`; None without a gate."""
        limit = self.max_increase
        return None if limit is None else all(_largest_increase(pair) <= limit for pair in self.comparisons)

    @property
    def gate(self) -> str:
        """Last line of a gate: PASS or FAIL, the number that decides, and what would change it; empty without a gate.

        It is about one comparison (`worst`). PASS names the upper limit, or how far it lies below 0.
        FAIL names the lower limit if that is above `max_increase`, else the upper one with the number of further rows that
        would let it pass.
        """
        worst, limit = self.worst, self.max_increase
        if worst is None or limit is None:
            return ""
        low, high = float(worst.interval.low), _largest_increase(worst)
        places = digits.decimals(low, high)
        start, over = f"at {self.level:.0%} the error of {worst.a}", f"that of {self.reference} by"
        upper = digits.beside_limit(high, limit, places)
        if self.passed and high < 0:
            lower = digits.beside_limit(-high, 0.0, places)
            return f"PASS: {start} is below {over} at least {lower}, and an increase of {limit:g} is allowed"
        if self.passed:
            return f"PASS: {start} exceeds {over} at most {upper}, and {limit:g} is allowed"
        if low > limit:
            lower = digits.beside_limit(low, limit, places)
            return f"FAIL: {start} exceeds {over} at least {lower}, and {limit:g} is allowed; recalibrate {worst.a}"
        undecided = [pair for pair in self.comparisons if not _largest_increase(pair) <= limit]
        rows = [rows_to_pass(pair.difference, _largest_increase(pair), limit, pair.n) for pair in undecided]
        remedy = (
            f"about {digits.about(max(n or 0 for n in rows))} further rows would let it pass if the estimate is right"
        )
        if None in rows:
            pair = undecided[rows.index(None)]
            remedy = (
                f"more rows alone would not help: the estimated increase of {pair.a} is {pair.difference:.{places}f}"
            )
        return f"FAIL: {start} may exceed {over} {upper}, and {limit:g} is allowed; {remedy}"

    def finding(self, comparison: Comparison) -> str:
        """Return which model of a pair is better calibrated, where the adjusted p-value shows it.

        Parameters
        ----------
        comparison : Comparison
            A pair.

        Returns
        -------
        str
        """
        if not comparison.adjusted_p <= 1 - self.level:
            return "not distinguishable"
        return f"{comparison.a if comparison.difference < 0 else comparison.b} is better calibrated"

    def frame(self) -> Frame:
        """Return a table with one row per pair: a, b, difference, low, high, p_value, adjusted_p and the finding in words."""
        return Frame.from_records({**pair.row(), "finding": self.finding(pair)} for pair in self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """Return all facts and words as plain values, as `--json` prints them under "conclusion".

        Keys are ranking, worse, better, level, reference, max_increase, headline, sentence, gate, passed and worst (a name).
        """
        facts = ("ranking", "worse", "better", "level", "reference", "max_increase")
        properties = ("headline", "sentence", "gate", "passed")
        worst = None if self.worst is None else self.worst.a
        return {**{name: plain(getattr(self, name)) for name in (*facts, *properties)}, "worst": worst}

    def __str__(self) -> str:
        """Write headline and sentence, then the gate if there is one."""
        return "\n".join(line for line in (f"{self.headline}. {self.sentence}", self.gate) if line)


def _largest_increase(comparison: Comparison) -> float:
    """Return the upper limit of the difference of errors a - b of a comparison; infinite where it is not a number."""
    high = float(comparison.interval.high)
    return inf if isnan(high) else high


def conclude_ranking(
    comparisons: Sequence[Comparison],
    level: float = 0.95,
    *,
    reference: str | None = None,
    max_increase: float | None = None,
) -> RankingConclusion:
    """Reach the one verdict about several models.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Pairs of models, with adjusted p-values.
    level : float, default 0.95
        Level of the statement.
    reference : str or None, default None
        The model that is in every pair, where the others were compared with it alone.
    max_increase : float or None, default None
        Largest acceptable increase of the error over the reference: a gate.

    Returns
    -------
    conclusion : RankingConclusion
        The ranking, the models that are significantly worse, and the gate.

    Raises
    ------
    InputError
        If a gate has no reference.

    Examples
    --------
    >>> import numpy as np, truecal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> print(conclude_ranking(tc.inference.compare_many(y, {"squared": p**2, "plain": p})).sentence)
    plain has the smallest calibration error. Significantly worse (95%, adjusted for all pairs): squared.
    """
    if max_increase is not None and reference is None:
        raise InputError("an increase is over a reference; name it with reference=")
    values = {name: value for c in comparisons for name, value in ((c.a, c.value_a), (c.b, c.value_b))}
    ranking = tuple(sorted(values, key=lambda name: values[name]))
    base = ranking[0] if reference is None else reference
    others = {c.b if c.a == base else c.a for c in comparisons if base in (c.a, c.b) and c.adjusted_p <= 1 - level}
    worse = tuple(name for name in ranking if name in others and values[name] > values[base])
    better = tuple(name for name in ranking if name in others and values[name] < values[base])
    pairs = tuple(pair.reversed() if pair.a == reference else pair for pair in comparisons)
    return RankingConclusion(ranking, worse, better, pairs, level, reference, max_increase)
