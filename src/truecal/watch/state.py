"""The state of a watch: times of batches, streams and history of every group, and all of it as one JSON file."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from math import exp
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

import truecal as tc
from truecal import options
from truecal.errors import FileError, InputError
from truecal.lenses.lens import Lens
from truecal.predictions.files import LIMIT_VARIABLE, MARGIN, unpacked_limit
from truecal.table import Frame
from truecal.watch.e_processes import Batch, Stream, log_mean_evidence
from truecal.watch.findings import Group, GroupStep, advise, group_name, worst_region
from truecal.watch.incoming import Target

# ----------------------------------------------------------------------------------------------------
# Times: numbers, dates and timestamps

_KINDS = ("a number", "a time without a zone", "a time with a zone")
_COMPACT_DATE = re.compile(r"(19|2\d)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_MAX_DIGITS = 18  # of a time that is a number; derived: it fits into 64 bits
_FAR_AHEAD = timedelta(days=366)  # by choice: later times bring a warning


def time_order(text: str) -> tuple[int, Any]:
    """Return the sort key of a time: its kind (0 a number, 1 a time without a zone, 2 with one) and its value; refuse other text.

    >>> time_order("20260301") == time_order("2026-03-01") < time_order("2026-03-01T12:00")
    True
    >>> time_order("7"), time_order("1772323200")
    ((0, 7), (0, 1772323200))
    """
    digits = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    if digits and not _COMPACT_DATE.fullmatch(text):
        return 0, int(text)
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no time; use a date such as 2026-05-01 or 20260501, a time such as 2026-05-01T12:00, or a number"
        ) from None
    return (1, value) if value.tzinfo is None else (2, value.astimezone(UTC))


def canonical_time(at: Any, latest: str) -> str:
    """Return a time as text, one text for equal times; for None the number after `latest` (1 where that is "").

    Refuses None after dates and times, and what is neither a date, ISO text nor a whole number.

    >>> canonical_time(date(2026, 5, 1), ""), canonical_time("20260501", ""), canonical_time("2026-05-01T12:00", "")
    ('2026-05-01', '2026-05-01', '2026-05-01T12:00')
    >>> canonical_time("2026-05-01T12:00+02:00", ""), canonical_time(None, "7")
    ('2026-05-01T10:00+00:00', '8')
    """
    if at is None:
        if latest and time_order(latest)[0]:
            raise InputError(f"say when the batch is from: at= (the last was at {latest})")
        return str(int(latest or 0) + 1)
    if isinstance(at, date):
        at = at.isoformat()
    elif options.is_whole(at) and at >= 0:
        at = str(at)
    elif not isinstance(at, str):
        raise InputError(f"at must be an ISO date such as 2026-05-01, a date or a whole number, not {at!r}")
    kind, value = time_order(at)
    if kind == 0:
        return str(value)
    if kind == 1 and value.time() == time():
        return str(value.date().isoformat())
    return str(value.isoformat(timespec="auto" if value.second or value.microsecond else "minutes"))


def check_same_kind(text: str, other: str, what: str) -> None:
    """Raise InputError if two times are of different kinds: numbers, times without a zone, times with one.

    `what` introduces `other` in the message.

    >>> check_same_kind("3", "2026-01-01", "the last batch is of")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: 3 is a number but the last batch is of 2026-01-01, a time without a zone; use one kind
    """
    kind, expected = time_order(text)[0], time_order(other)[0]
    if kind != expected:
        raise InputError(f"{text} is {_KINDS[kind]} but {what} {other}, {_KINDS[expected]}; use one kind")


def is_far_ahead(text: str) -> bool:
    """Decide whether a time is more than 366 days from now (likely a mistake, as earlier batches would be refused from then
    on).

    A number never is.

    >>> is_far_ahead("9999-01-01"), is_far_ahead("9999")
    (True, False)
    """
    kind, value = time_order(text)
    return bool(kind and value > datetime.now(value.tzinfo) + _FAR_AHEAD)


def time_number(text: str) -> float:
    """Return a time as seconds since 1970 (UTC where it has no zone), or the number that it is.

    >>> time_number("1970-01-02"), time_number("7")
    (86400.0, 7.0)
    """
    kind, value = time_order(text)
    return float(value if kind == 0 else (value if kind == 2 else value.replace(tzinfo=UTC)).timestamp())


# ----------------------------------------------------------------------------------------------------
# History: one line per batch of a group, of the last batches only, so that the state stays small

_MAX_LINES = 730  # batches; by choice: two years of days
_DIGITS = 6  # by choice: of numbers in the history, which are displayed and not computed with


@dataclass(frozen=True)
class Line:
    """One batch of a group and the state after it, with the numbers of :class:`GroupStep`."""

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
    restart: bool = False  # evidence was discarded before this batch


@dataclass(frozen=True)
class History:
    """Lines in the order in which batches came."""

    lines: tuple[Line, ...] = ()

    @property
    def latest(self) -> str:
        """Time of the last line that is not late (of the last line if all are late); "" without lines.

        >>> History().latest
        ''
        """
        on_time = [line.at for line in self.lines if not line.late] or [line.at for line in self.lines]
        return on_time[-1] if on_time else ""

    def frame(self) -> Frame:
        """Return one row per line, a column for each field of `Line` but the fingerprint, in their order.

        >>> History().frame().columns
        ('number', 'at', 'rows', 'of', 'batch_error', 'error', 'low', 'high', 'log_e', 'log_change', 'alarm',
        'changed', 'late', 'restart')
        """
        names = [item.name for item in fields(Line) if item.name != "fingerprint"]
        return Frame({name: [getattr(line, name) for line in self.lines] for name in names})

    def counted(self, when: str, content: str | None = None) -> bool:
        """Decide whether there is a line of this time, and of this fingerprint if `content` is given.

        >>> History().counted("2026-01-01")
        False
        """
        return any(line.at == when and content in (None, line.fingerprint) for line in self.lines)

    def check_order(self, when: str, group: str) -> None:
        """Raise InputError, naming the group, if a batch at this time was counted or the time is not after the latest batch.

        Without lines every time is accepted.
        """
        if not self.lines:
            return
        if self.counted(when):
            raise InputError(
                f"{group}: a batch at {when} was counted before, with other rows; count further labels of it with late=True "
                "(--late), or remove it with undo if it is the last"
            )
        if time_order(when) <= time_order(self.latest):
            raise InputError(
                f"{group}: {when} is before the last counted batch, {self.latest}; send batches in order of time, or count labels "
                "that came late with late=True (--late)"
            )

    def time_of(self, number: int) -> str:
        """Return the time of the batch of this number; of the first line where its own was dropped, "" without lines."""
        return next((line.at for line in self.lines if line.number >= number), self.latest)


# ----------------------------------------------------------------------------------------------------
# One group watched over time: its streams (one, or one per class) and its history


@dataclass(frozen=True)
class Settings:
    """Settings of a watch, which its state stores: the parameters of :class:`Watch` of these names; `by` are columns."""

    tolerance: float
    alpha: float
    run_length: int
    by: tuple[str, ...]


class Arrival(NamedTuple):
    """Time of a batch, and its labelled rows `of` those that were predicted."""

    at: str
    rows: int
    of: int | None


@dataclass(frozen=True)
class WatchedGroup:
    """A group: one stream per class, with the class's share of the e-value and its label (None where no class is watched).

    `position` is 0 for groups of the first batch, else the order in which later groups came, from 1.
    """

    key: Group
    position: int
    shares: tuple[float, ...]
    labels: tuple[str | None, ...]
    streams: tuple[Stream, ...]
    history: History = field(default_factory=History)
    peak: float = 0.0  # largest log e-value since the last restart

    @property
    def name(self) -> str:
        """The values of the group joined by commas; "all rows" without `by`."""
        return group_name(self.key)

    @property
    def log_e(self) -> float:
        """Log of the mean e-value over classes, weighted by `shares`."""
        return log_mean_evidence([stream.evidence.log_e for stream in self.streams], list(self.shares))

    @property
    def log_change(self) -> float:
        """Log of the mean over classes of exp(`Evidence.log_change`), weighted by `shares`."""
        return log_mean_evidence([stream.evidence.log_change for stream in self.streams], list(self.shares))

    @property
    def leader(self) -> int:
        """Position of the stream (class) with the largest log e-value, the first of equal ones."""
        return int(np.argmax([stream.evidence.log_e for stream in self.streams]))

    def after(self, batches: tuple[Batch, ...]) -> WatchedGroup:
        """Return the group with one batch per stream added, and the peak, the largest log e-value so far, updated.

        The history stays as it is.
        """
        streams = tuple(stream.after(batch) for stream, batch in zip(self.streams, batches, strict=True))
        grown = replace(self, streams=streams)
        return replace(grown, peak=max(self.peak, grown.log_e))

    def restarted(self) -> WatchedGroup:
        """Return the group with `Stream.restarted` streams and peak 0; its history stays."""
        return replace(self, streams=tuple(stream.restarted() for stream in self.streams), peak=0.0)

    def with_line(self, batches: tuple[Batch, ...], step: GroupStep, *, late: bool, restart: bool) -> WatchedGroup:
        """Return the group with a line of the batch added to its history, which keeps the last 730; numbers have 6 digits.

        `batches` are those just added by `after`, one per class; the line's `batch_error` is that of the leading class.
        """
        leading = batches[self.leader]
        line = Line(
            number=self.streams[0].batches,
            at=step.at,
            fingerprint=fingerprint(batches),
            rows=step.rows,
            of=step.of,
            batch_error=_round(leading.total / leading.size),
            error=_round(step.error),
            low=_round(step.low),
            high=_round(step.high),
            log_e=_round(self.log_e),
            log_change=_round(self.log_change),
            alarm=step.alarm,
            changed=step.changed,
            late=late,
            restart=restart,
        )
        return replace(self, history=History((*self.history.lines, line)[-_MAX_LINES:]))

    def step(self, arrival: Arrival, settings: Settings, target: str, *, alarm: bool, changed: bool) -> GroupStep:
        """Return the state after a batch that is not yet in the history, by the class with the strongest evidence.

        `arrival` is that of the batch, `target` what is judged in words; `alarm` and `changed` are decided by the watch over all
        groups.
        """
        leading = self.leader
        stream = self.streams[leading]
        low, high = stream.errors.interval(settings.alpha)
        _, since_then = stream.blocks.split(stream.start)
        advice, offset = advise(since_then, stream.experts, alarmed=alarm or changed)
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
            since=arrival.at if stream.start == stream.batches else self.history.time_of(stream.start),
            worst=worst_region(since_then, stream.experts, target),
            worst_class=self.labels[leading],
            error=stream.errors.mean,
            low=low,
            high=high,
            advice=advice,
            offset=offset,
        )


def _round(value: float) -> float:
    """Round to 6 significant digits.

    >>> _round(0.123456789)
    0.123457
    """
    return float(f"{value:.{_DIGITS}g}")


def fingerprint(batches: tuple[Batch, ...]) -> str:
    """Return the fingerprint of one batch, or for several (one per class) the first 16 hex digits of the SHA-256 of all.

    >>> batch = Batch.from_sketch(tc.Sketch.from_arrays([0.5, 0.5], [0, 1]))
    >>> fingerprint((batch,)) == batch.fingerprint, len(fingerprint((batch, batch)))
    (True, 16)
    """
    if len(batches) == 1:
        return batches[0].fingerprint
    return hashlib.sha256("".join(batch.fingerprint for batch in batches).encode()).hexdigest()[:16]


# ----------------------------------------------------------------------------------------------------
# The state as a JSON file: a header in clear, and all records packed as one text. Records are written as lists of their
# fields and read by the types of these; arrays are float32 (exactly: evidence is rounded down to it, sums are counts) or int32.

_FORMAT, _VERSION = "truecal.watch", 1  # by choice: counts the changes of the format
_LENSES: dict[str, type[Lens]] = {"TopLabel": tc.TopLabel, "OneClass": tc.OneClass, "ClassWise": tc.ClassWise}
# Tuned: bytes of memory of a list and of an item of one, while JSON is parsed (measured on empty lists and on numbers).
_LIST_BYTES, _ITEM_BYTES = 80, 40
_PRESET = 0  # of lzma; tuned: its dictionary of 256 KiB holds one group before and after a batch, 3 s for 1,000 groups


@dataclass(frozen=True)
class State:
    """State of a watch after the batch at time `at`, and the state `before` it (None: the batch cannot be undone).

    `peak` is the largest log of the mean e-value over all groups since the last restart; `target` is None for sketches alone.
    """

    settings: Settings
    target: Target | None
    peak: float
    groups: tuple[WatchedGroup, ...]
    at: str = ""
    before: State | None = None


def to_text(state: State, lens: Lens | None) -> str:
    """Return a state and its lens as one line of JSON: format, version, lens {"name", "options"}, and the packed records.

    The records are JSON of `_encode`, compressed by lzma and written in base64.
    """
    named = None if lens is None else {"name": type(lens).__name__, "options": asdict(lens)}
    content = json.dumps(_encode(state), separators=(",", ":"), allow_nan=False).encode()
    packed = b64encode(lzma.compress(content, preset=_PRESET)).decode("ascii")
    return json.dumps({"format": _FORMAT, "version": _VERSION, "lens": named, "content": packed}) + "\n"


def from_text(text: str, name: str) -> tuple[State, Lens | None]:
    """Read the state and the lens from the text of :func:`to_text`; `name` is how errors call the file.

    Raises FileError for text that is no state, another version, or content that is damaged or does not fit together.
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{name} is not the state of a watch: it is not valid JSON") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise FileError(f"{name} is not the state of a watch")
    if record.get("version") != _VERSION:
        raise FileError(
            f"{name} has version {record.get('version')!r} of the format, and this truecal reads version {_VERSION} only; start a "
            "new state by counting the batches again, or use the truecal that wrote it"
        )
    try:
        state: State = _decode(State, json.loads(_unpack(record["content"])))
        for part in (state,) if state.before is None else (state, state.before):
            if part.target is not None and len(part.target.names or ()) not in (0, part.target.classes):
                raise ValueError("the names are not those of the classes")
            for group in part.groups:
                _check_group(group)
        return state, _read_lens(record["lens"])
    except (
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
        lzma.LZMAError,
    ) as error:
        raise FileError(f"{name} is damaged: {type(error).__name__} {error}") from error


