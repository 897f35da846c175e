"""Every public name has a full docstring, in one order, so that `help(name)` is a page one could print."""

import inspect
import re
from types import ModuleType

import pytest

import truecal as tc

ORDER = (
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "Notes",
    "References",
    "See Also",
    "Examples",
)
NOT_IMPERATIVE = set(
    [
        "A",
        "An",
        "The",
        "This",
        "That",
        "These",
        "What",
        "Which",
        "How",
        "Where",
        "When",
        "Whether",
        "All",
        "Any",
        "Every",
        "Each",
        "One",
        "Some",
        "It",
        "Its",
    ]
)


def public_objects(name: str) -> dict[str, object]:
    """The function or class of that name; of a public module, its functions and classes."""
    value = getattr(tc, name)
    if not isinstance(value, ModuleType):
        return {name: value}
    inner_names = getattr(value, "__all__", [n for n in vars(value) if not n.startswith("_")])
    parts = {f"{name}.{inner}": getattr(value, inner) for inner in inner_names}
    return {
        inner: part
        for inner, part in parts.items()
        if getattr(part, "__module__", "").startswith("truecal") and callable(part)
    }


def sections(text: str) -> dict[str, str]:
    """The parts of a docstring: "" is what stands before the first heading."""
    pieces = re.split(r"(?m)^([A-Z][A-Za-z ]+)\n-{3,}\n", text)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def documented(section: str) -> dict[str, str]:
    """The entries `name : type` of a section, and the type of each."""
    return dict(re.findall(r"(?m)^(\*{0,2}\w+) : (.+)$", section))


def parameters(value: object) -> dict[str, inspect.Parameter]:
    try:
        inputs = inspect.signature(value).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return {}
    return {name: p for name, p in inputs.items() if name not in ("self", "cls") and not name.startswith("_")}


def lacks(value: object) -> list[str]:
    """What the docstring of a public function or class lacks."""
    text = inspect.getdoc(value) or ""
    if not text or not value.__doc__:
        return ["a docstring"]
    if inspect.isclass(value) and issubclass(value, BaseException | Warning):
        return [] if text.splitlines()[0].rstrip().endswith(".") else ["a first line that is one sentence"]
    parts = sections(text)
    problems = lacks_summary(parts[""], is_function=not inspect.isclass(value))
    problems += lacks_order(parts) + lacks_readable_signature(value)
    is_result = inspect.isclass(value) and "Attributes" in parts and "Parameters" not in parts
    problems += lacks_entries(parts, value, "Attributes" if is_result else "Parameters")
    if inspect.isclass(value):
        if is_result and "See Also" not in parts and "Examples" not in parts:
            problems.append("See Also (the function that returns it) or Examples")
        if not is_result and not inspect.isabstract(value) and ">>> " not in parts.get("Examples", ""):
            problems.append("Examples")
        for name, method in public_methods(value).items():
            overrides = sum(name in vars(base) for base in value.__mro__ if base.__module__.startswith("truecal")) > 1
            problems += [f"{name}: {problem}" for problem in lacks_in_method(method, overrides=overrides)]
    else:
        if returns_something(value) and "Returns" not in parts and "Yields" not in parts:
            problems.append("Returns")
        if ">>> " not in parts.get("Examples", ""):
            problems.append("Examples")
    return problems


def lacks_readable_signature(value: object) -> list[str]:
    """Types of signatures are shown as they are written: `y_true: ArrayLike`, not numpy's internals."""
    try:
        signature = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    internal = "_SupportsArray" in signature or "numpy.ndarray[" in signature
    return ["a readable signature (from __future__ import annotations in its module)"] if internal else []


def lacks_summary(text: str, *, is_function: bool) -> list[str]:
    summary = " ".join(text.strip().split("\n\n")[0].split())
    if not re.match(r"^[^.]*(\.\w[^.]*)*\.$", summary) and not summary.endswith("."):
        return ["a first paragraph that is one sentence"]
    if is_function and summary.split()[0] in NOT_IMPERATIVE:
        return [f"a verb in the imperative where it says {summary.split()[0]!r}"]
    return []


def lacks_order(parts: dict[str, str]) -> list[str]:
    headings = [heading for heading in parts if heading in ORDER]
    return [] if headings == sorted(headings, key=ORDER.index) else [f"the order {', '.join(ORDER)}"]


def lacks_entries(parts: dict[str, str], value: object, heading: str) -> list[str]:
    entries = documented(parts.get(heading, ""))
    problems = []
    for name, parameter in parameters(value).items():
        if name not in entries and f"*{name}" not in entries and f"**{name}" not in entries:
            problems.append(f"{heading}: {name} : type")
        elif heading == "Parameters" and parameter.default is not parameter.empty and "default" not in entries[name]:
            problems.append(f"Parameters: the default of {name}")
    return problems


def lacks_in_method(method: object, *, overrides: bool = False) -> list[str]:
    """What the docstring of a public method lacks; one that overrides another need only say what it does differently."""
    text = inspect.getdoc(method) or ""
    if isinstance(method, property):
        return [] if text else ["a docstring"]
    if not text:
        return ["a docstring"]
    parts = sections(text)
    problems = lacks_summary(parts[""], is_function=True) + lacks_order(parts) + lacks_readable_signature(method)
    if overrides:
        return problems
    problems += lacks_entries(parts, method, "Parameters")
    if parameters(method) and returns_something(method) and "Returns" not in parts and "Yields" not in parts:
        problems.append("Returns")
    return problems


def returns_something(value: object) -> bool:
    annotation = getattr(value, "__annotations__", {}).get("return")
    return annotation not in (None, "None", type(None))


def public_methods(owner: type) -> dict[str, object]:
    """Methods and properties that the class or a base of the package defines."""
    methods: dict[str, object] = {}
    for base in owner.__mro__:
        if not base.__module__.startswith("truecal"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in methods:
                continue
            if isinstance(value, classmethod | staticmethod):
                methods[name] = value.__func__
            elif inspect.isfunction(value) or isinstance(value, property):
                methods[name] = value
    return methods


@pytest.mark.parametrize("name", tc.__all__)
def test_docstrings_are_complete(name):
    objects = public_objects(name)
    assert objects
    assert not {inner: problems for inner, value in objects.items() if (problems := lacks(value))}


if __name__ == "__main__":
    for public_name in tc.__all__:
        for inner_name, public_value in public_objects(public_name).items():
            for problem in lacks(public_value):
                print(f"{inner_name}: lacks {problem}")
