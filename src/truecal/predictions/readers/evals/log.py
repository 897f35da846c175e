"""Which evaluation log a file is, and its rows.

Every log becomes a table with the columns `confidence`, `correct`, `question`, `task` and `model`, and those that the log adds.
An answer without a confidence, or one that was not scored, keeps its row with a missing value: it is counted, and left out only
where the user says so (drop_null).
"""

from pathlib import Path
from typing import Any

from truecal.errors import FileError, InputError
from truecal.predictions.readers.evals.answers import EvalLog
from truecal.predictions.readers.evals.helm import helm_log, is_helm
from truecal.predictions.readers.evals.inspect_ai import inspect_archive, inspect_log, is_inspect
from truecal.predictions.readers.evals.lm_eval import is_lm_eval, lm_eval_log
from truecal.predictions.readers.files import kind_of, read_json, read_lines


def eval_log(file: Path, preset: str | None = None) -> EvalLog | None:
    """The log in a file; None where it holds something else."""
    try:
        return _log(file, preset)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise FileError(f"{file}: an answer of this evaluation log is not as its tool writes it: {reason}") from error


def _log(file: Path, preset: str | None) -> EvalLog | None:
    kind = kind_of(file)
    if kind == "eval":
        return inspect_archive(file)
    if kind == "ndjson":
        first = next(read_lines(file), None)
        return lm_eval_log(file, list(read_lines(file)), preset) if is_lm_eval(first) else None
    if kind != "json":
        return None
    value: Any = read_json(file)
    if is_inspect(value):
        return inspect_log(value)
    return helm_log(file, value) if is_helm(value) else None
