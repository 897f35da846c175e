"""Log losses of maps beside the same maps of other packages, on rows neither was fitted on.

`python -m tests.recalibration.peers` prints a line per dataset and map: log losses of ours and of the peer, the mean difference
with its standard error over splits, the share of splits in which ours is worse by more than 0.001, and the worst. Datasets:
scikit-learn's iris, wine, breast cancer and digits, and generated ones, under naive Bayes, a forest and logistic regression;
logits with 100 and 1000 classes (one split). `--splits 20` is the default; names of datasets restrict it to these.

`--choose` takes the splits on which constants were chosen: other models, other generated data.

Some peers round to single precision; ours get the numbers that the peer sees. Probabilities are cut at the smallest
difference from 1 of double precision, as scikit-learn's `log_loss` does. A peer that is not installed or fails is left out.
"""

import logging
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import truecal as tc

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # to fit on and its labels, to judge on and its labels
# Where betacal cuts the single-precision numbers it is given.
SINGLE = float(np.finfo(np.float32).eps)
PEERS: dict[str, tuple[Callable[[], Any], str]] = {
    "temperature": (
        lambda: tc.recalibration.TemperatureScaling(input="probs", zeros="floor"),
        "TemperatureScalingCalibrator",
    ),
    "ensemble": (lambda: tc.recalibration.EnsembleTemperature(input="probs"), "ETSCalibrator"),
    "structured vector": (
        lambda: tc.recalibration.StructuredMatrixScaling(off_diagonal=None, input="probs"),
        "SVSCalibrator",
    ),
    "structured matrix": (lambda: tc.recalibration.StructuredMatrixScaling(input="probs"), "SMSCalibrator"),
    "vector": (lambda: tc.recalibration.VectorScaling(input="probs", zeros="floor"), "VectorScalingCalibrator"),
    "matrix": (lambda: tc.recalibration.MatrixScaling(input="probs"), "MatrixScalingCalibrator"),
    "beta": (lambda: tc.recalibration.BetaCalibration(clip=SINGLE), "beta"),
    "Platt": (lambda: tc.recalibration.PlattScaling(input="probs"), "platt"),
    "isotonic": (lambda: tc.recalibration.IsotonicCalibration(), "isotonic"),
    "centred isotonic": (lambda: tc.recalibration.CenteredIsotonic(), "cir"),
    "Venn-Abers": (lambda: tc.recalibration.VennAbers(), "ivap-ovr"),
}
SINGLE_PRECISION = {"beta", "centred isotonic", "Venn-Abers"}  # what these peers round the numbers to
LARGE = {
    "temperature",
    "ensemble",
    "structured vector",
    "structured matrix",
}  # K^2 free parameters, K curves: no peer finishes


def models() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "bayes": GaussianNB,
        "forest": lambda: RandomForestClassifier(100, random_state=0),
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "sharp": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=100, max_iter=200)),
        "neighbours": lambda: KNeighborsClassifier(10),
    }


def sources() -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    loads = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
    return {name: lambda load=load: load(return_X_y=True) for name, load in loads.items()}


