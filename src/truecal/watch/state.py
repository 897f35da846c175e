"""What happened when: one line per batch of a group, of the last batches only, so that the state stays small."""

import hashlib
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date, datetime
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.lenses.lens import Lens
from truecal.table import Frame
from truecal.types import Float64s
from truecal.watch.e_processes import Batch, Blocks, Evidence, Experts, MeanError, Stream, log_sum, mixed, rounded_down
from truecal.watch.findings import Group, GroupStep, advice, group_name, worst_region
from truecal.watch.incoming import Judged

# ----------------------------------------------------------------------------------------------------
# What happened when: one line per batch of a group, of the last batches only, so that the state stays small

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


# ----------------------------------------------------------------------------------------------------
# One group watched over time: its streams (one, or one per class), what they say together, and what happened when


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


# ----------------------------------------------------------------------------------------------------
# The state of a watch as text: versioned JSON of bounded size. Long arrays are packed exactly as float32 (evidence and sums of

_FORMAT, _VERSION = "truecal.watch", 4
_LENSES: dict[str, type[Lens]] = {"TopLabel": tc.TopLabel, "OneClass": tc.OneClass, "ClassWise": tc.ClassWise}
_ARRAYS = ("ever", "change", "best")
_DIGITS = 6  # of numbers in the history, which are shown and not computed with


@dataclass(frozen=True)
class State:
    """What a file holds."""

    settings: Settings
    lens: Lens | None
    judged: Judged | None
    peak: float
    groups: dict[Group, WatchedGroup]


def to_text(
    settings: Settings, lens: Lens | None, judged: Judged | None, peak: float, groups: Mapping[Group, WatchedGroup]
) -> str:
    """The state as JSON."""
    named = None if lens is None else {"name": type(lens).__name__, "options": asdict(lens)}
    record = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": asdict(settings),
        "lens": named,
        "judged": None if judged is None else asdict(judged),
        "peak": peak,
        "groups": [_group_record(groups[key]) for key in sorted(groups)],
    }
    return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"


