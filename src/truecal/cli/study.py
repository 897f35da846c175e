"""`truecal study`: many models, many datasets and many metrics from one file, kept in a store."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

import truecal as tc
from truecal import parallel
from truecal.cli.output import (
    OutputFile,
    Result,
    answers,
    as_typed,
    draw,
    note,
    number,
    out_option,
    table,
    working,
    writes,
    written,
)
from truecal.errors import InputError, MissingExtraError
from truecal.table import check_table, write_table
from truecal.writing import check_output, write_whole

# ----------------------------------------------------------------------------------------------------
# `truecal study`: many models, many datasets and many metrics from one file, kept in a store


@click.group()
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
@writes
def run(file: str, store: str | None, workers: int | None, skip_broken: bool, check: bool) -> Result:
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
        return Result("study-check", {**facts, "broken": spec.broken}, text)
    held = tc.study.Store(folder)
    try:
        with parallel.progress_bar(spec.name) as progress:
            spec.run(held, workers=workers, skip_broken=skip_broken, progress=progress)
    except KeyboardInterrupt:
        if (held.folder / "study.json").is_file():
            kept = f"{len(held.done())} of {len(spec)} files are evaluated and kept in {folder}"
            note(f"{kept}; start again to go on")
        raise
    numbers = len(held.frame())
    broken = held.meta().get("broken") or {}
    lines = [f"{what}, {numbers} numbers in {folder}", *_skipped(broken)]
    text = "\n".join([*lines, f"look at them with: truecal study show {folder}"])
    return Result("study-run", {**facts, "store": folder, "numbers": numbers, "broken": broken}, text)


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
@answers(formats=("text", "json"))
def show(store: str, sort: str | None, **chosen: Any) -> Result:
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
    content = {"store": store, "sort": ranking.metrics[0], "results": ranking.records(), "notes": notes}
    return Result("study-show", content, text)


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
@out_option("Where the numbers go: .csv, .parquet or .jsonl.", required=True)
@click.option("--diagrams", is_flag=True, help="The bins of the reliability diagrams instead.")
@writes
def export(store: str, out: str, diagrams: bool) -> Result:
    """Write every number of the finished files to one table, one number per row."""
    check_table(out)
    held = tc.study.Store(store)
    frame = held.diagrams() if diagrams else held.frame()
    write_table(frame, out)
    return Result(
        "study-export", {"store": store, "path": out, "rows": len(frame)}, f"wrote {len(frame)} rows to {out}"
    )


@study.command()
@_STORE
@writes
def collect(store: str) -> Result:
    """Remove numbers of files and options that have changed since, and what killed runs left."""
    files, size = tc.study.Store(store).collect()
    content = {"store": store, "files": files, "bytes": size}
    return Result("study-collect", content, f"removed {files} files, {size / 1e6:.1f} MB")


# ----------------------------------------------------------------------------------------------------
# `truecal study figure`: the figures of Minderer et al. (2021) from a store

_NAMES = {
    "families": "1: calibration against error by family, with reliability diagrams",
    "recalibration": "2: before and after recalibration, side by side",
    "covariate": "3, 10: against a covariate (--covariate), before and after",
    "severities": "4: clouds by family and severity, mean over types of corruption",
    "sizes": "5: beside the largest model of the family, over severities",
    "natural": "6: clean and naturally shifted datasets, before and after",
    "costs": "7: cost of abstaining, model against model (reads the prediction files)",
    "residuals": "8: log loss and Brier score beyond what error explains",
    "bins": "9: the trend with error by number of bins",
    "loglog": "11: log-log lines of families, pooled over datasets",
    "temperatures": "D: fitted temperatures by family",
    "agreement": "E: how far estimators agree in ranking models",
}


@study.command(epilog="Figures: " + "; ".join(f"{name} ({words})" for name, words in _NAMES.items()))
@click.argument("name", type=click.Choice([*_NAMES, "all"]), metavar="NAME")
@click.argument("store", metavar="STORE")
@click.option(
    "--out",
    cls=OutputFile,
    folder=True,
    metavar="FILE",
    help="Picture (.png, .pdf, .svg); for all, a folder. [default: NAME.png]",
)
@click.option("--metric", metavar="NAME", help="Calibration error to show. [default: ece-mass-100-l1 if it is there]")
@click.option("--dataset", metavar="NAME", help="Dataset of figures on clean data. [default: the clean one]")
@click.option("--reference", metavar="NAME", help="Clean dataset of all shifted ones. [default: as in the store]")
@click.option("--covariate", metavar="NAME", help="Column that models or datasets differ in. [default: size]")
@click.option("--after", metavar="NAME", help="Recalibrator to compare with. [default: temperature]")
@click.option("--model", "models", multiple=True, metavar="NAME", help="Only these, in diagrams and cost maps.")
@click.option(
    "--external",
    nargs=3,
    type=(str, float, float),
    multiple=True,
    metavar="NAME ERROR VALUE",
    help="A point from elsewhere, in figures 1 and 2 before recalibration; may be given several times.",
)
@click.option("--numbers", cls=OutputFile, metavar="FILE", help="Also write the numbers drawn: .csv or .parquet.")
@writes
def figure(
    name: str,
    store: str,
    out: str | None,
    numbers: str | None,
    models: tuple[str, ...],
    external: tuple[tuple[str, float, float], ...],
    **chosen: str | None,
) -> Result:
    """Draw a figure of Minderer et al. (2021) from the numbers in STORE."""
    from truecal.plot import figures

    held = tc.study.Store(store)
    points = tuple(figures.External(*point) for point in external)
    choice = replace(figures.Choice(models=models, external=points), **chosen)  # type: ignore[arg-type]
    wanted = list(figures.FIGURES) if name == "all" else [name]
    if name != "all" and out is not None and Path(out).parent.is_dir():
        check_output(out)
    files, notes = {}, []
    for one in wanted:
        target = Path(out or f"{one}.png") if name != "all" else Path(out or "figures") / f"{one}.png"
        try:
            with working(f"drawing {one}"):
                drawn = figures.draw_figure(held, one, choice)
                _save(drawn.plot().figure_, target)
        except InputError as error:
            if name != "all":
                raise
            notes.append(f"{one}: not drawn: {error}")
            continue
        files[one] = str(target)
        notes += [f"{one}: {note}" if name == "all" else note for note in drawn.notes]
        if numbers is not None and name != "all":
            write_table(drawn.frame(), numbers)
    lines = [f"wrote {path}" for path in files.values()]
    text = "\n".join([*lines, *(f"note: {note}" for note in notes)])
    return Result("study-figure", {"store": store, "written": files, "notes": notes}, text)


def _save(drawn: Any, target: Path) -> None:
    from matplotlib import pyplot

    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        draw(drawn, target)
    finally:
        pyplot.close(drawn)


# ----------------------------------------------------------------------------------------------------
# `truecal study import`: tables of measured numbers become stores


@study.command("import")
@click.argument("table", metavar="TABLE")
@click.option("--out", cls=OutputFile, folder=True, metavar="STORE", required=True, help="Folder of the new store.")
@click.option(
    "--preset",
    type=click.Choice(["revisiting-calibration"]),
    help="A table whose columns are known: Minderer et al. 2021.",
)
@click.option(
    "--mapping", metavar="FILE.yaml", help="Which column is what, for any other table (MLflow, W&B, your own)."
)
@click.option("--diagrams", metavar="TABLE", help="Reliability diagrams that go with the preset.")
@click.option("--about", metavar="TABLE", help="Size and covariates of models: a column model, and one for each.")
@click.option(
    "--reference", metavar="NAME", help="Clean dataset of the shifted ones. [default: the preset's, imagenet]"
)
@click.option("--name", help="Name of the study.")
@writes
def import_(
    table: str,
    out: str,
    preset: str | None,
    mapping: str | None,
    diagrams: str | None,
    about: str | None,
    reference: str | None,
    name: str | None,
) -> Result:
    """Make a store of numbers that were measured elsewhere, from TABLE (.csv, .csv.gz, .zip or .parquet).

    Nothing is evaluated: numbers of rows may be unknown and intervals absent. All that can be drawn from numbers is drawn.

    \b
    truecal study import calibration_data.zip --preset revisiting-calibration --out store
    truecal study import runs.csv --mapping runs.yaml --out store
    """
    with working("reading the table"):
        store = tc.study.import_table(
            table, out, preset=preset, mapping=mapping, diagrams=diagrams, about=about, reference=reference, name=name
        )
    frame, meta = store.frame(), store.meta()
    counts = {what: frame[column].n_unique() for what, column in (("models", "model"), ("datasets", "dataset"))}
    notes = meta["study"]["notes"]
    content = {"numbers": frame.height, "diagrams": store.diagrams().height, "notes": notes, **counts}
    text = (
        f"{meta['name']}: {counts['models']} models, {counts['datasets']} datasets, {frame.height:,} numbers in {out}"
    )
    lines = [text, *(f"note: {note}" for note in notes), f"look at them with: truecal study page {out}"]
    return Result("study-import", {"store": out, **content}, "\n".join(lines))


# ----------------------------------------------------------------------------------------------------
# `truecal study interventions`: train with and without each remedy, and judge all of them through every lens

_NEEDED = {
    "polars": ("polars", "study"),
    "yaml": ("PyYAML", "study"),
    "matplotlib": ("matplotlib", "plot"),
}


@study.command()
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@click.option("--example", is_flag=True, help="Write a commented example configuration into the folder, and run it.")
@click.option(
    "--folder", metavar="FOLDER", help="Where tables, figures and trained models' outputs go. [default: interventions]"
)
@click.option(
    "--workers", type=click.IntRange(1), help="Processes to train in; they change no number. [default: all cores]"
)
@answers(formats=("text", "json"))
def interventions(config: str | None, example: bool, folder: str | None, workers: int | None) -> Result:
    """Compare what is done while training (label smoothing, mixup, focal loss) with what is done after it.

    Strengths are chosen on validation rows by the usual error of the top class; then test rows are judged by that error, by top k,
    all classes, groups of classes, labels and a Likert scale. A run that was stopped goes on where it was.

    \b
    truecal study interventions --example                a few minutes; needs no data
    truecal study interventions mine.yaml --folder mine  your own comparison
    """
    from os import cpu_count

    for module, (package, extra) in _NEEDED.items():
        if find_spec(module) is None:
            raise MissingExtraError.of(package, extra)
    target = Path(folder or "interventions")
    if example == (config is not None):
        raise InputError("give a configuration file, or --example to have one written and run; one of the two")
    from truecal.pages.study import write_interventions
    from truecal.plot.interventions import write_pictures

    path = _example(target) if example else Path(str(config))
    if find_spec("torch") is None and tc.study.Plan.read(path).data.logits is None:  # ready logits need no training
        raise MissingExtraError.of("torch", "torch")
    with parallel.progress_bar("training") as progress:
        comparison = tc.study.compare_interventions(
            path, target, workers=workers or cpu_count() or 1, progress=progress
        )
    files = comparison.write(target)
    figures = write_pictures(comparison, target / "figures")
    files += [*figures, write_interventions(comparison, comparison.plan.name, figures, target / "index.html")]
    content = {
        "name": comparison.plan.name,
        "strengths": dict(comparison.choice.strengths),
        "rows": dict(comparison.rows),
        "seeds": list(comparison.plan.seeds),
        "verdict": comparison.verdict(),
        "notes": list(comparison.notes),
        "summary": comparison.summary_frame().to_dicts(),
        "written": [str(file) for file in files],
    }
    names = f"index.html, summary.md, results, summary and validation (.csv, .parquet), {len(figures)} figures"
    words = f"{comparison.text()}\n\nwritten to {target}: {names}"
    return Result("study interventions", content, words)


def _example(folder: Path) -> Path:
    """The bundled configuration, written into the folder unless one of its own is there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "interventions.yaml"
    bundled = (resources.files("truecal.study.interventions") / "example.yaml").read_text(encoding="utf-8")
    if path.exists() and path.read_text(encoding="utf-8") != bundled:
        raise InputError(
            f"{path} is there and was changed; run it with: truecal study interventions {path} --folder {folder}"
        )
    return write_whole(path, bundled)


