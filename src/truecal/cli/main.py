"""The `truecal` entry point: it runs the command line, and turns errors into one message and an exit code."""

import os
import shlex
import sys
import warnings
from typing import Any

from truecal.errors import MissingExtraError, TruecalError, TruecalWarning, printable

# Options without a value, which need no repetition
_FLAGS = ("--percent", "--drop-null", "--multilabel", "--unnormalised")
_PIPE_CLOSED = "the output was closed before all of it was written (broken pipe)"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 or 1 of the reply, 2 after an error, 130 after an interrupt.

    Errors are printed as one message on stderr. Called by the `truecal` entry point.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # our products are small: a second thread takes longer to start
    try:
        import click
    except ImportError:  # the package may be installed without its command line
        return _fail(MissingExtraError.of("click and rich", "cli"))
    if sys.flags.optimize > 1:  # options and their help are read from docstrings, which -OO removes
        return _fail("the command line reads its options from docstrings; run Python without -OO (PYTHONOPTIMIZE=2)")
    with warnings.catch_warnings():
        _show_warnings_as_lines()
        try:
            if sys.stdout is None:  # started with standard output closed
                raise BrokenPipeError
            from truecal.cli.verbs import truecal

            code = truecal.main(args=arguments, prog_name="truecal", standalone_mode=False)
            sys.stdout.flush()
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except click.Abort:
            return _fail("interrupted", code=130)
        except click.ClickException as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # a group without a verb, raised by click since 8.2
                click.echo(error.format_message(), err=True)
                return 2
            return _fail(error.format_message(), usage=getattr(error, "ctx", None))
        except TruecalError as error:
            return _fail(error, hint=_suggest_command(sys.argv[1:] if arguments is None else arguments, error))
        except (BrokenPipeError, SystemExit) as stop:
            if isinstance(stop, SystemExit) and (stop.code != 1 or "_TRUECAL_COMPLETE" in os.environ):
                raise  # shell completion ends like this
            _silence_stdout()  # click ends with 1 when it meets a closed pipe, which would look like a failed gate
            return _fail(_PIPE_CLOSED)
        except OSError as error:
            return _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        except MemoryError:
            return _fail("not enough memory for these predictions; measure a part of the rows or of the columns")
        except Exception as error:  # users get one line; TRUECAL_DEBUG=1 shows the traceback
            missing = MissingExtraError.behind(error) if isinstance(error, ModuleNotFoundError) else None
            if missing is not None:
                return _fail(missing)
            if os.environ.get("TRUECAL_DEBUG"):
                raise
            hint = "this is a bug in truecal; TRUECAL_DEBUG=1 shows the traceback"
            return _fail(f"unexpected {type(error).__name__}: {error}", hint=hint)
    return code if isinstance(code, int) else 0


def _suggest_command(typed: list[str], error: TruecalError) -> str:
    """Return "try: ..." with the typed command and the options that the error names; "" if it names none.

    Options are the text `error.options`; flags that were typed are not repeated.

    >>> error = TruecalError("wrong")
    >>> error.options = "--lens positive"
    >>> _suggest_command(["measure", "a.csv"], error)
    'try: truecal measure a.csv --lens positive'
    """
    suggested = shlex.split(getattr(error, "options", ""))
    missing = [word for word in suggested if word not in typed or word not in _FLAGS]
    return f"try: {shlex.join(['truecal', *typed, *missing])}" if missing else ""


def _fail(message: object, *, usage: Any = None, hint: str = "", code: int = 2) -> int:
    """Print a message and a hint to stderr, without control characters, and return `code`.

    With a click context as `usage`, the hint is its --help.
    """
    lines = [printable(" ".join(line.split())) for line in str(message).splitlines()]  # one problem per line
    line = "\n  ".join(line for line in lines if line)
    if usage is not None:
        hint = f"try: {usage.command_path} --help"
    try:
        print(f"truecal: {line}", *([f"  {hint}"] if hint else []), sep="\n", file=sys.stderr)
    except BrokenPipeError:
        _silence_stdout()
    return code


def _silence_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's last flush does not fail on the closed pipe again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass  # stdout is no real file (tests), or there is none
    finally:
        os.close(nothing)


def _show_warnings_as_lines() -> None:
    """Print warnings of truecal as one line on stderr, and suppress those of other packages."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **options: Any) -> None:
        if issubclass(category, TruecalWarning):
            print(f"truecal: warning: {printable(str(message))}", file=sys.stderr)

    warnings.showwarning = show
    if not sys.warnoptions:
        warnings.simplefilter("default", TruecalWarning)


if __name__ == "__main__":
    sys.exit(main())