def from_text(text: str, name: str) -> State:
    """The state that a text holds; `name` is how errors call the file."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{name} is not the state of a watch: it is not valid JSON") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise FileError(f"{name} is not the state of a watch")
    if not isinstance(record.get("version"), int) or record["version"] > _VERSION:
        raise FileError(f"{name} was written by a newer truecal (version {record.get('version')} of the format)")
    try:
        held = record["settings"]
        settings = Settings(**{**held, "by": tuple(held["by"])})
        groups = [_group(part, settings.tolerance, record["version"]) for part in record["groups"]]
        state = State(
            settings,
            _lens(record["lens"]),
            None if record["judged"] is None else _judged(record["judged"]),
            _number(record["peak"]),
            {group.key: group for group in groups},
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, zlib.error) as error:
        raise FileError(f"{name} is damaged: {type(error).__name__} {error}") from error
    return state


def _lens(record: dict[str, Any] | None) -> Lens | None:
    if record is None:
        return None
    if record["name"] not in _LENSES:
        raise InputError(f"there is no lens {record['name']!r}")
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in record["options"].items()}
    return _LENSES[record["name"]](**options)


def _judged(record: dict[str, Any]) -> Judged:
    names = record["names"]
    if names is not None and not (isinstance(names, list) and len(names) == record["classes"]):
        raise ValueError("the names are not those of the classes")
    return Judged(**{**record, "names": None if names is None else tuple(map(str, names))})


# ---------------------------------------------------------------------- groups


def _group_record(group: WatchedGroup) -> dict[str, Any]:
    columns = [field.name for field in fields(Line)]
    lines = [[_rounded(getattr(line, name)) for name in columns] for line in group.history.lines]
    return {
        "key": list(group.key),
        "position": group.position,
        "shares": list(group.shares),
        "labels": list(group.labels),
        "peak": group.peak,
        "latest": group.history.latest,
        "columns": columns,
        "lines": _deflated(json.dumps(lines, separators=(",", ":"), allow_nan=False).encode()),
        "streams": [_stream_record(stream) for stream in group.streams],
    }


def _group(record: dict[str, Any], tolerance: float, version: int) -> WatchedGroup:
    held = record["lines"]
    rows = json.loads(_inflated(held)) if isinstance(held, str) else held
    lines = tuple(_line(dict(zip(record["columns"], row, strict=True))) for row in rows)
    streams = tuple(_stream(part, tolerance, version) for part in record["streams"])
    if not streams or len(streams) != len(record["shares"]) or len(streams) != len(record["labels"]):
        raise ValueError("classes, shares and streams do not match")
    shares = tuple(map(_number, record["shares"]))
    if min(shares) < 0 or not np.isclose(sum(shares), 1.0):
        raise ValueError(f"the shares of the classes are {shares}, which are not parts of 1")
    return WatchedGroup(
        key=tuple(map(str, record["key"])),
        position=_whole(record["position"]),
        shares=shares,
        labels=tuple(record["labels"]),
        streams=streams,
        history=History(lines, str(record["latest"])),
        peak=_number(record["peak"]),
    )


def _line(record: dict[str, Any]) -> Line:
    """One line of the history: what is not text is a number, true or false, or nothing."""
    for name, value in record.items():
        if name not in ("at", "fingerprint") and not isinstance(value, bool | None):
            _number(value)
    return Line(**record)


def _stream_record(stream: Stream) -> dict[str, Any]:
    evidence = stream.evidence
    return {
        "cuts": list(stream.experts.cuts),
        "centre": stream.experts.centre,
        "batches": stream.batches,
        "rows": stream.rows,
        "errors": [stream.errors.size, stream.errors.total, stream.errors.squares],
        "blocks": {
            "first": list(stream.blocks.first),
            "lengths": list(stream.blocks.lengths),
            "sums": _packed(stream.blocks.sums, "<f4"),
        },
        "evidence": {
            "batches": evidence.batches,
            "since": _packed(evidence.since, "<i4"),
            **{name: _packed(getattr(evidence, name), "<f4") for name in _ARRAYS},
        },
    }


def _stream(record: dict[str, Any], tolerance: float, version: int) -> Stream:
    experts = Experts(tolerance, tuple(map(_number, record["cuts"])), _number(record["centre"]))
    blocks = record["blocks"]
    kind = "<f8" if isinstance(record["evidence"]["since"], list) else "<f4"
    sums = _unpacked(blocks["sums"], (len(blocks["first"]), 3, len(experts.cuts) + 1), kind)
    if not np.isfinite(sums).all() or len(blocks["lengths"]) != len(sums):
        raise ValueError("the sums of the blocks are no counts")
    return Stream(
        experts=experts,
        evidence=_evidence(record["evidence"], experts, version),
        errors=MeanError(*map(_number, record["errors"])),
        blocks=Blocks(tuple(map(_whole, blocks["first"])), tuple(map(_whole, blocks["lengths"])), sums),
        batches=_whole(record["batches"]),
        rows=_whole(record["rows"]),
    )


def _evidence(record: dict[str, Any], experts: Experts, version: int) -> Evidence:
    held = record["since"]
    since = np.array(held, np.int64) if isinstance(held, list) else _unpacked(held, (-1,), "<i4").astype(np.int64)
    kind = "<f4" if version >= 4 else "<f8"
    ever, change, best = (_unpacked(record[name], since.shape, kind) for name in _ARRAYS)
    if version < 4:
        since = np.full(len(experts.prior), since[np.argmax(best)])
        ever, change, best = (rounded_down(experts.prior + won) for won in (log_sum(ever), log_sum(change), best.max()))
    if since.shape != experts.prior.shape or not (np.array([ever, change, best]) < np.inf).all():
        raise ValueError("the evidence does not match the experts")
    return Evidence(_whole(record["batches"]), ever, change, best, since)


def _number(value: object) -> float:
    """A finite number; text, true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(float(value)):
        raise ValueError(f"{value!r:.40} is no finite number")
    return float(value)


def _whole(value: object) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r:.40} is no count")
    return value


def _packed(values: Float64s | NDArray[np.int64], kind: str) -> str:
    return _deflated(np.ascontiguousarray(values, kind).tobytes())


def _unpacked(text: str, shape: tuple[int, ...], kind: str) -> Float64s:
    return np.frombuffer(_inflated(text), kind).reshape(shape).astype(np.float64)


def _deflated(content: bytes) -> str:
    return b64encode(zlib.compress(content, 9)).decode("ascii")


def _inflated(text: str) -> bytes:
    return zlib.decompress(b64decode(text, validate=True))


def _rounded(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
