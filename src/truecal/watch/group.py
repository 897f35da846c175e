"""One group watched over time: its streams (one, or one per class), what they say together, and what happened when."""

import hashlib
from dataclasses import dataclass, field, replace
from math import exp

import numpy as np

from truecal.watch.cells import Batch
from truecal.watch.findings import advice, worst_region
from truecal.watch.history import History, Line
from truecal.watch.step import Group, GroupStep, group_name
from truecal.watch.stream import Stream, mixed


@dataclass(frozen=True)
class Settings:
    """What is asked of a watch; a state keeps them, and other ones are refused."""

    tolerance: float
    alpha: float
    run_length: int
    by: tuple[str, ...]


@dataclass(frozen=True)
class Arrival:
    """When a batch came and how: `rows` are labelled of the `of` that were predicted; a late one may be older than the last."""

    at: str
    rows: int
    of: int | None
    late: bool
    restart: bool


@dataclass(frozen=True)
class WatchedGroup:
    """`streams` one per class with its share and name; `position` is 0 for groups of the first batch, else the order of arrival."""

    key: Group
    position: int
    shares: tuple[float, ...]
    labels: tuple[str | None, ...]
    streams: tuple[Stream, ...]
    history: History = field(default_factory=History)
    peak: float = 0.0  # largest log e-value since the last restart

    @property
    def name(self) -> str:
        return group_name(self.key)

    @property
    def log_e(self) -> float:
        """Of the mean over classes."""
        return mixed([stream.evidence.log_e for stream in self.streams], list(self.shares))

    @property
    def log_change(self) -> float:
        return mixed([stream.evidence.log_change for stream in self.streams], list(self.shares))

    @property
    def leader(self) -> int:
        """The class with most evidence."""
        return int(np.argmax([stream.evidence.log_e for stream in self.streams]))

    def after(self, batches: tuple[Batch, ...]) -> "WatchedGroup":
        """With one more batch, which is not yet in the history."""
        streams = tuple(stream.after(batch) for stream, batch in zip(self.streams, batches, strict=True))
        grown = replace(self, streams=streams)
        return replace(grown, peak=max(self.peak, grown.log_e))

    def restarted(self) -> "WatchedGroup":
        """With all evidence forgotten."""
        return replace(self, streams=tuple(stream.restarted() for stream in self.streams), peak=0.0)

    def noted(self, batches: tuple[Batch, ...], arrival: Arrival, step: GroupStep) -> "WatchedGroup":
        """With the batch in its history."""
        leading = batches[self.leader]
        line = Line(
            number=self.streams[0].batches,
            at=arrival.at,
            fingerprint=fingerprint(batches),
            rows=step.rows,
            of=arrival.of,
            batch_error=leading.total / leading.size,
            error=step.error,
            low=step.low,
            high=step.high,
            log_e=self.log_e,
            log_change=self.log_change,
            alarm=step.alarm,
            changed=step.changed,
            late=arrival.late,
            restart=arrival.restart,
        )
        return replace(self, history=self.history.plus(line))

    def step(self, arrival: Arrival, settings: Settings, *, alarm: bool, changed: bool) -> GroupStep:
        """What the group says after a batch that is not yet in its history."""
        leading = self.leader
        stream = self.streams[leading]
        low, high = stream.errors.interval(settings.alpha)
        _, since_then = stream.blocks.split(stream.start)
        to_do, offset = advice(since_then, stream.experts, alarmed=alarm or changed)
        return GroupStep(
            group=self.key,
            at=arrival.at,
            rows=arrival.rows,
            of=arrival.of,
            rows_seen=stream.rows,
            log_e=self.log_e,
            p_value=min(1.0, exp(-self.peak)),
            alarm=alarm,
            changed=changed,
            evidence_of_change=self.log_change,
            since=arrival.at if stream.start == stream.batches else self.history.at(stream.start),
            worst=worst_region(since_then, stream.experts),
            worst_class=self.labels[leading],
            error=stream.errors.mean,
            low=low,
            high=high,
            advice=to_do,
            offset=offset,
        )


def fingerprint(batches: tuple[Batch, ...]) -> str:
    """Of the counts of all classes."""
    if len(batches) == 1:
        return batches[0].fingerprint
    return hashlib.sha256("".join(batch.fingerprint for batch in batches).encode()).hexdigest()[:16]
