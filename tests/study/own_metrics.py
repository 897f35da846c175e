"""Metrics of one's own for the tests of studies."""

import numpy as np


def mean_gap(scores, outcomes):
    """|mean score - mean outcome|."""
    return abs(float(np.mean(scores) - np.mean(outcomes)))


NOT_A_FUNCTION = 3
