"""The `truecal` command as click has it: its verbs, each imported on use, with the settings of a file."""

from importlib import import_module

import click

from truecal import names
from truecal.cli.settings import use_settings

# Module and one line of help by verb, so that --help needs no module of a verb.
VERBS = {
    "measure": ("measure", "Measure the calibration error of predictions, with its interval."),
    "report": ("report", "Write a self-contained HTML report."),
    "verify": ("verdicts", "Test whether the error is below a threshold."),
    "audit": ("verdicts", "Find miscalibrated segments, with one error rate for the whole search."),
    "likert": ("verdicts", "Test an answer scale: low, medium, high, or your own words."),
    "decision": ("verdicts", "Estimate what miscalibration costs decisions at a threshold."),
    "compare": ("compare", "Compare models on the same rows, pair by pair."),
    "watch": ("watch", "Monitor calibration over time: update, show, undo, report."),
    "sketch": ("scan", "Store predictions as sketches, which can be added: save, merge, show."),
    "recalibrate": ("recalibrate", "Fit a recalibrator, apply it, or export it."),
    "lab": ("lab", "Simulate worlds whose true error is known."),
    "study": ("study", "Evaluate many models, datasets and metrics: run, show, export."),
    "demo": ("report", "Train classifiers on bundled data, measure them, and write a report."),
}


class LazyGroup(click.Group):
    """A group that imports the module of a verb on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands, without importing them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name and apply its settings file; None, or a usage error with similar names, for an unknown
        one.
        """
        if cmd_name not in VERBS:
            if not ctx.resilient_parsing and not cmd_name.startswith("-"):
                ctx.fail(f"there is no verb {cmd_name!r}{names.did_you_mean(cmd_name, VERBS)}")
            return None
        command: click.Command = getattr(import_module(f"truecal.cli.{VERBS[cmd_name][0]}"), cmd_name)
        use_settings(ctx, cmd_name, command, VERBS)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the section "Commands" of the help: each name with its line in VERBS."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(None, "--version", package_name="truecal", message="truecal %(version)s")
@click.option(
    "--config", metavar="FILE", help="Settings file to use instead of the nearest truecal.toml or pyproject.toml."
)
def truecal(config: str | None) -> None:
    """How far a classifier's confidence is from the truth, how sure that answer is, and what fixes it.

    \b
    truecal measure preds.parquet                     one number with its interval
    truecal measure preds.csv --max-error 0.02        a gate for CI: exit 0 pass, 1 fail, 2 bad input
    truecal report preds.parquet --out report.html    a page to forward

    Shell completion: eval "$(_TRUECAL_COMPLETE=bash_source truecal)" (or zsh_source, fish_source).
    """
