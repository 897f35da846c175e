"""Calls of everything that is public, made from signatures: new functions and classes take part by themselves."""

import inspect
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from tools.hostile.values import BAD, CONTAINERS, EVERYWHERE, GOOD, ODD, SELDOM, TOGETHER

# Modules whose public functions are called as well.
MODULES = ("lab", "scores", "selective", "study", "train", "plot")
# What the library makes and hands out, or that runs for minutes, writes folders or trains networks by design.
LEFT_OUT = {
    "Estimate", "Predictions", "Profile", "Sample", "Scan", "Convention", "GeneralizedECE.bins_of",
    "study.make_example", "study.compare_interventions", "study.Study", "study.import_table",
    "lab.coverage", "lab.trials",
    "lab.samples_needed", "lab.Run", "lab.leaderboard", "lab.answers_of", "lab.Measure",
    "lab.AnyCurve", "RecalibratedClassifier", "train.mixup",
}  # fmt: skip
# Methods of an object that is constructed or answered.
METHODS = ("fit", "predict_proba", "predict", "update", "merge", "__call__", "sample", "compute", "measure", "mask",
           "true_error", "recalibrate", "forward", "transform", "to_profile", "to_json", "frame", "at", "contains", "cost",
           "deviations", "difference", "beyond", "predictions", "take", "class_probs", "step", "draw", "with_error", "groups",
           "partly_recalibrated", "interval", "avoided", "describe", "shares", "samples", "parts", "then", "test", "at_level",
           "find", "values", "curve", "recalibrated", "true_class_wise_error", "true_top_label_error", "save", "select", "column",
           "predict_interval", "fit_rows", "flips", "kept", "metric", "class_index", "class_name", "coarsen",
           "largest")  # fmt: skip
# Options whose defaults are meant for minutes of work.
ALWAYS = ("m", "n", "resamples", "replicates")
# What the caller brings to be called: its mistakes are the caller's.
CALLBACKS = ("progress", "run", "say", "where", "penalty", "function")
BUILDERS = {
    "Predictions": ("from_probs", "from_logits", "from_frame"),
    "Profile": ("from_arrays",),
    "Sketch": ("from_arrays",),
}


@dataclass(frozen=True)
class Target:
    """Something to call: its path from tc, and the parameters of its signature."""

    path: str
    parameters: tuple[inspect.Parameter, ...]
    methods: tuple[tuple[str, tuple[inspect.Parameter, ...]], ...] = ()


@dataclass(frozen=True)
class Call:
    """A call as text: arguments by parameter, then calls of methods on the result; a name in `needed` has no default."""

    path: str
    arguments: tuple[tuple[str, str], ...]
    then: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    must_refuse: bool = False
    odd: bool = False  # holds an argument of any type: Python's own TypeError is then a refusal
    needed: frozenset[str] = frozenset()

    @property
    def line(self) -> str:
        return f"tc.{self.path}({_shown(self.arguments)})" + "".join(f".{m}({_shown(a)})" for m, a in self.then)


def _shown(arguments: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(value if name.startswith("*") else f"{name}={value}" for name, value in arguments)


def targets() -> list[Target]:
    """All that is public and can be called."""
    import truecal as tc

    return [target for name in tc.__all__ for target in _of(name, getattr(tc, name))]


def _of(path: str, thing: Any) -> Iterator[Target]:
    if isinstance(thing, ModuleType):
        if path in MODULES:
            for name in getattr(thing, "__all__", ()):
                if not isinstance(getattr(thing, name), ModuleType):
                    yield from _of(f"{path}.{name}", getattr(thing, name))
        return
    drawn = [name for name in dir(thing) if name.startswith("from_")] if path.startswith("plot.") else []
    for builder in BUILDERS.get(path, drawn):
        yield Target(f"{path}.{builder}", _parameters(getattr(thing, builder)), _methods(thing))
    if not callable(thing) or path in LEFT_OUT or (inspect.isclass(thing) and issubclass(thing, (Exception,))):
        return
    if inspect.isclass(thing) and (inspect.isabstract(thing) or _is_record(thing, path)):
        return
    try:
        yield Target(path, _parameters(thing), _methods(thing if inspect.isclass(thing) else _answer(thing)))
    except ValueError:
        return


def _is_record(thing: type, path: str) -> bool:
    """Whether a class only holds what the library computed: it has required fields and no check of them."""
    fields = getattr(thing, "__dataclass_fields__", None)
    display = path.startswith("plot.")
    return display or (fields is not None and path.partition(".")[2] != "" and "__post_init__" not in vars(thing))


def _parameters(function: Any) -> tuple[inspect.Parameter, ...]:
    kept = [p for p in inspect.signature(function).parameters.values() if p.kind != p.VAR_KEYWORD and p.name != "self"]
    return tuple(kept)


def _answer(function: Any) -> Any:
    """The class of what a function answers with, where it says so."""
    try:
        return get_type_hints(function).get("return")
    except NameError:
        return None


def _methods(thing: Any) -> tuple[tuple[str, tuple[inspect.Parameter, ...]], ...]:
    found = []
    for name in METHODS:
        method = getattr(thing, name, None)
        if name == "at" and "__call__" in dict(
            inspect.getmembers(thing, inspect.isfunction)
        ):  # what a curve is made of; its door is to call it
            continue
        if inspect.isfunction(method) and method.__module__.startswith("truecal"):
            parameters = _parameters(method)
            if all(p.annotation is not np.random.Generator for p in parameters):  # those are made inside
                found.append((name, parameters))
    return tuple(found)


def make(target: Target, rng: random.Random) -> Call:
    """A call of which at most two arguments are hostile; four of ten have none."""
    hostility = rng.choice((0, 0, 0, 0, 1, 1, 1, 1, 1, 2))
    then: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    places = [(target.path, target.parameters)]
    built = target.path in BUILDERS or target.path[:1].isupper() or target.path.partition(".")[2][:1].isupper()
    if target.methods and rng.random() < (0.75 if built else 0.3):
        places += _chain(target, rng)
    spots = [(i, p.name) for i, (_, parameters) in enumerate(places) for p in parameters if p.name not in CALLBACKS]
    hostile = set(rng.sample(spots, min(hostility, len(spots)))) if spots else set()
    several, refuse, everywhere, odd = rng.random() < 0.4, False, False, False
    together = rng.choice(TOGETHER.get(target.path) or TOGETHER.get(target.path.partition(".")[0]) or ({},))
    made, refused = [], set()
    for i, (name, parameters) in enumerate(places):
        arguments = []
        starred = any(parameter.kind == parameter.VAR_POSITIONAL for parameter in parameters)
        for parameter in parameters:
            if i == 0 and parameter.name in together and (i, parameter.name) not in hostile:
                given, bad = together[parameter.name], False
                value: str | None = _contained(given, rng, 0.3) if given else None
            else:
                value, bad = _value(parameter, (i, parameter.name) in hostile, several, rng)
            refuse |= bad and hostility == 1
            optional = parameter.default is None or "None" in str(parameter.annotation)
            unsaid = optional and value == "None"
            everywhere |= bad and hostility == 1 and parameter.name in EVERYWHERE and not unsaid
            if bad:
                refused.add(parameter.name)
            odd |= value in ODD
            if value:
                by_place = parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY)
                star = "*" if by_place or (starred and parameter.kind == parameter.POSITIONAL_OR_KEYWORD) else ""
                arguments.append((star + parameter.name, value))
        made.append((name, tuple(arguments)))
    then = made[1:]
    # Nor is what must be refused left out when a failure is shortened.
    needed = refused.union(p.name for _, parameters in places for p in parameters if p.default is p.empty)
    # Recalibrators keep their settings as they are given until they are fitted: the contract of scikit-learn.
    settings = len(made) == 1 and any(name == "fit" for name, _ in target.methods)
    must = (refuse and _judges(target) and not then) or (everywhere and not settings)
    return Call(target.path, made[0][1], tuple(then), must, odd, frozenset(needed))


