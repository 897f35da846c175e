"""The state of a watch as text: versioned JSON of bounded size. Long arrays are packed exactly as float32 (evidence and sums of
blocks, which hold no more) or int32 (starts), deflated, base64; the lines of the history are deflated JSON.

Versions 1 to 3 had other experts, in float64. Their evidence is handed to the experts of today by their shares, which is fair: who
may bet may also divide anew what was won. Version 1 held the lines as they are, versions 1 and 2 the starts, and the sums as
float64.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal.errors import FileError, InputError
from truecal.lens import Lens
from truecal.types import Float64s
from truecal.watch.blocks import Blocks
from truecal.watch.evidence import Evidence, rounded_down
from truecal.watch.experts import Experts, log_sum
from truecal.watch.group import Settings, WatchedGroup
from truecal.watch.history import History, Line
from truecal.watch.incoming import Judged
from truecal.watch.mean_error import MeanError
from truecal.watch.step import Group
from truecal.watch.stream import Stream

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
