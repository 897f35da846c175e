"""Options refused in one place and in one wording: levels, whole numbers, choices, norms, seeds, and arguments of another kind."""

import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from truecal.errors import InputError, TruecalError

MOST_BINS = 1_000_000
_LARGEST_NORM = 20  # the power of a gap of 1e-15 is still a number


def is_whole(value: object) -> bool:
    """Whether a value is a whole number: no truth value, and no span of time, which numpy takes for one."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: object) -> bool:
    """Whether a value is a real number, of at most 64 bits: scipy takes no longer ones."""
    return (isinstance(value, (float, np.floating)) and not isinstance(value, np.longdouble)) or is_whole(value)


def level(level: object) -> None:
    """Refuse a confidence level that is not a number strictly between 0 and 1."""
    between(level, "level", 0, 1)


def between(value: object, name: str, low: float, high: float) -> None:
    """Refuse what is not a number strictly between `low` and `high`."""
    if not is_number(value) or not low < value < high:  # type: ignore[operator]
        raise InputError(f"{name} must lie strictly between {low:g} and {high:g}, not {_shown(value)}")


def limits(low: float, high: float, what: str) -> None:
    """Refuse an interval whose ends are not numbers in order."""
    for end in (low, high):
        if not is_number(end) or end != end:
            raise InputError(f"{what} must be an interval of two numbers, not [{low!r}, {high!r}]")
    if low > high:
        raise InputError(f"{what} [{low:g}, {high:g}] has low above high; swap them")


def whole(value: object, name: str, least: int = 1, most: int | None = None) -> None:
    """Refuse what is not a whole number of at least `least` (and at most `most`)."""
    if not is_whole(value) or value < least:  # type: ignore[operator]
        raise InputError(f"{name} must be a whole number of at least {least}, not {_shown(value)}")
    if most is not None and value > most:  # type: ignore[operator]
        raise InputError(f"{name} must be at most {most:,}, not {value:,}")


def bins(value: object) -> None:
    """Refuse a number of bins that is no whole number, or that is a mistake and would only cost memory."""
    whole(value, "bins", 1, MOST_BINS)


def resamples(value: object, name: str = "resamples", least: int = 1) -> None:
    """Refuse a number of resamples, redraws or datasets that is no whole number, or that would take for ever."""
    whole(value, name, least, 10_000_000)


def choice(value: object, choices: tuple[object, ...], name: str) -> None:
    """Refuse an option that is not among its choices."""
    for choice in choices:
        if value is choice:  # the usual case, and the quickest to see
            return
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise InputError(f"{name} must be {' or '.join(map(repr, choices))}, not {_shown(value)}")


def texts(values: Sequence[object], name: str) -> None:
    """Refuse a list of names in which something is not text."""
    for value in values:
        if not isinstance(value, str):
            raise InputError(f"{name} are named by text, not {_shown(value)}")


def norm(norm: object, allowed: tuple[float, ...] | None = None) -> None:
    """Refuse a norm that is not a number from 1 to 20 or inf, or not among the allowed."""
    if not is_number(norm) or not norm >= 1:  # type: ignore[operator]
        raise InputError(f"norm must be a number of at least 1, or inf, not {_shown(norm)}")
    if _LARGEST_NORM < norm < np.inf:  # type: ignore[operator]
        raise InputError(f"norm must be at most {_LARGEST_NORM}, or inf for the largest gap, not {_shown(norm)}")
    if allowed is not None and norm not in allowed:
        raise InputError(f"norm must be {' or '.join(f'{p:g}' for p in allowed)} here, not {norm:g}")


def generator(rng: Any) -> np.random.Generator:
    """The generator behind `rng`: a seed (a whole number of at least 0), or a numpy Generator that goes on where it is."""
    if isinstance(rng, (np.random.Generator, np.random.SeedSequence)):
        return np.random.default_rng(rng)
    whole(rng, "rng", 0)
    return np.random.default_rng(int(rng))


# ------------------------------------------------------------------ arguments of another kind than the signature says

Thing = TypeVar("Thing", bound=Callable[..., Any])
_NUMBERS = (int, float)
_ARRAY = "array"  # stands for ArrayLike, which is a union of everything
_REMEDIES = {
    "Predictions": ("Predictions", "build them with tc.Predictions.from_probs(probs, labels)"),
    "Profile": ("a Profile", "a lens such as tc.TopLabel() makes one of Predictions"),
    "Lens": ("one of truecal's, such as tc.TopLabel() or tc.TopK(5)", ""),
    "Estimator": ("one of truecal's, such as tc.SweepECE()", ""),
    "Selection": ("a selection, such as tc.by_label(0) or tc.by_column('site', 'north')", ""),
    "Generator": ("a numpy Generator", ""),
    "ScoreMapping": ("a recalibrator of one score, such as tc.BetaCalibration()", ""),
    "Scores": ("a distribution, such as tc.lab.Beta(2, 0.5) or tc.lab.Uniform()", ""),
    "Distance": ("one of truecal's, such as tc.TotalVariation()", ""),
    "VectorBinning": ("one of truecal's, such as tc.KDTree() or tc.EqualWidth(15)", ""),
}


def checked(thing: Thing) -> Thing:
    """Refuse by name arguments that are not of the kind that the signature says: of a function, or a class and its public methods.

    Objects, texts, choices and containers are looked at before the call. Numbers have checks of their own with narrower words; only
    where those let one through and the call fails is it asked whether an argument is no number at all.

    >>> @checked
    ... def halve(x: float, how: Literal["up", "down"] = "up") -> float:
    ...     return x / 2
    >>> halve("3")
    Traceback (most recent call last):
    truecal.errors.InputError: x must be a number, not '3'
    >>> halve(3.0, how="left")
    Traceback (most recent call last):
    truecal.errors.InputError: how must be 'up' or 'down', not 'left'
    """
    if isinstance(thing, type):
        for name, member in list(vars(thing).items()):
            if name in ("__init__", "__call__") or not name.startswith("_"):
                _check_member(thing, name, member)
        return thing
    if hasattr(thing, "checks_arguments"):
        return thing

    # Types of arguments that were found to fit whatever their values are: objects of truecal, mostly `self` and its data.
    known: set[tuple[type, ...]] = set()

    @wraps(thing)
    def call(*arguments: Any, **options: Any) -> Any:
        kinds = tuple(map(type, arguments))
        if options or kinds not in known:
            refuse_misfits(thing, arguments, options, numbers=False)
            if any(isinstance(value, np.generic) for value in (*arguments, *options.values())):
                arguments, options = _own_numbers(thing, arguments, options)
            if not options and _fit_by_type(thing, arguments):
                known.add(kinds)
        try:
            return thing(*arguments, **options)
        except TruecalError:
            raise
        except Exception:  # of any library: they differ in what they raise for an argument that is no number
            refuse_misfits(thing, arguments, options, numbers=True)
            raise

    call.checks_arguments = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _check_member(owner: type, name: str, member: Any) -> None:
    """Make a method of a class refuse misfits; those without arguments, properties and what is nested stay as they are."""
    made = type(member) if isinstance(member, (classmethod, staticmethod)) else None
    function = member.__func__ if made else member
    arguments = len(inspect.signature(function).parameters) if inspect.isfunction(function) else 0
    if arguments > (made is not staticmethod):
        setattr(owner, name, made(checked(function)) if made else checked(function))


def _own_numbers(
    function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """numpy's single numbers as Python's own: those of 16 and 32 bits overflow in comparisons, and records hold no others."""
    kinds = _without_arrays(function)
    asked = {name for name, wanted in kinds.items() if any(kind in (int, float, bool) for kind in wanted)}

    def own(name: str, value: Any) -> Any:
        return value.item() if name in asked and isinstance(value, np.generic) else value

    positions = (*kinds, *[""] * max(len(arguments) - len(kinds), 0))
    return (
        tuple(own(name, value) for name, value in zip(positions, arguments, strict=False)),
        {name: own(name, value) for name, value in options.items()},
    )


def settings(init: Callable[..., Any], settings: Mapping[str, Any], check: Callable[[], object]) -> None:
    """The same for settings that are kept as they were given (the contract of scikit-learn) and checked on use."""
    refuse_misfits(init, (), settings, numbers=False)
    try:
        check()
    except TruecalError:
        raise
    except Exception:  # as in `checked`
        refuse_misfits(init, (), settings, numbers=True)
        raise


def refuse_misfits(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any], *, numbers: bool
) -> None:
    """Raise for the first argument that is of none of the kinds annotated.

    `numbers`: also where a number or an array of numbers is asked for (whole ones of at most 64 bits: libraries take no others),
    and for what a list or mapping holds.
    """
    kinds = _kinds(function) if numbers else _without_arrays(function)
    for name, value in (*zip(kinds, arguments, strict=False), *options.items()):
        wanted = kinds.get(name, ())
        if name == "level" and float in wanted and not (value is None and type(None) in wanted):
            level(value)
        elif name == "rng" and (is_number(value) or isinstance(value, str)):
            whole(value, "rng", 0)
        elif name == "bins" and set(wanted) <= {int, type(None)} and value is not None:
            bins(value)  # also where another option makes them needless
        # Most arguments of most calls; text may hold halves of characters, which no file and no engine can take.
        if not wanted or (not numbers and type(value) in wanted and not (type(value) is str and _halved(value))):
            continue
        if any(_fits(value, kind, deep=numbers) for kind in wanted):
            continue
        if numbers and is_whole(value) and any(_fits(value, kind, deep=False) for kind in wanted):
            raise InputError(
                f"{name} must be within 64 bits, not {_shown(value)}; write a number so large with an exponent"
            )
        # An array of one number passes for a number in comparisons, and fails in whatever is made of it later. So do other things
        # that are neither Python's own nor numpy's; tensors are accepted.
        made_elsewhere = type(value).__module__.partition(".")[0] not in ("builtins", "numpy", "torch")
        if (
            numbers
            or made_elsewhere
            or isinstance(value, (np.ndarray, np.generic, complex))
            or not any(kind in _NUMBERS for kind in wanted)
        ):
            named = [kind for kind in wanted if kind is not type(None)]
            words = " or ".join(dict.fromkeys(map(_words, named)))
            hints = [_REMEDIES.get(getattr(kind, "__name__", ""), ("", ""))[1] for kind in named]
            hint = next((f"; {hint}" for hint in hints if hint), "")
            raise InputError(f"{name} must be {words}, not {_shown(value)}{hint}")


def _fit_by_type(function: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether all others of the same types fit as well: those without an annotation, and objects of truecal."""
    wanted = _without_arrays(function)
    return all(
        name not in ("level", "rng")
        and (not kinds or any(_is_ours(kind) and kind in type(value).__mro__ for kind in kinds))
        for (name, kinds), value in zip(wanted.items(), arguments, strict=False)
    )


