"""All experiments and items by name, and the runs behind one experiment and behind the whole page."""

from collections.abc import Mapping
from math import ceil
from types import MappingProxyType

import truecal as tc
from papers import kirchenbauer, kumar, peng, roelofs
from papers.experiment import Experiment, Network, Paper, Seed, Setting
from papers.kirchenbauer import interventions
from papers.kumar import outputs, synthetic
from papers.page import Item
from papers.peng import benchmark
from papers.roelofs import bias, fits, recalibration


def leaderboard(setting: Setting) -> Experiment:
    """The estimators of truecal ranked in worlds, as by `truecal lab leaderboard`."""
    board = tc.lab.leaderboard(m=setting.m, rng=setting.rng, run=setting.run)
    return Experiment("leaderboard", board.title, board.table, board.draw)


_table = recalibration.recalibration_table
PAPERS: Mapping[str, Paper] = MappingProxyType(
    {
        "roelofs-fig1": Paper(bias.figure_1, 20_000, 1_000_000),
        "roelofs-fig2": Paper(recalibration.figure_2, 5, 100, "networks"),
        "roelofs-fig2-worlds": Paper(recalibration.figure_2_worlds, 4, 100),
        "roelofs-fig3": Paper(fits.figure_3, 1, 1),
        "roelofs-fig4": Paper(bias.figure_4, 100, 1000),
        "roelofs-fig5": Paper(fits.figure_5, 1, 1),
        "roelofs-fig6": Paper(bias.figure_6, 20, 1000),
        "roelofs-fig7": Paper(bias.figure_7, 50, 1000),
        "roelofs-fig8": Paper(bias.figure_8, 100, 1000),
        "roelofs-fig9": Paper(bias.figure_9, 50, 1000),
        "roelofs-fig10": Paper(bias.figure_10, 50, 1000),
        "roelofs-fig11": Paper(bias.figure_11, 50, 1000),
        "roelofs-fig12": Paper(bias.figure_12, 50, 1000),
        "roelofs-fig13": Paper(bias.figure_13, 50, 1000),
        "roelofs-fig14": Paper(bias.figure_14, 50, 1000),
        "roelofs-fig15": Paper(bias.figure_15, 50, 1000),
        "roelofs-tab1": Paper(fits.table_1, 1, 1, "worlds"),
        "roelofs-tab2": Paper(fits.table_2, 1, 1, "worlds"),
        "roelofs-tab3": Paper(fits.table_3, 50, 1000, "worlds"),
        "roelofs-tab4": Paper(_table("none", "roelofs-tab4"), 1, 1, "networks"),
        "roelofs-tab5": Paper(_table("temperature", "roelofs-tab5"), 1, 1, "networks"),
        "roelofs-tab6": Paper(_table("isotonic", "roelofs-tab6"), 1, 1, "networks"),
        "roelofs-tab7": Paper(_table("histogram", "roelofs-tab7"), 1, 1, "networks"),
        "peng-fig2": Paper(benchmark.figure_2, 25, 250, "worlds"),
        "peng-fig4": Paper(benchmark.figure_4, 1, 1, "networks"),
        "peng-fig7": Paper(benchmark.figure_7, 25, 250, "worlds"),
        "peng-fig8": Paper(benchmark.figure_8, 25, 250, "worlds"),
        "peng-fig9": Paper(benchmark.figure_9, 25, 250, "worlds"),
        "peng-means": Paper(benchmark.means, 25, 250, "worlds"),
        "peng-tests": Paper(benchmark.t_tests, 25, 250, "worlds"),
        "peng-alpha": Paper(benchmark.alphas, 10, 250, "worlds"),
        "kumar-fig1": Paper(synthetic.figure_1, 1, 1),
        "kumar-ex3.2": Paper(synthetic.example_3_2, 1, 1),
        "kumar-fig2": Paper(outputs.figure_2, 200, 1000, "network"),
        "kumar-fig2-worlds": Paper(synthetic.figure_2_worlds, 50, 1000),
        "kumar-fig3a": Paper(outputs.figure_3a, 10, 100, "networks"),
        "kumar-fig3b": Paper(outputs.figure_3b, 10, 100, "networks"),
        "kumar-fig4": Paper(outputs.figure_4, 50, 1000, "networks"),
        "kumar-fig5": Paper(outputs.figure_5, 100, 1000, "network"),
        "kumar-fig6": Paper(outputs.figure_6, 100, 1000, "network"),
        "kumar-fig7": Paper(outputs.figure_7, 10, 100, "network"),
        "kumar-e-a": Paper(synthetic.appendix_e_a, 100, 1000),
        "kumar-fig10": Paper(synthetic.figure_10, 1, 1),
        "kumar-e-b": Paper(synthetic.appendix_e_b, 100, 1000),
        "kumar-fig12": Paper(outputs.figure_12, 100, 1000, "network"),
        "kumar-fig13": Paper(outputs.figure_13, 100, 1000, "network"),
        "kumar-fig14": Paper(outputs.figure_14, 50, 1000, "networks"),
        "kumar-fig15": Paper(outputs.figure_15, 100, 1000, "network"),
        "kumar-fig16": Paper(outputs.figure_16, 100, 1000, "network"),
        "kumar-fig17": Paper(outputs.figure_17, 20, 100, "networks"),
        "kirchenbauer-topk": Paper(interventions.top_k, 1, 1, "networks"),
        "kirchenbauer-groups": Paper(interventions.groups, 1, 1, "networks"),
        "kirchenbauer-likert": Paper(interventions.likert, 1, 1, "networks"),
        "kirchenbauer-gamma": Paper(interventions.granularity, 10, 200, "networks"),
        "leaderboard": Paper(leaderboard, 10, 250),
    }
)


