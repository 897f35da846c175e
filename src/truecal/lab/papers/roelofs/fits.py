"""Roelofs et al., appendix A: the fits (Tables 1 and 2) and their check (Table 3, Figure 5c).

Of the ten networks' outputs only those given as `profiles` can be fitted; for the others the fit is put to data
simulated from the printed world itself, which shows whether the printed numbers are what the method finds.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from truecal.frame import Frame
from truecal.lab.papers.drawing import lines
from truecal.lab.papers.experiment import Experiment, Setting
from truecal.lab.trials.estimators import EW
from truecal.lab.trials.trials import Field, tidy
from truecal.lab.worlds.fit_world import WorldFit, fit_world
from truecal.lab.worlds.paper_worlds import PAPER_WORLDS, PRINTED, dataset_of
from truecal.lens import TopLabel
from truecal.profile import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Table 3: equal-width ECE (norm 2, percent) on the networks' own outputs, and averaged over simulations.
TABLE_3: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "resnet110_c10": (6.67, 8.42),
        "resnet110_SD_c10": (6.54, 8.79),
        "resnet_wide32_c10": (6.09, 8.44),
        "densenet40_c10": (6.70, 8.09),
        "resnet110_c100": (20.26, 18.87),
        "resnet110_SD_c100": (17.44, 15.78),
        "resnet_wide32_c100": (20.40, 17.53),
        "densenet40_c100": (23.12, 19.69),
        "resnet152_imgnet": (6.85, 9.26),
        "densenet161_imgnet": (6.15, 6.87),
    }
)


def evaluation_size(world_name: str) -> int:
    """Rows of the papers' evaluation sets: 10,000 for CIFAR, 25,000 for ImageNet."""
    return 25_000 if dataset_of(world_name) == "ImageNet" else 10_000


def _fits(setting: Setting) -> dict[str, tuple[str, WorldFit]]:
    results = {}
    for name, world in PAPER_WORLDS.items():
        if name in setting.data:
            results[name] = ("given data", fit_world(TopLabel()(setting.data[name])))
        else:
            scores, outcomes = world.draw(evaluation_size(name), 1, rng=setting.rng)
            results[name] = ("simulated", fit_world(Profile.from_arrays(scores[0], outcomes[0])))
    return results


def table_1(setting: Setting) -> Experiment:
    """The Beta of every dataset."""
    rows: list[tuple[Field, ...]] = []
    for name, (source, fit) in _fits(setting).items():
        printed, beta = PRINTED[name], fit.beta
        ours = (beta.scores.alpha, beta.alpha_standard_error, beta.scores.beta, beta.beta_standard_error, beta.ones)
        rows.append((name, source, *ours, printed.alpha, printed.beta))
    columns = ("world", "data", "alpha", "alpha_se", "beta", "beta_se", "scores_of_1", "paper_alpha", "paper_beta")
    return _experiment("roelofs-tab1", "Beta fits", tidy(columns, rows), "alpha", "paper_alpha")


def table_2(setting: Setting) -> Experiment:
    """Every candidate curve of every dataset, best AIC first."""
    rows: list[tuple[Field, ...]] = []
    for name, (source, fit) in _fits(setting).items():
        paper = PRINTED[name]
        for place, c in enumerate(fit.curves, start=1):
            ours = (c.aic, c.curve.b0, c.b0_standard_error, c.curve.b1, c.b1_standard_error)
            same = (c.curve.link, c.curve.transform) == (paper.link, paper.transform)
            printed = (paper.b0, paper.b1) if same and (c.terms == "b0_b1" or not paper.b0) else (float("nan"),) * 2
            rows.append((name, source, place, c.name, *ours, *printed))
    columns = ("world", "data", "place", "curve", "aic", "b0", "b0_se", "b1", "b1_se", "paper_b0", "paper_b1")
    return _experiment("roelofs-tab2", "calibration curves by AIC", tidy(columns, rows), "b1", "paper_b1")


def table_3(setting: Setting) -> Experiment:
    """Equal-width ECE on the data, and averaged over m datasets simulated from the printed worlds."""
    rows: list[tuple[Field, ...]] = []
    for name, (paper_data, paper_simulated) in TABLE_3.items():
        (trial,) = setting.trials({"EW": EW}, {name: PAPER_WORLDS[name]}, n=[evaluation_size(name)])
        on_data = 100 * float(EW.values(TopLabel()(setting.data[name]))[0]) if name in setting.data else float("nan")
        rows.append((name, on_data, paper_data, 100 * trial.mean, 100 * trial.standard_error, paper_simulated))
    columns = ("world", "ece_percent", "paper_ece", "simulated_percent", "simulated_se", "paper_simulated")
    table = tidy(columns, rows)
    return _experiment("roelofs-tab3", "ECE on simulated data", table, "simulated_percent", "paper_simulated")


def _experiment(name: str, title: str, table: Frame, ours: str, paper: str) -> Experiment:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        pairs = [(float(r[paper]), float(r[ours])) for r in table if r[paper] == r[paper]]
        axes.axline(pairs[0], slope=1, color="green", linewidth=0.8) if len(pairs) == 1 else axes.axline(
            (0, 0), slope=1
        )
        lines(axes, {}, x=f"{ours}, as printed", y=f"{ours}, ours", legend=False)
        axes.plot([p for p, _ in pairs], [o for _, o in pairs], "o")

    return Experiment(name, title, table, draw)