def _chain(target: Target, rng: random.Random) -> list[tuple[str, tuple[inspect.Parameter, ...]]]:
    known = dict(target.methods)
    if "fit" in known and rng.random() < 0.9:
        after = rng.choice([name for name in ("predict_proba", "predict", "to_json") if name in known])
        return [("fit", known["fit"]), (after, known[after])]
    name = rng.choice([m for m, _ in target.methods])
    return [(name, known[name])]


def _judges(target: Target) -> bool:
    """Functions that judge predictions and so must refuse what `BAD` lists."""
    path = target.path
    return path in (
        "calibration_error",
        "measure",
        "verify",
        "subgroups",
        "Profile.from_arrays",
        "Predictions.from_probs",
    ) or (path in ("compare", "bootstrap", "band", "clinical"))


def _value(parameter: inspect.Parameter, hostile: bool, several: bool, rng: random.Random) -> tuple[str | None, bool]:
    """The text of an argument (None: left out), and whether it must be refused."""
    name, optional = parameter.name, parameter.default is not parameter.empty
    if parameter.kind == parameter.VAR_POSITIONAL:
        optional = name not in GOOD
    if hostile:
        if name in BAD and rng.random() < 0.5:
            return rng.choice(BAD[name]), True
        if name in GOOD and rng.random() < 0.4:
            return _contained(_plain(name, several, rng), rng), False
        return rng.choice(ODD), False
    literal = [repr(value) for value in _literals(parameter.annotation)]
    if literal:
        return (None if optional and rng.random() < 0.6 else rng.choice(literal)), False
    if optional and name not in ALWAYS and (name not in GOOD or rng.random() < 0.6):
        return None, False
    if name in GOOD:
        value = _plain(name, several, rng)
        return _contained(value, rng, 0.3), False
    return rng.choice(ODD), False


def _literals(annotation: Any) -> list[object]:
    """The values that an annotation lists: those of Literal and of bool, also inside a union."""
    if annotation is bool:
        return [True, False]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for part in get_args(annotation) for value in _literals(part)] if _is_union(annotation) else []


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _plain(name: str, several: bool, rng: random.Random) -> str:
    (value,) = rng.choices(GOOD[name], [SELDOM.get(value, 1.0) for value in GOOD[name]])
    return {"y": "Y", "p": "P", "p**2": "P", "binary": "many"}.get(value, value) if several else value


def _contained(value: str, rng: random.Random, share: float = 1.0) -> str:
    """An array in another container, this share of the time."""
    plain = value not in ("y", "p", "Y", "P", "Q", "Z", "w", "g") or rng.random() >= share
    return value if plain else f"{rng.choice(list(CONTAINERS))}({value})"


def shorter(call: Call) -> Iterator[Call]:
    """The call with an argument or a method less: what a shrinking failure tries next."""
    if call.then:
        yield replace(call, then=call.then[:-1])
    for i, (name, _) in enumerate(call.arguments):
        if name not in call.needed:
            yield replace(call, arguments=call.arguments[:i] + call.arguments[i + 1 :])
    for j, (method, arguments) in enumerate(call.then):
        for i, (name, _) in enumerate(arguments):
            if name not in call.needed:
                yield replace(
                    call, then=(*call.then[:j], (method, arguments[:i] + arguments[i + 1 :]), *call.then[j + 1 :])
                )