def _unpack(text: str) -> bytes:
    """Decompress base64 text of lzma data; refuse what would fill the memory, by size (`unpacked_limit`) or number of values.

    >>> _unpack(b64encode(lzma.compress(b"abc")).decode())
    b'abc'
    """
    packed = b64decode(text, validate=True)
    limit = unpacked_limit(len(packed))
    reader = lzma.LZMADecompressor(memlimit=MARGIN)
    content = reader.decompress(packed, limit)
    if not reader.eof:
        raise ValueError(f"the content is cut off, or unpacks to more than {limit:,} bytes ({LIMIT_VARIABLE})")
    memory = _LIST_BYTES * (content.count(b"[") + content.count(b"{")) + _ITEM_BYTES * content.count(b",")
    if memory > limit + MARGIN:
        raise ValueError(f"its values take {memory / 1e9:.1f} GB of memory ({LIMIT_VARIABLE})")
    return content


def _read_lens(record: dict[str, Any] | None) -> Lens | None:
    """Make a lens from its record {"name", "options"}, None from None; refuse names but TopLabel, OneClass and ClassWise.

    >>> _read_lens({"name": "OneClass", "options": {"name": "dog"}})
    OneClass(name='dog')
    """
    if record is None:
        return None
    if record["name"] not in _LENSES:
        raise InputError(f"there is no lens {record['name']!r}")
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in record["options"].items()}
    return _LENSES[record["name"]](**options)


