"""`truecal study import`: tables of measured numbers become stores."""

import click

import truecal as tc
from truecal.cli.answer.output import JsonReply, json_option, working


@click.command("import")
@click.argument("table", metavar="TABLE")
@click.option("--out", metavar="STORE", required=True, help="Folder of the new store.")
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
@click.option("--name", help="Name of the study.")
@json_option
def import_(
    table: str,
    out: str,
    preset: str | None,
    mapping: str | None,
    diagrams: str | None,
    about: str | None,
    name: str | None,
    reply: JsonReply,
) -> None:
    """Make a store of numbers that were measured elsewhere, from TABLE (.csv, .csv.gz, .zip or .parquet).

    Nothing is evaluated: numbers of rows may be unknown and intervals absent. All that can be drawn from numbers is drawn.

    \b
    truecal study import calibration_data.zip --preset revisiting-calibration --out store
    truecal study import runs.csv --mapping runs.yaml --out store
    """
    with working("reading the table"):
        store = tc.study.import_table(
            table, out, preset=preset, mapping=mapping, diagrams=diagrams, about=about, name=name
        )
    frame, meta = store.frame(), store.meta()
    counts = {what: frame[column].n_unique() for what, column in (("models", "model"), ("datasets", "dataset"))}
    notes = meta["study"]["notes"]
    content = {"numbers": frame.height, "diagrams": store.diagrams().height, "notes": notes, **counts}
    text = (
        f"{meta['name']}: {counts['models']} models, {counts['datasets']} datasets, {frame.height:,} numbers in {out}"
    )
    lines = [text, *(f"note: {note}" for note in notes), f"look at them with: truecal study page {out}"]
    reply.give("study-import", "\n".join(lines), store=out, **content)
