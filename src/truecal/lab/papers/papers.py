"""All experiments by name, with the effort of a quick look and of the paper's own size."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from truecal.errors import InputError
from truecal.lab.papers.data import Network
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.papers.kirchenbauer import granularity, interventions
from truecal.lab.papers.kumar import estimating, measuring, recalibrating, synthetic
from truecal.lab.papers.leaderboard import leaderboard
from truecal.lab.papers.peng import benchmark as peng
from truecal.lab.papers.roelofs import bias, fits, networks, power, preference
from truecal.lab.trials.run import Run
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS
from truecal.lab.worlds.world import Seed

Data = Literal["", "worlds", "network", "networks"]


@dataclass(frozen=True)
class Paper:
    """An experiment, how many simulated datasets or resamples it takes quickly and in full, and the data it takes.

    In full it is as many as in the paper; only `kirchenbauer-gamma` takes 200 resamples where the paper has 1000, which would take
    a third of the time of all experiments together. Experiments without simulations have 1.

    data: "" none; "worlds": optional outputs of networks named like the papers' worlds; "network": optional outputs of
    one network; "networks": needed ones, of any name.
    """

    make: Callable[[Setting], Experiment]
    quick: int
    full: int
    data: Data = ""


_table = networks.recalibration_table
PAPERS: Mapping[str, Paper] = MappingProxyType(
    {
        "roelofs-fig1": Paper(bias.figure_1, 20_000, 1_000_000),
        "roelofs-fig2": Paper(networks.figure_2, 5, 100, "networks"),
        "roelofs-fig2-worlds": Paper(preference.figure_2_worlds, 4, 100),
        "roelofs-fig3": Paper(fits.figure_3, 1, 1),
        "roelofs-fig4": Paper(bias.figure_4, 100, 1000),
        "roelofs-fig5": Paper(fits.figure_5, 1, 1),
        "roelofs-fig6": Paper(bias.figure_6, 20, 1000),
        "roelofs-fig7": Paper(bias.figure_7, 50, 1000),
        "roelofs-fig8": Paper(power.figure_8, 100, 1000),
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
        "peng-fig2": Paper(peng.figure_2, 25, 250, "worlds"),
        "peng-fig4": Paper(peng.figure_4, 1, 1, "networks"),
        "peng-fig7": Paper(peng.figure_7, 25, 250, "worlds"),
        "peng-fig8": Paper(peng.figure_8, 25, 250, "worlds"),
        "peng-fig9": Paper(peng.figure_9, 25, 250, "worlds"),
        "peng-means": Paper(peng.means, 25, 250, "worlds"),
        "peng-tests": Paper(peng.t_tests, 25, 250, "worlds"),
        "peng-alpha": Paper(peng.alphas, 10, 250, "worlds"),
        "kumar-fig1": Paper(synthetic.figure_1, 1, 1),
        "kumar-ex3.2": Paper(synthetic.example_3_2, 1, 1),
        "kumar-fig2": Paper(measuring.figure_2, 200, 1000, "network"),
        "kumar-fig2-worlds": Paper(synthetic.figure_2_worlds, 50, 1000),
        "kumar-fig3a": Paper(recalibrating.figure_3a, 10, 100, "networks"),
        "kumar-fig3b": Paper(recalibrating.figure_3b, 10, 100, "networks"),
        "kumar-fig4": Paper(estimating.figure_4, 50, 1000, "networks"),
        "kumar-fig5": Paper(measuring.figure_5, 100, 1000, "network"),
        "kumar-fig6": Paper(measuring.figure_6, 100, 1000, "network"),
        "kumar-fig7": Paper(recalibrating.figure_7, 10, 100, "network"),
        "kumar-e-a": Paper(synthetic.appendix_e_a, 100, 1000),
        "kumar-fig10": Paper(synthetic.figure_10, 1, 1),
        "kumar-e-b": Paper(synthetic.appendix_e_b, 100, 1000),
        "kumar-fig12": Paper(estimating.figure_12, 100, 1000, "network"),
        "kumar-fig13": Paper(estimating.figure_13, 100, 1000, "network"),
        "kumar-fig14": Paper(estimating.figure_14, 50, 1000, "networks"),
        "kumar-fig15": Paper(estimating.figure_15, 100, 1000, "network"),
        "kumar-fig16": Paper(estimating.figure_16, 100, 1000, "network"),
        "kumar-fig17": Paper(recalibrating.figure_17, 20, 100, "networks"),
        "kirchenbauer-topk": Paper(interventions.top_k, 1, 1, "networks"),
        "kirchenbauer-groups": Paper(interventions.groups, 1, 1, "networks"),
        "kirchenbauer-likert": Paper(interventions.likert, 1, 1, "networks"),
        "kirchenbauer-gamma": Paper(granularity.granularity, 10, 200, "networks"),
        "leaderboard": Paper(leaderboard, 10, 250),
    }
)


def paper(
    name: str,
    *,
    full: bool = False,
    m: int | None = None,
    data: Mapping[str, Network] | None = None,
    rng: Seed = 0,
    run: Run | None = None,
) -> Experiment:
    """Do one experiment again; `full` takes as many simulations as the paper did, `m` any number.

    `data` holds networks' own outputs: by the name of their world for the experiments that fit worlds (networks that are not given
    are replaced by data simulated from their printed world), by any name for the others.

    >>> paper("kumar-fig1").table.columns[:3]
    ('z', 'truth', 'scaling')
    """
    if name not in PAPERS:
        raise InputError(f"unknown experiment {name!r}: use one of {', '.join(PAPERS)}")
    entry = PAPERS[name]
    if data and not entry.data:
        taking = [known for known, other in PAPERS.items() if other.data]
        raise InputError(f"{name} simulates and takes no data; {', '.join(taking)} do")
    unknown = [world for world in data or {} if world not in PAPER_WORLDS]
    if unknown and entry.data == "worlds":
        raise InputError(f"unknown world {unknown[0]!r}: use one of {', '.join(PAPER_WORLDS)}")
    count = (entry.full if full else entry.quick) if m is None else m
    return entry.make(Setting(count, rng, run or Run(), data or {}))
