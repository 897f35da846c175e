"""Small datasets on which rival answers differ."""

import numpy as np
from hypothesis import strategies as st


def named() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Random, tied, skewed, tiny, constant, all-correct, all-wrong, reversed, on the edges."""
    rng = np.random.default_rng(20)

    def outcomes(p):
        return (rng.random(len(p)) < p).astype(int)

    uniform = rng.random(150)
    tied = rng.choice([0.1, 0.3, 0.5, 0.7, 0.7, 0.9, 1.0], 120)
    skewed = rng.beta(2.8, 0.05, 200)
    values = {
        "uniform": (uniform, outcomes(uniform**1.3)),
        "two-signed": (uniform, outcomes(0.5 + 0.4 * np.sin(7 * uniform))),
        "tied": (tied, outcomes(tied * 0.9)),
        "skewed": (skewed, outcomes(skewed * 0.95)),
        "constant": (np.full(40, 0.6), outcomes(np.full(40, 0.6))),
        "all correct": (uniform[:60], np.ones(60, int)),
        "all wrong": (uniform[:60], np.zeros(60, int)),
        "reversed": (uniform, outcomes(1 - uniform)),
        "edges": (np.repeat(np.arange(11) / 10, 5), outcomes(np.repeat(np.arange(11) / 10, 5))),
        "ends": (np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 0, 1, 0])),
    }
    for n in range(1, 6):
        values[f"n={n}"] = (uniform[:n], outcomes(uniform[:n]))
        values[f"n={n} tied"] = (np.full(n, 0.4), outcomes(np.full(n, 0.4)))
    return values


@st.composite
def small(draw, most: int = 40):
    """A dataset with plenty of ties, edges and extremes."""
    n = draw(st.integers(1, most))
    grid = st.integers(0, 20).map(lambda i: i / 20)
    fine = st.floats(0, 1, allow_nan=False, width=32)
    scores = draw(st.lists(st.one_of(grid, grid, fine), min_size=n, max_size=n))
    outcomes = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return np.array(scores), np.array(outcomes)
