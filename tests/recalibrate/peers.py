"""Log losses of maps beside the same maps of other packages, on rows neither was fitted on.

`python -m tests.recalibrate.peers` prints one line per dataset and map; a peer that is not installed or fails is left out.
Datasets: scikit-learn's iris, wine, breast cancer and digits under two kinds of models each, and generated logits with 100 and
1000 classes.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import truecal as tc

PEERS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "temperature": (
        lambda: tc.TemperatureScaling(input="probs"),
        ("TemperatureScalingCalibrator", "GuoTemperatureScalingCalibrator"),
    ),
    "ensemble": (lambda: tc.EnsembleTemperature(input="probs"), ("ETSCalibrator",)),
    "vector": (lambda: tc.StructuredMatrixScaling(off_diagonal=None, input="probs"), ("SVSCalibrator",)),
    "structured": (lambda: tc.StructuredMatrixScaling(input="probs"), ("SMSCalibrator",)),
    "matrix": (lambda: tc.MatrixScaling(input="probs"), ("MatrixScalingCalibrator",)),
    "dirichlet": (lambda: tc.DirichletCalibration(), ("DirichletCalibrator",)),
    "centred isotonic": (lambda: tc.CenteredIsotonic(), ("CenteredIsotonicRegressionCalibrator",)),
}


def datasets(names: list[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Name, probabilities and labels to fit on, probabilities and labels to judge on."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB

    for data, load in (
        ("iris", load_iris),
        ("wine", load_wine),
        ("cancer", load_breast_cancer),
        ("digits", load_digits),
    ):
        X, y = load(return_X_y=True)
        for model in (GaussianNB(), RandomForestClassifier(100, random_state=0)):
            name = f"{data} {'forest' if hasattr(model, 'n_estimators') else 'bayes'}"
            if names and name not in names:
                continue
            train, rest, t, r = train_test_split(X, y, test_size=0.6, random_state=1, stratify=y)
            fit, test, fy, ty = train_test_split(rest, r, test_size=0.5, random_state=2, stratify=r)
            model.fit(train, t)
            yield name, model.predict_proba(fit), fy, model.predict_proba(test), ty
    for classes, rows in ((100, 5000), (1000, 10_000)):
        if not names or f"generated {classes}" in names:
            yield (f"generated {classes}", *_generated(classes, rows))


def _generated(classes: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Overconfident logits with biases and confusions between neighbouring classes."""
    rng = np.random.default_rng(classes)
    logits = rng.normal(size=(2 * rows, classes))
    logits[np.arange(2 * rows), rng.integers(0, classes, 2 * rows)] += 6
    true = logits + 0.3 * np.roll(logits, 1, axis=1) + 0.5 * rng.normal(size=classes)
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    probs = np.exp(2 * (logits - logits.max(axis=1, keepdims=True)))
    probs /= probs.sum(axis=1, keepdims=True)
    return probs[:rows], labels[:rows], probs[rows:], labels[rows:]


def log_loss(probs: np.ndarray, labels: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.log(probs[np.arange(len(labels)), labels]).mean())


def main(names: list[str]) -> None:
    from probmetrics import calibrators

    warnings.simplefilter("ignore")
    for data, probs, labels, judged, truth in datasets(names):
        for name, (maker, peers) in PEERS.items():
            if probs.shape[1] >= 1000 and name in ("matrix", "dirichlet", "centred isotonic"):
                continue  # K^2 free parameters, or K curves: no peer finishes
            try:
                ours = log_loss(maker().fit(probs, labels).predict_proba(judged), truth)
            except tc.InputError as error:
                print(f"{data} | {name} | refused: {error}", flush=True)
                continue
            losses = {}
            for peer in peers:
                try:
                    losses[peer] = log_loss(
                        getattr(calibrators, peer)().fit(probs, labels).predict_proba(judged), truth
                    )
                except (ValueError, RuntimeError, ImportError, AssertionError, IndexError) as error:
                    print(f"   {peer}: {type(error).__name__}", flush=True)
            theirs = min(losses.values(), default=np.inf)
            mark = "" if ours <= theirs + 1e-3 else "   WORSE"
            print(f"{data} | {name} | {ours:.4f} | {theirs:.4f} | {ours - theirs:+.4f}{mark}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
