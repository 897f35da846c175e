"""Log losses of maps beside the same maps of other packages, on rows neither was fitted on.

`python -m tests.recalibrate.peers` prints one line per dataset and map; a peer that is not installed or fails is left out.
Datasets: scikit-learn's iris, wine, breast cancer and digits under two kinds of models each, and generated logits with 100 and
1000 classes. Names of datasets as arguments restrict it to these.

With 45 rows to judge on, one split says little: `--splits 40` draws others and prints the mean difference to the peer that is
best on the mean, with its standard error over splits. Infinite losses count as 700, minus the logarithm of the smallest float.
"""

import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import truecal as tc

PEERS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "temperature": (
        lambda: tc.TemperatureScaling(input="probs", zeros="floor"),  # as the others read a probability of 0
        ("TemperatureScalingCalibrator", "GuoTemperatureScalingCalibrator"),
    ),
    "ensemble": (lambda: tc.EnsembleTemperature(input="probs"), ("ETSCalibrator",)),
    "vector": (lambda: tc.StructuredMatrixScaling(off_diagonal=None, input="probs"), ("SVSCalibrator",)),
    "structured": (lambda: tc.StructuredMatrixScaling(input="probs"), ("SMSCalibrator",)),
    "matrix": (lambda: tc.MatrixScaling(input="probs"), ("MatrixScalingCalibrator",)),
    "dirichlet": (lambda: tc.DirichletCalibration(), ("DirichletCalibrator",)),
    "vector, no penalty": (lambda: tc.VectorScaling(input="probs", zeros="floor"), ("VectorScalingCalibrator",)),
    "beta": (lambda: tc.BetaCalibration(clip=float(np.finfo(float).eps)), ("beta",)),  # where betacal clips
    "isotonic": (lambda: tc.IsotonicCalibration(), ("isotonic",)),
    "centred isotonic": (lambda: tc.CenteredIsotonic(), ("cir",)),
}


def datasets(names: list[str], split: int = 1) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
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
            train, rest, t, r = train_test_split(X, y, test_size=0.6, random_state=split, stratify=y)
            fit, test, fy, ty = train_test_split(rest, r, test_size=0.5, random_state=split + 1, stratify=r)
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


def losses(
    maker: Callable[[], Any], peers: tuple[str, ...], rows: tuple[np.ndarray, ...]
) -> tuple[float, dict[str, float]]:
    """Ours (NaN where it refuses) and those of the peers that finish."""
    from probmetrics import calibrators

    probs, labels, judged, truth = rows
    try:
        ours = log_loss(maker().fit(probs, labels).predict_proba(judged), truth)
    except tc.InputError:
        ours = np.nan
    theirs = {}
    for peer in peers:
        try:
            made = getattr(calibrators, peer)() if peer[0].isupper() else calibrators.get_calibrator(peer)
            fitted = made.fit(probs, labels)
            theirs[peer] = log_loss(fitted.predict_proba(judged), truth)
        except (ValueError, RuntimeError, ImportError, AssertionError, IndexError):
            continue
    return ours, theirs


def main(names: list[str], splits: int) -> None:
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], list[tuple[float, dict[str, float]]]] = defaultdict(list)
    for split in [1] if splits == 1 else range(501, 501 + 2 * splits, 2):
        for data, *rows in datasets(names, split):
            for name, (maker, peers) in PEERS.items():
                # K^2 free parameters, or K curves: no peer finishes
                if rows[0].shape[1] < 1000 or name in ("temperature", "ensemble", "vector", "structured"):
                    found[data, name].append(losses(maker, peers, tuple(rows)))
                    if splits == 1:
                        show(data, name, found[data, name])
    if splits > 1:
        for (data, name), each in found.items():
            show(data, name, each)


def show(data: str, name: str, each: list[tuple[float, dict[str, float]]]) -> None:
    """One line: the mean losses, and the mean difference to the best peer with its standard error."""
    ours = np.minimum([own for own, _ in each], 700)
    finished = [peer for peer in PEERS[name][1] if all(peer in theirs for _, theirs in each)]
    tables = [np.minimum([theirs[peer] for _, theirs in each], 700) for peer in finished]
    best = min(tables, key=np.mean, default=np.full(len(ours), np.nan))
    change = ours - best
    noise = f" ± {change.std(ddof=1) / np.sqrt(len(change)):.4f}" if len(change) > 1 else ""
    mark = "   WORSE" if np.isnan(ours).any() or change.mean() > 1e-3 else ""
    print(f"{data} | {name} | {ours.mean():.4f} | {best.mean():.4f} | {change.mean():+.4f}{noise}{mark}", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    count = int(words.pop(words.index("--splits") + 1)) if "--splits" in words else 1
    main([word for word in words if word != "--splits"], count)
