"""Recalibrators beside other packages: time as ratios of one run, peak memory, and whether the answers agree.

Temperature scaling on 25,000 x 1000 float32 logits; isotonic and Platt scaling on a million scores.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.harness import Row, peak_extra_bytes, seconds_together
from truecal.recalibration import IsotonicCalibration, PlattScaling, StructuredMatrixScaling, TemperatureScaling

Array = NDArray[np.float64]


def logits_and_labels(n: int = 25_000, classes: int = 1000) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Overconfident logits of the shape of an ImageNet model's: the true temperature is 2."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((n, classes), np.float32)
    logits[np.arange(n), rng.integers(0, classes, n)] += 8
    labels = (logits + rng.gumbel(size=logits.shape).astype(np.float32)).argmax(axis=1)
    logits *= 2
    return logits, labels


def scores_and_outcomes(n: int = 1_000_000) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    return scores, (rng.random(n) < scores**2).astype(int)


def rows() -> list[Row]:
    return [*temperature(), *structured(), *isotonic(), *platt()]


def structured() -> list[Row]:
    """Structured vector and matrix scaling beside probmetrics'; the full matrices take about a minute each."""
    logits, labels = logits_and_labels()
    table = []
    for name, off_diagonal in (("svs", None), ("sms", 1.0)):
        what = f"structured {'vector' if off_diagonal is None else 'matrix'} scaling, 25,000 x 1000 float32"

        def ours(off_diagonal: float | None = off_diagonal) -> object:
            return StructuredMatrixScaling(off_diagonal=off_diagonal).fit(logits, labels)

        extra = peak_extra_bytes(ours) / logits.nbytes
        peer = _probmetrics_structured(name, logits, labels)
        if peer is None:
            (duration,) = seconds_together(ours, repeat=1)
        else:
            duration, theirs = seconds_together(ours, peer, repeat=1)
            table.append(Row(what, duration, duration / theirs, "probmetrics", bound=3))
        table.append(Row(f"{what}: peak memory", duration, 1 + extra, "the logits themselves", bound=2))
    return table


def _probmetrics_structured(
    name: str, logits: NDArray[np.float32], labels: NDArray[np.int64]
) -> Callable[[], object] | None:
    try:
        from probmetrics.calibrators import get_calibrator
    except ImportError:
        return None
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs = shifted / shifted.sum(axis=1, keepdims=True)
    return lambda: get_calibrator(name).fit(probs, labels)


def temperature() -> list[Row]:
    logits, labels = logits_and_labels()
    what = "temperature, 25,000 x 1000 float32"

    def ours() -> float:
        return TemperatureScaling().fit(logits, labels).temperature_

    def one_pass() -> object:
        peak = logits.max(axis=1, keepdims=True)
        return np.log(np.exp(logits - peak).sum(axis=1)) + peak[:, 0]

    duration, floor = seconds_together(ours, one_pass, repeat=3)
    extra = peak_extra_bytes(ours) / logits.nbytes
    fitted_temperature = ours()
    table = [
        Row(what, duration, duration / floor, "one logsumexp pass", bound=10),
        Row(f"{what}: peak memory", duration, 1 + extra, "the logits themselves", bound=1.3),
    ]
    peers = {
        "scikit-learn": (_sklearn_temperature(logits, labels), 5.0),
        "probmetrics": (_probmetrics_temperature(logits, labels), 5.0),
        "torch L-BFGS, strong Wolfe": (_torch_temperature(logits, labels), 2.0),
        "netcal": (_netcal_temperature(logits, labels), None),
    }
    for name, (peer, faster) in peers.items():
        if peer is None:
            continue
        ours_now, theirs = seconds_together(ours, peer, repeat=2)
        table.append(Row(f"{what}: times faster", ours_now, theirs / ours_now, name, bound=faster, at_least=True))
        worse = _log_loss(logits, labels, fitted_temperature) - _log_loss(logits, labels, peer())
        apart = abs(peer() / fitted_temperature - 1)
        table.append(Row(f"{what}: temperatures apart", theirs, apart, name, bound=1e-4 if faster else None))
        table.append(Row(f"{what}: log loss above theirs", theirs, worse, name, bound=1e-6))
    return table


