"""What happened when: one line per batch of a group, of the last batches only, so that the state stays small."""

from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any

from truecal import options
from truecal.errors import InputError
from truecal.frame import Frame

_KEPT = 730  # batches: two years of days


@dataclass(frozen=True)
class Line:
    """One batch of a group: what came, and what the watch then said. Numbers are those of :class:`GroupStep`."""

    number: int  # of the batch, from 1
    at: str
    fingerprint: str
    rows: int
    of: int | None
    batch_error: float  # mean score - frequency of this batch alone
    error: float
    low: float
    high: float
    log_e: float
    log_change: float
    alarm: bool
    changed: bool
    late: bool = False
    restart: bool = False  # evidence was forgotten before this batch


@dataclass(frozen=True)
class History:
    """Lines in the order in which batches came; `latest` is the time up to which batches are known."""

    lines: tuple[Line, ...] = field(default=())
    latest: str = ""

    def plus(self, line: Line) -> "History":
        latest = self.latest if line.late else line.at
        return History((*self.lines, line)[-_KEPT:], latest)

    def frame(self) -> Frame:
        """One row per batch."""
        names = [item.name for item in fields(Line) if item.name != "fingerprint"]
        return Frame({name: [getattr(line, name) for line in self.lines] for name in names})

    def seen(self, at: str, fingerprint: str) -> bool:
        """Whether this very batch has been counted."""
        return any(line.at == at and line.fingerprint == fingerprint for line in self.lines)

    def refuse_past(self, at: str, group: str) -> None:
        """Raise where a batch is not later than those before it."""
        if not self.lines:
            return
        _refuse_unlike(at, self.latest)
        if any(line.at == at for line in self.lines):
            raise InputError(
                f"{group}: a batch at {at} was counted before, with other rows; further labels of it are counted with late=True "
                "(--late)"
            )
        if order(at) <= order(self.latest):
            raise InputError(
                f"{group}: the batch at {at} comes after the one at {self.latest}; replay batches in order, or count labels that "
                "came late with late=True (--late)"
            )

    def at(self, number: int) -> str:
        """The time of a batch; of one that is no longer kept, the first that is."""
        for line in self.lines:
            if line.number >= number:
                return line.at
        return self.latest


def moment(at: Any, before: str) -> str:
    """A time as text: an ISO date or time, or a whole number; without one, the number after the last.

    >>> moment(date(2026, 5, 1), ""), moment("2026-05-01T12:00", ""), moment(None, "7")
    ('2026-05-01', '2026-05-01T12:00', '8')
    """
    if at is None:
        if before and not before.isdigit():
            raise InputError(f"say when the batch is from: at= (the last was at {before})")
        return str(int(before or 0) + 1)
    if isinstance(at, (date, datetime)):
        return at.isoformat()
    if options.is_whole(at) and at >= 0:
        return str(at)
    if isinstance(at, str):
        order(at)
        return at
    raise InputError(f"at must be an ISO date such as 2026-05-01, a date or a whole number, not {at!r}")


def order(at: str) -> tuple[int, Any]:
    """What times are compared by."""
    if at.isdigit() and len(at) < 8:
        return 0, int(at)
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        raise InputError(
            f"{at!r} is no time; use an ISO date such as 2026-05-01 or 2026-05-01T12:00, or a number"
        ) from None
    return (2, when) if when.tzinfo is not None else (1, when)


def _refuse_unlike(at: str, latest: str) -> None:
    kinds = {0: "a number", 1: "a time without a zone", 2: "a time with a zone"}
    mine, theirs = order(at)[0], order(latest)[0]
    if mine != theirs:
        raise InputError(f"{at} is {kinds[mine]} but the last batch was at {latest}, {kinds[theirs]}; use one kind")
