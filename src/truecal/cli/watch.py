"""`truecal watch`: is calibration still within the tolerance? Batches counted in, the state shown, a page written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click

import truecal as tc
from truecal.cli.estimators import lens_option, make_lens
from truecal.cli.output import Result, answers, as_typed, label_text, note, out_option, working, writes, written
from truecal.cli.scan import is_scan, is_sketch, scanned, sketch_files
from truecal.cli.source import Source, by_option, load_all, scan_options
from truecal.errors import InputError
from truecal.watch.state import canonical_time, check_same_kind, time_number, time_order
from truecal.writing import locked

if TYPE_CHECKING:
    from truecal.watch import findings
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:T(\d{2})[:-]?(\d{2})(?:[:-]?(\d{2}))?)?")
_LISTED = 12  # skipped batches that are named
_FORMATS = ("line", "json", "prometheus")


@click.group()
def watch() -> None:
    """Watch calibration day by day: an alarm that is valid whenever one looks, and says what broke and since when.

    \b
    truecal watch update state.json day.parquet --at 2026-05-01 --by model
    truecal watch update state.json logs/             # folders or files by day, replayed in order
    truecal watch show state.json --format prometheus
    truecal watch undo state.json                     # take back the last batch
    truecal watch report state.json --out watch.html

    Exit 0 within the tolerance, 1 on an alarm, 2 if the input cannot be used or nothing was counted.
    """


@dataclass(frozen=True)
class _Options:
    """What the options say of a state; None where they leave it open."""

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
@answers(formats=_FORMATS)
@scan_options
def update(source: Source, state: str, at: str | None, since: str | None, **options: Any) -> Result:
    """Count the batch in FILE into STATE, which is made if it is not there; exit 1 on an alarm.

    FILE may be predictions of any kind, sketches (npz) or folders of these. Without --at, files and folders are taken apart by the
    date in their names (2026-05-01.parquet, day=2026-05-01/...) and replayed in order; dates up to the last counted are skipped,
    and the command says which. If nothing was counted, it ends with 2. Other updates of STATE wait until this one has ended.
    """
    chosen = _Options(*(options.pop(name) for name in ("tolerance", "alpha", "run_length", "lens")))
    predicted, late, restart = (options.pop(name) for name in ("predicted", "late", "restart"))
    steps: list[findings.WatchStep] = []
    skipped: dict[str, str] = {}
    with locked(state), working(f"watching {source.name}") as tell:
        watching = _opened(Path(state), chosen, source.by)
        batches = _batches(source, at)
        for i, (when, part) in enumerate(batches):
            reason = None if when is None or late else _reason_to_skip(watching, when, since, replayed=at is None)
            if reason is not None:
                skipped[str(when)] = reason
                continue
            tell(f"watching {source.name}: {when}, {i + 1} of {len(batches)}")
            lens_word = chosen.lens if watching is None else _lens_word(watching, chosen.lens, state)
            data, dropped, lens = _read(part, lens_word, source.by)
            if watching is None:
                watching = _begun(chosen, source.by, lens)
            of = predicted if predicted is not None or source.by or not dropped else len(data) + dropped
            step = watching.update(data, at=when, of=of, late=late, restart=restart and not steps)
            if step.repeated:
                skipped[step.at] = "already counted, with the same rows"
                continue
            steps.append(step)
            watching.save(state)
    if watching is None or not steps:
        raise InputError("\n".join(["nothing was counted", *_listed(skipped)]))
    for line in _listed(skipped):
        note(line)
    return _result(watching, steps, skipped)


def _listed(skipped: Mapping[str, str]) -> list[str]:
    lines = [f"skipped {time}: {reason}" for time, reason in list(skipped.items())[:_LISTED]]
    return [*lines, f"skipped {len(skipped) - _LISTED} more"] if len(skipped) > _LISTED else lines


@watch.command()
@click.argument("state")
@answers(formats=_FORMATS)
def show(state: str) -> Result:
    """Say what STATE knows; exit 1 on an alarm."""
    watching = tc.Watch.load(state)
    return _result(watching, [watching.step()], {})


@watch.command()
@click.argument("state")
@writes
def undo(state: str) -> Result:
    """Take back the last batch counted into STATE, as if it had never come; only one can be taken back."""
    with locked(state):
        watching = tc.Watch.load(state)
        when = watching.undo()
        watching.save(state)
    latest = watching.latest or None
    words = "it was the first" if latest is None else f"the last is now {latest}"
    content = {"state": state, "undone": when, "latest": latest}
    return Result("watch-undo", content, f"took back the batch at {when}; {words}")


@watch.command()
@click.argument("state")
@out_option("Where to write the page.", "watch.html")
@click.option("--title", default="Calibration over time", show_default=True, help="Heading of the page.")
@writes
def report(state: str, out: str, title: str) -> Result:
    """Write a self-contained HTML page about STATE: time lines, groups by days, before and after, what to do."""
    return written("watch-written", tc.report(tc.Watch.load(state), out, title=title, command=as_typed()), state=state)


_METRICS = {
    "alarm": "1 where calibration was shown to be off by more than the tolerance",
    "changed": "1 where calibration was shown to have changed",
    "log_e": "log of the evidence that calibration was ever off",
    "p_value": "p-value that may be read at any time",
    "difference": "mean difference (predicted - observed) since the last restart",
    "difference_low": "lower end of its confidence sequence",
    "difference_high": "upper end of its confidence sequence",
    "rows_seen": "labelled rows counted in",
    "last_batch": "time of the last batch in seconds since 1970, or its number",
}


def _result(watching: "tc.Watch", steps: "Sequence[findings.WatchStep]", skipped: Mapping[str, str]) -> Result:
    """Answer after one or several batches; `skipped` says why others were not counted, by their time."""
    settings = watching.settings
    content = {
        **{name: getattr(settings, name) for name in ("tolerance", "alpha", "run_length", "by")},
        "judged": watching.judged,
        "alarm": steps[-1].alarm,
        "changed": steps[-1].changed,
        "steps": [step.to_dict() for step in steps],
        "skipped": [{"at": time, "reason": reason} for time, reason in skipped.items()],
    }
    others = {"line": "\n".join(map(str, steps)), "prometheus": _prometheus(watching)}
    return Result("watch", content, others["line"], failed=steps[-1].alarm or steps[-1].changed, others=others)


def _prometheus(watching: "tc.Watch") -> str:
    """Write the text format of Prometheus: one gauge per number, one line per group."""
    step, by = watching.step(), watching.settings.by
    lines = []
    for name, help_ in _METRICS.items():
        lines += [f"# HELP truecal_watch_{name} {help_}", f"# TYPE truecal_watch_{name} gauge"]
        for group in step.groups.values():
            numbers = {**group.to_dict(), "last_batch": time_number(watching.group(*group.group).history.latest)}
            pairs = [f'{_label_name(key)}="{label_text(value)}"' for key, value in zip(by, group.group, strict=True)]
            labels = f"{{{','.join(pairs)}}}" if pairs else ""
            lines.append(f"truecal_watch_{name}{labels} {float(numbers[name]):.10g}")
    lines += [
        "# HELP truecal_watch_any_alarm 1 where any group raises the alarm",
        "# TYPE truecal_watch_any_alarm gauge",
    ]
    lines.append(f"truecal_watch_any_alarm {float(step.alarm or step.changed):.10g}")
    return "\n".join(lines)


def _label_name(column: str) -> str:
    """Make a label name of letters, digits and underscores."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in column)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _opened(state: Path, chosen: _Options, by: tuple[str, ...]) -> "tc.Watch | None":
    """The watch of a state that is there; None where there is none. Other settings than those it was started with are refused."""
    if not state.exists():
        return None
    watching = tc.Watch.load(state)
    for name in ("tolerance", "alpha", "run_length"):
        value, option = getattr(chosen, name), f"--{name.replace('_', '-')}"
        if value not in (None, getattr(watching.settings, name)):
            _refuse_setting(state, f"{option} {getattr(watching.settings, name)}, not {value}", option)
    if by != watching.settings.by:
        started = " ".join(f"--by {name}" for name in watching.settings.by)
        if not started:
            raise InputError(f"{state.name} was started without --by. Drop --by, or use a new state file.")
        raise InputError(f"{state.name} was started with {started}. Give {started}, or use a new state file.")
    return watching


