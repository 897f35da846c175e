"""Datasets for the tests of scale: scores of every kind, with errors of both signs."""

import numpy as np
from hypothesis import strategies as st

from truecal.profile.cells import all_edges

KINDS = ("uniform", "saturated", "rare", "likert", "middle", "edges", "float32")


def draw(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and outcomes of a model that is overconfident in places and underconfident in others."""
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    edges = all_edges()
    c = {
        "uniform": lambda: rng.random(n),
        "saturated": lambda: rng.beta(1, 0.1, n),
        "rare": lambda: rng.beta(0.3, 5, n),
        "likert": lambda: np.round(rng.random(n), 1),
        "middle": lambda: rng.beta(50, 40, n),
        "edges": lambda: rng.choice(np.concatenate([edges, np.nextafter(edges[1:], 0), [0.0, 1.0]]), n),
        "float32": lambda: rng.beta(2, 0.3, n).astype(np.float32),
    }[kind]()
    chance = np.clip(c + 0.05 * np.sin(7 * c.astype(np.float64)), 0, 1)
    return c, (rng.random(n) < chance).astype(np.uint8)


def score_lists(most: int = 60) -> st.SearchStrategy[list[float]]:
    """Scores anywhere in [0, 1]: tiny, just below 1, on cell edges, repeated."""
    edges = all_edges()
    one = st.one_of(
        st.floats(0, 1),
        st.sampled_from([0.0, -0.0, 0.1, 0.25, 0.5, 0.7, 1.0, 5e-324, 2.0**-53, 1 - 2.0**-53]),
        st.integers(0, len(edges) - 1).map(lambda i: float(edges[i])),
        st.integers(1, len(edges) - 1).map(lambda i: float(np.nextafter(edges[i], 0))),
        st.floats(0.3, 0.301),
    )
    return st.lists(one, min_size=1, max_size=most)
