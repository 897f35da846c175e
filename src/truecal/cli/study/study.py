"""`truecal study`: many models, many datasets and many metrics from one file, kept in a store."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import truecal as tc
from truecal import parallel
from truecal.cli.answer.output import JsonReply, Reply, json_option, note, number, reply_options, table, working
from truecal.errors import InputError
from truecal.writing import write_whole

# Verb -> (module, function, one line for --help): their modules load on use only.
_ELSEWHERE = {
    "page": ("truecal.cli.study.page", "page", "Write the page that explores a store."),
    "import": ("truecal.cli.study.imported", "import_", "Make a store of numbers that were measured elsewhere."),
    "figure": ("truecal.cli.study.figure", "figure", "Draw a figure of Minderer et al. (2021) from a store."),
    "example": ("truecal.cli.study.page", "example", "Make predictions of real models and a study of them."),
    "interventions": (
        "truecal.cli.study.interventions",
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


@study.command()
@click.argument("file", metavar="STUDY.YAML")
@click.option("--store", metavar="FOLDER", help="Where results are kept. [default: beside the study, named .store]")
@click.option("--workers", type=click.IntRange(1), help="Processes. [default: as the study says, else all cores]")
@click.option("--skip-broken", is_flag=True, help="Leave out files that cannot be read or do not fit, and list them.")
@click.option("--check", is_flag=True, help="Only look at the study and its files; evaluate nothing.")
@json_option
def run(file: str, store: str | None, workers: int | None, skip_broken: bool, check: bool, reply: JsonReply) -> None:
    """Evaluate every prediction file of a study and keep the numbers in a store.

    Stop it at any moment and start it again: finished files are skipped. Several runs on one host may share a store.
    Everything that is wrong with the study or its files is listed before anything is evaluated.
    """
    with working("looking at the files"):
        spec = tc.study.Study.read(file, skip_broken=skip_broken)
    folder = store or str(Path(file).with_suffix(".store"))
    facts = {"study": spec.name, "models": len(spec.models), "files": len(spec)}
    what = f"{spec.name}: {_many(len(spec.models), 'model')}, {_many(len(spec), 'prediction file')}"
    if check:
        text = "\n".join([f"{what}, no problems" if not spec.broken else f"{what} can be used", *_skipped(spec.broken)])
        reply.give("study-check", text, **facts, broken=spec.broken)
        return
    held = tc.study.Store(folder)
    try:
        with parallel.progress_bar(spec.name) as progress:
            spec.run(held, workers=workers, skip_broken=skip_broken, progress=progress)
    except KeyboardInterrupt:
        if (held.folder / "study.json").is_file():
            kept = f"{len(held.done())} of {len(spec)} files are evaluated and kept in {folder}"
            note(f"{kept}; start again to go on", err=True)
        raise
    numbers = len(held.frame())
    broken = held.meta().get("broken") or {}
    lines = [f"{what}, {numbers} numbers in {folder}", *_skipped(broken)]
    text = "\n".join([*lines, f"look at them with: truecal study show {folder}"])
    reply.give("study-run", text, **facts, store=folder, numbers=numbers, broken=broken)


def _skipped(broken: Mapping[str, str]) -> list[str]:
    return [f"skipped {path}: {reason}" for path, reason in broken.items()]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


_STORE = click.argument("store", metavar="STORE")


@study.command()
@_STORE
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="A column; may be given several times.")
@click.option("--sort", metavar="NAME", help="Order by this metric. [default: the first one]")
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Only this dataset (or these).")
@click.option("--severity", type=float, default=0.0, show_default=True, help="Only this severity.")
@click.option("--recalibrator", default="none", show_default=True, metavar="NAME", help="After this recalibrator.")
@click.option("--lens", default="top-label", show_default=True, metavar="LENS", help="What is judged.")
@click.option("--selection", default="all", show_default=True, metavar="NAME", help="Which rows.")
@reply_options
def show(store: str, sort: str | None, reply: Reply, **chosen: Any) -> None:
    """Models side by side, best first, averaged over seeds.

    Models are compared in pairs on the same rows, with Holm's correction; two models that share no group are told apart.
    """
    held = tc.study.Store(store)
    names = list(dict.fromkeys([*([sort] if sort else []), *chosen.pop("metrics")]))
    ranking = tc.study.rank(held, metrics=names, datasets=chosen.pop("datasets"), **chosen)
    waiting = len(held.jobs()) - len(held.done())
    notes = [*ranking.notes, *([f"{waiting} of {len(held.jobs())} files are not evaluated yet"] if waiting else [])]
    paired = any(row.groups for row in ranking.rows)
    head = ["model", "dataset", *(["group"] if paired else []), *ranking.metrics]
    rows = [
        [row.model, row.dataset, *([_group(row.groups)] if paired else []), *_cells(row.values, ranking.metrics)]
        for row in ranking.rows
    ]
    text = table(head, rows, title=f"{held.meta()['name']}, by {ranking.metrics[0]}")
    text = "\n".join([text, *(f"note: {note}" for note in notes)])
    reply.give("study-show", text, store=store, sort=ranking.metrics[0], results=ranking.records(), notes=notes)


def _group(numbers: Sequence[int]) -> str:
    return "" if not numbers else str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _cells(values: Mapping[str, tuple[float | None, ...]], metrics: Sequence[str]) -> list[str]:
    """Values, the first one with its interval where there is one."""
    shown = []
    for place, metric in enumerate(metrics):
        value, low, high = values.get(metric, (None, None, None))
        span = f" [{number(low)}, {number(high)}]" if place == 0 and low is not None else ""
        shown.append(number(value) + span)
    return shown


@study.command()
@_STORE
@click.option("--out", metavar="FILE", required=True, help="Where the numbers go: .csv, .parquet or .jsonl.")
@click.option("--diagrams", is_flag=True, help="The bins of the reliability diagrams instead.")
def export(store: str, out: str, diagrams: bool) -> None:
    """Write every number of the finished files to one table, one number per row."""
    writer = {".csv": "write_csv", ".parquet": "write_parquet", ".jsonl": "write_ndjson", ".ndjson": "write_ndjson"}
    kind = writer.get(Path(out).suffix.lower())
    if kind is None:
        raise InputError(f"{Path(out).name}: unknown kind of file; write to .csv, .parquet or .jsonl")
    held = tc.study.Store(store)
    frame = held.diagrams() if diagrams else held.frame()
    write_whole(out, getattr(frame, kind))
    note(f"wrote {len(frame)} rows to {out}", err=True)


@study.command()
@_STORE
@json_option
def collect(store: str, reply: JsonReply) -> None:
    """Remove numbers of files and options that have changed since, and what killed runs left."""
    files, size = tc.study.Store(store).collect()
    reply.give("study-collect", f"removed {files} files, {size / 1e6:.1f} MB", store=store, files=files, bytes=size)
