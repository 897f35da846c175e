"""Questions to public names whose answers a rewrite must not change; `python -m tests.contract.questions` records them anew.

A number whose key ends in ~ rests on random draws: another stream may change it by a few of its standard errors.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import truecal as tc

ANSWERS = Path(__file__).with_name("answers.json")
Numbers = dict[str, float]


def _binary(n: int, seed: int, kind: str = "even") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = {
        "even": rng.random(n),
        "rare": rng.beta(0.5, 12, n),
        "skewed": rng.beta(5, 0.6, n),
        "tied": rng.integers(1, 10, n) / 10,
    }
    p = scores[kind]
    return (rng.random(n) < p**1.3).astype(int), p


def _logits(n: int = 600, classes: int = 4, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, classes))
    calm = np.exp(0.6 * logits)
    rates = calm / calm.sum(axis=1, keepdims=True)
    return logits, (rates.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, classes - 1)


DATA = {kind: _binary(500, seed, kind) for seed, kind in enumerate(("even", "rare", "skewed", "tied"))}
LOGITS, LABELS = _logits()
PREDS = tc.Predictions.from_logits(LOGITS, LABELS, columns={"site": np.arange(600) % 3})
Y, P = DATA["even"]
CLUSTERS, COUNTS = np.arange(500) // 5, 1 + np.arange(500) % 3


def _numbers(estimate: tc.Estimate, *, drawn: bool) -> Numbers:
    mark = "~" if drawn else ""
    answer = {"value": float(estimate.value), "n": float(estimate.n)}
    if estimate.interval is not None:
        answer |= {f"low{mark}": float(estimate.interval.low), f"high{mark}": float(estimate.interval.high)}
    if estimate.p_value is not None:
        answer["p~"] = float(estimate.p_value)
    return answer


QUESTIONS: dict[str, Callable[[], Numbers]] = {}


def question(name: str) -> Callable[[Callable[[], Numbers]], Callable[[], Numbers]]:
    """Enter a question into the table."""

    def enter(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
        QUESTIONS[name] = function
        return function

    return enter


CLOSED = {"default": tc.RankSeries(), "rank series, norm 1": tc.RankSeries(norm=1)}
DRAWN = {
    "binned": tc.BinnedECE(),
    "binned, mass": tc.BinnedECE(scheme="mass", norm=2),
    "debiased": tc.DebiasedECE(),
    "sweep": tc.SweepECE(),
    "nearest": tc.NearestECE(),
    "smooth": tc.SmoothECE(),
    "label binned": tc.estimators.LabelBinnedECE(),
    "kernel density": tc.estimators.KernelDensityECE(),
    "isotonic": tc.estimators.IsotonicError(),
    "KS": tc.estimators.KSError(),
    "adaptive": tc.estimators.AdaptiveECE(),
}
for _name, _estimator in (CLOSED | DRAWN).items():
    for _kind in DATA:
        QUESTIONS[f"{_name} of {_kind} scores"] = lambda e=_estimator, k=_kind, d=_name in DRAWN: _numbers(
            tc.calibration_error(*DATA[k], estimator=e), drawn=d
        )
for _name, _estimator in {"default": tc.RankSeries(), "binned": tc.BinnedECE()}.items():
    QUESTIONS[f"{_name} with clusters"] = lambda e=_estimator, d=_name != "default": _numbers(
        tc.calibration_error(Y, P, clusters=CLUSTERS, estimator=e), drawn=d
    )
    QUESTIONS[f"{_name} with counts"] = lambda e=_estimator, d=_name != "default": _numbers(
        tc.calibration_error(Y, P, sample_weight=COUNTS, estimator=e), drawn=d
    )
LENSES = {
    "top label": tc.TopLabel(),
    "class 2": tc.OneClass(2),
    "class-wise": tc.ClassWise(),
    "all labels": tc.AllLabels(),
    "top 2": tc.TopK(2),
    "grouping": tc.Grouping({"first": [0, 1], "second": [2, 3]}),
    "canonical": tc.Canonical(),
}
for _name, _lens in LENSES.items():
    QUESTIONS[f"lens {_name}"] = lambda lens=_lens, d=_name not in ("top label", "class 2"): _numbers(
        tc.measure(PREDS, lens=lens), drawn=d
    )
for _tool in ("torchmetrics", "netcal", "sklearn", "uncertainty-calibration", "relplot", "guo2017", "helm"):
    QUESTIONS[f"like {_tool}"] = lambda t=_tool: {
        "value": float(
            tc.like(t).measure(tc.Predictions.from_probs(P, Y) if t in ("sklearn", "relplot") else PREDS).value
        )
    }


@question("compare")
def _compare() -> Numbers:
    result = tc.compare(Y, P, P**1.4)
    return {"difference": result.difference, "low~": result.interval.low, "high~": result.interval.high}


@question("verify")
def _verify() -> Numbers:
    result = tc.verify(*DATA["tied"], threshold=0.1)
    return {"value": float(result.value), "high": float(result.high), "supported": float(result.verdict == "supported")}


@question("subgroups")
def _subgroups() -> Numbers:
    table = tc.subgroups(PREDS, by="site").frame()
    return {f"value {name}": float(value) for name, value in zip(table["group"], table["error"], strict=True)}


@question("clinical summary")
def _clinical() -> Numbers:
    result = tc.clinical.summary(Y, P)
    return {"slope": result.slope.value, "slope low": result.slope.low, "c": result.c_statistic.value}


@question("watch")
def _watch() -> Numbers:
    watch = tc.Watch(tolerance=0.02)
    step = None
    for day in range(4):
        rows = slice(100 * day, 100 * day + 100)
        step = watch.update(tc.Predictions.from_probs(P[rows], Y[rows]), at=day)
    return {"alarm": float(step.alarm), "log e": float(next(iter(step.groups.values())).log_e)}


@question("sketch")
def _sketch() -> Numbers:
    sketch = tc.Sketch()
    sketch.update(P, Y)
    return _numbers(tc.measure(sketch), drawn=False)


@question("scores")
def _scores() -> Numbers:
    return {"brier": tc.scores.brier(PREDS), "log loss": tc.scores.log_loss(PREDS)}


@question("abstention")
def _abstention() -> Numbers:
    return {"area": float(tc.selective.aurc(PREDS).value)}


MAPS = {
    "temperature": tc.recalibration.TemperatureScaling(),
    "vector": tc.recalibration.VectorScaling(),
    "isotonic": tc.recalibration.IsotonicCalibration(input="logits"),
    "histogram": tc.recalibration.HistogramBinning(input="logits"),
    "beta": tc.recalibration.BetaCalibration(input="logits"),
    "scaling-binning": tc.recalibration.ScalingBinning(input="logits"),
}
for _name, _map in MAPS.items():
    QUESTIONS[f"recalibrate {_name}"] = lambda m=_map: {
        f"row {i}": float(m.fit(LOGITS[:400], LABELS[:400]).predict_proba(LOGITS[400:])[i, 1]) for i in (0, 17, 99)
    }


@question("world")
def _world() -> Numbers:
    world = tc.lab.PAPER_WORLDS["resnet110_c10"]
    return {
        "true error": float(world.true_error(2)),
        "bias~": float(tc.lab.bias(tc.BinnedECE(norm=2), world, n=400, m=50).bias),
    }


def record() -> None:
    """Write the answers of this version."""
    answers = {name: ask() for name, ask in QUESTIONS.items()}
    ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