def _log_loss(logits: NDArray[np.float32], labels: NDArray[np.int64], temperature: float) -> float:
    total = 0.0
    for start in range(0, len(labels), 1000):
        z = logits[start : start + 1000].astype(np.float64) / temperature
        z -= z.max(axis=1, keepdims=True)
        label_logits = z[np.arange(len(z)), labels[start : start + 1000]]
        total += float((np.log(np.exp(z).sum(axis=1)) - label_logits).sum())
    return total / len(labels)


def _sklearn_temperature(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Callable[[], float] | None:
    try:
        from sklearn.calibration import _TemperatureScaling
    except ImportError:  # before scikit-learn 1.8
        return None
    return lambda: 1 / float(_TemperatureScaling().fit(logits, labels.astype(np.float32)).beta_)


def _probmetrics_temperature(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Callable[[], float] | None:
    try:
        import torch
        from probmetrics.calibrators import TemperatureScalingCalibrator
        from probmetrics.distributions import CategoricalLogits
    except ImportError:
        return None

    def fit() -> float:
        outputs = CategoricalLogits(torch.as_tensor(logits))
        fitted = TemperatureScalingCalibrator().fit_torch(outputs, torch.as_tensor(labels))
        after = fitted.predict_proba_torch(CategoricalLogits(torch.tensor([[1.0, 0.0]]))).get_logits()[0]
        return 1 / float(after[0] - after[1])

    return fit


def _torch_temperature(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Callable[[], float] | None:
    try:
        import torch
    except ImportError:
        return None

    def fit() -> float:
        z, y = torch.as_tensor(logits), torch.as_tensor(labels)
        temperature = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.LBFGS([temperature], max_iter=50, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(z / temperature, y)
            loss.backward()
            return loss

        optimizer.step(closure)
        return float(temperature)

    return fit


def _netcal_temperature(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Callable[[], float] | None:
    try:
        from netcal.scaling import TemperatureScaling as Netcal
    except ImportError:
        return None

    def fit() -> float:
        z = logits - logits.max(axis=1, keepdims=True)
        probs = np.exp(z)
        probs /= probs.sum(axis=1, keepdims=True)
        return 1 / float(np.ravel(Netcal().fit(probs, labels).temperature)[0])

    return fit


def isotonic() -> list[Row]:
    from sklearn.isotonic import IsotonicRegression

    scores, outcomes = scores_and_outcomes()
    what = "isotonic, a million scores"
    model = IsotonicRegression(out_of_bounds="clip")
    ours, theirs = seconds_together(
        lambda: IsotonicCalibration().fit(scores, outcomes), lambda: model.fit(scores, outcomes), repeat=3
    )
    fixed = IsotonicCalibration().fit(scores, outcomes).predict_proba(scores)[:, 1]
    apart = float(np.abs(fixed - model.predict(scores)).max())
    return [
        Row(what, ours, ours / theirs, "scikit-learn", bound=1.5),
        Row(f"{what}: probabilities apart", ours, apart, "scikit-learn", bound=1e-4),
    ]


def platt() -> list[Row]:
    from sklearn.calibration import _SigmoidCalibration

    scores, outcomes = scores_and_outcomes()
    z = np.log(scores / (1 - scores))
    what = "Platt, a million log odds"
    ours, theirs = seconds_together(
        lambda: PlattScaling(input="logits").fit(z, outcomes), lambda: _SigmoidCalibration().fit(z, outcomes), repeat=3
    )
    fixed = PlattScaling(input="logits").fit(z, outcomes).predict_proba(z)[:, 1]
    apart = float(np.abs(fixed - _SigmoidCalibration().fit(z, outcomes).predict(z)).max())
    return [
        Row(f"{what}: times faster", ours, theirs / ours, "scikit-learn", at_least=True),
        Row(f"{what}: probabilities apart", ours, apart, "scikit-learn", bound=1e-4),
    ]
