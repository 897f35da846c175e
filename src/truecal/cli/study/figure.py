"""`truecal study figure`: the figures of Minderer et al. (2021) from a store."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import truecal as tc
from truecal.cli.answer.output import JsonReply, working, written_option
from truecal.errors import InputError
from truecal.writing import write_whole

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


@click.command(epilog="Figures: " + "; ".join(f"{name} ({words})" for name, words in _NAMES.items()))
@click.argument("name", type=click.Choice([*_NAMES, "all"]), metavar="NAME")
@click.argument("store", metavar="STORE")
@click.option("--out", metavar="FILE", help="Picture (.png, .pdf, .svg); for all, a folder. [default: NAME.png]")
@click.option("--metric", metavar="NAME", help="Calibration error to show. [default: ece-mass-100-l1 if it is there]")
@click.option("--dataset", metavar="NAME", help="Dataset of figures on clean data. [default: the clean one]")
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
@click.option("--numbers", metavar="FILE", help="Also write the numbers drawn: .csv or .parquet.")
@written_option
def figure(
    name: str,
    store: str,
    out: str | None,
    numbers: str | None,
    reply: JsonReply,
    models: tuple[str, ...],
    external: tuple[tuple[str, float, float], ...],
    **chosen: str | None,
) -> None:
    """Draw a figure of Minderer et al. (2021) from the numbers in STORE."""
    import truecal.plot.study as pictures

    held = tc.study.Store(store)
    points = tuple(pictures.External(*point) for point in external)
    choice = replace(pictures.Choice(models=models, external=points), **chosen)  # type: ignore[arg-type]
    wanted = list(pictures.FIGURES) if name == "all" else [name]
    written, notes = {}, []
    for one in wanted:
        target = Path(out or f"{one}.png") if name != "all" else Path(out or "figures") / f"{one}.png"
        try:
            with working(f"drawing {one}"):
                drawn = pictures.draw_figure(held, one, choice)
                _save(drawn.plot().figure_, target)
        except InputError as error:
            if name != "all":
                raise
            notes.append(f"{one}: not drawn: {error}")
            continue
        written[one] = str(target)
        notes += [f"{one}: {note}" if name == "all" else note for note in drawn.notes]
        if numbers is not None and name != "all":
            frame = drawn.frame()
            write_whole(numbers, getattr(frame, "write_parquet" if numbers.endswith(".parquet") else "write_csv"))
    lines = [f"wrote {path}" for path in written.values()]
    text = "\n".join([*lines, *(f"note: {note}" for note in notes)])
    reply.give("study-figure", text, store=store, written=written, notes=notes)


def _save(drawn: Any, target: Path) -> None:
    from matplotlib import pyplot

    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_whole(target, lambda file: drawn.savefig(file, dpi=130, format=target.suffix.lstrip(".") or None))
    except ValueError as error:
        raise InputError(f"cannot write {target}: {error}") from error
    finally:
        pyplot.close(drawn)
