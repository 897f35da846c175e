"""Predictions of several shapes, all from fixed seeds."""

import numpy as np

import truecal as tc

NASTY = "<script>alert(1)</script>"
LONG = "a very long class name " * 9 + "end"  # 210 characters
LINES = "line\u2028separator & \"quotes\" 'too' <!-- \x00 end"


def binary(n: int = 2000, seed: int = 0, dtype: type = np.float64) -> tc.Predictions:
    """Overconfident binary predictions, some of them exactly on the edges of bins and tied."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 0.6, n)
    p[: n // 4] = np.round(p[: n // 4], 1)
    return tc.Predictions.from_probs(
        p.astype(dtype), (rng.random(n) < p**1.4).astype(int), columns={"site": rng.choice(["a", "b"], n)}
    )


def multiclass(n: int, k: int, seed: int = 0, classes: list[str] | None = None) -> tc.Predictions:
    """Overconfident class probabilities."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * 2
    calm = np.exp(0.6 * logits)
    calm /= calm.sum(axis=1, keepdims=True)
    labels = (calm.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    names = None if classes is None else np.array(classes)
    return tc.Predictions.from_logits(logits, labels if names is None else names[labels], classes=classes)
