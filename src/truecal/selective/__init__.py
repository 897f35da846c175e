"""Selective prediction: answer where the model is confident, abstain elsewhere, and count what both cost.

Minderer et al. 2021, section 4.4. A row is answered if its confidence (the largest probability) is high enough; the risk is the
share of wrong answers among those given, the coverage the share of rows answered.
"""

from truecal.selective.costs import AbstentionCost, BestThreshold, abstention_cost, best_threshold
from truecal.selective.curve import Area, RiskCoverage, aurc, risk_coverage
from truecal.selective.two_models import CostMap, cost_map

__all__ = [
    "AbstentionCost",
    "Area",
    "BestThreshold",
    "CostMap",
    "RiskCoverage",
    "abstention_cost",
    "aurc",
    "best_threshold",
    "cost_map",
    "risk_coverage",
]
