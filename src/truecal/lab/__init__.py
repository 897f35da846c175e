"""Simulated worlds whose true calibration error is known, and trials of estimators in them."""

from truecal.lab.curves import GLM, AnyCurve, Blend, Identity, Logistic, Power, ScoreCurve, Steps
from truecal.lab.detection import (
    Coverage,
    Detection,
    SamplesNeeded,
    coverage,
    power,
    power_curve,
    power_of_test,
    samples_needed,
    type_one,
)
from truecal.lab.distributions import Beta, Discrete, Empirical, Mixture, Scores, Uniform
from truecal.lab.fit import BetaFit, CurveFit, Goodness, WorldFit, fit_beta, fit_curves, fit_world, goodness
from truecal.lab.judges import labels_needed
from truecal.lab.own_data import HowBiased, how_biased
from truecal.lab.ranking import Leaderboard, leaderboard
from truecal.lab.trials import BatchCache, Cell, Measure, Run, Trial, bias, code_digest, simulate, table_of, trials
from truecal.lab.worlds import PAPER_WORLDS, DirichletWorld, TopLabelWorld, World, dataset_of
from truecal.parallel import Step
from truecal.table import Frame

__all__ = [
    "GLM",
    "PAPER_WORLDS",
    "AnyCurve",
    "BatchCache",
    "Beta",
    "BetaFit",
    "Blend",
    "Cell",
    "Coverage",
    "CurveFit",
    "Detection",
    "DirichletWorld",
    "Discrete",
    "Empirical",
    "Frame",
    "Goodness",
    "HowBiased",
    "Identity",
    "Leaderboard",
    "Logistic",
    "Measure",
    "Mixture",
    "Power",
    "Run",
    "SamplesNeeded",
    "ScoreCurve",
    "Scores",
    "Step",
    "Steps",
    "TopLabelWorld",
    "Trial",
    "Uniform",
    "World",
    "WorldFit",
    "bias",
    "code_digest",
    "coverage",
    "dataset_of",
    "fit_beta",
    "fit_curves",
    "fit_world",
    "goodness",
    "how_biased",
    "labels_needed",
    "leaderboard",
    "power",
    "power_curve",
    "power_of_test",
    "samples_needed",
    "simulate",
    "table_of",
    "trials",
    "type_one",
]
