"""Minderer et al., "Revisiting the calibration of modern neural networks" (2021): which command draws which figure.

The figures compare many trained models, so that each is drawn from the store of a study: `truecal study import` reads the public
table of the paper's results, `truecal study run` evaluates predictions of one's own, and `truecal study figure NAME STORE` draws.
They are not part of `python -m papers run`, whose experiments simulate or take the outputs of one network.
"""

from collections.abc import Mapping
from types import MappingProxyType

# Numbered item -> NAME of `truecal study figure NAME STORE`.
FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "Figure 1": "families",
        "Figure 2": "recalibration",
        "Figure 3": "covariate",
        "Figure 4": "severities",
        "Figure 5": "sizes",
        "Figure 6": "natural",
        "Figure 7": "costs",
        "Figure 8": "residuals",
        "Figure 9": "bins",
        "Figure 10": "covariate",
        "Figure 11": "loglog",
        "Appendix D": "temperatures",
        "Appendix E": "agreement",
    }
)


def command(item: str, store: str = "STORE") -> str:
    """What to type for a numbered item.

    >>> command("Figure 9")
    'truecal study figure bins STORE'
    """
    return f"truecal study figure {FIGURES[item]} {store}"