def _check_group(group: WatchedGroup) -> None:
    """Raise ValueError if shares, labels, history or arrays of a group have wrong counts, shapes or values."""
    if not group.streams or len(group.streams) != len(group.shares) or len(group.streams) != len(group.labels):
        raise ValueError("classes, shares and streams do not match")
    if min(group.shares) < 0 or not np.isclose(sum(group.shares), 1.0):
        raise ValueError(f"the shares of the classes are {group.shares}, which do not sum to 1")
    if not group.history.lines:
        raise ValueError("a group has no batch")
    for line in group.history.lines:
        time_order(line.at)
    for stream in group.streams:
        evidence, blocks = stream.evidence, stream.blocks
        shapes = {values.shape for values in (evidence.since, evidence.ever, evidence.change, evidence.best)}
        if (
            shapes != {stream.experts.prior.shape}
            or not (np.array([evidence.ever, evidence.change, evidence.best]) < np.inf).all()
        ):
            raise ValueError("the evidence does not match the experts")
        shape = (len(blocks.first), 3, len(stream.experts.cuts) + 1)
        if blocks.sums.shape != shape or len(blocks.lengths) != len(blocks.first) or not np.isfinite(blocks.sums).all():
            raise ValueError("the sums of the blocks are not counts")


def _encode(value: Any) -> Any:
    """Convert a record to JSON types: dataclasses to lists of fields, arrays to [shape, base64 of int32 or float32].

    >>> _encode((1.5, np.array([1, 2])))
    [1.5, [[2], 'AQAAAAIAAAA=']]
    """
    if is_dataclass(value):
        return [_encode(getattr(value, item.name)) for item in fields(value)]
    if isinstance(value, np.ndarray):
        kind = "<i4" if value.dtype.kind == "i" else "<f4"
        return [list(value.shape), b64encode(np.ascontiguousarray(value, kind).tobytes()).decode("ascii")]
    return [_encode(part) for part in value] if isinstance(value, tuple) else value


