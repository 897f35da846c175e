"""`truecal watch`: is calibration still within the tolerance? Batches counted in, the state shown, a page written."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

import truecal as tc
from truecal.cli.estimators import lens_option, make_lens
from truecal.cli.output import FORMATS_WATCH, OutputFile, as_typed, note, render_watch, say, working
from truecal.cli.scan import is_scan, is_sketch, scanned, sketch_files
from truecal.cli.source import Source, by_option, load_all, scan_options
from truecal.errors import InputError

if TYPE_CHECKING:
    from truecal.watch import findings
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T\d{2}[:-]?\d{2}(?:[:-]?\d{2})?)?")
_format_option = click.option(
    "--format", "form", type=click.Choice(FORMATS_WATCH), default="line", show_default=True, help="How to answer."
)
_out_option = click.option(
    "--out",
    cls=OutputFile,
    metavar="FILE",
    help="Write the answer to a file (whole or not at all); - is standard output.",
)


@click.group()
def watch() -> None:
    """Watch calibration day by day: an alarm that is valid whenever one looks, and says what broke and since when.

    \b
    truecal watch update state.json day.parquet --at 2026-05-01 --by model
    truecal watch update state.json logs/             # folders or files by day, replayed in order
    truecal watch show state.json --format prometheus
    truecal watch report state.json --out watch.html

    Exit 0 within the tolerance, 1 on an alarm, 2 if the input cannot be used.
    """


@dataclass(frozen=True)
class _Asked:
    """What the options ask of a state; None where they say nothing."""

    tolerance: float | None
    alpha: float | None
    run_length: int | None
    lens: str


@watch.command()
@click.argument("state")
@click.option("--at", metavar="TIME", help="When the batch is from; otherwise dates are read from the names of files.")
@click.option("--since", metavar="TIME", help="Leave out batches from before this time.")
@click.option("--tolerance", type=click.FloatRange(0, 0.5, max_open=True), help="Error still acceptable [0.02].")
@click.option(
    "--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Chance of a false alarm [0.05]."
)
@click.option("--run-length", type=click.IntRange(2), help="Batches between false alarms about a change [1000].")
@click.option("--of", "predicted", type=click.IntRange(1), help="Rows that were predicted, where labels still lack.")
@click.option("--late", is_flag=True, help="The rows are labels that came late, of a time counted before.")
@click.option("--restart", is_flag=True, help="Forget the evidence first: the model was repaired.")
@lens_option
@by_option
@_format_option
@_out_option
@scan_options
def update(
    source: Source, state: str, at: str | None, since: str | None, form: str, out: str | None, **options: Any
) -> int:
    """Count the batch in FILE into STATE, which is made if it is not there; exit 1 on an alarm.

    FILE may be predictions of any kind, sketches (npz) or folders of these. Without --at, files and folders are taken apart by the
    date in their names (2026-05-01.parquet, day=2026-05-01/...) and replayed in order; dates up to the last counted are skipped.
    """
    asked = _Asked(*(options.pop(name) for name in ("tolerance", "alpha", "run_length", "lens")))
    predicted, late, restart = (options.pop(name) for name in ("predicted", "late", "restart"))
    columns = source.by
    watching = _opened(Path(state), asked, columns)
    steps: list[findings.WatchStep] = []
    batches = _batches(source, at)
    with working(f"watching {source.name}") as tell:
        for i, (when, part) in enumerate(batches):
            if _skipped(watching, when, at, since, late):
                continue
            tell(f"watching {source.name}: {when}, {i + 1} of {len(batches)}")
            data, dropped, lens = _read(part, asked.lens if watching is None else _word(watching, asked.lens), columns)
            if watching is None:
                watching = _begun(asked, columns, lens)
            of = predicted if predicted is not None or columns or not dropped else len(data) + dropped
            steps.append(watching.update(data, at=when, of=of, late=late, restart=restart and not steps))
            watching.save(state)
    if watching is None or not (steps or watching.groups):
        raise InputError(f"no batch to count: nothing in {source.name} is from {since} or later")
    last = steps[-1] if steps else watching.step()
    say(render_watch(form, watching, steps or [last]), out)
    return 1 if last.alarm or last.changed else 0


@watch.command()
@click.argument("state")
@_format_option
@_out_option
def show(state: str, form: str, out: str | None) -> int:
    """Say what STATE knows; exit 1 on an alarm."""
    watching = tc.Watch.load(state)
    step = watching.step()
    say(render_watch(form, watching, [step]), out)
    return 1 if step.alarm or step.changed else 0


@watch.command()
@click.argument("state")
@click.option(
    "--out", cls=OutputFile, metavar="FILE", default="watch.html", show_default=True, help="Where to write the page."
)
@click.option("--title", default="Calibration over time", show_default=True, help="Heading of the page.")
def report(state: str, out: str, title: str) -> None:
    """Write a self-contained HTML page about STATE: time lines, groups by days, before and after, what to do."""
    path = tc.pages.report_watch(tc.Watch.load(state), out, title=title, command=as_typed())
    note(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")


def _opened(state: Path, asked: _Asked, by: tuple[str, ...]) -> "tc.Watch | None":
    """The watch of a state that is there, with the settings asked for or none said."""
    if not state.exists():
        return None
    held = tc.Watch.load(state)
    held.refuse_other(tolerance=asked.tolerance, alpha=asked.alpha, run_length=asked.run_length)
    if by != held.settings.by:
        listed = ", ".join(held.settings.by) or "nothing"
        raise InputError(f"the state was begun by {listed}, not by {', '.join(by) or 'nothing'}; say --by as before")
    return held


def _begun(asked: _Asked, by: tuple[str, ...], lens: Any) -> "tc.Watch":
    tolerance = 0.02 if asked.tolerance is None else asked.tolerance
    alpha = 0.05 if asked.alpha is None else asked.alpha
    return tc.Watch(tolerance, alpha, lens=lens, by=by or None, run_length=asked.run_length)


def _word(watching: "tc.Watch", asked: str) -> str:
    """--lens of a state that is there: what it was begun with."""
    held = watching.lens
    kinds = {"top": "top-label", "classes": "class-wise", "class": "positive"}
    word = "auto" if held is None else kinds[held.pushed_down().kind]
    name = getattr(held, "name", None)
    word = f"class={name}" if name is not None else word
    if asked not in ("auto", word):
        raise InputError(f"the state was begun with --lens {word}, not {asked}; begin another state for that")
    return word


# ---------------------------------------------------------------------- batches


def _batches(source: Source, at: str | None) -> list[tuple[str | None, Source]]:
    """Times and what is from them, in order; one batch where the time is said, else by the dates in names."""
    if at is not None or source.file == "-":
        return [(at, source)]
    from truecal.engines.sources import files_of

    days: dict[str, list[str]] = {}
    for file in _files([source.file, *source.also], files_of):
        dates = _DATE.findall(file)
        if not dates:
            raise InputError(f"no date in the name {file}; say when the batch is from with --at 2026-05-01")
        days.setdefault(dates[-1], []).append(file)
    return [(day, replace(source, file=days[day][0], also=tuple(days[day][1:]))) for day in sorted(days)]


def _files(given: Sequence[str], files_of: Any) -> list[str]:
    """Files behind paths, patterns and folders; sketches among them."""
    files: list[str] = []
    for name in given:
        held = sketch_files(name)
        files += held if held else files_of(name)
    return files


def _skipped(watching: "tc.Watch | None", when: str | None, at: str | None, since: str | None, late: bool) -> bool:
    """Whether a batch of a replay is too old, or counted already."""
    if when is None or late:
        return False
    if since is not None and when < since:
        return True
    if at is not None or watching is None:
        return False
    return when <= max((watching.group(*key).history.latest for key in watching.groups), default="")


def _read(source: Source, lens: str, by: tuple[str, ...]) -> tuple[Any, int, Any]:
    """The data of a batch, how many rows had no label, and the lens they are judged by (None: the default)."""
    from truecal.engines import sources

    names = [source.file, *source.also]
    sketches = [file for name in names for file in sketch_files(name)]
    if sketches and is_sketch(sketches[0]):
        if not by:
            return sum((tc.Sketch.load(file) for file in sketches[1:]), tc.Sketch.load(sketches[0])), 0, None
        groups: dict[tuple[str, ...], tc.Sketch] = {}
        for file in sketches:
            values = {unquote(name): value for name, value in sources.folder_values(file).items()}
            lacking = [name for name in by if name not in values]
            if lacking:
                raise InputError(f"{file}: its folders do not say the group, such as {lacking[0]}=.../sketch.npz")
            key = tuple(str(values[name]) for name in by)
            groups[key] = groups.get(key, tc.Sketch()) + tc.Sketch.load(file)
        return groups, 0, None
    if is_scan(source):
        scan = scanned(source, lens)
        return scan, 0, None if lens == "auto" else scan.lens
    loaded = load_all(source)
    return loaded.preds, loaded.dropped, make_lens(lens, loaded.preds)
