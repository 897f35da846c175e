"""Commands from functions: parameters become arguments and options, and the docstring has their help.

    @command()
    def audit(source: Files, *, depth: Count = 3) -> Reply:
        '''Search the predictions in FILE for segments whose scores are wrong.

        --depth N    How many columns a segment may combine.
        '''

Parameters before the star are arguments, those after it options. A dataclass among them stands for the options that its
docstring (and those of its bases) lists, and for the argument FILE where it has a `metavar`. An option that no docstring lists
has the words of `SharedOptions`.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click

from truecal.cli.output import RENDERERS, Reply
from truecal.errors import InputError
from truecal.writing import check_not_input, check_output, write_whole

# "--name, --other METAVAR  help", with lines of help that are indented further
_OPTION_LINES = re.compile(r"^( *)(-\S+(?: \S+)*)  +(\S.*(?:\n\1 +\S.*)*)", re.MULTILINE)
ALL_FORMATS = ("text", "line", "markdown", "github", "junit", "json", "prometheus")


class SharedOptions:
    """Options with one meaning in every command.

    --level P        Confidence level of intervals and gates.
    --seed N         Seed of random numbers.
    --workers N      Processes to use; they do not change the numbers.  [default: all cores]
    --format FORMAT  Format of the answer.  [default: text]
    --json           Reply as one JSON document.
    --out FILE       Write the answer to a file (whole or not at all); - is standard output.
    """


# ----------------------------------------------------------------------------------------------------
# Types of parameters


class NumberRange(click.FloatRange):
    """A number within limits; NaN is refused too, which `click.FloatRange` accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a number in the range; NaN is refused too.

        >>> NumberRange(0, 1).convert("0.5", None, None)
        0.5
        """
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}.", param, ctx)
        return number


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A parameter type: text parsed by a function, whose ValueError becomes "... is not <description>"."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any], description: str) -> None:
        """Store the function that parses a word, raising ValueError, and the description of valid words for the error."""
        self.parse, self.description = parse, description

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse text by the function of the type; a ValueError becomes a usage error.

        >>> Parsed(float, "a number").convert("0.5", None, None)
        0.5
        """
        try:
            return self.parse(value) if isinstance(value, str) else value
        except InputError:  # its own message is more precise
            raise
        except ValueError:
            self.fail(f"{value!r} is not {self.description}", param, ctx)


def parse_numbers(text: str) -> list[float]:
    """Parse numbers separated by commas; raise ValueError for anything else.

    >>> parse_numbers("0.05,0.1")
    [0.05, 0.1]
    """
    return [float(word) for word in text.split(",")]


class OutputPath(click.Path):
    """A file to write; "-" is standard output. With `folder` also a folder; the command then tests whether it can be written."""

    def __init__(self, *, folder: bool = False) -> None:
        """Take the name of a file, or with `folder` of a folder."""
        super().__init__()
        self.folder = folder


def _check_outputs(params: Sequence[click.Parameter], values: Mapping[str, Any]) -> None:
    """Refuse an output that cannot be written or is an input, before anything is computed.

    Inputs are the arguments and the options whose value is a file, a table or a store.
    """
    inputs: list[str] = []
    for param in params:
        value = values.get(param.name or "")
        is_read = isinstance(param, click.Argument) or str(param.metavar).startswith(("FILE", "TABLE", "STORE"))
        if value is not None and is_read and not isinstance(param.type, OutputPath):
            inputs += value if isinstance(value, tuple) else [str(value)]
    for param in params:
        path = values.get(param.name or "")
        if isinstance(param.type, OutputPath) and path not in (None, "-"):
            (check_not_input if param.type.folder else check_output)(path, inputs)


Count = Annotated[int, click.IntRange(1)]
Several = Annotated[int, click.IntRange(2)]  # of something that one alone cannot show
Seed = Annotated[int, click.IntRange(0)]
Probability = Annotated[float, NumberRange(0, 1)]
Fraction = Annotated[float, NumberRange(0, 1, min_open=True, max_open=True)]  # neither 0 nor 1
Numbers = Annotated[list[float], Parsed(parse_numbers, "a list of numbers, such as 0.05,0.1")]
Words = tuple[str, ...]  # of an option that may be repeated
WriteTo = Annotated[str, OutputPath()]
WriteFolder = Annotated[str, OutputPath(folder=True)]

# ----------------------------------------------------------------------------------------------------
# From a function to a command

OptionHelp = Mapping[str, tuple[list[str], str, str]]  # spellings, metavar and help of an option, by every spelling