def _refuse_setting(state: Path, difference: str, option: str) -> None:
    raise InputError(f"{state.name} was started with {difference}. Drop {option}, or use a new state file.")


def _begun(chosen: _Options, by: tuple[str, ...], lens: Any) -> "tc.Watch":
    tolerance = 0.02 if chosen.tolerance is None else chosen.tolerance
    alpha = 0.05 if chosen.alpha is None else chosen.alpha
    return tc.Watch(tolerance, alpha, lens=lens, by=by or None, run_length=chosen.run_length)


def _lens_word(watching: "tc.Watch", word: str, state: str) -> str:
    """--lens of a state that is there: what it was started with."""
    lens = watching.lens
    kinds = {"top": "top-label", "classes": "class-wise", "class": "positive"}
    started = "auto" if lens is None else kinds[lens.pushed_down().kind]
    name = getattr(lens, "name", None)
    started = started if name is None else f"class={name}"
    if word not in ("auto", started):
        _refuse_setting(Path(state), f"--lens {started}, not {word}", "--lens")
    return started


# ---------------------------------------------------------------------- batches


def _batches(source: Source, at: str | None) -> list[tuple[str | None, Source]]:
    """Times and what is from them, in order; one batch where the time is said, else by the dates in names."""
    if at is not None or source.file == "-":
        return [(at, source)]
    from truecal.engines.sources import files_of

    days: dict[str, list[str]] = {}
    for file in _files([source.file, *source.also], files_of):
        dates = list(_DATE.finditer(file))
        if not dates:
            raise InputError(f"no date in the name {file}; say when the batch is from with --at 2026-05-01")
        day, *clock = (part for part in dates[-1].groups() if part is not None)
        days.setdefault(canonical_time(f"{day}T{':'.join(clock)}" if clock else day, ""), []).append(file)
    ordered = sorted(days, key=time_order)
    return [(day, replace(source, file=days[day][0], also=tuple(days[day][1:]))) for day in ordered]


def _files(given: Sequence[str], files_of: Any) -> list[str]:
    """Files behind paths, patterns and folders; sketches among them."""
    files: list[str] = []
    for name in given:
        files += sketch_files(name) or files_of(name)
    return files


def _reason_to_skip(watching: "tc.Watch | None", when: str, since: str | None, *, replayed: bool) -> str | None:
    """Why a batch is not counted: it is from before --since or, in a replay, not later than the last one."""
    if since is not None:
        check_same_kind(when, since, "--since is")
        if time_order(when) < time_order(since):
            return f"before --since {since}"
    if not replayed or watching is None or not watching.latest:
        return None
    check_same_kind(when, watching.latest, "the last counted batch was at")
    if time_order(when) > time_order(watching.latest):
        return None
    if any(watching.group(*key).history.counted(when) for key in watching.groups):
        return "already counted (its rows were not read again)"
    return f"before the last counted batch, {watching.latest}; --late counts it"


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
    return loaded.preds, loaded.counts.dropped, make_lens(lens, loaded.preds)
