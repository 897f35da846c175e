"""docs/papers.md: the index of every numbered item with our number, the printed one and a verdict, and the small tables."""

from collections.abc import Mapping
from math import ceil

from truecal import parallel
from truecal.frame import Frame
from truecal.lab.papers.data import Network
from truecal.lab.papers.experiment import Experiment
from truecal.lab.papers.item import Item
from truecal.lab.papers.kirchenbauer.items import ITEMS as KIRCHENBAUER
from truecal.lab.papers.kumar.items import ITEMS as KUMAR
from truecal.lab.papers.papers import PAPERS, paper
from truecal.lab.papers.peng.items import ITEMS as PENG
from truecal.lab.papers.roelofs.items import ITEMS as ROELOFS
from truecal.lab.trials.run import Run
from truecal.lab.worlds.world import Seed

BY_PAPER: Mapping[str, tuple[Item, ...]] = {
    'Roelofs et al., "Mitigating bias in calibration error estimation" (R)': ROELOFS,
    'Peng et al., "Better calibration error estimation for reliable uncertainty quantification" (P)': PENG,
    'Kumar et al., "Verified uncertainty calibration" (K)': KUMAR,
    'Kirchenbauer et al., "What is your metric telling you?" (G)': KIRCHENBAUER,
}
ITEMS: tuple[Item, ...] = tuple(item for items in BY_PAPER.values() for item in items)
COLUMNS = ("item", "about", "command", "ours", "printed", "verdict")
_SHOWN_ROWS = 45  # longer tables are left to the command
_OPENING = """# The papers' experiments, done again

Each numbered item of four papers is one command, `truecal lab paper NAME`; it writes a tidy table and a figure, `--full` with as
many simulations as the paper. This page is written by

    truecal lab papers {effort} --out docs/papers --cache FOLDER --data {data}

Simulations are kept in FOLDER, so that a run that was interrupted need not do them again. Numbers are percent unless said
otherwise, seed 0; `+-` is the Monte-Carlo standard error and m the number of simulated datasets or resamples. Without `--part`,
`--full` takes as many as the papers (1000 in most figures of R and K, 250 in P; 200 for 1000 in G's Figures 7 to 9), which is about
half an hour of one core. The worlds are those printed in the papers, with the parameters as rounded there. "holds" means that
what the paper states of the item is true of our numbers.

Two readings are given where the papers' own numbers come from a detail of their code. The top scores behind Table 1 of R were
computed in float32, where 48 % of them are exactly 1: the printed Beta is that of this rounding. Table 2 drops those rows and
averages AICs over bootstraps whose noise is larger than the difference between the first two curves. Table 3 takes its data column
and its curve from the validation split and simulates 1000 rows; its printed mean, 8.42, is that of the first 100 datasets of the
published code's seeds, while 10,000 datasets of the same world give 8.30 +- 0.01. "as printed" repeats all this. "as it should be"
computes the scores in float64, fits the test split and simulates as many rows as there are. A Beta then describes these scores
badly, and the simulated ECE is 11.3 where the data has 6.65: that Figure 5c lies near the diagonal is owed to the rounding. The
kernel-density estimator of R takes its bandwidth from the spread of the correctly predicted scores,
`KernelDensityECE(bandwidth="correct")`, ours from all; Figure 6 has both. The networks of G are not public here: its figures are
drawn for the interventions after training from the outputs of another network, and those made while training are `truecal study
interventions` ([interventions](interventions.md)).
"""


def run_items(
    data: Mapping[str, Network],
    *,
    full: bool = False,
    part: float = 1.0,
    rng: Seed = 0,
    run: Run | None = None,
) -> dict[tuple[str, str], Experiment]:
    """The experiments behind all items, by experiment and the data of its command; items whose data is not given are left out.

    `part` of the simulations of a quick or of a full run are done.
    """
    wanted: dict[tuple[str, str], None] = {}
    for item in ITEMS:
        if item.experiment and (not item.data or item.data.partition("=")[0] in data):
            wanted[item.experiment, item.data] = None
    made: dict[tuple[str, str], Experiment] = {}
    with (run or Run()).kept() as kept, kept.reporting("papers") as progress:
        for place, (name, file) in enumerate(wanted):
            progress(parallel.Step(f"papers: {name}", place, len(wanted)))
            network = file.partition("=")[0]
            given = {network: data[network]} if network else {}
            count = PAPERS[name].full if full else PAPERS[name].quick
            made[name, file] = paper(name, m=max(min(count, 2), ceil(part * count)), data=given, rng=rng, run=kept)
    return made


def index(items: tuple[Item, ...], made: Mapping[tuple[str, str], Experiment]) -> Frame:
    """One row for every item."""
    rows = [dict(zip(COLUMNS, _row(item, made.get((item.experiment, item.data))), strict=True)) for item in items]
    return Frame.from_records(rows, COLUMNS)


def _row(item: Item, experiment: Experiment | None) -> tuple[str, ...]:
    command = f"`{item.command}`" if item.command else ""
    if experiment is None:
        verdict = item.reason if not item.experiment else "not run: its data was not given"
        return item.number, item.about, command, "", item.printed, verdict
    ours = (
        "" if item.ours is None else item.ours(experiment.table) + _count(item.ours(experiment.table), experiment.table)
    )
    verdict = "" if item.holds is None else ("holds" if item.holds(experiment.table) else "does not hold")
    return (
        item.number,
        item.about,
        command,
        ours,
        item.printed,
        "; ".join(part for part in (verdict, item.reason) if part),
    )


def _count(words: str, table: Frame) -> str:
    """How many simulated datasets or resamples a number rests on, where the table says so and the words do not."""
    for column in ("m", "repeats", "resamples"):
        if column in table and "m = " not in words:
            return f" (m = {table[column][0]})"
    return ""


def page(made: Mapping[tuple[str, str], Experiment], effort: str) -> str:
    """The whole page in Markdown; `effort` are the options that say how many simulations there are."""
    files = " --data ".join(dict.fromkeys(item.data for item in ITEMS if item.data))
    parts = [_OPENING.format(data=files, effort=effort)]
    for name, items in BY_PAPER.items():
        parts += [f"## {name}\n", index(items, made).to_markdown(), ""]
    parts.append("## Tables\n")
    for (name, file), experiment in made.items():
        if 1 < len(experiment.table) <= _SHOWN_ROWS:
            given = f" --data {file}" if file else ""
            parts += [f"### {name}{given}\n", f"{experiment.title}.\n", experiment.table.to_markdown(), ""]
    others = [name for name in PAPERS if name not in {item.experiment for item in ITEMS}]
    parts.append(f"Further experiments, of our own: {', '.join(f'`truecal lab paper {name}`' for name in others)}.")
    return "\n".join(parts) + "\n"
