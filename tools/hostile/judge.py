"""What came back: the right answer, an error of truecal, or a failure of one of the kinds below."""

import copy
import dataclasses
import inspect
import json
import math
import os
import pickle
import random
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from tools.hostile.values import CONTAINERS

SECONDS = 30  # of processor time that a call on at most 200 rows may take
MEMORY = 2 << 30
# Numbers that are NaN by definition where nothing can be said, each documented with its class.
UNDEFINED = {
    "adjusted", "excess", "low", "high", "slope", "intercept", "c_statistic", "c_low", "c_high", "p_value", "statistic", "width",
    "b0_standard_error", "b1_standard_error",
}  # fmt: skip
# Methods without arguments that show a result in another form.
VIEWS = ("frame", "to_dict", "to_markdown", "to_latex", "to_json", "summary", "tree", "groups", "curves", "avoided", "interval",
         "limits", "_repr_html_", "to_profile", "measure", "compute")  # fmt: skip
_DEPTH = 4
_TYPE_ERRORS = ("TypeError", "AttributeError", "ValueError", "UFuncTypeError", "ComputeError", "InvalidOperationError")
_WRAPPED = re.compile(rf"\b({'|'.join(CONTAINERS)})\((\w+)\)")


@dataclass(frozen=True)
class Outcome:
    """How a call ended: "answer", "refused", or a failure (foreign, nan, warning, accepted, differs, changes, slow)."""

    kind: str
    detail: str = ""

    @property
    def failed(self) -> bool:
        return self.kind not in ("answer", "refused")


class _TooSlow(BaseException):
    """Raised by the clock."""


def limit_memory() -> None:
    """From here on the process may not take more than 2 GiB beyond what it has now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


def renew_limit() -> None:
    """Where memory is limited, it is that of the next call, not of all calls so far and the libraries they loaded."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        limit_memory()


def judge(line: str, names: Mapping[str, Any], *, must_refuse: bool = False, odd: bool = False) -> Outcome:
    """Run a call and say how it ended; one that holds containers must answer what plain arrays answer.

    `odd`: an argument is of a type that no one would give, so that Python's own errors of types are refusals.
    """
    before = _kept(names)
    outcome, answer = _run(line, names)
    if odd and outcome.kind == "foreign" and outcome.detail.startswith(_TYPE_ERRORS):
        outcome = Outcome("refused", outcome.detail)
    changed = [name for name, value in _kept(names).items() if before[name] != value]
    if changed:
        return Outcome("changes", f"{changed[0]} is another after the call")
    if outcome.kind != "answer":
        return outcome
    if must_refuse:
        return Outcome("accepted", f"answered {str(answer)[:100]!r}")
    plain = _WRAPPED.sub(r"\2", line)
    if plain == line:
        return outcome
    expected, other = _run(plain, names)
    # losses of torch take nothing but tensors
    if expected.kind == "refused" and not re.search("[Tt]ensors?, not", expected.detail):
        return Outcome("differs", f"the plain call is refused: {expected.detail}")
    if expected.kind == "answer":
        return _compared(list(numbers(answer)), list(numbers(other)))
    return outcome


def _kept(names: Mapping[str, Any]) -> dict[str, object]:
    """What no call may change: the arrays of the caller, and the state of the process."""
    arrays = {name: value.tobytes() for name, value in names.items() if isinstance(value, np.ndarray)}
    drawn: Any = np.random.get_state()  # noqa: NPY002 (the state that others share)
    state = {
        "numpy's error state": np.geterr(),
        "the shared random state": (random.getstate(), drawn[1].tobytes(), drawn[2]),
    }
    return arrays | state | {"the folder": os.getcwd(), "the filters of warnings": len(warnings.filters)}


def _compared(found: list[tuple[str, float]], wanted: list[tuple[str, float]]) -> Outcome:
    if len(found) != len(wanted):
        return Outcome("differs", f"{len(found)} numbers, plain arrays give {len(wanted)}")
    for (name, here), (_, there) in zip(found, wanted, strict=True):
        if not (here == there or math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-12) or here != here):
            return Outcome("differs", f"{name} is {here!r}, plain arrays give {there!r}")
    return Outcome("answer")


