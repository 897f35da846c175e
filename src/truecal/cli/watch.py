"""`truecal watch`: is calibration still within the tolerance? Batches counted in, the state shown, a page written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import click

import truecal as tc
from truecal import names
from truecal.cli.command import ALL_FORMATS, Count, Fraction, NumberRange, Several, WriteTo, command
from truecal.cli.input import GroupedFiles, load
from truecal.cli.output import Reply, Statement, command_line, note, page_written, working
from truecal.cli.scan import is_sketch, scan_files, sketch_files
from truecal.engines.sources import files_of, folder_values
from truecal.errors import InputError
from truecal.watch import WatchStep
from truecal.watch.conclusion import conclude_watch
from truecal.watch.state import canonical_time, check_same_kind, time_number, time_order
from truecal.writing import locked

_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:T(\d{2})[:-]?(\d{2})(?:[:-]?(\d{2}))?)?")
_LISTED = 12  # skipped batches that are named
_GAUGES = ("alarm", "changed", "log_e", "p_value", "difference", "difference_low", "difference_high", "rows_seen")


@click.group()
def watch() -> None:
    """Monitor calibration over time, with an alarm that is valid however often one looks, and names what changed and since when.

    \b
    truecal watch update state.json day.parquet --at 2026-05-01 --by model
    truecal watch update state.json logs/             # folders or files by day, replayed in order
    truecal watch show state.json --format prometheus
    truecal watch undo state.json                     # remove the last batch
    truecal watch report state.json --out watch.html

    Exit 0 within the tolerance, 1 on an alarm, 2 if the input cannot be used or nothing was counted.
    """


@command(watch, formats=ALL_FORMATS)
def update(
    state: str,
    source: GroupedFiles,
    *,
    time: str | None = None,
    tolerance: Annotated[float, NumberRange(0, 0.5, max_open=True)] | None = None,
    alpha: Fraction | None = None,
    run_length: Several | None = None,
    of: Count | None = None,
    late: bool = False,
    restart: bool = False,
) -> Reply:
    """Count the batch in FILE into STATE, which is created if it does not exist; exit 1 on an alarm.

    FILE may be predictions of any kind, sketches (npz) or folders of these. Without --at, files and folders are sorted by the
    date in their names (2026-05-01.parquet, day=2026-05-01/...) and replayed in order; dates up to the last counted are skipped,
    and the command lists them. If nothing was counted, it ends with 2. Other updates of STATE wait until this one has ended.

    --at, --time TIME  When the batch is from; otherwise dates are read from the names of files.
    --tolerance E   Error that is acceptable.  [default: 0.02]
    --alpha P       Chance of a false alarm.  [default: 0.05]
    --run-length N  Batches between false alarms about a change.  [default: 1000]
    --of N          Rows that were predicted, where some have no label yet.
    --late          The rows are labels that came late, of a time counted before.
    --restart       Discard the evidence so far: the model was repaired.
    """
    options = {"tolerance": tolerance, "alpha": alpha, "run_length": run_length}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    steps: list[WatchStep] = []
    skipped: dict[str, str] = {}
    with locked(state), working(f"watching {source.name}") as show:
        watching = tc.Watch.load(state) if Path(state).exists() else None
        if watching is not None:
            source = _with_settings(source, watching, Path(state).name, given)
        batches = _split_batches(source, time)
        for i, (when, part) in enumerate(batches):
            reason = None if when is None or late else _reason_to_skip(watching, when, replayed=time is None)
            if reason is not None:
                skipped[str(when)] = reason
                continue
            show(f"watching {source.name}: {when}, {i + 1} of {len(batches)}")
            # one line says what was read: the columns of the first batch
            data, dropped, data_lens = _read_batch(replace(part, quiet=part.quiet or bool(steps)))
            if watching is None:
                watching = tc.Watch(**given, lens=data_lens, by=source.by or None)
            predicted = of if of is not None or source.by or not dropped else len(data) + dropped
            step = watching.update(data, at=when, of=predicted, late=late, restart=restart and not steps)
            if step.repeated:
                skipped[step.at] = "already counted, with the same rows"
                continue
            steps.append(step)
            watching.save(state)
    lines = [f"skipped {day}: {reason}" for day, reason in list(skipped.items())[:_LISTED]]
    lines += [f"skipped {len(skipped) - _LISTED} more"] if len(skipped) > _LISTED else []
    if watching is None or not steps:
        raise InputError("\n".join(["nothing was counted", *lines]))
    for line in lines:
        note(line)
    return _reply(watching, steps, skipped)


@command(watch, formats=ALL_FORMATS)
def show(state: str) -> Reply:
    """Show the last answer of STATE; exit 1 on an alarm."""
    watching = tc.Watch.load(state)
    return _reply(watching, [watching.step()], {})


@command(watch)
def undo(state: str) -> Reply:
    """Remove the last batch from STATE; only one can be removed."""
    with locked(state):
        watching = tc.Watch.load(state)
        when = watching.undo()
        watching.save(state)
    latest = watching.latest or None
    text = f"removed the batch at {when}; {'it was the first' if latest is None else f'the last is now {latest}'}"
    return Reply("watch-undo", {"state": state, "undone": when, "latest": latest}, text)


@command(watch)
def report(state: str, *, out: WriteTo = "watch.html", title: str = "Calibration over time") -> Reply:
    """Write a self-contained HTML page about STATE: time lines, groups by days, before and after, what to do.

    --out FILE    Where to write the page.
    --title TEXT  Heading of the page.
    """
    path = tc.report(tc.Watch.load(state), out, title=title, command=command_line())
    return page_written("watch-written", path, state=state)


def _reply(watching: "tc.Watch", steps: Sequence[WatchStep], skipped: Mapping[str, str]) -> Reply:
    """Return the reply about all groups after one or several steps; the statements are about the last one.

    `skipped` maps times of batches that were not counted to reasons. The content is settings, lens, alarm and changed of the last
    step, all steps and what was skipped. A statement per group has the numbers in _GAUGES and the time of its last batch.
    """
    settings, conclusion = watching.settings, conclude_watch(watching)
    content = {
        **{name: getattr(settings, name) for name in ("tolerance", "alpha", "run_length", "by")},
        "lens": watching.lens_name,
        "alarm": steps[-1].alarm,
        "changed": steps[-1].changed,
        "steps": [step.to_dict() for step in steps],
        "skipped": [{"at": time, "reason": reason} for time, reason in skipped.items()],
    }
    off = {"any_alarm": float(not conclusion.passed)}
    statements = []
    for group in conclusion.step.groups.values():
        numbers = group.to_dict()
        gauges = {name: float(numbers[name]) for name in _GAUGES}
        gauges["last_batch"] = float(time_number(watching.group(*group.group).history.latest))
        labels = dict(zip(settings.by, group.group, strict=True))
        sentence = str(group).removeprefix(f"{group.name}: ")
        statements.append(
            Statement(group.name, sentence, gauges if settings.by else off | gauges, group.state == "ok", labels)
        )
    lines = [*(str(step).partition("\n")[0] for step in steps[:-1]), str(steps[-1])]
    return Reply("watch", content, "\n".join(lines), statements, conclusion, totals=off)


def _with_settings(source: GroupedFiles, watching: "tc.Watch", state: str, given: Mapping[str, Any]) -> GroupedFiles:
    """Return the input with lens and groups of a state; refuse settings `given` other than those it was started with.

    `state` is the name of the file.
    """
    settings, lens, name = watching.settings, watching.lens, getattr(watching.lens, "name", None)
    word = "auto" if lens is None else names.word_of(type(lens).__name__, names.LENSES)
    word = word if name is None else f"class={name}"
    pairs = {f"--{key.replace('_', '-')}": (getattr(settings, key), value) for key, value in given.items()}
    pairs["--lens"] = (word, word if source.lens == "auto" else source.lens)
    for option, (started, value) in pairs.items():
        if value != started:
            difference = f"{option} {started}, not {value}"
            raise InputError(f"{state} was started with {difference}. Drop {option}, or use a new state file.")
    if source.by not in ((), settings.by):
        start = f"with {' '.join(f'--by {name}' for name in settings.by)}" if settings.by else "without --by"
        raise InputError(f"{state} was started {start}. Drop --by, or use a new state file.")
    return replace(source, lens=word, by=settings.by)


# ----------------------------------------------------------------------------------------------------
# Batches


def _split_batches(source: GroupedFiles, time: str | None) -> list[tuple[str | None, GroupedFiles]]:
    """Return (time, input) of every batch in order: one if `time` is given or from standard input, else by the dates in names.

    The last date in the name of a file counts; files of one time are one batch. Raises InputError for a name without date.
    """
    if time is not None or source.file == "-":
        return [(time, source)]
    days: dict[str, list[str]] = {}
    for file in (file for name in source.files for file in sketch_files(name) or files_of(name)):
        dates = list(_DATE.finditer(file))
        if not dates:
            raise InputError(f"no date in the name {file}; name the time of the batch with --at 2026-05-01")
        day, *clock = (part for part in dates[-1].groups() if part is not None)
        days.setdefault(canonical_time(f"{day}T{':'.join(clock)}" if clock else day, ""), []).append(file)
    return [(day, replace(source, files=tuple(days[day]))) for day in sorted(days, key=time_order)]


def _reason_to_skip(watching: "tc.Watch | None", when: str, *, replayed: bool) -> str | None:
    """Return why a batch of a replay is not counted: its time is not after the last counted one; None if it counts.

    `when` is the time of the batch. Only with `replayed`, and only where a batch was counted before, is anything skipped.
    """
    if not replayed or watching is None or not watching.latest:
        return None
    check_same_kind(when, watching.latest, "the last counted batch was at")
    if time_order(when) > time_order(watching.latest):
        return None
    if any(watching.group(*key).history.counted(when) for key in watching.groups):
        return "already counted (its rows were not read again)"
    return f"before the last counted batch, {watching.latest}; --late counts it"


def _read_batch(source: GroupedFiles) -> tuple[Any, int, Any]:
    """Read a batch: Predictions, a Scan, a Sketch or Sketches by group; its rows without label; its lens (None: default).

    Sketches are added to one, or with --by to one per group, whose values are those of the folders column=value. A scan, and
    sketches, count no rows without label.
    """
    sketches = [file for name in source.files for file in sketch_files(name)]
    if sketches and is_sketch(sketches[0]):
        if not source.by:
            return tc.Sketch().merge(*map(tc.Sketch.load, sketches)), 0, None
        groups: dict[tuple[str | None, ...], tc.Sketch] = {}
        for file in sketches:
            values = {unquote(name): value for name, value in folder_values(file).items()}
            unnamed = [name for name in source.by if name not in values]
            if unnamed:
                raise InputError(f"{file}: its folders do not name the group, such as {unnamed[0]}=.../sketch.npz")
            key = tuple(values[name] for name in source.by)
            groups[key] = groups.get(key, tc.Sketch()).merge(tc.Sketch.load(file))
        return groups, 0, None
    if source.scans:
        scan = scan_files(source)
        return scan, 0, None if source.lens == "auto" else scan.lens
    loaded = load(source)
    return loaded.preds, loaded.counts.dropped, loaded.lens
