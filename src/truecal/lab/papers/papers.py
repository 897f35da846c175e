"""All experiments by name, with the effort of a quick look and of the paper's own size."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from truecal.errors import InputError
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.papers.kumar import synthetic as kumar
from truecal.lab.papers.leaderboard import leaderboard
from truecal.lab.papers.peng import benchmark as peng
from truecal.lab.papers.roelofs import bias as roelofs
from truecal.lab.papers.roelofs import fits, power
from truecal.lab.trials.run import Run
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS
from truecal.lab.worlds.world import Seed
from truecal.predictions import Predictions


@dataclass(frozen=True)
class Paper:
    """An experiment and how many simulated datasets per setting it takes, quickly and in full."""

    make: Callable[[Setting], Experiment]
    quick: int
    full: int
    fits: bool = False  # it fits worlds, and takes the networks' own outputs where one has them


PAPERS: Mapping[str, Paper] = MappingProxyType(
    {
        "roelofs-fig1": Paper(roelofs.figure_1, 20_000, 1_000_000),
        "roelofs-fig4": Paper(roelofs.figure_4, 100, 1000),
        "roelofs-fig6": Paper(roelofs.figure_6, 20, 1000),
        "roelofs-fig7": Paper(roelofs.figure_7, 50, 1000),
        "roelofs-fig8": Paper(power.figure_8, 100, 1000),
        "roelofs-fig9": Paper(roelofs.figure_9, 50, 1000),
        "roelofs-fig10": Paper(roelofs.figure_10, 50, 1000),
        "roelofs-fig11": Paper(roelofs.figure_11, 50, 1000),
        "roelofs-fig12": Paper(roelofs.figure_12, 50, 1000),
        "roelofs-fig13": Paper(roelofs.figure_13, 50, 1000),
        "roelofs-fig14": Paper(roelofs.figure_14, 50, 1000),
        "roelofs-fig15": Paper(roelofs.figure_15, 50, 1000),
        "roelofs-tab1": Paper(fits.table_1, 1, 1, fits=True),
        "roelofs-tab2": Paper(fits.table_2, 1, 1, fits=True),
        "roelofs-tab3": Paper(fits.table_3, 50, 1000, fits=True),
        "peng-fig2": Paper(peng.figure_2, 25, 250),
        "peng-fig7": Paper(peng.figure_7, 25, 250),
        "peng-fig8": Paper(peng.figure_8, 25, 250),
        "peng-fig9": Paper(peng.figure_9, 25, 250),
        "peng-means": Paper(peng.means, 25, 250),
        "kumar-e-a": Paper(kumar.appendix_e_a, 100, 1000),
        "kumar-e-b": Paper(kumar.appendix_e_b, 100, 1000),
        "kumar-fig2": Paper(kumar.figure_2, 50, 1000),
        "leaderboard": Paper(leaderboard, 10, 250),
    }
)


def paper(
    name: str,
    *,
    full: bool = False,
    data: Mapping[str, Predictions] | None = None,
    rng: Seed = 0,
    run: Run | None = None,
) -> Experiment:
    """Do one experiment again; `full` takes as many simulations as the paper did.

    `data` holds the networks' own outputs by the name of their world, for the experiments that fit worlds to data; networks that
    are not given are replaced by data simulated from their printed world.

    >>> paper("roelofs-tab1").table.columns[:4]
    ('world', 'data', 'alpha', 'alpha_se')
    """
    if name not in PAPERS:
        raise InputError(f"unknown experiment {name!r}: use one of {', '.join(PAPERS)}")
    entry = PAPERS[name]
    if data and not entry.fits:
        fitting = [known for known, other in PAPERS.items() if other.fits]
        raise InputError(f"{name} simulates and takes no data; {', '.join(fitting)} do")
    unknown = [world for world in data or {} if world not in PAPER_WORLDS]
    if unknown:
        raise InputError(f"unknown world {unknown[0]!r}: use one of {', '.join(PAPER_WORLDS)}")
    return entry.make(Setting(entry.full if full else entry.quick, rng, run or Run(), data or {}))
