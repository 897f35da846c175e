"""Axes over a narrow range: every tick says something else, and there is more than one."""

import numpy as np
import pytest

import truecal as tc
from truecal.pages import report

RANGES = {"near 0": (0.0, 0.001), "narrow": (0.935, 0.937), "near 1": (0.998, 1.0), "all": (0.0, 1.0)}


@pytest.mark.parametrize("name", RANGES)
def test_ticks_differ(browser, tmp_path, name):
    rng = np.random.default_rng(0)
    low, high = RANGES[name]
    scores = rng.uniform(low, high, 3000)
    browser.open(
        report(tc.Predictions.from_probs(scores, rng.random(3000) < scores), tmp_path / "page.html", fast=True)
    )
    axes = browser.run(
        """
        return [...document.querySelectorAll('.chart svg .role-axis-label')].map((axis) =>
          [...axis.querySelectorAll('text')].filter((t) => getComputedStyle(t).opacity !== '0').map((t) => t.textContent));
        """
    )
    values = [ticks for ticks in axes if ticks]
    assert len(values) >= 4
    for ticks in values:
        assert len(set(ticks)) == len(ticks) > 1, ticks
    assert browser.crowded() == []
