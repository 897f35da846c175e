"""`truecal study`: many models, many datasets and many metrics from one file, kept in a store."""

from importlib import import_module

import click

# Verb -> (module, function, one line for --help): their modules load on use only.
_ELSEWHERE = {
    "page": ("truecal.cli.study_page", "page", "Write the page that explores a store."),
    "example": ("truecal.cli.study_page", "example", "Make predictions of real models and a study of them."),
    "interventions": (
        "truecal.cli.study_interventions",
        "interventions",
        "Train with and without each remedy, and compare.",
    ),
}


class _Group(click.Group):
    """Its own verbs, and those of other modules, which are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *_ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, function, _ = _ELSEWHERE[cmd_name]
        command: click.Command = getattr(import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = [(name, command.get_short_help_str(90)) for name, command in self.commands.items()]
        lines += [(name, words) for name, (_, _, words) in _ELSEWHERE.items()]
        with formatter.section("Commands"):
            formatter.write_dl(lines)


@click.group(cls=_Group)
def study() -> None:
    """Evaluate many models on many datasets by many metrics, and keep every number in a store.

    \b
    truecal study run study.yaml --store results    evaluate; started again, it goes on where it stopped
    truecal study show results                      models side by side
    truecal study export results --out all.csv      every number, one per row
    """
