"""The same bad inputs for truecal and for other tools: who refuses, who answers all the same; `python -m tools.peers`.

An error with a message counts as a refusal, whatever its type; a number as a silent answer. Tools that are not installed are
left out.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

_RNG = np.random.default_rng(0)
P = _RNG.random(200)
Y = (_RNG.random(200) < P).astype(np.int64)


def _with(value: float, row: int = 3) -> Any:
    changed = P.copy()
    changed[row] = value
    return changed


# What no tool should answer: labels, probabilities.
BAD: dict[str, tuple[Any, Any]] = {
    "a NaN among the probabilities": (Y, _with(math.nan)),
    "an infinite probability": (Y, _with(math.inf)),
    "a probability of 1.2": (Y, _with(1.2)),
    "a probability of -0.1": (Y, _with(-0.1)),
    "percentages": (Y, P * 100),
    "logits": (Y, np.log(P / (1 - P))),
    "a label of 2 among two classes": (np.where(np.arange(200) == 3, 2, Y), P),
    "a label of -1": (np.where(np.arange(200) == 3, -1, Y), P),
    "a missing label": (np.where(np.arange(200) == 3, math.nan, Y), P),
    "labels and probabilities swapped": (P, Y.astype(float)),
    "a label too few": (Y[:-1], P),
    "no rows at all": (Y[:0], P[:0]),
    "probabilities as text": (Y, P.astype(str)),
    "complex numbers": (Y, P + 0.5j),
    "two columns for one label each": (np.stack([Y, Y], axis=1), P),
}


def tools() -> dict[str, Callable[[Any, Any], float]]:
    """What is installed, as functions of labels and probabilities."""
    import truecal as tc

    functions: dict[str, Callable[[Any, Any], float]] = {
        "truecal": lambda y, p: float(tc.calibration_error(y, p).value)
    }
    try:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error

        functions["torchmetrics"] = lambda y, p: float(binary_calibration_error(torch.as_tensor(p), torch.as_tensor(y)))
    except ImportError:
        pass
    try:
        from sklearn.calibration import calibration_curve
        from sklearn.metrics import brier_score_loss

        functions["scikit-learn (curve)"] = lambda y, p: float(
            np.abs(np.subtract(*calibration_curve(y, p, n_bins=15))).mean()
        )
        functions["scikit-learn (Brier)"] = lambda y, p: float(brier_score_loss(y, p))
    except ImportError:
        pass
    return functions


def outcome(tool: Callable[[Any, Any], float], y: Any, p: Any) -> str:
    """ "refused", or the number that was answered."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f"answers {tool(y, p):.3g}"
    except Exception:  # noqa: BLE001 (any error is a refusal here)
        return "refused"


def main() -> int:
    """The table as Markdown."""
    every = tools()
    print("| input |", " | ".join(every), "|")
    print("|---|" + "---|" * len(every))
    silent = dict.fromkeys(every, 0)
    for words, (y, p) in BAD.items():
        outcomes = {name: outcome(tool, y, p) for name, tool in every.items()}
        silent = {name: silent[name] + (outcomes[name] != "refused") for name in every}
        print(f"| {words} |", " | ".join(outcomes.values()), "|")
    print(f"| **silent answers of {len(BAD)}** |", " | ".join(f"**{count}**" for count in silent.values()), "|")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