@cache
def _kinds(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """The kinds allowed for every parameter, in order; none where anything is."""
    kinds_of = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            try:
                quoted = types.SimpleNamespace(__annotations__={name: annotation})
                annotation = get_type_hints(quoted, function.__globals__)[name]
            except NameError:
                annotation = Any
        kinds = tuple(_alternatives(annotation))
        several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        kinds_of[name] = () if several or parameter.annotation is parameter.empty or None in kinds else kinds
    return kinds_of


@cache
def _without_arrays(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """The same without those of arrays, which have checks of their own."""
    return {name: () if _ARRAY in kinds else kinds for name, kinds in _kinds(function).items()}


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The kinds of a union; None for one that cannot be told from any other."""
    origin = get_origin(annotation)
    if annotation == ArrayLike or origin is np.ndarray:
        yield _ARRAY
    elif origin in (Union, types.UnionType):
        parts = get_args(annotation)
        if set(get_args(ArrayLike)) <= set(parts):
            yield _ARRAY
            parts = tuple(part for part in parts if part not in get_args(ArrayLike))
        for part in parts:
            yield from _alternatives(part)
    elif origin is Literal:
        yield annotation
    else:
        kind = origin or annotation
        yield annotation if isinstance(kind, type) and kind not in (object, Any) else None


def _fits(value: Any, kind: Any, *, deep: bool) -> bool:
    if kind is _ARRAY:
        return not deep or _is_array(value)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    if kind in _NUMBERS:
        fits = is_whole(value) if kind is int else is_number(value)
        return fits and not (deep and is_whole(value) and not -(2**63) <= int(value) < 2**63)
    outer = origin or kind
    if outer is str:
        return isinstance(value, str) and not _halved(value)
    if outer in (Mapping, dict):
        if not isinstance(value, Mapping):
            return False
        deep |= len(inner) > 1 and _is_ours(inner[1])
        return not deep or not inner or all(_of(part, inner[1], deep=deep) for part in value.values())
    if outer in (Sequence, list, tuple):  # one is as good as the other
        # A table is no list: what is found by going through it are the names of its columns.
        series = hasattr(value, "to_numpy") and hasattr(value, "__len__") and not hasattr(value, "columns")
        masked = hasattr(value, "mask") and np.ma.is_masked(value)
        array = np.ndim(value) > 0 and not masked if isinstance(value, np.ndarray) else series
        if not array and (not isinstance(value, Sequence) or isinstance(value, (str, bytes))):
            return False
        if isinstance(value, memoryview) and value.ndim != 1:  # has no rows to go through
            return False
        if inner and inner[0] is str:  # names are looked up, in ways of their own: never a number among them
            return not isinstance(value, memoryview) and all(isinstance(part, str) for part in value)
        deep |= bool(inner) and _is_ours(inner[0])
        return not deep or not inner or all(_of(part, inner[0], deep=deep) for part in value)
    if outer is Callable:
        return callable(value)
    if getattr(outer, "_is_protocol", False):
        held = () if isinstance(value, types.ModuleType) else getattr(value, "__dict__", ())
        return all(hasattr(type(value), name) or name in held for name in _members(outer))
    return isinstance(value, (outer, np.bool_) if outer is bool else outer)


@cache
def _members(protocol: type) -> tuple[str, ...]:
    """What an object of a protocol must have."""
    stated = [part for part in protocol.__mro__ if getattr(part, "_is_protocol", False) and part is not Protocol]
    held = (name for part in stated for name in (*vars(part), *getattr(part, "__annotations__", {})))
    return tuple(sorted({name for name in held if name == "__call__" or not name.startswith("_")}))


def _halved(text: str) -> bool:
    """Whether a text holds a surrogate, half of a character, which cannot be encoded."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _is_ours(annotation: Any) -> bool:
    """Whether the parts of a list or mapping are objects of truecal: what else is in it would only fail where it is used."""
    return isinstance(annotation, type) and annotation.__module__.startswith("truecal")


def _of(value: Any, annotation: Any, *, deep: bool) -> bool:
    """Whether a part of a list or mapping is of its kind."""
    kinds = tuple(_alternatives(annotation))
    return None in kinds or any(_fits(value, kind, deep=deep) for kind in kinds)


def _is_array(value: Any) -> bool:
    """Whether a value forms an array of numbers."""
    try:
        return hasattr(value, "detach") or np.asarray(value).dtype.kind in "biuf"
    except (TypeError, ValueError, RuntimeError):
        return False


def _words(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(map(repr, inner))
    plain = {int: "a whole number", float: "a number", str: "text", bool: "True or False", Callable: "a function"}
    words: dict[Any, str] = {**plain, _ARRAY: "an array of numbers"}
    outer = origin or kind
    if outer in (Sequence, list, tuple, Mapping, dict):
        name = "a mapping" if outer in (Mapping, dict) else "a list"
        part = inner[1 if outer in (Mapping, dict) else 0] if inner else Any
        known = {float: " of numbers", int: " of whole numbers", str: " of texts"}
        return name + known.get(part, f" of {part.__name__}" if isinstance(part, type) and part is not object else "")
    if getattr(outer, "_is_protocol", False):
        return f"an object with {', '.join(_members(outer))}"
    return words.get(outer) or _REMEDIES.get(outer.__name__, (f"a {outer.__name__}", ""))[0]


def _shown(value: object) -> str:
    plain = isinstance(value, (str, int, float, bool, type(None), type, np.generic, list, tuple))
    by_value = isinstance(value, np.generic) and not isinstance(value, np.longdouble)  # whose kind is what is wrong
    text = (str(value) if by_value else repr(value)) if plain else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