# ----------------------------------------------------------------------------------------------------
# `truecal study page` and `truecal study example`: a store to look at, and a real study to start from


@study.command()
@click.argument("store", metavar="STORE")
@click.option("--title", help="Heading of the page. [default: the name of the study]")
@click.option(
    "--megabytes",
    type=click.FloatRange(1.0),
    default=3.0,
    show_default=True,
    help="How large the page may be; what does not fit is left out, the least asked for first.",
)
@out_option("Where to write the page.", "study.html")
@writes
def page(store: str, title: str | None, megabytes: float, out: str) -> Result:
    """Write a self-contained HTML page that explores the results in STORE.

    Calibration against error with the Pareto front, for every metric, dataset, severity and recalibrator; a reliability diagram of
    every model; the analyses of the study; and whether the ranking is supported by the intervals. The page opens offline.
    """
    with working("gathering the numbers"):
        path = tc.report(tc.study.Store(store), out, title=title, megabytes=megabytes, command=as_typed())
    return written("study-page-written", path, store=store)


@study.command()
@click.argument("folder", metavar="FOLDER")
@click.option(
    "--quick", is_flag=True, help="Five models, two datasets, two severities, one seed: seconds, not minutes."
)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@writes
def example(folder: str, quick: bool, workers: int) -> Result:
    """Train real models on data under shift, write their predictions and a study of them to FOLDER, run it, and write its page.

    Stop it at any moment and start it again: what is there is not made again.
    """
    root = Path(folder)
    with parallel.progress_bar("training") as progress:
        file = tc.study.make_example(root, quick=quick, workers=workers, progress=progress)
    with working("looking at the files"):
        spec = tc.study.Study.read(file)
    with parallel.progress_bar("evaluating") as progress:
        store = spec.run(root / "store", workers=workers, progress=progress)
    with working("writing the page"):
        path = tc.report(store, root / "page.html", command=as_typed())
    counts = {"models": len(spec.models), "files": len(spec), "numbers": store.frame().height}
    what = f"{counts['models']} models, {counts['files']} prediction files, {counts['numbers']:,} numbers in {store.folder}"
    content = {**counts, "store": str(store.folder), "study": str(file), "page": str(path.resolve())}
    return Result("study-example", content, f"{what}\nstudy: {file}\npage:  {path.resolve()}")
