"""Commands from functions: parameters become arguments and options, and the docstring has their help.

    @command()
    def audit(source: Files, *, depth: Count = 3) -> Reply:
        '''Search the predictions in FILE for segments whose scores are wrong.

        --depth N    How many columns a segment may combine.
        '''

Parameters before the star are arguments, those after it options. A dataclass among them stands for the options that its
docstring lists, and what `Annotated` adds to it. An option that a docstring does not list has the words of `SharedOptions`.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
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
    --format FORMAT  How to answer.  [default: the first]
    --json           Reply as one JSON document.
    --out FILE       Write the answer to a file (whole or not at all); - is standard output.
    """


# ----------------------------------------------------------------------------------------------------
# Types of parameters


class NumberRange(click.FloatRange):
    """A number within limits; nan, which compares as neither too small nor too large, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a number in the range; NaN is refused too."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}.", param, ctx)
        return number


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A value that a function makes of text; the function raises ValueError where the text is not what is expected."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any], expected: str) -> None:
        self.parse, self.expected = parse, expected

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse text by the function of the type; a ValueError becomes a usage error."""
        try:
            return self.parse(value) if isinstance(value, str) else value
        except InputError:  # which says more
            raise
        except ValueError:
            self.fail(f"{value!r} is not {self.expected}", param, ctx)


def parse_numbers(text: str) -> list[float]:
    """Parse numbers with commas between them."""
    return [float(word) for word in text.split(",")]


class OutputFile(click.Option):
    """An option that names what is written; refused before anything is computed where it cannot be written or is read."""

    def __init__(self, *arguments: Any, folder: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **{"type": click.Path(), **options})
        self.folder = folder  # may be one: then the command tests whether it can be written

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Parse the option; refuse a path that cannot be written or is an input."""
        value, remaining = super().handle_parse_result(ctx, opts, args)
        if isinstance(value, str) and value != "-" and not ctx.resilient_parsing:
            (check_not_input if self.folder else check_output)(value, _input_files(ctx.command, opts))
        return value, remaining


def _input_files(command: click.Command, opts: Mapping[str, Any]) -> list[str]:
    """List the files that a command line names to be read: arguments, options whose value is a file, and @FILE."""
    paths: list[str] = []
    for param in command.params:
        value = opts.get(param.name or "")
        values = [str(v) for v in value if v is not None] if isinstance(value, list | tuple) else [str(value or "")]
        file = isinstance(param, click.Argument) or str(param.metavar).partition(".")[0] in ("FILE", "TABLE", "STORE")
        if file and not isinstance(param, OutputFile):
            paths += values
        paths += [v.removeprefix("@") for v in values if v.startswith("@")]
    return paths


Count = Annotated[int, click.IntRange(1)]
Several = Annotated[int, click.IntRange(2)]  # of something that one alone cannot show
Seed = Annotated[int, click.IntRange(0)]
Probability = Annotated[float, NumberRange(0, 1)]
Fraction = Annotated[float, NumberRange(0, 1, min_open=True, max_open=True)]  # neither 0 nor 1
Numbers = Annotated[list[float], Parsed(parse_numbers, "a list of numbers, such as 0.05,0.1")]
Words = tuple[str, ...]  # of an option that may be repeated
WriteTo = Annotated[str, OutputFile]
WriteFolder = Annotated[str, partial(OutputFile, folder=True)]

# ----------------------------------------------------------------------------------------------------
# From a function to a command


def command(
    group: click.Group | None = None, *, formats: tuple[str, ...] = ("text", "json"), name: str | None = None
) -> Callable[[Callable[..., Reply]], click.Command]:
    """Make a command of a function that returns a Reply, which is printed as --format, --json and --out say.

    Parameters
    ----------
    group : click.Group, default None
        Group that the command belongs to.
    formats : tuple of str, default ("text", "json")
        Formats of the answer, the default first; --format is offered where there are more than two.
    name : str, default None
        Name of the command; by default that of the function.

    Returns
    -------
    decorate : callable
        Its exit code is 1 where the answer failed a gate, else 0. A function with an `out` of its own writes to it.
    """

    def decorate(function: Callable[..., Reply]) -> click.Command:
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(function, include_extras=True)
        bundles = {key: hints[key] for key in parameters if is_dataclass(_base(hints[key]))}

        def run(form: str | None = None, as_json: bool = False, answer_file: str | None = None, **options: Any) -> int:
            if as_json and form not in (None, "json"):
                raise click.UsageError(f"--json and --format {form} exclude each other; give one")
            for key, hint in bundles.items():
                bundle: Any = _base(hint)
                options[key] = bundle(**{f.name: options.pop(f.name) for f in fields(bundle) if f.name in options})
            answer = function(**options)
            text = RENDERERS["json" if as_json else form or formats[0]](answer)
            if answer_file in (None, "-"):
                click.echo(text)
            else:
                write_whole(str(answer_file), text + "\n")
            return answer.exit_code

        help_, words = _split_docstring(function)
        params: list[click.Parameter] = []
        for key, parameter in parameters.items():
            if key in bundles:
                continue
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                params.append(_option(key, hints[key], parameter.default, words))
            else:
                params.append(_argument(key, hints[key], parameter.default))
        for hint in reversed(bundles.values()):  # the columns of the input last
            params += _bundle_params(hint, words)
        if len(formats) > 2:
            params.append(_option("form", Annotated[str | None, click.Choice(formats)], None, words, "--format"))
        params.append(_option("as_json", bool, False, words, "--json"))
        if "out" not in parameters:
            params.append(_option("answer_file", WriteTo | None, None, words, "--out"))
        arguments = [param for param in params if isinstance(param, click.Argument)]
        options = [param for param in params if not isinstance(param, click.Argument)]
        title = name or function.__name__.rstrip("_").replace("_", "-")
        built = click.Command(title, params=[*arguments, *options], callback=run, help=help_)
        if group is not None:
            group.add_command(built)
        return built

    return decorate


@cache
def _split_docstring(thing: Any) -> tuple[str, dict[str, tuple[list[str], str, str]]]:
    """Return a docstring without its lines about options, and spellings, metavar and help of an option by every spelling."""
    text = inspect.cleandoc(thing.__doc__ or "")
    options: dict[str, tuple[list[str], str, str]] = {}
    for _, declaration, help_ in _OPTION_LINES.findall(text):
        parts = declaration.split(" ")
        spellings = [part.rstrip(",") for part in parts if part.startswith("-")]
        metavar = " ".join(part for part in parts if not part.startswith("-"))
        options |= dict.fromkeys(spellings, (spellings, metavar, " ".join(help_.split())))
    return _OPTION_LINES.sub("", text).strip(), options


def _base(hint: Any) -> Any:
    """Return a type without what `Annotated` and `None` add to it."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _base(get_args(hint)[0])
    if origin in (Union, UnionType):
        return _base(next(part for part in get_args(hint) if part is not NoneType))
    return hint