def command(
    group: click.Group | None = None, *, formats: tuple[str, ...] = ("text", "json")
) -> Callable[[Callable[..., Reply]], click.Command]:
    """Make a command of a function that returns a Reply, which is printed as --format, --json and --out say.

    Parameters
    ----------
    group : click.Group, default None
        Group that the command belongs to.
    formats : tuple of str, default ("text", "json")
        Formats of the answer, the default first; --format is offered where there are more than two.

    Returns
    -------
    decorate : callable
        Its exit code is 1 where the answer failed a gate, else 0. A function with an `out` of its own writes to it.
    """

    def decorate(function: Callable[..., Reply]) -> click.Command:
        """Return the click command of a function, with options and help from its signature and docstring."""
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(function, include_extras=True)
        bundles = {key: hints[key] for key in parameters if is_dataclass(hints[key])}

        def run(form: str | None = None, as_json: bool = False, answer_file: str | None = None, **options: Any) -> int:
            """Call the function, with its dataclasses built from options; print or write its reply and return the exit code."""
            if as_json and form not in (None, "json"):
                raise click.UsageError(f"--json and --format {form} exclude each other; give one")
            _check_outputs(params, {**options, "answer_file": answer_file})
            for key, kind in bundles.items():
                options[key] = kind(**{f.name: options.pop(f.name) for f in fields(kind) if f.name in options})
            reply = function(**options)
            text = RENDERERS["json" if as_json else form or formats[0]](reply)
            if answer_file in (None, "-"):
                click.echo(text)
            else:
                write_whole(str(answer_file), text + "\n")
            return reply.exit_code

        help_, listed = _split_docstring(function)
        params: list[click.Parameter] = []
        for key, parameter in parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                params.append(_option(key, hints[key], parameter.default, listed))
            elif key not in bundles:
                settings = _settings(hints[key])
                metavar = f"{key.upper()}..." if settings.pop("multiple", False) else key.upper()
                optional = parameter.default is not inspect.Parameter.empty
                params.append(_argument(key, f"[{metavar}]" if optional else metavar, **settings))
        for kind in reversed(bundles.values()):  # the columns of the input last
            params += _bundle_params(kind, listed)
        if len(formats) > 2:
            params.append(_option("form", Annotated[str | None, click.Choice(formats)], None, listed, "--format"))
        params.append(_option("as_json", bool, False, listed, "--json"))
        if "out" not in parameters:
            params.append(_option("answer_file", WriteTo | None, None, listed, "--out"))
        params.sort(key=lambda param: isinstance(param, click.Option))  # arguments first
        title = function.__name__.rstrip("_").replace("_", "-")
        click_command = click.Command(title, params=params, callback=run, help=help_)
        if group is not None:
            group.add_command(click_command)
        return click_command

    return decorate


@cache
def _split_docstring(thing: Any) -> tuple[str, OptionHelp]:
    """Return a docstring without its lines about options, and (spellings, metavar, help) of its options by every spelling.

    A line about an option is "--name, -n METAVAR  help", with further lines of help indented (`_OPTION_LINES`).
    """
    text = inspect.cleandoc(thing.__doc__ or "")
    options: dict[str, tuple[list[str], str, str]] = {}
    for _, declaration, help_ in _OPTION_LINES.findall(text):
        parts = declaration.split(" ")
        spellings = [part.rstrip(",") for part in parts if part.startswith("-")]
        metavar = " ".join(part for part in parts if not part.startswith("-"))
        options |= dict.fromkeys(spellings, (spellings, metavar, " ".join(help_.split())))
    return _OPTION_LINES.sub("", text).strip(), options


def _settings(hint: Any) -> dict[str, Any]:
    """Return the keywords of a click parameter for an annotation: type, is_flag or multiple.

    `X | None` is as X, tuple[X, ...] is multiple, a Literal is a choice, and the second argument of Annotated is the type.

    >>> _settings(int | None), _settings(bool), _settings(tuple[str, ...])
    ({'type': <class 'int'>}, {'is_flag': True}, {'type': <class 'str'>, 'multiple': True})
    """
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return {**_settings(parts[0]), "type": parts[1]}
    if kind in (Union, UnionType):
        return _settings(next(part for part in parts if part is not NoneType))
    if kind is tuple:
        return {**_settings(parts[0]), "multiple": True} if parts[-1] is Ellipsis else {"type": parts}
    if kind is Literal:
        return {"type": click.Choice(parts)}
    return {"is_flag": True} if hint is bool else {"type": hint}


def _option(key: str, hint: Any, default: Any, listed: OptionHelp, spelling: str = "") -> click.Option:
    """Make the option of a keyword parameter; without a `spelling` it is --key.

    Spellings, metavar and help are those `listed` in its docstring, else in SharedOptions. Without a default the option is
    required.
    """
    spelling = spelling or f"--{key.rstrip('_').replace('_', '-')}"
    shared = _split_docstring(SharedOptions)[1]
    spellings, metavar, help_ = listed.get(spelling) or shared.get(spelling) or ([spelling], "", "")
    settings = _settings(hint)
    if default is inspect.Parameter.empty:
        settings["required"] = True
    else:
        settings |= {"default": default, "show_default": default not in (None, ()) and default is not False}
    if metavar and not isinstance(settings.get("type"), click.Choice):
        settings["metavar"] = metavar
    return click.Option([*spellings, key], help=help_, **settings)


def _argument(key: str, metavar: str, *, as_tuple: bool = False, **settings: Any) -> click.Argument:
    """Make an argument: optional if its metavar stands in brackets, repeated if it ends in dots; refuse "".

    `as_tuple` gives a tuple also for one value or none.
    """

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        """Refuse an empty string; return the value, as a tuple if asked for."""
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        if "" in values:
            raise click.UsageError(f"a {metavar.strip('[.]')} is the empty string; is a shell variable unset?")
        return values if as_tuple else value

    settings |= {"required": not metavar.startswith("["), "nargs": -1 if metavar.endswith("...") else 1}
    return click.Argument([key], metavar=metavar, callback=check, **settings)


def _bundle_params(kind: Any, listed: OptionHelp) -> list[click.Parameter]:
    """Return the options of a dataclass listed in its docstring or its bases', and the argument `files` if it has a `metavar`.

    `listed` are the options in the docstring of the command, whose words take precedence.
    """
    bundle: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        bundle |= _split_docstring(base)[1]
    hints = get_type_hints(kind, include_extras=True)
    by_option = {f"--{f.name.replace('_', '-')}": f for f in fields(kind)}
    params: list[click.Parameter] = [
        _option(by_option[name].name, hints[by_option[name].name], by_option[name].default, {**bundle, **listed})
        for name in bundle
        if name in by_option
    ]
    if hasattr(kind, "metavar"):
        params.append(_argument("files", kind.metavar, as_tuple=True, type=click.Path()))
    return params
