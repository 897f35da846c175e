"""The laboratory: worlds whose true calibration error is known, and trials of every estimator in them."""

from truecal.frame import Frame
from truecal.lab.trials.batches import Cell, answers_of
from truecal.lab.trials.cache import BatchCache
from truecal.lab.trials.content import code_digest
from truecal.lab.trials.detection import (
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
from truecal.lab.trials.goodness import Goodness, goodness
from truecal.lab.trials.how_biased import HowBiased, how_biased
from truecal.lab.trials.leaderboard import Leaderboard, leaderboard
from truecal.lab.trials.measures import Measure
from truecal.lab.trials.run import Run
from truecal.lab.trials.trials import Trial, bias, table_of, trials
from truecal.lab.worlds.curves import GLM, AnyCurve, Blend, Curve, Identity, Logistic, Power, Steps
from truecal.lab.worlds.fit_beta import BetaFit, fit_beta
from truecal.lab.worlds.fit_curve import CurveFit, fit_curves
from truecal.lab.worlds.fit_world import WorldFit, fit_world
from truecal.lab.worlds.multiclass import DirichletWorld, TopLabelWorld
from truecal.lab.worlds.paper_worlds import KNN_REGIONS, PAPER_WORLDS, dataset_of
from truecal.lab.worlds.score_distributions import Beta, Discrete, Empirical, Mixture, Scores, Uniform
from truecal.lab.worlds.world import World
from truecal.parallel import Step

__all__ = [
    "GLM",
    "KNN_REGIONS",
    "PAPER_WORLDS",
    "AnyCurve",
    "BatchCache",
    "Beta",
    "BetaFit",
    "Blend",
    "Cell",
    "Coverage",
    "Curve",
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
    "Scores",
    "Step",
    "Steps",
    "TopLabelWorld",
    "Trial",
    "Uniform",
    "World",
    "WorldFit",
    "answers_of",
    "bias",
    "code_digest",
    "coverage",
    "dataset_of",
    "fit_beta",
    "fit_curves",
    "fit_world",
    "goodness",
    "how_biased",
    "leaderboard",
    "power",
    "power_curve",
    "power_of_test",
    "samples_needed",
    "table_of",
    "trials",
    "type_one",
]
