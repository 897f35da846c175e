"""`truecal study interventions`: train with and without each remedy, and judge all of them through every lens."""

from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import click

import truecal as tc
from truecal import parallel
from truecal.cli.answer.output import Reply, reply_options
from truecal.errors import InputError, MissingExtraError
from truecal.writing import write_whole

_NEEDED = {
    "polars": ("polars", "study"),
    "yaml": ("PyYAML", "study"),
    "matplotlib": ("matplotlib", "plot"),
}


@click.command()
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@click.option("--example", is_flag=True, help="Write a commented example configuration into the folder, and run it.")
@click.option(
    "--folder", metavar="FOLDER", help="Where tables, figures and trained models' outputs go. [default: interventions]"
)
@click.option(
    "--workers", type=click.IntRange(1), help="Processes to train in; they change no number. [default: all cores]"
)
@reply_options
def interventions(config: str | None, example: bool, folder: str | None, workers: int | None, reply: Reply) -> None:
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
    import truecal.plot.study as pictures
    from truecal.report.study import interventions as page

    path = _example(target) if example else Path(str(config))
    if find_spec("torch") is None and tc.study.Plan.read(path).data.logits is None:  # ready logits need no training
        raise MissingExtraError.of("torch", "torch")
    with parallel.progress_bar("training") as progress:
        comparison = tc.study.compare_interventions(
            path, target, workers=workers or cpu_count() or 1, progress=progress
        )
    written = comparison.write(target)
    figures = pictures.write_pictures(comparison, target / "figures")
    written += [*figures, page.write_interventions(comparison, comparison.plan.name, figures, target / "index.html")]
    content = {
        "name": comparison.plan.name,
        "strengths": dict(comparison.choice.strengths),
        "rows": dict(comparison.rows),
        "seeds": list(comparison.plan.seeds),
        "verdict": comparison.verdict(),
        "notes": list(comparison.notes),
        "summary": comparison.summary_frame().to_dicts(),
        "written": [str(file) for file in written],
    }
    files = f"index.html, summary.md, results, summary and validation (.csv, .parquet), {len(figures)} figures"
    words = f"{comparison.text()}\n\nwritten to {target}: {files}"
    reply.give("study interventions", words, **content)


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