BY_PAPER: Mapping[str, tuple[Item, ...]] = {
    'Roelofs et al., "Mitigating bias in calibration error estimation" (R)': roelofs.ITEMS,
    'Peng et al., "Better calibration error estimation for reliable uncertainty quantification" (P)': peng.ITEMS,
    'Kumar et al., "Verified uncertainty calibration" (K)': kumar.ITEMS,
    'Kirchenbauer et al., "What is your metric telling you?" (G)': kirchenbauer.ITEMS,
}
ITEMS: tuple[Item, ...] = tuple(item for items in BY_PAPER.values() for item in items)
OTHERS = tuple(name for name in PAPERS if name not in {item.experiment for item in ITEMS})


def paper(
    name: str,
    *,
    full: bool = False,
    m: int | None = None,
    data: Mapping[str, Network] | None = None,
    rng: Seed = 0,
    run: tc.lab.Run | None = None,
) -> Experiment:
    """Do one experiment again; `full` takes as many simulations as the paper did, `m` any number.

    `data` holds networks' own outputs: by the name of their world for the experiments that fit worlds (networks that are not given
    are replaced by data simulated from their printed world), by any name for the others.

    >>> paper("kumar-fig1").table.columns[:3]
    ('z', 'truth', 'scaling')
    """
    if name not in PAPERS:
        raise tc.InputError(f"unknown experiment {name!r}: use one of {', '.join(PAPERS)}")
    entry = PAPERS[name]
    if data and not entry.data:
        taking = [known for known, other in PAPERS.items() if other.data]
        raise tc.InputError(f"{name} simulates and takes no data; {', '.join(taking)} do")
    unknown = [world for world in data or {} if world not in tc.lab.PAPER_WORLDS]
    if unknown and entry.data == "worlds":
        raise tc.InputError(f"unknown world {unknown[0]!r}: use one of {', '.join(tc.lab.PAPER_WORLDS)}")
    count = (entry.full if full else entry.quick) if m is None else m
    return entry.make(Setting(count, rng, run or tc.lab.Run(), data or {}))


def run_items(
    data: Mapping[str, Network],
    *,
    full: bool = False,
    part: float = 1.0,
    rng: Seed = 0,
    run: tc.lab.Run | None = None,
) -> dict[tuple[str, str], Experiment]:
    """The experiments behind all items, by experiment and the data of its command; items whose data is not given are left out.

    `part` of the simulations of a quick or of a full run are done.
    """
    wanted: dict[tuple[str, str], None] = {}
    for item in ITEMS:
        if item.experiment and (not item.data or item.data.partition("=")[0] in data):
            wanted[item.experiment, item.data] = None
    made: dict[tuple[str, str], Experiment] = {}
    with (run or tc.lab.Run()).kept() as kept, kept.reporting("papers") as progress:
        for place, (name, file) in enumerate(wanted):
            progress(tc.lab.Step(f"papers: {name}", place, len(wanted)))
            network = file.partition("=")[0]
            given = {network: data[network]} if network else {}
            count = PAPERS[name].full if full else PAPERS[name].quick
            made[name, file] = paper(name, m=max(min(count, 2), ceil(part * count)), data=given, rng=rng, run=kept)
    return made