def _metadata(hint: Any) -> Iterator[Any]:
    """Yield the metadata of all Annotated parts of an annotation."""
    if get_origin(hint) is Annotated:
        yield from hint.__metadata__
    for part in get_args(hint) if get_origin(hint) in (Annotated, Union, UnionType, tuple) else ():
        yield from _metadata(part)


def _settings(hint: Any) -> dict[str, Any]:
    """Return the keywords of a click parameter for an annotation: type, is_flag, multiple, or cls."""
    base = _base(hint)
    settings: dict[str, Any] = {}
    if get_origin(base) is tuple:
        parts = get_args(base)
        if parts[-1] is Ellipsis:
            return {**_settings(parts[0]), "multiple": True}
        settings["type"] = parts
    elif get_origin(base) is Literal:
        settings["type"] = click.Choice(get_args(base))
    elif base is bool:
        settings["is_flag"] = True
    else:
        settings["type"] = base
    for extra in _metadata(hint):
        if isinstance(extra, click.ParamType):
            settings["type"] = extra
        else:
            settings = {"cls": extra}
    return settings


def _option(key: str, hint: Any, default: Any, words: Mapping[str, Any], spelling: str = "") -> click.Option:
    """Make the option of a keyword parameter, with the help of its docstring or the shared one."""
    spelling = spelling or f"--{key.rstrip('_').replace('_', '-')}"
    spellings, metavar, help_ = words.get(spelling) or _split_docstring(SharedOptions)[1].get(spelling) or ([], "", "")
    settings = _settings(hint)
    kind = settings.pop("cls", click.Option)
    if default is inspect.Parameter.empty:
        settings["required"] = True
    else:
        settings |= {"default": default, "show_default": default not in (None, ()) and default is not False}
    if metavar and not isinstance(settings.get("type"), click.Choice):
        settings["metavar"] = metavar
    option: click.Option = kind([*(spellings or [spelling]), key], help=help_, **settings)
    return option


def _argument(key: str, hint: Any, default: Any) -> click.Argument:
    """Make the argument of a positional parameter; one with a default is optional."""
    settings = _settings(hint)
    required = default is inspect.Parameter.empty
    if settings.pop("multiple", False):
        settings["nargs"] = -1
    metavar = key.upper() + ("..." if "nargs" in settings else "")
    settings["metavar"] = metavar if required else f"[{metavar}]"
    return click.Argument([key], required=required, **({} if required else {"default": default}), **settings)


def _bundle_params(hint: Any, words: Mapping[str, Any]) -> list[click.Parameter]:
    """Return the options that the docstrings of a dataclass and its bases list, and what `Annotated` adds."""
    bundle = _base(hint)
    listed: dict[str, Any] = {}
    for kind in reversed(bundle.__mro__[:-1]):
        listed |= _split_docstring(kind)[1]
    hints = get_type_hints(bundle, include_extras=True)
    options: list[click.Parameter] = [
        _option(f.name, hints[f.name], f.default, {**listed, **words})
        for f in fields(bundle)
        if f"--{f.name.replace('_', '-')}" in listed
    ]
    return [*options, *(extra for extra in _metadata(hint) if isinstance(extra, click.Parameter))]