def _run(line: str, names: Mapping[str, Any]) -> tuple[Outcome, Any]:
    from truecal.errors import TruecalError, TruecalWarning

    def stop(*_: object) -> None:
        raise _TooSlow

    renew_limit()
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = eval(line, dict(names))  # the line is ours
            use(answer)
    except TruecalError as error:
        text = str(error)
        return (
            Outcome("refused", text)
            if 5 < len(text) <= 3000
            else Outcome("foreign", f"a message of {len(text)} letters")
        ), None
    except _TooSlow:
        return Outcome("slow", f"more than {SECONDS} s"), None
    except MemoryError as error:
        return Outcome("slow", f"memory: {error}"), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 (every other exception is what is looked for; a panic of polars is no Exception)
        if type(error).__name__ == "NotFittedError":  # what scikit-learn asks of its estimators
            return Outcome("refused", str(error)), None
        return Outcome("foreign", f"{type(error).__name__}: {str(error)[:200]}"), None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
    explained = (TruecalWarning, DeprecationWarning, ImportWarning)
    foreign = [w for w in caught if not issubclass(w.category, explained) and "feature names" not in str(w.message)]
    if foreign:
        return Outcome("warning", f"{foreign[0].category.__name__}: {str(foreign[0].message)[:200]}"), None
    for name, number in numbers(answer):
        if math.isnan(number) and name.split(".")[-1] not in UNDEFINED:
            return Outcome("nan", f"{name} is NaN"), None
    wrong = _impossible(answer)
    if wrong:
        return Outcome("nan", wrong), None
    return Outcome("answer"), answer


def use(answer: Any) -> None:
    """What a caller does with a result: look at it, ask for its table, its record and its other views, and send it to a process."""
    kind = type(answer)
    if not kind.__module__.startswith("truecal"):
        return
    if not hasattr(answer, "get_params"):  # recalibrators show their settings as given
        _refuse_steering(str(answer))
        _refuse_steering(repr(answer))
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if isinstance(member, (property, cached_property)) and not name.startswith("_"):
            _seen(partial(getattr, answer, name))
        elif name in VIEWS and inspect.isfunction(member) and not _needs(member):
            _seen(partial(_show, getattr(answer, name), record=name == "to_dict" and kind.__name__ != "Frame"))
    # Modules of torch and pictures travel in ways of their own; recalibrators keep settings as given until they are fitted.
    if (
        not hasattr(answer, "training")
        and not hasattr(answer, "figure_")
        and (not hasattr(answer, "get_params") or hasattr(answer, "classes_"))
    ):
        again = copy.deepcopy(pickle.loads(pickle.dumps(answer)))
        sent = _compared(list(numbers(again)), list(numbers(answer)))
        if sent.kind != "answer":
            raise AssertionError(f"another answer after pickling: {sent.detail}")


def _refuse_steering(text: str) -> None:
    """What is printed may break lines, and nothing else of what data could do to a terminal."""
    steering = next((c for c in text if not c.isprintable() and c not in "\n\t"), None)
    if steering is not None:
        raise AssertionError(f"{steering!r} of the data would reach a terminal")


def _needs(function: Callable[..., Any]) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _seen(view: Callable[[], object]) -> None:
    """A view may be refused by name, as those of a recalibrator that is not fitted."""
    from truecal.errors import TruecalError

    try:
        view()
    except TruecalError:
        return
    except Exception as error:
        if type(error).__name__ != "NotFittedError":
            raise


def _show(made: Callable[[], Any], *, record: bool) -> None:
    """A record is made of what JSON can hold, a table of what every format can."""
    view = made()
    if record:
        json.dumps(view, allow_nan=False)
    if type(view).__name__ == "Frame":
        for form in ("text", "markdown", "latex", "html", "polars", "pandas"):
            shown = str(getattr(view, f"to_{form}")())
            if form in ("text", "markdown"):
                _refuse_steering(shown)
    str(view)


def _impossible(answer: Any) -> str:
    """What cannot be of an estimate: an interval that is none, a p-value or error outside [0, 1]."""
    interval, value, p = (getattr(answer, name, None) for name in ("interval", "value", "p_value"))
    if isinstance(p, float) and not 0 <= p <= 1 and not math.isnan(p):
        return f"p_value is {p}"
    low, high = getattr(interval, "low", None), getattr(interval, "high", None)
    if isinstance(low, float) and isinstance(high, float) and low > high:
        return f"the interval is [{low}, {high}]"
    if type(answer).__name__ == "Estimate" and isinstance(value, float) and not 0 <= value <= 2:
        return f"value is {value}"
    return ""


def numbers(answer: Any, name: str = "answer", depth: int = 0) -> Iterator[tuple[str, float]]:
    """Every number of a result, with the path of attributes to it."""
    if isinstance(answer, (bool, np.bool_)) or answer is None or depth > _DEPTH:
        return
    if isinstance(answer, (int, float, np.integer, np.floating)):
        yield name, float(answer)
    elif isinstance(answer, np.ndarray):
        if answer.dtype.kind in "fiu" and answer.size <= 10_000:
            yield from ((name, float(v)) for v in answer.ravel())
    elif isinstance(answer, (list, tuple)) and len(answer) <= 1000:
        for part in answer:
            yield from numbers(part, name, depth + 1)
    elif isinstance(answer, Mapping) and len(answer) <= 1000:
        for key, part in answer.items():
            yield from numbers(part, f"{name}.{key}", depth + 1)
    elif dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        for field in dataclasses.fields(answer):
            yield from numbers(getattr(answer, field.name), f"{name}.{field.name}", depth + 1)