def _decode(kind: Any, value: Any) -> Any:
    """Convert a value of JSON to a type, as `_encode` wrote it; what does not fit raises an error of those that from_text
    expects.

    A dataclass is read from the list of its fields, a tuple from a list, an array from [shape, base64], `X | None` from null or
    X. Numbers must be finite, whole numbers not negative, and booleans are no numbers.

    >>> _decode(tuple[float, ...], [1.5, 2]), _decode(int | None, None)
    ((1.5, 2.0), None)
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else _decode(arguments[0], value)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(*(_decode(part, item) for part, item in zip(_field_types(kind), value, strict=True)))
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{value!r:.40} is no list")
        return tuple(_decode(arguments[0], part) for part in value)
    if origin is np.ndarray:
        shape, text = value
        dtype = get_args(arguments[1])[0]
        return np.frombuffer(b64decode(text), "<i4" if dtype is np.int64 else "<f4").reshape(shape).astype(dtype)
    if isinstance(value, bool) != (kind is bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise ValueError(f"{value!r:.40} is no {kind.__name__}")
    if kind is float and not np.isfinite(float(value)):
        raise ValueError(f"{value!r:.40} is no finite number")
    if kind is int and value < 0:
        raise ValueError(f"{value!r:.40} is no count")
    return kind(value)


@lru_cache
def _field_types(kind: type) -> tuple[Any, ...]:
    """Return the types of the fields of a dataclass, in their order.

    >>> _field_types(Line)[:2]
    (<class 'int'>, <class 'str'>)
    """
    return tuple(get_type_hints(kind)[item.name] for item in fields(kind))
