"""`truecal study`: many models, many datasets and many metrics from one file, kept in a store."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

import click

import truecal as tc
from truecal import digits, parallel
from truecal.cli.command import Count, Words, WriteFolder, WriteTo, command
from truecal.cli.output import Reply, command_line, page_written, working
from truecal.errors import InputError, extra
from truecal.table import Frame, check_table, write_table
from truecal.writing import write_whole


@click.group()
def study() -> None:
    """Evaluate many models on many datasets by many metrics, and keep every number in a store.

    \b
    truecal study run study.yaml --store results    evaluate; started again, it goes on where it stopped
    truecal study show results                      models side by side
    truecal study export results --out all.csv      every number, one per row
    """


@command(study)
def run(file: str, *, store: str | None = None, workers: Count | None = None, check: bool = False) -> Reply:
    """Evaluate every prediction file of a study (YAML) and keep the numbers in a store.

    Stop it at any moment and start it again: finished files are skipped. Several runs on one host may share a store.
    Everything that is wrong with the study or its files is listed before anything is evaluated.

    --store FOLDER  Where results are kept.  [default: beside the study, named .store]
    --workers N     Processes.  [default: as the study says, else all cores]
    --check         Only look at the study and its files; evaluate nothing.
    """
    with working("looking at the files"):
        spec = tc.study.Study.read(file)
    folder = store or str(Path(file).with_suffix(".store"))
    facts = {"study": spec.name, "models": len(spec.models), "files": len(spec)}
    counts = f"{digits.count_of(len(spec.models), 'model')}, {digits.count_of(len(spec), 'prediction file')}"
    title = f"{spec.name}: {counts}"
    if check:
        return Reply("study-check", facts, f"{title}, no problems")
    with parallel.progress_bar(spec.name) as progress:
        numbers = len(spec.run(folder, workers=workers, progress=progress).frame())
    text = f"{title}, {numbers} numbers in {folder}\nshow them with: truecal study show {folder}"
    return Reply("study-run", {**facts, "store": folder, "numbers": numbers}, text)


@command(study)
def show(
    store: str,
    *,
    metric: Words = (),
    sort: str | None = None,
    dataset: Words = (),
    severity: float = 0.0,
    recalibrator: str = "none",
    lens: str = "top-label",
    selection: str = "all",
) -> Reply:
    """Show models side by side, best first, averaged over seeds.

    Models are compared in pairs on the same rows, with Holm's correction; two models that share no group differ significantly.

    --metric NAME        A column; may be repeated.
    --sort NAME          Order by this metric.  [default: the first one]
    --dataset NAME       Only this dataset (or these).
    --severity S         Only this severity.
    --recalibrator NAME  After this recalibrator.
    --lens LENS          What is judged.
    --selection NAME     Which rows.
    """
    results = tc.study.Store(store)
    metrics = list(dict.fromkeys([*([sort] if sort else []), *metric]))
    rows_of = {"severity": severity, "recalibrator": recalibrator, "lens": lens, "selection": selection}
    ranking = tc.study.rank(results, metrics=metrics, datasets=dataset, **rows_of)  # type: ignore[arg-type]
    waiting = len(results.jobs()) - len(results.done())
    notes = [*ranking.notes, *([f"{waiting} of {len(results.jobs())} files are not evaluated yet"] if waiting else [])]
    names = ranking.frame()["metric"].unique(maintain_order=True).to_list()
    models = ranking.frame().partition_by("dataset", "model", maintain_order=True)
    records, lines = [], []
    for rows in (part.to_dicts() for part in models):
        cells = {row["metric"]: {end: row[end] for end in ("value", "low", "high")} for row in rows}
        first = {name: rows[0][name] for name in ("model", "dataset", "seeds", "groups")}
        records.append({**first, **cells})
        group = "-".join(map(str, dict.fromkeys([*first["groups"][:1], *first["groups"][-1:]])))
        estimates = {name: digits.with_interval(**cells[name]) if name in cells else "" for name in names}
        lines.append({"model": first["model"], "dataset": first["dataset"], "group": group, **estimates})
    title = f"{results.meta()['name']}, by {ranking.metric}"
    text = "\n".join([title, Frame.from_records(lines).to_text(), *(f"note: {note}" for note in notes)])
    content = {"store": store, "sort": ranking.metric, "results": records, "notes": notes}
    return Reply("study-show", content, text)


@command(study)
def export(store: str, *, out: WriteTo, diagrams: bool = False) -> Reply:
    """Write every number of the finished files to one table, one number per row.

    --out FILE  Where the numbers go: .csv, .parquet or .jsonl.
    --diagrams  The bins of the reliability diagrams instead.
    """
    check_table(out)
    results = tc.study.Store(store)
    frame = results.diagrams() if diagrams else results.frame()
    write_table(frame, out)
    content = {"store": store, "path": out, "rows": len(frame)}
    return Reply("study-export", content, f"wrote {len(frame)} rows to {out}")


# ----------------------------------------------------------------------------------------------------
# Figures of Minderer et al. (2021) from a store


@dataclass(frozen=True)
class FigureChoice:
    """What a figure shows: keyword arguments of `truecal.plot.figures.FigureData.of`.

    --metric NAME      Calibration error to show.  [default: ece-mass-100-l1 if the store has it]
    --dataset NAME     Dataset of figures on clean data.  [default: the clean one]
    --reference NAME   Clean dataset of all shifted ones.  [default: as in the store]
    --covariate NAME   Column that models or datasets differ in.
    --colour NAME      Covariate that colours, marks and groups the models.  [default: family]
    --after NAME       Recalibrator to compare with.  [default: temperature]
    --model NAME       Only these, in diagrams and the figure of a covariate; may be repeated.
    """

    metric: str | None = None
    dataset: str | None = None
    reference: str | None = None
    covariate: str = "size"
    colour: str | None = None
    after: str | None = None
    model: Words = ()


@command(study)
def figure(
    name: str, store: str, choice: FigureChoice, *, out: WriteFolder | None = None, numbers: WriteTo | None = None
) -> Reply:
    """Draw one of the figures of Minderer and others (2021), or all of them, from the numbers in STORE.

    \b
    families       1: calibration against error by family, with reliability diagrams
    recalibration  2: before and after recalibration, side by side
    covariate      3, 10: against a covariate (--covariate), before and after
    severities     4: clouds by family and severity, mean over types of corruption
    sizes          5: beside the largest model of the family, over severities
    natural        6: clean and naturally shifted datasets, before and after
    costs          7: cost of abstaining, model against model (reads the prediction files)
    residuals      8: log loss and Brier score beyond what error explains
    bins           9: the trend with error by number of bins
    loglog         11: log-log lines of families, pooled over datasets
    temperatures   D: fitted temperatures by family
    agreement      E: how far estimators agree in ranking models
    all            every one that the store has the numbers for

    --out FILE         Picture (.png, .pdf, .svg); for all, a folder.  [default: NAME.png]
    --numbers FILE     Also write the numbers drawn: .csv or .parquet.
    """
    from truecal.plot import figures
    from truecal.plot.display import save_figure

    draws_all = name == "all"
    data = figures.FigureData.of(tc.study.Store(store), **vars(choice))
    files, notes = {}, []
    for figure_name in figures.FIGURES if draws_all else [name]:
        target = Path(out or "figures") / f"{figure_name}.png" if draws_all else Path(out or f"{figure_name}.png")
        try:
            drawing = figures.draw_figure(data, figure_name)
            picture = drawing.plot().figure_
            target.parent.mkdir(parents=True, exist_ok=True)
            save_figure(picture, target, dpi=130)
        except InputError as error:
            if not draws_all:
                raise
            notes.append(f"{figure_name}: not drawn: {error}")
            continue
        files[figure_name] = str(target)
        notes += [f"{figure_name}: {note}" if draws_all else note for note in drawing.notes]
        if numbers is not None and not draws_all:
            write_table(drawing.frame(), numbers)
    text = "\n".join([*(f"wrote {path}" for path in files.values()), *(f"note: {note}" for note in notes)])
    return Reply("study-figure", {"store": store, "written": files, "notes": notes}, text)


# ----------------------------------------------------------------------------------------------------
# A table of measured numbers becomes a store


@command(study)
def import_(
    table: str,
    *,
    out: WriteFolder,
    preset: Literal["revisiting-calibration"] = "revisiting-calibration",
    diagrams: str | None = None,
    about: str | None = None,
    reference: str = "imagenet",
    name: str | None = None,
) -> Reply:
    """Make a store of the numbers in the public TABLE of Minderer et al. (2021): .csv, .csv.gz, .zip or .parquet.

    Nothing is evaluated: numbers of rows are unknown and there are no intervals. All that can be drawn from numbers is drawn.

    \b
    truecal study import calibration_data.zip --preset revisiting-calibration --out store

    --out STORE          Folder of the new store.
    --preset PRESET      Format of the table.
    --diagrams TABLE     Reliability diagrams that go with it.
    --about TABLE        Size and covariates of models: a column model, and one for each.
    --reference NAME     Clean dataset of the shifted ones.
    --name NAME          Name of the study.  [default: that of the preset]
    """
    with working("reading the table"):
        store = tc.study.import_table(
            table, out, preset=preset, diagrams=diagrams, about=about, reference=reference, name=name
        )
    frame, notes = store.frame(), store.meta()["study"]["notes"]
    counts = {"models": frame["model"].n_unique(), "datasets": frame["dataset"].n_unique(), "numbers": frame.height}
    size = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    lines = [f"{store.meta()['name']}: {size} in {out}", *(f"note: {note}" for note in notes)]
    text = "\n".join([*lines, f"show them with: truecal study page {out}"])
    return Reply("study-import", {"store": out, "diagrams": store.diagrams().height, "notes": notes, **counts}, text)


# ----------------------------------------------------------------------------------------------------
# Interventions, pages and examples


@command(study)
def interventions(config: str | None = None, *, folder: str = "interventions", workers: Count | None = None) -> Reply:
    """Compare what is done while training (label smoothing, mixup, focal loss) with what is done after it.

    Strengths are chosen on validation rows by the usual error of the top class; then test rows are judged by that error, by top k,
    all classes, groups of classes, labels and a Likert scale. A run that was stopped goes on where it was.

    CONFIG is a YAML file; without it interventions.yaml of the folder is run, which is written as a commented example on digits.

    --folder FOLDER  Where configuration, tables, figures and trained models' outputs go.
    """
    from truecal.pages.study import write_interventions
    from truecal.plot.bars import write_pictures

    target, bundled = Path(folder), resources.files("truecal.study.interventions") / "example.yaml"
    if config is None:
        config = str(target / "interventions.yaml")
        if not Path(config).exists():
            target.mkdir(parents=True, exist_ok=True)
            write_whole(config, bundled.read_text(encoding="utf-8"))
    extra("matplotlib", "plot")
    if tc.study.Plan.read(config).data.logits is None:  # ready logits need no training
        extra("torch", "torch")
    with parallel.progress_bar("training") as progress:
        comparison = tc.study.compare_interventions(
            config, target, workers=workers or parallel.cores(), progress=progress
        )
    files = comparison.write(target)
    pictures = write_pictures(comparison.pictures(), target / "figures")
    files += [*pictures, write_interventions(comparison, comparison.plan.name, pictures, target / "index.html")]
    content = {
        "name": comparison.plan.name,
        "strengths": dict(comparison.choice.strengths),
        "rows": dict(comparison.rows),
        "seeds": list(comparison.plan.seeds),
        "verdict": comparison.verdict(),
        "notes": list(comparison.notes),
        "summary": comparison.summary.to_dicts(),
        "written": [str(file) for file in files],
    }
    listed = f"index.html, summary.txt, results, summary and validation (.csv), {len(pictures)} figures"
    return Reply("study-interventions", content, f"{comparison.text()}\n\nwritten to {target}: {listed}")


@command(study)
def page(store: str, *, title: str | None = None, out: WriteTo = "study.html") -> Reply:
    """Write a self-contained HTML page of the results in STORE.

    The models with their numbers; every analysis of the study with its figure and table, before and after recalibration; and
    whether intervals support the first place. The page opens offline.

    --title TEXT  Heading of the page.  [default: the name of the study]
    --out FILE    Where to write the page.
    """
    with working("gathering the numbers"):
        path = tc.report(tc.study.Store(store), out, title=title, command=command_line())
    return page_written("study-page-written", path, store=store)


@command(study)
def example(folder: str, *, quick: bool = False, workers: Count = 2) -> Reply:
    """Train real models on data under shift, write their predictions and a study of them to FOLDER, run it, and write its page.

    Stop it at any moment and start it again: finished parts are not computed again.

    --quick      Five models, two datasets, two severities, one seed: seconds, not minutes.
    --workers N  Processes.
    """
    root = Path(folder)
    with parallel.progress_bar("training") as progress:
        file = tc.study.make_example(root, quick=quick, workers=workers, progress=progress)
    with parallel.progress_bar("evaluating") as progress:
        spec = tc.study.Study.read(file)
        store = spec.run(root / "store", workers=workers, progress=progress)
    with working("writing the page"):
        path = tc.report(store, root / "page.html", command=command_line()).resolve()
    counts = {"models": len(spec.models), "files": len(spec), "numbers": store.frame().height}
    content = {**counts, "store": str(store.folder), "study": str(file), "page": str(path)}
    size = f"{counts['models']} models, {counts['files']} prediction files, {counts['numbers']:,} numbers"
    return Reply("study-example", content, f"{size} in {store.folder}\nstudy: {file}\npage:  {path}")
