"""Logs of Inspect: `.eval` (a zip of JSON files) or `.json`.

A sample has `id`, `epoch` and `scores` by scorer: `value` ("C", "I" or a number), `answer` and `metadata`. The confidence is looked
for in the metadata of the score, then in that of the sample. Epochs of one sample answer the same question.
"""

import json
import struct
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

from truecal.errors import FileError
from truecal.predictions.readers.evals.answers import CONFIDENCE_KEYS, Answer, EvalLog, truth_of
from truecal.predictions.readers.files import DAMAGED_ZIP, unpacked

_ZSTD = 93  # compression method of the zip format that the standard library reads only from Python 3.14 on
_LOCAL_HEADER = struct.Struct("<26xHH")  # ... length of the name, length of the extra field


def is_inspect(value: object) -> bool:
    """Whether a JSON value is such a log."""
    return isinstance(value, dict) and isinstance(value.get("eval"), dict) and isinstance(value.get("samples"), list)


def inspect_archive(file: Path) -> EvalLog:
    """The answers of an `.eval` file."""
    try:
        with ZipFile(file) as archive:
            members = {info.filename: info for info in archive.infolist()}
            header = members.get("header.json") or members.get("_journal/start.json")
            samples = [info for name, info in members.items() if name.startswith("samples/")]
            if header is None or not samples:
                raise FileError(f"{file} is not an Inspect log: it holds no samples")
            evaluation = json.loads(_member(file, archive, header))["eval"]
            values = [json.loads(_member(file, archive, info)) for info in samples]
    except (KeyError, *DAMAGED_ZIP) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file} is damaged or not an Inspect log") from error
    return inspect_log({"eval": evaluation, "samples": values})


def inspect_log(value: dict[str, Any]) -> EvalLog:
    """The answers of a log that was read as JSON."""
    evaluation = value["eval"]
    task, model = str(evaluation.get("task", "")), str(evaluation.get("model", ""))
    answers = tuple(_answer(sample, task, model) for sample in value["samples"])
    scorers = [name for sample in value["samples"] for name in (sample.get("scores") or {})]
    by = f" (scorer {scorers[0]!r})" if len(set(scorers)) > 1 else ""
    return EvalLog("Inspect log", f"of the metadata{by}", answers)


def _answer(sample: dict[str, Any], task: str, model: str) -> Answer:
    scores = sample.get("scores") or {}
    score = next(iter(scores.values()), None) or {}
    places = (score.get("metadata") or {}, sample.get("metadata") or {})
    confidence = next((place[key] for place in places for key in CONFIDENCE_KEYS if place.get(key) is not None), None)
    return Answer(str(sample["id"]), confidence, truth_of(score.get("value")), task, model, int(sample.get("epoch", 1)))


def _member(file: Path, archive: ZipFile, info: ZipInfo) -> bytes:
    """The bytes of one member, also where they are packed by zstd."""
    if info.compress_type != _ZSTD:
        return archive.read(info)
    with file.open("rb") as opened:
        opened.seek(info.header_offset)
        name, extra = _LOCAL_HEADER.unpack(opened.read(_LOCAL_HEADER.size))
        opened.seek(name + extra, 1)
        return unpacked(opened.read(info.compress_size), file)