def made(classes: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Clouds that overlap more or less, with 0, 2 or 10 % of the labels drawn at random."""
    from sklearn.datasets import make_classification

    rng = np.random.default_rng([classes, rows, seed])
    X, y = make_classification(
        n_samples=rows,
        n_classes=classes,
        n_features=12,
        n_informative=6,
        n_redundant=3,
        n_clusters_per_class=1,
        flip_y=rng.choice([0.0, 0.02, 0.1]),
        class_sep=rng.choice([0.7, 1.5, 2.5]),
        random_state=seed * 1000 + classes,
    )
    return X, y


def held_out(X: np.ndarray, y: np.ndarray, model: Any, split: int) -> Rows:
    """A model of 40 % of the rows, its outputs on two parts of 30 %."""
    from sklearn.model_selection import train_test_split

    train, rest, t, r = train_test_split(X, y, test_size=0.6, random_state=split, stratify=y)
    fit, test, fy, ty = train_test_split(rest, r, test_size=0.5, random_state=split + 1, stratify=r)
    model.fit(train, t)
    return model.predict_proba(fit), fy, model.predict_proba(test), ty


def judged(splits: int) -> Iterator[tuple[str, Callable[[], Rows]]]:
    made_of = models()
    for split in range(501, 501 + 2 * splits, 2):
        for data, load in sources().items():
            for model in ("bayes", "forest", "logistic"):
                yield f"{data}, {model}", lambda m=model, load=load, s=split: held_out(*load(), made_of[m](), s)
        for classes in (2, 5):
            for model in ("bayes", "logistic"):
                yield (
                    f"made {classes}, {model}",
                    lambda m=model, c=classes, s=split: held_out(*made(c, 1000, s), made_of[m](), s),
                )
    for classes, rows in ((100, 5000), (1000, 10_000)):
        yield f"generated {classes}", lambda c=classes, n=rows: generated(c, n)


def chosen_on() -> Iterator[tuple[str, Callable[[], Rows]]]:
    made_of = models()
    for seed in range(5):
        for classes in (2, 3, 10):
            for rows in (400, 1200):
                for model in ("bayes", "forest", "logistic", "neighbours"):
                    yield (
                        f"made {classes}, {model}",
                        lambda m=model, c=classes, n=rows, s=seed: held_out(*made(c, n, s), made_of[m](), 2 * s),
                    )
    for split in range(1, 11, 2):
        for data, load in sources().items():
            for model in ("neighbours", "sharp"):
                yield f"{data}, {model}", lambda m=model, load=load, s=split: held_out(*load(), made_of[m](), s)


def generated(classes: int, rows: int) -> Rows:
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
    own_values = np.asarray(probs, np.float64)[np.arange(len(labels)), labels]
    return float(-np.log(np.clip(own_values, np.finfo(float).eps, 1)).mean())


def losses(name: str, rows: Rows) -> tuple[float, float] | None:
    """Ours (NaN where it refuses) and the peer's; None where the peer does not finish."""
    from probmetrics import calibrators

    probs, labels, judged_probs, truth = rows
    maker, peer = PEERS[name]
    try:
        made_peer = getattr(calibrators, peer)() if peer[0].isupper() else calibrators.get_calibrator(peer)
        theirs = log_loss(made_peer.fit(probs, labels).predict_proba(judged_probs), truth)
    except (ValueError, RuntimeError, ImportError, AssertionError, IndexError):
        return None
    kind = np.float32 if name in SINGLE_PRECISION else np.float64
    try:
        ours = log_loss(maker().fit(probs.astype(kind), labels).predict_proba(judged_probs.astype(kind)), truth)
    except tc.InputError:
        ours = np.nan
    return ours, theirs


def main(splits: int, names: list[str], choose: bool) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    result: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for data, make in chosen_on() if choose else judged(splits):
        if names and data not in names:
            continue
        rows = make()
        for name in PEERS:
            if rows[0].shape[1] >= 100 and name not in LARGE:
                continue
            pair = losses(name, rows)
            if pair is not None:
                result[data, name].append(pair)
    for (data, name), each in sorted(result.items(), key=lambda item: list(PEERS).index(item[0][1])):
        print(f"{name} | {data} | {line(np.array(each))}", flush=True)
    for name in PEERS:
        whole = [pair for (_, kind), each in result.items() if kind == name for pair in each]
        if whole:
            print(f"{name} | all | {line(np.array(whole))}", flush=True)


def line(each: np.ndarray) -> str:
    ours, theirs = each.T
    change = ours - theirs
    noise = f" ± {change.std(ddof=1) / np.sqrt(len(change)):.4f}" if len(change) > 1 else ""
    share = f"{np.mean(change > 1e-3):.0%} of {len(change)}"
    return f"{ours.mean():.4f} | {theirs.mean():.4f} | {change.mean():+.4f}{noise} | {share} | {change.max():+.4f}"


if __name__ == "__main__":
    words = sys.argv[1:]
    count = int(words.pop(words.index("--splits") + 1)) if "--splits" in words else 20
    main(count, [word for word in words if not word.startswith("--")], "--choose" in words)
