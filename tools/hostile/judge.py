"""How a run ended: an answer, a clean refusal, or a failure; within bounded time and memory."""

import math
import resource
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SECONDS = 30  # of processor time for one run
MEMORY = 2 << 30  # bytes beyond what the process had before the run
LONGEST = 700  # characters of a refusal


@dataclass(frozen=True)
class Outcome:
    """`kind` is "answer", "refused" or that of a failure: foreign, unclean, warning, nan, slow, differs."""

    kind: str
    detail: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.kind not in ("answer", "refused")


class _TooSlow(BaseException):
    """Raised by the timer."""


def limit_memory() -> None:
    """Limit the process to `MEMORY` beyond what it has now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


def renew_limit() -> None:
    """Set the limit anew where there is one: libraries that earlier runs loaded are no memory of the next."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        limit_memory()


def run(function: Callable[[], Any]) -> Outcome:
    """Call a function and judge how it ended; its answer is a number or a mapping of names to numbers."""
    from truecal.errors import TruecalError, TruecalWarning

    def stop(*_: object) -> None:
        raise _TooSlow

    renew_limit()
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = function()
    except TruecalError as error:
        return refusal(str(error))
    except _TooSlow:
        return Outcome("slow", f"more than {SECONDS} s")
    except MemoryError as error:
        return Outcome("slow", f"memory: {error}")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 (a panic of polars is no Exception)
        return Outcome("foreign", f"{type(error).__name__}: {str(error)[:200]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    explained = (TruecalWarning, DeprecationWarning, ImportWarning, ResourceWarning, FutureWarning)
    for warning in caught:
        if not issubclass(warning.category, explained):
            return Outcome("warning", f"{warning.category.__name__}: {str(warning.message)[:200]}")
    numbers = dict(_numbers(answer, ""))
    undefined = [name for name, value in numbers.items() if math.isnan(value)]
    return Outcome("nan", f"{undefined[0]} is NaN") if undefined else Outcome("answer", "", numbers)


def refusal(text: str) -> Outcome:
    """A refusal is one line (one per problem of a study file) of readable length, without control characters and traceback."""
    lines = text.split("\n") if " problem" in text.partition("\n")[0] else [text]
    clean = 5 < len(lines[0]) <= LONGEST and all(map(str.isprintable, lines)) and "Traceback" not in text
    return Outcome("refused" if clean else "unclean", text)


def _numbers(answer: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(answer, Mapping):
        for key, value in answer.items():
            yield from _numbers(value, f"{name}/{key}")
    elif isinstance(answer, (int, float, np.integer, np.floating)):
        yield name, float(answer)
    elif isinstance(answer, np.ndarray):
        yield from ((f"{name}/{i}", float(value)) for i, value in enumerate(answer.ravel()))
