"""All experiments and items by name, and the runs behind one experiment and behind the whole page."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

import truecal as tc
from papers import kirchenbauer, kumar, minderer, peng, roelofs
from papers.experiment import Experiment, Network, OwnFunction, Paper, Seed, Setting
from papers.kirchenbauer import interventions
from papers.kumar import outputs, synthetic, theory
from papers.minderer import example
from papers.page import Item, Result, items_of, result_of
from papers.peng import benchmark
from papers.roelofs import bias, fits, recalibration
from truecal.estimators import Estimator


def leaderboard(setting: Setting) -> Experiment:
    """The estimators of truecal ranked in worlds whose true error is known."""
    own = {name: e.function() if isinstance(e, OwnFunction) else e for name, e in setting.own.items()}
    functions = any(isinstance(e, OwnFunction) for e in setting.own.values())
    run = (
        replace(setting.run, cache=None) if functions else setting.run
    )  # simulations of plain functions are not stored
    board = tc.lab.leaderboard(m=setting.m, estimators=own, worlds=setting.worlds or None, rng=setting.rng, run=run)
    return Experiment("leaderboard", board.title, board.table, board.draw)


_table = recalibration.recalibration_table
# Name -> what is run, its number of simulations in a quick and a full run, the data it takes, and the reader of its table.
PAPERS: Mapping[str, Paper] = {
    "roelofs-fig1": Paper(bias.figure_1, 20_000, 1_000_000, "simulated", read=roelofs.figure_1),
    "roelofs-fig2": Paper(recalibration.figure_2, 30, 400, "networks", read=roelofs.figure_2),
    "roelofs-fig2-printed": Paper(recalibration.figure_2_printed, 1, 1, read=roelofs.figure_2_printed),
    "roelofs-fig2-worlds": Paper(recalibration.figure_2_worlds, 4, 100, "simulated", read=roelofs.figure_2_worlds),
    "roelofs-fig3": Paper(fits.figure_3, 1, 1, read=roelofs.figure_3),
    "roelofs-fig4": Paper(bias.figure_4, 300, 1000, "simulated", read=roelofs.figure_4, own=True),
    "roelofs-fig5": Paper(fits.figure_5, 1, 1, read=roelofs.figure_5),
    "roelofs-fig5c": Paper(fits.figure_5c, 100, 1000, "worlds", read=roelofs.table_3),
    "roelofs-fig6": Paper(bias.figure_6, 20, 1000, "simulated", read=roelofs.figure_6, own=True),
    "roelofs-fig7": Paper(bias.figure_7, 50, 1000, "simulated", read=roelofs.figure_7, own=True),
    "roelofs-fig8": Paper(bias.figure_8, 100, 1000, "simulated", read=roelofs.figure_8, own=True),
    "roelofs-fig9": Paper(bias.figure_9, 50, 1000, "simulated", read=roelofs.bias_by_bins),
    "roelofs-fig10": Paper(bias.figure_10, 50, 1000, "simulated", read=roelofs.bias_by_bins),
    "roelofs-fig11": Paper(bias.figure_11, 50, 1000, "simulated", read=roelofs.bias_by_bins),
    "roelofs-fig12": Paper(bias.figure_12, 50, 1000, "simulated", read=roelofs.spread_by_bins),
    "roelofs-fig13": Paper(bias.figure_13, 50, 1000, "simulated", read=roelofs.spread_by_bins),
    "roelofs-fig14": Paper(bias.figure_14, 50, 1000, "simulated", read=roelofs.spread_by_bins),
    "roelofs-fig15": Paper(bias.figure_15, 50, 1000, "simulated", read=roelofs.figure_15),
    "roelofs-tab1": Paper(fits.table_1, 1, 1, "worlds", read=roelofs.table_1),
    "roelofs-tab2": Paper(fits.table_2, 30, 400, "worlds", read=roelofs.table_2),
    "roelofs-tab3": Paper(fits.table_3, 100, 1000, "worlds", read=roelofs.table_3),
    "roelofs-tab4": Paper(_table("none", "roelofs-tab4"), 1, 1, "networks", read=roelofs.recalibrated),
    "roelofs-tab5": Paper(_table("temperature", "roelofs-tab5"), 1, 1, "networks", read=roelofs.recalibrated),
    "roelofs-tab6": Paper(_table("isotonic", "roelofs-tab6"), 1, 1, "networks", read=roelofs.recalibrated),
    "roelofs-tab7": Paper(_table("histogram", "roelofs-tab7"), 1, 1, "networks", read=roelofs.recalibrated),
    "peng-fig2": Paper(benchmark.figure_2, 25, 250, "worlds", read=peng.by_n, own=True),
    "peng-fig4": Paper(benchmark.figure_4, 1, 1, "networks", read=peng.figure_4),
    "peng-fig7": Paper(benchmark.figure_7, 25, 250, "worlds", read=peng.figure_7, own=True),
    "peng-fig8": Paper(benchmark.figure_8, 25, 250, "worlds", read=peng.by_n, own=True),
    "peng-fig9": Paper(benchmark.figure_9, 25, 250, "worlds", read=peng.by_n, own=True),
    "peng-means": Paper(benchmark.means, 25, 250, "worlds", read=peng.means, own=True),
    "peng-tests": Paper(benchmark.t_tests, 25, 250, "worlds", read=peng.t_tests),
    "peng-alpha": Paper(benchmark.alphas, 10, 250, "worlds", read=peng.alphas),
    "kumar-fig1": Paper(synthetic.figure_1, 1, 1, read=kumar.figure_1),
    "kumar-ex3.2": Paper(synthetic.example_3_2, 1, 1, read=kumar.example_3_2),
    "kumar-fig2": Paper(outputs.figure_2, 200, 1000, "network", read=kumar.binned),
    "kumar-fig2-worlds": Paper(synthetic.figure_2_worlds, 50, 1000, "simulated", read=kumar.figure_2_worlds),
    "kumar-fig3a": Paper(outputs.figure_3a, 10, 100, "networks", read=kumar.compared),
    "kumar-fig3b": Paper(outputs.figure_3b, 10, 100, "networks", read=kumar.compared),
    "kumar-fig4": Paper(outputs.figure_4, 50, 1000, "networks", read=kumar.closer),
    "kumar-fig5": Paper(outputs.figure_5, 100, 1000, "network", read=kumar.binned),
    "kumar-fig6": Paper(outputs.figure_6, 100, 1000, "network", read=kumar.binned),
    "kumar-fig7": Paper(outputs.figure_7, 10, 100, "network", read=kumar.compared),
    "kumar-e-a": Paper(synthetic.appendix_e_a, 100, 2000, read=kumar.appendix_e_a),
    "kumar-fig10": Paper(synthetic.figure_10, 1, 1, read=kumar.figure_10),
    "kumar-e-b": Paper(synthetic.appendix_e_b, 100, 1000, read=kumar.appendix_e_b),
    "kumar-fig12": Paper(outputs.figure_12, 100, 1000, "network", read=kumar.closer),
    "kumar-fig13": Paper(outputs.figure_13, 100, 1000, "network", read=kumar.closer),
    "kumar-fig14": Paper(outputs.figure_14, 50, 1000, "networks", read=kumar.deviations),
    "kumar-fig15": Paper(outputs.figure_15, 100, 1000, "network", read=kumar.deviations),
    "kumar-fig16": Paper(outputs.figure_16, 100, 1000, "network", read=kumar.deviations),
    "kumar-fig17": Paper(outputs.figure_17, 3, 40, "networks", read=kumar.figure_17),
    "kumar-rows": Paper(theory.rows_needed, 200, 1000, read=kumar.rows_needed),
    "kumar-balance": Paper(theory.balance, 200, 1000, read=kumar.balance),
    "kumar-inequalities": Paper(theory.inequalities, 100, 1000, read=kumar.inequalities),
    "kumar-steps": Paper(theory.proof_steps, 100, 1000, read=kumar.proof_steps),
    "kumar-explicit": Paper(theory.explicit_bounds, 1, 1, "networks", read=kumar.explicit_bounds),
    "kirchenbauer-cifar10": Paper(interventions.cifar10, 1, 1, "networks", read=kirchenbauer.compared),
    "kirchenbauer-digits": Paper(interventions.digits, 1, 1, read=kirchenbauer.compared),
    "kirchenbauer-very-high": Paper(interventions.very_high, 1, 1, read=kirchenbauer.compared),
    "kirchenbauer-cnn": Paper(interventions.cnn, 1, 1, read=kirchenbauer.compared),
    "kirchenbauer-wide": Paper(interventions.wide, 1, 1, read=kirchenbauer.compared),
    "kirchenbauer-floor": Paper(interventions.floor, 1, 1, read=kirchenbauer.floor),
    "kirchenbauer-gamma": Paper(interventions.granularity, 10, 200, "networks", read=kirchenbauer.granularity),
    "kirchenbauer-accuracies": Paper(interventions.accuracies, 1, 1, read=kirchenbauer.accuracies),
    "minderer-example": Paper(example.example, 5, example.MODELS, read=example.read_example),
    "minderer-eq5": Paper(minderer.equation_5, 40_000, 200_000, "simulated", read=minderer.read_equation_5),
    "minderer-fig7": Paper(minderer.figure_7, 1, 1, "networks", read=minderer.read_figure_7),
    "minderer-fig9": Paper(minderer.figure_9, 20, 200, read=minderer.read_figure_9),
    "leaderboard": Paper(leaderboard, 10, 250, "simulated", own=True),
}
TITLES = {
    "roelofs": 'Roelofs et al., "Mitigating bias in calibration error estimation" (R)',
    "kumar": 'Kumar et al., "Verified uncertainty calibration" (K)',
    "kirchenbauer": 'Kirchenbauer et al., "What is your metric telling you?" (G)',
    "minderer": 'Minderer et al., "Revisiting the calibration of modern neural networks" (M)',
    "peng": 'Peng et al., "Better calibration error estimation for reliable uncertainty quantification" (P)',
}
BY_PAPER: Mapping[str, tuple[Item, ...]] = {name: items_of(name) for name in TITLES}
ITEMS: tuple[Item, ...] = tuple(item for items in BY_PAPER.values() for item in items)
OTHERS = tuple(name for name in PAPERS if name not in {item.experiment for item in ITEMS})


def paper(
    name: str,
    *,
    full: bool = False,
    m: int | None = None,
    data: Mapping[str, Network] | None = None,
    worlds: Mapping[str, tc.lab.World] | None = None,
    estimators: Mapping[str, Estimator | OwnFunction] | None = None,
    rng: Seed = 0,
    run: tc.lab.Run | None = None,
) -> Experiment:
    """Do one experiment again.

    Parameters
    ----------
    full, m : as many simulations as in the paper, or any number.
    data : networks' outputs. Named like a printed world, they take its place in the experiments that fit worlds; under other names,
        experiments that simulate fit a world to them (a Beta and the curve of lowest AIC) and use it instead of the printed ones.
    worlds, estimators : worlds in place of the printed ones, and estimators beside the paper's, for experiments that simulate.
    rng, run : seed; processes, cache and progress.

    >>> paper("kumar-fig1").table.columns[:3]
    ('z', 'truth', 'scaling')
    """
    if name not in PAPERS:
        raise tc.InputError(f"unknown experiment {name!r}: use one of {', '.join(PAPERS)}")
    entry, data = PAPERS[name], dict(data or {})
    if data and not entry.data:
        taking = [title for title, other in PAPERS.items() if other.data]
        raise tc.InputError(f"{name} takes no data; {', '.join(taking)} do")
    simulates = entry.data in ("simulated", "worlds")
    if worlds and not simulates:
        raise tc.InputError(f"{name} takes no worlds; experiments that simulate do")
    if estimators and not entry.own:
        showing = ", ".join(title for title, other in PAPERS.items() if other.own)
        raise tc.InputError(f"{name} shows no estimators beside the paper's; {showing} do")
    added_worlds = dict(worlds or {})
    if simulates:
        for network in [n for n in data if entry.data == "simulated" or n not in tc.lab.PAPER_WORLDS]:
            added_worlds[network] = tc.lab.fit_world(
                tc.profile.Profile.from_arrays(*data.pop(network).test.top())
            ).world
    if added_worlds and name.startswith("roelofs-tab"):
        raise tc.InputError(f"unknown world {next(iter(added_worlds))!r}: use one of {', '.join(tc.lab.PAPER_WORLDS)}")
    count = (entry.full if full else entry.quick) if m is None else m
    experiment = entry.make(Setting(count, rng, run or tc.lab.Run(), data, added_worlds, dict(estimators or {})))
    return replace(experiment, read=None if added_worlds or estimators else entry.read)


def run_items(
    data: Mapping[str, Network],
    *,
    full: bool = False,
    part: float = 1.0,
    only: str = "",
    rng: Seed = 0,
    run: tc.lab.Run | None = None,
) -> dict[tuple[str, str], Experiment]:
    """The experiments behind all items, by experiment and the data of its command; items whose data is not given are left out.

    `part` of the simulations of a quick or of a full run are done; `only` those of experiments whose name starts so.
    """
    needed: dict[tuple[str, str], None] = {}
    for item in ITEMS:
        if item.experiment.startswith(only) and item.experiment and (not item.data or item.data in data):
            needed[item.experiment, item.data] = None
    experiments: dict[tuple[str, str], Experiment] = {}
    with (run or tc.lab.Run()).with_pool() as pooled, pooled.reporting("papers") as progress:
        for number, (name, network) in enumerate(needed):
            progress(tc.lab.Step(f"papers: {name}", number, len(needed)))
            network_data = {network: data[network]} if network else {}
            count = PAPERS[name].full if full else PAPERS[name].quick
            experiments[name, network] = paper(
                name, m=max(min(count, 2), ceil(part * count)), data=network_data, rng=rng, run=pooled
            )
    return experiments


def results_of(experiments: Mapping[tuple[str, str], Experiment]) -> dict[str, tuple[Result, ...]]:
    """Numbers and grades of every item, by paper."""
    return {
        name: tuple(result_of(item, experiments.get((item.experiment, item.data))) for item in items)
        for name, items in BY_PAPER.items()
    }
