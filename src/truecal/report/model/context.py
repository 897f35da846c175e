"""The page in context: errors of several probabilities at once, of groups of classes, and among rows of chosen labels."""

from collections.abc import Iterator
from dataclasses import dataclass

import truecal as tc
from truecal.lens import Lens, default_lens
from truecal.report.html import paragraph
from truecal.report.table import Cell, p_words, table
from truecal.select import Selection


@dataclass(frozen=True)
class ContextRow:
    """One error: what was judged, on which rows, and what a calibrated model would show."""

    judged: str
    where: str
    metric: str
    n: int
    error: float
    low: float | None
    high: float | None
    if_calibrated: float | None
    p_value: float | None

    @classmethod
    def of(cls, estimate: tc.Estimate) -> "ContextRow":
        low, high = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
        return cls(
            estimate.lens,
            estimate.selection,
            estimate.metric,
            estimate.n,
            float(estimate.value),
            None if low is None else float(low),
            None if high is None else float(high),
            estimate.chance,
            None if estimate.p_value is None else float(estimate.p_value),
        )


@dataclass(frozen=True)
class Context:
    """The errors in context, and which rows the whole page is about (empty: all)."""

    rows: tuple[ContextRow, ...]
    where: str


@dataclass(frozen=True)
class Asked:
    """What was asked for beside the one probability that a page judges."""

    lens: Lens | None
    select: Selection | None

    @property
    def page_lens(self) -> Lens | None:
        """The lens of the page itself, which judges one probability."""
        return None if self.lens is None or self.lens.several else self.lens

    def page_rows(self, data: object) -> object:
        """The rows of the page: those selected, unless by their label, which even a calibrated model would fail."""
        chosen = isinstance(data, tc.Predictions) and self.select is not None and not self.select.uses_labels
        return self.select(data) if chosen and self.select is not None else data  # type: ignore[arg-type]

    def measured(self, data: object, level: float, rng: int) -> Context | None:
        """The errors asked for; None where nothing was."""
        if not isinstance(data, tc.Predictions) or (self.select is None and self.page_lens is self.lens):
            return None
        by_label = self.select is not None and self.select.uses_labels
        where = "" if by_label or self.select is None else f"{self.select}"
        errors = [
            tc.measure(data, lens=lens, select=self.select, level=level, rng=rng)
            for lens in self._lenses(data, by_label)
        ]
        return Context(tuple(ContextRow.of(estimate) for estimate in errors), where)

    def _lenses(self, preds: tc.Predictions, by_label: bool) -> Iterator[Lens]:
        if self.lens is not None and self.lens.several:
            yield from self.lens.parts(preds)
            yield self.lens
        elif by_label:
            yield self.lens or default_lens(preds)


def context_table(context: Context | None, level: float) -> str:
    """The errors in context as a table; nothing where none were asked for."""
    if context is None or not context.rows:
        return ""
    rows = [
        [
            Cell(row.judged),
            Cell(row.where.partition(" (")[0] or "all rows"),
            Cell(f"{row.n:,}", float(row.n)),
            Cell(f"{row.error:.4f}", row.error),
            Cell("" if row.low is None else f"{row.low:.4f} to {row.high:.4f}", row.high or 0.0),
            Cell("" if row.if_calibrated is None else f"{row.if_calibrated:.4f}", row.if_calibrated or 0.0),
            Cell(p_words(row.p_value)),
            Cell(row.metric),
        ]
        for row in context.rows
    ]
    intro = paragraph(
        "What the same predictions are worth to someone who reads several suggestions, acts on groups of classes, or meets "
        "the rows of some labels only. A binned error is never 0, and among the rows of one label even a calibrated model "
        "errs: compare with what a calibrated model with these outputs would show."
    )
    header = ["Judged", "Where", "Predictions", "Error", f"{level:.0%} interval", "If calibrated", "p-value", "Measure"]
    return intro + table("Errors in context", header, rows, id_="context-table")
