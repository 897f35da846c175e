"""Every display of the package with numbers of an ordinary size and names of an ordinary length, ready to be drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np

import truecal as tc
from truecal.plot.bars import InterventionsDisplay
from truecal.plot.study import AgreementDisplay, BinTrendDisplay

RNG = np.random.default_rng(0)
P = RNG.beta(5, 1, 600)
Y = (RNG.random(600) < P**1.3).astype(int)
PREDS = tc.Predictions.from_probs(P, Y)
METRICS = ["rank-series-l2", "ece-mass-15-l1", "ece-width-15-l1", "sweep-mass-l2", "debiased-15-l2"]
SITES = ["University hospital", "St. Mary", "Regional clinic north", "Regional clinic south"]


def _decision(ax: Any) -> Any:
    points = np.linspace(0.01, 0.5, 30)
    more = {"low": 0.2 - points / 2, "high": 0.24 - points / 2, "treat_all": 0.25 - points}
    return tc.plot.DecisionDisplay(
        {"model": ["logistic regression"] * 30, "threshold": points, "net_benefit": 0.22 - points / 2, **more}
    ).plot(ax)


def _decision_loss(ax: Any) -> Any:
    thresholds = np.linspace(0.01, 0.99, 50)
    loss = 0.04 * thresholds * (1 - thresholds)
    numbers = {"model": ["logistic regression"] * 50, "threshold": thresholds, "loss": loss}
    return tc.plot.DecisionLossDisplay({**numbers, "low": loss / 2, "high": 2 * loss}).plot(ax)


def _flexible(ax: Any) -> Any:
    points = np.linspace(0, 1, 40)
    ends = {
        "low": points**1.2 - 0.05,
        "high": points**1.2 + 0.05,
        "lowest": points**1.2 - 0.1,
        "highest": points**1.2 + 0.1,
    }
    names = ["restricted cubic spline"] * 20 + ["loess"] * 20
    return tc.plot.FlexibleDisplay({"curve": names, "score": points, "outcome": points**1.2, **ends}, scores=P).plot(ax)


def _forest(ax: Any) -> Any:
    names = [*SITES, "mean over sites", "a new site"]
    numbers = {"value": [1.1, 0.8, 1.3, 0.95, 1.0, 1.0], "low": [0.9, 0.5, 1.0, 0.7, 0.9, 0.6]}
    more = {"high": [1.3, 1.2, 1.7, 1.3, 1.1, 1.6], "events": [120, 30, 55, 60, 265, 265]}
    kinds = {"rows": [1200, 310, 480, 600, 2590, 2590], "kind": ["site"] * 4 + ["mean", "new site"]}
    return tc.plot.ForestDisplay({"site": names, **numbers, **more, **kinds}).plot(ax)


def _likert(ax: Any) -> Any:
    names = {"name": ["very unlikely", "about as likely as not", "very likely"], "count": [120, 80, 2400]}
    promised = {"low": [0.0, 0.33, 0.9], "high": [0.1, 0.66, 1.0]}
    values = {
        "mean_outcome": [0.05, 0.5, 0.8],
        "outcome_low": [0.02, 0.4, 0.75],
        "outcome_high": [0.1, 0.6, 0.85],
        "holds": [True, None, False],
    }
    return tc.plot.LikertDisplay({**names, **promised, **values}).plot(ax)


def _bin_trend(ax: Any) -> Any:
    binned = [f"ece-mass-{b}-l1" for b in (5, 15, 100)]
    numbers = {"slope": [0.01, 0.03, 0.08, 0.0, 0.005], "low": [0.0, 0.02, 0.06, -0.01, -0.01]}
    kinds = {"scheme": ["mass"] * 3 + [None] * 2, "norm": [1.0] * 3 + [2.0] * 2, "bins": [5, 15, 100, None, None]}
    more = {"high": [0.02, 0.04, 0.1, 0.01, 0.02], "debiased": [False] * 3 + [True] * 2}
    return BinTrendDisplay({"metric": [*binned, "rank-series-l2", "sweep-mass-l2"], **kinds, **numbers, **more}).plot(
        ax
    )


def _agreement(ax: Any) -> Any:
    pairs = [(a, b) for i, a in enumerate(METRICS) for b in METRICS[i + 1 :]]
    first, second = zip(*pairs, strict=True)
    return AgreementDisplay({"metric_a": first, "metric_b": second, "tau": RNG.uniform(-0.2, 1, len(pairs))}).plot(ax)


def _interventions(ax: Any) -> Any:
    kinds = ["none", "label smoothing", "focal loss", "mixup", "deep ensemble", "MC dropout"]
    rows = [(kind, what) for what in ("every class", "cats and dogs", "vehicles") for kind in kinds]
    kind, what = zip(*rows, strict=True)
    numbers = {"mean": RNG.uniform(0.01, 0.1, 18), "sd": [0.01] * 18, "if_calibrated": [0.01] * 18}
    return InterventionsDisplay({"intervention": kind, "what": what, **numbers}).plot(ax)


DISPLAYS: dict[str, Callable[[Any], Any]] = {
    "AbstentionDisplay": lambda ax: tc.plot.AbstentionDisplay.from_curves(
        {name: tc.selective.risk_coverage(PREDS) for name in ("logistic regression", "gradient boosting")}, ax=ax
    ),
    "AgreementDisplay": _agreement,
    "BinTrendDisplay": _bin_trend,
    "DecisionDisplay": _decision,
    "DecisionLossDisplay": _decision_loss,
    "FlexibleDisplay": _flexible,
    "ForestDisplay": _forest,
    "InterventionsDisplay": _interventions,
    "LikertDisplay": _likert,
    "ReliabilityDisplay": lambda ax: tc.plot.ReliabilityDisplay.from_predictions(
        Y, P, name="a model with a name", ax=ax
    ),
}
